/* The origin of a loss or gradient that is not finite: the parameters that contain such numbers, and the
 * first layer that computes one. The layer is found by repeating the batches, with a look at every output and
 * every gradient; ordinary steps do not pay for it. */
#include "base/alloc.h"
#include "model/model_desc.h"
#include "op/op.h"
#include "trainer_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- parameters ---- */

/* Is a weight or gradient of parameter i of store m not finite, among the elements of this rank? */
static bool is_not_finite(const ses_trainer *t, size_t m, size_t i, bool gradients)
{
    const ses_tensor *w = ses_store_at(t->store[m], i)->tensor;
    const ses_shards *own = t->lanes ? ses_lanes_shards(t->lanes, m) : NULL;
    const ses_real *x = gradients ? w->grad : ses_master_data(w);
    int64_t at = ses_store_flat_offset(t->store[m], i), from = 0, to = ses_count(w);
    if (own && at >= 0) {
        if (ses_shards_begin(own) > at) from = ses_shards_begin(own) - at;
        if (ses_shards_end(own) < at + to) to = ses_shards_end(own) - at;
    } else if (own && gradients) { /* another store's */
        return false;
    }
    return x && to > from && !isfinite(t->dev->k_f32.sum_squares(&t->dev->exec, x + from, to - from));
}

/* The last such parameter on all ranks, 1 + i + m * 2^32; 0: none, -1: failed. In the backward pass a NaN
 * spreads to everything below. */
static int64_t find_not_finite(const ses_trainer *t, bool gradients, ses_err *e)
{
    int64_t mine = 0, last = 0;
    for (size_t m = t->n_stores; !mine && m-- > 0;)
        for (size_t i = ses_store_count(t->store[m]); !mine && i-- > 0;)
            if (is_not_finite(t, m, i, gradients)) mine = 1 + (int64_t)i + ((int64_t)m << 32);
    int64_t *all = ses_alloc_array((size_t)t->ranks, sizeof *all, e);
    if (!all || !ses_comm_allgather_equal(t->o.comm, &mine, sizeof mine, all, e)) last = -1;
    for (int r = 0; last >= 0 && r < t->ranks; r++)
        if (all[r] > last) last = all[r];
    ses_free(all);
    return last;
}

enum { NAME = 256 };

/* The name of parameter i of store m in its files. */
static void name_of(const ses_trainer *t, size_t m, size_t i, char name[NAME])
{
    if (m >= t->n_models || !ses_model_tensor_name(t->model[m], i, name, NAME))
        snprintf(name, NAME, "%s", ses_store_at(t->store[m], i)->name);
}

/* ": NaN or infinity in the weights of X"; "": none. */
static bool describe_parameter(const ses_trainer *t, char *text, size_t size, ses_err *e)
{
    *text = '\0';
    for (int gradients = 0; gradients < 2; gradients++) {
        char name[NAME];
        int64_t last = find_not_finite(t, gradients, e);
        if (last < 0) return false;
        if (!last) continue;
        name_of(t, (size_t)(last >> 32), (size_t)(last & UINT32_MAX) - 1, name);
        snprintf(text, size, ": NaN or infinity in the %s of \"%s\"", gradients ? "gradient" : "weights",
                 name);
        return true;
    }
    return true;
}

/* ---- layers ---- */

/* The result of a rank; the same size on all ranks. */
typedef struct finding {
    int64_t batch; /* -1: nothing */
    char text[2 * NAME + 128];
} finding;

typedef struct search {
    const ses_trainer *t;
    ses_real *value; /* scratch */
    int64_t n_values;
    int64_t batch;
    const ses_tensor *last; /* the parameter that was used last in the forward pass */
    finding found;
    ses_err error;
} search;

static bool finite(search *s, const ses_tensor *x)
{
    int64_t n = ses_count(x);
    if (n > s->n_values) {
        ses_free(s->value);
        s->value = ses_alloc_array((size_t)n, sizeof *s->value, &s->error);
        s->n_values = s->value ? n : 0;
    }
    if (s->error.code || !ses_device_read(s->t->dev, x, 0, n, s->value, &s->error)) return true;
    for (int64_t i = 0; i < n; i++)
        if (!isfinite((double)s->value[i])) return false;
    return true;
}

/* The gradient as a tensor: a leaf's is f32. */
static ses_tensor gradient_of(const ses_tensor *x)
{
    ses_tensor g = *x;
    g.data = x->grad;
    if (x->master) g.dtype = SES_REAL, g.master = NULL;
    return g;
}

static bool find_parameter(const search *s, const ses_tensor *x, size_t *m, size_t *i)
{
    for (*m = 0; *m < s->t->n_stores; ++*m)
        for (*i = 0; *i < ses_store_count(s->t->store[*m]); ++*i)
            if (ses_store_at(s->t->store[*m], *i)->tensor == x) return true;
    return false;
}

/* "bert.encoder.layer.3.output.dense.weight" becomes "bert.encoder.layer.3", "pooler.dense.weight"
 * "pooler.dense". */
static void cut_to_layer(char *name)
{
    for (char *p = strchr(name, '.'); p; p = strchr(p + 1, '.')) {
        size_t digits = strspn(p + 1, "0123456789");
        if (digits && (p[1 + digits] == '.' || !p[1 + digits])) {
            p[1 + digits] = '\0';
            return;
        }
    }
    char *end = strrchr(name, '.');
    if (end && (!strcmp(end, ".weight") || !strcmp(end, ".bias"))) *end = '\0';
}

/* A parameter that node n reads, one that is not finite if there is one; NULL: none. */
static const ses_tensor *parameter_of(search *s, const ses_node *n)
{
    const ses_tensor *first = NULL;
    size_t m, at;
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i] || !find_parameter(s, n->in[i], &m, &at)) continue;
        if (!finite(s, n->in[i])) return n->in[i];
        if (!first) first = n->in[i];
    }
    return first;
}

/* x: the parameter of the node, or the last one before it; NULL: none. */
static void report(search *s, const ses_node *n, const ses_tensor *x, bool gradient)
{
    char parameter[NAME], layer[NAME];
    size_t m, i;
    finding *f = &s->found;
    f->batch = s->batch;
    if (!x || !find_parameter(s, x, &m, &i)) {
        snprintf(f->text, sizeof f->text, "; it arises first in the %s of the op %s",
                 gradient ? "gradient" : "output", n->op->name);
        return;
    }
    name_of(s->t, m, i, parameter);
    snprintf(layer, sizeof layer, "%s", parameter);
    cut_to_layer(layer);
    bool own = false;
    for (int k = 0; k < n->n_in; k++) own |= n->in[k] == x;
    snprintf(f->text, sizeof f->text, "; it arises first in the %s of layer \"%s\" (%s %s \"%s\")",
             gradient ? "gradient" : "output", layer, n->op->name, own ? "with" : "after", parameter);
}

static void computed(void *ctx, const ses_node *n)
{
    search *s = ctx;
    if (s->found.batch >= 0 || s->error.code) return;
    const ses_tensor *own = parameter_of(s, n);
    if (own) s->last = own;
    bool real = n->out && n->out->data && n->out->dtype != SES_I32;
    if (real && !finite(s, n->out)) report(s, n, s->last, false);
}

static void differentiated(void *ctx, const ses_node *n)
{
    search *s = ctx;
    bool bad = false;
    if (s->found.batch >= 0 || s->error.code) return;
    for (int i = 0; i < n->n_in && !bad; i++) {
        if (!n->in[i] || !n->in[i]->has_grad || !n->in[i]->grad) continue;
        ses_tensor g = gradient_of(n->in[i]);
        bad = !finite(s, &g);
    }
    const ses_tensor *x = NULL;
    for (const ses_node *p = n; bad && p && !x; p = p->prev) x = parameter_of(s, p);
    if (bad) report(s, n, x, true);
}

/* Is the batch one of this rank's? */
static bool is_own(const ses_trainer *t, int64_t index)
{
    if (!t->lanes) return true;
    ses_lane_node own = ses_lanes_own(t->lanes);
    int64_t lane = (index - t->at.index) / t->o.accumulate;
    return lane >= own.begin && lane < own.end;
}

/* Repeats the batches of this rank until one has an output or gradient that is not finite. */
static void repeat(ses_trainer *t, ses_batch_range batches, search *s)
{
    const ses_tape_watch watch = { .ctx = s, .computed = computed, .differentiated = differentiated };
    for (int64_t i = batches.begin; i < batches.end && s->found.batch < 0 && !s->error.code; i++) {
        ses_batch_run r = { .index = i,
                            .number = t->at.batches + i - t->at.index,
                            .is_first = true,
                            .watch = &watch,
                            .next_epoch = -1 };
        ses_batch_row row;
        s->batch = i, s->last = NULL;
        if (is_own(t, i) && !ses_trainer_run_batch(t, &r, &row, &s->error)) return;
    }
}

/* The finding of the first batch on any rank. A repetition that fails finds nothing: the first error
 * counts. */
static bool describe_layer(ses_trainer *t, ses_batch_range batches, finding *first, ses_err *e)
{
    search s = { .t = t, .found.batch = -1 };
    repeat(t, batches, &s);
    ses_free(s.value);
    finding *all = ses_alloc_array((size_t)t->ranks, sizeof *all, e);
    bool ok = all && ses_comm_allgather_equal(t->o.comm, &s.found, sizeof s.found, all, e);
    *first = (finding){ .batch = -1 };
    for (int r = 0; ok && r < t->ranks; r++)
        if (all[r].batch >= 0 && (first->batch < 0 || all[r].batch < first->batch)) *first = all[r];
    ses_free(all);
    return ok;
}

bool ses_trainer_fail_not_finite(ses_trainer *t, const char *quantity, double value, ses_batch_range batches,
                                 ses_err *e)
{
    char parameter[NAME + 64];
    finding layer;
    return describe_parameter(t, parameter, sizeof parameter, e) && describe_layer(t, batches, &layer, e) &&
           ses_fail(e, SES_EARG, "the %s is %g%s%s", quantity, value, parameter, layer.text);
}
