/* golden-runs FOLDER...: repeats training runs of transformers and compares every loss and gradient norm.
 *
 * FOLDER/finetune.json has an object for each run, under the name of its model's folder there:
 *   data         rows [text, label] or [text, pair, label], in order, epoch after epoch
 *   batch_size, max_length, lr, weight_decay, warmup (updates, or warmup_ratio), total (updates), clip
 *   losses, grad_norms of each update, the norm before clipping
 * and may have optimizer, schedule, betas, eps, momentum, nesterov, accumulate, decay_all, no_correction. */
#include "../checker.h"
#include "base/alloc.h"
#include "base/file.h"
#include "model/model_desc.h"
#include "sesame/tokenizer.h"
#include "sesame/unstable/dataset.h"
#include "sesame/unstable/trainer.h"
#include "text/tokenizer_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FIRST = 20 }; /* updates with the limit NEAR; later ones have FAR */
static const double NEAR = 1e-4, FAR = 2e-3;

static const ses_opt options[] = { CHECKER_OPTIONS("update") };

/* The settings of a run. */
typedef struct recipe {
    const char *name;
    const ses_json *data, *losses, *norms, *betas;
    const char *optimizer, *schedule;
    int64_t batch_size, max_length, warmup, total, accumulate;
    double lr, weight_decay, warmup_ratio, clip, eps, beta1, beta2, momentum;
    bool nesterov, decay_all, no_correction;
} recipe;

typedef enum { JSON, TEXT, INT, REAL, BOOL } kind;

static const struct {
    const char *key;
    kind kind;
    size_t offset;
    bool required;
} keys[] = {
    { "data", JSON, offsetof(recipe, data), true },
    { "losses", JSON, offsetof(recipe, losses), true },
    { "grad_norms", JSON, offsetof(recipe, norms), false },
    { "batch_size", INT, offsetof(recipe, batch_size), true },
    { "max_length", INT, offsetof(recipe, max_length), false },
    { "lr", REAL, offsetof(recipe, lr), true },
    { "weight_decay", REAL, offsetof(recipe, weight_decay), false },
    { "warmup", INT, offsetof(recipe, warmup), false },
    { "warmup_ratio", REAL, offsetof(recipe, warmup_ratio), false },
    { "total", INT, offsetof(recipe, total), false },
    { "clip", REAL, offsetof(recipe, clip), false },
    { "optimizer", TEXT, offsetof(recipe, optimizer), false },
    { "schedule", TEXT, offsetof(recipe, schedule), false },
    { "betas", JSON, offsetof(recipe, betas), false },
    { "beta1", REAL, offsetof(recipe, beta1), false },
    { "beta2", REAL, offsetof(recipe, beta2), false },
    { "eps", REAL, offsetof(recipe, eps), false },
    { "momentum", REAL, offsetof(recipe, momentum), false },
    { "nesterov", BOOL, offsetof(recipe, nesterov), false },
    { "accumulate", INT, offsetof(recipe, accumulate), false },
    { "gradient_accumulation_steps", INT, offsetof(recipe, accumulate), false },
    { "decay_all", BOOL, offsetof(recipe, decay_all), false },
    { "no_correction", BOOL, offsetof(recipe, no_correction), false },
};

static bool read_key(recipe *r, size_t i, const ses_json *v, ses_err *e)
{
    char *at = (char *)r + keys[i].offset;
    bool ok = true;
    switch (keys[i].kind) {
    case JSON: *(const ses_json **)(void *)at = v; break;
    case TEXT: ok = (*(const char **)(void *)at = ses_json_string(v, NULL)) != NULL; break;
    case INT: ok = ses_json_int(v, (int64_t *)(void *)at); break;
    case REAL: ok = ses_json_real(v, (double *)(void *)at); break;
    case BOOL: ok = ses_json_bool(v, (bool *)at); break;
    }
    return ok ||
           ses_fail(e, SES_EFORMAT, "\"%s\" is %s", keys[i].key, ses_json_type_name(ses_json_type_of(v)));
}

static bool read_recipe(recipe *r, const char *name, const ses_json *v, ses_err *e)
{
    *r = (recipe){ .name = name, .eps = -1, .beta1 = -1, .beta2 = -1, .momentum = -1 };
    for (size_t m = 0; m < ses_json_len(v); m++) {
        size_t i = 0;
        const char *key = ses_json_key(v, m, NULL);
        while (i < SES_LEN(keys) && strcmp(keys[i].key, key)) i++;
        if (i == SES_LEN(keys)) return ses_fail(e, SES_EUNSUPPORTED, "unknown setting \"%s\"", key);
        if (ses_json_type_of(ses_json_at(v, m)) == SES_JSON_NULL) continue; /* null: absent */
        if (!read_key(r, i, ses_json_at(v, m), e)) return false;
    }
    for (size_t i = 0; i < SES_LEN(keys); i++)
        if (keys[i].required && !ses_json_get(v, keys[i].key))
            return ses_fail(e, SES_EFORMAT, "no \"%s\"", keys[i].key);
    if (r->betas && (!ses_json_real(ses_json_at(r->betas, 0), &r->beta1) ||
                     !ses_json_real(ses_json_at(r->betas, 1), &r->beta2)))
        return ses_fail(e, SES_EFORMAT, "\"betas\" is not two numbers");
    if (!r->total) r->total = (int64_t)ses_json_len(r->losses);
    return true;
}

/* ---- data ---- */

typedef struct setup {
    ses_model *model;
    ses_tokenizer *tokenizer;
    ses_encode_ctx *tokens;
    ses_dataset *data;
    ses_batches *batches;
    ses_trainer *trainer;
    ses_tokenizer_config tokenizer_config;
    ses_real *values;
} setup;

static void setup_free(setup *s)
{
    ses_trainer_free(s->trainer);
    ses_batches_free(s->batches);
    ses_dataset_free(s->data);
    ses_encode_ctx_free(s->tokens);
    ses_tokenizer_free(s->tokenizer);
    ses_model_free(s->model);
    ses_free(s->values);
}

/* The row's last element: a class number, or regression targets. */
static bool read_label(setup *s, const ses_json *v, ses_sequence *q, bool classes, ses_err *e)
{
    int64_t label, width = ses_model_label_count(s->model);
    if (classes && ses_json_int(v, &label)) return q->label = (int32_t)label, true;
    bool list = ses_json_type_of(v) == SES_JSON_ARRAY;
    for (int64_t i = 0; i < width; i++) {
        double x;
        if (!ses_json_real(list ? ses_json_at(v, (size_t)i) : i ? NULL : v, &x))
            return ses_fail(e, SES_EFORMAT, "a label is not %s",
                            classes ? "an integer" : "one number per label");
        s->values[i] = (ses_real)x;
    }
    q->values = s->values;
    return true;
}

static bool add_row(setup *s, const recipe *r, const ses_json *row, bool classes, ses_err *e)
{
    size_t n = ses_json_len(row);
    ses_input in = { 0 };
    ses_encode_options o = { .truncation = r->max_length ? SES_TRUNCATE_LONGEST_FIRST : SES_TRUNCATE_NONE,
                             .max_length = r->max_length };
    if (n != 2 && n != 3) return ses_fail(e, SES_EFORMAT, "%zu elements, expected 2 or 3", n);
    in.text.p = ses_json_string(ses_json_at(row, 0), &in.text.n);
    if (n == 3) in.pair.p = ses_json_string(ses_json_at(row, 1), &in.pair.n);
    if (!in.text.p || (n == 3 && !in.pair.p)) return ses_fail(e, SES_EFORMAT, "a text is not a string");
    if (!ses_encode(s->tokens, &in, &o, e)) return false;
    const ses_encoding *k = ses_encode_ctx_result(s->tokens);
    int32_t *segments = ses_alloc_array(k->n, sizeof *segments, e);
    for (size_t i = 0; segments && i < k->n; i++)
        segments[i] = s->tokenizer_config.sets_segments ? k->type_id[i] : 0;
    ses_sequence q = { .n = (int64_t)k->n, .ids = k->id, .segments = segments };
    bool ok =
        segments && read_label(s, ses_json_at(row, n - 1), &q, classes, e) && ses_dataset_add(s->data, &q, e);
    ses_free(segments);
    return ok;
}

static bool read_data(setup *s, const recipe *r, ses_err *e)
{
    int64_t width = ses_model_label_count(s->model), label;
    const ses_json *first = ses_json_at(r->data, 0);
    bool classes =
        width > 1 && ses_json_len(first) && ses_json_int(ses_json_at(first, ses_json_len(first) - 1), &label);
    s->values = ses_alloc_array((size_t)width + 1, sizeof *s->values, e);
    s->data = s->values ? ses_dataset_new(classes ? SES_TARGET_CLASS : SES_TARGET_VALUES, width, 1, e) : NULL;
    for (size_t i = 0; s->data && i < ses_json_len(r->data); i++)
        if (!add_row(s, r, ses_json_at(r->data, i), classes, e)) return ses_wrap(e, "data, row %zu", i + 1);
    return s->data != NULL;
}

/* ---- the run ---- */

static bool prepare(setup *s, const recipe *r, const char *dir, ses_device *dev, ses_err *e)
{
    ses_trainer_options o = { .updates = r->total, .max_grad_norm = r->clip, .accumulate = r->accumulate };
    double decay = r->weight_decay;
    s->model = ses_model_open(dir, dev, &(ses_model_options){ .train = true }, e);
    s->tokenizer = s->model ? ses_tokenizer_open(dir, e) : NULL;
    s->tokens = s->tokenizer ? ses_encode_ctx_new(s->tokenizer, e) : NULL;
    if (!s->tokens ||
        !ses_tokenizer_config_read(&s->tokenizer_config, dir, ses_model_type(s->model),
                                   ses_model_sets_segments, s->tokenizer, e) ||
        !read_data(s, r, e))
        return false;
    s->batches =
        ses_batches_new(s->data, &(ses_batching){ .max_examples = r->batch_size, .in_order = true }, e);
    if (!s->batches) return false;
    if (!ses_optim_defaults(r->optimizer ? r->optimizer : "adamw", &o.optim, e)) return false;
    o.optim.lr = r->lr;
    if (r->beta1 >= 0) o.optim.beta1 = r->beta1;
    if (r->beta2 >= 0) o.optim.beta2 = r->beta2;
    if (r->eps >= 0) o.optim.eps = r->eps;
    if (r->momentum >= 0) o.optim.momentum = r->momentum;
    o.optim.nesterov = r->nesterov;
    o.optim.no_bias_correction |= r->no_correction;
    o.optim.group[0] = (ses_param_group){ 1, decay };
    o.optim.group[1] = (ses_param_group){ 1, r->decay_all ? decay : 0 };
    o.optim.group_of = ses_group_by_decay;
    if (!ses_schedule_defaults(r->schedule ? r->schedule : "linear", &o.schedule, e)) return false;
    o.schedule.warmup = r->warmup;
    o.warmup_ratio = r->warmup_ratio;
    o.model = s->model;
    o.source = ses_batches_source(s->batches);
    s->trainer = ses_trainer_new(&o, e);
    return s->trainer != NULL;
}

/* The largest error of a kind, as a fraction of its limit. */
typedef struct score {
    bool any;
    double fraction;
    int64_t at; /* update, from 1 */
} score;

static void compare(score *s, double ours, const ses_json *theirs, int64_t update)
{
    double expected = 0, limit = update < FIRST ? NEAR : FAR;
    if (!ses_json_real(theirs, &expected)) return;
    double fraction = fabs(ours - expected) / (fabs(expected) > 0 ? fabs(expected) : 1) / limit;
    if (!s->any || fraction > s->fraction || isnan(fraction))
        *s = (score){ true, isnan(fraction) ? INFINITY : fraction, update + 1 };
}

static bool run(setup *s, const recipe *r, score *loss, score *norm, bool verbose, ses_err *e)
{
    while (!ses_trainer_done(s->trainer)) {
        ses_step_result step;
        int64_t at = ses_trainer_state(s->trainer)->updates;
        if (!ses_trainer_step(s->trainer, &step, e)) return false;
        if (!step.updated) continue;
        const ses_json *want_loss = ses_json_at(r->losses, (size_t)at),
                       *want_norm = r->norms ? ses_json_at(r->norms, (size_t)at) : NULL;
        compare(loss, step.loss, want_loss, at);
        compare(norm, step.grad_norm, want_norm, at);
        double a = NAN, b = NAN;
        ses_json_real(want_loss, &a), ses_json_real(want_norm, &b);
        if (verbose)
            printf("  update %3lld  lr %.3e  loss %.8f (%.8f)  grad_norm %.8f (%.8f)\n", (long long)at + 1,
                   step.lr, step.loss, a, step.grad_norm, b);
    }
    return true;
}

static void put_score(const char *key, const score *s)
{
    if (s->any)
        printf(" %s=%.4f(%lld)", key, s->fraction, (long long)s->at);
    else
        printf(" %s=-", key);
}

/* Exit code: 0 pass, 1 fail, 3 unreadable. */
static int check_run(const char *folder, const char *name, const ses_json *v, ses_device *dev, bool verbose)
{
    ses_err e = { 0 };
    recipe r;
    setup s = { 0 };
    score loss = { 0 }, norm = { 0 };
    int code = 3;
    char *dir = ses_path_join(folder, name, &e);
    bool ok = dir && read_recipe(&r, name, v, &e) && prepare(&s, &r, dir, dev, &e) &&
              run(&s, &r, &loss, &norm, verbose, &e);
    if (ok) {
        code = loss.any && loss.fraction <= 1 && norm.fraction <= 1 ? 0 : 1;
        printf("%s", name);
        put_score("loss", &loss);
        put_score("grad_norm", &norm);
        printf(" updates=%lld%s\n", (long long)ses_trainer_state(s.trainer)->updates,
               code ? " FAIL" : " PASS");
    } else if (e.code == SES_EUNSUPPORTED) {
        printf("%s unsupported: %s\n", name, e.msg);
        code = 0;
    } else {
        fprintf(stderr, "golden-runs: %s: %s: %s\n", folder, name, e.msg);
    }
    fflush(stdout);
    setup_free(&s);
    ses_free(dir);
    return code;
}

static int check_folder(const char *folder, ses_device *dev, bool verbose)
{
    enum { MAX = 1 << 28 };
    ses_err e = { 0 };
    int worst = 0;
    char *path = ses_path_join(folder, "finetune.json", &e);
    ses_json_doc *doc = path ? ses_json_load(path, MAX, &e) : NULL;
    const ses_json *root = doc ? ses_json_root(doc) : NULL;
    if (doc && (ses_json_type_of(root) != SES_JSON_OBJECT || !ses_json_len(root)))
        ses_fail(&e, SES_EFORMAT, "%s: expected an object with a member for each run", path);
    if (e.code) fprintf(stderr, "golden-runs: %s\n", e.msg), worst = 3;
    for (size_t i = 0; !e.code && i < ses_json_len(root); i++) {
        int code = check_run(folder, ses_json_key(root, i, NULL), ses_json_at(root, i), dev, verbose);
        if (code > worst) worst = code;
    }
    ses_json_free(doc);
    ses_free(path);
    return worst;
}

static const char usage[] =
    "usage: golden-runs [options] FOLDER...\n\n"
    "Repeat training runs of transformers: every run of FOLDER/finetune.json, on the model in\n"
    "the folder of the run's name. One line per run: the largest error of a loss and of a gradient "
    "norm\n"
    "as a fraction of the limit, and its update (1e-4 relative in the first 20 updates, 2e-3 later).\n"
    "Exit 0: none failed, 1: some failed, 2: wrong usage, 3: something could not be read.\n";

int main(int argc, char **argv)
{
    (void)argc;
    const checker c = { "golden-runs", usage, "no folder given", options, SES_LEN(options), check_folder };
    return checker_main(&c, argv);
}
