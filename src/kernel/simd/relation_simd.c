/* Vectorized relations of tokens (MiniLM); kernels.def has the formulas. */
#include "kernel/simd/vec/vec_loop.h"
#include "kernel/simd/vec/vecmath.h"

#include <math.h>

typedef struct relation {
    float *stat, *da;
    const float *a, *b, *stat_in;
    int64_t rows, cols;
    float a_scale, b_scale, scale;
} relation;

typedef struct relation_row {
    const float *a, *b;
    vf a_scale, b_scale, a_max, b_max; /* a_max, b_max: of scaled rows */
} relation_row;

/* Scaled scores minus the largest one, at most 0 but for rounding. */
VF_INLINE vf student_score(const relation_row *r, int64_t i, int64_t left)
{
    return vf_sub(vf_mul(r->a_scale, vf_get(r->a + i, left)), r->a_max);
}
VF_INLINE vf teacher_score(const relation_row *r, int64_t i, int64_t left)
{
    return vf_sub(vf_mul(r->b_scale, vf_get(r->b + i, left)), r->b_max);
}

VF_INLINE vf_pair add_student(vf_pair sum, void *ctx, int64_t i, int64_t left)
{
    vf e = vf_exp(student_score(ctx, i, left));
    sum.a = vf_add(sum.a, vf_pad(e, vf_zero(), left));
    return sum;
}

/* exp(b), and exp(b) (b - a) */
VF_INLINE vf_pair add_teacher(vf_pair sum, void *ctx, int64_t i, int64_t left)
{
    vf b = teacher_score(ctx, i, left), e = vf_pad(vf_exp(b), vf_zero(), left);
    sum.a = vf_add(sum.a, e);
    sum.b = vf_fma(e, vf_sub(b, student_score(ctx, i, left)), sum.b);
    return sum;
}

static void relation_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const relation *c = ctx;
    ses_range rows = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    for (int64_t i = rows.begin; i < rows.end; i++) {
        const float *a = c->a + i * c->cols, *b = c->b + i * c->cols;
        float a_max = c->a_scale * max_row(a, c->cols), b_max = c->b_scale * max_row(b, c->cols);
        relation_row r = { a, b, vf_set1(c->a_scale), vf_set1(c->b_scale), vf_set1(a_max), vf_set1(b_max) };
        sum_pair teacher = sum_row(c->cols, add_teacher, &r);
        double za = log(sum_row(c->cols, add_student, &r).a), zb = log(teacher.a);
        c->stat[3 * i] = (float)(teacher.b / teacher.a + za - zb);
        c->stat[3 * i + 1] = (float)(a_max + za);
        c->stat[3 * i + 2] = (float)(b_max + zb);
    }
}

void VF_NAME(ses_k_relation)(ses_exec *x, float *stat, const float *a, const float *b, int64_t rows,
                             int64_t cols, double a_scale, double b_scale)
{
    relation c = { .stat = stat, .a = a, .b = b, .rows = rows, .cols = cols };
    c.a_scale = (float)a_scale, c.b_scale = (float)b_scale;
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), relation_rows, &c);
}

static void relation_bwd_rows(void *ctx, int64_t chunk, void *scratch)
{
    (void)scratch;
    const relation *c = ctx;
    ses_range rows = ses_chunk(c->rows, ses_chunk_rows(c->cols), chunk);
    vf scale = vf_set1(c->scale);
    for (int64_t i = rows.begin; i < rows.end; i++) {
        const float *stat = c->stat_in + 3 * i;
        relation_row r = { c->a + i * c->cols,  c->b + i * c->cols, vf_set1(c->a_scale),
                           vf_set1(c->b_scale), vf_set1(stat[1]),   vf_set1(stat[2]) };
        for (int64_t j = 0; j < c->cols; j += VF_LANES) {
            int64_t left = c->cols - j;
            vf p = vf_exp(student_score(&r, j, left)), q = vf_exp(teacher_score(&r, j, left));
            vf_put(c->da + i * c->cols + j, vf_mul(scale, vf_sub(p, q)), left);
        }
    }
}

void VF_NAME(ses_k_relation_bwd)(ses_exec *x, float *da, const float *dloss, const float *stat,
                                 const float *a, const float *b, int64_t rows, int64_t cols, double a_scale,
                                 double b_scale, double scale)
{
    relation c = { .da = da, .stat_in = stat, .a = a, .b = b, .rows = rows, .cols = cols };
    c.a_scale = (float)a_scale, c.b_scale = (float)b_scale, c.scale = (float)(dloss[0] * scale);
    ses_parallel_for(x->pool, ses_chunks(rows, ses_chunk_rows(cols)), relation_bwd_rows, &c);
}
