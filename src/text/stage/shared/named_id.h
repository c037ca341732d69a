/* ["[SEP]", 102]: a special token in the settings of BertProcessing and RobertaProcessing. */
#ifndef SES_TEXT_NAMED_ID_H
#define SES_TEXT_NAMED_ID_H

#include "text/stage.h"

typedef struct ses_named_id {
    ses_string token;
    int32_t id;
} ses_named_id;

bool ses_named_id_read(ses_named_id *n, const ses_json *settings, const char *key, ses_arena *mem,
                       ses_err *e);
void ses_named_id_save(const ses_named_id *n, const char *key, ses_json_writer *w);

#endif
