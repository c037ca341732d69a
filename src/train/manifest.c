/* Writing and checking manifest.json. */
#include "manifest.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "sesame/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MANIFEST_MAX = 1 << 20 };
static const char *const MANIFEST = "manifest.json";

static bool hash_file(const char *dir, const char *name, uint64_t *size, uint64_t *hash, ses_err *e)
{
    static const ses_hash_key key = { 0x736573616d65, 1 }; /* fixed: the hash is stored in files */
    ses_mmap m = { 0 };
    char *path = ses_path_join(dir, name, e);
    bool ok = path && ses_mmap_open(&m, path, e);
    if (ok) *size = m.size, *hash = ses_hash(key, m.data, m.size);
    if (ok) ses_mmap_free(&m);
    ses_free(path);
    return ok;
}

typedef struct file_list {
    const char *dir;
    ses_json_writer *w;
    ses_err *e;
    bool ok;
} file_list;

static bool list_file(void *ctx, const char *name)
{
    file_list *l = ctx;
    char hex[24];
    uint64_t size, hash;
    l->ok = hash_file(l->dir, name, &size, &hash, l->e);
    if (!l->ok) return false;
    snprintf(hex, sizeof hex, "%016" PRIx64, hash);
    ses_json_member_object(l->w, name);
    ses_json_member_uint(l->w, "size", size);
    ses_json_member_string(l->w, "siphash", hex);
    ses_json_end_object(l->w);
    return true;
}

bool ses_manifest_write(const char *dir, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    file_list l = { dir, w, e, true };
    if (!w) return false;
    ses_json_begin_object(w);
    bool ok = ses_dir_each(dir, list_file, &l, e) && l.ok;
    ses_json_end_object(w);
    if (ok) return ses_json_writer_save(w, dir, MANIFEST, false, e);
    ses_json_writer_free(w);
    return false;
}

/* Checks size and hash of the i-th file of the manifest. */
static bool check_file(const char *dir, const ses_json *root, size_t i, ses_err *e)
{
    const char *name = ses_json_key(root, i, NULL),
               *hex = ses_json_string(ses_json_get(ses_json_at(root, i), "siphash"), NULL);
    uint64_t size = 0, expected = 0, hash = 0;
    char text[24];
    if (strchr(name, '/') || !hex || !ses_json_uint(ses_json_get(ses_json_at(root, i), "size"), &expected))
        return ses_fail(e, SES_EFORMAT, "manifest.json: \"%s\": expected size and siphash",
                        ses_quoted_of(name, strlen(name)).s);
    if (!hash_file(dir, name, &size, &hash, e)) return false;
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    if (size != expected)
        return ses_fail(e, SES_EFORMAT, "%s has %" PRIu64 " bytes; expected %" PRIu64, name, size, expected);
    return !strcmp(text, hex) || ses_fail(e, SES_EFORMAT, "%s is damaged", name);
}

typedef struct listing {
    const ses_json *root;
    ses_err *e;
    bool ok;
} listing;

/* Hidden files, which a file manager may add, are ignored. */
static bool check_listed(void *ctx, const char *name)
{
    listing *l = ctx;
    if (*name == '.' || !strcmp(name, MANIFEST) || ses_json_get(l->root, name)) return true;
    return l->ok = ses_fail(l->e, SES_EFORMAT, "%s does not list %s", MANIFEST,
                            ses_quoted_of(name, strlen(name)).s);
}

bool ses_manifest_check(const char *dir, ses_err *e)
{
    char *path = ses_path_join(dir, MANIFEST, e);
    ses_json_doc *d = path ? ses_json_load(path, MANIFEST_MAX, e) : NULL;
    const ses_json *root = d ? ses_json_root(d) : NULL;
    listing l = { root, e, true };
    bool ok = d != NULL;
    if (ok && (ses_json_type_of(root) != SES_JSON_OBJECT || !ses_json_len(root)))
        ok = ses_fail(e, SES_EFORMAT, "%s lists no files", MANIFEST);
    ok = ok && ses_dir_each(dir, check_listed, &l, e) && l.ok;
    for (size_t i = 0; ok && i < ses_json_len(root); i++) ok = check_file(dir, root, i, e);
    ses_json_free(d);
    ses_free(path);
    return ok;
}
