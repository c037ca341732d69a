/* POST /map: points in the plane for vectors, by PCA, t-SNE or UMAP, and the nearest vectors of each. */
#include "analysis/map/map_layout.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/json/json_helpers.h"
#include "base/str.h"
#include "serve/body.h"
#include "serve/route.h"
#include "serve/serve_impl.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <string.h>

enum { FEWEST = 4, MOST = 20000, MAX_WIDTH = 8192 };

typedef struct request {
    ses_real *x; /* [n, width] */
    size_t n, width;
    int64_t nearest;
    ses_map_settings map;
} request;

/* ---- request ---- */

/* Rows of numbers. */
static bool read_rows(ses_job *j, const ses_json *list, request *r)
{
    r->n = ses_json_len(list), r->width = ses_json_len(ses_json_at(list, 0));
    if (r->n < FEWEST || r->n > MOST || !r->width || r->width > MAX_WIDTH)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "vectors",
                            "\"vectors\" must have %d to %d rows of 1 to %d numbers", FEWEST, MOST,
                            MAX_WIDTH);
    r->x = ses_job_alloc(j, r->n * r->width, sizeof *r->x);
    for (size_t i = 0; r->x && i < r->n; i++) {
        const ses_json *row = ses_json_at(list, i);
        bool same = ses_json_type_of(row) == SES_JSON_ARRAY && ses_json_len(row) == r->width;
        for (size_t k = 0; same && k < r->width; k++) {
            double v;
            same = ses_json_real(ses_json_at(row, k), &v) && fabs(v) <= 1e6;
            if (same) r->x[i * r->width + k] = (ses_real)v;
        }
        if (!same)
            return ses_api_fail(
                &j->error, SES_API_VALIDATION, "vectors",
                "row %zu of \"vectors\" must have %zu numbers from -1e6 to 1e6, as the first has", i,
                r->width);
    }
    return r->x != NULL;
}

/* Rows of little-endian f32 as base64. */
static bool read_bytes(ses_job *j, ses_string text, int64_t width, request *r)
{
    ses_err e = { 0 };
    size_t bytes = 0;
    if (!width) return ses_body_missing(j, "width");
    float *f = ses_job_alloc(j, ses_base64_max_decoded_size(text.n) / sizeof *f + 1, sizeof *f);
    if (!f) return false;
    if (!ses_base64_decode(text.p, text.n, f, &bytes, &e))
        return ses_api_fail_with(&j->error, SES_API_VALIDATION, "vectors", &e);
    r->width = (size_t)width, r->n = bytes / (r->width * sizeof *f);
    if (bytes % (r->width * sizeof *f) || r->n < FEWEST || r->n > MOST)
        return ses_api_fail(&j->error, SES_API_VALIDATION, "vectors",
                            "\"vectors\" has %zu bytes: expected %d to %d rows of %zu numbers of four bytes",
                            bytes, FEWEST, MOST, r->width);
    r->x = ses_job_alloc(j, r->n * r->width, sizeof *r->x);
    for (size_t i = 0; r->x && i < r->n * r->width; i++) {
        if (!(fabsf(f[i]) <= 1e6f))
            return ses_api_fail(&j->error, SES_API_VALIDATION, "vectors",
                                "row %zu of \"vectors\" has the number %g", i / r->width, (double)f[i]);
        r->x[i] = (ses_real)f[i];
    }
    return r->x != NULL;
}

static bool read_request(ses_job *j, request *r)
{
    const ses_json *v = ses_body_get(j->body, "vectors");
    ses_string text = ses_body_text(v);
    int method = SES_MAP_PCA;
    int64_t seed = 42, width = 0;
    r->nearest = 5;
    if (!v) return ses_body_missing(j, "vectors");
    if (!text.p && ses_json_type_of(v) != SES_JSON_ARRAY)
        return ses_body_wrong_type(j, "vectors", v, "a list of lists of numbers, or base64");
    if (!ses_body_choice(j, j->body, "method", "pca|tsne|umap", &method) ||
        !ses_body_real(j, j->body, "perplexity", 1, 1000, &r->map.perplexity) ||
        !ses_body_int(j, j->body, "neighbors", 2, 1000, &r->map.neighbours) ||
        !ses_body_real(j, j->body, "min_dist", 0.001, 0.99, &r->map.min_dist) ||
        !ses_body_int(j, j->body, "nearest", 0, 50, &r->nearest) ||
        !ses_body_int(j, j->body, "width", 1, MAX_WIDTH, &width) ||
        !ses_body_int(j, j->body, "seed", 0, INT64_MAX, &seed))
        return false;
    r->map.method = (ses_map_method)method, r->map.seed = (uint64_t)seed;
    if (!(text.p ? read_bytes(j, text, width, r) : read_rows(j, v, r))) return false;
    r->map.perplexity = fmin(r->map.perplexity, (double)(r->n - 1) / 3); /* the response has the one used */
    if (r->nearest >= (int64_t)r->n) r->nearest = (int64_t)r->n - 1;
    return true;
}

/* ---- response ---- */

/* Unit vectors have neighbours by cosine; a zero vector is a unit vector of one more dimension. */
static bool find_nearest(const request *r, const ses_math *m, ses_neighbours *nb, ses_err *e)
{
    size_t width = r->width + 1;
    ses_real *unit = ses_alloc_array(r->n * width, sizeof *unit, e);
    for (size_t i = 0; unit && i < r->n; i++) {
        const ses_real *from = r->x + i * r->width;
        double sum = 0;
        for (size_t k = 0; k < r->width; k++) sum += (double)from[k] * (double)from[k];
        double scale = sum > 0 ? 1 / sqrt(sum) : 0;
        for (size_t k = 0; k < r->width; k++) unit[i * width + k] = (ses_real)((double)from[k] * scale);
        unit[i * width + r->width] = !(sum > 0);
    }
    bool ok = unit && (!r->nearest || ses_neighbours_find(nb, m, unit, (int64_t)r->n, (int64_t)width,
                                                          r->nearest, NULL, (int64_t)r->n, e));
    ses_free(unit);
    return ok;
}

static void put_nearest(ses_json_writer *json, const request *r, const ses_neighbours *nb)
{
    ses_json_member_array(json, "nearest");
    for (size_t i = 0; i < r->n; i++) {
        ses_json_begin_array(json);
        for (int64_t k = 0; k < r->nearest; k++) {
            double d = nb->distance[(int64_t)i * nb->k + k];
            ses_json_begin_object(json);
            ses_json_member_int(json, "index", nb->index[(int64_t)i * nb->k + k]);
            ses_json_put_key(json, "similarity");
            ses_json_put_float(json, (float)(1 - d * d / 2));
            ses_json_end_object(json);
        }
        ses_json_end_array(json);
    }
    ses_json_end_array(json);
}

static void put_map(ses_json_writer *json, const request *r, const ses_map_layout *l,
                    const ses_neighbours *nb)
{
    static const char *const names[] = { "pca", "tsne", "umap" };
    ses_json_begin_object(json);
    ses_json_member_string(json, "method", names[r->map.method]);
    ses_json_member_array(json, "points");
    for (size_t i = 0; i < r->n; i++) {
        const float xy[2] = { (float)l->x[i], (float)l->y[i] };
        ses_json_put_floats(json, xy, 2);
    }
    ses_json_end_array(json);
    put_nearest(json, r, nb);
    ses_json_member_real(json, "explained", l->explained); /* NaN is null */
    ses_json_member_real(json, "perplexity", l->perplexity > 0 ? l->perplexity : NAN);
    ses_json_member_real(json, "trustworthiness", l->quality.neighbours ? l->quality.trustworthiness : NAN);
    ses_json_end_object(json);
}

static bool run(ses_job *j, const request *r, int threads, ses_json_writer *json)
{
    ses_math m;
    ses_err e = { 0 };
    ses_neighbours nb = { 0 };
    ses_map_layout l = { .layer = -1 };
    if (!ses_math_open(&m, threads, &e)) return ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    bool ok = find_nearest(r, &m, &nb, &e) &&
              ses_map_layout_make(&l, &m, r->x, (int64_t)r->n, (int64_t)r->width, &r->map, &e);
    for (size_t i = 0; ok && i < r->n; i++)
        if (!isfinite(l.x[i]) || !isfinite(l.y[i]))
            ok = ses_fail(&e, SES_EARG, "point %zu is NaN or infinite", i);
    if (ok) put_map(json, r, &l, &nb);
    ses_map_layout_free(&l);
    ses_neighbours_free(&nb);
    ses_math_close(&m);
    return ok || ses_api_fail_with(&j->error, SES_API_BACKEND, "vectors", &e);
}

/* One map or analysis at a time: each takes seconds. */
static bool handle(ses_worker *w, ses_job *j)
{
    request r = { 0 };
    if (!read_request(j, &r)) return false;
    ses_json_writer *json = ses_reply_writer(j);
    if (!json) return false;
    bool ok =
        ses_server_begin_analysis(w->server) ||
        ses_api_fail(&j->error, SES_API_OVERLOADED, NULL, "another analysis is running; try again later");
    if (ok) {
        ok = run(j, &r, ses_device_threads(ses_server_get_options(w->server)->dev), json);
        ses_server_end_analysis(w->server);
    }
    if (!ok) {
        ses_json_writer_free(json);
        return false;
    }
    ses_reply_json(w, j, json);
    return true;
}

const ses_route ses_route_map = {
    .method = "POST",
    .path = "/map",
    .style = SES_STYLE_TEI,
    .handle = handle,
    .tag = "Sesame",
    .summary = "Points in the plane for vectors, by PCA, t-SNE or UMAP, and the nearest vectors of each",
    .request =
        "{\"type\":\"object\",\"required\":[\"vectors\"],\"properties\":{\"vectors\":{\"$ref\":"
        "\"#/components/schemas/"
        "Rows\"},\"width\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":8192,\"description\":\"numbers in "
        "a row, if "
        "the rows are f32 as base64\"},"
        "\"method\":{\"enum\":[\"pca\",\"tsne\",\"umap\"]},"
        "\"perplexity\":{\"type\":\"number\",\"minimum\":1,\"maximum\":1000},"
        "\"neighbors\":{\"type\":\"integer\",\"minimum\":2,\"maximum\":1000},"
        "\"min_dist\":{\"type\":\"number\",\"minimum\":0.001,\"maximum\":0.99},"
        "\"nearest\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":50},"
        "\"seed\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":9223372036854775807}}}",
    .response = "{\"type\":\"object\",\"required\":[\"method\",\"points\",\"nearest\"]}",
};
