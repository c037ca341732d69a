/* Edge probes and scalar mixes by layer. */
#include "probe_nets.h"

#include "base/alloc.h"
#include "probe_net.h"

#include <math.h>
#include <string.h>

typedef struct nets {
    const ses_probe_nets *in;
    float *states; /* [rows, width] of a layer */
    float **x;     /* [n_layers]: the rows of the examples of all sets */
    size_t rows;
    uint32_t *begin[SES_PROBE_SETS][2], *length[SES_PROBE_SETS];
    ses_probe_net_set set[SES_PROBE_SETS];
    ses_probe_net_result *result;
} nets;

double ses_centre_of_gravity(const int64_t *layers, const double *weight, size_t n)
{
    double sum = 0;
    for (size_t l = 0; l < n; l++) sum += (double)layers[l] * weight[l];
    return sum;
}

double ses_expected_layer(const int64_t *layers, const double *score, size_t n)
{
    double sum = 0, all = 0;
    for (size_t l = 1; l < n; l++) {
        sum += (double)layers[l] * (score[l] - score[l - 1]);
        all += score[l] - score[l - 1];
    }
    return all > 0 ? sum / all : NAN;
}

/* The spans of a set in the compact rows. */
static bool list_spans(nets *m, int s, ses_err *e)
{
    const ses_probe_data *d = m->in->d;
    size_t n = m->in->examples->n[s];
    for (int k = 0; k < 2; k++)
        if (!(m->begin[s][k] = ses_alloc_array(n, sizeof *m->begin[s][k], e))) return false;
    if (!(m->length[s] = ses_alloc_array(n, sizeof *m->length[s], e))) return false;
    for (size_t i = 0; i < n; i++) {
        const ses_probe_example *x = &d->example[m->in->examples->at[s][i]];
        m->length[s][i] = x->length;
        m->begin[s][0][i] = (uint32_t)m->rows, m->rows += x->length;
        m->begin[s][1][i] = (uint32_t)m->rows;
        if (d->pairs) m->rows += x->length;
    }
    m->set[s] =
        (ses_probe_net_set){ .n = n, .begin = { m->begin[s][0], m->begin[s][1] }, .length = m->length[s] };
    return m->rows <= UINT32_MAX || ses_fail(e, SES_EUNSUPPORTED, "%zu rows, expected fewer", m->rows);
}

static bool copy_layer(nets *m, size_t l, ses_err *e)
{
    const ses_probe_nets *in = m->in;
    size_t width = in->width, row = width * sizeof(float);
    if (!(m->x[l] = ses_alloc_array(m->rows, row, e)) ||
        !ses_state_spool_read(in->spool, l, 0, in->d->rows, m->states, e))
        return false;
    for (int s = 0; s < SES_PROBE_SETS; s++)
        for (size_t i = 0; i < m->set[s].n; i++) {
            const ses_probe_example *x = &in->d->example[in->examples->at[s][i]];
            memcpy(m->x[l] + m->begin[s][0][i] * width, m->states + x->row * width, x->length * row);
            if (in->d->pairs)
                memcpy(m->x[l] + m->begin[s][1][i] * width, m->states + x->other * width, x->length * row);
        }
    return true;
}

static bool open_nets(nets *m, ses_err *e)
{
    const ses_probe_nets *in = m->in;
    m->states = ses_alloc_huge(in->d->rows * in->width, sizeof *m->states, e);
    m->x = ses_alloc_array(in->n_layers, sizeof *m->x, e);
    m->result = ses_alloc(sizeof *m->result, e);
    bool ok = m->states && m->x && m->result;
    for (int s = 0; ok && s < SES_PROBE_SETS; s++) ok = list_spans(m, s, e);
    for (size_t l = 0; ok && l < in->n_layers; l++) ok = copy_layer(m, l, e);
    return ok;
}

static void close_nets(nets *m)
{
    for (size_t l = 0; m->x && l < m->in->n_layers; l++) ses_free(m->x[l]);
    for (int s = 0; s < SES_PROBE_SETS; s++)
        ses_free(m->begin[s][0]), ses_free(m->begin[s][1]), ses_free(m->length[s]);
    ses_free(m->states), ses_free(m->x), ses_free(m->result);
}

/* Trains the probe of layer l, or of the layers up to l, on labels y. */
static bool run_net(nets *m, size_t l, int32_t *const y[SES_PROBE_SETS], bool mdl, ses_probe_scores *out,
                    ses_err *e)
{
    const ses_probe_nets *in = m->in;
    bool mix = in->a->classify.mix, edge = in->a->classify.edge;
    ses_probe_net_options o = ses_probe_net_defaults(in->host, mix ? l + 1 : 1, in->width, in->task->classes,
                                                     in->d->pairs ? 2 : 1, edge);
    o.seed = in->seed, o.mdl = mdl;
    for (int s = 0; s < SES_PROBE_SETS; s++)
        m->set[s].x = (const float *const *)(m->x + (mix ? 0 : l)), m->set[s].y = y[s];
    if (in->progress) in->progress(in->ctx);
    if (!ses_probe_net_run(&o, &m->set[SES_PROBE_TRAIN], &m->set[SES_PROBE_DEV], &m->set[SES_PROBE_TEST],
                           m->result, e))
        return false;
    double n = (double)m->set[SES_PROBE_TEST].n, train = (double)m->set[SES_PROBE_TRAIN].n;
    *out = (ses_probe_scores){ .c = NAN,
                               .dev = m->result->dev,
                               .accuracy = m->result->accuracy,
                               .f1 = edge ? m->result->f1 : NAN,
                               .bits = m->result->bits,
                               .plain_bits = m->result->plain_bits,
                               .lacking = m->result->lacking,
                               .compression = train * log2((double)in->task->classes) / m->result->bits };
    ses_wilson_interval(out->accuracy * n, n, &out->low, &out->high);
    return true;
}

bool ses_probe_nets_run(const ses_probe_nets *in, const bool *wanted, ses_probe_result *out, double *weight,
                        ses_err *e)
{
    nets m = { .in = in };
    bool ok = open_nets(&m, e);
    for (size_t l = 0; ok && l < in->n_layers; l++) {
        if (wanted && !wanted[l]) continue;
        ok = run_net(&m, l, in->examples->y, in->mdl, &out[l].task, e);
        for (size_t k = 0; ok && weight && k <= l; k++) weight[k] = m.result->mix[k];
        if (ok && in->control) {
            ok = run_net(&m, l, in->examples->control, false, &out[l].control, e);
            out[l].has_control = ok;
        }
        out[l].done = ok;
    }
    close_nets(&m);
    return ok || ses_wrap(e, "%s", in->task->name);
}
