/* Schemas of requests to a task of a loaded model. */
#include "task_schema.h"

#include "analysis/analysis.h"
#include "base/alloc.h"
#include "base/str.h"
#include "task/task.h"

#include <stdio.h>
#include <string.h>

/* ---- parameters ---- */

static void put_null(ses_json_writer *json)
{
    ses_json_begin_object(json);
    ses_json_member_string(json, "type", "null");
    ses_json_end_object(json);
}

/* Members that are not listed are absent or null. */
static void put_nulls_only(ses_json_writer *json)
{
    ses_json_put_key(json, "additionalProperties");
    put_null(json);
}

static void put_number(ses_json_writer *json, const ses_opt *o)
{
    bool whole = o->type == SES_OPT_IS_INT, any = o->min == 0 && o->max == 0;
    ses_json_begin_object(json);
    ses_json_member_string(json, "type", whole ? "integer" : "number");
    if (!any || whole) {
        ses_json_put_key(json, "minimum");
        any ? ses_json_put_int(json, INT64_MIN) : ses_json_put_real(json, o->min);
        ses_json_put_key(json, "maximum");
        any ? ses_json_put_int(json, INT64_MAX) : ses_json_put_real(json, o->max);
    }
    ses_json_end_object(json);
}

/* The words; true and false also as such. */
static void put_words(ses_json_writer *json, const char *words)
{
    const char *word;
    size_t n;
    ses_json_begin_object(json);
    ses_json_member_array(json, "enum");
    for (size_t i = 0; ses_list_at(words, i, &word, &n); i++) {
        ses_json_put_stringn(json, word, n);
        if (ses_equal(word, n, "true") || ses_equal(word, n, "false")) ses_json_put_bool(json, *word == 't');
    }
    ses_json_end_array(json);
    ses_json_end_object(json);
}

/* Whether the model refuses a word of an option, whatever the text is. */
static bool is_refused(ses_served_model *m, const char *option, const char *word, size_t n)
{
    const ses_served_pipeline *p = ses_served_model_pipeline(m);
    bool mask = ses_equal(word, n, "mask"), unknown = ses_equal(word, n, "unk");
    if (!strcmp(option, "pool") && ses_equal(word, n, "cls"))
        return m->model && !ses_model_check_first_token(m->model, option, NULL);
    if (strcmp(option, "baseline") != 0 || !p || (!mask && !unknown)) return false;
    return p->compute->tokenizer_config.role[mask ? SES_ROLE_MASK : SES_ROLE_UNK] < 0;
}

/* The words of an option that the model does not refuse. */
static void put_choices(ses_json_writer *json, ses_served_model *m, const ses_opt *o)
{
    const char *word;
    size_t n;
    ses_buf fit = { 0 };
    for (size_t i = 0; ses_list_at(o->choices, i, &word, &n); i++)
        if (!is_refused(m, o->name, word, n))
            ses_buf_appendf(&fit, "%s%.*s", fit.len ? "|" : "", (int)n, word);
    put_words(json, fit.data ? fit.data : o->choices);
    ses_buf_free(&fit);
}

static void put_option(ses_json_writer *json, ses_served_model *m, const ses_opt *o)
{
    char name[64];
    snprintf(name, sizeof name, "%s", o->name);
    for (char *c = name; *c; c++)
        if (*c == '-') *c = '_';
    ses_json_member_object(json, name);
    ses_json_member_string(json, "description", o->help);
    ses_json_member_array(json, "anyOf");
    put_null(json);
    if (o->type == SES_OPT_IS_FLAG) {
        ses_json_begin_object(json);
        ses_json_member_string(json, "type", "boolean");
        ses_json_end_object(json);
    } else if (o->type == SES_OPT_IS_CHOICE) {
        put_choices(json, m, o);
    } else {
        put_number(json, o);
        if (o->type == SES_OPT_IS_INT && o->zero_word) put_words(json, o->zero_word);
    }
    ses_json_end_array(json);
    ses_json_end_object(json);
}

static bool is_listed(const ses_opt *o, const char *only)
{
    const char *word;
    size_t n;
    bool simple = o->type == SES_OPT_IS_FLAG || o->type == SES_OPT_IS_INT || o->type == SES_OPT_IS_REAL ||
                  o->type == SES_OPT_IS_CHOICE;
    if (!simple || !only) return simple;
    for (size_t i = 0; ses_list_at(only, i, &word, &n); i++)
        if (ses_equal(word, n, o->name)) return true;
    return false;
}

static void put_properties(ses_json_writer *json, ses_served_model *m, const ses_opt *opt, size_t n,
                           const char *only)
{
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(opt, n); (o = ses_opt_next(&it));)
        if (is_listed(o, only)) put_option(json, m, o);
}

/* ---- inputs ---- */

/* A text. single: of a request with one input, which must not be empty; in a list each input has its own
 * error. mask: what it must contain; NULL: nothing. */
static void put_text(ses_json_writer *json, bool single, const ses_string *mask)
{
    ses_json_begin_object(json);
    ses_json_member_string(json, "type", "string");
    if (single) ses_json_member_int(json, "minLength", 1);
    if (mask) {
        ses_buf b = { 0 };
        for (size_t i = 0; i < mask->n; i++)
            ses_buf_appendf(&b, strchr("[]<>|", mask->p[i]) ? "[%c]" : "%c", mask->p[i]);
        ses_json_member_string(json, "pattern", b.data ? b.data : "");
        ses_buf_free(&b);
    }
    ses_json_end_object(json);
}

/* single: it has a text. filled: no text is empty. */
static void put_list(const ses_schema_context *x, bool single, bool filled)
{
    ses_json_writer *json = x->json;
    ses_json_begin_object(json);
    ses_json_member_string(json, "type", "array");
    if (single) ses_json_member_int(json, "minItems", 1);
    ses_json_member_int(json, "maxItems", x->o->max_inputs);
    ses_json_put_key(json, "items");
    put_text(json, filled, NULL);
    ses_json_end_object(json);
}

static void put_first(ses_json_writer *json, const char *names, bool is_key)
{
    size_t n = strcspn(names, "|");
    is_key ? ses_json_put_keyn(json, names, n) : ses_json_put_stringn(json, names, n);
}

static void put_object(const ses_schema_context *x, const ses_served_model *m, const ses_task *t, bool single,
                       const ses_string *mask)
{
    ses_json_writer *json = x->json;
    const ses_item_schema *s = &t->item_schema;
    ses_json_begin_object(json);
    ses_json_member_string(json, "type", "object");
    ses_json_member_array(json, "required");
    put_first(json, s->text, false);
    if (s->requires_pair) put_first(json, s->pair, false);
    if (s->requires_list) put_first(json, s->list, false);
    ses_json_end_array(json);
    ses_json_member_object(json, "properties");
    put_first(json, s->text, true);
    put_text(json, single, mask);
    if (s->requires_pair) {
        put_first(json, s->pair, true);
        put_text(json, single, NULL);
    }
    if (s->requires_list) {
        put_first(json, s->list, true);
        put_list(x, single, single && t == &ses_task_similarity && !ses_model_reads_empty(m));
    }
    ses_json_end_object(json);
    ses_json_end_object(json);
}

static void put_item(const ses_schema_context *x, const ses_served_model *m, const ses_task *t, bool single,
                     const ses_string *mask)
{
    ses_json_writer *json = x->json;
    const ses_item_schema *s = &t->item_schema;
    ses_json_begin_object(json);
    ses_json_member_array(json, "anyOf");
    if (!single || (!s->requires_pair && !s->requires_list)) put_text(json, single, mask);
    put_object(x, m, t, single, mask);
    ses_json_end_array(json);
    ses_json_end_object(json);
}

static void put_inputs(const ses_schema_context *x, const ses_served_model *m, const ses_task *t,
                       const ses_string *mask)
{
    ses_json_writer *json = x->json;
    ses_json_member_object(json, "inputs");
    if (t == &ses_task_embed) {
        ses_json_member_string(json, "$ref", "#/components/schemas/Texts");
        ses_json_end_object(json);
        return;
    }
    ses_json_member_array(json, "anyOf");
    put_item(x, m, t, true, mask);
    ses_json_begin_object(json);
    ses_json_member_string(json, "type", "array");
    ses_json_member_int(json, "minItems", 1);
    ses_json_member_int(json, "maxItems", x->o->max_inputs);
    ses_json_put_key(json, "items");
    put_item(x, m, t, false, NULL);
    ses_json_end_object(json);
    ses_json_end_array(json);
    ses_json_end_object(json);
}

/* The mask token of a masked language model; p NULL: none. */
static ses_string mask_of(ses_served_model *m)
{
    const ses_served_pipeline *p = ses_served_model_pipeline(m);
    int32_t id = p ? p->compute->tokenizer_config.role[SES_ROLE_MASK] : -1;
    ses_string mask = { 0 };
    if (id >= 0 && m->tokenizer) mask.p = ses_tokenizer_id_to_token(m->tokenizer, id, &mask.n);
    return mask;
}

/* ---- the body ---- */

/* Options of generation that suit every text and each other. */
static const char generation[] =
    "temperature|top-k|top-p|min-p|seed|repetition-penalty|presence-penalty|frequency-penalty|"
    "return-full-text|renormalize-logits|logprobs";

/* Options of the task that an input may set and that do not exclude each other. */
static const char *listed_options(const ses_task *t)
{
    if (t->generates) return generation;
    if (t == &ses_task_fill_mask) return "top-k|temperature|do-sample|seed";
    return t->item_settings ? t->item_settings : "";
}

/* dimensions: of the model. */
static void put_embed_parameters(const ses_schema_context *x, ses_served_model *m)
{
    static const char rest[] =
        "{\"normalize\":{\"type\":[\"boolean\",\"null\"]},\"truncate\":{\"type\":[\"boolean\","
        "\"null\"]},\"truncation_direction\":{\"enum\":[\"Left\",\"Right\",\"left\",\"right\",null]}}";
    ses_json_doc *doc = ses_json_parse(rest, sizeof rest - 1, NULL);
    const ses_json *root = ses_json_root(doc);
    for (size_t i = 0; i < ses_json_len(root); i++) {
        ses_json_put_key(x->json, ses_json_key(root, i, NULL));
        ses_json_put_value(x->json, ses_json_at(root, i));
    }
    ses_json_free(doc);
    ses_model_vectors_put(x, m);
}

static void put_parameters(const ses_schema_context *x, ses_served_model *m, const ses_task *t, bool required)
{
    ses_json_writer *json = x->json;
    bool labels = t == &ses_task_zero_shot;
    ses_json_member_object(json, "parameters");
    ses_json_member_array(json, "anyOf");
    if (!required && !labels) put_null(json);
    ses_json_begin_object(json);
    ses_json_member_string(json, "type", "object");
    ses_json_member_string(json, "description",
                           "options of the command of this name; options with text values are not listed");
    put_nulls_only(json);
    if (labels) ses_json_member_list(json, "required", "candidate_labels");
    ses_json_member_object(json, "properties");
    if (labels) {
        ses_json_put_key(json, "candidate_labels");
        ses_json_begin_object(json);
        ses_json_member_array(json, "anyOf");
        put_list(x, true, true);
        ses_json_begin_object(json); /* separated by commas */
        ses_json_member_string(json, "type", "string");
        ses_json_member_string(json, "pattern", "[^,\\s]");
        ses_json_end_object(json);
        ses_json_end_array(json);
        ses_json_end_object(json);
    }
    if (t->generates) {
        ses_json_member_object(json, "max_new_tokens");
        ses_json_member_list(json, "type", "integer, null");
        ses_json_member_int(json, "minimum", 1);
        ses_json_member_int(json, "maximum", x->o->max_new_tokens);
        ses_json_end_object(json);
    }
    if (t == &ses_task_embed) put_embed_parameters(x, m);
    put_properties(json, m, t->opt, t->n_opt, listed_options(t));
    ses_json_end_object(json);
    ses_json_end_object(json);
    ses_json_end_array(json);
    ses_json_end_object(json);
}

/* "anyOf" with a constant list of schemas. */
static void put_rule(ses_json_writer *json, const char *rule)
{
    ses_json_doc *doc = ses_json_parse(rule, strlen(rule), NULL);
    ses_json_put_key(json, "anyOf");
    ses_json_put_value(json, ses_json_root(doc));
    ses_json_free(doc);
}

/* A stream has one input. */
static void put_stream_rule(ses_json_writer *json)
{
    static const char rule[] = "[{\"properties\":{\"stream\":{\"enum\":[null,false]}}},"
                               "{\"properties\":{\"inputs\":{\"type\":[\"string\",\"object\"]}}}]";
    put_rule(json, rule);
}

void ses_task_schema_put(const ses_schema_context *x, ses_served_model *m, const ses_task_entry *t,
                         bool with_parameters)
{
    ses_json_writer *json = x->json;
    if (m->is_sentence_encoder && t->task == &ses_task_feature_extraction) t = ses_task_find("embed");
    ses_string mask = t->task == &ses_task_fill_mask ? mask_of(m) : (ses_string){ 0 };
    bool parameters = with_parameters || t->task == &ses_task_zero_shot;
    ses_json_begin_object(json);
    ses_json_member_string(json, "type", "object");
    ses_json_member_list(json, "required", parameters ? "inputs, parameters" : "inputs");
    ses_json_member_object(json, "properties");
    put_inputs(x, m, t->task, mask.p ? &mask : NULL);
    put_parameters(x, m, t->task, with_parameters);
    ses_json_member_object(json, "stream");
    ses_json_member_array(json, "enum");
    ses_json_put_null(json);
    ses_json_put_bool(json, false);
    ses_json_put_bool(json, true);
    ses_json_end_array(json);
    ses_json_end_object(json);
    ses_json_end_object(json);
    if (t->task->generates) put_stream_rule(json);
    ses_json_end_object(json);
}

/* ---- analyses ---- */

/* The analysis can explain what the model predicts with nothing but a text. */
static bool explains(const ses_served_model *m, const ses_analysis_entry *a)
{
    static const char *const explained[] = { "text-classification", "token-classification", "text-generation",
                                             "fill-mask" };
    bool lens = a->analysis == &ses_analysis_lens;
    for (size_t i = lens ? 2 : 0; m->model && m->own_task && i < SES_LEN(explained); i++)
        if (!strcmp(m->own_task->name, explained[i])) return true;
    return false;
}

/* Numbers of layers, separated by commas. */
static void put_layers(ses_json_writer *json, int64_t last)
{
    ses_buf one = { 0 }, all = { 0 };
    for (int64_t i = 0; i <= last; i++) ses_buf_appendf(&one, "%s%lld", i ? "|" : "", (long long)i);
    ses_buf_appendf(&all, "^(%s)(,(%s))*$", one.data, one.data);
    ses_json_member_object(json, "layers");
    ses_json_member_list(json, "type", "string, null");
    ses_json_member_string(json, "pattern", all.data);
    ses_json_end_object(json);
    ses_buf_free(&one);
    ses_buf_free(&all);
}

/* explain reads "layers" with two of its methods only. */
static void put_layers_rule(ses_json_writer *json)
{
    static const char rule[] =
        "[{\"properties\":{\"layers\":{\"type\":\"null\"}}},{\"required\":[\"parameters\"],\"properties\":{"
        "\"parameters\":{\"type\":\"object\",\"required\":[\"method\"],\"properties\":{\"method\":{\"enum\":["
        "\"value-zero\",\"value-zero-score\"]}}}}}]";
    put_rule(json, rule);
}

static void put_analysis(const ses_schema_context *x, ses_served_model *m, const ses_analysis_entry *a,
                         bool by_default)
{
    static const char options[] = "method|unit|occlude|baseline|all";
    ses_json_writer *json = x->json;
    const ses_analysis *k = a->analysis;
    ses_string mask = mask_of(m);
    void *args = ses_alloc(k->args_size ? k->args_size : 1, NULL);
    ses_json_begin_object(json);
    ses_json_member_list(json, "required", by_default ? "analysis" : "analysis, model");
    ses_json_member_object(json, "properties");
    ses_json_member_object(json, "model");
    ses_json_member_array(json, "enum");
    if (by_default) ses_json_put_null(json), ses_json_put_string(json, "");
    ses_json_put_string(json, m->name);
    ses_json_end_array(json);
    ses_json_end_object(json);
    ses_json_member_object(json, "analysis");
    ses_json_member_string(json, "const", a->name);
    ses_json_end_object(json);
    ses_json_put_key(json, "inputs");
    put_text(json, true, !strcmp(m->own_task->name, "fill-mask") ? &mask : NULL);
    if (args) put_layers(json, ses_analysis_last_layer(k, args, m->model));
    ses_json_member_object(json, "parameters");
    ses_json_member_array(json, "anyOf");
    put_null(json);
    ses_json_begin_object(json);
    ses_json_member_string(json, "type", "object");
    put_nulls_only(json);
    ses_json_member_object(json, "properties");
    put_properties(json, m, k->opt, k->n_opt, options);
    ses_json_end_object(json);
    ses_json_end_object(json);
    ses_json_end_array(json);
    ses_json_end_object(json);
    ses_json_end_object(json);
    if (k == &ses_analysis_explain) put_layers_rule(json);
    ses_json_end_object(json);
    ses_free(args);
}

void ses_analysis_schema_put(const ses_schema_context *x)
{
    ses_json_member_object(x->json, "Models-analyze");
    if (x->names_models) {
        ses_json_member_array(x->json, "anyOf");
        for (size_t i = 0; i < x->n; i++)
            for (const ses_analysis_entry *a = ses_analysis_entries(); a->name; a++)
                if (a->analysis->takes_text && explains(x->model[i], a)) put_analysis(x, x->model[i], a, !i);
        ses_json_end_array(x->json);
    }
    ses_json_end_object(x->json);
}
