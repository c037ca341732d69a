/* KL divergence of the teacher's predictions and the student's at a temperature; the mean of several
 * teachers. One column of scores: squared error. */
#include "distill_impl.h"

#include "op/op.h"

#include <math.h>
#include <string.h>

static void request(ses_output_request *want) { want->logits = true; }

/* Adds the probabilities of a row at temperature T, or its only value, to mean. */
static void add_probabilities(const ses_real *x, int64_t cols, double T, double weight, double *mean)
{
    double max = (double)x[0], sum = 0;
    if (cols == 1) {
        mean[0] += weight * (double)x[0];
        return;
    }
    for (int64_t k = 1; k < cols; k++) max = fmax(max, (double)x[k]);
    for (int64_t k = 0; k < cols; k++) sum += exp(((double)x[k] - max) / T);
    for (int64_t k = 0; k < cols; k++) mean[k] += weight * exp(((double)x[k] - max) / T) / sum;
}

/* The scores whose probabilities at temperature T are the mean of all teachers' (one column: the mean).
 * first: the scores of the first teacher, on its tape. NULL: failed. */
static ses_tensor *mean_scores(ses_distill_step *s, ses_tensor *first)
{
    ses_distill *d = s->d;
    int64_t rows = ses_rows(first), cols = ses_cols(first);
    size_t count = (size_t)(rows * cols);
    double T = d->o.temperature, weight = 1 / (double)(d->n_more + 1);
    ses_real *x = ses_tape_host_alloc(d->tape, count, sizeof *x);
    double *mean = ses_tape_host_alloc(d->tape, count, sizeof *mean);
    if (!x || !mean || !ses_tape_read(d->tape, first, x)) return ses_tape_ok(d->tape, s->e), NULL;
    memset(mean, 0, count * sizeof *mean);
    for (size_t i = 0;; i++) {
        for (int64_t r = 0; r < rows; r++) add_probabilities(x + r * cols, cols, T, weight, mean + r * cols);
        if (i == d->n_more) break;
        ses_outputs theirs;
        ses_batch copy = *s->batch;
        if (!ses_model_forward(d->more[i], d->tape, &copy, s->want, &theirs, s->e)) return NULL;
        const ses_output *y = ses_outputs_find(&theirs, theirs.head[0].output);
        ses_tensor *same = ses_distill_target(s, first, y, "scores of the teachers");
        if (!same) return NULL;
        if (!ses_tape_read(d->tape, same, x)) return ses_tape_ok(d->tape, s->e), NULL;
    }
    for (size_t k = 0; k < count; k++)
        x[k] = (ses_real)(cols == 1 ? mean[k] : T * log(mean[k] > 1e-300 ? mean[k] : 1e-300));
    ses_tensor *out = ses_tape_input(d->tape, x, SES_DIM(rows, cols));
    return ses_tape_ok(d->tape, s->e) ? out : NULL;
}

static bool add(ses_distill_step *s)
{
    if (!s->want->logits) return true; /* no token has a label */
    const ses_output *x = ses_outputs_find(&s->ours, s->ours.head[0].output);
    const ses_output *y = ses_outputs_find(&s->theirs, s->theirs.head[0].output);
    ses_tensor *target = ses_distill_target(s, x ? x->tensor : NULL, y, "scores");
    if (target && s->d->n_more) target = mean_scores(s, target);
    if (!target) return false;
    /* one column: regression */
    ses_teacher_loss_kind kind = ses_cols(target) > 1 ? SES_TEACHER_KL : SES_TEACHER_MSE;
    return ses_distill_add(s, ses_teacher_loss(s->t, x->tensor, target, kind, s->d->o.temperature),
                           s->d->o.soft);
}

const ses_distill_term ses_distill_term_soft = {
    .weight = offsetof(ses_distill_options, soft), .mean_teachers = true, .request = request, .add = add
};
