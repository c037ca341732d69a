/* Checkpoints of a run. A folder checkpoint-UPDATES (checkpoint-UPDATES-N with N accumulated batches) holds
 *   config.json, model.safetensors   the model, in transformers' format
 *   partner.safetensors              the generator's weights, if any
 *   more.safetensors                 extra parameters, if any
 *   optimizer.safetensors            the optimizer state, under Sesame's names
 *   gradient.safetensors             accumulated gradients, if any
 *   run.json                         settings and totals of the run, if the hook add_files writes them
 *   trainer_state.json               the position of the run: transformers' keys, the rest under "sesame"
 *   manifest.json                    size and hash of each file
 * It is written under a temporary name, synced and renamed, so it is complete or absent. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "checkpoint_dir.h"
#include "manifest.h"
#include "sesame/safetensors.h"
#include "sesame/tensor.h"
#include "trainer_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STATE_MAX = 1 << 28, NAME = 320 };

/* ---- tensor files ---- */

typedef struct device_buffer { /* source of a tensor being written */
    ses_device *dev;
    const ses_real *data;
} device_buffer;

static bool read_buffer(void *ctx, void *out, size_t offset, size_t bytes, ses_err *e)
{
    const device_buffer *s = ctx;
    (void)e;
    s->dev->mem->download(s->dev, out, s->data + offset / sizeof *s->data, bytes);
    return true;
}

/* A file being written or read. */
typedef struct tensor_file {
    ses_trainer *t;
    ses_safetensors_writer *w; /* NULL: reading */
    ses_safetensors *r;        /* NULL: writing */
    device_buffer *from;
    size_t n;
    const char *file;
} tensor_file;

/* Writes a buffer to the file, or reads it from there. */
static bool transfer(tensor_file *p, const char *name, ses_real *data, int64_t n, ses_err *e)
{
    if (p->w) {
        device_buffer *s = &p->from[p->n++];
        *s = (device_buffer){ p->t->dev, data };
        return ses_safetensors_writer_add_source(p->w, name, SES_REAL, 1, &n, read_buffer, s, e);
    }
    const ses_tensor_entry *x = ses_safetensors_find(p->r, name);
    if (!x || x->dtype != SES_REAL || x->count != n)
        return ses_fail(e, SES_EFORMAT, "%s: \"%s\" is %s", p->file, name, x ? "of another size" : "missing");
    p->t->dev->mem->upload(p->t->dev, data, x->data, x->bytes);
    return true;
}

static bool transfer_optimizer(tensor_file *p, ses_err *e)
{
    for (size_t m = 0; m < p->t->n_stores; m++)
        for (size_t i = 0; i < ses_optim_state_count(p->t->optim[m]); i++) {
            char name[NAME];
            ses_optim_state s = ses_optim_state_at(p->t->optim[m], i);
            snprintf(name, sizeof name, "%zu/%s/%s", m, s.kind, s.param);
            if (!transfer(p, name, s.data, s.n, e)) return false;
        }
    return true;
}

static bool transfer_gradient(tensor_file *p, ses_err *e)
{
    for (size_t m = 0; m < p->t->n_stores; m++)
        for (size_t i = 0; i < ses_store_count(p->t->store[m]); i++) {
            char name[NAME];
            const ses_param *x = ses_store_at(p->t->store[m], i);
            snprintf(name, sizeof name, "%zu/%s", m, x->name);
            if (!x->tensor->grad) continue;
            if (!transfer(p, name, x->tensor->grad, ses_count(x->tensor), e)) return false;
        }
    return true;
}

static bool transfer_generator(tensor_file *p, ses_err *e)
{
    const ses_store *s = ses_model_store(p->t->model[1]);
    for (size_t i = 0; i < ses_store_count(s); i++) {
        const ses_param *x = ses_store_at(s, i);
        if (!transfer(p, x->name, ses_master_data(x->tensor), ses_count(x->tensor), e)) return false;
    }
    return true;
}

static bool transfer_extra(tensor_file *p, ses_err *e)
{
    for (size_t m = p->t->n_models; m < p->t->n_stores; m++)
        for (size_t i = 0; i < ses_store_count(p->t->store[m]); i++) {
            char name[NAME];
            const ses_param *x = ses_store_at(p->t->store[m], i);
            snprintf(name, sizeof name, "%zu/%s", m, x->name);
            if (!transfer(p, name, ses_master_data(x->tensor), ses_count(x->tensor), e)) return false;
        }
    return true;
}

typedef struct part {
    const char *file;
    bool (*transfer)(tensor_file *p, ses_err *e);
    bool (*is_present)(const ses_trainer *t);
} part;

static bool always(const ses_trainer *t)
{
    (void)t;
    return true;
}
static bool has_gradient(const ses_trainer *t) { return t->at.accumulated > 0; }
static bool has_generator(const ses_trainer *t) { return t->n_models > 1; }
static bool has_extra(const ses_trainer *t) { return t->n_stores > t->n_models; }

static const part parts[] = {
    { "optimizer.safetensors", transfer_optimizer, always },
    { "gradient.safetensors", transfer_gradient, has_gradient },
    { "partner.safetensors", transfer_generator, has_generator },
    { "more.safetensors", transfer_extra, has_extra },
};
static const part *const extra_part = &parts[SES_LEN(parts) - 1];

/* Upper bound of the buffers in a part. */
static size_t max_buffers(const ses_trainer *t)
{
    size_t n = 1;
    for (size_t m = 0; m < t->n_stores; m++)
        n += ses_store_count(t->store[m]) + ses_optim_state_count(t->optim[m]);
    return n;
}

static bool write_part(ses_trainer *t, const part *p, const char *dir, ses_err *e)
{
    tensor_file x = { .t = t, .file = p->file };
    char *path = ses_path_join(dir, p->file, e);
    x.from = path ? ses_alloc_array(max_buffers(t), sizeof *x.from, e) : NULL;
    x.w = x.from ? ses_safetensors_writer_new(e) : NULL;
    bool ok = x.w && p->transfer(&x, e) && ses_safetensors_save(x.w, path, false, e);
    ses_safetensors_writer_free(x.w);
    ses_free(x.from);
    ses_free(path);
    return ok;
}

static bool read_part(ses_trainer *t, const part *p, const char *dir, ses_err *e)
{
    tensor_file x = { .t = t, .file = p->file };
    char *path = ses_path_join(dir, p->file, e);
    x.r = path ? ses_safetensors_open(path, e) : NULL;
    bool ok = x.r && p->transfer(&x, e);
    for (size_t m = 0; m < t->n_stores; m++) ses_store_sync_bf16(t->store[m]);
    ses_safetensors_free(x.r);
    ses_free(path);
    return ok;
}

/* ---- the state ---- */

/* Integer counters, by JSON key. */
static const struct {
    const char *key;
    size_t offset;
    bool optional; /* 0 where a checkpoint lacks it */
} counters[] = {
    { "epoch", offsetof(ses_train_state, epoch) },
    { "index", offsetof(ses_train_state, index) },
    { "waiting", offsetof(ses_train_state, accumulated) },
    { "updates", offsetof(ses_train_state, updates) },
    { "batches", offsetof(ses_train_state, batches) },
    { "sequences", offsetof(ses_train_state, sequences) },
    { "tokens", offsetof(ses_train_state, tokens) },
    { "evaluated", offsetof(ses_train_state, evaluated) },
    { "best_update", offsetof(ses_train_state, best_update) },
    { "worse", offsetof(ses_train_state, bad_evals) },
    { "waiting_predictions", offsetof(ses_train_state, accumulated_predictions), true },
    { "average_from", offsetof(ses_train_state, average_from), true },
    { "decays", offsetof(ses_train_state, decays), true },
    { "worse_since_decay", offsetof(ses_train_state, decay_evals), true },
};

static int64_t *counter(ses_train_state *s, size_t i)
{
    return (int64_t *)(void *)((char *)s + counters[i].offset);
}

/* Rejects counters that no run can reach: they are used as indices, divisors and loop bounds. */
static bool check_counts(const ses_trainer *t, const ses_train_state *s, ses_err *e)
{
    static const int64_t limit = INT64_MAX / 2;
    const struct {
        const char *key;
        int64_t value, min, max;
    } all[] = {
        { "updates", s->updates, 0, t->total_updates },
        { "epoch", s->epoch, 0, s->updates }, /* an epoch ends with an update */
        { "waiting", s->accumulated, 0, t->lanes ? 0 : t->o.accumulate - 1 },
        { "batches", s->batches, 0, limit },
        { "sequences", s->sequences, 0, limit },
        { "tokens", s->tokens, 0, limit },
        { "worse", s->bad_evals, 0, limit },
        { "waiting_predictions", s->accumulated_predictions, 0, limit },
        { "average_from", s->average_from, 0, s->updates },
        { "decays", s->decays, 0, limit },
        { "worse_since_decay", s->decay_evals, 0, limit },
        { "evaluated", s->evaluated, -1, s->updates },
        { "best_update", s->best_update, -1, s->updates },
    };
    for (size_t i = 0; i < SES_LEN(all); i++)
        if (all[i].value < all[i].min || all[i].value > all[i].max)
            return ses_fail(e, SES_EFORMAT, "\"%s\" is %" PRId64 "; expected %" PRId64 " to %" PRId64,
                            all[i].key, all[i].value, all[i].min, all[i].max);
    int64_t count = t->o.source.count(t->o.source.ctx, s->epoch);
    if (s->index < 0 || s->index > count)
        return ses_fail(e, SES_EFORMAT, "\"index\" is %" PRId64 "; expected 0 to %" PRId64, s->index, count);
    return isfinite(s->accumulated_loss) || ses_fail(e, SES_EFORMAT, "\"waiting_loss\" is not finite");
}

/* Puts a JSON text as a value; null if it does not parse. */
static bool put_json_text(ses_json_writer *w, const char *text, size_t n, ses_err *e)
{
    ses_err bad = { 0 };
    ses_json_doc *d = ses_json_parse(text, n, &bad);
    if (d)
        ses_json_put_value(w, ses_json_root(d));
    else
        ses_json_put_null(w);
    ses_json_free(d);
    return bad.code != SES_ENOMEM || ses_fail(e, SES_ENOMEM, "%s", bad.msg);
}

static bool put_log(const ses_trainer *t, ses_json_writer *w, ses_err *e)
{
    bool ok = true;
    ses_json_begin_array(w);
    for (const char *at = t->log.data; ok && at && *at;) {
        const char *end = strchr(at, '\n');
        ok = put_json_text(w, at, (size_t)(end - at), e);
        at = end + 1;
    }
    ses_json_end_array(w);
    return ok;
}

/* The "sesame" object. */
static bool put_own_state(ses_trainer *t, ses_json_writer *w, ses_err *e)
{
    ses_json_begin_object(w);
    for (size_t i = 0; i < SES_LEN(counters); i++) {
        ses_json_member_int(w, counters[i].key, *counter(&t->at, i));
    }
    ses_json_member_real(w, "waiting_loss", t->at.accumulated_loss);
    if (t->n_scores) {
        ses_json_member_array(w, "scores");
        for (size_t i = 0; i < t->n_scores; i++) ses_json_put_real(w, t->score[i]);
        ses_json_end_array(w);
    }
    ses_json_member_uint(w, "seed", t->o.seed);
    ses_json_member_string(w, "data", *t->data_hash ? t->data_hash : NULL);
    ses_json_put_key(w, "settings");
    bool ok = put_json_text(w, t->settings, strlen(t->settings), e);
    ses_json_end_object(w);
    return ok;
}

bool ses_trainer_write_state(ses_trainer *t, const char *path, bool overwrite, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_json_put_key(w, "best_global_step");
    t->at.best_update < 0 ? ses_json_put_null(w) : ses_json_put_int(w, t->at.best_update);
    ses_json_member_real(w, "best_metric", t->at.best); /* NaN is written as null */
    ses_json_member_string(w, "best_model_checkpoint", t->best_dir);
    ses_json_member_real(w, "epoch", ses_trainer_epoch(t));
    ses_json_member_int(w, "global_step", t->at.updates);
    ses_json_put_key(w, "log_history");
    bool ok = put_log(t, w, e);
    ses_json_member_int(w, "max_steps", t->total_updates);
    ses_json_member_int(w, "num_input_tokens_seen", t->at.tokens);
    ses_json_member_int(w, "num_train_epochs", (int64_t)ceil(t->o.epochs));
    ses_json_put_key(w, "sesame");
    ok = put_own_state(t, w, e) && ok;
    ses_json_end_object(w);
    if (ok) return ses_json_writer_save(w, NULL, path, overwrite, e);
    ses_json_writer_free(w);
    return false;
}

/* The run has another length and cannot be extended, or another setting. */
static bool other_setting(const char *key, const char *was, const char *now, ses_err *e)
{
    bool length = !strcmp(key, "epochs") || !strcmp(key, "steps") || !strcmp(key, "updates");
    return ses_fail(
        e, SES_EARG, "the run was started with %s %s, not %s; %s", key, was, now,
        length ? "its learning rates depend on its length; a run can be extended only with the "
                 "schedule constant, inverse_sqrt or plateau and a warmup of 0 or a number of updates"
               : "resume it with the same settings");
}

/* NULL: the setting is absent. */
static bool same_setting(const char *key, const ses_json *was, const ses_json *now, ses_err *e)
{
    ses_json_writer *a = ses_json_writer_new(0, e), *b = a ? ses_json_writer_new(0, e) : NULL;
    if (b) now ? ses_json_put_value(a, now) : ses_json_put_null(a);
    if (b) was ? ses_json_put_value(b, was) : ses_json_put_null(b);
    const char *x = b ? ses_json_writer_text(a, NULL, e) : NULL,
               *y = x ? ses_json_writer_text(b, NULL, e) : NULL;
    bool ok = y && (!strcmp(x, y) || other_setting(key, y, x, e));
    ses_json_writer_free(a);
    ses_json_writer_free(b);
    return ok;
}

/* Fails on the first setting that differs. Some are written only if they are given: a setting may be absent
 * in either run. */
static bool same_settings(const ses_trainer *t, const ses_json *was, ses_err *e)
{
    ses_json_doc *d = ses_json_parse(t->settings, strlen(t->settings), e);
    const ses_json *now = d ? ses_json_root(d) : NULL;
    bool ok = d != NULL;
    for (size_t i = 0; ok && i < ses_json_len(now); i++) {
        const char *key = ses_json_key(now, i, NULL);
        ok = same_setting(key, ses_json_get(was, key), ses_json_at(now, i), e);
    }
    for (size_t i = 0; ok && i < ses_json_len(was); i++) {
        const char *key = ses_json_key(was, i, NULL);
        if (!ses_json_get(now, key)) ok = same_setting(key, ses_json_at(was, i), NULL, e);
    }
    ses_json_free(d);
    return ok;
}

static bool read_log(ses_trainer *t, const ses_json *log, ses_err *e)
{
    ses_buf_free(&t->log);
    for (size_t i = 0; i < ses_json_len(log); i++) {
        size_t n;
        ses_json_writer *w = ses_json_writer_new(0, e);
        if (!w) return false;
        ses_json_put_value(w, ses_json_at(log, i));
        const char *text = ses_json_writer_text(w, &n, e);
        if (text) ses_buf_append(&t->log, text, n), ses_buf_put(&t->log, '\n');
        ses_json_writer_free(w);
        if (!text) return false;
    }
    return ses_buf_ok(&t->log, e);
}

static bool read_counts(const ses_trainer *t, const ses_json *own, ses_train_state *at, ses_err *e)
{
    for (size_t i = 0; i < SES_LEN(counters); i++)
        if (!ses_json_int(ses_json_get(own, counters[i].key), counter(at, i)) &&
            !(counters[i].optional && !ses_json_get(own, counters[i].key)))
            return ses_fail(e, SES_EFORMAT, "\"sesame\" lacks the counter \"%s\"", counters[i].key);
    if (!ses_json_real(ses_json_get(own, "waiting_loss"), &at->accumulated_loss))
        return ses_fail(e, SES_EFORMAT, "\"sesame\" lacks \"waiting_loss\"");
    return check_counts(t, at, e);
}

static bool read_scores(ses_trainer *t, const ses_json *own, ses_err *e)
{
    const ses_json *list = ses_json_get(own, "scores");
    t->n_scores = 0;
    for (size_t i = 0; i < ses_json_len(list); i++) {
        double score = NAN; /* null */
        ses_json_real(ses_json_at(list, i), &score);
        if (!ses_trainer_keep_score(t, score, e)) return false;
    }
    return true;
}

/* Compares the folder's name only: dir may have been moved. */
static bool read_best(ses_trainer *t, const char *named, int64_t update, ses_err *e)
{
    ses_free(t->best_dir);
    t->best_dir = NULL;
    if (!named) return true;
    char *path = ses_checkpoint_dir_path(t->dir, (ses_checkpoint_dir){ update, 0 }, e);
    if (!path) return false;
    if (update < 0 || strcmp(ses_path_basename(named), ses_path_basename(path))) {
        ses_free(path);
        return ses_fail(e, SES_EFORMAT,
                        "\"best_model_checkpoint\" is \"%s\", but the best update is %" PRId64,
                        ses_quoted_of(named, strlen(named)).s, update);
    }
    t->best_dir = path;
    return true;
}

static bool read_state(ses_trainer *t, const char *path, ses_err *e)
{
    ses_json_doc *d = ses_json_load(path, STATE_MAX, e);
    if (!d) return false;
    const ses_json *root = ses_json_root(d), *own = ses_json_get(root, "sesame");
    ses_train_state at = { .saved = -1 };
    uint64_t seed = 0;
    bool ok = true;
    if (!ses_json_uint(ses_json_get(own, "seed"), &seed) || seed != t->o.seed)
        ok =
            ses_fail(e, SES_EARG, "the run was started with seed %" PRIu64 ", not %" PRIu64, seed, t->o.seed);
    ok = ok && same_settings(t, ses_json_get(own, "settings"), e);
    const char *data = ses_json_string(ses_json_get(own, "data"), NULL);
    if (ok && data && *t->data_hash && strcmp(data, t->data_hash))
        ok = ses_fail(e, SES_EARG,
                      "the run was started with other training data; resume it with the same data");
    int64_t done = 0, total = 0; /* a shorter run */
    if (ok && ses_json_int(ses_json_get(root, "global_step"), &done) &&
        ses_json_int(ses_json_get(root, "max_steps"), &total) && total > t->total_updates &&
        done > t->total_updates)
        ok = ses_fail(e, SES_EARG, "the run has %" PRId64 " updates already, more than %" PRId64, done,
                      t->total_updates);
    if (ok && !(read_counts(t, own, &at, e) && read_scores(t, own, e) &&
                read_log(t, ses_json_get(root, "log_history"), e) &&
                read_best(t, ses_json_string(ses_json_get(root, "best_model_checkpoint"), NULL),
                          at.best_update, e)))
        ok = ses_wrap(e, "%s", ses_path_basename(path));
    if (ok) {
        if (!ses_json_real(ses_json_get(root, "best_metric"), &at.best)) at.best = NAN;
        t->at = at;
        t->epoch_batches = t->o.source.count(t->o.source.ctx, at.epoch);
    }
    ses_json_free(d);
    return ok;
}

/* ---- weights ---- */

/* Checks that s has all weights; load: and copies them to the device. */
static bool load_weights(ses_trainer *t, const ses_safetensors *s, bool load, ses_err *e)
{
    const ses_model *m = t->o.model;
    for (size_t i = 0; i < ses_store_count(ses_model_store(m)); i++) {
        char name[NAME];
        const ses_param *p = ses_store_at(ses_model_store(m), i);
        const ses_tensor *x = p->tensor;
        if (!ses_model_saved_name(m, i, name, sizeof name)) continue;
        const ses_tensor_entry *from = ses_safetensors_find(s, name);
        if (!from && p->role != SES_PARAM_TRAINED) continue; /* not trained: not saved */
        if (!from || from->dtype != SES_REAL || from->count != ses_count(x))
            return ses_fail(e, SES_EFORMAT, "\"%s\" is %s", name, from ? "of another size" : "missing");
        if (load) t->dev->mem->upload(t->dev, ses_master_data(x), from->data, from->bytes);
    }
    return true;
}

/* All or nothing. */
static bool read_weights(ses_trainer *t, const char *dir, ses_err *e)
{
    ses_safetensors *s = ses_model_open_saved(t->o.model, dir, e);
    bool ok = s && load_weights(t, s, false, e) && load_weights(t, s, true, e);
    ses_store_sync_bf16(ses_model_store(t->o.model));
    ses_safetensors_free(s);
    return ok;
}

/* ---- folders ---- */

/* Removes a checkpoint left unfinished by a killed process. The trainer holds the lock. */
static bool remove_leftover(void *ctx, const char *name)
{
    char *path = strncmp(name, SES_CHECKPOINT_TEMP, strlen(SES_CHECKPOINT_TEMP))
                     ? NULL
                     : ses_path_join(ctx, name, NULL);
    if (path) ses_dir_remove(path, NULL);
    ses_free(path);
    return true;
}

/* Deletes all checkpoints but the newest keep_checkpoints, the best and the one just saved. */
static bool prune(ses_trainer *t, const char *saved, ses_err *e)
{
    ses_checkpoint_dirs l;
    bool ok = ses_checkpoint_dirs_find(t->dir, &l, e);
    for (size_t i = (size_t)t->o.keep_checkpoints; ok && i < l.n; i++) {
        char *path = ses_checkpoint_dir_path(t->dir, l.p[i], e);
        ok = path && (!strcmp(path, saved) || (t->best_dir && !strcmp(path, t->best_dir)) ||
                      ses_checkpoint_remove(path, e));
        ses_free(path);
    }
    ses_free(l.p);
    return ok;
}

bool ses_trainer_delete_checkpoints(ses_trainer *t, ses_err *e)
{
    ses_checkpoint_dirs l;
    bool ok = !t->dir || ses_checkpoint_dirs_find(t->dir, &l, e);
    for (size_t i = 0; ok && t->dir && i < l.n; i++) {
        char *path = ses_checkpoint_dir_path(t->dir, l.p[i], e);
        ok = path && ses_checkpoint_remove(path, e);
        ses_free(path);
    }
    if (t->dir) ses_free(l.p);
    return ok && (!t->dir || ses_checkpoint_remove_quarantined(t->dir, e));
}

static bool write_files(ses_trainer *t, const char *temp, ses_err *e)
{
    char *state = ses_path_join(temp, "trainer_state.json", e);
    bool ok = state && ses_dir_make(temp, e) &&
              ses_model_save(t->o.model, temp, &(ses_save_options){ .dtype = SES_F32 }, e);
    for (size_t i = 0; ok && i < SES_LEN(parts); i++)
        if (parts[i].is_present(t)) ok = write_part(t, &parts[i], temp, e);
    if (ok && t->hooks && t->hooks->add_files) ok = t->hooks->add_files(t->hooks->ctx, temp, e);
    ok = ok && ses_trainer_write_state(t, state, false, e) && ses_manifest_write(temp, e);
    ses_free(state);
    return ok;
}

bool ses_trainer_save(ses_trainer *t, ses_err *e)
{
    char name[80];
    if (!t->dir) return ses_fail(e, SES_EARG, "the trainer has no folder for checkpoints");
    snprintf(name, sizeof name, SES_CHECKPOINT_TEMP "%ld", (long)getpid());
    char *temp = ses_path_join(t->dir, name, e),
         *path = temp ? ses_checkpoint_dir_path(t->dir,
                                                (ses_checkpoint_dir){ t->at.updates, t->at.accumulated }, e)
                      : NULL;
    bool ok = path != NULL, best = t->at.best_update == t->at.updates && !t->at.accumulated;
    if (ok && best) { /* its trainer_state.json names it */
        ses_free(t->best_dir);
        t->best_dir = ses_strdup(path, e);
        ok = t->best_dir != NULL;
    }
    ses_dir_each(t->dir, remove_leftover, t->dir, NULL);
    ok = ok && write_files(t, temp, e) && ses_dir_replace(temp, path, e);
    if (!ok && temp) ses_dir_remove(temp, NULL);
    if (!ok) ses_wrap(e, "checkpoint of update %" PRId64, t->at.updates);
    if (ok) t->at.saved = t->at.updates;
    ok = ok && prune(t, path, e);
    ses_free(temp);
    ses_free(path);
    return ok;
}

static bool load(ses_trainer *t, const char *dir, ses_err *e)
{
    char *state = ses_path_join(dir, "trainer_state.json", e);
    bool ok =
        state && read_state(t, state, e) && ses_trainer_restore_unfrozen(t, e) && read_weights(t, dir, e);
    for (size_t i = 0; ok && i < SES_LEN(parts); i++)
        if (parts[i].is_present(t)) ok = read_part(t, &parts[i], dir, e);
    for (size_t i = 0; ok && i < t->n_stores; i++) {
        ses_optim_set_steps(t->optim[i], t->at.updates);
        if (t->at.average_from > 0) ses_optim_average_from(t->optim[i], t->at.average_from);
    }
    if (ok) t->at.saved = t->at.updates;
    ses_free(state);
    return ok;
}

/* Renames the damaged checkpoints: they would count as the newest ones, and prune() would delete new ones. */
static bool quarantine(const ses_trainer *t, const ses_checkpoint_dir *p, size_t n, ses_err *e)
{
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        char *path = ses_checkpoint_dir_path(t->dir, p[i], e);
        ok = path && ses_checkpoint_quarantine(path, e);
        ses_free(path);
    }
    return ok;
}

bool ses_trainer_resume(ses_trainer *t, ses_resume_result *out, ses_err *e)
{
    ses_checkpoint_dirs l;
    size_t damaged = 0;
    *out = (ses_resume_result){ 0 };
    if (!t->dir) return ses_fail(e, SES_EARG, "the trainer has no folder for checkpoints");
    bool ok = ses_checkpoint_dirs_find(t->dir, &l, e);
    for (size_t i = 0; ok && !out->found && i < l.n; i++) {
        ses_err why = { 0 };
        char *path = ses_checkpoint_dir_path(t->dir, l.p[i], e);
        out->found = path && ses_manifest_check(path, &why) && load(t, path, &why);
        ok = path != NULL;
        if (why.code == SES_EARG || why.code == SES_ENOMEM) /* the checkpoint itself may be intact */
            ok = ses_fail(e, why.code, "%s: %s", path, why.msg);
        if (out->found) {
            snprintf(out->dir, sizeof out->dir, "%s", path);
            damaged = i;
        } else if (ok) {
            size_t used = strlen(out->skipped);
            snprintf(out->skipped + used, sizeof out->skipped - used, "%s%s: %s", used ? "; " : "",
                     ses_path_basename(path), why.msg);
        }
        ses_free(path);
    }
    if (ok && !out->found && l.n)
        ok = ses_fail(e, SES_EFORMAT, "%s: no intact checkpoint: %s", t->dir, out->skipped);
    ok = ok && quarantine(t, l.p, damaged, e);
    ses_free(l.p);
    return ok;
}

const char *ses_trainer_best_dir(const ses_trainer *t) { return t->best_dir; }

bool ses_trainer_restore_best(ses_trainer *t, ses_err *e)
{
    if (!t->best_dir) return true;
    return (ses_manifest_check(t->best_dir, e) || ses_wrap(e, "%s", t->best_dir)) &&
           read_weights(t, t->best_dir, e) && (!has_extra(t) || read_part(t, extra_part, t->best_dir, e));
}
