/* All time steps of a recurrent layer in one kernel: blocks keep the weights in shared memory and wait for
 * each other after each product and after the gates. rnn_cuda.cu runs layers whose weights do not fit. */
#include "rnn_persistent.cuh"

template <class T> struct rnn_run_args {
    rnn_layer<T> r;
    int64_t steps;
    rnn_product recur, project; /* backward: of their transposed matrices */
    T *recur_in, *project_in;   /* their A */
    float *carry;               /* [seqs][size]: backward, see rnn_buffers */
    unsigned *arrived;
    bool has_state; /* h0 is given; backward: its gradient is needed */
    dst<T> dh0, dc0;
};

/* f(i, j) for each V-th of `cols` columns of n rows, distributed over the grid; a thread always has the same
 * elements. */
template <int V, class F> __device__ static inline void rnn_each(int n, int cols, F f)
{
    int step = gridDim.x * RNN_THREADS, total = n * (cols / V);
    for (int e = blockIdx.x * RNN_THREADS + threadIdx.x; e < total; e += step)
        f(e / (cols / V), e % (cols / V) * V);
}

__device__ static inline void prefetch(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

/* next: sequences that run at the next step, whose inputs are loaded to the cache. */
template <class T, int V>
__device__ static inline void rnn_gates(const rnn_run_args<T> &a, int t, int n, int next, bool has_sums)
{
    const rnn_layer<T> &r = a.r;
    int to_row = a.project.k ? a.project.a_row() : a.recur.a_row();
    T *to = a.project.k ? a.project_in : a.recur_in;
    rnn_each<V>(n, r.H, [&](int i, int j) {
        int64_t row = r.row(i, t);
        units<V> x[4], h[4], before, value;
        units<V>(&x3)[3] = *(units<V>(*)[3])x, (&h3)[3] = *(units<V>(*)[3])h;
        r.is_lstm ? load_gates(r, row, j, x, h) : load_gates(r, row, j, x3, h3);
        before = r.is_lstm ? r.template cells_before<V>(i, t, j) : r.template states_before<V>(i, t, j);
        for (int k = 0; i < next && k < r.gates(); k++)
            prefetch(r.x + ((row + r.stride) * r.gates() + k) * r.H + j);
        if (has_sums) r.is_lstm ? a.recur.get(h, i, j, r.H) : a.recur.get(h3, i, j, r.H);
        value = r.is_lstm ? lstm_units(r, row, j, x, h, before) : gru_units(r, row, j, x3, h3, before);
        put_units<V>(to + (int64_t)i * to_row + j, value.at);
    });
}

template <class T, int V> __device__ static inline void rnn_outputs(const rnn_run_args<T> &a, int t, int n)
{
    const rnn_layer<T> &r = a.r;
    rnn_each<V>(n, r.P, [&](int i, int j) {
        units<V> y[1];
        a.project.get(y, i, j, 0);
#pragma unroll
        for (int v = 0; v < V; v++)
            if (r.proj_clip > 0) y[0].at[v] = clip(y[0].at[v], r.proj_clip);
        put_units<V>(r.y + r.row(i, t) * r.y_row + j, y[0].at);
        put_units<V>(a.recur_in + (int64_t)i * a.recur.a_row() + j, y[0].at);
    });
}

template <class T, int V>
__global__ void __launch_bounds__(RNN_THREADS, 1)
    rnn_persistent_forward(const __grid_constant__ rnn_run_args<T> a)
{
    extern __shared__ __align__(128) char shared[];
    const rnn_layer<T> &r = a.r;
    unsigned phase = 0;
    rnn_load_weights<T>(a.recur, shared);
    rnn_load_weights<T>(a.project, shared);
    if (a.has_state) {
        rnn_each<1>((int)r.seqs, r.P, [&](int i, int j) {
            a.recur_in[(int64_t)i * a.recur.a_row() + j] = r.h0[r.order[i] * (int64_t)r.P + j];
        });
        rnn_grid_barrier(a.arrived, phase);
    }
    for (int t = 0; t < a.steps; t++) {
        int n = r.active[t], next = t + 1 < a.steps ? r.active[t + 1] : 0;
        bool has_sums = t || a.has_state;
        if (has_sums) {
            rnn_multiply<T>(a.recur, shared, n);
            rnn_grid_barrier(a.arrived, phase);
        }
        rnn_gates<T, V>(a, t, n, next, has_sums);
        rnn_grid_barrier(a.arrived, phase);
        if (!a.project.k) continue;
        rnn_multiply<T>(a.project, shared, n);
        rnn_grid_barrier(a.arrived, phase);
        rnn_outputs<T, V>(a, t, n);
        rnn_grid_barrier(a.arrived, phase);
    }
}

/* next: sequences that run at the next step in time; the gates of the step before are loaded to the cache. */
template <class T, int V>
__device__ static inline void rnn_gates_bwd(const rnn_run_args<T> &a, int t, int n, int next)
{
    const rnn_layer<T> &r = a.r;
    rnn_each<V>(n, r.H, [&](int i, int j) {
        int64_t row = r.row(i, t), at = (int64_t)i * r.H + j;
        units<V> pre[4], d[1], dy, carry;
        units<V>(&pre3)[3] = *(units<V>(*)[3])pre;
        for (int k = 0; t && k < r.gates(); k++)
            prefetch(r.gate + ((row - r.stride) * r.gates() + k) * r.H + j);
        if (i < next) carry = get_units<V>(a.carry + at);
        if (!a.project.k) dy = get_units<V>(r.dy + row * r.y_row + j);
        units<V> before =
            r.is_lstm ? r.template cells_before<V>(i, t, j) : r.template states_before<V>(i, t, j);
        if (a.project.k)
            a.project.get(d, i, j, 0);
        else if (i < next)
            a.recur.get(d, i, j, 0);
#pragma unroll
        for (int v = 0; v < V; v++) d[0].at[v] += dy.at[v] + (r.is_lstm ? 0 : carry.at[v]);
        if (r.is_lstm)
            lstm_units_bwd(r, row, j, before, d[0], &carry, pre);
        else
            carry = gru_units_bwd(r, row, j, before, d[0], pre3);
        put_units<V>(a.carry + at, carry.at);
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (k < r.gates())
                put_units<V>(a.recur_in + (int64_t)i * a.recur.a_row() + k * r.H + j, pre[k].at);
    });
}

template <class T, int V>
__device__ static inline void rnn_outputs_bwd(const rnn_run_args<T> &a, int t, int n, int next)
{
    const rnn_layer<T> &r = a.r;
    rnn_each<V>(n, r.P, [&](int i, int j) {
        int64_t row = r.row(i, t);
        units<V> d[1], dy = get_units<V>(r.dy + row * r.y_row + j), y = get_units<V>(r.y + row * r.y_row + j);
        if (i < next) a.recur.get(d, i, j, 0);
#pragma unroll
        for (int v = 0; v < V; v++) {
            d[0].at[v] += dy.at[v];
            if (r.proj_clip > 0) d[0].at[v] = through_clip<T>(d[0].at[v], y.at[v], r.proj_clip);
        }
        put_units<V>(r.dprojected + row * r.P + j, d[0].at);
        put_units<V>(a.project_in + (int64_t)i * a.project.a_row() + j, d[0].at);
    });
}

/* Gradients of the initial states. */
template <class T> __device__ static inline void rnn_first_grads(const rnn_run_args<T> &a)
{
    const rnn_layer<T> &r = a.r;
    int n = a.steps ? r.active[0] : 0;
    rnn_each<1>(a.dh0.data ? (int)r.seqs : 0, r.P, [&](int i, int j) {
        units<1> d[1];
        if (i < n) a.recur.get(d, i, j, 0);
        if (i < n && !r.is_lstm) d[0].at[0] += __ldcg(a.carry + (int64_t)i * r.H + j);
        store(a.dh0, r.order[i] * (int64_t)r.P + j, d[0].at[0]);
    });
    rnn_each<1>(a.dc0.data ? (int)r.seqs : 0, r.H, [&](int i, int j) {
        store(a.dc0, r.order[i] * (int64_t)r.H + j, i < n ? __ldcg(a.carry + (int64_t)i * r.H + j) : 0);
    });
}

template <class T, int V>
__global__ void __launch_bounds__(RNN_THREADS, 1)
    rnn_persistent_backward(const __grid_constant__ rnn_run_args<T> a)
{
    extern __shared__ __align__(128) char shared[];
    const rnn_layer<T> &r = a.r;
    unsigned phase = 0;
    rnn_load_weights<T>(a.recur, shared);
    rnn_load_weights<T>(a.project, shared);
    for (int t = (int)a.steps - 1; t >= 0; t--) {
        int n = r.active[t], next = t + 1 < a.steps ? r.active[t + 1] : 0;
        if (a.project.k) {
            rnn_outputs_bwd<T, V>(a, t, n, next);
            rnn_grid_barrier(a.arrived, phase);
            rnn_multiply<T>(a.project, shared, n);
            rnn_grid_barrier(a.arrived, phase);
        }
        rnn_gates_bwd<T, V>(a, t, n, next);
        rnn_grid_barrier(a.arrived, phase);
        if (!t && !a.has_state) continue;
        rnn_multiply<T>(a.recur, shared, n);
        rnn_grid_barrier(a.arrived, phase);
    }
    rnn_first_grads(a);
}

/* ---- plan ---- */

struct rnn_limits {
    int blocks;
    int64_t smem; /* bytes for weights */
};

/* Divides a product into `ks` slices of k and as many of n as there are blocks for; false: it does not fit.
 * cost: bytes of A and of sums that pass through the L2 cache; sums are written, read and waited for. */
static bool divide(rnn_product *p, int ks, const rnn_limits *l, int size, double *cost)
{
    int unit = RNN_CHUNK / size, ns = l->blocks / ks;
    if (ns < 1) return false;
    p->n_slice = (int)(ceil_div(ceil_div(p->n, ns), 8) * 8), p->n_slices = (int)ceil_div(p->n, p->n_slice);
    p->k_slice = (int)(ceil_div(ceil_div(p->k, ks), unit) * unit),
    p->k_slices = (int)ceil_div(p->k, p->k_slice);
    double slices = (double)p->k_slices * p->n_slices, rows = (double)p->rows;
    *cost = slices * rows * p->k_slice * size + 4 * slices * rows * p->n_slice * sizeof(float);
    return p->n_slice <= RNN_MAX_N;
}

static int64_t weight_bytes(const rnn_product *p, int size)
{
    return (int64_t)p->n_slice * p->k_slice * size;
}

/* Divides both products; the second may be absent (k = 0). */
static bool make_plan(rnn_product *first, rnn_product *second, const rnn_limits *l, int size)
{
    rnn_product a = *first, b = *second;
    double best = INFINITY, cost_a, cost_b = 0;
    for (int ka = 1; ka <= l->blocks; ka++) {
        if (!divide(&a, ka, l, size, &cost_a)) continue;
        for (int kb = 1; kb <= (b.k ? l->blocks : 1); kb++) {
            if (b.k && !divide(&b, kb, l, size, &cost_b)) continue;
            if (cost_a + cost_b >= best || weight_bytes(&a, size) + weight_bytes(&b, size) > l->smem)
                continue;
            best = cost_a + cost_b, *first = a, *second = b;
        }
    }
    first->smem = RNN_STAGE_BYTES, second->smem = first->smem + (int)weight_bytes(first, size);
    return best < INFINITY;
}

/* Blocks: at most one per multiprocessor, fewer for small layers, whose blocks would mostly wait. */
static rnn_limits limits_of(const ses_cuda *g, const ses_recurrence *c, int64_t weights, int size)
{
    enum { SMALL = 16 << 10 };
    int64_t blocks = ceil_div(weights * size, SMALL), units = ceil_div(c->seqs * c->size, RNN_THREADS);
    int most = 0;
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, g->index);
    if (blocks < units) blocks = units;
    rnn_limits l = { (int)(blocks < g->sm_count ? blocks : g->sm_count), most - RNN_STAGE_BYTES };
    return l;
}

static size_t aligned(int64_t bytes) { return (size_t)ceil_div(bytes, 256) * 256; }

/* Scratch memory: counter, A of both products (zeroed), then carry and sums. */
template <class T> struct rnn_memory {
    size_t zeroed, recur_in, project_in, carry, recur_sums, project_sums, size;
};

template <class T> static rnn_memory<T> memory_of(const rnn_run_args<T> *a)
{
    rnn_memory<T> m;
    const rnn_product *p = &a->recur, *q = &a->project;
    m.recur_in = aligned(1);
    m.project_in = m.recur_in + aligned(p->rows * p->a_row() * (int64_t)sizeof(T));
    m.carry = m.zeroed = m.project_in + aligned(q->rows * q->a_row() * (int64_t)sizeof(T));
    m.recur_sums = m.carry + aligned(p->rows * a->r.H * 4);
    m.project_sums = m.recur_sums + aligned(p->k_slices * p->rows * p->sums_row() * 4);
    m.size = m.project_sums + aligned(q->k_slices * q->rows * q->sums_row() * 4);
    return m;
}

template <class T>
static bool launch(ses_cuda *g, rnn_run_args<T> *a, const rnn_limits *l, const void *kernel)
{
    rnn_memory<T> m = memory_of(a);
    cudaStream_t stream = ses_cuda_stream(g);
    int smem = a->project.smem + (int)weight_bytes(&a->project, sizeof(T));
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    char *scratch = (char *)scratch_lock(g, m.size);
    if (!scratch) return true; /* the failure is recorded */
    a->arrived = (unsigned *)scratch, a->carry = (float *)(scratch + m.carry);
    a->recur_in = (T *)(scratch + m.recur_in), a->recur.a = a->recur_in;
    a->project_in = (T *)(scratch + m.project_in), a->project.a = a->project_in;
    a->recur.sums = (float *)(scratch + m.recur_sums), a->project.sums = (float *)(scratch + m.project_sums);
    void *args[] = { a };
    cudaError_t code = cudaMemsetAsync(scratch, 0, m.zeroed, stream);
    if (!code)
        code = cudaLaunchCooperativeKernel(kernel, dim3(l->blocks), dim3(RNN_THREADS), args, smem, stream);
    ses_cuda_record(g, code);
    scratch_unlock(g);
    return true;
}

/* From some number of sequences on, products of bf16 are faster outside (measured on an H200). */
template <class T> static bool is_better(const ses_cuda *g, const ses_recurrence *c)
{
    enum { MAX_SEQS = 64 };
    return g->major >= 8 && (sizeof(T) == 4 || c->seqs <= MAX_SEQS) &&
           c->seqs * (c->size > c->out ? c->size : c->out) * 4 < INT32_MAX;
}

template <class T> static bool run_forward(ses_exec *x, const ses_recurrence *c)
{
    rnn_run_args<T> a = {};
    a.r = rnn_layer_of<T>(c, NULL), a.steps = c->steps, a.has_state = c->h0 != NULL;
    int64_t H = c->size, P = c->out, G = a.r.gates() * H;
    rnn_limits l = limits_of(x->cuda, c, G * P + (c->proj ? H * P : 0), sizeof(T));
    a.recur.b = c->w, a.recur.n_stride = P, a.recur.k_stride = 1;
    a.recur.n = (int)G, a.recur.k = (int)P, a.recur.rows = c->seqs;
    a.project.b = c->proj, a.project.n_stride = H, a.project.k_stride = 1, a.project.rows = c->seqs;
    if (c->proj) a.project.n = (int)P, a.project.k = (int)H;
    return is_better<T>(x->cuda, c) && make_plan(&a.recur, &a.project, &l, sizeof(T)) &&
           launch(x->cuda, &a, &l,
                  a.r.pairs() ? (const void *)rnn_persistent_forward<T, 2>
                              : (const void *)rnn_persistent_forward<T, 1>);
}

template <class T> static bool run_backward(ses_exec *x, const ses_recurrence *c, const ses_rnn_grad *g)
{
    rnn_run_args<T> a = {};
    a.r = rnn_layer_of<T>(c, g), a.steps = c->steps, a.has_state = g->dh0.data != NULL;
    a.dh0 = dst_of<T>(g->dh0), a.dc0 = dst_of<T>(g->dc0);
    int64_t H = c->size, P = c->out, G = a.r.gates() * H;
    rnn_limits l = limits_of(x->cuda, c, G * P + (c->proj ? H * P : 0), sizeof(T));
    a.recur.b = c->w, a.recur.n_stride = 1, a.recur.k_stride = P;
    a.recur.n = (int)P, a.recur.k = (int)G, a.recur.rows = c->seqs;
    a.project.b = c->proj, a.project.n_stride = 1, a.project.k_stride = H, a.project.rows = c->seqs;
    if (c->proj) a.project.n = (int)H, a.project.k = (int)P;
    return is_better<T>(x->cuda, c) && make_plan(&a.recur, &a.project, &l, sizeof(T)) &&
           launch(x->cuda, &a, &l,
                  a.r.pairs() ? (const void *)rnn_persistent_backward<T, 2>
                              : (const void *)rnn_persistent_backward<T, 1>);
}

bool ses_rnn_persistent(ses_exec *x, const ses_recurrence *c, bool is_bf16)
{
    return is_bf16 ? run_forward<bf16>(x, c) : run_forward<float>(x, c);
}

bool ses_rnn_persistent_bwd(ses_exec *x, const ses_recurrence *c, const ses_rnn_grad *g, bool is_bf16)
{
    return is_bf16 ? run_backward<bf16>(x, c, g) : run_backward<float>(x, c, g);
}
