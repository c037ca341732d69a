/* Masking: choice of the tokens and of their replacements. */
#include "noise.h"

/* Whether a segment or document starts at token i. */
static bool breaks(const ses_passage *p, int64_t i)
{
    return i == 0 || i == p->split || (p->starts[i] & SES_STARTS_DOCUMENT);
}

bool ses_word_spans_find(ses_word_spans *w, const ses_passage *p, const uint8_t *special, bool tokens,
                         ses_err *e)
{
    const uint8_t begins = SES_STARTS_WORD | SES_STARTS_SENTENCE | SES_STARTS_DOCUMENT;
    int64_t last = -1; /* end of the last word */
    w->begin.n = w->end.n = w->joined.n = 0;
    w->tokens = 0;
    for (int64_t i = 0, end; i < p->n; i = end) {
        bool has_special = special[p->id[i]];
        for (end = i + 1; !tokens && end < p->n && !(p->starts[end] & begins) && !breaks(p, end); end++)
            has_special |= special[p->id[end]];
        if (has_special) continue;
        if (!ses_ints_push(&w->begin, (int32_t)i, e) || !ses_ints_push(&w->end, (int32_t)end, e) ||
            !ses_ints_push(&w->joined, last == i && !breaks(p, i), e))
            return false;
        w->tokens += end - i;
        last = end;
    }
    return true;
}

void ses_word_spans_free(ses_word_spans *w)
{
    ses_ints_free(&w->begin);
    ses_ints_free(&w->end);
    ses_ints_free(&w->joined);
    ses_ints_free(&w->order);
}

typedef struct choice {
    int64_t left;  /* tokens still to be chosen */
    int32_t units; /* units chosen */
} choice;

/* Chooses words [k, k + words). If they have more tokens than are left, chooses them with the probability
 * that keeps the expectation. */
static void choose_words(choice *c, const ses_word_spans *w, int64_t k, int64_t words, ses_rng_stream *d,
                         int32_t *chosen)
{
    int64_t begin = w->begin.p[k], end = w->end.p[k + words - 1], n = end - begin;
    bool fits = n <= c->left;
    if (fits || ses_draw_unit(d) * (double)n < (double)c->left) {
        c->units++;
        for (int64_t i = begin; i < end; i++) chosen[i] = c->units;
    }
    c->left = fits ? c->left - n : 0;
}

/* Chooses single words in random order. */
static bool choose_single(choice *c, ses_word_spans *w, ses_rng_stream *d, int32_t *chosen, ses_err *e)
{
    int64_t n = (int64_t)w->begin.n;
    w->order.n = 0;
    if (!ses_ints_append(&w->order, NULL, n, e)) return false;
    for (int64_t k = 0; k < n; k++) w->order.p[k] = (int32_t)k;
    for (int64_t k = 0; k < n && c->left > 0; k++) { /* partial Fisher-Yates shuffle */
        int64_t j = k + ses_draw_below(d, n - k);
        int32_t word = w->order.p[j];
        w->order.p[j] = w->order.p[k];
        choose_words(c, w, word, 1, d, chosen);
    }
    return true;
}

/* Whether words [k, k + words) are contiguous and not chosen; with `gap`, their neighbors must not be chosen
 * either. */
static bool is_free(const ses_word_spans *w, const ses_passage *p, int64_t k, int64_t words, bool gap,
                    const int32_t *chosen)
{
    if (k + words > (int64_t)w->begin.n) return false;
    int64_t begin = w->begin.p[k], end = w->end.p[k + words - 1];
    for (int64_t i = 0; i < words; i++)
        if (chosen[w->begin.p[k + i]] || (i && !w->joined.p[k + i])) return false;
    if (gap && begin > 0 && chosen[begin - 1]) return false;
    return !gap || end == p->n || !chosen[end];
}

/* Draws a length, then a position; after ATTEMPTS occupied positions the length is drawn again. If spans with
 * gaps do not fit, spans may touch. */
static void choose_runs(const ses_masking *m, choice *c, const ses_word_spans *w, const ses_passage *p,
                        ses_rng_stream *d, int32_t *chosen)
{
    enum { ATTEMPTS = 8 };
    bool gap = m->unit == SES_MASK_SPANS;
    int64_t n = (int64_t)w->begin.n, misses = 0;
    while (c->left > 0 && misses < 4 * n + 64) {
        int64_t words =
            gap ? ses_draw_geometric(d, m->geometric_p, m->max_words) : ses_draw_harmonic(d, m->max_words);
        bool found = false;
        for (int i = 0; i < ATTEMPTS && !found; i++) {
            int64_t k = ses_draw_below(d, n);
            found = is_free(w, p, k, words, gap && misses < 2 * n + 32, chosen);
            if (found) choose_words(c, w, k, words, d, chosen);
        }
        if (!found) misses++;
    }
}

bool ses_mask_choose(const ses_masking *m, const ses_passage *p, const uint8_t *special, ses_rng_stream *d,
                     ses_word_spans *w, int32_t *chosen, ses_err *e)
{
    for (int64_t i = 0; i < p->n; i++) chosen[i] = 0;
    if (!ses_word_spans_find(w, p, special, m->unit == SES_MASK_TOKENS, e)) return false;
    choice c = { .left = ses_draw_round(d, m->rate * (double)w->tokens) };
    if (m->unit == SES_MASK_TOKENS || m->unit == SES_MASK_WORDS) return choose_single(&c, w, d, chosen, e);
    if (w->begin.n) choose_runs(m, &c, w, p, d, chosen);
    return true;
}

void ses_mask_apply(const ses_masking *m, const ses_passage *p, const ses_special_tokens *x,
                    const int32_t *chosen, ses_rng_stream *d, int32_t *out)
{
    double u = 0;
    for (int64_t i = 0; i < p->n; i++) {
        out[i] = p->id[i];
        if (!chosen[i]) continue;
        bool same_span = m->unit == SES_MASK_SPANS && i && chosen[i] == chosen[i - 1];
        if (!same_span) u = ses_draw_unit(d);
        if (u < m->mask_rate)
            out[i] = x->mask;
        else if (u < m->mask_rate + m->random_rate)
            out[i] = x->ordinary[ses_draw_below(d, x->n_ordinary)];
    }
}
