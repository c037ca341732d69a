/* Elementwise CUDA kernels, gated units, dropout and the conversion to bf16. */
#include "act_cuda.cuh"

static ses_dst plain_dst(ses_real *y)
{
    ses_dst to = { y, false, false };
    return to;
}

template <class T> static void add(ses_exec *x, ses_real *y, const ses_real *a, const ses_real *b, int64_t n)
{
    map_elems<T>(x, plain_dst(y), a, b, n, [] __device__(int64_t, float u, float v) { return u + v; });
}

template <class T> static void scale(ses_exec *x, ses_dst y, const ses_real *a, ses_real s, int64_t n)
{
    map_elems<T>(x, y, a, NULL, n, [=] __device__(int64_t, float u, float) { return s * u; });
}

template <class T> static void mul(ses_exec *x, ses_dst y, const ses_real *a, const ses_real *b, int64_t n)
{
    map_elems<T>(x, y, a, b, n, [] __device__(int64_t, float u, float v) { return u * v; });
}

template <class T>
static void affine(ses_exec *x, ses_dst y, const ses_real *a, const ses_real *gain, const ses_real *bias,
                   int64_t rows, int64_t cols)
{
    dst<T> to = dst_of<T>(y);
    const T *from = elems<T>(a);
    for_each_row(x, rows, cols, [=] __device__(int64_t row, int64_t j) {
        float v = to_float(from[row * cols + j]);
        if (gain) v *= gain[j];
        if (bias) v += bias[j];
        store(to, row * cols + j, v);
    });
}

/* A thread processes 16 bytes of a and of b. cols and all addresses are multiples of 16 bytes. */
template <class T> __global__ void glu_kernel(T *y, const T *ab, unsigned n, unsigned vecs, ses_act act)
{
    enum { N = vec16<T>::N };
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const vec16<T> *at = (const vec16<T> *)ab + ((int64_t)i + i / vecs * vecs);
        vec16<T> a = at[0], b = at[vecs];
#pragma unroll
        for (int k = 0; k < N; k++)
            a.at[k] = from_float<T>(act_for<T>(act, to_float(a.at[k])) * to_float(b.at[k]));
        ((vec16<T> *)y)[i] = a;
    }
}

template <class T>
__global__ void glu_bwd_kernel(T *dab, bool add, const T *dy, const T *ab, unsigned n, unsigned vecs,
                               ses_act act)
{
    enum { N = vec16<T>::N };
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int64_t at = (int64_t)i + i / vecs * vecs;
        const vec16<T> *from = (const vec16<T> *)ab + at;
        vec16<T> *to = (vec16<T> *)dab + at, a = from[0], b = from[vecs], d = ((const vec16<T> *)dy)[i];
        vec16<T> da = add ? to[0] : a, db = add ? to[vecs] : a;
#pragma unroll
        for (int k = 0; k < N; k++) {
            act_value s = value_and_slope<T>(act, to_float(a.at[k]));
            float g = to_float(d.at[k]), ga = g * to_float(b.at[k]) * s.slope, gb = g * s.value;
            da.at[k] = from_float<T>(add ? to_float(da.at[k]) + ga : ga);
            db.at[k] = from_float<T>(add ? to_float(db.at[k]) + gb : gb);
        }
        to[0] = da, to[vecs] = db;
    }
}

template <class T> static bool glu_is_aligned(const void *y, const void *ab, int64_t rows, int64_t cols)
{
    return cols % vec16<T>::N == 0 && rows <= INT32_MAX / cols && aligned16(y) && aligned16(ab);
}

template <class T>
static void glu(ses_exec *x, ses_real *y, const ses_real *ab, int64_t rows, int64_t cols, ses_act act)
{
    T *to = elems<T>(y);
    const T *from = elems<T>(ab);
    int64_t vecs = cols / vec16<T>::N, n = rows * vecs;
    if (rows <= 0 || cols <= 0) return;
    if (!glu_is_aligned<T>(y, ab, rows, cols))
        return for_each_row(x, rows, cols, [=] __device__(int64_t row, int64_t j) {
            const T *a = from + row * 2 * cols + j;
            to[row * cols + j] = from_float<T>(act_for<T>(act, to_float(a[0])) * to_float(a[cols]));
        });
    glu_kernel<T><<<blocks_for(x->cuda, n), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(to, from, (unsigned)n,
                                                                                  (unsigned)vecs, act);
    check_launch(x->cuda);
}

template <class T>
static void glu_bwd(ses_exec *x, ses_dst dab, const ses_real *dy, const ses_real *ab, int64_t rows,
                    int64_t cols, ses_act act)
{
    dst<T> to = dst_of<T>(dab);
    const T *from = elems<T>(ab), *slope_of = elems<T>(dy);
    int64_t vecs = cols / vec16<T>::N, n = rows * vecs;
    if (!dab.data || rows <= 0 || cols <= 0) return;
    if (dab.is_f32 || !aligned16(dy) || !glu_is_aligned<T>(dab.data, ab, rows, cols))
        return for_each_row(x, rows, cols, [=] __device__(int64_t row, int64_t j) {
            int64_t at = row * 2 * cols + j;
            act_value s = value_and_slope<T>(act, to_float(from[at]));
            float d = to_float(slope_of[row * cols + j]);
            store(to, at, d * to_float(from[at + cols]) * s.slope);
            store(to, at + cols, d * s.value);
        });
    glu_bwd_kernel<T><<<blocks_for(x->cuda, n), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(
        to.data, to.accumulate, slope_of, from, (unsigned)n, (unsigned)vecs, act);
    check_launch(x->cuda);
}

/* Eight neighbors share a Philox block: a thread draws it once for its elements. */
template <class T>
__global__ void dropout_kernel(dst<T> to, const T *a, int64_t n, bool aligned, dropout_params drop,
                               ses_rng_key key)
{
    enum { N = vec16<T>::N };
    int64_t step = (int64_t)gridDim.x * blockDim.x * N;
    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N; i < n; i += step) {
        float keep[N];
        drop_factors<N>(keep, key, i, drop);
        if (aligned && i + N <= n) {
            vec16<T> v = *(const vec16<T> *)(a + i), out = v;
            if (to.accumulate) out = *(const vec16<T> *)(to.data + i);
#pragma unroll
            for (int k = 0; k < N; k++) {
                float kept_one = keep[k] > 0 ? to_float(v.at[k]) * keep[k] : 0;
                out.at[k] = from_float<T>(to.accumulate ? to_float(out.at[k]) + kept_one : kept_one);
            }
            *(vec16<T> *)(to.data + i) = out;
        } else {
#pragma unroll
            for (int k = 0; k < N; k++)
                if (i + k < n) store(to, i + k, keep[k] > 0 ? to_float(a[i + k]) * keep[k] : 0);
        }
    }
}

template <class T>
static void dropout(ses_exec *x, ses_dst y, const ses_real *a, int64_t n, double p, ses_rng_key key)
{
    if (!y.data || n <= 0) return;
    bool aligned = !y.is_f32 && aligned16(y.data) && aligned16(a);
    dropout_kernel<T><<<blocks_for(x->cuda, ceil_div(n, vec16<T>::N)), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(
        dst_of<T>(y), elems<T>(a), n, aligned, dropout_params_of(p), key);
    check_launch(x->cuda);
}

template <class T>
static void copy_cols(ses_exec *x, ses_dst y, int64_t y_row, const ses_real *a, int64_t a_row, int64_t rows,
                      int64_t cols)
{
    dst<T> to = dst_of<T>(y);
    const T *from = elems<T>(a);
    if (!y.data) return;
    for_each_row(x, rows, cols, [=] __device__(int64_t row, int64_t j) {
        store(to, row * y_row + j, to_float(from[row * a_row + j]));
    });
}

/* w is f32. */
template <class T>
static void scale_rows(ses_exec *x, ses_dst y, const ses_real *a, const ses_real *w, int64_t rows,
                       int64_t cols)
{
    dst<T> to = dst_of<T>(y);
    const T *from = elems<T>(a);
    for_each(x, rows * cols, [=] __device__(int64_t i) { store(to, i, to_float(from[i]) * w[i / cols]); });
}

template <class T>
static void scatter_heads(ses_exec *x, ses_real *y, int64_t y_head, const int32_t *row, const ses_real *a,
                          int64_t a_row, int64_t a_head, int64_t rows, int64_t heads, int64_t dim)
{
    T *to = elems<T>(y);
    const T *from = elems<T>(a);
    for_each_row(x, rows, heads * dim, [=] __device__(int64_t t, int64_t j) {
        to[j / dim * y_head + row[t] * dim + j % dim] = from[t * a_row + j / dim * a_head + j % dim];
    });
}

void ses_cuda_to_bf16(ses_cuda *g, void *to, const float *from, int64_t n)
{
    ses_exec x = {};
    x.cuda = g;
    bf16 *y = (bf16 *)to;
    for_each(&x, n, [=] __device__(int64_t i) { y[i] = from_float<bf16>(from[i]); });
}

static void pack_bf16(ses_exec *x, uint16_t *y, const ses_real *a, int64_t n)
{
    ses_cuda_to_bf16(x->cuda, y, a, n);
}

static void unpack_bf16(ses_exec *x, ses_real *y, const uint16_t *a, int64_t n)
{
    const bf16 *from = (const bf16 *)a;
    for_each(x, n, [=] __device__(int64_t i) { y[i] = to_float(from[i]); });
}

template <class T> static void fill(ses_kernels *k)
{
    k->pack_bf16 = pack_bf16, k->unpack_bf16 = unpack_bf16;
    k->add = add<T>, k->scale = scale<T>, k->mul = mul<T>, k->affine = affine<T>, k->act = act_fwd<T>;
    k->act_bwd = act_bwd<T>, k->glu = glu<T>, k->glu_bwd = glu_bwd<T>, k->dropout = dropout<T>;
    k->copy_cols = copy_cols<T>, k->scale_rows = scale_rows<T>, k->scatter_heads = scatter_heads<T>;
}

void ses_cuda_elementwise(ses_kernels *k, bool is_bf16) { is_bf16 ? fill<bf16>(k) : fill<float>(k); }
