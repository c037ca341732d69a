/* Finds the tokenizer that a path refers to and returns it as the text of a tokenizer.json. */
#include "legacy_files.h"

#include "base/alloc.h"
#include "base/file.h"
#include "legacy.h"
#include "text/spm/spm_to_json.h"

#include <string.h>

enum { MAX_FILE = 512 << 20 };

/* The writer's text as a separate string. */
static char *finish(ses_json_writer *w, size_t *n, ses_err *e)
{
    const char *text = ses_json_writer_text(w, n, e);
    char *copy = text ? ses_strndup(text, *n, e) : NULL;
    ses_json_writer_free(w);
    return copy;
}

static char *from_spm(const char *path, size_t *n, ses_err *e)
{
    ses_spm m = { 0 };
    char *bytes = ses_file_read(path, MAX_FILE, n, e), *text = NULL;
    if (!bytes) return NULL;
    ses_json_writer *w = ses_json_writer_new(-1, e);
    if (w && ses_spm_parse(&m, bytes, *n, e) && ses_spm_write(&m, w, e)) {
        text = finish(w, n, e);
        w = NULL;
    }
    if (!text) ses_wrap(e, "%s", path);
    ses_json_writer_free(w);
    ses_spm_free(&m);
    ses_free(bytes);
    return text;
}

static bool ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), k = strlen(end);
    return n >= k && !strcmp(path + n - k, end);
}

/* A folder without tokenizer.json, or a single file of family f. */
static char *from_folder(const char *dir, const char *file, const ses_legacy_family *f, bool exact, size_t *n,
                         ses_err *e)
{
    ses_legacy_converter o = { 0 };
    char *text = NULL;
    if (ses_legacy_open(&o, dir, e)) {
        o.file = file;
        o.portable = !exact;
        if (!f) f = ses_legacy_find(&o, e);
        if (f && f->write(&o, f, e)) {
            text = finish(o.w, n, e);
            o.w = NULL;
        }
    }
    if (!text && e && strncmp(e->msg, dir, strlen(dir)))
        ses_wrap(e, "%s", dir); /* unless the message already names a file */
    ses_legacy_free(&o);
    return text;
}

/* A single file without its folder. */
static char *from_file(const char *path, const ses_legacy_family *f, size_t *n, ses_err *e)
{
    const char *base = ses_path_basename(path);
    char *dir = base == path ? ses_strdup(".", e) : ses_strndup(path, (size_t)(base - path), e);
    char *text = dir ? from_folder(dir, base, f, false, n, e) : NULL;
    ses_free(dir);
    return text;
}

char *ses_tokenizer_read_json(const char *path, bool exact, size_t *n, ses_err *e)
{
    if (ses_path_is_dir(path)) {
        char *in = ses_path_join(path, "tokenizer.json", e), *text = NULL;
        if (in)
            text = ses_path_exists(in) ? ses_file_read(in, MAX_FILE, n, e)
                                       : from_folder(path, NULL, NULL, exact, n, e);
        ses_free(in);
        return text;
    }
    if (ends_in(path, ".model") || ends_in(path, ".spm"))
        return exact ? from_spm(path, n, e) : from_file(path, &ses_legacy_plain, n, e);
    return ends_in(path, ".txt") ? from_file(path, &ses_legacy_bert, n, e)
                                 : ses_file_read(path, MAX_FILE, n, e);
}
