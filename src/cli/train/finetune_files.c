/* What a fine-tuning run leaves in its folder, and what it says at the end. */
#include "finetune_command.h"
#include "train/model_presets.h"

#include "base/alloc.h"
#include "base/file.h"
#include "cli/inspect/html_report.h"
#include "cli/ui/show_values.h"
#include "command_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void ses_finetune_free(ses_finetune *f)
{
    ses_run_log_close(&f->run_log);
    ses_trainer_free(f->trainer);
    ses_teacher_free(&f->teacher);
    ses_batches_free(f->batches);
    ses_finetune_set_free(&f->train);
    ses_finetune_set_free(&f->eval);
    ses_finetuner_free(f->tuner);
    ses_examples_free(f->train_rows);
    ses_examples_free(f->eval_rows);
    ses_examples_free(f->had);
    ses_eval_report_free(&f->judged);
    ses_json_free(f->base);
    ses_free(f->settings);
    ses_free(f->log);
    ses_free(f->board);
    ses_free(f->metrics);
    ses_device_free(f->dev);
}

bool ses_finetune_config(ses_finetune *f, ses_err *e)
{
    const ses_finetune_args *a = f->a;
    f->base = a->config ? ses_preset_load(a->config, e) : ses_model_config_open(a->model, NULL, e);
    return f->base != NULL;
}

/* ---- results ---- */

static void put_train(const ses_finetune *f, ses_json_writer *w)
{
    ses_run_log_put_results(&f->run_log, w);
    ses_json_member_int(w, "train_samples", ses_dataset_size(f->train.data));
}

static void put_eval(const ses_finetune *f, ses_json_writer *w)
{
    if (!f->eval.data) return;
    ses_eval_report_put(&f->judged, w);
    ses_json_member_real(w, "eval_runtime", f->eval_seconds);
    ses_json_member_real(w, "eval_samples_per_second", (double)f->eval.n_rows / fmax(f->eval_seconds, 1e-9));
}

static bool write_results(const ses_finetune *f, const char *dir, const char *name, bool train, bool eval,
                          ses_err *e)
{
    size_t n;
    ses_json_writer *w = ses_json_writer_new(4, e);
    char *path = w ? ses_path_join(dir, name, e) : NULL;
    bool ok = path != NULL;
    if (ok) {
        ses_json_begin_object(w);
        if (train) put_train(f, w);
        if (eval) put_eval(f, w);
        ses_json_end_object(w);
        const char *text = ses_json_writer_text(w, &n, e);
        ok = text && ses_file_write(path, text, n, false, e);
    }
    ses_json_writer_free(w);
    ses_free(path);
    return ok;
}

static bool write_run(const ses_finetune *f, const char *dir, ses_err *e)
{
    ses_command_text text;
    if (!ses_command_text_make(&ses_command_finetune, f->a, &text, e)) return false;
    ses_run_info info = { .command = text.line,
                          .options = text.options,
                          .model = f->tuner->model,
                          .metric = ses_finetune_metric_name(f),
                          .lower_is_better = f->lower };
    bool ok = ses_run_info_write(&info, dir, e);
    ses_command_text_free(&text);
    return ok;
}

/* How the model that was begun with writes. */
static bool write_generation(const ses_finetune *f, const char *dir, ses_err *e)
{
    bool there;
    return !f->kind->generates || !f->a->model ||
           ses_train_folder_copy(f->a->model, "generation_config.json", dir, &there, e);
}

/* ---- the folder ---- */

static bool write_all(void *ctx, const char *dir, ses_err *e)
{
    ses_finetune *f = ctx;
    char *state = ses_path_join(dir, "trainer_state.json", e);
    bool ok = state && ses_finetuner_save(f->tuner, dir, &(ses_save_options){ .dtype = SES_F32 }, e) &&
              ses_train_folder_tokenizer(f->a->tokenizer ? f->a->tokenizer : f->a->model, f->tuner->tokenizer,
                                         dir, e) &&
              write_generation(f, dir, e) && ses_trainer_write_state(f->trainer, state, false, e) &&
              write_results(f, dir, "train_results.json", true, false, e) &&
              (!f->eval.data || write_results(f, dir, "eval_results.json", false, true, e)) &&
              write_results(f, dir, "all_results.json", true, true, e) && write_run(f, dir, e) &&
              ses_finetune_card(f, dir, e);
    ses_free(state);
    return ok;
}

bool ses_finetune_write(ses_finetune *f, ses_err *e)
{
    const char *lost = ses_trainer_restore_error(f->trainer);
    if (lost) fprintf(stderr, "sesame: %s; the model has the last weights, not the best\n", lost);
    if (!ses_train_folder_write(f->a->output, write_all, f, e)) return false;
    ses_err none = { 0 };
    if (!ses_html_report_write_run(f->a->output, &none))
        fprintf(stderr, "sesame: report.html: %s\n", none.msg);
    return true;
}

/* ---- the end ---- */

void ses_finetune_summary(const ses_finetune *f, const ses_call *c, ses_run_end end)
{
    const ses_term *t = &c->out;
    const char *best = ses_trainer_best_dir(f->trainer);
    char usage[600];
    if (f->a->tune.shared.json) return;
    ses_show_line(t, "Model", "%s: %s", f->a->output, ses_model_class_name(f->tuner->model));
    if (f->eval.data) ses_eval_report_show(&f->judged, t);
    if (f->eval.data && best)
        ses_show_line(t, "Best", "of update %" PRId64 ", in %s", ses_trainer_state(f->trainer)->best_update,
                      best);
    ses_training_stats stats = ses_run_log_stats(&f->run_log);
    ses_train_monitor_show_summary(&f->monitor, f->trainer, &stats, &f->a->energy, t, end);
    ses_show_line(t, "Files",
                  "in %s: README.md (model card), report.html (curves), all_results.json, trainer_state.json",
                  f->a->output);
    ses_show_line(t, "Logs", "%s; tensorboard --logdir %s", f->log, f->board);
    ses_show_line(t, "Next", "sesame predict %s FILE --task %s; sesame %s", f->a->output,
                  f->a->tune.data.task, ses_finetune_usage(usage, sizeof usage, f->kind->head, f->a->output));
}

bool ses_finetune_print(const ses_finetune *f, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_json_member_string(w, "output", f->a->output);
    put_train(f, w);
    put_eval(f, w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}
