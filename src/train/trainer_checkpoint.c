/* Checkpoints of a run. A folder checkpoint-UPDATES (checkpoint-UPDATES-N with N accumulated batches) holds
 *   config.json, model.safetensors   the model, in transformers' format
 *   partner.safetensors              the generator's weights, if any
 *   more.safetensors                 extra parameters, if any
 *   dense.safetensors                with pruning: the weights without masks; the model has the masked ones
 *   optimizer.safetensors            the optimizer state, under Sesame's names
 *   gradient.safetensors             accumulated gradients, if any
 *   run.json                         settings and totals of the run, if the hook add_files writes them
 *   trainer_state.json               the position of the run: transformers' keys, the rest under "sesame"
 *   manifest.json                    size and hash of each file
 * It is written under a temporary name, synced and renamed, so it is complete or absent.
 *
 * In distributed training all ranks write: each its slices of the optimizer state, rank 0 everything else.
 * The bytes do not depend on the number of ranks, and any number can continue from them. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/file.h"
#include "checkpoint_dir.h"
#include "comm/comm_impl.h"
#include "io/manifest.h"
#include "io/safetensors_impl.h"
#include "ranks.h"
#include "sesame/safetensors.h"
#include "sesame/unstable/tensor.h"
#include "train/prune/pruner.h"
#include "trainer_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 320 };

/* ---- tensor files ---- */

/* A buffer of the run: elements offset .. offset + n - 1 of a tensor of `total` elements. Other ranks have
 * the others. */
typedef struct slice {
    ses_real *data; /* [n], on the device */
    int64_t n, offset, total;
} slice;

typedef struct device_slice { /* source of a tensor being written */
    ses_device *dev;
    slice s;
} device_slice;

/* offset: in the whole tensor. */
static bool read_buffer(void *ctx, void *out, size_t offset, size_t bytes, ses_err *e)
{
    const device_slice *x = ctx;
    (void)e;
    x->dev->mem->download(x->dev, out, x->s.data + offset / sizeof *x->s.data - x->s.offset, bytes);
    return true;
}

/* A file being written or read. */
typedef struct tensor_file {
    ses_trainer *t;
    ses_safetensors_writer *w; /* NULL: reading */
    ses_safetensors *r;        /* NULL: writing */
    device_slice *from;
    size_t n;
    const char *file;
} tensor_file;

/* Adds a buffer to the file, or reads it from there. */
static bool transfer(tensor_file *p, const char *name, slice s, ses_err *e)
{
    if (p->w) {
        device_slice *x = &p->from[p->n++];
        *x = (device_slice){ p->t->dev, s };
        return ses_safetensors_writer_add_slice(p->w, name, SES_REAL, s.total,
                                                (size_t)s.offset * sizeof *s.data,
                                                (size_t)s.n * sizeof *s.data, read_buffer, x, e);
    }
    const ses_tensor_entry *x = ses_safetensors_find(p->r, name);
    if (!x || x->dtype != SES_REAL || x->count != s.total)
        return ses_fail(e, SES_EFORMAT, "%s: \"%s\" is %s", p->file, name, x ? "of another size" : "missing");
    if (s.n)
        p->t->dev->mem->upload(p->t->dev, s.data, (const char *)x->data + (size_t)s.offset * sizeof *s.data,
                               (size_t)s.n * sizeof *s.data);
    return true;
}

/* A whole tensor, which every rank has and rank 0 writes. */
static bool transfer_whole(tensor_file *p, const char *name, ses_real *data, int64_t n, ses_err *e)
{
    bool held = !p->w || !ses_comm_rank(p->t->o.comm);
    return transfer(p, name, (slice){ data, held ? n : 0, 0, n }, e);
}

static bool transfer_optimizer(tensor_file *p, ses_err *e)
{
    for (size_t m = 0; m < p->t->n_stores; m++)
        for (size_t i = 0; i < ses_optim_state_count(p->t->optim[m]); i++) {
            char name[NAME];
            ses_optim_state s = ses_optim_state_at(p->t->optim[m], i);
            snprintf(name, sizeof name, "%zu/%s/%s", m, s.kind, s.param);
            if (!transfer(p, name, (slice){ s.data, s.n, s.offset, s.total }, e)) return false;
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
            if (!transfer_whole(p, name, x->tensor->grad, ses_count(x->tensor), e)) return false;
        }
    return true;
}

static bool transfer_generator(tensor_file *p, ses_err *e)
{
    const ses_store *s = ses_model_store(p->t->model[1]);
    for (size_t i = 0; i < ses_store_count(s); i++) {
        const ses_param *x = ses_store_at(s, i);
        if (!transfer_whole(p, x->name, ses_master_data(x->tensor), ses_count(x->tensor), e)) return false;
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
            if (!transfer_whole(p, name, ses_master_data(x->tensor), ses_count(x->tensor), e)) return false;
        }
    return true;
}

static bool transfer_dense(tensor_file *p, ses_err *e)
{
    const ses_pruner *x = p->t->pruner;
    for (size_t i = 0; i < x->n_weights; i++)
        if (!transfer_whole(p, x->weight[i].param->name, x->weight[i].dense, x->weight[i].n, e)) return false;
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
static bool has_pruner(const ses_trainer *t) { return t->pruner != NULL; }

static const part parts[] = {
    { "optimizer.safetensors", transfer_optimizer, always },
    { "gradient.safetensors", transfer_gradient, has_gradient },
    { "partner.safetensors", transfer_generator, has_generator },
    { "more.safetensors", transfer_extra, has_extra },
    { "dense.safetensors", transfer_dense, has_pruner },
};
/* Parts with weights, besides the model's. */
static const part *const weight_parts[] = { &parts[SES_LEN(parts) - 2], &parts[SES_LEN(parts) - 1] };

/* Upper bound of the buffers in a part. */
static size_t max_buffers(const ses_trainer *t)
{
    size_t n = 1;
    for (size_t m = 0; m < t->n_stores; m++)
        n += ses_store_count(t->store[m]) + ses_optim_state_count(t->optim[m]);
    return n;
}

/* All ranks write a part: rank 0 creates the file (create), then each rank writes its slices (fill). */
typedef bool write_fn(const ses_safetensors_writer *w, const char *path, ses_err *e);

static bool write_part(ses_trainer *t, const part *p, const char *dir, write_fn *write, ses_err *e)
{
    tensor_file x = { .t = t, .file = p->file };
    char *path = ses_path_join(dir, p->file, e);
    x.from = path ? ses_alloc_array(max_buffers(t), sizeof *x.from, e) : NULL;
    x.w = x.from ? ses_safetensors_writer_new(e) : NULL;
    bool ok = x.w && p->transfer(&x, e) && write(x.w, path, e);
    ses_safetensors_writer_free(x.w);
    ses_free(x.from);
    ses_free(path);
    return ok;
}

static bool write_parts(ses_trainer *t, const char *dir, write_fn *write, ses_err *e)
{
    bool ok = true;
    for (size_t i = 0; ok && i < SES_LEN(parts); i++)
        if (parts[i].is_present(t)) ok = write_part(t, &parts[i], dir, write, e);
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

/* All or nothing, on all ranks. */
static bool read_weights(ses_trainer *t, const char *dir, ses_err *e)
{
    ses_safetensors *s = ses_model_open_saved(t->o.model, dir, e);
    bool ok = ses_comm_all_ok(t->o.comm, s && load_weights(t, s, false, e), e) && load_weights(t, s, true, e);
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

static bool open_dir(ses_trainer *t, ses_err *e)
{
    return ses_dir_make(t->dir, e) && (t->lock = ses_dir_lock_new(t->dir, e)) && ses_dir_recover(t->dir, e);
}

bool ses_trainer_open_dir(ses_trainer *t, ses_err *e)
{
    if (!t->dir) return true;
    return ses_comm_all_ok(t->o.comm, ses_comm_rank(t->o.comm) || open_dir(t, e), e) &&
           ses_ranks_check_folder(t->o.comm, t->dir, e);
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
    return !t->dir || ses_comm_rank(t->o.comm) || ses_checkpoint_remove_all(t->dir, e);
}

/* Rank 0: the folder with the model, and the files that all ranks fill. */
static bool begin_files(ses_trainer *t, const char *temp, ses_err *e)
{
    return ses_dir_make(temp, e) &&
           ses_model_save(t->o.model, temp, &(ses_save_options){ .dtype = SES_F32 }, e) &&
           write_parts(t, temp, ses_safetensors_create, e);
}

/* Rank 0: the state and the manifest, which is the last file. */
static bool end_files(ses_trainer *t, const char *temp, ses_err *e)
{
    char *state = ses_path_join(temp, "trainer_state.json", e);
    bool ok = state && ses_trainer_write_state(t, state, false, e) && ses_manifest_write(temp, e);
    ses_free(state);
    return ok;
}

/* The end of a step of saving: all ranks know whether it has succeeded on all of them. */
static bool all_saved(const ses_trainer *t, bool ok, ses_err *e)
{
    if (!ok) ses_wrap(e, "checkpoint of update %" PRId64, t->at.updates);
    return ses_comm_all_ok(t->o.comm, ok, e);
}

static bool write_files(ses_trainer *t, const char *temp, ses_err *e)
{
    bool first = !ses_comm_rank(t->o.comm);
    if (!all_saved(t, !first || begin_files(t, temp, e), e)) return false;
    bool ok = !t->hooks || !t->hooks->add_files || t->hooks->add_files(t->hooks->ctx, first ? temp : NULL, e);
    ok = ok && write_parts(t, temp, ses_safetensors_fill, e);
    return all_saved(t, ok, e) && all_saved(t, !first || end_files(t, temp, e), e);
}

/* Path of the temporary folder: rank 0 chooses its name. Free with ses_free. */
static char *temp_path(const ses_trainer *t, ses_err *e)
{
    char name[80];
    int64_t id = getpid();
    if (!ses_comm_bcast(t->o.comm, &id, sizeof id, 0, e)) return NULL;
    snprintf(name, sizeof name, SES_CHECKPOINT_TEMP "%" PRId64, id);
    return ses_path_join(t->dir, name, e);
}

static bool set_best_dir(ses_trainer *t, const char *path, ses_err *e)
{
    bool best = t->at.best_update == t->at.updates && !t->at.accumulated;
    if (!best) return true;
    ses_free(t->best_dir);
    t->best_dir = ses_strdup(path, e); /* its trainer_state.json names it */
    return t->best_dir != NULL;
}

bool ses_trainer_save(ses_trainer *t, ses_err *e)
{
    bool first = !ses_comm_rank(t->o.comm);
    if (!t->dir) return ses_fail(e, SES_EARG, "the trainer has no folder for checkpoints");
    char *temp = temp_path(t, e),
         *path = temp ? ses_checkpoint_dir_path(t->dir,
                                                (ses_checkpoint_dir){ t->at.updates, t->at.accumulated }, e)
                      : NULL;
    bool ok = path && set_best_dir(t, path, e);
    if (first) ses_dir_each(t->dir, remove_leftover, t->dir, NULL);
    ok = ok && ses_trainer_gather_weights(t, e) && write_files(t, temp, e) &&
         all_saved(t, !first || ses_dir_replace(temp, path, e), e);
    if (!ok && temp && first) ses_dir_remove(temp, NULL);
    if (ok) t->at.saved = t->at.updates;
    ok = ok && all_saved(t, !first || prune(t, path, e), e);
    ses_free(temp);
    ses_free(path);
    return ok;
}

static bool load(ses_trainer *t, const char *dir, ses_err *e)
{
    char *state = ses_path_join(dir, "trainer_state.json", e);
    bool ok = state && ses_trainer_read_state(t, state, e) && ses_trainer_restore_unfrozen(t, e);
    ok = ses_comm_all_ok(t->o.comm, ok, e) && read_weights(t, dir, e);
    for (size_t i = 0; ok && i < SES_LEN(parts); i++)
        if (parts[i].is_present(t)) ok = read_part(t, &parts[i], dir, e);
    ok = ses_comm_all_ok(t->o.comm, ok, e);
    for (size_t i = 0; ok && i < t->n_stores; i++) {
        ses_optim_set_steps(t->optim[i], t->at.updates);
        if (t->at.average_from > 0) ses_optim_average_from(t->optim[i], t->at.average_from);
    }
    if (ok && t->pruner) ses_pruner_restore(t->pruner, t->at.updates);
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

/* The checkpoints that rank 0 finds, on all ranks. */
static bool find_checkpoints(const ses_trainer *t, ses_checkpoint_dirs *l, ses_err *e)
{
    ses_comm *c = t->o.comm;
    bool first = !ses_comm_rank(c);
    *l = (ses_checkpoint_dirs){ 0 };
    if (!ses_comm_all_ok(c, !first || ses_checkpoint_dirs_find(t->dir, l, e), e)) return false;
    uint64_t n = l->n;
    if (!ses_comm_bcast(c, &n, sizeof n, 0, e)) return false;
    if (!first && !(l->p = ses_alloc_array((size_t)n + 1, sizeof *l->p, e))) return false;
    l->n = (size_t)n;
    return ses_comm_bcast(c, l->p, l->n * sizeof *l->p, 0, e);
}

/* Adds the reason why a checkpoint was not used. */
static void note_skipped(ses_resume_result *out, const char *path, const char *why)
{
    size_t used = strlen(out->skipped);
    snprintf(out->skipped + used, sizeof out->skipped - used, "%s%s: %s", used ? "; " : "",
             ses_path_basename(path), why);
}

bool ses_trainer_resume(ses_trainer *t, ses_resume_result *out, ses_err *e)
{
    ses_checkpoint_dirs l;
    size_t damaged = 0;
    bool first = !ses_comm_rank(t->o.comm);
    *out = (ses_resume_result){ 0 };
    if (!t->dir) return ses_fail(e, SES_EARG, "the trainer has no folder for checkpoints");
    bool ok = find_checkpoints(t, &l, e);
    for (size_t i = 0; ok && !out->found && i < l.n; i++) {
        ses_err why = { 0 };
        char *path = ses_checkpoint_dir_path(t->dir, l.p[i], e);
        out->found = path && ses_comm_all_ok(t->o.comm, !first || ses_manifest_check(path, &why), &why) &&
                     load(t, path, &why);
        ok = path != NULL;
        if (why.code == SES_EARG || why.code == SES_ENOMEM) /* the checkpoint itself may be intact */
            ok = ses_fail(e, why.code, "%s: %s", path, why.msg);
        if (out->found) {
            snprintf(out->dir, sizeof out->dir, "%s", path);
            damaged = i;
        } else if (ok) {
            note_skipped(out, path, why.msg);
        }
        ses_free(path);
    }
    if (ok && !out->found && l.n)
        ok = ses_fail(e, SES_EFORMAT, "%s: no intact checkpoint: %s", t->dir, out->skipped);
    ok = ok && ses_comm_all_ok(t->o.comm, !first || quarantine(t, l.p, damaged, e), e);
    ses_free(l.p);
    return ok;
}

const char *ses_trainer_best_dir(const ses_trainer *t) { return t->best_dir; }

bool ses_trainer_restore_best(ses_trainer *t, ses_err *e)
{
    if (!t->best_dir) return true;
    bool intact = ses_comm_rank(t->o.comm) || ses_manifest_check(t->best_dir, e);
    bool ok = (ses_comm_all_ok(t->o.comm, intact, e) || ses_wrap(e, "%s", t->best_dir)) &&
              read_weights(t, t->best_dir, e);
    for (size_t i = 0; ok && i < SES_LEN(weight_parts); i++)
        ok = ses_comm_all_ok(
            t->o.comm, !weight_parts[i]->is_present(t) || read_part(t, weight_parts[i], t->best_dir, e), e);
    if (ok && t->pruner) ses_pruner_restore(t->pruner, t->at.best_update);
    return ok;
}
