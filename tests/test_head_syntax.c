/* Agreement of heads with dependency relations: counts of small maps, worked out by hand. */
#include "analysis/heads/head_syntax.h"
#include "check.h"

#define STR(s)           \
    {                    \
        s, sizeof(s) - 1 \
    }

/* "She saw dogs": three words, five tokens with [CLS], two pieces of "saw". */
static void counts(void)
{
    ses_err e = { 0 };
    ses_conllu_word word[] = { { .head = 2, .deprel = STR("nsubj") },
                               { .head = 0, .deprel = STR("root") },
                               { .head = 2, .deprel = STR("obj") },
                               { .head = 0, .deprel = STR("root") } };
    ses_tree tree[] = { { .n = 3, .word = word }, { .n = 1, .word = word + 3, .first = 3 } };
    ses_treebank bank = { .tree = tree, .n = 2, .words = 4 };
    ses_head_syntax s;
    if (!CHECK(ses_head_syntax_new(&s, &bank, NULL, &e))) return;
    static const int32_t of[] = { -1, 0, 1, 1, 2 };
    static const float maps[50] = {
        .9f, .1f, 0,   0,   0,   /* [CLS] */
        .5f, .2f, .1f, .1f, .1f, /* she: saw .2 */
        .4f, .4f, .1f, .1f, 0,   /* saw: she .4 */
        .4f, .2f, .1f, .1f, .2f, /* ##: she .3, dogs .1 on the mean */
        .3f, .3f, .1f, .1f, .2f, /* dogs: she .3, saw .2 */

        0,   0,   0,   0,   0,   /* the second head */
        0,   .9f, 0,   .1f, 0,   /* */
        0,   0,   0,   0,   1,   /* */
        0,   0,   0,   0,   1,   /* */
        0,   0,   .6f, .3f, .1f, /* dogs: saw .9 */
    };
    static const float *const weight[] = { maps };
    static const int64_t heads[] = { 2 };
    ses_attention_text t = { .n = 5, .word = of, .layers = 1, .heads = heads, .weight = weight };
    CHECK(ses_head_syntax_add(&s, &t, &e));
    static const int32_t alone[] = { -1, 0 };
    static const float eight[8] = { .5f, .5f, .5f, .5f, .5f, .5f, .5f, .5f };
    static const float *const one_word[] = { eight };
    t = (ses_attention_text){
        .index = 1, .n = 2, .word = alone, .layers = 1, .heads = heads, .weight = one_word
    };
    CHECK(ses_head_syntax_add(&s, &t, &e));
    t.truncated = true;
    CHECK(ses_head_syntax_add(&s, &t, &e));
    CHECK(s.n == 3 && s.sentences == 2 && s.truncated == 1);
    CHECK(s.relation[0].cases == 2 && s.relation[1].cases == 1 && s.relation[2].cases == 1);
    CHECK(s.relation[1].offset == 1 && s.relation[2].offset == -1 && s.relation[0].offset == -1);
    /* head 0: she -> saw (right), dogs -> she (wrong); she is read most by saw .35 (right), dogs by saw .1,
     * she .1: the first, wrong */
    CHECK(ses_head_syntax_hits(&s, SES_FROM_DEPENDENT, 0, 0, 1) == 1);
    CHECK(ses_head_syntax_hits(&s, SES_FROM_DEPENDENT, 0, 0, 2) == 0);
    CHECK(ses_head_syntax_hits(&s, SES_FROM_HEAD, 0, 0, 1) == 1);
    CHECK(ses_head_syntax_hits(&s, SES_FROM_HEAD, 0, 0, 2) == 0);
    /* head 1: all right; she is read by neither word, and the first of them is her head */
    CHECK(ses_head_syntax_hits(&s, SES_FROM_DEPENDENT, 0, 1, 0) == 2);
    CHECK(ses_head_syntax_hits(&s, SES_FROM_HEAD, 0, 1, 0) == 2);
    ses_syntax_best b = ses_head_syntax_best(&s, SES_FROM_DEPENDENT, 2);
    CHECK(b.layer == 0 && b.head == 1 && b.hits == 1);
    b = ses_head_syntax_best(&s, SES_FROM_DEPENDENT, 1); /* a tie: the first */
    CHECK(b.head == 0 && b.hits == 1);
    ses_head_syntax_free(&s);
}

static void reports(void)
{
    ses_err e = { 0 };
    ses_conllu_word word[] = { { .head = 2, .deprel = STR("det") }, { .head = 0, .deprel = STR("root") } };
    ses_tree tree = { .n = 2, .word = word };
    ses_treebank bank = { .tree = &tree, .n = 1, .words = 2 };
    ses_head_syntax s;
    ses_report *r = ses_report_new(&e);
    ses_buf out = { 0 };
    if (!CHECK(r && ses_head_syntax_new(&s, &bank, NULL, &e))) return;
    static const int32_t of[] = { 0, 1 };
    static const float map[] = { 0, 1, 1, 0 };
    static const float *const weight[] = { map };
    static const int64_t heads[] = { 1 };
    ses_attention_text t = { .n = 2, .word = of, .layers = 1, .heads = heads, .weight = weight };
    CHECK(ses_head_syntax_add(&s, &t, &e));
    ses_head_syntax_figures(&s, 1, r);
    ses_json_writer *w = ses_report_json(r);
    ses_json_begin_object(w);
    ses_head_syntax_json(&s, 1, w);
    ses_json_end_object(w);
    ses_report_draw(r, &(ses_draw){ .width = 100 }, &out);
    CHECK(ses_buf_ok(&out, &e) && strstr(out.data, "det") && strstr(out.data, "1-1") &&
          strstr(out.data, "100.0"));
    const char *json = ses_json_writer_text(w, NULL, &e);
    ses_json_doc *doc = json ? ses_json_parse(json, strlen(json), &e) : NULL;
    if (CHECK_MSG(doc, "%s", e.msg)) {
        const ses_json *syntax = ses_json_get(ses_json_root(doc), "syntax");
        const ses_json *hits = ses_json_at(ses_json_get(syntax, "hits"), 0);
        int64_t x = 0;
        CHECK(ses_json_int(ses_json_at(ses_json_get(hits, "from_dependent"), 1), &x) && x == 1);
        CHECK(ses_json_len(ses_json_get(syntax, "relations")) == 2);
    }
    ses_json_free(doc);
    ses_buf_free(&out);
    ses_report_free(r);
    ses_head_syntax_free(&s);
}

int main(void)
{
    counts();
    reports();
    return check_report();
}
