/* The list of tasks, and which of them a model supports. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/suggest.h"
#include "task.h"
#include "task/prompt/pattern_file.h"

#include <stdio.h>

static const ses_task_entry list[] = {
#define SES_TASK(id, name, summary) { name, summary, &ses_task_##id },
#define SES_TASK_ALIAS(alias, name, id, task_name) { name, NULL, &ses_task_##id },
#include "tasks.def"
#undef SES_TASK
#undef SES_TASK_ALIAS
    { 0 },
};

const ses_task_entry *ses_task_entries(void) { return list; }

/* "translation_XX_to_YY" also names the task translation. */
static bool has_name(const ses_task_entry *t, const char *name)
{
    size_t n = strlen(t->name);
    return !strcmp(t->name, name) ||
           (!strcmp(t->name, "translation") && !strncmp(name, "translation_", n + 1) && strstr(name, "_to_"));
}

const ses_task_entry *ses_task_find(const char *name)
{
    for (const ses_task_entry *t = list; t->name; t++)
        if (has_name(t, name)) return t;
    return NULL;
}

bool ses_task_set_called_name(const ses_task *t, void *args, const char *name, ses_err *e)
{
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(t->opt, t->n_opt); (o = ses_opt_next(&it));)
        if (!strcmp(o->name, "task") && !*(const char **)(void *)((char *)args + o->offset))
            return ses_opt_set(o, args, "task", name, e);
    return true;
}

const ses_task_entry *ses_task_require(const char *name, ses_err *e)
{
    ses_suggestion s = { .word = name };
    for (const ses_task_entry *t = list; t->name; t++) {
        if (has_name(t, name)) return t;
        ses_suggest_offer(&s, t->name, strlen(t->name));
    }
    ses_fail(e, SES_EARG, "unknown pipeline '%s'", name);
    ses_suggest_add(&s, "", e);
    return NULL;
}

static bool is_one_of(const char *names, const char *name)
{
    const char *word;
    size_t n;
    for (size_t i = 0; names && ses_list_at(names, i, &word, &n); i++)
        if (strlen(name) == n && !memcmp(name, word, n)) return true;
    return false;
}

int ses_task_count_pair_options(const ses_task *t, const void *args)
{
    const ses_opt *o;
    int n = 0;
    for (ses_opt_iter it = ses_opt_begin(t->opt, t->n_opt); (o = ses_opt_next(&it));)
        n += is_one_of(t->item_schema.pair_option, o->name) &&
             *(const char *const *)(const void *)((const char *)args + o->offset);
    return n;
}

bool ses_task_allows_item_setting(const ses_task *t, const char *option)
{
    return is_one_of(t->item_settings, option);
}

const char *ses_task_canonical_name(const ses_task *t)
{
    for (const ses_task_entry *n = list; n->name; n++)
        if (n->task == t && n->summary) return n->name;
    return "";
}

bool ses_task_has_head(const ses_task *t, const ses_class *c)
{
    if (!t->head) return true;
    for (const ses_head *const *h = t->head; *h; h++)
        if (c->head[0].head == *h || c->head[1].head == *h) return true;
    return false;
}

bool ses_task_supports(const ses_task *t, const ses_model_desc *d, const ses_class *c)
{
    return ses_task_has_head(t, c) && (!t->generates || ses_class_lm_head(d, c)) &&
           !(t->needs_bidirectional && c->decoder_only);
}

const ses_task *ses_task_of_folder(const ses_task *t, const char *dir)
{
    if (!t->ways[SES_WAY_PATTERNS] || !dir) return t;
    char *path = ses_path_join(dir, SES_PATTERN_FILE, NULL);
    bool there = path && ses_path_exists(path);
    ses_free(path);
    return there ? t->ways[SES_WAY_PATTERNS] : t;
}

bool ses_task_suits(const ses_task *t, const ses_model *m)
{
    t = ses_task_of_folder(t, m->dir);
    return ses_task_supports(t, m->desc, m->class) && (!t->suits || t->suits(m));
}

void ses_tasks_supported(const ses_model_desc *d, const ses_class *c, char *buf, size_t size)
{
    size_t at = 0;
    buf[0] = 0;
    for (const ses_task_entry *n = list; n->name; n++)
        if (n->summary && ses_task_supports(n->task, d, c) && at < size)
            at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "", n->name);
}
