/* Vectors of the words of a batch. In inference on a CPU the distinct words are computed in chunks of a
 * bounded size, and a cache keeps their vectors for later batches. Each vector depends on its word only, so
 * neither chunks nor cache change its bits. */
#include "char_words.h"

#include "base/alloc.h"
#include "base/elmo/word_chars.h"
#include "base/strmap.h"
#include "char_word_cache.h"
#include "tensor/device_impl.h"

#include <string.h>

enum { CHUNK = 256 }; /* words: about 10 MB of windows in ELMo */

void ses_char_words_add(ses_char_words *k, ses_store *s, const ses_config *c, int64_t out)
{
    k->table = ses_store_add(s, "chars.words", SES_DIM(c->vocab, c->chars.per_word), SES_INIT_ZERO);
    ses_store_set_role(s, k->table, SES_PARAM_BUFFER);
    ses_char_cnn_add(&k->cnn, s, c, out);
}

bool ses_char_words_load(ses_char_words *k, ses_store *s, const ses_config *c, ses_err *e)
{
    int64_t per_word = c->chars.per_word;
    size_t n = (size_t)(c->vocab * per_word);
    ses_device *dev = ses_store_device(s);
    ses_real *all = ses_alloc_array(n, sizeof *all, e);
    bool ok = all != NULL;
    if (ok) dev->mem->download(dev, all, ses_master_data(k->table), n * sizeof *all);
    for (int64_t w = 0; ok && w < c->vocab; w++) {
        const ses_real *row = all + w * per_word;
        for (int64_t i = 0; ok && i < per_word; i++)
            ok = ses_char_from_number((double)row[i], &k->chars[w * per_word + i]) &&
                 (k->chars[w * per_word + i] >= 0) == (k->chars[w * per_word] >= 0);
        if (!ok) ses_fail(e, SES_EFORMAT, "the characters of word %lld are invalid", (long long)w);
    }
    ses_free(all);
    return ok;
}

/* ---- distinct words ---- */

typedef struct words {
    const int16_t **word; /* [n]: the distinct words */
    int64_t n;
    int32_t *row; /* [tokens]: index in word */
} words;

/* The word of a token by its bytes (ses_batch.word_chars); NULL: the tape has failed. */
static const int16_t *word_of_bytes(ses_forward_ctx *p, int32_t from, int32_t to)
{
    int64_t per_word = p->c->chars.per_word, n = to - from < per_word ? to - from : per_word;
    int16_t *word = ses_tape_host_alloc(p->tape, (size_t)per_word, sizeof *word);
    char *bytes = ses_tape_host_alloc(p->tape, (size_t)n, 1);
    for (int64_t i = 0; bytes && i < n; i++) bytes[i] = (char)p->batch->word_chars[from + i];
    if (word && bytes) ses_word_chars(word, per_word, bytes, (size_t)n);
    return bytes ? word : NULL;
}

/* Whether the batch has the bytes of an unknown word. */
static bool has_bytes(const ses_forward_ctx *p, const ses_config *c, const ses_seqs *q, int64_t t)
{
    const int32_t *cu = p->batch->word_char_cu;
    return cu && q->host_ids[t] == c->chars.unk_id && cu[t] < cu[t + 1];
}

static const int16_t *word_of(const ses_char_words *k, const ses_forward_ctx *p, const ses_config *c,
                              int32_t id)
{
    int64_t per_word = c->chars.per_word;
    return id < c->vocab ? k->chars + id * per_word : p->batch->extra_word_chars + (id - c->vocab) * per_word;
}

/* Words of the vocabulary are given by their ids: in a model without one all others are "unknown". */
static bool check_word(ses_tape *t, const ses_config *c, const int16_t *word, int32_t id)
{
    enum { SPECIAL_WORDS = 3 };
    if (word[0] < 0)
        ses_tape_fail(t, SES_EARG, "the characters of word %d are not set", (int)id);
    else if (id == c->chars.unk_id && c->vocab <= SPECIAL_WORDS)
        ses_tape_fail(
            t, SES_EUNSUPPORTED,
            "the model has no vocabulary and needs the characters of every word: this command does not "
            "give them");
    else
        return true;
    return false;
}

static bool find_words(const ses_char_words *k, ses_forward_ctx *p, const ses_seqs *q, words *v)
{
    const ses_config *c = p->c;
    ses_strmap seen = { 0 };
    ses_err e = { 0 };
    size_t bytes = (size_t)c->chars.per_word * sizeof(int16_t);
    v->word = ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *v->word);
    v->row = ses_tape_host_alloc(p->tape, (size_t)q->tokens, sizeof *v->row);
    bool ok = v->word && v->row;
    for (int64_t t = 0; ok && t < q->tokens; t++) {
        bool fresh = false, spelled = has_bytes(p, c, q, t);
        const int16_t *word = spelled
                                  ? word_of_bytes(p, p->batch->word_char_cu[t], p->batch->word_char_cu[t + 1])
                                  : word_of(k, p, c, q->host_ids[t]);
        if (!(ok = word && (spelled || check_word(p->tape, c, word, q->host_ids[t])))) break;
        int64_t *at = ses_strmap_insert(&seen, (const char *)word, bytes, v->n, &fresh, &e);
        if (!(ok = at != NULL)) break;
        if (fresh) v->word[v->n++] = word;
        v->row[t] = (int32_t)*at;
    }
    ses_strmap_free(&seen);
    if (e.code) ses_tape_fail(p->tape, e.code, "%s", e.msg);
    return ok;
}

/* The characters of words [from, from + n), concatenated. */
static const int16_t *gather_chars(ses_tape *t, const ses_config *c, const int16_t *const *word, int64_t n)
{
    size_t per_word = (size_t)c->chars.per_word;
    int16_t *chars = ses_tape_host_alloc(t, (size_t)n * per_word, sizeof *chars);
    for (int64_t i = 0; chars && i < n; i++)
        memcpy(chars + (size_t)i * per_word, word[i], per_word * sizeof *chars);
    return chars;
}

/* ---- vectors ---- */

static ses_tensor *run_words(const ses_char_words *k, ses_forward_ctx *p, const int16_t *const *word,
                             int64_t n)
{
    const int16_t *chars = gather_chars(p->tape, p->c, word, n);
    return chars ? ses_char_cnn_run(&k->cnn, p->tape, p->c, chars, n) : NULL;
}

/* Computes words[0, n) and copies their vectors to rows `at` of to. */
static bool run_chunk(const ses_char_words *k, ses_forward_ctx *p, const int16_t *const *word,
                      const int32_t *at, int64_t n, ses_real *to, int64_t width)
{
    ses_err e = { 0 };
    ses_tensor *x = run_words(k, p, word, n);
    if (!x) return false;
    for (int64_t i = 0; i < n; i++) {
        const ses_real *from = x->f + i * width;
        memcpy(to + at[i] * width, from, (size_t)width * sizeof *to);
        if (p->batch->word_cache &&
            !ses_word_cache_put(p->batch->word_cache, word[i], p->c->chars.per_word, from, width, &e))
            ses_tape_fail(p->tape, e.code, "%s", e.msg);
    }
    return ses_tape_ok(p->tape, NULL);
}

/* The vectors of all distinct words in host memory. */
static ses_tensor *run_cached(const ses_char_words *k, ses_forward_ctx *p, const words *v, int64_t width)
{
    ses_tape *t = p->tape;
    ses_real *all = ses_tape_host_alloc(t, (size_t)(v->n * width), sizeof *all);
    const int16_t **word = ses_tape_host_alloc(t, (size_t)v->n, sizeof *word);
    int32_t *at = ses_tape_host_alloc(t, (size_t)v->n, sizeof *at);
    int64_t n = 0;
    if (!all || !word || !at) return NULL;
    for (int64_t i = 0; i < v->n; i++) {
        const ses_real *x = ses_word_cache_find(p->batch->word_cache, v->word[i], p->c->chars.per_word);
        if (x)
            memcpy(all + i * width, x, (size_t)width * sizeof *all);
        else
            word[n] = v->word[i], at[n++] = (int32_t)i;
    }
    for (int64_t i = 0; i < n; i += CHUNK) {
        ses_tape_mark start = ses_tape_get_mark(t);
        if (!run_chunk(k, p, word + i, at + i, n - i < CHUNK ? n - i : CHUNK, all, width)) return NULL;
        ses_tape_rewind(t, start, ses_tape_tensor(t, SES_DIM(1)));
    }
    return ses_tape_input(t, all, SES_DIM(v->n, width));
}

ses_tensor *ses_char_words_run(const ses_char_words *k, ses_forward_ctx *p, const ses_seqs *q)
{
    words v = { 0 };
    int64_t width = k->cnn.project.w ? ses_rows(k->cnn.project.w) : ses_char_filters(p->c);
    if (!find_words(k, p, q, &v)) return NULL;
    bool direct = ses_tape_recording(p->tape) || !ses_tape_device(p->tape)->is_host;
    ses_tensor *x = direct ? run_words(k, p, v.word, v.n) : run_cached(k, p, &v, width);
    return x ? ses_gather(p->tape, x, ses_tape_ints(p->tape, v.row, q->tokens)) : NULL;
}
