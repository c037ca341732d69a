/* Maps a function over the lines of files on several threads, writing results in input order. */
#include "map_lines.h"

#include "base/alloc.h"
#include "base/thread_pool.h"
#include "io/input_stream.h"
#include "io/text_decoder.h"
#include "io/text_reader.h"
#include "line_limit.h"
#include "standard_output.h"
#include "text_operands.h"

#include <stdio.h>
#include <string.h>

enum { CHUNK = 4 << 20, MIN_BYTES_PER_THREAD = 1 << 16 };

typedef struct worker {
    const char *p, *end;
    ses_buf out;
    ses_err e;
    int64_t lines;
    bool failed;
} worker;

typedef struct stream {
    ses_line_fn *fn;
    void *ctx;
    ses_thread_pool *pool;
    worker *worker;
    int threads;
    int64_t lines; /* lines of this file written so far */
    ses_buf in;
    ses_text_encoding encoding;
} stream;

static void work(void *ctx, int64_t i, void *scratch)
{
    (void)scratch;
    stream *s = ctx;
    worker *w = &s->worker[i];
    w->out.len = 0;
    w->lines = 0;
    w->failed = false;
    size_t all = (size_t)(w->end - w->p), good = ses_text_good(w->p, all);
    const char *bad = good < all ? w->p + good : NULL;
    while (w->p < w->end && !w->failed) {
        const char *lf = memchr(w->p, '\n', (size_t)(w->end - w->p));
        const char *stop = lf ? lf : w->end;
        size_t n = (size_t)(stop - w->p);
        if (lf && n && stop[-1] == '\r') n--;
        w->lines++;
        w->failed = bad && bad < stop ? !ses_text_check(w->p, n, &w->e) : false;
        w->failed =
            w->failed || !s->fn(s->ctx, (int)i, w->p, n, &w->out, &w->e) || !ses_buf_ok(&w->out, &w->e);
        w->p = lf ? lf + 1 : w->end;
    }
}

/* Processes whole lines [p, end): a span per worker, then writes the outputs in order. */
static bool run(stream *s, const char *p, const char *end, ses_err *e)
{
    size_t n = (size_t)(end - p);
    int parts =
        n / MIN_BYTES_PER_THREAD < (size_t)s->threads ? 1 + (int)(n / MIN_BYTES_PER_THREAD) : s->threads;
    if (parts > s->threads) parts = s->threads;
    for (int i = 0; i < parts; i++) {
        const char *stop = i + 1 == parts ? end : p + (size_t)(end - p) / (size_t)(parts - i);
        const char *lf = stop < end ? memchr(stop, '\n', (size_t)(end - stop)) : NULL;
        stop = lf ? lf + 1 : end;
        s->worker[i].p = p;
        s->worker[i].end = p = stop;
    }
    ses_parallel_for(s->pool, parts, work, s);
    for (int i = 0; i < parts; i++) {
        worker *w = &s->worker[i];
        if (w->out.len && !ses_stdout_write(w->out.data, w->out.len, e)) return false;
        s->lines += w->lines;
        if (!w->failed) continue;
        *e = w->e;
        return ses_wrap(e, "line %lld", (long long)s->lines);
    }
    return ses_stdout_flush(e);
}

/* Reads until a chunk is full, a line is complete and no more input is ready, or the input ends (*done). */
static bool fill(stream *s, ses_input_stream *file, size_t have, bool *done, ses_err *e)
{
    size_t want = have + CHUNK;
    while (s->in.len < want) {
        size_t got;
        if (!ses_buf_reserve(&s->in, want - s->in.len)) return ses_buf_ok(&s->in, e);
        if (!ses_input_stream_read(file, s->in.data + s->in.len, want - s->in.len, &got, e)) return false;
        *done = got == 0;
        if (*done) return true;
        bool line = memchr(s->in.data + s->in.len, '\n', got) != NULL;
        s->in.len += got;
        if (line && !ses_input_stream_ready(file)) return true;
    }
    return true;
}

/* End of the last complete line in p[0, n); 0: none. p[0, known) holds no line end. */
static size_t last_line_end(const char *p, size_t known, size_t n)
{
    while (n > known && p[n - 1] != '\n') n--;
    return n > known ? n : 0;
}

static bool run_file(stream *s, ses_input_stream *file, ses_err *e)
{
    bool done = false;
    s->lines = 0;
    s->in.len = 0;
    while (!done) {
        size_t have = s->in.len; /* start of an incomplete line */
        ses_err broken = { 0 };  /* reported after the lines before it */
        if (!fill(s, file, have, &done, &broken)) done = false;
        const char *format = s->lines || have ? NULL : ses_text_binary_format(s->in.data, s->in.len);
        if (format && !broken.code) return ses_fail(e, SES_EFORMAT, "this input is %s", format);
        if (!s->lines && !have && s->in.len >= 3 &&
            !memcmp(s->in.data, "\xef\xbb\xbf", 3)) /* a byte order mark */
            memmove(s->in.data, s->in.data + 3, s->in.len -= 3);
        size_t end = done ? s->in.len : last_line_end(s->in.data, have, s->in.len), rest = s->in.len - end;
        if (end && !run(s, s->in.data, s->in.data + end, e)) return false;
        if (broken.code) {
            *e = broken;
            return false;
        }
        if (rest > SES_MAX_LINE) return ses_fail_long_line(s->lines + 1, e);
        if (end && rest) memmove(s->in.data, s->in.data + end, rest);
        s->in.len = rest;
    }
    return true;
}

static bool open_and_run(stream *s, const char *path, ses_err *e)
{
    ses_input_stream *file = ses_input_stream_open_text(path, s->encoding, e);
    bool ok = file && run_file(s, file, e);
    ses_input_stream_free(file);
    if (!ok && !ses_stdout_is_cause(e)) ses_wrap(e, "%s", strcmp(path, "-") ? path : "standard input");
    return ok;
}

/* Processes an argument: one text, even if it contains line ends. */
static bool run_text(stream *s, const char *text, ses_err *e)
{
    ses_buf *out = &s->worker[0].out;
    out->len = 0;
    if (!ses_text_check_argument(text, strlen(text), e) || !s->fn(s->ctx, 0, text, strlen(text), out, e) ||
        !ses_buf_ok(out, e))
        return ses_wrap(e, "%s", ses_quoted_of(text, strlen(text)).s);
    return (!out->len || ses_stdout_write(out->data, out->len, e)) && ses_stdout_flush(e);
}

static bool start(stream *s, ses_err *e)
{
    s->pool = ses_thread_pool_new(s->threads, e);
    s->worker = s->pool ? ses_alloc_array((size_t)s->threads, sizeof *s->worker, e) : NULL;
    return s->worker != NULL;
}

static void end(stream *s)
{
    for (int i = 0; s->worker && i < s->threads; i++) ses_buf_free(&s->worker[i].out);
    ses_free(s->worker);
    ses_thread_pool_free(s->pool);
    ses_buf_free(&s->in);
}

bool ses_map_lines(char *const *files, ses_text_encoding encoding, int threads, ses_line_fn *fn, void *ctx,
                   ses_err *e)
{
    stream s = { .fn = fn, .ctx = ctx, .threads = threads, .encoding = encoding };
    bool ok = start(&s, e);
    if (ok && !*files) ok = open_and_run(&s, "-", e);
    for (; ok && *files; files++) ok = open_and_run(&s, *files, e);
    end(&s);
    return ok;
}

bool ses_map_texts(const ses_call *c, const ses_text_files *t, bool operands_are_files, int threads,
                   ses_line_fn *fn, void *ctx, ses_err *e)
{
    const ses_opt_list *files = &t->files;
    stream s = { .fn = fn, .ctx = ctx, .threads = threads, .encoding = (ses_text_encoding)t->encoding };
    if (c->n_operands && files->n)
        return ses_fail(e, SES_EUSAGE, "arguments and --file are mutually exclusive");
    if (!ses_operands_check_stdin(c, e)) return false;
    bool ok = start(&s, e);
    if (ok && !c->n_operands && !files->n) ok = open_and_run(&s, "-", e);
    for (size_t i = 0; ok && i < files->n; i++) ok = open_and_run(&s, files->item[i], e);
    if (!operands_are_files) ses_hint_file_operand(c, "-f FILE reads the texts in it, one per line");
    for (int i = 0; ok && i < c->n_operands; i++)
        ok = (operands_are_files || ses_operand_is_stdin(c->operands[i]) ? open_and_run
                                                                         : run_text)(&s, c->operands[i], e);
    end(&s);
    return ok;
}
