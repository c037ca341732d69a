/* Random spans of a text: T5's span corruption, MASS's fragment. */
#include "noise.h"

/* Appends the lengths of a uniformly random division of n into `parts` parts of at least 1. */
static bool divide(int64_t n, int64_t parts, ses_rng_stream *d, ses_ints *out, ses_err *e)
{
    int64_t splits = parts - 1, last = 0;
    for (int64_t i = 1; i < n && splits > 0; i++) { /* choose the splits among n - 1 positions */
        if (ses_draw_unit(d) * (double)(n - i) >= (double)splits) continue;
        if (!ses_ints_push(out, (int32_t)(i - last), e)) return false;
        last = i;
        splits--;
    }
    return ses_ints_push(out, (int32_t)(n - last), e);
}

static int64_t clamp(int64_t x, int64_t min, int64_t max)
{
    x = x < max ? x : max;
    return x > min ? x : min;
}

bool ses_spans_draw(int64_t n, const ses_span_options *s, ses_rng_stream *d, ses_ints *out, ses_err *e)
{
    out->n = 0;
    if (n < 2) return ses_ints_push(out, 0, e) && ses_ints_push(out, (int32_t)n, e);
    int64_t noise = clamp(ses_draw_round(d, s->rate * (double)n), 1, n - 1);
    int64_t spans = clamp(ses_draw_round(d, (double)noise / s->mean_length), 1, s->max_spans);
    spans = clamp(spans, 1, noise < n - noise ? noise : n - noise);
    if (!divide(n - noise, spans, d, out, e) || !divide(noise, spans, d, out, e)) return false;
    /* alternate gaps and spans */
    if (!ses_ints_append(out, NULL, 2 * spans, e)) return false;
    for (int64_t i = 0; i < spans; i++) {
        out->p[2 * spans + 2 * i] = out->p[i];
        out->p[2 * spans + 2 * i + 1] = out->p[spans + i];
    }
    for (int64_t i = 0; i < 2 * spans; i++) out->p[i] = out->p[2 * spans + i];
    out->n = (size_t)(2 * spans);
    return true;
}

int64_t ses_span_draw(int64_t n, double rate, ses_rng_stream *d, int64_t *begin)
{
    int64_t len = clamp(ses_draw_round(d, rate * (double)n), 1, n);
    *begin = ses_draw_below(d, n - len + 1);
    return len;
}
