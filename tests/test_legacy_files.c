/* Tokenizers without tokenizer.json: small folders of each family with the ids of the classes of
 * transformers, the converted tokenizer.json, rejected files. */
#define _POSIX_C_SOURCE 200809L
#include "base/file.h"
#include "check.h"
#include "sesame/tokenizer.h"
#include "spm_fixture.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/sesame-old-XXXXXX";

static void put_bytes(const char *name, const char *p, size_t n)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    if (CHECK(f)) CHECK(fwrite(p, 1, n, f) == n && fclose(f) == 0);
}

static void put(const char *name, const char *text) { put_bytes(name, text, strlen(text)); }

static void clear(void)
{
    DIR *d = opendir(dir);
    for (struct dirent *f; d && (f = readdir(d));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", dir, f->d_name);
        if (f->d_name[0] != '.') unlink(path);
    }
    if (d) closedir(d);
}

static const char *ids_of(ses_tokenizer *t, const char *text, char *out, size_t size)
{
    ses_err e = { 0 };
    ses_encode_ctx *k = ses_encode_ctx_new(t, &e);
    size_t n = 0;
    out[0] = 0;
    if (k && ses_encode(k, &(ses_input){ .text = { text, strlen(text) } }, NULL, &e)) {
        const ses_encoding *r = ses_encode_ctx_result(k);
        for (size_t i = 0; i < r->n; i++)
            n += (size_t)snprintf(out + n, size - n, "%s%d", i ? " " : "", r->id[i]);
    } else {
        snprintf(out, size, "%.200s", e.msg);
    }
    ses_encode_ctx_free(k);
    return out;
}

/* Check the ids of the folder, and of its converted tokenizer.json. */
static void check_ids(const char *name, const char *text, const char *want)
{
    char path[256], out[256], got[512];
    ses_err e = { 0 };
    snprintf(path, sizeof path, "%s%s%s", dir, *name ? "/" : "", name);
    snprintf(out, sizeof out, "%s/out.json", dir);
    ses_tokenizer *t = ses_tokenizer_open(path, &e);
    if (!t && strstr(e.msg, "requires PCRE2")) { /* XLM's patterns */
        SKIP("this build has no PCRE2");
        return;
    }
    if (CHECK_MSG(t, "%s", e.msg)) CHECK_STR(ids_of(t, text, got, sizeof got), want);
    ses_tokenizer_free(t);
    CHECK_MSG(ses_tokenizer_convert(path, out, true, &e), "%s", e.msg);
    t = ses_tokenizer_open(out, &e);
    if (CHECK_MSG(t, "%s", e.msg)) CHECK_STR(ids_of(t, text, got, sizeof got), want);
    ses_tokenizer_free(t);
    unlink(out);
}

static void check_decoded(const int32_t *id, size_t n, const char *want)
{
    ses_err e = { 0 };
    ses_tokenizer *t = ses_tokenizer_open(dir, &e);
    ses_encode_ctx *k = t ? ses_encode_ctx_new(t, &e) : NULL;
    const char *text = NULL;
    size_t len = 0;
    if (CHECK_MSG(k && ses_decode(k, id, n, false, &text, &len, &e), "%s", e.msg)) CHECK_STR(text, want);
    ses_encode_ctx_free(k);
    ses_tokenizer_free(t);
}

static void check_refused(const char *name, const char *want)
{
    char path[256];
    ses_err e = { 0 };
    snprintf(path, sizeof path, "%s%s%s", dir, *name ? "/" : "", name);
    ses_tokenizer *t = ses_tokenizer_open(path, &e);
    CHECK(!t);
    const char *msg = strstr(e.msg, dir) ? strstr(e.msg, dir) + strlen(dir) : e.msg;
    CHECK_STR(msg, want);
    ses_tokenizer_free(t);
}

static void check_wordpiece(void)
{
    put("vocab.txt", "[PAD]\n[UNK]\r\n[CLS]\n[SEP]\n[MASK]\nhe\n##llo\nÉa\n##e\nea\nhe\n");
    check_ids("", "Hello éa [MASK] Zz", "2 10 6 9 4 1 3"); /* "he" is a duplicate: the last line wins */
    check_ids("vocab.txt", "hello", "2 10 6 3");
    put("tokenizer_config.json", "{\"do_lower_case\": false}");
    check_ids("", "hello Hello Éa", "2 10 6 1 7 3");
    /* a NUL in the class: longer than the strings it is compared with (seen by AddressSanitizer) */
    put("tokenizer_config.json",
        "{\"tokenizer_class\": \"DPRReaderTokenizer\\u0000xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}");
    check_ids("", "hello", "2 10 6 3");
    put("tokenizer_config.json",
        "{\"tokenizer_class\": \"MPNetTokenizer\", \"cls_token\": \"[CLS]\", \"sep_token\": "
        "{\"content\": \"[SEP]\"}, \"bos_token\": null, \"eos_token\": null}");
    check_ids("", "hello", "2 10 6 3");
    clear();
    put("vocab.txt", "a\n\xff\n");
    check_refused("", ": vocab.txt: invalid UTF-8 at byte 2");
    put("vocab.txt", "a\n[UNK]\n");
    check_ids("", "a",
              "4 0 2"); /* role tokens missing in the file get ids after it: [SEP] 2, [PAD] 3, [CLS] 4 */
    clear();
}

static void check_byte_bpe(void)
{
    put("vocab.json", "{\"<s>\":0,\"<pad>\":1,\"</"
                      "s>\":2,\"<unk>\":3,\"h\":4,\"e\":5,\"he\":6,\"Ġ\":7,\"Ġhe\":8,\"<mask>\":9}");
    put("merges.txt", "#version: 0.2\nh e\nĠ he\n");
    check_ids("", "he he<mask> he", "0 6 8 9 8 2"); /* detected as RoBERTa by its tokens */
    put("config.json", "{\"model_type\": \"gpt2\"}");
    check_ids("", "he he", "6 8");
    put("tokenizer_config.json",
        "{\"add_bos_token\": true, \"bos_token\": \"</s>\", \"add_prefix_space\": true}");
    check_ids("", "he he", "2 8 8");
    put("added_tokens.json", "{\"<new>\": 10}");
    check_ids("", "he<new>he", "2 8 10 8");
    put("merges.txt", "h e\nh  e\n");
    check_refused("", "/merges.txt: line 2: must be two tokens separated by a space");
    put("merges.txt", "h x\n");
    check_refused("", ": model: BPE: merges: entry 0: \"x\" is not in the vocabulary");
    put("vocab.json", "[]");
    check_refused("", "/vocab.json: must be an object that maps tokens to ids");
    clear();
}

static void check_word_bpe(void)
{
    put("vocab.json", "{\"a</w>\":0,\"b\":1,\"ba</w>\":2,\"<unk>\":3,\"b</w>\":4}");
    put("merges.txt", "#version: 0.2\nb a</w>\n");
    check_ids("", "BA b, a", "2 4 3 0");
    clear();
    /* CTRL: "x@@" inside a word, "x" at its end; intermediate merge results without an id are unknown */
    put("vocab.json", "{\"a@@\":0,\"b@@\":1,\"b\":2,\"ab@@\":3,\"c\":4,\"<unk>\":5,\"\\n\":6,\"a\":7}");
    put("merges.txt", "#version: 0.1\na b\na c</w>\nb b</w>\nx\xc2\xa0y z\n");
    check_ids("",
              "abc  b\nac a\x1c"
              "abb",
              "3 4 1 6 5 0 5 3 2"); /* U+001C is not white space here */
    clear();

    /* XLM: special tokens are found in the text, missing ones get ids after the vocabulary; words by the
     * Moses rules */
    put("vocab.json",
        "{\"<s>\":0,\"</s>\":1,\"<pad>\":2,\"<unk>\":3,\"<special0>\":4,\"<special1>\":5,\"a</w>\":6,"
        "\"b\":7,\"-\":8,\"m\":9,\"r\":10,\".</w>\":11,\"b</w>\":12,\".\":13,\"'\":14,\"a\":15,"
        "\"\\\"</w>\":16,\",</w>\":17,\"r</w>\":18,\"1\":19,\"1</w>\":20,\"'</w>\":21,\"-</w>\":22}");
    put("merges.txt", "q q</w> 12\n");
    put("config.json", "{\"model_type\": \"xlm\"}");
    check_ids("", "A<special0> a <special1>\xc3\xa1 <special3>", "0 6 4 6 5 6 24 1");
    /* same as transformers 5.17 with sacremoses 0.2.0 */
    check_ids("", "b-a Mr. ab ab. a'b b.a.", "0 7 8 6 9 10 11 15 12 15 7 11 6 14 12 7 13 15 11 1");
    check_ids("", "Mr. B mr. B Ma. b", "0 9 10 11 12 9 18 11 12 9 15 11 12 1");
    check_ids("", "“A”, ‘b’ — a–b \"ab\". ab…b",
              "0 16 6 17 16 21 12 21 22 15 8 12 16 15 12 11 16 15 12 13 13 11 12 1");
    check_ids("", "1's 1'b 1,1 1,b a'b'ab .1 b..a b.",
              "0 20 14 3 19 14 12 19 3 20 20 17 12 6 14 7 14 15 12 13 20 12 13 11 6 12 11 1");
    check_ids("", "b'mr. 'Mr. A' B. b. B", "0 12 14 9 18 11 21 9 10 11 6 21 7 11 12 11 12 1");
    check_ids("", "'a'b B.A.-b a\tb «a» 1\u00A01", "0 14 6 14 12 7 13 15 13 8 12 15 12 16 6 16 19 13 20 1");
    clear();
}

typedef struct model_like {
    ses_spm_model_type kind;
    const char *more;  /* an additional last piece; or NULL */
    bool spaces_stay;  /* keep all spaces, at the ends too */
    bool spaces_after; /* whitespace_as_suffix */
} model_like;

static void put_model_like(const char *name, model_like like)
{
    ses_buf b = { 0 }, m = { 0 }, n = { 0 };
    pb_piece(&b, "<unk>", 0, SES_SPM_UNKNOWN);
    pb_piece(&b, "<s>", 0, SES_SPM_CONTROL);
    pb_piece(&b, "</s>", 0, SES_SPM_CONTROL);
    pb_piece(&b, "▁", -2, SES_SPM_NORMAL);
    pb_piece(&b, "a", -3, SES_SPM_NORMAL);
    pb_piece(&b, "▁a", -1.5f, SES_SPM_NORMAL);
    pb_piece(&b, "1,", -1, SES_SPM_NORMAL);
    pb_piece(&b, "1", -3, SES_SPM_NORMAL);
    pb_piece(&b, ",", -3, SES_SPM_NORMAL);
    if (like.more) pb_piece(&b, like.more, -1, SES_SPM_NORMAL);
    pb_int(&m, 3, like.kind);
    pb_int(&m, 24, like.spaces_after);
    pb_bytes(&b, 2, m.data, m.len);
    pb_int(&n, 4, !like.spaces_stay);
    pb_bytes(&b, 3, n.data, n.len);
    put_bytes(name, b.data, b.len);
    ses_buf_free(&b);
    ses_buf_free(&m);
    ses_buf_free(&n);
}

static void put_model(const char *name, ses_spm_model_type kind)
{
    put_model_like(name, (model_like){ .kind = kind });
}

static void check_spm(void)
{
    put_model("spiece.model", SES_SPM_UNIGRAM);
    check_ids("", "a  a1,", "5 5 6 2"); /* detected as T5 */
    check_ids("", "<extra_id_0>a", "108 5 2");
    put("tokenizer_config.json", "{\"extra_ids\": 2}");
    check_ids("", "<extra_id_0><extra_id_1>", "10 9 2");
    put("tokenizer_config.json", "{\"extra_ids\": -1}");
    check_refused("", ": tokenizer_config.json: invalid extra_ids -1");
    put("tokenizer_config.json",
        "{\"tokenizer_class\": \"AlbertTokenizerFast\", \"cls_token\": \"<s>\", \"sep_token\": \"</s>\"}");
    check_ids("", "A á 1,", "1 5 5 3 7 8 2"); /* digit and comma are separate */
    put("tokenizer_config.json", "{\"tokenizer_class\": \"PegasusTokenizer\"}");
    check_ids("", "a <mask_1> x", "108 106 2 106 105 1");
    clear();

    put_model("sentencepiece.bpe.model", SES_SPM_UNIGRAM);
    put("config.json", "{\"model_type\": \"xlm-roberta\"}");
    check_ids("", "a a<mask>x", "0 6 6 10 4 3 2");
    put("config.json", "{\"model_type\": \"camembert\"}");
    check_ids("", "a", "5 9 6");
    put("config.json", "{\"model_type\": \"mbart\"}");
    check_ids("", "a", "6 2 13");
    put("tokenizer_config.json", "{\"src_lang\": \"ro_RO\"}");
    check_ids("", "a ro_RO", "6 29 2 29");
    put("tokenizer_config.json", "{\"tokenizer_class\": \"MBart50Tokenizer\", \"src_lang\": \"sl_SI\"}");
    check_ids("", "a", "61 6 2");
    put("tokenizer_config.json", "{\"tokenizer_class\": \"XGLMTokenizer\"}");
    check_ids("", "a<madeupword6>", "2 6 16");
    clear();

    put_model("sentencepiece.bpe.model", SES_SPM_BPE);
    put("config.json", "{\"model_type\": \"bart\"}");
    put("tokenizer_config.json", "{\"tokenizer_class\": \"BarthezTokenizer\"}");
    check_ids("", "a1,aé", "1 5 6 4 0 2");
    clear();
    put_model("x.model", SES_SPM_UNIGRAM);
    check_ids("x.model", "a  1, é", "5 3 6 3 0");
    check_ids("x.model", "  a  ", "5"); /* spaces at the ends are removed, as in SentencePiece */
    check_ids("x.model", "  ", "");
    check_ids("x.model", "a▁", "5");
    put_model_like("x.model", (model_like){ .kind = SES_SPM_UNIGRAM, .more = "a▁1" });
    check_ids("x.model", "a 1 a", "3 9 5"); /* a piece that spans a space */
    put_model_like("x.model", (model_like){ .kind = SES_SPM_UNIGRAM, .spaces_stay = true });
    check_ids("x.model", "  a ", "3 3 5 3"); /* one more space before the existing ones */
    put_model_like("x.model", (model_like){ .kind = SES_SPM_UNIGRAM, .spaces_after = true });
    check_ids("x.model", " a 1,", "4 3 6 3");
    put_model("x.model", SES_SPM_CHAR);
    check_ids("x.model", "a éé1", "3 4 3 0 7");
    put_model("x.model", SES_SPM_WORD);
    ses_err e = { 0 };
    char path[256];
    snprintf(path, sizeof path, "%s/x.model", dir);
    CHECK(!ses_tokenizer_convert(path, "/tmp/never.json", true, &e) &&
          strstr(e.msg, "has no equivalent in tokenizer.json"));
    clear();
}

static void check_marian(void)
{
    put_model("source.spm", SES_SPM_UNIGRAM);
    put_model("target.spm", SES_SPM_UNIGRAM);
    put("vocab.json", "{\"</s>\":0,\"<unk>\":1,\"▁a\":2,\"1,\":3,\"é\":4,\"<pad>\":5,\">>fr<<\":6}");
    check_ids("", ">>fr<< a1,é", "6 2 3 4 0");
    check_decoded((int32_t[]){ 2, 6, 4, 2, 0 }, 5, "a>>fr<<é a");
    check_ids("", "  a  a\xc2\x85 ", "2 2 1 0"); /* only spaces separate words */
    clear();
}

/* A vocabulary for each language: ids of transformers' MarianTokenizer(text) and (text_target=text). */
static void check_two_vocabularies(void)
{
    static const char folder[] = "tests/golden/marian-two-vocabs";
    static const struct {
        const char *text;
        int32_t id[16];
    } source[] = { { "the cat sat on the mat", { 24, 18, 23, 14, 21, 24, 20, 1 } },
                   { "zebra the", { 16, 0, 6, 0, 12, 3, 24, 1 } } },
      target[] = { { "die katze sass auf der matte",
                     { 25, 28, 29, 18, 18, 23, 3, 21, 8, 24, 23, 14, 4, 20, 1 } },
                   { "der rote hund", { 24, 23, 17, 16, 20, 27, 1 } } };
    ses_err e = { 0 };
    ses_tokenizer *t[2] = { ses_tokenizer_open(folder, &e) };
    CHECK_MSG(ses_tokenizer_open_target(folder, &t[1], &e) && t[1], "%s", e.msg);
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; t[side] && i < 2; i++) {
            const char *text = side ? target[i].text : source[i].text;
            const int32_t *id = side ? target[i].id : source[i].id;
            ses_encode_ctx *c = ses_encode_ctx_new(t[side], &e);
            CHECK(c && ses_encode(c, &(ses_input){ .text = { text, strlen(text) } }, NULL, &e));
            const ses_encoding *k = ses_encode_ctx_result(c);
            CHECK(k->n && k->n <= 16 && !memcmp(k->id, id, k->n * sizeof *id) && id[k->n - 1] == 1);
            ses_encode_ctx_free(c);
        }
    ses_tokenizer_free(t[0]), ses_tokenizer_free(t[1]);
    CHECK(ses_tokenizer_open_target("tests/golden/bert-qa", &t[1], &e) && !t[1]); /* one for both */
}

/* A vocabulary file given by its own path: no other file of the folder is needed. */
static void check_named(void)
{
    put("bert-base-uncased-vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n");
    check_ids("bert-base-uncased-vocab.txt", "ab a", "2 5 6 5 3");
    check_refused("other.txt", "/other.txt: No such file or directory");
    clear();
}

static void check_errors(void)
{
    check_refused(
        "", ": neither tokenizer.json nor vocab.txt, vocab.json and merges.txt, spiece.model, "
            "sentencepiece.bpe.model, spm.model, source.spm nor one SentencePiece model of another name "
            "found");
    put("config.json", "{\"model_type\": \"bert\"}");
    check_refused("", ": neither tokenizer.json nor vocab.txt found");
    put("config.json", "{\"model_type\": \"gpt2\"}");
    check_refused("", ": neither tokenizer.json nor vocab.json found");
    put("config.json", "{\"model_type\": \"xlnet\"}");
    check_refused("", ": neither tokenizer.json nor spiece.model found");
    clear();
    put("spiece.model", "junk");
    check_refused("", "/spiece.model: not a SentencePiece model: field exceeds the end at byte 2");
    put("vocab.txt", "[UNK]\n");
    put("tokenizer_config.json", "7");
    check_refused("", "/tokenizer_config.json: must be an object");
    put("tokenizer_config.json", "{\"added_tokens_decoder\": {\"x\": \"y\"}}");
    check_refused("", ": added_tokens_decoder: \"x\" is not an id");
    clear();
}

int main(void)
{
    if (!mkdtemp(dir)) {
        SKIP("no folder below /tmp can be made");
        return check_report();
    }
    check_wordpiece();
    check_byte_bpe();
    check_word_bpe();
    check_spm();
    check_marian();
    check_two_vocabularies();
    check_named();
    check_errors();
    clear();
    rmdir(dir);
    return check_report();
}
