/* A fine-tuned model over a labeled file: what eval and predict share. */
#include "finetune_data.h"

#include "base/alloc.h"
#include "text/tokenizer_files.h"

#include <string.h>

void ses_prediction_run_free(ses_prediction_run *r)
{
    ses_task_outputs_free(&r->predictions);
    ses_finetune_set_free(&r->set);
    ses_finetuner_free(r->tuner);
    ses_examples_free(r->rows);
    ses_examples_free(r->labels);
    ses_json_free(r->config);
    ses_device_free(r->dev);
}

static bool progress(void *ctx, int64_t done, int64_t of)
{
    ses_progress *p = ctx;
    p->total = of;
    ses_progress_show(p, done);
    return true;
}

static bool open_model(ses_prediction_run *r, const ses_finetuner_options *o, const char *dir, ses_err *e)
{
    const ses_json *config = ses_json_root(r->config);
    const char *type = ses_json_string(ses_json_get(config, "model_type"), NULL);
    char *home = ses_dir_has_tokenizer(dir) ? ses_strdup(dir, e) : ses_model_base_dir(dir, o->base, e);
    r->tuner = home ? ses_finetuner_new(o, home, type ? type : "", r->dev, e) : NULL;
    ses_free(home);
    return r->tuner && ses_finetuner_set_labels(r->tuner, r->rows, e) &&
           ses_finetuner_build_config(r->tuner, config, 0, e) &&
           ses_finetuner_open_model(r->tuner, dir, false, 0, e) &&
           ses_finetuner_encode(r->tuner, r->rows, &r->set, e);
}

static bool read_config(ses_prediction_run *r, const ses_finetune_task *k, const char *dir, const char *base,
                        ses_err *e)
{
    r->config = ses_model_config_open(dir, base, e);
    return r->config &&
           (!k->has_label_names ||
            ses_config_labels(ses_json_root(r->config), k->data, &r->labels, &r->has_label_names, e) ||
            ses_wrap(e, "%s", dir));
}

/* The model's labels decide what a number means; a benchmark's only say how they stand in the file. */
static bool read_rows(ses_prediction_run *r, const ses_data_spec *s, const char *path, ses_err *e)
{
    r->rows = ses_data_args_open(s, path, s->label_values ? NULL : r->labels, e);
    if (!r->rows) return false;
    return !s->label_values || !r->has_label_names || ses_examples_align_labels(r->rows, r->labels, e) ||
           ses_wrap(e, "%s", path);
}

bool ses_prediction_run_open(ses_prediction_run *r, const ses_finetune_data_args *a, const ses_call *c,
                             bool labels, ses_err *e)
{
    ses_device_options d = ses_compute_device_options(&a->shared);
    const char *dir = a->adapter ? a->adapter : c->operands[0], *base = a->adapter ? c->operands[0] : NULL;
    const ses_finetune_task *k;
    ses_data_spec s;
    *r = (ses_prediction_run){ 0 };
    if (!ses_finetune_resolve_task(a, &k, &s, e) || !read_config(r, k, dir, base, e)) return false;
    ses_finetuner_options o = ses_finetuner_options_from(a, k, &s);
    s = ses_finetune_eval_spec(a, k, &s);
    o.base = base;
    s.no_labels = o.unlabeled = !labels;
    r->dev = ses_device_open(a->shared.device, &d, e);
    if (!r->dev || !read_rows(r, &s, c->operands[1], e)) return false;
    if (!open_model(r, &o, dir, e)) return ses_wrap(e, "%s", c->operands[1]);
    r->n = r->set.n_rows;
    if (!c->quiet) ses_notify_truncated(r->tuner, &r->set, c->operands[1]);
    ses_progress p = ses_progress_start(stderr, &c->err, c->quiet, "sequences", (int64_t)r->set.n);
    bool ok = ses_finetuner_predict(r->tuner, &r->set, &r->predictions, progress, &p, e);
    ses_progress_end(&p);
    return ok;
}
