/* Reference recurrent layers and their backward passes, see ses_recurrence. One sequence after another:
 * nothing here depends on the schedule's order of sequences. */
#include "kernel/chunking.h"

#include <math.h>

static double logistic(double x) { return 1 / (1 + exp(-x)); }
/* NaN stays NaN. */
static double clip(double x, double limit)
{
    return limit > 0 && x > limit ? limit : limit > 0 && x < -limit ? -limit : x;
}
/* Does the gradient pass? x is the clipped value. */
static bool passes(ses_real x, double limit)
{
    return !(limit > 0) || fabs((double)x) < (double)(ses_real)limit;
}

typedef struct job {
    const ses_recurrence *c;
    const ses_rnn_grad *g;
} job;

/* Time steps of the i-th sequence of the schedule. */
static int64_t steps_of(const ses_recurrence *c, int64_t i)
{
    int64_t t = 0;
    while (t < c->steps && c->active[t] > i) t++;
    return t;
}

static int64_t row_of(const ses_recurrence *c, int64_t i, int64_t t) { return c->first[i] + c->stride * t; }

/* Output and cell of the step before t; NULL: zeros. */
static const ses_real *state_before(const ses_recurrence *c, int64_t i, int64_t t)
{
    if (t) return c->y + row_of(c, i, t - 1) * c->y_row;
    return c->h0 ? c->h0 + c->order[i] * c->out : NULL;
}

static const ses_real *cell_before(const ses_recurrence *c, int64_t i, int64_t t)
{
    if (t) return c->cell + row_of(c, i, t - 1) * c->size;
    return c->c0 ? c->c0 + c->order[i] * c->size : NULL;
}

/* Element j of w h' + bias. */
static double recurrent(const ses_recurrence *c, const ses_real *state, int64_t j)
{
    double sum = c->bias ? (double)c->bias[j] : 0;
    for (int64_t k = 0; state && k < c->out; k++) sum += (double)c->w[j * c->out + k] * (double)state[k];
    return sum;
}

static void lstm_step(const ses_recurrence *c, int64_t i, int64_t t, ses_real *hidden)
{
    int64_t H = c->size, row = row_of(c, i, t);
    const ses_real *x = c->x + row * 4 * H, *state = state_before(c, i, t), *before = cell_before(c, i, t);
    ses_real *gate = c->gate ? c->gate + row * 4 * H : NULL, *cell = c->cell + row * H,
             *y = c->y + row * c->y_row;
    for (int64_t j = 0; j < H; j++) {
        double in = logistic((double)x[j] + recurrent(c, state, j)),
               forget = logistic((double)x[H + j] + recurrent(c, state, H + j)),
               g = tanh((double)x[2 * H + j] + recurrent(c, state, 2 * H + j)),
               out = logistic((double)x[3 * H + j] + recurrent(c, state, 3 * H + j));
        double value = clip((before ? forget * (double)before[j] : 0) + in * g, c->cell_clip);
        if (gate) {
            gate[j] = (ses_real)in, gate[H + j] = (ses_real)forget;
            gate[2 * H + j] = (ses_real)g, gate[3 * H + j] = (ses_real)out;
        }
        cell[j] = (ses_real)value;
        if (c->y_row > c->out) y[c->out + j] = cell[j];
        hidden[j] = (ses_real)(out * tanh(value));
    }
    for (int64_t p = 0; c->proj && p < c->out; p++) {
        double sum = 0;
        for (int64_t j = 0; j < H; j++) sum += (double)c->proj[p * H + j] * (double)hidden[j];
        y[p] = (ses_real)clip(sum, c->proj_clip);
    }
}

static void gru_step(const ses_recurrence *c, int64_t i, int64_t t)
{
    int64_t H = c->size, row = row_of(c, i, t);
    const ses_real *x = c->x + row * 3 * H, *state = state_before(c, i, t);
    ses_real *gate = c->gate ? c->gate + row * 3 * H : NULL, *y = c->y + row * c->y_row;
    for (int64_t j = 0; j < H; j++) {
        double r = logistic((double)x[j] + recurrent(c, state, j)),
               z = logistic((double)x[H + j] + recurrent(c, state, H + j)),
               cell = recurrent(c, state, 2 * H + j), n = tanh((double)x[2 * H + j] + r * cell);
        if (gate) gate[j] = (ses_real)r, gate[H + j] = (ses_real)z, gate[2 * H + j] = (ses_real)n;
        c->cell[row * H + j] = (ses_real)cell;
        y[j] = (ses_real)((1 - z) * n + (state ? z * (double)state[j] : 0));
    }
}

static void run_sequence(void *ctx, int64_t i, void *scratch)
{
    (void)scratch;
    const ses_recurrence *c = ((const job *)ctx)->c;
    int64_t steps = steps_of(c, i);
    for (int64_t t = 0; t < steps; t++) {
        int64_t row = row_of(c, i, t);
        if (c->type == SES_RNN_LSTM)
            lstm_step(c, i, t, c->proj ? c->hidden + row * c->size : c->y + row * c->y_row);
        else
            gru_step(c, i, t);
    }
}

/* Backward: gradients of the state and of the cell, and of the hidden vector, of each sequence. */
int64_t ses_k_rnn_work_size_ref(const ses_recurrence *c) { return c->seqs * (c->out + 2 * c->size); }

void ses_k_rnn_ref(ses_exec *x, const ses_recurrence *c)
{
    ses_parallel_for(x->pool, c->seqs, run_sequence, &(job){ c, NULL });
}

/* dhidden = dy, or proj' dy if the output is projected. dstate holds the gradient from the next step. */
static void output_bwd(const ses_recurrence *c, const ses_rnn_grad *g, int64_t row, ses_real *dstate,
                       ses_real *dhidden)
{
    const ses_real *y = c->y + row * c->y_row, *dy = g->dy + row * c->y_row;
    for (int64_t p = 0; p < c->out; p++) {
        dstate[p] = (ses_real)((double)dy[p] + (double)dstate[p]);
        if (!c->proj) dhidden[p] = dstate[p];
        if (c->proj) g->dprojected[row * c->out + p] = passes(y[p], c->proj_clip) ? dstate[p] : 0;
    }
    for (int64_t j = 0; c->proj && j < c->size; j++) {
        double sum = 0;
        for (int64_t p = 0; p < c->out; p++)
            sum += (double)g->dprojected[row * c->out + p] * (double)c->proj[p * c->size + j];
        dhidden[j] = (ses_real)sum;
    }
}

static void lstm_step_bwd(const ses_recurrence *c, const ses_rnn_grad *g, int64_t i, int64_t t,
                          const ses_real *dhidden, ses_real *dcell)
{
    int64_t H = c->size, row = row_of(c, i, t);
    const ses_real *gate = c->gate + row * 4 * H, *cell = c->cell + row * H, *before = cell_before(c, i, t),
                   *dy = g->dy + row * c->y_row;
    ses_real *dx = g->dx + row * 4 * H, *dh = g->dh + row * 4 * H;
    for (int64_t j = 0; j < H; j++) {
        double in = (double)gate[j], f = (double)gate[H + j], u = (double)gate[2 * H + j],
               o = (double)gate[3 * H + j], th = tanh((double)cell[j]), d = (double)dhidden[j],
               prev = before ? (double)before[j] : 0, dc = (double)dcell[j] + d * o * (1 - th * th);
        if (c->y_row > c->out) dc += (double)dy[c->out + j];
        if (!passes(cell[j], c->cell_clip)) dc = 0;
        double part[4] = { dc * u * in * (1 - in), dc * prev * f * (1 - f), dc * in * (1 - u * u),
                           d * th * o * (1 - o) };
        dcell[j] = (ses_real)(dc * f);
        for (int64_t k = 0; k < 4; k++) dx[k * H + j] = dh[k * H + j] = (ses_real)part[k];
    }
}

/* dstate: the part of its gradient that bypasses the gates. */
static void gru_step_bwd(const ses_recurrence *c, const ses_rnn_grad *g, int64_t i, int64_t t,
                         const ses_real *dhidden, ses_real *dstate)
{
    int64_t H = c->size, row = row_of(c, i, t);
    const ses_real *gate = c->gate + row * 3 * H, *cell = c->cell + row * H, *before = state_before(c, i, t);
    ses_real *dx = g->dx + row * 3 * H, *dh = g->dh + row * 3 * H;
    for (int64_t j = 0; j < H; j++) {
        double r = (double)gate[j], z = (double)gate[H + j], n = (double)gate[2 * H + j],
               d = (double)dhidden[j], prev = before ? (double)before[j] : 0, dn = d * (1 - z) * (1 - n * n);
        dx[j] = dh[j] = (ses_real)(dn * (double)cell[j] * r * (1 - r));
        dx[H + j] = dh[H + j] = (ses_real)(d * (prev - n) * z * (1 - z));
        dx[2 * H + j] = (ses_real)dn, dh[2 * H + j] = (ses_real)(dn * r);
        dstate[j] = (ses_real)(d * z);
    }
}

static void add_to(ses_dst to, int64_t at, const ses_real *from, int64_t n)
{
    for (int64_t j = 0; to.data && j < n; j++)
        to.data[at + j] = to.accumulate ? to.data[at + j] + from[j] : from[j];
}

static void run_sequence_bwd(void *ctx, int64_t i, void *scratch)
{
    (void)scratch;
    const ses_recurrence *c = ((const job *)ctx)->c;
    const ses_rnn_grad *g = ((const job *)ctx)->g;
    int64_t H = c->size, P = c->out, G = (c->type == SES_RNN_LSTM ? 4 : 3) * H;
    ses_real *dstate = c->work + i * (P + 2 * H), *dcell = dstate + P, *dhidden = dcell + H;
    for (int64_t j = 0; j < P + 2 * H; j++) dstate[j] = 0;
    for (int64_t t = steps_of(c, i) - 1; t >= 0; t--) {
        int64_t row = row_of(c, i, t);
        output_bwd(c, g, row, dstate, dhidden);
        for (int64_t p = 0; p < P; p++) dstate[p] = 0;
        if (c->type == SES_RNN_LSTM)
            lstm_step_bwd(c, g, i, t, dhidden, dcell);
        else
            gru_step_bwd(c, g, i, t, dhidden, dstate);
        for (int64_t p = 0; p < P; p++) {
            double sum = (double)dstate[p];
            for (int64_t j = 0; j < G; j++) sum += (double)g->dh[row * G + j] * (double)c->w[j * P + p];
            dstate[p] = (ses_real)sum;
        }
    }
    add_to(g->dh0, c->order[i] * P, dstate, P);
    add_to(g->dc0, c->order[i] * H, dcell, H);
}

void ses_k_rnn_bwd_ref(ses_exec *x, const ses_recurrence *c, const ses_rnn_grad *g)
{
    job j = { c, g };
    ses_parallel_for(x->pool, c->seqs, run_sequence_bwd, &j);
}
