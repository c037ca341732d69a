/* Joint probabilities of t-SNE: a bandwidth per point by Newton's method between bounds, then the symmetric
 * sum. */
#include "base/alloc.h"
#include "kernel/chunking.h"
#include "tsne.h"

#include <math.h>
#include <string.h>

enum { ROWS = 64, MAX_STEPS = 200 };

typedef struct calibration {
    const ses_neighbours *nb;
    double entropy; /* ln(perplexity) */
    double *p;      /* [rows, k] */
} calibration;

/* p = exp(-b (s - s_0)) / sum; returns the entropy and its derivative by b. */
static double entropy_at(const double *square, double b, int64_t k, double *p, double *slope)
{
    double sum = 0, mean = 0, second = 0;
    for (int64_t j = 0; j < k; j++) {
        double s = square[j] - square[0];
        p[j] = exp(-b * s);
        sum += p[j], mean += p[j] * s, second += p[j] * s * s;
    }
    mean /= sum, second /= sum;
    for (int64_t j = 0; j < k; j++) p[j] /= sum;
    *slope = -b * (second - mean * mean);
    return log(sum) + b * mean;
}

static void calibrate_row(const calibration *c, int64_t row, double *square)
{
    int64_t k = c->nb->k;
    double *p = c->p + row * k, low = 0, high = INFINITY, spread = 0, slope;
    for (int64_t j = 0; j < k; j++) {
        double d = c->nb->distance[row * k + j];
        square[j] = d * d;
        spread += square[j] - square[0];
    }
    double b = spread > 0 ? (double)k / spread : 0;
    for (int step = 0; step < MAX_STEPS; step++) {
        double miss = entropy_at(square, b, k, p, &slope) - c->entropy;
        if (spread == 0 || fabs(miss) < 1e-12) break;
        *(miss > 0 ? &low : &high) = b;
        double next = b - miss / slope;
        if (!(next > low && next < high)) next = isinf(high) ? 2 * b : 0.5 * (low + high);
        if (next == b || !isfinite(next)) break;
        b = next;
    }
}

static void calibrate_rows(void *ctx, int64_t chunk, void *scratch)
{
    const calibration *c = ctx;
    ses_range r = ses_chunk(c->nb->rows, ROWS, chunk);
    for (int64_t i = r.begin; i < r.end; i++) calibrate_row(c, i, scratch);
}

/* ---- the symmetric sum ---- */

typedef struct entry {
    int32_t col;
    double value;
} entry;

typedef struct joining {
    const ses_neighbours *nb;
    const double *p;
    int64_t *at;      /* [n + 1] first incoming edge of each point */
    int32_t *from;    /* source of each incoming edge, ascending */
    double *incoming; /* its probability */
    ses_affinities *out;
} joining;

static bool list_incoming(joining *t, ses_err *e)
{
    int64_t n = t->nb->rows, k = t->nb->k;
    t->at = ses_alloc_array((size_t)n + 2, sizeof *t->at, e);
    t->incoming = t->at ? ses_alloc_array((size_t)(n * k), sizeof *t->incoming, e) : NULL;
    t->from = t->incoming ? ses_alloc_array((size_t)(n * k), sizeof *t->from, e) : NULL;
    if (!t->from) return false;
    for (int64_t i = 0; i < n * k; i++) t->at[t->nb->index[i] + 2]++;
    for (int64_t i = 0; i < n; i++) t->at[i + 2] += t->at[i + 1];
    for (int64_t i = 0; i < n * k; i++) { /* at[j + 1] moves from the start of j to its end */
        int64_t to = t->at[t->nb->index[i] + 1]++;
        t->from[to] = (int32_t)(i / k), t->incoming[to] = t->p[i];
    }
    return true;
}

static void sort_entries(entry *a, int64_t n) /* by column, unique: Shell's method */
{
    for (int64_t gap = n / 2; gap > 0; gap /= 2)
        for (int64_t i = gap; i < n; i++) {
            entry v = a[i];
            int64_t j = i;
            for (; j >= gap && a[j - gap].col > v.col; j -= gap) a[j] = a[j - gap];
            a[j] = v;
        }
}

/* Merges outgoing and incoming edges of a point; col NULL: counts them only. */
static int64_t join_row(const joining *t, int64_t i, entry *out, int32_t *col, float *value)
{
    int64_t k = t->nb->k, in = t->at[i], stop = t->at[i + 1], count = 0;
    double scale = 0.5 / (double)t->nb->rows;
    for (int64_t j = 0; j < k; j++) out[j] = (entry){ t->nb->index[i * k + j], t->p[i * k + j] };
    sort_entries(out, k);
    for (int64_t j = 0; j < k || in < stop; count++) {
        int32_t a = j < k ? out[j].col : INT32_MAX, b = in < stop ? t->from[in] : INT32_MAX;
        double v = (a <= b ? out[j].value : 0) + (b <= a ? t->incoming[in] : 0);
        if (col) col[count] = a < b ? a : b, value[count] = (float)(v * scale);
        j += a <= b, in += b <= a;
    }
    return count;
}

static void count_rows(void *ctx, int64_t chunk, void *scratch)
{
    const joining *t = ctx;
    ses_range r = ses_chunk(t->nb->rows, ROWS, chunk);
    for (int64_t i = r.begin; i < r.end; i++) t->out->row[i + 1] = join_row(t, i, scratch, NULL, NULL);
}

static void fill_rows(void *ctx, int64_t chunk, void *scratch)
{
    const joining *t = ctx;
    ses_range r = ses_chunk(t->nb->rows, ROWS, chunk);
    for (int64_t i = r.begin; i < r.end; i++)
        join_row(t, i, scratch, t->out->col + t->out->row[i], t->out->value + t->out->row[i]);
}

static bool join(joining *t, const ses_math *m, ses_err *e)
{
    int64_t n = t->nb->rows, chunks = ses_chunks(n, ROWS);
    if (!list_incoming(t, e)) return false;
    ses_parallel_for(m->exec.pool, chunks, count_rows, t);
    for (int64_t i = 0; i < n; i++) t->out->row[i + 1] += t->out->row[i];
    size_t count = (size_t)t->out->row[n];
    t->out->col = ses_alloc_huge(count, sizeof *t->out->col, e);
    t->out->value = t->out->col ? ses_alloc_huge(count, sizeof *t->out->value, e) : NULL;
    if (!t->out->value) return false;
    ses_parallel_for(m->exec.pool, chunks, fill_rows, t);
    return true;
}

bool ses_affinities_make(ses_affinities *a, const ses_math *m, const ses_neighbours *nb, double perplexity,
                         ses_err *e)
{
    *a = (ses_affinities){ .n = nb->rows };
    if (!(perplexity >= 1) || perplexity > (double)nb->k || nb->k > SES_SCRATCH_BYTES / (int)sizeof(entry))
        return ses_fail(e, SES_EARG, "perplexity %g with %lld neighbours; expected from 1 to %lld",
                        perplexity, (long long)nb->k, (long long)nb->k);
    double *p = ses_alloc_array((size_t)(nb->rows * nb->k), sizeof *p, e);
    a->row = p ? ses_alloc_array((size_t)nb->rows + 1, sizeof *a->row, e) : NULL;
    joining t = { .nb = nb, .p = p, .out = a };
    bool ok = a->row != NULL;
    if (ok) {
        calibration c = { nb, log(perplexity), p };
        ses_parallel_for(m->exec.pool, ses_chunks(nb->rows, ROWS), calibrate_rows, &c);
        ok = join(&t, m, e);
    }
    ses_free(t.at);
    ses_free(t.from);
    ses_free(t.incoming);
    ses_free(p);
    if (!ok) ses_affinities_free(a);
    return ok;
}

void ses_affinities_free(ses_affinities *a)
{
    ses_free(a->row);
    ses_free(a->col);
    ses_free(a->value);
    *a = (ses_affinities){ 0 };
}
