/* GloVe on a device. */
#include "glove_device.h"

#include "base/alloc.h"
#include "tensor/device_impl.h"

enum { BLOCK = 1 << 20 }; /* pairs that are copied at a time */

struct ses_glove_device {
    ses_device *d;
    ses_real *word, *context, *word_rate, *context_rate;
    int64_t *start, *count; /* [groups^2] */
    double *loss;           /* [groups] */
    ses_glove_pair *pair;   /* all pairs, or the pairs of a phase */
    bool all;
    ses_glove_pair *block; /* in host memory */
};

static void *put(ses_device *d, const void *from, size_t n, size_t size, ses_err *e)
{
    void *to = d->mem->alloc(d, n * size, e);
    if (to && from) d->mem->upload(d, to, from, n * size);
    return to;
}

static size_t weight_count(const ses_glove_model *m)
{
    return (size_t)(m->tiles.groups * m->tiles.rows * 2 * m->width);
}

/* Part of the file that has the pairs of n phases: tiles are in order, with gaps between them. */
static int64_t phase_pairs(const ses_glove_pairs *p, int64_t phase, int64_t phases, int64_t *from)
{
    int64_t groups = p->tiles.groups, end = *from = p->start[phase * groups];
    for (int64_t t = phase * groups; t < (phase + phases) * groups; t++)
        if (p->count[t]) end = p->start[t] + p->count[t];
    return end - *from;
}

static bool copy_pairs(ses_glove_device *g, const ses_glove_pairs *pairs, int64_t from, int64_t n, ses_err *e)
{
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t part = n - i < BLOCK ? n - i : BLOCK;
        if (!ses_glove_pairs_read(pairs, from + i, part, g->block, e)) return false;
        g->d->mem->upload(g->d, g->pair + i, g->block, (size_t)part * sizeof *g->block);
    }
    return true;
}

static bool put_pairs(ses_glove_device *g, const ses_glove_pairs *pairs, ses_err *e)
{
    int64_t from, most = 1, groups = pairs->tiles.groups, all = phase_pairs(pairs, 0, groups, &from);
    ses_err ignored = { 0 };
    g->block = ses_alloc_array(BLOCK, sizeof *g->block, e);
    if (!g->block) return false;
    g->pair = put(g->d, NULL, (size_t)all, sizeof *g->pair, &ignored);
    g->all = g->pair != NULL;
    if (g->all) return copy_pairs(g, pairs, from, all, e);
    for (int64_t p = 0; p < groups; p++) {
        int64_t n = phase_pairs(pairs, p, 1, &from);
        if (n > most) most = n;
    }
    return (g->pair = put(g->d, NULL, (size_t)most, sizeof *g->pair, e)) != NULL;
}

ses_glove_device *ses_glove_device_new(ses_device *d, const ses_glove_model *m, const ses_glove_pairs *pairs,
                                       ses_err *e)
{
    ses_glove_device *g = ses_alloc(sizeof *g, e);
    size_t groups = (size_t)m->tiles.groups, width = (size_t)m->width, n = weight_count(m);
    if (!g) return NULL;
    g->d = d;
    bool ok = (g->word = put(d, m->word, n, sizeof *m->word, e)) &&
              (g->context = put(d, m->context, n, sizeof *m->context, e)) &&
              (g->word_rate = put(d, m->word_rate, width, sizeof *m->word_rate, e)) &&
              (g->context_rate = put(d, m->context_rate, width, sizeof *m->context_rate, e)) &&
              (g->start = put(d, pairs->start, groups * groups, sizeof *pairs->start, e)) &&
              (g->count = put(d, pairs->count, groups * groups, sizeof *pairs->count, e)) &&
              (g->loss = put(d, NULL, groups, sizeof *g->loss, e)) && put_pairs(g, pairs, e);
    if (ok) return g;
    ses_wrap(e, "weights and pairs on the device");
    ses_glove_device_free(g);
    return NULL;
}

void ses_glove_device_free(ses_glove_device *g)
{
    if (!g) return;
    void *own[] = {
        g->word, g->context, g->word_rate, g->context_rate, g->start, g->count, g->loss, g->pair
    };
    for (size_t i = 0; i < SES_LEN(own); i++)
        if (own[i]) g->d->mem->free(g->d, own[i]);
    ses_free(g->block);
    ses_free(g);
}

static bool train_phase(void *state, const ses_glove *model, const ses_glove_pairs *pairs, int64_t phase,
                        double *loss, ses_err *e)
{
    ses_glove_device *g = state;
    int64_t n, groups = pairs->tiles.groups, at = phase * groups, from = pairs->start[0];
    ses_glove here = *model;
    if (!g->all) {
        n = phase_pairs(pairs, phase, 1, &from);
        if (!copy_pairs(g, pairs, from, n, e)) return false;
    }
    here.word = g->word, here.context = g->context;
    here.word_rate = g->word_rate, here.context_rate = g->context_rate;
    g->d->k_f32.glove_tiles(&g->d->exec, &here, g->pair, from, g->start + at, g->count + at, groups, g->loss);
    g->d->mem->download(g->d, loss, g->loss, (size_t)groups * sizeof *loss);
    return !g->d->mem->ok || g->d->mem->ok(g->d, e);
}

static bool fetch(void *state, ses_glove_model *m, ses_err *e)
{
    ses_glove_device *g = state;
    size_t bytes = weight_count(m) * sizeof *m->word;
    g->d->mem->download(g->d, m->word, g->word, bytes);
    g->d->mem->download(g->d, m->context, g->context, bytes);
    return !g->d->mem->ok || g->d->mem->ok(g->d, e);
}

ses_glove_engine ses_glove_on_device(ses_glove_device *g)
{
    return (ses_glove_engine){ .phase = train_phase, .fetch = fetch, .state = g };
}
