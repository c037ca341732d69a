/* Baselines of `eval`: majority class and continuous bag of words. */
#include "eval_baselines.h"

#include "base/str.h"
#include "cli/train/train_monitor.h"
#include "cli/ui/text_table.h"
#include "tune/classifier_run.h"

#include <math.h>

static const ses_opt opt[] = {
    SES_OPT_FLAG(
        ses_baseline_args, baselines, "baselines",
        "classify: also train a majority class and a continuous bag of words on --train, and print their "
        "scores"),
    SES_OPT_TEXT(ses_baseline_args, train, "train", "FILE", "with --baselines: training data"),
    SES_OPT_TEXT(ses_baseline_args, vectors, "vectors", "FILE",
                 "with --baselines: word vectors whose mean represents a text; default: vectors that are "
                 "trained with the classifier"),
};
const ses_opt_table ses_baseline_option_table = { opt, SES_LEN(opt), "baselines" };

bool ses_baseline_args_check(const ses_baseline_args *a, const char *direct, ses_err *e)
{
    if (a->baselines && direct)
        return ses_fail(e, SES_EUSAGE, "--baselines classify texts: they have no task %s", direct);
    if (!a->baselines && (a->train || a->vectors))
        return ses_fail(e, SES_EUSAGE, "--%s is an option of --baselines: give both",
                        a->train ? "train" : "vectors");
    if (a->baselines && !a->train)
        return ses_fail(e, SES_EUSAGE, "--baselines needs training data: --train FILE");
    return true;
}

static bool should_continue(void *ctx, int64_t done, int64_t total, double loss)
{
    (void)total, (void)loss;
    ses_progress_show(ctx, done);
    return !ses_train_monitor_should_stop();
}

static ses_finetune *run_one(const ses_baseline_args *a, const ses_predictor_args *p, const char *method,
                             const char *vectors, const char *file, ses_device *dev, const ses_call *c,
                             ses_err *e)
{
    ses_progress bar = ses_progress_start(stderr, &c->err, c->quiet, "training steps", 0);
    ses_classifier_plan plan = { .kind = ses_classifier_find(method, e),
                                 .progress = should_continue,
                                 .ctx = &bar };
    ses_finetune_options o = ses_finetune_defaults();
    o.train = a->train, o.eval = file;
    o.data = p->data;
    o.task.metrics = p->task.metrics;
    o.run.seed = p->bootstrap.seed;
    o.bootstrap = p->bootstrap.resamples, o.confidence = p->bootstrap.confidence;
    plan.settings.vectors = vectors;
    ses_finetune *f = plan.kind ? ses_classifier_finetune(&o, &plan, dev, e) : NULL;
    ses_progress_end(&bar);
    return f;
}

bool ses_baselines_run(ses_baselines *b, const ses_baseline_args *a, const ses_predictor_args *p,
                       const char *file, const ses_call *c, ses_err *e)
{
    /* the mean of word vectors that are trained with the classifier is fastText's model */
    *b = (ses_baselines){ .name = { "majority", a->vectors ? "cbow" : "fasttext" } };
    if (!a->baselines) return true;
    ses_device_options d = ses_compute_device_options(&p->compute);
    b->dev = ses_device_open("cpu", &d, e);
    for (int i = 0; i < SES_BASELINES; i++) {
        const char *vectors = i ? a->vectors : NULL;
        b->run[i] = b->dev ? run_one(a, p, b->name[i], vectors, file, b->dev, c, e) : NULL;
        if (!b->run[i]) return ses_wrap(e, "baseline %s", b->name[i]);
    }
    return true;
}

void ses_baselines_free(ses_baselines *b)
{
    for (int i = 0; i < SES_BASELINES; i++) ses_finetune_free(b->run[i]);
    ses_device_free(b->dev);
    *b = (ses_baselines){ 0 };
}

/* ---- output ---- */

enum { MAX_SCORES = 6 };

/* Score i of the report has a column; *n counts them. */
static bool is_shown(const ses_eval_report *r, size_t i, int *n)
{
    return ses_eval_report_is_overall(r, i) && (*n)++ < MAX_SCORES;
}

static void put_row(ses_text_table *table, const char *name, const ses_eval_report *r,
                    const ses_eval_report *columns)
{
    int n = 0;
    ses_text_table_cell(table, "%s", name);
    for (size_t i = 0; i < columns->scores.n; i++) {
        double x = NAN;
        if (!is_shown(columns, i, &n)) continue;
        if (ses_scores_find(&r->scores, columns->scores.item[i].name, &x) && !isnan(x))
            ses_text_table_cell(table, "%.4f", x);
        else
            ses_text_table_cell(table, "-");
    }
}

bool ses_baselines_show(const ses_baselines *b, const ses_eval_report *model, const ses_term *t, ses_err *e)
{
    ses_buf columns = { 0 };
    int n = 0;
    if (!b->run[0]) return true;
    ses_buf_puts(&columns, "method");
    for (size_t i = 0; i < model->scores.n; i++)
        if (is_shown(model, i, &n)) ses_buf_appendf(&columns, "|>%s", model->scores.item[i].name);
    ses_text_table *table = ses_buf_ok(&columns, e) ? ses_text_table_new(columns.data, e) : NULL;
    ses_buf_free(&columns);
    if (!table) return false;
    put_row(table, "model", model, model);
    for (int i = 0; i < SES_BASELINES; i++) put_row(table, b->name[i], ses_finetune_report(b->run[i]), model);
    putchar('\n');
    bool ok = ses_text_table_print(table, stdout, t, 0, e);
    ses_text_table_free(table);
    return ok;
}

void ses_baselines_put(const ses_baselines *b, ses_json_writer *w)
{
    if (!b->run[0]) return;
    ses_json_member_object(w, "baselines");
    for (int i = 0; i < SES_BASELINES; i++) {
        ses_json_member_object(w, b->name[i]);
        ses_eval_report_put(ses_finetune_report(b->run[i]), w);
        ses_json_end_object(w);
    }
    ses_json_end_object(w);
}
