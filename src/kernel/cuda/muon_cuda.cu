/* CUDA kernels of Muon: momentum and weights of many matrices of one shape in one launch. */
#include "cuda_common.cuh"

enum { MAX_LIST = 128, SLICES = 32 }; /* matrices per launch; blocks per matrix, with a partial sum each */

struct muon_part {
    float *w, *m;
    const float *g;
    bf16 *w_bf16;
    int64_t ld;
    float keep, rate;
};

struct muon_list {
    unsigned n; /* elements of a matrix */
    unsigned cols;
    float momentum, rest, eps, scale; /* rest: 1 - momentum */
    bool nesterov;
    muon_part part[MAX_LIST];
};

/* Index of element i in the parameter. */
__device__ static inline int64_t offset_of(const muon_list &list, const muon_part &p, unsigned i)
{
    return p.ld == list.cols ? i : (int64_t)(i / list.cols) * p.ld + i % list.cols;
}

__device__ static inline float direction(const muon_list &list, float m, float g)
{
    return list.nesterov ? list.momentum * m + list.rest * g : m;
}

/* Updates m; part_sum[matrix][slice] = sum of squares of the direction. */
__global__ void __launch_bounds__(BLOCK)
    momentum_kernel(const __grid_constant__ muon_list list, double *part_sum)
{
    const muon_part p = list.part[blockIdx.y];
    double sum = 0;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < list.n; i += SLICES * BLOCK) {
        int64_t at = offset_of(list, p, i);
        float g = list.scale * p.g[at], m = list.momentum * p.m[at] + list.rest * g;
        float v = direction(list, m, g);
        p.m[at] = m;
        sum += (double)(v * v);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) part_sum[blockIdx.y * SLICES + blockIdx.x] = sum;
}

/* The direction again, divided by its norm. */
template <class T>
__global__ void __launch_bounds__(BLOCK)
    direction_kernel(const __grid_constant__ muon_list list, const double *part_sum, T *u)
{
    const muon_part p = list.part[blockIdx.y];
    double squares = 0;
    for (int s = 0; s < SLICES; s++) squares += part_sum[blockIdx.y * SLICES + s];
    float by = 1 / fmaxf((float)sqrt(squares), list.eps);
    T *to = u + (int64_t)blockIdx.y * list.n;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < list.n; i += SLICES * BLOCK) {
        int64_t at = offset_of(list, p, i);
        to[i] = from_float<T>(by * direction(list, p.m[at], list.scale * p.g[at]));
    }
}

template <class T>
__global__ void __launch_bounds__(BLOCK) update_kernel(const __grid_constant__ muon_list list, const T *u)
{
    const muon_part p = list.part[blockIdx.y];
    const T *from = u + (int64_t)blockIdx.y * list.n;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < list.n; i += SLICES * BLOCK) {
        int64_t at = offset_of(list, p, i);
        float w = p.keep * p.w[at] - p.rate * to_float(from[i]);
        p.w[at] = w;
        if (p.w_bf16) p.w_bf16[at] = from_float<bf16>(w);
    }
}

static muon_list list_of(const ses_muon_matrix *part, int64_t count, const ses_muon *o)
{
    muon_list list = { (unsigned)(o->rows * o->cols),
                       (unsigned)o->cols,
                       (float)o->momentum,
                       (float)(1 - o->momentum),
                       (float)o->eps,
                       (float)o->scale,
                       o->nesterov,
                       {} };
    for (int64_t i = 0; i < count; i++) {
        const ses_muon_matrix *p = &part[i];
        muon_part one = { p->w, p->m, p->g, (bf16 *)p->w_bf16, p->ld, (float)p->keep, (float)p->rate };
        list.part[i] = one;
    }
    return list;
}

static bool fits(ses_exec *x, const ses_muon *o)
{
    bool ok = o->rows * o->cols <= UINT32_MAX / 2;
    if (!ok) record_failure(x->cuda, "muon: matrix has more than 2^31 elements");
    return ok;
}

template <class T>
static void muon_momentum(ses_exec *x, ses_real *u, const ses_muon_matrix *part, int64_t count,
                          const ses_muon *o)
{
    if (o->rows * o->cols <= 0 || !fits(x, o)) return;
    for (int64_t i = 0, n; i < count; i += n) {
        n = count - i < (int64_t)MAX_LIST ? count - i : (int64_t)MAX_LIST;
        double *sum = (double *)scratch_lock(x->cuda, MAX_LIST * SLICES * sizeof *sum);
        if (!sum) return;
        muon_list list = list_of(part + i, n, o);
        dim3 grid(SLICES, (unsigned)n);
        momentum_kernel<<<grid, BLOCK, 0, ses_cuda_stream(x->cuda)>>>(list, sum);
        check_launch(x->cuda);
        direction_kernel<T>
            <<<grid, BLOCK, 0, ses_cuda_stream(x->cuda)>>>(list, sum, elems<T>(u) + i * (int64_t)list.n);
        check_launch(x->cuda);
        scratch_unlock(x->cuda);
    }
}

template <class T>
static void muon_update(ses_exec *x, const ses_muon_matrix *part, const ses_real *u, int64_t count,
                        const ses_muon *o)
{
    if (o->rows * o->cols <= 0 || !fits(x, o)) return;
    for (int64_t i = 0, n; i < count; i += n) {
        n = count - i < (int64_t)MAX_LIST ? count - i : (int64_t)MAX_LIST;
        muon_list list = list_of(part + i, n, o);
        update_kernel<T><<<dim3(SLICES, (unsigned)n), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(
            list, elems<T>(u) + i * (int64_t)list.n);
        check_launch(x->cuda);
    }
}

void ses_cuda_muon(ses_kernels *k, bool is_bf16)
{
    k->muon_momentum = is_bf16 ? muon_momentum<bf16> : muon_momentum<float>;
    k->muon_update = is_bf16 ? muon_update<bf16> : muon_update<float>;
}
