#include "cuda.cuh"

/* Each thread turns column d of every head of its token by one angle, found in double: places are large. */
template <class T>
static void rotary(ses_exec *x, ses_sink y, const ses_real *a, const int32_t *place, int64_t rows,
                   int64_t cols, int64_t turned, int64_t dim, double theta, double sign)
{
    sink<T> to = sink_of<T>(y);
    const T *from = cells<T>(a);
    int64_t half = dim / 2, rest = cols - turned;
    each_row(x, rows, half, [=] __device__(int64_t t, int64_t d) {
        double s, c;
        sincos(sign * place[t] * pow(theta, -2.0 * (double)d / (double)dim), &s, &c);
        float sine = (float)s, cosine = (float)c;
        for (int64_t h = 0; h < turned; h += dim) {
            int64_t i = t * cols + h + d, j = i + half;
            float u = num(from[i]), v = num(from[j]);
            put(to, i, u * cosine - v * sine);
            put(to, j, v * cosine + u * sine);
        }
    });
    each_row(x, rows, rest, [=] __device__(int64_t t, int64_t j) {
        put(to, t * cols + turned + j, num(from[t * cols + turned + j]));
    });
}

void ses_cuda_rotary(ses_kernels *k, bool narrow) { k->rotary = narrow ? rotary<bf16> : rotary<float>; }
