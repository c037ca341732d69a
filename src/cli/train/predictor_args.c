/* Opening of fine-tuned models for eval, predict and quantize. */
#include "predictor_args.h"

#include "base/alloc.h"
#include "base/json/json_helpers.h"
#include "base/label_pairs.h"
#include "train/train_folder.h"
#include "tune/finetune_data.h"

#include <string.h>

static const ses_opt opt[] = {
    SES_OPT_INCLUDE(ses_predictor_args, data, ses_data_option_table),
    SES_OPT_INCLUDE(ses_predictor_args, task, ses_task_option_table),
};
const ses_opt_table ses_predictor_option_table = { opt, SES_LEN(opt) };

static const ses_opt ensemble_opt[] = {
    SES_OPT_TEXT(ses_predictor_args, ensemble, "ensemble", "DIR,DIR...",
                 "average the probabilities of these models (and of DIR, if given); of regress: the values. "
                 "Labels are matched by name; models that answer questions need the same tokenizer"),
};
const ses_opt_table ses_ensemble_option_table = { ensemble_opt, SES_LEN(ensemble_opt) };

static const ses_opt exit_opt[] = {
    SES_OPT_TEXT(
        ses_predictor_args, exit, "exit", "RULE",
        "classify with a model trained with --exits: texts leave early, at an entropy below T of 0 to 1 "
        "(entropy:T), when the label stayed the same N times (patience:N) or after N layers (layer:N); "
        "eval also: curve, a table of rules"),
};
const ses_opt_table ses_exit_rule_table = { exit_opt, SES_LEN(exit_opt) };

bool ses_predictor_args_name_models(const void *args, int n_operands)
{
    return ((const ses_predictor_args *)args)->ensemble && n_operands == 1;
}

const char *ses_predictor_args_dir(const ses_predictor_args *a, const ses_call *c)
{
    return ses_predictor_args_name_models(a, c->n_operands) ? NULL : c->operands[0];
}

static void put_option(const ses_json *stored, const char *name, ses_json_writer *w)
{
    const ses_json *v = ses_json_get(stored, name);
    if (!v || ses_json_type_of(v) == SES_JSON_NULL) return;
    ses_json_put_key(w, name);
    ses_json_put_value(w, v);
}

/* A copy of the stored options (NULL: none) without the options of training and computation, with `task`
 * unless they name one. */
static ses_json_doc *copy_data_options(const ses_json *stored, const char *task, const char *except,
                                       ses_err *e)
{
    const ses_opt *o;
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_object(w, "options");
    if (task)
        ses_json_member_string(w, "task", task);
    else
        put_option(stored, "task", w);
    for (ses_opt_iter it = ses_opt_begin(opt, SES_LEN(opt)); (o = ses_opt_next(&it));)
        if (strcmp(o->name, "encoding") &&
            (!except || strcmp(o->name, except))) /* another file, another one */
            put_option(stored, o->name, w);
    ses_json_end_object(w);
    ses_json_end_object(w);
    return ses_json_writer_parse(w, e);
}

/* The options of run.json; without a task there: the task of the model's class. */
static ses_json_doc *open_options(const char *dir, const char *base, const char *except, ses_err *e)
{
    ses_err none = { 0 }; /* opening the model reports why */
    ses_json_doc *run = ses_run_info_open(dir, e);
    if (e->code) return NULL;
    const ses_json *options = ses_json_get(ses_json_root(run), "options");
    bool named = ses_json_type_of(ses_json_get(options, "task")) != SES_JSON_NULL;
    const char *task = named ? NULL : ses_finetune_task_of_folder(dir, base, &none);
    ses_json_doc *copy = run || task ? copy_data_options(options, task, except, e) : NULL;
    ses_json_free(run);
    return copy;
}

ses_json_doc *ses_predictor_args_open_stored(const ses_predictor_args *a, const ses_call *c,
                                             const char *except, ses_err *e)
{
    const char *adapter = ses_first_adapter(&a->adapters);
    const char *own = a->model ? a->model : c->n_operands ? c->operands[0] : NULL;
    const char *name = adapter ? adapter : own;
    char *first = NULL;
    ses_err none = { 0 }; /* opening the model reports a wrong name */
    if (!a->model && ses_predictor_args_name_models(a, c->n_operands))
        name = first = ses_strndup(a->ensemble, strcspn(a->ensemble, ","), e);
    char *dir = name && !a->data.task ? ses_model_resolve(name, NULL, &none) : NULL,
         *base = dir && adapter && own ? ses_model_resolve(own, NULL, &none) : NULL;
    ses_json_doc *options = dir ? open_options(dir, base, except, e) : NULL;
    ses_free(first);
    ses_free(dir);
    ses_free(base);
    return options;
}

static bool on_event(void *ctx, const ses_training_event *ev)
{
    ses_open_predictor *r = ctx;
    if (ev->kind == SES_TRAINING_NOTICE && (ev->is_warning || !r->call->quiet))
        fprintf(stderr, "%s%s\n", ev->is_warning ? "sesame: " : "", ev->text);
    if (ev->kind != SES_TRAINING_EVALUATING) return true;
    r->line.total = ev->total;
    ses_progress_show(&r->line, ev->done);
    if (ev->done == ev->total) ses_progress_end(&r->line);
    return true;
}

/* ---- ensembles ---- */

/* Resolves the names of --ensemble. */
static bool read_ensemble(ses_open_predictor *r, const char *list, ses_err *e)
{
    size_t max = 1;
    for (const char *c = list; *c; c++) max += *c == ',';
    r->dir = ses_alloc_array(max, sizeof *r->dir, e);
    if (!r->dir) return false;
    for (const char *at = list;; at++) {
        size_t n = strcspn(at, ",");
        char *name = n ? ses_strndup(at, n, e) : NULL;
        if (!n) return ses_fail(e, SES_EUSAGE, "--ensemble %s: a name is empty", list);
        if (name) r->dir[r->n_dirs] = ses_model_resolve(name, NULL, e);
        ses_free(name);
        if (!r->dir[r->n_dirs]) return ses_wrap(e, "--ensemble");
        r->n_dirs++;
        at += n;
        if (!*at) return true;
    }
}

/* The fine-tuning task of a task or benchmark; NULL: unknown. */
static const ses_finetune_task *task_of(const char *name)
{
    const ses_finetune_task *task = NULL;
    ses_data_spec spec;
    ses_err ignored = { 0 };
    return ses_finetune_resolve_task(&(ses_data_options){ .task = name }, &(ses_finetune_task_options){ 0 },
                                     &task, &spec, &ignored)
               ? task
               : NULL;
}

/* The task that a folder's run.json names, compared with the ensemble's. */
static bool same_task(const char *dir, const char *task, ses_err *e)
{
    ses_json_doc *run = ses_run_info_open(dir, e);
    const char *own =
        ses_json_string(ses_json_get(ses_json_get(ses_json_root(run), "options"), "task"), NULL);
    bool same = !own || task_of(own) == task_of(task);
    if (!same)
        ses_fail(e, SES_EARG, "ensemble: %s was trained for the task %s, not %s: the models need one task",
                 dir, own, task);
    ses_json_free(run);
    return same && e->code == SES_OK;
}

static bool check_ensemble(const ses_open_predictor *r, const char *dir, const char *task, ses_err *e)
{
    if (!dir && r->n_dirs < 2)
        return ses_fail(e, SES_EUSAGE, "--ensemble: name at least two models, ',' between them");
    for (size_t i = 0; i < r->n_dirs; i++)
        if (!same_task(r->dir[i], task, e)) return false;
    return !dir || same_task(dir, task, e);
}

bool ses_open_predictor_open(ses_open_predictor *r, const ses_predictor_args *a, const char *dir,
                             const ses_call *c, ses_err *e)
{
    ses_device_options d = ses_compute_device_options(&a->compute);
    const char *adapter = ses_first_adapter(&a->adapters);
    bool rename = a->renames_labels && ses_is_label_pairs(a->data.labels);
    ses_predictor_options o = { .data = a->data,
                                .rename = rename ? a->data.labels : NULL,
                                .task = a->task,
                                .base = adapter ? dir : NULL,
                                .bootstrap = a->bootstrap.resamples,
                                .confidence = a->bootstrap.confidence,
                                .seed = a->bootstrap.seed,
                                .on_event = on_event,
                                .ctx = r,
                                .exit = a->exit };
    if (adapter) o.adapters = a->adapters.item + 1, o.n_adapters = a->adapters.n - 1;
    if (rename) o.data.labels = NULL; /* the file has none */
    *r = (ses_open_predictor){ .call = c,
                               .line = ses_progress_start(stderr, &c->err, c->quiet, "sequences", 0) };
    if (a->ensemble && adapter)
        return ses_fail(e, SES_EUSAGE,
                        "--ensemble and --adapter: give one of them; --ensemble also takes adapter folders");
    if (a->ensemble && !read_ensemble(r, a->ensemble, e)) return false;
    const char *first = adapter ? adapter : dir ? dir : r->dir[0];
    if (!a->data.task && !ses_finetune_task_of_folder(first, adapter ? dir : NULL, e))
        return e->code == SES_EUSAGE ? ses_wrap(e, "--task TASK is required") : false;
    if (a->ensemble && !check_ensemble(r, dir, a->data.task, e)) return false;
    o.ensemble = (const char *const *)r->dir + !dir;
    o.n_ensemble = r->n_dirs - (!dir && r->n_dirs);
    if (!dir) dir = r->dir[0];
    r->dev = ses_device_open(a->compute.device, &d, e);
    r->predictor = r->dev ? ses_predictor_open(adapter ? adapter : dir, &o, r->dev, e) : NULL;
    return r->predictor != NULL;
}

void ses_open_predictor_free(ses_open_predictor *r)
{
    ses_progress_end(&r->line);
    ses_predictor_free(r->predictor);
    ses_device_free(r->dev);
    for (size_t i = 0; i < r->n_dirs; i++) ses_free(r->dir[i]);
    ses_free(r->dir);
    *r = (ses_open_predictor){ 0 };
}
