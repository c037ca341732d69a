/* Interface of a fuzz target: one function, which may abort (MUST) but not fail. Seeds: corpus/fuzz_X/. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A property every input must have. */
#define MUST(cond) ((cond) ? (void)0 : fuzz_broken(#cond, __FILE__, __LINE__))

static inline void fuzz_broken(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: broken: %s\n", file, line, what);
    abort();
}

#endif
