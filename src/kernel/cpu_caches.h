/* Cache sizes of the processor. */
#ifndef SES_KERNEL_CPU_CACHES_H
#define SES_KERNEL_CPU_CACHES_H

#include "sesame/base.h"

/* Data caches of one core in bytes, shared ones included; 0: unknown. */
typedef struct ses_cpu_caches {
    size_t l1, l2, l3;
} ses_cpu_caches;

/* Asks the system: sysconf, and Linux' files in /sys for what it does not know. */
ses_cpu_caches ses_cpu_caches_detect(void);
/* The same from a folder with the layout of /sys/devices/system/cpu/cpu0/cache. */
ses_cpu_caches ses_cpu_caches_read(const char *folder);

#endif
