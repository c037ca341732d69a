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
    const char *(*error_text)(int code);
} nvml;

/* ISO C has no conversion from void * to a function pointer; POSIX guarantees the representation. */
static bool load(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool load_all(void *library, nvml *f)
{
    return load(library, "nvmlInit_v2", &f->init) && load(library, "nvmlShutdown", &f->shutdown) &&
           load(library, "nvmlDeviceGetHandleByPciBusId_v2", &f->find) &&
           load(library, "nvmlDeviceGetTotalEnergyConsumption", &f->energy) &&
           load(library, "nvmlErrorString", &f->error_text);
}

static bool read_counter(const nvml *f, const char *bus_id, double *joules, char *why, size_t size)
{
    void *device = NULL;
    unsigned long long millijoules = 0;
    int code = f->init();
    bool is_open = code == 0;
    if (is_open) code = f->find(bus_id, &device);
    if (is_open && !code) code = f->energy(device, &millijoules);
    if (code) snprintf(why, size, "NVML: %s", f->error_text(code));
    if (is_open) f->shutdown();
    if (!code) *joules = 1e-3 * (double)millijoules;
    return !code;
}

bool ses_nvml_energy(const char *library, const char *bus_id, double *joules, char *why, size_t size)
{
    nvml f;
    void *handle = dlopen(library ? library : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(why, size, "libnvidia-ml.so.1 is missing");
        return false;
    }
    bool ok = load_all(handle, &f);
    if (!ok) snprintf(why, size, "libnvidia-ml.so.1 lacks a function");
    ok = ok && read_counter(&f, bus_id, joules, why, size);
    dlclose(handle);
    return ok;
}
