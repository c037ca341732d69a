/* Exact match and word F1 as the evaluation scripts of SQuAD 1.1 and 2.0 compute them, in percent, each the
 * best over the accepted answers. Normalization: lower case, no ASCII punctuation, no articles, single
 * spaces. */
#include "base/alloc.h"
#include "metric_impl.h"
#include "word_ids.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct answer {
    ses_buf lower, text; /* text: normalized */
} answer;

static bool is_punctuation(uint32_t cp)
{
    return cp > ' ' && cp < 0x7F && !(cp >= '0' && cp <= '9') && !((cp | 32) >= 'a' && (cp | 32) <= 'z');
}

static bool is_article(const char *s, size_t n)
{
    return (n == 1 && *s == 'a') || (n == 2 && !memcmp(s, "an", 2)) || (n == 3 && !memcmp(s, "the", 3));
}

/* Blanks articles: whole runs of word characters. */
static void drop_articles(ses_buf *b)
{
    size_t begin = 0, k;
    for (size_t i = 0; i <= b->len; i += k) {
        uint32_t cp = ' ';
        k = i < b->len ? ses_char_at(b->data + i, b->len - i, &cp) : 1;
        if (i < b->len && ses_char_is_word(cp)) continue;
        if (is_article(b->data + begin, i - begin)) memset(b->data + begin, ' ', i - begin);
        begin = i + k;
    }
}

static bool normalize(answer *a, const char *s, ses_err *e)
{
    size_t kept = 0, k;
    a->lower.len = a->text.len = 0;
    if (!ses_buf_reserve(&a->lower, 0) || !ses_buf_reserve(&a->text, 0) ||
        !ses_lower_append(&a->lower, s, strlen(s)))
        return ses_fail(e, SES_ENOMEM, "out of memory");
    for (size_t i = 0; i < a->lower.len; i++)
        if (!is_punctuation((unsigned char)a->lower.data[i])) a->lower.data[kept++] = a->lower.data[i];
    a->lower.len = kept;
    drop_articles(&a->lower);
    bool space = false;
    for (size_t i = 0; i < kept; i += k) {
        uint32_t cp;
        k = ses_char_at(a->lower.data + i, kept - i, &cp);
        if (ses_char_is_space(cp)) {
            space = a->text.len > 0;
            continue;
        }
        if (space) ses_buf_put(&a->text, ' ');
        ses_buf_append(&a->text, a->lower.data + i, k);
        space = false;
    }
    return ses_buf_ok(&a->text, e);
}

typedef struct pair {
    answer ref, pred;
    ses_word_ids g, p;
    ses_ngrams gg, pg;
} pair;

/* empty: SQuAD 2.0's rule if one side has no words: F1 is 1 if both have none, else 0 (1.1: always 0). */
static bool compare(pair *a, bool empty, double *exact, double *f1, ses_err *e)
{
    ses_word_interner x = { 0 };
    a->g.n = a->p.n = 0;
    *exact =
        a->ref.text.len == a->pred.text.len && !memcmp(a->ref.text.data, a->pred.text.data, a->ref.text.len);
    bool ok = ses_word_ids_split(&a->g, &x, a->ref.text.data, a->ref.text.len, e) &&
              ses_word_ids_split(&a->p, &x, a->pred.text.data, a->pred.text.len, e) &&
              ses_ngrams_build(&a->gg, &a->g, 1, e) && ses_ngrams_build(&a->pg, &a->p, 1, e);
    ses_word_interner_free(&x);
    if (!ok) return false;
    double same = (double)ses_ngrams_count_matches(&a->pg, &a->gg, 1);
    *f1 = ses_prf_compute(same, (double)a->p.n, (double)a->g.n).f;
    if (empty && (!a->g.n || !a->p.n)) *f1 = a->g.n == a->p.n;
    return true;
}

enum { EXACT, F1, HAS_ANSWER, NO_ANSWER_PROB, WIDTH };

/* The best scores over the accepted answers of example i. two: SQuAD 2.0, where empty answers are ignored and
 * an example without answers accepts only the empty text. */
static bool best(pair *a, const ses_evaluation *v, size_t i, bool two, double *x, ses_err *e)
{
    size_t from = v->ref_cu ? v->ref_cu[i] : i, to = v->ref_cu ? v->ref_cu[i + 1] : i + 1;
    double exact, f1;
    bool any = false;
    if (!normalize(&a->pred, v->pred_texts[i] ? v->pred_texts[i] : "", e)) return false;
    for (size_t k = from; k < to + (two ? 1 : 0); k++) {
        if (k == to && any) break;
        if (!normalize(&a->ref, k < to ? v->ref_texts[k] : "", e)) return false;
        if (two && k < to && !a->ref.text.len) continue;
        if (!compare(a, two, &exact, &f1, e)) return false;
        x[EXACT] = exact > x[EXACT] ? exact : x[EXACT];
        x[F1] = f1 > x[F1] ? f1 : x[F1];
        any = k < to;
    }
    for (size_t k = from; k < to; k++) x[HAS_ANSWER] = x[HAS_ANSWER] > 0 || *v->ref_texts[k];
    x[NO_ANSWER_PROB] = v->no_answer ? v->no_answer[i] : 0;
    return to > from || two || ses_fail(e, SES_EARG, "example %zu has no accepted answer: use squad_v2", i);
}

static void pair_free(pair *a)
{
    ses_buf_free(&a->ref.lower);
    ses_buf_free(&a->ref.text);
    ses_buf_free(&a->pred.lower);
    ses_buf_free(&a->pred.text);
    ses_word_ids_free(&a->g);
    ses_word_ids_free(&a->p);
    ses_ngrams_free(&a->gg);
    ses_ngrams_free(&a->pg);
}

static bool measure(const ses_metric *m, ses_example_stats *r, ses_err *e)
{
    pair a = { 0 };
    bool ok = ses_example_stats_new(r, WIDTH, 5 * r->n, e);
    for (size_t i = 0; ok && i < r->n; i++) ok = best(&a, r->v, i, m->settings != NULL, r->x + i * WIDTH, e);
    pair_free(&a);
    return ok;
}

static void finish(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    double sum[WIDTH];
    ses_example_stats_sum(r, p, sum);
    ses_scores_put(out, 100 * sum[EXACT] / (double)p->n, "exact_match");
    ses_scores_put(out, 100 * sum[F1] / (double)p->n, "f1");
}

typedef struct candidate {
    double p, gain[2], index; /* p: no-answer probability */
} candidate;

static int ascending(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->p != y->p) return x->p < y->p ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index); /* stable */
}

/* The best threshold on the no-answer probability, and the score at it. Starts with no question answered,
 * then answers them in the order of increasing no-answer probability. */
static void put_best(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    static const char *const name[2] = { "exact", "f1" };
    candidate *s = (candidate *)(void *)r->work;
    double none = 0;
    for (size_t i = 0; i < p->n; i++) {
        const double *x = ses_example_stats_at(r, p, i);
        bool answered = r->v->pred_texts[p->at ? p->at[i] : i] && *r->v->pred_texts[p->at ? p->at[i] : i];
        none += !x[HAS_ANSWER];
        s[i] = (candidate){ x[NO_ANSWER_PROB], { 0 }, (double)i };
        for (int k = 0; k < 2; k++) s[i].gain[k] = x[HAS_ANSWER] > 0 ? x[k] : answered ? -1 : 0;
    }
    qsort(s, p->n, sizeof *s, ascending);
    for (int k = 0; k < 2; k++) {
        double score = none, top = none, threshold = 0;
        for (size_t i = 0; i < p->n; i++) {
            score += s[i].gain[k];
            if (score > top) top = score, threshold = s[i].p;
        }
        ses_scores_put(out, 100 * top / (double)p->n, "best_%s", name[k]);
        ses_scores_put(out, threshold, "best_%s_thresh", name[k]);
    }
}

static void finish_two(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    double n[2] = { 0 }, exact[2] = { 0 }, f1[2] = { 0 };
    for (size_t i = 0; i < p->n; i++) {
        const double *x = ses_example_stats_at(r, p, i);
        int has = x[HAS_ANSWER] > 0;
        n[has]++, exact[has] += x[EXACT], f1[has] += x[F1];
    }
    double total = (double)p->n;
    ses_scores_put(out, 100 * (exact[0] + exact[1]) / total, "exact");
    ses_scores_put(out, 100 * (f1[0] + f1[1]) / total, "f1");
    ses_scores_put(out, total, "total");
    for (int has = 1; has >= 0; has--) {
        const char *name = has ? "HasAns" : "NoAns";
        if (!(n[has] > 0)) continue;
        ses_scores_put(out, 100 * exact[has] / n[has], "%s_exact", name);
        ses_scores_put(out, 100 * f1[has] / n[has], "%s_f1", name);
        ses_scores_put(out, n[has], "%s_total", name);
    }
    if (r->v->no_answer) put_best(r, p, out);
}

const ses_metric ses_metric_squad = { .name = "squad",
                                      .description = "exact match and F1 as in SQuAD 1.1",
                                      .kind = SES_METRIC_TEXTS,
                                      .measure = measure,
                                      .finish = finish };
const ses_metric ses_metric_squad_v2 = {
    .name = "squad_v2",
    .description = "exact match and F1 as in SQuAD 2.0, with unanswerable questions",
    .kind = SES_METRIC_TEXTS,
    .measure = measure,
    .finish = finish_two,
    .settings = "2.0"
};
