/* Tokenizer trainers: same results as Hugging Face Tokenizers on the same text, same result on any number
 * of threads, rejected options. */
#include "check.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/strmap.h"
#include "sesame/json.h"
#include "sesame/tokenizer.h"

static const char *const lines[] = { "low lower lowest", "new newer newest wider", "low low low new new",
                                     "the lowest of the low, the newest of the new" };

/* The tokenizer.json trained on n lines. */
static char *train(ses_tokenizer_train_options o, const char *const *line, size_t n, size_t *len, ses_err *e)
{
    char *text = NULL;
    ses_tokenizer_trainer *t = ses_tokenizer_trainer_new(&o, e);
    bool ok = t != NULL;
    for (size_t i = 0; ok && i < n; i++) ok = ses_tokenizer_trainer_feed(t, line[i], strlen(line[i]), e);
    if (ok) text = ses_tokenizer_trainer_finish(t, len, e);
    ses_tokenizer_trainer_free(t);
    return text;
}

static void test_small(void)
{
    /* by the trainer of HF Tokenizers: byte-level BPE of 261 tokens, merges in order */
    static const char *const merges[][2] = { { "l", "o" }, { "lo", "w" }, { "e", "w" }, { "n", "ew" } };
    ses_err e = { 0 };
    size_t n = 0;
    char *text = train(
        (ses_tokenizer_train_options){ .type = SES_TOKENIZER_BPE, .byte_level = true, .vocab_size = 261 },
        lines, SES_LEN(lines), &n, &e);
    CHECK_MSG(text, "%s", e.msg);
    ses_json_doc *doc = text ? ses_json_parse(text, n, &e) : NULL;
    const ses_json *list = doc ? ses_json_get(ses_json_get(ses_json_root(doc), "model"), "merges") : NULL;
    CHECK(ses_json_len(list) == SES_LEN(merges));
    for (size_t i = 0; i < ses_json_len(list) && i < SES_LEN(merges); i++)
        for (size_t side = 0; side < 2; side++)
            CHECK_STR(ses_json_string(ses_json_at(ses_json_at(list, i), side), NULL), merges[i][side]);
    ses_json_free(doc);
    ses_free(text);
}

/* Unigram pieces of at least two characters, by the trainer of HF Tokenizers. */
static void check_pieces(const char *const *text, size_t texts, ses_tokenizer_train_options o,
                         const char *const *piece, size_t pieces)
{
    ses_err e = { 0 };
    size_t n = 0;
    o.type = SES_TOKENIZER_UNIGRAM;
    char *file = train(o, text, texts, &n, &e);
    CHECK_MSG(file, "%s", e.msg);
    ses_json_doc *doc = file ? ses_json_parse(file, n, &e) : NULL;
    const ses_json *vocab = doc ? ses_json_get(ses_json_get(ses_json_root(doc), "model"), "vocab") : NULL;
    CHECK((int64_t)ses_json_len(vocab) == o.vocab_size);
    for (size_t i = 0; i < pieces; i++) {
        size_t k = 0;
        while (k < ses_json_len(vocab) &&
               strcmp(ses_json_string(ses_json_at(ses_json_at(vocab, k), 0), NULL), piece[i]))
            k++;
        CHECK_MSG(k < ses_json_len(vocab), "no piece \"%s\"", piece[i]);
    }
    ses_json_free(doc);
    ses_free(file);
}

static void test_pieces(void)
{
    static const char *const text[] = { "the cat sat on the mat and the rat sat on the hat",
                                        "a fat cat ate that rat at the station",
                                        "the nation's relation to the ration is stated",
                                        "creation, elation and station: the state of the nation",
                                        "she sells seashells; the shells she sells are seashells",
                                        "other brothers gather rather than bother their father" };
    static const char *const pieces[] = { "an",    "at",   "ation",  "ells",     "her",
                                          "other", "▁c",   "▁fat",   "▁nation",  "▁s",
                                          "▁she",  "▁the", "▁state", "▁station", "▁seashells" };
    /* The order of seeds with equal scores decides about "lo". */
    static const char *const even[] = { "dosaba na baba mie baba radogu", "radogu mie baba na baba mie",
                                        "baba baba na lobagu na na",
                                        "dosaba radogu nalona nalona dosaba mio" };
    static const char *const even_pieces[] = { "ba", "lo", "na", "▁mi", "▁na" };
    static const ses_string unknown = { "<unk>", 5 };
    check_pieces(text, SES_LEN(text), (ses_tokenizer_train_options){ .vocab_size = 38 }, pieces,
                 SES_LEN(pieces));
    check_pieces(even, SES_LEN(even),
                 (ses_tokenizer_train_options){ .vocab_size = 20, .special = &unknown, .n_special = 1 },
                 even_pieces, SES_LEN(even_pieces));
}

static void test_threads(void)
{
    for (int type = 0; type < SES_TOKENIZER_TYPES; type++) {
        char *first = NULL;
        size_t n_first = 0;
        for (int threads = 1; threads <= 3; threads++) {
            ses_err e = { 0 };
            size_t n = 0;
            ses_tokenizer_train_options o = { .type = (ses_tokenizer_type)type,
                                              .vocab_size = 60,
                                              .threads = threads };
            char *text = train(o, lines, SES_LEN(lines), &n, &e);
            CHECK_MSG(text, "type %d: %s", type, e.msg);
            if (!first) {
                first = text;
                n_first = n;
                continue;
            }
            CHECK(text && n == n_first && !memcmp(text, first, n));
            ses_free(text);
        }
        ses_free(first);
    }
}

static void refused(ses_tokenizer_train_options o, size_t n_lines, const char *want)
{
    ses_err e = { 0 };
    size_t n;
    char *text = train(o, lines, n_lines, &n, &e);
    CHECK(!text);
    CHECK_STR(e.msg, want);
    ses_free(text);
}

static void test_refused(void)
{
    static const ses_string twice[] = { { "[UNK]", 5 }, { "[UNK]", 5 } };
    refused((ses_tokenizer_train_options){ .type = SES_TOKENIZER_WORDPIECE, .vocab_size = 100 }, 0,
            "no words to train on");
    refused((ses_tokenizer_train_options){ .type = SES_TOKENIZER_WORDPIECE, .vocab_size = 3 }, 4,
            "5 special tokens exceed vocab_size 3");
    refused((ses_tokenizer_train_options){ .type = SES_TOKENIZER_UNIGRAM, .vocab_size = 10 }, 4,
            "vocab_size 10 is too small for 14 characters and 2 special tokens");
    refused(
        (ses_tokenizer_train_options){
            .type = SES_TOKENIZER_WORDLEVEL, .vocab_size = 50, .special = twice, .n_special = 2 },
        4, "duplicate special token \"[UNK]\"");
    refused((ses_tokenizer_train_options){ .type = SES_TOKENIZER_BPE, .vocab_size = 0 }, 4,
            "vocab_size 0, expected 1 to 8388608");
    refused((ses_tokenizer_train_options){ .type = SES_TOKENIZER_BPE,
                                           .vocab_size = 50,
                                           .stages = "\"normalizer\": {\"type\": \"No\"}" },
            4, "normalizer: unknown normalizer type \"No\"");
}

/* A post-processor may name special tokens, given or the default, by their ids. */
static void test_post_processor(void)
{
    static const ses_string given[] = { { "[UNK]", 5 }, { "[SEP]", 5 }, { "[CLS]", 5 } };
    for (int i = 0; i < 2; i++) { /* [CLS] and [SEP] are 2 and 3 by default */
        ses_err e = { 0 };
        size_t n = 0;
        ses_tokenizer_train_options o = { .type = SES_TOKENIZER_WORDPIECE, .vocab_size = 60 };
        if (i) o.special = given, o.n_special = 3;
        o.stages = i ? "\"pre_tokenizer\": {\"type\": \"Whitespace\"}, \"post_processor\": {\"type\": "
                       "\"BertProcessing\", \"sep\": [\"[SEP]\", 1], \"cls\": [\"[CLS]\", 2]}"
                     : "\"pre_tokenizer\": {\"type\": \"Whitespace\"}, \"post_processor\": {\"type\": "
                       "\"BertProcessing\", \"sep\": [\"[SEP]\", 3], \"cls\": [\"[CLS]\", 2]}";
        char *text = train(o, lines, SES_LEN(lines), &n, &e);
        ses_tokenizer *t = text ? ses_tokenizer_from_json(text, n, &e) : NULL;
        ses_encode_ctx *x = t ? ses_encode_ctx_new(t, &e) : NULL;
        bool ok = x && ses_encode(x, &(ses_input){ .text = { lines[0], strlen(lines[0]) } },
                                  &(ses_encode_options){ 0 }, &e);
        const ses_encoding *r = ok ? ses_encode_ctx_result(x) : NULL;
        CHECK_MSG(r && r->n > 2 && r->id[0] == 2 && r->id[r->n - 1] == (i ? 1 : 3), "%s", e.msg);
        ses_encode_ctx_free(x);
        ses_tokenizer_free(t);
        ses_free(text);
    }
}

/* ---- results of HF Tokenizers in ../shared, if present ---- */

static ses_json_doc *shared(const char *name, ses_err *e)
{
    char path[512];
    snprintf(path, sizeof path, "%s/golden/e2e/%s", check_shared(), name);
    return ses_path_exists(path) ? ses_json_load(path, 64 << 20, e) : NULL;
}

static bool feed_file(ses_tokenizer_trainer *t, const char *path, ses_err *e)
{
    size_t n;
    char *text = ses_file_read(path, 64 << 20, &n, e);
    bool ok = text != NULL;
    for (char *p = text; ok && p < text + n;) {
        char *end = memchr(p, '\n', (size_t)(text + n - p));
        size_t len = end ? (size_t)(end - p) : (size_t)(text + n - p);
        ok = ses_tokenizer_trainer_feed(t, p, len, e);
        p += len + 1;
    }
    ses_free(text);
    return ok;
}

/* Number of tokens in both vocabularies: keys of an object or first elements of a list. */
static size_t common(const ses_json *a, const ses_json *b, ses_err *e)
{
    ses_strmap map = { 0 };
    size_t n = 0, len;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < ses_json_len(side ? b : a); i++) {
            const ses_json *v = side ? b : a;
            const char *key = ses_json_type_of(v) == SES_JSON_OBJECT
                                  ? ses_json_key(v, i, &len)
                                  : ses_json_string(ses_json_at(ses_json_at(v, i), 0), &len);
            bool fresh;
            int64_t found;
            if (side)
                n += ses_strmap_find(&map, key, len, &found);
            else
                ses_strmap_insert(&map, key, len, 0, &fresh, e);
        }
    ses_strmap_free(&map);
    return n;
}

static bool same_merges(const ses_json *a, const ses_json *b)
{
    bool same = ses_json_len(a) == ses_json_len(b);
    for (size_t i = 0; same && i < ses_json_len(a); i++)
        for (size_t side = 0; same && side < 2; side++) {
            const char *x = ses_json_string(ses_json_at(ses_json_at(a, i), side), NULL);
            const char *y = ses_json_string(ses_json_at(ses_json_at(b, i), side), NULL);
            same = x && y && !strcmp(x, y);
        }
    return same;
}

static void test_reference(const char *name, ses_tokenizer_train_options o, double share)
{
    ses_err e = { 0 };
    char path[512];
    size_t n = 0;
    ses_json_doc *want = shared(name, &e), *got = NULL;
    if (!want) {
        SKIP("trained tokenizers of HF Tokenizers are not present");
        return;
    }
    snprintf(path, sizeof path, "%s/golden/e2e/train.txt", check_shared());
    ses_tokenizer_trainer *t = ses_tokenizer_trainer_new(&o, &e);
    char *text = t && feed_file(t, path, &e) ? ses_tokenizer_trainer_finish(t, &n, &e) : NULL;
    CHECK_MSG(text, "%s: %s", name, e.msg);
    got = text ? ses_json_parse(text, n, &e) : NULL;
    const ses_json *a = got ? ses_json_get(ses_json_root(got), "model") : NULL,
                   *b = ses_json_get(ses_json_root(want), "model");
    const ses_json *av = ses_json_get(a, "vocab"), *bv = ses_json_get(b, "vocab");
    size_t both = common(av, bv, &e);
    CHECK_MSG(ses_json_len(av) == ses_json_len(bv) && (double)both >= share * (double)ses_json_len(bv),
              "%s: %zu of %zu tokens agree", name, both, ses_json_len(bv));
    if (o.type == SES_TOKENIZER_BPE) CHECK(same_merges(ses_json_get(a, "merges"), ses_json_get(b, "merges")));
    ses_json_free(got);
    ses_json_free(want);
    ses_tokenizer_trainer_free(t);
    ses_free(text);
}

int main(void)
{
    test_small();
    test_pieces();
    test_threads();
    test_refused();
    test_post_processor();
    test_reference("trained-wordpiece.json",
                   (ses_tokenizer_train_options){
                       .type = SES_TOKENIZER_WORDPIECE, .vocab_size = 1200, .lowercase = true },
                   1);
    test_reference(
        "trained-bytelevel-bpe.json",
        (ses_tokenizer_train_options){ .type = SES_TOKENIZER_BPE, .vocab_size = 1200, .byte_level = true },
        1);
    test_reference("trained-wordlevel.json",
                   (ses_tokenizer_train_options){ .type = SES_TOKENIZER_WORDLEVEL, .vocab_size = 800 }, 1);
    test_reference("trained-unigram.json",
                   (ses_tokenizer_train_options){ .type = SES_TOKENIZER_UNIGRAM, .vocab_size = 1000 }, 1);
    return check_report();
}
