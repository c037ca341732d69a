/* Saves a folder of weights. All temporary files are complete on the disk before the first one is renamed;
 * the index is renamed last. */
#include "safetensors_impl.h"

#include "base/alloc.h"
#include "base/str.h"
#include "sesame/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Extensions of weight files. */
static const char plain_ext[] = "safetensors", int8_ext[] = SES_INT8_EXT;

enum { NAME = 48, MAX_SHARDS = 99999 };

typedef struct shard {
    char name[NAME];
    size_t first, n; /* items, in the order of declaration */
    ses_file_writer *file;
} shard;

typedef struct plan {
    const ses_safetensors_writer *w; /* with its metadata complete */
    const char *dir, *ext;
    bool overwrite;
    shard *shard;
    size_t n;
    char index_name[NAME];
    ses_file_writer *index; /* NULL for a single file */
} plan;

static bool matches(const char *name, const char *form)
{
    for (; *form; name++, form++)
        if (*form == '#' ? *name < '0' || *name > '9' : *name != *form) return false;
    return true;
}

/* "model.safetensors", "model.safetensors.index.json" or "model-00001-of-00002.safetensors" */
static bool is_weights(const char *name, const char *ext)
{
    static const char one[] = "model.", numbered[] = "model-#####-of-#####.";
    bool sharded = matches(name, numbered);
    size_t n = strlen(ext);
    if (!sharded && !matches(name, one)) return false;
    name += sharded ? strlen(numbered) : strlen(one);
    return !strncmp(name, ext, n) && (!name[n] || (!sharded && !strcmp(name + n, ".index.json")));
}

static bool is_new(const plan *p, const char *name)
{
    if (p->n > 1 && strcmp(name, p->index_name) == 0) return true;
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(name, p->shard[i].name) == 0) return true;
    return false;
}

/* Fills each shard in declaration order, as transformers does; a tensor above the limit gets its own
 * shard. */
static bool plan_shards(plan *p, size_t limit, ses_err *e)
{
    const ses_safetensors_writer *w = p->w;
    p->shard = ses_alloc_array(w->n + 1, sizeof *p->shard, e);
    if (!p->shard) return false;
    size_t used = 0;
    p->n = 1;
    for (size_t i = 0; i < w->n; i++) {
        shard *s = &p->shard[p->n - 1];
        if (limit && s->n && (w->item[i].bytes > limit || used > limit - w->item[i].bytes)) {
            s = &p->shard[p->n++];
            s->first = i;
            used = 0;
        }
        s->n++;
        used = w->item[i].bytes > SIZE_MAX - used ? SIZE_MAX : used + w->item[i].bytes;
    }
    if (p->n > MAX_SHARDS)
        return ses_fail(e, SES_EARG, "%zu shards, the maximum is %d: increase the shard size", p->n,
                        MAX_SHARDS);
    for (size_t i = 0; i < p->n; i++)
        if (p->n == 1)
            snprintf(p->shard[i].name, NAME, "model.%s", p->ext);
        else
            snprintf(p->shard[i].name, NAME, "model-%05u-of-%05u.%s", (unsigned)i + 1, (unsigned)p->n,
                     p->ext);
    snprintf(p->index_name, NAME, "model.%s.index.json", p->ext);
    return true;
}

typedef struct index_entry {
    const char *name, *file;
} index_entry;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const index_entry *)a)->name, ((const index_entry *)b)->name);
}

/* Same text as json.dumps(index, indent=2, sort_keys=True), with a line end. */
static bool put_index(const plan *p, index_entry *all, ses_err *e)
{
    const ses_safetensors_writer *w = p->w;
    ses_json_writer *j = ses_json_writer_new(2, e);
    if (!j) return false;
    uint64_t total = 0;
    for (size_t i = 0; i < w->n; i++) total += w->item[i].bytes;
    ses_json_writer_set_ascii(j, true);
    ses_json_begin_object(j);
    ses_json_member_object(j, "metadata");
    ses_json_member_uint(j, "total_size", total);
    ses_json_end_object(j);
    ses_json_member_object(j, "weight_map");
    for (size_t i = 0; i < w->n; i++) { ses_json_member_string(j, all[i].name, all[i].file); }
    ses_json_end_object(j);
    ses_json_end_object(j);
    size_t n = 0;
    const char *text = ses_json_writer_text(j, &n, e);
    bool ok = text && ses_file_writer_put(p->index, text, n, e) && ses_file_writer_put(p->index, "\n", 1, e);
    ses_json_writer_free(j);
    return ok && ses_file_writer_sync(p->index, e);
}

static bool prepare_index(plan *p, ses_err *e)
{
    index_entry *all = ses_alloc_array(p->w->n, sizeof *all, e);
    char *path = ses_path_join(p->dir, p->index_name, e);
    if (path) p->index = ses_file_writer_open(path, p->overwrite, e);
    ses_free(path);
    bool ok = all && p->index;
    for (size_t i = 0; i < p->n && ok; i++)
        for (size_t j = 0; j < p->shard[i].n; j++) {
            size_t k = p->shard[i].first + j;
            all[k] = (index_entry){ p->w->item[k].name, p->shard[i].name };
        }
    if (ok) qsort(all, p->w->n, sizeof *all, by_name);
    ok = ok && put_index(p, all, e);
    ses_free(all);
    return ok;
}

static bool prepare_shard(plan *p, shard *s, ses_err *e)
{
    const ses_pending_entry **item = ses_alloc_array(s->n, sizeof *item, e);
    char *path = ses_path_join(p->dir, s->name, e);
    for (size_t i = 0; item && i < s->n; i++) item[i] = &p->w->item[s->first + i];
    if (item && path) s->file = ses_safetensors_prepare(p->w, item, s->n, path, p->overwrite, e);
    ses_free(path);
    ses_free(item);
    return s->file != NULL;
}

/* Files of an earlier save in another layout. */
typedef struct stale {
    const plan *p;
    ses_buf names; /* NUL-terminated, one after another */
} stale;

static bool note_stale(void *ctx, const char *name)
{
    stale *s = ctx;
    bool ours = is_weights(name, plain_ext) || is_weights(name, int8_ext);
    return !ours || is_new(s->p, name) || ses_buf_append(&s->names, name, strlen(name) + 1);
}

static bool find_stale(stale *s, ses_err *e)
{
    return ses_dir_each(s->p->dir, note_stale, s, e) && ses_buf_ok(&s->names, e);
}

static bool remove_stale(const stale *s, ses_err *e)
{
    bool ok = true;
    for (size_t at = 0; at < s->names.len && ok; at += strlen(s->names.data + at) + 1) {
        char *path = ses_path_join(s->p->dir, s->names.data + at, e);
        ok = path && ses_file_remove(path, e);
        ses_free(path);
    }
    return ok;
}

/* If shards of the same names exist, an interruption between two renames would leave an old index with old
 * and new shards. Removing the index first makes an interrupted save an error instead of a mixture. */
static bool drop_index(const plan *p, ses_err *e)
{
    bool clash = false;
    for (size_t i = 0; i < p->n && p->n > 1 && !clash; i++) {
        char *path = ses_path_join(p->dir, p->shard[i].name, e);
        if (!path) return false;
        clash = ses_path_exists(path);
        ses_free(path);
    }
    char *index = clash ? ses_path_join(p->dir, p->index_name, e) : NULL;
    bool ok = !clash || (index && ses_file_remove(index, e));
    ses_free(index);
    return ok;
}

static bool save(plan *p, size_t limit, ses_err *e)
{
    stale old = { .p = p };
    bool ok = plan_shards(p, limit, e) && find_stale(&old, e);
    if (ok && old.names.len && !p->overwrite)
        ok = ses_fail(e, SES_EIO, "%s: %s exists already", p->dir, old.names.data);
    for (size_t i = 0; i < p->n && ok; i++) ok = prepare_shard(p, &p->shard[i], e);
    if (ok && p->n > 1) ok = prepare_index(p, e);
    ok = ok && drop_index(p, e);
    for (size_t i = 0; i < p->n && ok; i++) ok = ses_file_writer_commit(p->shard[i].file, e);
    ok = ok && (!p->index || ses_file_writer_commit(p->index, e)) && remove_stale(&old, e);
    ses_buf_free(&old.names);
    return ok;
}

static bool save_as(const char *ext, const ses_safetensors_writer *w, const char *dir, size_t max_shard_bytes,
                    bool overwrite, ses_err *e)
{
    if (!ses_dir_make(dir, e)) return false;
    /* transformers requires "format" in the metadata. */
    ses_meta *meta = ses_alloc_array(w->n_meta + 1, sizeof *meta, e);
    if (!meta) return false;
    ses_safetensors_writer with = *w;
    bool known = false;
    for (size_t i = 0; i < w->n_meta; i++) {
        meta[i] = w->meta[i];
        known = known || strcmp(meta[i].key, "format") == 0;
    }
    if (!known) meta[with.n_meta++] = (ses_meta){ "format", "pt" };
    with.meta = meta;
    plan p = { .w = &with, .dir = dir, .ext = ext, .overwrite = overwrite };
    bool ok = save(&p, max_shard_bytes, e);
    for (size_t i = 0; i < p.n; i++) ses_file_writer_free(p.shard[i].file);
    ses_file_writer_free(p.index);
    ses_free(p.shard);
    ses_free(meta);
    return ok;
}

bool ses_checkpoint_save(const ses_safetensors_writer *w, const char *dir, size_t max_shard_bytes,
                         bool overwrite, ses_err *e)
{
    return save_as(plain_ext, w, dir, max_shard_bytes, overwrite, e);
}

bool ses_checkpoint_save_int8(const ses_safetensors_writer *w, const char *dir, size_t max_shard_bytes,
                              bool overwrite, ses_err *e)
{
    return save_as(int8_ext, w, dir, max_shard_bytes, overwrite, e);
}
