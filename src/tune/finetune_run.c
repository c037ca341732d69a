/* A fine-tuning run: data, model, trainer, training, evaluation. */
#include "finetune_impl.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "comm/comm_impl.h"
#include "task/words/word_stack.h"
#include "text/tokenizer_files.h"
#include "text/tokenizer_match.h"
#include "token_vectors.h"
#include "train/model_presets.h"
#include "train/optim/optim_kind.h"
#include "train/prune/pruner.h"
#include "train/quantize_aware.h"
#include "train/ranks.h"
#include "train/train_folder.h"
#include "train/train_options.h"
#include "train/training_events.h"
#include "tune/data/class_weights.h"
#include "tune/few_shot/few_shot.h"
#include "tune/multi/mixture.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

ses_finetune_options ses_finetune_defaults(void)
{
    return (ses_finetune_options){
        .task = { .stride = 128,
                  .max_answer = 30,
                  .n_best = 20,
                  .max_target = 128,
                  .margin = -1,
                  .cosine_temperature = 0.05,
                  .lm_loss = 0.5 },
        .run = { .epochs = 3,
                 .batch_size = 32,
                 .accumulate = 1,
                 .lr = 5e-5,
                 .momentum = -1,
                 .warmup = 0.1,
                 .plateau_patience = 3,
                 .weight_decay = 0.01,
                 .max_grad_norm = 1,
                 .seed = 42,
                 .keep_checkpoints = 1,
                 .core_watts = 12,
                 .co2_per_kwh = 475 },
        .transfer = { .adapter = SES_ADAPT_AUTO,
                      .lora_rank = 8,
                      .lora_alpha = 16,
                      .virtual_tokens = 20,
                      .reduction = 16,
                      .layer_decay = 1,
                      .dropout = -1,
                      .attention_dropout = -1,
                      .classifier_dropout = -1 },
        .teacher = { .distill = { .temperature = 2, .soft = 5, .hard = 2 } },
        .confidence = 95,
        .mix_alpha = 1,
        .pruning = ses_pruning_defaults(),
    };
}

/* ---- events ---- */

bool ses_finetune_on_event(void *finetune, const ses_training_event *ev)
{
    ses_finetune *f = finetune;
    if (f->o.on_event && !f->o.on_event(f->o.ctx, ev)) f->is_stopped = true;
    return !f->is_stopped;
}

static bool on_eval_batch(void *ctx, int64_t done, int64_t total)
{
    ses_finetune *f = ctx;
    return ses_finetune_on_event(f, &(ses_training_event){ .kind = SES_TRAINING_EVALUATING,
                                                           .trainer = f->trainer,
                                                           .done = done,
                                                           .total = total,
                                                           .loss = NAN,
                                                           .metric = NAN });
}

static void on_step(void *ctx, const ses_step_result *s)
{
    ses_finetune *f = ctx;
    ses_run_log_on_step(&f->log, s);
    ses_finetune_on_event(
        f, &(ses_training_event){
               .kind = SES_TRAINING_STEP, .trainer = f->trainer, .step = s, .loss = s->loss, .metric = NAN });
}

static bool should_stop(void *ctx) { return ((ses_finetune *)ctx)->is_stopped; }

static bool is_first_rank(const ses_finetune *f) { return !ses_comm_rank(f->o.run.comm); }

/* ---- evaluation ---- */

bool ses_finetune_evaluate_part(ses_finetune *f, bool last, ses_err *e)
{
    ses_finetune_outputs p;
    double begin = ses_seconds();
    ses_bootstrap b = { last ? f->o.bootstrap : 0, f->o.confidence / 100, (uint64_t)f->o.run.seed };
    ses_eval_report_free(&f->report);
    ses_free(f->errors);
    f->errors = NULL;
    bool ok = ses_finetuner_predict(f->tuner, &f->eval, &p, on_eval_batch, f, e);
    f->is_stopped |= f->tuner->is_stopped;
    f->predict_seconds = ses_seconds() - begin;
    ok = ok && ses_eval_report_make(&f->report, f->tuner, &f->eval, &p, &b, e) &&
         (!last || ses_eval_errors_json(f->tuner, &f->eval, &p, f->spec.best_metric, &f->errors, e));
    f->eval_seconds = ses_seconds() - begin;
    ses_finetune_outputs_free(&p);
    return ok;
}

bool ses_finetune_evaluate(ses_finetune *f, bool last, ses_err *e)
{
    return f->mixture ? ses_mixture_evaluate(f->mixture, last, e) : ses_finetune_evaluate_part(f, last, e);
}

static bool evaluate(void *ctx, double *metric, ses_err *e)
{
    ses_finetune *f = ctx;
    const char *name = ses_finetune_metric(f);
    if (!ses_finetune_evaluate(f, false, e)) return false;
    double loss = *metric = ses_finetune_report(f)->loss;
    const ses_scores *s = &ses_finetune_report(f)->scores;
    if (strcmp(name, "loss") && !ses_scores_find(s, name, metric))
        return ses_fail(e, SES_EUSAGE, "metric: no score \"%s\"; the first of this task is %s", name,
                        s->n ? s->item[0].name : "loss");
    if (!ses_run_log_on_evaluation(&f->log, s, loss, e)) return false;
    double best = ses_trainer_state(f->trainer)->best;
    bool is_best = ses_trainer_selects_best(f->trainer) && !isnan(*metric) &&
                   (isnan(best) || (f->lower_is_better ? *metric < best : *metric > best));
    ses_finetune_on_event(f, &(ses_training_event){ .kind = SES_TRAINING_EVALUATED,
                                                    .trainer = f->trainer,
                                                    .scores = s,
                                                    .loss = loss,
                                                    .metric = *metric,
                                                    .is_best = is_best });
    return true;
}

/* ---- preparation ---- */

static bool check_options(const ses_finetune_options *o, const ses_finetune_task *task, ses_err *e)
{
    if (!ses_finetune_check_start(o, e)) return false;
    if (o->embed && task->target != SES_TARGET_TAGS)
        return ses_fail(e, SES_EUSAGE, "embed makes a tagger: it applies to the task tag only");
    if (!o->embed && (o->encoder || o->lm_layer))
        return ses_fail(e, SES_EUSAGE, "%s is a setting of a tagger: set embed, too",
                        o->encoder ? "encoder" : "lm-layer");
    if (!o->train == !o->train_examples)
        return ses_fail(e, SES_EUSAGE, "set either a training file or training examples");
    if (o->eval && o->eval_examples)
        return ses_fail(e, SES_EUSAGE, "set either an evaluation file or evaluation examples");
    if (o->run.eval_every && o->eval_epochs > 0)
        return ses_fail(e, SES_EUSAGE,
                        "evaluations are counted in updates (eval-every) or epochs (eval-epochs): set one");
    if (o->last_weights && (o->patience || o->run.eval_every > 0 || o->eval_epochs > 0))
        return ses_fail(
            e, SES_EUSAGE,
            "last-weights: nothing is evaluated during training, so that patience, eval-every and "
            "eval-epochs do not apply");
    if (o->teacher.model && o->label_smoothing > 0)
        return ses_fail(e, SES_EUSAGE, "a teacher and label smoothing both soften labels: set one");
    if (!ses_cross_view_check(o, task, e)) return false;
    if (o->task.crf && task->target != SES_TARGET_TAGS)
        return ses_fail(e, SES_EUSAGE, "crf applies to the task tag only");
    if (o->task.crf && (o->task.all_pieces || o->label_smoothing > 0 || o->teacher.model))
        return ses_fail(e, SES_EUSAGE,
                        "crf: a word has one label and the loss is the CRF's, so that %s does "
                        "not apply",
                        o->task.all_pieces ? "all-pieces"
                        : o->teacher.model ? "a teacher"
                                           : "label smoothing");
    if (!o->model && !o->embed && !o->tokenizer)
        return ses_fail(e, SES_EUSAGE, "a %s needs a tokenizer", o->config ? "config" : "model that is open");
    if (o->vectors && !o->config)
        return ses_fail(e, SES_EUSAGE,
                        "vectors are the first token vectors of a new model: set a config, too");
    if (o->open_model && ses_transfer_has_adapter(&o->transfer))
        return ses_fail(e, SES_EUSAGE, "an open model gets no adapter: open it with one");
    if (o->task.both_orders && !o->task.inputs)
        return ses_fail(e, SES_EUSAGE, "both-orders is a setting of inputs gpt1: set both");
    if (o->task.lm_loss > 0 && fabs(o->task.lm_loss - 0.5) > 0 && !o->task.inputs)
        return ses_fail(e, SES_EUSAGE, "lm-loss is a setting of inputs gpt1: set both");
    if (o->task.inputs && ses_transfer_has_adapter(&o->transfer))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "inputs gpt1 train the vectors of new tokens, which an adapter does not have");
    if (!ses_pruning_check(&o->pruning, e)) return false;
    if (o->pruning.criterion && o->n_also)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "prune: the models of several tasks share the layers that are pruned: train one task");
    return ses_transfer_check(&o->transfer, o->model, task->head && task->head->allows_custom, e);
}

const ses_json *ses_finetune_base_config(const ses_finetune *f)
{
    return f->o.open_model ? ses_model_config(f->o.open_model) : ses_json_root(f->config);
}

static bool read_config(ses_finetune *f, ses_err *e)
{
    if (f->o.open_model) return true;
    if (f->o.embed)
        ses_tagger_open(f, e);
    else if (f->student_dir)
        f->config = ses_teacher_student_config(&f->o.teacher, f->student_dir, e);
    else
        f->config =
            f->o.config ? ses_preset_load(f->o.config, e) : ses_model_config_open(f->o.model, NULL, e);
    bool is_new = f->o.config || f->o.embed; /* fit_config makes the changes */
    return f->config && (is_new || ses_preset_set(&f->config, f->o.set, f->o.n_set, e)) &&
           ses_transfer_config(&f->o.transfer, &f->config, e);
}

/* Adapts a config for random weights to the tokenizer: vocabulary and special tokens. */
static bool fit_config(ses_finetune *f, ses_err *e)
{
    const ses_finetune_options *o = &f->o;
    if (o->embed) return ses_tagger_fit(f, e);
    if (!o->config) return true;
    ses_json_doc *fitted = ses_preset_fit(ses_json_root(f->config), f->tuner->tokenizer, o->set, o->n_set, e);
    if (!fitted) return ses_wrap(e, "%s", o->config);
    ses_json_free(f->config);
    f->config = fitted;
    return true;
}

static ses_vectors *open_vectors(const char *path, ses_err *e)
{
    ses_vectors *v = ses_vectors_open(path, e);
    if (v && ses_vectors_read_words(v, 0, e)) return v;
    ses_vectors_free(v);
    return NULL;
}

/* Makes the model; a new one may start with the vectors of a file, whose width it gets. */
static bool open_model(ses_finetune *f, const ses_json *config, ses_err *e)
{
    const ses_finetune_options *o = &f->o;
    int64_t copied;
    ses_vectors *v = o->vectors ? open_vectors(o->vectors, e) : NULL;
    if (o->vectors && !v) return false;
    if (v) f->tuner->embedding_size = ses_vectors_dim(v);
    if (v && ses_vectors_duplicates(v))
        ses_training_notify(ses_finetune_on_event, f,
                            "%s: %" PRId64 " word%s occurred again; the first vector of a word counts",
                            o->vectors, ses_vectors_duplicates(v), ses_vectors_duplicates(v) == 1 ? "" : "s");
    bool ok = (o->open_model || ses_finetuner_build_config(f->tuner, config, e)) &&
              ses_finetuner_open_model(f->tuner, o->model, true, (uint64_t)o->run.seed, e);
    if (ok && o->quantize_aware) ok = ses_model_round_i8(f->tuner->model, e);
    if (ok && v)
        ok = ses_token_vectors_copy(f->tuner->model, f->tuner->tokenizer, v, &copied, e) ||
             ses_wrap(e, "%s", o->vectors);
    ses_vectors_free(v);
    return ok;
}

static bool prepare_model(ses_finetune *f, ses_err *e)
{
    const ses_finetune_options *o = &f->o;
    ses_finetuner_options t = ses_finetuner_options_from(&o->task, f->task, &f->spec);
    t.adapter_options = ses_transfer_adapter(&o->transfer, &f->adapter);
    t.model = o->open_model;
    const ses_json *config = ses_finetune_base_config(f);
    const char *type = ses_json_string(ses_json_get(config, "model_type"), NULL);
    if (o->embed)
        f->tuner = ses_tagger_tuner(f, &t, e);
    else {
        char *tokenizer = ses_tokenizer_home(o->tokenizer ? o->tokenizer : o->model, NULL, e);
        f->tuner = tokenizer ? ses_finetuner_new(&t, tokenizer, type ? type : "", f->dev, e) : NULL;
        ses_free(tokenizer);
    }
    if (f->tuner && o->model && o->tokenizer && !o->config &&
        !ses_tokenizer_check_model(f->tuner->tokenizer, o->tokenizer, o->model, e))
        return false;
    if (!f->tuner || !ses_finetuner_set_labels(f->tuner, f->train_rows, e) || !fit_config(f, e) ||
        !ses_left_to_right_config(f, e) || !ses_exit_training_config(f, e) ||
        !ses_finetune_check_metric(f, e))
        return false;
    return open_model(f, ses_finetune_base_config(f), e) &&
           ses_transfer_continue(&f->o.transfer, f->tuner->model, e) && ses_exit_training_begin(f, e) &&
           (ses_finetuner_encode(f->tuner, f->train_rows, &f->train, e) ||
            ses_wrap(e, "%s", f->train_name)) &&
           (!f->eval_rows || ses_finetuner_encode(f->tuner, f->eval_rows, &f->eval, e) ||
            ses_wrap(e, "%s", f->eval_name));
}

static bool set_optimizer(ses_finetune *f, ses_trainer_options *o, ses_err *e)
{
    const ses_training_options *r = &f->o.run;
    if (!ses_training_optimizer(r, &o->optim, e)) return false;
    if (ses_optim_find(o->optim.name)->average_weight)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "fine-tuning does not evaluate averages of weights: use "
                        "another optimizer than %s, e.g. sgd",
                        o->optim.name);
    if (!ses_transfer_groups(&f->o.transfer, f->tuner->model, r->weight_decay, &f->layers, &o->optim,
                             &o->unfreezing, e))
        return false;
    ses_exit_training_groups(f, &o->optim);
    return ses_training_schedule(r, o, e);
}

/* The other data sets of the run, whose batches take turns with its own. */
static bool mix(ses_finetune *f, ses_batch_source *out, ses_err *e)
{
    f->source = *out; /* the first data set's */
    f->mixture = ses_mixture_new(f, e);
    return f->mixture != NULL;
}

/* Labeled batches, or in turns with unlabeled ones. */
static bool prepare_source(ses_finetune *f, ses_batch_source *out, ses_err *e)
{
    const ses_finetune_options *o = &f->o;
    ses_batching how = { .max_examples = o->run.batch_size,
                         .max_tokens = o->run.tokens_per_batch,
                         .bucket_batches = o->bucket,
                         .seed = (uint64_t)o->run.seed };
    f->batches = ses_batches_new(f->train.data, &how, e);
    if (!f->batches) return false;
    *out = ses_batches_source(f->batches);
    if (f->task->wrap_source && !f->task->wrap_source(f->tuner, &f->train, f->batches, how.seed, out, e))
        return false;
    if (o->n_also) return mix(f, out, e);
    if (!o->unlabeled) return true;
    how.max_tokens = how.bucket_batches = 0; /* all epochs have as many batches */
    f->cross_view = ses_cross_view_new(f->tuner->model, how.seed, e);
    if (!f->cross_view || !ses_cross_view_read(f->cross_view, f->tuner, &f->spec, o->unlabeled, &how, e))
        return false;
    *out = ses_cross_view_source(f->cross_view, *out);
    return true;
}

static bool prepare_batches(ses_finetune *f, ses_err *e)
{
    const ses_finetune_options *o = &f->o;
    f->lower_is_better = ses_metric_lower_is_better(ses_finetune_metric(f));
    if (o->teacher.model && f->task->loss)
        return ses_fail(e, SES_EUNSUPPORTED, "distillation does not apply to %s", f->task->name);
    f->settings = prepare_source(f, &f->source, e) ? ses_finetune_settings_json(f, e) : NULL;
    return f->settings &&
           ses_teacher_open(&f->teacher, &o->teacher, NULL, f->tuner->model, f->tuner->tokenizer, f->dev, e);
}

static bool prepare_trainer(ses_finetune *f, ses_err *e)
{
    const ses_finetune_options *o = &f->o;
    const ses_training_options *r = &o->run;
    bool taught = o->teacher.model != NULL, own_loss = f->task->loss || o->task.few_shot;
    if (o->class_weights && ses_class_weights_check(o, f->task->data, own_loss, e))
        f->class_weights = ses_class_weights_read(o->class_weights, f->train_rows,
                                                  (size_t)ses_model_label_count(f->tuner->model), e);
    ses_trainer_options t = {
        .model = f->tuner->model,
        .extra_params = { taught          ? ses_distill_store(f->teacher.distill)
                          : f->cross_view ? ses_cross_view_store(f->cross_view)
                          : f->mixture    ? ses_mixture_store(f->mixture)
                                          : f->tuner->extra_params,
                          f->tuner->sentence ? ses_sentence_store(f->tuner->sentence) : NULL },
        .source = f->mixture ? ses_mixture_source(f->mixture) : f->source,
        .max_grad_norm = r->max_grad_norm,
        .accumulate = r->accumulate,
        .comm = r->comm,
        .lanes = r->lanes,
        .weight_by_tokens = r->weight_by_tokens,
        .comm_bf16 = r->comm_bf16,
        .epochs = r->epochs,
        .updates = r->steps,
        .seed = (uint64_t)r->seed,
        .recompute = r->recompute,
        .label_smoothing = o->label_smoothing,
        .class_weights = f->class_weights,
        .loss = taught          ? ses_distill_loss
                : f->cross_view ? ses_cross_view_loss
                : f->mixture    ? ses_mixture_loss
                                : f->task->loss,
        .loss_ctx = taught          ? (void *)f->teacher.distill
                    : f->cross_view ? (void *)f->cross_view
                    : f->mixture    ? (void *)f->mixture
                                    : f->tuner,
        .eval_every = r->eval_every,
        .eval_epochs = o->eval_epochs,
        .lower_is_better = f->lower_is_better,
        .patience = o->patience,
        .dir = r->output,
        .save_every = r->save_every,
        .keep_checkpoints = r->keep_checkpoints,
        .settings = f->settings,
        .pruning = o->pruning,
    };
    f->trainer =
        (!o->class_weights || f->class_weights) && set_optimizer(f, &t, e) ? ses_trainer_new(&t, e) : NULL;
    return f->trainer != NULL;
}

/* ---- new and free ---- */

/* A model name becomes its folder. */
static bool resolve_model(ses_finetune *f, ses_err *e)
{
    if (!f->o.model) return ses_transfer_resolve(&f->o.transfer, NULL);
    f->model_dir = ses_model_resolve(f->o.model, NULL, e);
    f->o.model = f->model_dir;
    return f->model_dir && ses_transfer_resolve(&f->o.transfer, f->model_dir);
}

static bool prepare(ses_finetune *f, ses_err *e)
{
    const ses_training_options *r = &f->o.run;
    if (!ses_finetune_resolve_task(&f->o.data, &f->o.task, &f->task, &f->spec, e) ||
        !ses_finetune_resolve_student(f, e) || !check_options(&f->o, f->task, e) ||
        (is_first_rank(f) && !ses_train_folder_check(r, e)))
        return false;
    return resolve_model(f, e) && read_config(f, e) && ses_finetune_prepare_data(f, e) &&
           prepare_model(f, e) && prepare_batches(f, e);
}

static ses_finetune *make(const ses_finetune_options *o, ses_device *d, ses_err *e)
{
    ses_finetune *f = ses_alloc(sizeof *f, e);
    if (!f) return NULL;
    f->o = *o;
    f->dev = d;
    f->report.loss = NAN;
    ses_tagger_defaults(&f->o);
    f->train_name = o->train ? o->train : "training examples";
    f->eval_name = o->eval ? o->eval : "evaluation examples";
    if (!f->o.run.optimizer) f->o.run.optimizer = "adamw";
    if (!f->o.run.schedule) f->o.run.schedule = "linear";
    return f;
}

ses_finetune *ses_finetune_new_part(const ses_finetune_options *o, ses_device *d, ses_err *e)
{
    ses_finetune *f = make(o, d, e);
    if (f && ses_finetune_find_task(f, e) && prepare(f, e)) return f;
    ses_finetune_free(f);
    return NULL;
}

/* The trainer has locked the folder: another run may have begun and ended there since the first check. */
static bool check_again(const ses_finetune *f, ses_err *e)
{
    const ses_training_options *r = &f->o.run;
    return ses_comm_all_ok(r->comm, !is_first_rank(f) || ses_train_folder_check(r, e), e);
}

ses_finetune *ses_finetune_new(const ses_finetune_options *o, ses_device *d, ses_err *e)
{
    ses_finetune *f = make(o, d, e);
    if (!f) return NULL;
    bool ok = ses_ranks_set_lanes(&f->o.run, e) && ses_finetune_find_task(f, e) && prepare(f, e);
    if (ses_comm_all_ok(o->run.comm, ok, e) && ses_finetune_agree(f, e) && prepare_trainer(f, e) &&
        check_again(f, e)) {
        f->tuner->comm = o->run.comm;
        return f;
    }
    ses_finetune_free(f);
    return NULL;
}

void ses_finetune_free(ses_finetune *f)
{
    if (!f) return;
    ses_run_log_close(&f->log);
    ses_model_free(f->without_empty);
    ses_trainer_free(f->trainer);
    ses_teacher_free(&f->teacher);
    ses_cross_view_free(f->cross_view);
    ses_mixture_free(f->mixture);
    ses_batches_free(f->batches);
    ses_finetune_set_free(&f->train);
    ses_finetune_set_free(&f->eval);
    ses_finetuner_free(f->tuner);
    ses_word_stack_free(f->words);
    ses_examples_free(f->own_train);
    ses_examples_free(f->whole_train);
    ses_examples_free(f->own_eval);
    ses_examples_free(f->divided_train);
    ses_examples_free(f->base_labels);
    ses_eval_report_free(&f->report);
    ses_free(f->errors);
    ses_json_free(f->config);
    ses_free(f->model_dir);
    ses_free(f->student_dir);
    ses_free(f->settings);
    ses_free(f->log_path);
    ses_free(f->tensorboard_dir);
    ses_free(f->metrics);
    ses_free(f->class_weights);
    ses_free(f);
}

/* ---- the run ---- */

/* Paths of logs, which rank 0 writes. */
static bool set_log_paths(ses_finetune *f, ses_err *e)
{
    const ses_training_options *r = &f->o.run;
    if (!is_first_rank(f)) return true;
    if (r->log || r->output)
        f->log_path = r->log ? ses_strdup(r->log, e) : ses_path_join(r->output, SES_RUN_LOG, e);
    if (r->tensorboard || r->output)
        f->tensorboard_dir =
            r->tensorboard ? ses_strdup(r->tensorboard, e) : ses_path_join(r->output, SES_RUN_TENSORBOARD, e);
    return (!(r->log || r->output) || f->log_path) && (!(r->tensorboard || r->output) || f->tensorboard_dir);
}

/* Rank 0: removes the checkpoints and logs of an earlier run. */
static bool clean_output(ses_finetune *f, ses_err *e)
{
    const ses_training_options *r = &f->o.run;
    return ses_trainer_check_disk(f->trainer, f->eval_rows != NULL, e) &&
           (r->resume ||
            (ses_trainer_delete_checkpoints(f->trainer, e) && ses_run_times_remove(r->output, e) &&
             (r->tensorboard || ses_event_files_remove(f->tensorboard_dir, e))));
}

/* Continues from the newest checkpoint, or starts anew. */
static bool prepare_output(ses_finetune *f, ses_err *e)
{
    const ses_training_options *r = &f->o.run;
    if (!set_log_paths(f, e)) return false;
    if (!r->output) return true;
    if (r->resume && !ses_training_resume(f->trainer, r->output, ses_finetune_on_event, f, &f->resumed, e))
        return false;
    if (f->resumed.is_complete) return true;
    return ses_comm_all_ok(r->comm, !is_first_rank(f) || clean_output(f, e), e);
}

static ses_run_log_options log_options(const ses_finetune *f)
{
    const ses_training_options *r = &f->o.run;
    return (ses_run_log_options){ .path = f->log_path,
                                  .append = r->resume,
                                  .tensorboard_dir = f->tensorboard_dir,
                                  .energy = ses_training_energy(r),
                                  .counters = { .gpu = ses_device_pci_bus_id(f->dev) },
                                  .before = f->resumed.before,
                                  .comm = r->comm,
                                  .lanes = r->lanes };
}

static bool train(ses_finetune *f, ses_run_end *end, ses_err *e)
{
    ses_trainer_hooks h = { .ctx = f,
                            .on_step = on_step,
                            .should_stop = should_stop,
                            .add_files = ses_finetune_add_run_info,
                            .evaluate = f->eval_rows && !f->o.last_weights ? evaluate : NULL };
    ses_run_log_options o = log_options(f);
    if (!ses_comm_all_ok(o.comm, ses_run_log_open(&f->log, &o, f->trainer, e), e)) return false;
    ses_finetune_on_event(
        f, &(ses_training_event){
               .kind = SES_TRAINING_STARTED, .trainer = f->trainer, .loss = NAN, .metric = NAN });
    ses_finetune_report_start(f);
    ses_finetune_report_labels(f, f);
    ses_finetune_report_set(f->tuner, &f->train, f->train_name, ses_finetune_on_event, f);
    if (f->eval_rows) ses_finetune_report_set(f->tuner, &f->eval, f->eval_name, ses_finetune_on_event, f);
    ses_finetune_report_overlap(f, ses_finetune_on_event, f);
    if (f->mixture) ses_mixture_report_sets(f->mixture);
    ses_finetune_report_head(f);
    bool ok = ses_trainer_run(f->trainer, &h, end, e);
    ses_run_log_close(&f->log);
    if (f->log.error.code)
        ses_training_warn(ses_finetune_on_event, f, "the log is incomplete: %s", f->log.error.msg);
    return ok && ses_run_log_share(&f->log, e);
}

/* The weights and figures of a run that was complete when it was resumed. */
static void restore(ses_finetune *f)
{
    ses_err why = { 0 };
    ses_run_log_options o = log_options(f);
    ses_run_log_restore(&f->log, &o, f->trainer);
    if (!f->o.last_weights && !ses_trainer_restore_best(f->trainer, &why))
        ses_training_warn(ses_finetune_on_event, f, "%s; the weights in memory are the last, not the best",
                          why.msg);
}

bool ses_finetune_run(ses_finetune *f, ses_run_end *end, ses_err *e)
{
    ses_run_end how = SES_RUN_COMPLETE;
    if (f->was_started) return ses_fail(e, SES_EARG, "the run was started before");
    f->was_started = true;
    bool ok = prepare_output(f, e);
    bool was_complete = ok && f->resumed.is_complete;
    if (was_complete) {
        how = SES_RUN_WAS_COMPLETE;
        restore(f);
    }
    ok = ok && (was_complete || train(f, &how, e));
    if (ok && how != SES_RUN_STOPPED && f->eval_rows && !ses_finetune_evaluate(f, true, e)) {
        ok = f->is_stopped;
        if (ok && e) *e = (ses_err){ 0 };
        how = SES_RUN_STOPPED;
    }
    if (end) *end = how;
    if (!ok) return ses_ranks_wrap(f->o.run.comm, e);
    if (how == SES_RUN_STOPPED || was_complete) return true;
    if (!ses_trainer_gather_weights(f->trainer, e) || !ses_finetune_finish_pruning(f, e)) return false;
    return ses_comm_all_ok(f->o.run.comm, !f->o.run.output || !is_first_rank(f) || ses_finetune_write(f, e),
                           e);
}
