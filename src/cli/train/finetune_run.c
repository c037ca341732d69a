/* A fine-tuning run, part by part: data, model, trainer, training, measuring. */
#define _POSIX_C_SOURCE 200809L
#include "finetune_command.h"

#include "base/alloc.h"
#include "base/file.h"
#include "cli/ui/show_values.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- evaluation ---- */

static bool go_on(void *ctx, int64_t done, int64_t of)
{
    (void)ctx, (void)done, (void)of;
    return !ses_train_monitor_should_stop();
}

/* last: of the finished model, with confidence intervals where they are asked for. */
static bool measure(ses_finetune *f, bool last, ses_err *e)
{
    ses_task_outputs p;
    double begin = ses_seconds();
    ses_bootstrap_args how = { .resamples = last ? f->a->judge.resamples : 0,
                               .confidence = f->a->judge.confidence,
                               .seed = f->a->seed };
    ses_eval_report_free(&f->judged);
    bool ok = ses_finetuner_predict(f->tuner, &f->eval, &p, go_on, NULL, e) &&
              ses_eval_report_make(&f->judged, f->tuner, &f->eval, &p, &how, e);
    f->eval_seconds = ses_seconds() - begin;
    ses_task_outputs_free(&p);
    return ok;
}

const char *ses_finetune_metric_name(const ses_finetune *f)
{
    return f->a->metric ? f->a->metric : f->spec.best_metric;
}

static bool evaluate(void *ctx, double *metric, ses_err *e)
{
    ses_finetune *f = ctx;
    const char *name = ses_finetune_metric_name(f);
    if (!measure(f, false, e)) return false;
    const ses_scores *s = &f->judged.scores;
    *metric = f->judged.loss;
    if (strcmp(name, "loss") && !ses_scores_find(s, name, metric))
        return ses_fail(e, SES_EUSAGE, "--metric: no score is called \"%s\" here; the first is %s", name,
                        s->n ? s->item[0].name : "loss");
    if (!ses_run_log_on_evaluation(&f->run_log, s, f->judged.loss, e)) return false;
    double best = ses_trainer_state(f->trainer)->best;
    ses_train_monitor_on_event(
        &f->monitor,
        &(ses_training_event){ .kind = SES_TRAINING_EVALUATED,
                               .trainer = f->trainer,
                               .loss = f->judged.loss,
                               .metric = *metric,
                               .is_best = !isnan(*metric) &&
                                          (isnan(best) || (f->lower ? *metric < best : *metric > best)) });
    return true;
}

static void stepped(void *ctx, const ses_step_result *s)
{
    ses_finetune *f = ctx;
    ses_run_log_on_step(&f->run_log, s);
    ses_train_monitor_on_event(
        &f->monitor, &(ses_training_event){ .kind = SES_TRAINING_STEP, .trainer = f->trainer, .step = s });
}

static bool stop(void *ctx)
{
    (void)ctx;
    return ses_train_monitor_should_stop();
}

/* ---- the parts ---- */

static bool prepare_data(ses_finetune *f, ses_err *e)
{
    const ses_finetune_args *a = f->a;
    if (!a->model == !a->config) return ses_fail(e, SES_EUSAGE, "one of --model and --config is needed");
    if (a->eval_every && a->eval_epochs > 0)
        return ses_fail(e, SES_EUSAGE, "--eval-every counts updates, --eval-epochs epochs: not both");
    if (a->teacher.model && a->smoothing > 0)
        return ses_fail(e, SES_EUSAGE, "--label-smoothing and --teacher both soften labels: not both");
    if (!a->model && !a->tokenizer) return ses_fail(e, SES_EUSAGE, "--config needs --tokenizer");
    if (!ses_transfer_check(&a->transfer, a->model, f->kind->head && f->kind->head->allows_custom, e))
        return false;
    if (!ses_finetune_config(f, e) || !ses_transfer_config(&a->transfer, &f->base, e)) return false;
    f->train_rows = ses_data_args_open(&f->spec, a->train, NULL, e);
    if (!f->train_rows) return false;
    if (!ses_examples_check_learnable(f->train_rows, e)) return ses_wrap(e, "%s", a->train);
    if (!ses_finetune_labels(f, e)) return false;
    if (!a->eval) return true;
    ses_data_spec spec = ses_finetune_eval_spec(&a->tune, f->kind, &f->spec);
    f->eval_rows = ses_data_args_open(&spec, a->eval, spec.kind == f->spec.kind ? f->train_rows : NULL, e);
    return f->eval_rows != NULL;
}

static bool prepare_model(ses_finetune *f, ses_err *e)
{
    const ses_finetune_args *a = f->a;
    const char *tokenizer = a->tokenizer ? a->tokenizer : a->model;
    ses_finetuner_options o = ses_finetuner_options_from(&a->tune, f->kind, &f->spec);
    o.lora = ses_transfer_lora(&a->transfer, &f->lora);
    const char *type = ses_json_string(ses_json_get(ses_json_root(f->base), "model_type"), NULL);
    f->tuner = ses_finetuner_new(&o, tokenizer, type ? type : "", f->dev, e);
    if (!f->tuner || !ses_finetuner_set_labels(f->tuner, f->train_rows, e) || !ses_finetune_metric(f, e))
        return false;
    int64_t vocab = a->config ? ses_tokenizer_vocab_size(f->tuner->tokenizer) : 0;
    return ses_finetuner_build_config(f->tuner, ses_json_root(f->base), vocab, e) &&
           ses_finetuner_open_model(f->tuner, a->model, true, (uint64_t)a->seed, e) &&
           (ses_finetuner_encode(f->tuner, f->train_rows, &f->train, e) || ses_wrap(e, "%s", a->train)) &&
           (!a->eval || ses_finetuner_encode(f->tuner, f->eval_rows, &f->eval, e) ||
            ses_wrap(e, "%s", a->eval));
}

static bool optimizer(ses_finetune *f, ses_optim_options *o, ses_layer_groups **gradual, ses_err *e)
{
    const ses_finetune_args *a = f->a;
    if (!ses_optim_defaults(ses_optim_name((size_t)a->optimizer, NULL), o, e)) return false;
    o->lr = a->lr;
    if (!strcmp(o->name, "adafactor")) o->relative_step = o->scale_parameter = false; /* the rate is ours */
    return ses_transfer_groups(&a->transfer, f->tuner->model, a->decay, &f->layers, o, gradual, e);
}

/* What a resumed run must have in common with the one it goes on with. */
static char *settings(const ses_finetune *f, ses_err *e)
{
    const ses_finetune_args *a = f->a;
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return NULL;
    ses_json_begin_object(w);
    ses_json_member_string(w, "task", f->kind->name);
    if (f->kind->loss_name) ses_json_member_string(w, "loss", f->kind->loss_name);
    ses_json_member_int(w, "train_examples", ses_dataset_size(f->train.data));
    ses_json_member_int(w, "train_tokens", ses_dataset_tokens(f->train.data));
    ses_json_member_real(w, "epochs", a->epochs);
    ses_json_member_int(w, "steps", a->steps);
    ses_json_member_int(w, "batch_size", a->tokens ? 0 : a->batch);
    ses_json_member_int(w, "tokens_per_batch", a->tokens);
    ses_json_member_int(w, "bucket", a->bucket);
    ses_json_member_int(w, "accumulate", a->accumulate);
    ses_json_member_real(w, "lr", a->lr);
    ses_json_member_string(w, "optimizer", ses_optim_name((size_t)a->optimizer, NULL));
    ses_json_member_string(w, "schedule", ses_schedule_name((size_t)a->schedule, NULL));
    ses_json_member_real(w, "warmup", a->warmup);
    ses_json_member_real(w, "weight_decay", a->decay);
    ses_json_member_real(w, "clip", a->clip);
    ses_transfer_settings(&a->transfer, w);
    ses_teacher_put_settings(&a->teacher, w);
    ses_json_member_real(w, "label_smoothing", a->smoothing);
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, NULL, e);
    char *copy = text ? ses_strdup(text, e) : NULL;
    ses_json_writer_free(w);
    return copy;
}

static bool prepare_trainer(ses_finetune *f, ses_err *e)
{
    const ses_finetune_args *a = f->a;
    const char *metric = ses_finetune_metric_name(f);
    f->lower = ses_metric_lower_is_better(metric);
    f->batches = ses_batches_new(f->train.data,
                                 &(ses_batching){ .max_examples = a->batch,
                                                  .max_tokens = a->tokens,
                                                  .bucket_batches = a->bucket,
                                                  .seed = (uint64_t)a->seed },
                                 e);
    bool taught = a->teacher.model != NULL;
    if (taught && f->kind->loss)
        return ses_fail(e, SES_EUNSUPPORTED, "--teacher: %s is learned from its data alone", f->kind->name);
    f->settings = f->batches ? settings(f, e) : NULL;
    if (!f->settings ||
        !ses_teacher_open(&f->teacher, &a->teacher, NULL, f->tuner->model, f->tuner->tokenizer, f->dev, e))
        return false;
    ses_trainer_options o = {
        .model = f->tuner->model,
        .extra_params = { taught ? ses_distill_store(f->teacher.distill) : f->tuner->extra_params,
                          f->tuner->sentence ? ses_sentence_store(f->tuner->sentence) : NULL },
        .source = ses_batches_source(f->batches),
        .max_grad_norm = a->clip,
        .accumulate = a->accumulate,
        .epochs = a->epochs,
        .updates = a->steps,
        .seed = (uint64_t)a->seed,
        .recompute = a->recompute,
        .label_smoothing = a->smoothing,
        .loss = taught ? ses_distill_loss : f->kind->loss,
        .loss_ctx = taught ? (void *)f->teacher.distill : f->tuner,
        .eval_every = a->eval_every,
        .eval_epochs = a->eval_epochs,
        .lower_is_better = f->lower,
        .patience = a->patience,
        .dir = a->output,
        .save_every = a->save_every,
        .keep_checkpoints = a->keep,
        .settings = f->settings
    };
    if (!optimizer(f, &o.optim, &o.unfreezing, e) ||
        !ses_schedule_defaults(ses_schedule_name((size_t)a->schedule, NULL), &o.schedule, e))
        return false;
    if (a->warmup >= 1)
        o.schedule.warmup = (int64_t)a->warmup;
    else if (strcmp(o.schedule.name, "slanted"))
        o.warmup_ratio = a->warmup; /* which has its own rise */
    f->trainer = ses_trainer_new(&o, e);
    return f->trainer != NULL;
}

static void announce(const ses_finetune *f)
{
    char a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT], c[SES_NUMBER_TEXT], d[SES_NUMBER_TEXT],
        some[SES_NUMBER_TEXT + 16] = "";
    const ses_term *t = f->talk;
    const ses_store *s = ses_model_store(f->tuner->model);
    if (f->quiet) return;
    if (ses_store_trainable_count(s) < ses_store_element_count(s))
        snprintf(some, sizeof some, " (%s trained)", ses_grouped_text(d, ses_store_trainable_count(s)));
    fprintf(stderr, "%s%s%s: %s parameters%s, %s examples of %.1f tokens", ses_style_on(t, SES_BOLD),
            ses_model_class_name(f->tuner->model), ses_style_on(t, SES_PLAIN),
            ses_grouped_text(a, ses_store_element_count(s)), some,
            ses_grouped_text(b, ses_dataset_size(f->train.data)),
            (double)ses_dataset_tokens(f->train.data) / (double)ses_dataset_size(f->train.data));
    if (f->eval.data) fprintf(stderr, ", %s to measure with", ses_grouped_text(c, (int64_t)f->eval.n_rows));
    fprintf(stderr, ", %" PRId64 " updates\n", ses_trainer_total_updates(f->trainer));
    ses_notify_truncated(f->tuner, &f->train, f->a->train);
    if (f->eval.data) ses_notify_truncated(f->tuner, &f->eval, f->a->eval);
    ses_finetune_tell_head(f);
}

/* Where the run is followed; what --overwrite replaces goes. */
static bool prepare_logs(ses_finetune *f, ses_err *e)
{
    const ses_finetune_args *a = f->a;
    f->log = a->log ? ses_strdup(a->log, e) : ses_path_join(a->output, SES_RUN_LOG, e);
    f->board = a->board ? ses_strdup(a->board, e) : ses_path_join(a->output, SES_RUN_TENSORBOARD, e);
    if (!f->log || !f->board) return false;
    if (a->resume)
        return ses_training_resume(f->trainer, a->output, ses_train_monitor_on_event, &f->monitor, e);
    return ses_trainer_delete_checkpoints(f->trainer, e) && (a->board || ses_event_files_remove(f->board, e));
}

static bool train(ses_finetune *f, ses_run_end *end, ses_err *e)
{
    ses_trainer_hooks h = {
        .ctx = f, .on_step = stepped, .should_stop = stop, .evaluate = f->eval.data ? evaluate : NULL
    };
    ses_run_log_options o = {
        .path = f->log, .append = f->a->resume, .tensorboard_dir = f->board, .energy = f->a->energy
    };
    f->monitor.metric = ses_finetune_metric_name(f);
    if (!ses_run_log_open(&f->run_log, &o, f->trainer, e)) return false;
    ses_train_monitor_on_event(&f->monitor,
                               &(ses_training_event){ .kind = SES_TRAINING_STARTED, .trainer = f->trainer });
    announce(f);
    bool ok = ses_trainer_run(f->trainer, &h, end, e);
    ses_run_log_close(&f->run_log);
    return ok;
}

bool ses_finetune_one(ses_call *c, const ses_finetune_args *a, bool part, bool *stopped, ses_err *e)
{
    ses_finetune f = { .a = a, .talk = &c->err, .quiet = c->quiet };
    ses_run_end end = SES_RUN_COMPLETE;
    ses_device_options o = ses_compute_device_options(&a->tune.shared);
    ses_training_options place = {
        .output = a->output, .log = a->log, .resume = a->resume, .overwrite = a->overwrite
    };
    f.monitor = (ses_train_monitor){ .term = &c->err, .quiet = c->quiet };
    *stopped = false;
    if (!ses_finetune_resolve_task(&a->tune, &f.kind, &f.spec, e) || !ses_train_folder_check(&place, e))
        return false;
    f.dev = ses_device_open(a->tune.shared.device, &o, e);
    bool ok = f.dev && prepare_data(&f, e) && prepare_model(&f, e) && prepare_trainer(&f, e) &&
              prepare_logs(&f, e) && train(&f, &end, e);
    if (ok && end != SES_RUN_STOPPED && f.eval.data && !measure(&f, true, e)) {
        ok = ses_train_monitor_should_stop();
        if (ok) *e = (ses_err){ 0 };
        end = SES_RUN_STOPPED;
    }
    *stopped = ok && end == SES_RUN_STOPPED;
    if (*stopped && !part) ses_train_monitor_notify_stopped(f.trainer);
    if (ok && !*stopped) {
        ok = ses_finetune_write(&f, e);
        if (ok && !part && !c->quiet) ses_finetune_summary(&f, c, end);
        if (ok && !part && a->tune.shared.json) ok = ses_finetune_print(&f, e);
    }
    ses_finetune_free(&f);
    return ok;
}

bool ses_finetune_command(ses_call *c, ses_err *e)
{
    const ses_finetune_args *a = c->args;
    bool stopped;
    if (a->grid.n || a->seeds > 1) return ses_finetune_search(c, e);
    return ses_finetune_one(c, a, false, &stopped, e) && !stopped;
}
