/* The program: finds the command, parses its options, runs it and reports its error. */
#define _POSIX_C_SOURCE 200809L
#include "analysis/analysis.h"
#include "base/alloc.h"
#include "cli/train/rank_args.h"
#include "cli/train/train_monitor.h"
#include "command.h"
#include "model_args.h"
#include "output_check.h"
#include "standard_output.h"
#include "task/task.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_FINE, EXIT_FAILED, EXIT_USAGE, EXIT_INPUT, EXIT_SIGNAL = 128 };

/* If the caller closed descriptor 0, 1 or 2, the next opened file would get that number and be
 * overwritten. */
static void fill_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            /* the wrong direction, so that using it fails */
            int got = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
            if (got >= 0 && got != fd) close(got);
        }
}

/* Access to the lost pages of a mapped file. The handler writes one line and ends the process: the
 * interrupted computation cannot continue. */
static void on_lost_page(int sig)
{
    static const char message[] =
        "sesame: a file in use (model, index or corpus) was truncated, or its disk failed; replace files by "
        "renaming, and run the command again\n";
    (void)sig;
    if (write(STDERR_FILENO, message, sizeof message - 1) < 0) _exit(EXIT_FAILED);
    _exit(EXIT_INPUT);
}

/* Inserts the value of --model as first operand. argv has space: --model and its value were removed. */
static void insert_model_operand(ses_call *c, void *args)
{
    const ses_command *cmd = c->command;
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(cmd->opt, cmd->n_opt); (o = ses_opt_next(&it));) {
        if (!o->is_model || o->type != SES_OPT_IS_TEXT || strcmp(o->name, "model") != 0) continue;
        const char *const *model = (const void *)((char *)args + o->offset);
        if (!*model) continue;
        memmove(c->operands + 1, c->operands, ((size_t)c->n_operands++ + 1) * sizeof *c->operands);
        c->operands[0] = (char *)(uintptr_t)*model;
    }
}

/* The value of a text option of this name; NULL: there is none. */
static const char *text_value(const ses_opt_group *group, const char *name)
{
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(group->opt, group->n); (o = ses_opt_next(&it));)
        if (o->type == SES_OPT_IS_TEXT && !strcmp(o->name, name))
            return *(const char *const *)(const void *)((const char *)group->args + o->offset);
    return NULL;
}

/* Parses the command line, over the options of an earlier call if it continues one. *stored owns strings. */
static bool parse(const ses_command *cmd, const ses_opt_group *group, size_t n_groups, ses_call *call,
                  ses_json_doc **stored, ses_err *e)
{
    size_t n = 0;
    if (!cmd->open_stored)
        return ses_options_parse(group, n_groups, call->operands, false, &call->n_operands, e);
    while (call->operands[n]) n++;
    char **words = ses_alloc_array(n + 1, sizeof *words, e);
    if (!words) return false;
    memcpy(words, call->operands, (n + 1) * sizeof *words);
    bool ok = ses_options_parse(group, n_groups, call->operands, false, &call->n_operands, e);
    *stored = ok ? cmd->open_stored(call, e) : NULL;
    if (*stored) {
        memcpy(call->operands, words, (n + 1) * sizeof *words);
        ses_opt_free(cmd->opt, cmd->n_opt, group->args);
        memset(group->args, 0, cmd->args_size);
        ok = ses_options_parse_stored(group, n_groups, ses_json_get(ses_json_root(*stored), "options"),
                                      call->operands, &call->n_operands, e);
    }
    ses_free(words);
    return ok && e->code == SES_OK;
}

/* Whether an analysis does not use the model with these arguments, so that none needs to be found. */
static bool needs_no_model(const ses_command *cmd, const void *task_args)
{
    return cmd->analysis && cmd->analysis->needs_no_model && cmd->analysis->needs_no_model(task_args);
}

static bool run_command(const ses_command *cmd, const char *name, ses_general_args *general, char **argv,
                        ses_err *e)
{
    ses_call call = { .command = cmd, .operands = argv };
    ses_general_args before = *general; /* given before the command */
    const ses_task *task = cmd->task;
    ses_command_part part = ses_command_part_of(cmd);
    void *args = ses_alloc(cmd->args_size, e), *task_args = ses_alloc(part.args_size, e);
    if (!args || !task_args) {
        ses_free(args);
        ses_free(task_args);
        return false;
    }
    call.args = args;
    call.task_args = task_args;
    ses_opt_group group[] = { { part.opt, part.n_opt, task_args },
                              { cmd->opt, cmd->n_opt, args },
                              { ses_general_opt, ses_n_general_opt, general } };
    if (cmd->open_stored && part.n_opt) { /* options stored in a file go to the first group */
        ses_opt_group first = group[0];
        group[0] = group[1], group[1] = first;
    }
    ses_json_doc *stored = NULL;
    const ses_opt_group *own_group = part.n_opt ? group : group + 1; /* without an empty group */
    bool ok = parse(cmd, own_group, (size_t)(group + SES_LEN(group) - own_group), &call, &stored, e) &&
              (!task || ses_task_set_called_name(task, task_args, name, e));
    if (general->color == SES_COLOR_AUTO) general->color = before.color;
    if (ok) {
        call.out = ses_term_of(stdout, (ses_color_when)general->color);
        call.err = ses_term_of(stderr, (ses_color_when)general->color);
        call.quiet = general->quiet;
        if (cmd->has_model_operand) insert_model_operand(&call, args);
    }
    if (ok && general->help) {
        ses_help_choice choice = { general->help, text_value(own_group, "task") };
        ok = ses_help_command(cmd, &choice, &call.out, stdout, e);
    } else if (ok && call.n_operands < cmd->min_operands) {
        char called[64];
        ok = ses_fail(e, SES_EUSAGE, "missing argument; usage: sesame %s %s",
                      ses_command_called_name(cmd, called, sizeof called), ses_command_usage(cmd));
    } else if (ok && cmd->max_operands >= 0 && call.n_operands > cmd->max_operands) {
        ok = ses_fail(e, SES_EUSAGE, "unexpected argument '%s'", call.operands[cmd->max_operands]);
    } else if (ok) {
        char *own[SES_MAX_MODEL_ARGS] = { 0 };
        ok = ses_options_check_required(group, SES_LEN(group), e) &&
             ses_outputs_check(group, SES_LEN(group), call.operands, e) &&
             (needs_no_model(cmd, task_args) || ses_model_args_resolve(cmd, args, call.operands, own, e)) &&
             cmd->run(&call, e);
        for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
    }
    ses_options_free(group, SES_LEN(group));
    ses_json_free(stored);
    ses_free(args);
    ses_free(task_args);
    return ok;
}

/* "vectors train" calls the command vectors-train. NULL: the words do not name an action. */
static const ses_command *find_action(char **argv)
{
    char name[64];
    if (!argv[1] || snprintf(name, sizeof name, "%s-%s", argv[0], argv[1]) >= (int)sizeof name) return NULL;
    const ses_command *c = ses_command_find(name);
    return c && c->is_action ? c : NULL;
}

/* Parses the options before the command, then runs it. Sets *cmd for usage errors. */
static bool dispatch(char **argv, const ses_command **cmd, ses_err *e)
{
    ses_general_args general = { 0 };
    ses_top_args top = { 0 };
    const ses_opt_group group[] = { { ses_top_opt, ses_n_top_opt, &top },
                                    { ses_general_opt, ses_n_general_opt, &general } };
    int n = 0;
    if (!ses_options_parse(group, SES_LEN(group), argv, true, &n, e)) return false;
    ses_term out = ses_term_of(stdout, (ses_color_when)general.color);
    if (n && !strcmp(ses_command_name_of(argv[0]), "--version")) {
        argv[0] = (char *)(uintptr_t) "--version";
        return dispatch(argv, cmd, e);
    }
    if (top.version) {
        ses_version_print(stdout, top.verbose);
        return true;
    }
    if (general.help && *general.help && strcmp(general.help, "all") != 0) {
        ses_help_choice choice = { n ? argv[0] : "", NULL };
        *cmd = ses_command_require(general.help, e);
        return *cmd && ses_help_command(*cmd, &choice, &out, stdout, e);
    }
    if (!n) {
        if (general.help)
            ses_help_top(&out, stdout);
        else
            ses_help_start(&out, stdout);
        return true;
    }
    if ((*cmd = find_action(argv))) return run_command(*cmd, (*cmd)->name, &general, argv + 2, e);
    *cmd = ses_command_require(argv[0], e);
    return *cmd && run_command(*cmd, ses_command_name_of(argv[0]), &general, argv + 1, e);
}

static int exit_code(const ses_err *e)
{
    switch (e->code) {
    case SES_OK: /* reported by the command; after a signal, the shell's code */
        return ses_train_monitor_signal() ? EXIT_SIGNAL + ses_train_monitor_signal() : EXIT_FAILED;
    case SES_ENOMEM: return EXIT_FAILED;
    case SES_EUSAGE: return EXIT_USAGE;
    case SES_EIO:
    case SES_EFORMAT:
    case SES_EARG:
    case SES_EUNSUPPORTED: return EXIT_INPUT;
    }
    return EXIT_FAILED;
}

static void report(const ses_err *e, const ses_command *cmd)
{
    if (e->code == SES_OK) return; /* the command has reported it */
    if (cmd && cmd->uses_ranks && ses_rank_is_other()) return;
    fputs("sesame: ", stderr);
    ses_put_escaped(stderr, e->msg);
    putc('\n', stderr);
    if (e->code != SES_EUSAGE) return;
    char name[64];
    if (cmd)
        fprintf(stderr, "Try 'sesame %s --help'.\n", ses_command_called_name(cmd, name, sizeof name));
    else
        fputs("Try 'sesame --help'.\n", stderr);
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    signal(SIGXFSZ, SIG_IGN); /* a file-size limit is a write error */
    signal(SIGPIPE, SIG_DFL); /* a closed pipe ends the program even if the parent ignores SIGPIPE */
    signal(SIGBUS, on_lost_page);
    ses_err e = { 0 };
    const ses_command *cmd = NULL;
    char *none[] = { NULL };
    bool ok = dispatch(argc > 0 ? argv + 1 : none, &cmd, &e);
    int code = ok ? EXIT_FINE : exit_code(&e);
    ses_err lost = { 0 };
    if (!ok && ses_stdout_is_cause(&e)) {
        code = EXIT_FAILED;
    } else if (!ses_stdout_close(&lost)) { /* a full disk is detected here at the latest */
        report(&lost, NULL);
        if (code == EXIT_FINE) code = EXIT_FAILED;
    }
    if (!ok) report(&e, cmd);
    return code;
}
