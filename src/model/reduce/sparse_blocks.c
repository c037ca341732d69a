/* Magnitude pruning in blocks of four inputs, see sparse_blocks.h. */
#include "sparse_blocks.h"

#include "base/alloc.h"
#include "nn/store_impl.h"
#include "tensor/pack.h"

#include <math.h>

/* A weight as outputs of `in` inputs: element p of output j is w[j * out_step + p * in_step]. */
typedef struct blocks {
    ses_real *w;
    int64_t outputs, in, out_step, in_step;
} blocks;

static bool is_pruned(const ses_param *p)
{
    return p->dense && !p->keep_16bit && !p->embedding && p->tensor->f;
}

static blocks blocks_of(const ses_param *p)
{
    const ses_tensor *t = p->tensor;
    bool in_out = p->layout == SES_IN_OUT;
    int64_t outputs = ses_weight_dim(t, in_out), in = ses_weight_dim(t, !in_out);
    return (blocks){ t->f, outputs, in, in_out ? 1 : in, in_out ? outputs : 1 };
}

static int64_t row_blocks(const blocks *b) { return ses_quad_count(b->in); }

/* Sum of squares of block i, counted along the inputs. */
static double block_score(const blocks *b, int64_t i)
{
    int64_t begin = i % row_blocks(b) * 4;
    const ses_real *w = b->w + i / row_blocks(b) * b->out_step;
    double sum = 0;
    for (int64_t p = begin; p < begin + 4 && p < b->in; p++)
        sum += (double)w[p * b->in_step] * (double)w[p * b->in_step];
    return sum;
}

static void clear_block(const blocks *b, int64_t i)
{
    int64_t begin = i % row_blocks(b) * 4;
    ses_real *w = b->w + i / row_blocks(b) * b->out_step;
    for (int64_t p = begin; p < begin + 4 && p < b->in; p++) w[p * b->in_step] = 0;
}

/* Reorders x so that no number before x[at] is larger and none behind it is smaller (Hoare's selection). */
static void select_at(double *x, int64_t n, int64_t at)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        double pivot = x[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (x[i] < pivot) i++;
            while (x[j] > pivot) j--;
            if (i > j) break;
            double swapped = x[i];
            x[i++] = x[j], x[j--] = swapped;
        }
        if (at <= j)
            high = j;
        else if (at >= i)
            low = i;
        else
            return;
    }
}

static bool prune_weight(const blocks *b, double share, ses_err *e)
{
    int64_t n = b->outputs * row_blocks(b), pruned = (int64_t)(share * (double)n + 0.5), equal = 0;
    double *score = ses_alloc_array((size_t)n, sizeof *score, e);
    if (!score) return false;
    for (int64_t i = 0; i < n; i++) score[i] = block_score(b, i);
    if (pruned < n) select_at(score, n, pruned);
    double limit = pruned < n ? score[pruned] : INFINITY;
    for (int64_t i = 0; i < pruned; i++) equal += score[i] == limit; /* as many of the equal ones */
    for (int64_t i = 0; i < n; i++) {
        double x = block_score(b, i);
        if (x < limit || (x == limit && equal-- > 0)) clear_block(b, i);
    }
    ses_free(score);
    return true;
}

bool ses_prune_blocks(ses_store *s, double share, ses_err *e)
{
    bool any = false;
    for (size_t i = 0; i < ses_store_count(s); i++) {
        if (!is_pruned(ses_store_at(s, i))) continue;
        if (!ses_store_make_writable(s, i, e)) return false;
        blocks b = blocks_of(ses_store_at(s, i));
        if (!prune_weight(&b, share, e)) return false;
        any = true;
    }
    return any || ses_fail(e, SES_EARG, "the model has no dense weights that are stored in 8 bits");
}

ses_sparse_blocks ses_count_blocks(const ses_store *s)
{
    ses_sparse_blocks sum = { 0 };
    for (size_t i = 0; i < ses_store_count(s); i++) {
        if (!is_pruned(ses_store_at(s, i))) continue;
        blocks b = blocks_of(ses_store_at(s, i));
        int64_t n = b.outputs * row_blocks(&b);
        sum.blocks += n;
        for (int64_t j = 0; j < n; j++) sum.zero += block_score(&b, j) == 0;
    }
    return sum;
}
