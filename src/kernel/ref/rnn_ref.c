/* Reference time steps of LSTM and GRU and their backward passes, see ses_rnn_step. */
#include "kernel/chunking.h"

#include <math.h>

static double logistic(double x) { return 1 / (1 + exp(-x)); }

/* Pre-activation of gate column j of sequence i: x + h + bias. */
static double preact(const ses_rnn_step *c, int64_t gates, int64_t i, int64_t j)
{
    int64_t G = gates * c->size;
    return (double)c->x[c->row[i] * G + j] + (double)c->h[i * G + j] + (double)c->bias[j];
}

typedef struct job {
    const ses_rnn_step *c;
    const ses_rnn_grad *g;
} job;

static void lstm_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const ses_rnn_step *c = ((const job *)ctx)->c;
    int64_t H = c->size;
    ses_range r = ses_chunk(c->n, ses_chunk_rows(4 * H), chunk);
    for (int64_t s = r.begin; s < r.end; s++) {
        int64_t row = c->row[s];
        ses_real *gate = c->gate + row * 4 * H;
        for (int64_t j = 0; j < H; j++) {
            double i = logistic(preact(c, 4, s, j)), f = logistic(preact(c, 4, s, H + j)),
                   g = tanh(preact(c, 4, s, 2 * H + j)), o = logistic(preact(c, 4, s, 3 * H + j)),
                   prev = c->prev_row[s] < 0 ? 0 : (double)c->cell[c->prev_row[s] * H + j];
            double cell = f * prev + i * g;
            gate[j] = (ses_real)i, gate[H + j] = (ses_real)f;
            gate[2 * H + j] = (ses_real)g, gate[3 * H + j] = (ses_real)o;
            c->cell[row * H + j] = (ses_real)cell;
            c->y[row * H + j] = c->state[s * H + j] = (ses_real)(o * tanh(cell));
        }
    }
}

void ses_k_lstm_ref(ses_exec *x, const ses_rnn_step *c)
{
    ses_parallel_for(x->pool, ses_chunks(c->n, ses_chunk_rows(4 * c->size)), lstm_rows, &(job){ c, NULL });
}

static void lstm_rows_bwd(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const ses_rnn_step *c = ((const job *)ctx)->c;
    const ses_rnn_grad *b = ((const job *)ctx)->g;
    int64_t H = c->size;
    ses_range r = ses_chunk(c->n, ses_chunk_rows(4 * H), chunk);
    for (int64_t s = r.begin; s < r.end; s++) {
        int64_t row = c->row[s];
        const ses_real *gate = c->gate + row * 4 * H;
        for (int64_t j = 0; j < H; j++) {
            double i = (double)gate[j], f = (double)gate[H + j], g = (double)gate[2 * H + j],
                   o = (double)gate[3 * H + j], t = tanh((double)c->cell[row * H + j]),
                   prev = c->prev_row[s] < 0 ? 0 : (double)c->cell[c->prev_row[s] * H + j],
                   dy = (double)b->dy[row * H + j] + (double)b->dstate[s * H + j],
                   dc = (double)b->dcell[s * H + j] + dy * o * (1 - t * t);
            double d[4] = { dc * g * i * (1 - i), dc * prev * f * (1 - f), dc * i * (1 - g * g),
                            dy * t * o * (1 - o) };
            b->dcell[s * H + j] = (ses_real)(dc * f);
            b->dstate[s * H + j] = 0;
            for (int64_t k = 0; k < 4; k++) {
                int64_t at = k * H + j;
                b->dx[row * 4 * H + at] = b->dh[row * 4 * H + at] = b->dh_step[s * 4 * H + at] =
                    (ses_real)d[k];
            }
        }
    }
}

void ses_k_lstm_bwd_ref(ses_exec *x, const ses_rnn_step *c, const ses_rnn_grad *g)
{
    job j = { c, g };
    ses_parallel_for(x->pool, ses_chunks(c->n, ses_chunk_rows(4 * c->size)), lstm_rows_bwd, &j);
}

static void gru_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const ses_rnn_step *c = ((const job *)ctx)->c;
    int64_t H = c->size;
    ses_range range = ses_chunk(c->n, ses_chunk_rows(3 * H), chunk);
    for (int64_t s = range.begin; s < range.end; s++) {
        int64_t row = c->row[s];
        ses_real *gate = c->gate + row * 3 * H;
        for (int64_t j = 0; j < H; j++) {
            double r = logistic(preact(c, 3, s, j)), z = logistic(preact(c, 3, s, H + j)),
                   cell = (double)c->h[s * 3 * H + 2 * H + j] + (double)c->bias[2 * H + j],
                   n = tanh((double)c->x[row * 3 * H + 2 * H + j] + r * cell),
                   prev = c->prev_row[s] < 0 ? 0 : (double)c->y[c->prev_row[s] * H + j];
            gate[j] = (ses_real)r, gate[H + j] = (ses_real)z, gate[2 * H + j] = (ses_real)n;
            c->cell[row * H + j] = (ses_real)cell;
            c->y[row * H + j] = c->state[s * H + j] = (ses_real)((1 - z) * n + z * prev);
        }
    }
}

void ses_k_gru_ref(ses_exec *x, const ses_rnn_step *c)
{
    ses_parallel_for(x->pool, ses_chunks(c->n, ses_chunk_rows(3 * c->size)), gru_rows, &(job){ c, NULL });
}

static void gru_rows_bwd(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const ses_rnn_step *c = ((const job *)ctx)->c;
    const ses_rnn_grad *b = ((const job *)ctx)->g;
    int64_t H = c->size;
    ses_range range = ses_chunk(c->n, ses_chunk_rows(3 * H), chunk);
    for (int64_t s = range.begin; s < range.end; s++) {
        int64_t row = c->row[s];
        const ses_real *gate = c->gate + row * 3 * H;
        for (int64_t j = 0; j < H; j++) {
            double r = (double)gate[j], z = (double)gate[H + j], n = (double)gate[2 * H + j],
                   prev = c->prev_row[s] < 0 ? 0 : (double)c->y[c->prev_row[s] * H + j],
                   dy = (double)b->dy[row * H + j] + (double)b->dstate[s * H + j],
                   dn = dy * (1 - z) * (1 - n * n);
            double d[3] = { dn * (double)c->cell[row * H + j] * r * (1 - r), dy * (prev - n) * z * (1 - z),
                            dn };
            b->dstate[s * H + j] = (ses_real)(dy * z);
            for (int64_t k = 0; k < 3; k++) {
                int64_t at = k * H + j;
                b->dx[row * 3 * H + at] = (ses_real)d[k];
                b->dh[row * 3 * H + at] = b->dh_step[s * 3 * H + at] = (ses_real)(k < 2 ? d[k] : dn * r);
            }
        }
    }
}

void ses_k_gru_bwd_ref(ses_exec *x, const ses_rnn_step *c, const ses_rnn_grad *g)
{
    job j = { c, g };
    ses_parallel_for(x->pool, ses_chunks(c->n, ses_chunk_rows(3 * c->size)), gru_rows_bwd, &j);
}
