#include "split.h"

#include <math.h>

typedef struct step {
    ses_real *w, *m, *v;
    const ses_real *g;
    int64_t n;
    ses_adamw o;
} step;

/* AdamW (Loshchilov and Hutter 2019): the decay acts on w itself, not through g. */
static void adamw_chunk(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const step *s = ctx;
    const ses_adamw *o = &s->o;
    ses_range r = ses_chunk(s->n, SES_CHUNK, chunk);
    for (int64_t i = r.begin; i < r.end; i++) {
        double g = s->g[i], w = s->w[i];
        double m = o->beta1 * s->m[i] + (1 - o->beta1) * g;
        double v = o->beta2 * s->v[i] + (1 - o->beta2) * g * g;
        w -= o->lr * o->decay * w;
        w -= o->lr * (m * o->correction1) / (sqrt(v * o->correction2) + o->eps);
        s->w[i] = (ses_real)w;
        s->m[i] = (ses_real)m;
        s->v[i] = (ses_real)v;
    }
}

void ses_k_adamw_ref(ses_exec *x, ses_real *w, const ses_real *g, ses_real *m, ses_real *v, int64_t n,
                     const ses_adamw *o)
{
    step s = { w, m, v, g, n, *o };
    ses_parallel(x->pool, ses_chunks(n, SES_CHUNK), adamw_chunk, &s);
}
