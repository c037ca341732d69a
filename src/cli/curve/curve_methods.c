/* Methods of a learning curve: the list, their options, one run. */
#include "curve.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/str.h"
#include "base/suggest.h"
#include "cli/train/finetune_inputs.h"
#include "cli/train/option_setting.h"
#include "train/checkpoint_dir.h"
#include "tune/few_shot/tune_method.h"

#include <string.h>

static const ses_curve_method methods[] = {
#define SES_METHOD(name_, tasks_, kind_, seeded_, options_, summary_) \
    { name_, summary_, tasks_, SES_METHOD_##kind_, seeded_, options_, NULL },
#define SES_METHOD_LADDER(name_, method_, summary_) \
    { name_, summary_, "classify", SES_METHOD_MODEL, true, NULL, &ses_ladder_method_##method_ },
#include "curve_methods.def"
#undef SES_METHOD
#undef SES_METHOD_LADDER
};

/* ---- selection ---- */

static bool is_for(const ses_curve_method *m, const char *task)
{
    return !m->tasks || ses_list_has(m->tasks, task);
}

/* Name i of the methods for a task. */
static const char *name_at(const void *task, size_t i)
{
    for (size_t k = 0; k < SES_LEN(methods); k++)
        if (is_for(&methods[k], task) && !i--) return methods[k].name;
    return NULL;
}

const ses_curve_method *ses_curve_method_find(const char *name, size_t n, const char *task, ses_err *e)
{
    char what[80];
    for (size_t i = 0; i < SES_LEN(methods); i++)
        if (ses_equal(name, n, methods[i].name) && is_for(&methods[i], task)) return &methods[i];
    snprintf(what, sizeof what, "method of the task %s", task);
    ses_fail_unknown(e, SES_EUSAGE, what, (ses_string){ name, n }, name_at, task);
    return NULL;
}

/* Whether it has the patterns it needs, by --patterns or --set. */
static bool is_complete(const ses_curve *v, const ses_curve_method *m)
{
    static const char needed[] = ":patterns=";
    const char *name = m->options ? strstr(m->options, "method=") : NULL;
    const ses_tune_method *few_shot = name ? ses_tune_method_find(name + strlen("method=")) : NULL;
    if (!few_shot || !few_shot->needs_patterns || v->a->patterns) return true;
    size_t len = strlen(m->name);
    for (size_t i = 0; i < v->a->set.n; i++) {
        const char *s = v->a->set.item[i];
        if (!strncmp(s, m->name, len) && !strncmp(s + len, needed, strlen(needed))) return true;
    }
    return false;
}

static bool add(ses_curve *v, const ses_curve_method *m, ses_err *e)
{
    for (size_t i = 0; i < v->n_methods; i++)
        if (v->method[i] == m) return ses_fail(e, SES_EUSAGE, "%s is given twice", m->name);
    if (!is_complete(v, m))
        return ses_fail(e, SES_EUSAGE, "%s needs --patterns FILE: cloze patterns and a word for each label",
                        m->name);
    v->method[v->n_methods++] = m;
    return true;
}

/* Every --set names a method that runs by options, and an option with a value that fits. */
static bool check_settings(const ses_curve *v, ses_err *e);

bool ses_curve_choose_methods(ses_curve *v, ses_err *e)
{
    const char *list = v->a->methods;
    ses_string name;
    bool ok = true;
    v->method = ses_alloc_array(SES_LEN(methods), sizeof *v->method, e);
    if (!v->method) return false;
    for (size_t i = 0; !list && i < SES_LEN(methods); i++)
        if (is_for(&methods[i], v->task_name) && is_complete(v, &methods[i]))
            v->method[v->n_methods++] = &methods[i];
    for (size_t k = 0; ok && ses_comma_item(list, k, &name); k++) {
        const ses_curve_method *m = ses_curve_method_find(name.p, name.n, v->task_name, e);
        ok = m && add(v, m, e);
    }
    if (!ok) return ses_wrap(e, "--methods");
    return check_settings(v, e);
}

/* ---- options ---- */

/* Sets "NAME=VALUE" of n bytes. The value is copied to mem: options borrow it. */
static bool set_option(ses_finetune_args *x, const char *method, const char *text, size_t n, ses_arena *mem,
                       ses_err *e)
{
    char from[80];
    const char *copy = ses_arena_strndup(mem, text, n, e);
    ses_setting_rule r = { .from = from, /* all methods have these in common: */
                           .refused = "task|train|eval|output|resume|overwrite|grid|seeds|seed|train-size|"
                                      "shots|json" };
    snprintf(from, sizeof from, "set %s", method);
    return copy && ses_option_setting_apply(&ses_command_finetune, copy, &r, x, e);
}

/* Options of the line in curve_methods.def, then options of --set. */
static bool apply(const ses_curve *v, const ses_curve_method *m, ses_finetune_args *x, ses_arena *mem,
                  ses_err *e)
{
    size_t len = strlen(m->name);
    for (const char *at = m->options; *at;) {
        size_t n = strcspn(at, " ");
        if (n && !set_option(x, m->name, at, n, mem, e)) return false;
        at += n + (at[n] == ' ');
    }
    for (size_t i = 0; i < v->a->set.n; i++) {
        const char *s = v->a->set.item[i];
        if (strncmp(s, m->name, len) || s[len] != ':') continue;
        if (!set_option(x, m->name, s + len + 1, strlen(s + len + 1), mem, e)) return false;
    }
    return true;
}

/* Processes that run at the same time share the cores. */
static ses_compute_args compute_of(const ses_curve *v)
{
    ses_compute_args c = v->a->compute;
    if (v->a->jobs > 1 && !c.threads) c.threads = ses_compute_threads(&c) / v->a->jobs;
    if (v->a->jobs > 1 && !c.threads) c.threads = 1;
    c.json = false;
    return c;
}

/* The options of a run; examples: their number. */
static bool make_args(const ses_curve *v, const ses_curve_method *m, size_t examples, ses_finetune_args *x,
                      ses_arena *mem, ses_err *e)
{
    const ses_curve_args *a = v->a;
    const ses_command *c = &ses_command_finetune;
    *x = (ses_finetune_args){ 0 };
    if (!ses_opt_defaults(c->opt, c->n_opt, x, e)) return false;
    ses_training_options *r = &x->s.train.run;
    x->s.o.data = a->data;
    x->s.o.train = a->train;
    x->s.o.eval = a->eval;
    x->compute = compute_of(v);
    x->s.train.energy = a->energy;
    if (m->kind == SES_METHOD_MODEL || m->kind == SES_METHOD_OWN) x->s.o.model = a->model;
    if (m->kind == SES_METHOD_CLASSIFIER)
        x->compute.dtype = 0;
    else {
        r->save_every = -1;
        x->s.o.last_weights = true; /* the evaluation data select no checkpoint */
        x->s.o.task.max_length = a->max_length;
    }
    bool fixed = m->kind == SES_METHOD_MODEL || m->kind == SES_METHOD_NEW;
    if (fixed) {
        r->epochs = a->epochs;
        r->lr = a->lr;
        r->batch_size = a->batch_size;
    }
    if (!apply(v, m, x, mem, e)) return false;
    const ses_tune_method *few_shot = x->s.method ? ses_tune_method_find(x->s.method) : NULL;
    if (few_shot && few_shot->needs_patterns && !x->s.o.task.patterns) x->s.o.task.patterns = a->patterns;
    if (few_shot && few_shot->needs_unlabeled && !x->s.o.unlabeled)
        x->s.o.unlabeled = a->unlabeled ? a->unlabeled : a->train;
    if (m->kind == SES_METHOD_NEW) x->s.train.has_lr = true; /* not the default of taggers */
    if (fixed) r->steps = ses_least_updates(r, examples, a->least_updates);
    return true;
}

static void free_args(ses_finetune_args *x)
{
    ses_opt_free(ses_command_finetune.opt, ses_command_finetune.n_opt, x);
}

/* The options of a method and the files that they name. */
static bool check_method(const ses_curve *v, const ses_curve_method *m, ses_err *e)
{
    ses_ladder_args la = { .model = v->a->model, .vectors = v->a->vectors };
    bool ok = true;
    if (m->ladder) {
        ok = !m->ladder->check || m->ladder->check(&la, e);
    } else {
        ses_arena mem = { 0 };
        ses_finetune_args x;
        ok = make_args(v, m, 1, &x, &mem, e);
        x.s.train.run.output = v->a->output;
        ok = ok && ses_finetune_check_options(&x, e) && (!x.s.o.model || ses_ladder_check_model(&la, e)) &&
             ses_finetune_check_files(&x, e);
        free_args(&x);
        ses_arena_free(&mem);
    }
    return ok || ses_wrap(e, "%s", m->name);
}

static bool check_settings(const ses_curve *v, ses_err *e)
{
    bool ok = true;
    for (size_t i = 0; ok && i < v->a->set.n; i++) {
        const char *s = v->a->set.item[i];
        size_t n = strcspn(s, ":"), k = 0;
        while (k < v->n_methods && !ses_equal(s, n, v->method[k]->name)) k++;
        if (!s[n] || k == v->n_methods)
            ok = ses_fail(e, SES_EUSAGE, "--set %s: expected METHOD:OPTION=VALUE with a method of this curve",
                          s);
        else if (v->method[k]->ladder)
            ok = ses_fail(e, SES_EUSAGE, "--set %s: %s has no options of finetune", s, v->method[k]->name);
    }
    for (size_t k = 0; ok && k < v->n_methods; k++) ok = check_method(v, v->method[k], e);
    return ok;
}

/* ---- one run ---- */

static bool run_options(ses_curve *v, const ses_curve_method *m, int64_t size, int64_t seed, size_t examples,
                        const char *dir, bool *stopped, ses_err *e)
{
    ses_arena mem = { 0 };
    ses_finetune_args x;
    ses_call quiet = *v->x.c;
    quiet.quiet = true;
    bool ok = make_args(v, m, examples, &x, &mem, e);
    if (ok) {
        ses_training_options *r = &x.s.train.run;
        *(v->a->per_class ? &x.s.o.shots : &x.s.o.train_size) = size;
        r->seed = seed;
        r->output = dir;
        if (m->kind != SES_METHOD_CLASSIFIER && ses_checkpoint_any(dir)) r->resume = true;
        r->overwrite = !r->resume;
        ok = ses_finetune_one(&quiet, &x, true, stopped, e);
    }
    free_args(&x);
    ses_arena_free(&mem);
    return ok;
}

static bool run_ladder(ses_curve *v, const ses_ladder_method *m, int64_t seed, ses_examples *train,
                       const char *dir, ses_err *e)
{
    const ses_curve_args *a = v->a;
    char why[300] = "";
    ses_call quiet = *v->x.c;
    quiet.quiet = true;
    ses_ladder_args la = { .data = a->data,
                           .compute = compute_of(v),
                           .model = a->model,
                           .vectors = a->vectors,
                           .resume = true, /* continues from a checkpoint, if there is one */
                           .seed = seed,
                           .seeds = 1,
                           .max_length = a->max_length,
                           .confidence = a->confidence,
                           .epochs = a->epochs,
                           .lr = a->lr,
                           .energy = a->energy };
    ses_ladder l = { .x = { .c = &quiet, .settings = v->x.settings, .command = v->x.command },
                     .a = &la,
                     .task = a->data.task,
                     .train_name = a->train,
                     .test_name = a->eval,
                     .train = train,
                     .test = v->test,
                     .metric = v->metric,
                     .lower_is_better = v->lower_is_better,
                     .test_features = &v->features,
                     .last_weights = true,
                     .least_updates = a->least_updates };
    ses_device_options d = ses_compute_device_options(&la.compute);
    if (!v->dev && !(v->dev = ses_device_open(a->compute.device, &d, e))) return false;
    l.dev = v->dev;
    if (m->unavailable && m->unavailable(&l, why, sizeof why)) return ses_fail(e, SES_EARG, "%s", why);
    l.root = ses_path_join(dir, ".work", e); /* temporary files of the method */
    bool ok = l.root && ses_dir_make(l.root, e) && m->run(&l, m, dir, seed, e);
    if (l.root) ses_dir_remove_all(l.root, NULL);
    ses_free(l.root);
    return ok;
}

bool ses_curve_run_method(ses_curve *v, const ses_curve_method *m, int64_t size, int64_t seed,
                          ses_examples *train, const char *dir, bool *stopped, ses_err *e)
{
    *stopped = false;
    return m->ladder ? run_ladder(v, m->ladder, seed, train, dir, e)
                     : run_options(v, m, size, seed, ses_examples_count(train), dir, stopped, e);
}
