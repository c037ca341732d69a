/* Tests of the energy meter: counters that wrap around, unreadable and missing counters, a GPU. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "check.h"
#include "train/energy/energy_meter.h"
#include "train/energy/nvml_energy.h"

#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[] = "/tmp/sesame-energy-XXXXXX";

static void put(const char *zone, const char *name, const char *text)
{
    char *dir = ses_path_join(root, zone, NULL), *path = ses_path_join(dir, name, NULL);
    CHECK(ses_dir_make(dir, NULL) && ses_file_write(path, text, strlen(text), true, NULL));
    ses_free(dir);
    ses_free(path);
}

static void zone(const char *zone, const char *name, const char *energy, const char *range)
{
    put(zone, "name", name);
    put(zone, "energy_uj", energy);
    put(zone, "max_energy_range_uj", range);
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b) + 1e-12; }

static void test_counters(void)
{
    ses_energy_meter m;
    zone("intel-rapl:0", "package-0\n", "1000000\n", "262143328850\n");
    zone("intel-rapl:0:0", "core\n", "5\n", "262143328850\n"); /* counted with the package */
    zone("intel-rapl:0:1", "dram\n", "9000000\n", "10000000\n");
    zone("intel-rapl:1", "psys\n", "5\n", "262143328850\n");
    put("dtpm", "name", "other\n");
    ses_energy_meter_start(&m, &(ses_energy_sources){ .rapl = root });
    CHECK(m.n == 2);
    put("intel-rapl:0", "energy_uj", "4500000\n");
    put("intel-rapl:0:0", "energy_uj", "999999999\n");
    put("intel-rapl:0:1", "energy_uj", "500000\n"); /* wrapped around: 1 J to the end, then 0.5 J */
    m.read -= 3600;
    ses_energy_meter_update(&m);
    CHECK(near(m.joules, 5));
    put("intel-rapl:0:1", "energy_uj", "400000\n"); /* wrapped again */
    ses_energy_meter_update(&m);                    /* too soon: not read */
    CHECK(near(m.joules, 5));
    ses_energy x = ses_energy_meter_stop(&m, 12);
    CHECK(x.measured && near(x.joules, 5 + 9.9));
    CHECK(strstr(x.source, "RAPL: ") && strstr(x.source, "package-0") && strstr(x.source, "dram") &&
          !strstr(x.source, "psys"));
}

static void test_estimate(void)
{
    ses_energy_meter m;
    ses_energy_args a = { .core_watts = 10, .co2_per_kwh = 500 };
    char text[SES_ENERGY_TEXT];
    ses_energy_meter_start(&m, &(ses_energy_sources){ .rapl = "/nowhere" });
    double cpu = ses_cpu_seconds();
    m.cpu = cpu - 3600; /* simulates one core hour in no time */
    ses_energy x = ses_energy_meter_stop(&m, a.core_watts);
    CHECK(!x.measured && x.joules >= 36000 && x.joules < 36100);
    x.joules = 36000;
    CHECK(near(ses_energy_kwh(&x), 0.01) && near(ses_energy_co2(&x, &a), 0.005));
    CHECK_STR(ses_energy_text(text, &x, &a),
              "10 Wh, 5 g CO2 (estimate; the machine has no RAPL counters, 10 W per core, 500 g per kWh)");
    x.joules = 3.6e7;
    CHECK(strstr(ses_energy_text(text, &x, &a), "10 kWh, 5 kg CO2"));
    x.joules = 3.6;
    CHECK(strstr(ses_energy_text(text, &x, &a), "1 mWh, 0.5 mg CO2"));
    ses_energy_meter_start(&m, &(ses_energy_sources){ .rapl = "/nowhere" });
    m.wall -= 3600; /* only memory */
    x = ses_energy_meter_stop(&m, 0);
    double want = 3600 * 0.3725 * (double)ses_peak_memory() / (1 << 30);
    CHECK(x.joules > 0.9 * want && x.joules < 1.1 * want);
}

static void test_unreadable(void)
{
    ses_energy_meter m;
    put("intel-rapl:0", "energy_uj", "many\n");
    ses_energy_meter_start(&m, &(ses_energy_sources){ .rapl = root });
    CHECK(m.n == 0);
    ses_energy x = ses_energy_meter_stop(&m, 12);
    CHECK(!x.measured && strstr(x.source, "estimate; RAPL counters cannot be read: "));
    put("intel-rapl:0", "energy_uj", "7\n");
    ses_energy_meter_start(&m, &(ses_energy_sources){ .rapl = root });
    CHECK(m.n == 2);
    put("intel-rapl:0", "energy_uj", "-1\n");
    x = ses_energy_meter_stop(&m, 12);
    CHECK(!x.measured && strstr(x.source, "no longer"));
}

/* ---- a GPU, with a simulated NVML library ---- */

static void set_gpu(const char *state)
{
    char *path = ses_path_join(root, "gpu", NULL);
    CHECK(ses_file_write(path, state, strlen(state), true, NULL));
    setenv("SESAME_FAKE_NVML", path, 1);
    ses_free(path);
}

static const ses_energy_sources gpu = { .rapl = "/nowhere", .gpu = "0000:65:00.0", .nvml = FAKE_NVML };

static void test_gpu(void)
{
    ses_energy_meter m;
    ses_energy_args a = { .core_watts = 10, .co2_per_kwh = 500 }, priced = a;
    char text[SES_ENERGY_TEXT];
    set_gpu("0000:65:00.0 5000 0");
    ses_energy_meter_start(&m, &gpu);
    set_gpu("0000:65:00.0 36005000 0");
    ses_energy x = ses_energy_meter_stop(&m, 0);
    CHECK(x.gpu == SES_GPU_MEASURED && near(x.gpu_joules, 36000));
    CHECK(x.joules >= 36000 && x.joules < 36001 && !x.measured);
    CHECK_STR(x.source, "estimate; the machine has no RAPL counters; NVML: GPU 0000:65:00.0");
    x.joules = 39600;
    CHECK_STR(ses_energy_text(text, &x, &a),
              "11 Wh (CPU 1 Wh, GPU 10 Wh), 5.5 g CO2 (estimate; the machine has no RAPL counters; NVML: GPU "
              "0000:65:00.0, 10 W per core, 500 g per kWh)");
    ses_json_writer *w = ses_json_writer_new(0, NULL);
    ses_json_begin_object(w);
    ses_energy_put_results(&x, &a, 1800, w);
    ses_json_end_object(w);
    const char *json = ses_json_writer_text(w, NULL, NULL);
    CHECK(!strstr(json, "train_price") && isnan(ses_energy_price(&x, &a, 1800)));
    priced.price_per_hour = 3, priced.price_per_kwh = 100;
    CHECK(near(ses_energy_price(&x, &priced, 1800), 1.5 + 1.1));
    CHECK(strstr(json,
                 "\"train_energy_kwh\": 0.011, \"train_energy_wh\": 11.0, \"train_energy_cpu_kwh\": 0.001, "
                 "\"train_energy_gpu_kwh\": 0.01, \"train_co2_kg\": 0.0055, \"train_energy_source\": \""));
    ses_json_writer_free(w);
}

/* A GPU without a counter: the mean of two samples of its power, 100 W and 300 W, times the time. */
static void test_gpu_power(void)
{
    ses_energy_meter m;
    set_gpu("0000:65:00.0 0 3 100000");
    ses_energy_meter_start(&m, &gpu);
    CHECK(near(m.watts, 100));
    m.gpu_read -= 20; /* 20 seconds ago */
    set_gpu("0000:65:00.0 0 3 300000");
    ses_energy_meter_update(&m);
    CHECK(fabs(m.gpu_joules - 4000) < 200 && near(m.watts, 300));
    m.gpu_joules = 4000, m.gpu_read -= 10;
    ses_energy x = ses_energy_meter_stop(&m, 0);
    CHECK(x.gpu == SES_GPU_MEASURED && fabs(x.gpu_joules - 7000) < 300);
    CHECK(strstr(x.source, "; NVML: GPU 0000:65:00.0, samples of its power"));
}

/* The reason is stated, and only the CPU is counted. */
static void check_missing(const ses_energy_sources *s, const char *start, const char *stop,
                          const char *reason)
{
    ses_energy_meter m;
    ses_energy_args a = { .core_watts = 10, .co2_per_kwh = 500 };
    char want[160], text[SES_ENERGY_TEXT];
    snprintf(want, sizeof want, "; the GPU is not included: %s", reason);
    set_gpu(start);
    ses_energy_meter_start(&m, s);
    set_gpu(stop);
    ses_energy x = ses_energy_meter_stop(&m, 0);
    CHECK(x.gpu == SES_GPU_NOT_INCLUDED && x.gpu_joules == 0 && x.joules < 1);
    if (!strstr(x.source, want)) fprintf(stderr, "%s lacks %s\n", x.source, want);
    CHECK(strstr(x.source, want) && strstr(ses_energy_text(text, &x, &a), want));
}

static void test_gpu_missing(void)
{
    ses_energy_sources no_library = gpu, other = gpu, none = gpu;
    ses_energy_meter m;
    no_library.nvml = "/nowhere/libnvidia-ml.so.1";
    other.gpu = "0000:66:00.0";
    none.gpu = "";
    check_missing(&no_library, "0000:65:00.0 1 0", "0000:65:00.0 2 0", "libnvidia-ml.so.1 is missing");
    check_missing(&other, "0000:65:00.0 1 0", "0000:65:00.0 2 0", "NVML: Not Found");
    check_missing(&gpu, "0000:65:00.0 1 3", "0000:65:00.0 2 3", "NVML: Not Supported");
    check_missing(&gpu, "0000:65:00.0 1 0", "0000:65:00.0 2 3", "NVML: Not Supported");
    check_missing(&gpu, "", "", "NVML: Driver Not Loaded");
    check_missing(&gpu, "0000:65:00.0 9 0", "0000:65:00.0 2 0", "its counter was reset");
    ses_energy_meter_start(&m, &none);
    ses_energy x = ses_energy_meter_stop(&m, 0);
    CHECK(x.gpu == SES_GPU_UNUSED && !strstr(x.source, "GPU"));
}

/* The dynamic linker finds the library by its usual name: this program runs again with its folder. */
static void test_gpu_by_name(char *program)
{
    static char folder[] = FAKE_NVML;
    *strrchr(folder, '/') = 0;
    setenv("LD_LIBRARY_PATH", folder, 1);
    pid_t child = fork();
    if (!child) {
        execl(program, program, "by-name", (char *)NULL);
        _exit(127);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static int run_by_name(void)
{
    double joules = 0;
    char why[96] = "";
    if (ses_nvml_energy(NULL, "0000:65:00.0", &joules, why, sizeof why) && near(joules, 7)) return 0;
    fprintf(stderr, "by name: %s\n", why);
    return 1;
}

static bool clear(void *ctx, const char *name)
{
    char *path = ses_path_join(root, name, NULL);
    (void)ctx;
    ses_path_is_dir(path) ? (void)ses_dir_remove(path, NULL) : (void)unlink(path);
    ses_free(path);
    return true;
}

int main(int argc, char **argv)
{
    if (argc > 1) return run_by_name();
    if (!mkdtemp(root)) return 1;
    test_counters();
    test_estimate();
    test_unreadable();
    test_gpu();
    test_gpu_power();
    test_gpu_missing();
    set_gpu("0000:65:00.0 7000 0");
    test_gpu_by_name(argv[0]);
    ses_dir_each(root, clear, NULL, NULL);
    rmdir(root);
    return check_report();
}
