/* The ranks of a training run: see ranks.h. */
#define _GNU_SOURCE /* RTLD_NOLOAD */
#include "ranks.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json/json_helpers.h"
#include "checkpoint_dir.h"
#include "comm/comm_impl.h"
#include "sesame/base.h"
#include "settings_compare.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- lanes ---- */

enum { STATE_MAX = 1 << 28, MAX_LANES = 65536 };

/* Lanes of a checkpoint; 0: its state cannot be read. */
static int64_t checkpoint_lanes(const char *dir)
{
    char *path = ses_path_join(dir, "trainer_state.json", NULL);
    ses_json_doc *d = path && ses_path_exists(path) ? ses_json_load(path, STATE_MAX, NULL) : NULL;
    const ses_json *settings = d ? ses_json_get(ses_json_get(ses_json_root(d), "sesame"), "settings") : NULL;
    int64_t lanes = settings ? 1 : 0;
    ses_json_int(ses_json_get(settings, "lanes"), &lanes);
    ses_json_free(d);
    ses_free(path);
    return lanes >= 0 && lanes <= MAX_LANES ? lanes : 0;
}

/* Lanes of the newest checkpoint in a folder; 0: there is none. */
static int64_t resumed_lanes(const char *out)
{
    ses_checkpoint_dirs l = { 0 };
    int64_t lanes = 0;
    if (!ses_path_is_dir(out) || !ses_checkpoint_dirs_find(out, &l, NULL)) return 0;
    for (size_t i = 0; !lanes && i < l.n; i++) {
        char *path = ses_checkpoint_dir_path(out, l.p[i], NULL);
        if (path) lanes = checkpoint_lanes(path);
        ses_free(path);
    }
    ses_free(l.p);
    return lanes;
}

bool ses_ranks_set_lanes(ses_training_options *r, ses_err *e)
{
    int ranks = ses_comm_size(r->comm);
    if (r->lanes <= 0) {
        r->lanes = !ses_comm_rank(r->comm) && r->resume && r->output ? resumed_lanes(r->output) : 0;
        if (!ses_comm_bcast(r->comm, &r->lanes, sizeof r->lanes, 0, e)) return false;
        if (!r->lanes) r->lanes = ranks;
    }
    return r->lanes >= ranks ||
           ses_fail(e, SES_EUSAGE,
                    "%d ranks, but %" PRId64 " lane%s: each rank needs a lane. Start at most %" PRId64
                    " rank%s, or a new run with --lanes %d",
                    ranks, r->lanes, r->lanes == 1 ? "" : "s", r->lanes, r->lanes == 1 ? "" : "s", ranks);
}

/* ---- the folder ---- */

bool ses_ranks_check_folder(ses_comm *c, const char *dir, ses_err *e)
{
    char name[64] = "", token[24] = "";
    bool first = !ses_comm_rank(c), ok = true;
    if (ses_comm_size(c) == 1 || !dir) return true;
    if (first) {
        snprintf(name, sizeof name, ".sesame-ranks-%ld.tmp", (long)getpid());
        snprintf(token, sizeof token, "%016" PRIx64, ses_hash_key_new().k0);
    }
    if (!ses_comm_bcast(c, name, sizeof name, 0, e) || !ses_comm_bcast(c, token, sizeof token, 0, e))
        return false;
    char *path = ses_path_join(dir, name, e);
    ok = path && (!first || ses_file_write(path, token, strlen(token), true, e));
    ok = ses_comm_all_ok(c, ok, e);
    if (ok && !first) {
        size_t n = 0;
        char *text = ses_file_read(path, sizeof token, &n, NULL);
        ok = (text && n == strlen(token) && !memcmp(text, token, n)) ||
             ses_fail(e, SES_EIO,
                      "%s: this rank does not see the folder of rank 0; checkpoints need a folder that all "
                      "ranks share, e.g. by NFS or Lustre",
                      dir);
        ses_free(text);
    }
    ok = ses_comm_all_ok(c, ok, e);
    if (path && first) ses_file_remove(path, NULL);
    ses_free(path);
    return ok;
}

/* ---- agreement ---- */

static const ses_hash_key key = { 0x72616e6b73, 1 };

/* Hash of all weights, to find folders with other contents on other machines. */
static bool hash_weights(ses_model *const *model, size_t n_models, char *text, size_t size, ses_err *e)
{
    uint64_t sum = 0;
    for (size_t m = 0; m < n_models; m++) {
        const ses_store *s = model[m] ? ses_model_store(model[m]) : NULL;
        for (size_t i = 0; s && i < ses_store_count(s); i++) {
            const ses_tensor *x = ses_store_at(s, i)->tensor;
            ses_device *dev = ses_store_device(s);
            size_t bytes = (size_t)ses_count(x) * sizeof(ses_real);
            ses_real *host = ses_master_data(x) ? ses_alloc(bytes, e) : NULL;
            if (!ses_master_data(x)) continue;
            if (!host) return false;
            dev->mem->download(dev, host, ses_master_data(x), bytes);
            sum = ses_hash((ses_hash_key){ key.k0, sum }, host, bytes);
            ses_free(host);
        }
    }
    snprintf(text, size, "%016" PRIx64, sum);
    return true;
}

/* Version of cuBLASLt, which an open GPU has loaded and which chooses the algorithms of products; 0: none. */
static size_t cublas_version(void)
{
    static const char *const names[] = { "libcublasLt.so.13", "libcublasLt.so" }; /* as in gemm_cuda.cu */
    size_t version = 0;
    for (size_t i = 0; !version && i < SES_LEN(names); i++) {
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD), *symbol = NULL;
        size_t (*get)(void) = NULL;
        if (library) symbol = dlsym(library, "cublasLtGetVersion");
        memcpy(&get, &symbol, sizeof get);
        if (get) version = get();
        if (library) dlclose(library);
    }
    return version;
}

/* "cuda NVIDIA H200, bf16, cuBLAS 130200" or "cpu, f32": kind and model of the device, not its number. */
static void describe_device(const ses_device *d, char *text, size_t size)
{
    ses_gpu gpu = { 0 };
    const char *number = strchr(d->name, ':');
    if (!d->is_host) ses_gpu_describe(number ? (int)strtol(number + 1, NULL, 10) : 0, &gpu);
    snprintf(text, size, "%.*s%s%s, %s", (int)strcspn(d->name, ":"), d->name, *gpu.name ? " " : "", gpu.name,
             ses_dtype_name(ses_device_operand_dtype(d)));
    size_t used = strlen(text), version = d->is_host ? 0 : cublas_version();
    if (version) snprintf(text + used, size - used, ", cuBLAS %zu", version);
}

void ses_ranks_put_control(const ses_training_options *r, ses_json_writer *w)
{
    ses_json_member_int(w, "lanes", r->lanes);
    ses_json_member_int(w, "eval-every", r->eval_every);
    ses_json_member_int(w, "save-every", r->save_every);
    ses_json_member_int(w, "keep", r->keep_checkpoints);
    ses_json_member_real(w, "epochs", r->epochs);
    ses_json_member_int(w, "steps", r->steps);
    ses_json_member_int(w, "seed", r->seed);
    ses_json_member_bool(w, "recompute", r->recompute);
    ses_json_member_string(w, "output", r->output);
    ses_json_member_bool(w, "resume", r->resume);
    ses_json_member_bool(w, "overwrite", r->overwrite);
}

char *ses_ranks_settings_text(ses_json_writer *w, ses_err *e)
{
    const char *text = w ? ses_json_writer_text(w, NULL, e) : NULL;
    char *copy = text ? ses_strdup(text, e) : NULL;
    ses_json_writer_free(w);
    return copy;
}

/* first: the settings of rank 0. */
static bool compare_with_first(const char *first, const char *settings, ses_err *e)
{
    ses_setting_difference x;
    ses_json_doc *a = ses_json_parse(first, strlen(first), e),
                 *b = a ? ses_json_parse(settings, strlen(settings), e) : NULL;
    bool ok = b && ses_settings_compare(ses_json_root(a), ses_json_root(b), &x, e) &&
              (!x.key || ses_fail(e, SES_EARG, "%s is %s, but on rank 0 it is %s", x.key, x.b, x.a));
    ses_json_free(a);
    ses_json_free(b);
    return ok;
}

bool ses_ranks_agree_settings(ses_comm *c, const char *settings, ses_err *e)
{
    uint64_t n = strlen(settings) + 1;
    if (ses_comm_size(c) == 1) return true;
    if (!ses_comm_bcast(c, &n, sizeof n, 0, e)) return false;
    char *first = ses_alloc((size_t)n, e);
    if (first && !ses_comm_rank(c)) memcpy(first, settings, (size_t)n);
    bool ok = ses_comm_all_ok(c, first != NULL, e) && ses_comm_bcast(c, first, (size_t)n, 0, e) &&
              ses_comm_all_ok(c, compare_with_first(first, settings, e), e);
    ses_free(first);
    return ok;
}

bool ses_ranks_agree(const ses_training_options *r, const ses_rank_value *value, size_t n,
                     ses_model *const *model, size_t n_models, ses_err *e)
{
    char device[320], weights[24];
    ses_comm *c = r->comm;
    if (ses_comm_size(c) == 1) return true;
    const ses_device *dev = ses_store_device(ses_model_store(model[0]));
    describe_device(dev, device, sizeof device);
    if (!ses_comm_agree(c, "the version of Sesame", SES_VERSION, e) ||
        !ses_comm_agree(c, "the MPI library", ses_comm_library(c), e) ||
        !ses_comm_agree(c, "the device", device, e))
        return false;
    if (!ses_comm_agree(c, "the instruction set, on which results depend (--isa NAME for all ranks),",
                        ses_isa_name(dev->exec.bf16 ? dev->isa : ses_isa_vectors(dev->isa)), e))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!ses_comm_agree(c, value[i].what, value[i].text, e)) return false;
    bool hashed = hash_weights(model, n_models, weights, sizeof weights, e);
    return ses_comm_all_ok(c, hashed, e) && ses_comm_agree(c, "the model (hash of its weights)", weights, e);
}

bool ses_ranks_wrap(const ses_comm *c, ses_err *e)
{
    if (ses_comm_size(c) == 1 || !e || !strncmp(e->msg, "rank ", 5)) return false;
    return ses_wrap(e, "rank %d on %s", ses_comm_rank(c), ses_comm_host(c, ses_comm_rank(c)));
}
