/* Reads CPU, memory and limits from /proc and /sys; measures memory bandwidth. */
#define _DEFAULT_SOURCE
#include "machine.h"

#include "base/alloc.h"
#include "base/thread_pool.h"
#include "cli/ui/term.h"
#include "kernel/peak_flops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Copies the value of the first line "KEY: VALUE" or "KEY=VALUE" of the file to out. */
static bool line_after(const char *path, const char *key, char *out, size_t size)
{
    char line[4096];
    FILE *f = fopen(path, "r");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        const char *at = line + strlen(key);
        at += strspn(at, " \t:=");
        snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
        found = true;
    }
    if (f) fclose(f);
    return found;
}

static uint64_t number_after(const char *path, const char *key)
{
    char text[64] = "";
    return line_after(path, key, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}

static void detect_cpu(ses_machine *m)
{
    static const char *const flag_names[] = {
        "sse4_2",   "avx",      "avx2",        "fma",         "f16c",        "avx512f",  "avx512bw",
        "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile",
        "amx_bf16", "amx_int8", "asimd",       "asimddp",     "i8mm",        "bf16",     "sve"
    };
    char flags[4096] = " ";
    if (!line_after("/proc/cpuinfo", "model name", m->cpu, sizeof m->cpu))
        line_after("/proc/cpuinfo", "CPU part", m->cpu, sizeof m->cpu);
    if (!line_after("/proc/cpuinfo", "flags", flags + 1, sizeof flags - 2))
        line_after("/proc/cpuinfo", "Features", flags + 1, sizeof flags - 2);
    strncat(flags, " ", sizeof flags - strlen(flags) - 1);
    size_t n = 0;
    for (size_t i = 0; i < SES_LEN(flag_names); i++) {
        char word[24];
        snprintf(word, sizeof word, " %s ", flag_names[i]);
        if (strstr(flags, word) && n < sizeof m->features)
            n += (size_t)snprintf(m->features + n, sizeof m->features - n, "%s%s", n ? " " : "",
                                  flag_names[i]);
    }
}

/* Control groups, version 2. */
static void detect_limits(ses_machine *m)
{
    char text[64] = "";
    long long quota = 0, period = 0;
    if (line_after("/sys/fs/cgroup/cpu.max", "", text, sizeof text) &&
        sscanf(text, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0)
        m->quota = (double)quota / (double)period;
    m->memory_limit = number_after("/sys/fs/cgroup/memory.max", ""); /* "max" reads as 0 */
}

ses_machine ses_machine_detect(void)
{
    ses_machine m = { 0 };
    detect_cpu(&m);
    detect_limits(&m);
    long cores = sysconf(_SC_NPROCESSORS_ONLN), page = sysconf(_SC_PAGESIZE);
    m.cores = cores > 0 ? (int)cores : 1;
    m.usable = ses_cpu_count();
    m.page = page > 0 ? (uint64_t)page : 0;
    m.memory = 1024 * number_after("/proc/meminfo", "MemTotal");
    m.free = 1024 * number_after("/proc/meminfo", "MemAvailable");
    m.huge = 1024 * number_after("/proc/meminfo", "Hugepagesize");
    char mode[128] = "";
    if (line_after("/sys/kernel/mm/transparent_hugepage/enabled", "", mode, sizeof mode)) {
        const char *open = strchr(mode, '[');
        if (open) snprintf(m.huge_mode, sizeof m.huge_mode, "%.*s", (int)strcspn(open + 1, "]"), open + 1);
    }
    struct utsname u;
    if (uname(&u) == 0)
        snprintf(m.system, sizeof m.system, "%.30s %.40s %.20s", u.sysname, u.release, u.machine);
    return m;
}

enum { CHUNK = 4 << 20 }; /* bytes per loop body */

typedef struct read_ctx {
    const uint64_t *data;
    uint64_t *sum; /* one per chunk; keeps the compiler from dropping the loads */
} read_ctx;

static void read_chunk(void *ctx, int64_t i, void *scratch)
{
    (void)scratch;
    read_ctx *r = ctx;
    const uint64_t *p = r->data + i * (CHUNK / 8);
    uint64_t s[8] = { 0 };
    for (int64_t j = 0; j < CHUNK / 8; j += 8)
        for (int k = 0; k < 8; k++) s[k] += p[j + k];
    for (int k = 0; k < 8; k++) r->sum[i] += s[k];
}

double ses_memory_bandwidth(int threads, double seconds, ses_err *e)
{
    double best = -1;
    int64_t chunks = 32; /* 128 MiB exceed most caches; fewer if memory is short */
    uint64_t available = ses_machine_detect().free / 4 / CHUNK;
    if (available && available < 32) chunks = (int64_t)available;
    ses_thread_pool *pool = ses_thread_pool_new(threads, e);
    uint64_t *data = ses_alloc_aligned((size_t)chunks * CHUNK, e);
    uint64_t *sum = ses_alloc_array((size_t)chunks, sizeof *sum, e);
    if (pool && data && sum) {
        memset(data, 1, (size_t)chunks * CHUNK); /* own pages instead of the shared zero page */
        read_ctx r = { data, sum };
        double start = ses_seconds();
        do {
            double t = ses_seconds();
            ses_parallel_for(pool, chunks, read_chunk, &r);
            double bandwidth = (double)chunks * CHUNK / (ses_seconds() - t);
            if (bandwidth > best) best = bandwidth;
        } while (ses_seconds() - start < seconds);
    }
    ses_free(sum);
    ses_free(data);
    ses_thread_pool_free(pool);
    return best;
}

enum { MAX_THREADS = 1024 };

typedef struct peak_ctx {
    ses_isa isa;
    double seconds;
    double rate[MAX_THREADS]; /* GFLOP/s per thread */
} peak_ctx;

static void measure_peak(void *ctx, int64_t i, void *scratch)
{
    (void)scratch;
    peak_ctx *p = ctx;
    p->rate[i] = ses_peak_gflops(p->isa, p->seconds);
}

double ses_machine_peak_gflops(ses_thread_pool *pool, ses_isa isa, int threads, double seconds)
{
    peak_ctx p = { .isa = isa, .seconds = seconds };
    int n = threads < MAX_THREADS ? threads : MAX_THREADS;
    double sum = 0;
    ses_parallel_for(pool, n, measure_peak, &p);
    for (int i = 0; i < n; i++) sum += p.rate[i];
    return sum;
}
