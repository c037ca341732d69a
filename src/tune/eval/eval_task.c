/* Task files: see eval_task.h. A table lists the fields of each object, with a function that reads each. */
#include "eval_task.h"

#include "base/alloc.h"
#include "base/json/json_helpers.h"
#include "base/suggest.h"
#include "sesame/pipeline.h"

#include <string.h>

enum { MAX_FILE = 16 << 20, MAX_GEN_TOKS = 256, MAX_SHOTS = 100000 };

const char *const ses_eval_metric_name[SES_EVAL_METRICS] = {
#define SES_EVAL_METRIC(name, outputs, lower) #name,
#include "eval_metrics.def"
#undef SES_EVAL_METRIC
};

static const int metric_outputs[SES_EVAL_METRICS] = {
#define SES_EVAL_METRIC(name, outputs, lower) outputs,
#include "eval_metrics.def"
#undef SES_EVAL_METRIC
};

static const char *const output_names[] = { "multiple_choice", "loglikelihood", "loglikelihood_rolling",
                                            "generate_until" };

/* ---- values of fields ---- */

/* A field of an object: reads its value v into a part of the task. */
typedef bool read_fn(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e);

typedef struct field {
    const char *key;
    read_fn *read;
    const char *plain; /* another name of the field, NULL: none; key is the evaluation harness's */
} field;

typedef struct field_list {
    const field *item;
    size_t n;
} field_list;

static const char *field_name(const void *ctx, size_t i)
{
    const field_list *l = ctx;
    return i < l->n ? l->item[i].key : NULL;
}

static bool is_field(const field *f, const char *key, size_t len)
{
    return ses_equal(key, len, f->key) || (f->plain && ses_equal(key, len, f->plain));
}

/* Reads the members of an object by a table; "" and NULL values are the field's matter. */
static bool read_fields(ses_eval_task *t, const ses_json *object, const field *item, size_t n, ses_err *e)
{
    const field_list list = { item, n };
    for (size_t i = 0; i < ses_json_len(object); i++) {
        size_t len, k = 0;
        const char *key = ses_json_key(object, i, &len);
        while (k < n && !is_field(&item[k], key, len)) k++;
        if (k == n)
            return ses_fail_unknown(e, SES_EFORMAT, "field", (ses_string){ key, len }, field_name, &list);
        if (item[k].plain && ses_json_get(object, item[k].plain) && ses_json_get(object, item[k].key))
            return ses_fail(e, SES_EFORMAT, "\"%s\" and \"%s\" are the same field: give one of them",
                            item[k].plain, item[k].key);
        if (!item[k].read(t, key, ses_json_at(object, i), e)) return false;
    }
    return true;
}

static bool is_null(const ses_json *v) { return ses_json_type_of(v) == SES_JSON_NULL; }

static bool read_text(const char *key, const ses_json *v, ses_string *out, ses_err *e)
{
    out->p = ses_json_string(v, &out->n);
    if (!out->p) return ses_json_wrong_type(key, v, "a string", e);
    return strlen(out->p) == out->n || ses_fail(e, SES_EFORMAT, "\"%s\" contains a NUL", key);
}

static bool read_name(const char *key, const ses_json *v, const char **out, ses_err *e)
{
    ses_string s = { NULL, 0 };
    if (is_null(v)) return *out = NULL, true;
    if (!read_text(key, v, &s, e)) return false;
    *out = s.p;
    return s.n > 0 || ses_fail(e, SES_EFORMAT, "\"%s\" is empty", key);
}

static bool read_template(ses_eval_task *t, const char *key, const ses_json *v, ses_eval_template *out,
                          ses_err *e)
{
    ses_string s;
    return read_text(key, v, &s, e) &&
           (ses_eval_template_parse(out, s, &t->mem, e) || ses_wrap(e, "\"%s\"", key));
}

static bool read_flag(const char *key, const ses_json *v, bool *out, ses_err *e)
{
    return ses_json_bool(v, out) || ses_json_wrong_type(key, v, "true or false", e);
}

static bool read_count(const char *key, const ses_json *v, int64_t min, int64_t max, int64_t *out, ses_err *e)
{
    if (!ses_json_int(v, out)) return ses_json_wrong_type(key, v, "an integer", e);
    return (*out >= min && *out <= max) || ses_fail(e, SES_EFORMAT, "\"%s\" is %lld, expected %lld to %lld",
                                                    key, (long long)*out, (long long)min, (long long)max);
}

typedef struct word_list {
    const char *const *word;
    size_t n;
} word_list;

static const char *word_name(const void *ctx, size_t i)
{
    const word_list *l = ctx;
    return i < l->n ? l->word[i] : NULL;
}

/* Index of a string among n words. */
static bool read_word(const char *key, const ses_json *v, const char *const *word, size_t n, int *out,
                      ses_err *e)
{
    ses_string s;
    const word_list list = { word, n };
    if (!read_text(key, v, &s, e)) return false;
    for (size_t i = 0; i < n; i++)
        if (ses_equal(s.p, s.n, word[i])) return *out = (int)i, true;
    return ses_fail_unknown(e, SES_EFORMAT, key, s, word_name, &list);
}

static bool need_type(const char *key, const ses_json *v, ses_json_type type, const char *expected,
                      ses_err *e)
{
    return ses_json_type_of(v) == type || ses_json_wrong_type(key, v, expected, e);
}

/* Strings of an array, or a single one, in the arena. */
static const char **read_strings(ses_eval_task *t, const char *key, const ses_json *v, size_t *n, ses_err *e)
{
    bool one = ses_json_type_of(v) == SES_JSON_STRING;
    *n = one ? 1 : ses_json_len(v);
    if (!one && !need_type(key, v, SES_JSON_ARRAY, "a string or a list of strings", e)) return NULL;
    const char **list = ses_arena_array(&t->mem, *n + 1, sizeof *list, e);
    for (size_t i = 0; list && i < *n; i++) {
        ses_string s;
        if (!read_text(key, one ? v : ses_json_at(v, i), &s, e)) return NULL;
        list[i] = s.p;
    }
    return list;
}

/* ---- data ---- */

static bool read_format(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    static const char *const name[] = { "auto", "tsv", "csv", "jsonl", "text" };
    return read_word(key, v, name, SES_LEN(name), &t->data.format, e);
}

static bool read_unit(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    static const char *const name[] = { "line", "paragraph", "article", "file" };
    return read_word(key, v, name, SES_LEN(name), &t->data.unit, e);
}

static bool read_header(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    bool header = true, ok = read_flag(key, v, &header, e);
    t->data.no_header = !header;
    return ok;
}

static bool read_quotes(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    bool on = false, ok = read_flag(key, v, &on, e);
    t->data.quotes = on ? SES_QUOTES_ON : SES_QUOTES_OFF;
    return ok;
}

static bool read_columns(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    size_t n;
    const char **name = read_strings(t, key, v, &n, e);
    ses_string *s = name ? ses_arena_array(&t->mem, n + 1, sizeof *s, e) : NULL;
    if (!s) return false;
    for (size_t i = 0; i < n; i++) s[i] = ses_str(name[i]);
    t->data.columns = s, t->data.n_columns = n, t->data.no_header = true;
    return n > 0 || ses_fail(e, SES_EFORMAT, "\"%s\" is empty", key);
}

static bool read_data(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    static const field fields[] = { { "format", read_format },
                                    { "documents", read_unit },
                                    { "header", read_header },
                                    { "quotes", read_quotes },
                                    { "columns", read_columns } };
    return need_type(key, v, SES_JSON_OBJECT, "an object", e) &&
           (read_fields(t, v, fields, SES_LEN(fields), e) || ses_wrap(e, "\"%s\"", key));
}

static bool read_maps(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    if (!need_type(key, v, SES_JSON_OBJECT, "an object", e)) return false;
    t->n_maps = ses_json_len(v);
    t->map = ses_arena_array(&t->mem, t->n_maps + 1, sizeof *t->map, e);
    for (size_t i = 0; t->map && i < t->n_maps; i++) {
        t->map[i].column.p = ses_json_key(v, i, &t->map[i].column.n);
        t->map[i].values = ses_json_at(v, i);
        if (!need_type(key, t->map[i].values, SES_JSON_OBJECT, "objects: {column: {value: text}}", e))
            return false;
        for (size_t k = 0; k < ses_json_len(t->map[i].values); k++)
            if (!need_type(key, ses_json_at(t->map[i].values, k), SES_JSON_STRING, "strings as new values",
                           e))
                return false;
    }
    return t->map != NULL;
}

/* ---- templates ---- */

static bool read_target(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    if (ses_json_type_of(v) == SES_JSON_INT) return read_count(key, v, 0, 1 << 20, &t->target_index, e);
    return read_template(t, key, v, &t->target, e);
}

/* "{column}" or "column" */
static bool read_choice_column(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    ses_string s;
    if (!read_text(key, v, &s, e)) return false;
    while (s.n >= 2 && s.p[0] == '{' && s.p[s.n - 1] == '}') s.p++, s.n -= 2;
    t->choice_column = ses_trim(s);
    return t->choice_column.n > 0 || ses_fail(e, SES_EFORMAT, "\"%s\" is empty", key);
}

static bool read_choices(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    bool labels = ses_json_type_of(v) == SES_JSON_OBJECT;
    if (ses_json_type_of(v) == SES_JSON_STRING) return read_choice_column(t, key, v, e);
    if (!labels && !need_type(key, v, SES_JSON_ARRAY, "a list, an object {label: text} or a column", e))
        return false;
    t->n_choices = ses_json_len(v);
    if (!t->n_choices) return ses_fail(e, SES_EFORMAT, "\"%s\" is empty: expected at least one choice", key);
    t->choice = ses_arena_array(&t->mem, t->n_choices, sizeof *t->choice, e);
    t->label = labels ? ses_arena_array(&t->mem, t->n_choices, sizeof *t->label, e) : NULL;
    if (!t->choice || (labels && !t->label)) return false;
    for (size_t i = 0; i < t->n_choices; i++) {
        if (labels) t->label[i] = ses_json_key(v, i, NULL);
        if (!read_template(t, key, ses_json_at(v, i), &t->choice[i], e)) return false;
    }
    return true;
}

/* ---- examples ---- */

static bool read_sampler(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    static const char *const name[] = { "default", "first_n" };
    return read_word(key, v, name, SES_LEN(name), &t->sampler, e);
}

static bool read_samples(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    if (!need_type(key, v, SES_JSON_ARRAY, "a list of objects", e)) return false;
    for (size_t i = 0; i < ses_json_len(v); i++)
        if (!need_type(key, ses_json_at(v, i), SES_JSON_OBJECT, "a list of objects", e)) return false;
    t->samples = v;
    return ses_json_len(v) > 0 || ses_fail(e, SES_EFORMAT, "\"%s\" is empty", key);
}

static bool read_fewshot_split(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    return read_name(key, v, &t->fewshot_split, e);
}

static bool read_fewshot(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    static const field fields[] = { { "sampler", read_sampler },
                                    { "samples", read_samples },
                                    { "split", read_fewshot_split } };
    return need_type(key, v, SES_JSON_OBJECT, "an object", e) &&
           (read_fields(t, v, fields, SES_LEN(fields), e) || ses_wrap(e, "\"%s\"", key));
}

/* ---- scores ---- */

static bool read_metric(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    int i = 0;
    if (!read_word(key, v, ses_eval_metric_name, SES_EVAL_METRICS, &i, e)) return false;
    return t->metric[i] = true;
}

static bool read_ignore_case(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    return read_flag(key, v, &t->ignore_case, e);
}

static bool read_ignore_punctuation(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    return read_flag(key, v, &t->ignore_punctuation, e);
}

static bool read_ignore_numbers(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    return read_flag(key, v, &t->ignore_numbers, e);
}

static bool read_metrics(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    static const field fields[] = { { "metric", read_metric },
                                    { "ignore_case", read_ignore_case },
                                    { "ignore_punctuation", read_ignore_punctuation },
                                    { "ignore_numbers", read_ignore_numbers } };
    if (!need_type(key, v, SES_JSON_ARRAY, "a list of metrics", e)) return false;
    for (size_t i = 0; i < ses_json_len(v); i++) {
        const ses_json *m = ses_json_at(v, i);
        bool object = ses_json_type_of(m) == SES_JSON_OBJECT;
        if (object && !ses_json_get(m, "metric"))
            return ses_fail(e, SES_EFORMAT, "\"%s\": item %zu has no field \"metric\"", key, i + 1);
        if (!(object ? read_fields(t, m, fields, SES_LEN(fields), e) : read_metric(t, "metric", m, e)))
            return ses_wrap(e, "\"%s\"", key);
    }
    return true;
}

static bool read_filters(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    static const char *const name[] = { "remove_whitespace", "lowercase", "take_first" };
    if (!need_type(key, v, SES_JSON_ARRAY, "a list of filters", e)) return false;
    for (size_t i = 0; i < ses_json_len(v); i++) {
        int which = 0;
        if (!read_word(key, ses_json_at(v, i), name, SES_LEN(name), &which, e)) return false;
        t->remove_whitespace |= which == 0, t->lowercase |= which == 1;
    }
    return true;
}

static bool read_until(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    return (t->until = read_strings(t, key, v, &t->n_until, e)) != NULL;
}

static bool read_max_gen(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    return read_count(key, v, 1, 1 << 20, &t->max_gen_toks, e);
}

/* Only greedy decoding is evaluated. */
static bool read_do_sample(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    bool on = false;
    (void)t;
    return read_flag(key, v, &on, e) &&
           (!on || ses_fail(e, SES_EUNSUPPORTED, "\"%s\": only greedy decoding is supported (false)", key));
}

static bool read_generation(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    static const field fields[] = { { "until", read_until },
                                    { "max_gen_toks", read_max_gen },
                                    { "do_sample", read_do_sample } };
    return need_type(key, v, SES_JSON_OBJECT, "an object", e) &&
           (read_fields(t, v, fields, SES_LEN(fields), e) || ses_wrap(e, "\"%s\"", key));
}

/* ---- the file ---- */

static bool read_task(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    return read_name(key, v, &t->name, e);
}

static bool read_output(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    int i = 0;
    if (!read_word(key, v, output_names, SES_LEN(output_names), &i, e)) return false;
    t->output = (ses_eval_output)(1 << i);
    return true;
}

static bool read_test(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    return read_name(key, v, &t->test_split, e);
}

static bool read_validation(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    return read_name(key, v, &t->validation_split, e);
}

static bool read_training(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    return read_name(key, v, &t->training_split, e);
}

static bool read_description(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    return read_template(t, key, v, &t->description, e);
}

static bool read_doc_text(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    return read_template(t, key, v, &t->text, e);
}

static bool read_doc_count(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    return read_template(t, key, v, &t->count, e);
}

static bool read_target_delimiter(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    return read_text(key, v, &t->target_delimiter, e);
}

static bool read_fewshot_delimiter(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    return read_text(key, v, &t->fewshot_delimiter, e);
}

static bool read_num_fewshot(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    return read_count(key, v, 0, MAX_SHOTS, &t->num_fewshot, e);
}

static bool read_nothing(ses_eval_task *t, const char *key, const ses_json *v, ses_err *e)
{
    (void)t, (void)key, (void)v, (void)e;
    return true;
}

static const field task_fields[] = {
    { "task", read_task, "name" },
    { "output_type", read_output },
    { "test_split", read_test },
    { "validation_split", read_validation },
    { "training_split", read_training },
    { "fewshot_split", read_fewshot_split },
    { "dataset_kwargs", read_data },
    { "doc_values", read_maps },
    { "description", read_description },
    { "doc_to_text", read_doc_text, "template" },
    { "doc_to_target", read_target, "target" },
    { "doc_to_choice", read_choices, "choices" },
    { "doc_to_count", read_doc_count },
    { "target_delimiter", read_target_delimiter },
    { "fewshot_delimiter", read_fewshot_delimiter },
    { "num_fewshot", read_num_fewshot },
    { "fewshot_config", read_fewshot },
    { "metric_list", read_metrics },
    { "filter_list", read_filters },
    { "generation_kwargs", read_generation },
    { "metadata", read_nothing },
};

static const field *field_of(const char *key)
{
    const field *f = task_fields;
    while (strcmp(f->key, key)) f++;
    return f;
}

const char *ses_eval_task_field(const ses_eval_task *t, const char *key)
{
    const field *f = field_of(key);
    return f->plain && ses_json_get(ses_json_root(t->json), f->plain) ? f->plain : key;
}

static bool need_field(const ses_eval_task *t, const char *key, const char *why, ses_err *e)
{
    const field *f = field_of(key);
    const ses_json *v = ses_json_get(ses_json_root(t->json), ses_eval_task_field(t, key));
    if (v && !is_null(v)) return true;
    ses_buf known = { 0 };
    for (size_t i = 0; i < SES_LEN(task_fields); i++)
        ses_buf_appendf(&known, "%s%s", i ? ", " : "", task_fields[i].key);
    ses_fail(e, SES_EFORMAT, "the field \"%s\"%s%s%s is missing%s; fields are %s", key,
             f->plain ? " (or \"" : "", f->plain ? f->plain : "", f->plain ? "\")" : "", why,
             known.len ? known.data : "");
    ses_buf_free(&known);
    return false;
}

/* A metric of the output type; without any: its defaults. */
static bool check_metrics(ses_eval_task *t, ses_err *e)
{
    bool any = false;
    for (int i = 0; i < SES_EVAL_METRICS; i++) {
        any |= t->metric[i];
        if (!t->metric[i] || metric_outputs[i] & (int)t->output) continue;
        int k = 0;
        while (1 << k != (int)t->output) k++;
        return ses_fail(e, SES_EFORMAT, "\"metric_list\": %s is not a metric of output_type %s",
                        ses_eval_metric_name[i], output_names[k]);
    }
    if (any) return true;
    t->metric[SES_EVAL_METRIC_acc] = t->metric[SES_EVAL_METRIC_acc_norm] = t->output == SES_EVAL_CHOICE;
    if (t->output == SES_EVAL_CONTINUATION)
        t->metric[SES_EVAL_METRIC_acc] = t->metric[SES_EVAL_METRIC_perplexity] = true;
    for (int i = 0; t->output == SES_EVAL_ROLLING && i < SES_EVAL_METRICS; i++)
        t->metric[i] = metric_outputs[i] & SES_EVAL_ROLLING;
    if (t->output == SES_EVAL_GENERATION) t->metric[SES_EVAL_METRIC_exact_match] = true;
    return true;
}

static bool check_task(ses_eval_task *t, ses_err *e)
{
    const char *target = ses_eval_task_field(t, "doc_to_target");
    bool choice = t->output == SES_EVAL_CHOICE, rolling = t->output == SES_EVAL_ROLLING;
    if (!need_field(t, "task", "", e) || !need_field(t, "output_type", "", e) ||
        (!rolling && !need_field(t, "doc_to_text", "", e)) || !need_field(t, "doc_to_target", "", e) ||
        (choice && !need_field(t, "doc_to_choice", ", which multiple_choice needs", e)))
        return false;
    if (!choice && t->target_index >= 0)
        return ses_fail(e, SES_EFORMAT, "\"%s\" is a number, which only multiple_choice can have", target);
    if (!choice && (t->n_choices || t->choice_column.n))
        return ses_fail(e, SES_EFORMAT, "\"%s\" needs \"output_type\": \"multiple_choice\"",
                        ses_eval_task_field(t, "doc_to_choice"));
    if (t->target_index >= 0 && t->n_choices && t->target_index >= (int64_t)t->n_choices)
        return ses_fail(e, SES_EFORMAT, "\"%s\" is %lld, but there are %zu choices, from 0 on", target,
                        (long long)t->target_index, t->n_choices);
    if (t->output == SES_EVAL_GENERATION && !t->until) {
        t->until = ses_arena_array(&t->mem, 1, sizeof *t->until, e);
        if (!t->until) return false;
        t->until[0] = t->fewshot_delimiter.p, t->n_until = t->fewshot_delimiter.n > 0;
    }
    return check_metrics(t, e);
}

ses_eval_task *ses_eval_task_new(ses_json_doc *json, ses_err *e)
{
    ses_eval_task *t = ses_alloc(sizeof *t, e);
    const ses_json *root = ses_json_root(json);
    if (!t) {
        ses_json_free(json);
        return NULL;
    }
    *t = (ses_eval_task){ .json = json,
                          .target_index = -1,
                          .target_delimiter = ses_str(" "),
                          .fewshot_delimiter = ses_str("\n\n"),
                          .max_gen_toks = MAX_GEN_TOKS };
    bool ok =
        ses_json_type_of(root) == SES_JSON_OBJECT ||
        ses_fail(e, SES_EFORMAT, "%s, expected an object {...}", ses_json_type_name(ses_json_type_of(root)));
    if (ok && read_fields(t, root, task_fields, SES_LEN(task_fields), e) && check_task(t, e)) return t;
    ses_eval_task_free(t);
    return NULL;
}

ses_eval_task *ses_eval_task_open(const char *path, ses_err *e)
{
    ses_json_doc *json = ses_json_load(path, MAX_FILE, e);
    ses_eval_task *t = json ? ses_eval_task_new(json, e) : NULL;
    if (json && !t) ses_wrap(e, "%s", path);
    return t;
}

void ses_eval_task_free(ses_eval_task *t)
{
    if (!t) return;
    ses_json_free(t->json);
    ses_arena_free(&t->mem);
    ses_free(t);
}
