/* Folders with an adapter (folder/model_folder.h) name the folder of their base model. Models and tokenizers
 * are found there. Functions only read their arguments. */
#ifndef SES_HUB_ADAPTER_FOLDER_H
#define SES_HUB_ADAPTER_FOLDER_H

#include "sesame/base.h"
#include "sesame/json.h"

/* The folder of the base model. config: the text of adapter_config.json. Free the result with free(). */
char *ses_adapter_folder_base(const char *dir, const ses_json *config, ses_err *e);

#endif
