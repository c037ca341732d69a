/* Timing rounds and result rows of the benchmarks. */
#include "bench.h"
#include "cli/standard_output.h"

#include "cli/machine.h"
#include "cli/ui/show_values.h"

#include <stdarg.h>
#include <string.h>

void ses_bench_peak(ses_bench *b)
{
    if (!b->dev->exec.pool) return; /* not a CPU */
    double rate = ses_machine_peak_gflops(b->dev->exec.pool, b->isa, b->threads, b->quick ? 0.05 : 0.15);
    if (rate > b->peak) b->peak = rate;
}

static void run_round(ses_bench_case *t, double window, int min_calls)
{
    double start = ses_seconds(), now = start;
    for (int n = 0; (now - start < window || n < min_calls) && !ses_bench_stopped(); n++) {
        if (t->prepare) t->prepare(t->ctx);
        double begin = ses_seconds();
        t->fn(t->ctx, t->calls++);
        now = ses_seconds();
        if (!t->best || now - begin < t->best) t->best = now - begin;
    }
}

static void print_ready(const ses_bench_case *t, size_t n)
{
    printf("{\"ready\": [");
    for (size_t i = 0; i < n; i++) printf("%s\"%s\"", i ? ", " : "", t[i].name);
    printf("]}\n");
    fflush(stdout);
}

/* Rounds are longer than in ses_bench_time: the other program has evicted the caches. */
static void run_requested_rounds(ses_bench *b, ses_bench_case *t, size_t n)
{
    char line[16];
    print_ready(t, n);
    while (!ses_bench_stopped() && fgets(line, sizeof line, stdin) && strcmp(line, "next\n") != 0) {
        printf("{\"seconds\": [");
        for (size_t i = 0; i < n; i++) {
            double before = t[i].best;
            t[i].best = 0;
            run_round(&t[i], b->quick ? 0.03 : 0.1, 1);
            printf("%s%.9g", i ? ", " : "", t[i].best);
            if (before && before < t[i].best) t[i].best = before;
        }
        printf("]}\n");
        fflush(stdout);
    }
}

void ses_bench_time(ses_bench *b, ses_bench_case *t, size_t n)
{
    if (b->rounds_on_request) {
        run_requested_rounds(b, t, n);
        return;
    }
    double window = b->quick ? 0.01 : 0.03;
    for (int round = 0; round < (b->quick ? 2 : 4); round++)
        for (size_t i = 0; i < n; i++) run_round(&t[i], window, 2); /* a single one may be interrupted */
    ses_progress_show(&b->progress, b->done += (int64_t)n);
}

const char *ses_bench_dtype(const ses_bench *b)
{
    static const char *const name[SES_DTYPE_COUNT] = {
        [SES_F32] = "f32", [SES_F16] = "f16", [SES_BF16] = "bf16", [SES_I8] = "int8"
    };
    return name[b->dtype];
}

bool ses_bench_row(const ses_bench *b, const char *bench, const char *shape, double value, const char *unit,
                   double fraction, ses_err *e)
{
    if (!b->json) return true;
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "bench", bench);
    ses_json_member_string(w, "shape", shape);
    ses_json_member_int(w, "threads", b->threads);
    ses_json_member_string(w, "isa", ses_isa_name(b->isa));
    ses_json_member_string(w, "dtype", ses_bench_dtype(b));
    ses_json_put_key(w, "value");
    ses_json_put_float(w, (float)value);
    ses_json_member_string(w, "unit", unit);
    ses_json_put_key(w, "peak_share");
    if (fraction < 0)
        ses_json_put_null(w);
    else
        ses_json_put_float(w, (float)fraction);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e) && ses_stdout_flush(e);
}

double ses_bench_fraction(const ses_bench *b, double rate) { return b->peak > 0 ? rate / b->peak : -1; }

void ses_bench_heading(const ses_bench *b, const char *title, const char *fmt, ...)
{
    const ses_term *t = &b->call->out;
    va_list ap;
    printf("%s%s%s", ses_style_on(t, SES_BOLD), title, ses_style_on(t, SES_PLAIN));
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n\n");
}

ses_style ses_fraction_style(double fraction)
{
    return fraction >= 0.8 ? SES_GREEN : fraction >= 0 && fraction < 0.5 ? SES_YELLOW : SES_PLAIN;
}
