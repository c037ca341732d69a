/* Trustworthiness and recall of a map. */
#include "map_quality.h"

#include "base/alloc.h"
#include "neighbours.h"

enum { NEIGHBOURS = 10, ALL_TO = 5000, SAMPLE = 2000 };

typedef struct measurement {
    const ses_math *m;
    int64_t n, k;
    const int32_t *pick;   /* [queries] */
    ses_neighbours in_map; /* neighbours of the queries in the map */
    double *excess;        /* [queries] sum of rank - k */
    int64_t *kept;         /* [queries] common neighbours */
} measurement;

static void measure_query(void *ctx, int64_t query, const ses_real *score, void *scratch)
{
    (void)scratch;
    const measurement *t = ctx;
    ses_real own = score[t->pick[query]];
    double excess = 0;
    int64_t kept = 0;
    for (int64_t j = 0; j < t->k; j++) {
        ses_real at = score[t->in_map.index[query * t->k + j]];
        int64_t rank = t->m->k.rank_of(score, t->n, at) + (own <= at); /* from 1, without the point itself */
        if (rank <= t->k)
            kept++;
        else
            excess += (double)(rank - t->k);
    }
    t->excess[query] = excess, t->kept[query] = kept;
}

static int32_t *choose_queries(int64_t n, int64_t count, uint64_t seed, ses_err *e)
{
    int32_t *pick = ses_alloc_array((size_t)count, sizeof *pick, e);
    ses_rng_key key = { seed, 0, 0x6D6170 };
    for (int64_t i = 0; pick && i < count; i++) { /* one of each equal part */
        int64_t begin = i * n / count, end = (i + 1) * n / count;
        pick[i] =
            (int32_t)(begin + (int64_t)((double)ses_rand_unit(key, (uint64_t)i) * (double)(end - begin)));
    }
    return pick;
}

static bool measure(measurement *t, ses_map_quality *q, const ses_real *x, int64_t width, const double *px,
                    const double *py, ses_err *e)
{
    ses_real *plane = ses_alloc_array((size_t)t->n, 2 * sizeof *plane, e);
    bool ok = plane != NULL;
    for (int64_t i = 0; ok && i < t->n; i++)
        plane[2 * i] = (ses_real)px[i], plane[2 * i + 1] = (ses_real)py[i];
    ok = ok && ses_neighbours_find(&t->in_map, t->m, plane, t->n, 2, t->k, t->pick, q->queries, e) &&
         ses_score_rows(t->m, x, t->n, width, t->pick, q->queries, "quality", measure_query, t, e);
    ses_free(plane);
    double excess = 0, kept = 0, m = (double)q->queries, k = (double)t->k, n = (double)t->n;
    for (int64_t i = 0; ok && i < q->queries; i++) excess += t->excess[i], kept += (double)t->kept[i];
    q->trustworthiness = 1 - 2 / (m * k * (2 * n - 3 * k - 1)) * excess;
    q->recall = kept / (m * k);
    return ok;
}

bool ses_map_quality_measure(ses_map_quality *q, const ses_math *m, const ses_real *x, int64_t n,
                             int64_t width, const double *px, const double *py, uint64_t seed, ses_err *e)
{
    int64_t k = (n - 1) / 2 < NEIGHBOURS ? (n - 1) / 2 : NEIGHBOURS;
    *q = (ses_map_quality){ .neighbours = k, .queries = n > ALL_TO ? SAMPLE : n };
    if (k < 1) return q->neighbours = 0, true;
    measurement t = { .m = m, .n = n, .k = k };
    int32_t *pick = choose_queries(n, q->queries, seed, e);
    t.pick = pick;
    t.excess = pick ? ses_alloc_array((size_t)q->queries, sizeof *t.excess, e) : NULL;
    t.kept = t.excess ? ses_alloc_array((size_t)q->queries, sizeof *t.kept, e) : NULL;
    bool ok = t.kept && measure(&t, q, x, width, px, py, e);
    ses_neighbours_free(&t.in_map);
    ses_free(pick);
    ses_free(t.excess);
    ses_free(t.kept);
    return ok;
}
