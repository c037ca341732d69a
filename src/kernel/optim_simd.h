/* Optimizer steps over the vector vocabulary; optim_ref.c says what they compute. */
#include "vec_loop.h"

typedef struct step {
    float *w, *m, *v;
    const float *g;
    int64_t n;
    ses_adamw o;
} step;

/* Both changes of w are added up before they are taken from it: one rounding. */
static void adamw_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const step *s = ctx;
    const ses_adamw *o = &s->o;
    ses_range r = ses_chunk(s->n, SES_CHUNK, chunk);
    vf beta1 = vf_set1((float)o->beta1), rest1 = vf_set1((float)(1 - o->beta1));
    vf beta2 = vf_set1((float)o->beta2), rest2 = vf_set1((float)(1 - o->beta2));
    vf rate = vf_set1((float)(o->lr * o->correction1)), decay = vf_set1((float)(o->lr * o->decay));
    vf correction2 = vf_set1((float)o->correction2), eps = vf_set1((float)o->eps);
    for (int64_t i = r.begin; i < r.end; i += VF_LANES) {
        int64_t left = r.end - i;
        vf g = vf_get(s->g + i, left), w = vf_get(s->w + i, left);
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
    ses_parallel(x->pool, ses_chunks(n, SES_CHUNK), adamw_chunk, &s);
}
