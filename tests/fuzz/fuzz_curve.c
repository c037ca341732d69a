/* Sizes and result files of `curve`. The first byte selects: sizes, or the file of a run. */
#define _POSIX_C_SOURCE 200809L
#include "cli/curve/curve.h"
#include "fuzz.h"
#include "fuzz_folder.h"

#include <math.h>

enum { MAX = 64 };

static void sizes(const char *text, int64_t limit)
{
    int64_t size[MAX];
    size_t n = 0;
    ses_err e = { 0 };
    if (!ses_curve_sizes_parse(text, limit, size, MAX, &n, &e)) {
        MUST(e.code == SES_EUSAGE);
        return;
    }
    MUST(n && n <= MAX && !e.code);
    for (size_t i = 0; i < n; i++) {
        MUST(size[i] > 0 || (!size[i] && i + 1 == n));
        MUST(!i || !size[i] || size[i] > size[i - 1]);
    }
}

static void run(const uint8_t *data, size_t n)
{
    char dir[40], path[64];
    ses_curve_run x = { 0 };
    fuzz_folder(dir);
    snprintf(path, sizeof path, "%s/cell.json", dir);
    fuzz_file(path, data, n);
    bool ok = ses_curve_run_read(&x, path, NULL);
    MUST(ok || !ses_curve_is_done(&x));
    MUST(!ses_curve_is_done(&x) || (isfinite(x.score) && !*x.base.reason));
    unlink(path);
    MUST(!rmdir(dir));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n) return 0;
    if (data[0] & 1) {
        run(data + 1, n - 1);
        return 0;
    }
    char *text = malloc(n);
    MUST(text);
    memcpy(text, data + 1, n - 1);
    text[n - 1] = 0;
    sizes(text, (int64_t)data[0] * 1000 - 1);
    free(text);
    return 0;
}
