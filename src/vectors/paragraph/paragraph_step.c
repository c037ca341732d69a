/* Steps of paragraph vectors: a document is subsampled, then each of its words is predicted. */
#include "paragraph.h"

#include "base/alloc.h"

#include <string.h>

/* Random numbers of a document: SplitMix64, whose start is a function of seed, epoch and document. */
static uint32_t draw(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((x ^ x >> 31) >> 32);
}

bool ses_pv_worker_init(ses_pv_worker *w, const ses_pv_model *m, const ses_kernels *k, bool frozen,
                        ses_err *e)
{
    int64_t words = (int64_t)m->vocab.n;
    *w = (ses_pv_worker){ .m = m, .k = k, .frozen = frozen };
    if (m->word && !ses_row_copies_init(&w->word, m->word, words + 1, m->stride, e)) return false;
    return ses_row_copies_init(&w->out, m->out, words, m->out_cols, e) &&
           (w->joined = ses_alloc_array(2 * (size_t)m->out_cols, sizeof *w->joined, e)) &&
           (w->scratch = ses_alloc_array(2 * (size_t)m->stride, sizeof *w->scratch, e));
}

void ses_pv_worker_free(ses_pv_worker *w)
{
    ses_row_copies_free(&w->word);
    ses_row_copies_free(&w->out);
    ses_free(w->kept);
    ses_free(w->joined);
    ses_free(w->scratch);
    *w = (ses_pv_worker){ 0 };
}

/* The words that subsampling keeps, in w->kept; their number, -1: out of memory. */
static int64_t subsample(ses_pv_worker *w, const int32_t *id, int64_t n, uint64_t *random)
{
    int64_t kept = 0;
    if (!ses_array_reserve(&w->kept, &w->kept_capacity, (size_t)n, sizeof *w->kept, &w->err)) return -1;
    for (int64_t i = 0; i < n; i++) {
        uint32_t limit = w->m->keep[id[i]];
        if (limit == UINT32_MAX || draw(random) <= limit) w->kept[kept++] = id[i];
    }
    return kept;
}

/* The predicted word and negative samples, all different. Returns their number. */
static int64_t choose_outputs(const ses_pv_worker *w, int32_t word, uint64_t *random, int32_t *out)
{
    size_t words = w->m->vocab.n;
    int64_t m = 0;
    out[m++] = word;
    for (int64_t k = 0; k < w->m->o.negative; k++) {
        int32_t other = ses_sampling_draw(w->m->noise, words, draw(random));
        bool known = false;
        for (int64_t i = 0; i < m; i++) known |= out[i] == other;
        if (!known) out[m++] = other;
    }
    return m;
}

/* Concatenation: document, then the words at fixed distances; row `words` of the matrix represents positions
 * outside of the document. */
static double step_joined(ses_pv_worker *w, ses_word_step *s, float **x)
{
    int64_t stride = w->m->stride, cols = w->m->out_cols;
    float *joined = w->joined, *old = joined + cols;
    for (int64_t i = 0; i < s->n; i++) memcpy(joined + i * stride, x[i], (size_t)stride * sizeof *joined);
    memcpy(old, joined, (size_t)cols * sizeof *old);
    int64_t n = s->n;
    s->x = &w->joined, s->n = 1, s->cols = cols;
    double loss = w->k->word_step(s);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < stride; c++) x[i][c] += joined[i * stride + c] - old[i * stride + c];
    return loss;
}

/* Inputs of the word at position i. Returns their number. */
static int64_t choose_inputs(ses_pv_worker *w, int64_t n, int64_t i, float *doc, uint64_t *random, float **x)
{
    const ses_pv_settings *o = &w->m->o;
    int64_t rows = 0, window = o->window;
    x[rows++] = doc;
    if (o->method == SES_PV_DBOW) return rows;
    if (o->method != SES_PV_DM_CONCAT)
        window = 1 + (int64_t)((uint64_t)draw(random) * (uint64_t)window >> 32);
    for (int64_t k = i - window; k <= i + window; k++) {
        bool outside = k < 0 || k >= n;
        if (k == i || (outside && o->method != SES_PV_DM_CONCAT)) continue;
        x[rows++] = ses_row_copy(&w->word, outside ? (int32_t)w->m->vocab.n : w->kept[k]);
    }
    return rows;
}

bool ses_pv_train_document(ses_pv_worker *w, const int32_t *id, int64_t n, float *doc, float rate,
                           uint64_t random)
{
    float *x[2 * SES_PV_MAX_WINDOW + 1], *y[SES_PV_MAX_NEGATIVE + 1], label[SES_PV_MAX_NEGATIVE + 1] = { 1 };
    int32_t out[SES_PV_MAX_NEGATIVE + 1];
    const ses_pv_settings *o = &w->m->o;
    n = subsample(w, id, n, &random);
    for (int64_t i = 0; i < n; i++) {
        if (!ses_row_copies_reserve(&w->out, (size_t)o->negative + 1, &w->err) ||
            (w->m->word && !ses_row_copies_reserve(&w->word, 2 * (size_t)o->window + 1, &w->err)))
            return false;
        ses_word_step s = { x, y, label, .cols = w->m->stride, .rate = rate };
        s.n = choose_inputs(w, n, i, doc, &random, x);
        s.m = choose_outputs(w, w->kept[i], &random, out);
        for (int64_t k = 0; k < s.m; k++) y[k] = ses_row_copy(&w->out, out[k]);
        w->loss += o->method == SES_PV_DM_MEAN     ? w->k->bag_step(&s, w->scratch)
                   : o->method == SES_PV_DM_CONCAT ? step_joined(w, &s, x)
                                                   : w->k->word_step(&s);
        w->steps++;
        if (!w->frozen) continue;
        ses_row_copies_drop(&w->out);
        if (w->m->word) ses_row_copies_drop(&w->word);
    }
    return n >= 0;
}
