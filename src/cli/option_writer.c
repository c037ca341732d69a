/* Writes option values as JSON and as a command line. */
#include "base/str.h"
#include "option_parser.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_value(const ses_opt *o, const void *at, ses_json_writer *w)
{
    const char *word;
    size_t len;
    switch (o->type) {
    case SES_OPT_IS_FLAG: ses_json_put_bool(w, *(const bool *)at); break;
    case SES_OPT_IS_TEXT: ses_json_put_string(w, *(const char *const *)at); break;
    case SES_OPT_IS_INT:
    case SES_OPT_IS_SIZE: ses_json_put_int(w, *(const int64_t *)at); break;
    case SES_OPT_IS_REAL: ses_json_put_real(w, *(const double *)at); break;
    case SES_OPT_IS_CHOICE:
        if (*(const int *)at >= 0 && ses_list_at(o->choices, (size_t)(*(const int *)at), &word, &len))
            ses_json_put_stringn(w, word, len);
        else
            ses_json_put_null(w);
        break;
    case SES_OPT_IS_LIST:
        ses_json_begin_array(w);
        for (size_t i = 0; i < ((const ses_opt_list *)at)->n; i++)
            ses_json_put_string(w, ((const ses_opt_list *)at)->item[i]);
        ses_json_end_array(w);
        break;
    }
}

void ses_options_put_members(const ses_opt *opt, size_t n, const void *args, ses_json_writer *w)
{
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(opt, n); (o = ses_opt_next(&it));) {
        if (o->of_call) continue;
        ses_json_put_key(w, o->name);
        put_value(o, (const char *)args + o->offset, w);
    }
}

void ses_options_put_json(const ses_opt *opt, size_t n, const void *args, ses_json_writer *w)
{
    ses_json_begin_object(w);
    ses_options_put_members(opt, n, args, w);
    ses_json_end_object(w);
}

/* ---- a command line ---- */

void ses_shell_word_put(ses_buf *out, const char *word, size_t n)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
    bool bare = n > 0;
    for (size_t i = 0; i < n; i++) bare &= word[i] && strchr(plain, word[i]) != NULL;
    if (bare) {
        ses_buf_append(out, word, n);
        return;
    }
    ses_buf_put(out, '\'');
    for (size_t i = 0; i < n; i++) word[i] == '\'' ? ses_buf_puts(out, "'\\''") : ses_buf_put(out, word[i]);
    ses_buf_put(out, '\'');
}

static void put_option(ses_buf *out, const ses_opt *o, const char *value, size_t n)
{
    ses_buf_appendf(out, " --%s ", o->name);
    ses_shell_word_put(out, value, n);
}

/* Writes the shortest text that reads back as x. */
static void put_real(ses_buf *out, const ses_opt *o, double x)
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) break;
    }
    put_option(out, o, text, strlen(text));
}

static void put_int(ses_buf *out, const ses_opt *o, int64_t x)
{
    char text[40];
    snprintf(text, sizeof text, "%" PRId64, x);
    put_option(out, o, text, strlen(text));
}

typedef union value {
    bool flag;
    const char *text;
    int64_t n;
    double x;
    int choice;
    ses_opt_list list;
} value;

static value default_of(const ses_opt *o)
{
    ses_opt copy = *o;
    value v = { 0 };
    copy.offset = copy.was_set = 0; /* v is the whole struct */
    if (o->type == SES_OPT_IS_CHOICE) v.choice = -1;
    if (o->def) ses_opt_set(&copy, &v, o->name, o->def, NULL);
    return v;
}

static void put_text(ses_buf *out, const ses_opt *o, const char *word, const char *def)
{
    if (word && (!def || strcmp(word, def))) put_option(out, o, word, strlen(word));
}

/* Names and values of options in turn. A value "true" is the one of a flag. */
static void put_parts(ses_buf *out, const ses_opt_list *l)
{
    for (size_t k = 0; k + 1 < l->n; k += 2) {
        ses_buf_appendf(out, " --%s", l->item[k]);
        if (!strcmp(l->item[k + 1], "true")) continue;
        ses_buf_put(out, ' ');
        ses_shell_word_put(out, l->item[k + 1], strlen(l->item[k + 1]));
    }
}

void ses_options_put_command_line(const ses_opt *opt, size_t n, const void *args, ses_buf *out)
{
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(opt, n); (o = ses_opt_next(&it));) {
        const void *at = (const char *)args + o->offset;
        const ses_opt_list *l = at;
        value def = default_of(o);
        const char *word;
        size_t len;
        if (o->of_call) continue;
        switch (o->type) {
        case SES_OPT_IS_FLAG:
            if (*(const bool *)at) ses_buf_appendf(out, " --%s", o->name);
            break;
        case SES_OPT_IS_TEXT: put_text(out, o, *(const char *const *)at, def.text); break;
        case SES_OPT_IS_INT:
        case SES_OPT_IS_SIZE:
            if (*(const int64_t *)at != def.n) put_int(out, o, *(const int64_t *)at);
            break;
        case SES_OPT_IS_REAL:
            if (*(const double *)at != def.x) put_real(out, o, *(const double *)at);
            break;
        case SES_OPT_IS_CHOICE:
            if (*(const int *)at != def.choice &&
                ses_list_at(o->choices, (size_t)(*(const int *)at), &word, &len))
                put_option(out, o, word, len);
            break;
        case SES_OPT_IS_LIST:
            if (o->items) put_parts(out, l);
            for (size_t k = 0; !o->items && k < l->n; k++) put_option(out, o, l->item[k], strlen(l->item[k]));
            break;
        }
    }
}
