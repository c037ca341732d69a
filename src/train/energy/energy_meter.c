/* Energy meter: RAPL counters, or an estimate from CPU time and memory. */
#define _DEFAULT_SOURCE
#include "energy_meter.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "nvml_energy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const double MEMORY_WATTS = 0.3725; /* per GiB, as Green Algorithms */
static const double MIN_INTERVAL = 10;     /* seconds between two readings of the counters */
static const double POWER_INTERVAL = 5;    /* seconds between two samples of a GPU's power */

double ses_cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

uint64_t ses_peak_memory(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (uint64_t)u.ru_maxrss * 1024;
}

/* ---- counters ---- */

/* The first line of a file in a folder; false with errno. */
static bool read_line(const char *dir, const char *name, char *out, size_t size)
{
    char *path = ses_path_join(dir, name, NULL);
    FILE *f = path ? fopen(path, "r") : NULL;
    errno = f ? 0 : errno;
    bool ok = f && fgets(out, (int)size, f) != NULL;
    if (f && !ok && !errno) errno = EINVAL;
    if (f) fclose(f);
    ses_free(path);
    if (ok) out[strcspn(out, "\n")] = 0;
    return ok;
}

static bool read_count(const char *dir, const char *name, uint64_t *out)
{
    char line[64], *end;
    if (!read_line(dir, name, line, sizeof line)) return false;
    errno = 0;
    *out = strtoull(line, &end, 10);
    if (end == line || *end || *line == '-') errno = EINVAL;
    return errno == 0;
}

typedef struct search {
    ses_energy_meter *m;
    const char *root;
} search;

/* Adds a zone. "intel-rapl:0" is a processor, "intel-rapl:0:1" a part of it. The processor's counter includes
 * its parts except the memory. "psys" counts everything a second time and is skipped. */
static bool add_zone(void *ctx, const char *entry)
{
    const search *s = ctx;
    ses_energy_meter *m = s->m;
    char name[32];
    uint64_t last, range;
    const char *colon = strchr(entry, ':');
    if (strncmp(entry, "intel-rapl", 10) || !colon || m->n == SES_LEN(m->zone)) return true;
    bool part = strchr(colon + 1, ':') != NULL;
    char *dir = ses_path_join(s->root, entry, NULL);
    bool wanted = dir && strlen(dir) < sizeof m->zone[0].path && read_line(dir, "name", name, sizeof name) &&
                  (part ? !strcmp(name, "dram") : !strncmp(name, "package", 7));
    if (wanted && !*m->unreadable) {
        if (!read_count(dir, "energy_uj", &last) || !read_count(dir, "max_energy_range_uj", &range))
            snprintf(m->unreadable, sizeof m->unreadable, "RAPL counters cannot be read: %s",
                     strerror(errno));
        else {
            snprintf(m->zone[m->n].path, sizeof m->zone[0].path, "%s", dir);
            m->zone[m->n].last = last;
            m->zone[m->n++].range = range;
            size_t used = strlen(m->names);
            snprintf(m->names + used, sizeof m->names - used, "%s%s", used ? ", " : "", name);
        }
    }
    ses_free(dir);
    return true;
}

static bool uses_gpu(const ses_energy_meter *m) { return m->sources.gpu && *m->sources.gpu; }

static bool read_gpu(ses_energy_meter *m, double *joules)
{
    return ses_nvml_energy(m->sources.nvml, m->sources.gpu, joules, m->gpu_unreadable,
                           sizeof m->gpu_unreadable);
}

void ses_energy_meter_start(ses_energy_meter *m, const ses_energy_sources *sources)
{
    *m = (ses_energy_meter){ .sources = *sources };
    search s = { m, sources->rapl ? sources->rapl : "/sys/class/powercap" };
    ses_dir_each(s.root, add_zone, &s, NULL);
    if (!m->n && !*m->unreadable)
        snprintf(m->unreadable, sizeof m->unreadable, "the machine has no RAPL counters");
    if (*m->unreadable) m->n = 0; /* a subset of the counters would be misleading */
    if (uses_gpu(m) && !read_gpu(m, &m->gpu_start)) {
        m->gpu_read = ses_seconds();
        ses_nvml_power(sources->nvml, sources->gpu, &m->watts);
    }
    m->wall = m->read = ses_seconds();
    m->cpu = ses_cpu_seconds();
}

static void read_all(ses_energy_meter *m)
{
    for (size_t i = 0; i < m->n; i++) {
        uint64_t now, last = m->zone[i].last, range = m->zone[i].range;
        if (!read_count(m->zone[i].path, "energy_uj", &now)) {
            snprintf(m->unreadable, sizeof m->unreadable, "RAPL counters could no longer be read");
            m->n = 0;
            return;
        }
        uint64_t used = now >= last ? now - last : now + (range > last ? range - last : 0);
        m->joules += 1e-6 * (double)used;
        m->zone[i].last = now;
    }
}

/* Adds the energy since the last sample of the GPU's power: the mean of both times the interval. */
static bool sample_power(ses_energy_meter *m)
{
    double now = ses_seconds(), watts;
    if (!ses_nvml_power(m->sources.nvml, m->sources.gpu, &watts)) return false;
    m->gpu_joules += (m->watts + watts) / 2 * (now - m->gpu_read);
    m->watts = watts, m->gpu_read = now;
    return true;
}

void ses_energy_meter_update(ses_energy_meter *m)
{
    double now = ses_seconds();
    if (m->watts > 0 && now - m->gpu_read >= POWER_INTERVAL) sample_power(m);
    if (!m->n || now - m->read < MIN_INTERVAL) return;
    m->read = now;
    read_all(m);
}

static void add_gpu(ses_energy_meter *m, ses_energy *x)
{
    double now = 0;
    size_t used = strlen(x->source);
    bool sampled = m->watts > 0 && sample_power(m),
         ok = sampled || (!*m->gpu_unreadable && read_gpu(m, &now));
    if (sampled) now = m->gpu_joules, m->gpu_start = 0;
    if (ok && now < m->gpu_start) {
        ok = false;
        snprintf(m->gpu_unreadable, sizeof m->gpu_unreadable, "its counter was reset");
    }
    x->gpu = ok ? SES_GPU_MEASURED : SES_GPU_NOT_INCLUDED;
    if (ok) {
        x->gpu_joules = now - m->gpu_start;
        x->joules += x->gpu_joules;
        snprintf(x->source + used, sizeof x->source - used, "; NVML: GPU %s%s", m->sources.gpu,
                 sampled ? ", samples of its power" : "");
    } else {
        snprintf(x->source + used, sizeof x->source - used, "; the GPU is not included: %s",
                 m->gpu_unreadable);
    }
}

ses_energy ses_energy_meter_stop(ses_energy_meter *m, double core_watts)
{
    ses_energy x = { 0 };
    read_all(m);
    x.measured = m->n > 0;
    if (x.measured) {
        x.joules = m->joules;
        snprintf(x.source, sizeof x.source, "RAPL: %s", m->names);
    } else {
        double gib = (double)ses_peak_memory() / (1 << 30);
        x.joules = (ses_cpu_seconds() - m->cpu) * core_watts + (ses_seconds() - m->wall) * gib * MEMORY_WATTS;
        snprintf(x.source, sizeof x.source, "estimate; %s", m->unreadable);
    }
    if (uses_gpu(m)) add_gpu(m, &x);
    return x;
}

/* ---- results ---- */

void ses_energy_put_results(const ses_energy *x, const ses_energy_args *a, double seconds, ses_json_writer *w)
{
    double price = ses_energy_price(x, a, seconds);
    ses_json_member_real(w, "train_energy_kwh", ses_energy_kwh(x));
    ses_json_member_real(w, "train_energy_wh", x->joules / 3600);
    if (x->gpu == SES_GPU_MEASURED) {
        ses_json_member_real(w, "train_energy_cpu_kwh", (x->joules - x->gpu_joules) / 3.6e6);
        ses_json_member_real(w, "train_energy_gpu_kwh", x->gpu_joules / 3.6e6);
    }
    ses_json_member_real(w, "train_co2_kg", ses_energy_co2(x, a));
    ses_json_member_string(w, "train_energy_source", x->source);
    if (!isnan(price)) ses_json_member_real(w, "train_price", price);
}

/* ---- texts ---- */

double ses_energy_kwh(const ses_energy *x) { return x->joules / 3.6e6; }

double ses_energy_co2(const ses_energy *x, const ses_energy_args *a)
{
    return ses_energy_kwh(x) * a->co2_per_kwh / 1000;
}

double ses_energy_price(const ses_energy *x, const ses_energy_args *a, double seconds)
{
    if (!(a->price_per_hour > 0 || a->price_per_kwh > 0)) return NAN;
    return seconds / 3600 * a->price_per_hour + ses_energy_kwh(x) * a->price_per_kwh;
}

/* Three digits, in a fitting unit. */
static void put(char *out, size_t size, double x, const char *small, const char *plain, const char *large)
{
    if (x < 1)
        snprintf(out, size, "%.3g %s", x * 1000, small);
    else if (x < 1000)
        snprintf(out, size, "%.3g %s", x, plain);
    else
        snprintf(out, size, "%.4g %s", x / 1000, large);
}

const char *ses_watt_hours_text(char buf[SES_WATT_HOURS_TEXT], double joules)
{
    put(buf, SES_WATT_HOURS_TEXT, joules / 3600, "mWh", "Wh", "kWh");
    return buf;
}

const char *ses_energy_text(char buf[SES_ENERGY_TEXT], const ses_energy *x, const ses_energy_args *a)
{
    char energy[SES_WATT_HOURS_TEXT], cpu[SES_WATT_HOURS_TEXT], gpu[SES_WATT_HOURS_TEXT], gas[48],
        how[96] = "", parts[80] = "";
    ses_watt_hours_text(energy, x->joules);
    if (x->gpu == SES_GPU_MEASURED)
        snprintf(parts, sizeof parts, " (CPU %s, GPU %s)",
                 ses_watt_hours_text(cpu, x->joules - x->gpu_joules),
                 ses_watt_hours_text(gpu, x->gpu_joules));
    put(gas, sizeof gas, 1000 * ses_energy_co2(x, a), "mg", "g", "kg");
    if (!x->measured) snprintf(how, sizeof how, ", %g W per core", a->core_watts);
    snprintf(buf, SES_ENERGY_TEXT, "%s%s, %s CO2 (%s%s, %g g per kWh)", energy, parts, gas, x->source, how,
             a->co2_per_kwh);
    return buf;
}
