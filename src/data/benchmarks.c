/* The table of named benchmarks. */
#include "base/str.h"
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

const ses_benchmark *ses_benchmark_require(const char *name, ses_err *e)
{
    const ses_benchmark *b = ses_benchmark_find(name);
    if (b) return b;
    ses_buf list = { 0 };
    for (size_t i = 0; i < SES_LEN(table); i++) ses_buf_appendf(&list, "%s%s", i ? ", " : "", table[i].name);
    if (ses_buf_ok(&list, e))
        ses_fail(e, SES_EARG, "unknown benchmark \"%s\"; available: %s", ses_quoted_of(name, strlen(name)).s,
                 list.data);
    ses_buf_free(&list);
    return NULL;
}
