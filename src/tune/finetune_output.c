/* The output folder of a fine-tuning run: model, tokenizer, results, run.json. */
#include "finetune_impl.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
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
    ses_energy_put_results(&f->log.energy, &f->log.options.energy, w);
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
    ses_json_member_int(w, "train_samples", ses_dataset_size(f->train.data));
    if (f->train.n_shortened_words)
        ses_json_member_int(w, "train_shortened_words", f->train.n_shortened_words);
}

static void put_eval(const ses_finetune *f, ses_json_writer *w)
{
    if (!f->eval_rows) return;
    ses_eval_report_put(&f->report, w);
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
    if (!w) return false;
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

/* The tokenizer of a tagger exists in memory only. */
static bool write_tokenizer(const ses_finetuner *t, const char *dir, ses_err *e)
{
    if (t->tokenizer_path) return ses_train_folder_tokenizer(t->tokenizer_path, t->tokenizer, dir, e);
    char *path = ses_path_join(dir, "tokenizer.json", e);
    bool ok = path && ses_tokenizer_save(t->tokenizer, path, false, e);
    ses_free(path);
    return ok;
}

static bool write_all(void *ctx, const char *dir, ses_err *e)
{
    ses_finetune *f = ctx;
    char *state = ses_path_join(dir, "trainer_state.json", e);
    bool ok = state && ses_finetuner_save(f->tuner, dir, &(ses_save_options){ .dtype = SES_F32 }, e) &&
              write_tokenizer(f->tuner, dir, e) && copy_generation_config(f, dir, e) &&
              ses_trainer_write_state(f->trainer, state, false, e) &&
              write_results(f, dir, "train_results.json", true, false, e) &&
              (!f->eval_rows || write_results(f, dir, "eval_results.json", false, true, e)) &&
              write_results(f, dir, "all_results.json", true, true, e) &&
              ses_finetune_write_errors(f, dir, e) && write_run_info(f, NULL, dir, e) &&
              ses_model_card_write(f, dir, e);
    ses_free(state);
    return ok;
}

bool ses_finetune_write(ses_finetune *f, ses_err *e)
{
    const char *error = ses_trainer_restore_error(f->trainer);
    if (error)
        ses_training_warn(ses_finetune_on_event, f, "%s; the model has the last weights, not the best",
                          error);
    return ses_train_folder_write(f->o.run.output, write_all, f, e);
}
