/* Frequencies of rotary position embedding: formulas of transformers' modeling_rope_utils.py, and GTE's NTK.
 */
#include "rope.h"

#include <math.h>

/* YaRN: keeps high frequencies, divides low ones, with a ramp over the columns between. */
static void yarn(const ses_rope *r, int64_t dims, double *rate)
{
    const double fast = r->beta_fast > 0 ? r->beta_fast : 32, slow = r->beta_slow > 0 ? r->beta_slow : 1;
    double turn = 2 * 3.14159265358979323846, scale = 2 * log(r->theta);
    double low = (double)dims * log(r->original / (fast * turn)) / scale,
           high = (double)dims * log(r->original / (slow * turn)) / scale;
    if (!r->exact_ramp) low = floor(low), high = ceil(high);
    low = fmax(low, 0), high = fmin(high, (double)dims - 1);
    if (low == high) high += 0.001;
    for (int64_t d = 0; d < dims / 2; d++) {
        double ramp = fmin(fmax(((double)d - low) / (high - low), 0), 1);
        rate[d] = rate[d] / r->factor * ramp + rate[d] * (1 - ramp);
    }
}

/* Llama 3: keeps short waves, divides long ones, and interpolates between. */
static void llama3(const ses_rope *r, int64_t pairs, double *rate)
{
    for (int64_t d = 0; d < pairs; d++) {
        double waves = r->original * rate[d] / (2 * 3.14159265358979323846);
        double keep = fmin(fmax((waves - r->low_freq) / (r->high_freq - r->low_freq), 0), 1);
        rate[d] *= keep + (1 - keep) / r->factor;
    }
}

/* GTE's NTK: theta times factor and all rates divided, or, mixed, rates divided by a rising amount. */
static double ntk_divisor(const ses_rope *r, int64_t d, int64_t dims)
{
    double half = (double)dims / 2;
    if (r->mixed_b > 0) return exp(log(r->factor) * pow(((double)d + 1) / half, r->mixed_b));
    return pow(r->factor, 2 * (double)d / (double)dims + 2 / (double)dims);
}

void ses_rope_rates(const ses_rope *r, int64_t pairs, int64_t length, double *rate)
{
    int64_t dims = 2 * pairs;
    double theta = r->theta;
    if (r->type == SES_ROPE_DYNAMIC && (double)length > r->original && dims > 2)
        theta *= pow(r->factor * (double)length / r->original - (r->factor - 1),
                     (double)dims / (double)(dims - 2));
    for (int64_t d = 0; d < pairs; d++) {
        rate[d] = pow(theta, -2.0 * (double)d / (double)dims);
        if (r->type == SES_ROPE_LINEAR) rate[d] /= r->factor;
        if (r->type == SES_ROPE_NTK) rate[d] /= ntk_divisor(r, d, dims);
    }
    if (r->type == SES_ROPE_YARN) yarn(r, dims, rate);
    if (r->type == SES_ROPE_LLAMA3) llama3(r, pairs, rate);
}

static double yarn_scale(double factor, double mscale)
{
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

double ses_rope_factor(const ses_rope *r)
{
    if (r->type != SES_ROPE_YARN) return 1;
    if (r->attention_factor > 0) return r->attention_factor;
    if (r->mscale > 0 && r->mscale_all_dim > 0)
        return yarn_scale(r->factor, r->mscale) / yarn_scale(r->factor, r->mscale_all_dim);
    return yarn_scale(r->factor, 1);
}
