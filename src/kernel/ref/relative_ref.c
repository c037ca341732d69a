/* Reference relative scores and their backward pass, see ses_relative. */
#include "kernel/chunking.h"
#include "kernel/relative_chunking.h"

static double dot(const ses_real *x, const ses_real *y, int64_t n)
{
    double sum = 0;
    for (int64_t d = 0; d < n; d++) sum += (double)x[d] * y[d];
    return sum;
}

typedef struct work {
    ses_relative a;
    ses_dst y;          /* forward: scores */
    const ses_real *dy; /* backward: gradient of the scores */
    ses_dst dx, dr;
} work;

/* Head columns of the token of x that contributes to the score of query i and key j. */
static const ses_real *content(const work *w, const ses_rel_seq_head *p, int64_t i, int64_t j)
{
    return w->a.x + ses_rel_token(&w->a, p, i, j) * w->a.x_row + p->head * w->a.x_head;
}

static int64_t row_at(const work *w, int64_t row, int64_t head)
{
    return (row * w->a.heads + head) * w->a.dim;
}

static void forward_part(void *ctx, int64_t index, void *scratch)
{
    (void)scratch;
    const work *w = ctx;
    const ses_relative *a = &w->a;
    ses_rel_seq_head p = ses_rel_seq_head_at(a, index);
    for (int64_t i = 0; i < p.len_q; i++)
        for (int64_t j = 0; j < p.len_k; j++) {
            const ses_real *r = a->r + row_at(w, ses_rel_row(a, &p, i, j), p.head);
            double s = a->scale * dot(content(w, &p, i, j), r, a->dim);
            if (a->mask) s += a->mask[p.mask + i * p.len_k + j];
            ses_dst_put(w->y, p.scores + i * p.len_k + j, s);
        }
}

void ses_k_relative_ref(ses_exec *x, const ses_relative *a, ses_dst y)
{
    work w = { .a = *a, .y = y };
    ses_parallel_for(x->pool, a->seqs * a->heads, forward_part, &w);
}

/* Gradient of token t of the sequence: sums over all scores the token contributes to. */
static void content_grad(const work *w, const ses_rel_seq_head *p, int64_t t, double *sum)
{
    const ses_relative *a = &w->a;
    int64_t others = a->x_is_key ? p->len_q : p->len_k;
    for (int64_t d = 0; d < a->dim; d++) sum[d] = 0;
    for (int64_t o = 0; o < others; o++) {
        int64_t i = a->x_is_key ? o : t, j = a->x_is_key ? t : o;
        const ses_real *r = a->r + row_at(w, ses_rel_row(a, p, i, j), p->head);
        double dy = a->scale * (double)w->dy[p->scores + i * p->len_k + j];
        for (int64_t d = 0; d < a->dim; d++) sum[d] += dy * r[d];
    }
    int64_t at = (t + (a->x_is_key ? p->k0 : p->q0)) * a->x_row + p->head * a->x_head;
    for (int64_t d = 0; d < a->dim; d++) ses_dst_put(w->dx, at + d, sum[d]);
}

static void content_part(void *ctx, int64_t index, void *scratch)
{
    const work *w = ctx;
    ses_rel_seq_head p = ses_rel_seq_head_at(&w->a, index);
    int64_t tokens = w->a.x_is_key ? p.len_k : p.len_q;
    for (int64_t t = 0; t < tokens; t++) content_grad(w, &p, t, scratch);
}

/* Adds the contributions of all (i, j) at one signed distance to a row of dr. */
static void add_distance(const work *w, const ses_rel_seq_head *p, int64_t distance, double *sum)
{
    const ses_relative *a = &w->a;
    for (int64_t i = 0; i < p->len_q; i++) {
        int64_t j = ses_rel_q_pos(a, p, i) + (p->reversed ? -distance : distance);
        if (j < 0 || j >= p->len_k) continue;
        const ses_real *x = content(w, p, i, j);
        double dy = a->scale * (double)w->dy[p->scores + i * p->len_k + j];
        for (int64_t d = 0; d < a->dim; d++) sum[d] += dy * x[d];
    }
}

static void add_labels(const work *w, const ses_rel_seq_head *p, int64_t row, double *sum)
{
    const ses_relative *a = &w->a;
    for (int64_t i = 0; i < p->len_q; i++)
        for (int64_t j = 0; j < p->len_k; j++) {
            if (ses_rel_row(a, p, i, j) != row) continue;
            const ses_real *x = content(w, p, i, j);
            double dy = a->scale * (double)w->dy[p->scores + i * p->len_k + j];
            for (int64_t d = 0; d < a->dim; d++) sum[d] += dy * x[d];
        }
}

/* One row of r in one head. All sequences share the row, so one chunk sums over them in order. */
static void row_grad(void *ctx, int64_t index, void *scratch)
{
    const work *w = ctx;
    const ses_relative *a = &w->a;
    int64_t row = index / a->heads, head = index % a->heads;
    double *sum = scratch;
    for (int64_t d = 0; d < a->dim; d++) sum[d] = 0;
    for (int64_t s = 0; s < a->seqs; s++) {
        ses_rel_seq_head p = ses_rel_seq_head_at(a, s * a->heads + head);
        if (!a->dist_to_row) add_labels(w, &p, row, sum);
        for (int64_t r = 1 - p.len_k; a->dist_to_row && r < p.len_k; r++)
            if (a->dist_to_row[r + a->max_seqlen_k - 1] == row) add_distance(w, &p, r, sum);
    }
    for (int64_t d = 0; d < a->dim; d++) ses_dst_put(w->dr, row_at(w, row, head) + d, sum[d]);
}

void ses_k_relative_bwd_ref(ses_exec *x, const ses_relative *a, const ses_real *dy, ses_dst dx, ses_dst dr)
{
    work w = { .a = *a, .dy = dy, .dx = dx, .dr = dr };
    if (dx.data) ses_parallel_for(x->pool, a->seqs * a->heads, content_part, &w);
    if (dr.data) ses_parallel_for(x->pool, a->rows * a->heads, row_grad, &w);
}
