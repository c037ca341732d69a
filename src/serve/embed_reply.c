/* Vectors: from texts to responses. */
#include "embed_reply.h"

#include "base/alloc.h"
#include "base/base64.h"
#include "base/json/json_helpers.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool ses_embed_read(ses_job *j, const ses_json *object, ses_embed_request *r)
{
    bool normalize = r->normalize > 0;
    int direction = r->left ? 0 : 1;
    if (!ses_body_int(j, object, "dimensions", 1, 1 << 20, &r->dimensions) ||
        !ses_body_bool(j, object, "normalize", &normalize) ||
        !ses_body_bool(j, object, "truncate", &r->truncate) ||
        !ses_body_string(j, object, "prompt_name", &r->prompt_name) ||
        !ses_body_choice(j, object, "truncation_direction", "Left|Right|left|right", &direction))
        return false;
    if (ses_body_get(object, "normalize")) r->normalize = normalize;
    r->left = direction % 2 == 0;
    return true;
}

bool ses_embed_reads(const char *member)
{
    static const char *const list[] = { "dimensions", "normalize", "truncate", "prompt_name",
                                        "truncation_direction" };
    for (size_t i = 0; i < SES_LEN(list); i++)
        if (!strcmp(list[i], member)) return true;
    return false;
}

bool ses_cohere_read_truncate(ses_job *j, bool *truncate, bool *left)
{
    int how = 2;
    if (!ses_body_choice(j, j->body, "truncate", "NONE|START|END", &how)) return false;
    *truncate = how > 0, *left = how == 1;
    return true;
}

bool ses_text_shorten(ses_job *j, ses_pipeline *p, ses_string *text, size_t max)
{
    static const ses_encode_options plain = { .no_special = true };
    ses_err e = { 0 };
    size_t all = 0;
    for (size_t keep = max;; keep--) {
        if (!ses_encode(p->tokens, &(ses_input){ .text = *text }, &plain, &e))
            return ses_api_fail_with(&j->error, SES_API_TOKENIZER, NULL, &e);
        const ses_encoding *x = ses_encode_ctx_result(p->tokens);
        if (!all) all = x->n;
        if (x->n <= max) {
            j->truncated += (int64_t)(all - x->n);
            return true;
        }
        text->n = keep ? (size_t)x->byte_offset[keep - 1].end : 0;
    }
}

static bool check_dimensions(ses_job *j, int64_t wanted)
{
    const ses_sentence *encoder = ses_pipeline_encoder(j->pipeline->compute);
    int64_t width = ses_sentence_width(encoder);
    return wanted <= width || ses_api_fail(&j->error, SES_API_VALIDATION, "dimensions",
                                           "\"dimensions\" is %lld, but %s has vectors of %lld numbers",
                                           (long long)wanted, j->model->name, (long long)width);
}

static bool limit_tokens(ses_worker *w, ses_job *j, const ses_embed_request *r, ses_string *text)
{
    ses_err e = { 0 };
    ses_pipeline *p = ses_served_pipeline_encoder(j->pipeline, w->index, &e);
    return p ? ses_text_shorten(j, p, text, (size_t)r->max_tokens)
             : ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
}

bool ses_embed_submit(ses_worker *w, ses_job *j, ses_embed_request *r, const ses_string *text, size_t n,
                      ses_job_fn *done)
{
    const ses_task_entry *task = ses_task_find("embed");
    ses_body_settings *s = &r->settings;
    if (!s->pipeline && !ses_settings_begin(j, s, SES_EMBED_SETTINGS)) return false;
    if (r->normalize >= 0)
        ses_settings_add(s, task->task, r->normalize ? "normalize" : "no-normalize", "true");
    if (r->prompt_name) ses_settings_add(s, task->task, "prompt-name", r->prompt_name);
    if (r->left) ses_settings_add(s, task->task, "truncation-side", "left");
    if (!ses_job_open(w, j, r->model, task, s->pipeline) || !check_dimensions(j, r->dimensions)) return false;
    r->normalized = ses_sentence_normalizes(ses_pipeline_encoder(j->pipeline->compute));
    j->state = r;
    for (size_t i = 0; i < n; i++) {
        ses_item item = { .text = text[i] };
        if (r->max_tokens && !limit_tokens(w, j, r, &item.text)) return false;
        if (!ses_job_add(w, j, &item)) return false;
    }
    if ((!r->errors_of_items && !ses_job_check_items(j)) || (!r->truncate && !ses_job_check_truncation(j)))
        return false;
    return ses_job_submit(w, j, done);
}

const float *ses_embed_vector(ses_job *j, size_t i, int64_t *size)
{
    const ses_embed_request *r = j->state;
    const ses_result *x = &j->item[i].result;
    *size = x->vector_size;
    if (!r->dimensions || r->dimensions == x->vector_size) return x->vectors;
    *size = r->dimensions;
    float *copy = ses_job_alloc(j, (size_t)*size, sizeof *copy);
    double sum = 0;
    for (int64_t k = 0; copy && k < *size; k++) {
        copy[k] = x->vectors[k];
        sum += (double)copy[k] * (double)copy[k];
    }
    double scale = r->normalized && sum > 0 ? 1 / sqrt(sum) : 1;
    for (int64_t k = 0; copy && k < *size; k++) copy[k] = (float)((double)copy[k] * scale);
    return copy;
}

void ses_embed_put_vector(ses_json_writer *json, const float *x, int64_t n, ses_vector_format format)
{
    if (format == SES_VECTORS_BASE64) { /* x86 and aarch64 are little-endian */
        ses_buf b = { 0 };
        size_t bytes = (size_t)n * sizeof *x, size = ses_base64_encoded_size(bytes);
        if (ses_buf_reserve(&b, size)) {
            ses_base64_encode(x, bytes, b.data);
            ses_json_put_stringn(json, b.data, size);
        }
        ses_buf_free(&b);
        return;
    }
    ses_json_put_floats(json, x, n);
}

bool ses_embed_wants_bytes(const ses_job *j)
{
    ses_string accept = ses_http_header(j->x, "accept");
    return accept.p && ses_equal(accept.p, accept.n, "application/octet-stream");
}

/* Answers with the bytes of all vectors, and their shape in the headers. */
static void reply_bytes(ses_worker *w, ses_job *j)
{
    int64_t size = 0;
    char shape[64];
    ses_embed_vector(j, 0, &size);
    size_t row = (size_t)size * sizeof(float);
    char *bytes = ses_alloc(j->n * row, NULL);
    for (size_t i = 0; bytes && i < j->n; i++) {
        const float *x = ses_embed_vector(j, i, &size);
        if (!x) break;
        memcpy(bytes + i * row, x, row);
    }
    if (!bytes || j->error.code) {
        ses_free(bytes);
        ses_api_fail(&j->error, SES_API_BACKEND, NULL, "out of memory");
        ses_reply_error(w, j);
        return;
    }
    snprintf(shape, sizeof shape, "%zu,%lld", j->n, (long long)size);
    ses_http_add_header(j->x, "x-embedding-shape", shape);
    ses_http_add_header(j->x, "x-embedding-dtype", "float32");
    ses_reply_bytes(w, j, "application/octet-stream", bytes, j->n * row);
}

ses_json_writer *ses_embed_begin(ses_worker *w, ses_job *j)
{
    const ses_embed_request *r = j->state;
    if (r->format != SES_VECTORS_BYTES || !ses_job_check_items(j)) return ses_reply_begin(w, j, false);
    reply_bytes(w, j);
    return NULL;
}

void ses_embed_put(ses_json_writer *json, ses_job *j, size_t i)
{
    const ses_embed_request *r = j->state;
    int64_t size = 0;
    const float *x = ses_embed_vector(j, i, &size);
    ses_embed_put_vector(json, x, x ? size : 0, r->format);
}
