/* CUDA rounds of word vectors, see ses_word_rounds. All rounds of a call are planned at once:
 * 1. plan_steps: a thread for each step writes the rows it uses into slots, and the key round | row of each.
 * 2. A stable sort by key and a selection list, for each round, the rows and the gradients of each row.
 * Then each round is two launches:
 * 3. train_steps: a warp for each step computes its gradients from the weights before the round.
 * 4. add_gradients: a warp for each row adds them up, in the order of the text.
 * From Hopper on, a launch begins while the one before it ends: it reads its part of the plan, then waits.
 * No atomics: repeated runs give the same bits. */
#include "cuda_common.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

extern "C" {
#include "kernel/word_draws.h"
}

/* A run of more than LONG_RUN gradients is added up by a whole block. */
enum { TILE_IN = 4, TILE_OUT = 8, STEP_WARPS = 2, ROW_WARPS = 8, LONG_RUN = 16 };
enum { LANE_COLS = 4, STRIDE = WARP * LANE_COLS };

/* Arguments of all launches. Slots of a step: 2 window inputs, then outputs. Gradients of a step: one for
 * each slot; for a bag one of all inputs, the outputs, and the mean. */
struct plan {
    ses_word_rounds r;
    int64_t steps; /* steps of a round */
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

__device__ static inline float dot4(float4 a, float4 b, float sum)
{
    return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

__device__ static inline float4 add_scaled(float4 sum, float g, float4 a)
{
    return make_float4(fmaf(g, a.x, sum.x), fmaf(g, a.y, sum.y), fmaf(g, a.z, sum.z), fmaf(g, a.w, sum.w));
}

/* Lanes with the bit WIDTH keep the upper half of the sums, the others the lower half. */
template <int WIDTH> __device__ static inline void fold(float v[WARP], unsigned lane)
{
    bool upper = lane & WIDTH;
#pragma unroll
    for (int k = 0; k < WIDTH; k++) {
        float send = upper ? v[k] : v[k + WIDTH], keep = upper ? v[k + WIDTH] : v[k];
        v[k] = keep + __shfl_xor_sync(0xffffffffu, send, WIDTH);
    }
}

/* Lane l receives the sum over all lanes of v[l]. */
__device__ static inline float sum_each(float v[WARP], unsigned lane)
{
    fold<16>(v, lane), fold<8>(v, lane), fold<4>(v, lane), fold<2>(v, lane), fold<1>(v, lane);
    return v[0];
}

/* Waits until the launch before is done; the next one may begin. Every thread must call it before it returns:
 * launches would overtake each other otherwise. */
__device__ static inline void wait_for_launch(void)
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
}

/* A tile of inputs and outputs of a step. */
struct tile {
    const float *x[TILE_IN], *y[TILE_OUT];
    float *dx, *dy; /* gradients of the first rows; the others follow */
    int n, m;       /* inputs and outputs in use; the other pointers are valid, too */
    bool add_dx, add_dy;
};

/* Columns c .. c + 3 of a tile; 0 beyond the last column. */
struct tile_columns {
    float4 x[TILE_IN], y[TILE_OUT], dy[TILE_OUT];
};

__device__ static inline float4 load4(const float *row, int64_t c, int64_t cols)
{
    return c < cols ? *(const float4 *)(row + c) : make_float4(0, 0, 0, 0);
}

__device__ static inline void load_inputs(tile_columns &v, const tile &t, int64_t c, int64_t cols)
{
#pragma unroll
    for (int i = 0; i < TILE_IN; i++) v.x[i] = load4(t.x[i], c, cols);
}

__device__ static inline void load_outputs(tile_columns &v, const tile &t, int64_t c, int64_t cols)
{
#pragma unroll
    for (int j = 0; j < TILE_OUT; j++) v.y[j] = load4(t.y[j], c, cols);
}

__device__ static inline void load_output_gradients(tile_columns &v, const tile &t, int64_t c, int64_t cols)
{
#pragma unroll
    for (int j = 0; j < TILE_OUT; j++)
        v.dy[j] = t.add_dy && j < t.m ? load4(t.dy + j * cols, c, cols) : make_float4(0, 0, 0, 0);
}

__device__ static inline void store_output_gradients(const tile_columns &v, const tile &t, int64_t c,
                                                     int64_t cols)
{
#pragma unroll
    for (int j = 0; j < TILE_OUT; j++)
        if (j < t.m && c < cols) *(float4 *)(t.dy + j * cols + c) = v.dy[j];
}

/* acc[i * TILE_OUT + j] += part of the product of input i and output j */
__device__ static inline void add_products(float acc[WARP], const tile_columns &v)
{
#pragma unroll
    for (int i = 0; i < TILE_IN; i++)
#pragma unroll
        for (int j = 0; j < TILE_OUT; j++)
            acc[i * TILE_OUT + j] = dot4(v.x[i], v.y[j], acc[i * TILE_OUT + j]);
}

/* Stores or adds the gradients of the inputs; adds the outputs' gradients to v.dy. g [WARP]: coefficients. */
__device__ static inline void step_columns(tile_columns &v, const tile &t, const float g[WARP], int64_t c,
                                           int64_t cols)
{
#pragma unroll
    for (int i = 0; i < TILE_IN; i++) {
        float4 dx = t.add_dx && i < t.n ? load4(t.dx + i * cols, c, cols) : make_float4(0, 0, 0, 0);
#pragma unroll
        for (int j = 0; j < TILE_OUT; j++) {
            dx = add_scaled(dx, g[i * TILE_OUT + j], v.y[j]);
            v.dy[j] = add_scaled(v.dy[j], g[i * TILE_OUT + j], v.x[i]);
        }
        if (i < t.n && c < cols) *(float4 *)(t.dx + i * cols + c) = dx;
    }
}

/* The coefficient of the lane's pair, f: its product; adds its loss. */
__device__ static inline float coefficient(float f, int label, bool valid, float rate, float *loss)
{
    float z = label ? f : -f, e = expf(-fabsf(z)), wrong = (z < 0 ? 1 : e) / (1 + e); /* 1 - sigmoid(z) */
    if (!valid) return 0;
    *loss += f == f ? log1pf(e) - fminf(z, 0) : f;
    return label ? rate * wrong : -rate * wrong;
}

/* Mean of the rows of a bag, for the columns of the lane. */
__device__ static inline void average(const plan &p, const int32_t *in, int n, float *mean, unsigned lane)
{
    float share = 1 / (float)n;
    for (int64_t c = lane * LANE_COLS; c < p.r.cols; c += STRIDE) {
        float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
        for (int i = 0; i < n; i++)
            sum = add_scaled(sum, share, *(const float4 *)(p.r.weight + in[i] * p.r.cols + c));
        *(float4 *)(mean + c) = sum;
    }
}

/* A step with n inputs and m outputs; returns the loss of the lane. ONE: all columns fit into the registers
 * of a warp; otherwise they are read twice. Each lane reads and writes its own columns only, so gradients
 * need no barrier. */
template <bool ONE>
__device__ static inline float train_step(const plan &p, const int32_t *in, int n, const int32_t *out, int m,
                                          float *grad, float rate, unsigned lane)
{
    int64_t cols = p.r.cols, first = lane * LANE_COLS;
    float loss = 0, *mean = grad + (p.grads - 1) * cols;
    for (int j0 = 0; j0 < m; j0 += TILE_OUT) {
        tile t;
        tile_columns v;
        t.m = m - j0 < TILE_OUT ? m - j0 : TILE_OUT;
        t.dy = grad + ((p.r.bags ? 1 : p.in_slots) + j0) * cols, t.add_dy = false;
#pragma unroll
        for (int j = 0; j < TILE_OUT; j++)
            t.y[j] = p.r.weight + (out[j0 + (j < t.m ? j : t.m - 1)] >> 1) * cols;
        int column = lane % TILE_OUT, label = out[j0 + (column < t.m ? column : 0)] & 1;
        if (ONE) load_outputs(v, t, first, cols), load_output_gradients(v, t, first, cols);
        for (int i0 = 0; i0 < n; i0 += TILE_IN) {
            t.n = n - i0 < TILE_IN ? n - i0 : TILE_IN;
            t.dx = grad + i0 * cols, t.add_dx = j0 > 0, t.add_dy = i0 > 0;
#pragma unroll
            for (int i = 0; i < TILE_IN; i++)
                t.x[i] = p.r.bags ? mean : p.r.weight + in[i0 + (i < t.n ? i : t.n - 1)] * cols;
            float g[WARP] = {};
            if (ONE) load_inputs(v, t, first, cols), add_products(g, v);
            for (int64_t c = first; !ONE && c < cols; c += STRIDE)
                load_inputs(v, t, c, cols), load_outputs(v, t, c, cols), add_products(g, v);
            float own = coefficient(sum_each(g, lane), label, (int)(lane / TILE_OUT) < t.n && column < t.m,
                                    rate, &loss);
#pragma unroll
            for (int k = 0; k < WARP; k++) g[k] = __shfl_sync(0xffffffffu, own, k);
            if (ONE) step_columns(v, t, g, first, cols);
            for (int64_t c = first; !ONE && c < cols; c += STRIDE) {
                load_inputs(v, t, c, cols), load_outputs(v, t, c, cols), load_output_gradients(v, t, c, cols);
                step_columns(v, t, g, c, cols);
                store_output_gradients(v, t, c, cols);
            }
        }
        if (ONE) store_output_gradients(v, t, first, cols);
    }
    return loss;
}

template <bool ONE>
__global__ static void __launch_bounds__(STEP_WARPS *WARP) train_steps(plan p, int64_t round, float rate)
{
    unsigned lane = threadIdx.x % WARP;
    int64_t step = (int64_t)blockIdx.x * STEP_WARPS + threadIdx.x / WARP, cols = p.r.cols;
    int64_t at = round * p.steps + (step < p.steps ? step : 0);
    uint32_t size = p.size[at];
    const int32_t *in = p.row + at * p.slots, *out = in + p.in_slots;
    int n = (int)(size & 0xffff), m = (int)(size >> 16);
    wait_for_launch();
    if (step >= p.steps) return;
    float *grad = p.grad + step * p.grads * cols, loss = 0;
    if (p.r.bags && n) {
        average(p, in, n, grad + (p.grads - 1) * cols, lane);
        n = 1;
    }
    if (n) loss = warp_sum(train_step<ONE>(p, in, n, out, m, grad, rate, lane));
    if (lane == 0) p.loss[at] = loss;
}

/* ---- rows ---- */

/* Sum of the gradients begin .. end - 1 in columns c .. c + 3. */
__device__ static inline float4 sum_run(const plan &p, int32_t begin, int32_t end, int64_t c)
{
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int32_t i = begin; i < end; i++)
        sum = add_scaled(sum, 1, *(const float4 *)(p.grad + p.source[i] * p.r.cols + c));
    return sum;
}

/* Adds the scaled sum of a run to columns c .. c + 3 of its row. */
__device__ static inline void add_run(const plan &p, int32_t begin, int32_t end, float rate, int64_t c,
                                      float4 sum)
{
    int64_t row = p.sorted[begin] & ((1u << p.row_bits) - 1);
    float step = (row < p.r.in_rows ? p.r.in_step : p.r.out_step) * rate;
    float4 *to = (float4 *)(p.r.weight + row * p.r.cols + c);
    *to = add_scaled(*to, ses_word_scale(step, end - begin, end - begin), sum);
}

/* A long run, by all warps of the block: each adds up an equal part, the first adds the parts. */
__device__ static void add_long_run(const plan &p, int32_t begin, int32_t end, float rate)
{
    __shared__ float4 part[ROW_WARPS][WARP];
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int32_t share = (end - begin + ROW_WARPS - 1) / ROW_WARPS, from = begin + (int32_t)warp * share,
            to = from + share < end ? from + share : end;
    for (int64_t c0 = 0; c0 < p.r.cols; c0 += STRIDE) {
        int64_t c = c0 + lane * LANE_COLS;
        if (c < p.r.cols) part[warp][lane] = sum_run(p, from, to, c);
        __syncthreads();
        if (warp == 0 && c < p.r.cols) {
            float4 sum = part[0][lane];
            for (int w = 1; w < ROW_WARPS; w++) sum = add_scaled(sum, 1, part[w][lane]);
            add_run(p, begin, end, rate, c, sum);
        }
        __syncthreads();
    }
}

/* Neighbouring runs go to different blocks: frequent words, with long runs, have neighbouring rows. */
__global__ static void __launch_bounds__(ROW_WARPS *WARP) add_gradients(plan p, int64_t round, float rate)
{
    __shared__ int32_t bounds[ROW_WARPS][2];
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int32_t first = p.first_run[round], last = p.first_run[round + 1], blocks = (int32_t)gridDim.x;
    wait_for_launch();
    for (int32_t base = first + (int32_t)blockIdx.x; base < last; base += ROW_WARPS * blocks) {
        int32_t run = base + (int32_t)warp * blocks;
        int32_t begin = run < last ? p.start[run] : 0, end = run < last ? p.start[run + 1] : 0;
        if (lane == 0) bounds[warp][0] = begin, bounds[warp][1] = end;
        if (end - begin <= LONG_RUN && begin < end)
            for (int64_t c = lane * LANE_COLS; c < p.r.cols; c += STRIDE)
                add_run(p, begin, end, rate, c, sum_run(p, begin, end, c));
        __syncthreads();
        for (int w = 0; w < ROW_WARPS; w++)
            if (bounds[w][1] - bounds[w][0] > LONG_RUN) add_long_run(p, bounds[w][0], bounds[w][1], rate);
        __syncthreads();
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

/* Launches a kernel of a round. early: it may begin while the launch before is running. */
static void launch(ses_cuda *g, void (*kernel)(plan, int64_t, float), unsigned blocks, unsigned threads,
                   const plan &p, int64_t round, bool early)
{
    cudaLaunchAttribute overlap = {};
    cudaLaunchConfig_t config = {};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(blocks), config.blockDim = dim3(threads), config.stream = ses_cuda_stream(g);
    config.attrs = &overlap, config.numAttrs = early && g->major >= 9;
    ses_cuda_record(g, cudaLaunchKernelEx(&config, kernel, p, round, p.r.rate[round]));
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
        launch(g, r->cols <= STRIDE ? train_steps<true> : train_steps<false>, step_blocks, STEP_WARPS * WARP,
               p, k, k > 0);
        launch(g, add_gradients, row_blocks, ROW_WARPS * WARP, p, k, true);
    }
    add_losses<<<1, 1024, 0, stream>>>(p);
    check_launch(g);
}

void ses_cuda_word_rounds(ses_kernels *k)
{
    k->word_rounds_size = word_rounds_size, k->word_rounds = word_rounds;
}
