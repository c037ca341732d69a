/* Prompts of an evaluation: see eval_prompt.h. */
#include "eval_prompt.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/rng.h"

#include <string.h>

enum { SITE_EXAMPLES = 0x45584d50, MAX_DRAWS = 1 << 16 };

/* ---- texts of a document ---- */

typedef struct values {
    const ses_eval_task *task;
    const ses_docs *docs;
    size_t i;
} values;

/* Replaces a value by the task's "doc_values". */
static bool replace_value(const values *v, const ses_value_map *m, ses_buf *out, size_t from, ses_err *e)
{
    if (!ses_buf_ok(out, e)) return false;
    size_t len = 0;
    const char *to = ses_json_string(ses_json_get(m->values, out->data ? out->data + from : ""), &len);
    if (!to) {
        ses_fail(e, SES_EFORMAT, "{%.*s}: \"doc_values\" has no entry for \"%s\"", (int)m->column.n,
                 m->column.p, ses_quoted_of(out->data + from, out->len - from).s);
        return ses_docs_wrap(v->docs, v->i, e);
    }
    out->len = from;
    return ses_buf_append(out, to, len);
}

static bool column_value(void *ctx, ses_string column, ses_buf *out, ses_err *e)
{
    const values *v = ctx;
    size_t from = out->len;
    ses_buf_append(out, "", 0);
    if (!ses_docs_value(v->docs, v->i, column, out, e)) return false;
    for (size_t k = 0; k < v->task->n_maps; k++) {
        const ses_value_map *m = &v->task->map[k];
        if (m->column.n == column.n && !memcmp(m->column.p, column.p, column.n))
            return replace_value(v, m, out, from, e);
    }
    return true;
}

static bool fill(const ses_prompts *p, const ses_docs *d, size_t i, const ses_eval_template *t, ses_buf *out,
                 ses_err *e)
{
    values v = { p->task, d, i };
    return ses_eval_template_fill(t, column_value, &v, out, e);
}

/* ---- choices ---- */

void ses_choices_free(ses_choices *c)
{
    ses_buf_free(&c->text);
    ses_free(c->end);
    *c = (ses_choices){ 0 };
}

ses_string ses_choices_at(const ses_choices *c, size_t k)
{
    size_t from = k ? c->end[k - 1] : 0;
    return (ses_string){ c->text.len ? c->text.data + from : "", c->end[k] - from };
}

/* The right choice by the text of the target: a label, a choice, or its number from 0. */
static bool find_right(const ses_prompts *p, const ses_choices *c, ses_string target, int64_t *right,
                       ses_err *e)
{
    const ses_eval_task *t = p->task;
    int64_t number = 0;
    for (size_t k = 0; k < c->n; k++) {
        ses_string choice = ses_choices_at(c, k);
        bool same = t->label ? ses_equal(target.p, target.n, t->label[k])
                             : choice.n == target.n && !memcmp(choice.p, target.p, target.n);
        if (same) return *right = (int64_t)k, true;
    }
    bool digits = !t->label && target.n && target.n < 7;
    for (size_t k = 0; digits && k < target.n; k++) {
        digits = target.p[k] >= '0' && target.p[k] <= '9';
        number = 10 * number + (target.p[k] - '0');
    }
    if (digits && number < (int64_t)c->n) return *right = number, true;
    return ses_fail(e, SES_EFORMAT, "\"%s\" is \"%s\", expected %s", ses_eval_task_field(t, "doc_to_target"),
                    ses_quoted_of(target.p, target.n).s,
                    t->label ? "a label of the choices" : "a choice or its number, from 0 on");
}

static bool fill_choices(ses_prompts *p, const ses_docs *d, size_t i, ses_choices *c, ses_err *e)
{
    const ses_eval_task *t = p->task;
    c->text.len = 0;
    c->n = t->n_choices;
    if (t->choice_column.n && !ses_docs_list_len(d, i, t->choice_column, &c->n, e)) return false;
    if (!ses_array_reserve(&c->end, &c->cap, c->n, sizeof *c->end, e)) return false;
    for (size_t k = 0; k < c->n; k++) {
        if (!(t->choice_column.n ? ses_docs_list_value(d, i, t->choice_column, k, &c->text, e)
                                 : fill(p, d, i, &t->choice[k], &c->text, e)))
            return false;
        c->end[k] = c->text.len;
    }
    c->right = t->target_index;
    if (!ses_buf_ok(&c->text, e)) return false;
    if (c->right >= (int64_t)c->n)
        return ses_fail(e, SES_EFORMAT, "choice %lld is right, but there are %zu", (long long)c->right, c->n);
    if (c->right >= 0) return true;
    ses_buf target = { 0 };
    bool ok = fill(p, d, i, &t->target, &target, e) &&
              (find_right(p, c, (ses_string){ target.len ? target.data : "", target.len }, &c->right, e) ||
               ses_docs_wrap(d, i, e));
    ses_buf_free(&target);
    return ok;
}

bool ses_prompts_choices(ses_prompts *p, size_t i, ses_choices *c, ses_err *e)
{
    return fill_choices(p, p->docs, i, c, e);
}

bool ses_prompts_target(ses_prompts *p, size_t i, ses_buf *out, ses_err *e)
{
    return fill(p, p->docs, i, &p->task->target, out, e);
}

bool ses_prompts_counted(ses_prompts *p, size_t i, ses_buf *out, ses_err *e)
{
    return fill(p, p->docs, i, p->task->count.n ? &p->task->count : &p->task->target, out, e);
}

/* ---- examples ---- */

/* Whether example k may precede document i, whose text is in p->text: not itself, not the same text. */
static bool may_use(ses_prompts *p, size_t i, size_t k, size_t n, bool *may, ses_err *e)
{
    *may = p->pool != p->docs || k != i;
    for (size_t j = 0; j < n; j++) *may &= p->drawn[j] != k;
    if (!*may || !p->text.len) return true;
    p->example.len = 0;
    if (!fill(p, p->pool, k, &p->task->text, &p->example, e)) return false;
    *may = p->example.len != p->text.len || memcmp(p->example.data, p->text.data, p->text.len) != 0;
    return true;
}

const size_t *ses_prompts_draw(ses_prompts *p, size_t i, ses_err *e)
{
    const ses_rng_key key = { .seed = p->seed, .step = (uint32_t)i, .site = SITE_EXAMPLES };
    size_t n = 0, shots = (size_t)p->shots, tries = p->task->sampler == SES_SAMPLER_FIRST_N ? 0 : MAX_DRAWS;
    bool may = false;
    p->text.len = 0;
    if (!fill(p, p->docs, i, &p->task->text, &p->text, e)) return NULL;
    for (size_t c = 0; n < shots && c < tries; c++) {
        size_t k = (size_t)((uint64_t)ses_rand32(key, c) * p->pool->n >> 32);
        if (!may_use(p, i, k, n, &may, e)) return NULL;
        if (may) p->drawn[n++] = k;
    }
    for (size_t k = 0; n < shots && k < p->pool->n; k++) { /* first_n, or almost all are used */
        if (!may_use(p, i, k, n, &may, e)) return NULL;
        if (may) p->drawn[n++] = k;
    }
    if (n == shots) return p->drawn;
    ses_fail(e, SES_EARG, "%s: %lld examples were requested, but only %zu differ from the document",
             p->pool->path, (long long)p->shots, n);
    return NULL;
}

/* Appends an example with its answer. */
static bool put_example(ses_prompts *p, size_t k, ses_buf *out, ses_err *e)
{
    const ses_eval_task *t = p->task;
    ses_choices c = { 0 };
    if (!fill(p, p->pool, k, &t->text, out, e)) return false;
    ses_buf_append(out, t->target_delimiter.p, t->target_delimiter.n);
    bool ok = t->output == SES_EVAL_CHOICE ? fill_choices(p, p->pool, k, &c, e)
                                           : fill(p, p->pool, k, &t->target, out, e);
    if (ok && t->output == SES_EVAL_CHOICE) {
        ses_string answer = ses_choices_at(&c, (size_t)c.right);
        ses_buf_append(out, answer.p, answer.n);
    }
    ses_choices_free(&c);
    ses_buf_append(out, t->fewshot_delimiter.p, t->fewshot_delimiter.n);
    return ok;
}

bool ses_prompts_context(ses_prompts *p, size_t i, ses_buf *out, ses_err *e)
{
    const size_t *k = p->shots ? ses_prompts_draw(p, i, e) : NULL;
    if (p->shots && !k) return false;
    if (!fill(p, p->docs, i, &p->task->description, out, e)) return false;
    for (int64_t j = 0; j < p->shots; j++)
        if (!put_example(p, k[j], out, e)) return false;
    return fill(p, p->docs, i, &p->task->text, out, e) && ses_buf_ok(out, e);
}

/* ---- opening ---- */

static bool check_columns(const ses_docs *d, const ses_eval_template *t, const char *field, ses_err *e)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->part[i].is_column && !ses_docs_check_column(d, t->part[i].text, e))
            return ses_wrap(e, "\"%s\"", field);
    return true;
}

static bool check_templates(const ses_eval_task *t, const ses_docs *d, ses_err *e)
{
    bool ok = check_columns(d, &t->description, "description", e) &&
              check_columns(d, &t->text, ses_eval_task_field(t, "doc_to_text"), e) &&
              check_columns(d, &t->target, ses_eval_task_field(t, "doc_to_target"), e) &&
              check_columns(d, &t->count, "doc_to_count", e);
    for (size_t i = 0; ok && i < t->n_choices; i++)
        ok = check_columns(d, &t->choice[i], ses_eval_task_field(t, "doc_to_choice"), e);
    for (size_t i = 0; ok && i < t->n_maps; i++)
        ok = ses_docs_check_column(d, t->map[i].column, e) || ses_wrap(e, "\"doc_values\"");
    if (ok && t->choice_column.n && d->column)
        ok = ses_fail(
            e, SES_EFORMAT,
            "\"doc_to_choice\" is a column: %s has no lists, expected JSON lines (or a list of templates)",
            d->path);
    return ok || ses_wrap(e, "task %s", t->name);
}

/* The file of a split: beside `file`, or in it if it is a folder. */
static char *split_path(const char *file, const char *split, ses_err *e)
{
    if (split[0] == '/' || !file) return ses_strdup(split, e);
    if (ses_path_is_dir(file)) return ses_path_join(file, split, e);
    char *dir = ses_path_parent(file, e), *path = dir ? ses_path_join(dir, split, e) : NULL;
    ses_free(dir);
    return path;
}

static bool open_docs(ses_prompts *p, const ses_prompt_options *o, size_t limit, ses_err *e)
{
    const ses_eval_task *t = p->task;
    const char *split = t->test_split ? t->test_split : t->validation_split;
    bool own = !o->file || ses_path_is_dir(o->file);
    if (own && !split)
        return ses_fail(e, SES_EUSAGE, "task %s: expected FILE, because the task file names no test_split",
                        t->name);
    char *path = own ? split_path(o->file, split, e) : ses_strdup(o->file, e);
    p->docs = path ? ses_docs_open(path, &t->data, limit, e) : NULL;
    ses_free(path);
    if (!p->docs && own)
        ses_wrap(e, "documents of task %s (give FILE after the model, or the folder with %s)", t->name,
                 split);
    return p->docs && check_templates(t, p->docs, e);
}

/* The examples: of the task file, a file, or the documents themselves. */
static bool open_pool(ses_prompts *p, const ses_prompt_options *o, ses_err *e)
{
    const ses_eval_task *t = p->task;
    const char *split = t->fewshot_split ? t->fewshot_split : t->training_split;
    char *path = NULL;
    if (t->samples && !o->fewshot)
        return (p->pool = ses_docs_from_json(t->samples, "fewshot_config", e)) != NULL;
    if (o->fewshot)
        path = ses_strdup(o->fewshot, e);
    else if (split)
        path = split_path(o->file, split, e);
    if ((o->fewshot || split) && !path) return false;
    bool same = !path || ses_path_same(path, p->docs->path);
    p->pool = same ? p->docs : ses_docs_open(path, &t->data, 0, e);
    ses_free(path);
    if (!p->pool && !o->fewshot)
        ses_wrap(e, "examples of task %s (--fewshot FILE sets another file)", t->name);
    return p->pool && (same || check_templates(t, p->pool, e));
}

bool ses_prompts_open(ses_prompts *p, const ses_eval_task *t, const ses_prompt_options *o, ses_err *e)
{
    *p = (ses_prompts){ .task = t, .shots = o->shots < 0 ? t->num_fewshot : o->shots, .seed = o->seed };
    if (t->output == SES_EVAL_ROLLING && p->shots)
        return ses_fail(e, SES_EUSAGE,
                        "task %s scores whole texts (loglikelihood_rolling): it has no examples, "
                        "expected --shots 0",
                        t->name);
    /* examples may come from all documents */
    if (!open_docs(p, o, p->shots ? 0 : (size_t)o->limit, e)) return false;
    p->n = o->limit && (size_t)o->limit < p->docs->n ? (size_t)o->limit : p->docs->n;
    if (!p->shots) return true;
    if (!open_pool(p, o, e)) return false;
    size_t others = p->pool->n - (p->pool == p->docs);
    if ((size_t)p->shots > others)
        return ses_fail(e, SES_EARG, "%s: %lld examples were requested, but there are only %zu%s",
                        p->pool->path, (long long)p->shots, others,
                        p->pool == p->docs ? " other documents" : "");
    p->drawn = ses_alloc_array((size_t)p->shots, sizeof *p->drawn, e);
    return p->drawn != NULL;
}

void ses_prompts_free(ses_prompts *p)
{
    if (p->pool != p->docs) ses_docs_free(p->pool);
    ses_docs_free(p->docs);
    ses_free(p->drawn);
    ses_buf_free(&p->text);
    ses_buf_free(&p->example);
    *p = (ses_prompts){ 0 };
}
