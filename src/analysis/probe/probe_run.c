/* Probes by layer: collects the states, builds the vectors of each task and fits the probes. */
#include "probe_run.h"

#include "analysis/state_spool.h"
#include "base/alloc.h"
#include "math/projection/pca.h"
#include "probe_nets.h"
#include "probe_setup.h"
#include "probe_vectors.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SPOOL_BYTES = 1 << 30, MAX_C = 16, PARTS = 3, ROTATION_ROWS = 16384, BLOCK = 8192, CHUNK = 64 };

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
    float *states;               /* [rows, width] of one layer */
    ses_probe_examples examples; /* present task */
    float *x[SES_PROBE_SETS];    /* [n, parts * width], rotated */
    size_t cap_x[SES_PROBE_SETS];
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

static bool reserve_blocks(run *r, ses_err *e)
{
    r->block = ses_alloc_array(ROTATION_ROWS * r->width, sizeof *r->block, e);
    r->rotated = ses_alloc_array(BLOCK * r->width, sizeof *r->rotated, e);
    return r->block && r->rotated;
}

static bool open_run(run *r, ses_err *e)
{
    r->width = (size_t)ses_word_states_width(r->c->model, r->a->decoder);
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
    r->r.weight = ses_alloc_array(tasks * r->r.n_layers, sizeof *r->r.weight, e);
    r->r.base = ses_alloc_array(tasks, sizeof *r->r.base, e);
    r->r.vectors = ses_alloc_array(tasks, sizeof *r->r.vectors, e);
    r->states = ses_alloc_huge(r->d->rows * r->width, sizeof *r->states, e);
    return r->r.trained && r->r.random && r->r.weight && r->r.base && r->r.vectors && r->states &&
           reserve_blocks(r, e);
}

static void free_vectors(run *r)
{
    ses_probe_examples_free(&r->examples);
    for (int s = 0; s < SES_PROBE_SETS; s++) ses_free(r->x[s]);
    ses_free(r->block);
    ses_free(r->rotated);
}

static void close_run(run *r)
{
    free_vectors(r);
    ses_state_spool_free(r->spool);
    ses_free(r->r.vectors);
    ses_free(r->r.trained);
    ses_free(r->r.random);
    ses_free(r->r.weight);
    ses_free(r->r.base);
    ses_free(r->states);
    if (r->own_host) ses_device_free(r->host);
}

/* ---- states ---- */

static bool take(void *ctx, const ses_state_batch *b, ses_err *e)
{
    run *r = ctx;
    if (!ses_state_spool_add(r->spool, b->x, b->rows, e)) return false;
    r->r.windowed += b->windowed;
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
    r->r.windowed = 0;
    r->spool = ses_state_spool_new(n, r->width, SPOOL_BYTES, r->c->tmp_dir, e);
    return r->spool && ses_word_states_run(m, r->c->tokenizer, r->d->input, r->d->n_inputs, &o, take, r, e);
}

/* ---- vectors of a task ---- */

static bool is_net(const run *r) { return r->a->classify.edge || r->a->classify.mix; }

/* Lists the examples of a task. */
static bool list_examples(run *r, const ses_probe_task *t, ses_err *e)
{
    size_t max = (size_t)r->a->classify.max_train, other = is_net(r) ? SES_PROBE_NETS_EVAL : 0;
    if (!max && is_net(r)) max = SES_PROBE_NETS_TRAIN;
    ses_probe_examples_free(&r->examples);
    return ses_probe_examples_new(&r->examples, r->d, t, max, other, r->c->seed, e);
}

/* Space for the vectors of a task; the same for all layers. */
static bool reserve_vectors(run *r, ses_err *e)
{
    for (int s = 0; s < SES_PROBE_SETS; s++) {
        size_t n = r->examples.n[s] * r->parts * r->width;
        if (n <= r->cap_x[s]) continue;
        ses_free(r->x[s]);
        r->cap_x[s] = 0;
        if (!(r->x[s] = ses_alloc_huge(n, sizeof *r->x[s], e))) return false;
        r->cap_x[s] = n;
    }
    return true;
}

/* Part p of the vectors of examples first .. first + n - 1 of a set: h_row, h_other or their product. */
typedef struct rows {
    run *r;
    int set;
    size_t first, n, p;
} rows;

/* Writes rows of a chunk to r->block. */
static void compose_chunk(void *ctx, int64_t chunk, void *scratch)
{
    const rows *x = ctx;
    const run *r = x->r;
    size_t begin = (size_t)chunk * CHUNK, end = begin + CHUNK < x->n ? begin + CHUNK : x->n;
    (void)scratch;
    for (size_t i = begin; i < end; i++) {
        const ses_probe_example *q = &r->d->example[r->examples.at[x->set][x->first + i]];
        const float *a = r->states + q->row * r->width, *b = r->states + q->other * r->width;
        ses_real *to = r->block + i * r->width;
        for (size_t k = 0; k < r->width; k++)
            to[k] = (ses_real)(x->p == 0 ? a[k] : x->p == 1 ? b[k] : a[k] * b[k]);
    }
}

/* Copies the rotated rows of a chunk to r->x. */
static void store_chunk(void *ctx, int64_t chunk, void *scratch)
{
    const rows *x = ctx;
    const run *r = x->r;
    size_t begin = (size_t)chunk * CHUNK, end = begin + CHUNK < x->n ? begin + CHUNK : x->n;
    (void)scratch;
    for (size_t i = begin; i < end; i++) {
        float *to = r->x[x->set] + ((x->first + i) * r->parts + x->p) * r->width;
        for (size_t k = 0; k < r->width; k++) to[k] = (float)r->rotated[i * r->width + k];
    }
}

static void for_rows(rows *x, ses_chunk_fn *fn)
{
    ses_parallel_for(x->r->host->exec.pool, (int64_t)((x->n + CHUNK - 1) / CHUNK), fn, x);
}

/* Builds the vectors of all sets. Each part is rotated to its principal components, which changes neither the
 * objective nor the predictions of softmax regression, and makes it converge in fewer iterations. */
static bool build_vectors(run *r, ses_err *e)
{
    int64_t width = (int64_t)r->width;
    size_t sample =
        r->examples.n[SES_PROBE_TRAIN] < ROTATION_ROWS ? r->examples.n[SES_PROBE_TRAIN] : ROTATION_ROWS;
    for (size_t p = 0; p < r->parts; p++) {
        ses_pca pca;
        for_rows(&(rows){ r, SES_PROBE_TRAIN, 0, sample, p }, compose_chunk);
        if (!ses_pca_fit(&pca, &r->math, r->block, (int64_t)sample, width, width, e)) return false;
        bool ok = true;
        for (int s = 0; ok && s < SES_PROBE_SETS; s++)
            for (size_t first = 0; ok && first < r->examples.n[s]; first += BLOCK) {
                size_t n = r->examples.n[s] - first < BLOCK ? r->examples.n[s] - first : BLOCK;
                rows x = { r, s, first, n, p };
                for_rows(&x, compose_chunk);
                ok = ses_pca_project(&pca, &r->math, r->block, (int64_t)n, r->rotated, e);
                if (ok) for_rows(&x, store_chunk);
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
    for (int s = 0; s < SES_PROBE_SETS; s++) set[s] = (ses_probe_set){ r->x[s], y[s], r->examples.n[s] };
    ses_analysis_progress(r->c, "probes", r->done++, r->total);
    return ses_probe_fit(&o, &set[SES_PROBE_TRAIN], &set[SES_PROBE_DEV], &set[SES_PROBE_TEST],
                         r->parts * r->width, classes, out, e);
}

static bool probe_task(run *r, size_t task, bool control, ses_probe_result *out, ses_err *e)
{
    const ses_probe_task *t = &r->d->task[task];
    bool ok = list_examples(r, t, e) && reserve_vectors(r, e) && build_vectors(r, e) &&
              fit(r, r->examples.y, r->grid, r->n_grid, r->a->classify.mdl, t->classes, &out->task, e);
    if (ok && control) {
        double c = out->task.c;
        ok = fit(r, r->examples.control, r->a->classify.mlp ? r->grid : &c, 1, false, t->classes,
                 &out->control, e);
        out->has_control = ok;
    }
    out->done = ok;
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

/* Static word vectors: the same probes on vectors of another width. */
static bool probe_vectors(run *r, ses_err *e)
{
    ses_probe_vectors v = { 0 };
    run s = { .c = r->c, .a = r->a, .d = r->d, .host = r->host, .math = r->math, .parts = r->parts };
    memcpy(s.grid, r->grid, sizeof s.grid);
    s.n_grid = r->n_grid, s.done = r->done, s.total = r->total;
    bool ok = ses_probe_vectors_read(&v, r->a->classify.vectors, r->d, e);
    s.width = v.width, s.states = v.x;
    ok = ok && reserve_blocks(&s, e);
    for (size_t t = 0; ok && t < r->d->n_tasks; t++)
        ok = probe_task(&s, t, !r->a->classify.no_control, &r->r.vectors[t], e);
    if (v.duplicates)
        ses_report_note(r->c->report, "%s: %lld word%s occurred again; the first vector of a word counts.",
                        r->a->classify.vectors, (long long)v.duplicates, v.duplicates == 1 ? "" : "s");
    r->done = s.done, r->r.words = v.words, r->r.unknown = v.unknown;
    free_vectors(&s);
    ses_probe_vectors_free(&v);
    return ok;
}

static void show_net(void *ctx)
{
    run *r = ctx;
    ses_analysis_progress(r->c, "probes", r->done++, r->total);
}

/* Edge probes or mixes of a task, on the n layers of the spool. */
static bool probe_nets(run *r, size_t task, size_t n, const bool *wanted, bool trained, ses_probe_result *out,
                       double *weight, ses_err *e)
{
    if (!list_examples(r, &r->d->task[task], e)) return false;
    ses_probe_nets nets = { .a = r->a,
                            .d = r->d,
                            .task = &r->d->task[task],
                            .examples = &r->examples,
                            .host = r->host,
                            .spool = r->spool,
                            .n_layers = n,
                            .width = r->width,
                            .seed = r->c->seed,
                            .control = trained && !r->a->classify.no_control,
                            .mdl = trained && r->a->classify.mdl,
                            .progress = show_net,
                            .ctx = r };
    return ses_probe_nets_run(&nets, wanted, out, weight, e);
}

static bool probe_trained(run *r, ses_err *e)
{
    size_t n = r->r.n_layers;
    for (size_t t = 0; is_net(r) && t < r->d->n_tasks; t++)
        if (!probe_nets(r, t, n, NULL, true, r->r.trained + t * n, r->r.weight + t * n, e)) return false;
    for (size_t k = 0; !is_net(r) && k < n; k++)
        if (!probe_layer(r, k, k, r->r.trained, !r->a->classify.no_control, e))
            return ses_wrap(e, "layer %lld", (long long)r->layers[k]);
    return true;
}

size_t ses_probe_best_layer(const ses_probe_results *r, size_t task)
{
    size_t best = r->added_0;
    const ses_probe_result *x = r->trained + task * r->n_layers;
    for (size_t l = best + 1; l < r->n_layers; l++)
        if (x[l].task.dev > x[best].task.dev) best = l;
    return best;
}

/* Whether random weights are probed at a layer: at the best layer of a task, at the mix of all layers, or
 * everywhere. */
static bool random_at(const run *r, size_t task, size_t layer)
{
    if (r->a->classify.random_all) return true;
    return layer == (r->a->classify.mix ? r->r.n_layers - 1 : ses_probe_best_layer(&r->r, task));
}

static bool random_nets(run *r, ses_err *e)
{
    size_t n = r->r.n_layers;
    for (size_t t = 0; t < r->d->n_tasks; t++) {
        bool wanted[SES_LAYER_SET_MAX];
        for (size_t l = 0; l < n; l++) wanted[l] = random_at(r, t, l);
        if (!probe_nets(r, t, n, wanted, false, r->r.random + t * n, NULL, e)) return false;
    }
    return true;
}

/* The same model with random weights. */
static bool probe_random(run *r, const ses_model *m, ses_err *e)
{
    int64_t layers[SES_LAYER_SET_MAX];
    size_t at[SES_LAYER_SET_MAX], n = 0;
    for (size_t l = 0; l < r->r.n_layers; l++) {
        bool wanted = is_net(r); /* their results are indexed by the layers of the spool */
        for (size_t t = 0; t < r->d->n_tasks; t++) wanted |= random_at(r, t, l);
        if (wanted) layers[n] = r->layers[l], at[n++] = l;
    }
    ses_model *twin = ses_model_random_twin(m, r->c->seed, e);
    bool ok = twin && collect_states(r, twin, layers, n, e) && (!is_net(r) || random_nets(r, e));
    for (size_t k = 0; ok && !is_net(r) && k < n; k++) ok = probe_layer(r, k, at[k], r->r.random, false, e);
    ses_model_free(twin);
    return ok || ses_wrap(e, "random weights");
}

static bool compute_baselines(run *r, ses_err *e)
{
    for (size_t t = 0; t < r->d->n_tasks; t++)
        if (!list_examples(r, &r->d->task[t], e) ||
            !ses_probe_baselines_compute(r->d, &r->d->task[t], &r->examples, &r->r.base[t], e))
            return false;
    return true;
}

static bool run_all(run *r, ses_err *e)
{
    size_t n = r->r.n_layers, random = r->a->no_random ? 0 : r->a->classify.random_all ? n : 1;
    bool vectors = r->a->classify.vectors != NULL;
    r->total = (int64_t)(r->d->n_tasks * ((n + vectors) * (2 - r->a->classify.no_control) + random));
    return compute_baselines(r, e) && (!vectors || probe_vectors(r, e)) &&
           collect_states(r, r->c->model, r->layers, n, e) && probe_trained(r, e) &&
           (r->a->no_random || probe_random(r, r->c->model, e));
}

static bool check_mix(const run *r, ses_err *e)
{
    return !r->a->classify.mix || r->r.n_layers > 1 ||
           ses_fail(e, SES_EUSAGE, "--mix: one layer, expected two or more");
}

bool ses_probe_run(ses_analysis_call *c, const ses_probe_args *a, const ses_probe_data *d, ses_err *e)
{
    run r = { .c = c, .a = a, .d = d };
    r.r.layers = r.layers;
    bool ok = parse_grid(&r, e) &&
              ses_probe_choose_layers(c, a->decoder, r.layers, &r.r.n_layers, &r.r.added_0, e) &&
              check_mix(&r, e) && open_run(&r, e) && run_all(&r, e);
    if (ok) ses_probe_report(c, a, &r.r);
    close_run(&r);
    return ok;
}
