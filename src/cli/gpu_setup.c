/* Detects the CUDA module, the NVIDIA driver and GPUs. The driver is asked directly, so that a missing module
 * does not hide a GPU. */
#include "gpu_setup.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Three functions of the driver, as declared in cuda.h. */
typedef int (*driver_call)(int *out);
typedef int (*driver_init)(unsigned flags);

static void *find(void *library, const char *name) { return library ? dlsym(library, name) : NULL; }

static void ask_driver(ses_gpu_setup *s)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *version = find(library, "cuDriverGetVersion"), *init = find(library, "cuInit"),
         *count = find(library, "cuDeviceGetCount");
    driver_call get_version = NULL, get_count = NULL;
    driver_init initialize = NULL;
    memcpy(&get_version, &version, sizeof version); /* POSIX: data to function pointers */
    memcpy(&get_count, &count, sizeof count);
    memcpy(&initialize, &init, sizeof init);
    if (!get_version || !initialize || !get_count || get_version(&s->driver)) s->driver = 0;
    if (!s->driver || initialize(0) || get_count(&s->gpus)) s->gpus = 0;
    /* stays open: drivers do not support being unloaded */
}

void ses_gpu_setup_detect(ses_gpu_setup *s)
{
    memset(s, 0, sizeof *s);
    const ses_cuda_module *m = ses_cuda_module_open(s->module, &s->module_error);
    ask_driver(s);
    ses_gpu gpu;
    if (!m || !m->describe(0, &gpu)) return;
    ses_device *d = ses_device_open("cuda", &(ses_device_options){ .threads = 1 }, &s->device_error);
    ses_device_free(d);
}

bool ses_gpu_ready(const ses_gpu_setup *s)
{
    return !s->module_error.code && !s->device_error.code && s->gpus > 0;
}

void ses_gpu_module_text(const ses_gpu_setup *s, char *out, size_t size)
{
    if (!s->module_error.code)
        snprintf(out, size, "%s", s->module);
    else if (*s->module)
        snprintf(out, size, "%s", s->module_error.msg);
    else
        snprintf(out, size, "not found: install the package sesame-cuda, or build it with `make cuda`");
}

void ses_gpu_driver_text(const ses_gpu_setup *s, char *out, size_t size)
{
    if (!s->driver)
        snprintf(out, size, "not found (libcuda.so.1): install NVIDIA's driver for the GPU");
    else
        snprintf(out, size, "supports CUDA %d.%d, %d GPU%s", s->driver / 1000, s->driver % 1000 / 10, s->gpus,
                 s->gpus == 1 ? "" : "s");
}
