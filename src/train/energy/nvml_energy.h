/* The energy counter of an NVIDIA GPU, read through NVML, which is loaded at run time and released again: no
 * state is kept. Safe in all threads. */
#ifndef SES_TRAIN_NVML_ENERGY_H
#define SES_TRAIN_NVML_ENERGY_H

#include "sesame/base.h"

/* Joules used by the GPU since its driver was loaded, by all processes. library: NULL for libnvidia-ml.so.1;
 * bus_id: "0000:65:00.0". False: *joules is unchanged and the reason is in why. */
bool ses_nvml_energy(const char *library, const char *bus_id, double *joules, char *why, size_t size);
/* Watts that the GPU takes now. False: unknown, and *watts is unchanged. */
bool ses_nvml_power(const char *library, const char *bus_id, double *watts);

#endif
