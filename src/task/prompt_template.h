/* Prompts made of an instruction, examples and the text, by a template file. The caller frees a template;
 * it is read-only after opening, so several threads may fill it. */
#ifndef SES_TASK_PROMPT_TEMPLATE_H
#define SES_TASK_PROMPT_TEMPLATE_H

#include "sesame/json.h"
#include "sesame/tokenizer.h"

typedef struct ses_prompt_template ses_prompt_template;

ses_prompt_template *ses_prompt_template_open(const char *path, ses_err *e);
/* Takes ownership of doc, also if it fails. */
ses_prompt_template *ses_prompt_template_new(ses_json_doc *doc, ses_err *e);
void ses_prompt_template_free(ses_prompt_template *t);

/* The prompt for a text with `shots` examples (below 0: all); the caller frees it with ses_free. */
char *ses_prompt_template_fill(const ses_prompt_template *t, ses_string text, ses_string pair, int64_t shots,
                               size_t *n, ses_err *e);
/* The template's stop strings, borrowed; returns their number. */
size_t ses_prompt_template_stops(const ses_prompt_template *t, const char *const **stop);

#endif
