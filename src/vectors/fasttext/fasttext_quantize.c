/* Pruning and quantization of fastText models. */
#include "fasttext_quantize.h"

#include "base/alloc.h"
#include "vectors/exact/libstdcxx.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_ids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The rows with the largest norms, "</s>" first. */
static bool select_rows(const ses_fasttext_model *m, int32_t *chosen, size_t n, ses_err *e)
{
    size_t rows = (size_t)m->in.rows, dim = ses_fasttext_dim(m), end = SIZE_MAX;
    ses_sort_item *item = ses_alloc_array(rows, sizeof *item, e);
    if (!item) return false;
    int64_t id;
    if (ses_strmap_find(&m->d.id, "</s>", 4, &id)) end = (size_t)id;
    for (size_t i = 0; i < rows; i++) {
        double sum = 0;
        for (size_t k = 0; k < dim; k++) {
            float x = m->in.own[i * dim + k];
            sum += x * x;
        }
        float norm = (float)sqrt(sum);
        int32_t bits; /* as ordered as the numbers, which are >= 0 */
        memcpy(&bits, &norm, sizeof bits);
        item[i] = (ses_sort_item){ .major = i != end, .minor = bits, .index = i };
    }
    ses_libstdcxx_sort(item, rows);
    for (size_t i = 0; i < n; i++) chosen[i] = (int32_t)item[i].index;
    ses_free(item);
    return true;
}

/* Keeps the chosen words, which are sorted, and all labels. */
static bool prune_words(ses_fasttext_dictionary *d, const int32_t *chosen, size_t n, ses_err *e)
{
    size_t kept = 0;
    bool fresh, ok = true;
    for (size_t i = 0; i < d->n; i++) {
        if (i < d->n_words && (kept >= n || (size_t)chosen[kept] != i)) continue;
        d->word[kept] = d->word[i];
        d->word[kept++].n_rows = 0; /* its n-grams are found again */
    }
    d->n = kept;
    d->n_words = n;
    d->rows.n = 0;
    ses_strmap_free(&d->id);
    for (size_t i = 0; ok && i < d->n; i++)
        ok = ses_strmap_insert(&d->id, d->word[i].text, d->word[i].len, (int64_t)i, &fresh, e);
    return ok;
}

static bool prune_buckets(ses_fasttext_model *m, const int32_t *bucket, size_t n, ses_err *e)
{
    size_t *order = ses_alloc_array(n, sizeof *order, e);
    m->kept = ses_alloc_array(n, sizeof *m->kept, e);
    m->n_pruned = (int64_t)n;
    bool ok = order && m->kept && ses_libstdcxx_map_order(bucket, n, order, e);
    for (size_t i = 0; ok && i < n; i++)
        m->kept[i] = (ses_fasttext_kept){ bucket[order[i]], (int32_t)order[i] };
    ses_free(order);
    return ok && ses_fasttext_index(m, e);
}

static bool prune(ses_fasttext_model *m, size_t n, ses_err *e)
{
    size_t dim = ses_fasttext_dim(m), words = 0, all_words = m->d.n_words, buckets = 0;
    int32_t *chosen = ses_alloc_array(n, sizeof *chosen, e), *sorted = ses_alloc_array(n, sizeof *sorted, e);
    float *in = ses_alloc_array(n * dim, sizeof *in, e);
    bool ok = chosen && sorted && in && select_rows(m, chosen, n, e);
    for (size_t i = 0; ok && i < n; i++)
        if ((size_t)chosen[i] < all_words) sorted[words++] = chosen[i];
    if (ok) qsort(sorted, words, sizeof *sorted, compare_ids);
    for (size_t i = 0; ok && i < n; i++)
        if ((size_t)chosen[i] >= all_words) sorted[words + buckets++] = chosen[i];
    for (size_t i = 0; ok && i < n; i++)
        memcpy(in + i * dim, m->in.own + (size_t)sorted[i] * dim, dim * sizeof *in);
    for (size_t i = words; ok && i < n; i++) sorted[i] -= (int32_t)all_words;
    ok = ok && prune_words(&m->d, sorted, words, e) && prune_buckets(m, sorted + words, buckets, e);
    if (ok) {
        ses_free(m->in.own);
        m->in = (ses_fasttext_matrix){ .rows = (int64_t)n, .columns = m->in.columns, .own = in };
        in = NULL;
    }
    ses_free(in);
    ses_free(chosen);
    ses_free(sorted);
    return ok;
}

static bool retrain(ses_fasttext_model *m, const ses_fasttext_quantizing *q, ses_err *e)
{
    ses_fasttext_options o = q->again;
    int32_t epoch = o.set.epoch;
    m->set.epoch = epoch;
    o.set = m->set;
    return ses_fasttext_retrain_exact(&o, q->retrain, m, e);
}

bool ses_fasttext_quantize(ses_fasttext_model *m, const ses_fasttext_quantizing *q, ses_thread_pool *pool,
                           ses_err *e)
{
    int32_t dsub = q->dsub ? q->dsub : 2;
    if (ses_fasttext_matrix_is_quantized(&m->in))
        return ses_fail(e, SES_EARG, "the model is quantized already");
    if (dsub < 1 || dsub > m->set.dim)
        return ses_fail(e, SES_EUSAGE, "parts of %d columns; expected 1 to %d", dsub, m->set.dim);
    if (q->cutoff < 0) return ses_fail(e, SES_EUSAGE, "cutoff %lld is negative", (long long)q->cutoff);
    if (q->retrain.p && m->set.model != SES_FASTTEXT_SUPERVISED)
        return ses_fail(e, SES_EARG, "only models with labels can be trained again");
    if (!ses_fasttext_matrix_load(&m->in, e) || !ses_fasttext_matrix_load(&m->out, e)) return false;
    if (q->cutoff && q->cutoff < m->in.rows &&
        (!prune(m, (size_t)q->cutoff, e) || (q->retrain.p && !retrain(m, q, e))))
        return false;
    if (!ses_fasttext_matrix_quantize(&m->in, dsub, q->norms, pool, e)) return ses_wrap(e, "input matrix");
    return !q->output || ses_fasttext_matrix_quantize(&m->out, 2, q->norms, pool, e) ||
           ses_wrap(e, "output matrix");
}
