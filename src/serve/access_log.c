/* The access log. */
#define _POSIX_C_SOURCE 200809L
#include "access_log.h"

#include "base/alloc.h"
#include "base/str.h"
#include "sesame/json.h"

#include <stdio.h>
#include <time.h>

struct ses_access_log {
    FILE *out;
    ses_log_format format;
};

ses_access_log *ses_access_log_new(FILE *out, ses_log_format format, ses_err *e)
{
    ses_access_log *l = ses_alloc(sizeof *l, e);
    if (l) *l = (ses_access_log){ out, format };
    return l;
}

void ses_access_log_free(ses_access_log *l) { ses_free(l); }

static void format_time(char *buf, size_t n)
{
    struct timespec now;
    struct tm t;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &t);
    size_t len = strftime(buf, n, "%Y-%m-%dT%H:%M:%S", &t);
    snprintf(buf + len, n - len, ".%03ldZ", now.tv_nsec / 1000000);
}

static void write_json(FILE *out, const char *time, const ses_http_exchange *x, ses_string method,
                       const char *path, ses_string peer, double ms)
{
    ses_json_writer *w = ses_json_writer_new(-1, NULL);
    if (!w) return;
    ses_json_begin_object(w);
    ses_json_member_string(w, "time", time);
    ses_json_member_stringn(w, "peer", peer.p, peer.n);
    ses_json_member_stringn(w, "method", method.p, method.n);
    ses_json_member_string(w, "path", path);
    ses_json_member_int(w, "status", ses_http_status(x));
    ses_json_member_uint(w, "request_bytes", ses_http_body(x).n);
    ses_json_member_uint(w, "response_bytes", ses_http_response_bytes(x));
    ses_json_member_real(w, "milliseconds", ms);
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, NULL, NULL);
    if (text) fprintf(out, "%s\n", text);
    ses_json_writer_free(w);
}

void ses_access_log_write(ses_access_log *l, const ses_http_exchange *x)
{
    if (l->format == SES_LOG_NONE || !l->out) return;
    char time[40];
    ses_string method = ses_http_method(x), path = ses_http_path(x), peer = ses_http_peer(x);
    double ms = 1e-6 * (double)ses_http_duration_ns(x);
    ses_quoted quoted = ses_quoted_of(path.p, path.n);
    format_time(time, sizeof time);
    if (l->format == SES_LOG_JSON)
        write_json(l->out, time, x, method, quoted.s, peer, (double)(int64_t)(1000 * ms) / 1000);
    else
        fprintf(l->out, "%s %.*s %.*s %s %d %zu %.3f ms\n", time, (int)peer.n, peer.p, (int)method.n,
                method.p, quoted.s, ses_http_status(x), ses_http_response_bytes(x), ms);
}
