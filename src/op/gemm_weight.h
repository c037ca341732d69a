/* A product with a weight, which may lie in another order and be rounded to fewer bits. */
#ifndef SES_OP_GEMM_WEIGHT_H
#define SES_OP_GEMM_WEIGHT_H

#include "op.h"
#include "tensor/pack.h"

/* g = A w' (+ bias, act): A's rows lie one after the other. x: the tensor that they are all of, whose rounded
 * rows the next product may read, too, or NULL. to: where the result goes rounded, or NULL. */
static inline void ses_gemm_weight(const ses_node *n, ses_gemm *g, const ses_tensor *x, const ses_tensor *w,
                                   ses_weight order, const ses_rows8 *to)
{
    ses_packed_weight p = ses_packed(w, order, n->k, n->exec);
    g->packed = p.data;
    g->packed_as = p.as;
    if (p.as != SES_I8) {
        n->k->gemm(n->exec, g);
        return;
    }
    const ses_rows8 *rows = x ? ses_tape_rounded(n->tape, x) : NULL;
    if (!rows) {
        bool keep = x && !ses_tape_recording(n->tape);
        rows = keep ? ses_tape_rows8(n->tape, g->m, g->k) : ses_scratch_rows8(n, g->m, g->k);
        if (!rows) return;
        n->k->round_rows(n->exec, *rows, g->a, g->m, g->k);
        if (keep) ses_tape_keep(n->tape, x, rows);
    }
    n->k->gemm8(n->exec, g, *rows, to ? *to : (ses_rows8){ 0 });
}

#endif
