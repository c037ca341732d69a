/* Tokenizers with every allocation failing in turn: opening each file format, encoding, decoding, saving,
 * converting, training. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "oom.h"

#include "base/alloc.h"
#include "base/file.h"
#include "sesame/json.h"
#include "sesame/tokenizer.h"
#include "spm_fixture.h"

#include <unistd.h>

static char dir[64], path[128], out[128];

static const char text[] =
    "Hello, w\xC3\xB6rld! [CLS] the 1234 \xE4\xB8\xAD\xE6\x96\x87 a\xCC\x81 \xFF don't  <s> x\xEF\xAC\x81 ";

static bool encode_and_decode(const ses_tokenizer *t, const ses_encode_options *o, ses_err *e)
{
    ses_string words[] = { { "the", 3 }, { "w\xC3\xB6rld\xFF", 7 } };
    ses_input in[] = { { .text = { text, sizeof text - 1 } },
                       { .text = { text, sizeof text - 1 }, .pair = { text, sizeof text - 1 } },
                       { .words = words, .n_words = 2, .pair_words = words, .n_pair_words = 2 } };
    ses_encode_ctx *k = ses_encode_ctx_new(t, e);
    bool ok = k != NULL;
    for (size_t i = 0; ok && i < SES_LEN(in); i++) {
        ok = ses_encode(k, &in[i], o, e);
        for (size_t j = 0; ok && j < ses_encode_ctx_overflow_count(k) && j < 3; j++)
            ok = ses_encode_ctx_overflow(k, j, e) != NULL;
    }
    const char *s;
    size_t n;
    int32_t id[4] = { 0, 1, 2, 3 };
    ok = ok && ses_decode(k, id, 4, true, &s, &n, e);
    ses_encode_ctx_free(k);
    return ok;
}

/* ---- tokenizer.json ---- */

static bool open_json(void *ctx, ses_err *e)
{
    const char *json = ctx;
    ses_tokenizer *t = ses_tokenizer_from_json(json, strlen(json), e);
    ses_tokenizer_free(t);
    return t != NULL;
}

static bool use(void *ctx, ses_err *e)
{
    ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST,
                             .max_length = 12,
                             .full_overflow = true };
    return encode_and_decode(ctx, &o, e) && encode_and_decode(ctx, NULL, e);
}

static bool save(void *ctx, ses_err *e) { return ses_tokenizer_save(ctx, out, true, e); }

/* Whether the scenario succeeds with enough memory. */
static bool works(bool (*run)(void *ctx, ses_err *e), void *ctx)
{
    ses_err e = { 0 };
    return run(ctx, &e);
}

static void check_setups(const char *file, size_t step)
{
    ses_err e = { 0 };
    ses_json_doc *doc = ses_json_load(file, 1 << 24, &e);
    const ses_json *setups = doc ? ses_json_get(ses_json_root(doc), "setups") : NULL;
    CHECK(ses_json_len(setups) > 7);
    for (size_t i = 0; i < ses_json_len(setups); i += step) {
        size_t n;
        ses_json_writer *w = ses_json_writer_new(0, &e);
        ses_json_put_value(w, ses_json_at(setups, i));
        char *json = (char *)ses_json_writer_text(w, &n, &e);
        oom_sweep("open", open_json, json);
        ses_tokenizer *t = ses_tokenizer_from_json(json, n, &e);
        if (works(use, t)) oom_sweep("encode and decode", use, t);
        if (i % 8 == 0) oom_sweep("save", save, t);
        ses_tokenizer_free(t);
        ses_json_writer_free(w);
    }
    ses_json_free(doc);
}

/* ---- legacy formats ---- */

static bool open_path(void *ctx, ses_err *e)
{
    ses_tokenizer *t = ses_tokenizer_open(ctx, e);
    bool ok = t && encode_and_decode(t, NULL, e);
    ses_tokenizer_free(t);
    return ok;
}

static bool convert(void *ctx, ses_err *e) { return ses_tokenizer_convert(ctx, out, true, e); }

static void put(const char *name, const char *p, size_t n)
{
    ses_err e = { 0 };
    snprintf(path, sizeof path, "%s/%s", dir, name);
    CHECK(ses_file_write(path, p, n, true, &e));
}

static void put_text(const char *name, const char *s) { put(name, s, strlen(s)); }

static void put_model(const char *name, ses_spm_model_type kind)
{
    static const char *const piece[] = { "▁", "a", "b", "ab", "▁a", "e", "l", "o" };
    ses_buf b = { 0 }, spec = { 0 };
    pb_piece(&b, "<unk>", 0, SES_SPM_UNKNOWN);
    pb_piece(&b, "<s>", 0, SES_SPM_CONTROL);
    pb_piece(&b, "</s>", 0, SES_SPM_CONTROL);
    for (size_t i = 0; i < SES_LEN(piece); i++) pb_piece(&b, piece[i], -(float)i, SES_SPM_NORMAL);
    pb_piece(&b, "<x>", 0, SES_SPM_USER_DEFINED);
    pb_int(&spec, 3, kind);
    pb_bytes(&b, 2, spec.data, spec.len);
    put(name, b.data, b.len);
    ses_buf_free(&b);
    ses_buf_free(&spec);
}

static void clear(void)
{
    static const char *const name[] = { "vocab.txt",
                                        "vocab.json",
                                        "merges.txt",
                                        "spm.model",
                                        "tokenizer_config.json",
                                        "spiece.model",
                                        "config.json",
                                        "special_tokens_map.json",
                                        "source.spm",
                                        "target.spm",
                                        "added_tokens.json" };
    for (size_t i = 0; i < SES_LEN(name); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, name[i]);
        remove(path);
    }
}

static void sweep_folder(const char *what)
{
    oom_sweep(what, open_path, dir);
    oom_sweep(what, convert, dir);
    clear();
}

static void check_legacy_files(void)
{
    put_text("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nhello\n##ld\n,\n");
    put_text("tokenizer_config.json", "{\"do_lower_case\": true, \"model_max_length\": 512}");
    put_text("special_tokens_map.json", "{\"unk_token\": \"[UNK]\"}");
    put_text("added_tokens.json", "{\"<x>\": 9}");
    sweep_folder("vocab.txt");

    put_text("vocab.json",
             "{\"<unk>\": 0, \"l\": 1, \"o\": 2, \"</w>\": 3, \"lo\": 4, \"o</w>\": 5, \"e\": 6}");
    put_text("merges.txt", "#version: 0.2\nl o\n");
    put_text("config.json", "{\"model_type\": \"openai-gpt\"}");
    sweep_folder("merges.txt");

    for (int kind = SES_SPM_UNIGRAM; kind <= SES_SPM_CHAR; kind++) {
        put_model("spm.model", (ses_spm_model_type)kind);
        oom_sweep("a .model file", open_path, path);
        clear();
    }
    put_model("spiece.model", SES_SPM_UNIGRAM);
    put_text("config.json", "{\"model_type\": \"t5\"}");
    sweep_folder("spiece.model");

    put_model("source.spm", SES_SPM_UNIGRAM);
    put_model("target.spm", SES_SPM_UNIGRAM);
    put_text("vocab.json", "{\"</s>\": 0, \"<unk>\": 1, \"a\": 2, \"\xE2\x96\x81"
                           "a\": 3, \"<pad>\": 4, \"b\": 5}");
    put_text("config.json", "{\"model_type\": \"marian\"}");
    put_text("tokenizer_config.json", "{\"source_lang\": \"en\", \"target_lang\": \"de\"}");
    sweep_folder("Marian");
}

/* ---- training ---- */

static bool train(void *ctx, ses_err *e)
{
    static const char *const line[] = { "low lower lowest", "new newer newest wider",
                                        "low, w\xC3\xB6rld \xFF" };
    const ses_tokenizer_train_options *o = ctx;
    size_t n;
    char *json = NULL;
    ses_tokenizer_trainer *t = ses_tokenizer_trainer_new(o, e);
    bool ok = t != NULL;
    for (size_t i = 0; ok && i < SES_LEN(line); i++)
        ok = ses_tokenizer_trainer_feed(t, line[i], strlen(line[i]), e);
    if (ok) json = ses_tokenizer_trainer_finish(t, &n, e);
    ses_tokenizer_trainer_free(t);
    ses_free(json);
    return json != NULL;
}

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/sesame-oom-XXXXXX");
    CHECK(mkdtemp(dir));
    snprintf(out, sizeof out, "%s/out.json", dir);
    check_setups("tests/text/cases.json", 1);
    check_setups("tests/text/stages.json", 4);
    check_legacy_files();
    for (int type = 0; type < SES_TOKENIZER_TYPES; type++) {
        ses_tokenizer_train_options o = { .type = (ses_tokenizer_type)type,
                                          .vocab_size = 24,
                                          .threads = 1 + type / 2 };
        oom_sweep("train", train, &o);
    }
    remove(out);
    rmdir(dir);
    return check_report();
}
