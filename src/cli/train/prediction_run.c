/* A fine-tuned model over a labeled file: what eval and predict share. */
#include "finetune_data.h"

#include "base/alloc.h"
#include "cli/tokenizer_files.h"

#include <string.h>

void ses_tune_run_free(ses_tune_run *r)
{
    ses_predicted_free(&r->said);
    ses_tune_set_free(&r->set);
    ses_tuner_free(r->tuner);
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

static bool open_model(ses_tune_run *r, const ses_tune_options *o, const char *dir, ses_err *e)
{
    const ses_json *config = ses_json_root(r->config);
    const char *type = ses_json_string(ses_json_get(config, "model_type"), NULL);
    char *home = ses_has_tokenizer(dir) ? ses_strdup(dir, e) : ses_model_base_dir(dir, o->base, e);
    r->tuner = home ? ses_tuner_new(o, home, type ? type : "", r->dev, e) : NULL;
    ses_free(home);
    return r->tuner && ses_tuner_labels(r->tuner, r->rows, e) && ses_tuner_config(r->tuner, config, 0, e) &&
           ses_tuner_model(r->tuner, dir, false, 0, e) && ses_tuner_encode(r->tuner, r->rows, &r->set, e);
}

static bool read_config(ses_tune_run *r, const ses_tune_kind *k, const char *dir, const char *base,
                        ses_err *e)
{
    r->config = ses_model_config_open(dir, base, e);
    return r->config &&
           (!k->named || ses_tune_labels(ses_json_root(r->config), k->data, &r->labels, &r->told, e) ||
            ses_wrap(e, "%s", dir));
}

/* The model's labels decide what a number means; a benchmark's only say how they stand in the file. */
static bool read_rows(ses_tune_run *r, const ses_data_spec *s, const char *path, ses_err *e)
{
    r->rows = ses_data_open(s, path, s->values ? NULL : r->labels, e);
    if (!r->rows) return false;
    return !s->values || !r->told || ses_examples_order(r->rows, r->labels, e) || ses_wrap(e, "%s", path);
}

bool ses_tune_run_open(ses_tune_run *r, const ses_tune_args *a, const ses_call *c, bool labels, ses_err *e)
{
    ses_device_options d = ses_shared_options(&a->shared);
    const char *dir = a->adapter ? a->adapter : c->rest[0], *base = a->adapter ? c->rest[0] : NULL;
    const ses_tune_kind *k;
    ses_data_spec s;
    *r = (ses_tune_run){ 0 };
    if (!ses_tune_resolve(a, &k, &s, e) || !read_config(r, k, dir, base, e)) return false;
    ses_tune_options o = ses_tune_options_of(a, k, &s);
    s = ses_tune_measured(a, k, &s);
    o.base = base;
    s.no_labels = o.blind = !labels;
    r->dev = ses_device_open(a->shared.device, &d, e);
    if (!r->dev || !read_rows(r, &s, c->rest[1], e)) return false;
    if (!open_model(r, &o, dir, e)) return ses_wrap(e, "%s", c->rest[1]);
    r->n = r->set.n_rows;
    if (!c->quiet) ses_tune_tell_cut(r->tuner, &r->set, c->rest[1]);
    ses_progress p = ses_progress_start(stderr, &c->err, c->quiet, "sequences", (int64_t)r->set.n);
    bool ok = ses_tuner_predict(r->tuner, &r->set, &r->said, progress, &p, e);
    ses_progress_end(&p);
    return ok;
}
