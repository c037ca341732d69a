/* Search for the words of labels: see verbalizer_search.h. */
#include "verbalizer_search.h"

#include "base/alloc.h"
#include "cloze_loss.h"
#include "generate/logit_scores.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* ---- choice ---- */

static bool is_taken(const int32_t *out, size_t labels, size_t label, int32_t token)
{
    for (size_t l = 0; l < labels; l++)
        if (l != label && out[l] == token) return true;
    return false;
}

/* Texts whose label has the highest score of all labels' tokens. */
static size_t count_right(const float *score, const int32_t *label, size_t texts, size_t labels, size_t vocab,
                          const int32_t *token)
{
    size_t right = 0;
    for (size_t i = 0; i < texts; i++) {
        size_t best = 0;
        for (size_t l = 1; l < labels; l++)
            if (score[i * vocab + (size_t)token[l]] > score[i * vocab + (size_t)token[best]]) best = l;
        right += (int32_t)best == label[i];
    }
    return right;
}

/* The k tokens with the highest mean score over the texts of label l: best[k]. */
static void find_candidates(const float *score, const int32_t *label, size_t texts, size_t vocab, int32_t l,
                            const uint8_t *allowed, size_t k, float *mean, int32_t *best)
{
    for (size_t t = 0; t < vocab; t++) {
        double sum = 0;
        for (size_t i = 0; allowed[t] && i < texts; i++)
            if (label[i] == l) sum += (double)score[i * vocab + t];
        mean[t] = allowed[t] ? (float)sum : -INFINITY;
    }
    ses_top_k(mean, (int64_t)vocab, (int64_t)k, best);
}

bool ses_word_choose(const float *score, const int32_t *label, size_t texts, size_t labels, size_t vocab,
                     const uint8_t *allowed, size_t k, int32_t *out, ses_err *e)
{
    enum { PASSES = 2 };
    if (k < labels) k = labels; /* each label finds a token that the others do not have */
    if (k > vocab) k = vocab;
    float *mean = ses_alloc_array(vocab, sizeof *mean, e);
    int32_t *best = mean ? ses_alloc_array(labels * k, sizeof *best, e) : NULL;
    for (size_t l = 0; best && l < labels; l++) out[l] = -1;
    for (size_t l = 0; best && l < labels; l++) {
        find_candidates(score, label, texts, vocab, (int32_t)l, allowed, k, mean, best + l * k);
        for (size_t c = 0; out[l] < 0 && c < k; c++)
            if (!is_taken(out, labels, l, best[l * k + c])) out[l] = best[l * k + c];
    }
    for (size_t pass = 0; best && pass < PASSES * labels; pass++) {
        size_t l = pass % labels, most = count_right(score, label, texts, labels, vocab, out);
        int32_t chosen = out[l];
        for (size_t c = 0; c < k; c++) {
            int32_t token = best[l * k + c];
            if (!allowed[token] || is_taken(out, labels, l, token)) continue;
            out[l] = token;
            size_t right = count_right(score, label, texts, labels, vocab, out);
            if (right > most) most = right, chosen = token;
        }
        out[l] = chosen;
    }
    ses_free(mean);
    ses_free(best);
    return best != NULL;
}

/* ---- the search ---- */

/* Can the token be a verbalizer: a whole word of letters that the tokenizer gives back? */
static bool is_word(ses_encode_ctx *k, bool blank, int32_t id, char *word, size_t size)
{
    const char *s;
    size_t n;
    ses_err ignored = { 0 };
    if (!ses_decode(k, &id, 1, false, &s, &n, &ignored)) return false;
    while (n && *s == ' ') s++, n--;
    if (n < 2 || n + 2 > size) return false;
    for (size_t i = 0; i < n; i++)
        if (!isalpha((unsigned char)s[i])) return false;
    word[0] = ' ';
    memcpy(word + 1, s, n);
    word[n + 1] = 0;
    const int32_t *back;
    size_t n_back;
    return ses_encode_ids(k, word + !blank, n + blank, false, &back, &n_back, &ignored) && n_back == 1 &&
           *back == id;
}

/* Log probabilities at the mask of all training texts. */
static float *score_texts(ses_finetune *f, size_t vocab, ses_err *e)
{
    ses_finetuner *t = f->tuner;
    ses_batches *all =
        ses_batches_new(f->train.data, &(ses_batching){ .max_tokens = 4096, .in_order = true }, e);
    ses_batch_source s = all ? ses_batches_source(all) : (ses_batch_source){ 0 };
    float *score = all ? ses_alloc_array(f->train.n * vocab, sizeof *score, e) : NULL;
    bool ok = score != NULL;
    size_t done = 0;
    for (int64_t i = 0; ok && i < s.count(s.ctx, 0); i++) {
        ses_batch b;
        ses_tape_reset(t->tape, &(ses_tape_options){ 0 });
        ok = s.batch(s.ctx, 0, i, &b, e);
        ses_tensor *x = ok ? ses_cloze_logits(t, t->tape, &b, e) : NULL;
        x = x ? ses_log_softmax(t->tape, x) : NULL;
        size_t n = x ? (size_t)ses_count(x) : 0;
        ses_real *raw = x ? ses_alloc_array(n, sizeof *raw, e) : NULL;
        ok = raw && ses_tape_read(t->tape, x, raw);
        for (size_t k = 0; ok && k < n; k++) score[done++] = (float)raw[k];
        ses_free(raw);
    }
    ses_batches_free(all);
    if (ok) return score;
    ses_free(score);
    return NULL;
}

static bool set_words(ses_tune_run *r, ses_finetuner *t, const int32_t *token, bool blank, ses_err *e)
{
    char word[256];
    ses_patterns *p = r->patterns;
    for (size_t l = 0; l < t->n_labels; l++)
        for (size_t i = 0; i < p->n_verbalizers; i++) {
            if (strcmp(p->verbalizer[i].label, t->label[l])) continue;
            if (!is_word(t->tokens, blank, token[l], word, sizeof word))
                return ses_fail(e, SES_EARG, "no word was found for the label \"%s\"", t->label[l]);
            const char **list = ses_arena_array(&p->mem, 1, sizeof *list, e);
            if (!list || !(list[0] = ses_arena_strndup(&p->mem, word + 1, strlen(word + 1), e))) return false;
            p->verbalizer[i].word = list;
            p->verbalizer[i].n = 1;
            if (!ses_tune_notify(r, "word of %s: %s", t->label[l], list[0])) return false;
        }
    return true;
}

static bool search(ses_tune_run *r, ses_finetune *f, ses_err *e)
{
    ses_finetuner *t = f->tuner;
    size_t texts = f->train.n, vocab = (size_t)ses_model_vocab_size(t->model),
           known = (size_t)ses_tokenizer_vocab_size(t->tokenizer);
    char word[256];
    bool blank = ses_cloze_prompt_follows_blank(ses_cloze_prompt_of(t));
    uint8_t *allowed = ses_arena_array(&r->mem, vocab, 1, e);
    int32_t *label = allowed ? ses_arena_array(&r->mem, texts, sizeof *label, e) : NULL;
    int32_t *token = label ? ses_arena_array(&r->mem, t->n_labels, sizeof *token, e) : NULL;
    if (!token) return false;
    for (size_t i = 0; i < vocab && i < known; i++)
        allowed[i] = !ses_tokenizer_is_special(t->tokenizer, (int32_t)i) &&
                     is_word(t->tokens, blank, (int32_t)i, word, sizeof word);
    for (size_t i = 0; i < texts; i++) label[i] = ses_examples_at(r->train, (size_t)f->train.row[i])->label;
    float *score = score_texts(f, vocab, e);
    bool ok = score &&
              ses_word_choose(score, label, texts, t->n_labels, vocab, allowed,
                              (size_t)r->plan.settings.search_words, token, e) &&
              set_words(r, t, token, blank, e);
    ses_free(score);
    return ok;
}

bool ses_verbalizer_search(ses_tune_run *r, ses_err *e)
{
    ses_few_shot how = { .patterns = r->patterns };
    ses_tune_member m = { .how = &how, .pattern = r->o.task.pattern, .seed = r->o.run.seed };
    ses_finetune_options o = ses_tune_member_options(r, &m);
    ses_finetune *f = ses_finetune_new(&o, r->dev, e);
    bool ok = f && search(r, f, e);
    ses_finetune_free(f);
    return ok;
}
