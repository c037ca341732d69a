/* Writing and checking lists of files. */
#include "manifest.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json/json_helpers.h"
#include "base/sha.h"
#include "base/sort.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MANIFEST_MAX = 1 << 20 };
static const char *const MANIFEST = "manifest.json";
static const char *const hash_name[] = { "siphash", "sha256", "checksum" };

static bool hash_file(const char *dir, const char *name, ses_manifest_hash kind, uint64_t *size,
                      char hex[SES_SHA256_HEX + 1], ses_err *e)
{
    static const ses_hash_key key = { 0x736573616d65, 1 }; /* fixed: the hash is stored in files */
    ses_mmap m = { 0 };
    char *path = ses_path_join(dir, name, e);
    bool ok = path && ses_mmap_open(&m, path, e);
    if (ok && kind == SES_MANIFEST_SHA256) {
        ses_sha sha = ses_sha256_start();
        ses_sha_add(&sha, m.data, m.size);
        ses_sha_hex(&sha, hex);
    } else if (ok) {
        uint64_t sum = kind == SES_MANIFEST_CHECKSUM ? ses_checksum_chunks(m.data, m.size)
                                                     : ses_hash(key, m.data, m.size);
        snprintf(hex, SES_SHA256_HEX + 1, "%016" PRIx64, sum);
    }
    *size = m.size;
    if (ok) ses_mmap_free(&m);
    ses_free(path);
    return ok;
}

/* ---- writing ---- */

typedef struct file_list {
    const char *dir;
    char **name;
    size_t n, cap;
    ses_err *e;
    bool ok;
} file_list;

static bool find_regular(const char *dir, const char *name, bool *found, ses_err *e)
{
    struct stat st;
    char *path = ses_path_join(dir, name, e);
    *found = path && stat(path, &st) == 0 && S_ISREG(st.st_mode);
    ses_free(path);
    return path != NULL;
}

static bool note_file(void *ctx, const char *name)
{
    file_list *l = ctx;
    bool regular;
    if (*name == '.') return true;
    l->ok = find_regular(l->dir, name, &regular, l->e);
    if (!l->ok || !regular) return l->ok;
    l->ok = ses_array_reserve(&l->name, &l->cap, l->n + 1, sizeof *l->name, l->e) &&
            (l->name[l->n] = ses_strdup(name, l->e)) != NULL;
    l->n += l->ok;
    return l->ok;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool put_file(ses_json_writer *w, const char *dir, const char *name, ses_manifest_hash kind,
                     ses_err *e)
{
    char hex[SES_SHA256_HEX + 1];
    uint64_t size;
    if (!hash_file(dir, name, kind, &size, hex, e)) return false;
    ses_json_member_object(w, name);
    ses_json_member_uint(w, "size", size);
    ses_json_member_string(w, hash_name[kind], hex);
    ses_json_end_object(w);
    return true;
}

bool ses_manifest_put(ses_json_writer *w, const char *dir, ses_manifest_hash hash, ses_err *e)
{
    file_list l = { .dir = dir, .e = e, .ok = true };
    bool ok = ses_dir_each(dir, note_file, &l, e) && l.ok &&
              ses_stable_sort(l.name, l.n, sizeof *l.name, by_name, e);
    ses_json_begin_object(w);
    for (size_t i = 0; ok && i < l.n; i++) ok = put_file(w, dir, l.name[i], hash, e);
    ses_json_end_object(w);
    for (size_t i = 0; i < l.n; i++) ses_free(l.name[i]);
    ses_free(l.name);
    return ok;
}

bool ses_manifest_write(const char *dir, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (ses_manifest_put(w, dir, SES_MANIFEST_SIPHASH, e))
        return ses_json_writer_save(w, dir, MANIFEST, false, e);
    ses_json_writer_free(w);
    return false;
}

/* ---- checking ---- */

/* Checks size and hash of the i-th file of a list. */
static bool check_file(const char *dir, const ses_json *files, const char *list, size_t i, ses_err *e)
{
    const char *name = ses_json_key(files, i, NULL), *hex = NULL;
    const ses_json *entry = ses_json_at(files, i);
    ses_manifest_hash kind = SES_MANIFEST_SIPHASH;
    for (size_t k = 0; !hex && k < SES_LEN(hash_name); k++)
        if ((hex = ses_json_string(ses_json_get(entry, hash_name[k]), NULL))) kind = (ses_manifest_hash)k;
    uint64_t size = 0, expected = 0;
    char text[SES_SHA256_HEX + 1];
    if (strchr(name, '/') || !hex || !ses_json_uint(ses_json_get(entry, "size"), &expected))
        return ses_fail(e, SES_EFORMAT, "%s: \"%s\": expected size and siphash", list,
                        ses_quoted_of(name, strlen(name)).s);
    bool there;
    if (!find_regular(dir, name, &there, e)) return false;
    if (!there) return ses_fail(e, SES_EFORMAT, "%s is missing", name);
    if (!hash_file(dir, name, kind, &size, text, e)) return false;
    if (size != expected)
        return ses_fail(e, SES_EFORMAT, "%s has %" PRIu64 " bytes; expected %" PRIu64, name, size, expected);
    return !strcmp(text, hex) || ses_fail(e, SES_EFORMAT, "%s is damaged", name);
}

typedef struct listing {
    const ses_json *files;
    const char *list, *dir;
    ses_err *e;
    bool ok;
} listing;

/* Hidden files, which a file manager may add, are ignored. */
static bool check_listed(void *ctx, const char *name)
{
    listing *l = ctx;
    bool regular;
    if (*name == '.' || !strcmp(name, MANIFEST) || ses_json_get(l->files, name)) return true;
    l->ok = find_regular(l->dir, name, &regular, l->e) &&
            (!regular || ses_fail(l->e, SES_EFORMAT, "%s does not list %s", l->list,
                                  ses_quoted_of(name, strlen(name)).s));
    return l->ok;
}

bool ses_manifest_compare(const ses_json *files, const char *list, const char *dir, bool more, ses_err *e)
{
    listing l = { files, list, dir, e, true };
    if (ses_json_type_of(files) != SES_JSON_OBJECT || !ses_json_len(files))
        return ses_fail(e, SES_EFORMAT, "%s lists no files", list);
    bool ok = more || (ses_dir_each(dir, check_listed, &l, e) && l.ok);
    for (size_t i = 0; ok && i < ses_json_len(files); i++) ok = check_file(dir, files, list, i, e);
    return ok;
}

bool ses_manifest_save_config(ses_json_writer *w, const char *dir, ses_err *e)
{
    ses_json_put_key(w, "files");
    bool ok = ses_manifest_put(w, dir, SES_MANIFEST_CHECKSUM, e);
    ses_json_end_object(w);
    if (ok) return ses_json_record_save(w, 2, dir, "config.json", false, e);
    ses_json_writer_free(w);
    return false;
}

bool ses_manifest_check_config(const ses_json *config, const char *dir, ses_err *e)
{
    const ses_json *files = ses_json_get(config, "files");
    return (ses_json_record_check(config, false, e) || ses_wrap(e, "config.json")) &&
           (!ses_json_len(files) || ses_manifest_compare(files, "config.json", dir, true, e));
}

bool ses_manifest_check(const char *dir, ses_err *e)
{
    char *path = ses_path_join(dir, MANIFEST, e);
    ses_json_doc *d = path ? ses_json_load(path, MANIFEST_MAX, e) : NULL;
    bool ok = d && ses_manifest_compare(ses_json_root(d), MANIFEST, dir, false, e);
    ses_json_free(d);
    ses_free(path);
    return ok;
}
