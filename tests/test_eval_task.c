/* Task files: templates, filters, fields, documents, and the drawing of examples. */
#include "check.h"

#include "base/alloc.h"
#include "tune/eval/eval_prompt.h"

#include <string.h>

#define DATA "tests/fixtures/likelihood/"

/* ---- templates ---- */

/* Column x is "X y.", others are their own name. */
static bool value(void *ctx, ses_string column, ses_buf *out, ses_err *e)
{
    (void)ctx, (void)e;
    if (column.n == 1 && *column.p == 'x')
        ses_buf_puts(out, "X y.");
    else
        ses_buf_append(out, column.p, column.n);
    return true;
}

static void check_template(const char *text, const char *want)
{
    ses_arena mem = { 0 };
    ses_eval_template t;
    ses_err e = { 0 };
    ses_buf out = { 0 };
    ses_buf_puts(&out, "");
    bool ok = ses_eval_template_parse(&t, (ses_string){ text, strlen(text) }, &mem, &e) &&
              ses_eval_template_fill(&t, value, NULL, &out, &e);
    if (CHECK_MSG(ok, "%s: %s", text, e.msg)) CHECK_STR(out.data, want);
    ses_buf_free(&out);
    ses_arena_free(&mem);
}

static void refuse_template(const char *text, const char *message)
{
    ses_arena mem = { 0 };
    ses_eval_template t;
    ses_err e = { 0 };
    bool ok = ses_eval_template_parse(&t, (ses_string){ text, strlen(text) }, &mem, &e);
    CHECK_MSG(!ok && strstr(e.msg, message), "%s: %s", text, e.msg);
    ses_arena_free(&mem);
}

static void test_templates(void)
{
    check_template("", "");
    check_template("a {x} b{x}", "a X y. bX y.");
    check_template("{{x}}{{ x }}{ x }", "X y.X y.X y.");
    check_template("\\{x\\} } \\n{#1 b}", "{x} } \\n#1 b");
    check_template("{x|lower}", "x y.");
    check_template("{x|lower_first|without_end}", "x y");
    check_template("{ a b |upper_first}", "A b");
    check_template("{x|last_word}|{x|without_last_word}|{y|last_word}|{y|without_last_word}", "y.|X|y|");
    check_template("{ \\newlinea\\new |newlines}", "\na\\new");
    refuse_template("a {x", "\"{\" at byte 2 has no \"}\"");
    refuse_template("{{x}", "has no \"}\"");
    refuse_template("{}", "expected the name of a column");
    refuse_template("{x|trim}", "{x}: unknown filter \"trim\"");
    refuse_template("{x|lower|lower|lower|lower|lower}", "more than 4 filters");
}

/* The harness's wikitext_detokenizer gives this text. */
static void test_wikitext(void)
{
    static const char in[] =
        " = Robert <unk> = \n \n The boys ' \" fine \" guest @-@ starring role ( in 2 @,@ 000 ) , 1 @.@ 5 "
        "\xC2\xB0 "
        "C [ a ] { b } ; it 's so : a ' b ' ! N ? yes . \n = = Head = = \n = = = Sub = = = \n";
    static const char want[] =
        " = Robert <unk> =\n\nThe boys'\"fine\" guest-starring role (in 2,000), 1.5\xC2\xB0"
        "C [a] {b}; it's so: a 'b'! N? yes.\n== Head ==\n=== Sub ===\n";
    ses_err e = { 0 };
    ses_buf out = { 0 };
    const ses_eval_filter *f = ses_eval_filter_find((ses_string){ "wikitext", 8 }, &e);
    if (CHECK(f && f->run((ses_string){ in, sizeof in - 1 }, &out))) CHECK_STR(out.data, want);
    ses_buf_free(&out);
}

/* ---- fields ---- */

#define CHOICE "\"task\": \"t\", \"output_type\": \"multiple_choice\", \"doc_to_text\": \"a\", "

static ses_eval_task *parse(const char *text, ses_err *e)
{
    ses_json_doc *doc = ses_json_parse(text, strlen(text), e);
    return CHECK_MSG(doc, "%s", e->msg) ? ses_eval_task_new(doc, e) : NULL;
}

static void refuse(const char *text, const char *message)
{
    ses_err e = { 0 };
    ses_eval_task *t = parse(text, &e);
    CHECK_MSG(!t && strstr(e.msg, message), "%s: %s", text, e.msg);
    ses_eval_task_free(t);
}

static void test_fields(void)
{
    ses_err e = { 0 };
    refuse("[]", "an array, expected an object");
    refuse("{}", "the field \"task\" (or \"name\") is missing; fields are task, output_type, ");
    refuse("{\"task\": \"t\"}", "the field \"output_type\" is missing");
    refuse("{\"task\": \"t\", \"output_type\": \"choice\"}",
           "unknown output_type \"choice\"; choose one of multiple_choice");
    refuse("{\"task\": \"t\", \"output_type\": \"loglikelihood\"}",
           "the field \"doc_to_text\" (or \"template\") is missing");
    refuse("{" CHOICE "\"doc_to_choice\": [\"a\"]}",
           "the field \"doc_to_target\" (or \"target\") is missing");
    refuse("{" CHOICE "\"doc_to_target\": 0}",
           "the field \"doc_to_choice\" (or \"choices\") is missing, which multiple_choice needs");
    refuse("{" CHOICE "\"doc_to_target\": 0, \"doc_to_choice\": []}", "\"doc_to_choice\" is empty");
    refuse("{" CHOICE "\"doc_to_target\": 2, \"doc_to_choice\": [\"a\", \"b\"]}",
           "is 2, but there are 2 choices");
    refuse("{" CHOICE "\"doc_to_target\": true, \"doc_to_choice\": [\"a\"]}", "doc_to_target");
    refuse("{\"task\": 3}", "key \"task\" must be a string");
    refuse("{\"tasks\": \"t\"}", "unknown field \"tasks\"");
    refuse("{\"doc_to_text\": \"{a|b}\"}",
           "\"doc_to_text\": {a}: unknown filter \"b\"; choose one of strip, ");
    refuse("{\"metric_list\": [\"accuracy\"]}",
           "\"metric_list\": unknown metric \"accuracy\"; choose one of acc, ");
    refuse("{\"metric_list\": [{}]}", "item 1 has no field \"metric\"");
    refuse("{" CHOICE "\"doc_to_target\": 0, \"doc_to_choice\": [\"a\"], \"metric_list\": [\"perplexity\"]}",
           "perplexity is not a metric of output_type multiple_choice");
    refuse("{\"dataset_kwargs\": {\"format\": \"parquet\"}}",
           "\"dataset_kwargs\": unknown format \"parquet\"");
    refuse("{\"dataset_kwargs\": {\"columns\": []}}", "\"columns\" is empty");
    refuse("{\"doc_values\": {\"a\": \"b\"}}", "{column: {value: text}}");
    refuse("{\"num_fewshot\": -1}", "\"num_fewshot\" is -1, expected 0 to");
    refuse("{\"fewshot_config\": {\"sampler\": \"balanced\"}}", "unknown sampler \"balanced\"");
    refuse("{\"generation_kwargs\": {\"do_sample\": true}}", "only greedy decoding");
    refuse(
        "{\"task\": \"t\", \"output_type\": \"loglikelihood\", \"doc_to_text\": \"\", \"doc_to_target\": 1}",
        "is a number, which only multiple_choice can have");
    ses_eval_task *t = parse("{" CHOICE "\"doc_to_target\": \"{b}\", \"doc_to_choice\": \"{{c.d}}\", "
                             "\"metadata\": {\"x\": [1]}}",
                             &e);
    if (CHECK_MSG(t, "%s", e.msg)) {
        CHECK(t->choice_column.n == 3 && !t->n_choices && t->target_index == -1);
        CHECK(t->metric[SES_EVAL_METRIC_acc] && t->metric[SES_EVAL_METRIC_acc_norm] &&
              !t->metric[SES_EVAL_METRIC_f1]);
        CHECK(t->target_delimiter.n == 1 && t->fewshot_delimiter.n == 2);
    }
    ses_eval_task_free(t);
}

/* Plain names of the harness's fields. */
static void test_plain_names(void)
{
    ses_err e = { 0 };
    ses_eval_task *t =
        parse("{\"name\": \"t\", \"output_type\": \"multiple_choice\", \"template\": \"a {b}\", "
              "\"choices\": [\"no\", \"yes\"], \"target\": 1}",
              &e);
    if (CHECK_MSG(t, "%s", e.msg)) {
        CHECK_STR(t->name, "t");
        CHECK(t->n_choices == 2 && t->target_index == 1 && t->text.n);
        CHECK_STR(ses_eval_task_field(t, "doc_to_target"), "target");
        CHECK_STR(ses_eval_task_field(t, "doc_to_count"), "doc_to_count");
    }
    ses_eval_task_free(t);
    refuse("{\"task\": \"t\", \"name\": \"t\"}",
           "\"name\" and \"task\" are the same field: give one of them");
    refuse("{\"doc_to_text\": \"a\", \"template\": \"a\"}",
           "\"template\" and \"doc_to_text\" are the same field");
    refuse("{\"choices\": [\"a\"], \"doc_to_choice\": [\"a\"]}",
           "\"choices\" and \"doc_to_choice\" are the same field");
    refuse("{\"target\": 0, \"doc_to_target\": null}", "\"target\" and \"doc_to_target\" are the same field");
    refuse("{" CHOICE "\"target\": 2, \"choices\": [\"a\", \"b\"]}",
           "\"target\" is 2, but there are 2 choices");
    refuse("{" CHOICE "\"target\": 2, \"choices\": []}", "\"choices\" is empty");
}

/* ---- documents ---- */

static void test_documents(void)
{
    ses_err e = { 0 };
    ses_docs_options text = { .format = SES_DOCS_TEXT };
    ses_docs *d = ses_docs_open(DATA "words.txt", &text, 0, &e);
    if (CHECK_MSG(d, "%s", e.msg)) {
        CHECK(d->n == 3 && d->n_columns == 1 && d->doc[2].line == 3);
        CHECK_STR(d->doc[2].field[0].p, "a red fox ran");
        CHECK(!ses_docs_check_column(d, (ses_string){ "label", 5 }, &e) &&
              strstr(e.msg, "its columns are text"));
    }
    ses_docs_free(d);
    e = (ses_err){ 0 };
    text.unit = SES_DOCS_FILE;
    d = ses_docs_open(DATA "words.txt", &text, 0, &e);
    CHECK(d && d->n == 1 && d->doc[0].field[0].n == 85);
    ses_docs_free(d);
    ses_docs_options table = { 0 };
    d = ses_docs_open(DATA "choice.tsv", &table, 2, &e);
    ses_buf b = { 0 };
    CHECK(d && d->n == 2 && d->n_columns == 5 && ses_docs_value(d, 1, (ses_string){ "2", 1 }, &b, &e));
    CHECK_STR(b.data, "by the fire");
    ses_docs_free(d);
    d = ses_docs_open(DATA "texts.jsonl", &table, 0, &e);
    CHECK(d && d->n == 4 && !ses_docs_value(d, 1, (ses_string){ "a.b", 3 }, &b, &e) &&
          strstr(e.msg, "line 2: {a.b}"));
    ses_docs_free(d);
    ses_buf_free(&b);
}

/* ---- examples ---- */

static bool draws_differ(const size_t *k, size_t n, size_t own)
{
    for (size_t i = 0; i < n; i++) {
        if (k[i] == own) return false;
        for (size_t j = 0; j < i; j++)
            if (k[i] == k[j]) return false;
    }
    return true;
}

static void test_examples(void)
{
    ses_err e = { 0 };
    ses_eval_task *t = ses_eval_task_open(DATA "choice.json", &e);
    if (!CHECK_MSG(t, "%s", e.msg)) return;
    ses_prompts p;
    ses_prompt_options o = { .file = DATA "choice.tsv", .fewshot = DATA "choice.tsv", .shots = 4, .seed = 7 };
    t->sampler = SES_SAMPLER_DEFAULT;
    size_t seen[2][7][4], other = 0;
    for (int round = 0; round < 2; round++) {
        o.limit = round ? 3 : 0;
        if (!CHECK_MSG(ses_prompts_open(&p, t, &o, &e), "%s", e.msg)) break;
        CHECK(p.n == (round ? 3 : 7) && p.pool == p.docs);
        for (size_t i = 0; i < p.n; i++) {
            const size_t *k = ses_prompts_draw(&p, i, &e);
            if (CHECK(k && draws_differ(k, 4, i))) memcpy(seen[round][i], k, sizeof seen[0][0]);
            if (round)
                CHECK(!memcmp(seen[0][i], seen[1][i], sizeof seen[0][0])); /* --limit changes nothing */
        }
        ses_prompts_free(&p);
    }
    o.seed = 8, o.limit = 0;
    CHECK(ses_prompts_open(&p, t, &o, &e));
    for (size_t i = 0; i < 7; i++) {
        const size_t *k = ses_prompts_draw(&p, i, &e);
        other += k && memcmp(seen[0][i], k, sizeof seen[0][0]) != 0;
    }
    CHECK(other > 3);
    ses_prompts_free(&p);
    o.shots = 6; /* all others */
    CHECK(ses_prompts_open(&p, t, &o, &e) && ses_prompts_draw(&p, 0, &e));
    ses_prompts_free(&p);
    o.shots = 7;
    CHECK(!ses_prompts_open(&p, t, &o, &e) &&
          strstr(e.msg, "7 examples were requested, but there are only 6"));
    ses_prompts_free(&p);
    ses_eval_task_free(t);
}

/* The context of a document with examples, word for word. */
static void test_context(void)
{
    ses_err e = { 0 };
    ses_eval_task *t = ses_eval_task_open(DATA "choice.json", &e);
    ses_prompts p;
    ses_buf b = { 0 };
    ses_prompt_options o = { .file = DATA "choice.tsv", .shots = 2 };
    if (CHECK_MSG(t && ses_prompts_open(&p, t, &o, &e) && ses_prompts_context(&p, 2, &b, &e), "%s", e.msg))
        CHECK_STR(b.data, "a test: the dog had a bone and ate it. the hen hid. the fox said ");
    ses_buf_free(&b);
    ses_prompts_free(&p);
    ses_eval_task_free(t);
}

int main(void)
{
    test_templates();
    test_wikitext();
    test_fields();
    test_plain_names();
    test_documents();
    test_examples();
    test_context();
    return check_report();
}
