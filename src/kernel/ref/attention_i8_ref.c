/* Reference int8 attention; kernels.def specifies the quantization. */
#include "kernel/attention_chunking.h"

#include <math.h>

/* Quantizes n numbers to int8 and returns the scale, max |x| / 127; NaN if a number is not finite. */
static double quantize(int8_t *to, const ses_real *x, int64_t n)
{
    double max_abs = 0, nonfinite = 0;
    for (int64_t d = 0; d < n; d++)
        max_abs = fmax(max_abs, fabs((double)x[d])), nonfinite += (double)x[d] - (double)x[d];
    for (int64_t d = 0; d < n; d++)
        to[d] = (int8_t)(max_abs > 0 && nonfinite == 0 ? rint(x[d] * (127 / max_abs)) : 0);
    return max_abs / 127 + nonfinite;
}

/* Reads row t of head h from rows that are already quantized ([heads][rows][dim]); returns the scale. */
static double load_i8(int8_t *to, ses_i8_rows x, const ses_attn *a, int64_t rows, int64_t t, int64_t h)
{
    const uint8_t *q = x.q + (h * rows + t) * 4 * ses_quad_count(a->dim);
    for (int64_t d = 0; d < a->dim; d++) to[d] = (int8_t)(q[d] - SES_I8_ZERO);
    return (double)x.scale[h * rows + t] / 127;
}

/* One head of one sequence; the arrays lie in scratch memory. */
typedef struct head {
    const ses_attn *a;
    ses_attn_seq_head part;
    double *k_scale, *v_scale; /* [keys] */
    double *score;             /* [keys] */
    double top;                /* largest scale of a value row */
    int8_t *k, *v;             /* [keys][dim], int8 */
    int8_t *q;                 /* [dim] */
} head;

_Static_assert(SES_ATTN_I8_MAX_KEYS *(3 * 8 + 2 * SES_ATTN_I8_MAX_DIM) + SES_ATTN_I8_MAX_DIM <=
                   SES_SCRATCH_BYTES,
               "scratch");

static head head_of(const ses_attn *a, ses_attn_seq_head part, double *scratch)
{
    int64_t keys = part.len_k, dim = a->dim;
    head h = { .a = a, .part = part, .k_scale = scratch };
    h.v_scale = h.k_scale + keys, h.score = h.v_scale + keys;
    h.k = (int8_t *)(h.score + keys), h.v = h.k + keys * dim, h.q = h.v + keys * dim;
    double nonfinite = 0;
    for (int64_t j = 0; j < keys; j++) {
        int64_t t = part.k0 + j, all = a->cu_seqlens_k[a->seqs];
        bool quantized = a->k_i8.q;
        h.k_scale[j] =
            quantized ? load_i8(h.k + j * dim, a->k_i8, a, all, t, part.head)
                      : quantize(h.k + j * dim,
                                 a->k + t * a->k_row + part.head * ses_attn_head_stride(a->k_head, a), dim);
        h.v_scale[j] =
            quantized ? load_i8(h.v + j * dim, a->v_i8, a, all, t, part.head)
                      : quantize(h.v + j * dim,
                                 a->v + t * a->v_row + part.head * ses_attn_head_stride(a->v_head, a), dim);
        h.top = fmax(h.top, h.v_scale[j]);
        nonfinite += h.v_scale[j] - h.v_scale[j];
    }
    h.top += nonfinite; /* a non-finite value makes every output non-finite */
    return h;
}

static void attend(const head *h, int64_t i)
{
    const ses_attn *a = h->a;
    int64_t keys = h->part.len_k, dim = a->dim, at = h->part.q0 + i;
    double scale = a->scale;
    if (a->q_i8.q)
        scale *= load_i8(h->q, a->q_i8, a, a->cu_seqlens_q[a->seqs], at, h->part.head);
    else
        scale *=
            quantize(h->q, a->q + at * a->q_row + h->part.head * ses_attn_head_stride(a->q_head, a), dim);
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < keys; j++) {
        int64_t dot = 0;
        for (int64_t d = 0; d < dim; d++) dot += h->q[d] * h->k[j * dim + d];
        h->score[j] = (double)dot * scale * h->k_scale[j];
        max = fmax(max, h->score[j]);
    }
    for (int64_t j = 0; j < keys; j++) {
        double p = exp(h->score[j] - max);
        sum += p;
        h->score[j] = h->top > 0 ? rint(p * SES_ATTN_I8_PROB_SCALE * (h->v_scale[j] / h->top)) : 0;
    }
    for (int64_t d = 0; d < dim; d++) {
        double y = 0;
        for (int64_t j = 0; j < keys; j++) y += h->score[j] * h->v[j * dim + d];
        a->out[at * a->out_row + h->part.head * dim + d] =
            (ses_real)(y * h->top / (SES_ATTN_I8_PROB_SCALE * sum));
    }
}

static void chunk(void *ctx, int64_t index, void *scratch)
{
    const ses_attn *a = ctx;
    ses_attn_seq_head part = ses_attn_seq_head_at(a, index);
    if (!ses_attn_i8_fits(part.len_k)) return;
    head h = head_of(a, part, scratch);
    for (int64_t i = 0; i < part.len_q; i++) attend(&h, i);
}

void ses_k_attention_i8_ref(ses_exec *x, const ses_attn *a, bool no_dot)
{
    (void)no_dot;
    if (!ses_attn_i8_supported(a)) {
        ses_k_attention_ref(x, a);
        return;
    }
    ses_attn copy = *a, one = *a;
    ses_parallel_for(x->pool, a->seqs * a->heads, chunk, &copy);
    one.seqs = 1;
    for (int64_t s = 0; s < a->seqs;
         s++, one.cu_seqlens_q++, one.cu_seqlens_k++, one.len_k = one.len_k ? one.len_k + 1 : NULL)
        if (!ses_attn_i8_fits(ses_attn_key_count(a, s)) && !a->k_i8.q) ses_k_attention_ref(x, &one);
}
