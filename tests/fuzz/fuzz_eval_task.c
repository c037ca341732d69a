/* A task file, and the texts of documents by its templates. */
#include "base/arena.h"
#include "fuzz.h"
#include "tune/eval/eval_task.h"

/* Every column is its own name. */
static bool value(void *ctx, ses_string column, ses_buf *out, ses_err *e)
{
    (void)ctx, (void)e;
    return ses_buf_append(out, column.p, column.n);
}

static void fill(const ses_eval_template *t)
{
    ses_err e = { 0 };
    ses_buf out = { 0 };
    MUST(ses_eval_template_fill(t, value, NULL, &out, &e));
    ses_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_json_doc *doc = ses_json_parse((const char *)data, n, &e);
    ses_eval_task *t = doc ? ses_eval_task_new(doc, &e) : NULL;
    MUST(t || e.code == SES_EFORMAT || e.code == SES_EUNSUPPORTED);
    if (!t) return 0;
    MUST(t->name && t->output);
    fill(&t->description), fill(&t->text), fill(&t->target), fill(&t->count);
    for (size_t i = 0; i < t->n_choices; i++) {
        MUST(!t->label || t->label[i]);
        fill(&t->choice[i]);
    }
    for (size_t i = 0; i < t->n_until; i++) MUST(t->until[i]);
    bool any = false;
    for (int i = 0; i < SES_EVAL_METRICS; i++) any |= t->metric[i];
    MUST(any);
    ses_eval_task_free(t);
    return 0;
}
