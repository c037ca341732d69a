/* Corpus BLEU as sacrebleu computes it (case mixed, smoothing exp, up to 4-grams), in percent, with the WMT
 * 13a tokenization ("bleu") or split at white space ("bleu_plain"). If there are several references, n-gram
 * counts are clipped by the largest count in any of them, and the nearest reference length is used. */
#include "metric_impl.h"
#include "word_ids.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

enum { HYP_LEN, REF_LEN, CORRECT, TOTAL = CORRECT + SES_MAX_NGRAM, WIDTH = TOTAL + SES_MAX_NGRAM };

/* ---- tokenization 13a ---- */

/* The replacements of mteval-v13a, one after the other over the whole text, which only shrinks. */
static void replace(ses_buf *b)
{
    static const char *const from[] = { "<skipped>", "-\n", "\n", "&quot;", "&amp;", "&lt;", "&gt;" };
    static const char *const to[] = { "", "", " ", "\"", "&", "<", ">" };
    for (size_t k = 0; k < SES_LEN(from); k++) {
        size_t len = strlen(from[k]), out = 0;
        for (size_t i = 0; i < b->len;) {
            bool hit = b->len - i >= len && !memcmp(b->data + i, from[k], len);
            if (!hit || *to[k]) b->data[out++] = hit ? *to[k] : b->data[i];
            i += hit ? len : 1;
        }
        b->len = out;
    }
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_stop(char c) { return c == '.' || c == ','; }
static bool is_symbol(char c) /* a token of its own */
{
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
           (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

static size_t char_len(const ses_buf *b, size_t i)
{
    uint32_t cp;
    return ses_char_at(b->data + i, b->len - i, &cp);
}

/* The four regular-expression substitutions of 13a, each over the whole text. A match consumes both of its
 * characters: in ",," the second comma is matched again only as the first of a pair. */
static void separate(ses_buf *b, ses_buf *t)
{
    size_t k, m;
    t->len = 0;
    for (size_t i = 0; i < b->len; i++) {
        bool symbol = is_symbol(b->data[i]);
        if (symbol) ses_buf_put(t, ' ');
        ses_buf_put(t, b->data[i]);
        if (symbol) ses_buf_put(t, ' ');
    }
    b->len = 0;
    for (size_t i = 0; i < t->len; i += k) { /* ([^0-9])([.,]) */
        k = char_len(t, i);
        ses_buf_append(b, t->data + i, k);
        if (is_digit(t->data[i]) || i + k >= t->len || !is_stop(t->data[i + k])) continue;
        ses_buf_appendf(b, " %c ", t->data[i + k]);
        k++;
    }
    t->len = 0;
    for (size_t i = 0; i < b->len; i += k) { /* ([.,])([^0-9]) */
        k = char_len(b, i);
        bool hit = is_stop(b->data[i]) && i + 1 < b->len && !is_digit(b->data[i + 1]);
        if (hit) ses_buf_put(t, ' ');
        ses_buf_append(t, b->data + i, k);
        if (!hit) continue;
        m = char_len(b, i + 1);
        ses_buf_put(t, ' ');
        ses_buf_append(t, b->data + i + 1, m);
        k += m;
    }
    b->len = 0;
    for (size_t i = 0; i < t->len; i += k) { /* ([0-9])(-) */
        k = 1;
        ses_buf_put(b, t->data[i]);
        if (!is_digit(t->data[i]) || i + 1 >= t->len || t->data[i + 1] != '-') continue;
        ses_buf_puts(b, " - ");
        k = 2;
    }
}

static size_t trimmed_len(const char *s) /* without trailing white space */
{
    size_t n = strlen(s), end = 0, k;
    for (size_t i = 0; i < n; i += k) {
        uint32_t cp;
        k = ses_char_at(s + i, n - i, &cp);
        if (!ses_char_is_space(cp)) end = i + k;
    }
    return end;
}

/* ---- counting ---- */

typedef struct counter {
    ses_buf *text; /* [texts]: hypothesis, then references; the interner borrows their words */
    ses_word_ids *words;
    ses_ngrams *grams;
    size_t texts;
    ses_buf spare;
    bool plain;
} counter;

static bool read_text(counter *c, size_t k, ses_word_interner *x, const char *s, ses_err *e)
{
    ses_buf *b = &c->text[k];
    b->len = c->words[k].n = 0;
    if (!s) return ses_fail(e, SES_EARG, "a prediction or reference text is NULL");
    size_t n = trimmed_len(s);
    if (c->plain) {
        ses_buf_append(b, s, n);
    } else {
        ses_buf_put(b, ' ');
        ses_buf_append(b, s, n);
        ses_buf_put(b, ' ');
        if (!ses_buf_ok(b, e)) return false;
        replace(b);
        separate(b, &c->spare);
    }
    return ses_buf_ok(b, e) && ses_buf_ok(&c->spare, e) &&
           ses_word_ids_split(&c->words[k], x, b->data, b->len, e);
}

/* Length of a reference: the one nearest to the hypothesis's length; the shorter one of a tie. */
static size_t nearest_len(const counter *c, size_t refs)
{
    size_t want = c->words[0].n, best = c->words[1].n;
    for (size_t k = 1; k <= refs; k++) {
        size_t n = c->words[k].n, d = n > want ? n - want : want - n,
               was = best > want ? best - want : want - best;
        if (d < was || (d == was && n < best)) best = n;
    }
    return best;
}

static bool count(counter *c, const ses_evaluation *v, size_t i, double *x, ses_err *e)
{
    size_t from = v->ref_cu ? v->ref_cu[i] : i, refs = v->ref_cu ? v->ref_cu[i + 1] - from : 1;
    ses_word_interner words = { 0 };
    if (!refs) return ses_fail(e, SES_EARG, "example %zu has no reference", i);
    bool ok = read_text(c, 0, &words, v->pred_texts[i], e);
    for (size_t k = 0; ok && k < refs; k++) ok = read_text(c, k + 1, &words, v->ref_texts[from + k], e);
    for (size_t n = 1; ok && n <= SES_MAX_NGRAM; n++) {
        for (size_t k = 0; ok && k <= refs; k++) ok = ses_ngrams_build(&c->grams[k], &c->words[k], n, e);
        if (!ok) break;
        x[CORRECT + n - 1] = (double)ses_ngrams_count_matches(&c->grams[0], c->grams + 1, refs);
        x[TOTAL + n - 1] = (double)c->grams[0].n;
    }
    if (ok) x[HYP_LEN] = (double)c->words[0].n, x[REF_LEN] = (double)nearest_len(c, refs);
    ses_word_interner_free(&words);
    return ok;
}

static bool measure(const ses_metric *m, ses_example_stats *r, ses_err *e)
{
    const ses_evaluation *v = r->v;
    counter c = { .plain = m->settings != NULL, .texts = 2 };
    for (size_t i = 0; v->ref_cu && i < v->n; i++)
        if (v->ref_cu[i + 1] - v->ref_cu[i] >= c.texts) c.texts = v->ref_cu[i + 1] - v->ref_cu[i] + 1;
    c.text = ses_alloc_array(c.texts, sizeof *c.text, e);
    c.words = c.text ? ses_alloc_array(c.texts, sizeof *c.words, e) : NULL;
    c.grams = c.words ? ses_alloc_array(c.texts, sizeof *c.grams, e) : NULL;
    bool ok = c.grams && ses_example_stats_new(r, WIDTH, WIDTH, e);
    for (size_t i = 0; ok && i < v->n; i++) ok = count(&c, v, i, r->x + i * WIDTH, e);
    for (size_t k = 0; c.grams && k < c.texts; k++) {
        ses_buf_free(&c.text[k]);
        ses_word_ids_free(&c.words[k]);
        ses_ngrams_free(&c.grams[k]);
    }
    ses_buf_free(&c.spare);
    ses_free(c.text);
    ses_free(c.words);
    ses_free(c.grams);
    return ok;
}

static void finish(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    double s[WIDTH], precision[SES_MAX_NGRAM] = { 0 }, logs = 0, smooth = 1, any = 0;
    ses_example_stats_sum(r, p, s);
    for (int k = 0; k < SES_MAX_NGRAM; k++) any += s[CORRECT + k];
    for (int k = 0; k < SES_MAX_NGRAM && any > 0 && s[TOTAL + k] > 0; k++) {
        bool none = !(s[CORRECT + k] > 0); /* exp smoothing: the k-th zero counts as 1 / 2^k */
        if (none) smooth *= 2;
        precision[k] = 100 * (none ? 1 / smooth : s[CORRECT + k]) / s[TOTAL + k];
    }
    for (int k = 0; k < SES_MAX_NGRAM; k++) logs += precision[k] > 0 ? log(precision[k]) : -INFINITY;
    double brevity = s[HYP_LEN] >= s[REF_LEN] ? 1 : s[HYP_LEN] > 0 ? exp(1 - s[REF_LEN] / s[HYP_LEN]) : 0;
    ses_scores_put(out, brevity * exp(logs / SES_MAX_NGRAM), "bleu");
    for (int k = 0; k < SES_MAX_NGRAM; k++) ses_scores_put(out, precision[k], "bleu_precision_%d", k + 1);
    ses_scores_put(out, brevity, "bleu_brevity");
    ses_scores_put(out, s[REF_LEN] > 0 ? s[HYP_LEN] / s[REF_LEN] : 0, "bleu_length_ratio");
}

const ses_metric ses_metric_bleu = { .name = "bleu",
                                     .description = "corpus BLEU with the WMT 13a tokenization",
                                     .kind = SES_METRIC_TEXTS,
                                     .measure = measure,
                                     .finish = finish };
const ses_metric ses_metric_bleu_plain = { .name = "bleu_plain",
                                           .description = "corpus BLEU, split at white space",
                                           .kind = SES_METRIC_TEXTS,
                                           .measure = measure,
                                           .finish = finish,
                                           .settings = "plain" };
