/* Fine-tuned models: evaluation and prediction of labeled files and of examples in memory. */
#define _POSIX_C_SOURCE 200809L
#include "tune/predict/predictor_impl.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/label_pairs.h"
#include "data/examples_impl.h"
#include "data/examples_notices.h"
#include "task/prompt/pattern_file.h"
#include "text/tokenizer_files.h"
#include "tune/gpt/gpt_tuning.h"
#include "tune/multi/ensemble.h"

#include <math.h>
#include <string.h>
#include <strings.h>

ses_predictor_options ses_predictor_defaults(void)
{
    ses_finetune_options o = ses_finetune_defaults();
    return (ses_predictor_options){ .task = o.task, .confidence = o.confidence, .seed = 1 };
}

/* ---- opening ---- */

static bool read_labels(ses_predictor *p, const char *dir, ses_err *e)
{
    p->config = ses_model_config_open(dir, p->o.base, e);
    if (!p->config) return false;
    return !p->task->has_label_names ||
           ses_config_labels(ses_json_root(p->config), p->task->data, &p->own_labels, &p->has_label_names,
                             e) ||
           ses_wrap(e, "%s", dir);
}

/* The folder has a classifier without a neural encoder, which has no other task than classify. */
static bool use_classifier(ses_predictor *p, ses_err *e)
{
    if (!p->task->ways[SES_WAY_CLASSIFIER])
        return ses_fail(e, SES_EUSAGE, "%s: a classifier of texts has the task classify, not %s", p->dir,
                        p->task->name);
    p->task = p->task->ways[SES_WAY_CLASSIFIER];
    return true;
}

/* Opens the other models of an ensemble. */
static bool open_members(ses_predictor *p, ses_err *e)
{
    ses_predictor_options o = p->o;
    o.ensemble = NULL;
    o.n_ensemble = 0;
    o.rename = NULL; /* the first model names the predictions */
    if (o.task.patterns == p->pattern_file) o.task.patterns = NULL; /* the first model's own */
    if (!p->o.n_ensemble) return true;
    if (p->o.base || p->o.n_adapters)
        return ses_fail(
            e, SES_EUSAGE,
            "ensemble: base and adapters do not apply to several models; name folders of adapters "
            "as models, they know their base");
    if (!p->task->combine)
        return ses_fail(e, SES_EUNSUPPORTED, "ensemble: the task %s has no probabilities to average",
                        p->task->name);
    p->member = ses_alloc_array(p->o.n_ensemble, sizeof(ses_predictor *), e);
    if (!p->member) return false;
    for (size_t i = 0; i < p->o.n_ensemble; i++) {
        p->member[i] = ses_predictor_open(p->o.ensemble[i], &o, p->dev, e);
        if (!p->member[i]) return ses_wrap(e, "ensemble: %s", p->o.ensemble[i]);
        p->n_members++;
    }
    return true;
}

/* The folder has patterns, so that its masked LM classifies texts. */
static bool use_patterns(ses_predictor *p, ses_err *e)
{
    if (!p->task->ways[SES_WAY_PATTERNS]) return true;
    p->pattern_file = ses_path_join(p->dir, SES_PATTERN_FILE, e);
    if (!p->pattern_file || !ses_path_exists(p->pattern_file)) return p->pattern_file != NULL;
    p->o.task.patterns = p->pattern_file;
    p->task = p->task->ways[SES_WAY_PATTERNS];
    return true;
}

/* The labels of the patterns, if config.json has none. */
static bool read_pattern_labels(ses_predictor *p, ses_err *e)
{
    if (p->task->way != SES_WAY_PATTERNS || p->has_label_names) return true;
    ses_patterns *x = ses_patterns_open(p->o.task.patterns, e);
    const char **name = x ? ses_alloc_array(x->n_verbalizers, sizeof *name, e) : NULL;
    for (size_t i = 0; name && i < x->n_verbalizers; i++) name[i] = x->verbalizer[i].label;
    ses_examples_free(p->own_labels);
    p->own_labels = name ? ses_examples_from_labels(p->task->data, name, x->n_verbalizers, e) : NULL;
    p->has_label_names = p->own_labels != NULL;
    ses_free(name);
    ses_patterns_free(x);
    return p->has_label_names;
}

/* The task of the model's class, if none is set. */
static bool set_task(ses_predictor *p, ses_err *e)
{
    if (!p->o.data.task) p->o.data.task = ses_finetune_task_of_folder(p->dir, p->o.base, e);
    return p->o.data.task != NULL;
}

ses_predictor *ses_predictor_open(const char *dir, const ses_predictor_options *o, ses_device *d, ses_err *e)
{
    ses_predictor *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    p->o = *o;
    p->dev = d;
    ses_data_spec spec;
    if (!ses_predictor_set_exit(p, o->exit, e) || !(p->dir = ses_model_resolve(dir, NULL, e)) ||
        !set_task(p, e) || !ses_finetune_resolve_task(&p->o.data, &o->task, &p->task, &spec, e) ||
        !use_patterns(p, e) || !read_labels(p, p->dir, e) || !read_pattern_labels(p, e)) {
        ses_predictor_free(p);
        return NULL;
    }
    if (ses_classifier_is_config(ses_json_root(p->config)) && !use_classifier(p, e)) {
        ses_predictor_free(p);
        return NULL;
    }
    ses_finetune_task_options task = p->o.task;
    if (!ses_finetune_task_of_config(&p->task, ses_json_root(p->config), &task, e)) {
        ses_predictor_free(p);
        return NULL;
    }
    o = &p->o, p->o.task = task;
    p->labels = p->own_labels;
    p->settings = ses_finetuner_options_from(&p->o.task, p->task, &spec);
    p->settings.base = o->base;
    p->settings.adapters = o->adapters, p->settings.n_adapters = o->n_adapters;
    p->spec = ses_finetune_eval_spec(&o->task, p->task, &spec);
    /* the data get the scheme of the model; BIO is not distinct from IOB1, so it is only made on request */
    if (p->task->target == SES_TARGET_TAGS && p->has_label_names) {
        ses_tag_scheme s = ses_tag_names_scheme(p->own_labels);
        p->spec.tag_scheme = s == SES_TAGS_BIOES || o->task.scheme ? (int)s : SES_TAGS_PLAIN;
    }
    if (open_members(p, e)) return p;
    ses_predictor_free(p);
    return NULL;
}

const ses_examples *ses_predictor_labels(const ses_predictor *p) { return p->labels; }
const char *ses_predictor_metric(const ses_predictor *p) { return p->spec.best_metric; }

void ses_predictor_free(ses_predictor *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->n_members; i++) ses_predictor_free(p->member[i]);
    ses_free(p->member);
    if (!p->borrows_tuner) ses_finetuner_free(p->tuner);
    ses_examples_free(p->own_labels);
    ses_json_free(p->config);
    ses_free(p->pattern_file);
    ses_free(p->dir);
    ses_free(p);
}

static const char *label_name(const void *tuner, size_t i)
{
    return ((const ses_finetuner *)tuner)->label[i];
}

static bool rename_labels(ses_predictor *p, ses_err *e)
{
    ses_finetuner *t = p->tuner;
    if (!p->o.rename) return true;
    if (!t->n_labels) return ses_fail(e, SES_EARG, "labels: task %s has none", t->task->name);
    ses_string *name = ses_arena_array(&t->mem, t->n_labels, sizeof *name, e);
    if (!name || !ses_label_pairs_rename(p->o.rename, label_name, t, t->n_labels, name, e)) return false;
    for (size_t i = 0; i < t->n_labels; i++) {
        char *copy = name[i].p ? ses_arena_strndup(&t->mem, name[i].p, name[i].n, e) : NULL;
        if (name[i].p && !copy) return false;
        if (copy) t->label[i] = copy;
    }
    return true;
}

static ses_finetuner *open_classifier(ses_predictor *p, ses_err *e)
{
    ses_classifier *c = ses_classifier_open(p->dir, ses_json_root(p->config), e);
    return c ? ses_finetuner_new_classifier(&p->settings, c, p->dev, e) : NULL;
}

static ses_finetuner *open_tuner(ses_predictor *p, ses_err *e)
{
    if (p->task->predict_rows) return open_classifier(p, e);
    const char *type = ses_json_string(ses_json_get(ses_json_root(p->config), "model_type"), NULL);
    char *home = ses_tokenizer_home(p->dir, p->o.base, e);
    ses_finetuner *t = home ? ses_finetuner_new(&p->settings, home, type ? type : "", p->dev, e) : NULL;
    ses_free(home);
    return t;
}

/* Label names come from the model, or from the first examples if config.json has none. */
static bool open_model(ses_predictor *p, const ses_examples *rows, ses_err *e)
{
    if (p->tuner) return true;
    p->tuner = open_tuner(p, e);
    bool use_own = p->labels && (p->has_label_names || !ses_examples_label_count(rows));
    bool ok = p->tuner && ses_finetuner_set_labels(p->tuner, use_own ? p->labels : rows, e);
    if (ok && !p->tuner->classifier)
        ok = ses_finetuner_build_config(p->tuner, ses_json_root(p->config), e) &&
             ses_finetuner_open_model(p->tuner, p->dir, false, 0, e);
    if (ok && rename_labels(p, e)) return true;
    ses_finetuner_free(p->tuner);
    p->tuner = NULL;
    return false;
}

/* ---- examples ---- */

/* Whether a label of the model begins with "entail": it compares a premise and a hypothesis. */
static bool infers(const ses_predictor *p)
{
    static const char begin[] = "entail";
    for (size_t i = 0; p->has_label_names && i < ses_examples_label_count(p->labels); i++)
        if (!strncasecmp(ses_examples_label_name(p->labels, i), begin, sizeof begin - 1)) return true;
    return false;
}

bool ses_predictor_check_pair(const ses_predictor *p, const ses_data_spec *s, const char *path, ses_err *e)
{
    if (s->kind == SES_DATA_CLASSIFY && s->format == SES_DATA_TABLE && !s->text_b && infers(p))
        ses_training_notify(p->o.on_event, p->o.ctx,
                            "%s: the model compares two texts, but one column is read: name the "
                            "column of the second texts with --pair",
                            path);
    return p->task->head || s->kind != SES_DATA_REGRESS || s->format != SES_DATA_TABLE || s->text_b ||
           ses_fail(e, SES_EARG,
                    "%s: a similarity is that of two texts, and no column is named sentence2, hypothesis or "
                    "question2: name the column of the second texts with --pair; for vectors of texts: "
                    "'sesame embed --column'",
                    path);
}

/* The model's labels define the label indices; values of a benchmark only describe the file. */
ses_examples *ses_predictor_read(const ses_predictor *p, const char *path, bool labels, ses_err *e)
{
    ses_data_spec s = p->spec;
    bool pairs = ses_is_label_pairs(s.label_values) && p->has_label_names; /* names of the model's labels */
    s.no_labels = !labels;
    if (!labels) s.bad_rows = SES_BAD_ROWS_FAIL; /* each row has a prediction */
    ses_found_columns found;
    if (!ses_data_find_columns(&s, path, &found, e) || !ses_predictor_check_pair(p, &s, path, e)) return NULL;
    ses_examples *rows = ses_examples_open(path, &s, s.label_values && !pairs ? NULL : p->labels, e);
    if (rows && !ses_examples_note_columns(rows, found.notice, e)) return ses_examples_free(rows), NULL;
    if (!rows || !s.label_values || pairs || !p->has_label_names ||
        ses_examples_align_labels(rows, p->labels, e))
        return rows;
    ses_wrap(e, "%s", path);
    ses_examples_free(rows);
    return NULL;
}

ses_examples *ses_predictor_prepare(ses_predictor *p, const char *path, ses_err *e)
{
    ses_examples *rows = ses_predictor_read(p, path, false, e);
    if (rows && open_model(p, rows, e)) return rows;
    ses_examples_free(rows);
    return NULL;
}

static bool on_batch(void *ctx, int64_t done, int64_t total)
{
    const ses_predictor *p = ctx;
    if (!p->o.on_event) return true;
    ses_training_event ev = { .kind = SES_TRAINING_EVALUATING,
                              .done = p->rows_before + done,
                              .total = p->is_partial ? 0 : p->rows_before + total,
                              .loss = NAN,
                              .metric = NAN };
    return p->o.on_event(p->o.ctx, &ev);
}

/* The names of a model's labels: its own, or the labels of the first examples; on mem. */
static const char **label_names(const ses_predictor *p, ses_arena *mem, ses_err *e)
{
    const ses_finetuner *t = p->tuner;
    const char **name = ses_arena_array(mem, t->n_labels + 1, sizeof *name, e);
    for (size_t i = 0; name && i < t->n_labels; i++)
        name[i] = p->own_labels ? ses_examples_label_name(p->own_labels, i) : t->label[i];
    return name;
}

/* Runs another model of the ensemble over the rows; m->o and m->s are freed by the caller. */
static bool run_member(ses_predictor *p, ses_predictor *q, const ses_examples *rows, ses_ensemble_member *m,
                       ses_arena *mem, ses_err *e)
{
    if (!open_model(q, rows, e)) return false;
    m->t = q->tuner;
    m->name = q->dir;
    if (p->task->has_label_names) {
        const char **ours = label_names(p, mem, e), **theirs = label_names(q, mem, e);
        int32_t *map = ses_arena_array(mem, p->tuner->n_labels + 1, sizeof *map, e);
        m->label = map;
        if (!ours || !theirs || !map ||
            !ses_ensemble_match_labels(ours, p->tuner->n_labels, theirs, q->tuner->n_labels, p->dir, q->dir,
                                       map, e))
            return false;
    }
    q->tuner->unlabeled = p->tuner->unlabeled;
    q->tuner->in_ensemble = true;
    q->rows_before = p->rows_before;
    q->is_partial = p->is_partial;
    return ses_finetuner_encode(q->tuner, rows, m->s, e) &&
           ses_finetuner_predict(q->tuner, m->s, m->o, on_batch, q, e);
}

/* Replaces the outputs of the first model by the outputs of the ensemble. */
static bool predict_members(ses_predictor *p, const ses_examples *rows, ses_finetune_set *set,
                            ses_finetune_outputs *out, ses_err *e)
{
    size_t n = p->n_members;
    ses_arena mem = { 0 };
    ses_ensemble_member *m = ses_arena_array(&mem, n + 1, sizeof *m, e);
    ses_finetune_set *sets = ses_arena_array(&mem, n, sizeof *sets, e);
    ses_finetune_outputs *outputs = ses_arena_array(&mem, n, sizeof *outputs, e);
    bool ok = m && sets && outputs;
    if (ok) m[0] = (ses_ensemble_member){ .t = p->tuner, .s = set, .o = out, .name = p->dir };
    for (size_t i = 0; ok && i < n; i++) {
        m[i + 1] = (ses_ensemble_member){ .s = &sets[i], .o = &outputs[i] };
        ok = run_member(p, p->member[i], rows, &m[i + 1], &mem, e);
    }
    ok = ok && p->task->combine(m, n + 1, e);
    for (size_t i = 0; sets && outputs && i < n; i++) {
        ses_finetune_outputs_free(&outputs[i]);
        ses_finetune_set_free(&sets[i]);
    }
    ses_arena_free(&mem);
    return ok;
}

/* Encodes the examples and runs the model over them. path: for messages; NULL: examples in memory. */
static bool predict(ses_predictor *p, const ses_examples *rows, const char *path, bool labels,
                    ses_finetune_set *set, ses_finetune_outputs *out, ses_err *e)
{
    if (!open_model(p, rows, e) || !ses_predictor_use_exit(p, e)) return false;
    p->tuner->unlabeled = !labels;
    p->tuner->in_ensemble = p->n_members > 0;
    if (!ses_finetuner_encode(p->tuner, rows, set, e)) return path ? ses_wrap(e, "%s", path) : false;
    if (!p->is_partial && !p->rows_before)
        ses_finetune_report_set(p->tuner, set, path ? path : "examples", p->o.on_event, p->o.ctx);
    return ses_finetuner_predict(p->tuner, set, out, on_batch, p, e) &&
           (!p->n_members || predict_members(p, rows, set, out, e));
}

bool ses_predictor_encode(ses_predictor *p, const char *path, ses_examples **rows, ses_finetune_set *set,
                          ses_err *e)
{
    *rows = ses_predictor_read(p, path, true, e);
    return *rows && open_model(p, *rows, e) &&
           (ses_finetuner_encode(p->tuner, *rows, set, e) || ses_wrap(e, "%s", path));
}

static bool evaluate(ses_predictor *p, const ses_examples *rows, const char *path, ses_eval_report *out,
                     ses_err *e)
{
    ses_finetune_set set = { 0 };
    ses_finetune_outputs outputs = { 0 };
    ses_bootstrap b = { p->o.bootstrap, p->o.confidence / 100, (uint64_t)p->o.seed };
    bool ok = predict(p, rows, path, true, &set, &outputs, e) &&
              ses_eval_report_make(out, p->tuner, &set, &outputs, &b, e);
    ses_finetune_outputs_free(&outputs);
    ses_finetune_set_free(&set);
    return ok;
}

bool ses_predictor_evaluate(ses_predictor *p, const char *path, ses_eval_report *out, ses_err *e)
{
    *out = (ses_eval_report){ 0 };
    ses_examples *rows = ses_predictor_read(p, path, true, e);
    bool ok = rows && evaluate(p, rows, path, out, e);
    ses_examples_free(rows);
    return ok;
}

bool ses_predictor_evaluate_examples(ses_predictor *p, ses_examples *d, ses_eval_report *out, ses_err *e)
{
    *out = (ses_eval_report){ 0 };
    if (p->has_label_names && p->labels != d && !ses_examples_align_labels(d, p->labels, e)) return false;
    return evaluate(p, d, NULL, out, e);
}

/* ---- predictions ---- */

ses_predictions *ses_predictions_of(ses_predictor *p, const ses_examples *rows, const char *path, ses_err *e)
{
    ses_predictions *r = ses_alloc(sizeof *r, e);
    if (!r) return NULL;
    r->predictor = p;
    bool ok = predict(p, rows, path, false, &r->set, &r->outputs, e);
    r->item = ok ? ses_arena_array(&r->mem, r->set.n_rows, sizeof *r->item, e) : NULL;
    for (size_t i = 0; r->item && i < r->set.n_rows; i++) {
        r->item[i] = (ses_prediction){ 0 };
        if (!p->task->fill_prediction(p->tuner, &r->set, &r->outputs, i, &r->item[i], &r->mem, e))
            r->item = NULL;
        else if (r->outputs.layers)
            r->item[i].layers = r->outputs.layers[i];
    }
    if (r->item) return r;
    ses_predictions_free(r);
    return NULL;
}

ses_predictions *ses_predictor_predict(ses_predictor *p, const char *path, ses_err *e)
{
    ses_examples *rows = ses_predictor_read(p, path, false, e);
    ses_predictions *r = rows ? ses_predictions_of(p, rows, path, e) : NULL;
    if (r)
        r->rows = rows;
    else
        ses_examples_free(rows);
    return r;
}

/* ---- examples in memory ---- */

ses_predictions *ses_predictor_predict_examples(ses_predictor *p, const ses_examples *d, ses_err *e)
{
    if (p->has_label_names && !ses_examples_check_labels(d, p->labels, e)) return NULL;
    return ses_predictions_of(p, d, NULL, e);
}

size_t ses_predictions_count(const ses_predictions *p) { return p->set.n_rows; }
ses_prediction ses_predictions_at(const ses_predictions *p, size_t i) { return p->item[i]; }

void ses_predictions_put(const ses_predictions *p, size_t i, ses_json_writer *w)
{
    ses_json_begin_object(w);
    p->predictor->task->put_prediction(p->predictor->tuner, &p->set, &p->outputs, i, w);
    if (p->outputs.layers) ses_json_member_int(w, "layers", p->outputs.layers[i]);
    ses_json_end_object(w);
}

void ses_predictions_free(ses_predictions *p)
{
    if (!p) return;
    ses_finetune_outputs_free(&p->outputs);
    ses_finetune_set_free(&p->set);
    ses_examples_free(p->rows);
    ses_arena_free(&p->mem);
    ses_free(p);
}
