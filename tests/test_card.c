/* Model cards: front matter, fields, checks. */
#include "base/alloc.h"
#include "base/json/json_helpers.h"
#include "check.h"
#include "hub/card.h"
#include "hub/front_matter.h"

#include <string.h>

/* The front matter between fences as JSON on one line. */
static void is(const char *yaml, const char *json)
{
    ses_buf text = { 0 };
    ses_err e = { 0 };
    size_t body = 0;
    ses_buf_appendf(&text, "---\n%s---\nbody", yaml);
    ses_json_doc *d = ses_front_matter_parse(text.data, text.len, &body, &e);
    ses_json_writer *w = ses_json_writer_new(-1, NULL);
    if (d) ses_json_put_value(w, ses_json_root(d));
    const char *got = d ? ses_json_writer_text(w, NULL, NULL) : e.msg;
    CHECK_MSG(d && !strcmp(got, json), "%s\n  got  %s\n  want %s", yaml, got, json);
    CHECK(!d || !strcmp(text.data + body, "body"));
    ses_json_writer_free(w);
    ses_json_free(d);
    ses_buf_free(&text);
}

static void fails(const char *text, const char *message)
{
    ses_err e = { 0 };
    size_t body;
    ses_json_doc *d = ses_front_matter_parse(text, strlen(text), &body, &e);
    CHECK_MSG(!d && e.code == SES_EFORMAT && strstr(e.msg, message), "%s: %s", text, e.msg);
    ses_json_free(d);
}

static void test_front_matter(void)
{
    is("", "{}");
    is("# comment\n\n", "{}");
    is("license: mit\n", "{\"license\":\"mit\"}");
    is("license: mit # why\r\n", "{\"license\":\"mit\"}");
    is("a: 'it''s'\nb: \"x \\\"y\\\"\\n\"\n", "{\"a\":\"it's\",\"b\":\"x \\\"y\\\"\\n\"}");
    is("a: no\nb: 1.5\nc: true\n", "{\"a\":\"no\",\"b\":\"1.5\",\"c\":\"true\"}");
    is("a:\nb: ~\nc: null\n", "{\"a\":null,\"b\":null,\"c\":null}");
    is("tags:\n- a\n- b\n", "{\"tags\":[\"a\",\"b\"]}");
    is("tags:\n  - a\n  - b: c\n    d: e\nx: y\n",
       "{\"tags\":[\"a\",{\"b\":\"c\",\"d\":\"e\"}],\"x\":\"y\"}");
    is("tags: [a, 'b, c', [d]]\nm: {x: 1, \"y z\": [2]}\n",
       "{\"tags\":[\"a\",\"b, c\",[\"d\"]],\"m\":{\"x\":\"1\",\"y z\":[\"2\"]}}");
    is("tags: []\nm: {}\n", "{\"tags\":[],\"m\":{}}");
    is("url: https://x.org/a#b\n", "{\"url\":\"https://x.org/a#b\"}");
    is("text: |\n  one\n    two\n\n  three\nnext: x\n",
       "{\"text\":\"one\\n  two\\n\\nthree\",\"next\":\"x\"}");
    is("text: >-\n  one\n  two\nnext: x\n", "{\"text\":\"one two\",\"next\":\"x\"}");
    is("a: one\n  two\n  three\nb: x\n", "{\"a\":\"one two three\",\"b\":\"x\"}");
    is("l: [a,\n  b]\n", "{\"l\":[\"a\",\"b\"]}");
    is("\"quoted key\": 1\n'b': 2\n", "{\"quoted key\":\"1\",\"b\":\"2\"}");
    is("x:\n- - a\n  - b\n- c\n", "{\"x\":[[\"a\",\"b\"],\"c\"]}");
    is("model-index:\n- name: t\n  results:\n  - task:\n      type: x\n    metrics:\n    - type: f1\n      "
       "value: 0.5\n",
       "{\"model-index\":[{\"name\":\"t\",\"results\":[{\"task\":{\"type\":\"x\"},\"metrics\":[{\"type\":"
       "\"f1\",\"value\":\"0.5\"}]}]}]}");
    is("widget:\n- text: \"a: b\"\n  example_title: c\n-\n  text: d\n",
       "{\"widget\":[{\"text\":\"a: b\",\"example_title\":\"c\"},{\"text\":\"d\"}]}");
    size_t body;
    ses_err e = { 0 };
    CHECK(!ses_front_matter_parse("# Title\n", 8, &body, &e) && !e.code && body == 0);
    CHECK(!ses_front_matter_parse("", 0, &body, &e) && !e.code);
    fails("---\na: b\n", "at its end is missing");
    fails("---\n- a\n---\n", "line 2: KEY: VALUE expected");
    fails("---\njust text\n---\n", "line 2: KEY: VALUE expected");
    fails("---\na: b\na: c\n---\n", "a");
    fails("---\n\ta: b\n---\n", "line 2: a tab");
    fails("---\na: *x\n---\n", "line 2: anchors");
    fails("---\na: \"b\n---\n", "line 2: a quote does not end");
    fails("---\na: [b\n---\n", "line 2: ',' or ']' expected");
    fails("---\na: {b}\n---\n", "line 2: ':' expected");
    fails("---\na: b\n   c: d\n  e: f\n---\n", "line 3: wrong indentation");
    fails("---\na: \xFF\n---\n", "UTF-8");
    char deep[400] = "---\na: ";
    for (int i = 0; i < 100; i++) strncat(deep, "[", sizeof deep - strlen(deep) - 1);
    strncat(deep, "\n---\n", sizeof deep - strlen(deep) - 1);
    fails(deep, "more than 16 levels");
}

/* ---- checks ---- */

static bool collect(void *ctx, ses_card_level level, const char *what)
{
    ses_buf_appendf(ctx, "%s %s\n", level == SES_CARD_ERROR ? "error" : "hint", what);
    return true;
}

static void reports(const char *meta, const char *part, bool expected)
{
    ses_buf text = { 0 }, got = { 0 };
    ses_card c;
    ses_err e = { 0 };
    ses_buf_appendf(&text, "---\n%s---\n# A\n\ntext\n", meta);
    CHECK_MSG(ses_card_parse(&c, text.data, text.len, &e), "%s", e.msg);
    ses_buf_puts(&got, "");
    ses_card_check(&c, NULL, collect, &got);
    CHECK_MSG((got.len && strstr(got.data, part)) == expected, "%s: %s", meta, got.len ? got.data : "");
    ses_card_free(&c);
    ses_buf_free(&got);
    ses_buf_free(&text);
}

static void test_checks(void)
{
    const char *good =
        "license: mit\nlanguage: [en, zh-Hant, multilingual]\npipeline_tag: fill-mask\nlibrary_name: sesame\n"
        "datasets:\n- glue\ntags: [a]\nbase_model: a/b\n";
    reports(good, "error", false);
    reports(good, "hint", false);
    reports("x: y\n", "error license: missing", true);
    reports("x: y\n", "hint pipeline_tag: missing", true);
    reports("license: MIT License\n", "error license: \"MIT License\" is not valid", true);
    reports("license: other\n", "hint license_name", true);
    reports("language: English\n", "error language", true);
    reports("language:\n- en\n- 5: 6\n", "error language[1]", true);
    reports("pipeline_tag: ner\n", "error pipeline_tag", true);
    reports("pipeline_tag: [fill-mask]\n", "error pipeline_tag: one value", true);
    reports("tags: {a: b}\n", "error tags", true);
    reports("model-index: x\n", "error model-index: a list", true);
    reports("model-index:\n- name: a\n  results:\n  - task: {type: x}\n", "results[0].dataset", true);
    reports("model-index:\n- name: a\n  results:\n  - task: {type: x}\n    dataset: {name: d, type: d}\n    "
            "metrics:\n    - type: f1\n",
            "metrics[0]: type and value", true);
    ses_card c;
    ses_buf got = { 0 };
    CHECK(ses_card_parse(&c, "# A\n", 4, NULL) && !c.meta);
    ses_card_check(&c, NULL, collect, &got);
    CHECK(strstr(got.data, "error no front matter"));
    ses_card_free(&c);
    ses_buf_free(&got);
}

static void test_fields(void)
{
    ses_card c;
    const char *text =
        "---\nlanguage: [en, de]\nlicense: MIT\ntags: x\npipeline_tag: token-classification\n---\n";
    CHECK(ses_card_parse(&c, text, strlen(text), NULL));
    CHECK_STR(ses_card_field(&c, "language"), "en");
    CHECK(ses_card_has(&c, "language", "DE") && !ses_card_has(&c, "language", "d") &&
          ses_card_has(&c, "license", "mit"));
    const char *task = ses_card_task(&c, ".");
    CHECK(ses_card_is_for(&c, task, "ner") && ses_card_is_for(&c, task, "token-classification") &&
          ses_card_is_for(&c, task, "x") && !ses_card_is_for(&c, task, "embed"));
    ses_buf b = { 0 };
    ses_card_put_list(&c, "language", &b);
    CHECK_STR(b.data, "en, de");
    b.len = 0;
    ses_card_put_yaml(&b, "a\"b\\\n");
    CHECK_STR(b.data, "\"a\\\"b\\\\ \"");
    ses_buf_free(&b);
    ses_card_free(&c);
    ses_card none = { 0 };
    CHECK_STR(ses_card_task(&none, "tests/pipelines/bert-mask"), "fill-mask");
    CHECK(!ses_card_task(&none, "tests"));
}

int main(void)
{
    test_front_matter();
    test_checks();
    test_fields();
    return check_report();
}
