/* CheckList: see eval_checklist.h. */
#include "eval_checklist.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/strmap.h"
#include "task/pipeline_impl.h"

#include <math.h>
#include <string.h>

/* A case whose texts are in the pipeline. */
typedef struct waiting {
    struct waiting *next;
    size_t test;
    ses_checklist_type type;
    bool decreasing, failed, left_out;
    double tolerance, first; /* first: probability of label `watched` for the original */
    int64_t watched;         /* -1: not known yet */
    uint64_t line;
    size_t n, done;
    int64_t label[]; /* [n], expected; -1: none */
} waiting;

struct ses_checklist {
    ses_pipeline *pipeline;
    ses_checklist_test *test;
    size_t n, cap;
    ses_strmap index;
    ses_arena keys;
    ses_buf key;
    waiting *head, *tail;
};

void ses_checklist_free(ses_checklist *k)
{
    if (!k) return;
    for (waiting *w = k->head, *next; w; w = next) next = w->next, ses_free(w);
    for (size_t i = 0; i < k->n; i++) ses_free(k->test[i].capability), ses_free(k->test[i].name);
    ses_strmap_free(&k->index);
    ses_arena_free(&k->keys);
    ses_buf_free(&k->key);
    ses_free(k->test);
    ses_free(k);
}

/* ---- judging ---- */

/* The probability of a label. Rows are sorted by score. */
static double score_of(const ses_result *r, int64_t label)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->row[i].index == label) return r->row[i].score;
    return NAN;
}

static void judge_original(waiting *w, const ses_result *r)
{
    w->watched = w->type == SES_CHECKLIST_DIR && w->label[0] >= 0 ? w->label[0] : r->row[0].index;
    w->first = score_of(r, w->watched);
    bool at_end = w->decreasing ? w->first >= 1 - w->tolerance : w->first <= w->tolerance;
    w->left_out = w->type == SES_CHECKLIST_DIR && at_end;
}

static bool text_fails(const waiting *w, const ses_result *r)
{
    int64_t best = r->row[0].index;
    double change = score_of(r, w->watched) - w->first;
    switch (w->type) {
    case SES_CHECKLIST_MFT: return best != w->label[w->done];
    case SES_CHECKLIST_INV: return best != w->watched && !(w->tolerance > 0 && fabs(change) <= w->tolerance);
    default: return w->decreasing ? change > w->tolerance : change < -w->tolerance;
    }
}

static bool on_result(void *ctx, const ses_result *r, ses_err *e)
{
    ses_checklist *k = ctx;
    waiting *w = k->head;
    if (!w || !r->n) return ses_fail(e, SES_EARG, "a result without a case");
    if (isnan(r->row[0].score))
        return ses_fail(e, SES_EFORMAT, "the model computes NaN: its weights are damaged");
    if (!w->done && w->type != SES_CHECKLIST_MFT)
        judge_original(w, r);
    else if (text_fails(w, r))
        w->failed = true;
    if (++w->done < w->n) return true;
    ses_checklist_test *t = &k->test[w->test];
    t->left_out += w->left_out;
    t->cases += !w->left_out;
    t->failed += w->failed && !w->left_out;
    if (w->failed && !w->left_out && !t->first_failed_line) t->first_failed_line = w->line;
    k->head = w->next;
    if (!k->head) k->tail = NULL;
    ses_free(w);
    return true;
}

ses_checklist *ses_checklist_new(ses_pipeline *p, ses_err *e)
{
    if (p->model->c.labels < 2) {
        ses_fail(e, SES_EUNSUPPORTED,
                 "%s: CheckList needs a classifier of at least two labels, this has %lld", p->dir,
                 (long long)p->model->c.labels);
        return NULL;
    }
    ses_checklist *k = ses_alloc(sizeof *k, e);
    if (!k) return NULL;
    k->pipeline = p;
    ses_pipeline_set_callback(p, on_result, k);
    return k;
}

/* ---- cases ---- */

static bool find_test(ses_checklist *k, const ses_checklist_case *c, size_t *at, ses_err *e)
{
    int64_t found;
    bool fresh;
    k->key.len = 0;
    ses_buf_appendf(&k->key, "%s\n%s\n%d", c->capability.p, c->name.p, (int)c->type);
    if (!ses_buf_ok(&k->key, e)) return false;
    if (ses_strmap_find(&k->index, k->key.data, k->key.len, &found)) return *at = (size_t)found, true;
    char *key = ses_arena_strndup(&k->keys, k->key.data, k->key.len, e);
    if (!key || !ses_array_reserve(&k->test, &k->cap, k->n + 1, sizeof *k->test, e)) return false;
    ses_checklist_test *t = &k->test[k->n];
    *t = (ses_checklist_test){ .capability = ses_strdup(c->capability.p, e), .type = c->type };
    t->name = t->capability ? ses_strdup(c->name.p, e) : NULL;
    if (!t->name || !ses_strmap_insert(&k->index, key, k->key.len, (int64_t)k->n, &fresh, e)) {
        ses_free(t->capability), ses_free(t->name);
        return false;
    }
    *at = k->n++;
    return true;
}

bool ses_checklist_feed(ses_checklist *k, const ses_checklist_case *c, uint64_t line, ses_err *e)
{
    waiting *w = ses_alloc(sizeof *w + c->n * sizeof *w->label, e);
    if (!w) return false;
    *w = (waiting){ .type = c->type,
                    .decreasing = c->decreasing,
                    .tolerance = c->tolerance,
                    .line = line,
                    .watched = -1,
                    .n = c->n };
    bool ok = find_test(k, c, &w->test, e);
    for (size_t i = 0; ok && i < c->n; i++) {
        w->label[i] = -1;
        if (c->text[i].label.p)
            ok = ses_model_find_label(k->pipeline->model, c->text[i].label, &w->label[i], e);
    }
    if (!ok) return ses_free(w), false;
    *(k->tail ? &k->tail->next : &k->head) = w;
    k->tail = w;
    for (size_t i = 0; i < c->n; i++) {
        ses_item item = { .text = c->text[i].text, .pair = c->text[i].pair, .number = (int64_t)line };
        if (!ses_pipeline_feed(k->pipeline, &item, e)) return false;
    }
    return true;
}

const ses_checklist_test *ses_checklist_tests(const ses_checklist *k, size_t *n)
{
    *n = k->n;
    return k->test;
}
