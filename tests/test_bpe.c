/* BPE models: tokens of words as in Hugging Face Tokenizers, merging against a naive search, rejected
 * models. */
#include "base/rng.h"
#include "check.h"
#include "text/vocab/bpe.h"

typedef struct model {
    ses_json_doc *doc;
    ses_arena mem, scratch;
    void *self;
} model;

static bool model_open(model *m, const char *settings, ses_err *e)
{
    *m = (model){ .doc = ses_json_parse(settings, strlen(settings), e) };
    m->self = m->doc ? ses_stage_model_bpe.open(ses_json_root(m->doc), &m->mem, e) : NULL;
    ses_json_free(m->doc);
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
    if (!ses_stage_model_bpe.tokenize(m->self, word, strlen(word), &l, &m->scratch, &e))
        snprintf(out, 256, "%.200s", e.msg);
    for (size_t i = 0; i < l.n; i++)
        n += (size_t)snprintf(out + n, 256 - n, "%s%d:%u-%u", i ? " " : "", l.token[i].id, l.token[i].begin,
                              l.token[i].end);
    ses_token_list_free(&l);
    return out;
}

static void check_words(void)
{
    static const struct {
        const char *settings;
        const char *word[8][2];
    } cases[] = {
        { "{\"vocab\": {\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"bc\":4,\"abc\":5,\"aa\":6,\"aaa\":7,\"é\":8},"
          "\"merges\": [\"a b\",\"b c\",\"a bc\",\"ab c\",\"a a\",\"aa a\"]}",
          { { "abc", "5:0-3" },
            { "aaaa", "6:0-2 6:2-4" },
            { "aaaaa", "6:0-2 7:2-5" }, /* leftmost first */
            { "bcab", "4:0-2 3:2-4" },
            { "aébz", "0:0-1 8:1-3 1:3-4" }, /* no unknown token: z is dropped */
            { "abcabc", "5:0-3 5:3-6" },
            { "", "" } } },
        { "{\"unk_token\": \"<unk>\", \"vocab\": {\"<unk>\":0,\"a\":1,\"b\":2,\"ab\":3}, \"merges\": "
          "[[\"a\",\"b\"]]}",
          { { "xyab", "0:0-1 0:1-2 3:2-4" }, { "axyb", "1:0-1 0:1-2 0:2-3 2:3-4" } } },
        { "{\"unk_token\": \"<unk>\", \"fuse_unk\": true, \"vocab\": {\"<unk>\":0,\"a\":1,\"b\":2,\"ab\":3},"
          "\"merges\": [\"#version: 0.2\", \"a b\"]}",
          { { "xyab", "0:0-2 3:2-4" }, { "axyzb", "1:0-1 0:1-4 2:4-5" }, { "xy", "0:0-2" } } },
        { "{\"continuing_subword_prefix\": \"##\", \"end_of_word_suffix\": \"</w>\", \"vocab\": "
          "{\"a\":0,\"##b\":1,"
          "\"##a</w>\":2,\"##b</w>\":3,\"a</w>\":4,\"ab</w>\":5,\"ab\":6,\"aba</w>\":7,\"##a\":8},"
          "\"merges\": [\"a ##b\",\"a ##b</w>\",\"ab ##a</w>\"]}",
          { { "a", "4:0-1" }, { "ab", "5:0-2" }, { "aba", "7:0-3" }, { "abab", "6:0-2 8:2-3 3:3-4" } } },
        { "{\"ignore_merges\": true, \"dropout\": 0.0, \"vocab\": {\"a\":0,\"b\":1,\"ab\":2,\"abab\":3},"
          "\"merges\": [\"a b\"]}",
          { { "abab", "3:0-4" }, { "ababa", "2:0-2 2:2-4 0:4-5" }, { "ab", "2:0-2" } } },
        { "{\"byte_fallback\": true, \"unk_token\": \"<unk>\", \"vocab\": {\"<0xC3>\":0, \"<0xA9>\": 1, "
          "\"a\": 2,"
          "\"<unk>\": 3}, \"merges\": []}",
          { { "aéa", "2:0-1 0:1-2 1:2-3 2:3-4" }, { "日", "3:0-3" }, { "è", "3:0-2" } } },
        { "{\"unk_token\": \"<unk>\", \"vocab\": {\"a\": 2}, \"merges\": []}",
          { { "aa", "2:0-1 2:1-2" },
            { "ab", "unknown character, and unk_token \"<unk>\" is not in the vocabulary" } } },
    };
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        model m;
        ses_err e = { 0 };
        char got[256];
        if (!CHECK_MSG(model_open(&m, cases[i].settings, &e), "%s", e.msg)) continue;
        for (size_t k = 0; k < SES_LEN(cases[i].word) && cases[i].word[k][0]; k++)
            CHECK_STR(encode(&m, cases[i].word[k][0], got), cases[i].word[k][1]);
        model_close(&m);
    }
}

/* The last of two equal merges wins; saving and reading gives the same model. */
static void check_saved(void)
{
    static const char settings[] = "{\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":\"\","
                                   "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":true,"
                                   "\"ignore_merges\":false,\"vocab\":{\"a\":0,\"b\":1,\"ab\":3,\"ba\":4},"
                                   "\"merges\":[[\"a\",\"b\"],[\"b\",\"a\"],[\"a\",\"b\"]]}";
    static const char saved[] = "{\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":\"\","
                                "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":true,"
                                "\"ignore_merges\":false,\"vocab\":{\"a\":0,\"b\":1,\"ab\":3,\"ba\":4},"
                                "\"merges\":[[\"b\",\"a\"],[\"a\",\"b\"]]}";
    model m;
    ses_err e = { 0 };
    char got[256];
    size_t n;
    CHECK(model_open(&m, settings, &e));
    CHECK_STR(encode(&m, "abab", got), "0:0-1 4:1-3 1:3-4");
    CHECK(ses_stage_model_bpe.size(m.self) == 5 && ses_stage_model_bpe.count(m.self) == 4);
    CHECK(ses_stage_model_bpe.id(m.self, "ba", 2) == 4);
    ses_json_writer *w = ses_json_writer_new(-1, &e);
    ses_json_begin_object(w);
    ses_stage_model_bpe.save(m.self, w);
    ses_json_end_object(w);
    CHECK_STR(ses_json_writer_text(w, &n, &e), saved);
    ses_json_writer_free(w);
    model_close(&m);
}

/* Naive merging: repeatedly merge the leftmost pair with the lowest rank. */
static size_t merge_plainly(const ses_merges *m, int32_t *id, uint32_t *len, size_t n)
{
    for (;;) {
        const ses_merge *best = NULL;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            const ses_merge *s = ses_merges_find(m, id[i], id[i + 1]);
            if (s && (!best || s->rank < best->rank)) best = s, at = i;
        }
        if (!best) return n;
        id[at] = best->id;
        len[at] += len[at + 1];
        for (size_t i = at + 1; i + 1 < n; i++) id[i] = id[i + 1], len[i] = len[i + 1];
        n--;
    }
}

/* Random merge tables in random order, so that low ranks appear late; texts on both sides of the lengths
 * at which the merge algorithm changes. */
static void check_merging(void)
{
    static const size_t lengths[] = { 0, 1, 2, 31, 32, 33, 200, 8191, 8192, 9000 };
    static int32_t id[2][9000];
    static uint32_t len[2][9000];
    for (uint32_t round = 0; round < 30; round++) {
        ses_arena mem = { 0 };
        ses_err e = { 0 };
        ses_merges m;
        ses_rng_key key = { .seed = 5, .step = round };
        uint64_t draw = 0;
        CHECK(ses_merges_reserve(&m, 40, &mem, &e));
        for (int32_t k = 0; k < 40; k++) { /* mostly new ids from old ones; ranks in order, or shared */
            int32_t left = (int32_t)(ses_rand32(key, draw) % 20),
                    right = (int32_t)(ses_rand32(key, draw + 1) % 20);
            int32_t result = 2 + (int32_t)(ses_rand32(key, draw + 2) % 38);
            if (round % 2)
                ses_merges_put(&m, left, right, ses_rand32(key, draw + 3) % 8, result);
            else
                ses_merges_add(&m, left, right, result);
            draw += 4;
        }
        bool same = true;
        for (size_t t = 0; t < SES_LEN(lengths); t++) {
            size_t n = lengths[t];
            for (size_t i = 0; i < n; i++) {
                id[0][i] = id[1][i] = (int32_t)(ses_rand32(key, draw++) % (2 + round % 4));
                len[0][i] = len[1][i] = 1;
            }
            size_t want = merge_plainly(&m, id[0], len[0], n);
            CHECK(ses_merges_apply(&m, id[1], len[1], &n, NULL, &mem, &e));
            same &= n == want && !memcmp(id[0], id[1], n * sizeof id[0][0]) && !memcmp(len[0], len[1], n * 4);
        }
        CHECK_MSG(same, "round %u", round);
        ses_arena_free(&mem);
    }
}

static void check_refused(void)
{
#define V "\"vocab\": {\"a\":0,\"b\":1,\"ab\":2}"
    static const char *const bad[][2] = {
        { "{\"merges\": []}", "key \"vocab\" is missing" },
        { "{" V "}", "key \"merges\" is missing" },
        { "{" V ", \"merges\": {}}", "merges: must be a list of merges" },
        { "{" V ", \"merges\": [\"a b\", \"a  b\"]}",
          "merges: entry 1: \"a  b\" is not two tokens separated by a space" },
        { "{" V ", \"merges\": [\"ab\"]}", "merges: entry 0: \"ab\" is not two tokens separated by a space" },
        { "{" V ", \"merges\": [\"a b\", \"a x\"]}", "merges: entry 1: \"x\" is not in the vocabulary" },
        { "{" V ", \"merges\": [\"b a\"]}", "merges: entry 0: \"ba\" is not in the vocabulary" },
        { "{" V ", \"merges\": [[\"a\", \"b\"], \"a b\"]}",
          "merges: entry 1: must be a pair of strings, like the first merge" },
        { "{" V ", \"merges\": [[\"a\", \"b\", \"a\"]]}",
          "merges: entry 0: must be a pair of strings, like the first merge" },
        { "{" V ", \"merges\": [7]}", "merges: entry 0: must be a string \"a b\" or a pair [\"a\", \"b\"]" },
        { "{" V ", \"merges\": [\"a b\"], \"continuing_subword_prefix\": \"##\"}",
          "merges: entry 0: \"b\" is shorter than continuing_subword_prefix" },
        { "{" V ", \"merges\": [], \"dropout\": 0.1}",
          "dropout: BPE dropout is not supported, set it to null" },
        { "{" V ", \"merges\": [], \"dropout\": 2}", "dropout: must be null or a number from 0 to 1" },
        { "{" V ", \"merges\": [], \"fuse_unk\": 1}",
          "key \"fuse_unk\" must be true or false, not an integer" },
        { "{\"vocab\": {\"a\":0,\"b\":0}, \"merges\": []}", "vocab: \"a\" and \"b\" have the same id 0" },
    };
#undef V
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        model m;
        ses_err e = { 0 };
        CHECK(!model_open(&m, bad[i][0], &e));
        CHECK_STR(e.msg, bad[i][1]);
        model_close(&m);
    }
}

int main(void)
{
    check_words();
    check_saved();
    check_merging();
    check_refused();
    return check_report();
}
