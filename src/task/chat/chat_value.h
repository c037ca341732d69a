/* Values of chat templates, and their methods, filters and tests. Values live in the arena of a run. */
#ifndef SES_TASK_CHAT_VALUE_H
#define SES_TASK_CHAT_VALUE_H

#include "base/arena.h"
#include "base/str.h"
#include "sesame/json.h"

#define SES_CHAT_MAX_INT ((int64_t)1 << 53)

typedef enum {
    SES_CHAT_UNDEFINED,
    SES_CHAT_NONE,
    SES_CHAT_BOOL,
    SES_CHAT_INT,
    SES_CHAT_STRING,
    SES_CHAT_LIST,
    SES_CHAT_OBJECT, /* an object of the variables */
    SES_CHAT_LOOP,
    SES_CHAT_SPACE /* namespace(): number is that of its variables */
} ses_chat_kind;

typedef struct ses_chat_value {
    ses_chat_kind kind;
    int64_t number; /* a bool, an integer up to SES_CHAT_MAX_INT or its negative; index of a loop, from 0 */
    ses_string s;
    const struct ses_chat_value *item; /* [n] of a list or a loop */
    size_t n;
    const ses_json *object;
} ses_chat_value;

ses_chat_value ses_chat_string(ses_string s);
ses_chat_value ses_chat_bool(bool x);
ses_chat_value ses_chat_int(int64_t x);
bool ses_chat_from_json(ses_arena *mem, const ses_json *v, ses_chat_value *out, ses_err *e);
bool ses_chat_is_true(const ses_chat_value *v);
bool ses_chat_equal(const ses_chat_value *a, const ses_chat_value *b);
const char *ses_chat_kind_name(const ses_chat_value *v);
/* The text that {{ v }} writes; undefined writes nothing. */
bool ses_chat_write(const ses_chat_value *v, ses_buf *out, ses_err *e);
/* v.name or v["name"]; undefined: no such member. */
bool ses_chat_member(ses_arena *mem, const ses_chat_value *v, ses_string name, ses_chat_value *out,
                     ses_err *e);
/* The element i of a list or text, from the end if it is negative; undefined: none. */
ses_chat_value ses_chat_element(const ses_chat_value *v, int64_t i);
/* Elements begin to end - 1; negative numbers count from the end. */
bool ses_chat_slice(const ses_chat_value *v, int64_t begin, int64_t end, ses_chat_value *out, ses_err *e);
/* v | name(args) and v.name(args). */
bool ses_chat_apply(ses_arena *mem, ses_string name, const ses_chat_value *v, const ses_chat_value *arg,
                    size_t n, ses_chat_value *out, ses_err *e);
/* v is name */
bool ses_chat_test(ses_string name, const ses_chat_value *v, bool *out, ses_err *e);

#endif
