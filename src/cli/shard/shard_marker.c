/* Records of shards: their identity, progress and completion. */
#define _POSIX_C_SOURCE 200809L
#include "shard_marker.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json/json_helpers.h"
#include "base/sort.h"
#include "base/str.h"
#include "sesame/base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 16, MAX_MARKER = 64 << 20 };

/* ---- identity ---- */

/* Options that do not change the bytes of a result. Files are compared by their contents. */
static bool is_neutral(const char *name)
{
    static const char list[] = "threads|batch-tokens|batch-size|output|to|merge|overwrite|shard|file|restart|"
                               "rebuild|model|adapter|tokenizer|isa";
    const char *word;
    size_t n;
    for (size_t i = 0; ses_list_at(list, i, &word, &n); i++)
        if (strlen(name) == n && !memcmp(name, word, n)) return true;
    return false;
}

static void put_options(ses_json_writer *w, const ses_json *all)
{
    size_t n;
    for (size_t i = 0; i < ses_json_len(all); i++) {
        const char *key = ses_json_key(all, i, &n);
        if (is_neutral(key)) continue;
        ses_json_put_key(w, key);
        ses_json_put_value(w, ses_json_at(all, i));
    }
}

static bool put_group(ses_json_writer *w, const ses_opt *opt, size_t n, const void *args, ses_err *e)
{
    ses_json_writer *all = args ? ses_json_writer_new(0, e) : NULL;
    if (!all) return !args;
    ses_options_put_json(opt, n, args, all);
    ses_json_doc *doc = ses_json_writer_parse(all, e);
    if (doc) put_options(w, ses_json_root(doc));
    ses_json_free(doc);
    return doc != NULL;
}

/* ---- models ---- */

typedef struct folder {
    char **name;
    size_t n, cap;
    ses_err *e;
} folder;

static bool add_name(void *ctx, const char *name)
{
    folder *f = ctx;
    if (*name == '.') return true;
    if (!ses_array_reserve(&f->name, &f->cap, f->n + 1, sizeof *f->name, f->e)) return false;
    f->name[f->n] = ses_strdup(name, f->e);
    return f->name[f->n] && ++f->n;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the name, size and hash of a file; nothing if it is not a regular file. */
static bool hash_file(const char *dir, const char *name, ses_sha *sha, ses_err *e)
{
    static const ses_hash_key key = { 0x736573616d65, 2 }; /* fixed: the hash is stored in files */
    struct stat st;
    ses_mmap m = { 0 };
    char *path = *dir ? ses_path_join(dir, name, e) : ses_strdup(name, e);
    bool ok = path != NULL;
    if (path && stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        ok = ses_mmap_open(&m, path, e);
        uint64_t part[] = { m.size, ok ? ses_hash(key, m.data, m.size) : 0 };
        name = ses_path_basename(name);
        ses_sha_add(sha, name, strlen(name) + 1);
        ses_sha_add(sha, part, sizeof part);
        if (ok) ses_mmap_free(&m);
    }
    ses_free(path);
    return ok;
}

/* Adds the files of a model folder, one file, or a name of a bundled model. */
static bool hash_model(const char *model, ses_sha *sha, ses_err *e)
{
    folder f = { .e = e };
    if (!ses_path_exists(model)) return ses_sha_add(sha, model, strlen(model) + 1), true;
    if (!ses_path_is_dir(model)) return hash_file("", model, sha, e);
    bool ok = ses_dir_each(model, add_name, &f, e) && !(e && e->code);
    ok = ok && ses_stable_sort(f.name, f.n, sizeof *f.name, compare_names, e);
    for (size_t i = 0; ok && i < f.n; i++) ok = hash_file(model, f.name[i], sha, e);
    for (size_t i = 0; i < f.n; i++) ses_free(f.name[i]);
    ses_free(f.name);
    return ok;
}

static bool put_models(ses_json_writer *w, const char *const *model, ses_err *e)
{
    ses_sha sha = ses_sha256_start();
    char hex[SES_SHA256_HEX + 1];
    for (; model && *model; model++)
        if (!hash_model(*model, &sha, e)) return false;
    ses_sha_hex(&sha, hex);
    hex[16] = 0;
    ses_json_member_string(w, "model_hash", hex);
    return true;
}

char *ses_shard_identity(const ses_call *c, const ses_shard_plan *p, const ses_shard_conditions *conditions,
                         ses_err *e)
{
    char text[64], *out = NULL;
    uint64_t hash;
    ses_command_part part = ses_command_part_of(c->command);
    ses_json_writer *w = ses_shard_plan_hash(p, &hash, e) ? ses_json_writer_new(0, e) : NULL;
    if (!w) return NULL;
    ses_json_begin_object(w);
    ses_json_member_string(w, "sesame", SES_VERSION);
    ses_json_member_string(w, "command", c->command->name);
    snprintf(text, sizeof text, "%" PRId64 "/%" PRId64, p->shard.index, p->shard.count);
    ses_json_member_string(w, "shard", text);
    ses_json_member_array(w, "input_bytes");
    for (size_t i = 0; i < p->n_files; i++) ses_json_put_uint(w, p->file[i].bytes);
    ses_json_end_array(w);
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    ses_json_member_string(w, "input_hash", text);
    if (conditions->isa) ses_json_member_string(w, "isa", conditions->isa);
    bool ok = put_models(w, conditions->models, e) &&
              put_group(w, c->command->opt, c->command->n_opt, c->args, e) &&
              put_group(w, part.opt, part.n_opt, c->task_args, e);
    ses_json_end_object(w);
    size_t n;
    if (ok) out = ses_json_writer_take(w, &n, e);
    ses_json_writer_free(w);
    return out;
}

/* ---- records ---- */

char *ses_shard_marker_path(const char *path, const char *suffix, ses_err *e)
{
    ses_buf b = { 0 };
    ses_buf_appendf(&b, "%s%s", path, suffix);
    if (ses_buf_ok(&b, e)) return b.data;
    ses_buf_free(&b);
    return NULL;
}

static bool put_text(ses_json_writer *w, const char *key, const char *json, bool members, ses_err *e)
{
    ses_json_doc *doc = ses_json_parse(json, strlen(json), e);
    if (!doc) return false;
    if (members) {
        put_options(w, ses_json_root(doc));
    } else {
        ses_json_put_key(w, key);
        ses_json_put_value(w, ses_json_root(doc));
    }
    ses_json_free(doc);
    return true;
}

bool ses_shard_marker_write(const char *marker, const ses_shard_plan *p, const char *identity,
                            const ses_shard_counts *n, const char *extra, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    ses_json_begin_object(w);
    ses_json_member_int(w, "shard", p->shard.index);
    ses_json_member_int(w, "shards", p->shard.count);
    ses_json_member_uint(w, "first_block", p->first);
    ses_json_member_uint(w, "next_block", n->block);
    ses_json_member_uint(w, "end_block", p->last);
    ses_json_member_uint(w, "all_blocks", p->blocks);
    ses_json_member_uint(w, "records", n->records);
    ses_json_member_uint(w, "failed", n->failed);
    ses_json_member_uint(w, "bytes", n->bytes);
    ses_json_member_string(w, "sha256", n->sha256);
    ses_json_member_array(w, "files");
    for (size_t i = 0; i < p->n_files; i++) ses_json_put_string(w, p->file[i].name);
    ses_json_end_array(w);
    bool ok = (!extra || put_text(w, NULL, extra, true, e)) && put_text(w, "settings", identity, false, e);
    ses_json_end_object(w);
    if (ok) return ses_json_record_save(w, 2, NULL, marker, true, e);
    ses_json_writer_free(w);
    return false;
}

ses_json_doc *ses_shard_marker_read(const char *marker, ses_shard_counts *n, ses_err *e)
{
    *n = (ses_shard_counts){ 0 };
    if (!ses_path_exists(marker)) return NULL;
    ses_json_doc *doc = ses_json_record_load(marker, MAX_MARKER, true, e);
    if (!doc && e && e->code == SES_EFORMAT) {
        ses_err why = *e;
        ses_err_clear(e);
        ses_fail(e, why.code, "%s; --overwrite starts over", why.msg);
    }
    const ses_json *v = ses_json_root(doc);
    const char *hash = ses_json_string(ses_json_get(v, "sha256"), NULL);
    if (doc && ses_json_uint(ses_json_get(v, "next_block"), &n->block) &&
        ses_json_uint(ses_json_get(v, "records"), &n->records) &&
        ses_json_uint(ses_json_get(v, "failed"), &n->failed) &&
        ses_json_uint(ses_json_get(v, "bytes"), &n->bytes) && hash && strlen(hash) < sizeof n->sha256) {
        memcpy(n->sha256, hash, strlen(hash) + 1);
        return doc;
    }
    if (doc)
        ses_fail(e, SES_EFORMAT, "%s: not a record of a shard; remove it, or use --overwrite to start over",
                 marker);
    ses_json_free(doc);
    return NULL;
}

/* The text of a value, for comparison and messages. */
static bool value_text(const ses_json *v, ses_buf *out, ses_err *e)
{
    size_t n;
    ses_json_writer *w = v ? ses_json_writer_new(0, e) : NULL;
    out->len = 0;
    if (!v) return ses_buf_puts(out, "none"), ses_buf_ok(out, e);
    if (w) ses_json_put_value(w, v);
    const char *text = w ? ses_json_writer_text(w, &n, e) : NULL;
    if (text) ses_buf_append(out, text, n);
    ses_json_writer_free(w);
    return text && ses_buf_ok(out, e);
}

static bool compare_member(const char *key, const ses_json *now, const ses_json *then, const char *name,
                           const char *what, ses_err *e)
{
    ses_buf a = { 0 }, b = { 0 };
    bool ok = value_text(now, &a, e) && value_text(then, &b, e);
    if (ok && strcmp(a.data, b.data)) {
        const char *other = !strncmp(key, "input_", 6)   ? "another input: the files have changed"
                            : !strcmp(key, "model_hash") ? "another model"
                                                         : "other settings";
        ses_fail(e, SES_EARG, "%s: the %s has %s (%s %s, now %s); use --overwrite to start over", name, what,
                 other, key, ses_quoted_of(b.data, b.len).s, ses_quoted_of(a.data, a.len).s);
        ok = false;
    }
    ses_buf_free(&a);
    ses_buf_free(&b);
    return ok;
}

bool ses_shard_marker_check(const ses_json_doc *marker, const char *name, const char *identity,
                            const char *what, ses_err *e)
{
    ses_json_doc *now = ses_json_parse(identity, strlen(identity), e);
    const ses_json *a = ses_json_root(now), *b = ses_json_get(ses_json_root(marker), "settings");
    bool ok = now != NULL;
    for (size_t i = 0; ok && i < ses_json_len(a); i++) {
        const char *key = ses_json_key(a, i, NULL);
        ok = compare_member(key, ses_json_at(a, i), ses_json_get(b, key), name, what, e);
    }
    for (size_t i = 0; ok && i < ses_json_len(b); i++) {
        const char *key = ses_json_key(b, i, NULL);
        ok = compare_member(key, ses_json_get(a, key), ses_json_at(b, i), name, what, e);
    }
    ses_json_free(now);
    return ok;
}

bool ses_shard_file_check(const char *path, const ses_shard_counts *n, ses_err *e)
{
    struct stat st;
    char hex[SES_SHA256_HEX + 1];
    ses_sha sha = ses_sha256_start();
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool same = fd >= 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_size == n->bytes,
         ok = !same || ses_shard_hash_file(fd, path, 0, n->bytes, &sha, e);
    if (fd >= 0) close(fd);
    if (!ok) return false;
    ses_sha_hex(&sha, hex);
    return (same && !strcmp(hex, n->sha256)) ||
           ses_fail(e, SES_EFORMAT, "%s: not the file that %s.done describes; use --overwrite to start over",
                    path, ses_path_basename(path));
}

bool ses_shard_is_complete(const ses_call *c, const char *path, const char *identity, bool overwrite,
                           ses_shard_counts *n, bool *complete, ses_err *e)
{
    *complete = false;
    char *marker = ses_shard_marker_path(path, ".done", e);
    if (!marker) return false;
    ses_json_doc *doc = overwrite ? NULL : ses_shard_marker_read(marker, n, e);
    bool ok = !(e && e->code);
    if (overwrite) ok = ses_file_remove(marker, e);
    if (doc)
        *complete = ok = ses_shard_marker_check(doc, path, identity, "complete result", e) &&
                         ses_shard_file_check(path, n, e);
    ses_json_free(doc);
    ses_free(marker);
    if (!*complete || c->quiet) return ok;
    fputs("sesame: ", stderr);
    ses_put_escaped(stderr, path);
    fprintf(stderr, ": already complete (%" PRIu64 " records, %" PRIu64 " bytes); nothing to do\n",
            n->records, n->bytes);
    return ok;
}

bool ses_shard_hash_file(int fd, const char *name, uint64_t from, uint64_t to, ses_sha *sha, ses_err *e)
{
    char *block = ses_alloc(CHUNK, e);
    bool ok = block != NULL;
    while (ok && from < to) {
        ssize_t got = pread(fd, block, to - from < CHUNK ? (size_t)(to - from) : CHUNK, (off_t)from);
        if (got < 0 && errno == EINTR) continue;
        ok = got > 0 ||
             ses_fail(e, SES_EIO, "%s: cannot read: %s", name, got ? strerror(errno) : "it was truncated");
        if (ok) ses_sha_add(sha, block, (size_t)got), from += (uint64_t)got;
    }
    ses_free(block);
    return ok;
}
