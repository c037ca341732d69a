/* Runs a command as main does, without its general options. */
#ifndef TESTS_FUZZ_COMMAND_H
#define TESTS_FUZZ_COMMAND_H

#include "cli/command.h"
#include "fuzz.h"

#include <unistd.h>

/* Sends stdout to a file; fuzz_stdout_back undoes it. */
static inline int fuzz_stdout_to(FILE *file)
{
    fflush(stdout);
    int before = dup(STDOUT_FILENO);
    MUST(before >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    return before;
}

static inline void fuzz_stdout_back(int before)
{
    fflush(stdout);
    MUST(dup2(before, STDOUT_FILENO) >= 0);
    close(before);
}

/* The bytes of a temporary file, with a NUL after them; free them with free. */
static inline char *fuzz_read_back(FILE *file, size_t *n)
{
    off_t size = lseek(fileno(file), 0, SEEK_END);
    char *text = malloc((size_t)size + 1);
    MUST(text && pread(fileno(file), text, (size_t)size, 0) == size);
    text[ *n = (size_t)size] = 0;
    return text;
}

/* words end with NULL; the parser moves them. */
static inline bool fuzz_command(const char *name, char **words, ses_err *e)
{
    const ses_command *c = ses_command_find(name);
    MUST(c);
    void *args = calloc(1, c->args_size);
    ses_opt_group g = { c->opt, c->n_opt, args };
    ses_call call = { .command = c, .args = args, .operands = words, .quiet = true };
    MUST(args);
    bool ok = ses_options_parse(&g, 1, words, false, &call.n_operands, e) &&
              ses_options_check_required(&g, 1, e) && c->run(&call, e);
    ses_options_free(&g, 1);
    free(args);
    return ok;
}

#endif
