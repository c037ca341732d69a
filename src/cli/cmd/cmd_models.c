/* models: lists bundled models and the models in the folders of SESAME_MODELS. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "model/bundled_models.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct args {
    bool json;
} args;

static const ses_opt opt[] = { SES_OPT_JSON(args, json) };

enum { SCORES_MAX = 1 << 20 };

typedef struct model_entry {
    char *name, *dir;
    uint64_t bytes;
    ses_json_doc *scores; /* NULL: no scores.json in the folder */
} model_entry;

typedef struct model_list {
    const char *root;
    model_entry *item;
    size_t n, cap;
    uint64_t bytes;
    const char *dir; /* the folder being measured */
    ses_err *e;
} model_list;

/* ---- search ---- */

static bool add_file_size(void *ctx, const char *name)
{
    model_list *j = ctx;
    struct stat s;
    char *path = ses_path_join(j->dir, name, j->e);
    if (path && stat(path, &s) == 0 && S_ISREG(s.st_mode)) j->bytes += (uint64_t)s.st_size;
    ses_free(path);
    return path != NULL;
}

static bool is_listed(const model_list *j, const char *name)
{
    for (size_t i = 0; i < j->n; i++)
        if (!strcmp(j->item[i].name, name)) return true;
    return false;
}

static bool add(void *ctx, const char *name)
{
    model_list *j = ctx;
    char *dir = ses_path_join(j->root, name, j->e),
         *config = dir ? ses_path_join(dir, "config.json", j->e) : NULL,
         *scores = config ? ses_path_join(dir, "scores.json", j->e) : NULL;
    bool model = scores && ses_path_exists(config) && !is_listed(j, name), ok = scores != NULL;
    if (ok && model) ok = ses_array_reserve(&j->item, &j->cap, j->n + 1, sizeof *j->item, j->e);
    if (ok && model) {
        j->bytes = 0, j->dir = dir;
        model_entry f = { .name = ses_strdup(name, j->e), .dir = dir };
        ok = f.name && ses_dir_each(dir, add_file_size, j, j->e);
        f.bytes = j->bytes;
        f.scores = ses_path_exists(scores) ? ses_json_load_object(scores, SCORES_MAX, NULL) : NULL;
        j->item[j->n++] = f;
        dir = NULL;
    }
    ses_free(scores);
    ses_free(config);
    ses_free(dir);
    return ok;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const model_entry *)a)->name, ((const model_entry *)b)->name);
}

static bool find_models(model_list *j, const ses_bundled_dirs *p, ses_err *e)
{
    j->e = e;
    for (size_t i = 0; i < p->n; i++) {
        j->root = p->dir[i];
        if (!ses_dir_each(p->dir[i], add, j, e) || e->code) return false;
    }
    if (j->n) qsort(j->item, j->n, sizeof *j->item, by_name);
    return true;
}

/* ---- output ---- */

/* The first entry of scores.json. */
static const ses_json *first_score(const model_entry *f)
{
    return ses_json_at(ses_json_get(f->scores ? ses_json_root(f->scores) : NULL, "scores"), 0);
}

static void put_tasks(ses_buf *b, const char *name)
{
    const char *task;
    b->len = 0;
    for (int i = 0; (task = ses_bundled_task(name, i)); i++) ses_buf_appendf(b, "%s%s", i ? ", " : "", task);
    if (!b->len) ses_buf_appendf(b, "-");
}

static bool show(const model_list *j, const ses_term *t, ses_err *e)
{
    char human[SES_NUMBER_TEXT], value[32];
    ses_buf tasks = { 0 };
    ses_text_table *table = ses_text_table_new("Model|>Size|Score|Default for", e);
    for (size_t i = 0; table && i < j->n; i++) {
        const ses_json *s = first_score(&j->item[i]);
        const char *name = ses_json_string(ses_json_get(s, "name"), NULL);
        double x;
        bool has = name && ses_json_real(ses_json_get(s, "value"), &x);
        if (has) snprintf(value, sizeof value, " %.1f", x);
        put_tasks(&tasks, j->item[i].name);
        ses_text_table_cell(table, "%s", j->item[i].name);
        ses_text_table_style(table, SES_BOLD);
        ses_text_table_cell(table, "%s", ses_bytes_text(human, j->item[i].bytes));
        ses_text_table_cell(table, "%s%s", has ? name : "-", has ? value : "");
        ses_text_table_cell(table, "%s", tasks.data);
    }
    bool ok = table && ses_buf_ok(&tasks, e) && ses_text_table_print(table, stdout, t, 0, e);
    if (ok)
        printf("\nModel cards (data, training, scores, limitations): %s/README.md, ...\n", j->item[0].dir);
    ses_text_table_free(table);
    ses_buf_free(&tasks);
    return ok;
}

static bool print_json(const model_list *j, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    const char *task;
    if (!w) return false;
    ses_json_begin_array(w);
    for (size_t i = 0; i < j->n; i++) {
        const model_entry *f = &j->item[i];
        ses_json_begin_object(w);
        ses_json_member_string(w, "name", f->name);
        ses_json_member_string(w, "path", f->dir);
        ses_json_member_int(w, "bytes", (int64_t)f->bytes);
        ses_json_member_array(w, "default_of");
        for (int k = 0; (task = ses_bundled_task(f->name, k)); k++) ses_json_put_string(w, task);
        ses_json_end_array(w);
        if (f->scores) {
            ses_json_put_key(w, "scores");
            ses_json_put_value(w, ses_json_get(ses_json_root(f->scores), "scores"));
        }
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    return ses_json_writer_print(w, e);
}

static void notify_none(const ses_bundled_dirs *p)
{
    fputs("No models found", stderr);
    for (size_t i = 0; i < p->n; i++) fprintf(stderr, "%s%s", i ? ", " : "; searched ", p->dir[i]);
    fputs(". docs/recipes/sesame-small.sh trains them; SESAME_MODELS sets the folders to search.\n", stderr);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_bundled_dirs p;
    model_list j = { 0 };
    bool ok = ses_bundled_find_dirs(&p, NULL, e);
    if (!ok) return false;
    ok = find_models(&j, &p, e);
    if (ok && a->json)
        ok = print_json(&j, e);
    else if (ok && j.n)
        ok = show(&j, &c->out, e);
    if (ok && !c->quiet && !j.n) notify_none(&p);
    for (size_t i = 0; i < j.n; i++) {
        ses_json_free(j.item[i].scores);
        ses_free(j.item[i].name);
        ses_free(j.item[i].dir);
    }
    ses_free(j.item);
    ses_bundled_dirs_free(&p);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame models", "names, sizes, scores, and the pipelines that use them by default" },
    { "sesame info sesame-small", "details of one; every command accepts a name instead of a folder" },
    { 0 },
};

const ses_command ses_command_models = {
    .name = "models",
    .usage = "",
    .summary = "list bundled models",
    .description =
        "Lists the models that every command accepts by name and that pipelines use without --model: "
        "first the folders of SESAME_MODELS (separated by ':'), then the bundled models (models/ of "
        "the source folder, share/sesame/models of an installation). An existing folder of the same "
        "name takes precedence.\n\n"
        "The score is the first entry of the folder's scores.json. README.md in the folder is the "
        "model card.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .run = run,
};
