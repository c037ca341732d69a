/* The jobs of a study: their folders and arguments, checked before the first one starts. */
#include "ablate.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#include <inttypes.h>
#include <string.h>

const ses_ablate_task *ses_ablate_task_of(const ses_ablate *s, const ses_ablate_job *j)
{
    return j->task == SIZE_MAX ? NULL : &s->task[j->task];
}

const char *ses_ablate_model_of(const ses_ablate *s, const ses_ablate_job *j)
{
    return j->base.after != SIZE_MAX ? s->job[j->base.after].dir
           : j->task != SIZE_MAX     ? s->run[j->run].dir
                                     : NULL;
}

/* ---- folders ---- */

size_t ses_ablate_models_of(const ses_ablate *s, size_t run)
{
    const ses_ablate_run *a = &s->run[run];
    if (!a->pretrains) return a->from == SIZE_MAX ? 1 : ses_ablate_models_of(s, a->from);
    return s->n_pretrain_seeds ? s->n_pretrain_seeds : 1;
}

bool ses_ablate_is_model(const ses_ablate *s, const ses_ablate_run *a, const char *text)
{
    char folder[SES_ABLATE_FOLDER];
    ses_ablate_name_folder(a->name, folder);
    char *dir = a->pretrains ? ses_path_join(s->a->output, folder, NULL) : NULL;
    bool same = dir && (!strcmp(text, a->name) || !strcmp(text, dir));
    ses_free(dir);
    return same;
}

static char *folder_of(const ses_ablate *s, const ses_ablate_job *j, ses_err *e)
{
    const ses_ablate_task *t = ses_ablate_task_of(s, j);
    char name[SES_ABLATE_FOLDER], task[SES_ABLATE_FOLDER], seed[48] = "";
    ses_buf b = { 0 };
    ses_ablate_name_folder(s->run[j->run].name, name);
    ses_buf_puts(&b, name);
    if (j->pretrain_seed) ses_buf_appendf(&b, ",seed=%" PRId64, s->pretrain_seed[j->pretrain_seed]);
    if (t) {
        ses_ablate_name_folder(t->name, task);
        if (t->tunes) snprintf(seed, sizeof seed, ",seed=%" PRId64, s->seed[j->seed]);
        ses_buf_appendf(&b, ",tasks/%s%s", task, seed);
    }
    char *dir = ses_buf_ok(&b, e) ? ses_path_join(s->a->output, b.data, e) : NULL;
    ses_buf_free(&b);
    return dir;
}

/* ---- arguments ---- */

static bool add_number(ses_ablate *s, ses_ablate_argv *w, const char *option, int64_t n, ses_err *e)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, n);
    return ses_ablate_add_word(s, w, option, text, e);
}

static bool put_pretraining(ses_ablate *s, const ses_ablate_job *j, ses_ablate_argv *w, ses_err *e)
{
    const ses_ablate_run *a = &s->run[j->run];
    char where[SES_ABLATE_FOLDER + 16];
    snprintf(where, sizeof where, "run \"%.180s\"", a->name);
    const ses_ablate_layer layer[] = {
        { .object = s->common, .where = "\"common\"" },
        { .object = ses_json_root(s->set), .where = "--set" },
        { .object = a->change, .where = where, .reserved = "tune|pretrain|tasks" },
        { .object = s->grid, .where = "\"grid\"", .at = a->at },
    };
    return ses_ablate_add_options(s, w, ses_command_find("pretrain"), layer, SES_LEN(layer), e) &&
           (!s->n_pretrain_seeds || add_number(s, w, "--seed=", s->pretrain_seed[j->pretrain_seed], e));
}

static bool put_tuning(ses_ablate *s, const ses_ablate_job *j, ses_ablate_argv *w, ses_err *e)
{
    const ses_ablate_run *a = &s->run[j->run];
    const ses_ablate_task *t = &s->task[j->task];
    char where[SES_ABLATE_FOLDER + 16], task[SES_ABLATE_FOLDER + 16];
    snprintf(where, sizeof where, "run \"%.160s\": \"tune\"", a->name);
    snprintf(task, sizeof task, "task \"%.180s\"", t->name);
    const ses_ablate_layer layer[] = {
        { .object = s->tune, .where = "\"tune\"" },
        { .object = t->options, .where = task, .reserved = "command|score" },
        { .object = a->tune, .where = where },
        { .object = ses_json_root(s->tune_set), .where = "--set" },
    };
    for (size_t i = 0; i < SES_LEN(layer); i++)
        if (ses_json_get(layer[i].object, "model"))
            return ses_fail(e, SES_EFORMAT, "%s: \"model\" is the model of the run", layer[i].where);
    return ses_ablate_add_options(s, w, t->command, layer, SES_LEN(layer), e) &&
           (a->pretrains || !a->model || ses_ablate_add_word(s, w, "--model=", a->model, e)) &&
           add_number(s, w, "--seed=", s->seed[j->seed], e);
}

/* A task without training: its files, then options. */
static bool put_evaluation(ses_ablate *s, const ses_ablate_job *j, ses_ablate_argv *w, ses_err *e)
{
    const ses_ablate_task *t = &s->task[j->task];
    const ses_json *data = ses_json_get(t->options, "data");
    char task[SES_ABLATE_FOLDER + 16];
    snprintf(task, sizeof task, "task \"%.180s\"", t->name);
    bool list = ses_json_type_of(data) == SES_JSON_ARRAY;
    const ses_ablate_layer layer = { .object = t->options, .where = task, .reserved = "command|score|data" };
    for (size_t i = 0; i < (list ? ses_json_len(data) : 1); i++) {
        const char *path = ses_json_string(list ? ses_json_at(data, i) : data, NULL);
        if (!path) return ses_fail(e, SES_EFORMAT, "%s: \"data\": expected the names of files", task);
        if (!ses_path_exists(path)) return ses_fail(e, SES_EIO, "%s: \"data\": %s: no such file", task, path);
        if (!ses_ablate_add_word(s, w, path, "", e)) return false;
    }
    return ses_ablate_add_options(s, w, t->command, &layer, 1, e);
}

/* --dtype changes results, so it is one of the arguments that finished jobs are compared by. */
static bool put_dtype(ses_ablate *s, ses_ablate_argv *w, ses_err *e)
{
    static const char *const name[] = { "f32", "f16", "bf16", "int8" };
    return !s->a->compute.dtype || ses_ablate_add_word(s, w, "--dtype=", name[s->a->compute.dtype], e);
}

/* Checks the arguments with the ones that are added when the job starts. The model of an earlier run does not
 * exist yet: the current folder replaces it. check: NULL, or a further check of the options. */
static bool check_words(ses_ablate *s, const ses_ablate_job *j, const ses_command *c,
                        const ses_ablate_argv *w, ses_ablate_check_fn *check, ses_err *e)
{
    const ses_ablate_run *a = &s->run[j->run];
    ses_ablate_argv all = { 0 };
    bool ok = true, trains = j->task == SIZE_MAX || s->task[j->task].tunes;
    for (size_t i = 0; ok && i < w->n; i++) {
        const char *equal = strchr(w->word[i], '=');
        bool is_run = equal && a->from != SIZE_MAX && ses_ablate_is_model(s, &s->run[a->from], equal + 1);
        size_t option = is_run ? (size_t)(equal + 1 - w->word[i]) : strlen(w->word[i]);
        char *word = ses_arena_strndup(&s->mem, w->word[i], option, e);
        ok = word && ses_ablate_add_word(s, &all, word, is_run ? "." : "", e);
    }
    if (ok && trains) ok = ses_ablate_add_word(s, &all, "--output=", "x", e);
    if (ok && !trains && !c->has_model_operand) ok = ses_ablate_add_word(s, &all, "--model=", ".", e);
    ses_ablate_data data = { s, j->task };
    return ok && ses_ablate_check_words(c, &all, check, &data, e);
}

bool ses_ablate_check_inputs(ses_ablate *s, ses_err *e)
{
    for (size_t i = 0; i < s->n_jobs; i++) {
        const ses_ablate_job *j = &s->job[i];
        const ses_ablate_task *t = ses_ablate_task_of(s, j);
        ses_ablate_argv w = { .word = j->word, .n = j->n_words };
        if (!t || !t->tunes || j->seed || check_words(s, j, t->command, &w, ses_ablate_check_data, e))
            continue;
        ses_wrap(e, "%s", j->base.name);
        return ses_wrap(e, "%s", s->path);
    }
    return true;
}

/* ---- jobs ---- */

/* "dynamic: cola, seed 2". */
static const char *name_job(ses_ablate *s, const ses_ablate_job *j, ses_err *e)
{
    const ses_ablate_task *t = ses_ablate_task_of(s, j);
    char name[2 * SES_ABLATE_FOLDER], pretrain[48] = "", seed[48] = "";
    if (ses_ablate_models_of(s, j->run) > 1)
        snprintf(pretrain, sizeof pretrain, ", pretraining seed %" PRId64,
                 s->pretrain_seed[j->pretrain_seed]);
    if (t && t->tunes) snprintf(seed, sizeof seed, ", seed %" PRId64, s->seed[j->seed]);
    snprintf(name, sizeof name, "%s%s%s%s%s", s->run[j->run].name, pretrain, t ? ": " : "", t ? t->name : "",
             seed);
    return ses_arena_strndup(&s->mem, name, strlen(name), e);
}

static bool add_job(ses_ablate *s, ses_ablate_job j, ses_err *e)
{
    const ses_ablate_task *t = ses_ablate_task_of(s, &j);
    const ses_command *c = t ? t->command : ses_command_find("pretrain");
    ses_ablate_argv w = { 0 };
    if (s->n_jobs == SES_ABLATE_JOBS) return ses_fail(e, SES_EFORMAT, "more than %d jobs", SES_ABLATE_JOBS);
    j.base.name = name_job(s, &j, e);
    j.base.comes_first = !t; /* pretraining runs are the longest, and others wait for them */
    if (!j.base.name) return false;
    bool ok = (!t         ? put_pretraining(s, &j, &w, e)
               : t->tunes ? put_tuning(s, &j, &w, e)
                          : put_evaluation(s, &j, &w, e)) &&
              put_dtype(s, &w, e);
    if (ok && j.seed == 0) /* seeds are valid */
        ok = check_words(s, &j, c, &w, NULL, e) || ses_wrap(e, "%s", j.base.name);
    j.word = w.word;
    j.n_words = w.n;
    j.dir = ok ? folder_of(s, &j, e) : NULL;
    if (!j.dir) return false;
    s->job[s->n_jobs++] = j;
    return true;
}

/* Random weights have fine-tuning tasks only. */
static size_t seeds_of(const ses_ablate *s, size_t run, size_t task)
{
    if (!ses_ablate_has_task(s, run, task)) return 0;
    if (s->task[task].tunes) return s->n_seeds;
    return s->run[run].pretrains || s->run[run].model ? 1 : 0;
}

static bool add_tasks(ses_ablate *s, size_t run, size_t pretrain_seed, size_t after, ses_err *e)
{
    for (size_t t = 0; t < s->n_tasks; t++)
        for (size_t k = 0; k < seeds_of(s, run, t); k++)
            if (!add_job(s,
                         (ses_ablate_job){ .base.after = after,
                                           .run = run,
                                           .task = t,
                                           .pretrain_seed = pretrain_seed,
                                           .seed = k },
                         e))
                return false;
    return true;
}

static size_t count_jobs(const ses_ablate *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_runs; i++) {
        size_t tasks = s->run[i].pretrains;
        for (size_t t = 0; t < s->n_tasks; t++) tasks += seeds_of(s, i, t);
        n += ses_ablate_models_of(s, i) * tasks;
    }
    return n;
}

/* Task names become names of folders. */
static bool check_task_folders(const ses_ablate *s, ses_err *e)
{
    char a[SES_ABLATE_FOLDER], b[SES_ABLATE_FOLDER];
    for (size_t i = 0; i < s->n_tasks; i++)
        for (size_t k = 0; k < i; k++) {
            ses_ablate_name_folder(s->task[i].name, a);
            ses_ablate_name_folder(s->task[k].name, b);
            if (!strcmp(a, b))
                return ses_fail(e, SES_EFORMAT, "tasks \"%s\" and \"%s\" have the same folder, %s",
                                s->task[k].name, s->task[i].name, a);
        }
    return true;
}

/* The model that a run starts from: "model" or "teacher" of its options. NULL: new weights. */
static const char *start_of(const ses_ablate *s, const ses_ablate_run *a)
{
    static const char *const key[] = { "model", "teacher" };
    if (!a->pretrains) return a->model;
    for (size_t i = 0; i < SES_LEN(key); i++) {
        const ses_json *v = ses_json_get(a->change, key[i]);
        const char *text = ses_json_string(v ? v : ses_json_get(s->common, key[i]), NULL);
        if (text) return text;
    }
    return NULL;
}

/* The folder of a model: of a run that is not selected now, or any other. */
static char *find_model(const ses_ablate *s, const char *model, ses_err *e)
{
    char folder[SES_ABLATE_FOLDER];
    ses_ablate_name_folder(model, folder);
    char *own = ses_path_join(s->a->output, folder, e);
    if (own && ses_path_exists(own)) return own;
    char *dir = own ? ses_model_resolve(model, NULL, e) : NULL;
    ses_free(own);
    if (!dir || ses_path_exists(dir)) return dir;
    ses_fail(e, SES_EIO, "\"model\": %s: neither an earlier run nor a folder", dir);
    ses_free(dir);
    return NULL;
}

/* The models that runs start from: of an earlier run, or for runs without pretraining their folders. */
static bool find_models(ses_ablate *s, ses_err *e)
{
    for (size_t i = 0; i < s->n_runs; i++) {
        ses_ablate_run *a = &s->run[i];
        const char *model = start_of(s, a);
        for (size_t k = 0; model && k < i; k++)
            if (ses_ablate_is_model(s, &s->run[k], model)) a->from = k;
        if (!model || a->pretrains || a->from != SIZE_MAX) continue;
        char *dir = find_model(s, model, e);
        if (dir) a->dir = ses_arena_strndup(&s->mem, dir, strlen(dir), e);
        ses_free(dir);
        if (!a->dir) return ses_wrap(e, "run \"%s\"", a->name);
    }
    return true;
}

/* The job that makes a model of a run; SIZE_MAX: none. */
static size_t model_job(const ses_ablate *s, size_t run, size_t pretrain_seed)
{
    for (size_t i = 0; i < s->n_jobs; i++) {
        const ses_ablate_job *j = &s->job[i];
        if (j->run == run && j->task == SIZE_MAX && j->pretrain_seed == pretrain_seed) return i;
    }
    return SIZE_MAX;
}

static bool add_jobs(ses_ablate *s, ses_err *e)
{
    if (!check_task_folders(s, e) || !find_models(s, e)) return false;
    size_t n = count_jobs(s);
    if (!n)
        return ses_fail(e, SES_EFORMAT, "no jobs: no run has pretraining or a task%s",
                        s->a->tasks ? " of --tasks" : "");
    if (n > SES_ABLATE_JOBS) return ses_fail(e, SES_EFORMAT, "%zu jobs: more than %d", n, SES_ABLATE_JOBS);
    s->job = ses_alloc_array(n, sizeof *s->job, e);
    for (size_t i = 0; s->job && i < s->n_runs; i++)
        for (size_t p = 0; p < ses_ablate_models_of(s, i); p++) {
            size_t before = model_job(s, s->run[i].from, p), after = s->run[i].pretrains ? s->n_jobs : before;
            if (s->run[i].pretrains &&
                !add_job(
                    s,
                    (ses_ablate_job){ .base.after = before, .run = i, .task = SIZE_MAX, .pretrain_seed = p },
                    e))
                return false;
            if (!add_tasks(s, i, p, after, e)) return false;
        }
    return s->job != NULL;
}

bool ses_ablate_plan(ses_ablate *s, ses_err *e) { return add_jobs(s, e) || ses_wrap(e, "%s", s->path); }
