/* dlopen and its kin for the static command: they fail with a message. Those of a static glibc need the shared
 * libraries of the same glibc, and may crash with others. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

void *dlopen(const char *file, int mode)
{
    (void)file, (void)mode;
    return NULL;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
    (void)handle, (void)name;
    return NULL;
}

char *dlerror(void)
{
    static char message[] = "the static build of sesame opens no libraries";
    return message;
}

int dlclose(void *handle)
{
    (void)handle;
    return 0;
}

int dladdr(const void *address, Dl_info *info)
{
    (void)address, (void)info;
    return 0;
}
