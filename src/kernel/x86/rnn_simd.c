/* Vectorized steps of recurrent layers; see ses_rnn_step for the formulas. */
#include "vec_loop.h"
#include "vecmath.h"

typedef struct job {
    const ses_rnn_step *c;
    const ses_rnn_grad *g;
} job;

/* Pre-activation of gate columns j .. of sequence s: x + h + bias. */
VF_INLINE vf preact(const ses_rnn_step *c, int64_t gates, int64_t s, int64_t j, int64_t left)
{
    int64_t G = gates * c->size;
    return vf_add(vf_add(vf_get(c->x + c->row[s] * G + j, left), vf_get(c->h + s * G + j, left)),
                  vf_get(c->bias + j, left));
}

/* Row of the previous step, or 0 at the start of a sequence. */
VF_INLINE vf prev_of(const ses_rnn_step *c, const float *of, int64_t s, int64_t j, int64_t left)
{
    return c->prev_row[s] < 0 ? vf_zero() : vf_get(of + c->prev_row[s] * c->size + j, left);
}

/* Derivatives of sigmoid and tanh, from their values. */
VF_INLINE vf sigmoid_slope(vf y) { return vf_sub(y, vf_mul(y, y)); }
VF_INLINE vf tanh_slope(vf y) { return vf_sub(vf_set1(1), vf_mul(y, y)); }

static void lstm_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const ses_rnn_step *c = ((const job *)ctx)->c;
    int64_t H = c->size;
    ses_range r = ses_chunk(c->n, ses_chunk_rows(4 * H), chunk);
    for (int64_t s = r.begin; s < r.end; s++) {
        int64_t row = c->row[s];
        float *gate = c->gate + row * 4 * H;
        for (int64_t j = 0; j < H; j += VF_LANES) {
            int64_t left = H - j;
            vf i = vf_sigmoid(preact(c, 4, s, j, left)), f = vf_sigmoid(preact(c, 4, s, H + j, left)),
               g = vf_tanh(preact(c, 4, s, 2 * H + j, left)),
               o = vf_sigmoid(preact(c, 4, s, 3 * H + j, left));
            vf cell = vf_fma(f, prev_of(c, c->cell, s, j, left), vf_mul(i, g));
            vf y = vf_mul(o, vf_tanh(cell));
            vf_put(gate + j, i, left), vf_put(gate + H + j, f, left);
            vf_put(gate + 2 * H + j, g, left), vf_put(gate + 3 * H + j, o, left);
            vf_put(c->cell + row * H + j, cell, left);
            vf_put(c->y + row * H + j, y, left), vf_put(c->state + s * H + j, y, left);
        }
    }
}

void VF_NAME(ses_k_lstm)(ses_exec *x, const ses_rnn_step *c)
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
        const float *gate = c->gate + row * 4 * H;
        for (int64_t j = 0; j < H; j += VF_LANES) {
            int64_t left = H - j;
            vf i = vf_get(gate + j, left), f = vf_get(gate + H + j, left), g = vf_get(gate + 2 * H + j, left),
               o = vf_get(gate + 3 * H + j, left), t = vf_tanh(vf_get(c->cell + row * H + j, left)),
               dy = vf_add(vf_get(b->dy + row * H + j, left), vf_get(b->dstate + s * H + j, left)),
               dc = vf_fma(vf_mul(dy, o), tanh_slope(t), vf_get(b->dcell + s * H + j, left));
            vf d[4] = { vf_mul(vf_mul(dc, g), sigmoid_slope(i)),
                        vf_mul(vf_mul(dc, prev_of(c, c->cell, s, j, left)), sigmoid_slope(f)),
                        vf_mul(vf_mul(dc, i), tanh_slope(g)), vf_mul(vf_mul(dy, t), sigmoid_slope(o)) };
            vf_put(b->dcell + s * H + j, vf_mul(dc, f), left);
            vf_put(b->dstate + s * H + j, vf_zero(), left);
            for (int64_t k = 0; k < 4; k++) {
                int64_t at = k * H + j;
                vf_put(b->dx + row * 4 * H + at, d[k], left), vf_put(b->dh + row * 4 * H + at, d[k], left);
                vf_put(b->dh_step + s * 4 * H + at, d[k], left);
            }
        }
    }
}

void VF_NAME(ses_k_lstm_bwd)(ses_exec *x, const ses_rnn_step *c, const ses_rnn_grad *g)
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
        float *gate = c->gate + row * 3 * H;
        for (int64_t j = 0; j < H; j += VF_LANES) {
            int64_t left = H - j, last = 2 * H + j;
            vf r = vf_sigmoid(preact(c, 3, s, j, left)), z = vf_sigmoid(preact(c, 3, s, H + j, left)),
               cell = vf_add(vf_get(c->h + s * 3 * H + last, left), vf_get(c->bias + last, left)),
               n = vf_tanh(vf_fma(r, cell, vf_get(c->x + row * 3 * H + last, left))),
               y = vf_fma(z, vf_sub(prev_of(c, c->y, s, j, left), n), n);
            vf_put(gate + j, r, left), vf_put(gate + H + j, z, left), vf_put(gate + last, n, left);
            vf_put(c->cell + row * H + j, cell, left);
            vf_put(c->y + row * H + j, y, left), vf_put(c->state + s * H + j, y, left);
        }
    }
}

void VF_NAME(ses_k_gru)(ses_exec *x, const ses_rnn_step *c)
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
        const float *gate = c->gate + row * 3 * H;
        for (int64_t j = 0; j < H; j += VF_LANES) {
            int64_t left = H - j;
            vf r = vf_get(gate + j, left), z = vf_get(gate + H + j, left), n = vf_get(gate + 2 * H + j, left),
               dy = vf_add(vf_get(b->dy + row * H + j, left), vf_get(b->dstate + s * H + j, left)),
               dn = vf_mul(vf_mul(dy, vf_sub(vf_set1(1), z)), tanh_slope(n));
            vf d[3] = { vf_mul(vf_mul(dn, vf_get(c->cell + row * H + j, left)), sigmoid_slope(r)),
                        vf_mul(vf_mul(dy, vf_sub(prev_of(c, c->y, s, j, left), n)), sigmoid_slope(z)), dn };
            vf_put(b->dstate + s * H + j, vf_mul(dy, z), left);
            for (int64_t k = 0; k < 3; k++) {
                int64_t at = k * H + j;
                vf dh = k < 2 ? d[k] : vf_mul(dn, r);
                vf_put(b->dx + row * 3 * H + at, d[k], left), vf_put(b->dh + row * 3 * H + at, dh, left);
                vf_put(b->dh_step + s * 3 * H + at, dh, left);
            }
        }
    }
}

void VF_NAME(ses_k_gru_bwd)(ses_exec *x, const ses_rnn_step *c, const ses_rnn_grad *g)
{
    job j = { c, g };
    ses_parallel_for(x->pool, ses_chunks(c->n, ses_chunk_rows(3 * c->size)), gru_rows_bwd, &j);
}
