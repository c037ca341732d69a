/* Lists of files: the API's answer and trees/COMMIT.json. */
#include "hub_files.h"

#include "base/alloc.h"
#include "base/json/json_helpers.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t SIZE_LIMIT = (uint64_t)1 << 44; /* 16 TiB */

void ses_hub_files_free(ses_hub_files *f)
{
    for (size_t i = 0; i < f->n; i++) ses_free(f->item[i].path);
    ses_free(f->item);
    *f = (ses_hub_files){ 0 };
}

bool ses_hub_files_add(ses_hub_files *f, const char *path, size_t n, ses_err *e)
{
    if (!ses_hub_path_is_safe(path, n))
        return ses_fail(e, SES_EFORMAT, "file name \"%s\" is not a relative path below the model's folder",
                        ses_quoted_of(path, n).s);
    if (f->n >= SES_HUB_MAX_FILES) return ses_fail(e, SES_EFORMAT, "more than %d files", SES_HUB_MAX_FILES);
    if (!ses_array_reserve(&f->item, &f->cap, f->n + 1, sizeof *f->item, e)) return false;
    ses_hub_file *x = &f->item[f->n];
    *x = (ses_hub_file){ .path = ses_strndup(path, n, e) };
    f->n += x->path != NULL;
    return x->path != NULL;
}

static bool read_hash(char *out, size_t hex, const ses_json *v, const char *path, const char *what,
                      ses_err *e)
{
    size_t n = 0;
    const char *s = ses_json_string(v, &n);
    if (!v || ses_json_type_of(v) == SES_JSON_NULL) return true;
    if (!s || n != hex || !ses_hub_is_hex(s, hex))
        return ses_fail(e, SES_EFORMAT, "file \"%s\": %s must be %zu hex digits",
                        ses_quoted_of(path, strlen(path)).s, what, hex);
    memcpy(out, s, hex + 1);
    return true;
}

static bool read_size(uint64_t *out, const ses_json *v, const char *path, ses_err *e)
{
    if (ses_json_uint(v, out) && *out <= SIZE_LIMIT) return true;
    return ses_fail(e, SES_EFORMAT, "file \"%s\": size is missing or out of range",
                    ses_quoted_of(path, strlen(path)).s);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const ses_hub_file *)a)->path, ((const ses_hub_file *)b)->path);
}

/* Sorts; two entries for a path, or a path that is also a folder, could not both be written. */
static bool finish(ses_hub_files *f, ses_err *e)
{
    if (f->n) qsort(f->item, f->n, sizeof *f->item, by_path);
    for (size_t i = 0; i + 1 < f->n; i++)
        if (!strcmp(f->item[i].path, f->item[i + 1].path))
            return ses_fail(e, SES_EFORMAT, "file \"%s\" is listed twice",
                            ses_quoted_of(f->item[i].path, strlen(f->item[i].path)).s);
    ses_hub_files_choose(f);
    return true;
}

static bool read_sibling(ses_hub_files *f, const ses_json *x, ses_err *e)
{
    size_t n = 0;
    const char *path = ses_json_string(ses_json_get(x, "rfilename"), &n);
    const ses_json *lfs = ses_json_get(x, "lfs");
    if (!path) return ses_fail(e, SES_EFORMAT, "\"rfilename\" is missing or not a string");
    if (!ses_hub_files_add(f, path, n, e)) return false;
    ses_hub_file *file = &f->item[f->n - 1];
    const ses_json *size = ses_json_get(lfs, "size");
    return read_size(&file->size, size ? size : ses_json_get(x, "size"), file->path, e) &&
           read_hash(file->sha1, SES_SHA1_HEX, ses_json_get(x, "blobId"), file->path, "\"blobId\"", e) &&
           read_hash(file->sha256, SES_SHA256_HEX, ses_json_get(lfs, "sha256"), file->path, "\"sha256\"", e);
}

bool ses_hub_files_from_api(ses_hub_files *f, const ses_json *answer, ses_err *e)
{
    *f = (ses_hub_files){ 0 };
    const ses_json *list = ses_json_get(answer, "siblings");
    size_t n = 0;
    const char *sha = ses_json_string(ses_json_get(answer, "sha"), &n);
    if (!sha || n != SES_HUB_COMMIT || !ses_hub_is_commit(sha))
        return ses_fail(e, SES_EFORMAT, "\"sha\" must be the commit, 40 hex digits");
    if (ses_json_type_of(list) != SES_JSON_ARRAY)
        return ses_fail(e, SES_EFORMAT, "\"siblings\", the list of files, is missing");
    memcpy(f->commit, sha, sizeof f->commit);
    bool ok = true;
    for (size_t i = 0; ok && i < ses_json_len(list); i++)
        if (!read_sibling(f, ses_json_at(list, i), e)) ok = ses_wrap(e, "siblings[%zu]", i);
    if (ok && finish(f, e)) return true;
    ses_hub_files_free(f);
    return false;
}

bool ses_hub_files_from_tree(ses_hub_files *f, const ses_json *tree, const char *commit, ses_err *e)
{
    *f = (ses_hub_files){ 0 };
    const ses_json *list = ses_json_get(tree, "files");
    int64_t version = 0;
    if (!ses_json_int(ses_json_get(tree, "format_version"), &version) || version != 1)
        return ses_fail(e, SES_EUNSUPPORTED, "\"format_version\" is not 1");
    if (ses_json_type_of(list) != SES_JSON_OBJECT)
        return ses_fail(e, SES_EFORMAT, "\"files\" must be an object");
    snprintf(f->commit, sizeof f->commit, "%s", commit);
    bool ok = true;
    for (size_t i = 0; ok && i < ses_json_len(list); i++) {
        size_t n;
        const char *path = ses_json_key(list, i, &n);
        const ses_json *x = ses_json_at(list, i), *size = ses_json_get(x, "lfs_size");
        ok = ses_hub_files_add(f, path, n, e);
        ses_hub_file *file = ok ? &f->item[f->n - 1] : NULL;
        if (!size || ses_json_type_of(size) == SES_JSON_NULL) size = ses_json_get(x, "size");
        ok = ok && read_size(&file->size, size, file->path, e) &&
             read_hash(file->sha1, SES_SHA1_HEX, ses_json_get(x, "blob_id"), file->path, "\"blob_id\"", e) &&
             read_hash(file->sha256, SES_SHA256_HEX, ses_json_get(x, "lfs_sha256"), file->path,
                       "\"lfs_sha256\"", e);
    }
    if (ok && finish(f, e)) return true;
    ses_hub_files_free(f);
    return false;
}

char *ses_hub_files_tree(const ses_hub_files *f, size_t *len, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(1, e);
    ses_json_begin_object(w);
    ses_json_member_int(w, "format_version", 1);
    ses_json_member_object(w, "files");
    for (size_t i = 0; i < f->n; i++) {
        const ses_hub_file *x = &f->item[i];
        ses_json_member_object(w, x->path);
        ses_json_member_uint(w, "size", x->size);
        ses_json_member_string(w, "blob_id", *x->sha1 ? x->sha1 : NULL);
        if (*x->sha256) {
            ses_json_member_string(w, "lfs_sha256", x->sha256);
            ses_json_member_uint(w, "lfs_size", x->size);
        }
        ses_json_end_object(w);
    }
    ses_json_end_object(w);
    ses_json_end_object(w);
    char *text = ses_json_writer_take(w, len, e);
    ses_json_writer_free(w);
    return text;
}

const char *ses_hub_file_etag(const ses_hub_file *f) { return *f->sha256 ? f->sha256 : f->sha1; }

const ses_hub_file *ses_hub_files_find(const ses_hub_files *f, const char *path)
{
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->item[i].path, path)) return &f->item[i];
    return NULL;
}
