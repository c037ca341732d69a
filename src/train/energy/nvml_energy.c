/* Energy counter of a GPU by NVML. */
#include "nvml_energy.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The functions of NVML that are used; nvmlReturn_t is an enum, 0 is success. */
typedef struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*find)(const char *bus_id, void **device);
    int (*energy)(void *device, unsigned long long *millijoules);
    int (*power)(void *device, unsigned *milliwatts);
    const char *(*error_text)(int code);
} nvml;

/* ISO C has no conversion from void * to a function pointer; POSIX guarantees the representation. */
static bool load(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* power: the function that reads the power is needed, not the counter. */
static bool load_all(void *library, nvml *f, bool power)
{
    return load(library, "nvmlInit_v2", &f->init) && load(library, "nvmlShutdown", &f->shutdown) &&
           load(library, "nvmlDeviceGetHandleByPciBusId_v2", &f->find) &&
           load(library, "nvmlErrorString", &f->error_text) &&
           (power ? load(library, "nvmlDeviceGetPowerUsage", &f->power)
                  : load(library, "nvmlDeviceGetTotalEnergyConsumption", &f->energy));
}

static bool read_value(const nvml *f, const char *bus_id, double *value, char *why, size_t size)
{
    void *device = NULL;
    unsigned long long millijoules = 0;
    unsigned milliwatts = 0;
    int code = f->init();
    bool is_open = code == 0;
    if (is_open) code = f->find(bus_id, &device);
    if (is_open && !code) code = f->power ? f->power(device, &milliwatts) : f->energy(device, &millijoules);
    if (code) snprintf(why, size, "NVML: %s", f->error_text(code));
    if (is_open) f->shutdown();
    if (!code) *value = 1e-3 * (f->power ? (double)milliwatts : (double)millijoules);
    return !code;
}

static bool read_gpu(const char *library, const char *bus_id, bool power, double *value, char *why,
                     size_t size)
{
    nvml f = { .init = NULL };
    void *handle = dlopen(library ? library : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(why, size, "libnvidia-ml.so.1 is missing");
        return false;
    }
    bool ok = load_all(handle, &f, power);
    if (!ok) snprintf(why, size, "libnvidia-ml.so.1 lacks a function");
    ok = ok && read_value(&f, bus_id, value, why, size);
    dlclose(handle);
    return ok;
}

bool ses_nvml_energy(const char *library, const char *bus_id, double *joules, char *why, size_t size)
{
    return read_gpu(library, bus_id, false, joules, why, size);
}

bool ses_nvml_power(const char *library, const char *bus_id, double *watts)
{
    char why[64];
    return read_gpu(library, bus_id, true, watts, why, sizeof why);
}
