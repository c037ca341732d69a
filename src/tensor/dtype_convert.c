/* Conversion of numbers between dtypes. */
#include "base/alloc.h"
#include "base/half.h"
#include "sesame/unstable/tensor.h"

/* Numbers are converted through double, or through int64_t if the source is an integer; both are exact.
 * Frequent pairs have their own loops. Memory may be unaligned, so all accesses use memcpy. */

static bool is_float(ses_dtype d) { return d == SES_F32 || d == SES_F16 || d == SES_BF16 || d == SES_F64; }

static double load_real(const unsigned char *p, ses_dtype d)
{
    float f;
    double x;
    uint16_t h;
    switch (d) {
    case SES_F32: return memcpy(&f, p, sizeof f), f;
    case SES_F64: return memcpy(&x, p, sizeof x), x;
    case SES_F16: return memcpy(&h, p, sizeof h), ses_f16_to_f32(h);
    case SES_BF16: return memcpy(&h, p, sizeof h), ses_bf16_to_f32(h);
    default: return 0;
    }
}

static void store_real(unsigned char *p, ses_dtype d, double x)
{
    float f = (float)x;
    uint16_t h = d == SES_F16 ? ses_f64_to_f16(x) : ses_f64_to_bf16(x);
    if (d == SES_F64)
        memcpy(p, &x, sizeof x);
    else if (d == SES_F32)
        memcpy(p, &f, sizeof f);
    else
        memcpy(p, &h, sizeof h);
}

static int64_t load_int(const unsigned char *p, ses_dtype d)
{
    int64_t q;
    int32_t i;
    int16_t s;
    switch (d) {
    case SES_I64: return memcpy(&q, p, sizeof q), q;
    case SES_I32: return memcpy(&i, p, sizeof i), i;
    case SES_I16: return memcpy(&s, p, sizeof s), s;
    case SES_I8: return (signed char)*p;
    case SES_U8: return *p;
    case SES_BOOL: return *p != 0;
    default: return 0;
    }
}

static bool store_int(unsigned char *p, ses_dtype d, int64_t q)
{
    int32_t i = (int32_t)q;
    int16_t s = (int16_t)q;
    switch (d) {
    case SES_I64: return memcpy(p, &q, sizeof q), true;
    case SES_I32: return memcpy(p, &i, sizeof i), i == q;
    case SES_I16: return memcpy(p, &s, sizeof s), s == q;
    case SES_I8: return *p = (unsigned char)q, q >= INT8_MIN && q <= INT8_MAX;
    case SES_U8: return *p = (unsigned char)q, q >= 0 && q <= UINT8_MAX;
    case SES_BOOL: return *p = q != 0, true;
    default: return false;
    }
}

/* Truncates towards zero. False: the number does not fit. */
static bool real_to_int(unsigned char *p, ses_dtype d, double x)
{
    if (d == SES_BOOL) return *p = x != 0, true;
    if (!(x >= -0x1p63 && x < 0x1p63)) return false; /* false for NaN, too */
    return store_int(p, d, (int64_t)x);
}

static bool convert_one(unsigned char *out, ses_dtype to, const unsigned char *in, ses_dtype from)
{
    if (is_float(from) && is_float(to)) return store_real(out, to, load_real(in, from)), true;
    if (is_float(from)) return real_to_int(out, to, load_real(in, from));
    if (!is_float(to)) return store_int(out, to, load_int(in, from));
    if (to != SES_F32) return store_real(out, to, (double)load_int(in, from)), true;
    float f = (float)load_int(in, from); /* rounds once */
    memcpy(out, &f, sizeof f);
    return true;
}

/* Fast loops for the dtypes in which weights are stored. */
static bool convert_fast(unsigned char *out, ses_dtype to, const unsigned char *in, ses_dtype from, size_t n)
{
    float f;
    uint16_t h;
    if (from == SES_BF16 && to == SES_F32) {
        for (size_t i = 0; i < n; i++) {
            memcpy(&h, in + 2 * i, sizeof h);
            f = ses_bf16_to_f32(h);
            memcpy(out + 4 * i, &f, sizeof f);
        }
    } else if (from == SES_F16 && to == SES_F32) {
        for (size_t i = 0; i < n; i++) {
            memcpy(&h, in + 2 * i, sizeof h);
            f = ses_f16_to_f32(h);
            memcpy(out + 4 * i, &f, sizeof f);
        }
    } else if (from == SES_F32 && to == SES_BF16) {
        for (size_t i = 0; i < n; i++) {
            memcpy(&f, in + 4 * i, sizeof f);
            h = ses_f32_to_bf16(f);
            memcpy(out + 2 * i, &h, sizeof h);
        }
    } else if (from == SES_F32 && to == SES_F16) {
        for (size_t i = 0; i < n; i++) {
            memcpy(&f, in + 4 * i, sizeof f);
            h = ses_f32_to_f16(f);
            memcpy(out + 2 * i, &h, sizeof h);
        }
    } else if (from == SES_F32 && to == SES_I8) {
        for (size_t i = 0; i < n; i++) {
            memcpy(&f, in + 4 * i, sizeof f);
            if (!(f > INT8_MIN - 1 && f < INT8_MAX + 1)) return false; /* the other loop has the error */
            out[i] = (unsigned char)(int)f;
        }
    } else {
        return false;
    }
    return true;
}

bool ses_convert(void *dst, ses_dtype to, const void *src, ses_dtype from, size_t n, ses_err *e)
{
    size_t in = ses_dtype_size(from), out = ses_dtype_size(to), bytes;
    if (!in || !out) return ses_fail(e, SES_EARG, "unknown dtype");
    if (!ses_mul_size(n, in > out ? in : out, &bytes))
        return ses_fail(e, SES_EARG, "too many elements: %zu", n);
    if (from == to) {
        if (n) memcpy(dst, src, n * in);
        return true;
    }
    if (convert_fast(dst, to, src, from, n)) return true;
    for (size_t i = 0; i < n; i++)
        if (!convert_one((unsigned char *)dst + i * out, to, (const unsigned char *)src + i * in, from))
            return ses_fail(e, SES_EARG, "element %zu does not fit into %s", i, ses_dtype_name(to));
    return true;
}
