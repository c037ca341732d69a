#include "options.h"

#include "base/alloc.h"
#include "suggest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *ses_opt_value_name(const ses_opt *o)
{
    static const char *const usual[] = {
        [SES_OPT_FLAG] = "",     [SES_OPT_TEXT] = "TEXT",  [SES_OPT_INT] = "N",     [SES_OPT_REAL] = "X",
        [SES_OPT_SIZE] = "SIZE", [SES_OPT_CHOICE] = "ONE", [SES_OPT_LIST] = "TEXT",
    };
    return o->value ? o->value : o->choices ? o->choices : usual[o->type];
}

bool ses_choice_at(const char *choices, int i, const char **word, size_t *len)
{
    for (; i > 0 && choices; i--) {
        choices = strchr(choices, '|');
        if (choices) choices++;
    }
    if (!choices) return false;
    *word = choices;
    *len = strcspn(choices, "|");
    return true;
}

static bool in_range(const ses_opt *o, double x)
{
    return (o->min == 0 && o->max == 0) || (x >= o->min && x <= o->max);
}

static bool range_error(const ses_opt *o, const char *from, const char *text, ses_err *e)
{
    if (o->max == HUGE_VAL && strtod(text, NULL) < o->min)
        return ses_fail(e, SES_EUSAGE, "%s: %s is too small: %.15g is the least", from, text, o->min);
    if (o->max == HUGE_VAL || o->min == o->max)
        return ses_fail(e, SES_EUSAGE, "%s: %s is out of range", from, text);
    return ses_fail(e, SES_EUSAGE, "%s: %s is out of range: %.15g to %.15g", from, text, o->min, o->max);
}

static bool starts_number(
    const char *text) /* strtol and strtod would skip blanks and take hex, nan and inf */
{
    text += *text == '-' || *text == '+';
    text += *text == '.';
    return *text >= '0' && *text <= '9' && !strpbrk(text, "xX");
}

static bool set_int(const ses_opt *o, int64_t *out, const char *from, const char *text, ses_err *e)
{
    char *end = NULL;
    errno = 0;
    long long x = strtoll(text, &end, 10);
    if (!starts_number(text) || *end)
        return ses_fail(e, SES_EUSAGE, "%s: \"%s\" is not a whole number", from, text);
    if (errno || !in_range(o, (double)x)) return range_error(o, from, text, e);
    *out = x;
    return true;
}

static bool set_real(const ses_opt *o, double *out, const char *from, const char *text, ses_err *e)
{
    char *end = NULL;
    double x = strtod(text, &end);
    if (!starts_number(text) || *end)
        return ses_fail(e, SES_EUSAGE, "%s: \"%s\" is not a number", from, text);
    if (!isfinite(x) || !in_range(o, x)) return range_error(o, from, text, e);
    *out = x;
    return true;
}

static bool set_size(const ses_opt *o, int64_t *out, const char *from, const char *text, ses_err *e)
{
    static const char units[] = "KMGT";
    char *end = NULL;
    errno = 0;
    long long x = strtoll(text, &end, 10);
    int64_t unit = 1;
    const char *u = *end ? strchr(units, *end) : NULL;
    if (u) {
        unit <<= 10 * (u - units + 1);
        end++;
        if (!strcmp(end, "iB") || !strcmp(end, "B")) end += strlen(end);
    }
    if (!starts_number(text) || *end)
        return ses_fail(e, SES_EUSAGE, "%s: \"%s\" is not a size, like 4096, 512K, 64M or 2G", from, text);
    int64_t bytes = 0;
    if (errno || !ses_mul_i64(x, unit, &bytes) || bytes < 0 || !in_range(o, (double)bytes))
        return ses_fail(e, SES_EUSAGE, "%s: %s is out of range", from, text);
    *out = bytes;
    return true;
}

static bool set_choice(const ses_opt *o, int *out, const char *from, const char *text, ses_err *e)
{
    const char *word;
    size_t len;
    ses_suggestion s = { .word = text };
    for (int i = 0; ses_choice_at(o->choices, i, &word, &len); i++) {
        if (strlen(text) == len && !memcmp(word, text, len)) {
            *out = i;
            return true;
        }
        ses_suggest_offer(&s, word, len);
    }
    ses_fail(e, SES_EUSAGE, "%s: \"%s\" is not one of %s", from, text, o->choices);
    return ses_suggest_add(&s, "", e);
}

static bool set_list(ses_list *l, const char *text, ses_err *e)
{
    const char **item = ses_realloc_array(l->item, l->n + 1, sizeof *item, e);
    if (!item) return false;
    l->item = item;
    l->item[l->n++] = text;
    return true;
}

/* `from` names the option or the variable in messages. */
static bool set(const ses_opt *o, void *args, const char *from, const char *text, ses_err *e)
{
    void *at = (char *)args + o->offset;
    switch (o->type) {
    case SES_OPT_FLAG: *(bool *)at = true; return true;
    case SES_OPT_TEXT: *(const char **)at = text; return true;
    case SES_OPT_INT: return set_int(o, at, from, text, e);
    case SES_OPT_REAL: return set_real(o, at, from, text, e);
    case SES_OPT_SIZE: return set_size(o, at, from, text, e);
    case SES_OPT_CHOICE: return set_choice(o, at, from, text, e);
    case SES_OPT_LIST: return set_list(at, text, e);
    }
    return false;
}

static bool set_defaults(const ses_opt_group *group, size_t n_groups, ses_err *e)
{
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < group[g].n; i++) {
            const ses_opt *o = &group[g].opt[i];
            if (o->type == SES_OPT_CHOICE) *(int *)((char *)group[g].args + o->offset) = -1;
            if (o->def && !set(o, group[g].args, o->name, o->def, e)) return false;
            const char *value = o->env ? getenv(o->env) : NULL;
            if (value && *value && !set(o, group[g].args, o->env, value, e)) return false;
        }
    return true;
}

typedef struct found {
    const ses_opt *opt;
    void *args;
} found;

static found find_name(const ses_opt_group *group, size_t n_groups, const char *name, size_t len)
{
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < group[g].n; i++)
            if (strlen(group[g].opt[i].name) == len && !memcmp(group[g].opt[i].name, name, len))
                return (found){ &group[g].opt[i], group[g].args };
    return (found){ 0 };
}

static found find_letter(const ses_opt_group *group, size_t n_groups, char letter)
{
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < group[g].n; i++)
            if (group[g].opt[i].letter && group[g].opt[i].letter == letter)
                return (found){ &group[g].opt[i], group[g].args };
    return (found){ 0 };
}

static bool unknown_name(const ses_opt_group *group, size_t n_groups, const char *name, size_t len,
                         ses_err *e)
{
    char word[64];
    if (len >= sizeof word) return ses_fail(e, SES_EUSAGE, "unknown option '--%.60s...'", name);
    memcpy(word, name, len);
    word[len] = 0;
    ses_suggestion s = { .word = word };
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < group[g].n; i++)
            ses_suggest_offer(&s, group[g].opt[i].name, strlen(group[g].opt[i].name));
    ses_fail(e, SES_EUSAGE, "unknown option '--%s'", word);
    return ses_suggest_add(&s, "--", e);
}

/* --name, --name=value, --name value. Moves *at past a value it took from the next word. */
static bool parse_long(const ses_opt_group *group, size_t n_groups, char ***at, ses_err *e)
{
    const char *word = **at + 2;
    size_t len = strcspn(word, "=");
    found f = find_name(group, n_groups, word, len);
    if (!f.opt) return unknown_name(group, n_groups, word, len, e);
    char from[64] = "--";
    strncat(from, f.opt->name, sizeof from - 3);
    const char *value = word[len] ? word + len + 1 : NULL;
    if (f.opt->type == SES_OPT_FLAG) {
        if (value) return ses_fail(e, SES_EUSAGE, "%s takes no value", from);
        return set(f.opt, f.args, from, NULL, e);
    }
    if (!value) {
        value = (*at)[1];
        if (!value || !strncmp(value, "--", 2)) /* a forgotten value, not a strange one; --x=--y gives that */
            return ses_fail(e, SES_EUSAGE, "%s needs a value (%s)", from, ses_opt_value_name(f.opt));
        ++*at;
    }
    return set(f.opt, f.args, from, value, e);
}

/* -x, -xyz of flags, -xVALUE, -x VALUE. */
static bool parse_letters(const ses_opt_group *group, size_t n_groups, char ***at, ses_err *e)
{
    for (const char *c = **at + 1; *c; c++) {
        found f = find_letter(group, n_groups, *c);
        char from[3] = { '-', *c, 0 };
        if (!f.opt) return ses_fail(e, SES_EUSAGE, "unknown option '%s'", from);
        if (f.opt->type == SES_OPT_FLAG) {
            if (!set(f.opt, f.args, from, NULL, e)) return false;
            continue;
        }
        const char *value = c[1] ? c + 1 : (*at)[1];
        if (!value) return ses_fail(e, SES_EUSAGE, "%s needs a value (%s)", from, ses_opt_value_name(f.opt));
        if (!c[1]) ++*at;
        return set(f.opt, f.args, from, value, e);
    }
    return true;
}

bool ses_options_parse(const ses_opt_group *group, size_t n_groups, char **argv, bool first_only, int *n_rest,
                       ses_err *e)
{
    int n = 0;
    if (!set_defaults(group, n_groups, e)) return false;
    char **at = argv;
    for (; *at; at++) {
        char *word = *at;
        if (!strcmp(word, "--")) {
            at++;
            break;
        }
        if (word[0] != '-' || !word[1]) {
            if (first_only) break;
            argv[n++] = word;
        } else if (word[1] == '-') {
            if (!parse_long(group, n_groups, &at, e)) return false;
        } else if (!parse_letters(group, n_groups, &at, e)) {
            return false;
        }
    }
    while (*at) argv[n++] = *at++;
    argv[n] = NULL;
    *n_rest = n;
    return true;
}

static bool missing(const ses_opt *o, const void *args)
{
    const void *at = (const char *)args + o->offset;
    switch (o->type) {
    case SES_OPT_TEXT: return !*(const char *const *)at;
    case SES_OPT_CHOICE: return *(const int *)at < 0;
    case SES_OPT_LIST: return !((const ses_list *)at)->n;
    default: return false;
    }
}

bool ses_options_complete(const ses_opt_group *group, size_t n_groups, ses_err *e)
{
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < group[g].n; i++) {
            const ses_opt *o = &group[g].opt[i];
            if (o->required && missing(o, group[g].args))
                return ses_fail(e, SES_EUSAGE, "--%s %s is required", o->name, ses_opt_value_name(o));
        }
    return true;
}

void ses_options_free(const ses_opt_group *group, size_t n_groups)
{
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < group[g].n; i++)
            if (group[g].opt[i].type == SES_OPT_LIST) {
                ses_list *l = (ses_list *)((char *)group[g].args + group[g].opt[i].offset);
                ses_free(l->item);
                *l = (ses_list){ 0 };
            }
}
