#include "act_cuda.cuh"

static ses_dst store(ses_real *y)
{
    ses_dst to = { y, false, false };
    return to;
}

template <class T> static void add(ses_exec *x, ses_real *y, const ses_real *a, const ses_real *b, int64_t n)
{
    map<T>(x, store(y), a, b, n, [] __device__(int64_t, float u, float v) { return u + v; });
}

template <class T> static void scale(ses_exec *x, ses_dst y, const ses_real *a, ses_real s, int64_t n)
{
    map<T>(x, y, a, NULL, n, [=] __device__(int64_t, float u, float) { return s * u; });
}

template <class T> static void mul(ses_exec *x, ses_dst y, const ses_real *a, const ses_real *b, int64_t n)
{
    map<T>(x, y, a, b, n, [] __device__(int64_t, float u, float v) { return u * v; });
}

template <class T>
static void affine(ses_exec *x, ses_dst y, const ses_real *a, const ses_real *gain, const ses_real *bias,
                   int64_t rows, int64_t cols)
{
    sink<T> to = sink_of<T>(y);
    const T *from = cells<T>(a);
    each_row(x, rows, cols, [=] __device__(int64_t row, int64_t j) {
        float v = num(from[row * cols + j]);
        if (gain) v *= gain[j];
        if (bias) v += bias[j];
        put(to, row * cols + j, v);
    });
}

/* A thread takes a pack of a and the pack of b in its row; cols and all addresses are of whole packs. */
template <class T> __global__ void glu_packs(T *y, const T *ab, unsigned n, unsigned packs, ses_act act)
{
    enum { N = pack<T>::N };
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const pack<T> *at = (const pack<T> *)ab + ((int64_t)i + i / packs * packs);
        pack<T> a = at[0], b = at[packs];
#pragma unroll
        for (int k = 0; k < N; k++) a.at[k] = cell<T>(act_for<T>(act, num(a.at[k])) * num(b.at[k]));
        ((pack<T> *)y)[i] = a;
    }
}

template <class T>
__global__ void glu_bwd_packs(T *dab, bool add, const T *dy, const T *ab, unsigned n, unsigned packs,
                              ses_act act)
{
    enum { N = pack<T>::N };
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int64_t at = (int64_t)i + i / packs * packs;
        const pack<T> *from = (const pack<T> *)ab + at;
        pack<T> *to = (pack<T> *)dab + at, a = from[0], b = from[packs], d = ((const pack<T> *)dy)[i];
        pack<T> da = add ? to[0] : a, db = add ? to[packs] : a;
#pragma unroll
        for (int k = 0; k < N; k++) {
            sloped s = both_for<T>(act, num(a.at[k]));
            float g = num(d.at[k]), ga = g * num(b.at[k]) * s.slope, gb = g * s.value;
            da.at[k] = cell<T>(add ? num(da.at[k]) + ga : ga);
            db.at[k] = cell<T>(add ? num(db.at[k]) + gb : gb);
        }
        to[0] = da, to[packs] = db;
    }
}

template <class T> static bool glu_by_packs(const void *y, const void *ab, int64_t rows, int64_t cols)
{
    return cols % pack<T>::N == 0 && rows <= INT32_MAX / cols && whole_packs(y) && whole_packs(ab);
}

template <class T>
static void glu(ses_exec *x, ses_real *y, const ses_real *ab, int64_t rows, int64_t cols, ses_act act)
{
    T *to = cells<T>(y);
    const T *from = cells<T>(ab);
    int64_t packs = cols / pack<T>::N, n = rows * packs;
    if (rows <= 0 || cols <= 0) return;
    if (!glu_by_packs<T>(y, ab, rows, cols))
        return each_row(x, rows, cols, [=] __device__(int64_t row, int64_t j) {
            const T *a = from + row * 2 * cols + j;
            to[row * cols + j] = cell<T>(act_for<T>(act, num(a[0])) * num(a[cols]));
        });
    glu_packs<T><<<blocks_for(x->cuda, n), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(to, from, (unsigned)n,
                                                                                 (unsigned)packs, act);
    launched(x->cuda);
}

template <class T>
static void glu_bwd(ses_exec *x, ses_dst dab, const ses_real *dy, const ses_real *ab, int64_t rows,
                    int64_t cols, ses_act act)
{
    sink<T> to = sink_of<T>(dab);
    const T *from = cells<T>(ab), *slope_of = cells<T>(dy);
    int64_t packs = cols / pack<T>::N, n = rows * packs;
    if (!dab.data || rows <= 0 || cols <= 0) return;
    if (dab.is_f32 || !whole_packs(dy) || !glu_by_packs<T>(dab.data, ab, rows, cols))
        return each_row(x, rows, cols, [=] __device__(int64_t row, int64_t j) {
            int64_t at = row * 2 * cols + j;
            sloped s = both_for<T>(act, num(from[at]));
            float d = num(slope_of[row * cols + j]);
            put(to, at, d * num(from[at + cols]) * s.slope);
            put(to, at + cols, d * s.value);
        });
    glu_bwd_packs<T><<<blocks_for(x->cuda, n), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(
        to.data, to.accumulate, slope_of, from, (unsigned)n, (unsigned)packs, act);
    launched(x->cuda);
}

/* Eight neighbors share a Philox block: a thread draws it once for its pack. */
template <class T>
__global__ void drop_cells(sink<T> to, const T *a, int64_t n, bool packed, dropping drop, ses_rng_key key)
{
    enum { N = pack<T>::N };
    int64_t step = (int64_t)gridDim.x * blockDim.x * N;
    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * N; i < n; i += step) {
        float keep[N];
        drop_pack<N>(keep, key, i, drop);
        if (packed && i + N <= n) {
            pack<T> v = *(const pack<T> *)(a + i), out = v;
            if (to.accumulate) out = *(const pack<T> *)(to.data + i);
#pragma unroll
            for (int k = 0; k < N; k++) {
                float kept_one = keep[k] > 0 ? num(v.at[k]) * keep[k] : 0;
                out.at[k] = cell<T>(to.accumulate ? num(out.at[k]) + kept_one : kept_one);
            }
            *(pack<T> *)(to.data + i) = out;
        } else {
#pragma unroll
            for (int k = 0; k < N; k++)
                if (i + k < n) put(to, i + k, keep[k] > 0 ? num(a[i + k]) * keep[k] : 0);
        }
    }
}

template <class T>
static void dropout(ses_exec *x, ses_dst y, const ses_real *a, int64_t n, double p, ses_rng_key key)
{
    if (!y.data || n <= 0) return;
    bool packed = !y.is_f32 && whole_packs(y.data) && whole_packs(a);
    drop_cells<T><<<blocks_for(x->cuda, ceil_div(n, pack<T>::N)), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(
        sink_of<T>(y), cells<T>(a), n, packed, dropping_of(p), key);
    launched(x->cuda);
}

template <class T>
static void copy_cols(ses_exec *x, ses_dst y, int64_t y_row, const ses_real *a, int64_t a_row, int64_t rows,
                      int64_t cols)
{
    sink<T> to = sink_of<T>(y);
    const T *from = cells<T>(a);
    if (!y.data) return;
    each_row(x, rows, cols, [=] __device__(int64_t row, int64_t j) {
        put(to, row * y_row + j, num(from[row * a_row + j]));
    });
}

/* w is wide. */
template <class T>
static void scale_rows(ses_exec *x, ses_dst y, const ses_real *a, const ses_real *w, int64_t rows,
                       int64_t cols)
{
    sink<T> to = sink_of<T>(y);
    const T *from = cells<T>(a);
    each_row(x, rows, cols, [=] __device__(int64_t row, int64_t j) {
        put(to, row * cols + j, num(from[row * cols + j]) * w[row]);
    });
}

template <class T>
static void scatter_heads(ses_exec *x, ses_real *y, int64_t y_head, const int32_t *row, const ses_real *a,
                          int64_t a_row, int64_t a_head, int64_t rows, int64_t heads, int64_t dim)
{
    T *to = cells<T>(y);
    const T *from = cells<T>(a);
    each_row(x, rows, heads * dim, [=] __device__(int64_t t, int64_t j) {
        to[j / dim * y_head + row[t] * dim + j % dim] = from[t * a_row + j / dim * a_head + j % dim];
    });
}

void ses_cuda_narrow(ses_cuda *g, void *to, const float *from, int64_t n)
{
    ses_exec x = { NULL, g };
    bf16 *y = (bf16 *)to;
    each(&x, n, [=] __device__(int64_t i) { y[i] = cell<bf16>(from[i]); });
}

template <class T> static void fill(ses_kernels *k)
{
    k->add = add<T>, k->scale = scale<T>, k->mul = mul<T>, k->affine = affine<T>, k->act = act_fwd<T>;
    k->act_bwd = act_bwd<T>, k->glu = glu<T>, k->glu_bwd = glu_bwd<T>, k->dropout = dropout<T>;
    k->copy_cols = copy_cols<T>, k->scale_rows = scale_rows<T>, k->scatter_heads = scatter_heads<T>;
}

void ses_cuda_elementwise(ses_kernels *k, bool narrow) { narrow ? fill<bf16>(k) : fill<float>(k); }
