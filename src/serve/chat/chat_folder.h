/* The chat template of a model's folder, read when the model is loaded. */
#ifndef SES_SERVE_CHAT_FOLDER_H
#define SES_SERVE_CHAT_FOLDER_H

#include "sesame/json.h"

typedef struct ses_chat_folder {
    ses_json_doc *config; /* tokenizer_config.json: the names of special tokens; NULL: none */
    char *file;           /* chat_template.jinja; NULL: none */
    ses_string source;    /* the template, in one of them; p NULL: none */
} ses_chat_folder;

void ses_chat_folder_read(ses_chat_folder *f, const char *dir);
void ses_chat_folder_close(ses_chat_folder *f);

#endif
