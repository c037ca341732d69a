/* POST /v1/embed, /v2/embed: Cohere's embeddings. /v1/embed answers with a list of vectors, or with a list
 * for each of "embedding_types". Binary vectors have the signs, eight to a byte, as packbits of NumPy. */
#include "base/str.h"
#include "serve/embed_reply.h"

#include <string.h>

typedef enum { TYPE_FLOAT, TYPE_BASE64, TYPE_BINARY, TYPE_UBINARY, TYPES } type;

static const char *const type_names[] = { "float", "base64", "binary", "ubinary" };

typedef struct state {
    ses_embed_request embed; /* first: ses_embed_put reads it */
    bool by_type, wanted[TYPES];
    int version;
    ses_string *text;
} state;

/* ---- response ---- */

/* 1 for a positive number, the first in the highest bit; binary: minus 128. */
static void put_bits(ses_json_writer *json, const float *x, int64_t n, int64_t offset)
{
    ses_json_begin_array(json);
    for (int64_t i = 0; i < n; i += 8) {
        unsigned byte = 0;
        for (int64_t k = 0; k < 8; k++) byte = byte << 1 | (i + k < n && x[i + k] > 0);
        ses_json_put_int(json, (int64_t)byte - offset);
    }
    ses_json_end_array(json);
}

static void put_vector(ses_json_writer *json, ses_job *j, size_t i, type t)
{
    int64_t n = 0;
    const float *x = ses_embed_vector(j, i, &n);
    if (!x) n = 0;
    switch (t) {
    case TYPE_BINARY: put_bits(json, x, n, 128); break;
    case TYPE_UBINARY: put_bits(json, x, n, 0); break;
    default: ses_embed_put_vector(json, x, n, t == TYPE_BASE64 ? SES_VECTORS_BASE64 : SES_VECTORS_FLOAT);
    }
}

static void put_vectors(ses_json_writer *json, ses_job *j, type t)
{
    ses_json_begin_array(json);
    for (size_t i = 0; i < j->n; i++) put_vector(json, j, i, t);
    ses_json_end_array(json);
}

static void done(ses_worker *w, ses_job *j)
{
    const state *s = j->state;
    ses_json_writer *json = ses_reply_begin(w, j, false);
    if (!json) return;
    ses_json_begin_object(json);
    ses_reply_put_id(json, j, "embed");
    ses_json_member_string(json, "response_type", s->by_type ? "embeddings_by_type" : "embeddings_floats");
    ses_json_put_key(json, "embeddings");
    if (s->by_type) ses_json_begin_object(json);
    for (type t = TYPE_FLOAT; t < TYPES; t++) {
        if (!s->wanted[t]) continue;
        if (s->by_type) ses_json_put_key(json, type_names[t]);
        put_vectors(json, j, t);
    }
    if (s->by_type) ses_json_end_object(json);
    ses_json_member_array(json, "texts");
    for (size_t i = 0; i < j->n; i++) ses_json_put_stringn(json, s->text[i].p, s->text[i].n);
    ses_json_end_array(json);
    ses_reply_put_meta(json, j, s->version, NULL);
    ses_json_end_object(json);
    ses_reply_json(w, j, json);
}

/* ---- request ---- */

static bool read_types(ses_job *j, state *s)
{
    const ses_json *list = ses_body_get(j->body, "embedding_types");
    s->by_type = list || s->version == 2;
    s->wanted[TYPE_FLOAT] = !list;
    if (!list) return true;
    if (ses_json_type_of(list) != SES_JSON_ARRAY || !ses_json_len(list))
        return ses_body_wrong_type(j, "embedding_types", list, "a list of types, not empty");
    for (size_t i = 0; i < ses_json_len(list); i++) {
        ses_string name = ses_body_text(ses_json_at(list, i));
        size_t t = 0;
        while (t < TYPES && !(name.p && ses_equal(name.p, name.n, type_names[t]))) t++;
        if (t == TYPES)
            return ses_api_fail(
                &j->error, SES_API_VALIDATION, "embedding_types",
                "\"embedding_types\" may have \"float\", \"base64\", \"binary\" and \"ubinary\"; "
                "\"int8\" and \"uint8\" need ranges of the numbers, which no folder of a model has");
        s->wanted[t] = true;
    }
    return true;
}

/* The first prompt of the folder that suits the purpose of the texts; NULL: its default. */
static bool find_prompt(ses_worker *w, ses_job *j, ses_embed_request *r, const char *kind)
{
    static const char *const names[][4] = { { "search_query", "query" },
                                            { "search_document", "document", "passage", "corpus" },
                                            { "classification", "classification" },
                                            { "clustering", "clustering" } };
    ses_err e = { 0 };
    const ses_task_entry *task = ses_task_find("embed");
    if (!ses_job_find_model(w, j, r->model, task) || !ses_served_model_supports(j->model, task)) return true;
    ses_served_pipeline *p = ses_served_pipeline_get(j->model, task, NULL, NULL, &e);
    if (!p) return ses_api_fail_with(&j->error, SES_API_BACKEND, NULL, &e);
    const ses_sentence *s = ses_pipeline_encoder(p->compute);
    for (size_t i = 0; kind && i < SES_LEN(names); i++)
        for (size_t k = 1; !strcmp(names[i][0], kind) && k < 4 && names[i][k] && !r->prompt_name; k++)
            if (ses_sentence_prompt(s, names[i][k])) r->prompt_name = names[i][k];
    ses_served_pipeline_release(p);
    return true;
}

static bool read_options(ses_worker *w, ses_job *j, state *s)
{
    static const char kinds[] = "search_query|search_document|classification|clustering";
    ses_embed_request *r = &s->embed;
    const ses_json *images = ses_body_get(j->body, "images");
    const char *kind = NULL;
    int64_t priority = 0;
    int choice = -1;
    if (!ses_body_string(j, j->body, "model", &r->model) ||
        !ses_cohere_read_truncate(j, &r->truncate, &r->left) ||
        !ses_body_choice(j, j->body, "input_type", kinds, &choice) ||
        !ses_body_int(j, j->body, "output_dimension", 1, 1 << 20, &r->dimensions) ||
        !ses_body_int(j, j->body, "max_tokens", 1, INT32_MAX, &r->max_tokens) ||
        !ses_body_int(j, j->body, "priority", INT32_MIN, INT32_MAX, &priority) || !read_types(j, s))
        return false;
    if (images && (ses_json_type_of(images) != SES_JSON_ARRAY || ses_json_len(images)))
        return ses_api_fail(&j->error, SES_API_VALIDATION, "images",
                            "\"images\" are not supported: send \"texts\"");
    if (r->max_tokens && (r->left || !r->truncate))
        return ses_api_fail(&j->error, SES_API_VALIDATION, "max_tokens",
                            "\"max_tokens\" needs \"truncate\": \"END\", which is the default");
    if (choice >= 0) kind = ses_body_text(ses_body_get(j->body, "input_type")).p;
    return find_prompt(w, j, r, kind);
}

/* "inputs": a list of {"content": [{"type": "text", "text": ...}]}, each of one part. */
static bool read_inputs(ses_job *j, const ses_json *v, ses_string **list, size_t *n)
{
    *n = ses_json_len(v);
    if (ses_json_type_of(v) != SES_JSON_ARRAY) return ses_body_wrong_type(j, "inputs", v, "a list");
    if (!*n) return ses_api_fail(&j->error, SES_API_EMPTY, "inputs", "\"inputs\" is empty");
    *list = ses_job_alloc(j, *n, sizeof **list);
    for (size_t i = 0; *list && i < *n; i++) {
        const ses_json *content = ses_json_get(ses_json_at(v, i), "content"), *part = ses_json_at(content, 0);
        ses_string kind = ses_body_text(ses_json_get(part, "type"));
        (*list)[i] = ses_body_text(ses_json_get(part, "text"));
        if (ses_json_type_of(content) != SES_JSON_ARRAY || ses_json_len(content) != 1 || !kind.p ||
            !ses_equal(kind.p, kind.n, "text") || !(*list)[i].n)
            return ses_api_fail(
                &j->error, SES_API_VALIDATION, "inputs",
                "input %zu must be {\"content\": [{\"type\": \"text\", \"text\": ...}]}, with one "
                "text that is not empty",
                i);
    }
    return *list != NULL;
}

static bool handle(ses_worker *w, ses_job *j, int version)
{
    state *s = ses_job_alloc(j, 1, sizeof *s);
    const char *key = "texts";
    size_t n = 0;
    if (!s) return false;
    *s = (state){ .embed = { .normalize = 1, .truncate = true }, .version = version };
    if (version == 2 && !ses_body_either(j, "texts", "inputs", &key)) return false;
    const ses_json *v = ses_body_get(j->body, key);
    bool inputs = v && !strcmp(key, "inputs");
    if (inputs ? !read_inputs(j, v, &s->text, &n) : !ses_body_texts(j, v, key, &s->text, &n, false))
        return false;
    return read_options(w, j, s) && ses_embed_submit(w, j, &s->embed, s->text, n, done);
}

static bool handle_v1(ses_worker *w, ses_job *j) { return handle(w, j, 1); }
static bool handle_v2(ses_worker *w, ses_job *j) { return handle(w, j, 2); }

#define OPTIONS                                                                                             \
    "\"embedding_types\":{\"type\":\"array\",\"minItems\":1,\"items\":{\"enum\":[\"float\",\"base64\","     \
    "\"binary\","                                                                                           \
    "\"ubinary\"]}},\"input_type\":{\"enum\":[\"search_query\",\"search_document\",\"classification\","     \
    "\"clustering\"]},\"truncate\":{\"enum\":[\"NONE\",\"START\",\"END\"]},\"output_dimension\":{\"type\":" \
    "\"integer\",\"minimum\":1},\"priority\":{\"type\":\"integer\",\"minimum\":-2147483648,\"maximum\":"    \
    "2147483647},"                                                                                          \
    "\"max_tokens\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":2147483647},"                           \
    "\"images\":{\"type\":\"array\",\"maxItems\":0},\"model\":{\"type\":\"string\","                        \
    "\"description\":\"name of a loaded model; default: the first one for the task\"}"
#define LIMIT                                                                                           \
    "{\"anyOf\":[{\"properties\":{\"max_tokens\":{\"type\":\"null\"}}},{\"properties\":{\"truncate\":{" \
    "\"enum\":[\"END\",null]}}}]}"
#define EMBED(path_, handle_, request_)                                                                     \
    {                                                                                                       \
        .method = "POST", .path = path_, .style = SES_STYLE_COHERE, .handle = handle_, .tag = "Cohere",     \
        .summary = "Embeddings of texts", .request = request_,                                              \
        .response = "{\"type\":\"object\",\"required\":[\"id\",\"response_type\",\"embeddings\",\"texts\"," \
                    "\"meta\"]}"                                                                            \
    }

const ses_route ses_route_cohere_embed_v1 =
    EMBED("/v1/embed", handle_v1,
          "{\"type\":\"object\",\"required\":[\"texts\"],\"allOf\":[{\"$ref\":\"#/components/schemas/"
          "Models-cohere\"}," LIMIT
          "],\"properties\":{\"texts\":{\"$ref\":\"#/components/schemas/Texts\"}," OPTIONS "}}");
const ses_route ses_route_cohere_embed_v2 =
    EMBED("/v2/embed", handle_v2,
          "{\"type\":\"object\",\"allOf\":[{\"$ref\":\"#/components/schemas/Models-cohere\"}," LIMIT
          "],\"anyOf\":[{\"required\":[\"texts\"],\"properties\":{\"texts\":{\"$ref\":\"#/components/schemas/"
          "Texts\"},\"inputs\":{\"type\":\"null\"}}},{\"required\":[\"inputs\"],\"properties\":{\"inputs\":{"
          "\"$ref\":\"#/components/schemas/ContentTexts\"},\"texts\":{\"type\":\"null\"}}}],\"properties\":{"
          "\"texts\":{\"$ref\":\"#/components/schemas/Texts\"},\"inputs\":{\"$ref\":\"#/components/schemas/"
          "ContentTexts\"}," OPTIONS "}}");
