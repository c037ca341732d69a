/* Edge probes and scalar mixes by layer. */
#include "probe_nets.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "probe_net.h"

#include <math.h>
#include <string.h>

enum { SITE = 0x6e657473, TRAIN_EXAMPLES = 20000, EVAL_EXAMPLES = 10000 };

typedef struct nets {
    const ses_probe_nets *in;
    float *states; /* [rows, width] of a layer */
    float **x;     /* [n_layers]: the rows of the examples of all sets */
    size_t rows;
    uint32_t *example[SES_PROBE_SETS], *begin[SES_PROBE_SETS][2], *length[SES_PROBE_SETS];
    int32_t *y[SES_PROBE_SETS];
    ses_probe_net_set set[SES_PROBE_SETS];
    ses_probe_net_result *result; /* [n_layers] */
    int64_t done;
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

/* Examples of a set in random order, at most `max`; their spans in the compact rows. */
static bool list_set(nets *m, const ses_probe_task *t, int s, size_t max, ses_err *e)
{
    const ses_probe_data *d = m->in->d;
    size_t first = d->first[s], end = d->first[s + 1], n = 0;
    uint32_t *list = m->example[s] = ses_alloc_array(end - first, sizeof *list, e);
    if (!list) return false;
    for (size_t i = first; i < end; i++)
        if (t->y[i] != SES_PROBE_NO_LABEL) list[n++] = (uint32_t)i;
    for (size_t i = n; n > max && i-- > 1;) {
        ses_rng_key key = { m->in->c->seed, (uint32_t)s, SITE };
        size_t j = (size_t)(((uint64_t)ses_rand32(key, i) * (i + 1)) >> 32);
        uint32_t swap = list[i];
        list[i] = list[j], list[j] = swap;
    }
    if (n > max) n = max;
    for (int k = 0; k < 2; k++)
        if (!(m->begin[s][k] = ses_alloc_array(n, sizeof *m->begin[s][k], e))) return false;
    m->y[s] = ses_alloc_array(n, sizeof *m->y[s], e);
    m->length[s] = ses_alloc_array(n, sizeof *m->length[s], e);
    if (!m->y[s] || !m->length[s]) return false;
    for (size_t i = 0; i < n; i++) {
        const ses_probe_example *x = &d->example[list[i]];
        m->y[s][i] = t->y[list[i]];
        m->length[s][i] = x->length;
        m->begin[s][0][i] = (uint32_t)m->rows, m->rows += x->length;
        m->begin[s][1][i] = (uint32_t)m->rows;
        if (d->pairs) m->rows += x->length;
    }
    m->set[s] = (ses_probe_net_set){ .n = n,
                                     .x = (const float *const *)m->x,
                                     .begin = { m->begin[s][0], m->begin[s][1] },
                                     .length = m->length[s],
                                     .y = m->y[s] };
    return true;
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
            const ses_probe_example *x = &in->d->example[m->example[s][i]];
            memcpy(m->x[l] + m->begin[s][0][i] * width, m->states + x->row * width, x->length * row);
            if (in->d->pairs)
                memcpy(m->x[l] + m->begin[s][1][i] * width, m->states + x->other * width, x->length * row);
        }
    return true;
}

static void free_task(nets *m)
{
    for (size_t l = 0; m->x && l < m->in->n_layers; l++) ses_free(m->x[l]), m->x[l] = NULL;
    for (int s = 0; s < SES_PROBE_SETS; s++) {
        ses_free(m->example[s]), ses_free(m->begin[s][0]), ses_free(m->begin[s][1]);
        ses_free(m->length[s]), ses_free(m->y[s]);
        m->example[s] = m->begin[s][0] = m->begin[s][1] = m->length[s] = NULL, m->y[s] = NULL;
    }
    m->rows = 0;
}

/* ---- report ---- */

static void report_json(nets *m, const ses_probe_task *t, double gravity, double expected)
{
    const ses_probe_nets *in = m->in;
    ses_json_writer *w = ses_report_json(in->c->report);
    ses_json_begin_object(w);
    ses_json_member_string(w, "name", t->name);
    ses_json_member_int(w, "classes", (int64_t)t->classes);
    ses_json_member_int(w, "train", (int64_t)m->set[SES_PROBE_TRAIN].n);
    ses_json_member_int(w, "test", (int64_t)m->set[SES_PROBE_TEST].n);
    if (in->a->classify.mix) {
        ses_json_member_real(w, "centre_of_gravity", gravity);
        ses_json_member_real(w, "expected_layer", expected);
    }
    ses_json_member_array(w, "layers");
    for (size_t l = 0; l < in->n_layers; l++) {
        ses_json_begin_object(w);
        ses_json_member_int(w, "layer", in->layers[l]);
        ses_json_member_real(w, "accuracy", m->result[l].accuracy);
        if (in->a->classify.edge) ses_json_member_real(w, "f1", m->result[l].f1);
        if (in->a->classify.mix) ses_json_member_real(w, "weight", m->result[in->n_layers - 1].mix[l]);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
}

static void report_task(nets *m, const ses_probe_task *t, ses_err *e)
{
    const ses_probe_nets *in = m->in;
    bool mix = in->a->classify.mix, edge = in->a->classify.edge;
    size_t n = in->n_layers;
    double gravity = NAN, expected = NAN, *score = ses_alloc_array(2 * n, sizeof *score, e), *x = score + n;
    if (!score) return;
    for (size_t l = 0; l < n; l++) score[l] = 100 * m->result[l].f1, x[l] = (double)in->layers[l];
    if (mix) {
        gravity = ses_centre_of_gravity(in->layers, m->result[n - 1].mix, n);
        expected = ses_expected_layer(in->layers, score, n);
    }
    report_json(m, t, gravity, expected);
    ses_figure *f = ses_report_table(in->c->report, t->name,
                                     mix ? "layers up to|>score|>weight in the last mix" : "layer|>score");
    for (size_t l = 0; l < n; l++) {
        ses_figure_cell(f, "%lld", (long long)in->layers[l]);
        ses_figure_cell(f, "%.1f", score[l]);
        if (mix) ses_figure_cell(f, "%.3f", m->result[n - 1].mix[l]);
    }
    if (n > 1) {
        ses_figure *curve = ses_report_lines(in->c->report, t->name, mix ? "layers up to" : "layer",
                                             edge ? "micro-F1 in %" : "accuracy in %");
        ses_figure_line(curve, &(ses_figure_series){ .name = "score", .n = (int64_t)n, .x = x, .y = score });
    }
    if (mix)
        ses_report_note(in->c->report, "%s: centre of gravity %.2f, expected layer %.2f.", t->name, gravity,
                        expected);
    ses_free(score);
}

/* ---- training ---- */

static bool run_task(nets *m, const ses_probe_task *t, ses_err *e)
{
    const ses_probe_nets *in = m->in;
    size_t max = in->a->classify.max_train ? (size_t)in->a->classify.max_train : TRAIN_EXAMPLES;
    for (int s = 0; s < SES_PROBE_SETS; s++)
        if (!list_set(m, t, s, s == SES_PROBE_TRAIN ? max : EVAL_EXAMPLES, e)) return false;
    for (size_t l = 0; l < in->n_layers; l++)
        if (!copy_layer(m, l, e)) return false;
    for (size_t l = 0; l < in->n_layers; l++) {
        bool mix = in->a->classify.mix;
        ses_probe_net_options o = ses_probe_net_defaults(in->host, mix ? l + 1 : 1, in->width, t->classes,
                                                         in->d->pairs ? 2 : 1, in->a->classify.edge);
        o.seed = in->c->seed;
        for (int s = 0; s < SES_PROBE_SETS; s++) m->set[s].x = (const float *const *)(m->x + (mix ? 0 : l));
        ses_analysis_progress(in->c, "probes", m->done++, (int64_t)(in->d->n_tasks * in->n_layers));
        if (!ses_probe_net_run(&o, &m->set[SES_PROBE_TRAIN], &m->set[SES_PROBE_DEV], &m->set[SES_PROBE_TEST],
                               &m->result[l], e))
            return false;
    }
    return true;
}

bool ses_probe_nets_run(const ses_probe_nets *in, ses_err *e)
{
    nets m = { .in = in };
    m.states = ses_alloc_huge(in->d->rows * in->width, sizeof *m.states, e);
    m.x = ses_alloc_array(in->n_layers, sizeof *m.x, e);
    m.result = ses_alloc_array(in->n_layers, sizeof *m.result, e);
    bool ok = m.states && m.x && m.result;
    ses_json_writer *w = ses_report_json(in->c->report);
    ses_json_begin_object(w);
    ses_json_member_array(w, "tasks");
    for (size_t t = 0; ok && t < in->d->n_tasks; t++) {
        ok = run_task(&m, &in->d->task[t], e);
        if (ok) report_task(&m, &in->d->task[t], e);
        free_task(&m);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    ses_report_note(in->c->report,
                    "Scores are %s on at most %d test examples; at most %lld training examples.",
                    in->a->classify.edge ? "micro-F1" : "accuracy", (int)EVAL_EXAMPLES,
                    (long long)(in->a->classify.max_train ? in->a->classify.max_train : TRAIN_EXAMPLES));
    ses_free(m.states), ses_free(m.x), ses_free(m.result);
    return ok;
}
