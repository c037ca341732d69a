/* Reads the rows of a batch's outputs that belong to one sequence. */
#include "base/alloc.h"
#include "pipeline_impl.h"
#include "tensor/device_impl.h"

#include <assert.h>
#include <math.h>

/* The rows of the sequence being collected: `count` from `first` on. */
static void find_rows(const ses_pipeline_runner *runner, const ses_seq *q, ses_axis axis, int64_t *first,
                      int64_t *count)
{
    switch (axis) {
    case SES_PER_ROW: *first = runner->row_index, *count = (int64_t)q->n_rows; return;
    case SES_PER_SEQUENCE: *first = runner->seq_index, *count = 1; return;
    default: *first = runner->pass.batch.cu_seqlens[runner->seq_index], *count = (int64_t)q->n; return;
    }
}

/* Rows of a tensor on the host. On a GPU, the first output requested of a batch is copied whole: one copy per
 * sequence would take longer than computing them. Further outputs (hidden states of other layers) are copied
 * sequence by sequence behind it, because there is one whole copy only. */
static const ses_real *read_rows(ses_pipeline *p, const ses_tensor *x, int64_t first, int64_t count,
                                 ses_err *e)
{
    ses_pipeline_runner *runner = &p->runner;
    int64_t width = ses_cols(x), wanted = first * width, from = 0, size = ses_count(x), to = 0;
    if (p->dev->is_host) return x->f + wanted;
    if (runner->host_copy_of == x) return runner->host_copy + wanted;
    if (runner->host_copy_of) from = wanted, size = count * width, to = ses_count(runner->host_copy_of);
    if (!ses_array_reserve(&runner->host_copy, &runner->host_copy_capacity, (size_t)(to + size),
                           sizeof *runner->host_copy, e) ||
        !ses_device_read(p->dev, x, from, size, runner->host_copy + to, e))
        return NULL;
    if (!runner->host_copy_of) runner->host_copy_of = x;
    return runner->host_copy + to + wanted - from;
}

/* NaN in an output usually comes from NaN in the weights: then the message names the tensor. */
static void fail_not_finite(const ses_pipeline *p, const char *output, ses_err *e)
{
    if (ses_model_check_finite(p->model, e))
        ses_fail(e, SES_EARG, "the model's output \"%s\" is NaN or infinite", output);
    ses_wrap(e, "%s", p->dir);
}

ses_output_rows ses_request_output_rows(ses_pipeline *p, const ses_seq *q, const char *output, ses_err *e)
{
    ses_pipeline_runner *runner = &p->runner;
    const ses_output *o = ses_outputs_find(&runner->pass.out, output);
    assert(o);
    int64_t width = ses_cols(o->tensor), first = 0;
    ses_output_rows rows = { .cols = o->cols ? o->cols : width };
    find_rows(runner, q, o->axis, &first, &rows.n);
    const ses_real *x = read_rows(p, o->tensor, first, rows.n, e);
    if (!x || !ses_array_reserve(&runner->rows, &runner->rows_capacity, (size_t)(rows.n * rows.cols),
                                 sizeof *runner->rows, e))
        return rows;
    for (int64_t i = 0; i < rows.n; i++)
        for (int64_t k = 0; k < rows.cols; k++) {
            ses_real v = x[i * width + o->col + k];
            if (!isfinite(v)) {
                fail_not_finite(p, output, e);
                return rows;
            }
            runner->rows[i * rows.cols + k] = (float)v;
        }
    rows.x = runner->rows;
    return rows;
}
