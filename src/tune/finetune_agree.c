/* Settings that a resumed run shares with the run it continues, and values that all ranks of a run share. */
#include "tune/multi/mixture.h"

#include "base/alloc.h"
#include "comm/comm_impl.h"
#include "train/prune/pruner.h"
#include "train/ranks.h"
#include "train/train_options.h"

#include <inttypes.h>
#include <stdio.h>

/* The learning rates do not depend on the length of the run. */
static bool is_extensible(const ses_training_options *r)
{
    return !ses_schedule_uses_total(&(ses_schedule){ .name = r->schedule }) &&
           (r->warmup <= 0 || r->warmup >= 1);
}

/* Settings a resumed run must have in common with the run it continues, as a JSON object. */
char *ses_finetune_settings_json(const ses_finetune *f, ses_err *e)
{
    const ses_finetune_options *o = &f->o;
    const ses_training_options *r = &o->run;
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "task", f->task->name);
    if (f->task->loss_name) ses_json_member_string(w, "loss", f->task->loss_name);
    ses_json_member_int(w, "train_examples", ses_dataset_size(f->train.data));
    ses_json_member_int(w, "train_tokens", ses_dataset_tokens(f->train.data));
    if (o->train_size) ses_json_member_int(w, "train_size", o->train_size);
    if (o->shots) ses_json_member_int(w, "shots", o->shots);
    if (o->last_weights) ses_json_member_bool(w, "last_weights", true);
    if (!is_extensible(r)) { /* else a resumed run may be longer */
        ses_json_member_real(w, "epochs", r->epochs);
        ses_json_member_int(w, "steps", r->steps);
    }
    ses_json_member_int(w, "batch_size", r->tokens_per_batch ? 0 : r->batch_size);
    ses_json_member_int(w, "tokens_per_batch", r->tokens_per_batch);
    ses_json_member_int(w, "bucket", o->bucket);
    ses_json_member_int(w, "accumulate", r->accumulate);
    ses_training_put_lanes(r, w);
    ses_json_member_real(w, "lr", r->lr);
    ses_training_put_optimizer(r, w);
    for (size_t i = 0; i < o->n_set; i++) {
        char key[32];
        snprintf(key, sizeof key, "set_%zu", i);
        ses_json_member_string(w, key, o->set[i]);
    }
    if (o->embed) ses_json_member_string(w, "embed", o->embed);
    if (o->encoder) ses_json_member_string(w, "encoder", o->encoder);
    if (o->lm_layer) ses_json_member_int(w, "lm_layer", o->lm_layer);
    if (f->cross_view) ses_json_member_int(w, "unlabeled_examples", ses_cross_view_size(f->cross_view));
    if (o->task.crf) ses_json_member_bool(w, "crf", true);
    if (o->task.scheme) ses_json_member_string(w, "scheme", ses_tag_scheme_names[o->task.scheme]);
    if (o->task.inputs) {
        ses_json_member_real(w, "lm_loss", o->task.lm_loss);
        ses_json_member_bool(w, "both_orders", o->task.both_orders);
    }
    ses_json_member_real(w, "weight_decay", r->weight_decay);
    ses_json_member_real(w, "clip", r->max_grad_norm);
    ses_transfer_put_settings(&o->transfer, w);
    ses_exit_training_put_settings(f, w);
    ses_teacher_put_settings(&o->teacher, w);
    ses_pruning_put_settings(&o->pruning, w);
    if (o->quantize_aware) ses_json_member_bool(w, "quantize_aware", true);
    ses_json_member_real(w, "label_smoothing", o->label_smoothing);
    if (o->class_weights) ses_json_member_string(w, "class_weights", o->class_weights);
    if (f->mixture) ses_mixture_put_settings(f->mixture, w);
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, NULL, e);
    char *copy = text ? ses_strdup(text, e) : NULL;
    ses_json_writer_free(w);
    return copy;
}

static uint64_t hash_of(const ses_dataset *data)
{
    ses_batches *b =
        data ? ses_batches_new(data, &(ses_batching){ .max_examples = 1, .in_order = true }, NULL) : NULL;
    ses_batch_source s = b ? ses_batches_source(b) : (ses_batch_source){ 0 };
    uint64_t hash = b && s.hash ? s.hash(s.ctx) : 0;
    ses_batches_free(b);
    return hash;
}

/* All ranks have read the same data and models. */
bool ses_finetune_agree(ses_finetune *f, ses_err *e)
{
    char data[128];
    const ses_finetune_options *o = &f->o;
    ses_model *const model[] = { f->tuner->model };
    if (ses_comm_size(o->run.comm) == 1) return true;
    snprintf(data, sizeof data, "training data %016" PRIx64 ", evaluation data %016" PRIx64,
             hash_of(f->train.data), hash_of(f->eval.data));
    const ses_rank_value value[] = { { "the data (hash)", data } };
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (w) {
        ses_json_begin_object(w);
        ses_ranks_put_control(&o->run, w);
        ses_json_member_real(w, "eval-epochs", o->eval_epochs);
        ses_json_member_int(w, "patience", o->patience);
        ses_json_member_string(w, "metric", ses_finetune_metric(f));
        ses_json_member_int(w, "bootstrap", o->bootstrap);
        ses_json_end_object(w);
    }
    char *control = ses_ranks_settings_text(w, e);
    bool ok = ses_comm_all_ok(o->run.comm, control != NULL, e) &&
              ses_ranks_agree_settings(o->run.comm, f->settings, e) &&
              ses_ranks_agree_settings(o->run.comm, control, e) &&
              ses_ranks_agree(&o->run, value, SES_LEN(value), model, 1, e);
    ses_free(control);
    return ok;
}
