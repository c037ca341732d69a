/* Probes by layer: collects the states, builds the vectors of each task and fits the probes. */
#include "probe_run.h"

#include "analysis/math/pca.h"
#include "analysis/state_spool.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "probe_baselines.h"
#include "probe_nets.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SPOOL_BYTES = 1 << 30, MAX_C = 16, PARTS = 3, ROTATION_ROWS = 16384, BLOCK = 2048, SITE = 0x70726f62 };

typedef struct run {
    ses_analysis_call *c;
    const ses_probe_args *a;
    const ses_probe_data *d;
    ses_device *host;
    bool own_host;
    ses_math math;
    double grid[MAX_C];
    size_t n_grid, width, parts; /* parts: blocks of `width` columns in a vector */
    int64_t layers[SES_LAYER_SET_MAX];
    ses_probe_results r;
    ses_state_spool *spool;
    float *states;                   /* [rows, width] of one layer */
    uint32_t *order[SES_PROBE_SETS]; /* examples of the task; of training in random order */
    size_t n[SES_PROBE_SETS];
    float *x[SES_PROBE_SETS]; /* [n, parts * width], rotated */
    int32_t *y[SES_PROBE_SETS], *control[SES_PROBE_SETS];
    ses_real *block, *rotated; /* [ROTATION_ROWS, width], [BLOCK, width] */
    int64_t done, total;       /* probes, for the progress line */
} run;

/* ---- setup ---- */

static bool parse_grid(run *r, ses_err *e)
{
    for (const char *at = r->a->classify.c; *at;) {
        char *end;
        double c = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !(c > 0) || !isfinite(c) || r->n_grid == MAX_C ||
            (r->n_grid && c <= r->grid[r->n_grid - 1]))
            return ses_fail(e, SES_EUSAGE, "-C %s: expected up to %d ascending numbers above 0",
                            r->a->classify.c, MAX_C);
        r->grid[r->n_grid++] = c;
        at = *end ? end + 1 : end;
    }
    return r->n_grid || ses_fail(e, SES_EUSAGE, "-C: expected a number");
}

static bool choose_layers(run *r, const ses_model *m, ses_err *e)
{
    int64_t depth = ses_word_states_depth(m, r->a->decoder);
    if (depth < 0)
        return ses_fail(e, SES_EARG, "--decoder: %s has no decoder with hidden states of its own",
                        ses_model_class_name(m));
    for (int64_t l = 0; l <= depth && l < SES_LAYER_SET_MAX; l++)
        if (ses_layer_set_has(&r->c->layers, l)) r->layers[r->r.n_layers++] = l;
    r->r.layers = r->layers;
    return r->r.n_layers ||
           ses_fail(e, SES_EUSAGE, "--layers: the model has layers 0 to %lld", (long long)depth);
}

static bool open_run(run *r, ses_err *e)
{
    ses_device *dev = r->c->dev;
    size_t tasks = r->d->n_tasks;
    r->host = dev;
    if (!dev->is_host) {
        r->own_host = true;
        r->host = ses_device_open("cpu", &(ses_device_options){ .threads = ses_device_threads(dev) }, e);
    }
    if (!r->host) return false;
    r->math = (ses_math){ .k = r->host->k_f32, .exec = r->host->exec };
    r->parts = r->d->pairs ? PARTS : 1;
    r->r.data = r->d;
    r->r.trained = ses_alloc_array(tasks * r->r.n_layers, sizeof *r->r.trained, e);
    r->r.random = ses_alloc_array(tasks * r->r.n_layers, sizeof *r->r.random, e);
    r->r.base = ses_alloc_array(tasks, sizeof *r->r.base, e);
    r->states = ses_alloc_huge(r->d->rows * r->width, sizeof *r->states, e);
    r->block = ses_alloc_array(ROTATION_ROWS * r->width, sizeof *r->block, e);
    r->rotated = ses_alloc_array(BLOCK * r->width, sizeof *r->rotated, e);
    return r->r.trained && r->r.random && r->r.base && r->states && r->block && r->rotated;
}

static void free_sets(run *r)
{
    for (int s = 0; s < SES_PROBE_SETS; s++) {
        ses_free(r->order[s]), ses_free(r->x[s]), ses_free(r->y[s]), ses_free(r->control[s]);
        r->order[s] = NULL, r->x[s] = NULL, r->y[s] = r->control[s] = NULL;
    }
}

static void close_run(run *r)
{
    free_sets(r);
    ses_state_spool_free(r->spool);
    ses_free(r->r.trained);
    ses_free(r->r.random);
    ses_free(r->r.base);
    ses_free(r->states);
    ses_free(r->block);
    ses_free(r->rotated);
    if (r->own_host) ses_device_free(r->host);
}

/* ---- states ---- */

static bool take(void *ctx, const ses_state_batch *b, ses_err *e)
{
    run *r = ctx;
    if (!ses_state_spool_add(r->spool, b->x, b->rows, e)) return false;
    ses_analysis_progress(r->c, "hidden states", (int64_t)ses_state_spool_rows(r->spool),
                          (int64_t)r->d->rows);
    return true;
}

static bool collect_states(run *r, const ses_model *m, const int64_t *layers, size_t n, ses_err *e)
{
    ses_word_states_options o = { .unit = r->d->unit,
                                  .first_piece = r->a->first_piece,
                                  .decoder = r->a->decoder,
                                  .layers = layers,
                                  .n_layers = n };
    ses_state_spool_free(r->spool);
    r->spool = ses_state_spool_new(n, r->width, SPOOL_BYTES, NULL, e);
    return r->spool && ses_word_states_run(m, r->c->tokenizer, r->d->input, r->d->n_inputs, &o, take, r, e);
}

/* ---- vectors of a task ---- */

/* Training examples in random order, at most max_train; the others in their order. */
static bool list_examples(run *r, const ses_probe_task *t, ses_err *e)
{
    for (int s = 0; s < SES_PROBE_SETS; s++) {
        size_t first = r->d->first[s], end = r->d->first[s + 1], n = 0;
        uint32_t *order = r->order[s] = ses_alloc_array(end - first, sizeof *order, e);
        if (!order) return false;
        for (size_t i = first; i < end; i++)
            if (t->y[i] != SES_PROBE_NO_LABEL) order[n++] = (uint32_t)i;
        for (size_t i = n; s == SES_PROBE_TRAIN && i-- > 1;) {
            size_t j =
                (size_t)(((uint64_t)ses_rand32((ses_rng_key){ r->c->seed, 0, SITE }, i) * (i + 1)) >> 32);
            uint32_t swap = order[i];
            order[i] = order[j], order[j] = swap;
        }
        if (s == SES_PROBE_TRAIN && r->a->classify.max_train && n > (size_t)r->a->classify.max_train)
            n = (size_t)r->a->classify.max_train;
        r->n[s] = n;
        r->y[s] = ses_alloc_array(n, sizeof *r->y[s], e);
        r->control[s] = ses_alloc_array(n, sizeof *r->control[s], e);
        r->x[s] = ses_alloc_huge(n * r->parts * r->width, sizeof *r->x[s], e);
        if (!r->y[s] || !r->control[s] || !r->x[s]) return false;
        for (size_t i = 0; i < n; i++) {
            r->y[s][i] = t->y[order[i]];
            r->control[s][i] = ses_probe_control_label(r->d, t, r->d->example[order[i]].type, r->c->seed,
                                                       r->order[SES_PROBE_TRAIN], r->n[SES_PROBE_TRAIN]);
        }
    }
    return true;
}

/* Part p of examples first .. first + n - 1 of a set: h_row, h_other or their product. */
static void compose(const run *r, int set, size_t first, size_t n, size_t p)
{
    for (size_t i = 0; i < n; i++) {
        const ses_probe_example *x = &r->d->example[r->order[set][first + i]];
        const float *a = r->states + x->row * r->width, *b = r->states + x->other * r->width;
        ses_real *to = r->block + i * r->width;
        for (size_t k = 0; k < r->width; k++) to[k] = (ses_real)(p == 0 ? a[k] : p == 1 ? b[k] : a[k] * b[k]);
    }
}

/* Builds the vectors of all sets. Each part is rotated to its principal components, which changes neither the
 * objective nor the predictions of softmax regression, and makes it converge in fewer iterations. */
static bool build_vectors(run *r, ses_err *e)
{
    int64_t width = (int64_t)r->width;
    size_t sample = r->n[SES_PROBE_TRAIN] < ROTATION_ROWS ? r->n[SES_PROBE_TRAIN] : ROTATION_ROWS;
    for (size_t p = 0; p < r->parts; p++) {
        ses_pca pca;
        compose(r, SES_PROBE_TRAIN, 0, sample, p);
        if (!ses_pca_fit(&pca, &r->math, r->block, (int64_t)sample, width, width, e)) return false;
        bool ok = true;
        for (int s = 0; ok && s < SES_PROBE_SETS; s++)
            for (size_t first = 0; ok && first < r->n[s]; first += BLOCK) {
                size_t n = r->n[s] - first < BLOCK ? r->n[s] - first : BLOCK;
                compose(r, s, first, n, p);
                ok = ses_pca_project(&pca, &r->math, r->block, (int64_t)n, r->rotated, e);
                for (size_t i = 0; ok && i < n; i++)
                    for (size_t k = 0; k < r->width; k++)
                        r->x[s][((first + i) * r->parts + p) * r->width + k] =
                            (float)r->rotated[i * r->width + k];
            }
        ses_pca_free(&pca);
        if (!ok) return false;
    }
    return true;
}

/* ---- probes ---- */

static bool fit(run *r, int32_t *const y[SES_PROBE_SETS], const double *c, size_t n_c, bool mdl,
                size_t classes, ses_probe_scores *out, ses_err *e)
{
    ses_probe_fit_options o = { .dev = r->host,
                                .c = c,
                                .n_c = n_c,
                                .hidden = r->a->classify.mlp,
                                .mdl = mdl,
                                .tolerance = r->a->classify.tolerance,
                                .seed = r->c->seed };
    ses_probe_set set[SES_PROBE_SETS];
    for (int s = 0; s < SES_PROBE_SETS; s++) set[s] = (ses_probe_set){ r->x[s], y[s], r->n[s] };
    ses_analysis_progress(r->c, "probes", r->done++, r->total);
    return ses_probe_fit(&o, &set[SES_PROBE_TRAIN], &set[SES_PROBE_DEV], &set[SES_PROBE_TEST],
                         r->parts * r->width, classes, out, e);
}

static bool probe_task(run *r, size_t task, bool control, ses_probe_result *out, ses_err *e)
{
    const ses_probe_task *t = &r->d->task[task];
    bool ok = list_examples(r, t, e) && build_vectors(r, e) &&
              fit(r, r->y, r->grid, r->n_grid, r->a->classify.mdl, t->classes, &out->task, e);
    if (ok && control) {
        double c = out->task.c;
        ok = fit(r, r->control, r->a->classify.mlp ? r->grid : &c, 1, false, t->classes, &out->control, e);
        out->has_control = ok;
    }
    out->done = ok;
    free_sets(r);
    return ok || ses_wrap(e, "%s", t->name);
}

/* Probes layer k of the spool into results of layer `to`. */
static bool probe_layer(run *r, size_t k, size_t to, ses_probe_result *result, bool control, ses_err *e)
{
    if (!ses_state_spool_read(r->spool, k, 0, r->d->rows, r->states, e)) return false;
    for (size_t task = 0; task < r->d->n_tasks; task++)
        if (!probe_task(r, task, control, &result[task * r->r.n_layers + to], e)) return false;
    return true;
}

size_t ses_probe_best_layer(const ses_probe_results *r, size_t task)
{
    size_t best = 0;
    const ses_probe_result *x = r->trained + task * r->n_layers;
    for (size_t l = 1; l < r->n_layers; l++)
        if (x[l].task.dev > x[best].task.dev) best = l;
    return best;
}

/* The same model with random weights: at the best layer of each task, or at all. */
static bool probe_random(run *r, const ses_model *m, ses_err *e)
{
    int64_t layers[SES_LAYER_SET_MAX];
    size_t at[SES_LAYER_SET_MAX], n = 0;
    for (size_t l = 0; l < r->r.n_layers; l++) {
        bool wanted = r->a->classify.random_all;
        for (size_t t = 0; t < r->d->n_tasks; t++) wanted |= ses_probe_best_layer(&r->r, t) == l;
        if (wanted) layers[n] = r->layers[l], at[n++] = l;
    }
    ses_model *twin = ses_model_random_twin(m, r->c->seed, e);
    bool ok = twin && collect_states(r, twin, layers, n, e);
    for (size_t k = 0; ok && k < n; k++) ok = probe_layer(r, k, at[k], r->r.random, false, e);
    ses_model_free(twin);
    return ok || ses_wrap(e, "random weights");
}

static bool run_all(run *r, const ses_model *m, ses_err *e)
{
    size_t n = r->r.n_layers, tasks = r->d->n_tasks;
    bool control = !r->a->classify.no_control;
    r->total = (int64_t)(tasks * (n * (1 + control) + (r->a->no_random             ? 0
                                                       : r->a->classify.random_all ? n
                                                                                   : 1)));
    for (size_t t = 0; t < tasks; t++)
        if (!ses_probe_baselines_compute(r->d, &r->d->task[t], &r->r.base[t], e)) return false;
    if (!collect_states(r, m, r->layers, n, e)) return false;
    if (r->a->classify.edge || r->a->classify.mix)
        return ses_probe_nets_run(&(ses_probe_nets){ .c = r->c,
                                                     .a = r->a,
                                                     .d = r->d,
                                                     .host = r->host,
                                                     .spool = r->spool,
                                                     .layers = r->layers,
                                                     .n_layers = n,
                                                     .width = r->width },
                                  e);
    for (size_t k = 0; k < n; k++)
        if (!probe_layer(r, k, k, r->r.trained, control, e))
            return ses_wrap(e, "layer %lld", (long long)r->layers[k]);
    return r->a->no_random || probe_random(r, m, e);
}

bool ses_probe_run(ses_analysis_call *c, const ses_probe_args *a, const ses_probe_data *d, ses_err *e)
{
    run r = { .c = c, .a = a, .d = d };
    ses_model *own = NULL;
    if (a->decoder) { /* the client opened the encoder alone */
        own = ses_model_open(c->model_dir, c->dev, NULL, e);
        if (!own) return false;
    }
    const ses_model *m = own ? own : c->model;
    r.width = (size_t)ses_word_states_width(m);
    bool ok = parse_grid(&r, e) && choose_layers(&r, m, e) && open_run(&r, e) && run_all(&r, m, e);
    if (ok && !a->classify.edge && !a->classify.mix) ses_probe_report(c, a, &r.r);
    close_run(&r);
    ses_model_free(own);
    return ok;
}
