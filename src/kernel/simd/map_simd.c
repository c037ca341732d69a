/* Family `map`, compiled for vectors. */
#include "kernel/map_lanes.h"
#include "kernel/simd/vec/vec.h"

bool VF_NAME(ses_k_fft_lanes)(const ses_fft_plan *plan, float *re, float *im, float *work_re, float *work_im)
{
    return fft_lanes(plan, re, im, work_re, work_im);
}

double VF_NAME(ses_k_pair_repulsion)(const ses_points *a, int64_t begin, int64_t end, double *fx, double *fy)
{
    return pair_repulsion(a, begin, end, fx, fy);
}

void VF_NAME(ses_k_pair_attraction)(const ses_points *a, const ses_sparse *p, int64_t begin, int64_t end,
                                    double *fx, double *fy)
{
    pair_attraction(a, p, begin, end, fx, fy);
}

int64_t VF_NAME(ses_k_scan_above)(const ses_real *v, int64_t n, ses_real limit, int64_t *out)
{
    return scan_above(v, n, limit, out);
}

int64_t VF_NAME(ses_k_rank_of)(const ses_real *v, int64_t n, ses_real limit) { return rank_of(v, n, limit); }

double VF_NAME(ses_k_dot_double)(const double *a, const double *b, int64_t n) { return lane_dot(a, b, n); }

void VF_NAME(ses_k_rank2_double)(double *a, const double *v, const double *w, double by_v, double by_w,
                                 int64_t n)
{
    lane_rank2(a, v, w, by_v, by_w, n);
}

void VF_NAME(ses_k_rotate_double)(double *a, double *b, double c, double s, int64_t n)
{
    lane_rotate(a, b, c, s, n);
}
