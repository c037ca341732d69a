/* Is a folder a model's or an adapter's? Functions only read their arguments, and allocate nothing: a failed
 * allocation must not look like a missing file. */
#ifndef SES_FOLDER_MODEL_FOLDER_H
#define SES_FOLDER_MODEL_FOLDER_H

#include <stdbool.h>

#define SES_ADAPTER_CONFIG "adapter_config.json"

/* Does the folder contain a file of this name? */
bool ses_folder_has(const char *dir, const char *name);

/* Does it contain a config.json, a TensorFlow checkpoint or ELMo's original files? */
bool ses_model_folder_is(const char *dir);

/* Does it contain an adapter_config.json? */
bool ses_adapter_folder_is(const char *dir);

#endif
