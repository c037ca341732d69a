/* Prints the help of the program and of a command. */
#include "cli/command.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WIDTH = 100, SECOND_COLUMN = 26 };

static int text_width(const ses_term *t) { return t->width < MAX_WIDTH ? t->width : MAX_WIDTH; }

static void put_heading(const ses_term *t, FILE *out, const char *title)
{
    fprintf(out, "\n%s%s:%s\n", ses_style_on(t, SES_BOLD), title, ses_style_on(t, SES_PLAIN));
}

static void put_row(const ses_term *t, FILE *out, const char *left, int left_width, const char *right)
{
    int n = (int)strlen(left);
    fprintf(out, "  %s%s%s", ses_style_on(t, SES_BOLD), left, ses_style_on(t, SES_PLAIN));
    if (n + 3 > left_width)
        fprintf(out, "\n%*s", left_width, "");
    else
        fprintf(out, "%*s", left_width - n - 2, "");
    ses_put_wrapped(out, right, left_width, left_width, text_width(t));
}

static void put_option(const ses_opt *o, const ses_term *t, FILE *out)
{
    char left[128], right[512], letter[8] = "    ";
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    const char *value = ses_opt_value_name(o);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, *value ? " " : "", value);
    int n = snprintf(right, sizeof right, "%s", o->help);
    const char *mark = o->def && !strcmp(o->def, " ") ? "\"" : ""; /* makes a space visible */
    if (o->def)
        n += snprintf(right + n, sizeof right - (size_t)n, " (default %s%s%s%s%s)", mark, o->def, mark,
                      o->env ? ", or " : "", o->env ? o->env : "");
    else if (o->env)
        n += snprintf(right + n, sizeof right - (size_t)n, " (or %s)", o->env);
    if (o->required) n += snprintf(right + n, sizeof right - (size_t)n, " (required)");
    if (o->type == SES_OPT_IS_LIST) snprintf(right + n, sizeof right - (size_t)n, " (may be repeated)");
    put_row(t, out, left, SECOND_COLUMN, right);
}

/* Actions of a command: "vectors-train" is the action train of vectors. */
static void put_actions(const ses_command *c, const ses_term *t, FILE *out)
{
    size_t n = strlen(c->name);
    bool any = false;
    for (const ses_command *const *a = ses_commands(); *a; a++) {
        if (!(*a)->is_action || strncmp((*a)->name, c->name, n) != 0 || (*a)->name[n] != '-') continue;
        if (!any) put_heading(t, out, "Actions");
        any = true;
        put_row(t, out, (*a)->name + n + 1, SECOND_COLUMN, (*a)->summary);
    }
}

const char *ses_command_called_name(const ses_command *c, char *buf, size_t size)
{
    snprintf(buf, size, "%s", c->name);
    char *dash = c->is_action ? strchr(buf, '-') : NULL;
    if (dash) *dash = ' ';
    return buf;
}

void ses_help_command(const ses_command *c, const ses_term *t, FILE *out)
{
    char name[64];
    const char *usage = ses_command_usage(c);
    fprintf(out, "Usage: sesame %s [OPTION...]%s%s\n\n", ses_command_called_name(c, name, sizeof name),
            *usage ? " " : "", usage);
    ses_put_wrapped(out, ses_command_description(c), 0, 0, text_width(t));
    if (c->task) {
        putc('\n', out);
        ses_put_wrapped(out, ses_pipeline_description, 0, 0, text_width(t));
        putc('\n', out);
        ses_put_wrapped(out, ses_command_model_note(c), 0, 0, text_width(t));
    }
    if (c->analysis) {
        putc('\n', out);
        ses_put_wrapped(out, ses_analysis_description, 0, 0, text_width(t));
    }
    put_actions(c, t, out);
    const ses_usage_example *examples = ses_command_examples(c);
    if (examples) {
        put_heading(t, out, "Examples");
        for (const ses_usage_example *x = examples; x->line; x++) {
            fprintf(out, "  %s\n      ", x->line);
            ses_put_wrapped(out, x->what, 6, 6, text_width(t));
        }
    }
    put_heading(t, out, "Options");
    const ses_opt *o;
    for (ses_opt_iter it = ses_command_options(c); (o = ses_opt_next(&it));) put_option(o, t, out);
    for (size_t i = 0; i < ses_n_general_opt; i++) put_option(&ses_general_opt[i], t, out);
}

void ses_help_top(const ses_term *t, FILE *out)
{
    fprintf(out, "Sesame: BERT and friends in C.\n\nUsage: sesame COMMAND [OPTION...] [ARGUMENT...]\n");
    put_heading(t, out, "Commands");
    int left = 0;
    for (const ses_command *const *c = ses_commands(); *c; c++)
        if (!(*c)->hidden && !(*c)->is_action && (int)strlen((*c)->name) > left)
            left = (int)strlen((*c)->name);
    for (const ses_command *const *c = ses_commands(); *c; c++)
        if (!(*c)->hidden && !(*c)->is_action && !(*c)->task && !(*c)->analysis)
            put_row(t, out, (*c)->name, left + 5, (*c)->summary);
    put_heading(t, out, "Pipelines");
    for (const ses_command *const *c = ses_commands(); *c; c++)
        if (!(*c)->hidden && (*c)->task) put_row(t, out, (*c)->name, left + 5, (*c)->summary);
    put_heading(t, out, "Analyses");
    for (const ses_command *const *c = ses_commands(); *c; c++)
        if (!(*c)->hidden && (*c)->analysis) put_row(t, out, (*c)->name, left + 5, (*c)->summary);
    put_heading(t, out, "Options");
    for (size_t i = 0; i < ses_n_top_opt; i++) put_option(&ses_top_opt[i], t, out);
    for (size_t i = 0; i < ses_n_general_opt; i++) put_option(&ses_general_opt[i], t, out);
    fprintf(out, "\nRun 'sesame help COMMAND' for the options and examples of a command.\n");
}
