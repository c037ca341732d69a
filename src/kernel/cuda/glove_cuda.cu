/* CUDA steps of GloVe: a warp for each list of pairs; kernels.def has the formulas. */
#include "cuda_common.cuh"

/* Pairs between the prefetch of a row and its use. */
enum { AHEAD = 6, LANE_COLS = 4, STRIDE = WARP * LANE_COLS, LINE_FLOATS = 32 };

__device__ static inline void prefetch_row(const float *row, int64_t n, unsigned lane)
{
    for (int64_t i = lane * LINE_FLOATS; i < n; i += WARP * LINE_FLOATS)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(row + i));
}

__device__ static inline float clip(float x, float limit) { return fminf(fmaxf(x, -limit), limit); }

/* Four columns of a row: values and sums of squares. */
struct columns {
    float4 value, squares;
};

__device__ static inline columns load_columns(const float *row, int64_t width, int64_t i)
{
    columns v = { make_float4(0, 0, 0, 0), make_float4(1, 1, 1, 1) };
    if (i < width) v.value = *(const float4 *)(row + i), v.squares = *(const float4 *)(row + width + i);
    return v;
}

__device__ static inline void store_columns(float *row, int64_t width, int64_t i, const columns &v)
{
    if (i < width) *(float4 *)(row + i) = v.value, *(float4 *)(row + width + i) = v.squares;
}

__device__ static inline float product(float4 a, float4 b, float sum)
{
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

/* The columns after the step. other: values of the other row before the step. */
__device__ static inline columns adapt(const columns &v, float4 other, float f, float4 rate, float limit)
{
    float4 s = v.squares,
           g = make_float4(clip(f * other.x, limit) * rate.x, clip(f * other.y, limit) * rate.y,
                           clip(f * other.z, limit) * rate.z, clip(f * other.w, limit) * rate.w);
    columns to = { make_float4(v.value.x - g.x * rsqrtf(s.x), v.value.y - g.y * rsqrtf(s.y),
                               v.value.z - g.z * rsqrtf(s.z), v.value.w - g.w * rsqrtf(s.w)),
                   make_float4(fmaf(g.x, g.x, s.x), fmaf(g.y, g.y, s.y), fmaf(g.z, g.z, s.z),
                               fmaf(g.w, g.w, s.w)) };
    return to;
}

__device__ static inline float4 load_rate(const float *rate, int64_t width, int64_t i)
{
    return i < width ? *(const float4 *)(rate + i) : make_float4(0, 0, 0, 0);
}

/* Adds the loss of a pair with the product `sum`; false: the pair is skipped. */
__device__ static inline bool factor(const ses_glove_pair &p, float sum, float *f, double *loss)
{
    float diff = sum - p.log_count;
    *f = p.weight * diff;
    if (!isfinite(*f)) return false;
    *loss += 0.5 * (double)*f * (double)diff;
    return true;
}

__device__ static inline float *word_row(const ses_glove &g, const ses_glove_pair &p)
{
    return g.word + 2 * g.width * p.word;
}

__device__ static inline float *context_row(const ses_glove &g, const ses_glove_pair &p)
{
    return g.context + 2 * g.width * p.context;
}

/* Pairs of a list, one after another. Each lane reads and writes its own columns only, so steps need no
 * barrier. All columns fit into the registers of a warp: the rows of the next pair are loaded during a step,
 * except for the rows that the step changes. */
__device__ static inline double train_narrow(const ses_glove &g, const ses_glove_pair *pair, int64_t n,
                                             unsigned lane)
{
    int64_t i = lane * LANE_COLS;
    float4 word_rate = load_rate(g.word_rate, g.width, i),
           context_rate = load_rate(g.context_rate, g.width, i);
    double loss = 0;
    ses_glove_pair p = pair[0];
    columns w = load_columns(word_row(g, p), g.width, i), c = load_columns(context_row(g, p), g.width, i);
    for (int64_t k = 0; k < n; k++) {
        ses_glove_pair next = pair[k + 1 < n ? k + 1 : k];
        columns next_w = load_columns(word_row(g, next), g.width, i),
                next_c = load_columns(context_row(g, next), g.width, i);
        if (k + AHEAD < n) {
            ses_glove_pair later = pair[k + AHEAD];
            prefetch_row(word_row(g, later), 2 * g.width, lane);
            prefetch_row(context_row(g, later), 2 * g.width, lane);
        }
        float f;
        if (factor(p, warp_sum(product(w.value, c.value, 0)), &f, &loss)) {
            float4 word = w.value;
            w = adapt(w, c.value, f, word_rate, g.limit), c = adapt(c, word, f, context_rate, g.limit);
            store_columns(word_row(g, p), g.width, i, w), store_columns(context_row(g, p), g.width, i, c);
        }
        if (next.word != p.word) w = next_w;
        if (next.context != p.context) c = next_c;
        p = next;
    }
    return loss;
}

/* The same for any number of columns: rows are read twice. */
__device__ static inline double train_wide(const ses_glove &g, const ses_glove_pair *pair, int64_t n,
                                           unsigned lane)
{
    double loss = 0;
    for (int64_t k = 0; k < n; k++) {
        float *w = word_row(g, pair[k]), *c = context_row(g, pair[k]), sum = 0, f;
        for (int64_t i = lane * LANE_COLS; i < g.width; i += STRIDE)
            sum = product(*(const float4 *)(w + i), *(const float4 *)(c + i), sum);
        if (!factor(pair[k], warp_sum(sum), &f, &loss)) continue;
        for (int64_t i = lane * LANE_COLS; i < g.width; i += STRIDE) {
            columns a = load_columns(w, g.width, i), b = load_columns(c, g.width, i);
            store_columns(w, g.width, i, adapt(a, b.value, f, load_rate(g.word_rate, g.width, i), g.limit));
            store_columns(c, g.width, i,
                          adapt(b, a.value, f, load_rate(g.context_rate, g.width, i), g.limit));
        }
    }
    return loss;
}

__global__ static void __launch_bounds__(WARP)
    train_tiles(ses_glove g, const ses_glove_pair *pair, int64_t first, const int64_t *start,
                const int64_t *count, double *loss)
{
    unsigned lane = threadIdx.x;
    int64_t n = count[blockIdx.x];
    double sum = 0;
    pair += start[blockIdx.x] - first;
    if (n > 0) sum = g.width <= STRIDE ? train_narrow(g, pair, n, lane) : train_wide(g, pair, n, lane);
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
