/* A command with its options as texts, for run.json and model cards. */
#ifndef SES_CLI_COMMAND_TEXT_H
#define SES_CLI_COMMAND_TEXT_H

#include "cli/command.h"

/* line: the command line without default values, "sesame finetune --task classify ..."; options: all
 * options, a JSON object. Free both with ses_free. */
typedef struct ses_command_text {
    char *line, *options;
} ses_command_text;

bool ses_command_text_make(const ses_command *c, const void *args, ses_command_text *out, ses_err *e);
/* The same of a command whose results can be resumed: the line has its operands, and options begin with
 * values of the data. */
typedef struct ses_command_value {
    const char *name, *text; /* text: NULL: a number */
    int64_t number;
} ses_command_value;
/* Adds the member "settings": options of a command text. */
void ses_command_text_put_settings(const char *options, ses_json_writer *w);
bool ses_command_text_with_values(const ses_call *c, const ses_command_value *value, size_t n,
                                  ses_command_text *out, ses_err *e);
void ses_command_text_free(ses_command_text *t);

/* Whether results in dir of an earlier call can be used: its settings `was` equal the JSON object `now`,
 * except for the members in `ignored`, '|' between. The message ends with `hint`. */
bool ses_settings_check(const ses_json *was, const char *now, const char *ignored, const char *dir,
                        const char *hint, ses_err *e);

#endif
