/* Examples of the benchmarks with formats of their own: the first byte selects one, the rest is its file. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "fuzz_folder.h"
#include "sesame/examples.h"

static const char *const names[] = { "multirc", "winogender", "axg", "record", "wic", "superglue-copa" };
static char dir[40], path[64];

static void clean(void)
{
    unlink(path);
    rmdir(dir);
}

static void check(const ses_examples *d)
{
    for (size_t i = 0; i < ses_examples_count(d); i++) {
        const ses_labeled_example *x = ses_examples_at(d, i);
        MUST(x->text_a.p && x->text_a.p[x->text_a.n] == 0 && x->group >= 0);
        MUST(x->label == SES_IGNORE_INDEX || (size_t)x->label < ses_examples_label_count(d));
        for (size_t k = 0; k < x->n_parts; k++) MUST(x->parts[k].p[x->parts[k].n] == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!*dir) {
        fuzz_folder(dir);
        MUST(!atexit(clean));
    }
    if (!n) return 0;
    const ses_benchmark *b = ses_benchmark_find(names[data[0] % (sizeof names / sizeof *names)]);
    MUST(b);
    snprintf(path, sizeof path, "%s/x.%s", dir, b->spec.format == SES_DATA_WINOGENDER ? "tsv" : "jsonl");
    fuzz_file(path, data + 1, n - 1);
    for (int labels = 0; labels < 2; labels++) {
        ses_data_spec spec = b->spec;
        ses_err e = { 0 };
        spec.no_labels = !labels;
        ses_examples *d = ses_examples_open(path, &spec, NULL, &e);
        MUST(!d == (e.code != SES_OK));
        if (d) check(d);
        ses_examples_free(d);
    }
    unlink(path);
    return 0;
}
