/* Classify the lines of a file: classify_file MODEL_DIR FILE. Prints label, probability and line. */
#include "sesame/sesame.h"

#include <stdio.h>

static bool print(void *ctx, const ses_result *r, ses_err *e)
{
    (void)ctx, (void)e;
    printf("%-12s %.3f  %s\n", r->row[0].label.p, r->row[0].score, r->item->text.p);
    return true;
}

static bool run(ses_pipeline *p, FILE *f, ses_err *e)
{
    char line[4096];
    ses_pipeline_set_callback(p, print, NULL);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\r\n")] = 0;
        if (!ses_pipeline_feed(p, &(ses_item){ .text = ses_str(line) }, e)) return false;
    }
    return ses_pipeline_flush(p, e);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s MODEL_DIR FILE\n", argv[0]);
        return 2;
    }
    ses_err e = { 0 };
    FILE *f = fopen(argv[2], "r");
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_pipeline *p = dev ? ses_pipeline_open("text-classification", argv[1], dev, NULL, &e) : NULL;
    bool ok = f && p && run(p, f, &e);
    if (!f) perror(argv[2]);
    if (!ok && e.code) fprintf(stderr, "%s\n", e.msg);
    ses_pipeline_free(p);
    ses_device_free(dev);
    if (f) fclose(f);
    return ok ? 0 : 1;
}
