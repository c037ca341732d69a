/* Word vectors by ELMo. */
#include "elmo_words.h"

#include "base/alloc.h"
#include "base/elmo/word_chars.h"
#include "model/model_desc.h"
#include "nn/chars/char_word_cache.h"

#include <stdio.h>
#include <string.h>

enum { BATCH_TOKENS = 2048, CACHE_BYTES = 256 << 20 };

struct ses_elmo_words {
    ses_model *model;
    ses_tape *tape;
    ses_word_cache *cache;
};

ses_elmo_words *ses_elmo_words_open(const char *dir, ses_device *dev, ses_err *e)
{
    ses_elmo_words *k = ses_alloc(sizeof *k, e);
    if (!k) return NULL;
    k->model = ses_model_open(dir, dev, &(ses_model_options){ .no_head = true }, e);
    if (k->model && !k->model->c.chars.per_word)
        ses_fail(e, SES_EARG, "%s: model_type \"%s\" does not read characters, expected \"elmo\"", dir,
                 k->model->desc->name);
    else if (k->model && (k->tape = ses_tape_new(dev, NULL, e)) &&
             (k->cache = ses_word_cache_new(CACHE_BYTES, e)))
        return k;
    ses_elmo_words_free(k);
    return NULL;
}

void ses_elmo_words_free(ses_elmo_words *k)
{
    if (!k) return;
    ses_word_cache_free(k->cache);
    ses_tape_free(k->tape);
    ses_model_free(k->model);
    ses_free(k);
}

int64_t ses_elmo_words_layers(const ses_elmo_words *k) { return ses_model_layer_count(k->model) + 1; }
int64_t ses_elmo_words_width(const ses_elmo_words *k) { return k->model->c.hidden; }

int64_t ses_elmo_words_max_bytes(const ses_elmo_words *k)
{
    return ses_word_max_bytes(k->model->c.chars.per_word);
}

/* A batch of sentences; all its words are extra words: BOS and EOS, then the others. */
typedef struct sentences {
    int32_t *id, *cu;
    int16_t *chars;
    size_t tokens, n;
} sentences;

static void free_sentences(sentences *b)
{
    ses_free(b->id);
    ses_free(b->cu);
    ses_free(b->chars);
}

static bool make_sentences(const ses_elmo_words *k, sentences *b, const ses_string *words,
                           const size_t *first, ses_err *e)
{
    const ses_config *c = &k->model->c;
    int64_t per_word = c->chars.per_word;
    size_t n_words = first[b->n] - first[0], at = 0;
    b->tokens = n_words + 2 * b->n;
    b->id = ses_alloc_array(b->tokens, sizeof *b->id, e);
    b->cu = ses_alloc_array(b->n + 1, sizeof *b->cu, e);
    b->chars = ses_alloc_array((n_words + 2) * (size_t)per_word, sizeof *b->chars, e);
    if (!b->id || !b->cu || !b->chars) return false;
    if (b->tokens > INT32_MAX / 2) return ses_fail(e, SES_EARG, "%zu words in one sentence", n_words);
    ses_word_one_char(b->chars, per_word, SES_CHAR_BOS);
    ses_word_one_char(b->chars + per_word, per_word, SES_CHAR_EOS);
    for (size_t s = 0; s < b->n; s++) {
        b->id[at++] = (int32_t)c->vocab;
        for (size_t w = first[s]; w < first[s + 1]; w++) {
            int64_t row = (int64_t)(w - first[0]) + 2;
            ses_word_chars(b->chars + row * per_word, per_word, words[w].p, words[w].n);
            b->id[at++] = (int32_t)(c->vocab + row);
        }
        b->id[at++] = (int32_t)c->vocab + 1;
        b->cu[s + 1] = (int32_t)at;
    }
    return true;
}

/* Copies a layer without BOS and EOS. */
static bool copy_layer(const ses_elmo_words *k, const sentences *b, const ses_outputs *from, int64_t layer,
                       float *to, ses_err *e)
{
    char name[48];
    int64_t width = ses_elmo_words_width(k);
    snprintf(name, sizeof name, "hidden_states.%lld", (long long)layer);
    const ses_output *x = ses_outputs_find(from, name);
    ses_real *all = ses_alloc_array(b->tokens * (size_t)width, sizeof *all, e);
    bool ok = all && x && ses_tape_read(k->tape, x->tensor, all);
    for (size_t s = 0; ok && s < b->n; s++)
        for (int64_t t = b->cu[s] + 1; t + 1 < b->cu[s + 1]; t++)
            for (int64_t i = 0; i < width; i++) *to++ = (float)all[t * width + i];
    ses_free(all);
    return ok || !all || (ses_tape_ok(k->tape, e), false);
}

static bool run_batch(ses_elmo_words *k, const ses_string *words, const size_t *first, size_t n,
                      float *const *out, ses_err *e)
{
    sentences b = { .n = n };
    ses_outputs result;
    bool ok = make_sentences(k, &b, words, first, e);
    ses_batch batch = { .seqs = (int64_t)n,
                        .tokens = (int64_t)b.tokens,
                        .cu_seqlens = b.cu,
                        .ids = b.id,
                        .extra_word_chars = b.chars,
                        .n_extra_words = (int64_t)(first[n] - first[0]) + 2,
                        .word_cache = k->cache };
    ses_tape_reset(k->tape, NULL);
    ok = ok && ses_model_forward(k->model, k->tape, &batch, &(ses_output_request){ .hidden_states = true },
                                 &result, e);
    for (int64_t l = 0; ok && l < ses_elmo_words_layers(k); l++)
        if (out[l])
            ok = copy_layer(k, &b, &result, l, out[l] + first[0] * (size_t)ses_elmo_words_width(k), e);
    free_sentences(&b);
    return ok;
}

bool ses_elmo_words_run(ses_elmo_words *k, const ses_string *words, const size_t *first, size_t n,
                        float *const *out, ses_err *e)
{
    for (size_t s = 0, count; s < n; s += count) {
        for (count = 1; s + count < n && first[s + count + 1] - first[s] + 2 * (count + 1) <= BATCH_TOKENS;)
            count++;
        if (!run_batch(k, words, first + s, count, out, e)) return false;
    }
    return true;
}
