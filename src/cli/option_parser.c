#include "option_parser.h"

#include "base/suggest.h"

#include <stdlib.h>
#include <string.h>

static bool set_defaults(const ses_opt_group *group, size_t n_groups, ses_err *e)
{
    for (size_t g = 0; g < n_groups; g++) {
        if (!ses_opt_defaults(group[g].opt, group[g].n, group[g].args, e)) return false;
        for (size_t i = 0; i < group[g].n; i++) {
            const ses_opt *o = &group[g].opt[i];
            const char *value = o->env ? getenv(o->env) : NULL;
            if (value && *value && !ses_opt_set(o, group[g].args, o->env, value, e)) return false;
        }
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
        return ses_opt_set(f.opt, f.args, from, NULL, e);
    }
    if (!value && f.opt->implicit_value) {
        if (ses_opt_is_choice(f.opt, (*at)[1])) value = *++*at;
        return ses_opt_set(f.opt, f.args, from, value, e);
    }
    if (!value) {
        value = (*at)[1];
        if (!value || !strncmp(value, "--", 2)) /* a forgotten value, not a strange one; --x=--y gives that */
            return ses_fail(e, SES_EUSAGE, "%s needs a value (%s)", from, ses_opt_value_name(f.opt));
        ++*at;
    }
    return ses_opt_set(f.opt, f.args, from, value, e);
}

/* -x, -xyz of flags, -xVALUE, -x VALUE. */
static bool parse_letters(const ses_opt_group *group, size_t n_groups, char ***at, ses_err *e)
{
    for (const char *c = **at + 1; *c; c++) {
        found f = find_letter(group, n_groups, *c);
        char from[3] = { '-', *c, 0 };
        if (!f.opt) return ses_fail(e, SES_EUSAGE, "unknown option '%s'", from);
        if (f.opt->type == SES_OPT_FLAG) {
            if (!ses_opt_set(f.opt, f.args, from, NULL, e)) return false;
            continue;
        }
        const char *value = c[1] ? c + 1 : (*at)[1];
        if (!value) return ses_fail(e, SES_EUSAGE, "%s needs a value (%s)", from, ses_opt_value_name(f.opt));
        if (!c[1]) ++*at;
        return ses_opt_set(f.opt, f.args, from, value, e);
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
    case SES_OPT_LIST: return !((const ses_opt_list *)at)->n;
    default: return false;
    }
}

bool ses_options_check_required(const ses_opt_group *group, size_t n_groups, ses_err *e)
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
    for (size_t g = 0; g < n_groups; g++) ses_opt_free(group[g].opt, group[g].n, group[g].args);
}
