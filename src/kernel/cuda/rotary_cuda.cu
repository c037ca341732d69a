/* CUDA kernel of rotary position embedding. */
#include "cuda_common.cuh"

template <class T> struct rotary_args {
    dst<T> to;
    const T *from;
    const int32_t *pos;
    int64_t rows, cols, rotary_cols, dim;
    double theta, sign;
};

/* Half-turns per position for column d of a head. */
template <class T> __device__ static inline double rate_of(const rotary_args<T> &f, int64_t d)
{
    return f.sign * pow(f.theta, -2.0 * (double)d / (double)f.dim) * 0.31830988618379067154;
}

/* cos and sin of an angle reduced in double, because positions are large. */
__device__ static inline float2 cos_sin(double half_turns)
{
    float2 t;
    sincospif((float)(half_turns - 2 * rint(0.5 * half_turns)), &t.y, &t.x);
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
    double rate = rate_of(f, d);
    for (int64_t first = (int64_t)blockIdx.x * tokens; first < f.rows; first += (int64_t)gridDim.x * tokens) {
        int here = f.rows - first < tokens ? (int)(f.rows - first) : tokens;
        if (mine < here) rot[threadIdx.x] = cos_sin(f.pos[first + mine] * rate);
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

/* Any shape: each thread rotates column d of every head of its token. */
template <class T> static void rotate_columns(ses_exec *x, rotary_args<T> f)
{
    int64_t half = f.dim / 2, rest = f.cols - f.rotary_cols;
    for_each_row(x, f.rows, half, [=] __device__(int64_t t, int64_t d) {
        float2 by = cos_sin(f.pos[t] * rate_of(f, d));
        for (int64_t h = 0; h < f.rotary_cols; h += f.dim) {
            int64_t i = t * f.cols + h + d, j = i + half;
            float u = to_float(f.from[i]), v = to_float(f.from[j]);
            store(f.to, i, u * by.x - v * by.y);
            store(f.to, j, v * by.x + u * by.y);
        }
    });
    for_each_row(x, f.rows, rest, [=] __device__(int64_t t, int64_t j) {
        store(f.to, t * f.cols + f.rotary_cols + j, to_float(f.from[t * f.cols + f.rotary_cols + j]));
    });
}

template <class T>
static void rotary(ses_exec *x, ses_dst y, const ses_real *a, const int32_t *pos, int64_t rows, int64_t cols,
                   int64_t rotary_cols, int64_t dim, double theta, double sign)
{
    enum { N = vec16<T>::N };
    rotary_args<T> f = { dst_of<T>(y), elems<T>(a), pos, rows, cols, rotary_cols, dim, theta, sign };
    int64_t half = dim / 2;
    if (!y.data || rows <= 0) return;
    if (y.is_f32 || half % N || half > BLOCK || cols % N || cols > 1 << 20 || !aligned16(y.data) ||
        !aligned16(a))
        return rotate_columns<T>(x, f);
    int64_t blocks = ceil_div(rows, BLOCK / half), max_blocks = (int64_t)x->cuda->sm_count * 16;
    rotary_kernel<T>
        <<<(unsigned)(blocks < max_blocks ? blocks : max_blocks), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(f);
    check_launch(x->cuda);
}

void ses_cuda_rotary(ses_kernels *k, bool is_bf16) { k->rotary = is_bf16 ? rotary<bf16> : rotary<float>; }
