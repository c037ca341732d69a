/* models: lists bundled models, and the models in SESAME_MODELS and in the Hugging Face cache. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "hub/card.h"
#include "hub/hub_env.h"
#include "hub/hub_scan.h"
#include "model/bundled_models.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct args {
    const char *task, *language, *license;
    bool json;
} args;

static const ses_opt opt[] = {
    SES_OPT_TEXT(args, task, "task", "TASK",
                 "only models for this task: a pipeline (ner, embed) or a tag of the card",
                 .completion = "tasks"),
    SES_OPT_TEXT(args, language, "language", "CODE",
                 "only models whose card names this language: en, de, multilingual"),
    SES_OPT_TEXT(args, license, "license", "NAME",
                 "only models whose card names this license: mit, apache-2.0"),
    SES_OPT_JSON(args, json),
};

enum { SCORES_MAX = 1 << 20 };

typedef struct model_entry {
    char *name, *dir;
    uint64_t bytes;
    char commit[SES_HUB_COMMIT + 1]; /* the cached commit; "": bundled, or in SESAME_MODELS */
    ses_json_doc *scores;            /* NULL: no scores.json in the folder */
    ses_card card;
    const char *task; /* static or in the card; NULL: unknown */
} model_entry;

typedef struct model_list {
    const char *root;
    model_entry *item;
    size_t n, cap;
    uint64_t bytes;
    const char *dir; /* the folder being measured */
    const args *filter;
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

static void entry_free(model_entry *f)
{
    ses_json_free(f->scores);
    ses_card_free(&f->card);
    ses_free(f->name);
    ses_free(f->dir);
}

static bool passes(const args *a, const model_entry *f)
{
    return (!a->task || ses_card_is_for(&f->card, f->task, a->task)) &&
           (!a->language || ses_card_has(&f->card, "language", a->language)) &&
           (!a->license || ses_card_has(&f->card, "license", a->license));
}

/* Adds a model unless the filters exclude it. Takes dir. A damaged card counts as none. */
static bool add_model(model_list *j, const char *name, char *dir, const char *commit, uint64_t bytes)
{
    bool found;
    model_entry f = { .name = ses_strdup(name, j->e), .dir = dir, .bytes = bytes };
    char *scores = dir ? ses_path_join(dir, "scores.json", j->e) : NULL;
    bool ok = f.name && scores && ses_array_reserve(&j->item, &j->cap, j->n + 1, sizeof *j->item, j->e);
    if (ok) {
        snprintf(f.commit, sizeof f.commit, "%s", commit);
        f.scores = ses_path_exists(scores) ? ses_json_load_object(scores, SCORES_MAX, NULL) : NULL;
        ses_card_load(&f.card, dir, &found, NULL);
        f.task = ses_card_task(&f.card, dir);
    }
    if (ok && passes(j->filter, &f))
        j->item[j->n++] = f;
    else
        entry_free(&f);
    ses_free(scores);
    return ok;
}

static bool add(void *ctx, const char *name)
{
    model_list *j = ctx;
    char *dir = ses_path_join(j->root, name, j->e),
         *config = dir ? ses_path_join(dir, "config.json", j->e) : NULL;
    bool model = config && ses_path_exists(config) && !is_listed(j, name), ok = config != NULL;
    if (ok && model) {
        j->bytes = 0, j->dir = dir;
        ok = ses_dir_each(dir, add_file_size, j, j->e) && add_model(j, name, dir, "", j->bytes);
        dir = NULL;
    }
    ses_free(config);
    ses_free(dir);
    return ok;
}

/* Models of the Hugging Face cache, under the name that opens them. */
static bool add_cached(model_list *j, ses_err *e)
{
    ses_hub_list l;
    char *cache = ses_hub_cache_dir(NULL);
    bool ok = !cache || ses_hub_list_read(&l, cache, e);
    for (size_t i = 0; cache && ok && i < l.n; i++) {
        const ses_hub_entry *x = &l.item[i];
        ses_buf name = { 0 };
        bool main = !strcmp(x->refs, "main") || !strncmp(x->refs, "main,", 5);
        if (x->state != SES_HUB_COMPLETE) continue;
        ses_buf_appendf(&name, "%s%s%s", x->name.id, main ? "" : "@", main ? "" : x->name.revision);
        ok = ses_buf_ok(&name, e) &&
             add_model(j, name.data, ses_strdup(x->dir, e), x->name.revision, x->bytes);
        ses_buf_free(&name);
    }
    if (cache && ok) ses_hub_list_free(&l);
    ses_free(cache);
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
    if (!add_cached(j, e)) return false;
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

/* On a terminal, columns that do not fit are left out. */
static void fit(ses_text_table *table, const ses_term *t)
{
    static const int importance[] = { 0, 5, 1, 2, 4, 3 };
    if (t->tty) ses_text_table_fit(table, t->width, importance);
}

/* The first card of the list, as an example of its path. */
static void show_card(const model_list *j)
{
    for (size_t i = 0; i < j->n; i++) {
        char *path = ses_path_join(j->item[i].dir, "README.md", NULL);
        bool has = path && ses_path_exists(path);
        if (has) printf("\nModel cards (data, training, scores, limitations): %s, ...\n", path);
        ses_free(path);
        if (has) return;
    }
}

static bool show(const model_list *j, const ses_term *t, ses_err *e)
{
    char human[SES_NUMBER_TEXT], value[32];
    ses_buf tasks = { 0 };
    ses_text_table *table = ses_text_table_new("Model|>Size|Score|Default for|Task|License", e);
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
        const char *license = ses_card_field(&j->item[i].card, "license");
        ses_text_table_cell(table, "%s", j->item[i].task ? j->item[i].task : "-");
        ses_text_table_cell(table, "%s", license ? license : "-");
    }
    if (table) fit(table, t);
    bool ok = table && ses_buf_ok(&tasks, e) && ses_text_table_print(table, stdout, t, 0, e);
    if (ok) show_card(j);
    ses_text_table_free(table);
    ses_buf_free(&tasks);
    return ok;
}

static void put_languages(ses_json_writer *w, const model_entry *f)
{
    ses_buf list = { 0 };
    ses_card_put_list(&f->card, "language", &list);
    ses_json_member_list(w, "languages", list.len ? list.data : "");
    ses_buf_free(&list);
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
        ses_json_member_string(w, "source", *f->commit ? "cache" : "models");
        if (*f->commit) ses_json_member_string(w, "commit", f->commit);
        ses_json_member_string(w, "task", f->task);
        ses_json_member_string(w, "license", ses_card_field(&f->card, "license"));
        put_languages(w, f);
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

static void notify_none(const ses_bundled_dirs *p, const args *a)
{
    if (a->task || a->language || a->license) {
        fputs("No model passes the filters; 'sesame models' lists all.\n", stderr);
        return;
    }
    fputs("No models found", stderr);
    for (size_t i = 0; i < p->n; i++) fprintf(stderr, "%s%s", i ? ", " : "; searched ", p->dir[i]);
    fputs(". docs/recipes/sesame-small.sh trains them; SESAME_MODELS sets the folders to search; 'sesame "
          "pull' downloads models.\n",
          stderr);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_bundled_dirs p;
    model_list j = { .filter = a };
    bool ok = ses_bundled_find_dirs(&p, NULL, e);
    if (!ok) return false;
    ok = find_models(&j, &p, e);
    if (ok && a->json)
        ok = print_json(&j, e);
    else if (ok && j.n)
        ok = show(&j, &c->out, e);
    if (ok && !c->quiet && !j.n) notify_none(&p, a);
    for (size_t i = 0; i < j.n; i++) entry_free(&j.item[i]);
    ses_free(j.item);
    ses_bundled_dirs_free(&p);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame models", "names, sizes, scores, and the pipelines that use them by default" },
    { "sesame models --task ner --language de", "models whose cards name this task and language" },
    { "sesame info sesame-small", "details of one; every command accepts a name instead of a folder" },
    { 0 },
};

const ses_command ses_command_models = {
    .name = "models",
    .usage = "",
    .summary = "list bundled and downloaded models",
    .description =
        "Lists the models that every command accepts by name and that pipelines use without --model: "
        "first the folders of SESAME_MODELS (separated by ':'), then the bundled models (models/ of "
        "the source folder, share/sesame/models of an installation), then the complete models of the "
        "Hugging Face cache ('sesame pull', 'sesame cache'). An existing folder of the same "
        "name takes precedence.\n\n"
        "The score is the first entry of the folder's scores.json. README.md in the folder is the "
        "model card: its front matter gives task, language and license, which --task, --language and "
        "--license "
        "filter by. A card without a task counts for the task of the model's class.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .run = run,
};
