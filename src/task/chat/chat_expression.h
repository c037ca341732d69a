/* Expressions of chat templates, evaluated while they are read. Parts that do not apply are read with `dead`
 * set and have no effect. One thread. */
#ifndef SES_TASK_CHAT_EXPRESSION_H
#define SES_TASK_CHAT_EXPRESSION_H

#include "chat_value.h"

enum { SES_CHAT_MAX_DEPTH = 64, SES_CHAT_MAX_STEPS = 1 << 20 };

typedef struct ses_chat_variable {
    ses_string name;
    ses_chat_value value;
    int64_t space; /* number of its namespace; 0: none */
} ses_chat_variable;

typedef struct ses_chat_run {
    const char *s;
    size_t n, at;
    ses_buf *out;
    ses_arena mem;
    const ses_json *given;
    ses_chat_variable *var;
    size_t n_vars, var_capacity, scope; /* scope: the first variable of the innermost loop */
    int64_t spaces;
    int dead, depth, steps;
    bool after_block, after_minus; /* the tag before the text */
    ses_err *e;
} ses_chat_run;

/* Fails with the line of the template. */
bool ses_chat_fail(ses_chat_run *r, const char *what);

/* Inside a tag: reads a sign, a word or a name after white space. False: something else follows, or for
 * ses_chat_name_of an error. */
bool ses_chat_takes(ses_chat_run *r, const char *text);
bool ses_chat_takes_word(ses_chat_run *r, const char *word);
bool ses_chat_name_of(ses_chat_run *r, ses_string *name);

/* Variables: a new one; one of this scope that may exist; the value by name, undefined if there is none. */
bool ses_chat_add(ses_chat_run *r, ses_string name, int64_t space, const ses_chat_value *value);
bool ses_chat_set(ses_chat_run *r, ses_string name, int64_t space, const ses_chat_value *value);
bool ses_chat_lookup(ses_chat_run *r, ses_string name, ses_chat_value *out);

bool ses_chat_expression(ses_chat_run *r, ses_chat_value *v);
/* An expression without a choice (a if c else b): any: "or" and what binds closer; else "and". */
bool ses_chat_logical(ses_chat_run *r, ses_chat_value *v, bool any);

#endif
