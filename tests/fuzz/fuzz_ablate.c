/* Specification of an ablation study, as `sesame ablate` reads it. The corpus is missing, so the first run
 * fails. */
#define _POSIX_C_SOURCE 200809L
#include "fuzz_folder.h"

#include "base/dir.h"
#include "cli/command.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char dir[40], option[] = "-o", recipe[64], out[64];
    char *words[] = { option, out, recipe, NULL };
    const ses_command *c = ses_command_find("ablate");
    ses_err e = { 0 };
    fuzz_folder(dir);
    MUST(c);
    snprintf(recipe, sizeof recipe, "%s/recipe.json", dir);
    snprintf(out, sizeof out, "%s/study", dir);
    fuzz_file(recipe, data, n);
    void *args = calloc(1, c->args_size);
    ses_opt_group g = { c->opt, c->n_opt, args };
    ses_call call = { .command = c, .args = args, .operands = words, .quiet = true };
    MUST(args && ses_options_parse(&g, 1, words, false, &call.n_operands, NULL));
    bool ok = ses_options_check_required(&g, 1, &e) && c->run(&call, &e);
    MUST(ok || e.code != SES_OK);
    ses_options_free(&g, 1);
    free(args);
    unlink(recipe);
    ses_dir_remove(out, NULL);
    rmdir(dir);
    return 0;
}
