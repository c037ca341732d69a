/* Statistics of the tensors of a checkpoint, computed in parallel. */
#include "tensor_stats.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/thread_pool.h"
#include "sesame/unstable/tensor.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { CHUNK = 1 << 18, PIECE = 1024 }; /* elements per task; elements converted at once */

typedef struct chunk {
    const ses_tensor_entry *tensor;
    int64_t begin, end;     /* elements */
    ses_tensor_stats stats; /* norm: sum of squares */
} chunk;

static ses_tensor_stats empty_stats(void)
{
    return (ses_tensor_stats){ .min = INFINITY, .max = -INFINITY, .first_bad = -1 };
}

static void count_nonfinite(ses_tensor_stats *s, double x, int64_t at)
{
    if (isnan(x))
        s->nan++;
    else
        s->infinite++;
    if (s->first_bad < 0) s->first_bad = at;
}

/* Four accumulators hide the latency of additions. */
static void add_values(ses_tensor_stats *s, const double *x, int64_t n, int64_t at)
{
    double lo[4], hi[4], sum[4] = { 0 };
    for (int j = 0; j < 4; j++) lo[j] = INFINITY, hi[j] = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        int j = (int)(i & 3);
        if (!isfinite(x[i])) {
            count_nonfinite(s, x[i], at + i);
            continue;
        }
        lo[j] = x[i] < lo[j] ? x[i] : lo[j];
        hi[j] = x[i] > hi[j] ? x[i] : hi[j];
        sum[j] += x[i] * x[i];
    }
    for (int j = 0; j < 4; j++) {
        if (lo[j] < s->min) s->min = lo[j];
        if (hi[j] > s->max) s->max = hi[j];
    }
    s->norm += (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void read_chunk(void *ctx, int64_t index, void *scratch)
{
    (void)scratch;
    chunk *c = (chunk *)ctx + index;
    size_t size = ses_dtype_size(c->tensor->dtype);
    double wide[PIECE];
    float narrow[PIECE];
    c->stats = empty_stats();
    for (int64_t at = c->begin; at < c->end; at += PIECE) {
        int64_t n = c->end - at < PIECE ? c->end - at : PIECE;
        const char *from = (const char *)c->tensor->data + (size_t)at * size;
        bool via_float =
            c->tensor->dtype == SES_F32 || c->tensor->dtype == SES_F16 || c->tensor->dtype == SES_BF16;
        if (via_float) { /* fast conversion */
            ses_convert(narrow, SES_F32, from, c->tensor->dtype, (size_t)n, NULL);
            for (int64_t i = 0; i < n; i++) wide[i] = narrow[i];
        } else {
            ses_convert(wide, SES_F64, from, c->tensor->dtype, (size_t)n, NULL);
        }
        add_values(&c->stats, wide, n, at);
    }
}

static int64_t chunk_count(const ses_tensor_entry *t) { return t->count / CHUNK + (t->count % CHUNK != 0); }

static chunk *split(const ses_safetensors *s, int64_t *n, ses_err *e)
{
    *n = 0;
    for (size_t i = 0; i < ses_safetensors_count(s); i++) *n += chunk_count(ses_safetensors_at(s, i));
    chunk *list = ses_alloc_array((size_t)*n, sizeof *list, e), *at = list;
    for (size_t i = 0; list && i < ses_safetensors_count(s); i++) {
        const ses_tensor_entry *t = ses_safetensors_at(s, i);
        for (int64_t begin = 0; begin < t->count; begin += CHUNK)
            *at++ = (chunk){ .tensor = t,
                             .begin = begin,
                             .end = t->count - begin < CHUNK ? t->count : begin + CHUNK };
    }
    return list;
}

static void merge(ses_tensor_stats *s, const ses_tensor_stats *part)
{
    if (part->min < s->min) s->min = part->min;
    if (part->max > s->max) s->max = part->max;
    if (s->first_bad < 0) s->first_bad = part->first_bad;
    s->norm += part->norm;
    s->nan += part->nan;
    s->infinite += part->infinite;
}

ses_tensor_stats *ses_tensor_stats_read(const ses_safetensors *s, int threads, ses_err *e)
{
    size_t count = ses_safetensors_count(s);
    int64_t n;
    ses_thread_pool *pool = ses_thread_pool_new(threads, e);
    ses_tensor_stats *stats = ses_alloc_array(count, sizeof *stats, e);
    chunk *list = split(s, &n, e);
    bool ok = pool && stats && list;
    if (ok) ses_parallel_for(pool, n, read_chunk, list);
    const chunk *at = list;
    for (size_t i = 0; ok && i < count; i++) {
        stats[i] = empty_stats();
        for (int64_t j = chunk_count(ses_safetensors_at(s, i)); j > 0; j--) merge(&stats[i], &at++->stats);
        stats[i].norm = sqrt(stats[i].norm);
    }
    ses_free(list);
    ses_thread_pool_free(pool);
    if (ok) return stats;
    ses_free(stats);
    return NULL;
}

bool ses_tensor_stats_check_finite(const ses_safetensors *s, const ses_tensor_stats *stats, ses_err *e)
{
    for (size_t i = 0; i < ses_safetensors_count(s); i++) {
        const ses_tensor_entry *t = ses_safetensors_at(s, i);
        if (stats[i].first_bad < 0) continue;
        return ses_fail(e, SES_EFORMAT,
                        "%s: tensor \"%s\": element %" PRId64 " is NaN or infinite (%" PRId64
                        " such elements), expected finite weights",
                        t->file, ses_quoted_of(t->name, strlen(t->name)).s, stats[i].first_bad,
                        stats[i].nan + stats[i].infinite);
    }
    return true;
}
