/* Hub names, lists of files, the choice of files, headers, URLs, hashes. */
#include "base/alloc.h"
#include "check.h"
#include "hub/http_headers.h"
#include "hub/hub_files.h"
#include "serve/registry.h"
#include "text/tokenizer_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static void test_names(void)
{
    ses_hub_name n;
    ses_err e = { 0 };
    CHECK(ses_hub_name_parse("google-bert/bert-base-uncased", &n, &e));
    CHECK_STR(n.id, "google-bert/bert-base-uncased");
    CHECK_STR(n.revision, "main");
    CHECK_STR(n.folder, "models--google-bert--bert-base-uncased");
    CHECK(ses_hub_name_parse("hf://a/b.c_d@refs/pr/1", &n, &e));
    CHECK_STR(n.id, "a/b.c_d");
    CHECK_STR(n.revision, "refs/pr/1");
    CHECK(ses_hub_name_parse("gpt2", &n, &e));
    CHECK_STR(n.folder, "models--gpt2");
    static const char *const bad[] = { "",           "/",      "a/",         "/a",     "a/b/c",   "../a",
                                       "a/..",       "a/b@",   "a//b",       "a/b@..", "a/b@/x",  "a/-b",
                                       "a/b--c",     "a/b..c", "a/b@x\ny",   "a b/c",  "a/b@x y", ".a/b",
                                       "a/b@x/../y", "a\\b/c", "a/\xC3\xA4", "hf://",  "a/b@x%2e" };
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        ses_err why = { 0 };
        CHECK_MSG(!ses_hub_name_parse(bad[i], &n, &why) && why.code == SES_EARG, "accepted \"%s\"", bad[i]);
    }
    char long_name[200];
    memset(long_name, 'a', sizeof long_name);
    long_name[120] = 0;
    CHECK(!ses_hub_name_parse(long_name, &n, NULL));
    CHECK(ses_hub_name_is("a/b") && ses_hub_name_is("hf://x") && !ses_hub_name_is("a") &&
          !ses_hub_name_is("./a") && !ses_hub_name_is("a/b/c") && !ses_hub_name_is("/a/b") &&
          !ses_hub_name_is("../b"));
    CHECK(ses_hub_name_of_folder("models--a--b", &n) && !strcmp(n.id, "a/b"));
    CHECK(ses_hub_name_of_folder("models--gpt2", &n) && !strcmp(n.id, "gpt2"));
    CHECK(!ses_hub_name_of_folder("models--a--b--c", &n) && !ses_hub_name_of_folder("datasets--a--b", &n) &&
          !ses_hub_name_of_folder("models--", &n) && !ses_hub_name_of_folder("models--..--x", &n));
    const char *snapshot = "/x/models--a--b/snapshots/0123456789abcdef0123456789abcdef01234567/";
    CHECK(ses_hub_name_of_snapshot(snapshot, &n) && !strcmp(n.id, "a/b") && strlen(n.revision) == 40);
    CHECK_STR(ses_model_label_of(snapshot).s, "a/b");
    CHECK_STR(ses_model_label_of("/x/model/").s, "model");
    CHECK(!ses_hub_name_of_snapshot("/x/models--a--b/snapshots/main", &n) &&
          !ses_hub_name_of_snapshot("x", &n));
}

/* A served model is named after the hub, a folder after itself. */
static void test_served_names(void)
{
    static const char *const names[][2] = {
        { "acme/tiny", "acme/tiny" }, { "acme/tiny@v1", "acme/tiny" }, { "hf://acme/tiny", "acme/tiny" },
        { "tests/golden", "golden" }, { "x=acme/tiny", "x" },          { "sesame-small", "sesame-small" }
    };
    for (size_t i = 0; i < SES_LEN(names); i++) {
        char got[256] = "";
        CHECK(ses_registry_spec_name(names[i][0], got, sizeof got, NULL));
        CHECK_STR(got, names[i][1]);
    }
}

static void test_paths(void)
{
    static const char *const good[] = { "a",    "a/b.json",    "1_Pooling/config.json", ".gitattributes",
                                        "a..b", "\xC3\xA4.txt" };
    static const char *const bad[] = { "",     "/a",    "a/",   "a//b", ".",     "..",   "a/..",
                                       "../a", "a/./b", "a\\b", "a\nb", "a\x7F", "\xFF", "a/../b" };
    for (size_t i = 0; i < SES_LEN(good); i++)
        CHECK_MSG(ses_hub_path_is_safe(good[i], strlen(good[i])), "%s", good[i]);
    for (size_t i = 0; i < SES_LEN(bad); i++)
        CHECK_MSG(!ses_hub_path_is_safe(bad[i], strlen(bad[i])), "%s", bad[i]);
    CHECK(!ses_hub_path_is_safe("a\0b", 3));
}

/* ---- lists ---- */

static bool read_api(ses_hub_files *f, const char *text, ses_err *e)
{
    ses_json_doc *d = ses_json_parse(text, strlen(text), e);
    CHECK(d);
    bool ok = d && ses_hub_files_from_api(f, ses_json_root(d), e);
    ses_json_free(d);
    return ok;
}

#define SHA "\"sha\":\"0123456789abcdef0123456789abcdef01234567\""
#define BLOB "\"blobId\":\"0123456789abcdef0123456789abcdef01234567\""

static void test_bad_lists(void)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        { "{}", "\"sha\"" },
        { "{\"sha\":\"main\"}", "\"sha\"" },
        { "{" SHA "}", "siblings" },
        { "{" SHA ",\"siblings\":[{}]}", "rfilename" },
        { "{" SHA ",\"siblings\":[{\"rfilename\":\"../../etc/passwd\",\"size\":1}]}", "relative path" },
        { "{" SHA ",\"siblings\":[{\"rfilename\":\"/etc/passwd\",\"size\":1}]}", "relative path" },
        { "{" SHA ",\"siblings\":[{\"rfilename\":\"a\\u0000b\",\"size\":1}]}", "relative path" },
        { "{" SHA ",\"siblings\":[{\"rfilename\":\"a\\u001b[2J\",\"size\":1}]}", "relative path" },
        { "{" SHA ",\"siblings\":[{\"rfilename\":\"a\"}]}", "size" },
        { "{" SHA ",\"siblings\":[{\"rfilename\":\"a\",\"size\":-1}]}", "size" },
        { "{" SHA ",\"siblings\":[{\"rfilename\":\"a\",\"size\":99999999999999999}]}", "size" },
        { "{" SHA ",\"siblings\":[{\"rfilename\":\"a\",\"size\":1,\"blobId\":\"../x\"}]}", "hex digits" },
        { "{" SHA ",\"siblings\":[{\"rfilename\":\"a\",\"size\":1,\"lfs\":{\"sha256\":\"AB\"}}]}",
          "hex digits" },
        { "{" SHA ",\"siblings\":[{\"rfilename\":\"a\",\"size\":1},{\"rfilename\":\"a\",\"size\":1}]}",
          "twice" },
    };
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        ses_hub_files f;
        ses_err e = { 0 };
        CHECK_MSG(!read_api(&f, bad[i].text, &e) && strstr(e.msg, bad[i].message), "%s: %s", bad[i].text,
                  e.msg);
        CHECK(!f.item && !f.n);
    }
}

/* The chosen ones of "name name/name ...", in order, with a letter for their use. */
static void choice_is(const char *names, const char *expected)
{
    ses_hub_files f = { 0 };
    ses_buf api = { 0 }, got = { 0 };
    ses_buf_puts(&api, "{" SHA ",\"siblings\":[");
    for (const char *at = names; *at;) {
        size_t n = strcspn(at, " ");
        ses_buf_appendf(&api, "%s{\"rfilename\":\"%.*s\",\"size\":5," BLOB "}", at == names ? "" : ",",
                        (int)n, at);
        at += n + (at[n] == ' ');
    }
    ses_buf_puts(&api, "]}");
    ses_err e = { 0 };
    CHECK_MSG(read_api(&f, api.data, &e), "%s", e.msg);
    ses_buf_puts(&got, "");
    for (size_t i = 0; i < f.n; i++)
        if (f.item[i].use != SES_HUB_SKIPPED)
            ses_buf_appendf(&got, "%s%s:%c", got.len ? " " : "", f.item[i].path, "-otcw"[f.item[i].use]);
    CHECK_MSG(!strcmp(got.len ? got.data : "", expected), "%s:\n  %s\n  %s", names, got.data, expected);
    ses_buf_free(&got);
    ses_buf_free(&api);
    ses_hub_files_free(&f);
}

static void test_choice(void)
{
    choice_is("config.json model.safetensors pytorch_model.bin tf_model.h5 onnx/model.onnx .gitattributes",
              "config.json:c model.safetensors:w");
    choice_is("config.json pytorch_model.bin vocab.txt", "config.json:c pytorch_model.bin:w vocab.txt:t");
    choice_is(
        "model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json "
        "pytorch_model-00001-of-00001.bin pytorch_model.bin.index.json",
        "model-00001-of-00002.safetensors:w model-00002-of-00002.safetensors:w "
        "model.safetensors.index.json:w");
    choice_is("model.safetensors model.safetensors.index.json model-00001-of-00001.safetensors "
              "model.fp16.safetensors",
              "model.safetensors:w");
    choice_is(
        "1_Pooling/config.json 2_Dense/config.json 2_Dense/pytorch_model.bin 2_Dense/model.safetensors "
        "modules.json "
        "model.safetensors sentence_bert_config.json config_sentence_transformers.json other/config.json",
        "1_Pooling/config.json:c 2_Dense/config.json:c 2_Dense/model.safetensors:w "
        "config_sentence_transformers.json:o "
        "model.safetensors:w modules.json:c sentence_bert_config.json:o");
    choice_is("adapter_config.json adapter_model.safetensors adapter_model.bin README.md",
              "README.md:o adapter_config.json:c adapter_model.safetensors:w");
    choice_is("bert_config.json bert_model.ckpt.index bert_model.ckpt.data-00000-of-00001 "
              "bert_model.ckpt.meta vocab.txt",
              "bert_config.json:c bert_model.ckpt.data-00000-of-00001:w bert_model.ckpt.index:w vocab.txt:t");
    choice_is("tokenizer.json vocab.txt merges.txt", "merges.txt:o tokenizer.json:t vocab.txt:o");
    for (int i = 0; i < SES_TOKENIZER_FILES; i++) { /* every file that tokenizers read is chosen */
        ses_hub_files f = { 0 };
        CHECK(ses_hub_files_add(&f, ses_tokenizer_file_names[i], strlen(ses_tokenizer_file_names[i]), NULL));
        ses_hub_files_choose(&f);
        CHECK_MSG(f.item[0].use != SES_HUB_SKIPPED, "%s", ses_tokenizer_file_names[i]);
        ses_hub_files_free(&f);
    }
    ses_hub_files f = { 0 };
    ses_err e = { 0 };
    CHECK(ses_hub_files_add(&f, "tf_model.h5", 11, NULL));
    ses_hub_files_choose(&f);
    CHECK(!ses_hub_files_check_usable(&f, &e) && strstr(e.msg, "found tf_model.h5"));
    ses_hub_files_free(&f);
}

static void test_tree(void)
{
    ses_hub_files f, again;
    ses_err e = { 0 };
    CHECK(read_api(&f,
                   "{" SHA ",\"siblings\":[{\"rfilename\":\"b\",\"size\":3," BLOB
                   "},{\"rfilename\":\"a/c\",\"size\":130," BLOB ",\"lfs\":{\"sha256\":"
                   "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\",\"size\":7}}]}",
                   &e));
    size_t n = 0;
    char *text = ses_hub_files_tree(&f, &n, &e);
    ses_json_doc *d = text ? ses_json_parse(text, n, &e) : NULL;
    CHECK_MSG(d && ses_hub_files_from_tree(&again, ses_json_root(d), f.commit, &e), "%s", e.msg);
    CHECK(again.n == 2 && !strcmp(again.item[0].path, "a/c") && again.item[0].size == 7 &&
          again.item[1].size == 3);
    CHECK_STR(again.item[0].sha256, f.item[0].sha256);
    CHECK_STR(ses_hub_file_etag(&again.item[1]), "0123456789abcdef0123456789abcdef01234567");
    ses_json_free(d);
    ses_free(text);
    ses_hub_files_free(&again);
    ses_hub_files_free(&f);
}

/* ---- headers and URLs ---- */

static ses_http_headers reply_of(const char *line)
{
    ses_http_headers r = ses_http_headers_new();
    ses_http_headers_read(&r, line, strlen(line));
    return r;
}

static void test_headers(void)
{
    CHECK(reply_of("Retry-After: 12\r\n").retry_after == 12);
    CHECK(reply_of("retry-after:  0").retry_after == 0);
    CHECK(reply_of("Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n").retry_after == -1);
    CHECK(reply_of("Retry-After: 99999999999999999999999\r\n").retry_after == -1);
    CHECK(reply_of("ratelimit: \"api\";r=0;t=55\r\n").limit_resets == 55);
    CHECK(reply_of("RateLimit: \"api\"; r=0; t=55").limit_resets == 55);
    CHECK(reply_of("ratelimit: \"api\";r=3;t=55").limit_resets == -1);
    CHECK(reply_of("ratelimit: ;;;r=;t=").limit_resets == -1);
    ses_http_headers r = reply_of("Content-Range: bytes 10-19/20\r\n");
    CHECK(r.has_range && r.first == 10 && r.total == 20);
    r = reply_of("content-range: bytes 10-19/*");
    CHECK(r.has_range && r.total == UINT64_MAX);
    CHECK(!reply_of("Content-Range: bytes 10-9/20").has_range &&
          !reply_of("Content-Range: bytes */20").has_range &&
          !reply_of("Content-Range: bytes 10-19/19").has_range &&
          !reply_of("Content-Range: bytes 10-19/20x").has_range);
    CHECK_STR(reply_of("X-Error-Code: GatedRepo\r\n").code, "GatedRepo");
    CHECK_STR(reply_of("X-Error-Message: a\033[2J\r\n").error, "a\\x1b[2J");
    ses_http_headers_read(&r, "HTTP/1.1 200 OK\r\n", 17);
    CHECK(!r.has_range);
}

static void test_urls(void)
{
    static const struct {
        const char *a, *b;
        bool same;
    } pairs[] = {
        { "https://huggingface.co", "https://huggingface.co/a/b?c", true },
        { "https://huggingface.co", "https://HuggingFace.co:443/a", true },
        { "https://huggingface.co", "http://huggingface.co/a", false },
        { "https://huggingface.co", "https://huggingface.co.evil.org/a", false },
        { "https://huggingface.co", "https://huggingface.co@evil.org/a", false },
        { "https://huggingface.co", "https://evil.org/huggingface.co", false },
        { "https://huggingface.co", "https://huggingface.co:8443/", false },
        { "http://127.0.0.1:80", "http://127.0.0.1/x", true },
        { "http://127.0.0.1:8080", "http://localhost:8080", false },
        { "http://[::1]:90/a", "http://[::1]:90/b", true },
        { "http://[::1]:90/a", "http://[::1]:91/b", false },
        { "ftp://a", "ftp://a", false },
        { "", "", false },
    };
    for (size_t i = 0; i < SES_LEN(pairs); i++)
        CHECK_MSG(ses_url_same_origin(pairs[i].a, pairs[i].b) == pairs[i].same, "%s %s", pairs[i].a,
                  pairs[i].b);
    ses_buf b = { 0 };
    ses_url_put_path(&b, "a b/\xC3\xA4?#%.txt");
    CHECK_STR(b.data, "a%20b/%C3%A4%3F%23%25.txt");
    ses_buf_free(&b);
}

/* ---- hashes: FIPS 180-4's examples ---- */

static void hash_is(const char *text, size_t times, const char *sha1, const char *sha256)
{
    char hex[SES_SHA256_HEX + 1];
    ses_sha a = ses_sha1_start(), b = ses_sha256_start();
    for (size_t i = 0; i < times; i++)
        ses_sha_add(&a, text, strlen(text)), ses_sha_add(&b, text, strlen(text));
    ses_sha_hex(&a, hex);
    CHECK_STR(hex, sha1);
    ses_sha_hex(&b, hex);
    CHECK_STR(hex, sha256);
}

static void test_sha(void)
{
    hash_is("", 1, "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hash_is("abc", 1, "a9993e364706816aba3e25717850c26c9cd0d89d",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hash_is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    hash_is("aaaaaaaaaa", 100000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f",
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
    test_names();
    test_served_names();
    test_paths();
    test_bad_lists();
    test_choice();
    test_tree();
    test_headers();
    test_urls();
    test_sha();
    return check_report();
}
