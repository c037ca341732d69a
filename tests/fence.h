/* Memory that ends at a page no one may touch, and begins after one: a kernel that reads or writes a byte too
 * many dies on the spot, whatever the instructions it uses. */
#ifndef TESTS_FENCE_H
#define TESTS_FENCE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { FENCE_PAGE = 4096 };

typedef struct fence {
    void *map;
    size_t bytes;
} fence;

/* n floats; *f is for fence_free. */
static inline float *fence_floats(fence *f, size_t n)
{
    size_t room = (n * sizeof(float) + FENCE_PAGE - 1) / FENCE_PAGE * FENCE_PAGE;
    f->bytes = room + 2 * FENCE_PAGE;
    f->map = mmap(NULL, f->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *base = f->map;
    if (f->map == MAP_FAILED || mprotect(base, FENCE_PAGE, PROT_NONE) ||
        mprotect(base + FENCE_PAGE + room, FENCE_PAGE, PROT_NONE)) {
        perror("mmap");
        exit(1);
    }
    return (float *)(void *)(base + FENCE_PAGE + room - n * sizeof(float));
}

static inline void fence_free(fence *f) { munmap(f->map, f->bytes); }

#endif
