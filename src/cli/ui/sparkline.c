/* Sparklines and durations as text. */
#include "sparkline.h"

#include <math.h>
#include <string.h>

enum { COLUMNS = 32 };

void ses_sparkline_add(ses_sparkline *s, double x)
{
    if (!s->each) s->each = 1;
    if (s->n == COLUMNS * s->each) { /* full: merge pairs of columns */
        for (int i = 0; i < COLUMNS / 2; i++) {
            s->sum[i] = s->sum[2 * i] + s->sum[2 * i + 1];
            s->count[i] = s->count[2 * i] + s->count[2 * i + 1];
        }
        memset(s->sum + COLUMNS / 2, 0, sizeof s->sum / 2);
        memset(s->count + COLUMNS / 2, 0, sizeof s->count / 2);
        s->each *= 2;
    }
    int64_t at = s->n++ / s->each;
    s->sum[at] += x;
    s->count[at]++;
}

const char *ses_sparkline_text(const ses_sparkline *s, const ses_term *t, char buf[SES_BAR_SIZE])
{
    static const char *const block[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    double low = INFINITY, high = -INFINITY;
    size_t used = 0;
    buf[0] = 0;
    for (int i = 0; i < COLUMNS && s->count[i]; i++) {
        low = fmin(low, s->sum[i] / (double)s->count[i]);
        high = fmax(high, s->sum[i] / (double)s->count[i]);
    }
    for (int i = 0; t->unicode && i < COLUMNS && s->count[i]; i++) {
        double height = high > low ? (s->sum[i] / (double)s->count[i] - low) / (high - low) : 0;
        used += (size_t)snprintf(buf + used, SES_BAR_SIZE - used, "%s", block[(int)(height * 7.999)]);
    }
    return buf;
}

const char *ses_duration_text(char buf[SES_NUMBER_TEXT], double seconds)
{
    int64_t s = (int64_t)(seconds + 0.5);
    if (seconds < 10)
        snprintf(buf, SES_NUMBER_TEXT, "%.1fs", seconds);
    else if (s < 60)
        snprintf(buf, SES_NUMBER_TEXT, "%llds", (long long)s);
    else if (s < 3600)
        snprintf(buf, SES_NUMBER_TEXT, "%lldm%02llds", (long long)(s / 60), (long long)(s % 60));
    else
        snprintf(buf, SES_NUMBER_TEXT, "%lldh%02lldm", (long long)(s / 3600), (long long)(s / 60 % 60));
    return buf;
}
