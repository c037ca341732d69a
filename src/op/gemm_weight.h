/* A product with a weight, which may lie in another order and be rounded to fewer bits. */
#ifndef SES_OP_GEMM_WEIGHT_H
#define SES_OP_GEMM_WEIGHT_H

#include "op.h"
#include "tensor/pack.h"

/* g = A w' (+ bias, act): A's rows lie one after the other. */
static inline void ses_gemm_weight(const ses_node *n, ses_gemm *g, const ses_tensor *w, ses_weight order)
{
    ses_packed_weight p = ses_packed(w, order, n->k, n->exec);
    g->packed = p.data;
    g->packed_as = p.as;
    if (p.as != SES_I8) {
        n->k->gemm(n->exec, g);
        return;
    }
    int64_t row = ses_quads(g->k) * 4,
            reals = (g->m * row + (int64_t)sizeof(ses_real) - 1) / (int64_t)sizeof(ses_real);
    ses_real *scale = ses_scratch(n, g->m + reals);
    if (!scale) return;
    uint8_t *rows = (uint8_t *)(scale + g->m);
    n->k->round_rows(n->exec, rows, scale, g->a, g->m, g->k);
    n->k->gemm8(n->exec, g, rows, scale);
}

#endif
