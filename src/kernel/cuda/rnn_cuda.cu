/* Recurrent layers, see ses_recurrence. All sequences that run at a time step advance together: one product
 * with the recurrent weights, then the gates. Everything is queued; the schedule is known on the host. */
#include "gemm_cuda.cuh"
#include "rnn_cuda.cuh"

enum { UNITS = 128, ROW_STEP = 16, MAX_SPLITS = 16 };

/* A product in parts of k, which the next kernel adds: a single one would occupy few multiprocessors. */
struct split_sums {
    float *data; /* [splits][seqs][n] */
    int splits;
    int64_t stride;

    template <int V> __device__ units<V> get(int64_t at) const
    {
        enum { LOADS = 4 };
        units<V> sum;
        for (int s = 0; s < splits; s += LOADS) {
            units<V> part[LOADS];
#pragma unroll
            for (int u = 0; u < LOADS; u++)
                if (s + u < splits) part[u] = get_units<V>(data + (s + u) * stride + at);
#pragma unroll
            for (int u = 0; u < LOADS; u++)
#pragma unroll
                for (int v = 0; v < V; v++) sum.at[v] += part[u].at[v];
        }
        return sum;
    }
};

/* Rows in the order of the schedule. Rows of sequences that do not run may hold anything. */
template <class T> struct rnn_buffers {
    split_sums h;       /* [seqs][G]: w h' */
    T *dh;              /* [seqs][G]: gradient of w h' */
    T *state;           /* [seqs][out] */
    split_sums sum;     /* [seqs][out]: proj hidden; backward: gradient of the state through the weights */
    T *dproject;        /* [seqs][out]: gradient of proj hidden */
    T *hidden;          /* [seqs][size] */
    split_sums dhidden; /* [seqs][size] */
    float *carry;    /* [seqs][size]: backward: gradient of the cell, or of the state without the weights */
    int64_t numbers; /* size of all buffers */
};

/* Parts of k so that tiles of 128 x 128 occupy the multiprocessors of a large GPU. */
static int splits_of(int64_t m, int64_t n, int64_t k)
{
    enum { TILE = 128, TILES = 132, MIN_K = 256 };
    int64_t tiles = ceil_div(m, TILE) * ceil_div(n, TILE);
    int splits = 1;
    while (2 * splits <= MAX_SPLITS && 2 * splits * tiles <= TILES && k % (2 * splits * 8) == 0 &&
           k / (2 * splits) >= MIN_K)
        splits *= 2;
    return splits;
}

/* work NULL: only counts. */
template <class T> static rnn_buffers<T> buffers_of(const ses_recurrence *c, float *work, bool backward)
{
    int64_t H = c->size, P = c->out, G = (c->type == SES_RNN_LSTM ? 4 : 3) * H, S = c->seqs, used = 0, at[8];
    split_sums h = { NULL, splits_of(S, G, P), S * G }, dhidden = { NULL, splits_of(S, H, P), S * H },
               sum = { NULL, backward ? splits_of(S, P, G) : splits_of(S, P, H), S * P };
    const int64_t cols[8] = { G * h.splits, G, P, P * MAX_SPLITS, P, H, H * dhidden.splits, H };
    for (int i = 0; i < 8; i++) at[i] = used, used += ceil_div(S * cols[i], 64) * 64;
    h.data = work + at[0], sum.data = work + at[3], dhidden.data = work + at[6];
    rnn_buffers<T> b = { h,       (T *)(work + at[1]), (T *)(work + at[2]),
                         sum,     (T *)(work + at[4]), (T *)(work + at[5]),
                         dhidden, work + at[7],        used };
    return b;
}

static int64_t rnn_work_size(const ses_recurrence *c) { return buffers_of<float>(c, NULL, false).numbers; }

/* A time step: sequences that run at it, and at the next one. */
struct time_step {
    int64_t t, n, next;
};

template <class T> __global__ void first_states(rnn_layer<T> r, T *state)
{
    for (int j = threadIdx.x; j < r.P; j += blockDim.x)
        state[(int64_t)blockIdx.x * r.P + j] = r.h0[r.order[blockIdx.x] * (int64_t)r.P + j];
}

template <class T, int V>
__global__ void step_forward(rnn_layer<T> r, time_step s, split_sums sums, bool has_sums, T *to)
{
    int64_t i = blockIdx.x, row = r.row(i, s.t), j = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * V;
    if (j >= r.H) return;
    units<V> x[4], h[4], before, value;
    units<V>(&x3)[3] = *(units<V>(*)[3])x, (&h3)[3] = *(units<V>(*)[3])h;
    r.is_lstm ? load_gates(r, row, j, x, h) : load_gates(r, row, j, x3, h3);
    before = r.is_lstm ? r.template cells_before<V>(i, s.t, j) : r.template states_before<V>(i, s.t, j);
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (has_sums && k < r.gates()) {
            units<V> more = sums.get<V>((i * r.gates() + k) * r.H + j);
            for (int v = 0; v < V; v++) h[k].at[v] += more.at[v];
        }
    value = r.is_lstm ? lstm_units(r, row, j, x, h, before) : gru_units(r, row, j, x3, h3, before);
    put_units<V>(to + i * r.H + j, value.at);
}

template <class T> __global__ void step_project(rnn_layer<T> r, time_step s, split_sums sums, T *state)
{
    int64_t i = blockIdx.x, j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
    if (j >= r.P) return;
    float v = sums.get<1>(i * r.P + j).at[0];
    if (r.proj_clip > 0) v = clip(v, r.proj_clip);
    r.y[r.row(i, s.t) * r.y_row + j] = state[i * r.P + j] = from_float<T>(v);
}

/* Gradient of the projection's output. */
template <class T> __global__ void step_project_bwd(rnn_layer<T> r, time_step s, split_sums sums, T *dproject)
{
    int64_t i = blockIdx.x, row = r.row(i, s.t), j = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
    if (j >= r.P) return;
    float d = to_float(r.dy[row * r.y_row + j]) + (i < s.next ? sums.get<1>(i * r.P + j).at[0] : 0);
    if (r.proj_clip > 0) d = through_clip<T>(d, to_float(r.y[row * r.y_row + j]), r.proj_clip);
    r.dprojected[row * r.P + j] = dproject[i * r.P + j] = from_float<T>(d);
}

template <class T, int V> __global__ void step_backward(rnn_layer<T> r, time_step s, rnn_buffers<T> b)
{
    int64_t i = blockIdx.x, row = r.row(i, s.t), H = r.H,
            j = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * V, at = i * H + j;
    if (j >= H) return;
    units<V> d, more, pre[4], carry;
    units<V>(&pre3)[3] = *(units<V>(*)[3])pre;
    d = r.dprojected ? b.dhidden.template get<V>(at) : get_units<V>(r.dy + row * r.y_row + j);
    if (i < s.next) carry = get_units<V>(b.carry + at);
    if (i < s.next && !r.dprojected) more = b.sum.template get<V>(at);
    for (int v = 0; v < V; v++) d.at[v] += more.at[v] + (r.is_lstm ? 0 : carry.at[v]);
    if (r.is_lstm)
        lstm_units_bwd(r, row, j, r.template cells_before<V>(i, s.t, j), d, &carry, pre);
    else
        carry = gru_units_bwd(r, row, j, r.template states_before<V>(i, s.t, j), d, pre3);
    put_units<V>(b.carry + at, carry.at);
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (k < r.gates()) put_units<V>(b.dh + (i * r.gates() + k) * H + j, pre[k].at);
}

/* Gradients of the initial states; n: sequences that are not empty. */
template <class T>
__global__ void initial_grads(rnn_layer<T> r, rnn_buffers<T> b, int64_t n, dst<T> dh0, dst<T> dc0)
{
    int64_t i = blockIdx.x, to = r.order[i];
    for (int j = threadIdx.x; dh0.data && j < r.P; j += blockDim.x)
        store(dh0, to * r.P + j,
              i >= n ? 0 : b.sum.template get<1>(i * r.P + j).at[0] + (r.is_lstm ? 0 : b.carry[i * r.H + j]));
    for (int j = threadIdx.x; dc0.data && j < r.H; j += blockDim.x)
        store(dc0, to * r.H + j, i < n ? b.carry[i * r.H + j] : 0);
}

static dim3 grid_for(int64_t rows, int64_t cols)
{
    return dim3((unsigned)rows, (unsigned)ceil_div(cols, UNITS));
}

/* Rows of a product: few different numbers, as each one has a plan of its own. */
static int64_t product_rows(const ses_recurrence *c, int64_t n)
{
    int64_t rows = ceil_div(n, ROW_STEP) * ROW_STEP;
    return rows < c->seqs ? rows : c->seqs;
}

/* C [m, n] = A B' with B [n, k], or A B with B [k, n]; C is f32. */
enum operand { B_TRANSPOSED, B_PLAIN };
template <class T>
static void product(ses_exec *x, operand layout, split_sums c, T *a, const ses_real *b, int64_t m, int64_t n,
                    int64_t k)
{
    ses_gemm g = {};
    g.c = c.data, g.a = (const ses_real *)(const void *)a, g.b = b;
    g.m = m, g.n = n, g.k = k, g.ldc = n, g.a_row = k, g.a_col = 1;
    g.b_row = layout == B_PLAIN ? n : 1, g.b_col = layout == B_PLAIN ? 1 : k;
    ses_gemm_split(x, &g, c.splits, c.stride, sizeof(T) < sizeof(float));
}

template <class T> static void rnn(ses_exec *x, const ses_recurrence *c)
{
    if (ses_rnn_persistent(x, c, sizeof(T) < sizeof(float))) return;
    rnn_layer<T> r = rnn_layer_of<T>(c, NULL);
    rnn_buffers<T> b = buffers_of<T>(c, c->work, false);
    int64_t H = c->size, P = c->out;
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    if (c->h0 && c->seqs) first_states<<<(unsigned)c->seqs, BLOCK, 0, stream>>>(r, b.state);
    for (int64_t t = 0; t < c->steps; t++) {
        time_step s = { t, c->active[t], 0 };
        int64_t m = product_rows(c, s.n);
        bool has_state = t || c->h0;
        if (has_state) product(x, B_TRANSPOSED, b.h, b.state, c->w, m, r.gates() * H, P);
        T *to = c->proj ? b.hidden : b.state;
        if (r.pairs())
            step_forward<T, 2><<<grid_for(s.n, H / 2), UNITS, 0, stream>>>(r, s, b.h, has_state, to);
        else
            step_forward<T, 1><<<grid_for(s.n, H), UNITS, 0, stream>>>(r, s, b.h, has_state, to);
        if (!c->proj) continue;
        product(x, B_TRANSPOSED, b.sum, b.hidden, c->proj, m, P, H);
        step_project<<<grid_for(s.n, P), UNITS, 0, stream>>>(r, s, b.sum, b.state);
    }
    check_launch(x->cuda);
}

template <class T> static void rnn_bwd(ses_exec *x, const ses_recurrence *c, const ses_rnn_grad *g)
{
    if (ses_rnn_persistent_bwd(x, c, g, sizeof(T) < sizeof(float))) return;
    rnn_layer<T> r = rnn_layer_of<T>(c, g);
    rnn_buffers<T> b = buffers_of<T>(c, c->work, true);
    int64_t H = c->size, P = c->out;
    cudaStream_t stream = ses_cuda_stream(x->cuda);
    for (int64_t t = c->steps - 1; t >= 0; t--) {
        time_step s = { t, c->active[t], t + 1 < c->steps ? c->active[t + 1] : 0 };
        int64_t m = product_rows(c, s.n);
        if (c->proj) {
            step_project_bwd<<<grid_for(s.n, P), UNITS, 0, stream>>>(r, s, b.sum, b.dproject);
            product(x, B_PLAIN, b.dhidden, b.dproject, c->proj, m, H, P);
        }
        if (r.pairs())
            step_backward<T, 2><<<grid_for(s.n, H / 2), UNITS, 0, stream>>>(r, s, b);
        else
            step_backward<T, 1><<<grid_for(s.n, H), UNITS, 0, stream>>>(r, s, b);
        if (t || g->dh0.data) product(x, B_PLAIN, b.sum, b.dh, c->w, m, P, r.gates() * H);
    }
    if ((g->dh0.data || g->dc0.data) && c->seqs)
        initial_grads<<<(unsigned)c->seqs, BLOCK, 0, stream>>>(r, b, c->steps ? (int64_t)c->active[0] : 0,
                                                               dst_of<T>(g->dh0), dst_of<T>(g->dc0));
    check_launch(x->cuda);
}

void ses_cuda_rnn(ses_kernels *k, bool is_bf16)
{
    k->rnn_work_size = rnn_work_size;
    k->rnn = is_bf16 ? rnn<bf16> : rnn<float>;
    k->rnn_bwd = is_bf16 ? rnn_bwd<bf16> : rnn_bwd<float>;
}
