/* Specification of an ablation study, as `sesame ablate` reads it. The corpus is missing, so the first run
 * fails. */
#define _POSIX_C_SOURCE 200809L
#include "fuzz_command.h"
#include "fuzz_folder.h"

#include "base/dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char dir[40], option[] = "-o", recipe[64], out[64];
    char *words[] = { option, out, recipe, NULL };
    ses_err e = { 0 };
    fuzz_folder(dir);
    snprintf(recipe, sizeof recipe, "%s/recipe.json", dir);
    snprintf(out, sizeof out, "%s/study", dir);
    fuzz_file(recipe, data, n);
    MUST(fuzz_command("ablate", words, &e) || e.code != SES_OK);
    unlink(recipe);
    ses_dir_remove(out, NULL);
    rmdir(dir);
    return 0;
}
