/* The output folder of a training run: checks, atomic replacement, run.json. */
#define _POSIX_C_SOURCE 200809L
#include "train_folder.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "checkpoint_dir.h"
#include "text/legacy/legacy_files.h"
#include "text/tokenizer_files.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 28 };

/* ---- checks ---- */

typedef struct found {
    bool checkpoint, lock, logs, other; /* other: files a run would replace or mix with */
} found;

static bool note_entry(void *ctx, const char *name)
{
    found *f = ctx;
    if (!strncmp(name, "checkpoint-", 11))
        f->checkpoint = true;
    else if (!strcmp(name, ".lock"))
        f->lock = true;
    else if (!strcmp(name, SES_RUN_LOG) || !strcmp(name, SES_RUN_TENSORBOARD) ||
             !strcmp(name, SES_RUN_PLAN) || !strcmp(name, SES_RUN_TIMES))
        f->logs = true;
    else if (strncmp(name, ".sesame-", 8))
        f->other = true;
    return true;
}

static bool log_is_free(const ses_training_options *o, ses_err *e)
{
    struct stat s;
    if (!o->log || o->overwrite || o->resume || stat(o->log, &s) || !S_ISREG(s.st_mode)) return true;
    return ses_fail(e, SES_EIO, "log %s: exists already; overwrite replaces it, resume appends to it",
                    o->log);
}

bool ses_train_folder_check(const ses_training_options *o, ses_err *e)
{
    found f = { 0 };
    if (o->overwrite && o->resume)
        return ses_fail(e, SES_EUSAGE, "resume continues a run, overwrite replaces it: set one");
    if (!log_is_free(o, e)) return false;
    if (o->overwrite || !o->output || !ses_path_exists(o->output)) return true;
    if (!ses_dir_each(o->output, note_entry, &f, e)) return false;
    f.other |= f.logs && !f.lock; /* with a lock: left by a run that was killed before its first checkpoint */
    if (o->resume && f.other && !f.checkpoint)
        return ses_fail(e, SES_EIO,
                        "%s: no checkpoint to resume from, but other files; overwrite replaces them",
                        o->output);
    if (o->resume || (!f.checkpoint && !f.other)) return true;
    return ses_fail(
        e, SES_EIO,
        "%s: not empty: a model, a run or other files; resume continues it, overwrite replaces it",
        o->output);
}

ses_dir_lock *ses_train_folder_lock(const ses_training_options *o, ses_err *e)
{
    ses_dir_lock *lock = ses_dir_make(o->output, e) ? ses_dir_lock_new(o->output, e) : NULL;
    if (!lock || ses_train_folder_check(o, e)) return lock;
    ses_dir_lock_free(lock);
    return NULL;
}

/* ---- final files ---- */

bool ses_train_folder_copy(const char *from, const char *name, const char *dir, bool *exists, ses_err *e)
{
    char *path = ses_path_join(from, name, e), *to = path ? ses_path_join(dir, name, e) : NULL;
    bool ok = to != NULL;
    *exists = ok && ses_path_exists(path);
    if (*exists) {
        size_t n;
        char *data = ses_file_read(path, FILE_MAX, &n, e);
        ok = data && ses_file_write(to, data, n, false, e);
        ses_free(data);
    }
    ses_free(path);
    ses_free(to);
    return ok;
}

bool ses_train_folder_tokenizer(const char *from, const ses_tokenizer *t, const char *dir, ses_err *e)
{
    bool whole = false, has_json = false, ok = ses_tokenizer_convert_original(from, dir, false, &whole, e);
    for (size_t i = 0; ok && !whole && ses_path_is_dir(from) && i < SES_TOKENIZER_FILES; i++) {
        bool exists;
        ok = ses_train_folder_copy(from, ses_tokenizer_file_names[i], dir, &exists, e);
        has_json |= exists && !strcmp(ses_tokenizer_file_names[i], "tokenizer.json");
    }
    whole |= has_json;
    char *to = ok && !whole ? ses_path_join(dir, "tokenizer.json", e) : NULL;
    if (ok && !whole) ok = to && ses_tokenizer_save(t, to, false, e);
    ses_free(to);
    return ok;
}

static const char *const STAGE = ".sesame-final-";

/* Removes a staging folder or an unfinished file (see ses_file_write) of a killed process. The caller
 * holds the lock. */
static bool remove_leftover(void *ctx, const char *name)
{
    size_t n = strlen(name);
    bool stage = !strncmp(name, STAGE, strlen(STAGE));
    bool file = n > 12 && !strncmp(name, ".sesame-", 8) && !strcmp(name + n - 4, ".tmp");
    char *path = stage || file ? ses_path_join(ctx, name, NULL) : NULL;
    if (path && stage) ses_dir_remove(path, NULL);
    if (path && file) ses_file_remove(path, NULL);
    ses_free(path);
    return true;
}

/* Removes files of an earlier run that this one may not write; config.json first, so that the folder does
 * not load. */
static bool remove_stale(const char *out, ses_err *e)
{
    static const char *const names[] = { "config.json",
                                         "eval_results.json",
                                         "model.safetensors.index.json",
                                         "model.safetensors",
                                         "model.sesame-int8.index.json",
                                         "model.sesame-int8",
                                         "adapter_config.json",
                                         "adapter_model.safetensors",
                                         "adapter.safetensors",
                                         "head_config.json",
                                         "model_head.safetensors",
                                         "modules.json",
                                         "patterns.json",
                                         "generation_config.json",
                                         SES_RUN_TASKS };
    bool ok = true;
    for (size_t i = 0; ok && i < SES_LEN(names); i++) {
        char *path = ses_path_join(out, names[i], e);
        ok = path && ses_file_remove(path, e);
        ses_free(path);
    }
    return ok;
}

bool ses_train_folder_clear(const char *out, ses_err *e)
{
    ses_dir_lock *lock = ses_dir_lock_new(out, e);
    char *members = lock ? ses_path_join(out, SES_RUN_MEMBERS, e) : NULL;
    char *info = members ? ses_path_join(out, SES_RUN_INFO, e) : NULL;
    bool ok = info && remove_stale(out, e) && ses_checkpoint_remove_all(out, e) &&
              ses_dir_remove_all(members, e) && ses_file_remove(info, e);
    ses_free(info);
    ses_free(members);
    ses_dir_lock_free(lock);
    return ok;
}

bool ses_train_folder_write(const char *out, bool (*fill)(void *ctx, const char *dir, ses_err *e), void *ctx,
                            ses_err *e)
{
    char name[48];
    ses_dir_each(out, remove_leftover, (void *)out, NULL);
    snprintf(name, sizeof name, "%s%ld", STAGE, (long)getpid());
    char *stage = ses_path_join(out, name, e);
    bool ok = stage && ses_dir_make(stage, e) && fill(ctx, stage, e);
    if (!ok && stage) ses_dir_remove(stage, NULL);
    char *config = ok ? ses_path_join(stage, "config.json", e) : NULL;
    const char *last = config && ses_path_exists(config) ? "config.json" : SES_RUN_TASKS;
    ok = config && remove_stale(out, e) && ses_dir_move_into(stage, out, last, e);
    ses_free(config);
    ses_free(stage);
    return ok || ses_wrap(e, "%s: the model was not written", out);
}

/* ---- run.json ---- */

static void put_totals(const ses_run_totals *t, ses_json_writer *w)
{
    ses_json_member_object(w, "totals");
    ses_json_member_real(w, "loss_sum", t->loss_sum);
    ses_json_member_int(w, "updates", t->loss_count);
    ses_json_member_real(w, "window_sum", t->window_sum);
    ses_json_member_int(w, "window", t->window);
    ses_json_end_object(w);
}

static ses_json_doc *load(const char *dir, const char *name)
{
    char *path = ses_path_join(dir, name, NULL);
    ses_json_doc *d = path && ses_path_exists(path) ? ses_json_load(path, FILE_MAX, NULL) : NULL;
    ses_free(path);
    return d;
}

static ses_json_doc *open_info(const char *dir, ses_err *e)
{
    char *path = ses_path_join(dir, SES_RUN_INFO, e);
    ses_json_doc *d = path && ses_path_exists(path) ? ses_json_load(path, FILE_MAX, e) : NULL;
    ses_free(path);
    return d;
}

ses_json_doc *ses_run_info_open(const char *out, ses_err *e)
{
    ses_err error = { 0 };
    ses_checkpoint_dirs l = { 0 };
    ses_json_doc *d = NULL;
    bool ok = !ses_path_is_dir(out) || ses_checkpoint_dirs_find(out, &l, &error);
    for (size_t i = 0; ok && !d && i < l.n; i++) {
        char *path = ses_checkpoint_dir_path(out, l.p[i], &error);
        error = path ? (ses_err){ 0 } : error; /* a damaged checkpoint: use an older one */
        d = path ? open_info(path, &error) : NULL;
        ok = error.code != SES_ENOMEM;
        ses_free(path);
    }
    char *members = ok && !d ? ses_path_join(out, SES_RUN_MEMBERS, &error) : NULL;
    if (members) d = open_info(members, &error);
    ses_free(members);
    if (ok && !d) {
        error = (ses_err){ 0 };
        d = open_info(out, &error);
    }
    if (!d && error.code) ses_fail(e, error.code, "%s", error.msg);
    ses_free(l.p);
    return d;
}

static ses_run_totals read_losses(const ses_json *x)
{
    ses_run_totals t = { 0 };
    bool ok = ses_json_real(ses_json_get(x, "loss_sum"), &t.loss_sum) &&
              ses_json_int(ses_json_get(x, "updates"), &t.loss_count) && t.loss_count > 0 &&
              isfinite(t.loss_sum);
    if (!ok) return (ses_run_totals){ 0 };
    if (!ses_json_real(ses_json_get(x, "window_sum"), &t.window_sum) || !isfinite(t.window_sum) ||
        !ses_json_int(ses_json_get(x, "window"), &t.window) || t.window < 0 || t.window > t.loss_count)
        t.window_sum = 0, t.window = 0; /* an earlier version wrote no window */
    return t;
}

/* Sets time and energy, if they are valid. */
static void read_times(const ses_json *x, ses_run_totals *t)
{
    double seconds, joules, gpu;
    if (!ses_json_real(ses_json_get(x, "seconds"), &seconds) || !(seconds >= 0) || !isfinite(seconds) ||
        !ses_json_real(ses_json_get(x, "joules"), &joules) || !(joules >= 0) || !isfinite(joules))
        return;
    t->has_times = true;
    t->seconds = seconds;
    t->joules = joules;
    if (ses_json_real(ses_json_get(x, "gpu_joules"), &gpu) && gpu >= 0 && gpu <= joules) t->gpu_joules = gpu;
}

/* The last line of a checkpoint counts: a resumed run may have saved it again. */
static void find_times(const char *out, const ses_train_state *at, ses_run_totals *t)
{
    size_t n = 0;
    char *path = ses_path_join(out, SES_RUN_TIMES, NULL);
    char *text = path && ses_path_exists(path) ? ses_file_read(path, FILE_MAX, &n, NULL) : NULL;
    ses_free(path);
    for (const char *line = text, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        int64_t step = -1, batches = -1;
        ses_json_doc *d = ses_json_parse(line, (size_t)(end - line), NULL);
        const ses_json *x = d ? ses_json_root(d) : NULL;
        if (ses_json_int(ses_json_get(x, "step"), &step) && step == at->updates &&
            ses_json_int(ses_json_get(x, "batches"), &batches) && batches == at->batches)
            read_times(x, t);
        ses_json_free(d);
    }
    ses_free(text);
}

ses_run_totals ses_run_totals_read(const char *out, const char *checkpoint, const ses_train_state *at)
{
    ses_json_doc *d = load(checkpoint, SES_RUN_INFO);
    const ses_json *x = d ? ses_json_get(ses_json_root(d), "totals") : NULL;
    ses_run_totals t = read_losses(x);
    read_times(x, &t);
    find_times(out, at, &t);
    ses_json_free(d);
    return t;
}

bool ses_run_times_add(const char *out, const ses_train_state *at, const ses_run_totals *t, int ranks,
                       ses_err *e)
{
    size_t n = 0;
    ses_json_writer *w = ses_json_writer_new(0, e);
    char *path = w ? ses_path_join(out, SES_RUN_TIMES, e) : NULL;
    if (w) {
        ses_json_begin_object(w);
        ses_json_member_int(w, "step", at->updates);
        ses_json_member_int(w, "batches", at->batches);
        ses_json_member_int(w, "ranks", ranks);
        ses_json_member_real(w, "seconds", t->seconds);
        ses_json_member_real(w, "joules", t->joules);
        if (t->gpu_joules > 0) ses_json_member_real(w, "gpu_joules", t->gpu_joules);
        ses_json_end_object(w);
    }
    const char *text = path ? ses_json_writer_text(w, &n, e) : NULL;
    FILE *f = text ? fopen(path, "a") : NULL;
    bool ok = f && fwrite(text, 1, n, f) == n && putc('\n', f) != EOF;
    int why = errno;
    if (f && fclose(f)) ok = false, why = errno;
    if (text && !ok) ses_fail_write(path, why, e);
    ses_json_writer_free(w);
    ses_free(path);
    return ok;
}

bool ses_run_times_remove(const char *out, ses_err *e)
{
    char *path = ses_path_join(out, SES_RUN_TIMES, e);
    bool ok = path && ses_file_remove(path, e);
    ses_free(path);
    return ok;
}

static bool same_member(const ses_json *a, const ses_json *b, const char *key)
{
    ses_json_writer *x = ses_json_writer_new(0, NULL), *y = ses_json_writer_new(0, NULL);
    const ses_json *u = ses_json_get(a, key), *v = ses_json_get(b, key);
    bool same = false;
    if (x && y && u && v) {
        ses_json_put_value(x, u);
        ses_json_put_value(y, v);
        const char *s = ses_json_writer_text(x, NULL, NULL), *t = ses_json_writer_text(y, NULL, NULL);
        same = s && t && !strcmp(s, t);
    }
    ses_json_writer_free(x);
    ses_json_writer_free(y);
    return same;
}

/* An interrupted run may have replaced the checkpoints of a complete one, so the states are compared, except
 * the path of the best checkpoint: the folder may have been moved. */
bool ses_train_folder_has_result(const char *dir)
{
    static const char *const last[] = { "config.json", SES_RUN_TASKS };
    bool exists = false;
    for (size_t i = 0; i < SES_LEN(last); i++) {
        char *path = ses_path_join(dir, last[i], NULL);
        exists |= path && ses_path_exists(path);
        ses_free(path);
    }
    return exists;
}

bool ses_train_folder_is_complete(const char *out, const char *checkpoint, int64_t total_updates)
{
    static const char *const keys[] = { "global_step", "epoch", "best_metric", "log_history", "sesame" };
    ses_json_doc *was = load(checkpoint, "trainer_state.json"), *final = load(out, "trainer_state.json");
    int64_t steps = 0;
    bool ok = was && final && ses_train_folder_has_result(out) &&
              ses_json_int(ses_json_get(ses_json_root(final), "max_steps"), &steps) && steps == total_updates;
    for (size_t i = 0; ok && i < SES_LEN(keys); i++)
        ok = same_member(ses_json_root(was), ses_json_root(final), keys[i]);
    ses_json_free(was);
    ses_json_free(final);
    return ok;
}

bool ses_run_info_write(const ses_run_info *r, const char *dir, ses_err *e)
{
    ses_json_doc *options = NULL;
    if (r->options && !(options = ses_json_parse(r->options, strlen(r->options), e))) return false;
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (w) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "command", r->command);
        ses_json_member_string(w, "class", r->model ? ses_model_class_name(r->model) : r->method);
        ses_json_member_int(w, "parameters",
                            r->model ? ses_store_element_count(ses_model_store(r->model)) : r->parameters);
        ses_json_member_string(w, "metric", r->metric);
        ses_json_member_bool(w, "lower_is_better", r->lower_is_better);
        ses_json_put_key(w, "options");
        options ? ses_json_put_value(w, ses_json_root(options)) : ses_json_put_null(w);
        if (r->totals) put_totals(r->totals, w);
        ses_json_end_object(w);
    }
    ses_json_free(options);
    return ses_json_writer_save(w, dir, SES_RUN_INFO, false, e);
}
