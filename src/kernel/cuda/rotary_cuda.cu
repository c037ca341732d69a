#include "cuda_common.cuh"

template <class T> struct turning {
    sink<T> to;
    const T *from;
    const int32_t *place;
    int64_t rows, cols, turned, dim;
    double theta, sign;
};

/* Half turns a place, for column d of a head. */
template <class T> __device__ static inline double rate_of(const turning<T> &f, int64_t d)
{
    return f.sign * pow(f.theta, -2.0 * (double)d / (double)f.dim) * 0.31830988618379067154;
}

/* cos and sin of an angle that is reduced in double: places are large. */
__device__ static inline float2 turn_of(double half_turns)
{
    float2 t;
    sincospif((float)(half_turns - 2 * rint(0.5 * half_turns)), &t.y, &t.x);
    return t;
}

/* A block finds the angles of BLOCK / half tokens, one a thread, then turns the packs of all their heads.
 * Halves of heads are whole packs; in place, columns that are not turned stay as they are. */
template <class T> __global__ void rotary_packs(turning<T> f)
{
    enum { N = pack<T>::N };
    __shared__ float2 turn[BLOCK];
    int half = (int)f.dim / 2, tokens = BLOCK / half, d = (int)threadIdx.x % half,
        mine = (int)threadIdx.x / half;
    int slices = half / N, pairs = (int)(f.turned / f.dim) * slices, rest = (int)(f.cols - f.turned) / N;
    bool in_place = f.to.data == f.from && !f.to.accumulate;
    double rate = rate_of(f, d);
    for (int64_t first = (int64_t)blockIdx.x * tokens; first < f.rows; first += (int64_t)gridDim.x * tokens) {
        int here = f.rows - first < tokens ? (int)(f.rows - first) : tokens;
        if (mine < here) turn[threadIdx.x] = turn_of(f.place[first + mine] * rate);
        __syncthreads();
        for (int p = threadIdx.x; p < here * pairs; p += BLOCK) {
            int t = p / pairs, head = p % pairs / slices, c = p % slices * N;
            int64_t i = (first + t) * f.cols + head * f.dim + c, j = i + half;
            pack<T> u = *(const pack<T> *)(f.from + i), v = *(const pack<T> *)(f.from + j);
            float low[N], high[N];
#pragma unroll
            for (int k = 0; k < N; k++) {
                float2 by = turn[t * half + c + k];
                low[k] = num(u.at[k]) * by.x - num(v.at[k]) * by.y;
                high[k] = num(v.at[k]) * by.x + num(u.at[k]) * by.y;
            }
            put_pack(f.to, i, low), put_pack(f.to, j, high);
        }
        for (int p = threadIdx.x; p < here * rest && !in_place; p += BLOCK) {
            int64_t i = (first + p / rest) * f.cols + f.turned + p % rest * N;
            pack<T> u = *(const pack<T> *)(f.from + i);
            float same[N];
#pragma unroll
            for (int k = 0; k < N; k++) same[k] = num(u.at[k]);
            put_pack(f.to, i, same);
        }
        __syncthreads();
    }
}

/* Any shape: each thread turns column d of every head of its token. */
template <class T> static void by_columns(ses_exec *x, turning<T> f)
{
    int64_t half = f.dim / 2, rest = f.cols - f.turned;
    each_row(x, f.rows, half, [=] __device__(int64_t t, int64_t d) {
        float2 by = turn_of(f.place[t] * rate_of(f, d));
        for (int64_t h = 0; h < f.turned; h += f.dim) {
            int64_t i = t * f.cols + h + d, j = i + half;
            float u = num(f.from[i]), v = num(f.from[j]);
            put(f.to, i, u * by.x - v * by.y);
            put(f.to, j, v * by.x + u * by.y);
        }
    });
    each_row(x, f.rows, rest, [=] __device__(int64_t t, int64_t j) {
        put(f.to, t * f.cols + f.turned + j, num(f.from[t * f.cols + f.turned + j]));
    });
}

template <class T>
static void rotary(ses_exec *x, ses_dst y, const ses_real *a, const int32_t *place, int64_t rows,
                   int64_t cols, int64_t turned, int64_t dim, double theta, double sign)
{
    enum { N = pack<T>::N };
    turning<T> f = { sink_of<T>(y), cells<T>(a), place, rows, cols, turned, dim, theta, sign };
    int64_t half = dim / 2;
    if (!y.data || rows <= 0) return;
    if (y.is_f32 || half % N || half > BLOCK || cols % N || cols > 1 << 20 || !whole_packs(y.data) ||
        !whole_packs(a))
        return by_columns<T>(x, f);
    int64_t blocks = ceil_div(rows, BLOCK / half), most = (int64_t)x->cuda->cores * 16;
    rotary_packs<T><<<(unsigned)(blocks < most ? blocks : most), BLOCK, 0, ses_cuda_stream(x->cuda)>>>(f);
    launched(x->cuda);
}

void ses_cuda_rotary(ses_kernels *k, bool narrow) { k->rotary = narrow ? rotary<bf16> : rotary<float>; }
