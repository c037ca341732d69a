/* Finds the base model of an adapter folder. */
#include "adapter_folder.h"

#include "alloc.h"
#include "file.h"
#include "str.h"

#include <stdio.h>
#include <string.h>

static bool has_file(const char *dir, const char *name)
{
    char path[4096]; /* on the stack: a failed allocation must not look like a missing file */
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    return n > 0 && (size_t)n < sizeof path && ses_path_exists(path);
}

bool ses_adapter_folder_is(const char *dir) { return has_file(dir, SES_ADAPTER_CONFIG); }

/* Resolves base_model_name_or_path: first relative to the adapter's folder, so that both folders can be moved
 * together, then as given. */
static char *find_base(const char *dir, const char *named, ses_err *e)
{
    char *beside = *named == '/' ? NULL : ses_path_join(dir, named, e);
    if (beside && has_file(beside, "config.json")) return beside;
    ses_free(beside);
    if (has_file(named, "config.json")) return ses_strdup(named, e);
    ses_fail(e, SES_EIO,
             "%s: \"base_model_name_or_path\" is \"%s\", which is not a folder with a model: open the base "
             "model with this folder as its adapter",
             dir, ses_quoted_of(named, strlen(named)).s);
    return NULL;
}

char *ses_adapter_folder_base(const char *dir, const ses_json *config, ses_err *e)
{
    const char *named = ses_json_string(ses_json_get(config, "base_model_name_or_path"), NULL);
    if (named) return find_base(dir, named, e);
    ses_fail(e, SES_EFORMAT, "%s: \"base_model_name_or_path\" is missing or not a string", dir);
    return NULL;
}
