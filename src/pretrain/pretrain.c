/* Pretraining runs: options, construction, time budget, evaluation, training. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/elmo/word_chars.h"
#include "base/file.h"
#include "comm/comm_impl.h"
#include "data/row_overlap.h"
#include "io/event_file.h"
#include "model/model_desc.h"
#include "pretrain_impl.h"
#include "train/model_presets.h"
#include "train/ranks.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)SES_MAX_BASELINES == (int)SES_MAX_OBJECTIVES, "a baseline per objective");

/* ---- options ---- */

ses_pretrain_options ses_pretrain_defaults(void)
{
    return (ses_pretrain_options){ .exponent = 1,
                                   .eval_tokens = 100000,
                                   .packing = -1,
                                   .objectives = "mlm",
                                   .objective = ses_objective_defaults,
                                   .teacher.distill = ses_distill_defaults,
                                   .lengths = "128",
                                   .ramp_from = 0.125,
                                   .beta2 = 0.98,
                                   .run = { .epochs = 1,
                                            .batch_size = 32,
                                            .accumulate = 1,
                                            .optimizer = "adamw",
                                            .schedule = "linear",
                                            .lr = 5e-4,
                                            .momentum = -1,
                                            .warmup = 0.06,
                                            .plateau_patience = 3,
                                            .weight_decay = 0.01,
                                            .max_grad_norm = 1,
                                            .seed = 42,
                                            .keep_checkpoints = 1,
                                            .core_watts = 12,
                                            .co2_per_kwh = 475 } };
}

const char *ses_pretrain_preset_name(size_t i) { return ses_preset_name(i); }

/* ---- construction ---- */

void ses_pretrain_free(ses_pretrain *p)
{
    if (!p) return;
    ses_run_log_close(&p->run_log);
    ses_trainer_free(p->trainer);
    ses_curriculum_free(p->curriculum);
    ses_objective_mix_free(p->objectives);
    ses_teacher_free(&p->teacher);
    ses_model_free(p->generator);
    ses_model_free(p->model);
    for (size_t i = 0; i < p->n_corpora; i++) ses_corpus_free(p->corpus[i]);
    ses_free(p->corpus);
    ses_free(p->part);
    ses_free(p->control_code);
    ses_json_free(p->config);
    ses_json_free(p->generator_config);
    ses_special_tokens_free(p->special_tokens);
    ses_tokenizer_free(p->tokenizer);
    ses_scores_free(&p->scores);
    ses_free(p->settings);
    ses_free(p->log);
    ses_free(p->tensorboard);
    free(p->model_dir);
    free(p->teacher_dir);
    ses_free(p);
}

/* Resolves the names of model and teacher to folders. */
static bool resolve_models(ses_pretrain *p, ses_err *e)
{
    if (p->o.model && !(p->model_dir = ses_model_resolve(p->o.model, NULL, e))) return false;
    if (!p->o.teacher.model) return true;
    p->teacher_dir = ses_model_resolve(p->o.teacher.model, NULL, e);
    p->o.teacher.model = p->teacher_dir;
    return p->teacher_dir != NULL;
}

static bool is_first_rank(const ses_pretrain *p) { return !ses_comm_rank(p->o.run.comm); }

/* Opens everything that is read; rank 0 looks after the output folder. */
static bool open_all(ses_pretrain *p, ses_err *e)
{
    if (is_first_rank(p) && !ses_train_folder_check(&p->o.run, e)) return false;
    return resolve_models(p, e) && ses_pretrain_open_texts(p, e) && ses_pretrain_open_models(p, e) &&
           (!is_first_rank(p) || ses_pretrain_load_plan(p, e));
}

/* All ranks have opened the same corpora and models. */
static bool agree(ses_pretrain *p, ses_err *e)
{
    char corpora[64];
    ses_comm *c = p->o.run.comm;
    uint64_t hash = 1469598103934665603u;
    ses_model *const model[] = { p->model, ses_pretrain_trained_generator(p) };
    for (size_t i = 0; i < p->n_corpora; i++)
        hash = (hash ^ ses_corpus_info_of(p->corpus[i])->content_hash) * 1099511628211u;
    snprintf(corpora, sizeof corpora, "%zu corpora, hash %016" PRIx64, p->n_corpora, hash);
    const ses_rank_value value[] = { { "the corpus", corpora } };
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (w) {
        ses_json_begin_object(w);
        ses_ranks_put_control(&p->o.run, w);
        ses_json_member_real(w, "max-time", p->o.max_seconds);
        ses_json_member_int(w, "eval-tokens", p->o.eval_tokens);
        ses_json_end_object(w);
    }
    char *control = ses_ranks_settings_text(w, e);
    bool ok = ses_comm_all_ok(c, control != NULL, e) && ses_ranks_agree_settings(c, control, e) &&
              ses_ranks_agree(&p->o.run, value, SES_LEN(value), model, model[1] ? 2 : 1, e) &&
              ses_comm_bcast(c, &p->updates, sizeof p->updates, 0, e);
    ses_free(control);
    return ok;
}

ses_pretrain *ses_pretrain_new(const ses_pretrain_options *o, ses_device *dev, ses_err *e)
{
    ses_err ignored = { 0 };
    if (!e) e = &ignored;
    ses_pretrain *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    p->o = *o;
    p->dev = dev;
    p->eval_loss = NAN;
    if (!p->o.objectives) p->o.objectives = "mlm";
    if (!p->o.lengths) p->o.lengths = "128";
    if (p->o.eval_tokens < 1) p->o.eval_tokens = 100000;
    if (!p->o.run.optimizer) p->o.run.optimizer = "adamw";
    if (!p->o.run.schedule) p->o.run.schedule = "linear";
    if (p->o.run.accumulate < 1) p->o.run.accumulate = 1;
    bool ok = ses_ranks_set_lanes(&p->o.run, e) && open_all(p, e);
    if (ses_comm_all_ok(o->run.comm, ok, e) && agree(p, e)) return p;
    ses_pretrain_free(p);
    return NULL;
}

ses_model *ses_pretrain_model(const ses_pretrain *p) { return p->model; }
ses_model *ses_pretrain_generator(const ses_pretrain *p) { return p->generator; }
const ses_trainer *ses_pretrain_trainer(const ses_pretrain *p) { return p->trainer; }

const ses_pretrain_result *ses_pretrain_result_of(ses_pretrain *p)
{
    ses_pretrain_result *r = &p->result;
    r->pass_tokens = p->curriculum ? ses_curriculum_pass_tokens(p->curriculum) : 0;
    r->n_baselines = p->trainer ? p->objectives->n_primary : 0;
    for (size_t i = 0; i < r->n_baselines; i++) {
        r->baseline[i].name = ses_pretrain_loss_name(p, i);
        r->baseline[i].loss = p->unigram_loss[i];
    }
    r->eval_loss = p->eval_loss;
    r->scores = &p->scores;
    if (p->run_log.seconds > 0) r->stats = ses_run_log_stats(&p->run_log);
    return r;
}

/* ---- events ---- */

/* Calls the callback; false stops the run. */
static bool on_event(void *ctx, const ses_training_event *event)
{
    ses_pretrain *p = ctx;
    if (p->o.on_event && !p->o.on_event(p->o.ctx, event)) p->cancelled = true;
    return !p->cancelled;
}

static bool send_event(ses_pretrain *p, ses_training_event event)
{
    event.trainer = p->trainer;
    return on_event(p, &event);
}

static bool on_eval_batch(void *ctx)
{
    return send_event(ctx,
                      (ses_training_event){ .kind = SES_TRAINING_EVALUATING, .loss = NAN, .metric = NAN });
}

static void on_step(void *ctx, const ses_step_result *s)
{
    ses_pretrain *p = ctx;
    ses_run_log_on_step(&p->run_log, s);
    send_event(p,
               (ses_training_event){ .kind = SES_TRAINING_STEP, .step = s, .loss = s->loss, .metric = NAN });
}

/* The clock of rank 0 decides about the time budget. */
static bool should_stop(void *ctx)
{
    ses_pretrain *p = ctx;
    p->out_of_time = is_first_rank(p) && p->deadline > 0 && ses_seconds() > p->deadline;
    return p->out_of_time || p->cancelled;
}

/* ---- evaluation ---- */

/* A loss over the vocabulary, which has a perplexity; not one of yes or no. */
static bool is_token_loss(const ses_objective_mix *mix, const char *name, size_t n)
{
    for (size_t i = 0; i < mix->n; i++) {
        const ses_objective *o = mix->item[i].objective;
        if (strlen(o->name) == n && !strncmp(o->name, name, n))
            return strstr(o->head, "lm") || strstr(o->head, "generation");
    }
    return true; /* the generator's */
}

/* Sets the scores: means, and perplexity = exp(loss). */
static bool set_scores(ses_pretrain *p, const ses_metric_sums *sums, ses_err *e)
{
    ses_scores_free(&p->scores);
    p->scores.item = ses_alloc_array(2 * sums->n + 1, sizeof *p->scores.item, e);
    if (!p->scores.item) return false;
    p->scores.cap = 2 * sums->n + 1;
    for (size_t i = 0; i < sums->n; i++) {
        const char *name = sums->item[i].name, *loss = strstr(name, "_loss");
        double mean = sums->item[i].count > 0 ? sums->item[i].sum / sums->item[i].count : NAN;
        ses_score *s = &p->scores.item[p->scores.n++];
        *s = (ses_score){ .value = mean, .low = NAN, .high = NAN };
        snprintf(s->name, sizeof s->name, "%s", name);
        if (!loss || !is_token_loss(p->objectives, name, (size_t)(loss - name))) continue;
        s = &p->scores.item[p->scores.n++];
        *s = (ses_score){ .value = exp(mean), .low = NAN, .high = NAN };
        snprintf(s->name, sizeof s->name, "%.*s_perplexity", (int)(loss - name), name);
    }
    return true;
}

/* Evaluates the moving average, if there is one. */
static bool measure(ses_pretrain *p, ses_err *e)
{
    ses_metric_sums sums;
    bool cancelled = false;
    if (!ses_trainer_swap_average(p->trainer, e)) return false;
    bool ok =
        ses_curriculum_evaluate(p->curriculum, p->o.eval_tokens, on_eval_batch, p, &sums, &cancelled, e) &&
        set_scores(p, &sums, e);
    ses_err swapping = { 0 };
    bool restored = ses_trainer_swap_average(p->trainer, &swapping);
    if (ok && !restored) ok = ses_fail(e, swapping.code, "%s", swapping.msg);
    p->cancelled |= cancelled;
    if (ok) p->eval_loss = ses_objective_mix_total_loss(p->objectives, &sums);
    return ok;
}

/* The trainer keeps the last weights, not the weights of the best evaluation: see keep_last. */
static bool evaluate(void *ctx, double *metric, ses_err *e)
{
    ses_pretrain *p = ctx;
    if (!measure(p, e)) return false;
    *metric = p->eval_loss;
    if (!ses_run_log_on_evaluation(&p->run_log, &p->scores, p->eval_loss, e)) return false;
    send_event(
        p, (ses_training_event){
               .kind = SES_TRAINING_EVALUATED, .scores = &p->scores, .loss = p->eval_loss, .metric = NAN });
    return true;
}

/* ---- time budget ---- */

enum { UNLIMITED = 1000000 }; /* updates */

/* Seconds per update at this sequence length, from a few updates whose results are discarded; < 0: failed. */
static double time_update(ses_pretrain *p, int64_t length, double budget, ses_err *e)
{
    double start = ses_seconds(), first = 0;
    int64_t steps = 0;
    ses_curriculum *c = ses_pretrain_open_curriculum(p, length, UNLIMITED, e);
    ses_trainer_options o = { .model = p->model,
                              .generator = ses_pretrain_trained_generator(p),
                              .loss = ses_objective_mix_loss,
                              .loss_ctx = p->objectives,
                              .predictions = ses_objective_mix_predictions,
                              .weight_by_tokens = p->o.run.weight_by_tokens,
                              .extra_params = { ses_distill_store(p->teacher.distill) },
                              .max_grad_norm = p->o.run.max_grad_norm,
                              .accumulate = p->o.run.accumulate,
                              .comm = p->o.run.comm,
                              .lanes = p->o.run.lanes,
                              .recompute = p->o.run.recompute,
                              .updates = UNLIMITED };
    if (c) o.source = ses_curriculum_source(c);
    ses_trainer *t = c && ses_pretrain_set_optimizer(p, &o, e) ? ses_trainer_new(&o, e) : NULL;
    bool ok = ses_comm_all_ok(p->o.run.comm, t != NULL, e), more = true;
    for (ses_step_result s; ok && more; steps++) {
        ok = ses_trainer_step(t, &s, e);
        if (!steps) first = ses_seconds(); /* the first batch allocates memory and is not counted */
        more = steps < 2 || (ses_seconds() - start < budget && steps < 200);
        ok = ok && ses_comm_bcast(p->o.run.comm, &more, sizeof more, 0, e);
    }
    double each = ok && steps > 1 ? (ses_seconds() - first) / (double)(steps - 1) : -1;
    ses_trainer_free(t);
    ses_curriculum_free(c);
    return p->o.run.lanes > 1 ? each
                              : each * (double)p->o.run.accumulate; /* a step is an update, or a batch */
}

/* Sets the number of updates that fit into max_seconds: the stages' times, weighted by their fractions, in
 * 95 % of the budget; the rest is for evaluations and writing. */
static bool fit_time_budget(ses_pretrain *p, ses_err *e)
{
    double start = ses_seconds(), mean = 0;
    ses_curriculum_options o = { 0 };
    if (!(p->o.max_seconds > 0) || p->updates) return true;
    if (!ses_pretrain_parse_lengths(p, &o, e)) return false;
    for (size_t i = 0; i < o.n_stages; i++) {
        double t = time_update(p, o.stage[i].length, p->o.max_seconds * 0.02 / (double)o.n_stages, e);
        if (t < 0) return false;
        mean += o.stage[i].fraction * t;
    }
    if (!ses_pretrain_open_models(p, e)) return false; /* initial weights again */
    double left = p->o.max_seconds - (ses_seconds() - start);
    p->updates = (int64_t)fmax(1, 0.95 * left / mean);
    p->deadline = start + p->o.max_seconds;
    if (!ses_comm_bcast(p->o.run.comm, &p->updates, sizeof p->updates, 0, e)) return false;
    ses_training_notify(on_event, p, "%.3g s per update: %" PRId64 " updates in %g s", mean, p->updates,
                        p->o.max_seconds);
    return true;
}

static void warn_late(ses_pretrain *p)
{
    ses_training_warn(on_event, p,
                      "the time was over after %" PRId64 " of %" PRId64
                      " updates, which took longer than at the start of the run: the schedule has not "
                      "reached its end, so the learning rate may still be high; set the number of updates "
                      "(steps) if other programs use the machine",
                      ses_trainer_state(p->trainer)->updates, p->updates);
}

/* ---- the run ---- */

/* Rank 0: removes the files of an earlier run, or stores the length of a resumed one, which may be longer. */
static bool clean_output(ses_pretrain *p, ses_err *e)
{
    const ses_training_options *r = &p->o.run;
    if (!ses_trainer_check_disk(p->trainer, p->n_eval > 0, e)) return false;
    if (r->resume) return p->o.max_seconds > 0 || ses_pretrain_save_plan(p, e);
    return ses_trainer_delete_checkpoints(p->trainer, e) && ses_run_times_remove(r->output, e) &&
           (r->tensorboard || ses_event_files_remove(p->tensorboard, e)) && ses_pretrain_save_plan(p, e);
}

/* Paths of logs, which rank 0 writes. */
static bool set_log_paths(ses_pretrain *p, ses_err *e)
{
    const ses_training_options *r = &p->o.run;
    if (!is_first_rank(p)) return true;
    if (r->log || r->output)
        p->log = r->log ? ses_strdup(r->log, e) : ses_path_join(r->output, SES_RUN_LOG, e);
    if (r->tensorboard || r->output)
        p->tensorboard =
            r->tensorboard ? ses_strdup(r->tensorboard, e) : ses_path_join(r->output, SES_RUN_TENSORBOARD, e);
    return (!(r->log || r->output) || p->log) && (!(r->tensorboard || r->output) || p->tensorboard);
}

/* Prepares logs and checkpoints in the output folder: resumes, or starts anew. */
static bool prepare_output(ses_pretrain *p, ses_err *e)
{
    const ses_training_options *r = &p->o.run;
    if (!set_log_paths(p, e)) return false;
    if (!r->output) return true;
    if (r->resume && !ses_training_resume(p->trainer, r->output, on_event, p, &p->resumed, e)) return false;
    if (p->resumed.is_complete) return true;
    return ses_comm_all_ok(r->comm, !is_first_rank(p) || clean_output(p, e), e);
}

static bool compute_baselines(ses_pretrain *p, ses_err *e)
{
    for (size_t i = 0; i < p->objectives->n_primary; i++)
        if (!ses_curriculum_unigram_loss(p->curriculum, i, p->o.eval_tokens, &p->unigram_loss[i], e))
            return false;
    return true;
}

static void report_skipped(ses_pretrain *p)
{
    int64_t n = ses_curriculum_pass_skipped(p->curriculum);
    if (n > 0)
        ses_training_notify(
            on_event, p, "%" PRId64 " passage%s of fewer than %" PRId64 " tokens %s skipped in each pass", n,
            n > 1 ? "s" : "", ses_objective_mix_min_passage(p->objectives), n > 1 ? "are" : "is");
}

/* Documents of --eval that are trained on. */
static bool report_overlap(ses_pretrain *p, ses_err *e)
{
    ses_row_overlap o;
    for (size_t i = 0; p->o.eval_corpus && i < p->n_parts; i++) {
        if (!ses_corpus_overlap(p->corpus[i], p->corpus[p->n_parts], &o, e)) return false;
        if (o.shared)
            ses_training_notify(
                on_event, p,
                "%s: %zu of %zu documents are also in the training data, %s: scores on them do "
                "not measure generalization",
                p->o.eval_corpus, o.shared, o.rows, p->o.corpora[i]);
    }
    return true;
}

static void report_shortened(ses_pretrain *p)
{
    int64_t n = p->n_shortened_words;
    if (n > 0)
        ses_training_notify(on_event, p,
                            "%" PRId64 " word%s of the vocabulary %s longer than %" PRId64
                            " bytes: only the beginning of such words is read",
                            n, n > 1 ? "s" : "", n > 1 ? "are" : "is",
                            ses_word_max_bytes(p->model->c.chars.per_word));
}

static ses_run_log_options log_options(const ses_pretrain *p)
{
    const ses_training_options *r = &p->o.run;
    return (ses_run_log_options){ .path = p->log,
                                  .append = r->resume,
                                  .tensorboard_dir = p->tensorboard,
                                  .energy = ses_training_energy(r),
                                  .counters = { .gpu = ses_device_pci_bus_id(p->dev) },
                                  .before = p->resumed.before,
                                  .comm = r->comm,
                                  .lanes = r->lanes };
}

/* Evaluates the final weights. The callback may stop it. */
static bool measure_last(ses_pretrain *p, ses_run_end *end, ses_err *e)
{
    if (measure(p, e)) return true;
    if (!p->cancelled) return false;
    if (e) *e = (ses_err){ 0 };
    *end = SES_RUN_STOPPED;
    return true;
}

/* The figures and scores of a run that was complete when it was resumed. */
static bool restore(ses_pretrain *p, ses_run_end *end, ses_err *e)
{
    ses_run_log_options o = log_options(p);
    *end = SES_RUN_WAS_COMPLETE;
    ses_run_log_restore(&p->run_log, &o, p->trainer);
    return compute_baselines(p, e) && (!p->n_eval || measure_last(p, end, e));
}

static bool train(ses_pretrain *p, ses_run_end *end, ses_err *e)
{
    ses_trainer_hooks h = { .ctx = p,
                            .on_step = on_step,
                            .should_stop = should_stop,
                            .add_files = ses_pretrain_add_run_info,
                            .evaluate = p->n_eval ? evaluate : NULL };
    ses_run_log_options o = log_options(p);
    bool opened =
        compute_baselines(p, e) && report_overlap(p, e) && ses_run_log_open(&p->run_log, &o, p->trainer, e);
    if (!ses_comm_all_ok(o.comm, opened, e)) return false;
    report_skipped(p);
    report_shortened(p);
    send_event(p, (ses_training_event){ .kind = SES_TRAINING_STARTED, .loss = NAN, .metric = NAN });
    bool ok = ses_trainer_run(p->trainer, &h, end, e);
    ses_run_log_close(&p->run_log);
    if (p->run_log.error.code)
        ses_training_warn(on_event, p, "the log is incomplete: %s", p->run_log.error.msg);
    ok = ok && ses_run_log_share(&p->run_log, e) &&
         ses_comm_bcast(o.comm, &p->out_of_time, sizeof p->out_of_time, 0, e);
    bool late = ok && *end == SES_RUN_STOPPED && p->out_of_time;
    if (late) *end = SES_RUN_COMPLETE, warn_late(p);
    bool measured = p->scores.n && !late; /* false also for a run that was resumed at its end */
    return ok && (*end == SES_RUN_STOPPED || measured || !p->n_eval || measure_last(p, end, e));
}

bool ses_pretrain_run(ses_pretrain *p, ses_run_end *end, ses_err *e)
{
    ses_run_end how = SES_RUN_COMPLETE;
    if (p->was_started) return ses_fail(e, SES_EARG, "the run was started before");
    p->was_started = true;
    bool ok = fit_time_budget(p, e) && ses_pretrain_open_trainer(p, e) && prepare_output(p, e);
    ok = ok && (p->resumed.is_complete ? restore(p, &how, e) : train(p, &how, e));
    if (end) *end = how;
    if (!ok) return ses_ranks_wrap(p->o.run.comm, e);
    if (how == SES_RUN_STOPPED) return true;
    if (!ses_trainer_swap_average(p->trainer, e) || !ses_trainer_gather_weights(p->trainer, e)) return false;
    bool written =
        how == SES_RUN_WAS_COMPLETE || !p->o.run.output || !is_first_rank(p) || ses_pretrain_write(p, e);
    return ses_comm_all_ok(p->o.run.comm, written, e);
}
