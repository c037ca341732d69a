/* completion: prints completion scripts for bash, zsh and fish, from the same tables as --help, and the words
 * that the scripts offer for models, tasks and devices. */
#include "base/suggest.h"
#include "cli/command.h"
#include "cli/completion_words.h"

#include <string.h>

/* Calls fn for every option of a command, then for the general ones. c NULL: the options before the
 * command. */
typedef void option_fn(const ses_command *c, const ses_opt *o);

static void each_option(const ses_command *c, option_fn *fn)
{
    const ses_opt *o;
    ses_opt_iter it = c ? ses_command_options(c) : ses_opt_begin(ses_top_opt, ses_n_top_opt);
    while ((o = ses_opt_next(&it))) fn(c, o);
    for (size_t i = 0; i < ses_n_general_opt; i++) fn(c, &ses_general_opt[i]);
}

static void put_names(void)
{
    const char *gap = "";
    for (const ses_command *const *c = ses_commands(); *c; c++)
        if (!(*c)->hidden) {
            printf("%s%s", gap, (*c)->name);
            gap = " ";
        }
}

/* Writes "a|b" as "a b". */
static void put_words(const char *choices)
{
    for (; *choices; choices++) putchar(*choices == '|' ? ' ' : *choices);
}

static void put_operand_words(const ses_command *c)
{
    if (!c->operand_words) return;
    if (!strcmp(c->operand_words, "COMMAND"))
        put_names();
    else
        put_words(c->operand_words);
}

static bool takes_file(const ses_opt *o) { return o->type == SES_OPT_IS_TEXT || o->type == SES_OPT_IS_LIST; }

/* The list of words for an option's value (cli/completion_words.h); NULL: none. */
static const char *word_list(const ses_opt *o) { return o->is_model ? "models" : o->completion; }

/* Writes text for use inside single quotes of a shell; characters of `extra` get a backslash. */
static void put_quoted(const char *s, const char *extra)
{
    for (; *s; s++) {
        if (*s == '\'') {
            fputs("'\\''", stdout);
            continue;
        }
        if (strchr(extra, *s)) putchar('\\');
        putchar(*s);
    }
}

/* ---- bash: candidate words by command and previous word ---- */

static void bash_word(const ses_command *c, const ses_opt *o)
{
    (void)c;
    printf(" --%s", o->name);
    if (o->letter) printf(" -%c", o->letter);
}

static void bash_value(const ses_command *c, const ses_opt *o)
{
    if (o->type == SES_OPT_IS_FLAG) return;
    printf("    %s:--%s", c ? c->name : "", o->name);
    if (o->letter) printf(" | %s:-%c", c ? c->name : "", o->letter);
    fputs(") ", stdout);
    if (o->choices) {
        fputs("words='", stdout);
        put_words(o->choices);
        puts("' ;;");
    } else if (word_list(o)) {
        printf("_sesame_offer %s \"$cur\" -d; return ;;\n", word_list(o));
    } else {
        puts(takes_file(o) ? "return ;;" : "compopt +o default; return ;;");
    }
}

static void bash_command(const ses_command *c)
{
    printf("        %s) words='", c ? c->name : "''");
    if (c) put_operand_words(c);
    if (!c) put_names();
    each_option(c, bash_word);
    puts(c && c->has_model_operand ? "' operand=models ;;" : "' ;;");
}

static void bash(void)
{
    fputs(
        "# bash completion for sesame, written by 'sesame completion bash'\n"
        "# KIND WORD -d|-f: the words of a kind; of models also folders or files\n"
        "_sesame_offer() {\n"
        "    local IFS=$'\\n'\n"
        "    COMPREPLY=($(compgen -W \"$(\"${COMP_WORDS[0]}\" completion \"$1\" 2>/dev/null)\" -- \"$2\"))\n"
        "    if [[ $1 == models ]]; then\n"
        "        compopt -o filenames 2>/dev/null\n"
        "        COMPREPLY+=($(compgen \"$3\" -- \"$2\"))\n"
        "    fi\n"
        "}\n"
        "_sesame() {\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= words= operand= i "
        "names='",
        stdout);
    put_names();
    puts("'\n"
         "    # bash splits words at '='\n"
         "    if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; "
         "fi\n"
         "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "        if [[ \" $names \" == *\" ${COMP_WORDS[i]} \"* ]]; then cmd=${COMP_WORDS[i]}; break; fi\n"
         "    done\n"
         "    case $cmd:$prev in");
    each_option(NULL, bash_value);
    for (const ses_command *const *c = ses_commands(); *c; c++)
        if (!(*c)->hidden) each_option(*c, bash_value);
    puts("    *)\n        case $cmd in");
    bash_command(NULL);
    for (const ses_command *const *c = ses_commands(); *c; c++)
        if (!(*c)->hidden) bash_command(*c);
    puts("        esac ;;\n"
         "    esac\n"
         "    if [[ -n $operand && $cur != -* ]]; then _sesame_offer \"$operand\" \"$cur\" -f; return; fi\n"
         "    # options are offered after a dash, else files (-o default)\n"
         "    if [[ $cur == -* || $words != ' '* ]]; then COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")); "
         "fi\n"
         "}\n"
         "complete -o default -F _sesame sesame");
}

/* ---- zsh: _arguments specifications ---- */

static void zsh_option(const ses_command *c, const ses_opt *o)
{
    (void)c;
    const char *many = o->type == SES_OPT_IS_LIST ? "*" : "";
    for (int form = 0; form < 2; form++) { /* the long name, then the letter */
        if (form && !o->letter) continue;
        if (form)
            printf(" \\\n            '%s-%c", many, o->letter);
        else
            printf(" \\\n            '%s--%s%s", many, o->name, o->type == SES_OPT_IS_FLAG ? "" : "=");
        putchar('[');
        put_quoted(o->help, "[]:\\");
        putchar(']');
        if (o->type != SES_OPT_IS_FLAG) {
            putchar(':');
            put_quoted(o->choices ? o->name : ses_opt_value_name(o), ":\\");
            putchar(':');
            if (o->choices) {
                putchar('(');
                put_words(o->choices);
                putchar(')');
            } else if (word_list(o)) {
                printf("_sesame_offer %s", word_list(o));
            } else if (takes_file(o)) {
                fputs("_files", stdout);
            }
        }
        putchar('\'');
    }
}

static void zsh_command(const ses_command *c)
{
    printf("        %s)\n            _arguments -s -S", c->name);
    each_option(c, zsh_option);
    fputs(" \\\n            '*:argument:", stdout);
    if (c->operand_words) {
        putchar('(');
        put_operand_words(c);
        putchar(')');
    } else if (c->max_operands) {
        fputs(c->has_model_operand ? "_sesame_offer models" : "_files", stdout);
    }
    puts("' ;;");
}

static void zsh(void)
{
    puts("#compdef sesame\n"
         "# zsh completion for sesame, written by 'sesame completion zsh'\n"
         "# KIND: the words of a kind; of models also files\n"
         "_sesame_offer() {\n"
         "    local -a offered\n"
         "    offered=(${(f)\"$(sesame completion $1 2>/dev/null)\"})\n"
         "    compadd -a offered\n"
         "    if [[ $1 == models ]]; then _files; fi\n"
         "}\n"
         "_sesame() {\n"
         "    local context state state_descr line\n"
         "    typeset -A opt_args\n"
         "    local -a commands\n"
         "    commands=(");
    for (const ses_command *const *c = ses_commands(); *c; c++)
        if (!(*c)->hidden) {
            printf("        '%s:", (*c)->name);
            put_quoted((*c)->summary, ":\\");
            puts("'");
        }
    fputs("    )\n    _arguments -C", stdout);
    each_option(NULL, zsh_option);
    puts(" \\\n            '1:command:->command' '*::argument:->operands'\n"
         "    case $state in\n"
         "    command) _describe command commands ;;\n"
         "    operands)\n"
         "        case $words[1] in");
    for (const ses_command *const *c = ses_commands(); *c; c++)
        if (!(*c)->hidden) zsh_command(*c);
    puts("        esac ;;\n"
         "    esac\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _sesame ]; then _sesame \"$@\"; else compdef _sesame sesame; fi");
}

/* ---- fish: a line per option ---- */

static void fish_option(const ses_command *c, const ses_opt *o)
{
    fputs("complete -c sesame -n ", stdout);
    if (c)
        printf("'__fish_seen_subcommand_from %s'", c->name);
    else
        fputs("__fish_use_subcommand", stdout);
    printf(" -l %s", o->name);
    if (o->letter) printf(" -s %c", o->letter);
    if (o->choices) {
        fputs(" -xa '", stdout);
        put_words(o->choices);
        putchar('\'');
    } else if (word_list(o)) {
        printf(" %s '(sesame completion %s)'", o->is_model ? "-rFa" : "-xa", word_list(o));
    } else if (o->type != SES_OPT_IS_FLAG) {
        fputs(takes_file(o) ? " -rF" : " -x", stdout);
    }
    fputs(" -d '", stdout);
    for (const char *s = o->help; *s; s++) printf(*s == '\'' || *s == '\\' ? "\\%c" : "%c", *s);
    puts("'");
}

static void fish(void)
{
    puts("# fish completion for sesame, written by 'sesame completion fish'");
    each_option(NULL, fish_option);
    for (const ses_command *const *c = ses_commands(); *c; c++) {
        if ((*c)->hidden) continue;
        printf("complete -c sesame -n __fish_use_subcommand -xa %s -d '", (*c)->name);
        for (const char *s = (*c)->summary; *s; s++) printf(*s == '\'' || *s == '\\' ? "\\%c" : "%c", *s);
        puts("'");
        if ((*c)->operand_words) {
            printf("complete -c sesame -n '__fish_seen_subcommand_from %s' -xa '", (*c)->name);
            put_operand_words(*c);
            puts("'");
        }
        if ((*c)->has_model_operand)
            printf("complete -c sesame -n '__fish_seen_subcommand_from %s' -a '(sesame completion models)'\n",
                   (*c)->name);
        each_option(*c, fish_option);
    }
}

typedef struct shell {
    const char *name;
    void (*write)(void);
} shell;

static bool run(ses_call *c, ses_err *e)
{
    static const shell shells[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };
    for (size_t i = 0; i < SES_LEN(shells); i++)
        if (!strcmp(c->operands[0], shells[i].name)) {
            shells[i].write();
            return true;
        }
    bool known;
    if (!ses_completion_words_print(c->operands[0], &known, e)) return false;
    if (known) return true;
    ses_suggestion s = { .word = c->operands[0] };
    for (size_t i = 0; i < SES_LEN(shells); i++)
        ses_suggest_offer(&s, shells[i].name, strlen(shells[i].name));
    ses_fail(e, SES_EUSAGE, "\"%s\" is not one of bash|zsh|fish", c->operands[0]);
    return ses_suggest_add(&s, "", e);
}

static const ses_usage_example examples[] = {
    { "source <(sesame completion bash)", "bash: a line for ~/.bashrc" },
    { "sesame completion zsh > ~/.zfunc/_sesame", "zsh: a folder in $fpath" },
    { "sesame completion fish > ~/.config/fish/completions/sesame.fish", "fish" },
    { 0 },
};

const ses_command ses_command_completion = {
    .name = "completion",
    .usage = "bash|zsh|fish",
    .summary = "print a shell completion script",
    .description =
        "Prints a script that completes commands, options and their values, among them models (bundled, and "
        "in "
        "the folders of SESAME_MODELS), tasks and devices. 'make install' installs the scripts for all three "
        "shells.\n\n"
        "The scripts call 'sesame completion models', 'tasks' and 'devices', which print these words.",
    .examples = examples,
    .min_operands = 1,
    .max_operands = 1,
    .operand_words = "bash|zsh|fish",
    .run = run,
};
