/* The ablate command: pretraining runs with different settings, and a table of their scores. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "sesame/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    MAX_AXES = 8,
    MAX_RUNS = 1000,
    MAX_WORDS = 256,
    MAX_SCORES = 12,
    FOLDER_MAX = 200,
    FILE_MAX = 1 << 24
};

typedef struct args {
    const char *output;
    bool json, overwrite;
} args;

static const ses_opt opt[] = {
    { .name = "output",
      .letter = 'o',
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, output),
      .value = "OUT",
      .required = true,
      .help = "folder of the runs, one subfolder each; finished runs are skipped" },
    { .name = "overwrite",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, overwrite),
      .help = "repeat all runs" },
    SES_OPT_JSON(args, json),
};

typedef struct study_run {
    const char *name;
    const ses_json *change; /* its options in "runs"; NULL: none */
    size_t at[MAX_AXES];    /* index of the value on each axis of "grid" */
    double score[MAX_SCORES];
    double seconds, rate;
} study_run;

typedef struct study {
    ses_call *c;
    const args *a;
    ses_arena mem;
    const ses_json *common, *grid, *scores;
    study_run *run;
    size_t n;
    const char *score[MAX_SCORES];
    size_t n_scores;
} study;

/* ---- the recipe ---- */

static const char *text_of(study *s, const ses_json *v, ses_err *e)
{
    char number[SES_NUMBER_CHARS];
    double x;
    int64_t n;
    const char *text = ses_json_string(v, NULL);
    if (text) return text;
    if (ses_json_int(v, &n))
        snprintf(number, sizeof number, "%" PRId64, n);
    else if (ses_json_real(v, &x))
        ses_format_double(x, number);
    else {
        ses_fail(e, SES_EFORMAT, "a value is %s; expected a string, a number or true",
                 ses_json_type_name(ses_json_type_of(v)));
        return NULL;
    }
    return ses_arena_strndup(&s->mem, number, strlen(number), e);
}

/* The name of a run's folder: special characters become '-'. */
static void name_folder(const char *run, char name[FOLDER_MAX])
{
    size_t n = 0;
    for (; run[n] && n + 1 < FOLDER_MAX; n++)
        name[n] = strchr(" /:,=", run[n]) || (!n && run[n] == '.') ? '-' : run[n];
    name[n] = 0;
}

static bool add_run(study *s, study_run a, ses_err *e)
{
    char folder_name[FOLDER_MAX], other[FOLDER_MAX];
    if (s->n == MAX_RUNS) return ses_fail(e, SES_EFORMAT, "more than %d runs", MAX_RUNS);
    name_folder(a.name, folder_name);
    if (!*folder_name) return ses_fail(e, SES_EFORMAT, "a run has an empty name");
    for (size_t i = 0; i < s->n; i++) {
        name_folder(s->run[i].name, other);
        if (!strcmp(folder_name, other))
            return ses_fail(e, SES_EFORMAT, "runs \"%s\" and \"%s\" have the same folder, %s", s->run[i].name,
                            a.name, folder_name);
    }
    s->run[s->n++] = a;
    return true;
}

/* Adds every combination of the grid's values, for one entry of "runs" or for none. */
static bool add_grid(study *s, const char *name, const ses_json *change, ses_err *e)
{
    size_t axes = ses_json_len(s->grid), points = 1;
    if (axes > MAX_AXES) return ses_fail(e, SES_EFORMAT, "\"grid\": more than %d options", MAX_AXES);
    for (size_t i = 0; i < axes && points <= MAX_RUNS; i++) points *= ses_json_len(ses_json_at(s->grid, i));
    if (!points || points > MAX_RUNS)
        return ses_fail(e, SES_EFORMAT,
                        "\"grid\": expected an array of values per option and at most %d runs", MAX_RUNS);
    for (size_t p = 0; p < points; p++) {
        study_run a = { .change = change };
        ses_buf b = { 0 };
        size_t rest = p;
        ses_buf_puts(&b, name);
        for (size_t i = axes; i-- > 0;) {
            size_t n = ses_json_len(ses_json_at(s->grid, i));
            a.at[i] = rest % n;
            rest /= n;
        }
        for (size_t i = 0; i < axes; i++) {
            const char *v = text_of(s, ses_json_at(ses_json_at(s->grid, i), a.at[i]), e);
            if (!v) return ses_buf_free(&b), false;
            ses_buf_appendf(&b, "%s%s=%s", b.len ? " " : "", ses_json_key(s->grid, i, NULL), v);
        }
        a.name = b.data ? ses_arena_strndup(&s->mem, b.data, b.len, e) : NULL;
        ses_buf_free(&b);
        if (!a.name || !add_run(s, a, e)) return false;
    }
    return true;
}

static bool is_object(const ses_json *v, const char *what, ses_err *e)
{
    if (!v || ses_json_type_of(v) == SES_JSON_OBJECT) return true;
    return ses_fail(e, SES_EFORMAT, "%s is %s; expected an object", what,
                    ses_json_type_name(ses_json_type_of(v)));
}

static bool read_recipe(study *s, const ses_json *root, ses_err *e)
{
    static const char *const known[] = { "common", "grid", "runs", "scores" };
    const ses_json *runs = ses_json_get(root, "runs");
    s->common = ses_json_get(root, "common");
    s->grid = ses_json_get(root, "grid");
    s->scores = ses_json_get(root, "scores");
    if (!is_object(s->common, "\"common\"", e) || !is_object(s->grid, "\"grid\"", e) ||
        !is_object(runs, "\"runs\"", e))
        return false;
    for (size_t i = 0; i < ses_json_len(root); i++) {
        bool found = false;
        for (size_t k = 0; k < SES_LEN(known); k++) found |= !strcmp(known[k], ses_json_key(root, i, NULL));
        if (!found)
            return ses_fail(e, SES_EFORMAT, "unknown key \"%s\"; expected common, runs, grid or scores",
                            ses_json_key(root, i, NULL));
    }
    if (!ses_json_len(runs) && !ses_json_len(s->grid))
        return ses_fail(e, SES_EFORMAT, "expected \"runs\" or \"grid\"");
    s->run = ses_arena_array(&s->mem, MAX_RUNS, sizeof *s->run, e);
    if (!s->run) return false;
    for (size_t i = 0; i < ses_json_len(runs); i++)
        if (!is_object(ses_json_at(runs, i), "an entry of \"runs\"", e) ||
            !add_grid(s, ses_json_key(runs, i, NULL), ses_json_at(runs, i), e))
            return ses_wrap(e, "\"runs\"");
    return ses_json_len(runs) || add_grid(s, "", NULL, e);
}

/* ---- a run ---- */

typedef struct words {
    char *word[MAX_WORDS + 1];
    int n;
} words;

static bool add_word(study *s, words *w, const char *a, const char *b, ses_err *e)
{
    ses_buf x = { 0 };
    if (w->n == MAX_WORDS) return ses_fail(e, SES_EFORMAT, "more than %d options", MAX_WORDS);
    ses_buf_appendf(&x, "%s%s", a, b);
    w->word[w->n] = x.data ? ses_arena_strndup(&s->mem, x.data, x.len, e) : NULL;
    ses_buf_free(&x);
    return w->word[w->n++] != NULL;
}

/* "key": value becomes --key value; true: --key; an array: --key once per element. */
static bool add_option(study *s, words *w, const char *key, const ses_json *v, ses_err *e)
{
    bool flag;
    if (ses_json_bool(v, &flag)) return !flag || add_word(s, w, "--", key, e);
    bool list = ses_json_type_of(v) == SES_JSON_ARRAY;
    for (size_t i = 0; i < (list ? ses_json_len(v) : 1); i++) {
        const char *text = text_of(s, list ? ses_json_at(v, i) : v, e);
        if (!text || !add_word(s, w, "--", key, e) || !add_word(s, w, text, "", e))
            return ses_wrap(e, "\"%s\"", key);
    }
    return true;
}

static bool add_options(study *s, words *w, const ses_json *object, ses_err *e)
{
    for (size_t i = 0; i < ses_json_len(object); i++)
        if (!add_option(s, w, ses_json_key(object, i, NULL), ses_json_at(object, i), e)) return false;
    return true;
}

static char *folder(study *s, const study_run *a, ses_err *e)
{
    char name[FOLDER_MAX];
    name_folder(a->name, name);
    return ses_path_join(s->a->output, name, e);
}

/* The arguments of a run. */
static bool collect_args(study *s, const study_run *a, words *w, ses_err *e)
{
    bool ok = add_options(s, w, s->common, e) && add_options(s, w, a->change, e);
    for (size_t i = 0; ok && i < ses_json_len(s->grid); i++)
        ok = add_option(s, w, ses_json_key(s->grid, i, NULL), ses_json_at(ses_json_at(s->grid, i), a->at[i]),
                        e);
    return ok;
}

/* Writes the arguments of a finished run, one per line. */
static bool save_args(const words *w, const char *path, ses_err *e)
{
    ses_buf b = { 0 };
    for (int i = 0; i < w->n; i++) ses_buf_appendf(&b, "%s\n", w->word[i]);
    bool ok = ses_buf_ok(&b, e) && ses_file_write(path, b.data, b.len, true, e);
    ses_buf_free(&b);
    return ok;
}

static bool check_args(const words *w, const char *path, ses_err *e)
{
    size_t n, at = 0;
    char *saved = ses_path_exists(path) ? ses_file_read(path, FILE_MAX, &n, e) : NULL;
    if (!saved) return !ses_path_exists(path);
    bool same = true;
    for (int i = 0; same && i < w->n; i++) {
        size_t len = strlen(w->word[i]);
        same = len < n - at && !memcmp(saved + at, w->word[i], len) && saved[at + len] == '\n';
        at += len + 1;
    }
    same = same && at == n;
    ses_free(saved);
    return same || ses_fail(e, SES_EFORMAT,
                            "finished with other options, see %s; use another --output, or --overwrite, "
                            "which repeats all runs",
                            path);
}

static bool pretrain(study *s, words w, const char *dir, bool resume, ses_err *e)
{
    const ses_command *cmd = ses_command_find("pretrain");
    bool ok = add_word(s, &w, "--output", "", e) && add_word(s, &w, dir, "", e) &&
              add_word(s, &w, resume ? "--resume" : "--overwrite", "", e);
    if (!ok) return false;
    void *args_copy = ses_alloc(cmd->args_size, e);
    ses_opt_group g = { cmd->opt, cmd->n_opt, args_copy };
    ses_call call = { .command = cmd, .args = args_copy, .out = s->c->out, .err = s->c->err, .quiet = true };
    call.operands = w.word;
    ok = args_copy && ses_options_parse(&g, 1, w.word, false, &call.n_operands, e) &&
         ses_options_check_required(&g, 1, e) &&
         (!call.n_operands || ses_fail(e, SES_EUSAGE, "\"%s\" is not an option of pretrain", w.word[0])) &&
         cmd->run(&call, e);
    if (args_copy) ses_options_free(&g, 1);
    ses_free(args_copy);
    return ok;
}

/* ---- scores ---- */

static bool add_score(study *s, const char *name, ses_err *e)
{
    for (size_t i = 0; i < s->n_scores; i++)
        if (!strcmp(s->score[i], name)) return true;
    if (s->n_scores == MAX_SCORES) return true; /* limit the table's width */
    s->score[s->n_scores] = ses_arena_strndup(&s->mem, name, strlen(name), e);
    if (!s->score[s->n_scores]) return false;
    for (size_t i = 0; i < s->n; i++) s->run[i].score[s->n_scores] = NAN;
    s->n_scores++;
    return true;
}

/* The columns: "scores" of the recipe, or else all losses and accuracies of any run. Perplexities repeat the
 * losses, and unigram baselines are equal in all runs. */
static bool choose_scores(study *s, const ses_json *results, ses_err *e)
{
    bool ok = true;
    for (size_t i = 0; ok && i < ses_json_len(s->scores); i++) {
        const char *name = ses_json_string(ses_json_at(s->scores, i), NULL);
        ok = name ? add_score(s, name, e) : ses_fail(e, SES_EFORMAT, "\"scores\": expected names");
    }
    for (size_t i = 0; ok && !s->scores && i < ses_json_len(results); i++) {
        const char *key = ses_json_key(results, i, NULL);
        if (!strncmp(key, "eval_", 5) && strcmp(key, "eval_loss") && !strstr(key, "_perplexity") &&
            !strstr(key, "_by_frequency"))
            ok = add_score(s, key + 5, e);
    }
    return ok;
}

static bool read_results(study *s, study_run *a, const char *path, ses_err *e)
{
    ses_json_doc *d = ses_json_load_object(path, FILE_MAX, e);
    const ses_json *root = d ? ses_json_root(d) : NULL;
    bool ok = d && choose_scores(s, root, e);
    for (size_t i = 0; ok && i < s->n_scores; i++) {
        char key[80];
        snprintf(key, sizeof key, "eval_%s", s->score[i]);
        if (!ses_json_real(ses_json_get(root, key), &a->score[i])) a->score[i] = NAN;
    }
    ses_json_real(ses_json_get(root, "train_runtime"), &a->seconds);
    ses_json_real(ses_json_get(root, "train_tokens_per_second"), &a->rate);
    ses_json_free(d);
    return ok;
}

static bool execute_run(study *s, size_t i, ses_err *e)
{
    study_run *a = &s->run[i];
    words w = { .n = 0 };
    char *dir = folder(s, a, e), *results = dir ? ses_path_join(dir, "all_results.json", e) : NULL;
    char *made = results ? ses_path_join(dir, "ablate.txt", e) : NULL;
    bool ok = made && collect_args(s, a, &w, e), done = ok && ses_path_exists(results) && !s->a->overwrite;
    if (ok && !s->c->quiet)
        fprintf(stderr, "%zu of %zu: %s%s\n", i + 1, s->n, a->name, done ? " (finished before)" : "");
    ok = ok &&
         (done ? check_args(&w, made, e)
               : pretrain(s, w, dir, !s->a->overwrite, e) && save_args(&w, made, e)) &&
         read_results(s, a, results, e);
    ses_free(made);
    ses_free(dir);
    ses_free(results);
    return ok || ses_wrap(e, "run \"%s\"", a->name);
}

/* ---- the table ---- */

static bool show(const study *s, ses_err *e)
{
    ses_buf head = { 0 };
    ses_buf_puts(&head, "Run");
    for (size_t i = 0; i < s->n_scores; i++) ses_buf_appendf(&head, "|>%s", s->score[i]);
    ses_buf_puts(&head, "|>tokens/s|>seconds");
    ses_text_table *t = ses_buf_ok(&head, e) ? ses_text_table_new(head.data, e) : NULL;
    for (size_t i = 0; t && i < s->n; i++) {
        const study_run *a = &s->run[i];
        ses_text_table_cell(t, "%s", a->name);
        for (size_t k = 0; k < s->n_scores; k++) {
            if (isnan(a->score[k]))
                ses_text_table_cell(t, "-");
            else
                ses_text_table_cell(t, "%.4f", a->score[k]);
        }
        ses_text_table_cell(t, "%.0f", a->rate);
        ses_text_table_cell(t, "%.0f", a->seconds);
    }
    bool ok = t && ses_text_table_print(t, stdout, &s->c->out, 0, e);
    ses_text_table_free(t);
    ses_buf_free(&head);
    return ok;
}

static bool print_json(const study *s, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_json_begin_array(w);
    for (size_t i = 0; i < s->n; i++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "run", s->run[i].name);
        for (size_t k = 0; k < s->n_scores; k++) ses_json_member_real(w, s->score[k], s->run[i].score[k]);
        ses_json_member_real(w, "train_tokens_per_second", s->run[i].rate);
        ses_json_member_real(w, "train_runtime", s->run[i].seconds);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    return ses_json_writer_print(w, e);
}

static bool run(ses_call *c, ses_err *e)
{
    study s = { .c = c, .a = c->args };
    ses_json_doc *d = ses_json_load_object(c->operands[0], FILE_MAX, e);
    bool ok = d && (read_recipe(&s, ses_json_root(d), e) || ses_wrap(e, "%s", c->operands[0])) &&
              ses_dir_make(s.a->output, e);
    for (size_t i = 0; ok && i < s.n; i++) ok = execute_run(&s, i, e);
    if (ok) ok = s.a->json ? print_json(&s, e) : show(&s, e);
    ses_arena_free(&s.mem);
    ses_json_free(d);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame ablate recipe.json -o study", "execute all runs of the recipe and print their scores" },
    { 0 },
};

const ses_command ses_command_ablate = {
    .name = "ablate",
    .usage = "RECIPE",
    .summary = "run an ablation study",
    .description =
        "RECIPE is a JSON object. \"common\" has options of sesame pretrain for all runs, by name. "
        "\"runs\" has for each run, by its name, the options that differ. \"grid\" has options "
        "with arrays of values; every combination is run (for each entry of \"runs\", if any). "
        "\"scores\" names the columns of the table; default: all losses and accuracies. Finished "
        "runs are skipped, interrupted ones are resumed.\n\n"
        "{\"common\": {\"corpus\": \"c.ids\", \"tokenizer\": \"t.json\", \"preset\": "
        "\"bert-mini\", \"steps\": 500}, \"runs\": {\"static\": {\"mask-copies\": 10}, "
        "\"dynamic\": {}}, \"grid\": {\"mask-rate\": [0.15, 0.4]}}",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
