/* Finds the checkpoint in a folder of TensorFlow files. */
#define _POSIX_C_SOURCE 200809L
#include "tf_folder.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 256, PATH = 4096, MAX_CHECKPOINT_FILE = 1 << 20 };

typedef struct prefixes {
    char best[NAME], second[NAME];
    long long step; /* the step of best; -1: none in its name */
    size_t n;
    bool same_step; /* best and second have the same one */
} prefixes;

/* The number after the last '-': 1000 in model.ckpt-1000; -1: none. */
static long long step_of(const char *prefix)
{
    const char *dash = strrchr(prefix, '-');
    if (!dash || !dash[1] || strspn(dash + 1, "0123456789") != strlen(dash + 1) || strlen(dash) > 18)
        return -1;
    return strtoll(dash + 1, NULL, 10);
}

static bool add_name(void *ctx, const char *name)
{
    static const char end[] = ".index";
    prefixes *p = ctx;
    size_t n = strlen(name), tail = sizeof end - 1;
    char prefix[NAME];
    if (n <= tail || n - tail >= sizeof prefix || name[0] == '.' || strcmp(name + n - tail, end)) return true;
    snprintf(prefix, sizeof prefix, "%.*s", (int)(n - tail), name);
    long long step = step_of(prefix);
    p->n++;
    if (p->n > 1 && step < p->step) return true;
    p->same_step = p->n > 1 && step == p->step;
    memcpy(p->second, p->best, sizeof p->best);
    memcpy(p->best, prefix, sizeof prefix);
    p->step = step;
    return true;
}

static bool find_prefixes(const char *dir, prefixes *p, ses_err *e)
{
    *p = (prefixes){ .step = -1 };
    return ses_path_is_dir(dir) && ses_dir_each(dir, add_name, p, e);
}

bool ses_tf_folder_is(const char *dir)
{
    prefixes p;
    return find_prefixes(dir, &p, NULL) && p.n > 0;
}

/* DIR/NAME on the stack: a failed allocation must not look like a missing file. */
static bool has_file(const char *dir, const char *name, const char *end, char path[PATH])
{
    int n = snprintf(path, PATH, "%s/%s%s", dir, name, end);
    return n > 0 && n < PATH && ses_path_exists(path);
}

/* The prefix in model_checkpoint_path: "PATH" of the file `checkpoint`, if its index exists; else empty. */
static bool read_named_prefix(const char *dir, char out[NAME], ses_err *e)
{
    static const char key[] = "model_checkpoint_path: \"";
    char path[PATH];
    size_t n;
    *out = 0;
    if (!has_file(dir, "checkpoint", "", path)) return true;
    char *text = ses_file_read(path, MAX_CHECKPOINT_FILE, &n, e);
    if (!text) return false;
    char *value = strncmp(text, key, sizeof key - 1) ? strstr(text, "\nmodel_checkpoint_path: \"") : text,
         *start = value ? strchr(value, '"') + 1 : NULL, *end = start ? strchr(start, '"') : NULL;
    if (end) {
        *end = 0;
        char *slash = strrchr(start, '/');
        snprintf(out, NAME, "%s", slash ? slash + 1 : start);
        if (!*out || !has_file(dir, out, ".index", path)) *out = 0;
    }
    ses_free(text);
    return true;
}

char *ses_tf_folder_prefix(const char *dir, ses_err *e)
{
    prefixes p;
    char named[NAME];
    if (!find_prefixes(dir, &p, e)) return NULL;
    if (p.n > 1 && !read_named_prefix(dir, named, e)) return NULL;
    if (p.n > 1 && *named) return ses_strdup(named, e);
    if (p.n && !p.same_step) return ses_strdup(p.best, e);
    if (p.n)
        ses_fail(e, SES_EARG, "%s: several checkpoints (%s, %s): name one in the file \"checkpoint\"", dir,
                 ses_quoted_of(p.second, strlen(p.second)).s, ses_quoted_of(p.best, strlen(p.best)).s);
    else
        ses_fail(e, SES_EIO, "%s: no TensorFlow checkpoint (*.index) found", dir);
    return NULL;
}
