/* Recurrent layers, see ses_recurrence: one unit of one sequence at one time step. Used by
 * kernels for one step and by kernels for all steps. */
#ifndef SES_KERNEL_RNN_CUDA_CUH
#define SES_KERNEL_RNN_CUDA_CUH

#include "cuda_common.cuh"

/* All steps in one kernel. False: the layer does not fit, and nothing was queued. */
bool ses_rnn_persistent(ses_exec *x, const ses_recurrence *c, bool is_bf16);
bool ses_rnn_persistent_bwd(ses_exec *x, const ses_recurrence *c, const ses_rnn_grad *g, bool is_bf16);

/* V neighboring units, 1 or 2, which are loaded and stored at once. */
template <int V> struct units {
    float at[V];
    __device__ units()
    {
        for (int v = 0; v < V; v++) at[v] = 0;
    }
};

template <int V> __device__ static inline units<V> get_units(const float *from)
{
    units<V> u;
    if (V == 2) {
        float2 both = *(const float2 *)from;
        u.at[0] = both.x, u.at[V - 1] = both.y;
    } else {
        u.at[0] = *from;
    }
    return u;
}

template <int V> __device__ static inline units<V> get_units(const bf16 *from)
{
    units<V> u;
    if (V == 2) {
        float2 both = __bfloat1622float2(*(const __nv_bfloat162 *)from);
        u.at[0] = both.x, u.at[V - 1] = both.y;
    } else {
        u.at[0] = to_float(*from);
    }
    return u;
}

template <int V> __device__ static inline void put_units(float *to, const float (&u)[V])
{
    if (V == 2)
        *(float2 *)to = make_float2(u[0], u[V - 1]);
    else
        *to = u[0];
}

template <int V> __device__ static inline void put_units(bf16 *to, const float (&u)[V])
{
    if (V == 2)
        *(__nv_bfloat162 *)to = __floats2bfloat162_rn(u[0], u[V - 1]);
    else
        *to = from_float<bf16>(u[0]);
}

/* A layer and its gradients with elements T. */
template <class T> struct rnn_layer {
    bool is_lstm;
    int H, P;
    int64_t seqs, stride, y_row;
    float cell_clip, proj_clip;
    const int32_t *active, *order, *first; /* on the GPU */
    const T *x, *bias, *h0, *c0;
    T *y, *gate, *hidden;
    float *cell;
    const T *dy;
    T *dx, *dh, *dprojected;

    bool pairs() const { return H % 2 == 0 && P % 2 == 0 && y_row % 2 == 0; } /* units<2> are aligned */
    __host__ __device__ int gates() const { return is_lstm ? 4 : 3; }
    __device__ int64_t row(int64_t i, int64_t t) const { return first[i] + stride * t; }
    /* Cells and outputs before step t of sequence i, from unit j on. */
    template <int V> __device__ units<V> cells_before(int64_t i, int64_t t, int64_t j) const
    {
        if (t) return get_units<V>(cell + (row(i, t) - stride) * H + j);
        return c0 ? get_units<V>(c0 + order[i] * (int64_t)H + j) : units<V>();
    }
    template <int V> __device__ units<V> states_before(int64_t i, int64_t t, int64_t j) const
    {
        if (t) return get_units<V>(y + (row(i, t) - stride) * y_row + j);
        return h0 ? get_units<V>(h0 + order[i] * (int64_t)P + j) : units<V>();
    }
};

template <class T> static rnn_layer<T> rnn_layer_of(const ses_recurrence *c, const ses_rnn_grad *g)
{
    rnn_layer<T> r = {};
    r.is_lstm = c->type == SES_RNN_LSTM;
    r.H = (int)c->size, r.P = (int)c->out, r.seqs = c->seqs, r.stride = c->stride, r.y_row = c->y_row;
    r.cell_clip = (float)c->cell_clip, r.proj_clip = (float)c->proj_clip;
    r.active = c->device_schedule, r.order = r.active + c->steps, r.first = r.order + c->seqs;
    r.x = elems<T>(c->x), r.bias = elems<T>(c->bias), r.h0 = elems<T>(c->h0), r.c0 = elems<T>(c->c0);
    r.y = elems<T>(c->y), r.gate = elems<T>(c->gate), r.hidden = elems<T>(c->hidden), r.cell = c->cell;
    if (!g) return r;
    r.dy = elems<T>(g->dy), r.dx = elems<T>(g->dx), r.dh = elems<T>(g->dh);
    r.dprojected = elems<T>(g->dprojected);
    return r;
}

__device__ static inline float sigmoid(float x) { return 1 / (1 + expf(-x)); }
/* NaN stays NaN. */
__device__ static inline float clip(float x, float limit)
{
    return x > limit ? limit : x < -limit ? -limit : x;
}
/* Gradient d of a clipped value, which is stored as T. */
template <class T> __device__ static inline float through_clip(float d, float clipped, float limit)
{
    return fabsf(clipped) < to_float(from_float<T>(limit)) ? d : 0;
}

/* x of all gates and the bias, h' not included; loaded before the products are waited for. */
template <class T, int V, int GATES>
__device__ static inline void load_gates(const rnn_layer<T> &r, int64_t row, int64_t j, units<V> (&x)[GATES],
                                         units<V> (&bias)[GATES])
{
#pragma unroll
    for (int k = 0; k < GATES; k++) {
        x[k] = get_units<V>(r.x + (row * GATES + k) * r.H + j);
        if (r.bias) bias[k] = get_units<V>(r.bias + (int64_t)k * r.H + j);
    }
}

/* Units j .. of the row. x is replaced; h: w h' + bias; before: their cells at the last step. Returns the
 * outputs before the projection. */
template <class T, int V>
__device__ static inline units<V> lstm_units(const rnn_layer<T> &r, int64_t row, int64_t j, units<V> (&x)[4],
                                             const units<V> (&h)[4], units<V> before)
{
    units<V> cell, value;
#pragma unroll
    for (int v = 0; v < V; v++) {
        float in = sigmoid(x[0].at[v] + h[0].at[v]), f = sigmoid(x[1].at[v] + h[1].at[v]),
              g = tanhf(x[2].at[v] + h[2].at[v]), o = sigmoid(x[3].at[v] + h[3].at[v]),
              next = f * before.at[v] + in * g;
        if (r.cell_clip > 0) next = clip(next, r.cell_clip);
        cell.at[v] = next, value.at[v] = o * tanhf(next);
        x[0].at[v] = in, x[1].at[v] = f, x[2].at[v] = g, x[3].at[v] = o;
    }
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (r.gate) put_units<V>(r.gate + (row * 4 + k) * r.H + j, x[k].at);
    put_units<V>(r.cell + row * r.H + j, cell.at);
    T *y = r.y + row * r.y_row;
    if (r.y_row > r.P) put_units<V>(y + r.P + j, cell.at);
    put_units<V>(r.hidden ? r.hidden + row * r.H + j : y + j, value.at);
    return value;
}

/* before: outputs of the last step. Returns the outputs. */
template <class T, int V>
__device__ static inline units<V> gru_units(const rnn_layer<T> &r, int64_t row, int64_t j, units<V> (&x)[3],
                                            const units<V> (&h)[3], units<V> before)
{
    units<V> y;
#pragma unroll
    for (int v = 0; v < V; v++) {
        float reset = sigmoid(x[0].at[v] + h[0].at[v]), z = sigmoid(x[1].at[v] + h[1].at[v]),
              n = tanhf(x[2].at[v] + reset * h[2].at[v]);
        y.at[v] = n + z * (before.at[v] - n);
        x[0].at[v] = reset, x[1].at[v] = z, x[2].at[v] = n;
    }
#pragma unroll
    for (int k = 0; k < 3; k++)
        if (r.gate) put_units<V>(r.gate + (row * 3 + k) * r.H + j, x[k].at);
    put_units<V>(r.cell + row * r.H + j, h[2].at);
    put_units<V>(r.y + row * r.y_row + j, y.at);
    return y;
}

/* d: gradient of the hidden outputs; dcell: from the next step, replaced by that for the step before. pre:
 * gradients of the pre-activations. */
template <class T, int V>
__device__ static inline void lstm_units_bwd(const rnn_layer<T> &r, int64_t row, int64_t j, units<V> before,
                                             units<V> d, units<V> *dcell, units<V> (&pre)[4])
{
    units<V> gate[4], cell = get_units<V>(r.cell + row * r.H + j), dy;
#pragma unroll
    for (int k = 0; k < 4; k++) gate[k] = get_units<V>(r.gate + (row * 4 + k) * r.H + j);
    if (r.y_row > r.P) dy = get_units<V>(r.dy + row * r.y_row + r.P + j);
#pragma unroll
    for (int v = 0; v < V; v++) {
        float in = gate[0].at[v], f = gate[1].at[v], g = gate[2].at[v], o = gate[3].at[v],
              th = tanhf(cell.at[v]), dc = d.at[v] * o * (1 - th * th) + dcell->at[v] + dy.at[v];
        if (r.cell_clip > 0) dc = through_clip<float>(dc, cell.at[v], r.cell_clip);
        pre[0].at[v] = dc * g * (in - in * in), pre[1].at[v] = dc * before.at[v] * (f - f * f);
        pre[2].at[v] = dc * in * (1 - g * g), pre[3].at[v] = d.at[v] * th * (o - o * o);
        dcell->at[v] = dc * f;
    }
#pragma unroll
    for (int k = 0; k < 4; k++) put_units<V>(r.dx + (row * 4 + k) * r.H + j, pre[k].at);
}

/* Returns the part of the state's gradient that bypasses the gates. */
template <class T, int V>
__device__ static inline units<V> gru_units_bwd(const rnn_layer<T> &r, int64_t row, int64_t j,
                                                units<V> before, units<V> d, units<V> (&pre)[3])
{
    units<V> gate[3], cell = get_units<V>(r.cell + row * r.H + j), dn, bypass;
#pragma unroll
    for (int k = 0; k < 3; k++) gate[k] = get_units<V>(r.gate + (row * 3 + k) * r.H + j);
#pragma unroll
    for (int v = 0; v < V; v++) {
        float reset = gate[0].at[v], z = gate[1].at[v], n = gate[2].at[v];
        dn.at[v] = d.at[v] * (1 - z) * (1 - n * n), bypass.at[v] = d.at[v] * z;
        pre[0].at[v] = dn.at[v] * cell.at[v] * (reset - reset * reset);
        pre[1].at[v] = d.at[v] * (before.at[v] - n) * (z - z * z), pre[2].at[v] = dn.at[v] * reset;
    }
#pragma unroll
    for (int k = 0; k < 3; k++) {
        put_units<V>(r.dx + (row * 3 + k) * r.H + j, k < 2 ? pre[k].at : dn.at);
        put_units<V>(r.dh + (row * 3 + k) * r.H + j, pre[k].at);
    }
    return bypass;
}

#endif
