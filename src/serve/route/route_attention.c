/* POST /attention: attention weights of one layer, as bytes, for the page's attention view. */
#include "analysis/attention_units.h"
#include "base/alloc.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/str.h"
#include "math/graph/rollout.h"
#include "serve/body.h"
#include "serve/route.h"
#include "serve/serve_impl.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* n*n bytes for each head. */
enum { MAX_TOKENS = 512 };

/* The request. */
typedef struct attention_query {
    int64_t layer;
    bool words, hide_special, rollout;
} attention_query;

static void put_head(ses_json_writer *json, const float *x, size_t n, uint8_t *bytes, char *text)
{
    for (size_t i = 0; i < n * n; i++) bytes[i] = (uint8_t)lround(255 * (double)x[i]);
    ses_base64_encode(bytes, n * n, text);
    ses_json_put_stringn(json, text, ses_base64_encoded_size(n * n));
}

static bool put_attention(ses_job *j, ses_json_writer *json, const char *key, const float *x, size_t n,
                          int64_t heads)
{
    uint8_t *bytes = ses_job_alloc(j, n * n, 1);
    char *text = ses_job_alloc(j, ses_base64_encoded_size(n * n) + 1, 1);
    if (!bytes || !text) return false;
    ses_json_member_array(json, key);
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

/* The tokens that make up each row: themselves, or words, without special tokens if they are hidden. */
static bool make_units(ses_job *j, const ses_encoding *x, const attention_query *q, ses_attention_units *u)
{
    int32_t *of = ses_job_alloc(j, x->n, sizeof *of), n = 0;
    if (!of) return false;
    for (size_t i = 0; i < x->n; i++) {
        bool special = x->special_mask[i] || x->word_id[i] < 0;
        bool same = q->words && i && n && !special && !x->special_mask[i - 1] &&
                    x->word_id[i] == x->word_id[i - 1] && x->sequence_id[i] == x->sequence_id[i - 1];
        of[i] = special && q->hide_special ? -1 : same ? n - 1 : n++;
    }
    *u = (ses_attention_units){ (int64_t)x->n, n, of };
    return true;
}

/* Names of the units: the tokens of each, joined. */
static void put_units(ses_json_writer *json, const ses_pipeline *p, const ses_encoding *x,
                      const ses_attention_units *u)
{
    ses_buf name = { 0 };
    ses_json_member_array(json, "tokens");
    for (size_t i = 0; i < x->n; i++) {
        size_t n = 0;
        const char *token = ses_tokenizer_id_to_token(p->tokenizer, x->id[i], &n);
        bool inside = name.len && n > 2 && token && !memcmp(token, "##", 2);
        if (u->of[i] < 0) continue;
        ses_buf_append(&name, token ? token + (inside ? 2 : 0) : "", n - (inside ? 2 : 0));
        if (i + 1 < x->n && u->of[i + 1] == u->of[i]) continue;
        ses_json_put_stringn(json, name.data ? name.data : "", name.len);
        name.len = 0;
    }
    ses_json_end_array(json);
    ses_buf_free(&name);
}

/* Merges the heads of w in place, from tokens to units. */
static bool merge(ses_job *j, float *w, int64_t heads, const ses_attention_units *u, bool renormalize)
{
    int64_t from = u->tokens * u->tokens, to = u->n * u->n;
    float *out = ses_job_alloc(j, (size_t)to + 1, sizeof *out);
    for (int64_t h = 0; out && h < heads; h++) {
        ses_attention_merge(w + h * from, u, u, renormalize, out);
        memcpy(w + h * to, out, (size_t)to * sizeof *out);
    }
    return out != NULL;
}

static bool fail(ses_job *j, ses_api_code code, const ses_err *e)
{
    return ses_api_fail_with(&j->error, code, NULL, e);
}

/* Weights [heads, n, n] of a layer. NULL: the job has failed. */
static float *read_layer(ses_job *j, ses_pass *pass, int64_t layer, int64_t n, int64_t *heads)
{
    ses_err e = { 0 };
    char name[32];
    snprintf(name, sizeof name, "attentions.%lld", (long long)layer);
    const ses_output *o = ses_outputs_find(&pass->out, name);
    int64_t count = o ? ses_count(o->tensor) : 0;
    *heads = count / (n * n);
    if (*heads < 1 || *heads * n * n != count) {
        ses_api_fail(&j->error, SES_API_VALIDATION, "layer",
                     "the model has no attention weights for layer %lld", (long long)layer);
        return NULL;
    }
    float *w = ses_job_alloc(j, (size_t)count, sizeof *w);
    const ses_real *host = w ? ses_pass_read(pass, name, &e) : NULL;
    if (!host) return fail(j, SES_API_BACKEND, &e), NULL;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(w[i] = (float)host[i])) {
            ses_api_fail(&j->error, SES_API_NOT_FINITE, NULL, "the attention weights are NaN");
            return NULL;
        }
    return w;
}

/* The rollout of the layers up to the one of the query, of the same units as its weights. */
static bool put_rollout(ses_job *j, ses_pipeline *p, const attention_query *q, const ses_attention_units *u,
                        ses_json_writer *json)
{
    int64_t n = u->n, heads = 0;
    size_t size = (size_t)(n * n) + 1;
    double *a = ses_job_alloc(j, size, sizeof *a), *r = ses_job_alloc(j, size, sizeof *r),
           *next = ses_job_alloc(j, size, sizeof *next);
    float *w = ses_job_alloc(j, size, sizeof *w);
    if (!a || !r || !next || !w) return false;
    for (int64_t l = 0; l <= q->layer; l++) {
        float *x = read_layer(j, &p->runner.pass, l, u->tokens, &heads);
        if (!x || !merge(j, x, heads, u, q->hide_special)) return false;
        ses_head_mean(x, heads, n, n, a);
        ses_add_residual(a, n);
        if (l)
            ses_rollout_product(a, r, n, n, n, next, NULL);
        else
            memcpy(next, a, size * sizeof *a);
        memcpy(r, next, size * sizeof *r);
    }
    for (int64_t i = 0; i < n * n; i++) w[i] = (float)r[i];
    return put_attention(j, json, "rollout", w, (size_t)n, 1);
}

/* Runs the model on one text in this thread, with the tape of the worker's pipeline. */
static bool run(ses_job *j, ses_pipeline *p, const ses_encoding *x, const attention_query *q,
                ses_json_writer *json)
{
    ses_err e = { 0 };
    ses_attention_units u;
    int64_t heads = 0;
    ses_pass *pass = &p->runner.pass;
    if (!make_units(j, x, q, &u)) return false;
    if (!u.n) return ses_api_fail(&j->error, SES_API_EMPTY, "inputs", "\"inputs\" has special tokens only");
    const ses_model *m = p->model;
    bool segments = ses_model_uses_segments(m) && p->tokenizer_config.sets_segments;
    ses_batch_builder_clear(&pass->in);
    if (!ses_batch_builder_add_encoding(&pass->in, x, segments, &e) ||
        !ses_pass_run(pass, &(ses_output_request){ .attentions = true }, &e))
        return fail(j, SES_API_BACKEND, &e);
    float *w = read_layer(j, pass, q->layer, (int64_t)x->n, &heads);
    bool plain = !q->words && !q->hide_special;
    if (!w || (!plain && !merge(j, w, heads, &u, q->hide_special))) return false;
    ses_json_begin_object(json);
    if (plain)
        put_tokens(json, p, x);
    else
        put_units(json, p, x, &u);
    ses_json_member_int(json, "n_layers", ses_model_layer_count(m));
    ses_json_member_int(json, "n_heads", heads);
    ses_json_member_int(json, "layer", q->layer);
    bool ok = put_attention(j, json, "attention", w, (size_t)u.n, heads) &&
              (!q->rollout || put_rollout(j, p, q, &u, json));
    ses_json_end_object(json);
    return ok;
}

static bool handle(ses_worker *w, ses_job *j)
{
    const char *model = NULL;
    attention_query q = { 0 };
    ses_err e = { 0 };
    ses_string text = ses_body_text(ses_body_get(j->body, "inputs")),
               pair = ses_body_text(ses_body_get(j->body, "pair"));
    if (!text.p) return ses_api_fail(&j->error, SES_API_VALIDATION, "inputs", "\"inputs\" must be a string");
    if (!text.n) return ses_api_fail(&j->error, SES_API_EMPTY, "inputs", "\"inputs\" is empty");
    if (!pair.p && ses_body_get(j->body, "pair"))
        return ses_api_fail(&j->error, SES_API_VALIDATION, "pair", "\"pair\" must be a string");
    if (!ses_body_string(j, j->body, "model", &model) ||
        !ses_body_int(j, j->body, "layer", 0, 1024, &q.layer) ||
        !ses_body_bool(j, j->body, "words", &q.words) ||
        !ses_body_bool(j, j->body, "hide_special", &q.hide_special) ||
        !ses_body_bool(j, j->body, "rollout", &q.rollout) || !ses_job_read_deadline(w, j) ||
        !ses_job_open(w, j, model, ses_task_find("feature-extraction"), NULL))
        return false;
    ses_pipeline *p = ses_served_pipeline_encoder(j->pipeline, w->index, &e);
    if (!p) return fail(j, SES_API_BACKEND, &e);
    if (q.layer >= ses_model_layer_count(p->model))
        return ses_api_fail(&j->error, SES_API_VALIDATION, "layer", "the model has layers 0 to %lld",
                            (long long)ses_model_layer_count(p->model) - 1);
    int64_t max = ses_pipeline_max_seq_len(p);
    ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST,
                             .max_length = max < MAX_TOKENS ? max : MAX_TOKENS };
    if (!ses_encode(p->tokens, &(ses_input){ .text = text, .pair = pair }, &o, &e))
        return fail(j, SES_API_TOKENIZER, &e);
    ses_json_writer *json = ses_reply_writer(j);
    if (!json) return false;
    bool alone = !p->model->dev->is_host; /* one thread at a time uses a GPU */
    if (alone) ses_scheduler_enter(ses_server_scheduler(w->server));
    bool ok = !ses_job_is_dropped(j, ses_clock_ns()) && run(j, p, ses_encode_ctx_result(p->tokens), &q, json);
    if (alone) ses_scheduler_leave(ses_server_scheduler(w->server));
    if (!ok) {
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
        "Attention weights of one layer: for each head n*n bytes (255 is 1), rows are queries, as base64; by "
        "word, without special tokens, and with the rollout of the layers up to this one if asked for",
    .request = "{\"type\":\"object\",\"required\":[\"inputs\"],"
               "\"allOf\":[{\"$ref\":\"#/components/schemas/Models-attention\"}],"
               "\"properties\":{\"inputs\":{\"type\":\"string\",\"minLength\":1},"
               "\"pair\":{\"type\":\"string\"},\"layer\":{\"type\":\"integer\",\"minimum\":0},"
               "\"words\":{\"type\":\"boolean\"},\"hide_special\":{\"type\":\"boolean\"},"
               "\"rollout\":{\"type\":\"boolean\"},\"model\":{\"type\":\"string\","
               "\"description\":\"name of a loaded model; default: the first one for the task\"}}}",
    .response = "{\"type\":\"object\",\"required\":[\"tokens\",\"attention\"]}",
};
