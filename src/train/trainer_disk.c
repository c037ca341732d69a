/* Disk space of a run: an estimate, compared with the free space before training starts. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/file.h"
#include "checkpoint_dir.h"
#include "trainer_impl.h"

#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* Bytes of the weights that are saved. */
static double model_bytes(const ses_model *m)
{
    double n = 0;
    for (size_t i = 0; i < ses_store_count(ses_model_store(m)); i++) {
        char name[320];
        if (ses_model_saved_name(m, i, name, sizeof name))
            n += (double)ses_count(ses_store_at(ses_model_store(m), i)->tensor);
    }
    return n * sizeof(ses_real);
}

/* Weights and optimizer states; accumulated gradients are saved only if a run is stopped. */
static double checkpoint_bytes(const ses_trainer *t)
{
    double n = model_bytes(t->o.model) * (t->pruner ? 2 : 1); /* with pruning also the dense weights */
    for (size_t m = 0; m < t->n_stores; m++) {
        if (m) n += (double)ses_store_element_count(t->store[m]) * sizeof(ses_real);
        for (size_t i = 0; i < ses_optim_state_count(t->optim[m]); i++)
            n += (double)ses_optim_state_at(t->optim[m], i).total * sizeof(ses_real);
    }
    return n;
}

/* Maximum number of checkpoints at a time: keep_checkpoints, the best one, the one being written. */
static double max_checkpoints(const ses_trainer *t, bool evaluates)
{
    double kept = (double)t->o.keep_checkpoints + (evaluates ? 2 : 1);
    return evaluates || t->o.save_every >= 0 ? fmin(kept, (double)t->total_updates) : 1;
}

typedef struct folder_size {
    const char *dir;
    double bytes;
} folder_size;

static bool add_size(void *ctx, const char *name)
{
    folder_size *f = ctx;
    struct stat s;
    char *path = ses_path_join(f->dir, name, NULL);
    if (path && !stat(path, &s)) f->bytes += (double)s.st_size;
    ses_free(path);
    return true;
}

/* Bytes of the checkpoints in the folder: the run keeps or deletes them. */
static double existing_bytes(const char *dir)
{
    ses_checkpoint_dirs l;
    double n = 0;
    if (!ses_checkpoint_dirs_find(dir, &l, NULL)) return 0;
    for (size_t i = 0; i < l.n; i++) {
        char *path = ses_checkpoint_dir_path(dir, l.p[i], NULL);
        folder_size f = { path, 0 };
        if (path) ses_dir_each(path, add_size, &f, NULL);
        n += f.bytes;
        ses_free(path);
    }
    ses_free(l.p);
    return n;
}

bool ses_trainer_check_disk(const ses_trainer *t, bool evaluates, ses_err *e)
{
    struct statvfs s;
    if (!t->dir || statvfs(t->dir, &s) || !s.f_blocks) return true; /* unknown */
    double each = checkpoint_bytes(t), n = max_checkpoints(t, evaluates);
    double need = n * each + model_bytes(t->o.model) - existing_bytes(t->dir),
           available = (double)s.f_bavail * (double)s.f_frsize;
    if (need <= available) return true;
    return ses_fail(
        e, SES_EIO,
        "%s: the run needs about %.4g MB of disk space, %.4g MB are free: %.0f checkpoints of %.4g "
        "MB and the model; free some space, keep fewer checkpoints or choose another folder",
        t->dir, need / 1e6, available / 1e6, n, each / 1e6);
}
