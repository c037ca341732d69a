/* ROUGE-1, -2, -L and -Lsum: F1 of n-grams and of the longest common subsequence (LCS), as rouge_score
 * computes them; means over examples, from 0 to 1. Lsum treats the lines of a text as sentences and takes the
 * union LCS. Words are runs of a-z and 0-9 in the lower-cased text; "rouge_stem" compares the stems of words
 * longer than three letters. The best of several references counts, separately for each score. */
#include "base/alloc.h"
#include "metric_impl.h"
#include "word_ids.h"

#include <string.h>

enum { R1, R2, RL, RLSUM, WIDTH };

typedef struct text {
    ses_buf lower;
    ses_word_ids all;
    size_t *line; /* [lines + 1] offsets into `all` */
    size_t lines, cap;
} text;

typedef struct work {
    text ref, pred;
    ses_ngrams gg, pg;
    int32_t *table;   /* LCS lengths */
    int32_t *left[2]; /* per word: occurrences not counted yet, in ref and in pred */
    int32_t *common;  /* per word of ref: 1 if it is in the union LCS */
    size_t n_table, n_left[2], n_common;
    bool stem;
} work;

static bool end_line(text *t, ses_err *e)
{
    if (!ses_array_reserve(&t->line, &t->cap, t->lines + 1, sizeof *t->line, e)) return false;
    t->line[t->lines++] = t->all.n;
    return true;
}

static bool is_word_char(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/* Splits s into words and lines. The words point into t->lower, where stems replace them. Empty lines are
 * skipped. */
static bool read_text(text *t, ses_word_interner *x, const char *s, bool stem, ses_err *e)
{
    t->lower.len = t->all.n = t->lines = 0;
    if (!s) return ses_fail(e, SES_EARG, "a prediction or reference text is NULL");
    if (!ses_lower_append(&t->lower, s, strlen(s)) || !ses_buf_put(&t->lower, '\n'))
        return ses_buf_ok(&t->lower, e);
    char *p = t->lower.data;
    size_t begin = 0, line = 0;
    if (!end_line(t, e)) return false;
    for (size_t i = 0; i < t->lower.len; i++) {
        if (is_word_char(p[i])) continue;
        size_t n = i - begin;
        if (stem && n > 3) n = ses_porter_stem(p + begin, n);
        if (n && !ses_word_ids_add(&t->all, x, p + begin, n, e)) return false;
        begin = i + 1;
        if (p[i] != '\n') continue;
        if (i > line && !end_line(t, e)) return false;
        line = i + 1;
    }
    t->lines--; /* line[0] is the start offset */
    return true;
}

/* table[i * (m + 1) + j]: LCS length of the first i words of a and the first j of b. */
static bool fill_table(work *w, const int32_t *a, size_t n, const int32_t *b, size_t m, ses_err *e)
{
    size_t rows, cells;
    if (!ses_add_size(n, 1, &rows) || !ses_mul_size(rows, m + 1, &cells) ||
        !ses_array_reserve(&w->table, &w->n_table, cells, sizeof *w->table, e))
        return ses_fail(e, SES_ENOMEM, "texts of %zu and %zu words", n, m);
    for (size_t j = 0; j <= m; j++) w->table[j] = 0;
    for (size_t i = 1; i <= n; i++) {
        int32_t *up = w->table + (i - 1) * (m + 1), *row = up + m + 1;
        row[0] = 0;
        for (size_t j = 1; j <= m; j++)
            row[j] = a[i - 1] == b[j - 1] ? up[j - 1] + 1 : up[j] > row[j - 1] ? up[j] : row[j - 1];
    }
    return true;
}

/* The LCS length alone, with two rows of the table. */
static bool common_length(work *w, const ses_word_ids *a, const ses_word_ids *b, size_t *out, ses_err *e)
{
    size_t width = b->n + 1, cells;
    if (!ses_mul_size(2, width, &cells) ||
        !ses_array_reserve(&w->table, &w->n_table, cells, sizeof *w->table, e))
        return false;
    memset(w->table, 0, cells * sizeof *w->table);
    for (size_t i = 0; i < a->n; i++) {
        const int32_t *up = w->table + i % 2 * width;
        int32_t *row = w->table + (i + 1) % 2 * width;
        for (size_t j = 1; j < width; j++)
            row[j] = a->id[i] == b->id[j - 1] ? up[j - 1] + 1 : up[j] > row[j - 1] ? up[j] : row[j - 1];
    }
    *out = (size_t)w->table[a->n % 2 * width + b->n];
    return true;
}

/* Marks the words of a that are in one LCS, tracing the table back from its end. */
static void mark(const work *w, const int32_t *a, size_t n, const int32_t *b, size_t m, int32_t *common)
{
    size_t width = m + 1;
    while (n && m) {
        if (a[n - 1] == b[m - 1])
            common[--n] = 1, m--;
        else if (w->table[n * width + m - 1] > w->table[(n - 1) * width + m])
            m--;
        else
            n--;
    }
}

static bool unite(work *w, const text *g, const text *p, size_t line, ses_err *e)
{
    const int32_t *a = g->all.id + g->line[line];
    size_t n = g->line[line + 1] - g->line[line];
    for (size_t k = 0; k < p->lines; k++) {
        const int32_t *b = p->all.id + p->line[k];
        size_t m = p->line[k + 1] - p->line[k];
        if (!fill_table(w, a, n, b, m, e)) return false;
        mark(w, a, n, b, m, w->common + g->line[line]);
    }
    return true;
}

static bool summary(work *w, size_t words, double *f, ses_err *e)
{
    const text *g = &w->ref, *p = &w->pred;
    size_t hits = 0;
    *f = 0;
    if (!g->all.n || !p->all.n) return true;
    if (!ses_array_reserve(&w->left[0], &w->n_left[0], words, sizeof *w->left[0], e) ||
        !ses_array_reserve(&w->left[1], &w->n_left[1], words, sizeof *w->left[1], e) ||
        !ses_array_reserve(&w->common, &w->n_common, g->all.n, sizeof *w->common, e))
        return false;
    memset(w->common, 0, g->all.n * sizeof *w->common);
    memset(w->left[0], 0, words * sizeof *w->left[0]);
    memset(w->left[1], 0, words * sizeof *w->left[1]);
    for (size_t i = 0; i < g->all.n; i++) w->left[0][g->all.id[i]]++;
    for (size_t i = 0; i < p->all.n; i++) w->left[1][p->all.id[i]]++;
    for (size_t k = 0; k < g->lines; k++)
        if (!unite(w, g, p, k, e)) return false;
    for (size_t i = 0; i < g->all.n; i++) {
        int32_t id = g->all.id[i];
        if (!w->common[i] || !w->left[0][id] || !w->left[1][id]) continue;
        hits++, w->left[0][id]--, w->left[1][id]--;
    }
    *f = ses_prf_compute((double)hits, (double)p->all.n, (double)g->all.n).f;
    return true;
}

static bool score(work *w, const char *ref, const char *pred, double *x, ses_err *e)
{
    ses_word_interner words = { 0 };
    double f[WIDTH] = { 0 };
    const ses_word_ids *g = &w->ref.all, *p = &w->pred.all;
    bool ok = read_text(&w->ref, &words, ref, w->stem, e) && read_text(&w->pred, &words, pred, w->stem, e);
    for (size_t n = 1; ok && n <= 2; n++) {
        ok = ses_ngrams_build(&w->gg, g, n, e) && ses_ngrams_build(&w->pg, p, n, e);
        if (ok)
            f[R1 + n - 1] = ses_prf_compute((double)ses_ngrams_count_matches(&w->gg, &w->pg, 1),
                                            (double)w->pg.n, (double)w->gg.n)
                                .f;
    }
    size_t common = 0;
    ok = ok && common_length(w, g, p, &common, e);
    if (ok) f[RL] = ses_prf_compute((double)common, (double)p->n, (double)g->n).f;
    ok = ok && summary(w, words.map.count, &f[RLSUM], e);
    for (int k = 0; ok && k < WIDTH; k++)
        if (f[k] > x[k]) x[k] = f[k];
    ses_word_interner_free(&words);
    return ok;
}

static void text_free(text *t)
{
    ses_buf_free(&t->lower);
    ses_word_ids_free(&t->all);
    ses_free(t->line);
}

static bool measure(const ses_metric *m, ses_example_stats *r, ses_err *e)
{
    const ses_evaluation *v = r->v;
    work w = { .stem = m->settings != NULL };
    bool ok = ses_example_stats_new(r, WIDTH, 0, e);
    for (size_t i = 0; ok && i < v->n; i++) {
        size_t from = v->ref_cu ? v->ref_cu[i] : i, to = v->ref_cu ? v->ref_cu[i + 1] : i + 1;
        if (from == to) ok = ses_fail(e, SES_EARG, "example %zu has no reference", i);
        for (size_t k = from; ok && k < to; k++)
            ok = score(&w, v->ref_texts[k], v->pred_texts[i], r->x + i * WIDTH, e);
    }
    text_free(&w.ref);
    text_free(&w.pred);
    ses_ngrams_free(&w.gg);
    ses_ngrams_free(&w.pg);
    ses_free(w.table);
    ses_free(w.left[0]);
    ses_free(w.left[1]);
    ses_free(w.common);
    return ok;
}

static void finish(const ses_example_stats *r, const ses_resample *p, ses_scores *out)
{
    static const char *const name[WIDTH] = { "rouge1", "rouge2", "rougeL", "rougeLsum" };
    double s[WIDTH];
    ses_example_stats_sum(r, p, s);
    for (int k = 0; k < WIDTH; k++) ses_scores_put(out, s[k] / (double)p->n, "%s", name[k]);
}

const ses_metric ses_metric_rouge = { .name = "rouge",
                                      .description = "ROUGE-1, -2, -L, -Lsum: F1, no stemming",
                                      .kind = SES_METRIC_TEXTS,
                                      .measure = measure,
                                      .finish = finish };
const ses_metric ses_metric_rouge_stem = { .name = "rouge_stem",
                                           .description = "ROUGE-1, -2, -L, -Lsum: F1, with Porter stemming",
                                           .kind = SES_METRIC_TEXTS,
                                           .measure = measure,
                                           .finish = finish,
                                           .settings = "stem" };
