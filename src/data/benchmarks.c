/* The table of named benchmarks. */
#include "base/str.h"
#include "base/suggest.h"
#include "examples_impl.h"

#include <string.h>

static const ses_benchmark table[] = {
#include "benchmarks.def"
};

const ses_benchmark *ses_benchmark_at(size_t i) { return i < SES_LEN(table) ? &table[i] : NULL; }

const ses_benchmark *ses_benchmark_find(const char *name)
{
    for (size_t i = 0; i < SES_LEN(table); i++)
        if (!strcmp(table[i].name, name)) return &table[i];
    return NULL;
}

static const char *name_at(const void *ctx, size_t i)
{
    (void)ctx;
    return i < SES_LEN(table) ? table[i].name : NULL;
}

const ses_benchmark *ses_benchmark_require(const char *name, ses_err *e)
{
    const ses_benchmark *b = ses_benchmark_find(name);
    if (!b) ses_fail_unknown(e, SES_EARG, "benchmark", (ses_string){ name, strlen(name) }, name_at, NULL);
    return b;
}
