/* Unigram and WordLevel models: tokens as the reference gives them, tries, scores, what is refused. */
#include "base/rng.h"
#include "check.h"
#include "text/scores.h"
#include "text/stage.h"
#include "text/trie.h"

typedef struct model {
    const ses_stage *stage;
    ses_arena mem, scratch;
    void *self;
} model;

static bool model_open(model *m, const ses_stage *stage, const char *settings, ses_err *e)
{
    ses_json_doc *d = ses_json_parse(settings, strlen(settings), e);
    *m = (model){ .stage = stage };
    m->self = d ? stage->open(ses_json_root(d), &m->mem, e) : NULL;
    ses_json_free(d);
    return m->self != NULL;
}

static void model_close(model *m)
{
    ses_arena_free(&m->mem);
    ses_arena_free(&m->scratch);
}

/* "id:begin-end ..." */
static const char *encode(model *m, const char *word, char out[256])
{
    ses_token_list l = { 0 };
    ses_err e = { 0 };
    size_t n = 0;
    out[0] = 0;
    if (!m->stage->tokenize(m->self, word, strlen(word), &l, &m->scratch, &e))
        snprintf(out, 256, "%.200s", e.msg);
    for (size_t i = 0; i < l.n; i++)
        n += (size_t)snprintf(out + n, 256 - n, "%s%d:%u-%u", i ? " " : "", l.token[i].id, l.token[i].begin,
                              l.token[i].end);
    ses_token_list_free(&l);
    return out;
}

static void check_words(void)
{
    static const char pieces[] =
        "{\"unk_id\":0,\"vocab\":[[\"<unk>\",0.0],[\"a\",0],[\"b\",0],[\"c\",0],[\"d\",0],"
        "[\"cd\",1],[\"ab\",2],[\"abc\",5],[\"abcd\",10]]}";
    static const char bytes[] =
        "{\"unk_id\":0,\"byte_fallback\":true,\"vocab\":[[\"<unk>\",0],[\"a\",-1],[\"<0xC3>\",-2],"
        "[\"<0xA9>\",-3]]}";
    static const char ties[] =
        "{\"unk_id\":null,\"vocab\":[[\"a\",-1],[\"aa\",-2],[\"b\",-1.5],[\"b\",-0.5],[\"\",-9]]}";
    static const char *const word[][3] = {
        { pieces, "abcdacdxx", "8:0-4 1:4-5 5:5-7 0:7-9" },
        { pieces, "xéx", "0:0-4" },
        { pieces, "a<unk>é", "1:0-1 0:1-8" },
        { pieces, "", "" },
        { bytes, "aéa", "1:0-1 2:1-3 3:1-3 1:3-4" }, /* each byte has the whole stretch */
        { bytes, "éè", "0:0-4" },
        { ties, "aaa", "0:0-1 1:1-3" },
        { ties, "ab", "0:0-1 3:1-2" }, /* of equal pieces the last counts */
        { ties, "az", "byte 1 of a word is unknown and there is no unk_id" },
    };
    char got[256];
    for (size_t i = 0; i < SES_LEN(word); i++) {
        model m;
        ses_err e = { 0 };
        if (!CHECK_MSG(model_open(&m, &ses_stage_model_unigram, word[i][0], &e), "%s", e.msg)) continue;
        CHECK_STR(encode(&m, word[i][1], got), word[i][2]);
        model_close(&m);
    }
    model m;
    ses_err e = { 0 };
    CHECK(
        model_open(&m, &ses_stage_model_wordlevel, "{\"unk_token\":\"u\",\"vocab\":{\"u\":3,\"ab\":1}}", &e));
    CHECK_STR(encode(&m, "ab", got), "1:0-2");
    CHECK_STR(encode(&m, "ba", got), "3:0-2");
    CHECK(m.stage->size(m.self) == 4 && m.stage->count(m.self) == 2);
    model_close(&m);
    CHECK(model_open(&m, &ses_stage_model_wordlevel, "{\"unk_token\":\"u\",\"vocab\":{\"ab\":1}}", &e));
    CHECK_STR(encode(&m, "ba", got), "unk_token \"u\" is wanted and not in the vocabulary");
    model_close(&m);
}

static void check_saved(void)
{
    static const char settings[] = "{\"unk_id\":1,\"vocab\":[[\"a\",-7.0],[\"<unk>\",0.0],[\"b\\u0000\",-0."
                                   "21941512368404237]],\"byte_fallback\":true}";
    model m;
    ses_err e = { 0 };
    size_t n;
    CHECK(model_open(&m, &ses_stage_model_unigram, settings, &e));
    CHECK(m.stage->size(m.self) == 3 && m.stage->id(m.self, "b\0", 2) == 2 &&
          m.stage->id(m.self, "b", 1) == -1);
    CHECK(m.stage->surface(m.self) == 1 && m.stage->token(m.self, 2, &n) && n == 2 &&
          !m.stage->token(m.self, 3, &n));
    ses_json_writer *w = ses_json_writer_new(-1, &e);
    ses_json_begin_object(w);
    m.stage->save(m.self, w);
    ses_json_end_object(w);
    CHECK_STR(ses_json_writer_text(w, &n, &e), settings);
    ses_json_writer_free(w);
    model_close(&m);
}

/* Numbers as the reference reads them: written by it after it read the left ones. */
static void check_scores(void)
{
    static const double score[][2] = {
        { -0.5, -0.5 },
        { -2.012292861938477, -2.012292861938477 },
        { -14.825037124029805, -14.825037124029803 },
        { -15.164604925736347, -15.164604925736349 },
        { 1e22, 1e22 },
        { 1e-300, 1e-300 },
        { -3.4739532470703125, -3.4739532470703125 },
        { -1e-320, -1e-320 },
    };
    for (size_t i = 0; i < SES_LEN(score); i++)
        CHECK_MSG(ses_score_read(score[i][0]) == score[i][1], "%zu", i);
    bool same = true;
    for (uint32_t i = 0; i < 10000; i++) {
        double x = -ses_rand_unit((ses_key){ .seed = 3 }, i) * 20.0 -
                   ses_rand_unit((ses_key){ .seed = 4 }, i) * 1e-9;
        double y = ses_score_read(x), z = ses_score_write(y);
        same &= ses_score_read(z) == y;
    }
    CHECK(same);
}

/* Against looking each key up in a list. */
static void check_trie(void)
{
    enum { N = 3000 };
    static char text[N][12];
    static ses_string key[N];
    for (uint32_t round = 0; round < 4; round++) {
        ses_key seed = { .seed = 9, .step = round };
        uint64_t draw = 0;
        for (size_t i = 0; i < N; i++) {
            key[i] = (ses_string){ text[i], ses_rand32(seed, draw++) % (round == 3 ? 3 : 12) };
            for (size_t k = 0; k < key[i].n; k++) /* few letters, all bytes, long common beginnings */
                text[i][k] = (char)(round == 0            ? ses_rand32(seed, draw++) % 3
                                    : round == 2 && k < 9 ? 'x'
                                                          : ses_rand32(seed, draw++));
        }
        ses_arena mem = { 0 };
        ses_err e = { 0 };
        ses_trie t;
        CHECK(ses_trie_build(&t, key, N, &mem, &e));
        bool same = true;
        for (size_t i = 0; i < N; i++) {
            int32_t want = -1;
            for (size_t k = 0; k < N; k++)
                if (key[k].n == key[i].n && !memcmp(key[k].p, key[i].p, key[i].n)) want = (int32_t)k;
            same &= ses_trie_find(&t, key[i].p, key[i].n) == want;
            char other[12];
            memcpy(other, text[i], sizeof other);
            other[ses_rand32(seed, draw++) % 12] ^= 1;
            want = -1;
            for (size_t k = 0; k < N; k++)
                if (key[k].n == key[i].n && !memcmp(key[k].p, other, key[i].n)) want = (int32_t)k;
            same &= ses_trie_find(&t, other, key[i].n) == want;
        }
        CHECK_MSG(same, "round %u", round);
        ses_arena_free(&mem);
    }
}

static void check_refused(void)
{
    static const char *const bad[][2] = {
        { "{}", "no vocab" },
        { "{\"vocab\":{}}", "vocab: must be a list of pieces and scores" },
        { "{\"vocab\":[[\"a\",0],[\"b\"]]}", "vocab: entry 1: must be a piece and its score" },
        { "{\"vocab\":[[\"a\",\"b\"]]}", "vocab: entry 0: must be a piece and its score" },
        { "{\"vocab\":[\"a\"]}", "vocab: entry 0: must be a piece and its score" },
        { "{\"unk_id\":1,\"vocab\":[[\"a\",0]]}", "unk_id: 1 is not below the 1 pieces" },
        { "{\"unk_id\":-1,\"vocab\":[[\"a\",0]]}",
          "key \"unk_id\" is -1, must be from 0 to 9223372036854775807" },
    };
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        model m;
        ses_err e = { 0 };
        CHECK(!model_open(&m, &ses_stage_model_unigram, bad[i][0], &e));
        CHECK_STR(e.msg, bad[i][1]);
        model_close(&m);
    }
}

int main(void)
{
    check_words();
    check_saved();
    check_scores();
    check_trie();
    check_refused();
    return check_report();
}
