/* Embed the lines of a file and find the lines nearest to a query: embed_search MODEL_DIR FILE QUERY */
#define _POSIX_C_SOURCE 200809L
#include "sesame/sesame.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 10000, BEST = 5 };

typedef struct line {
    char *text;
    double score;
} line;

typedef struct search { /* vectors have length 1, so a product is a cosine */
    float *query;
    line list[MOST];
    size_t n, answered;
} search;

static bool score(void *ctx, const ses_result *r, ses_err *e)
{
    search *s = ctx;
    if (!s->query) { /* the first text is the query itself */
        size_t size = (size_t)r->vector_size * sizeof *s->query;
        s->query = malloc(size);
        if (!s->query) return ses_fail(e, SES_ENOMEM, "out of memory");
        memcpy(s->query, r->vectors, size);
        return true;
    }
    double sum = 0;
    for (int64_t i = 0; i < r->vector_size; i++) sum += (double)s->query[i] * (double)r->vectors[i];
    s->list[s->answered++].score = sum;
    return true;
}

static bool run(ses_pipeline *p, search *s, FILE *f, const char *query, ses_err *e)
{
    char text[4096];
    ses_pipeline_set_callback(p, score, s);
    bool ok = ses_pipeline_feed(p, &(ses_item){ .text = ses_str(query) }, e);
    while (ok && s->n < MOST && fgets(text, sizeof text, f)) {
        text[strcspn(text, "\r\n")] = 0;
        ok = ses_pipeline_feed(p, &(ses_item){ .text = ses_str(text) }, e);
        s->list[s->n++].text = strdup(text);
    }
    return ok && ses_pipeline_flush(p, e);
}

static int by_score(const void *a, const void *b)
{
    double x = ((const line *)a)->score, y = ((const line *)b)->score;
    return (x < y) - (x > y);
}

int main(int argc, char **argv)
{
    static search s;
    ses_err e = { 0 };
    ses_setting set[] = { { "normalize", "true" }, { 0 } };
    FILE *f = argc == 4 ? fopen(argv[2], "r") : NULL;
    if (!f) return fprintf(stderr, "usage: embed_search MODEL_DIR FILE QUERY\n"), 2;
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_pipeline *p = dev ? ses_pipeline_open("embed", argv[1], dev, set, &e) : NULL;
    bool ok = p && run(p, &s, f, argv[3], &e);
    if (!ok) fprintf(stderr, "%s\n", e.msg);
    qsort(s.list, s.answered, sizeof *s.list, by_score);
    for (size_t i = 0; ok && i < s.answered && i < BEST; i++)
        printf("%.4f  %s\n", s.list[i].score, s.list[i].text);
    for (size_t i = 0; i < s.n; i++) free(s.list[i].text);
    free(s.query);
    ses_pipeline_free(p);
    ses_device_free(dev);
    fclose(f);
    return ok ? 0 : 1;
}
