/* Terminal output: color, width, wrapping, bars, human-readable sizes, the progress line. */
#define _DEFAULT_SOURCE
#include "term.h"

#include "base/unicode/utf8.h"
#include "sparkline.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* NULL if unset or empty. */
static const char *env(const char *name)
{
    const char *s = getenv(name);
    return s && *s ? s : NULL;
}

static bool use_color(bool tty, ses_color_when when)
{
    if (when != SES_COLOR_AUTO) return when == SES_COLOR_ALWAYS;
    if (env("NO_COLOR")) return false;
    const char *force = env("CLICOLOR_FORCE"), *kind = env("TERM");
    if (force && strcmp(force, "0") != 0) return true;
    return tty && kind && strcmp(kind, "dumb") != 0;
}

static bool utf8_locale(void)
{
    const char *l = env("LC_ALL");
    if (!l) l = env("LC_CTYPE");
    if (!l) l = env("LANG");
    if (!l) return false;
    const char *dot = strchr(l, '.');
    return dot && (!strncasecmp(dot, ".utf-8", 6) || !strncasecmp(dot, ".utf8", 5));
}

static int columns(int fd, bool tty)
{
    struct winsize w;
    if (tty && ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 0) return w.ws_col;
    const char *c = env("COLUMNS");
    long n = c ? strtol(c, NULL, 10) : 0;
    return n >= 20 && n <= 1000 ? (int)n : 80;
}

ses_term ses_term_of(FILE *f, ses_color_when when)
{
    int fd = fileno(f);
    bool tty = isatty(fd) == 1;
    return (ses_term){
        .tty = tty, .color = use_color(tty, when), .unicode = utf8_locale(), .width = columns(fd, tty)
    };
}

const char *ses_style_on(const ses_term *t, ses_style s)
{
    static const char *const code[SES_STYLE_COUNT] = {
        [SES_PLAIN] = "\033[0m",  [SES_BOLD] = "\033[1m",    [SES_DIM] = "\033[2m",   [SES_RED] = "\033[31m",
        [SES_GREEN] = "\033[32m", [SES_YELLOW] = "\033[33m", [SES_BLUE] = "\033[34m",
    };
    return t->color ? code[s] : "";
}

size_t ses_text_width(const char *s) { return ses_utf8_count(s, strlen(s)); }

/* Writes the next byte, or \xNN for a control character, and advances *s. */
static int escape_next(char out[8], const char **s)
{
    unsigned char c = (unsigned char)*(*s)++, next = (unsigned char)**s;
    if (c == 0xC2 && next >= 0x80 && next < 0xA0) { /* C1 controls */
        ++*s;
        return snprintf(out, 8, "\\x%02X", next);
    }
    return snprintf(out, 8, c < 0x20 || c == 0x7F ? "\\x%02X" : "%c", c);
}

void ses_put_escaped(FILE *f, const char *s)
{
    char piece[8];
    while (*s) {
        escape_next(piece, &s);
        fputs(piece, f);
    }
}

void ses_escape_controls(char *out, size_t size, const char *s)
{
    char piece[8];
    size_t at = 0;
    while (*s) {
        size_t n = (size_t)escape_next(piece, &s);
        if (at + n + 1 > size) break;
        memcpy(out + at, piece, n);
        at += n;
    }
    out[at] = 0;
}

void ses_put_wrapped(FILE *f, const char *text, int at, int indent, int width)
{
    int col = at;
    bool first = true;
    while (*text) {
        int len = (int)strcspn(text, " \n");
        if (!first && col + 1 + len > width) {
            fprintf(f, "\n%*s", indent, "");
            col = indent;
            first = true;
        }
        fprintf(f, "%s%.*s", first ? "" : " ", len, text);
        col += len + !first;
        first = false;
        text += len;
        if (text[0] == '\n' && text[1] == '\n') {
            fprintf(f, "\n\n%*s", indent, "");
            col = indent;
            first = true;
        }
        text += strspn(text, " \n");
    }
    putc('\n', f);
}

int ses_bar_width(const ses_term *t, int used)
{
    enum { MIN = 8, MAX = 40 };
    int left = t->width - used;
    return left < MIN ? MIN : left > MAX ? MAX : left;
}

const char *ses_bar_text(const ses_term *t, char buf[SES_BAR_SIZE], double fraction, int width)
{
    if (width > SES_BAR_MAX) width = SES_BAR_MAX;
    if (!(fraction > 0)) fraction = 0;
    if (fraction > 1) fraction = 1;
    int eighths = (int)(fraction * width * 8 + 0.5);
    if (fraction > 0 && !eighths) eighths = 1;
    char *at = buf;
    for (int i = 0; i < width && eighths > 0; i++, eighths -= 8) {
        if (!t->unicode) {
            if (eighths >= 4 || !i) *at++ = '#';
        } else { /* U+2588 is a full block; U+2589 to U+258F are an eighth narrower each */
            *at++ = '\xE2';
            *at++ = '\x96';
            *at++ = (char)(0x88 + (eighths >= 8 ? 0 : 8 - eighths));
        }
    }
    *at = 0;
    return buf;
}

static const char *scaled_text(char buf[SES_NUMBER_TEXT], uint64_t n, double step, const char *const unit[],
                               size_t n_units)
{
    double x = (double)n;
    size_t u = 0;
    while (x >= step && u + 1 < n_units) {
        x /= step;
        u++;
    }
    if (u && x > step - 0.05 && u + 1 < n_units) { /* would print as 1024.0 */
        x /= step;
        u++;
    }
    snprintf(buf, SES_NUMBER_TEXT, u ? "%.1f%s" : "%.0f%s", x, unit[u]);
    return buf;
}

const char *ses_bytes_text(char buf[SES_NUMBER_TEXT], uint64_t n)
{
    static const char *const unit[] = { " B", " KiB", " MiB", " GiB", " TiB", " PiB" };
    return scaled_text(buf, n, 1024, unit, SES_LEN(unit));
}

const char *ses_count_text(char buf[SES_NUMBER_TEXT], uint64_t n)
{
    static const char *const unit[] = { "", " k", " M", " G", " T" };
    return scaled_text(buf, n, 1000, unit, SES_LEN(unit));
}

const char *ses_percent_text(const ses_term *t, char buf[SES_PERCENT_SIZE], double fraction)
{
    char bar[SES_BAR_SIZE];
    int width = t->width < 60 ? 10 : 20;
    fraction = fraction > 1 ? 1 : fraction > 0 ? fraction : 0;
    ses_bar_text(t, bar, fraction, width);
    int pad = width - (int)ses_text_width(bar);
    snprintf(buf, SES_PERCENT_SIZE, "%3d%% [%s%*s]", (int)(100 * fraction), bar, pad, "");
    return buf;
}

/* ---- the progress line ---- */

ses_progress ses_progress_start(FILE *f, const ses_term *t, bool quiet, const char *label, int64_t total)
{
    return (ses_progress){
        .f = quiet ? NULL : f, .term = *t, .label = label, .total = total, .first = -1, .start = ses_seconds()
    };
}

/* Seconds left at the speed so far; a resumed job does not start at 0. */
static double seconds_left(const ses_progress *p, int64_t done, double now)
{
    double part = (double)(done - p->first), rest = (double)(p->total - done);
    return part > 0 && rest > 0 ? (now - p->begun) / part * rest : 0;
}

/* Writes a line to a file or pipe: the first after some seconds, so that short jobs write none. */
static void log_progress(ses_progress *p, int64_t done, double now)
{
    enum { FIRST = 3, INTERVAL = 10 };
    int tenths = p->total > 0 ? (int)(10 * (double)done / (double)p->total) : 0;
    double since = now - (p->drawn > 0 ? p->drawn : p->start);
    bool by_part = tenths > p->tenths && tenths < 10 && now - p->start >= FIRST;
    if (!by_part && since < INTERVAL) return;
    char a[SES_NUMBER_TEXT];
    double left = seconds_left(p, done, now);
    p->drawn = now;
    p->tenths = tenths;
    if (p->total > 0)
        fprintf(p->f, "%s %d%%%s%s%s\n", p->label, (int)(100 * (double)done / (double)p->total),
                left > 0 ? ", " : "", left > 0 ? ses_duration_text(a, left) : "", left > 0 ? " left" : "");
    else
        fprintf(p->f, "%s %lld\n", p->label, (long long)done);
    fflush(p->f);
}

void ses_progress_show(ses_progress *p, int64_t done)
{
    if (!p->f) return;
    double now = ses_seconds();
    if (p->first < 0) {
        p->first = done;
        p->begun = now;
    }
    if (!p->term.tty) {
        log_progress(p, done, now);
        return;
    }
    if (now - p->drawn < 0.1 && (!p->total || done != p->total)) return;
    p->drawn = now;
    char percent[SES_PERCENT_SIZE], left[SES_NUMBER_TEXT], line[SES_PERCENT_SIZE + 200];
    if (p->total > 0)
        snprintf(line, sizeof line, "%s %s  %s left", p->label,
                 ses_percent_text(&p->term, percent, (double)done / (double)p->total),
                 ses_duration_text(left, seconds_left(p, done, now)));
    else
        snprintf(line, sizeof line, "%s %lld", p->label, (long long)done);
    if (ses_text_width(line) >= (size_t)p->term.width) snprintf(line, sizeof line, "%lld", (long long)done);
    fprintf(p->f, "\r%s\033[K", line);
    fflush(p->f);
}

void ses_progress_end(ses_progress *p)
{
    if (p->f && p->term.tty && p->drawn > 0) fputs("\r\033[K", p->f);
}
