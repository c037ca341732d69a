/* The reference kernel of attention in double precision: gradients against finite differences. */
#include "check.h"

#include "kernel/kernel.h"

#include <math.h>

enum { HEADS = 2, DIM = 5, ROW = HEADS * DIM + 3, MAX_TOKENS = 16, SIZE = MAX_TOKENS * ROW };

typedef struct problem {
    ses_attn a;
    double q[SIZE], k[SIZE], v[SIZE], out[SIZE], dout[SIZE], lse[HEADS * MAX_TOKENS];
    double delta[HEADS * MAX_TOKENS];
} problem;

static void fill(double *x, uint64_t seed)
{
    for (uint64_t i = 0; i < SIZE; i++) x[i] = ses_rand_normal((ses_rng_key){ seed, 0, 0 }, i);
}

static void setup(problem *p, const int32_t *cu_seqlens_q, const int32_t *cu_seqlens_k, int64_t seqs,
                  bool causal, double drop)
{
    fill(p->q, 1), fill(p->k, 2), fill(p->v, 3), fill(p->dout, 4);
    p->a = (ses_attn){ .seqs = seqs,
                       .heads = HEADS,
                       .dim = DIM,
                       .max_seqlen_q = 7,
                       .max_seqlen_k = 8,
                       .cu_seqlens_q = cu_seqlens_q,
                       .cu_seqlens_k = cu_seqlens_k,
                       .q = p->q,
                       .k = p->k,
                       .v = p->v,
                       .q_row = ROW,
                       .k_row = ROW,
                       .v_row = ROW,
                       .out = p->out,
                       .out_row = ROW,
                       .lse = p->lse,
                       .scale = 0.6,
                       .causal = causal,
                       .dropout = drop,
                       .rng_key = { 11, 2, 3 } };
}

/* sum(dout * out), whose gradient the backward pass computes. */
static double objective(ses_exec *x, const problem *p)
{
    double sum = 0;
    ses_k_attention_ref(x, &p->a);
    for (int64_t t = 0; t < p->a.cu_seqlens_q[p->a.seqs]; t++)
        for (int64_t d = 0; d < HEADS * DIM; d++) sum += p->out[t * ROW + d] * p->dout[t * ROW + d];
    return sum;
}

static void compare(ses_exec *x, problem *p, double *in, const double *grad, int64_t tokens)
{
    double worst = 0, h = 1e-5;
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t d = 0; d < HEADS * DIM; d++) {
            double *at = in + t * ROW + d, was = *at;
            *at = was + h;
            double up = objective(x, p);
            *at = was - h;
            double down = objective(x, p);
            *at = was;
            worst = fmax(worst, fabs((up - down) / (2 * h) - grad[t * ROW + d]));
        }
    CHECK_MSG(worst < 1e-8, "off by %g", worst);
}

static void check(ses_exec *x, const int32_t *cu_seqlens_q, const int32_t *cu_seqlens_k, int64_t seqs,
                  bool causal, double drop)
{
    static problem p;
    static double dq[SIZE], dk[SIZE], dv[SIZE];
    setup(&p, cu_seqlens_q, cu_seqlens_k, seqs, causal, drop);
    objective(x, &p);
    fill(dk, 9);
    memcpy(dv, dk, sizeof dv);
    ses_attn_grad g = {
        .dout = p.dout, .dq = { dq, false }, .dk = { dk, false }, .dv = { dv, true }, .delta = p.delta
    };
    ses_k_attention_bwd_ref(x, &p.a, &g);
    double base[SIZE];
    fill(base, 9);
    for (int i = 0; i < SIZE; i++) dv[i] -= base[i];
    compare(x, &p, p.q, dq, cu_seqlens_q[seqs]);
    compare(x, &p, p.k, dk, cu_seqlens_k[seqs]);
    compare(x, &p, p.v, dv, cu_seqlens_k[seqs]);
}

/* Softmax rows sum to one, masked keys have probability 0, and out is the weighted sum of the values. */
static void check_probs(ses_exec *x)
{
    static const int32_t cu_seqlens_q[] = { 0, 4, 9 }, cu_seqlens_k[] = { 0, 6, 13 };
    static problem p;
    double probs[HEADS * (4 * 6 + 5 * 7)];
    setup(&p, cu_seqlens_q, cu_seqlens_k, 2, true, 0);
    p.a.probs = probs;
    objective(x, &p);
    const double *row = probs + HEADS * 4 * 6 + 1 * 5 * 7 + 3 * 7; /* sequence 1, head 1, query 3 */
    double sum = 0, out = 0;
    for (int j = 0; j < 7; j++) sum += row[j], out += row[j] * p.v[(6 + j) * ROW + DIM + 2];
    CHECK(fabs(sum - 1) < 1e-12 && row[6] == 0 && row[5] > 0);
    CHECK(fabs(out - p.out[(4 + 3) * ROW + DIM + 2]) < 1e-12);
}

int main(void)
{
    static const int32_t plain[] = { 0, 3, 4, 9 }, other[] = { 0, 2, 7, 15 }, few[] = { 0, 5 },
                         fewer[] = { 0, 3 };
    ses_err e = { 0 };
    ses_exec x = { .pool = ses_thread_pool_new(2, &e) };
    if (!CHECK(x.pool)) return check_report();
    check(&x, plain, plain, 3, false, 0);
    check(&x, plain, plain, 3, true, 0);
    check(&x, plain, other, 3, false, 0);
    check(&x, plain, plain, 3, false, 0.3);
    check(&x, few, fewer, 1, true, 0); /* two queries have no visible key */
    check_probs(&x);
    ses_thread_pool_free(x.pool);
    return check_report();
}
