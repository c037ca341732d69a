/* Prints the first page and the list of all commands; rows of help. */
#include "cli/command.h"
#include "help_row.h"

#include <string.h>

int ses_help_width(const ses_term *t)
{
    enum { MAX = 100 };
    return t->width < MAX ? t->width : MAX;
}

void ses_help_heading(const ses_term *t, FILE *out, const char *title)
{
    fprintf(out, "\n%s%s:%s\n", ses_style_on(t, SES_BOLD), title, ses_style_on(t, SES_PLAIN));
}

void ses_help_row(const ses_term *t, FILE *out, const char *left, int left_width, const char *right)
{
    int n = (int)strlen(left);
    fprintf(out, "  %s%s%s", ses_style_on(t, SES_BOLD), left, ses_style_on(t, SES_PLAIN));
    if (n + 3 > left_width)
        fprintf(out, "\n%*s", left_width, "");
    else
        fprintf(out, "%*s", left_width - n - 2, "");
    ses_put_wrapped(out, right, left_width, left_width, ses_help_width(t));
}

void ses_help_option(const ses_opt *o, bool brief, const ses_term *t, FILE *out)
{
    char left[128], right[1024], letter[8] = "    ";
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    const char *value = ses_opt_value_name(o), *sentence = brief ? strstr(o->help, ". ") : NULL;
    snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, *value ? " " : "", value);
    int n = snprintf(right, sizeof right, "%.*s", sentence ? (int)(sentence - o->help) : (int)strlen(o->help),
                     o->help);
    const char *mark = o->def && !strcmp(o->def, " ") ? "\"" : ""; /* makes a space visible */
    if (o->def)
        n += snprintf(right + n, sizeof right - (size_t)n, " (default %s%s%s%s%s)", mark, o->def, mark,
                      o->env ? ", or " : "", o->env ? o->env : "");
    else if (o->env)
        n += snprintf(right + n, sizeof right - (size_t)n, " (or %s)", o->env);
    if (o->required) n += snprintf(right + n, sizeof right - (size_t)n, " (required)");
    if (o->type == SES_OPT_IS_LIST && !o->items)
        snprintf(right + n, sizeof right - (size_t)n, " (may be repeated)");
    ses_help_row(t, out, left, SES_HELP_COLUMN, right);
}

/* ---- all commands ---- */

static bool is_listed(const ses_command *c, const char *group, bool pipelines)
{
    const char *own = ses_command_group_of(c);
    return !c->hidden && !c->is_action && own && !strcmp(own, group) && !c->task == !pipelines;
}

void ses_help_top(const ses_term *t, FILE *out)
{
    fprintf(out, "Sesame: BERT and friends in C.\n\nUsage: sesame COMMAND [OPTION...] [ARGUMENT...]\n");
    int left = 0;
    const char *group;
    for (const ses_command *const *c = ses_commands(); *c; c++)
        if (!(*c)->hidden && !(*c)->is_action && (int)strlen((*c)->name) > left)
            left = (int)strlen((*c)->name);
    for (size_t g = 0; (group = ses_command_group_title(g)); g++) {
        ses_help_heading(t, out, group);
        for (int pipelines = 1; pipelines >= 0; pipelines--)
            for (const ses_command *const *c = ses_commands(); *c; c++)
                if (is_listed(*c, group, pipelines))
                    ses_help_row(t, out, (*c)->name, left + 5, (*c)->summary);
    }
    ses_help_heading(t, out, "Options");
    for (size_t i = 0; i < ses_n_top_opt; i++) ses_help_option(&ses_top_opt[i], false, t, out);
    for (size_t i = 0; i < ses_n_general_opt; i++) ses_help_option(&ses_general_opt[i], false, t, out);
    fprintf(out, "\nRun 'sesame help COMMAND' for the options and examples of a command.\n");
}

/* ---- the first page ---- */

typedef struct start_line {
    const char *line, *what;
} start_line;

static void put_lines(const ses_term *t, FILE *out, const char *title, int left, const start_line *l)
{
    ses_help_heading(t, out, title);
    for (; l->line; l++) ses_help_row(t, out, l->line, left, l->what);
}

void ses_help_start(const ses_term *t, FILE *out)
{
    static const start_line tasks[] = {
        { "sesame sentiment 'A warm and funny film.'", "positive or negative" },
        { "sesame zero-shot -c sports,money 'The striker scored.'", "labels of your own" },
        { "sesame ner 'Ada Lovelace lived in London.'", "names in a text" },
        { "sesame qa 'Who won?' 'The match was won by Ann.'", "answer from a text" },
        { "sesame fill-mask 'Tea is a [MASK] drink.'", "missing words" },
        { "sesame similarity 'a cat' 'a kitten'", "closeness of meaning" },
        { "sesame search 'small animals' -f texts.txt", "search by meaning" },
        { "sesame prefer 'It is cold.' 'It are cold.'", "the likelier text" },
        { "sesame embed -f texts.txt --to vectors.npy", "vectors of texts" },
        { "sesame generate 'Once upon a time'", "continue a text" },
        { 0 },
    };
    static const start_line commands[] = {
        { "sesame models", "list models" },
        { "sesame pull ORG/NAME", "download one" },
        { "sesame finetune -T classify -m sesame-small --train a.csv -o b", "train" },
        { "sesame predict b new.csv", "label new rows" },
        { "sesame serve", "server and page" },
        { 0 },
    };
    static const start_line next[] = {
        { "sesame --help", "all commands; sesame COMMAND --help: its options" },
        { "docs/FIRST_HOUR.md", "from your own CSV to a classifier, search, a server" },
        { 0 },
    };
    fputs("Sesame: BERT and friends in C.\n", out);
    put_lines(t, out, "Ten tasks, with the bundled models", 57, tasks);
    put_lines(t, out, "Five commands", 65, commands);
    put_lines(t, out, "Next steps", 22, next);
}
