#include "old_files.h"

#include "base/alloc.h"
#include "base/file.h"
#include "spm.h"

#include <string.h>

enum { MAX_FILE = 512 << 20 };

/* What a writer holds, as a string of its own. */
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

char *ses_tokenizer_text(const char *path, bool exact, size_t *n, ses_err *e)
{
    (void)exact;
    if (ends_in(path, ".model") || ends_in(path, ".spm")) return from_spm(path, n, e);
    char *in = ses_path_is_dir(path) ? ses_path_join(path, "tokenizer.json", e) : ses_strdup(path, e);
    char *text = in ? ses_file_read(in, MAX_FILE, n, e) : NULL;
    ses_free(in);
    return text;
}
