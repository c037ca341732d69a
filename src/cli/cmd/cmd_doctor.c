/* doctor: what this machine is, what Sesame will use of it, and how fast that is. */
#include "base/alloc.h"
#include "base/thread_pool.h"
#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/machine.h"
#include "cli/ui/text_table.h"
#include "kernel/kernel.h"
#include "kernel/peak_flops.h"
#include "sesame/json.h"
#include "sesame/version.h"
#include "tensor/device_impl.h"

#include <string.h>

typedef struct args {
    ses_compute_args compute;
    double seconds;
    bool quick;
} args;

static const ses_opt opt[] = {
    SES_OPT_INCLUDE(args, compute, ses_compute_options),
    { .name = "seconds",
      .letter = 's',
      .type = SES_OPT_REAL,
      .offset = offsetof(args, seconds),
      .def = "1",
      .min = 0.01,
      .max = 60,
      .help = "time for all measurements together" },
    { .name = "quick", .type = SES_OPT_FLAG, .offset = offsetof(args, quick), .help = "measure nothing" },
};

/* One measured speed. */
typedef struct speed {
    const char *what, *unit; /* "multiply-add", "GFLOP/s" */
    int threads;
    double value;
} speed;

typedef struct report {
    ses_machine machine;
    ses_build_feature part[SES_MAX_BUILD_FEATURES];
    size_t n_parts;
    ses_isa isa, best;
    int threads;
    speed speed[4];
    size_t n_speeds;
} report;

typedef struct burst {
    ses_isa isa;
    double seconds, *rate; /* one rate a chunk */
} burst;

static void run_burst(void *ctx, int64_t i, void *scratch)
{
    (void)scratch;
    burst *b = ctx;
    b->rate[i] = ses_peak_gflops(b->isa, b->seconds);
}

/* All threads at once, each at its best burst; more threads than cores take turns and do not add up. */
static double peak_gflops(ses_isa isa, int threads, int cores, double seconds, ses_err *e)
{
    ses_thread_pool *pool = ses_thread_pool_new(threads, e);
    double *rate = ses_alloc_array((size_t)threads, sizeof *rate, e), sum = 0;
    if (pool && rate) {
        ses_parallel_for(pool, threads, run_burst, &(burst){ isa, seconds, rate });
        for (int i = 0; i < threads; i++) sum += rate[i];
    }
    ses_free(rate);
    ses_thread_pool_free(pool);
    return threads > cores ? sum * cores / threads : sum;
}

static bool measure(report *r, double seconds, ses_err *e)
{
    int counts[2] = { 1, r->threads };
    size_t n = r->threads > 1 ? 2 : 1;
    double each = seconds / (double)(2 * n);
    for (size_t i = 0; i < n; i++) {
        double rate = peak_gflops(r->isa, counts[i], r->machine.usable, each, e);
        if (e->code) return false;
        r->speed[r->n_speeds++] = (speed){ "multiply-add", "GFLOP/s", counts[i], rate };
    }
    for (size_t i = 0; i < n; i++) {
        double rate = ses_memory_bandwidth(counts[i], each, e);
        if (e->code) return false;
        r->speed[r->n_speeds++] = (speed){ "memory read", "GB/s", counts[i], 1e-9 * rate };
    }
    return true;
}

static void line(const ses_call *c, const char *name, const char *value)
{
    printf("%s%-13s%s", ses_style_on(&c->out, SES_BOLD), name, ses_style_on(&c->out, SES_PLAIN));
    int width = c->out.width < 100 ? c->out.width : 100;
    ses_put_wrapped(stdout, *value ? value : "unknown", 13, 13, width);
}

static void show_machine(const ses_call *c, const report *r)
{
    const ses_machine *m = &r->machine;
    char text[256], a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT];
    line(c, "System", m->system);
    line(c, "CPU", m->cpu);
    line(c, "Features", m->features);
    int n = snprintf(text, sizeof text, "%d online, %d for this process", m->cores, m->usable);
    if (m->quota > 0) snprintf(text + n, sizeof text - (size_t)n, ", %.1f by the control group", m->quota);
    line(c, "Cores", text);
    n = snprintf(text, sizeof text, "%s, %s free", ses_bytes_text(a, m->memory), ses_bytes_text(b, m->free));
    if (!m->memory) text[0] = 0;
    if (m->memory_limit && m->memory_limit < m->memory)
        snprintf(text + n, sizeof text - (size_t)n, ", %s by the control group",
                 ses_bytes_text(a, m->memory_limit));
    line(c, "Memory", text);
    n = snprintf(text, sizeof text, "%s", ses_bytes_text(a, m->page));
    if (m->huge && *m->huge_mode)
        snprintf(text + n, sizeof text - (size_t)n, ", huge %s: %s", ses_bytes_text(b, m->huge),
                 m->huge_mode);
    line(c, "Pages", text);
    n = snprintf(text, sizeof text, "%s", ses_isa_name(r->isa));
    if (r->isa != r->best)
        snprintf(text + n, sizeof text - (size_t)n, " as asked; the best here is %s", ses_isa_name(r->best));
    line(c, "Kernels", text);
    snprintf(text, sizeof text, "%d", r->threads);
    line(c, "Threads", text);
    for (size_t i = 0; i < r->n_parts; i++) {
        snprintf(text, sizeof text, "%s (%s)", r->part[i].status, r->part[i].use);
        line(c, r->part[i].name, text);
    }
}

static void show_gpus(const ses_call *c)
{
    ses_gpu g;
    char text[400], name[24], memory[SES_NUMBER_TEXT];
    for (int i = 0; ses_gpu_describe(i, &g); i++) {
        snprintf(name, sizeof name, "GPU %d", i);
        snprintf(text, sizeof text, "%s, %s, compute capability %d.%d, %d multiprocessors: --device cuda:%d",
                 g.name, ses_bytes_text(memory, g.memory_bytes), g.major, g.minor, g.sm_count, i);
        line(c, name, text);
    }
}

static bool show_speeds(const ses_call *c, const report *r, ses_err *e)
{
    ses_text_table *t = ses_text_table_new("Speed|>threads|>||", e);
    if (!t) return false;
    for (size_t i = 0; i < r->n_speeds; i++) {
        const speed *s = &r->speed[i];
        double most = s->value;
        for (size_t j = 0; j < r->n_speeds; j++)
            if (!strcmp(r->speed[j].unit, s->unit) && r->speed[j].value > most) most = r->speed[j].value;
        char bar[SES_BAR_SIZE];
        ses_text_table_cell(t, "%s", s->what);
        ses_text_table_cell(t, "%d", s->threads);
        ses_text_table_cell(t, "%.1f", s->value);
        ses_text_table_cell(t, "%s", s->unit);
        ses_text_table_cell(t, "%s", ses_bar_text(&c->out, bar, most > 0 ? s->value / most : 0, 30));
        ses_text_table_style(t, SES_GREEN);
    }
    putchar('\n');
    bool ok = ses_text_table_print(t, stdout, &c->out, 0, e);
    ses_text_table_free(t);
    return ok;
}

/* The levels kernel k is written for, a bit each; CUDA's comes after the instruction sets. */
static unsigned levels(const ses_kernel_info *k)
{
    unsigned mask = k->has_cuda ? 1u << SES_ISA_COUNT : 0;
    for (int i = 0; i < SES_ISA_COUNT; i++)
        if (k->has[i] && ses_isa_built((ses_isa)i)) mask |= 1u << i;
    return mask;
}

/* The matrix of kernels.def, kernels of the same levels together, the most levels first. */
static void show_kernels(const ses_call *c)
{
    size_t n;
    const ses_kernel_info *k = ses_kernel_list(&n);
    printf(
        "\n%sKernels by the levels they are written for%s (the next lower one serves where one is missing)\n",
        ses_style_on(&c->out, SES_BOLD), ses_style_on(&c->out, SES_PLAIN));
    for (unsigned mask = 2u << SES_ISA_COUNT; mask-- > 1;) {
        char who[64] = "", names[2048] = "";
        size_t at = 0;
        for (size_t i = 0; i < n; i++)
            if (levels(&k[i]) == mask && at < sizeof names)
                at += (size_t)snprintf(names + at, sizeof names - at, " %s", k[i].name);
        if (!at) continue;
        at = 0;
        for (int i = 0; i <= SES_ISA_COUNT; i++)
            if (mask >> i & 1)
                at += (size_t)snprintf(who + at, sizeof who - at, "%s%s", at ? " " : "",
                                       i < SES_ISA_COUNT ? ses_isa_name((ses_isa)i) : "cuda");
        printf("  %s%-20s%s ", ses_style_on(&c->out, SES_GREEN), who, ses_style_on(&c->out, SES_PLAIN));
        ses_put_wrapped(stdout, names + 1, 23, 23, c->out.width < 100 ? c->out.width : 100);
    }
}

static void json_machine(ses_json_writer *w, const report *r)
{
    const ses_machine *m = &r->machine;
    ses_json_member_string(w, "version", SES_VERSION);
    ses_json_member_string(w, "compiler", ses_compiler());
    ses_json_member_string(w, "system", m->system);
    ses_json_member_string(w, "cpu", m->cpu);
    ses_json_member_string(w, "features", m->features);
    ses_json_member_uint(w, "cores_online", (uint64_t)m->cores);
    ses_json_member_uint(w, "cores_usable", (uint64_t)m->usable);
    ses_json_member_uint(w, "memory_bytes", m->memory);
    ses_json_member_uint(w, "memory_free_bytes", m->free);
    ses_json_member_uint(w, "page_bytes", m->page);
    ses_json_member_uint(w, "huge_page_bytes", m->huge);
    ses_json_member_string(w, "huge_pages", m->huge_mode);
    ses_json_member_string(w, "isa", ses_isa_name(r->isa));
    ses_json_member_string(w, "isa_best", ses_isa_name(r->best));
    ses_json_member_uint(w, "threads", (uint64_t)r->threads);
}

static void json_kernels(ses_json_writer *w)
{
    size_t n;
    const ses_kernel_info *k = ses_kernel_list(&n);
    ses_json_put_key(w, "kernels");
    ses_json_begin_object(w);
    for (size_t i = 0; i < n; i++) {
        ses_json_put_key(w, k[i].name);
        ses_json_begin_array(w);
        for (int isa = 0; isa < SES_ISA_COUNT; isa++)
            if (k[i].has[isa] && ses_isa_built((ses_isa)isa))
                ses_json_put_string(w, ses_isa_name((ses_isa)isa));
        if (k[i].has_cuda) ses_json_put_string(w, "cuda");
        ses_json_end_array(w);
    }
    ses_json_end_object(w);
}

static void json_gpus(ses_json_writer *w)
{
    ses_gpu g;
    ses_json_put_key(w, "gpus");
    ses_json_begin_array(w);
    for (int i = 0; ses_gpu_describe(i, &g); i++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "name", g.name);
        ses_json_member_uint(w, "memory_bytes", g.memory_bytes);
        ses_json_member_uint(w, "capability", (uint64_t)(10 * g.major + g.minor));
        ses_json_member_uint(w, "multiprocessors", (uint64_t)g.sm_count);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

static bool show_json(const report *r, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (!w) return false;
    ses_json_begin_object(w);
    json_machine(w, r);
    ses_json_put_key(w, "parts");
    ses_json_begin_array(w);
    for (size_t i = 0; i < r->n_parts; i++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "name", r->part[i].name);
        ses_json_put_key(w, "found");
        ses_json_put_bool(w, r->part[i].available);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    json_gpus(w);
    ses_json_put_key(w, "speed");
    ses_json_begin_array(w);
    for (size_t i = 0; i < r->n_speeds; i++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "what", r->speed[i].what);
        ses_json_member_uint(w, "threads", (uint64_t)r->speed[i].threads);
        ses_json_put_key(w, "value");
        ses_json_put_float(w, (float)r->speed[i].value);
        ses_json_member_string(w, "unit", r->speed[i].unit);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    json_kernels(w);
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, NULL, e);
    if (text) puts(text);
    ses_json_writer_free(w);
    return text != NULL;
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    report r = { .machine = ses_machine_detect(),
                 .isa = ses_compute_isa(&a->compute),
                 .best = ses_isa_best(),
                 .threads = ses_compute_threads(&a->compute) };
    r.n_parts = ses_build_features(r.part);
    if (!a->quick && !measure(&r, a->seconds, e)) return false;
    if (a->compute.json) return show_json(&r, e);
    show_machine(c, &r);
    show_gpus(c);
    if (!a->quick && !show_speeds(c, &r, e)) return false;
    show_kernels(c);
    return true;
}

static const ses_usage_example examples[] = {
    { "sesame doctor", "look and measure, in about a second" },
    { "sesame doctor --isa avx2 --threads 1", "the speed of one core without AVX-512" },
    { "sesame doctor --json --quick", "the facts alone, for a program" },
    { 0 },
};

const ses_command ses_command_doctor = {
    .name = "doctor",
    .usage = "",
    .summary = "show hardware, features, peak speed",
    .description =
        "Shows the processor and its features, the instruction set and threads Sesame will use, memory, "
        "the optional parts found, and which kernels exist for which instruction set.\n\n"
        "It also measures: multiply-adds in registers, which is the most any matrix product can reach, and "
        "reading memory, on one thread and on all.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .run = run,
};
