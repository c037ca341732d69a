/* Energy used by a computation, and the CO2 it corresponds to.
 *
 * CPU: measured if the kernel exposes RAPL counters of the processors and their memory (/sys/class/powercap).
 * They count the whole processor, other processes included. Otherwise estimated as in Lannelongue, Grealey
 * and Inouye 2021 ("Green Algorithms"):
 *     energy = CPU time * watts per core + time * memory in GiB * 0.3725 W
 * without cooling and other overhead of a computing center. GPU: measured by NVML (base/nvml_energy.h): its
 * counter, or samples of its power; else not included, with the reason in `source`. CO2 = energy * grams per
 * kWh. Values only: nothing to free. A meter belongs to one thread. */
#ifndef SES_TRAIN_ENERGY_METER_H
#define SES_TRAIN_ENERGY_METER_H

#include "sesame/json.h"

typedef struct ses_energy_args {
    double core_watts;                    /* power of a working core, for the estimate */
    double co2_per_kwh;                   /* grams */
    double price_per_hour, price_per_kwh; /* in any currency; both 0: no price */
} ses_energy_args;

typedef enum { SES_GPU_UNUSED, SES_GPU_MEASURED, SES_GPU_NOT_INCLUDED } ses_gpu_metering;

typedef struct ses_energy {
    double joules;     /* CPU and GPU */
    double gpu_joules; /* part of the GPU */
    bool measured;     /* the CPU's part; false: estimated */
    ses_gpu_metering gpu;
    char source[256]; /* counters read, or the reason for an estimate */
} ses_energy;

/* Counters; zero: the usual ones of a computation without a GPU. Strings of a running meter are borrowed. */
typedef struct ses_energy_sources {
    const char *rapl; /* folder of the RAPL counters; NULL: /sys/class/powercap */
    const char *gpu;  /* PCI bus id of the GPU in use; NULL or "": none */
    const char *nvml; /* NVML library; NULL: libnvidia-ml.so.1 */
} ses_energy_sources;

/* A running measurement. */
typedef struct ses_energy_meter {
    struct {
        char path[256];
        uint64_t last, range; /* microjoules; the counter wraps to 0 after range */
    } zone[16];
    size_t n;
    double joules, wall, cpu, read;   /* wall, cpu: clocks at the start; read: time of the last reading */
    char names[128], unreadable[128]; /* unreadable: why no counter can be read; "": they can */
    ses_energy_sources sources;
    double gpu_start; /* joules of the GPU's counter at the start */
    char gpu_unreadable[96];
    /* a GPU without a counter: last sample of its power, taken at gpu_read; 0: none */
    double watts, gpu_read, gpu_joules;
} ses_energy_meter;

void ses_energy_meter_start(ses_energy_meter *m, const ses_energy_sources *s);
/* Call it at least every few minutes, before a counter wraps twice. */
void ses_energy_meter_update(ses_energy_meter *m);
ses_energy ses_energy_meter_stop(ses_energy_meter *m, double core_watts);

double ses_cpu_seconds(void);   /* CPU time of all threads of this process */
uint64_t ses_peak_memory(void); /* bytes */

enum { SES_ENERGY_TEXT = 560, SES_WATT_HOURS_TEXT = 24 };
/* "12.3 Wh, 5.9 g CO2 (estimate: ...)"; a measured GPU: "12 Wh (CPU 2 Wh, GPU 10 Wh), ...". Returns buf. */
const char *ses_energy_text(char buf[SES_ENERGY_TEXT], const ses_energy *x, const ses_energy_args *a);
/* "12.3 Wh", in a fitting unit. Returns buf. */
const char *ses_watt_hours_text(char buf[SES_WATT_HOURS_TEXT], double joules);
double ses_energy_kwh(const ses_energy *x);
double ses_energy_co2(const ses_energy *x, const ses_energy_args *a); /* kg */
/* Price of a computation that took `seconds`; NaN: no price is set. */
double ses_energy_price(const ses_energy *x, const ses_energy_args *a, double seconds);
/* Writes members train_energy_kwh, train_energy_wh, train_co2_kg, train_energy_source, of a measured GPU
 * train_energy_cpu_kwh and train_energy_gpu_kwh, and train_price if a price is set. */
void ses_energy_put_results(const ses_energy *x, const ses_energy_args *a, double seconds,
                            ses_json_writer *w);

#endif
