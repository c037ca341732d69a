/* Statistics of a head: see head_stats.h. */
#include "analysis/heads/head_stats.h"

#include <math.h>
#include <stddef.h>

const char *ses_attended_name(ses_attended p)
{
    static const char *const name[SES_ATTENDED_COUNT] = { "self",      "next",        "previous", "first",
                                                          "separator", "punctuation", "special" };
    return name[p];
}

static void add_row(ses_head_stats *s, const float *w, int64_t i, int64_t n, const uint8_t *to, bool square)
{
    double entropy = 0;
    for (int64_t j = 0; j < n; j++) {
        double x = (double)w[j];
        if (x > 0) entropy -= x * log(x);
        if (to[j] & SES_TOKEN_SPECIAL) s->to[SES_ATTENDED_SPECIAL] += x;
        if (to[j] & SES_TOKEN_SEPARATOR) s->to[SES_ATTENDED_SEPARATOR] += x;
        if (to[j] & SES_TOKEN_PUNCTUATION) s->to[SES_ATTENDED_PUNCTUATION] += x;
    }
    s->to[SES_ATTENDED_FIRST] += (double)w[0];
    if (square && i < n) s->to[SES_ATTENDED_SELF] += (double)w[i];
    if (square && i + 1 < n) s->to[SES_ATTENDED_NEXT] += (double)w[i + 1];
    if (square && i > 0 && i - 1 < n) s->to[SES_ATTENDED_PREVIOUS] += (double)w[i - 1];
    s->rows++;
    s->entropy += entropy;
    s->max_entropy += log((double)n);
}

void ses_head_stats_add(ses_head_stats *s, const float *weight, int64_t rows, int64_t cols,
                        const uint8_t *from, const uint8_t *to, bool square, bool causal)
{
    int64_t plain = 0;
    for (int64_t i = 0; i < rows; i++) plain += !(from[i] & SES_TOKEN_SPECIAL);
    for (int64_t i = 0; i < rows && cols; i++)
        if (!plain || !(from[i] & SES_TOKEN_SPECIAL))
            add_row(s, weight + i * cols, i, causal && i + 1 < cols ? i + 1 : cols, to, square);
}

double ses_head_stats_mean(const ses_head_stats *s, ses_attended p)
{
    return s->rows ? s->to[p] / (double)s->rows : 0;
}

double ses_head_stats_entropy(const ses_head_stats *s) { return s->rows ? s->entropy / (double)s->rows : 0; }

const char *ses_head_stats_label(const ses_head_stats *s)
{
    if (ses_head_stats_mean(s, SES_ATTENDED_NEXT) > 0.5) return "next";
    if (ses_head_stats_mean(s, SES_ATTENDED_PREVIOUS) > 0.5) return "previous";
    if (ses_head_stats_mean(s, SES_ATTENDED_SPECIAL) > 0.6) return "special";
    if (ses_head_stats_mean(s, SES_ATTENDED_FIRST) > 0.6) return "first";
    if (s->rows && s->entropy > 0.9 * s->max_entropy) return "broad";
    return NULL;
}
