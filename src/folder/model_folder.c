/* Recognizes the folders of models and adapters. */
#include "model_folder.h"

#include "base/file.h"
#include "elmo_folder.h"
#include "tf_folder.h"

#include <stdio.h>

bool ses_folder_has(const char *dir, const char *name)
{
    char path[4096]; /* longer paths cannot be opened */
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    return n > 0 && (size_t)n < sizeof path && ses_path_exists(path);
}

bool ses_model_folder_is(const char *dir)
{
    return ses_folder_has(dir, "config.json") || ses_tf_folder_is(dir) || ses_elmo_folder_is(dir);
}

bool ses_adapter_folder_is(const char *dir) { return ses_folder_has(dir, SES_ADAPTER_CONFIG); }
