/* Files of jobs: job.json of finished ones, which models to keep. */
#include "ablate.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "train/checkpoint_dir.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { FILE_MAX = 1 << 26 };

/* ---- times: a model that is made again has another one ---- */

/* Members of job.json and start.json. */
static const char FINISHED[] = "finished", MODEL_FINISHED[] = "model_finished";

static int64_t now(void)
{
    struct timespec t;
    return timespec_get(&t, TIME_UTC) ? (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 : 0;
}

static int64_t time_in(const ses_json *object, const char *key)
{
    int64_t t;
    return ses_json_int(ses_json_get(object, key), &t) ? t : 0;
}

/* When the model that a job starts from was finished; 0: unknown. */
static int64_t model_time(const ses_ablate *s, const ses_ablate_job *j)
{
    const char *dir = ses_ablate_model_of(s, j);
    char *path = dir ? ses_path_join(dir, SES_ABLATE_JOB, NULL) : NULL;
    ses_json_doc *d = path && ses_path_exists(path) ? ses_json_load_object(path, FILE_MAX, NULL) : NULL;
    int64_t t = d ? time_in(ses_json_root(d), FINISHED) : 0;
    ses_json_free(d);
    ses_free(path);
    return t;
}

/* ---- earlier jobs ---- */

static bool same_arguments(const ses_ablate_job *j, const ses_json *was)
{
    if (ses_json_len(was) != j->n_words) return false;
    for (size_t i = 0; i < j->n_words; i++) {
        const char *word = ses_json_string(ses_json_at(was, i), NULL);
        if (!word || strcmp(word, j->word[i]) != 0) return false;
    }
    return true;
}

/* A folder of this name that no job has made is not touched. */
static bool check_foreign(const ses_ablate_job *j, ses_err *e)
{
    bool empty = true;
    if (!ses_path_exists(j->dir)) return true;
    char *log = ses_path_join(j->dir, SES_ABLATE_LOG, e),
         *begun = log ? ses_path_join(j->dir, SES_ABLATE_START, e) : NULL; /* ended before its log began */
    bool own = begun && (ses_path_exists(log) || ses_path_exists(begun)),
         ok = begun && (own || ses_dir_is_empty(j->dir, ".lock", &empty, e));
    ses_free(log);
    ses_free(begun);
    return ok && (own || empty ||
                  ses_fail(e, SES_EIO,
                           "%s: has files but no " SES_ABLATE_LOG " of a job: use another --output", j->dir));
}

bool ses_ablate_reset_job(const ses_ablate *s, const ses_ablate_job *j, ses_err *e)
{
    return check_foreign(j, e) && (!ses_path_exists(j->dir) || s->a->plan || ses_dir_remove_all(j->dir, e));
}

bool ses_ablate_read_job(ses_ablate *s, ses_ablate_job *j, ses_err *e)
{
    if (s->a->overwrite) return ses_ablate_reset_job(s, j, e);
    if (!check_foreign(j, e)) return false;
    char *path = ses_path_join(j->dir, SES_ABLATE_JOB, e);
    if (!path) return false;
    bool exists = ses_path_exists(path), ok = true;
    ses_err why = { 0 };
    j->record = exists ? ses_json_record_load(path, FILE_MAX, false, &why) : NULL;
    if (exists && !j->record && why.code == SES_EFORMAT) {
        fprintf(stderr, "%s: the job is run again\n", why.msg);
        ok = ses_ablate_reset_job(s, j, e);
    } else if (exists && !j->record)
        ok = ses_fail(e, why.code, "%s", why.msg);
    else if (exists && !same_arguments(j, ses_json_get(ses_json_root(j->record), "arguments")))
        ok = ses_fail(e, SES_EFORMAT,
                      "finished with other options, see %s; use another --output, or --overwrite, which "
                      "repeats all jobs",
                      path);
    int64_t made = ok && j->record ? model_time(s, j) : 0;
    if (made && made != time_in(ses_json_root(j->record), MODEL_FINISHED)) {
        ses_json_free(j->record), j->record = NULL;
        ok = ses_ablate_reset_job(s, j, e);
    }
    if (ok && j->record) {
        j->base.state = SES_JOB_DONE;
        ses_json_real(ses_json_get(ses_json_root(j->record), "seconds"), &j->base.seconds);
    }
    ses_free(path);
    return ok;
}

/* ---- started jobs ---- */

static void put_arguments(const ses_ablate_job *j, ses_json_writer *w)
{
    ses_json_member_array(w, "arguments");
    for (size_t i = 0; i < j->n_words; i++) ses_json_put_string(w, j->word[i]);
    ses_json_end_array(w);
}

bool ses_ablate_begin_job(const ses_ablate *s, ses_ablate_job *j, bool *resume, ses_err *e)
{
    *resume = false;
    if (!ses_dir_make(j->dir, e)) return false;
    j->model_time = model_time(s, j);
    char *path = ses_path_join(j->dir, SES_ABLATE_START, e);
    ses_json_doc *was = path && ses_path_exists(path) ? ses_json_load_object(path, FILE_MAX, NULL) : NULL;
    if (was && same_arguments(j, ses_json_get(ses_json_root(was), "arguments")) &&
        time_in(ses_json_root(was), MODEL_FINISHED) == j->model_time)
        *resume = ses_checkpoint_any(j->dir);
    ses_json_free(was);
    ses_json_writer *w = path ? ses_json_writer_new(2, e) : NULL;
    if (w) {
        ses_json_begin_object(w);
        put_arguments(j, w);
        ses_json_member_int(w, MODEL_FINISHED, j->model_time);
        ses_json_end_object(w);
    }
    ses_free(path);
    return w && ses_json_writer_save(w, j->dir, SES_ABLATE_START, true, e);
}

/* ---- finished jobs ---- */

double ses_ablate_result(const ses_ablate_job *j, const char *key)
{
    double x;
    const ses_json *results = j->record ? ses_json_get(ses_json_root(j->record), "results") : NULL;
    return ses_json_real(ses_json_get(results, key), &x) ? x : NAN;
}

double ses_ablate_score(const ses_ablate *s, const ses_ablate_job *j)
{
    char key[120];
    const ses_ablate_task *t = ses_ablate_task_of(s, j);
    if (!t) return NAN;
    snprintf(key, sizeof key, "eval_%s", t->metric);
    double x = ses_ablate_result(j, key);
    return isnan(x) ? ses_ablate_result(j, t->metric) : x;
}

/* The numbers of all_results.json, or of what the command has printed. */
static ses_json_doc *load_results(const ses_ablate *s, const ses_ablate_job *j, ses_err *e)
{
    const ses_ablate_task *t = ses_ablate_task_of(s, j);
    char *path = ses_path_join(j->dir, t && !t->tunes ? SES_ABLATE_OUTPUT : "all_results.json", e);
    ses_json_doc *d = path ? ses_json_load_object(path, FILE_MAX, e) : NULL;
    ses_free(path);
    return d;
}

static ses_json_doc *make_record(const ses_ablate *s, const ses_ablate_job *j, const ses_json *results,
                                 ses_err *e)
{
    double x;
    ses_json_writer *w = ses_json_writer_new(2, e);
    ses_json_begin_object(w);
    put_arguments(j, w);
    ses_json_member_int(w, FINISHED, now());
    if (j->model_time) ses_json_member_int(w, MODEL_FINISHED, j->model_time);
    ses_json_member_real(w, "seconds", j->base.seconds);
    ses_json_member_int(w, "at_once", s->a->jobs); /* jobs that shared the machine */
    ses_json_member_object(w, "results");
    for (size_t i = 0; i < ses_json_len(results); i++) {
        const ses_json *v = ses_json_at(results, i);
        if (!ses_json_real(v, &x)) continue;
        ses_json_put_key(w, ses_json_key(results, i, NULL));
        ses_json_put_value(w, v);
    }
    ses_json_end_object(w);
    ses_json_end_object(w);
    return ses_json_writer_parse(w, e);
}

/* The measure is among the results. */
static bool check_score(const ses_ablate *s, const ses_ablate_job *j, ses_err *e)
{
    const ses_ablate_task *t = ses_ablate_task_of(s, j);
    const ses_json *results = ses_json_get(ses_json_root(j->record), "results");
    ses_buf names = { 0 };
    if (!t || !isnan(ses_ablate_score(s, j))) return true;
    for (size_t i = 0; i < ses_json_len(results); i++) {
        const char *key = ses_json_key(results, i, NULL);
        if (!strncmp(key, "eval_", 5)) ses_buf_appendf(&names, "%s%s", names.len ? ", " : "", key + 5);
    }
    ses_fail(e, SES_EFORMAT, "no score \"%s\" among the results: %s", t->metric,
             names.len ? names.data : "none has a name eval_...; does the task have \"eval\"?");
    ses_buf_free(&names);
    return false;
}

/* ---- models ---- */

static bool remove_unneeded(void *ctx, const char *name)
{
    static const char *const kept[] = { SES_ABLATE_JOB, SES_ABLATE_LOG, SES_ABLATE_OUTPUT, "all_results.json",
                                        "run.json" };
    for (size_t i = 0; i < SES_LEN(kept); i++)
        if (!strcmp(name, kept[i])) return true;
    char *path = ses_path_join(ctx, name, NULL);
    if (path && ses_path_is_dir(path))
        ses_dir_remove_all(path, NULL);
    else if (path)
        ses_file_remove(path, NULL);
    ses_free(path);
    return true;
}

/* Pretrained models stay, for further tasks. */
static void remove_models(const ses_ablate *s, const ses_ablate_job *j)
{
    if (s->a->keep_models) return;
    if (j->task == SIZE_MAX)
        ses_checkpoint_remove_all(j->dir, NULL);
    else
        ses_dir_each(j->dir, remove_unneeded, j->dir, NULL);
}

bool ses_ablate_finish_job(ses_ablate *s, ses_ablate_job *j, ses_err *e)
{
    ses_json_doc *results = load_results(s, j, e);
    j->record = results ? make_record(s, j, ses_json_root(results), e) : NULL;
    ses_json_free(results);
    bool ok = j->record && check_score(s, j, e);
    ses_json_writer *w = ok ? ses_json_writer_new(2, e) : NULL;
    if (w) ses_json_put_value(w, ses_json_root(j->record));
    ok = w && ses_json_record_save(w, 2, j->dir, SES_ABLATE_JOB, true, e);
    if (ok) remove_models(s, j);
    if (!ok) ses_json_free(j->record), j->record = NULL;
    return ok;
}
