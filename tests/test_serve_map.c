/* POST /map: maps of vectors by all methods, their neighbours, and bad input. */
#define _GNU_SOURCE
#include "base/alloc.h"
#include "base/base64.h"
#include "serve_fixture.h"

#include <math.h>

static const char *models[] = { "mask=tests/pipelines/bert-mask" };

enum { N = 60, WIDTH = 3 };

/* Two groups far apart. */
static void fill(float *x)
{
    for (int i = 0; i < N; i++)
        for (int k = 0; k < WIDTH; k++)
            x[i * WIDTH + k] = (float)((i % 2 ? 10 : -10) * (k == 0) + 3 + sin(i * 7 + k * 3));
}

static char *body_for(const float *x, bool bytes, const char *more)
{
    ses_buf b = { 0 };
    size_t size = N * WIDTH * sizeof *x;
    ses_buf_puts(&b, "{\"vectors\":");
    if (bytes) {
        ses_buf_put(&b, '"');
        ses_buf_reserve(&b, b.len + ses_base64_encoded_size(size) + 1);
        ses_base64_encode(x, size, b.data + b.len);
        b.len += ses_base64_encoded_size(size);
        ses_buf_puts(&b, "\",\"width\":3");
    }
    for (int i = 0; !bytes && i < N; i++)
        ses_buf_appendf(&b, "%s%.9g,%.9g,%.9g%s", i ? ",[" : "[[", (double)x[i * WIDTH],
                        (double)x[i * WIDTH + 1], (double)x[i * WIDTH + 2], i == N - 1 ? "]]" : "]");
    ses_buf_appendf(&b, "%s}", more);
    ses_buf_put(&b, 0);
    return b.data;
}

static double at(const ses_json *v, int i, int axis)
{
    return number_at(ses_json_at(ses_json_at(member(v, "points"), (size_t)i), (size_t)axis), "");
}

static double distance(const ses_json *v, int i, int j)
{
    return hypot(at(v, i, 0) - at(v, j, 0), at(v, i, 1) - at(v, j, 1));
}

/* PCA keeps the groups apart, and all methods keep the neighbours. */
static void test_methods(serving *s, const float *x)
{
    static const char *const more[] = { "", ",\"method\":\"tsne\",\"perplexity\":9",
                                        ",\"method\":\"umap\",\"neighbors\":10" };
    char first[65536];
    for (size_t k = 0; k < SES_LEN(more); k++) {
        char *body = body_for(x, true, more[k]);
        const ses_json *v = post(s, "/map", body, 200);
        CHECK(ses_json_len(member(v, "points")) == N && ses_json_len(member(v, "nearest")) == N);
        double inside = 0, between = 1e300;
        for (int i = 2; i < N; i++) {
            inside = fmax(inside, distance(v, i, i % 2));
            between = fmin(between, distance(v, i, 1 - i % 2));
        }
        CHECK_MSG(k || inside < between, "%s: %g, %g", more[k], inside, between);
        CHECK(number_at(v, "trustworthiness") > 0.9);
        snprintf(first, sizeof first, "%.*s", (int)s->a.body.n, s->a.body.p);
        post(s, "/map", body, 200);
        CHECK(body_is(s, first)); /* the same bits again */
        ses_free(body);
    }
}

static double cosine(const float *a, const float *b)
{
    double ab = 0, aa = 0, bb = 0;
    for (int k = 0; k < WIDTH; k++)
        ab += (double)a[k] * (double)b[k], aa += (double)a[k] * (double)a[k],
            bb += (double)b[k] * (double)b[k];
    return ab / sqrt(aa * bb);
}

static void test_nearest(serving *s, const float *x)
{
    char *body = body_for(x, false, ",\"nearest\":3");
    const ses_json *v = post(s, "/map", body, 200), *list = member(v, "nearest");
    for (int i = 0; i < N; i++) {
        double best = -2;
        for (int j = 0; j < N; j++)
            if (j != i) best = fmax(best, cosine(x + i * WIDTH, x + j * WIDTH));
        const ses_json *near = ses_json_at(list, (size_t)i);
        int j = (int)number_at(near, "0/index");
        CHECK(ses_json_len(near) == 3 && fabs(number_at(near, "0/similarity") - best) < 1e-6);
        CHECK(fabs(cosine(x + i * WIDTH, x + j * WIDTH) - best) < 1e-6);
    }
    ses_free(body);
    CHECK(member(post(s, "/map", "{\"vectors\":[[1,2],[1,2],[1,2],[1,2]],\"method\":\"tsne\"}", 200),
                 "points/3"));
    CHECK(member(post(s, "/map", "{\"vectors\":[[0],[0],[0],[0]],\"method\":\"umap\"}", 200), "points/3"));
    v = member(post(s, "/map", "{\"vectors\":[[0,0],[1,0],[1,1],[0,0]],\"nearest\":2}", 200), "nearest");
    CHECK(number_at(ses_json_at(v, 0), "0/similarity") == 1); /* both are zero */
    CHECK(fabs(number_at(ses_json_at(v, 0), "1/similarity")) < 1e-6);
    CHECK(fabs(number_at(ses_json_at(v, 1), "1/similarity")) < 1e-6);
}

static void test_errors(serving *s)
{
    static const struct {
        const char *body;
        int status;
        const char *part;
    } list[] = {
        { "{}", 422, "\"vectors\" is missing" },
        { "{\"vectors\":5}", 422, "base64" },
        { "{\"vectors\":[]}", 422, "4 to 20000 rows" },
        { "{\"vectors\":[[1],[2],[3]]}", 422, "4 to 20000 rows" },
        { "{\"vectors\":[[],[],[],[]]}", 422, "4 to 20000 rows" },
        { "{\"vectors\":[[1],[2],[3],[4,5]]}", 422, "row 3" },
        { "{\"vectors\":[[1],[2],\"a\",[4]]}", 422, "row 2" },
        { "{\"vectors\":[[1],[2],[1e7],[4]]}", 422, "row 2" },
        { "{\"vectors\":\"AAAA\"}", 422, "\"width\" is missing" },
        { "{\"vectors\":\"AAAA\",\"width\":1}", 422, "3 bytes" },
        { "{\"vectors\":\"A?AA\",\"width\":1}", 422, "" },
        { "{\"vectors\":\"AADAfwAAwH8AAMB/AADAfw==\",\"width\":1}", 422, "row 0" },
        { "{\"vectors\":[[1],[2],[3],[4]],\"method\":\"isomap\"}", 422, "must be one of" },
        { "{\"vectors\":[[1],[2],[3],[4]],\"perplexity\":0}", 422, "perplexity" },
        { "{\"vectors\":[[1],[2],[3],[4]],\"nearest\":51}", 422, "from 0 to 50" },
    };
    for (size_t i = 0; i < SES_LEN(list); i++) {
        const ses_json *v = post(s, "/map", list[i].body, list[i].status);
        CHECK_MSG(strstr(text_at(v, "error"), list[i].part), "%s: %s", list[i].body, text_at(v, "error"));
    }
}

int main(void)
{
    serving s;
    float x[N * WIDTH];
    ses_server_options o = { .models = models, .n_models = SES_LEN(models) };
    fill(x);
    serving_start(&s, &o);
    test_methods(&s, x);
    test_nearest(&s, x);
    test_errors(&s);
    serving_stop(&s);
    return check_report();
}
