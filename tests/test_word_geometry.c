/* Measures of `sesame geometry` against numpy in double precision; readers of texts and word vectors. */
#include "analysis/geometry/nearest.h"
#include "analysis/math/cka.h"
#include "analysis/math/similarity.h"
#include "analysis/text_file.h"
#include "base/alloc.h"
#include "base/file.h"
#include "check.h"
#include "io/word_vectors.h"

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

static void check_vectors(const char *text, const char *message)
{
    ses_err e = { 0 };
    ses_word_vectors v = { 0 };
    bool ok = true;
    ses_word_vectors_from_text(&v, text, strlen(text));
    while ((ok = ses_word_vectors_next(&v, &e)) && !v.end) {}
    if (message)
        CHECK_MSG(!ok && strstr(e.msg, message), "%s: %s", text, e.msg);
    else
        CHECK_MSG(ok, "%s: %s", text, e.msg);
    ses_word_vectors_free(&v);
}

static void check_word_vectors(void)
{
    ses_err e = { 0 };
    ses_word_vectors v = { 0 };
    static const char text[] = "3 2\nthe 1 -2e-1\nat name@domain.com 3 4 \n\xc3\xa9t\xc3\xa9 .5 0\n";
    ses_word_vectors_from_text(&v, text, strlen(text));
    CHECK(ses_word_vectors_next(&v, &e) && v.width == 2 && ses_equal(v.word.data, v.word.len, "the") &&
          v.x[1] == -0.2f);
    CHECK(ses_word_vectors_next(&v, &e) && ses_equal(v.word.data, v.word.len, "at name@domain.com"));
    CHECK(!ses_word_vectors_next(&v, &e)); /* .5 is not a number of JSON, nor of the reader */
    ses_word_vectors_free(&v);
    check_vectors("a 1 2\nb 3 4\n", NULL);
    check_vectors("", NULL);
    check_vectors("a 1 2\nb 3\n", "line 2: 1 numbers, expected 2");
    check_vectors("a 1 nan\n", "line 1: \"nan\" is not a finite number");
    check_vectors("a 1 1e39\n", "not a finite number");
    check_vectors("word\n", "line 1: expected a word");
}

static bool write_text(char *path, const char *suffix, const char *text)
{
    ses_err e = { 0 };
    snprintf(path, 64, "/tmp/test_word_geometry.%d%s", (int)getpid(), suffix);
    return CHECK(ses_file_write(path, text, strlen(text), true, &e));
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
    check_word_vectors();
    check_text_files();
    return check_report();
}
