/* A simulated libnvidia-ml.so.1. The file named by SESAME_FAKE_NVML holds the bus id of the only GPU, its
 * millijoules, the error code of the counter, and its milliwatts; without them its power is unknown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fake {
    char bus_id[32];
    unsigned long long millijoules;
    int code;
    unsigned milliwatts;
} fake;

static int read_state(fake *f)
{
    const char *path = getenv("SESAME_FAKE_NVML");
    FILE *in = path ? fopen(path, "r") : NULL;
    int n = in ? fscanf(in, "%31s %llu %d %u", f->bus_id, &f->millijoules, &f->code, &f->milliwatts) : 0;
    if (in) fclose(in);
    return n >= 3 ? n : 0;
}

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
const char *nvmlErrorString(int code);

int nvmlInit_v2(void)
{
    fake f;
    return read_state(&f) ? 0 : 9;
}

int nvmlShutdown(void) { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device)
{
    fake f;
    *device = read_state(&f) && !strcmp(bus_id, f.bus_id) ? device : NULL;
    return *device ? 0 : 6;
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules)
{
    fake f = { .code = 2 };
    if (!device || !read_state(&f)) return 2;
    *millijoules = f.millijoules;
    return f.code;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    fake f;
    if (!device || read_state(&f) < 4) return 3;
    *milliwatts = f.milliwatts;
    return 0;
}

const char *nvmlErrorString(int code)
{
    return code == 3   ? "Not Supported"
           : code == 6 ? "Not Found"
           : code == 9 ? "Driver Not Loaded"
                       : "Unknown Error";
}
