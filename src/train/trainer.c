/* Training steps: forward and backward pass of a batch, gradient accumulation, optimizer updates. */
#include "base/alloc.h"
#include "base/file.h"
#include "model/model_desc.h"
#include "sesame/ops.h"
#include "trainer_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- length of the run ---- */

static int64_t updates_of(const ses_trainer *t, int64_t batches)
{
    return (batches + t->o.accumulate - 1) / t->o.accumulate;
}

/* Updates of a run of o.epochs epochs; a fractional last epoch is rounded up, as in transformers. */
static bool count_updates(ses_trainer *t, ses_err *e)
{
    const ses_batch_source *s = &t->o.source;
    int64_t total = 0;
    if (t->o.updates > 0) return t->total_updates = t->o.updates, true;
    for (int64_t i = 0; (double)i < t->o.epochs; i++) {
        double fraction = fmin(1, t->o.epochs - (double)i);
        total += (int64_t)ceil(fraction * (double)updates_of(t, s->count(s->ctx, i)) - 1e-9);
    }
    t->total_updates = total;
    return total > 0 || ses_fail(e, SES_EARG, "the run has 0 updates; set epochs or updates above 0");
}

double ses_trainer_epoch(const ses_trainer *t)
{
    return (double)t->at.epoch + (t->epoch_batches > 0 ? (double)t->at.index / (double)t->epoch_batches : 0);
}

/* ---- gradual unfreezing ---- */

static bool unfreeze(ses_trainer *t, int64_t epoch, ses_err *e)
{
    if (!t->o.unfreezing) return true;
    t->o.unfreezing->frozen = ses_layer_groups_frozen_at(t->o.unfreezing, epoch);
    for (size_t i = 0; i < t->n_stores; i++)
        if (t->optim[i] && !ses_optim_regroup(t->optim[i], e)) return false;
    return true;
}

bool ses_trainer_restore_unfrozen(ses_trainer *t, ses_err *e)
{
    int64_t updates = 0;
    for (int64_t k = 0; t->o.unfreezing && k <= t->at.epoch; k++) {
        for (size_t i = 0; i < t->n_stores; i++) ses_optim_set_steps(t->optim[i], updates);
        if (!unfreeze(t, k, e)) return false;
        updates += updates_of(t, t->o.source.count(t->o.source.ctx, k));
    }
    return true;
}

/* ---- construction ---- */

static bool check_models(const ses_trainer *t, ses_err *e)
{
    for (size_t i = 0; i < t->n_stores; i++) {
        const ses_store *s = t->store[i];
        if (!ses_store_trainable_count(s))
            return ses_fail(e, SES_EARG, "the model is not opened for training");
        if (ses_store_device(s) != t->dev)
            return ses_fail(e, SES_EARG, "jointly trained models must share a device");
    }
    return true;
}

ses_trainer *ses_trainer_new(const ses_trainer_options *o, ses_err *e)
{
    ses_trainer *t = ses_alloc(sizeof *t, e);
    if (!t) return NULL;
    t->o = *o;
    if (t->o.accumulate < 1) t->o.accumulate = 1;
    if (t->o.keep_checkpoints < 1) t->o.keep_checkpoints = 2;
    t->model[t->n_models++] = o->model;
    if (o->generator) t->model[t->n_models++] = o->generator;
    for (size_t i = 0; i < t->n_models; i++) t->store[t->n_stores++] = ses_model_store(t->model[i]);
    for (size_t i = 0; i < SES_LEN(o->extra_params); i++)
        if (o->extra_params[i] && ses_store_count(o->extra_params[i]))
            t->store[t->n_stores++] = o->extra_params[i];
    t->dev = ses_store_device(ses_model_store(o->model));
    t->at = (ses_train_state){ .evaluated = -1, .saved = -1, .best = NAN, .best_update = -1 };
    if (!check_models(t, e) || !count_updates(t, e)) goto fail;
    t->epoch_batches = o->source.count(o->source.ctx, 0);
    if (!o->schedule.name && !ses_schedule_defaults("constant", &t->o.schedule, e)) goto fail;
    if (!t->o.schedule.total) t->o.schedule.total = t->total_updates;
    if (!t->o.schedule.warmup) t->o.schedule.warmup = ses_warmup_updates(o->warmup_ratio, t->total_updates);
    t->settings = ses_strdup(o->settings ? o->settings : "{}", e);
    if (!t->settings || (o->dir && !(t->dir = ses_strdup(o->dir, e)))) goto fail;
    if (!ses_trainer_open_dir(t, e)) goto fail;
    if (t->dir && o->source.hash)
        snprintf(t->data_hash, sizeof t->data_hash, "%016" PRIx64, o->source.hash(o->source.ctx));
    if (!unfreeze(t, 0, e)) goto fail;
    for (size_t i = 0; i < t->n_stores; i++)
        if (!(t->optim[i] = ses_optim_new(t->store[i], &o->optim, e))) goto fail;
    t->tape = ses_tape_new(t->dev, &(ses_tape_options){ .record = true }, e);
    if (t->tape) return t;
fail:
    ses_trainer_free(t);
    return NULL;
}

void ses_trainer_free(ses_trainer *t)
{
    if (!t) return;
    ses_tape_free(t->tape);
    for (size_t i = 0; i < t->n_stores; i++) ses_optim_free(t->optim[i]);
    ses_buf_free(&t->log);
    ses_free(t->score);
    ses_dir_lock_free(t->lock);
    ses_free(t->dir);
    ses_free(t->settings);
    ses_free(t->best_dir);
    ses_free(t);
}

/* ---- a step ---- */

/* Adds the position to an error: "update 12, epoch 2, batch 7 (lines ...)". Counted from 1. */
static bool wrap_batch(const ses_trainer *t, ses_err *e)
{
    char where[200] = "";
    const ses_batch_source *s = &t->o.source;
    if (s->describe) s->describe(s->ctx, t->at.epoch, t->at.index, where, sizeof where);
    return ses_wrap(e, "update %" PRId64 ", epoch %" PRId64 ", batch %" PRId64 "%s%s%s", t->at.updates + 1,
                    t->at.epoch + 1, t->at.index + 1, *where ? " (" : "", where, *where ? ")" : "");
}

/* Names the parameter nearest to the loss with a weight, or else a gradient, that is not finite: in the
 * backward pass a NaN spreads to everything below. */
static bool fail_not_finite(const ses_trainer *t, const char *quantity, double value, ses_err *e)
{
    for (int gradients = 0; gradients < 2; gradients++)
        for (size_t m = t->n_stores; m-- > 0;)
            for (size_t i = ses_store_count(t->store[m]); i-- > 0;) {
                char name[256];
                const ses_param *p = ses_store_at(t->store[m], i);
                const ses_real *x = gradients ? p->tensor->grad : ses_master_data(p->tensor);
                if (!x || isfinite(t->dev->k_f32.sum_squares(&t->dev->exec, x, ses_count(p->tensor))))
                    continue;
                if (m >= t->n_models || !ses_model_tensor_name(t->model[m], i, name, sizeof name))
                    snprintf(name, sizeof name, "%s", p->name);
                return ses_fail(e, SES_EARG, "the %s is %g: NaN or infinity in the %s of \"%s\"", quantity,
                                value, gradients ? "gradient" : "weights", name);
            }
    return ses_fail(e, SES_EARG, "the %s is %g", quantity, value);
}

static double grad_norm(const ses_trainer *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->n_stores; i++) {
        double norm = ses_store_grad_norm(t->store[i]);
        sum += norm * norm;
    }
    return sqrt(sum);
}

/* The label of each row of logits; a causal head predicts the next token's. */
static ses_tensor *aligned_labels(ses_trainer *t, const ses_batch *b, int64_t rows)
{
    if (!t->o.model->class->head[0].head->shifts_labels) return ses_tape_ints(t->tape, b->labels, rows);
    int32_t *next = ses_tape_host_alloc(t->tape, (size_t)rows, sizeof *next);
    for (int64_t s = 0; next && s < b->seqs; s++)
        for (int32_t i = b->cu_seqlens[s]; i < b->cu_seqlens[s + 1]; i++)
            next[i] = i + 1 < b->cu_seqlens[s + 1] ? b->labels[i + 1] : SES_IGNORE_INDEX;
    return next ? ses_tape_ints(t->tape, next, rows) : NULL;
}

/* Label smoothing: (1 - s) nll + s (mean nll of all classes), over the rows with a label. */
static ses_tensor *smoothed_loss(ses_trainer *t, const ses_batch *b, const ses_outputs *out, ses_err *e)
{
    const ses_output *logits = ses_outputs_find(out, "logits");
    ses_tensor *x = logits ? logits->tensor : NULL;
    if (!x || !b->labels) {
        ses_fail(e, SES_EUNSUPPORTED, "label smoothing is not supported for %s",
                 ses_model_class_name(t->o.model));
        return NULL;
    }
    ses_tensor *margin = ses_label_smoothing(t->tape, x, aligned_labels(t, b, ses_rows(x)));
    return ses_add(t->tape, out->loss, ses_scale(t->tape, margin, t->o.label_smoothing));
}

static ses_tensor *loss_of(ses_trainer *t, const ses_batch *b, ses_err *e)
{
    ses_outputs out = { 0 };
    if (t->o.loss) {
        ses_tensor *loss = t->o.loss(t->o.loss_ctx, t->tape, b, e);
        if (!loss && ses_tape_ok(t->tape, e)) ses_fail(e, SES_EARG, "the loss function returned no loss");
        return loss;
    }
    bool smooth = t->o.label_smoothing > 0;
    if (!ses_model_forward(t->o.model, t->tape, b, &(ses_output_request){ .logits = smooth }, &out, e))
        return NULL;
    if (!out.loss) ses_fail(e, SES_EARG, "the batch lacks labels for %s", ses_model_class_name(t->o.model));
    return smooth && out.loss ? smoothed_loss(t, b, &out, e) : out.loss;
}

static bool update_is_due(const ses_trainer *t)
{
    return t->at.accumulated + 1 >= t->o.accumulate || t->at.index + 1 >= t->epoch_batches;
}

/* Builds the next batch while a GPU is still computing. */
static void prefetch_next(const ses_trainer *t)
{
    const ses_batch_source *s = &t->o.source;
    bool last = t->at.index + 1 >= t->epoch_batches,
         over = update_is_due(t) && t->at.updates + 1 >= t->total_updates;
    if (s->prefetch && !over) s->prefetch(s->ctx, t->at.epoch + last, last ? 0 : t->at.index + 1);
}

/* Forward and backward pass; adds to the gradients. */
static bool run_batch(ses_trainer *t, const ses_batch *b, double *loss, ses_err *e)
{
    ses_real value = 0;
    ses_tape_options o = { .record = true,
                           .train = !t->o.no_dropout,
                           .recompute = t->o.recompute,
                           .seed = t->o.seed,
                           .step = (uint32_t)t->at.batches };
    ses_tape_reset(t->tape, &o);
    for (size_t i = 0; i < t->n_stores && !t->at.accumulated; i++) ses_store_zero_grad(t->store[i]);
    ses_tensor *l = loss_of(t, b, e);
    if (!l) return false;
    ses_backward(t->tape, l);
    if (!ses_tape_ok(t->tape, e)) return false;
    prefetch_next(t);
    if (!ses_tape_read(t->tape, l, &value)) return ses_tape_ok(t->tape, e);
    *loss = (double)value;
    return isfinite(*loss) || fail_not_finite(t, "loss", *loss, e);
}

static bool update(ses_trainer *t, ses_step_result *out, ses_err *e)
{
    double mean = 1 / (double)t->at.accumulated;
    out->grad_norm = grad_norm(t) * mean;
    t->o.schedule.decays = t->at.decays;
    out->lr = t->o.optim.lr * ses_schedule_at(&t->o.schedule, t->at.updates);
    out->loss = t->at.accumulated_loss * mean;
    out->updated = true;
    if (!isfinite(out->grad_norm)) return fail_not_finite(t, "gradient norm", out->grad_norm, e);
    double momentum = ses_schedule_momentum_at(&t->o.schedule, t->at.updates);
    for (size_t i = 0; i < t->n_stores && momentum >= 0; i++) ses_optim_set_momentum(t->optim[i], momentum);
    for (size_t i = 0; i < t->n_stores; i++)
        ses_optim_step(t->optim[i], out->lr, mean * ses_clip_scale(out->grad_norm, t->o.max_grad_norm));
    return true;
}

bool ses_trainer_step(ses_trainer *t, ses_step_result *out, ses_err *e)
{
    const ses_batch_source *s = &t->o.source;
    ses_batch b = { 0 };
    *out = (ses_step_result){ 0 };
    if (t->at.index >= t->epoch_batches) { /* start the next epoch */
        t->at.epoch++;
        t->at.index = 0;
        t->epoch_batches = s->count(s->ctx, t->at.epoch);
        if (!unfreeze(t, t->at.epoch, e)) return false;
    }
    if (!s->batch(s->ctx, t->at.epoch, t->at.index, &b, e) || !run_batch(t, &b, &out->loss, e))
        return wrap_batch(t, e);
    bool due = update_is_due(t);
    t->at.accumulated++;
    t->at.accumulated_loss += out->loss;
    if (due && !update(t, out, e)) return wrap_batch(t, e);
    if (due) t->at.updates++, t->at.accumulated = 0, t->at.accumulated_loss = 0;
    out->tokens = b.tokens + (b.target_cu_seqlens ? b.target_cu_seqlens[b.seqs] : 0);
    out->sequences = b.seqs;
    t->at.index++;
    t->at.batches++;
    t->at.tokens += out->tokens;
    t->at.sequences += out->sequences;
    out->epoch = ses_trainer_epoch(t);
    return true;
}

bool ses_trainer_done(const ses_trainer *t) { return t->at.updates >= t->total_updates; }
const ses_train_state *ses_trainer_state(const ses_trainer *t) { return &t->at; }
int64_t ses_trainer_total_updates(const ses_trainer *t) { return t->total_updates; }
size_t ses_trainer_tape_bytes(const ses_trainer *t) { return ses_tape_bytes(t->tape); }
const char *ses_trainer_restore_error(const ses_trainer *t)
{
    return t->restore_error.code ? t->restore_error.msg : NULL;
}
ses_optim *ses_trainer_optim(const ses_trainer *t) { return t->optim[0]; }

bool ses_trainer_gather_weights(ses_trainer *t, ses_err *e)
{
    (void)t, (void)e;
    return true;
}

bool ses_trainer_swap_average(ses_trainer *t, ses_err *e)
{
    (void)e;
    for (size_t i = 0; i < t->n_stores; i++) ses_optim_swap_ema(t->optim[i]);
    return true;
}

bool ses_trainer_log(ses_trainer *t, const char *members, ses_err *e)
{
    ses_buf_appendf(&t->log, "{%s}\n", members);
    return ses_buf_ok(&t->log, e);
}
