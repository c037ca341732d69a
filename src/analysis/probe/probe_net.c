/* Networks on spans of words, on the ops and optimizers of the engine. */
#include "probe_net.h"

#include "probe_examples.h"
#include "probe_fit.h"
#include "probe_mlp.h"

#include "base/alloc.h"
#include "sesame/unstable/ops.h"
#include "sesame/unstable/optim.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SITE_ORDER = 0x65646765, MAX_LAYERS = 256 };

typedef struct net {
    const ses_probe_net_options *o;
    ses_store *store;
    ses_tensor *mix; /* [1, layers]; NULL: one layer */
    ses_tensor *project[SES_PROBE_NET_MAX_SPANS], *project_bias[SES_PROBE_NET_MAX_SPANS];
    ses_tensor *query[SES_PROBE_NET_MAX_SPANS]; /* [1, units] */
    ses_tensor *up, *up_bias, *down, *down_bias;
    ses_tape *tape;
    ses_tape_options mode;
    ses_real *x; /* rows of a batch in one layer */
    size_t cap_x;
    int32_t *cu, *zeros; /* [batch + 1] */
    ses_real *target;    /* [batch, classes] */
    int32_t *label;      /* [batch] */
    int32_t *order;      /* [n] */
    ses_real *best, *out;
    bool *seen; /* [classes]: labels of the training data */
    size_t max_batch;
} net;

ses_probe_net_options ses_probe_net_defaults(ses_device *dev, size_t layers, size_t width, size_t classes,
                                             size_t spans, bool edge)
{
    return (ses_probe_net_options){ .dev = dev,
                                    .layers = layers,
                                    .width = width,
                                    .classes = classes,
                                    .spans = spans,
                                    .edge = edge,
                                    .units = 256,
                                    .dropout = edge ? 0.3 : 0,
                                    .rate = 1e-3,
                                    .batch = 64,
                                    .epochs = 20,
                                    .patience = 2 };
}

static ses_tensor *param(net *m, const char *name, int64_t rows, int64_t cols, ses_init init)
{
    return ses_store_add(m->store, name, (int64_t[SES_MAX_DIM]){ rows, cols }, init);
}

static bool open_net(net *m, size_t n, ses_err *e)
{
    const ses_probe_net_options *o = m->o;
    int64_t width = (int64_t)o->width, units = o->units ? o->units : 256, spans = (int64_t)o->spans;
    m->store = ses_store_new(o->dev, e);
    if (!m->store) return false;
    if (o->layers > 1) m->mix = param(m, "mix", 1, (int64_t)o->layers, SES_INIT_ZERO);
    for (size_t s = 0; o->edge && s < o->spans; s++) {
        char name[48];
        snprintf(name, sizeof name, "project.%zu.weight", s);
        m->project[s] = param(m, name, units, width, SES_INIT_FAN_IN);
        snprintf(name, sizeof name, "project.%zu.bias", s);
        m->project_bias[s] = param(m, name, units, 0, SES_INIT_ZERO);
        snprintf(name, sizeof name, "query.%zu", s);
        m->query[s] = param(m, name, 1, units, SES_INIT_FAN_IN);
    }
    if (o->edge) {
        m->up = param(m, "up.weight", units, spans * units, SES_INIT_FAN_IN);
        m->up_bias = param(m, "up.bias", units, 0, SES_INIT_ZERO);
    }
    m->down = param(m, "down.weight", (int64_t)o->classes, o->edge ? units : spans * width, SES_INIT_FAN_IN);
    m->down_bias = param(m, "down.bias", (int64_t)o->classes, 0, SES_INIT_ZERO);
    if (!ses_store_ok(m->store, e) || !ses_store_alloc_trainable(m->store, e)) return false;
    ses_store_init(m->store, 0.02, o->seed);
    if (o->set_values) o->set_values(o->ctx, m->store);
    m->max_batch = o->batch > 1024 ? o->batch : 1024;
    m->tape = ses_tape_new(o->dev, NULL, e);
    m->cu = ses_alloc_array(2 * m->max_batch + 1, sizeof *m->cu, e);
    m->target = ses_alloc_array(2 * m->max_batch * o->classes, sizeof *m->target, e);
    m->label = ses_alloc_array(m->max_batch, sizeof *m->label, e);
    m->order = ses_alloc_array(n + 1, sizeof *m->order, e);
    m->best = ses_alloc_array((size_t)ses_store_element_count(m->store), sizeof *m->best, e);
    m->seen = ses_alloc_array(o->classes, sizeof *m->seen, e);
    if (!m->seen || !m->tape || !m->cu || !m->target || !m->label || !m->order || !m->best) return false;
    m->zeros = m->cu + m->max_batch + 1, m->out = m->target + m->max_batch * o->classes;
    return true;
}

static void close_net(net *m)
{
    ses_tape_free(m->tape);
    ses_store_free(m->store);
    ses_free(m->x), ses_free(m->cu), ses_free(m->target), ses_free(m->label), ses_free(m->order);
    ses_free(m->best), ses_free(m->seen);
}

/* ---- forward ---- */

/* The words of span s of the examples at[n], mixed over layers: [rows, width]; sets m->cu. */
static ses_tensor *span_words(net *m, const ses_probe_net_set *set, const int32_t *at, size_t n, size_t s)
{
    size_t rows = 0, width = m->o->width;
    m->cu[0] = 0;
    for (size_t i = 0; i < n; i++) m->cu[i + 1] = (int32_t)(rows += set->length ? set->length[at[i]] : 1);
    if (!ses_array_reserve(&m->x, &m->cap_x, rows * width, sizeof *m->x, NULL)) {
        ses_tape_fail(m->tape, SES_ENOMEM, "%zu rows of a batch", rows);
        return NULL;
    }
    ses_tensor *mixed = NULL, *weight = m->mix ? ses_softmax(m->tape, m->mix) : NULL;
    for (size_t l = 0; l < m->o->layers; l++) {
        for (size_t i = 0; i < n; i++) {
            size_t count = (size_t)(m->cu[i + 1] - m->cu[i]) * width;
            const float *from = set->x[l] + set->begin[s][at[i]] * width;
            for (size_t k = 0; k < count; k++) m->x[(size_t)m->cu[i] * width + k] = (ses_real)from[k];
        }
        ses_tensor *x =
            ses_tape_input(m->tape, m->x, (int64_t[SES_MAX_DIM]){ (int64_t)rows, (int64_t)width });
        mixed = weight ? ses_add_weighted(m->tape, mixed, x, weight, (int64_t)l) : x;
    }
    return mixed;
}

/* softmax(u . p) p over the words of each span, as attention with one query. */
static ses_tensor *pool_span(net *m, ses_tensor *words, size_t n, size_t s)
{
    ses_tape *t = m->tape;
    int64_t longest = 1;
    int32_t *one = m->zeros; /* first zeros, then 0, 1, 2, ... */
    for (size_t i = 0; i < n; i++)
        if (m->cu[i + 1] - m->cu[i] > longest) longest = m->cu[i + 1] - m->cu[i];
    ses_tensor *p = ses_linear(t, words, m->project[s], m->project_bias[s], SES_ACT_NONE, SES_OUT_IN);
    for (size_t i = 0; i < n; i++) one[i] = 0;
    ses_tensor *query = ses_gather(t, m->query[s], ses_tape_ints(t, one, (int64_t)n));
    ses_tensor *keys = ses_tape_ints(t, m->cu, (int64_t)n + 1);
    for (size_t i = 0; i < n; i++) m->cu[i + 1] = (int32_t)i + 1;
    ses_attention_inputs in = { .q = query, .k = p, .v = p, .cu_seqlens_k = keys };
    in.cu_seqlens_q = ses_tape_ints(t, m->cu, (int64_t)n + 1);
    ses_attention_options o = { .heads = 1, .max_seqlen_q = 1, .max_seqlen_k = longest, .scale = 1 };
    return ses_attention(t, &in, &o, NULL);
}

/* Scores [n, classes]. */
static ses_tensor *run_net(net *m, const ses_probe_net_set *set, const int32_t *at, size_t n)
{
    ses_tensor *span[SES_PROBE_NET_MAX_SPANS] = { 0 };
    for (size_t s = 0; s < m->o->spans; s++) {
        ses_tensor *words = span_words(m, set, at, n, s);
        span[s] = m->o->edge ? pool_span(m, words, n, s)
                             : ses_pool_rows(m->tape, words, ses_tape_ints(m->tape, m->cu, (int64_t)n + 1),
                                             SES_POOL_MEAN);
    }
    ses_tensor *x = m->o->spans > 1 ? ses_concat(m->tape, (int)m->o->spans, span) : span[0];
    if (m->o->edge) {
        x = ses_dropout(m->tape, x, m->o->dropout);
        x = ses_linear(m->tape, x, m->up, m->up_bias, SES_ACT_TANH, SES_OUT_IN);
        x = ses_dropout(m->tape, x, m->o->dropout);
    }
    return ses_linear(m->tape, x, m->down, m->down_bias, SES_ACT_NONE, SES_OUT_IN);
}

static ses_tensor *loss_of(net *m, const ses_probe_net_set *set, const int32_t *at, size_t n,
                           ses_tensor *scores)
{
    size_t classes = m->o->classes;
    if (!m->o->edge) {
        for (size_t i = 0; i < n; i++) m->label[i] = set->y[at[i]] < 0 ? SES_IGNORE_INDEX : set->y[at[i]];
        return ses_cross_entropy(m->tape, scores, ses_tape_ints(m->tape, m->label, (int64_t)n));
    }
    memset(m->target, 0, n * classes * sizeof *m->target);
    for (size_t i = 0; i < n; i++)
        if (set->y[at[i]] >= 0) m->target[i * classes + (size_t)set->y[at[i]]] = 1;
    ses_tensor *target =
        ses_tape_input(m->tape, m->target, (int64_t[SES_MAX_DIM]){ (int64_t)n, (int64_t)classes });
    return ses_target_loss(m->tape, scores, target, SES_LOSS_BCE);
}

/* ---- training and evaluation ---- */

static bool run_epoch(net *m, ses_optim *optim, const ses_probe_net_set *set, uint32_t epoch, double *loss,
                      ses_err *e)
{
    ses_probe_shuffle(m->order, set->n, m->o->seed, epoch, SITE_ORDER);
    *loss = 0;
    for (size_t first = 0; first < set->n; first += m->o->batch) {
        size_t n = set->n - first < m->o->batch ? set->n - first : m->o->batch;
        ses_real value = 0;
        ses_tape_options mode = { .record = true, .train = true, .seed = m->o->seed };
        mode.step = (uint32_t)ses_optim_steps(optim);
        ses_tape_reset(m->tape, &mode);
        ses_store_zero_grad(m->store);
        ses_tensor *x = loss_of(m, set, m->order + first, n, run_net(m, set, m->order + first, n));
        ses_backward(m->tape, x);
        ses_tape_read(m->tape, x, &value);
        if (!ses_tape_ok(m->tape, e)) return false;
        *loss += (double)value * (double)n / (double)set->n;
        ses_optim_step(optim, -1, 1);
    }
    return true;
}

typedef struct counts {
    double loss, correct, predicted, right, n;
    ses_probe_bits bits; /* code of the labels */
} counts;

/* Probability of class y: softmax of the scores; of an edge probe its share of the probabilities. */
static double probability(const net *m, const ses_real *x, size_t y)
{
    double sum = 0, max = (double)x[0], own;
    for (size_t k = 1; k < m->o->classes; k++) max = fmax(max, (double)x[k]);
    for (size_t k = 0; k < m->o->classes; k++)
        sum += m->o->edge ? 1 / (1 + exp(-(double)x[k])) : exp((double)x[k] - max);
    own = m->o->edge ? 1 / (1 + exp(-(double)x[y])) : exp((double)x[y] - max);
    return sum > 0 ? own / sum : 1 / (double)m->o->classes;
}

static void count(const net *m, const ses_real *x, int32_t y, size_t trained_on, counts *c)
{
    size_t best = 0, classes = m->o->classes;
    for (size_t k = 0; k < classes; k++) {
        if (x[k] > x[best]) best = k;
        c->predicted += x[k] > 0;
        c->right += x[k] > 0 && y == (int32_t)k;
    }
    c->correct += y == (int32_t)best;
    if (!trained_on || y < 0) return;
    ses_probe_bits_add(&c->bits, probability(m, x, (size_t)y), trained_on, m->seen, (size_t)y, classes);
}

/* trained_on: number of examples before the set, for the code of its labels; 0: no code. */
static bool evaluate(net *m, const ses_probe_net_set *set, size_t trained_on, counts *c, ses_err *e)
{
    *c = (counts){ .n = (double)set->n };
    int32_t *at = ses_alloc_array(set->n + 1, sizeof *at, e);
    bool ok = at != NULL;
    for (size_t i = 0; ok && i < set->n; i++) at[i] = (int32_t)i;
    for (size_t first = 0; ok && first < set->n; first += m->max_batch) {
        size_t n = set->n - first < m->max_batch ? set->n - first : m->max_batch;
        ses_real value = 0;
        ses_tape_reset(m->tape, &(ses_tape_options){ 0 });
        ses_tensor *scores = run_net(m, set, at + first, n);
        ses_tape_read(m->tape, loss_of(m, set, at + first, n, scores), &value);
        ses_tape_read(m->tape, scores, m->out);
        ok = ses_tape_ok(m->tape, e);
        c->loss += (double)value * (double)n / (double)set->n;
        for (size_t i = 0; ok && i < n; i++)
            count(m, m->out + i * m->o->classes, set->y[first + i], trained_on, c);
    }
    ses_free(at);
    return ok;
}

static double score_of(const net *m, const counts *c)
{
    return !m->o->edge ? c->correct / c->n : 2 * c->right / fmax(1, c->predicted + c->n);
}

static bool train(net *m, const ses_probe_net_set *data, const ses_probe_net_set *dev,
                  ses_probe_net_result *out, ses_err *e)
{
    ses_optim_options adam;
    for (size_t i = 0; i < data->n; i++)
        if (data->y[i] >= 0) m->seen[data->y[i]] = true;
    if (!ses_optim_defaults("adamw", &adam, e)) return false;
    adam.lr = m->o->rate;
    ses_optim *optim = ses_optim_new(m->store, &adam, e);
    double best = INFINITY;
    bool ok = optim != NULL;
    for (int since = 0; ok && out->epochs < m->o->epochs && since < m->o->patience; out->epochs++) {
        counts c;
        int k = out->epochs;
        ok = run_epoch(m, optim, data, (uint32_t)k, &out->loss[k], e) && evaluate(m, dev, 0, &c, e);
        if (!ok) break;
        out->dev_loss[k] = c.loss;
        since++;
        if (c.loss < best)
            best = c.loss, since = 0, out->dev = score_of(m, &c),
            ses_probe_copy_values(m->store, m->best, false);
    }
    ses_optim_free(optim);
    if (ok && isfinite(best)) ses_probe_copy_values(m->store, m->best, true);
    return ok && (isfinite(best) || ses_fail(e, SES_EARG, "the loss is not a finite number"));
}

static void read_mix(const net *m, ses_probe_net_result *out)
{
    double sum = 0;
    for (size_t l = 0; l < m->o->layers; l++) {
        out->mix[l] = m->mix ? exp((double)((const ses_real *)m->mix->data)[l]) : 1;
        sum += out->mix[l];
    }
    for (size_t l = 0; l < m->o->layers; l++) out->mix[l] /= sum;
}

/* A new network trained on the first n examples; codes the examples from there to `end`. */
static bool run_once(const ses_probe_net_options *o, const ses_probe_net_set *data, size_t n, size_t end,
                     const ses_probe_net_set *dev, const ses_probe_net_set *test, ses_probe_net_result *out,
                     counts *code, ses_err *e)
{
    net m = { .o = o };
    counts c = { 0 };
    ses_probe_net_set part = *data, rest = *data;
    part.n = n, rest.n = end - n, rest.y += n;
    for (size_t s = 0; s < o->spans; s++) rest.begin[s] += n;
    if (rest.length) rest.length += n;
    bool ok = open_net(&m, n, e) && train(&m, &part, dev, out, e) &&
              (rest.n ? evaluate(&m, &rest, n, code, e) : evaluate(&m, test, 0, &c, e));
    if (ok && !rest.n) out->accuracy = c.correct / c.n, out->f1 = score_of(&m, &c), read_mix(&m, out);
    close_net(&m);
    return ok;
}

/* Online coding: each block by a network trained on the blocks before it. */
static bool code_blocks(const ses_probe_net_options *o, const ses_probe_net_set *data,
                        const ses_probe_net_set *dev, ses_probe_net_result *out, ses_err *e)
{
    enum { MIN_ROWS = 16 };
    size_t end[SES_PROBE_BLOCKS], blocks = ses_probe_block_ends(data->n, end);
    ses_probe_net_result *result = ses_alloc(sizeof *result, e);
    bool ok = result != NULL;
    out->bits = out->plain_bits = 0;
    for (size_t b = 0; ok && b < blocks; b++) {
        size_t first = b ? end[b - 1] : 0;
        counts c = { 0 };
        c.bits.smooth = c.bits.plain = (double)(end[b] - first) * log2((double)o->classes);
        *result = (ses_probe_net_result){ 0 };
        if (first >= MIN_ROWS) ok = run_once(o, data, first, end[b], dev, NULL, result, &c, e);
        out->bits += c.bits.smooth, out->plain_bits += c.bits.plain, out->lacking += c.bits.lacking;
    }
    ses_free(result);
    return ok;
}

bool ses_probe_net_run(const ses_probe_net_options *o, const ses_probe_net_set *data,
                       const ses_probe_net_set *dev, const ses_probe_net_set *test, ses_probe_net_result *out,
                       ses_err *e)
{
    *out = (ses_probe_net_result){ .bits = NAN, .plain_bits = NAN };
    if (o->layers > MAX_LAYERS || o->epochs > MAX_LAYERS || !o->dev->is_host)
        return ses_fail(e, SES_EARG, "%zu layers, %d epochs: expected at most %d, on a CPU", o->layers,
                        o->epochs, MAX_LAYERS);
    return run_once(o, data, data->n, data->n, dev, test, out, NULL, e) &&
           (!o->mdl || code_blocks(o, data, dev, out, e));
}
