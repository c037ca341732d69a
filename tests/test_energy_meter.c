/* Tests of the energy meter: counters that wrap around, unreadable and missing counters. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "base/dir.h"
#include "base/energy_meter.h"
#include "base/file.h"
#include "check.h"

#include <math.h>
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
    ses_energy_meter_start(&m, root);
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
    ses_energy_meter_start(&m, "/nowhere");
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
    ses_energy_meter_start(&m, "/nowhere");
    m.wall -= 3600; /* only memory */
    x = ses_energy_meter_stop(&m, 0);
    double want = 3600 * 0.3725 * (double)ses_peak_memory() / (1 << 30);
    CHECK(x.joules > 0.9 * want && x.joules < 1.1 * want);
}

static void test_unreadable(void)
{
    ses_energy_meter m;
    put("intel-rapl:0", "energy_uj", "many\n");
    ses_energy_meter_start(&m, root);
    CHECK(m.n == 0);
    ses_energy x = ses_energy_meter_stop(&m, 12);
    CHECK(!x.measured && strstr(x.source, "estimate; RAPL counters cannot be read: "));
    put("intel-rapl:0", "energy_uj", "7\n");
    ses_energy_meter_start(&m, root);
    CHECK(m.n == 2);
    put("intel-rapl:0", "energy_uj", "-1\n");
    x = ses_energy_meter_stop(&m, 12);
    CHECK(!x.measured && strstr(x.source, "no longer"));
}

static bool clear(void *ctx, const char *name)
{
    char *path = ses_path_join(root, name, NULL);
    (void)ctx;
    ses_dir_remove(path, NULL);
    ses_free(path);
    return true;
}

int main(void)
{
    if (!mkdtemp(root)) return 1;
    test_counters();
    test_estimate();
    test_unreadable();
    ses_dir_each(root, clear, NULL, NULL);
    rmdir(root);
    return check_report();
}
