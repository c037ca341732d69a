/* A search of `finetune`. The first byte selects the number of seeds, the search and the input: lines of
 * --grid, or the files run.json and all_results.json of finished runs, with a line "---" between them, for
 * --resume. The data are missing, so nothing is trained. */
#define _POSIX_C_SOURCE 200809L
#include "fuzz_command.h"
#include "fuzz_folder.h"

#include "base/dir.h"
#include "base/file.h"
#include "sesame/json.h"
#include "train/train_folder.h"

#include <sys/stat.h>

enum { MAX_LINES = 20, MAX_RUNS = 64, TOO_MANY = 10000 };

/* Splits the text into lines; returns their number, or 0 if they are too many runs for one execution. */
static size_t split(char *text, const char **line)
{
    size_t n = 0, runs = 1;
    for (char *save = NULL, *s = strtok_r(text, "\n", &save); s && n < MAX_LINES;
         s = strtok_r(NULL, "\n", &save)) {
        size_t values = 1;
        for (const char *c = s; *c; c++) values += *c == ',';
        runs = runs > TOO_MANY ? runs : runs * values;
        line[n++] = s;
    }
    return runs <= MAX_RUNS || runs > TOO_MANY ? n : 0;
}

/* Folders of two finished runs. */
static void write_runs(const char *out, char *text)
{
    char path[128], *results = strstr(text, "---\n"), *option;
    if (results) *results = 0, results += 4;
    mkdir(out, 0777);
    snprintf(path, sizeof path, "%s/%s", out, SES_GRID_FILE);
    fuzz_file(path, "{}", 2);
    for (int seed = 42; seed < 44; seed++) {
        snprintf(path, sizeof path, "%s/seed=%d", out, seed);
        mkdir(path, 0777);
        if (seed == 43 && (option = strstr(text, "\"seed\": 42"))) option[9] = '3';
        snprintf(path, sizeof path, "%s/seed=%d/%s", out, seed, SES_RUN_INFO);
        fuzz_file(path, text, strlen(text));
        snprintf(path, sizeof path, "%s/seed=%d/all_results.json", out, seed);
        fuzz_file(path, results ? results : "{}", strlen(results ? results : "{}"));
        snprintf(path, sizeof path, "%s/seed=%d/config.json", out, seed);
        fuzz_file(path, "{}", 2);
    }
}

/* The table of a search is valid JSON at any time. */
static void check_grid(const char *out, bool ok)
{
    char path[128];
    ses_err e = { 0 };
    snprintf(path, sizeof path, "%s/%s", out, SES_GRID_FILE);
    if (!ok && access(path, F_OK)) return;
    ses_json_doc *doc = ses_json_load(path, 1 << 26, &e);
    MUST(doc && (!ok || ses_json_type_of(ses_json_get(ses_json_root(doc), "points")) == SES_JSON_ARRAY));
    ses_json_free(doc);
}

static bool remove_run(void *out, const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", (char *)out, name);
    ses_dir_remove(path, NULL); /* fails for a file */
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    bool resume = data[0] & 1;
    char dir[40], out[64], *text = malloc(n), *list[20 + 2 * MAX_LINES];
    bool halving = !resume && (data[0] & 12) == 8, random = !resume && (data[0] & 12) == 4;
    const char *line[MAX_LINES], *seeds = resume ? "2" : data[0] & 2 ? "3" : "1";
    const char *words[20 + 2 * MAX_LINES] = { "--task",  "classify", "--model",  "none", "--train",
                                              "no.tsv",  "--eval",   "none.tsv", "-o",   out,
                                              "--seeds", seeds,      "--resume" };
    size_t k = resume ? 13 : 12;
    MUST(text);
    memcpy(text, data + 1, n - 1);
    text[n - 1] = 0;
    fuzz_folder(dir);
    snprintf(out, sizeof out, "%s/out", dir);
    if (resume) write_runs(out, text);
    size_t lines = resume ? 0 : split(text, line);
    for (size_t i = 0; i < lines; i++) words[k++] = "--grid", words[k++] = line[i];
    if (halving || random) {
        words[k++] = "--search", words[k++] = halving ? "halving" : "random";
        words[k++] = "--trials", words[k++] = "10";
    }
    for (size_t i = 0; i <= k; i++) list[i] = (char *)(uintptr_t)(i < k ? words[i] : NULL);
    ses_err e = { 0 };
    bool ok = (resume || lines) && fuzz_command("finetune", list, &e);
    MUST(ok ? resume && !e.code : e.code || !(resume || lines));
    check_grid(out, ok);
    ses_dir_each(out, remove_run, out, NULL);
    ses_dir_remove(out, NULL);
    MUST(!rmdir(dir));
    free(text);
    return 0;
}
