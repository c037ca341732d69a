/* Folders with an adapter (adapter_config.json) name the folder of their base model. Models and
 * tokenizers are found there. Functions only read their arguments. */
#ifndef SES_HUB_ADAPTER_FOLDER_H
#define SES_HUB_ADAPTER_FOLDER_H

#include "sesame/err.h"
#include "sesame/json.h"

#define SES_ADAPTER_CONFIG "adapter_config.json"

/* Does the folder contain an adapter_config.json? */
bool ses_adapter_folder_is(const char *dir);

/* The folder of the base model. config: the text of adapter_config.json. Free the result with free(). */
char *ses_adapter_folder_base(const char *dir, const ses_json *config, ses_err *e);

#endif
