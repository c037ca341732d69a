/* Reference kernels of Muon: momentum and weights of matrices of one shape. */
#include "kernel/chunking.h"

#include <math.h>

typedef struct job {
    ses_real *u;
    const ses_real *from; /* u of muon_update */
    const ses_muon_matrix *part;
    ses_muon o;
} job;

/* Matrix `index`. */
static void momentum_chunk(void *ctx, int64_t index, void *scratch)
{
    (void)scratch;
    const job *c = ctx;
    const ses_muon *o = &c->o;
    const ses_muon_matrix *p = &c->part[index];
    ses_real *u = c->u + index * o->rows * o->cols;
    double squares = 0;
    for (int64_t i = 0; i < o->rows; i++)
        for (int64_t j = 0; j < o->cols; j++) {
            double g = o->scale * p->g[i * p->ld + j], b = o->momentum,
                   m = b * p->m[i * p->ld + j] + (1 - b) * g;
            double v = o->nesterov ? b * m + (1 - b) * g : m;
            p->m[i * p->ld + j] = (ses_real)m;
            u[i * o->cols + j] = (ses_real)v;
            squares += v * v;
        }
    double by = 1 / fmax(sqrt(squares), o->eps);
    for (int64_t i = 0; i < o->rows * o->cols; i++) u[i] = (ses_real)(u[i] * by);
}

void ses_k_muon_momentum_ref(ses_exec *x, ses_real *u, const ses_muon_matrix *part, int64_t count,
                             const ses_muon *o)
{
    job c = { .u = u, .part = part, .o = *o };
    ses_parallel_for(x->pool, count, momentum_chunk, &c);
}

static void update_chunk(void *ctx, int64_t index, void *scratch)
{
    (void)scratch;
    const job *c = ctx;
    const ses_muon *o = &c->o;
    const ses_muon_matrix *p = &c->part[index];
    const ses_real *u = c->from + index * o->rows * o->cols;
    for (int64_t i = 0; i < o->rows; i++)
        for (int64_t j = 0; j < o->cols; j++) {
            ses_real *w = &p->w[i * p->ld + j];
            *w = (ses_real)(p->keep * *w - p->rate * u[i * o->cols + j]);
        }
}

void ses_k_muon_update_ref(ses_exec *x, const ses_muon_matrix *part, const ses_real *u, int64_t count,
                           const ses_muon *o)
{
    job c = { .from = u, .part = part, .o = *o };
    ses_parallel_for(x->pool, count, update_chunk, &c);
}
