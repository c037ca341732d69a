/* What a computation took in electricity, and the carbon dioxide that stands for.
 *
 * Measured where the kernel tells: the RAPL counters of processors and their memory in /sys/class/powercap.
 * They are of the whole processor, with whatever else runs on it. Elsewhere estimated and called so, as
 * Lannelongue, Grealey and Inouye 2021 ("Green Algorithms") do:
 *     energy = time the cores worked * watts a core + time * memory in GiB * 0.3725 W
 * without what cooling and the rest of a computing center take. CO2 = energy * grams a kWh. */
#ifndef SES_CLI_ENERGY_H
#define SES_CLI_ENERGY_H

#include "cli/ui/term.h"
#include "option_parser.h"

typedef struct ses_energy_args {
    double core_watts, grams; /* grams of CO2 a kWh */
} ses_energy_args;

#define SES_OPT_ENERGY(struct_, field)                                                                       \
    { .name = "core-watts",                                                                                  \
      .type = SES_OPT_REAL,                                                                                  \
      .offset = offsetof(struct_, field.core_watts),                                                         \
      .def = "12",                                                                                           \
      .value = "W",                                                                                          \
      .min = 0,                                                                                              \
      .max = 1000,                                                                                           \
      .help = "energy: what a working core takes, where the machine does not measure" },                     \
    {                                                                                                        \
        .name = "co2-per-kwh", .type = SES_OPT_REAL, .offset = offsetof(struct_, field.grams), .def = "475", \
        .value = "G", .min = 0, .max = 10000,                                                                \
        .help = "energy: grams of CO2 that a kWh stands for; 475 is the world's mean"                        \
    }

typedef struct ses_energy {
    double joules;
    bool measured;
    char source[160]; /* what was measured, or why nothing was */
} ses_energy;

/* Running: counters as they were last read. */
typedef struct ses_energy_meter {
    struct {
        char path[256];
        uint64_t last, range; /* microjoules; the counter goes from range to 0 */
    } zone[16];
    size_t n;
    double joules, wall, cpu, read; /* wall, cpu: clocks at the start; read: the last time */
    char names[128], why[128];      /* why: nothing can be read */
} ses_energy_meter;

/* root: where the counters are; NULL: /sys/class/powercap. */
void ses_energy_meter_start(ses_energy_meter *m, const char *root);
void ses_energy_meter_update(
    ses_energy_meter *m); /* every few minutes at least, before a counter has gone round twice */
ses_energy ses_energy_meter_stop(ses_energy_meter *m, double core_watts);

double ses_cpu_seconds(void);   /* of all threads of this process */
uint64_t ses_peak_memory(void); /* bytes */

enum { SES_ENERGY_TEXT = 400 };
/* "12.3 Wh, 5.9 g CO2 (estimate: ...)". Returns buf. */
const char *ses_energy_text(char buf[SES_ENERGY_TEXT], const ses_energy *x, const ses_energy_args *a);
const char *ses_watt_hours_text(char buf[SES_NUMBER_TEXT],
                                double joules); /* "12.3 Wh", in the unit that fits */
double ses_energy_kwh(const ses_energy *x);
double ses_energy_co2(const ses_energy *x, const ses_energy_args *a); /* kg */

#endif
