/* Compression of a model: checks, folder, the whole command. */
#include "compress.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "cli/machine.h"
#include "cli/train/train_monitor.h"
#include "model/model_desc.h"
#include "train/train_folder.h"
#include "vectors/classify/classifier.h"

#include <string.h>

/* Options that do not change the model of a candidate, nor its score. A candidate that was timed in another
 * way is measured again: see ses_compress_read_candidate. */
static const char *const IRRELEVANT = "methods|output|by|max-drop|budget|device|isa|texts|rounds|threads";

static const double ENDING_SECONDS = 15; /* a stopped run may take so long to end */

/* ---- task and model ---- */

static bool read_task(ses_compress *z, ses_err *e)
{
    const ses_predictor_args *t = &z->a->tune;
    if (!t->data.task && !ses_finetune_task_of_folder(z->model, NULL, e))
        return e->code == SES_EUSAGE ? ses_wrap(e, "--task TASK is required") : false;
    if (!ses_finetune_resolve_task(&t->data, &t->task, &z->task, &z->train_spec, e)) return false;
    z->eval_spec = ses_finetune_eval_spec(&t->task, z->task, &z->train_spec);
    z->metric = z->train_spec.best_metric;
    z->lower_is_better = ses_metric_lower_is_better(z->metric);
    z->in_percent = z->task->in_percent;
    return true;
}

/* --dtype is of training here: precisions of the models are methods. */
static bool check_dtype(const ses_compress *z, ses_err *e)
{
    ses_dtype t = ses_compute_device_options(&z->a->tune.compute).dtype;
    return t == SES_F32 || t == SES_BF16 ||
           ses_fail(e, SES_EUSAGE,
                    "--dtype: models are trained in f32 or bf16; --methods f16,bf16,int8 stores them in "
                    "other types");
}

/* Whether the model was trained for this task; a folder without run.json tells nothing. */
static bool check_trained_task(const ses_compress *z, ses_err *e)
{
    const ses_finetune_task *own = z->task;
    ses_data_spec spec;
    ses_json_doc *run = ses_run_info_open(z->model, e);
    const char *name =
        ses_json_string(ses_json_get(ses_json_get(ses_json_root(run), "options"), "task"), NULL);
    bool known = name && ses_finetune_resolve_task(&(ses_data_options){ .task = name },
                                                   &(ses_finetune_task_options){ 0 }, &own, &spec, NULL);
    if (known && own != z->task)
        ses_fail(e, SES_EARG, "%s was trained for the task %s, not %s: give --task %s", z->model, name,
                 z->a->tune.data.task, name);
    ses_json_free(run);
    return e->code == SES_OK;
}

static bool has_head(const ses_class *c, const ses_head *head)
{
    for (size_t i = 0; head && i < SES_LEN(c->head) && c->head[i].head; i++)
        if (!strcmp(c->head[i].head->name, head->name)) return true;
    return false;
}

/* The number of layers; 0: there is not one. */
static int64_t count_layers(const ses_model_desc *d, const ses_json *config)
{
    int64_t n = 0;
    const ses_config_key *k =
        d->encoder_decoder ? NULL
                           : ses_config_key_of(d, config, offsetof(ses_config, layers), SES_KEY_TYPE_INT);
    return k && ses_json_int(ses_json_get(config, k->key), &n) ? n : 0;
}

/* Whether the head of the task has one output: scores of labels, not starts and ends of answers. */
static bool has_scores(const ses_model_desc *d, const ses_head *head)
{
    for (size_t i = 0; head && i < d->n_classes; i++)
        for (size_t k = 0; k < SES_LEN(d->class[i].head) && d->class[i].head[k].head; k++)
            if (d->class[i].head[k].head == head) return *d->class[i].head[k].output != 0;
    return false;
}

static bool read_model(ses_compress *z, ses_err *e)
{
    ses_json_doc *doc = ses_model_config_open(z->model, NULL, e);
    const ses_json *config = doc ? ses_json_root(doc) : NULL;
    if (!doc) return false;
    bool ok = !ses_classifier_is_config(config) ||
              ses_fail(e, SES_EUNSUPPORTED, "%s: a classifier without a neural model has nothing to compress",
                       z->model);
    const ses_model_desc *d = ok ? ses_config_find_model(config, e) : NULL;
    const ses_class *class = d ? ses_config_class(d, config, NULL, e) : NULL;
    ok = class != NULL;
    if (ok) {
        const ses_head *other = z->task->lm_head ? z->task->lm_head : z->task->other_head;
        char *base = ses_model_base_dir(z->model, NULL, NULL);
        z->is_new = z->task->head && !has_head(class, z->task->head) && !has_head(class, other);
        z->is_stored_smaller =
            (base && strcmp(base, z->model) != 0) || ses_json_get(config, "quantization_config");
        z->layers = count_layers(d, config);
        z->teaches_scores = has_scores(d, z->task->head);
        ses_free(base);
    }
    if (ok && z->is_new && !z->a->train)
        ok =
            ses_fail(e, SES_EARG,
                     "%s: %s has no head for the task %s: --data FILE trains one, or give a fine-tuned model",
                     z->model, class->name, z->task->name);
    ses_json_free(doc);
    return ok;
}

/* ---- the folder ---- */

static bool describe(ses_compress *z, ses_err *e)
{
    const ses_command_value model = { .name = "model", .text = z->model };
    snprintf(z->machine, sizeof z->machine, "%s, %s, threads: %d", ses_machine_detect().cpu,
             ses_isa_name(ses_compute_isa(&z->a->tune.compute)), ses_compute_threads(&z->a->tune.compute));
    return ses_experiment_describe(&z->x, &model, 1, e);
}

/* Removes the candidates of an earlier call, or reads them. */
static bool open_candidates(ses_compress *z, ses_err *e)
{
    const ses_compress_args *a = z->a;
    z->root = ses_path_join(z->output, "candidates", e);
    if (!z->root) return false;
    if (a->overwrite && !ses_dir_remove_all(z->root, e)) return false;
    if (!ses_dir_make(z->root, e)) return false;
    for (size_t i = 0; i < z->n; i++) {
        const ses_candidate *x = &z->candidate[i];
        bool given = !i && !z->is_new && !z->is_stored_smaller,
             is_rule = x->method && x->method->kind == SES_COMPRESS_RULE;
        z->candidate[i].dir = given     ? ses_strdup(z->model, e)
                              : is_rule ? ses_strdup(z->candidate[x->parent].dir, e)
                                        : ses_compress_path(z, i, "", e);
        if (!z->candidate[i].dir || (a->resume && !ses_compress_read_candidate(z, i, e))) return false;
        if (!given || z->candidate[i].base.state != SES_JOB_OPEN) continue;
        z->candidate[i].base.state = SES_JOB_DONE;
        if (!ses_compress_note_files(z, i, e)) return false;
    }
    return true;
}

/* ---- the command ---- */

static bool finish(ses_compress *z, bool stopped, ses_err *e)
{
    bool measured = z->candidate[0].is_measured;
    if (!measured || z->a->make_only) return ses_experiment_write(&z->x, z->output, e);
    bool ok = ses_compress_choose(z, e) && ses_experiment_write(&z->x, z->output, e) &&
              (stopped || ses_compress_write_model(z, e)) && ses_experiment_show_in_folder(&z->x, true, e);
    if (ok) ses_compress_print_commands(z);
    return ok;
}

/* Nothing of the folder changes before its lock is held. A stopped run that is continued at once may still
 * save its checkpoints. */
static bool run(ses_compress *z, bool *stopped, ses_err *e)
{
    z->x.output = z->output;
    ses_dir_lock *lock = ses_experiment_lock(&z->x, z->a->resume ? ENDING_SECONDS : 0, e);
    if (!lock) return false;
    bool ok = open_candidates(z, e) && ses_compress_hold_out(z, e) &&
              (z->a->resume || ses_experiment_write(&z->x, z->output, e)) && ses_compress_make(z, stopped, e);
    if (ok && !*stopped && z->candidate[0].base.state == SES_JOB_FAILED)
        ok = ses_fail(e, SES_EARG, "%s: %s", z->model, z->candidate[0].base.reason);
    bool measures = !*stopped && !z->a->make_only;
    ok = ok && (!measures || ses_compress_measure_all(z, stopped, e)) && finish(z, *stopped, e);
    ses_dir_lock_free(lock);
    return ok;
}

static void compress_free(ses_compress *z)
{
    for (size_t i = 0; i < z->n; i++) {
        ses_free(z->candidate[i].name);
        ses_free(z->candidate[i].value);
        ses_free(z->candidate[i].dir);
        ses_json_free(z->candidate[i].files);
        ses_buf_free(&z->candidate[i].commands);
    }
    ses_free(z->candidate);
    ses_free(z->output);
    ses_free(z->train);
    ses_free(z->eval);
    ses_free(z->root);
    ses_experiment_free(&z->x);
}

bool ses_compress_command(ses_call *c, ses_err *e)
{
    const ses_compress_args *a = c->args;
    ses_compress z = { .x = { .c = c,
                              .name = "compress",
                              .noun = "compression",
                              .title = "smaller forms of a model",
                              .model = c->operands[0],
                              .hint = "--overwrite repeats all candidates",
                              .ignored = IRRELEVANT,
                              .resume = a->resume,
                              .overwrite = a->overwrite,
                              .json = a->tune.compute.json,
                              .keeps_foreign = true,
                              .seed = (uint64_t)a->seed,
                              .put = ses_compress_put,
                              .fill = ses_compress_fill,
                              .fill_page = ses_compress_fill_page },
                       .a = a,
                       .model = c->operands[0] };
    bool stopped = false;
    ses_train_monitor_catch_signals();
    bool ok = check_dtype(&z, e) && ses_compress_choose_files(&z, e) && read_task(&z, e) &&
              check_trained_task(&z, e) && read_model(&z, e) && ses_compress_choose_methods(&z, e) &&
              ses_compress_check_data(&z, e) && describe(&z, e) && run(&z, &stopped, e) &&
              ses_experiment_end(&z.x, stopped);
    if (ok && a->make_only && !c->quiet)
        fprintf(stderr, "the models are made; the same command with --resume measures them\n");
    compress_free(&z);
    return ok;
}
