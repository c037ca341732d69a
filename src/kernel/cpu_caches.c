#define _DEFAULT_SOURCE /* sysconf of caches */
#include "cpu_caches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first word of a small file; "" if it cannot be read. */
static void read_word(const char *folder, int index, const char *name, char word[32])
{
    char path[512];
    word[0] = 0;
    if (snprintf(path, sizeof path, "%s/index%d/%s", folder, index, name) >= (int)sizeof path) return;
    FILE *f = fopen(path, "re");
    if (!f) return;
    if (fscanf(f, "%31s", word) != 1) word[0] = 0;
    fclose(f);
}

/* "48K", "2M" or a number of bytes. 0: not a size. */
static size_t parse_size(const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    unsigned long unit = *end == 'K' ? 1ul << 10 : *end == 'M' ? 1ul << 20 : *end ? 0 : 1;
    return n <= (1ul << 40) / (unit ? unit : 1) ? n * unit : 0;
}

ses_cpu_caches ses_cpu_caches_read(const char *folder)
{
    enum { MAX_INDEX = 8 };
    ses_cpu_caches c = { 0 };
    for (int i = 0; i < MAX_INDEX; i++) {
        char level[32], type[32], size[32];
        read_word(folder, i, "level", level);
        read_word(folder, i, "type", type);
        read_word(folder, i, "size", size);
        if (strcmp(type, "Data") && strcmp(type, "Unified")) continue;
        if (!strcmp(level, "1")) c.l1 = parse_size(size);
        if (!strcmp(level, "2")) c.l2 = parse_size(size);
        if (!strcmp(level, "3")) c.l3 = parse_size(size);
    }
    return c;
}

static size_t ask(int name)
{
    long n = sysconf(name);
    return n > 0 ? (size_t)n : 0;
}

ses_cpu_caches ses_cpu_caches_detect(void)
{
    ses_cpu_caches c = { 0 };
#ifdef _SC_LEVEL1_DCACHE_SIZE
    c = (ses_cpu_caches){ ask(_SC_LEVEL1_DCACHE_SIZE), ask(_SC_LEVEL2_CACHE_SIZE),
                          ask(_SC_LEVEL3_CACHE_SIZE) };
#endif
    if (c.l1 && c.l2) return c;
    ses_cpu_caches files = ses_cpu_caches_read("/sys/devices/system/cpu/cpu0/cache");
    if (!c.l1) c.l1 = files.l1;
    if (!c.l2) c.l2 = files.l2;
    if (!c.l3) c.l3 = files.l3;
    return c;
}
