#include "cuda.cuh"

/* Each thread turns column d of every head of its token by one angle, found in double: places are large. */
void ses_k_rotary_cuda(ses_exec *x, ses_sink y, const ses_real *a, const int32_t *place, int64_t rows,
                       int64_t cols, int64_t turned, int64_t dim, double theta, double sign)
{
    sink<ses_real> to = sink_of<ses_real>(y);
    int64_t half = dim / 2;
    each(x, rows * half, [=] __device__(int64_t at) {
        int64_t t = at / half, d = at % half;
        double s, c;
        sincos(sign * place[t] * pow(theta, -2.0 * (double)d / (double)dim), &s, &c);
        float sine = (float)s, cosine = (float)c;
        for (int64_t h = 0; h < turned; h += dim) {
            int64_t i = t * cols + h + d, j = i + half;
            float u = a[i], v = a[j];
            put(to, i, u * cosine - v * sine);
            put(to, j, v * cosine + u * sine);
        }
    });
    int64_t rest = cols - turned;
    if (rest > 0)
        each(x, rows * rest, [=] __device__(int64_t at) {
            int64_t i = at / rest * cols + turned + at % rest;
            put(to, i, a[i]);
        });
}
