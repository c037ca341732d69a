/* Finds the base model of an adapter folder. */
#include "adapter_folder.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "folder/model_folder.h"
#include "hub_cache.h"

#include <string.h>

/* revision: NULL: main. */
static char *find_in_cache(const char *dir, const char *named, const char *revision, ses_err *e)
{
    ses_buf name = { 0 };
    bool has = strchr(named, '@') || !revision || !*revision;
    ses_buf_appendf(&name, "%s%s%s", named, has ? "" : "@", has ? "" : revision);
    char *found = ses_buf_ok(&name, e) ? ses_hub_find(name.data, e) : NULL;
    if (!found) ses_wrap(e, "%s: base model", dir);
    ses_buf_free(&name);
    return found;
}

/* Resolves base_model_name_or_path: first relative to the adapter's folder, so that both folders can be moved
 * together, then as given, then in the Hugging Face cache. */
static char *find_base(const char *dir, const char *named, const char *revision, ses_err *e)
{
    char *beside = *named == '/' ? NULL : ses_path_join(dir, named, e);
    if (beside && ses_model_folder_is(beside)) return beside;
    ses_free(beside);
    if (ses_model_folder_is(named)) return ses_strdup(named, e);
    if (ses_hub_name_is(named) || ses_hub_is_cached(named)) return find_in_cache(dir, named, revision, e);
    ses_fail(e, SES_EIO,
             "%s: \"base_model_name_or_path\" is \"%s\", which is not a folder with a model: open the base "
             "model with this folder as its adapter",
             dir, ses_quoted_of(named, strlen(named)).s);
    return NULL;
}

char *ses_adapter_folder_base(const char *dir, const ses_json *config, ses_err *e)
{
    const char *named = ses_json_string(ses_json_get(config, "base_model_name_or_path"), NULL);
    if (!named) named = ses_json_string(ses_json_get(config, "model_name"), NULL); /* adapter-hub */
    const char *revision = ses_json_string(ses_json_get(config, "revision"), NULL);
    if (named) return find_base(dir, named, revision, e);
    ses_fail(e, SES_EFORMAT, "%s: \"base_model_name_or_path\" is missing or not a string", dir);
    return NULL;
}
