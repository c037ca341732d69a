/* Labeled lines, grouped numbers and JSON on standard output. */
#include "show_values.h"

#include "cli/standard_output.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum { NAME_WIDTH = 14, MAX_WIDTH = 100 };

const char *ses_rate_text(char buf[SES_NUMBER_TEXT], int64_t n, double seconds)
{
    double rate = seconds > 1e-9 ? (double)n / seconds : 0;
    if (rate >= 100) return ses_grouped_text(buf, (int64_t)rate);
    snprintf(buf, SES_NUMBER_TEXT, "%.1f", rate);
    return buf;
}

const char *ses_elapsed_text(char buf[SES_NUMBER_TEXT], double seconds)
{
    snprintf(buf, SES_NUMBER_TEXT, seconds < 1 ? "%.3g ms" : "%.2f s",
             seconds < 1 ? 1000 * seconds : seconds);
    return buf;
}

void ses_show_line(const ses_term *t, const char *name, const char *fmt, ...)
{
    char raw[1024], value[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    ses_escape_controls(value, sizeof value, raw);
    printf("%s%-*s%s", ses_style_on(t, SES_BOLD), NAME_WIDTH, name, ses_style_on(t, SES_PLAIN));
    ses_put_wrapped(stdout, value, NAME_WIDTH, NAME_WIDTH, t->width < MAX_WIDTH ? t->width : MAX_WIDTH);
}

const char *ses_json_value_text(char *buf, size_t size, const ses_json *v)
{
    const char *text = ses_json_string(v, NULL);
    if (text || !v || ses_json_type_of(v) == SES_JSON_NULL) {
        snprintf(buf, size, "%s", text ? text : "-");
        return buf;
    }
    ses_json_writer *w = ses_json_writer_new(0, NULL);
    if (w) ses_json_put_value(w, v);
    text = w ? ses_json_writer_text(w, NULL, NULL) : NULL;
    snprintf(buf, size, "%s", text ? text : "?");
    ses_json_writer_free(w);
    return buf;
}

bool ses_json_writer_print(ses_json_writer *w, ses_err *e)
{
    size_t n;
    const char *text = ses_json_writer_text(w, &n, e);
    bool ok = text && ses_stdout_write(text, n, e) && ses_stdout_write("\n", 1, e);
    ses_json_writer_free(w);
    return ok;
}
