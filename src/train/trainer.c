/* Training steps: forward and backward pass of a batch, gradient accumulation, optimizer updates. */
#include "base/alloc.h"
#include "base/file.h"
#include "model/model_desc.h"
#include "nn/store_impl.h"
#include "sesame/unstable/ops.h"
#include "train/optim/optim_kind.h"
#include "train/prune/pruner.h"
#include "trainer_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- length of the run ---- */

int64_t ses_trainer_update_batches(const ses_trainer *t) { return t->o.lanes * t->o.accumulate; }

static int64_t updates_of(const ses_trainer *t, int64_t batches)
{
    int64_t each = ses_trainer_update_batches(t);
    return (batches + each - 1) / each;
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

/* The schedule of the current update; *step: updates since its start. Schedules that rise start anew with
 * every level that is unfrozen, and last to the end of the run once all are: the stages of ULMFiT. */
static ses_schedule stage_schedule(const ses_trainer *t, int64_t *step)
{
    const ses_layer_groups *l = t->o.unfreezing;
    const ses_batch_source *source = &t->o.source;
    ses_schedule s = t->o.schedule;
    *step = t->at.updates;
    if (!l || !ses_schedule_rises(&s)) return s;
    for (int64_t k = 0; s.total > 0; k++) {
        bool more = ses_layer_groups_frozen_at(l, k + 1) < ses_layer_groups_frozen_at(l, k);
        int64_t n = updates_of(t, source->count(source->ctx, k));
        if (!more || n > *step || n >= s.total) {
            if (more && n < s.total) s.total = n;
            break;
        }
        *step -= n;
        s.total -= n;
    }
    return s;
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
    if (t->dev->weight_dtype == SES_BF16 && !t->dev->exec.bf16)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "bf16 training needs instructions for bf16 products, which the level %s lacks: train in "
            "f32 (--dtype f32) or on a GPU (--device cuda)",
            ses_isa_name(t->dev->isa));
    return true;
}

static bool check_weights(const ses_trainer *t, ses_err *e)
{
    return !t->o.weight_by_tokens || !t->o.loss || t->o.predictions ||
           ses_fail(
               e, SES_EUNSUPPORTED,
               "batches cannot be weighted by their predictions: this loss is not a mean over predictions");
}

/* Sets models, stores and counters from the options. */
static void init(ses_trainer *t, const ses_trainer_options *o)
{
    t->o = *o;
    t->rank = ses_comm_rank(o->comm);
    t->ranks = ses_comm_size(o->comm);
    if (t->o.accumulate < 1) t->o.accumulate = 1;
    if (t->o.lanes < 1) t->o.lanes = t->ranks;
    if (t->o.keep_checkpoints < 1) t->o.keep_checkpoints = 2;
    t->model[t->n_models++] = o->model;
    if (o->generator) t->model[t->n_models++] = o->generator;
    for (size_t i = 0; i < t->n_models; i++) t->store[t->n_stores++] = ses_model_store(t->model[i]);
    for (size_t i = 0; i < SES_LEN(o->extra_params); i++)
        if (o->extra_params[i] && ses_store_count(o->extra_params[i]))
            t->store[t->n_stores++] = o->extra_params[i];
    t->dev = ses_store_device(ses_model_store(o->model));
    t->at = (ses_train_state){ .evaluated = -1, .saved = -1, .best = NAN, .best_update = -1 };
}

static bool init_schedule(ses_trainer *t, ses_err *e)
{
    if (!t->o.schedule.name && !ses_schedule_defaults("constant", &t->o.schedule, e)) return false;
    if (!t->o.schedule.total) t->o.schedule.total = t->total_updates;
    if (!t->o.schedule.warmup) t->o.schedule.warmup = ses_warmup_updates(t->o.warmup_ratio, t->total_updates);
    return true;
}

static bool open_folder(ses_trainer *t, const ses_trainer_options *o, ses_err *e)
{
    t->settings = ses_strdup(o->settings ? o->settings : "{}", e);
    bool ok = t->settings && (!o->dir || (t->dir = ses_strdup(o->dir, e)));
    if (!ses_comm_all_ok(o->comm, ok, e) || !ses_trainer_open_dir(t, e)) return false;
    if (o->source.hash && (t->dir || t->ranks > 1))
        snprintf(t->data_hash, sizeof t->data_hash, "%016" PRIx64, o->source.hash(o->source.ctx));
    return true;
}

/* Pruning needs the whole gradient of a block, and a rank has that of its own elements only. */
static bool open_pruner(ses_trainer *t, ses_err *e)
{
    if (!t->o.pruning.criterion) return true;
    if (t->ranks > 1)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "prune: each rank has a part of the gradient, scores need that of whole blocks: train "
            "with one process");
    if (t->o.unfreezing)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "prune: layers that are unfrozen later have no scores before: train without unfreeze");
    t->pruner = ses_pruner_new(&t->o.pruning, t->o.model, &t->o.optim, t->total_updates, e);
    if (t->pruner && t->pruner->scores) t->store[t->n_stores++] = t->pruner->scores;
    return t->pruner != NULL;
}

static bool is_scores(const ses_trainer *t, size_t i)
{
    return t->pruner && t->store[i] == t->pruner->scores;
}

static bool open_optimizers(ses_trainer *t, ses_err *e)
{
    ses_optim_options scores;
    if (!unfreeze(t, 0, e) || (t->pruner && !ses_pruner_optim(t->pruner, &scores, e))) return false;
    for (size_t i = 0; i < t->n_stores; i++) {
        const ses_shards *x = t->lanes ? ses_lanes_shards(t->lanes, i) : NULL;
        t->optim[i] = ses_optim_new_slice(t->store[i], is_scores(t, i) ? &scores : &t->o.optim,
                                          x ? ses_shards_begin(x) : 0, x ? ses_shards_end(x) : INT64_MAX, e);
        if (!t->optim[i]) return false;
    }
    return true;
}

ses_trainer *ses_trainer_new(const ses_trainer_options *o, ses_err *e)
{
    ses_err local = { 0 }, *why = e ? e : &local;
    ses_trainer *t = ses_alloc(sizeof *t, why);
    if (!t) return ses_comm_abort(o->comm, why), NULL;
    init(t, o);
    e = why;
    bool ok = check_models(t, e) && check_weights(t, e) && count_updates(t, e) && init_schedule(t, e) &&
              open_pruner(t, e) && open_folder(t, o, e);
    if (ok) t->epoch_batches = o->source.count(o->source.ctx, 0);
    ok = ok && ses_trainer_open_lanes(t, e) && open_optimizers(t, e) &&
         (t->tape = ses_tape_new(t->dev, &(ses_tape_options){ .record = true }, e));
    if (ok && ses_comm_all_ok(o->comm, true, e)) return t;
    ses_comm_abort(o->comm, e);
    ses_trainer_free(t);
    return NULL;
}

void ses_trainer_free(ses_trainer *t)
{
    if (!t) return;
    ses_tape_free(t->tape);
    ses_trainer_close_lanes(t);
    for (size_t i = 0; i < t->n_stores; i++) ses_optim_free(t->optim[i]);
    ses_pruner_free(t->pruner);
    ses_buf_free(&t->log);
    ses_free(t->score);
    ses_dir_lock_free(t->lock);
    ses_free(t->dir);
    ses_free(t->settings);
    ses_free(t->best_dir);
    ses_free(t);
}

/* ---- a step ---- */

/* Counted from 1. */
bool ses_trainer_wrap_batch(const ses_trainer *t, int64_t index, ses_err *e)
{
    char where[200] = "";
    const ses_batch_source *s = &t->o.source;
    if (s->describe) s->describe(s->ctx, t->at.epoch, index, where, sizeof where);
    return ses_wrap(e, "update %" PRId64 ", epoch %" PRId64 ", batch %" PRId64 "%s%s%s", t->at.updates + 1,
                    t->at.epoch + 1, index + 1, *where ? " (" : "", where, *where ? ")" : "");
}

static bool grad_norm(ses_trainer *t, double *norm, ses_err *e)
{
    double sum = 0;
    if (t->lanes) return ses_lanes_grad_norm(t->lanes, norm, e);
    for (size_t i = 0; i < t->n_stores; i++) {
        double one = ses_store_grad_norm(t->store[i]);
        sum += one * one;
    }
    *norm = sqrt(sum);
    return true;
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

/* The weighted mean of the negative log likelihoods. */
static ses_tensor *weighted_loss(ses_trainer *t, const ses_batch *b, const ses_outputs *out, ses_err *e)
{
    const ses_output *logits = ses_outputs_find(out, "logits");
    ses_tensor *x = logits ? logits->tensor : NULL;
    int64_t rows = x ? ses_rows(x) : 0, labels = x ? ses_cols(x) : 0;
    double sum = 0;
    if (!x || !b->labels || rows != b->seqs) {
        ses_fail(e, SES_EUNSUPPORTED, "class weights are not supported for %s",
                 ses_model_class_name(t->o.model));
        return NULL;
    }
    ses_real *weight = ses_tape_host_alloc(t->tape, (size_t)(rows * labels), sizeof *weight);
    for (int64_t r = 0; weight && r < rows; r++) {
        if (b->labels[r] == SES_IGNORE_INDEX) continue;
        if (b->labels[r] < 0 || b->labels[r] >= labels) {
            ses_fail(e, SES_EARG, "label %d, expected 0 to %lld", (int)b->labels[r], (long long)labels - 1);
            return NULL;
        }
        sum += t->o.class_weights[b->labels[r]];
    }
    for (int64_t r = 0; weight && sum > 0 && r < rows; r++)
        if (b->labels[r] != SES_IGNORE_INDEX)
            weight[r * labels + b->labels[r]] = (ses_real)(-t->o.class_weights[b->labels[r]] / sum);
    x = weight ? ses_log_softmax(t->tape, x) : NULL;
    x = x ? ses_reshape(t->tape, x, SES_DIM(1, rows * labels)) : NULL;
    x = x ? ses_linear(t->tape, x, ses_tape_input(t->tape, weight, SES_DIM(1, rows * labels)), NULL,
                       SES_ACT_NONE, SES_OUT_IN)
          : NULL;
    return x ? ses_reshape(t->tape, x, SES_DIM(1)) : NULL;
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
    if (t->o.class_weights) {
        ses_batch unlabeled = *b; /* the model computes no loss of its own */
        unlabeled.labels = NULL;
        return ses_model_forward(t->o.model, t->tape, &unlabeled, &(ses_output_request){ .logits = true },
                                 &out, e)
                   ? weighted_loss(t, b, &out, e)
                   : NULL;
    }
    if (!ses_model_forward(t->o.model, t->tape, b, &(ses_output_request){ .logits = smooth }, &out, e))
        return NULL;
    if (!out.loss) ses_fail(e, SES_EARG, "the batch lacks labels for %s", ses_model_class_name(t->o.model));
    return smooth && out.loss ? smoothed_loss(t, b, &out, e) : out.loss;
}

static bool update_is_due(const ses_trainer *t)
{
    return t->at.accumulated + 1 >= t->o.accumulate || t->at.index + 1 >= t->epoch_batches;
}

/* The weight of a batch. */
static bool count_predictions(const ses_trainer *t, const ses_batch *b, int64_t *n, ses_err *e)
{
    *n = 1;
    if (!t->o.weight_by_tokens) return true;
    *n = t->o.predictions ? t->o.predictions(t->o.loss_ctx, b)
                          : ses_head_predictions(&t->o.model->class->head[0], b);
    return *n >= 0 ||
           ses_fail(e, SES_EUNSUPPORTED,
                    "the loss of this batch is not a mean over predictions, so that batches cannot be "
                    "weighted by their number; train without token weights");
}

/* Runs a batch on the tape and reads its loss. */
static bool run_tape(ses_trainer *t, const ses_batch *b, const ses_batch_run *r, ses_batch_row *row,
                     ses_err *e)
{
    const ses_batch_source *s = &t->o.source;
    ses_real value = 0;
    ses_tape_options o = { .record = true,
                           .train = !t->o.no_dropout,
                           .recompute = t->o.recompute,
                           .seed = t->o.seed,
                           .step = (uint32_t)r->number };
    ses_tape_reset(t->tape, &o);
    ses_tape_set_watch(t->tape, r->watch);
    for (size_t i = 0; i < t->n_stores && r->is_first; i++) ses_store_zero_grad(t->store[i]);
    ses_tensor *l = loss_of(t, b, e);
    if (!l) return false;
    ses_backward(t->tape, t->o.weight_by_tokens ? ses_scale(t->tape, l, (double)row->predictions) : l);
    if (!ses_tape_ok(t->tape, e)) return false;
    /* the next batch is built while a GPU is still computing */
    if (s->prefetch && r->next_epoch >= 0) s->prefetch(s->ctx, r->next_epoch, r->next_index);
    if (!ses_tape_read(t->tape, l, &value)) return ses_tape_ok(t->tape, e);
    row->loss = (double)value;
    return true;
}

bool ses_trainer_run_batch(ses_trainer *t, const ses_batch_run *r, ses_batch_row *row, ses_err *e)
{
    const ses_batch_source *s = &t->o.source;
    ses_batch b = { 0 };
    *row = (ses_batch_row){ 0 };
    if (!s->batch(s->ctx, t->at.epoch, r->index, &b, e) || !count_predictions(t, &b, &row->predictions, e) ||
        !run_tape(t, &b, r, row, e))
        return ses_trainer_wrap_batch(t, r->index, e);
    row->tokens = b.tokens + (b.target_cu_seqlens ? b.target_cu_seqlens[b.seqs] : 0);
    row->sequences = b.seqs;
    row->flops = ses_tape_flops(t->tape);
    return true;
}

bool ses_trainer_update(ses_trainer *t, double weight, ses_batch_range batches, ses_step_result *out,
                        ses_err *e)
{
    double mean = 1 / fmax(weight, 1), norm = 0;
    if (t->pruner) ses_pruner_gradients(t->pruner, fmax(weight, 1));
    if (!grad_norm(t, &norm, e)) return false;
    out->grad_norm = norm * mean;
    int64_t step;
    ses_schedule schedule = stage_schedule(t, &step);
    schedule.decays = t->at.decays;
    double rate = ses_schedule_at(&schedule, step);
    out->lr = t->o.optim.lr * rate;
    out->loss *= mean;
    out->updated = true;
    if (!isfinite(out->grad_norm))
        return ses_trainer_fail_not_finite(t, "gradient norm", out->grad_norm, batches, e);
    double momentum = ses_schedule_momentum_at(&schedule, step);
    for (size_t i = 0; i < t->n_stores && momentum >= 0; i++) ses_optim_set_momentum(t->optim[i], momentum);
    if (t->pruner) ses_pruner_expand(t->pruner);
    for (size_t i = 0; i < t->n_stores; i++)
        ses_optim_step(t->optim[i], is_scores(t, i) ? t->o.pruning.score_lr * rate : out->lr,
                       mean * ses_clip_scale(out->grad_norm, t->o.max_grad_norm));
    if (t->pruner) ses_pruner_apply(t->pruner, t->at.updates + 1);
    return true;
}

/* The batch after the current one. */
static void set_next(const ses_trainer *t, ses_batch_run *r)
{
    bool last = t->at.index + 1 >= t->epoch_batches,
         over = update_is_due(t) && t->at.updates + 1 >= t->total_updates;
    r->next_epoch = over ? -1 : t->at.epoch + last;
    r->next_index = last ? 0 : t->at.index + 1;
}

/* A step without lanes: one batch. */
static bool step(ses_trainer *t, ses_step_result *out, ses_err *e)
{
    ses_batch_run r = { .index = t->at.index, .number = t->at.batches, .is_first = !t->at.accumulated };
    ses_batch_row row;
    bool due = update_is_due(t);
    set_next(t, &r);
    if (!ses_trainer_run_batch(t, &r, &row, e)) return false;
    if (!isfinite(row.loss)) {
        ses_trainer_fail_not_finite(t, "loss", row.loss, (ses_batch_range){ t->at.index, t->at.index + 1 },
                                    e);
        return ses_trainer_wrap_batch(t, t->at.index, e);
    }
    out->loss = row.loss;
    t->at.accumulated++;
    t->at.accumulated_predictions += t->o.weight_by_tokens ? row.predictions : 0;
    t->at.accumulated_loss += row.loss * (double)row.predictions;
    if (due) {
        out->loss = t->at.accumulated_loss;
        double weight = (double)(t->o.weight_by_tokens ? t->at.accumulated_predictions : t->at.accumulated);
        ses_batch_range batches = { t->at.index + 1 - t->at.accumulated, t->at.index + 1 };
        if (!ses_trainer_update(t, weight, batches, out, e)) return ses_trainer_wrap_batch(t, t->at.index, e);
        t->at.updates++;
        t->at.accumulated = t->at.accumulated_predictions = 0;
        t->at.accumulated_loss = 0;
    }
    out->tokens = row.tokens;
    out->sequences = row.sequences;
    out->flops = row.flops;
    t->at.index++;
    t->at.batches++;
    t->at.tokens += out->tokens;
    t->at.sequences += out->sequences;
    t->at.flops += out->flops;
    return true;
}

static bool begin_epoch(ses_trainer *t, ses_err *e)
{
    const ses_batch_source *s = &t->o.source;
    t->at.epoch++;
    t->at.index = 0;
    t->epoch_batches = s->count(s->ctx, t->at.epoch);
    return unfreeze(t, t->at.epoch, e);
}

bool ses_trainer_step(ses_trainer *t, ses_step_result *out, ses_err *e)
{
    ses_err local = { 0 }, *why = e ? e : &local;
    *out = (ses_step_result){ 0 };
    ses_comm_set_update(t->o.comm, t->at.updates + 1);
    bool ok = t->at.index < t->epoch_batches || begin_epoch(t, why);
    ok = ok && (t->lanes ? ses_trainer_step_lanes(t, out, why) : step(t, out, why));
    if (!ok) ses_comm_abort(t->o.comm, why);
    if (ok) out->epoch = ses_trainer_epoch(t);
    return ok;
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
double ses_trainer_kept(const ses_trainer *t) { return t->pruner ? ses_pruner_kept(t->pruner) : NAN; }
bool ses_trainer_selects_best(const ses_trainer *t)
{
    return !t->pruner || ses_pruner_is_final(t->pruner, t->at.updates);
}

bool ses_trainer_gather_weights(ses_trainer *t, ses_err *e)
{
    for (size_t i = 0; i < t->n_stores && t->weights_outdated; i++)
        if (!ses_lanes_gather_values(t->lanes, i, false, e)) return false;
    t->weights_outdated = false;
    return true;
}

bool ses_trainer_swap_average(ses_trainer *t, ses_err *e)
{
    ses_optim_swap_ema(t->optim[0]);
    if (t->lanes && !ses_lanes_gather_values(t->lanes, 0, false, e)) return false;
    if (t->ranks > 1) ses_store_sync_bf16(t->store[0]); /* the copies of what other ranks own */
    return true;
}

bool ses_trainer_log(ses_trainer *t, const char *members, ses_err *e)
{
    ses_buf_appendf(&t->log, "{%s}\n", members);
    return ses_buf_ok(&t->log, e);
}
