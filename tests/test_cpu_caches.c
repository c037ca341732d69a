/* Cache sizes from a folder like Linux' /sys, and from this machine. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "check.h"
#include "kernel/cpu_caches.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/sesame-caches-XXXXXX";

static void put(int index, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/index%d", folder, index);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/index%d/%s", folder, index, name);
    FILE *f = fopen(path, "w");
    if (CHECK(f)) fprintf(f, "%s\n", text), fclose(f);
}

static void put_cache(int index, const char *level, const char *type, const char *size)
{
    put(index, "level", level), put(index, "type", type), put(index, "size", size);
}

static void remove_all(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
}

int main(void)
{
    if (!CHECK(mkdtemp(folder))) return check_report();
    ses_cpu_caches c = ses_cpu_caches_read(folder);
    CHECK(!c.l1 && !c.l2 && !c.l3);
    put_cache(0, "1", "Data", "48K");
    put_cache(1, "1", "Instruction", "32K");
    put_cache(2, "2", "Unified", "2048K");
    put_cache(3, "3", "Unified", "300M");
    c = ses_cpu_caches_read(folder);
    CHECK(c.l1 == 48 << 10 && c.l2 == 2 << 20 && c.l3 == (size_t)300 << 20);
    put_cache(0, "1", "Data", "49152");
    put_cache(2, "2", "Unified", "99999999999999999999M"); /* out of range */
    put_cache(3, "3", "Unified", "many");
    c = ses_cpu_caches_read(folder);
    CHECK(c.l1 == 48 << 10 && !c.l2 && !c.l3);
    put(2, "size", "");
    c = ses_cpu_caches_read(folder);
    CHECK(c.l1 == 48 << 10 && !c.l2);
    remove_all();
    c = ses_cpu_caches_detect();
    CHECK(c.l1 < 16 << 20 && c.l2 < (size_t)1 << 30);
    return check_report();
}
