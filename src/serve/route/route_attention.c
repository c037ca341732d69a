/* POST /attention: attention weights of one layer, as bytes, for the page's attention view. */
#include "base/alloc.h"
#include "base/base64.h"
#include "base/str.h"
#include "serve/body.h"
#include "serve/route.h"
#include "serve/serve_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* n*n bytes for each head. */
enum { MAX_TOKENS = 512 };

static void put_head(ses_json_writer *json, const ses_real *x, size_t n, uint8_t *bytes, char *text)
{
    for (size_t i = 0; i < n * n; i++) bytes[i] = (uint8_t)lround(255 * (double)x[i]);
    ses_base64_encode(bytes, n * n, text);
    ses_json_put_stringn(json, text, ses_base64_encoded_size(n * n));
}

static bool put_attention(ses_job *j, ses_json_writer *json, const ses_real *x, size_t n, int64_t heads)
{
    uint8_t *bytes = ses_job_alloc(j, n * n, 1);
    char *text = ses_job_alloc(j, ses_base64_encoded_size(n * n) + 1, 1);
    if (!bytes || !text) return false;
    ses_json_member_array(json, "attention");
    for (int64_t h = 0; h < heads; h++) put_head(json, x + (size_t)h * n * n, n, bytes, text);
    ses_json_end_array(json);
    return true;
}

static void put_tokens(ses_json_writer *json, const ses_pipeline *p, const ses_encoding *x)
{
    ses_json_member_array(json, "tokens");
    for (size_t i = 0; i < x->n; i++) {
        size_t n = 0;
        const char *token = ses_tokenizer_id_to_token(p->tokenizer, x->id[i], &n);
        ses_json_put_stringn(json, token ? token : "", n);
    }
    ses_json_end_array(json);
}

static bool fail(ses_job *j, ses_api_code code, const ses_err *e)
{
    return ses_api_fail_with(&j->error, code, NULL, e);
}

/* Runs the model on one text in this thread, with the tape of the worker's pipeline. */
static bool run(ses_job *j, ses_pipeline *p, const ses_encoding *x, int64_t layer, ses_json_writer *json)
{
    ses_err e = { 0 };
    int32_t cu[2] = { 0, (int32_t)x->n };
    int32_t *segment = ses_job_alloc(j, x->n, sizeof *segment);
    char name[32];
    ses_outputs out;
    if (!segment) return false;
    for (size_t i = 0; i < x->n; i++) segment[i] = x->type_id[i];
    const ses_model *m = p->model;
    bool segments =
        (m->c.embed.segments > 1 || m->c.xl.relative_segments) && p->tokenizer_config.sets_segments;
    ses_batch b = { .seqs = 1, .tokens = (int64_t)x->n, .cu_seqlens = cu, .ids = x->id };
    if (segments) b.segments = segment;
    ses_tape_reset(p->runner.tape, NULL);
    if (!ses_model_forward(m, p->runner.tape, &b, &(ses_output_request){ .attentions = true }, &out, &e))
        return fail(j, SES_API_BACKEND, &e);
    snprintf(name, sizeof name, "attentions.%lld", (long long)layer);
    const ses_output *o = ses_outputs_find(&out, name);
    size_t n = x->n;
    int64_t heads = o ? ses_count(o->tensor) / (int64_t)(n * n) : 0;
    if (!o || heads < 1 || heads * (int64_t)(n * n) != ses_count(o->tensor))
        return ses_api_fail(&j->error, SES_API_VALIDATION, "layer",
                            "the model has no attention weights for layer %lld", (long long)layer);
    ses_real *w = ses_job_alloc(j, (size_t)ses_count(o->tensor), sizeof *w);
    if (!w || !ses_tape_read(p->runner.tape, o->tensor, w)) return fail(j, SES_API_BACKEND, &e);
    for (int64_t i = 0; i < ses_count(o->tensor); i++)
        if (!isfinite(w[i]))
            return ses_api_fail(&j->error, SES_API_NOT_FINITE, NULL, "the attention weights are NaN");
    ses_json_begin_object(json);
    put_tokens(json, p, x);
    ses_json_member_int(json, "n_layers", ses_model_layer_count(m));
    ses_json_member_int(json, "n_heads", heads);
    ses_json_member_int(json, "layer", layer);
    bool ok = put_attention(j, json, w, n, heads);
    ses_json_end_object(json);
    return ok;
}

static bool handle(ses_worker *w, ses_job *j)
{
    const char *model = NULL;
    int64_t layer = 0;
    ses_err e = { 0 };
    ses_string text = ses_body_text(ses_body_get(j->body, "inputs")),
               pair = ses_body_text(ses_body_get(j->body, "pair"));
    if (!text.p) return ses_api_fail(&j->error, SES_API_VALIDATION, "inputs", "\"inputs\" must be a string");
    if (!text.n) return ses_api_fail(&j->error, SES_API_EMPTY, "inputs", "\"inputs\" is empty");
    if (!pair.p && ses_body_get(j->body, "pair"))
        return ses_api_fail(&j->error, SES_API_VALIDATION, "pair", "\"pair\" must be a string");
    if (!ses_body_string(j, j->body, "model", &model) ||
        !ses_body_int(j, j->body, "layer", 0, 1024, &layer) ||
        !ses_job_open(w, j, model, ses_task_find("feature-extraction"), NULL))
        return false;
    ses_pipeline *p = ses_served_pipeline_encoder(j->pipeline, w->index, &e);
    if (!p) return fail(j, SES_API_BACKEND, &e);
    if (layer >= ses_model_layer_count(p->model))
        return ses_api_fail(&j->error, SES_API_VALIDATION, "layer", "the model has layers 0 to %lld",
                            (long long)ses_model_layer_count(p->model) - 1);
    int64_t max = ses_pipeline_max_seq_len(p);
    ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST,
                             .max_length = max < MAX_TOKENS ? max : MAX_TOKENS };
    if (!ses_encode(p->tokens, &(ses_input){ .text = text, .pair = pair }, &o, &e))
        return fail(j, SES_API_TOKENIZER, &e);
    ses_json_writer *json = ses_reply_writer(j);
    if (!json) return false;
    if (!run(j, p, ses_encode_ctx_result(p->tokens), layer, json)) {
        ses_json_writer_free(json);
        return false;
    }
    ses_reply_json(w, j, json);
    return true;
}

const ses_route ses_route_attention = {
    .method = "POST",
    .path = "/attention",
    .style = SES_STYLE_TEI,
    .handle = handle,
    .tag = "Sesame",
    .summary =
        "Attention weights of one layer: for each head n*n bytes (255 is 1), rows are queries, as base64",
    .request = "{\"type\":\"object\",\"required\":[\"inputs\"],\"properties\":{\"inputs\":{\"type\":"
               "\"string\",\"minLength\":1},\"pair\":{\"type\":"
               "\"string\"},\"layer\":{\"type\":\"integer\",\"minimum\":0},\"model\":{\"type\":\"string\"}}}",
    .response = "{\"type\":\"object\",\"required\":[\"tokens\",\"attention\"]}",
};
