/* Brown clusters by plain sums: every merge is one of least loss; and files of clusters. test_clusters.sh
 * compares paths with wcluster's. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include "base/file.h"
#include "vectors/cluster/brown.h"

#include <math.h>
#include <unistd.h>

enum { TOKENS = 3000, WORDS = 40, CLUSTERS = 7 };

static int text[TOKENS];
static double count2[WORDS][WORDS], count1[WORDS];
static int cluster_of[WORDS]; /* -1: not yet clustered */

/* Mutual information of the current clusters, with words `a` and `b`'s clusters merged; in bits. */
static double information(int a, int b)
{
    static double p2[WORDS][WORDS], p1[WORDS];
    double sum = 0;
    memset(p2, 0, sizeof p2), memset(p1, 0, sizeof p1);
    for (int i = 0; i < WORDS; i++) {
        int ci = cluster_of[i] == b ? a : cluster_of[i];
        if (ci < 0) continue;
        p1[ci] += count1[i] / TOKENS;
        for (int j = 0; j < WORDS; j++)
            if (cluster_of[j] >= 0)
                p2[ci][cluster_of[j] == b ? a : cluster_of[j]] += count2[i][j] / (TOKENS - 1);
    }
    for (int i = 0; i < WORDS; i++)
        for (int j = 0; j < WORDS; j++)
            if (p2[i][j] > 0) sum += p2[i][j] * log2(p2[i][j] / (p1[i] * p1[j]));
    return sum;
}

/* A cluster's number is that of one of its words: of a tree node, the first. */
static int first_word(const ses_brown *b, int32_t node)
{
    while (node >= b->n) node = b->merge[node - b->n].left;
    return cluster_of[node];
}

static void replay(const ses_brown_words *w, const ses_brown *b)
{
    char name[16];
    int id_of[WORDS];
    for (int r = 0; r < WORDS; r++) /* the number of the word of each rank */
        for (int i = 0; i < WORDS; i++) {
            snprintf(name, sizeof name, "w%d", i);
            if (!strcmp(w->vocab.word[w->id[r]].text, name)) id_of[r] = i;
        }
    static double p[WORDS][WORDS], q[WORDS];
    for (int i = 0; i < WORDS; i++)
        for (int j = 0; j < WORDS; j++) p[i][j] = count2[id_of[i]][id_of[j]], q[i] = count1[id_of[i]];
    memcpy(count2, p, sizeof p), memcpy(count1, q, sizeof q);
    for (int i = 0; i < WORDS; i++) cluster_of[i] = i < CLUSTERS ? i : -1;
    double before = 0;
    for (int m = 0; m < WORDS - 1; m++) {
        if (m < WORDS - CLUSTERS) cluster_of[CLUSTERS + m] = CLUSTERS + m;
        if (m == WORDS - CLUSTERS) before = information(-2, -2);
        int a = first_word(b, b->merge[m].left), c = first_word(b, b->merge[m].right);
        double got = information(a, c), best = -1;
        for (int i = 0; i < WORDS; i++)
            for (int j = 0; j < i; j++)
                if (cluster_of[i] == i && cluster_of[j] == j) best = fmax(best, information(i, j));
        CHECK_MSG(a != c && got >= best - 1e-12, "merge %d: %.15g, the best %.15g", m, got, best);
        for (int i = 0; i < WORDS; i++)
            if (cluster_of[i] == c) cluster_of[i] = a;
    }
    CHECK(fabs(before - b->information) < 1e-12);
}

static void every_merge_is_best(const char *path)
{
    ses_buf out = { 0 };
    ses_err e = { 0 };
    uint32_t x = 1;
    for (int i = 0; i < TOKENS; i++) {
        x = x * 1664525u + 1013904223u;
        int y = (int)(x >> 24) % 8 * ((int)(x >> 16) % 6);
        text[i] = (y + (i ? text[i - 1] * 3 % 5 : 0)) % WORDS;
        if (i < WORDS) text[i] = i; /* every word occurs */
        count1[text[i]]++;
        if (i) count2[text[i - 1]][text[i]]++;
        ses_buf_appendf(&out, "w%d%c", text[i], i % 10 ? ' ' : '\n');
    }
    CHECK(ses_file_write(path, out.data, out.len, true, &e));
    ses_brown_words w = { 0 };
    ses_brown b = { 0 };
    ses_brown_options o = { .min_count = 1 };
    ses_thread_pool *pool = ses_thread_pool_new(3, &e);
    CHECK_MSG(ses_brown_words_read(&w, path, &o, &e) && ses_brown_fit(&b, &w, CLUSTERS, &o, pool, &e), "%s",
              e.msg);
    CHECK(w.n == WORDS && w.tokens == TOKENS && b.clusters == CLUSTERS);
    if (w.n == WORDS) replay(&w, &b);
    ses_brown_free(&b);
    ses_brown_words_free(&w);
    ses_thread_pool_free(pool);
    ses_buf_free(&out);
}

int main(void)
{
    char path[] = "/tmp/sesame-brown-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    every_merge_is_best(path);
    unlink(path);
    return check_report();
}
