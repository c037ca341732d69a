/* Vectorized optimizer steps; kernels.def has the formulas. */
#include "kernel/simd/vec/vec_loop.h"

typedef struct step {
    float *w, *m, *v;
    const float *g;
    int64_t n;
    ses_adamw o;
} step;

/* Adam step and weight decay are added before they are subtracted from w: one rounding. */
static void adamw_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const step *s = ctx;
    const ses_adamw *o = &s->o;
    ses_range r = ses_chunk(s->n, SES_CHUNK, chunk);
    vf beta1 = vf_set1((float)o->beta1), rest1 = vf_set1((float)(1 - o->beta1));
    vf beta2 = vf_set1((float)o->beta2), rest2 = vf_set1((float)(1 - o->beta2));
    vf rate = vf_set1((float)(o->lr * o->correction1)), decay = vf_set1((float)(o->lr * o->weight_decay));
    vf correction2 = vf_set1((float)o->correction2), eps = vf_set1((float)o->eps);
    vf scale = vf_set1((float)o->scale);
    for (int64_t i = r.begin; i < r.end; i += VF_LANES) {
        int64_t left = r.end - i;
        vf g = vf_mul(scale, vf_get(s->g + i, left)), w = vf_get(s->w + i, left);
        vf m = vf_fma(beta1, vf_get(s->m + i, left), vf_mul(rest1, g));
        vf v = vf_fma(beta2, vf_get(s->v + i, left), vf_mul(vf_mul(rest2, g), g));
        vf denom = vf_add(vf_sqrt(vf_mul(v, correction2)), eps);
        vf change = vf_fma(decay, w, vf_div(vf_mul(rate, m), denom));
        vf_put(s->w + i, vf_sub(w, change), left);
        vf_put(s->m + i, m, left);
        vf_put(s->v + i, v, left);
    }
}

void VF_NAME(ses_k_adamw)(ses_exec *x, float *w, const float *g, float *m, float *v, int64_t n,
                          const ses_adamw *o)
{
    step s = { w, m, v, g, n, *o };
    ses_parallel_for(x->pool, ses_chunks(n, SES_CHUNK), adamw_chunk, &s);
}

void VF_NAME(ses_k_adamw_list)(ses_exec *x, const ses_adamw_tensor *part, int64_t n)
{
    for (const ses_adamw_tensor *p = part; p < part + n; p++)
        VF_NAME(ses_k_adamw)(x, p->w, p->g, p->m, p->v, p->n, &p->o);
}

typedef struct descent {
    float *w, *buf;
    const float *g;
    int64_t n;
    ses_sgd o;
} descent;

static void sgd_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const descent *s = ctx;
    ses_range r = ses_chunk(s->n, SES_CHUNK, chunk);
    vf lr = vf_set1((float)-s->o.lr), decay = vf_set1((float)s->o.weight_decay),
       scale = vf_set1((float)s->o.scale);
    vf momentum = vf_set1((float)s->o.momentum), keep = vf_set1((float)s->o.grad_weight);
    for (int64_t i = r.begin; i < r.end; i += VF_LANES) {
        int64_t left = r.end - i;
        vf w = vf_get(s->w + i, left), d = vf_fma(scale, vf_get(s->g + i, left), vf_mul(decay, w));
        if (s->buf) {
            vf buf = vf_fma(momentum, vf_get(s->buf + i, left), vf_mul(keep, d));
            vf_put(s->buf + i, buf, left);
            d = s->o.nesterov ? vf_fma(momentum, buf, d) : buf;
        }
        vf_put(s->w + i, vf_fma(lr, d, w), left);
    }
}

void VF_NAME(ses_k_sgd)(ses_exec *x, float *w, const float *g, float *buf, int64_t n, const ses_sgd *o)
{
    descent s = { w, buf, g, n, *o };
    ses_parallel_for(x->pool, ses_chunks(n, SES_CHUNK), sgd_chunk, &s);
}

typedef struct adagrad {
    float *w, *sum;
    const float *g;
    int64_t n;
    ses_adagrad o;
} adagrad;

static void adagrad_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const adagrad *s = ctx;
    ses_range r = ses_chunk(s->n, SES_CHUNK, chunk);
    vf lr = vf_set1((float)s->o.lr), decay = vf_set1((float)s->o.weight_decay),
       scale = vf_set1((float)s->o.scale), start = vf_set1((float)s->o.accumulator),
       eps = vf_set1((float)s->o.eps);
    for (int64_t i = r.begin; i < r.end; i += VF_LANES) {
        int64_t left = r.end - i;
        vf w = vf_get(s->w + i, left), d = vf_fma(scale, vf_get(s->g + i, left), vf_mul(decay, w));
        vf sum = vf_fma(d, d, vf_get(s->sum + i, left));
        vf_put(s->sum + i, sum, left);
        vf change = vf_div(vf_mul(lr, d), vf_add(vf_sqrt(vf_add(sum, start)), eps));
        vf_put(s->w + i, vf_sub(w, change), left);
    }
}

void VF_NAME(ses_k_adagrad)(ses_exec *x, float *w, const float *g, float *sum, int64_t n,
                            const ses_adagrad *o)
{
    adagrad s = { w, sum, g, n, *o };
    ses_parallel_for(x->pool, ses_chunks(n, SES_CHUNK), adagrad_chunk, &s);
}

typedef struct lamb {
    float *u, *m, *v;
    const float *w, *g;
    int64_t n;
    ses_adamw o;
} lamb;

static void lamb_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const lamb *s = ctx;
    const ses_adamw *o = &s->o;
    ses_range r = ses_chunk(s->n, SES_CHUNK, chunk);
    vf beta1 = vf_set1((float)o->beta1), rest1 = vf_set1((float)(1 - o->beta1));
    vf beta2 = vf_set1((float)o->beta2), rest2 = vf_set1((float)(1 - o->beta2));
    vf correction1 = vf_set1((float)o->correction1), correction2 = vf_set1((float)o->correction2);
    vf eps = vf_set1((float)o->eps), decay = vf_set1((float)o->weight_decay),
       scale = vf_set1((float)o->scale);
    for (int64_t i = r.begin; i < r.end; i += VF_LANES) {
        int64_t left = r.end - i;
        vf g = vf_mul(scale, vf_get(s->g + i, left));
        vf m = vf_fma(beta1, vf_get(s->m + i, left), vf_mul(rest1, g));
        vf v = vf_fma(beta2, vf_get(s->v + i, left), vf_mul(vf_mul(rest2, g), g));
        vf denom = vf_add(vf_sqrt(vf_mul(v, correction2)), eps);
        vf_put(s->m + i, m, left);
        vf_put(s->v + i, v, left);
        vf_put(s->u + i, vf_fma(decay, vf_get(s->w + i, left), vf_div(vf_mul(correction1, m), denom)), left);
    }
}

void VF_NAME(ses_k_lamb)(ses_exec *x, float *u, const float *w, const float *g, float *m, float *v, int64_t n,
                         const ses_adamw *o)
{
    lamb s = { u, m, v, w, g, n, *o };
    ses_parallel_for(x->pool, ses_chunks(n, SES_CHUNK), lamb_chunk, &s);
}

void VF_NAME(ses_k_lamb_update)(ses_exec *x, float *w, const float *u, int64_t n, double lr)
{
    double squares_w = VF_NAME(ses_k_sum_squares)(x, w, n), squares_u = VF_NAME(ses_k_sum_squares)(x, u, n);
    VF_NAME(ses_k_scale)(x, (ses_dst){ w, true }, u, (float)(-lr * ses_lamb_trust(squares_w, squares_u)), n);
}
