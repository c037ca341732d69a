/* CUDA kernel of rotary position embedding. */
#include "cuda_common.cuh"

template <class T> struct rotary_args {
    dst<T> to;
    const T *from;
    const int32_t *pos;
    int64_t rows, cols, rotary_cols, dim, pairs;
    bool adjacent;
    float factor;
    double rate[SES_ROTARY_MAX_PAIRS]; /* half-turns per position */
};

/* cos and sin of an angle reduced in double, because positions are large. */
__device__ static inline float2 cos_sin(double half_turns, float factor)
{
    float2 t;
    sincospif((float)(half_turns - 2 * rint(0.5 * half_turns)), &t.y, &t.x);
    t.x *= factor, t.y *= factor;
    return t;
}

/* A block computes the angles of BLOCK / half tokens, one per thread, then rotates the vectors of all their
 * heads. Half a head is a multiple of 16 bytes. In place, columns that are not rotated are left unchanged. */
template <class T> __global__ void rotary_kernel(rotary_args<T> f)
{
    enum { N = vec16<T>::N };
    __shared__ float2 rot[BLOCK];
    int half = (int)f.dim / 2, tokens = BLOCK / half, d = (int)threadIdx.x % half,
        mine = (int)threadIdx.x / half;
    int slices = half / N, pairs = (int)(f.rotary_cols / f.dim) * slices,
        rest = (int)(f.cols - f.rotary_cols) / N;
    bool in_place = f.to.data == f.from && !f.to.accumulate;
    double rate = f.rate[d];
    for (int64_t first = (int64_t)blockIdx.x * tokens; first < f.rows; first += (int64_t)gridDim.x * tokens) {
        int here = f.rows - first < tokens ? (int)(f.rows - first) : tokens;
        if (mine < here) rot[threadIdx.x] = cos_sin(f.pos[first + mine] * rate, f.factor);
        __syncthreads();
        for (int p = threadIdx.x; p < here * pairs; p += BLOCK) {
            int t = p / pairs, head = p % pairs / slices, c = p % slices * N;
            int64_t i = (first + t) * f.cols + head * f.dim + c, j = i + half;
            vec16<T> u = *(const vec16<T> *)(f.from + i), v = *(const vec16<T> *)(f.from + j);
            float low[N], high[N];
#pragma unroll
            for (int k = 0; k < N; k++) {
                float2 by = rot[t * half + c + k];
                low[k] = to_float(u.at[k]) * by.x - to_float(v.at[k]) * by.y;
                high[k] = to_float(v.at[k]) * by.x + to_float(u.at[k]) * by.y;
            }
            store_vec(f.to, i, low), store_vec(f.to, j, high);
        }
        for (int p = threadIdx.x; p < here * rest && !in_place; p += BLOCK) {
            int64_t i = (first + p / rest) * f.cols + f.rotary_cols + p % rest * N;
            vec16<T> u = *(const vec16<T> *)(f.from + i);
            float same[N];
#pragma unroll
            for (int k = 0; k < N; k++) same[k] = to_float(u.at[k]);
            store_vec(f.to, i, same);
        }
        __syncthreads();
    }
}

/* Any shape: each thread rotates pair d of every head of its token. */
template <class T> static void rotate_columns(ses_exec *x, rotary_args<T> f)
{
    int64_t rotated = 2 * f.pairs;
    for_each_row(x, f.rows, f.pairs, [=] __device__(int64_t t, int64_t d) {
        float2 by = cos_sin(f.pos[t] * f.rate[d], f.factor);
        for (int64_t h = 0; h < f.rotary_cols; h += f.dim) {
            int64_t i = t * f.cols + h + (f.adjacent ? 2 * d : d), j = i + (f.adjacent ? 1 : f.pairs);
            float u = to_float(f.from[i]), v = to_float(f.from[j]);
            store(f.to, i, u * by.x - v * by.y);
            store(f.to, j, v * by.x + u * by.y);
        }
    });
    if (f.to.data == f.from && !f.to.accumulate) return; /* in place */
    for_each_row(x, f.rows, f.cols, [=] __device__(int64_t t, int64_t j) {
        if (j >= f.rotary_cols || j % f.dim >= rotated)
            store(f.to, t * f.cols + j, to_float(f.from[t * f.cols + j]));
    });
}

template <class T>
static void rotary(ses_exec *x, ses_dst y, const ses_real *a, const int32_t *pos, int64_t rows, int64_t cols,
                   const ses_rotary_spec *o)
{
    enum { N = vec16<T>::N };
    rotary_args<T> f = { dst_of<T>(y), elems<T>(a),      pos, rows, cols, o->cols, o->dim, o->pairs,
                         o->adjacent,  (float)o->factor, {} };
    int64_t half = o->pairs;
    for (int64_t d = 0; d < half; d++) f.rate[d] = o->sign * o->rate[d] * 0.31830988618379067154;
    if (!y.data || rows <= 0) return;
    if (y.is_f32 || half % N || half > BLOCK || 2 * half != o->dim || o->adjacent || cols % N ||
        cols > 1 << 20 || !aligned16(y.data) || !aligned16(a))
        return rotate_columns<T>(x, f);
    int64_t blocks = ceil_div(rows, BLOCK / half), max_blocks = (int64_t)x->cuda->sm_count * 16;
    rotary_kernel<T>
        <<<(unsigned)(blocks < max_blocks ? blocks : max_blocks), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(f);
    check_launch(x->cuda);
}

void ses_cuda_rotary(ses_kernels *k, bool is_bf16) { k->rotary = is_bf16 ? rotary<bf16> : rotary<float>; }
