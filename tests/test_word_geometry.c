/* Measures of `sesame geometry` against numpy in double precision; readers of texts and word vectors. */
#include "analysis/geometry/nearest.h"
#include "analysis/text_file.h"
#include "base/alloc.h"
#include "base/file.h"
#include "check.h"
#include "math/cka.h"
#include "math/similarity.h"

#include <math.h>
#include <unistd.h>

enum { N = 9, W = 5, V = 3 };

static float x[N * W], y[N * V];

static bool near(double a, double b) { return fabs(a - b) < 1e-6; }

static void check_measures(void)
{
    static const size_t row[] = { 0, 3, 4, 8 };
    double scratch[2 * W];
    CHECK(near(ses_cosine_of(x, x + W, W), -0.7464062581183744));
    CHECK(near(ses_mean_pair_cosine(x, row, 4, W, scratch), 0.0178804181092805));
    CHECK(near(ses_mean_cosine_to_mean(x, N, W, scratch), 0.2959278188139971));
    CHECK(near(ses_first_direction_share(x, row, 4, W, scratch), 0.5885060134510797));
    float zero[2 * W] = { 0 };
    CHECK(ses_cosine_of(zero, x, W) == 0);
    CHECK(ses_mean_pair_cosine(zero, NULL, 2, W, scratch) == 0);
    CHECK(ses_first_direction_share(zero, NULL, 2, W, scratch) == 0);
    float opposite[] = { 1, 2, -1, -2 }; /* rows that cancel out */
    CHECK(near(ses_first_direction_share(opposite, NULL, 2, 2, scratch), 1));
}

static void check_cka(void)
{
    ses_err e = { 0 };
    const ses_cka_input in[] = { { x, W }, { y, V } };
    double first[4], out[4];
    for (int threads = 1; threads <= 3; threads++) {
        ses_thread_pool *pool = ses_thread_pool_new(threads, &e);
        CHECK(ses_cka_compute(in, 2, N, false, pool, out, &e));
        CHECK(near(out[0], 1) && near(out[3], 1) && near(out[1], 0.4002949663636597) && out[1] == out[2]);
        if (threads == 1) memcpy(first, out, sizeof first);
        CHECK(!memcmp(first, out, sizeof first));
        CHECK(ses_cka_compute(in, 2, N, true, pool, out, &e) && near(out[1], 0.10144385283225599));
        CHECK(!ses_cka_compute(in, 2, 3, true, pool, out, &e) && strstr(e.msg, "at least 4"));
        e = (ses_err){ 0 };
        ses_thread_pool_free(pool);
    }
}

static void check_nearest(void)
{
    ses_near near_rows[N];
    CHECK(ses_nearest_rows(x, N, W, 2, near_rows, N) == N - 1);
    for (size_t i = 0; i < N - 1; i++) {
        CHECK(near_rows[i].index != 2);
        CHECK(!i || near_rows[i - 1].cosine >= near_rows[i].cosine);
        CHECK(near_rows[i].cosine == ses_cosine_of(x + near_rows[i].index * W, x + 2 * W, W));
    }
    size_t best = near_rows[0].index;
    CHECK(ses_nearest_rows(x, N, W, 2, near_rows, 1) == 1 && near_rows[0].index == best);
}

/* ---- readers ---- */

static bool write_text(char *path, const char *suffix, const char *text)
{
    ses_err e = { 0 };
    snprintf(path, 64, "/tmp/test_word_geometry.%d%s", (int)getpid(), suffix);
    return CHECK(ses_file_write(path, text, strlen(text), true, &e));
}

static void check_static(void)
{
    char path[64];
    ses_err e = { 0 };
    ses_near_word n[3];
    size_t found = 9;
    write_text(path, ".vectors", "the 1 0\nof 1 0.1\nThe 0 1\nx\xff 0.5 1\n");
    CHECK(ses_nearest_static(path, (ses_string){ "the", 3 }, n, 3, &found, &e) && found == 3);
    CHECK_STR(n[0].word, "of");
    CHECK_STR(n[1].word, "x\xef\xbf\xbd");
    CHECK(near(n[0].cosine, 0.9950371902099892));
    for (size_t i = 0; i < found; i++) ses_free(n[i].word);
    CHECK(ses_nearest_static(path, (ses_string){ "OF", 2 }, n, 1, &found, &e) && found == 1); /* lower case */
    CHECK_STR(n[0].word, "the");
    ses_free(n[0].word);
    CHECK(ses_nearest_static(path, (ses_string){ "no", 2 }, n, 1, &found, &e) && found == 0);
    unlink(path);
}

static void check_text_files(void)
{
    char path[64];
    ses_err e = { 0 };
    ses_text_file f = { 0 };
    write_text(path, ".txt", "one  two\n\n \nthree\n");
    CHECK(ses_text_file_open(&f, path, NULL, &e) && f.n == 2 && f.line[1] == 4 && !f.is_words);
    ses_string s = ses_text_file_span(&f, 0, 0, (ses_offset){ 3, 8 });
    CHECK(s.n == 3 && !memcmp(s.p, "two", 3));
    ses_text_file_free(&f);
    unlink(path);
    write_text(path, ".tsv", "id\tsentence\tlabel\n1\tgood day\tpos\n2\tbad day\tneg\n");
    CHECK(ses_text_file_open(&f, path, &(ses_text_file_options){ .label_column = "label", .max_texts = 1 },
                             &e));
    CHECK(f.n == 1 && f.is_cut && !strcmp(f.text[0].text.p, "good day") && !strcmp(f.label[0].p, "pos"));
    ses_text_file_free(&f);
    CHECK(!ses_text_file_open(&f, path, &(ses_text_file_options){ .text_column = "body" }, &e));
    ses_text_file_free(&f);
    unlink(path);
    e = (ses_err){ 0 };
    write_text(path, ".conllu",
               "1\tWe\twe\tPRON\tPRP\t_\t2\tnsubj\t_\t_\n2\tgo\tgo\tVERB\tVBP\t_\t0\troot\t_\t_\n\n");
    CHECK(ses_text_file_open(&f, path, &(ses_text_file_options){ .label_column = "deprel" }, &e));
    CHECK(f.n == 1 && f.is_words && f.text[0].n_words == 2 && !strcmp(f.tag[0][1].p, "root"));
    ses_text_file_free(&f);
    CHECK(!ses_text_file_open(&f, path, &(ses_text_file_options){ .label_column = "x" }, &e));
    ses_text_file_free(&f);
    unlink(path);
    e = (ses_err){ 0 };
    write_text(path, ".txt", "\n");
    CHECK(!ses_text_file_open(&f, path, NULL, &e) && strstr(e.msg, "no text"));
    ses_text_file_free(&f);
    unlink(path);
}

int main(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < W; j++) x[i * W + j] = (float)((i * 7 + j * 13 + i * j) % 17 - 8) / 4 + (j == 0);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < V; j++) y[i * V + j] = (float)((i * 5 + j * 3 + i * i * j) % 11 - 5) / 3;
    check_measures();
    check_cka();
    check_nearest();
    check_static();
    check_text_files();
    return check_report();
}
