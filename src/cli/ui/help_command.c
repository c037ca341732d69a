/* Prints the help of a command: a screenful, all of it, or a group of options. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/suggest.h"
#include "cli/command.h"
#include "help_row.h"
#include "sesame/finetune.h"
#include "tune/finetune_data.h"

#include <stdlib.h>
#include <string.h>

/* Longer help shows a screenful: the common options and the names of the groups. */
enum { MAX_LINES = 60, BRIEF_EXAMPLES = 3 };

const char *ses_command_called_name(const ses_command *c, char *buf, size_t size)
{
    snprintf(buf, size, "%s", c->name);
    char *dash = c->is_action ? strchr(buf, '-') : NULL;
    if (dash) *dash = ' ';
    return buf;
}

typedef struct page {
    const ses_command *c;
    const ses_term *t;
    FILE *out;
    const char *task; /* name of a task of fine-tuning; NULL: any */
    bool brief;
} page;

/* ---- options that belong to tasks: help that begins with "tag, answer: " ---- */

static bool is_task(const char *word, size_t n)
{
    const char *name;
    for (size_t i = 0; (name = ses_finetune_task_name(i, NULL)); i++)
        if (ses_equal(word, n, name)) return true;
    return false;
}

/* Whether an option is for some tasks only; *fits: also for this one. */
static bool has_tasks(const ses_opt *o, const char *task, bool *fits)
{
    const char *at = o->help, *end = strchr(at, ':');
    bool some = false;
    *fits = false;
    while (end && at < end) {
        size_t n = strcspn(at, " ,:");
        if (!is_task(at, n)) return some; /* "classify, regress with ...: " */
        some = true;
        if (task && ses_equal(at, n, task)) *fits = true;
        at += n + strspn(at + n, ", ");
    }
    return some;
}

static bool applies(const page *p, const ses_opt *o)
{
    bool fits;
    return !p->task || !has_tasks(o, p->task, &fits) || fits;
}

static bool is_of_task(const page *p, const ses_opt *o)
{
    bool fits;
    return p->task && has_tasks(o, p->task, &fits) && fits;
}

static bool is_common(const ses_opt *o) { return !o->group || o->common; }

/* ---- the options of the command, then the general ones ---- */

typedef struct options {
    ses_opt_iter own;
    size_t general;
} options;

static options options_of(const page *p) { return (options){ .own = ses_command_options(p->c) }; }

static const ses_opt *next_option(const page *p, options *at)
{
    const ses_opt *o;
    while ((o = ses_opt_next(&at->own)))
        if (applies(p, o)) return o;
    return at->general < ses_n_general_opt ? &ses_general_opt[at->general++] : NULL;
}

/* Whether an earlier option has the group of this one. */
static bool group_seen(const page *p, const ses_opt *upto)
{
    const ses_opt *o;
    for (options at = options_of(p); (o = next_option(p, &at));) {
        if (!strcmp(o->name, upto->name)) return false;
        if (!is_common(o) && !is_of_task(p, o) && !strcmp(o->group, upto->group)) return true;
    }
    return false;
}

static bool begins_group(const page *p, const ses_opt *o)
{
    return !is_common(o) && !is_of_task(p, o) && !group_seen(p, o);
}

/* ---- sections ---- */

static void put_group(const page *p, const char *group, bool with_common)
{
    const ses_opt *o;
    char title[64];
    snprintf(title, sizeof title, "Options, %s", group);
    ses_help_heading(p->t, p->out, title);
    for (options at = options_of(p); (o = next_option(p, &at));)
        if (o->group && !strcmp(o->group, group) && (with_common || (!is_common(o) && !is_of_task(p, o))))
            ses_help_option(o, false, p->t, p->out);
}

/* A line with the first names of a group's options. */
static void put_group_names(const page *p, const char *group)
{
    const ses_opt *o;
    char names[256] = "";
    size_t width = (size_t)ses_help_width(p->t) - 17, n = 0, left = 0;
    for (options at = options_of(p); (o = next_option(p, &at));) {
        if (!o->group || is_common(o) || is_of_task(p, o) || strcmp(o->group, group) != 0) continue;
        size_t more = strlen(o->name) + (n ? 4 : 2);
        if (left || n + more + 8 > width || n + more + 8 > sizeof names)
            left++;
        else
            n += (size_t)snprintf(names + n, sizeof names - n, "%s--%s", n ? ", " : "", o->name);
    }
    if (left) snprintf(names + n, sizeof names - n, ", +%zu", left);
    ses_help_row(p->t, p->out, group, 17, names);
}

static void put_options(const page *p)
{
    const ses_opt *o;
    bool any = false;
    ses_help_heading(p->t, p->out, "Options");
    for (options at = options_of(p); (o = next_option(p, &at));)
        if (is_common(o) && !is_of_task(p, o)) ses_help_option(o, p->brief, p->t, p->out);
    for (options at = options_of(p); (o = next_option(p, &at));) {
        if (!is_of_task(p, o)) continue;
        char title[64];
        snprintf(title, sizeof title, "Options of %s", p->task);
        if (!any) ses_help_heading(p->t, p->out, title);
        any = true;
        ses_help_option(o, p->brief, p->t, p->out);
    }
    any = false;
    for (options at = options_of(p); (o = next_option(p, &at));) {
        if (!begins_group(p, o)) continue;
        char group[32]; /* o is that of the iterator */
        snprintf(group, sizeof group, "%s", o->group);
        if (p->brief && !any) ses_help_heading(p->t, p->out, "More options, by --help GROUP or --help all");
        any = true;
        if (p->brief)
            put_group_names(p, group);
        else
            put_group(p, group, false);
    }
}

/* Actions of a command: "vectors-train" is the action train of vectors. */
static void put_actions(const page *p)
{
    size_t n = strlen(p->c->name);
    bool any = false;
    for (const ses_command *const *a = ses_commands(); *a; a++) {
        if (!(*a)->is_action || strncmp((*a)->name, p->c->name, n) != 0 || (*a)->name[n] != '-') continue;
        if (!any) ses_help_heading(p->t, p->out, "Actions");
        any = true;
        ses_help_row(p->t, p->out, (*a)->name + n + 1, SES_HELP_COLUMN, (*a)->summary);
    }
}

static void put_examples(const page *p)
{
    const ses_usage_example *x = ses_command_examples(p->c);
    if (x) ses_help_heading(p->t, p->out, "Examples");
    for (int i = 0; x && x->line && !(p->brief && i == BRIEF_EXAMPLES); x++, i++) {
        fprintf(p->out, "  %s\n      ", x->line);
        ses_put_wrapped(p->out, x->what, 6, 6, ses_help_width(p->t));
    }
}

/* brief: the first paragraph. */
static void put_paragraphs(const page *p, const char *text)
{
    char first[2048];
    const char *end = p->brief ? strstr(text, "\n\n") : NULL;
    if (end) {
        snprintf(first, sizeof first, "%.*s", (int)(end - text), text);
        text = first;
    }
    ses_put_wrapped(p->out, text, 0, 0, ses_help_width(p->t));
}

static void put_page(const page *p)
{
    char name[64];
    const char *usage = ses_command_usage(p->c);
    fprintf(p->out, "Usage: sesame %s [OPTION...]%s%s\n\n", ses_command_called_name(p->c, name, sizeof name),
            *usage ? " " : "", usage);
    put_paragraphs(p, ses_command_description(p->c));
    if (p->c->task && !p->brief) {
        putc('\n', p->out);
        put_paragraphs(p, ses_pipeline_description);
    }
    if (p->c->task) {
        putc('\n', p->out);
        put_paragraphs(p, ses_command_model_note(p->c));
    }
    if (p->c->analysis && !p->brief) {
        putc('\n', p->out);
        put_paragraphs(p, ses_analysis_description);
    }
    put_actions(p);
    put_examples(p);
    put_options(p);
}

/* Whether the whole help has more than MAX_LINES lines. */
static bool is_long(page p)
{
    char *text = NULL;
    size_t size = 0, lines = 0;
    if (!(p.out = open_memstream(&text, &size))) return true;
    put_page(&p);
    if (fclose(p.out)) return true;
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    free(text);
    return lines > MAX_LINES;
}

static bool find_group(const page *p, const char *group, ses_err *e)
{
    const ses_opt *o;
    ses_buf names = { 0 };
    char name[64];
    for (options at = options_of(p); (o = next_option(p, &at));) {
        if (o->group && !strcmp(o->group, group)) {
            ses_buf_free(&names);
            return true;
        }
        if (begins_group(p, o)) ses_buf_appendf(&names, "%s, ", o->group);
    }
    ses_fail(e, SES_EUSAGE, "'sesame %s' has no options named '%s'; expected %sall",
             ses_command_called_name(p->c, name, sizeof name), group, names.len ? names.data : "");
    ses_buf_free(&names);
    return false;
}

/* The name of the task of fine-tuning that a value of --task means. NULL: none, as a task of evaluation. */
static const char *task_of(const char *name)
{
    ses_data_options d = { .task = name };
    ses_finetune_task_options o = { 0 };
    ses_data_spec spec;
    const ses_finetune_task *k = NULL;
    return name && ses_finetune_resolve_task(&d, &o, &k, &spec, NULL) ? k->name : NULL;
}

bool ses_help_command(const ses_command *c, const ses_help_choice *choice, const ses_term *t, FILE *out,
                      ses_err *e)
{
    page p = { .c = c, .t = t, .out = out, .task = task_of(choice->task) };
    bool some = *choice->group && strcmp(choice->group, "all") != 0;
    if (some && !find_group(&p, choice->group, e)) return false;
    if (some) {
        put_group(&p, choice->group, true);
        return true;
    }
    p.brief = !*choice->group && is_long(p);
    put_page(&p);
    return true;
}
