/* Chat templates: the part of Jinja that templates of tokenizers use, rendered as transformers renders them
 * (trim_blocks, lstrip_blocks). A template that uses more is refused by name.
 *
 * Threads: the function has no state. */
#ifndef SES_TASK_CHAT_TEMPLATE_H
#define SES_TASK_CHAT_TEMPLATE_H

#include "base/str.h"
#include "sesame/json.h"

/* Renders a template with the members of an object as its variables, and appends the text to out. Fails if
 * the template is malformed, uses something unknown, or calls raise_exception, whose message is the error. */
bool ses_chat_template_render(ses_string source, const ses_json *variables, ses_buf *out, ses_err *e);

#endif
