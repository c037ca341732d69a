/* Structured pruning: opens model and data, scores parts, removes some, evaluates and writes the result. */
#include "part_pruning_impl.h"

#include "base/alloc.h"
#include "base/file.h"
#include "model/model_desc.h"
#include "task/prompt/pattern_file.h"
#include "text/tokenizer_files.h"
#include "train/train_folder.h"
#include "tune/finetune_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct pruner {
    const ses_part_pruning_options *o;
    ses_part_pruning_result *result;
    ses_device *dev;
    char *dir, *tokenizer_dir;
    ses_model *model, *small, *filled; /* filled NULL: the small form is written */
    ses_predictor *predictor;          /* NULL: no data */
    ses_examples *rows;
    ses_finetune_set set;
    ses_part_scores scores;
    ses_reduction *keep;
} pruner;

/* ---- checks before any work ---- */

static bool check_fraction(const char *name, double x, ses_err *e)
{
    if (x >= 0 && x < 1) return true;
    return ses_fail(e, SES_EUSAGE, "--%s %g: expected the part to be removed, from 0 to below 1%s", name, x,
                    x == 1 ? "; 1 would remove everything" : "");
}

/* The output must be new, an empty folder, or may be replaced. */
static bool check_output(const ses_part_pruning_options *o, const char *dir, ses_err *e)
{
    bool empty = true;
    const char *base = o->predictor.base;
    if (ses_path_same(o->output, dir) || (base && ses_path_same(o->output, base)))
        return ses_fail(e, SES_EUSAGE, "--output %s is the folder of the model: choose another one",
                        o->output);
    if (o->overwrite || !ses_path_exists(o->output)) return true;
    if (!ses_dir_is_empty(o->output, NULL, &empty, e)) return false;
    return empty || ses_fail(e, SES_EUSAGE, "%s exists: --overwrite replaces its files", o->output);
}

static bool needs_scores(const ses_part_pruning_options *o)
{
    return o->heads > 0 || o->ffn > 0 || (o->layers && o->order == SES_LAYERS_BY_IMPORTANCE);
}

static bool check_options(const ses_part_pruning_options *o, ses_err *e)
{
    if (!check_fraction("heads", o->heads, e) || !check_fraction("ffn", o->ffn, e)) return false;
    if (!(o->heads > 0) && !(o->ffn > 0) && !o->layers)
        return ses_fail(e, SES_EUSAGE, "nothing to prune: give --heads X, --ffn X or --layers N");
    if (needs_scores(o) && !o->data)
        return ses_fail(e, SES_EUSAGE,
                        "--data FILE is required: the importance of heads, rows and layers is measured on "
                        "labeled examples");
    return true;
}

/* Refuses models before the work: removes one part of each kind from a copy of the marks. */
static bool check_model(const pruner *p, ses_err *e)
{
    const ses_part_pruning_options *o = p->o;
    const ses_model *m = p->model;
    char *modules = ses_path_join(p->dir, "modules.json", e);
    bool sentence = modules && ses_path_exists(modules);
    ses_free(modules);
    if (sentence)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "%s is a sentence encoder: prune its base model, then train it with 'sesame finetune "
                        "--task embed'",
                        p->dir);
    if (m->stack[1].layer)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "%s is an encoder-decoder: only its heads can be removed, with 'sesame prune MODEL DATA "
            "--heads --write DIR'",
            ses_model_class_name(m));
    if (o->layers > p->keep->layers || o->layers < 0)
        return ses_fail(e, SES_EUSAGE, "--layers %lld: the model has %lld layers; expected 1 to %lld",
                        (long long)o->layers, (long long)p->keep->layers, (long long)p->keep->layers);
    ses_reduction *trial = ses_reduction_new(m, e);
    if (!trial) return false;
    if (o->layers && o->layers < trial->layers) trial->layer[trial->layers - 1] = 0;
    if (o->heads > 0 && trial->heads[0] > 1) trial->head[0][0] = 0;
    if (o->ffn > 0 && trial->rows > 1) trial->row[0] = 0;
    bool ok = ses_reduction_check(trial, m, e);
    ses_reduction_free(trial);
    if (ok && !p->keep->rows)
        return ses_fail(e, SES_EUNSUPPORTED, "%s has no Transformer layers", ses_model_type(m));
    return ok;
}

/* ---- model and data ---- */

static bool open_model(pruner *p, ses_err *e)
{
    const ses_predictor_options *o = &p->o->predictor;
    ses_model_options m = { .no_packing = true, .base = o->base };
    m.adapters = o->adapters, m.n_adapters = o->n_adapters;
    p->model = ses_model_open(p->dir, p->dev, &m, e);
    p->keep = p->model ? ses_reduction_new(p->model, e) : NULL;
    p->tokenizer_dir = p->keep ? ses_tokenizer_home(p->dir, o->base, e) : NULL;
    return p->tokenizer_dir && check_model(p, e);
}

static bool open_data(pruner *p, ses_err *e)
{
    if (!p->o->data) return true;
    ses_predictor_options o = p->o->predictor;
    if (!o.data.task) o.data.task = ses_finetune_task_of_heads(p->model->class->head, &p->model->c);
    if (!o.data.task)
        return ses_fail(
            e, SES_EUSAGE,
            "%s: %s has no head of a fine-tuning task: fine-tune it before pruning, or remove layers "
            "without --data",
            p->dir, ses_model_class_name(p->model));
    p->predictor = ses_predictor_open(p->dir, &o, p->dev, e);
    if (!p->predictor) return false;
    p->predictor->settings.model = p->model;
    return ses_predictor_encode(p->predictor, p->o->data, &p->rows, &p->set, e);
}

static bool on_progress(void *ctx, int64_t done, int64_t total)
{
    const ses_predictor_options *o = &((const pruner *)ctx)->o->predictor;
    ses_training_event ev = {
        .kind = SES_TRAINING_EVALUATING, .done = done, .total = total, .loss = NAN, .metric = NAN
    };
    return !o->on_event || o->on_event(o->ctx, &ev);
}

/* ---- figures ---- */

static ses_part_pruning_figures figures_of(const ses_model *m)
{
    ses_part_pruning_figures f = { .layers = ses_model_part_layers(m, SES_PART_MAIN), .score = NAN };
    f.parameters = ses_store_element_count(m->store);
    for (int64_t l = 0; l < f.layers; l++) {
        f.heads += ses_model_part_heads(m, SES_PART_MAIN, l);
        f.rows += ses_model_layer_neurons(m, SES_PART_MAIN, l);
    }
    ses_flops_units u = ses_model_flops_units(m, 1, SES_PART_PRUNING_TOKENS, 0, 0);
    ses_flops flops = ses_model_flops(m, &u, false);
    f.flops = flops.kind[SES_FLOP_WEIGHT] + flops.kind[SES_FLOP_ATTENTION];
    return f;
}

/* Evaluates a model on the data, with the tuner of the first. */
static bool evaluate(pruner *p, ses_model *m, double *score, ses_err *e)
{
    if (!p->predictor || p->o->no_score) return true;
    ses_finetuner *t = p->predictor->tuner;
    ses_finetune_outputs out = { 0 };
    ses_eval_report report = { 0 };
    const char *metric = ses_predictor_metric(p->predictor);
    t->model = m;
    bool ok = ses_finetuner_predict(t, &p->set, &out, on_progress, p, e) &&
              ses_eval_report_make(&report, t, &p->set, &out, &(ses_bootstrap){ 0 }, e);
    if (ok && metric && ses_scores_find(&report.scores, metric, score))
        snprintf(p->result->metric, sizeof p->result->metric, "%s", metric);
    t->model = p->model;
    ses_eval_report_free(&report);
    ses_finetune_outputs_free(&out);
    return ok;
}

/* ---- output ---- */

static bool write_files(void *ctx, const char *dir, ses_err *e)
{
    static const char *const also[] = { SES_RUN_INFO, "generation_config.json", SES_PATTERN_FILE };
    const pruner *p = ctx;
    ses_tokenizer *t = ses_tokenizer_open(p->tokenizer_dir, e);
    bool ok = t && ses_model_save(p->filled ? p->filled : p->small, dir, NULL, e) &&
              ses_train_folder_tokenizer(p->tokenizer_dir, t, dir, e);
    for (size_t i = 0; ok && i < SES_LEN(also); i++) {
        bool exists;
        ok = ses_train_folder_copy(p->dir, also[i], dir, &exists, e);
    }
    ses_tokenizer_free(t);
    return ok;
}

static bool prune(pruner *p, ses_err *e)
{
    const ses_part_pruning_options *o = p->o;
    ses_part_pruning_result *r = p->result;
    r->before = figures_of(p->model);
    if (!evaluate(p, p->model, &r->before.score, e)) return false;
    if (needs_scores(o) && !ses_part_scores_compute(&p->scores, p->predictor->tuner, &p->set, o->max_examples,
                                                    (uint64_t)o->predictor.seed, on_progress, p, e))
        return ses_wrap(e, "%s", o->data);
    r->examples = p->scores.examples;
    if (!ses_part_choice(o, p->model, &p->scores, p->keep, e)) return false;
    p->small = ses_model_reduce(p->model, p->keep, SES_REDUCED_SMALL, e);
    if (p->small && o->form == SES_REDUCED_FILLED)
        p->filled = ses_model_reduce(p->model, p->keep, SES_REDUCED_FILLED, e);
    if (!p->small || (o->form == SES_REDUCED_FILLED && !p->filled)) return false;
    r->after = figures_of(p->small);
    if (p->filled) {
        ses_part_pruning_figures written = figures_of(p->filled);
        r->after.parameters = written.parameters, r->after.flops = written.flops;
    }
    return evaluate(p, p->small, &r->after.score, e) && ses_train_folder_write(o->output, write_files, p, e);
}

bool ses_part_pruning_run(const char *dir, const ses_part_pruning_options *o, ses_device *d,
                          ses_part_pruning_result *r, ses_err *e)
{
    pruner p = { .o = o, .dev = d, .result = r };
    *r = (ses_part_pruning_result){ 0 };
    if (!check_options(o, e)) return false;
    p.dir = ses_model_resolve(dir, NULL, e);
    bool ok = p.dir && check_output(o, p.dir, e) && open_model(&p, e) && open_data(&p, e) && prune(&p, e);
    ses_finetune_set_free(&p.set);
    ses_predictor_free(p.predictor);
    ses_examples_free(p.rows);
    ses_part_scores_free(&p.scores);
    ses_reduction_free(p.keep);
    ses_model_free(p.filled), ses_model_free(p.small), ses_model_free(p.model);
    ses_free(p.tokenizer_dir), ses_free(p.dir);
    return ok;
}
