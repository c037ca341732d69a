/* Parses a command line against tables of options. */
#include "option_parser.h"

#include "base/suggest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool set_defaults(const ses_opt_group *group, size_t n_groups, ses_err *e)
{
    for (size_t g = 0; g < n_groups; g++) {
        const ses_opt *o;
        if (!ses_opt_defaults(group[g].opt, group[g].n, group[g].args, e)) return false;
        for (ses_opt_iter it = ses_opt_begin(group[g].opt, group[g].n); (o = ses_opt_next(&it));) {
            const char *value = o->env ? getenv(o->env) : NULL;
            if (value && *value && !ses_opt_set(o, group[g].args, o->env, value, e)) return false;
        }
    }
    return true;
}

typedef struct match {
    ses_opt opt;
    void *args;        /* NULL: no such option */
    const char *value; /* the spelling is a flag that sets this value; NULL: it is not */
} match;

static match find_name(const ses_opt_group *group, size_t n_groups, const char *name, size_t len)
{
    const ses_opt *o;
    const char *value = NULL;
    for (size_t g = 0; g < n_groups; g++)
        for (ses_opt_iter it = ses_opt_begin(group[g].opt, group[g].n); (o = ses_opt_next(&it));)
            if (ses_opt_match(o, name, len, &value)) return (match){ *o, group[g].args, value };
    return (match){ 0 };
}

static match find_letter(const ses_opt_group *group, size_t n_groups, char letter)
{
    const ses_opt *o;
    for (size_t g = 0; g < n_groups; g++)
        for (ses_opt_iter it = ses_opt_begin(group[g].opt, group[g].n); (o = ses_opt_next(&it));)
            if (o->letter && o->letter == letter) return (match){ *o, group[g].args };
    return (match){ 0 };
}

/* A command line, and what follows a repeated option (ses_opt.repeats_in). */
typedef struct arguments {
    const ses_opt_group *group;
    size_t n_groups;
    match list;        /* the list that receives further parts; args NULL: the command has none */
    const char *begin; /* name of the option that begins a part */
    int parts;         /* times it was used */
    uint64_t given;    /* options of the current part, bits by their numbers in list.opt.items */
    const char *twice; /* an option that was given twice in a part; NULL: none */
} arguments;

static arguments words_of(const ses_opt_group *group, size_t n_groups)
{
    arguments w = { .group = group, .n_groups = n_groups };
    const ses_opt *o;
    for (size_t g = 0; g < n_groups; g++)
        for (ses_opt_iter it = ses_opt_begin(group[g].opt, group[g].n); (o = ses_opt_next(&it));)
            if (o->repeats_in) {
                w.begin = o->name;
                w.list = find_name(group, n_groups, o->repeats_in, strlen(o->repeats_in));
            }
    return w;
}

/* The number of an option among the options of a part; -1: it belongs to the whole command. */
static int number_in_part(const arguments *w, const char *name)
{
    const ses_opt *o;
    int i = 0;
    if (!w->list.args) return -1;
    for (ses_opt_iter it = ses_opt_begin(w->list.opt.items->opt, w->list.opt.items->n);
         (o = ses_opt_next(&it)); i++)
        if (!strcmp(o->name, name)) return i;
    return -1;
}

/* Stores the value of an option, or appends it to the options of a further part. */
static bool store(arguments *w, const match *m, const char *from, const char *value, ses_err *e)
{
    const char *name = m->opt.name;
    int i = number_in_part(w, name);
    if (i < 0) return ses_opt_set(&m->opt, m->args, from, value, e);
    bool begins = !strcmp(name, w->begin);
    w->parts += begins;
    if (!begins && w->given >> i & 1) w->twice = name;
    if (w->parts > 1 && w->twice)
        return ses_fail(e, SES_EUSAGE, "--%s is given twice for one --%s; the options of a --%s follow it",
                        w->twice, w->begin, w->begin);
    if (begins && w->parts > 1) w->given = 0;
    w->given |= begins ? 0 : (uint64_t)1 << i;
    if (w->parts < 2) return ses_opt_set(&m->opt, m->args, from, value, e);
    const ses_opt *list = &w->list.opt;
    return ses_opt_set(list, w->list.args, from, name, e) &&
           ses_opt_set(list, w->list.args, from, value ? value : "true", e);
}

/* Options that other programs name differently. Only the options of the command are offered. */
static const char *common_name(const char *word)
{
    static const struct {
        const char *word, *option;
    } names[] = {
        { "learning-rate", "lr" },         { "learning_rate", "lr" },  { "num-train-epochs", "epochs" },
        { "num_train_epochs", "epochs" },  { "output-dir", "output" }, { "output_dir", "output" },
        { "model-name-or-path", "model" }, { "input", "file" },
    };
    for (size_t i = 0; i < SES_LEN(names); i++)
        if (!strcmp(names[i].word, word)) return names[i].option;
    return word;
}

static bool unknown_name(const ses_opt_group *group, size_t n_groups, const char *name, size_t len,
                         ses_err *e)
{
    char word[64];
    const ses_opt *o;
    if (len >= sizeof word) return ses_fail(e, SES_EUSAGE, "unknown option '--%.60s...'", name);
    memcpy(word, name, len);
    word[len] = 0;
    ses_suggestion s = { .word = common_name(word) };
    for (size_t g = 0; g < n_groups; g++)
        for (ses_opt_iter it = ses_opt_begin(group[g].opt, group[g].n); (o = ses_opt_next(&it));)
            ses_suggest_offer(&s, o->name, strlen(o->name));
    ses_fail(e, SES_EUSAGE, "unknown option '--%s'", word);
    return ses_suggest_add(&s, "--", e);
}

/* Parses --name, --name=value, --name value. Moves *at past a value in the next word. */
static bool parse_long(arguments *w, char ***at, ses_err *e)
{
    const char *word = **at + 2;
    size_t len = strcspn(word, "=");
    match m = find_name(w->group, w->n_groups, word, len);
    if (!m.args) return unknown_name(w->group, w->n_groups, word, len, e);
    char from[64] = "--";
    strncat(from, m.opt.name, sizeof from - 3);
    const char *value = word[len] ? word + len + 1 : NULL;
    if (m.opt.type == SES_OPT_IS_FLAG || m.value) {
        if (value) return ses_fail(e, SES_EUSAGE, "--%.*s takes no value", (int)len, word);
        return store(w, &m, from, m.value, e);
    }
    if (!value && m.opt.implicit_value) {
        if (ses_opt_takes_word(&m.opt, (*at)[1])) value = *++*at;
        return store(w, &m, from, value, e);
    }
    if (!value) {
        value = (*at)[1];
        if (!value || !strncmp(value, "--", 2)) /* the value was forgotten; --x=--y sets such a value */
            return ses_fail(e, SES_EUSAGE, "%s needs a value (%s)", from, ses_opt_value_name(&m.opt));
        ++*at;
    }
    return store(w, &m, from, value, e);
}

/* Parses -x, -xyz (flags), -xVALUE, -x VALUE. */
static bool parse_letters(arguments *w, char ***at, ses_err *e)
{
    for (const char *c = **at + 1; *c; c++) {
        match m = find_letter(w->group, w->n_groups, *c);
        char from[3] = { '-', *c, 0 };
        if (!m.args) return ses_fail(e, SES_EUSAGE, "unknown option '%s'", from);
        if (m.opt.type == SES_OPT_IS_FLAG) {
            if (!store(w, &m, from, NULL, e)) return false;
            continue;
        }
        if (!c[1] && m.opt.implicit_value && !ses_opt_takes_word(&m.opt, (*at)[1]))
            return store(w, &m, from, NULL, e);
        const char *value = c[1] ? c + 1 : (*at)[1];
        if (!value) return ses_fail(e, SES_EUSAGE, "%s needs a value (%s)", from, ses_opt_value_name(&m.opt));
        if (!c[1]) ++*at;
        return store(w, &m, from, value, e);
    }
    return true;
}

static bool parse_words(const ses_opt_group *group, size_t n_groups, char **argv, bool stop_at_operand,
                        int *n_operands, ses_err *e)
{
    int n = 0;
    char **at = argv;
    arguments w = words_of(group, n_groups);
    for (; *at; at++) {
        char *word = *at;
        if (!strcmp(word, "--")) {
            at++;
            break;
        }
        if (word[0] != '-' || !word[1]) {
            if (stop_at_operand) break;
            argv[n++] = word;
        } else if (word[1] == '-') {
            if (!parse_long(&w, &at, e)) return false;
        } else if (!parse_letters(&w, &at, e)) {
            return false;
        }
    }
    while (*at) argv[n++] = *at++;
    argv[n] = NULL;
    *n_operands = n;
    return true;
}

bool ses_options_parse(const ses_opt_group *group, size_t n_groups, char **argv, bool stop_at_operand,
                       int *n_operands, ses_err *e)
{
    return set_defaults(group, n_groups, e) &&
           parse_words(group, n_groups, argv, stop_at_operand, n_operands, e);
}

/* Sets an option from its JSON value. null: no value. */
static bool set_stored(const ses_opt *o, void *args, const ses_json *v, ses_err *e)
{
    bool ok = true;
    char from[64];
    snprintf(from, sizeof from, "stored option %s", o->name);
    const char *text = ses_json_string(v, NULL);
    if (o->type == SES_OPT_IS_LIST && !text) {
        for (size_t i = 0; ok && ses_json_type_of(v) == SES_JSON_ARRAY && i < ses_json_len(v); i++) {
            text = ses_json_string(ses_json_at(v, i), NULL);
            ok = text && ses_opt_set(o, args, from, text, e);
        }
    } else if (text) {
        ok = ses_opt_set(o, args, from, text, e);
    } else if (ses_json_type_of(v) != SES_JSON_NULL) {
        ses_json_writer *w = o->type == SES_OPT_IS_TEXT ? NULL : ses_json_writer_new(0, e);
        if (w) ses_json_put_value(w, v);
        text = w ? ses_json_writer_text(w, NULL, e) : NULL;
        ok = text && ses_opt_set(o, args, from, text, e);
        ses_json_writer_free(w);
    }
    if (!ok && e->code != SES_ENOMEM) {
        ses_err bad = { 0 };
        ses_fail(&bad, SES_EFORMAT, "%s: unexpected value; give --%s on the command line", from, o->name);
        *e = bad;
    }
    return ok;
}

bool ses_options_parse_stored(const ses_opt_group *group, size_t n_groups, const ses_json *stored,
                              char **argv, int *n_operands, ses_err *e)
{
    static const char *const own[] = { "output", "grid", "seeds" };
    const ses_opt *o;
    if (!set_defaults(group, n_groups, e)) return false;
    for (ses_opt_iter it = ses_opt_begin(group->opt, group->n); (o = ses_opt_next(&it));) {
        const ses_json *v = o->of_call ? NULL : ses_json_get(stored, o->name);
        for (size_t i = 0; i < SES_LEN(own); i++)
            if (!strcmp(o->name, own[i])) v = NULL;
        if (v && !set_stored(o, group->args, v, e)) return false;
    }
    return parse_words(group, n_groups, argv, false, n_operands, e);
}

static bool is_missing(const ses_opt *o, const void *args)
{
    const void *at = (const char *)args + o->offset;
    switch (o->type) {
    case SES_OPT_IS_TEXT: return !*(const char *const *)at;
    case SES_OPT_IS_CHOICE: return *(const int *)at < 0;
    case SES_OPT_IS_LIST: return !((const ses_opt_list *)at)->n;
    default: return false;
    }
}

bool ses_options_check_required(const ses_opt_group *group, size_t n_groups, ses_err *e)
{
    const ses_opt *o;
    for (size_t g = 0; g < n_groups; g++)
        for (ses_opt_iter it = ses_opt_begin(group[g].opt, group[g].n); (o = ses_opt_next(&it));)
            if (o->required && is_missing(o, group[g].args))
                return ses_fail(e, SES_EUSAGE, "--%s %s is required", o->name, ses_opt_value_name(o));
    return true;
}

void ses_options_free(const ses_opt_group *group, size_t n_groups)
{
    for (size_t g = 0; g < n_groups; g++) ses_opt_free(group[g].opt, group[g].n, group[g].args);
}
