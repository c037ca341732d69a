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

const char *ses_ablate_job_name(const ses_ablate *s, const ses_ablate_job *j, char *buf, size_t size)
{
    const ses_ablate_task *t = ses_ablate_task_of(s, j);
    char pretrain[48] = "", seed[48] = "";
    if (s->n_pretrain_seeds > 1 && s->run[j->run].pretrains)
        snprintf(pretrain, sizeof pretrain, ", pretraining seed %" PRId64,
                 s->pretrain_seed[j->pretrain_seed]);
    if (t && t->tunes) snprintf(seed, sizeof seed, ", seed %" PRId64, s->seed[j->seed]);
    snprintf(buf, size, "%s%s%s%s%s", s->run[j->run].name, pretrain, t ? ": " : "", t ? t->name : "", seed);
    return buf;
}

/* ---- folders ---- */

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

static bool add_number(ses_ablate *s, ses_ablate_words *w, const char *option, int64_t n, ses_err *e)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, n);
    return ses_ablate_add_word(s, w, option, text, e);
}

static bool put_pretraining(ses_ablate *s, const ses_ablate_job *j, ses_ablate_words *w, ses_err *e)
{
    const ses_ablate_run *a = &s->run[j->run];
    char where[SES_ABLATE_FOLDER + 16];
    snprintf(where, sizeof where, "run \"%.180s\"", a->name);
    const ses_ablate_layer layer[] = {
        { .object = s->common, .where = "\"common\"" },
        { .object = ses_json_root(s->set), .where = "--set" },
        { .object = a->change, .where = where, .reserved = "tune|pretrain" },
        { .object = s->grid, .where = "\"grid\"", .at = a->at },
    };
    return ses_ablate_add_options(s, w, ses_command_find("pretrain"), layer, SES_LEN(layer), e) &&
           (!s->n_pretrain_seeds || add_number(s, w, "--seed=", s->pretrain_seed[j->pretrain_seed], e));
}

static bool put_tuning(ses_ablate *s, const ses_ablate_job *j, ses_ablate_words *w, ses_err *e)
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
           (!a->model || a->pretrains || ses_ablate_add_word(s, w, "--model=", a->model, e)) &&
           add_number(s, w, "--seed=", s->seed[j->seed], e);
}

/* A task without training: its files, then options. */
static bool put_evaluation(ses_ablate *s, const ses_ablate_job *j, ses_ablate_words *w, ses_err *e)
{
    const ses_ablate_task *t = &s->task[j->task];
    const ses_ablate_run *a = &s->run[j->run];
    const ses_json *data = ses_json_get(t->options, "data");
    char task[SES_ABLATE_FOLDER + 16];
    snprintf(task, sizeof task, "task \"%.180s\"", t->name);
    bool list = ses_json_type_of(data) == SES_JSON_ARRAY;
    const ses_ablate_layer layer = { .object = t->options, .where = task, .reserved = "command|score|data" };
    if (!a->pretrains && !a->model)
        return ses_fail(e, SES_EFORMAT, "%s needs a model, and run \"%s\" has none", task, a->name);
    for (size_t i = 0; i < (list ? ses_json_len(data) : 1); i++) {
        const char *path = ses_json_string(list ? ses_json_at(data, i) : data, NULL);
        if (!path) return ses_fail(e, SES_EFORMAT, "%s: \"data\": expected the names of files", task);
        if (!ses_path_exists(path)) return ses_fail(e, SES_EIO, "%s: \"data\": %s: no such file", task, path);
        if (!ses_ablate_add_word(s, w, path, "", e)) return false;
    }
    return ses_ablate_add_options(s, w, t->command, &layer, 1, e);
}

/* --dtype changes results, so it is one of the arguments that finished jobs are compared by. */
static bool put_dtype(ses_ablate *s, ses_ablate_words *w, ses_err *e)
{
    static const char *const name[] = { "f32", "f16", "bf16", "int8" };
    return !s->a->compute.dtype || ses_ablate_add_word(s, w, "--dtype=", name[s->a->compute.dtype], e);
}

/* The options that this command adds are valid, so a job is checked with them. */
static bool check_words(ses_ablate *s, const ses_command *c, const ses_ablate_words *w, bool writes,
                        ses_err *e)
{
    ses_ablate_words all = *w;
    all.cap = all.n; /* a copy */
    return (!writes || ses_ablate_add_word(s, &all, "--output=", "x", e)) &&
           (writes || c->has_model_operand || ses_ablate_add_word(s, &all, "--model=", ".", e)) &&
           ses_ablate_check_words(c, &all, e);
}

/* ---- jobs ---- */

static bool add_job(ses_ablate *s, ses_ablate_job j, ses_err *e)
{
    const ses_ablate_task *t = ses_ablate_task_of(s, &j);
    const ses_command *c = t ? t->command : ses_command_find("pretrain");
    char name[2 * SES_ABLATE_FOLDER];
    ses_ablate_words w = { 0 };
    if (s->n_jobs == SES_ABLATE_JOBS) return ses_fail(e, SES_EFORMAT, "more than %d jobs", SES_ABLATE_JOBS);
    bool ok = (!t         ? put_pretraining(s, &j, &w, e)
               : t->tunes ? put_tuning(s, &j, &w, e)
                          : put_evaluation(s, &j, &w, e)) &&
              put_dtype(s, &w, e);
    if (ok && j.seed == 0) /* seeds are valid */
        ok = check_words(s, c, &w, !t || t->tunes, e) ||
             ses_wrap(e, "%s", ses_ablate_job_name(s, &j, name, sizeof name));
    j.word = w.word;
    j.n_words = w.n;
    j.dir = ok ? folder_of(s, &j, e) : NULL;
    if (!j.dir) return false;
    s->job[s->n_jobs++] = j;
    return true;
}

static bool add_tasks(ses_ablate *s, size_t run, size_t pretrain_seed, size_t after, ses_err *e)
{
    for (size_t t = 0; t < s->n_tasks; t++)
        for (size_t k = 0; k < (s->task[t].tunes ? s->n_seeds : 1); k++)
            if (!add_job(
                    s,
                    (ses_ablate_job){
                        .run = run, .task = t, .after = after, .pretrain_seed = pretrain_seed, .seed = k },
                    e))
                return false;
    return true;
}

static size_t pretrain_seeds_of(const ses_ablate *s, size_t run)
{
    return s->run[run].pretrains && s->n_pretrain_seeds ? s->n_pretrain_seeds : 1;
}

static size_t count_jobs(const ses_ablate *s)
{
    size_t n = 0, tasks = 0;
    for (size_t t = 0; t < s->n_tasks; t++) tasks += s->task[t].tunes ? s->n_seeds : 1;
    for (size_t i = 0; i < s->n_runs; i++) n += pretrain_seeds_of(s, i) * (tasks + s->run[i].pretrains);
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

static bool add_jobs(ses_ablate *s, ses_err *e)
{
    if (!check_task_folders(s, e)) return false;
    size_t n = count_jobs(s);
    if (!n) return ses_fail(e, SES_EFORMAT, "no jobs: no run has pretraining, and \"tasks\" is empty");
    if (n > SES_ABLATE_JOBS) return ses_fail(e, SES_EFORMAT, "%zu jobs: more than %d", n, SES_ABLATE_JOBS);
    s->job = ses_alloc_array(n, sizeof *s->job, e);
    for (size_t i = 0; s->job && i < s->n_runs; i++)
        for (size_t p = 0; p < pretrain_seeds_of(s, i); p++) {
            size_t after = s->run[i].pretrains ? s->n_jobs : SIZE_MAX;
            if (s->run[i].pretrains &&
                !add_job(
                    s, (ses_ablate_job){ .run = i, .task = SIZE_MAX, .after = SIZE_MAX, .pretrain_seed = p },
                    e))
                return false;
            if (!add_tasks(s, i, p, after, e)) return false;
        }
    return s->job != NULL;
}

bool ses_ablate_plan(ses_ablate *s, ses_err *e) { return add_jobs(s, e) || ses_wrap(e, "%s", s->path); }
