/* doctor: shows the hardware, the features in use and the peak speed. */
#include "base/thread_pool.h"
#include "cli/amx_report.h"
#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/gpu_setup.h"
#include "cli/machine.h"
#include "cli/rank_report.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "kernel/cpu_caches.h"
#include "kernel/kernel.h"
#include "sesame/base.h"
#include "tensor/device_impl.h"

#include <string.h>

typedef struct args {
    ses_compute_args compute;
    double seconds;
    bool quick, ranks;
} args;

static const ses_opt opt[] = {
    SES_OPT_INCLUDE(args, compute, ses_compute_options),
    SES_OPT_REAL(args, seconds, "seconds", "1", 0.01, 60, "total time of all measurements", .letter = 's'),
    SES_OPT_FLAG(args, quick, "quick", "skip the measurements"),
    SES_OPT_FLAG(args, ranks, "mpi",
                 "show the ranks that mpirun, srun or torchrun started, and measure their links"),
};

typedef struct speed {
    const char *what, *unit; /* "multiply-add", "GFLOP/s" */
    int threads;
    double value;
} speed;

typedef struct report {
    ses_machine machine;
    ses_cpu_caches caches;
    ses_build_feature feature[SES_MAX_BUILD_FEATURES];
    size_t n_features;
    ses_gpu_setup gpu;
    ses_isa isa, best;
    int threads;
    char amx[256];
    speed speed[8];
    size_t n_speeds;
} report;

typedef enum peak_kind { PEAK_F32, PEAK_I8_TILES, PEAK_BF16_TILES, PEAKS } peak_kind;
static const struct {
    const char *what, *unit;
} peak_name[PEAKS] = { { "multiply-add", "GFLOP/s" },
                       { "int8 tiles", "GOP/s" },
                       { "bf16 tiles", "GFLOP/s" } };

/* Threads beyond the cores share them: their rates do not add up. */
static double peak(ses_isa isa, peak_kind kind, int threads, int cores, double seconds, ses_err *e)
{
    ses_thread_pool *pool = ses_thread_pool_new(threads, e);
    double sum = 0;
    if (pool && kind == PEAK_F32) sum = ses_machine_peak_gflops(pool, isa, threads, seconds);
    if (pool && kind != PEAK_F32)
        sum = ses_machine_peak_tiles(pool, isa, kind == PEAK_BF16_TILES, threads, seconds);
    ses_thread_pool_free(pool);
    return threads > cores ? sum * cores / threads : sum;
}

static bool measure(report *r, double seconds, ses_err *e)
{
    int counts[2] = { 1, r->threads };
    size_t n = r->threads > 1 ? 2 : 1;
    int peaks = ses_isa_has_tiles(r->isa) ? PEAKS : PEAK_F32 + 1;
    double each = seconds / (double)((1 + (size_t)peaks) * n);
    for (int kind = 0; kind < peaks; kind++)
        for (size_t i = 0; i < n; i++) {
            double rate = peak(r->isa, (peak_kind)kind, counts[i], r->machine.usable, each, e);
            if (e->code) return false;
            r->speed[r->n_speeds++] = (speed){ peak_name[kind].what, peak_name[kind].unit, counts[i], rate };
        }
    for (size_t i = 0; i < n; i++) {
        double rate = ses_memory_bandwidth(counts[i], each, e);
        if (e->code) return false;
        r->speed[r->n_speeds++] = (speed){ "memory read", "GB/s", counts[i], 1e-9 * rate };
    }
    return true;
}

static void show_line(const ses_call *c, const char *name, const char *value)
{
    ses_show_line(&c->out, name, "%s", *value ? value : "unknown");
}

/* Cache sizes, and the block sizes derived from them. */
static void show_caches(const ses_call *c, const report *r)
{
    char text[256], size[SES_NUMBER_TEXT];
    const size_t bytes[] = { r->caches.l1, r->caches.l2, r->caches.l3 };
    int n = 0;
    for (int i = 0; i < (int)SES_LEN(bytes); i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%sL%d %s", i ? ", " : "", i + 1,
                      bytes[i] ? ses_bytes_text(size, bytes[i]) : "unknown");
    ses_blocks b = ses_blocks_of_caches(r->caches);
    snprintf(text + n, sizeof text - (size_t)n, "; blocks of %d rows%s", b.packed_rows,
             b.far_memory ? ", next weights prefetched" : "");
    show_line(c, "Caches", text);
}

static void show_machine(const ses_call *c, const report *r)
{
    const ses_machine *m = &r->machine;
    char text[256], a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT];
    show_line(c, "System", m->system);
    show_line(c, "CPU", m->cpu);
    show_line(c, "Features", m->features);
    int n = snprintf(text, sizeof text, "%d online, %d usable by this process", m->cores, m->usable);
    if (m->quota > 0)
        snprintf(text + n, sizeof text - (size_t)n, ", limited to %.1f by the control group", m->quota);
    show_line(c, "Cores", text);
    show_caches(c, r);
    n = snprintf(text, sizeof text, "%s, %s free", ses_bytes_text(a, m->memory), ses_bytes_text(b, m->free));
    if (!m->memory) text[0] = 0;
    if (m->memory_limit && m->memory_limit < m->memory)
        snprintf(text + n, sizeof text - (size_t)n, ", limited to %s by the control group",
                 ses_bytes_text(a, m->memory_limit));
    show_line(c, "Memory", text);
    n = snprintf(text, sizeof text, "%s", ses_bytes_text(a, m->page));
    if (m->huge && *m->huge_mode)
        snprintf(text + n, sizeof text - (size_t)n, ", huge %s: %s", ses_bytes_text(b, m->huge),
                 m->huge_mode);
    show_line(c, "Pages", text);
    n = snprintf(text, sizeof text, "%s", ses_isa_name(r->isa));
    if (r->isa != r->best)
        snprintf(text + n, sizeof text - (size_t)n, " as requested; the best available is %s",
                 ses_isa_name(r->best));
    show_line(c, "Kernels", text);
    show_line(c, "AMX", r->amx);
    snprintf(text, sizeof text, "%d", r->threads);
    show_line(c, "Threads", text);
    for (size_t i = 0; i < r->n_features; i++) {
        snprintf(text, sizeof text, "%s (%s)", r->feature[i].status, r->feature[i].use);
        show_line(c, r->feature[i].name, text);
    }
}

static void show_gpus(const ses_call *c, const report *r)
{
    ses_gpu g;
    char text[SES_CUDA_PATH_SIZE + 400], name[24], memory[SES_NUMBER_TEXT];
    ses_gpu_module_text(&r->gpu, text, sizeof text);
    show_line(c, "CUDA module", text);
    ses_gpu_driver_text(&r->gpu, text, sizeof text);
    show_line(c, "NVIDIA driver", text);
    if (r->gpu.device_error.code) show_line(c, "GPU", r->gpu.device_error.msg);
    for (int i = 0; ses_gpu_describe(i, &g); i++) {
        snprintf(name, sizeof name, "GPU %d", i);
        snprintf(text, sizeof text, "%s, %s, compute capability %d.%d, %d multiprocessors: --device cuda:%d",
                 g.name, ses_bytes_text(memory, g.memory_bytes), g.major, g.minor, g.sm_count, i);
        show_line(c, name, text);
    }
}

static bool show_speeds(const ses_call *c, const report *r, ses_err *e)
{
    ses_text_table *t = ses_text_table_new("Speed|>threads|>||", e);
    if (!t) return false;
    for (size_t i = 0; i < r->n_speeds; i++) {
        const speed *s = &r->speed[i];
        double max = s->value;
        for (size_t j = 0; j < r->n_speeds; j++)
            if (!strcmp(r->speed[j].unit, s->unit) && r->speed[j].value > max) max = r->speed[j].value;
        char bar[SES_BAR_SIZE];
        ses_text_table_cell(t, "%s", s->what);
        ses_text_table_cell(t, "%d", s->threads);
        ses_text_table_cell(t, "%.1f", s->value);
        ses_text_table_cell(t, "%s", s->unit);
        ses_text_table_cell(t, "%s", ses_bar_text(&c->out, bar, max > 0 ? s->value / max : 0, 30));
        ses_text_table_style(t, SES_GREEN);
    }
    putchar('\n');
    bool ok = ses_text_table_print(t, stdout, &c->out, 0, e);
    ses_text_table_free(t);
    return ok;
}

/* Bit mask of the levels that kernel number i, k, implements; CUDA is the bit after the instruction sets. */
static unsigned levels(const ses_kernel_info *k, size_t i)
{
    unsigned mask = k->has_cuda ? 1u << SES_ISA_COUNT : 0;
    for (int isa = 0; isa < SES_ISA_COUNT; isa++)
        if (ses_kernel_has(i, (ses_isa)isa)) mask |= 1u << isa;
    return mask;
}

/* Prints the kernels grouped by level, most levels first. */
static void show_kernels(const ses_call *c)
{
    size_t n;
    const ses_kernel_info *k = ses_kernel_list(&n);
    printf("\n%sKernels by implemented level%s (a missing level uses the next lower one)\n",
           ses_style_on(&c->out, SES_BOLD), ses_style_on(&c->out, SES_PLAIN));
    for (unsigned mask = 2u << SES_ISA_COUNT; mask-- > 1;) {
        char level_names[64] = "", names[2048] = "";
        size_t at = 0;
        for (size_t i = 0; i < n; i++)
            if (levels(&k[i], i) == mask && at < sizeof names)
                at += (size_t)snprintf(names + at, sizeof names - at, " %s", k[i].name);
        if (!at) continue;
        at = 0;
        for (int i = 0; i <= SES_ISA_COUNT; i++)
            if (mask >> i & 1)
                at += (size_t)snprintf(level_names + at, sizeof level_names - at, "%s%s", at ? " " : "",
                                       i < SES_ISA_COUNT ? ses_isa_name((ses_isa)i) : "cuda");
        printf("  %s%-31s%s ", ses_style_on(&c->out, SES_GREEN), level_names,
               ses_style_on(&c->out, SES_PLAIN));
        ses_put_wrapped(stdout, names + 1, 34, 34, c->out.width < 100 ? c->out.width : 100);
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
    ses_json_member_uint(w, "l1_bytes", r->caches.l1);
    ses_json_member_uint(w, "l2_bytes", r->caches.l2);
    ses_json_member_uint(w, "l3_bytes", r->caches.l3);
    ses_json_member_uint(w, "memory_bytes", m->memory);
    ses_json_member_uint(w, "memory_free_bytes", m->free);
    ses_json_member_uint(w, "page_bytes", m->page);
    ses_json_member_uint(w, "huge_page_bytes", m->huge);
    ses_json_member_string(w, "huge_pages", m->huge_mode);
    ses_json_member_string(w, "isa", ses_isa_name(r->isa));
    ses_json_member_string(w, "isa_best", ses_isa_name(r->best));
    ses_json_member_string(w, "amx", r->amx);
    ses_json_member_uint(w, "threads", (uint64_t)r->threads);
}

static void json_kernels(ses_json_writer *w)
{
    size_t n;
    const ses_kernel_info *k = ses_kernel_list(&n);
    ses_json_member_object(w, "kernels");
    for (size_t i = 0; i < n; i++) {
        ses_json_member_array(w, k[i].name);
        for (int isa = 0; isa < SES_ISA_COUNT; isa++)
            if (ses_kernel_has(i, (ses_isa)isa)) ses_json_put_string(w, ses_isa_name((ses_isa)isa));
        if (k[i].has_cuda) ses_json_put_string(w, "cuda");
        ses_json_end_array(w);
    }
    ses_json_end_object(w);
}

static void json_gpus(ses_json_writer *w, const report *r)
{
    ses_gpu g;
    char driver[32] = "";
    int version = r->gpu.driver;
    if (version) snprintf(driver, sizeof driver, "%d.%d", version / 1000, version % 1000 / 10);
    ses_json_member_object(w, "cuda");
    ses_json_member_bool(w, "ready", ses_gpu_ready(&r->gpu));
    ses_json_member_string(w, "module", *r->gpu.module ? r->gpu.module : NULL);
    ses_json_member_string(w, "module_error", *r->gpu.module_error.msg ? r->gpu.module_error.msg : NULL);
    ses_json_member_string(w, "driver", *driver ? driver : NULL);
    ses_json_member_string(w, "device_error", *r->gpu.device_error.msg ? r->gpu.device_error.msg : NULL);
    ses_json_end_object(w);
    ses_json_member_array(w, "gpus");
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
    ses_json_begin_object(w);
    json_machine(w, r);
    ses_json_member_array(w, "parts");
    for (size_t i = 0; i < r->n_features; i++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "name", r->feature[i].name);
        ses_json_member_bool(w, "found", r->feature[i].available);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    json_gpus(w, r);
    ses_json_member_array(w, "speed");
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
    return ses_json_writer_print(w, e);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    if (a->ranks) return ses_rank_report(c, &a->compute, !a->quick, a->seconds, e);
    report r = { .machine = ses_machine_detect(),
                 .caches = ses_cpu_caches_detect(),
                 .isa = ses_compute_isa(&a->compute),
                 .best = ses_isa_best(),
                 .threads = ses_compute_threads(&a->compute) };
    int error;
    ses_amx_state amx = ses_amx_detect(&error);
    ses_amx_text(r.amx, sizeof r.amx, amx, error, r.isa);
    r.n_features = ses_build_features(r.feature);
    ses_gpu_setup_detect(&r.gpu);
    if (!a->quick && !measure(&r, a->seconds, e)) return false;
    if (a->compute.json) return show_json(&r, e);
    show_machine(c, &r);
    show_gpus(c, &r);
    if (!a->quick && !show_speeds(c, &r, e)) return false;
    show_kernels(c);
    return true;
}

static const ses_usage_example examples[] = {
    { "sesame doctor", "show and measure, in about a second" },
    { "sesame doctor --isa avx2 --threads 1", "measure one core without AVX-512" },
    { "sesame doctor --json --quick", "JSON without measurements" },
    { "mpirun -n 4 sesame doctor --mpi", "the ranks of a distributed run, from all machines" },
    { 0 },
};

const ses_command ses_command_doctor = {
    .name = "doctor",
    .usage = "",
    .summary = "show hardware, features, peak speed",
    .description =
        "Shows the processor and its features, the instruction set and threads in use, memory, "
        "optional libraries, what GPUs need (CUDA module, driver), GPUs, and the kernels implemented for "
        "each instruction set.\n\n"
        "Measures multiply-adds in registers (the upper bound of any matrix product), products of AMX tiles "
        "and memory read bandwidth, on one thread and on all.\n\n"
        "With --mpi, started by mpirun, srun or torchrun, shows one table of all ranks: host, processor, "
        "instruction "
        "set, threads, GPU, libraries and memory. Differences that training refuses are marked. Measures the "
        "latency and bandwidth of the links, for GPU memory with --device cuda.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .run = run,
};
