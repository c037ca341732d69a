/* GloVe's weights: start, iterations, vectors, checkpoints. */
#include "glove_model.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/rng.h"
#include "base/str.h"
#include "io/safetensors_impl.h"

#include <string.h>

/* LIMIT: largest gradient component, as in the original program. */
enum { LIMIT = 100, LANES = 16, BLOCK = 1 << 13, SITE_START = 0x474c4f02, SITE_PHASES = 0x474c4f03 };
_Static_assert(BLOCK * sizeof(ses_glove_pair) <= SES_SCRATCH_BYTES, "blocks are read into scratch memory");

static int64_t row_count(const ses_glove_model *m) { return m->tiles.groups * m->tiles.rows; }

/* Values in (-0.5, 0.5) / dim, the biases too; a function of seed, rank and column. */
static void start_row(const ses_glove_model *m, int64_t rank)
{
    int64_t dim = m->o.dim, at = 2 * m->width * ses_glove_row(&m->tiles, rank);
    for (int side = 0; side < 2; side++) {
        ses_real *value = (side ? m->context : m->word) + at, bias;
        ses_rng_key key = { m->o.seed, (uint32_t)side, SITE_START };
        for (int64_t i = 0; i <= dim; i++)
            value[i] = (ses_rand_unit(key, (uint64_t)(rank * (dim + 1) + i)) - 0.5f) / (ses_real)dim;
        bias = value[dim];
        value[dim + side] = bias;
        value[dim + 1 - side] = 1;
    }
}

bool ses_glove_model_init(ses_glove_model *m, const ses_glove_tiles *tiles, const ses_glove_settings *o,
                          ses_err *e)
{
    size_t n;
    *m = (ses_glove_model){ .tiles = *tiles, .o = *o, .width = (o->dim + 2 + LANES - 1) / LANES * LANES };
    if (!ses_mul_size((size_t)row_count(m), 2 * (size_t)m->width, &n))
        return ses_fail(e, SES_ENOMEM, "too many weights");
    m->word = ses_alloc_huge(n, sizeof *m->word, e);
    m->context = ses_alloc_huge(n, sizeof *m->context, e);
    m->word_rate = ses_alloc_array((size_t)m->width, sizeof *m->word_rate, e);
    m->context_rate = ses_alloc_array((size_t)m->width, sizeof *m->context_rate, e);
    if (!m->word || !m->context || !m->word_rate || !m->context_rate) return false;
    for (int64_t i = 0; i < o->dim; i++) m->word_rate[i] = m->context_rate[i] = (ses_real)o->rate;
    m->word_rate[o->dim] = m->context_rate[o->dim + 1] = 1; /* biases, as in the original program */
    for (int64_t r = 0; r < row_count(m); r++)
        for (int64_t i = m->width; i < 2 * m->width; i++)
            m->word[2 * m->width * r + i] = m->context[2 * m->width * r + i] = 1;
    for (int64_t rank = 0; rank < tiles->words; rank++) start_row(m, rank);
    return true;
}

void ses_glove_model_free(ses_glove_model *m)
{
    void *own[] = { m->word, m->context, m->word_rate, m->context_rate };
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
    *m = (ses_glove_model){ 0 };
}

/* ---- training ---- */

typedef struct pass {
    const ses_glove *g;
    const ses_glove_pairs *pairs;
    const ses_kernels *k;
    int64_t phase;
    double *loss; /* tiles of this phase */
    ses_err err[SES_GLOVE_MAX_GROUPS];
} pass;

static void train_tile(void *ctx, int64_t g, void *scratch)
{
    pass *p = ctx;
    int64_t tile = p->phase * p->pairs->tiles.groups + g, n = p->pairs->count[tile];
    p->loss[g] = 0;
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t part = n - i < BLOCK ? n - i : BLOCK;
        if (!ses_glove_pairs_read(p->pairs, p->pairs->start[tile] + i, part, scratch, &p->err[g])) return;
        p->loss[g] += p->k->glove_steps(p->g, scratch, part);
    }
}

static bool train_phase(void *state, const ses_glove *g, const ses_glove_pairs *pairs, int64_t phase,
                        double *loss, ses_err *e)
{
    const ses_glove_threads *t = state;
    pass *p = ses_alloc(sizeof *p, e);
    bool ok = p != NULL;
    if (!ok) return false;
    p->g = g, p->pairs = pairs, p->k = t->k, p->phase = phase, p->loss = loss;
    ses_parallel_for(t->pool, pairs->tiles.groups, train_tile, p);
    for (int64_t i = 0; ok && i < pairs->tiles.groups; i++) {
        ok = p->err[i].code == SES_OK;
        if (!ok) *e = p->err[i];
    }
    ses_free(p);
    return ok;
}

ses_glove_engine ses_glove_on_threads(ses_glove_threads *t)
{
    return (ses_glove_engine){ .phase = train_phase, .state = t };
}

/* The order of the phases of an iteration: random. */
static void order_phases(const ses_glove_model *m, int64_t *order)
{
    for (int64_t i = 0; i < m->tiles.groups; i++) {
        ses_rng_key key = { m->o.seed, (uint32_t)m->iteration, SITE_PHASES };
        int64_t other = (int64_t)((uint64_t)ses_rand32(key, (uint64_t)i) * (uint64_t)(i + 1) >> 32);
        order[i] = order[other];
        order[other] = i;
    }
}

bool ses_glove_model_step(ses_glove_model *m, const ses_glove_pairs *pairs, const ses_glove_engine *engine,
                          ses_err *e)
{
    int64_t order[SES_GLOVE_MAX_GROUPS], groups = m->tiles.groups;
    double loss[SES_GLOVE_MAX_GROUPS];
    order_phases(m, order);
    ses_glove g = { m->word, m->context, m->width, m->word_rate, m->context_rate, LIMIT };
    if (!engine->phase(engine->state, &g, pairs, order[m->phases], loss, e)) return false;
    for (int64_t i = 0; i < groups; i++) m->loss_sum += loss[i];
    if (!isfinite(m->loss_sum))
        return ses_fail(e, SES_EARG, "the loss is not finite in pass %lld: give a smaller --lr",
                        (long long)m->iteration + 1);
    if (++m->phases == groups) {
        m->loss = m->loss_sum / (double)pairs->n;
        m->phases = 0, m->loss_sum = 0;
        m->iteration++;
    }
    return true;
}

void ses_glove_model_vector(const ses_glove_model *m, int64_t rank, ses_glove_output what, float *to)
{
    int64_t at = 2 * m->width * ses_glove_row(&m->tiles, rank), dim = m->o.dim;
    for (int64_t i = 0; i < dim; i++) {
        to[i] = (float)(what == SES_GLOVE_SUM ? m->word[at + i] + m->context[at + i] : m->word[at + i]);
        if (what == SES_GLOVE_BOTH) to[dim + i] = (float)m->context[at + i];
    }
}

/* ---- checkpoints ---- */

enum { N_NUMBERS = 4 };
static const char *const number[N_NUMBERS] = { "iterations", "phases", "loss_sum", "loss" };

bool ses_glove_model_save(const ses_glove_model *m, const char *run, const char *path, ses_err *e)
{
    const double x[N_NUMBERS] = { (double)m->iteration, (double)m->phases, m->loss_sum, m->loss };
    ses_safetensors_writer *w = ses_safetensors_writer_new(e);
    const int64_t dim[] = { row_count(m), 2, m->width };
    bool ok = w && ses_safetensors_writer_add(w, "word", SES_REAL, 3, dim, m->word, e) &&
              ses_safetensors_writer_add(w, "context", SES_REAL, 3, dim, m->context, e) &&
              ses_safetensors_writer_add_meta(w, "run", run, e) && ses_safetensors_writer_add_checksum(w, e);
    for (int i = 0; ok && i < N_NUMBERS; i++) {
        char text[SES_NUMBER_CHARS];
        ses_format_double(x[i], text);
        ok = ses_safetensors_writer_add_meta(w, number[i], text, e);
    }
    ok = ok && ses_safetensors_save(w, path, true, e);
    ses_safetensors_writer_free(w);
    return ok;
}

static const char *meta(const ses_safetensors *s, const char *name)
{
    const char *key, *value;
    for (size_t i = 0; ses_safetensors_meta_at(s, i, &key, &value); i++)
        if (!strcmp(key, name)) return value;
    return "";
}

static bool read_weights(const ses_glove_model *m, const ses_safetensors *s, const char *name, ses_real *to,
                         ses_err *e)
{
    const ses_tensor_entry *x = ses_safetensors_find(s, name);
    if (!x || x->dtype != SES_REAL || x->count != row_count(m) * 2 * m->width)
        return ses_fail(e, SES_EFORMAT, "tensor %s: expected %lld numbers", name,
                        (long long)(row_count(m) * 2 * m->width));
    memcpy(to, x->data, x->bytes);
    return true;
}

static bool read_state(ses_glove_model *m, const ses_safetensors *s, const char *run, ses_err *e)
{
    double x[N_NUMBERS];
    if (strcmp(meta(s, "run"), run) != 0)
        return ses_fail(e, SES_EARG,
                        "belongs to a run with other settings, another text or another processor: \"%.300s\"",
                        meta(s, "run"));
    for (int i = 0; i < N_NUMBERS; i++)
        if (!ses_parse_number(meta(s, number[i]), strlen(meta(s, number[i])), &x[i]) || !(x[i] >= 0))
            return ses_fail(e, SES_EFORMAT, "not a checkpoint of GloVe");
    if (x[0] > 1e9 || x[1] >= (double)m->tiles.groups)
        return ses_fail(e, SES_EFORMAT, "not a checkpoint of this run");
    m->iteration = (int64_t)x[0], m->phases = (int64_t)x[1], m->loss_sum = x[2], m->loss = x[3];
    return read_weights(m, s, "word", m->word, e) && read_weights(m, s, "context", m->context, e);
}

bool ses_glove_model_resume(ses_glove_model *m, const char *run, const char *path, ses_err *e)
{
    ses_safetensors *s = ses_safetensors_open(path, e);
    if (!s) return false;
    bool ok = read_state(m, s, run, e) || ses_wrap(e, "%s", path);
    ses_safetensors_free(s);
    return ok;
}
