/* A pattern in the settings of a stage: {"String": "..."} or {"Regex": "..."}. The text is on the
 * tokenizer's arena; ses_pattern_close frees the compiled pattern. Read-only, shared between threads. */
#ifndef SES_TEXT_PATTERN_H
#define SES_TEXT_PATTERN_H

#include "text/regex/regex.h"
#include "text/stage.h"

typedef struct ses_pattern {
    ses_string text; /* as in the file */
    bool is_regex;
    ses_regex *regex; /* compiled, for strings too */
} ses_pattern;

bool ses_pattern_open(ses_pattern *p, const ses_json *settings, const char *key, ses_arena *mem, ses_err *e);
void ses_pattern_close(ses_pattern *p);
void ses_pattern_save(const ses_pattern *p, const char *key, ses_json_writer *w);

#endif
