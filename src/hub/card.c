/* Reads model cards. */
#include "card.h"

#include "base/alloc.h"
#include "base/file.h"
#include "folder/model_folder.h"
#include "front_matter.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { CONFIG_MAX = 16 << 20 };

void ses_card_free(ses_card *c)
{
    ses_json_free(c->meta);
    ses_free(c->text);
    *c = (ses_card){ 0 };
}

bool ses_card_parse(ses_card *c, const char *text, size_t n, ses_err *e)
{
    ses_err bad = { 0 };
    *c = (ses_card){ .text = ses_strndup(text, n, &bad), .n = n };
    if (c->text) c->meta = ses_front_matter_parse(c->text, n, &c->body, &bad);
    if (!bad.code) return true;
    ses_card_free(c);
    return ses_fail(e, bad.code, "%s", bad.msg);
}

bool ses_card_load(ses_card *c, const char *dir, bool *found, ses_err *e)
{
    size_t n = 0;
    *c = (ses_card){ 0 };
    char *path = ses_path_join(dir, "README.md", e), *text = NULL;
    *found = path && ses_path_exists(path);
    bool ok = path != NULL;
    if (*found) {
        text = ses_file_read(path, SES_CARD_MAX, &n, e);
        ok = text && (ses_card_parse(c, text, n, e) || ses_wrap(e, "%s", path));
    }
    ses_free(text);
    ses_free(path);
    return ok;
}

/* ---- fields ---- */

static const ses_json *field(const ses_card *c, const char *key)
{
    return ses_json_get(ses_json_root(c->meta), key);
}

const char *ses_card_field(const ses_card *c, const char *key)
{
    const ses_json *v = field(c, key);
    return ses_json_string(ses_json_type_of(v) == SES_JSON_ARRAY ? ses_json_at(v, 0) : v, NULL);
}

bool ses_card_has(const ses_card *c, const char *key, const char *word)
{
    const ses_json *v = field(c, key);
    const char *s = ses_json_string(v, NULL);
    if (s) return !strcasecmp(s, word);
    for (size_t i = 0; ses_json_type_of(v) == SES_JSON_ARRAY && i < ses_json_len(v); i++)
        if ((s = ses_json_string(ses_json_at(v, i), NULL)) && !strcasecmp(s, word)) return true;
    return false;
}

void ses_card_put_list(const ses_card *c, const char *key, ses_buf *out)
{
    const ses_json *v = field(c, key);
    const char *s = ses_json_string(v, NULL);
    if (s) ses_buf_puts(out, s);
    for (size_t i = 0, n = 0; ses_json_type_of(v) == SES_JSON_ARRAY && i < ses_json_len(v); i++)
        if ((s = ses_json_string(ses_json_at(v, i), NULL))) ses_buf_appendf(out, "%s%s", n++ ? ", " : "", s);
}

/* ---- tasks ---- */

static const struct {
    const char *part, *task;
} classes[] = {
    { "ForMaskedLM", "fill-mask" },
    { "ForPreTraining", "fill-mask" },
    { "ForSequenceClassification", "text-classification" },
    { "ForTokenClassification", "token-classification" },
    { "ForQuestionAnswering", "question-answering" },
    { "ForMultipleChoice", "multiple-choice" },
    { "ForConditionalGeneration", "text2text-generation" },
    { "MTModel", "text2text-generation" },
    { "ForCausalLM", "text-generation" },
    { "LMHeadModel", "text-generation" },
    { "WithLMHead", "fill-mask" },
};

/* Sesame's names of tasks, and the hub's. */
static const struct {
    const char *name, *task[3];
} names[] = {
    { "ner", { "token-classification" } },
    { "sentiment-analysis", { "text-classification" } },
    { "embed", { "sentence-similarity", "feature-extraction" } },
    { "similarity", { "sentence-similarity" } },
    { "rerank", { "text-ranking" } },
    { "features", { "feature-extraction" } },
};

static const char *task_of_config(const char *dir)
{
    const char *task = NULL;
    char *path = ses_path_join(dir, "config.json", NULL);
    ses_json_doc *d = path ? ses_json_load_object(path, CONFIG_MAX, NULL) : NULL;
    const char *class =
        ses_json_string(ses_json_at(ses_json_get(ses_json_root(d), "architectures"), 0), NULL);
    for (size_t i = 0; class && !task && i < SES_LEN(classes); i++)
        if (strstr(class, classes[i].part)) task = classes[i].task;
    ses_json_free(d);
    ses_free(path);
    return task;
}

const char *ses_card_task(const ses_card *c, const char *dir)
{
    const char *tag = ses_card_field(c, "pipeline_tag");
    if (tag) return tag;
    if (ses_folder_has(dir, "modules.json")) return "sentence-similarity";
    return task_of_config(dir);
}

bool ses_card_is_for(const ses_card *c, const char *task, const char *wanted)
{
    if ((task && !strcasecmp(task, wanted)) || ses_card_has(c, "tags", wanted)) return true;
    for (size_t i = 0; i < SES_LEN(names); i++)
        for (size_t k = 0; !strcasecmp(wanted, names[i].name) && names[i].task[k]; k++)
            if (task && !strcasecmp(task, names[i].task[k])) return true;
    return false;
}

/* ---- writing ---- */

bool ses_card_list_own_forms(const char *dir, ses_buf *out, ses_err *e)
{
    static const char *const keys[] = { "pruned_heads", "sesame_ffn_widths", "sesame_low_rank" };
    char *path = ses_path_join(dir, "config.json", e);
    bool there = path && ses_path_exists(path), ok = path != NULL;
    ses_json_doc *doc = there ? ses_json_load_object(path, 16 << 20, e) : NULL;
    ses_free(path);
    if (!doc) return ok && !there;
    const ses_json *c = ses_json_root(doc), *quant = ses_json_get(c, "quantization_config");
    const char *method = ses_json_string(ses_json_get(quant, "quant_method"), NULL);
    if (method && !strcmp(method, "sesame-int8")) ses_buf_puts(out, "`model.sesame-int8`");
    for (size_t i = 0; i < SES_LEN(keys); i++)
        if (ses_json_len(ses_json_get(c, keys[i])))
            ses_buf_appendf(out, "%s`%s` in config.json", out->len ? ", " : "", keys[i]);
    ses_json_free(doc);
    return ses_buf_ok(out, e);
}

void ses_card_put_usage(const char *task, const char *model, ses_buf *b)
{
    static const struct {
        const char *task, *command, *operands;
    } uses[] = {
        { "fill-mask", "fill-mask", "'The capital of France is [MASK].'" },
        { "text-classification", "text-classification", "'some text'" },
        { "token-classification", "token-classification", "'some text'" },
        { "question-answering", "question-answering", "'some question' 'some passage'" },
        { "multiple-choice", "multiple-choice", "'a prompt' 'one choice' 'another'" },
        { "zero-shot-classification", "zero-shot-classification",
          "--candidate-labels sports,business 'some text'" },
        { "text-generation", "text-generation", "'a prompt'" },
        { "text2text-generation", "text2text-generation", "'some text'" },
        { "summarization", "summarization", "'some text'" },
        { "translation", "translation", "'some text'" },
        { "sentence-similarity", "similarity", "'some text' 'another text'" },
        { "feature-extraction", "embed", "'some text'" },
        { "text-ranking", "rerank", "'some query' 'some text' 'another text'" },
    };
    for (size_t i = 0; task && i < SES_LEN(uses); i++)
        if (!strcmp(task, uses[i].task)) {
            ses_buf_appendf(b, "sesame %s --model %s %s", uses[i].command, model, uses[i].operands);
            return;
        }
    ses_buf_appendf(b, "sesame info %s", model);
}

void ses_card_put_yaml(ses_buf *b, const char *s)
{
    ses_buf_put(b, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') ses_buf_put(b, '\\');
        ses_buf_put(b, (unsigned char)*s < 0x20 || *s == 0x7F ? ' ' : *s);
    }
    ses_buf_put(b, '"');
}

void ses_card_put_cell(ses_buf *b, const char *s)
{
    for (; *s; s++) {
        if (*s == '<')
            ses_buf_puts(b, "&lt;");
        else if (strchr("|`*_[]\\", *s))
            ses_buf_appendf(b, "\\%c", *s);
        else
            ses_buf_put(b, (unsigned char)*s < 0x20 || *s == 0x7F ? ' ' : *s);
    }
}
