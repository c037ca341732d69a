/* The output folder of a fine-tuning run: model, tokenizer, results, run.json. */
#include "tune/multi/mixture.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "train/prune/prune_report.h"
#include "train/train_folder.h"
#include "train/training_events.h"

#include <math.h>
#include <string.h>

/* ---- results ---- */

/* A classifier without a trainer. */
static void put_classifier(const ses_finetune *f, ses_json_writer *w)
{
    double n = (double)ses_examples_count(f->train_rows), loss = f->tuner->classifier->train_loss;
    if (!isnan(loss)) ses_json_member_real(w, "train_loss", loss);
    ses_json_member_real(w, "train_runtime", f->log.seconds);
    ses_json_member_real(w, "train_samples_per_second", n / fmax(f->log.seconds, 1e-9));
    ses_energy_put_results(&f->log.energy, &f->log.options.energy, f->log.seconds, w);
    ses_json_member_int(w, "train_peak_memory_bytes", (int64_t)ses_peak_memory());
    ses_json_member_int(w, "train_samples", (int64_t)n);
}

static void put_train(const ses_finetune *f, ses_json_writer *w)
{
    if (f->tuner->classifier) {
        put_classifier(f, w);
        return;
    }
    ses_run_log_put_results(&f->log, w);
    ses_json_member_int(w, "train_samples",
                        f->mixture ? ses_mixture_size(f->mixture) : ses_dataset_size(f->train.data));
    if (f->train.n_shortened_words)
        ses_json_member_int(w, "train_shortened_words", f->train.n_shortened_words);
    if (ses_finetune_pruning(f)) ses_pruning_report_put(ses_finetune_pruning(f), w);
}

static void put_eval(const ses_finetune *f, ses_json_writer *w)
{
    if (!f->eval_rows) return;
    ses_eval_report_put(ses_finetune_report(f), w);
    if (f->overlap.shared) ses_json_member_int(w, "eval_samples_in_train", (int64_t)f->overlap.shared);
    ses_json_member_real(w, "eval_runtime", f->eval_seconds);
    ses_json_member_real(w, "eval_predict_runtime", f->predict_seconds);
    ses_json_member_real(w, "eval_samples_per_second", (double)f->eval.n_rows / fmax(f->eval_seconds, 1e-9));
    if (f->eval.n_shortened_words) ses_json_member_int(w, "eval_shortened_words", f->eval.n_shortened_words);
}

void ses_finetune_put_parts(const ses_finetune *f, bool train, bool eval, ses_json_writer *w)
{
    if (train) put_train(f, w);
    if (eval) put_eval(f, w);
}

void ses_finetune_put_results(const ses_finetune *f, ses_json_writer *w)
{
    ses_finetune_put_parts(f, true, true, w);
}

static bool write_results(const ses_finetune *f, const char *dir, const char *name, bool train, bool eval,
                          ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(4, e);
    ses_json_begin_object(w);
    ses_finetune_put_parts(f, train, eval, w);
    ses_json_end_object(w);
    return ses_json_writer_save(w, dir, name, false, e);
}

/* ---- the folder ---- */

static bool write_run_info(const ses_finetune *f, const ses_run_totals *totals, const char *dir, ses_err *e)
{
    ses_run_info info = { .command = f->o.command,
                          .options = f->o.command_options,
                          .model = f->tuner->model,
                          .metric = ses_finetune_metric(f),
                          .lower_is_better = f->lower_is_better,
                          .totals = totals };
    return ses_run_info_write(&info, dir, e);
}

bool ses_finetune_add_run_info(void *finetune, const char *dir, ses_err *e)
{
    const ses_finetune *f = finetune;
    ses_run_totals totals;
    if (!ses_run_log_totals(&f->log, &totals, e)) return false;
    return !dir || (write_run_info(f, &totals, dir, e) &&
                    ses_run_times_add(f->o.run.output, ses_trainer_state(f->trainer), &totals,
                                      ses_comm_size(f->o.run.comm), e));
}

/* Generation settings of the base model. */
static bool copy_generation_config(const ses_finetune *f, const char *dir, ses_err *e)
{
    bool exists;
    return !f->task->generates || !f->o.model ||
           ses_train_folder_copy(f->o.model, "generation_config.json", dir, &exists, e);
}

bool ses_finetune_write_errors(const ses_finetune *f, const char *dir, ses_err *e)
{
    if (!f->errors) return true;
    char *path = ses_path_join(dir, SES_RUN_ERRORS, e);
    bool ok = path && ses_file_write(path, f->errors, strlen(f->errors), false, e);
    ses_free(path);
    return ok;
}

/* The tokenizer of a tagger exists in memory only; one with new tokens keeps the files beside
 * tokenizer.json. */
static bool write_tokenizer(const ses_finetuner *t, const char *dir, ses_err *e)
{
    static const char *const beside[] = { "tokenizer_config.json", "special_tokens_map.json" };
    for (size_t i = 0; t->has_new_tokens && ses_path_is_dir(t->tokenizer_path) && i < SES_LEN(beside); i++) {
        bool exists;
        if (!ses_train_folder_copy(t->tokenizer_path, beside[i], dir, &exists, e)) return false;
    }
    if (t->tokenizer_path && !t->has_new_tokens)
        return ses_train_folder_tokenizer(t->tokenizer_path, t->tokenizer, dir, e);
    char *path = ses_path_join(dir, "tokenizer.json", e);
    bool ok = path && ses_tokenizer_save(t->tokenizer, path, false, e);
    ses_free(path);
    return ok;
}

bool ses_finetune_write_run(ses_finetune *f, const char *dir, ses_err *e)
{
    char *state = ses_path_join(dir, "trainer_state.json", e);
    bool ok = state && ses_trainer_write_state(f->trainer, state, false, e) &&
              write_results(f, dir, "train_results.json", true, false, e) &&
              (!f->eval_rows || write_results(f, dir, "eval_results.json", false, true, e)) &&
              write_results(f, dir, "all_results.json", true, true, e) && write_run_info(f, NULL, dir, e);
    ses_free(state);
    return ok;
}

static bool write_all(void *ctx, const char *dir, ses_err *e)
{
    ses_finetune *f = ctx;
    return ses_finetune_save_model(f, dir, e) && write_tokenizer(f->tuner, dir, e) &&
           copy_generation_config(f, dir, e) && ses_finetune_write_run(f, dir, e) &&
           ses_finetune_write_errors(f, dir, e) && ses_model_card_write(f, dir, e);
}

bool ses_finetune_write_folder(ses_finetune *f, const char *dir, ses_err *e)
{
    return ses_train_folder_write(dir, write_all, f, e);
}

bool ses_finetune_write(ses_finetune *f, ses_err *e)
{
    const char *error = ses_trainer_restore_error(f->trainer);
    if (error)
        ses_training_warn(ses_finetune_on_event, f, "%s; the model has the last weights, not the best",
                          error);
    return f->mixture ? ses_mixture_write(f->mixture, e) : ses_finetune_write_folder(f, f->o.run.output, e);
}

/* ---- what a run has trained ---- */

const ses_eval_report *ses_finetune_report(const ses_finetune *f)
{
    return f->mixture ? ses_mixture_report(f->mixture) : &f->report;
}

const char *ses_finetune_folder(const ses_finetune *f, size_t i)
{
    return f->mixture ? ses_mixture_name(f->mixture, i) : NULL;
}

ses_model *ses_finetune_model(const ses_finetune *f) { return f->tuner->model; }
ses_trainer *ses_finetune_trainer(const ses_finetune *f) { return f->trainer; }
size_t ses_finetune_labels(const ses_finetune *f) { return f->tuner->n_labels; }

const char *ses_finetune_label(const ses_finetune *f, size_t i)
{
    return i < f->tuner->n_labels ? f->tuner->label[i] : NULL;
}

ses_training_stats ses_finetune_stats(const ses_finetune *f) { return ses_run_log_stats(&f->log); }

ses_predictor *ses_finetune_predictor(ses_finetune *f)
{
    ses_predictor *p = &f->predictor;
    if (p->tuner) return p;
    *p = (ses_predictor){ .o = { .data = f->o.data,
                                 .task = f->o.task,
                                 .bootstrap = f->o.bootstrap,
                                 .confidence = f->o.confidence,
                                 .seed = f->o.run.seed,
                                 .on_event = f->o.on_event,
                                 .ctx = f->o.ctx },
                          .dev = f->dev,
                          .task = f->task,
                          .spec = ses_finetune_eval_spec(&f->o.task, f->task, &f->spec),
                          .labels = f->task->has_label_names ? f->train_rows : NULL,
                          .has_label_names = f->task->has_label_names,
                          .tuner = f->tuner,
                          .borrows_tuner = true };
    return p;
}
