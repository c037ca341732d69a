/* Finds ELMo's files in a folder. */
#include "elmo_folder.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

typedef struct found {
    ses_elmo_files name;
    int options, weights;
    bool config;
} found;

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n >= k && n < SES_ELMO_NAME && name[0] != '.' && !strcmp(name + n - k, end);
}

static bool add_name(void *ctx, const char *name)
{
    found *f = ctx;
    if (ends_in(name, "options.json")) {
        snprintf(f->name.options, SES_ELMO_NAME, "%s", name);
        f->options++;
    } else if (ends_in(name, ".hdf5") || ends_in(name, ".h5")) {
        snprintf(f->name.weights, SES_ELMO_NAME, "%s", name);
        f->weights++;
    }
    f->config |= !strcmp(name, "config.json");
    return true;
}

bool ses_elmo_folder_is(const char *dir)
{
    found f = { 0 };
    return ses_path_is_dir(dir) && ses_dir_each(dir, add_name, &f, NULL) && f.options && f.weights &&
           !f.config;
}

bool ses_elmo_folder_files(const char *dir, ses_elmo_files *out, ses_err *e)
{
    found f = { 0 };
    if (!ses_dir_each(dir, add_name, &f, e)) return false;
    if (f.options != 1 || f.weights != 1)
        return ses_fail(e, SES_EARG, "%s: %d files *options.json and %d files *.hdf5, expected one of each",
                        dir, f.options, f.weights);
    *out = f.name;
    return true;
}
