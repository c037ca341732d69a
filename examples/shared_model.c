/* Two tasks on one NLI model, in two threads: shared_model MODEL_DIR FILE LABELS. Lines of FILE get the
 * model's labels, and the best of LABELS ("sea,land"). A line that fails is reported; the others continue. */
#include "sesame/sesame.h"

#include <pthread.h>
#include <stdio.h>

typedef struct job {
    ses_pipeline *pipeline;
    const char *task, *file;
    ses_err error;
} job;

static bool print_result(void *ctx, const ses_result *r, ses_err *e)
{
    const job *j = ctx;
    (void)e;
    printf("%s line %d: %s %.3f\n", j->task, (int)r->item->number, r->row[0].label.p, r->row[0].score);
    return true;
}

static bool print_error(void *ctx, const ses_item *item, const ses_err *why, ses_err *e)
{
    const job *j = ctx;
    (void)e;
    fprintf(stderr, "%s line %d: %s\n", j->task, (int)item->number, why->msg);
    return true; /* keep going */
}

static void *run(void *ctx)
{
    job *j = ctx;
    char line[4096];
    ses_item item = { 0 };
    FILE *f = fopen(j->file, "r");
    if (!f) perror(j->file);
    ses_pipeline_set_callback(j->pipeline, print_result, j);
    ses_pipeline_set_error_callback(j->pipeline, print_error, j);
    ses_pipeline_set_max_seq_len(j->pipeline, 128);
    bool ok = f != NULL;
    while (ok && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\r\n")] = 0;
        item = (ses_item){ .text = ses_str(line), .number = item.number + 1 };
        ok = ses_pipeline_feed(j->pipeline, &item, &j->error);
    }
    if (ok) ses_pipeline_flush(j->pipeline, &j->error);
    if (f) fclose(f);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 4) return fprintf(stderr, "usage: %s MODEL_DIR FILE LABELS\n", argv[0]), 2;
    ses_err e = { 0 };
    ses_setting labels[] = { { "candidate_labels", argv[3] }, { 0 } };
    job jobs[] = { { .task = "text-classification" }, { .task = "zero-shot-classification" } };
    pthread_t thread[2];
    int started = 0;
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_model *model = dev ? ses_model_open(argv[1], dev, NULL, &e) : NULL; /* the weights, once */
    for (int i = 0; model && i < 2; i++) {                                  /* a pipeline for each thread */
        ses_pipeline_options o = { .model = model, .settings = i ? labels : NULL };
        jobs[i].file = argv[2];
        jobs[i].pipeline = ses_pipeline_open_with(jobs[i].task, NULL, NULL, &o, &e);
        if (!jobs[i].pipeline || pthread_create(&thread[i], NULL, run, &jobs[i])) break;
        started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(thread[i], NULL);
        ses_pipeline_stats s = ses_pipeline_get_stats(jobs[i].pipeline);
        printf("%s: %d lines, %d failed, %d truncated, %d tokens\n", jobs[i].task, (int)s.items,
               (int)s.failed, (int)s.truncated, (int)s.tokens_read);
        if (jobs[i].error.code) e = jobs[i].error;
    }
    if (e.code) fprintf(stderr, "%s\n", e.msg);
    for (int i = 0; i < 2; i++) ses_pipeline_free(jobs[i].pipeline);
    ses_model_free(model);
    ses_device_free(dev);
    return started == 2 && !e.code ? 0 : 1;
}
