/* Vocabularies: ids, tokens, holes, rejected files. */
#include "check.h"
#include "text/vocab/vocab.h"

static bool open_text(ses_vocab *v, ses_arena *mem, const char *text, ses_err *e)
{
    ses_json_doc *d = ses_json_parse(text, strlen(text), e);
    bool ok = d && ses_vocab_open(v, ses_json_root(d), mem, e);
    ses_json_free(d);
    return ok;
}

static void check_lookups(void)
{
    ses_arena mem = { 0 };
    ses_vocab v;
    ses_err e = { 0 };
    CHECK(open_text(&v, &mem, "{\"b\": 1, \"a\": 0, \"\": 4, \"\\u0000x\": 6}", &e));
    CHECK(v.size == 7 && v.count == 4);
    CHECK(ses_vocab_id(&v, "a", 1) == 0 && ses_vocab_id(&v, "b", 1) == 1);
    CHECK(ses_vocab_id(&v, "", 0) == 4); /* the empty token is valid */
    CHECK(ses_vocab_id(&v, "\0x", 2) == 6 && ses_vocab_id(&v, "x", 1) == -1 &&
          ses_vocab_id(&v, "ab", 2) == -1);
    size_t n = 9;
    CHECK(ses_vocab_token(&v, 4, &n) && n == 0);
    CHECK(ses_vocab_token(&v, 6, &n) && n == 2);
    CHECK(!ses_vocab_token(&v, 2, &n) && !ses_vocab_token(&v, 7, &n) && !ses_vocab_token(&v, -1, &n));

    ses_json_writer *w = ses_json_writer_new(-1, &e);
    ses_vocab_save(&v, w);
    CHECK_STR(ses_json_writer_text(w, &n, &e), "{\"a\":0,\"b\":1,\"\":4,\"\\u0000x\":6}");
    ses_json_writer_free(w);
    ses_arena_free(&mem);
}

static void check_many(void)
{
    enum { N = 5000 };
    ses_arena mem = { 0 };
    ses_vocab v;
    ses_err e = { 0 };
    CHECK(ses_vocab_reserve(&v, N, N * 8, &mem, &e));
    int32_t other = -1;
    char s[16];
    bool all = true;
    for (int32_t i = 0; i < N; i++)
        all &= ses_vocab_add(&v, i, s, (size_t)snprintf(s, sizeof s, "%x", i), &other);
    CHECK(all && v.count == N);
    CHECK(!ses_vocab_add(&v, 0, "1f", 2, &other) && other == 0x1f);
    for (int32_t i = 0; i < N; i++) all &= ses_vocab_id(&v, s, (size_t)snprintf(s, sizeof s, "%x", i)) == i;
    CHECK(all);
    ses_arena_free(&mem);
}

static void check_refused(void)
{
    static const char *const bad[][2] = {
        { "[]", "must be an object that maps tokens to ids" },
        { "{\"a\": -1}", "\"a\": an id must be a non-negative integer" },
        { "{\"a\": 1.0}", "\"a\": an id must be a non-negative integer" },
        { "{\"a\": \"1\"}", "\"a\": an id must be a non-negative integer" },
        { "{\"a\": 4294967296}", "\"a\": id 4294967296 is too large for a vocabulary of 1 tokens" },
        { "{\"a\": 3, \"b\\n\": 3}", "\"a\" and \"b\\x0a\" have the same id 3" },
    };
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        ses_arena mem = { 0 };
        ses_vocab v;
        ses_err e = { 0 };
        CHECK(!open_text(&v, &mem, bad[i][0], &e));
        CHECK_STR(e.msg, bad[i][1]);
        ses_arena_free(&mem);
    }
}

int main(void)
{
    check_lookups();
    check_many();
    check_refused();
    return check_report();
}
