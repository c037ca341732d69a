/* Our side of tokenizers.py: encodes the lines of a file again and again, one pass for each line on stdin,
 * and prints the time. cc -O2 -Iinclude bench/peers/tokenizers.c build/libsesame.a -lm -lpthread
 *     tokenizers MODEL FILE THREADS special|plain again|once [IDS]
 * once: caches are emptied before each pass. IDS: a file that gets the ids of every line (int32, -1 after
 * each line). Answers: "seconds tokens seconds-of-the-processor". */
#define _POSIX_C_SOURCE 200809L
#include "sesame/tokenizer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct worker {
    ses_encode_ctx *k;
    const char *text;
    size_t n, tokens;
    bool special, ok;
    FILE *ids;
} worker;

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *work(void *arg)
{
    worker *w = arg;
    ses_encode_options o = { .no_special = !w->special };
    w->tokens = 0;
    w->ok = true;
    for (size_t at = 0; at < w->n;) {
        const char *lf = memchr(w->text + at, '\n', w->n - at);
        size_t n = lf ? (size_t)(lf - w->text) - at : w->n - at;
        ses_err e = { 0 };
        if (!ses_encode(w->k, &(ses_input){ .text = { w->text + at, n } }, &o, &e)) {
            fprintf(stderr, "%s\n", e.msg);
            w->ok = false;
            return NULL;
        }
        const ses_encoding *x = ses_encode_ctx_result(w->k);
        w->tokens += x->n;
        if (w->ids) {
            const int32_t end = -1;
            fwrite(x->id, sizeof *x->id, x->n, w->ids);
            fwrite(&end, sizeof end, 1, w->ids);
        }
        at += n + 1;
    }
    return NULL;
}

static char *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *s = malloc((size_t)size + 1);
    *n = s ? fread(s, 1, (size_t)size, f) : 0;
    fclose(f);
    return s;
}

int main(int argc, char **argv)
{
    ses_err e = { 0 };
    size_t n = 0;
    if (argc < 6) return 2;
    ses_tokenizer *t = ses_tokenizer_open(argv[1], &e);
    char *text = read_file(argv[2], &n);
    int threads = (int)strtol(argv[3], NULL, 10);
    worker *w = calloc((size_t)threads, sizeof *w);
    pthread_t *id = calloc((size_t)threads, sizeof *id);
    if (!t || !text || !w || !id || threads < 1) return fprintf(stderr, "%s\n", e.msg), 1;
    for (size_t i = 0, at = 0; i < (size_t)threads; i++) { /* whole lines for each */
        size_t end = i + 1 == (size_t)threads ? n : n / (size_t)threads * (i + 1);
        while (end < n && end && text[end - 1] != '\n') end++;
        w[i] = (worker){
            .k = ses_encode_ctx_new(t, &e), .text = text + at, .n = end - at, .special = argv[4][0] == 's'
        };
        if (!w[i].k) return fprintf(stderr, "%s\n", e.msg), 1;
        at = end;
    }
    if (argc > 6) {
        FILE *ids = fopen(argv[6], "wb");
        for (int i = 0; ids && i < threads; i++) w[i].ids = ids, work(&w[i]), w[i].ids = NULL;
        if (!ids || fclose(ids)) return 1;
    }
    puts("ready");
    fflush(stdout);
    bool once = !strcmp(argv[5], "once");
    for (char line[64]; fgets(line, sizeof line, stdin);) {
        for (int i = 0; once && i < threads; i++) {
            ses_encode_ctx_free(w[i].k);
            w[i].k = ses_encode_ctx_new(t, &e);
            if (!w[i].k) return fprintf(stderr, "%s\n", e.msg), 1;
        }
        double start = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
        size_t tokens = 0;
        for (int i = 1; i < threads; i++)
            if (pthread_create(&id[i], NULL, work, &w[i])) return 1;
        work(&w[0]);
        for (int i = 1; i < threads; i++) pthread_join(id[i], NULL);
        for (int i = 0; i < threads; i++) tokens += w[i].ok ? w[i].tokens : 0;
        double wall = now(CLOCK_MONOTONIC) - start;
        printf("%.6f %zu %.6f\n", wall, tokens, now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
        fflush(stdout);
    }
    return 0;
}
