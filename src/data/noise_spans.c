/* Stretches of a text that are taken out whole: T5's spans, MASS's fragment. */
#include "noise.h"

/* n things into parts of at least one, every division as likely: `parts` numbers. */
static bool divide(int64_t n, int64_t parts, ses_rng_stream *d, ses_ints *out, ses_err *e)
{
    int64_t cuts = parts - 1, last = 0;
    for (int64_t i = 1; i < n && cuts > 0; i++) { /* choose the cuts among n - 1 places */
        if (ses_draw_unit(d) * (double)(n - i) >= (double)cuts) continue;
        if (!ses_ints_push(out, (int32_t)(i - last), e)) return false;
        last = i;
        cuts--;
    }
    return ses_ints_push(out, (int32_t)(n - last), e);
}

static int64_t within(int64_t x, int64_t least, int64_t most)
{
    x = x < most ? x : most;
    return x > least ? x : least;
}

bool ses_spans_draw(int64_t n, const ses_span_options *s, ses_rng_stream *d, ses_ints *out, ses_err *e)
{
    out->n = 0;
    if (n < 2) return ses_ints_push(out, 0, e) && ses_ints_push(out, (int32_t)n, e);
    int64_t noise = within(ses_draw_round(d, s->rate * (double)n), 1, n - 1);
    int64_t spans = within(ses_draw_round(d, (double)noise / s->mean_length), 1, s->max_spans);
    spans = within(spans, 1, noise < n - noise ? noise : n - noise);
    if (!divide(n - noise, spans, d, out, e) || !divide(noise, spans, d, out, e)) return false;
    /* gaps and spans take turns */
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
    int64_t len = within(ses_draw_round(d, rate * (double)n), 1, n);
    *begin = ses_draw_below(d, n - len + 1);
    return len;
}
