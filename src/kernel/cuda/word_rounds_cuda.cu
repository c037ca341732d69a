/* CUDA rounds of word vectors, see ses_word_rounds. All rounds of a call are planned at once:
 * 1. plan_steps: a thread for each step writes the rows it uses into slots, and the key round | row of each.
 * 2. A stable sort by key and a selection list, for each round, the rows and the gradients of each row.
 * Then each round is two launches:
 * 3. train_steps: a warp for each step computes its gradients from the weights before the round.
 * 4. add_gradients: a warp for each row adds them up, in the order of the text.
 * No atomics: repeated runs give the same bits. */
#include "cuda_common.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

extern "C" {
#include "kernel/word_draws.h"
}

enum { TILE_IN = 4, TILE_OUT = 8, STEP_WARPS = 4, ROW_WARPS = 8, LANE_COLS = 4, STRIDE = WARP * LANE_COLS };

/* Arguments of all launches. Slots of a step: 2 window inputs, then outputs. Gradients of a step: one for
 * each slot; for a bag one of all inputs, the outputs, and the mean. */
struct plan {
    ses_word_rounds r;
    int64_t steps; /* of a round */
    int in_slots, slots, grads;
    int row_bits, key_bits;
    uint32_t none; /* key of an unused slot; the largest */
    int64_t entries;
    int32_t *row;               /* [count][steps][slots]: rows of inputs; outputs as 2 row + label */
    uint32_t *size;             /* [count][steps]: inputs | outputs << 16 */
    uint32_t *key, *sorted;     /* [entries], sorted[entries] = none */
    int32_t *grad_row, *source; /* [entries]: gradient of an entry, unsorted and sorted */
    int32_t *start, *runs;      /* [entries + 1]: first entry of each run of equal keys; [1]: how many */
    int32_t *first_run;         /* [count + 1]: of each round */
    float *grad;                /* [steps][grads][cols] */
    float *loss;                /* [count][steps] */
    void *temp;
    size_t temp_bytes;
};

/* Selects the first entry of each run. */
struct starts_run {
    const uint32_t *key;
    __device__ bool operator()(int32_t i) const { return !i || key[i] != key[i - 1]; }
};

static int bits_of(int64_t n)
{
    int bits = 0;
    while (n >> bits) bits++;
    return bits;
}

static cudaError_t sort_entries(plan *p, cudaStream_t stream)
{
    return cub::DeviceRadixSort::SortPairs(p->temp, p->temp_bytes, p->key, p->sorted, p->grad_row, p->source,
                                           (int)p->entries, 0, p->key_bits, stream);
}

static cudaError_t select_runs(plan *p, cudaStream_t stream)
{
    return cub::DeviceSelect::If(p->temp, p->temp_bytes, thrust::counting_iterator<int32_t>(0), p->start,
                                 p->runs, (int)p->entries + 1, starts_run{ p->sorted }, stream);
}

/* Takes the next n elements of the scratch memory; at NULL it only counts bytes. */
template <class T> static void take(T **to, char *memory, size_t *used, int64_t n)
{
    *to = memory ? (T *)(void *)(memory + *used) : NULL;
    *used += ((size_t)n * sizeof(T) + 255) / 256 * 256;
}

/* Divides the scratch memory; returns its size. */
static size_t make_plan(plan *p, const ses_word_rounds *r, cudaStream_t stream)
{
    size_t used = 0, temp = 0;
    char *memory = (char *)r->scratch;
    *p = {};
    p->r = *r;
    p->steps = r->parts * r->part_words;
    p->in_slots = 2 * r->window, p->slots = p->in_slots + r->outputs;
    p->grads = r->bags ? r->outputs + 2 : p->slots;
    p->row_bits = bits_of(r->rows), p->key_bits = p->row_bits + bits_of(r->count - 1);
    p->none = (uint32_t)((1ull << p->key_bits) - 1);
    p->entries = r->count * p->steps * p->slots;
    sort_entries(p, stream);
    temp = p->temp_bytes;
    select_runs(p, stream);
    if (p->temp_bytes < temp) p->temp_bytes = temp;
    take(&p->row, memory, &used, p->entries), take(&p->size, memory, &used, r->count * p->steps);
    take(&p->key, memory, &used, p->entries), take(&p->sorted, memory, &used, p->entries + 1);
    take(&p->grad_row, memory, &used, p->entries), take(&p->source, memory, &used, p->entries);
    take(&p->start, memory, &used, p->entries + 1), take(&p->runs, memory, &used, 1);
    take(&p->first_run, memory, &used, r->count + 1);
    take(&p->grad, memory, &used, p->steps * p->grads * r->cols);
    take(&p->loss, memory, &used, r->count * p->steps);
    char *end;
    take(&end, memory, &used, (int64_t)p->temp_bytes);
    p->temp = end;
    return used;
}

/* ---- plan ---- */

__global__ static void plan_steps(plan p)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) p.sorted[p.entries] = p.none;
    if (i >= p.r.count * p.steps) return;
    int64_t round = i / p.steps, step = i % p.steps, at = i * p.slots;
    int32_t n_in, n_out, *in = p.row + at, *out = in + p.in_slots;
    ses_word_step_rows(&p.r, ses_word_position(&p.r, p.r.first + round, step), in, &n_in, out, &n_out);
    p.size[i] = (uint32_t)n_in | (uint32_t)n_out << 16;
    uint32_t base = (uint32_t)round << p.row_bits;
    for (int k = 0; k < p.slots; k++) {
        bool input = k < p.in_slots, used = input ? k < n_in : k - p.in_slots < n_out;
        int grad = !p.r.bags ? k : input ? 0 : 1 + k - p.in_slots;
        p.key[at + k] = !used ? p.none : base | (uint32_t)(input ? in[k] : out[k - p.in_slots] >> 1);
        p.grad_row[at + k] = (int32_t)(step * p.grads + grad);
    }
}

/* The first run of each round, by binary search. The last run is that of unused slots. */
__global__ static void find_rounds(plan p)
{
    int64_t round = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (round > p.r.count) return;
    int32_t low = 0, high = *p.runs - 1;
    if (round == p.r.count) low = high;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (p.sorted[p.start[middle]] >> p.row_bits < round)
            low = middle + 1;
        else
            high = middle;
    }
    p.first_run[round] = low;
}

/* ---- steps ---- */

__device__ static inline float4 load4(const float *p) { return *(const float4 *)p; }

__device__ static inline float dot4(float4 a, float4 b, float sum)
{
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

__device__ static inline float4 add_scaled(float4 sum, float g, float4 a)
{
    return make_float4(fmaf(g, a.x, sum.x), fmaf(g, a.y, sum.y), fmaf(g, a.z, sum.z), fmaf(g, a.w, sum.w));
}

/* Lane l receives the sum over all lanes of v[l]. */
__device__ static inline float sum_each(float v[WARP], unsigned lane)
{
#pragma unroll
    for (unsigned width = WARP / 2; width; width /= 2) {
        bool upper = lane & width;
#pragma unroll
        for (unsigned k = 0; k < width; k++) {
            float send = upper ? v[k] : v[k + width], keep = upper ? v[k + width] : v[k];
            v[k] = keep + __shfl_xor_sync(0xffffffffu, send, width);
        }
    }
    return v[0];
}

/* A tile of inputs and outputs of a step. */
struct tile {
    const float *x[TILE_IN], *y[TILE_OUT];
    float *dx, *dy; /* gradients of the first ones; those of the others follow */
    int n, m;       /* inputs and outputs in use; the other pointers are valid, too */
    bool add_dx, add_dy;
};

/* Lane i * TILE_OUT + j receives the product of input i and output j. */
__device__ static inline float products(const tile &t, int64_t cols, unsigned lane)
{
    float acc[WARP] = {};
    for (int64_t c = lane * LANE_COLS; c < cols; c += STRIDE) {
        float4 y[TILE_OUT];
#pragma unroll
        for (int j = 0; j < TILE_OUT; j++) y[j] = load4(t.y[j] + c);
#pragma unroll
        for (int i = 0; i < TILE_IN; i++) {
            float4 x = load4(t.x[i] + c);
#pragma unroll
            for (int j = 0; j < TILE_OUT; j++) acc[i * TILE_OUT + j] = dot4(x, y[j], acc[i * TILE_OUT + j]);
        }
    }
    return sum_each(acc, lane);
}

/* Stores or adds the gradients; g: coefficient of the lane's pair. */
__device__ static inline void store_gradients(const tile &t, float g, int64_t cols, unsigned lane)
{
    float coefficient[WARP];
#pragma unroll
    for (int k = 0; k < WARP; k++) coefficient[k] = __shfl_sync(0xffffffffu, g, k);
    for (int64_t c = lane * LANE_COLS; c < cols; c += STRIDE) {
        float4 y[TILE_OUT], dy[TILE_OUT];
#pragma unroll
        for (int j = 0; j < TILE_OUT; j++) {
            y[j] = load4(t.y[j] + c);
            dy[j] = t.add_dy && j < t.m ? load4(t.dy + j * cols + c) : make_float4(0, 0, 0, 0);
        }
#pragma unroll
        for (int i = 0; i < TILE_IN; i++) {
            if (i >= t.n) break;
            float4 x = load4(t.x[i] + c), *to = (float4 *)(t.dx + i * cols + c);
            float4 dx = t.add_dx ? *to : make_float4(0, 0, 0, 0);
#pragma unroll
            for (int j = 0; j < TILE_OUT; j++) {
                dx = add_scaled(dx, coefficient[i * TILE_OUT + j], y[j]);
                dy[j] = add_scaled(dy[j], coefficient[i * TILE_OUT + j], x);
            }
            *to = dx;
        }
#pragma unroll
        for (int j = 0; j < TILE_OUT; j++)
            if (j < t.m) *(float4 *)(t.dy + j * cols + c) = dy[j];
    }
}

/* Mean of the rows of a bag, for the columns of the lane. */
__device__ static inline void average(const plan &p, const int32_t *in, int n, float *mean, unsigned lane)
{
    float share = 1 / (float)n;
    for (int64_t c = lane * LANE_COLS; c < p.r.cols; c += STRIDE) {
        float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
        for (int i = 0; i < n; i++) sum = add_scaled(sum, share, load4(p.r.weight + in[i] * p.r.cols + c));
        *(float4 *)(mean + c) = sum;
    }
}

/* Each lane reads and writes its own columns only, so gradients need no barrier. */
__global__ static void __launch_bounds__(STEP_WARPS *WARP) train_steps(plan p, int64_t round, float rate)
{
    unsigned lane = threadIdx.x % WARP;
    int64_t step = (int64_t)blockIdx.x * STEP_WARPS + threadIdx.x / WARP, cols = p.r.cols;
    if (step >= p.steps) return;
    int64_t at = round * p.steps + step;
    uint32_t size = p.size[at];
    const int32_t *in = p.row + at * p.slots, *out = in + p.in_slots;
    int n = (int)(size & 0xffff), m = (int)(size >> 16);
    float *grad = p.grad + step * p.grads * cols, loss = 0, *mean = grad + (p.grads - 1) * cols;
    if (p.r.bags && n) {
        average(p, in, n, mean, lane);
        n = 1;
    }
    for (int j0 = 0; j0 < m; j0 += TILE_OUT) {
        tile t;
        t.m = m - j0 < TILE_OUT ? m - j0 : TILE_OUT;
        t.dy = grad + ((p.r.bags ? 1 : p.in_slots) + j0) * cols;
#pragma unroll
        for (int j = 0; j < TILE_OUT; j++)
            t.y[j] = p.r.weight + (out[j0 + (j < t.m ? j : t.m - 1)] >> 1) * cols;
        int label = out[j0 + ((int)(lane % TILE_OUT) < t.m ? lane % TILE_OUT : 0)] & 1;
        for (int i0 = 0; i0 < n; i0 += TILE_IN) {
            t.n = n - i0 < TILE_IN ? n - i0 : TILE_IN;
            t.dx = grad + i0 * cols, t.add_dx = j0 > 0, t.add_dy = i0 > 0;
#pragma unroll
            for (int i = 0; i < TILE_IN; i++)
                t.x[i] = p.r.bags ? mean : p.r.weight + in[i0 + (i < t.n ? i : t.n - 1)] * cols;
            float f = products(t, cols, lane), z = label ? f : -f;
            bool valid = (int)(lane / TILE_OUT) < t.n && (int)(lane % TILE_OUT) < t.m;
            float e = expf(-fabsf(z)), wrong = (z < 0 ? 1 : e) / (1 + e); /* 1 - sigmoid(z) */
            if (valid) loss += log1pf(e) - fminf(z, 0);
            if (valid && f != f) loss = f;
            store_gradients(t, !valid ? 0 : label ? rate * wrong : -rate * wrong, cols, lane);
        }
    }
    loss = warp_sum(loss);
    if (lane == 0) p.loss[at] = loss;
}

/* ---- rows ---- */

__global__ static void __launch_bounds__(ROW_WARPS *WARP) add_gradients(plan p, int64_t round, float rate)
{
    unsigned lane = threadIdx.x % WARP;
    int32_t last = p.first_run[round + 1];
    for (int32_t run = p.first_run[round] + (int32_t)(blockIdx.x * ROW_WARPS + threadIdx.x / WARP);
         run < last; run += (int32_t)gridDim.x * ROW_WARPS) {
        int32_t begin = p.start[run], end = p.start[run + 1];
        int64_t row = p.sorted[begin] & ((1u << p.row_bits) - 1);
        float step = (row < p.r.in_rows ? p.r.in_step : p.r.out_step) * rate;
        float scale = ses_word_scale(step, end - begin, end - begin);
        for (int64_t c = lane * LANE_COLS; c < p.r.cols; c += STRIDE) {
            float4 sum = make_float4(0, 0, 0, 0), *to = (float4 *)(p.r.weight + row * p.r.cols + c);
            float4 old = *to;
#pragma unroll 8
            for (int32_t i = begin; i < end; i++)
                sum = add_scaled(sum, 1, load4(p.grad + p.source[i] * p.r.cols + c));
            *to = add_scaled(old, scale, sum);
        }
    }
}

/* Losses and pairs of all steps; one block. */
__global__ static void add_losses(plan p)
{
    double loss = 0, pairs = 0;
    for (int64_t i = threadIdx.x; i < p.r.count * p.steps; i += blockDim.x) {
        uint32_t n = p.size[i] & 0xffff;
        loss += (double)p.loss[i], pairs += p.r.bags ? n > 0 : n;
    }
    loss = block_sum(loss), pairs = block_sum(pairs);
    if (threadIdx.x) return;
    p.r.sums[0] += loss, p.r.sums[1] += pairs;
}

/* ---- the kernels ---- */

static int64_t word_rounds_size(ses_exec *x, const ses_word_rounds *r)
{
    plan p;
    ses_word_rounds sizes = *r;
    sizes.scratch = NULL;
    return (int64_t)make_plan(&p, &sizes, ses_cuda_stream(x->cuda));
}

static void word_rounds(ses_exec *x, const ses_word_rounds *r)
{
    plan p;
    ses_cuda *g = x->cuda;
    cudaStream_t stream = ses_cuda_stream(g);
    if (r->count < 1) return;
    make_plan(&p, r, stream);
    plan_steps<<<(unsigned)ceil_div(r->count * p.steps, BLOCK), BLOCK, 0, stream>>>(p);
    check_launch(g);
    ses_cuda_record(g, sort_entries(&p, stream));
    ses_cuda_record(g, select_runs(&p, stream));
    find_rounds<<<(unsigned)ceil_div(r->count + 1, WARP), WARP, 0, stream>>>(p);
    check_launch(g);
    int64_t most = ceil_div(p.steps * p.slots, ROW_WARPS), resident = g->sm_count * 8;
    unsigned step_blocks = (unsigned)ceil_div(p.steps, STEP_WARPS),
             row_blocks = (unsigned)(most < resident ? most : resident);
    for (int64_t k = 0; k < r->count; k++) {
        train_steps<<<step_blocks, STEP_WARPS * WARP, 0, stream>>>(p, k, r->rate[k]);
        add_gradients<<<row_blocks, ROW_WARPS * WARP, 0, stream>>>(p, k, r->rate[k]);
    }
    add_losses<<<1, 1024, 0, stream>>>(p);
    check_launch(g);
}

void ses_cuda_word_rounds(ses_kernels *k)
{
    k->word_rounds_size = word_rounds_size, k->word_rounds = word_rounds;
}
