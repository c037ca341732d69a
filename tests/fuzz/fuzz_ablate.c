/* Recipe of an ablation study, as `sesame ablate --plan` reads it: no job is started. */
#define _POSIX_C_SOURCE 200809L
#include "fuzz_command.h"
#include "fuzz_folder.h"

#include "base/dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char dir[40], option[] = "-o", plan[] = "--plan", recipe[64], out[64];
    char *words[] = { option, out, plan, recipe, NULL };
    ses_err e = { 0 };
    FILE *file = tmpfile();
    MUST(file);
    fuzz_folder(dir);
    snprintf(recipe, sizeof recipe, "%s/recipe.json", dir);
    snprintf(out, sizeof out, "%s/study", dir);
    fuzz_file(recipe, data, n);
    int before = fuzz_stdout_to(file);
    bool ok = fuzz_command("ablate", words, &e);
    fuzz_stdout_back(before);
    MUST(ok || e.code != SES_OK);
    fclose(file);
    unlink(recipe);
    ses_dir_remove(out, NULL);
    rmdir(dir);
    return 0;
}
