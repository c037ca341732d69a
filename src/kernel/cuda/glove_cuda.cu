/* CUDA steps of GloVe: a warp for each list of pairs; kernels.def has the formulas. */
#include "cuda_common.cuh"

/* Pairs between the prefetch of a row and its use. */
enum { AHEAD = 4, LANE_COLS = 4, STRIDE = WARP * LANE_COLS, LINE_FLOATS = 32 };

__device__ static inline void prefetch_row(const float *row, int64_t n, unsigned lane)
{
    for (int64_t i = lane * LINE_FLOATS; i < n; i += WARP * LINE_FLOATS)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(row + i));
}

__device__ static inline float clip(float x, float limit) { return fminf(fmaxf(x, -limit), limit); }

/* Four columns of a word and a context: values and sums of squares. */
struct columns {
    float4 word, context, word_squares, context_squares;
};

__device__ static inline columns load_columns(const float *w, const float *c, int64_t width, int64_t i)
{
    columns v = { *(const float4 *)(w + i), *(const float4 *)(c + i), *(const float4 *)(w + width + i),
                  *(const float4 *)(c + width + i) };
    return v;
}

__device__ static inline float product(const columns &v, float sum)
{
    sum = fmaf(v.word.y, v.context.y, fmaf(v.word.x, v.context.x, sum));
    return fmaf(v.word.w, v.context.w, fmaf(v.word.z, v.context.z, sum));
}

/* Step of four columns of one side. other: values of the other side before the step. */
__device__ static inline void adapt(float *value, float *squares, float4 old, float4 s, float4 other, float f,
                                    const float *rate, float limit)
{
    float4 r = *(const float4 *)rate;
    float4 g = make_float4(clip(f * other.x, limit) * r.x, clip(f * other.y, limit) * r.y,
                           clip(f * other.z, limit) * r.z, clip(f * other.w, limit) * r.w);
    *(float4 *)squares =
        make_float4(fmaf(g.x, g.x, s.x), fmaf(g.y, g.y, s.y), fmaf(g.z, g.z, s.z), fmaf(g.w, g.w, s.w));
    *(float4 *)value = make_float4(old.x - g.x / sqrtf(s.x), old.y - g.y / sqrtf(s.y),
                                   old.z - g.z / sqrtf(s.z), old.w - g.w / sqrtf(s.w));
}

__device__ static inline void step(const ses_glove &g, float *w, float *c, const columns &v, float f,
                                   int64_t i)
{
    adapt(w + i, w + g.width + i, v.word, v.word_squares, v.context, f, g.word_rate + i, g.limit);
    adapt(c + i, c + g.width + i, v.context, v.context_squares, v.word, f, g.context_rate + i, g.limit);
}

/* Each lane reads and writes its own columns only, so steps need no barrier. The first ones stay in
 * registers. */
__device__ static inline double train_pair(const ses_glove &g, ses_glove_pair p, unsigned lane)
{
    float *w = g.word + 2 * g.width * p.word, *c = g.context + 2 * g.width * p.context;
    int64_t first = lane * LANE_COLS;
    columns v = {};
    if (first < g.width) v = load_columns(w, c, g.width, first);
    float sum = product(v, 0);
    for (int64_t i = first + STRIDE; i < g.width; i += STRIDE)
        sum = product(load_columns(w, c, g.width, i), sum);
    float diff = warp_sum(sum) - p.log_count, f = p.weight * diff;
    if (!isfinite(f)) return 0;
    if (first < g.width) step(g, w, c, v, f, first);
    for (int64_t i = first + STRIDE; i < g.width; i += STRIDE)
        step(g, w, c, load_columns(w, c, g.width, i), f, i);
    return 0.5 * (double)f * (double)diff;
}

__global__ static void __launch_bounds__(WARP)
    train_tiles(ses_glove g, const ses_glove_pair *pair, int64_t first, const int64_t *start,
                const int64_t *count, double *loss)
{
    unsigned lane = threadIdx.x;
    int64_t n = count[blockIdx.x];
    double sum = 0;
    pair += start[blockIdx.x] - first;
    for (int64_t k = 0; k < n; k++) {
        if (k + AHEAD < n) {
            ses_glove_pair later = pair[k + AHEAD];
            prefetch_row(g.word + 2 * g.width * later.word, 2 * g.width, lane);
            prefetch_row(g.context + 2 * g.width * later.context, 2 * g.width, lane);
        }
        sum += train_pair(g, pair[k], lane);
    }
    if (lane == 0) loss[blockIdx.x] = sum;
}

static void glove_tiles(ses_exec *x, const ses_glove *g, const ses_glove_pair *pair, int64_t first,
                        const int64_t *start, const int64_t *count, int64_t tiles, double *loss)
{
    if (tiles < 1) return;
    train_tiles<<<(unsigned)tiles, WARP, 0, ses_cuda_stream(x->cuda)>>>(*g, pair, first, start, count, loss);
    check_launch(x->cuda);
}

void ses_cuda_glove(ses_kernels *k) { k->glove_tiles = glove_tiles; }
