/* Tag a text and print its entities: tag_entities MODEL_DIR TEXT... */
#include "sesame/sesame.h"

#include <stdio.h>

static bool tag(ses_pipeline *p, const char *text, ses_err *e)
{
    const ses_result *r = ses_pipeline_run(p, &(ses_item){ .text = ses_str(text) }, e);
    for (size_t i = 0; r && i < r->n; i++) {
        const ses_result_row *x = &r->row[i];
        printf("%-8s %.3f  [%u, %u)  %.*s\n", x->label.p, x->score, x->byte_span.begin, x->byte_span.end,
               (int)(x->byte_span.end - x->byte_span.begin), text + x->byte_span.begin);
    }
    return r != NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s MODEL_DIR TEXT...\n", argv[0]);
        return 2;
    }
    ses_err e = { 0 };
    ses_setting set[] = { { "aggregation_strategy", "simple" }, { 0 } };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_pipeline *p = dev ? ses_pipeline_open("token-classification", argv[1], dev, set, &e) : NULL;
    bool ok = p != NULL;
    for (int i = 2; ok && i < argc; i++) ok = tag(p, argv[i], &e);
    if (!ok) fprintf(stderr, "%s\n", e.msg);
    ses_pipeline_free(p);
    ses_device_free(dev);
    return ok ? 0 : 1;
}
