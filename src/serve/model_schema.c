/* Schemas of /openapi.json that follow from the loaded models. */
#include "model_schema.h"

#include "base/str.h"
#include "serve/chat/chat_prompt.h"

#include <stdio.h>
#include <string.h>

/* ---- members that depend on the model ---- */

static void put_range(ses_json_writer *json, const char *key, int64_t min, int64_t max)
{
    ses_json_member_object(json, key);
    ses_json_member_list(json, "type", "integer, null");
    ses_json_member_int(json, "minimum", min);
    ses_json_member_int(json, "maximum", max);
    ses_json_end_object(json);
}

/* The size of vectors and, if the route reads them, the names of prompts. */
static void put_vectors(ses_json_writer *json, ses_served_model *m, bool prompts)
{
    ses_served_pipeline *p = ses_served_pipeline_get(m, ses_task_find("embed"), NULL, NULL, NULL);
    const ses_sentence *s = p ? ses_pipeline_encoder(p->compute) : NULL;
    if (s) put_range(json, "dimensions", 1, ses_sentence_width(s));
    if (prompts) {
        ses_json_member_object(json, "prompt_name");
        ses_json_member_array(json, "enum");
        ses_json_put_null(json);
        for (size_t i = 0; s && i < ses_sentence_prompt_count(s); i++)
            ses_json_put_string(json, ses_sentence_prompt_name(s, i));
        ses_json_end_array(json);
        ses_json_end_object(json);
    }
    ses_served_pipeline_release(p);
}

void ses_model_vectors_put(const ses_schema_context *x, ses_served_model *m)
{
    put_vectors(x->json, m, true);
}
static void put_width(const ses_schema_context *x, ses_served_model *m) { put_vectors(x->json, m, false); }

static void put_output_dimension(const ses_schema_context *x, ses_served_model *m)
{
    ses_served_pipeline *p = ses_served_pipeline_get(m, ses_task_find("embed"), NULL, NULL, NULL);
    const ses_sentence *s = p ? ses_pipeline_encoder(p->compute) : NULL;
    if (s) put_range(x->json, "output_dimension", 1, ses_sentence_width(s));
    ses_served_pipeline_release(p);
}

static void put_nothing(const ses_schema_context *x, ses_served_model *m) { (void)x, (void)m; }

static void put_layer(const ses_schema_context *x, ses_served_model *m)
{
    put_range(x->json, "layer", 0, ses_model_layer_count(m->model) - 1);
}

bool ses_model_reads_empty(const ses_served_model *m)
{
    ses_encode_ctx *k = m->tokenizer ? ses_encode_ctx_new(m->tokenizer, NULL) : NULL;
    bool none =
        k && ses_encode(k, &(ses_input){ .text = { "", 0 } }, NULL, NULL) && !ses_encode_ctx_result(k)->n;
    ses_encode_ctx_free(k);
    return !none;
}

/* A member of a schema of the description, or null. */
static void put_optional(ses_json_writer *json, const char *key, const char *schema)
{
    char ref[64];
    snprintf(ref, sizeof ref, "#/components/schemas/%s", schema);
    ses_json_member_object(json, key);
    ses_json_member_array(json, "anyOf");
    ses_json_begin_object(json);
    ses_json_member_string(json, "$ref", ref);
    ses_json_end_object(json);
    ses_json_begin_object(json);
    ses_json_member_string(json, "type", "null");
    ses_json_end_object(json);
    ses_json_end_array(json);
    ses_json_end_object(json);
}

/* Vectors of documents need tokens. */
static void put_documents_of(const ses_schema_context *x, ses_served_model *m)
{
    if (ses_served_model_supports(m, ses_task_find("rerank")) || ses_model_reads_empty(m)) return;
    put_optional(x->json, "documents", "Texts");
    put_optional(x->json, "text_2", "Texts");
}

/* Texts to rank by the vectors of a model for which an empty text has none. */
static void put_ranked(const ses_schema_context *x, ses_served_model *m)
{
    if (ses_served_model_supports(m, ses_task_find("rerank")) || ses_model_reads_empty(m)) return;
    put_optional(x->json, "texts", "Texts");
    put_optional(x->json, "documents", "FilledDocuments");
}

/* A list of token ids; nested: or a list of such lists. */
static void put_id_list(ses_json_writer *json, const ses_served_model *m)
{
    ses_json_member_string(json, "type", "array");
    ses_json_member_object(json, "items");
    ses_json_member_string(json, "type", "integer");
    ses_json_member_int(json, "minimum", 0);
    ses_json_member_int(json, "maximum", ses_tokenizer_vocab_size(m->tokenizer) - 1);
    ses_json_end_object(json);
}

static void put_ids(const ses_schema_context *x, ses_served_model *m)
{
    ses_json_writer *json = x->json;
    ses_json_member_object(json, "ids");
    ses_json_member_array(json, "anyOf");
    ses_json_begin_object(json);
    put_id_list(json, m);
    ses_json_end_object(json);
    ses_json_begin_object(json);
    ses_json_member_string(json, "type", "array");
    ses_json_member_int(json, "minItems", 1);
    ses_json_member_int(json, "maxItems", x->o->max_inputs);
    ses_json_member_object(json, "items");
    put_id_list(json, m);
    ses_json_end_object(json);
    ses_json_end_object(json);
    ses_json_end_array(json);
    ses_json_end_object(json);
}

static void put_tokens(const ses_schema_context *x, ses_served_model *m)
{
    ses_json_writer *json = x->json;
    ses_json_member_object(json, "tokens");
    put_id_list(json, m);
    ses_json_end_object(json);
}

/* ---- the models of a route ---- */

static bool has_tokenizer(const ses_served_model *m) { return m->tokenizer != NULL; }
static bool has_labels(const ses_served_model *m) { return !ses_served_model_predicts_numbers(m); }
static bool has_layers(const ses_served_model *m) { return m->model != NULL; }

/* task, other, own: a model must support one of the first two, or be made for the third. The first model of
 * all answers requests without a name if task is NULL. */
typedef struct choice {
    const char *name, *task, *other, *own;
    bool (*suits)(const ses_served_model *m);
    void (*put)(const ses_schema_context *x,
                ses_served_model *m); /* members of the body; NULL: the same for all */
} choice;

static const choice choices[] = {
    { "Models-embed", "embed", NULL, NULL, NULL, ses_model_vectors_put },
    { "Models-ollama", "embed", NULL, NULL, NULL, put_width },
    { "Models-tokens", "feature-extraction", NULL, NULL, NULL, NULL },
    { "Models-attention", "feature-extraction", NULL, NULL, has_layers, put_layer },
    { "Models-sparse", "sparse-embed", NULL, NULL, NULL, NULL },
    { "Models-classify", "text-classification", NULL, NULL, NULL, NULL },
    { "Models-rerank", "rerank", NULL, "embed", NULL, put_ranked },
    { "Models-score", "rerank", "similarity", NULL, NULL, put_documents_of },
    { "Models-similarity", "similarity", NULL, NULL, NULL, NULL },
    { "Models-cohere", "embed", NULL, NULL, NULL, put_output_dimension },
    { "Models-labels", "text-classification", NULL, NULL, has_labels, put_nothing },
    { "Models-chat", NULL, NULL, NULL, ses_served_model_chats, NULL },
    { "Models-moderate", NULL, NULL, NULL, ses_served_model_moderates, NULL },
    { "Models-generate", "text-generation", NULL, NULL, NULL, NULL },
    { "Models-tokenize", NULL, NULL, NULL, has_tokenizer, NULL },
    { "Models-decode", NULL, NULL, NULL, has_tokenizer, put_ids },
    { "Models-detokenize", NULL, NULL, NULL, has_tokenizer, put_tokens },
};

static bool supports(const ses_served_model *m, const char *task)
{
    return task && ses_served_model_supports(m, ses_task_find(task));
}

static bool is_own(const ses_served_model *m, const char *task)
{
    return task && m->own_task->task == ses_task_find(task)->task;
}

static bool suits(const choice *c, const ses_served_model *m)
{
    bool task = !c->task || supports(m, c->task) || supports(m, c->other) || is_own(m, c->own);
    return task && (!c->suits || c->suits(m));
}

/* The names of a model. */
static void put_names(const ses_schema_context *x, const ses_served_model *m)
{
    const char *alias, *model;
    ses_json_put_string(x->json, m->name);
    for (size_t i = 0; (alias = ses_registry_alias_at(x->registry, i, &model)); i++)
        if (!strcmp(model, m->name)) ses_json_put_string(x->json, alias);
}

/* The task of requests without a name: the route's, or if no model is for it, the other one. NULL: none. */
static const ses_task_entry *default_task(const ses_schema_context *x, const choice *c)
{
    const ses_task_entry *task = c->task ? ses_task_find(c->task) : NULL;
    const char *other = c->other ? c->other : c->own;
    for (size_t i = 0; task && i < x->n; i++)
        if (ses_served_model_supports(x->model[i], task)) return task;
    return task && other ? ses_task_find(other) : task;
}

/* The model of requests without a name; x->n: none. */
static size_t default_model(const ses_schema_context *x, const choice *c)
{
    const ses_task_entry *task = default_task(x, c);
    ses_served_model *m = task ? ses_registry_find(x->registry, NULL, task) : NULL;
    size_t i = 0;
    while (i < x->n && (task ? x->model[i] != m : !suits(c, x->model[i]))) i++;
    ses_served_model_release(m);
    return i;
}

/* A request with an unknown name gets the default model. */
static bool is_for_any_name(const ses_schema_context *x, const choice *c)
{
    const ses_task_entry *task = x->o->any_model ? default_task(x, c) : NULL;
    ses_served_model *only = task ? ses_registry_only(x->registry, task) : NULL;
    ses_served_model_release(only);
    return only != NULL;
}

/* Names of no model. */
static void put_unknown_names(const ses_schema_context *x)
{
    static const char text[] = "^[^\0]*$";
    ses_json_begin_object(x->json);
    ses_json_member_string(x->json, "type", "string");
    ses_json_member_stringn(x->json, "pattern", text, sizeof text - 1);
    ses_json_member_object(x->json, "not");
    ses_json_member_array(x->json, "enum");
    for (size_t i = 0; i < x->n; i++) put_names(x, x->model[i]);
    ses_json_end_array(x->json);
    ses_json_end_object(x->json);
    ses_json_end_object(x->json);
}

/* {"properties": {"model": {"enum": [...]}, ...}} of model i, or of all that suit with i = n. by_default: the
 * request may leave the name out. */
static void put_variant(const ses_schema_context *x, const choice *c, size_t i, bool by_default)
{
    ses_json_writer *json = x->json;
    ses_json_begin_object(json);
    ses_json_member_object(json, "properties");
    ses_json_member_object(json, "model");
    bool any = by_default && is_for_any_name(x, c);
    if (any) {
        ses_json_member_array(json, "anyOf");
        put_unknown_names(x);
        ses_json_begin_object(json);
    }
    ses_json_member_array(json, "enum");
    if (by_default) ses_json_put_null(json), ses_json_put_string(json, "");
    for (size_t k = 0; k < x->n; k++)
        if (suits(c, x->model[k]) && (i == x->n || i == k)) put_names(x, x->model[k]);
    ses_json_end_array(json);
    if (any) {
        ses_json_end_object(json);
        ses_json_end_array(json);
    }
    ses_json_end_object(json);
    if (c->put && i < x->n) c->put(x, x->model[i]);
    ses_json_end_object(json);
    if (!by_default) ses_json_member_list(json, "required", "model");
    ses_json_end_object(json);
}

static bool any_suits(const ses_schema_context *x, const choice *c)
{
    for (size_t i = 0; i < x->n; i++)
        if (suits(c, x->model[i])) return true;
    return false;
}

static void put_choice(const ses_schema_context *x, const choice *c)
{
    ses_json_writer *json = x->json;
    size_t first = default_model(x, c);
    if (!x->names_models) {
        ses_json_member_object(json, c->name);
        ses_json_end_object(json);
        return;
    }
    ses_json_member_object(json, c->name);
    ses_json_member_string(json, "description",
                           "the models that the route accepts, and what depends on them");
    ses_json_member_array(json, "anyOf");
    for (size_t i = 0; c->put && i < x->n; i++)
        if (suits(c, x->model[i])) put_variant(x, c, i, c->task ? i == first : !i);
    if (!c->put || first == x->n) put_variant(x, c, x->n, true);
    ses_json_end_array(json);
    ses_json_end_object(json);
}

/* ---- limits ---- */

static void put_text(ses_json_writer *json, int least)
{
    ses_json_begin_object(json);
    ses_json_member_string(json, "type", "string");
    if (least) ses_json_member_int(json, "minLength", least);
    ses_json_end_object(json);
}

/* Begins {"type": "array", "minItems", "maxItems", "items": ...}; two ends follow the items. */
static void begin_list(ses_json_writer *json, int64_t least, int64_t most)
{
    ses_json_begin_object(json);
    ses_json_member_string(json, "type", "array");
    ses_json_member_int(json, "minItems", least);
    ses_json_member_int(json, "maxItems", most);
    ses_json_put_key(json, "items");
}

static void put_list(ses_json_writer *json, int64_t least, int64_t most, int least_length)
{
    begin_list(json, least, most);
    put_text(json, least_length);
    ses_json_end_object(json);
}

static void begin_choice(ses_json_writer *json, const char *name, const char *what, const char *of)
{
    ses_json_member_object(json, name);
    ses_json_member_string(json, "description", what);
    ses_json_member_array(json, of);
}

static void end_choice(ses_json_writer *json)
{
    ses_json_end_array(json);
    ses_json_end_object(json);
}

static void put_texts(const ses_schema_context *x, const char *name, const char *what, int least_length,
                      int64_t most)
{
    begin_choice(x->json, name, what, "oneOf");
    put_text(x->json, least_length);
    put_list(x->json, 1, most, least_length);
    end_choice(x->json);
}

/* One text or two, of which one may be empty. */
static void put_pair(ses_json_writer *json)
{
    begin_list(json, 1, 2);
    put_text(json, 0);
    ses_json_put_key(json, "contains");
    put_text(json, 1);
    ses_json_end_object(json);
}

static void put_pairs(const ses_schema_context *x)
{
    begin_choice(
        x->json, "Pairs",
        "a text, a pair of texts, of which one may be empty, or a list of pairs and lists of one text",
        "oneOf");
    put_text(x->json, 1);
    put_pair(x->json);
    begin_list(x->json, 1, x->o->max_inputs);
    put_pair(x->json);
    ses_json_end_object(x->json);
    end_choice(x->json);
}

static void put_items(const ses_schema_context *x, const char *name, const char *item, int64_t most)
{
    ses_json_doc *doc = ses_json_parse(item, strlen(item), NULL);
    ses_json_put_key(x->json, name);
    begin_list(x->json, 1, most);
    ses_json_put_value(x->json, ses_json_root(doc));
    ses_json_end_object(x->json);
    ses_json_free(doc);
}

#define FILLED "{\"type\":\"string\",\"minLength\":1}"
#define MEMBERS(required, list) "{\"type\":\"object\",\"required\":[" required "],\"properties\":{" list "}}"
#define TEXT_PART MEMBERS("\"type\",\"text\"", "\"type\":{\"const\":\"text\"},\"text\":" FILLED)
#define CONTENT                                                                            \
    "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"minItems\":1,\"maxItems\":1," \
    "\"items\":" TEXT_PART "}]}"
#define NONE "{\"type\":[\"array\",\"object\",\"null\"],\"maxItems\":0,\"maxProperties\":0}"
#define MESSAGE                                                                                    \
    MEMBERS("\"role\",\"content\"", "\"role\":" FILLED ",\"content\":" CONTENT ",\"images\":" NONE \
                                    ",\"tool_calls\":" NONE ",\"function_call\":" NONE ",\"audio\":" NONE)
#define DOCUMENT(text)                                                                                       \
    "{\"anyOf\":[" text ",{\"type\":\"object\",\"required\":[\"text\"],\"properties\":{\"text\":" text "}}]" \
    "}"

/* n texts and as many others; n 1: one text and any number of others. */
static void put_scored(const ses_schema_context *x, const char *a, const char *b, int n)
{
    ses_json_writer *json = x->json;
    bool named = !strcmp(a, "queries");
    char required[32];
    snprintf(required, sizeof required, "%s, %s", a, b);
    ses_json_begin_object(json);
    ses_json_member_list(json, "required", required);
    ses_json_member_object(json, "properties");
    ses_json_member_object(json, a);
    ses_json_member_array(json, "anyOf");
    if (n == 1) put_text(json, 1);
    put_list(json, n, n, 1);
    ses_json_end_array(json);
    ses_json_end_object(json);
    ses_json_member_object(json, b);
    ses_json_member_array(json, "anyOf");
    if (n == 1) put_text(json, 0);
    put_list(json, n, n == 1 ? x->o->max_inputs : n, 0);
    ses_json_end_array(json);
    ses_json_end_object(json);
    for (int i = 0; i < 2; i++) {
        ses_json_member_object(json, named ? (i ? "text_2" : "text_1") : (i ? "documents" : "queries"));
        ses_json_member_string(json, "type", "null");
        ses_json_end_object(json);
    }
    ses_json_end_object(json);
    ses_json_end_object(json);
}

/* JSON Schema cannot compare lengths of lists, so short ones are listed. */
static void put_all_scored(const ses_schema_context *x)
{
    enum { LISTED = 16 };
    begin_choice(x->json, "Scored",
                 "one text for all others, which may be empty, or one for each; longer lists than these, too",
                 "anyOf");
    for (int n = 1; n <= LISTED && n <= x->o->max_inputs; n++) {
        put_scored(x, "queries", "documents", n);
        put_scored(x, "text_1", "text_2", n);
    }
    end_choice(x->json);
}

/* Rows of numbers, of the same length: short ones are listed, as JSON Schema cannot compare lengths. */
static void put_rows(ses_json_writer *json)
{
    enum { LISTED = 8 };
    begin_choice(json, "Rows", "rows of the same length; longer ones than these, too, or base64 of f32",
                 "anyOf");
    for (int n = 1; n <= LISTED; n++) {
        begin_list(json, 4, 20000);
        begin_list(json, n, n);
        ses_json_begin_object(json);
        ses_json_member_string(json, "type", "number");
        ses_json_member_real(json, "minimum", -1e6);
        ses_json_member_real(json, "maximum", 1e6);
        ses_json_end_object(json);
        ses_json_end_object(json);
        ses_json_end_object(json);
    }
    end_choice(json);
}

/* Options of generation by Ollama's names; others are ignored. */
static void put_ollama_options(const ses_schema_context *x)
{
    static const char text[] =
        "{\"temperature\":{\"anyOf\":[{\"const\":0},{\"type\":\"number\",\"minimum\":0.000001,\"maximum\":"
        "100},"
        "{\"type\":\"null\"}]},"
        "\"top_p\":{\"type\":[\"number\",\"null\"],\"minimum\":0,\"maximum\":1},"
        "\"presence_penalty\":{\"type\":[\"number\",\"null\"],\"minimum\":-2,\"maximum\":2},"
        "\"frequency_penalty\":{\"type\":[\"number\",\"null\"],\"minimum\":-2,\"maximum\":2},"
        "\"seed\":{\"type\":[\"integer\",\"null\"],\"minimum\":0,\"maximum\":9000000000000000},"
        "\"stop\":{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"string\",\"minLength\":1,\"maxLength\":256,"
        "\"pattern\":\"^[^\\u0000]*$\"},{\"type\":\"array\",\"maxItems\":16,\"items\":{\"type\":\"string\","
        "\"minLength\":1,\"maxLength\":256,\"pattern\":\"^[^\\u0000]*$\"}}]}}";
    ses_json_doc *doc = ses_json_parse(text, sizeof text - 1, NULL);
    const ses_json *list = ses_json_root(doc);
    ses_json_member_object(x->json, "OllamaOptions");
    ses_json_member_string(x->json, "type", "object");
    ses_json_member_object(x->json, "properties");
    for (size_t i = 0; i < ses_json_len(list); i++) {
        ses_json_put_key(x->json, ses_json_key(list, i, NULL));
        ses_json_put_value(x->json, ses_json_at(list, i));
    }
    ses_json_member_object(x->json, "num_predict");
    ses_json_member_array(x->json, "anyOf");
    ses_json_begin_object(x->json);
    ses_json_member_list(x->json, "type", "integer, null");
    ses_json_member_int(x->json, "minimum", 1);
    ses_json_member_int(x->json, "maximum", x->o->max_new_tokens);
    ses_json_end_object(x->json);
    ses_json_begin_object(x->json);
    ses_json_member_int(x->json, "const", -1);
    ses_json_end_object(x->json);
    ses_json_end_array(x->json);
    ses_json_end_object(x->json);
    ses_json_end_object(x->json);
    ses_json_end_object(x->json);
    ses_json_free(doc);
}

void ses_model_schemas_put(const ses_schema_context *x)
{
    put_texts(x, "Texts", "a text or a list of texts", 1, x->o->max_inputs);
    put_texts(x, "AnyTexts", "a text or a list of texts, which may be empty", 0, x->o->max_inputs);
    put_pairs(x);
    int64_t most = x->o->max_inputs;
    put_items(x, "Documents", DOCUMENT("{\"type\":\"string\"}"), most);
    put_items(x, "FilledDocuments", DOCUMENT(FILLED), most);
    put_items(x, "TextParts", TEXT_PART, most);
    put_items(x, "ContentTexts",
              MEMBERS("\"content\"",
                      "\"content\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":1,\"items\":" TEXT_PART
                      "}"),
              most);
    put_items(x, "Messages", MESSAGE, 1024);
    put_items(x, "Examples", MEMBERS("\"text\",\"label\"", "\"text\":" FILLED ",\"label\":" FILLED),
              most / 2);
    put_texts(x, "HalfTexts", "a text or a list of texts", 1, most / 2);
    put_all_scored(x);
    put_ollama_options(x);
    put_rows(x->json);
    ses_json_member_object(x->json, "ModelName");
    ses_json_member_string(x->json, "type", "string");
    ses_model_names_put(x);
    ses_json_end_object(x->json);
    ses_json_member_object(x->json, "SomeTokens");
    ses_json_member_string(x->json, "type", "integer");
    ses_json_member_int(x->json, "minimum", 1);
    ses_json_member_int(x->json, "maximum", x->o->max_new_tokens);
    ses_json_end_object(x->json);
    ses_json_member_object(x->json, "NewTokens");
    ses_json_member_string(x->json, "type", "integer");
    ses_json_member_int(x->json, "minimum", 0);
    ses_json_member_int(x->json, "maximum", x->o->max_new_tokens);
    ses_json_end_object(x->json);
    for (size_t i = 0; i < SES_LEN(choices); i++) put_choice(x, &choices[i]);
}

bool ses_model_route_is_of_use(const ses_schema_context *x, const char *request)
{
    for (size_t i = 0; x->names_models && request && i < SES_LEN(choices); i++) {
        char ref[64];
        snprintf(ref, sizeof ref, "/%s\"", choices[i].name);
        if (!choices[i].task && choices[i].suits && strstr(request, ref) && !any_suits(x, &choices[i]))
            return false;
    }
    return true;
}

void ses_model_names_put(const ses_schema_context *x)
{
    if (!x->names_models) {
        ses_json_member_int(x->json, "minLength", 1);
        return;
    }
    ses_json_member_array(x->json, "enum");
    for (size_t i = 0; i < x->n; i++) put_names(x, x->model[i]);
    ses_json_end_array(x->json);
}
