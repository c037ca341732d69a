#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "base/file.h"
#include "check.h"
#include "io/safetensors_impl.h"
#include "sesame/unstable/tensor.h"

#include <unistd.h>

/* ---- malformed files and their errors ---- */

typedef struct bad_case {
    const char *header;
    size_t data; /* bytes after it */
    ses_code code;
    const char *want; /* after "x: " */
} bad_case;

#define F SES_EFORMAT
#define T(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define ONE(tensor) "{\"a\":" tensor "}"
#define HEAD "header: line 1, column "

static const bad_case bad[] = {
    /* the header as JSON */
    { "{", 0, F, HEAD "2 (byte 1): a key expected, not the end of the text" },
    { "{}x", 0, F, HEAD "3 (byte 2): nothing expected after the value, not 'x'" },
    { "{\"a\":1,}", 0, F, HEAD "8 (byte 7): a key expected, not '}'" },
    { "{\"a\xff\":1}", 0, F, HEAD "4 (byte 3): invalid UTF-8: byte 0xff" },
    { "{\"a\":{},\"a\":{}}", 0, F, HEAD "9 (byte 8): key \"a\" appears twice" },
    { "[]", 0, F, "header does not begin with '{'" },
    { " {}", 0, F, "header does not begin with '{'" },
    { "\"a\"", 0, F, "header does not begin with '{'" },
    { "", 0, F, "header does not begin with '{'" },
    { "{}", 1, F, "1 bytes after the last tensor" },
    /* metadata */
    { "{\"__metadata__\":1}", 0, F, "__metadata__: an object of strings expected, not an integer" },
    { "{\"__metadata__\":null}", 0, F, "__metadata__: an object of strings expected, not null" },
    { "{\"__metadata__\":[\"a\"]}", 0, F, "__metadata__: an object of strings expected, not an array" },
    { "{\"__metadata__\":{\"a\":1}}", 0, F, "__metadata__: \"a\": a string expected, not an integer" },
    { "{\"__metadata__\":{\"a\":\"b\",\"c\":{}}}", 0, F,
      "__metadata__: \"c\": a string expected, not an object" },
    { "{\"__metadata__\":{\"a\":\"b\\u0000\"}}", 0, F, "__metadata__: \"a\": contains a NUL" },
    { "{\"__metadata__\":{\"a\":\"b\",\"a\":\"b\"}}", 0, F, HEAD "26 (byte 25): key \"a\" appears twice" },
    /* the tensor's object */
    { ONE("1"), 0, F, "tensor \"a\": an object expected, not an integer" },
    { ONE("[]"), 0, F, "tensor \"a\": an object expected, not an array" },
    { ONE("null"), 0, F, "tensor \"a\": an object expected, not null" },
    { ONE("{}"), 0, F, "tensor \"a\": dtype missing" },
    { ONE("{\"dtype\":\"U8\"}"), 0, F, "tensor \"a\": shape missing" },
    { ONE("{\"dtype\":\"U8\",\"shape\":[]}"), 0, F, "tensor \"a\": data_offsets missing" },
    { ONE("{\"shape\":[],\"data_offsets\":[0,1]}"), 1, F, "tensor \"a\": dtype missing" },
    { ONE("{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],\"x\":1}"), 1, F,
      "tensor \"a\": unknown key \"x\"" },
    { ONE("{\"Dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}"), 1, F, "tensor \"a\": dtype missing" },
    { "{\"a\\u0000b\":" T("U8", "[]", "[0,1]") "}", 1, F, "tensor \"a\\x00b\": NUL in its name" },
    { "{\"\\u001b[31m\":1}", 0, F, "tensor \"\\x1b[31m\": an object expected, not an integer" },
    /* dtype */
    { ONE("{\"dtype\":1,\"shape\":[],\"data_offsets\":[0,1]}"), 1, F,
      "tensor \"a\": dtype: a string expected" },
    { ONE(T("F8_E4M3", "[1]", "[0,1]")), 1, SES_EUNSUPPORTED, "tensor \"a\": unsupported dtype \"F8_E4M3\"" },
    { ONE(T("f32", "[1]", "[0,4]")), 4, SES_EUNSUPPORTED, "tensor \"a\": unsupported dtype \"f32\"" },
    { ONE(T("U64", "[1]", "[0,8]")), 8, SES_EUNSUPPORTED, "tensor \"a\": unsupported dtype \"U64\"" },
    { ONE(T("", "[1]", "[0,8]")), 8, SES_EUNSUPPORTED, "tensor \"a\": unsupported dtype \"\"" },
    { ONE(T("F32\\u0000", "[1]", "[0,4]")), 4, SES_EUNSUPPORTED,
      "tensor \"a\": unsupported dtype \"F32\\x00\"" },
    { ONE("{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],\"shape\\u0000\":1}"), 1, F,
      "tensor \"a\": unknown key \"shape\\x00\"" },
    /* shape */
    { ONE(T("U8", "1", "[0,1]")), 1, F, "tensor \"a\": shape: an array expected, not an integer" },
    { ONE(T("U8", "null", "[0,1]")), 1, F, "tensor \"a\": shape: an array expected, not null" },
    { ONE(T("U8", "{}", "[0,1]")), 1, F, "tensor \"a\": shape: an array expected, not an object" },
    { ONE(T("U8", "[-1]", "[0,1]")), 1, F, "tensor \"a\": shape[0] is not an integer of at least 0" },
    { ONE(T("U8", "[1,1.0]", "[0,1]")), 1, F, "tensor \"a\": shape[1] is not an integer of at least 0" },
    { ONE(T("U8", "[\"1\"]", "[0,1]")), 1, F, "tensor \"a\": shape[0] is not an integer of at least 0" },
    { ONE(T("U8", "[18446744073709551615]", "[0,1]")), 1, F,
      "tensor \"a\": shape[0] is not an integer of at least 0" },
    { ONE(T("U8", "[1e2]", "[0,100]")), 100, F, "tensor \"a\": shape[0] is not an integer of at least 0" },
    { ONE(T("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]")), 1, SES_EUNSUPPORTED,
      "tensor \"a\": shape of 9 axes, the maximum is 8" },
    { ONE(T("U8", "[4294967296,4294967296]", "[0,0]")), 0, F,
      "tensor \"a\": the number of elements exceeds 63 bits" },
    { ONE(T("U8", "[9223372036854775807,2,0]", "[0,0]")), 0, F,
      "tensor \"a\": the number of elements exceeds 63 bits" },
    { ONE(T("F64", "[9223372036854775807]", "[0,8]")), 8, F,
      "tensor \"a\": the number of bytes exceeds 64 bits" },
    { ONE(T("F32", "[4611686018427387905]", "[0,4]")), 4, F,
      "tensor \"a\": the number of bytes exceeds 64 bits" },
    /* offsets */
    { ONE(T("U8", "[1]", "1")), 1, F, "tensor \"a\": data_offsets: two byte offsets expected" },
    { ONE(T("U8", "[1]", "[]")), 1, F, "tensor \"a\": data_offsets: two byte offsets expected" },
    { ONE(T("U8", "[1]", "[0]")), 1, F, "tensor \"a\": data_offsets: two byte offsets expected" },
    { ONE(T("U8", "[1]", "[0,1,2]")), 1, F, "tensor \"a\": data_offsets: two byte offsets expected" },
    { ONE(T("U8", "[1]", "[-1,0]")), 1, F, "tensor \"a\": data_offsets: two byte offsets expected" },
    { ONE(T("U8", "[1]", "[0,1.0]")), 1, F, "tensor \"a\": data_offsets: two byte offsets expected" },
    { ONE(T("U8", "[1]", "[null,1]")), 1, F, "tensor \"a\": data_offsets: two byte offsets expected" },
    { ONE(T("U8", "[1]", "{\"0\":0,\"1\":1}")), 1, F,
      "tensor \"a\": data_offsets: two byte offsets expected" },
    { ONE(T("U8", "[1]", "[0,18446744073709551616]")), 1, F,
      "tensor \"a\": data_offsets: two byte offsets expected" },
    { ONE(T("U8", "[1]", "[1,0]")), 1, F, "tensor \"a\": offsets 1 to 0 are in the wrong order" },
    { ONE(T("F32", "[24]", "[0,96]")), 64, F,
      "tensor \"a\": offset 96 past the end (the file has 64 bytes of data)" },
    { ONE(T("U8", "[1]", "[18446744073709551614,18446744073709551615]")), 1, F,
      "tensor \"a\": offset 18446744073709551615 past the end (the file has 1 bytes of data)" },
    { ONE(T("F32", "[2]", "[0,4]")), 4, F, "tensor \"a\": offsets span 4 bytes, 2 elements of F32 need 8" },
    { ONE(T("F32", "[1]", "[0,8]")), 8, F, "tensor \"a\": offsets span 8 bytes, 1 elements of F32 need 4" },
    { ONE(T("F32", "[]", "[0,0]")), 0, F, "tensor \"a\": offsets span 0 bytes, 1 elements of F32 need 4" },
    { ONE(T("F32", "[0]", "[0,4]")), 4, F, "tensor \"a\": offsets span 4 bytes, 0 elements of F32 need 0" },
    { ONE(T("BF16", "[2,3]", "[0,24]")), 24, F,
      "tensor \"a\": offsets span 24 bytes, 6 elements of BF16 need 12" },
    /* one tensor and the next */
    { ONE(T("U8", "[1]", "[1,2]")), 2, F, "tensor \"a\": gap of 1 bytes before offset 1" },
    { "{\"a\":" T("U8", "[2]", "[0,2]") ",\"b\":" T("U8", "[2]", "[3,5]") "}", 5, F,
      "tensor \"b\": gap of 1 bytes before offset 3" },
    { "{\"b\":" T("U8", "[2]", "[1,3]") ",\"a\":" T("U8", "[2]", "[0,2]") "}", 3, F,
      "tensor \"b\": offset 1 overlaps the previous tensor (ends at 2)" },
    { "{\"a\":" T("U8", "[2]", "[0,2]") ",\"b\":" T("U8", "[2]", "[0,2]") "}", 2, F,
      "tensor \"b\": offset 0 overlaps the previous tensor (ends at 2)" },
    { "{\"a\":" T("U8", "[3]", "[0,3]") ",\"b\":" T("U8", "[1]", "[1,2]") "}", 3, F,
      "tensor \"b\": offset 1 overlaps the previous tensor (ends at 3)" },
    { "{\"a\":" T("U8", "[3]", "[0,3]") ",\"b\":" T("U8", "[0]", "[1,1]") "}", 3, F,
      "tensor \"b\": offset 1 overlaps the previous tensor (ends at 3)" },
    { "{\"a\":" T("U8", "[0]", "[5,5]") "}", 5, F, "tensor \"a\": gap of 5 bytes before offset 5" },
    { ONE(T("U8", "[2]", "[0,2]")), 3, F, "1 bytes after the last tensor" },
};

/* A file: header length, header, zeros. Free with ses_free. */
static unsigned char *assemble(const char *header, size_t data, size_t *n)
{
    size_t len = strlen(header);
    *n = 8 + len + data;
    unsigned char *p = calloc(1, *n);
    for (int i = 0; i < 8; i++) p[i] = (unsigned char)(len >> (8 * i));
    memcpy(p + 8, header, len);
    return p;
}

static void check_refused(const void *p, size_t n, ses_code code, const char *want)
{
    ses_err e = { 0 };
    char full[512];
    snprintf(full, sizeof full, "x: %s", want);
    ses_safetensors *s = ses_safetensors_from_memory(p, n, "x", &e);
    CHECK_STR(s ? "accepted" : e.msg, full);
    CHECK(e.code == code);
    ses_safetensors_free(s);
}

static void check_bad(void)
{
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        size_t n;
        unsigned char *p = assemble(bad[i].header, bad[i].data, &n);
        check_refused(p, n, bad[i].code, bad[i].want);
        free(p);
    }
    /* the length */
    unsigned char raw[16] = { 0 };
    for (size_t n = 0; n < 8; n++) {
        char want[96];
        snprintf(want, sizeof want, "file of %zu bytes, too short for the header length (8 bytes)", n);
        check_refused(raw, n, F, want);
    }
    check_refused(NULL, 0, F, "file of 0 bytes, too short for the header length (8 bytes)");
    raw[0] = 3, raw[8] = '{', raw[9] = '}';
    check_refused(raw, 10, F, "header of 3 bytes past the end (2 bytes follow its length)");
    memcpy(raw, "\x00\xe1\xf5\x05", 4); /* 100,000,000: allowed, but the file is shorter */
    check_refused(raw, 10, F, "header of 100000000 bytes past the end (2 bytes follow its length)");
    raw[0] = 1;
    check_refused(raw, 10, F, "header of 100000001 bytes, the maximum is 100000000: not a safetensors file");
    memset(raw, 0xff, 8);
    check_refused(raw, 10, F,
                  "header of 18446744073709551615 bytes, the maximum is 100000000: not a safetensors file");
    static const char lfs[] = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    check_refused(lfs, sizeof lfs - 1, F, "a Git LFS pointer instead of the weights: run `git lfs pull`");
}

/* ---- accepted oddities ---- */

static void check_good(void)
{
    static const char *const good[] = {
        "{}",
        "{}      ",
        "{ \"a\" : {\"shape\":[],\"data_offsets\":[0,4],\"dtype\":\"F32\"} }",
        "{\"a\":" T("U8", "[2,0,3]", "[0,0]") ",\"b\":" T("F32", "[]", "[0,4]") ",\"c\":" T("U8", "[0]",
                                                                                            "[4,4]") "}",
        "{\"__metadata__\":{},\"a\":" T("I16", "[1,1,1,1,1,1,1,2]", "[0,4]") "}",
        "{\"\":" T("F16", "[2]", "[0,4]") "}",
        "{\"b\":" T("BOOL", "[2]", "[2,4]") ",\"a\":" T("I8", "[2]", "[0,2]") "}",
    };
    for (size_t i = 0; i < SES_LEN(good); i++) {
        size_t n;
        ses_err e = { 0 };
        unsigned char *p = assemble(good[i], i < 2 ? 0 : 4, &n);
        ses_safetensors *s = ses_safetensors_from_memory(p, n, "x", &e);
        CHECK_MSG(s, "%s: %s", good[i], e.msg);
        const ses_tensor_entry *last = ses_safetensors_at(s, ses_safetensors_count(s) - 1);
        if (i >= 2) CHECK(last && (const unsigned char *)last->data + last->bytes == p + n);
        CHECK(ses_safetensors_at(s, ses_safetensors_count(s)) == NULL);
        ses_safetensors_free(s);
        free(p);
    }
    size_t n;
    unsigned char *p = assemble(good[3], 4, &n);
    ses_safetensors *s = ses_safetensors_from_memory(p, n, "x", NULL);
    const ses_tensor_entry *a = ses_safetensors_find(s, "a"), *b = ses_safetensors_find(s, "b");
    CHECK(a && a->rank == 3 && a->dim[2] == 3 && a->count == 0 && a->bytes == 0 &&
          a == ses_safetensors_at(s, 0));
    CHECK(b && b->rank == 0 && b->count == 1 && b->bytes == 4 && b->dtype == SES_F32);
    CHECK_STR(b->file, "x");
    CHECK(!ses_safetensors_find(s, "d") && !ses_safetensors_find(NULL, "a") && !ses_safetensors_count(NULL));
    ses_safetensors_free(s);
    ses_safetensors_free(NULL);
    free(p);
}

/* ---- writing, and reading back ---- */

static char dir[64];

static const char *in_dir(const char *name)
{
    static char path[8][160];
    static int next;
    char *p = path[next++ % 8];
    snprintf(p, 160, "%s/%s", dir, name);
    return p;
}

typedef struct counted {
    size_t calls, next;
    bool fail;
} counted;

static bool produce(void *ctx, void *out, size_t offset, size_t bytes, ses_err *e)
{
    counted *c = ctx;
    CHECK(offset == c->next && bytes > 0);
    c->next = offset + bytes;
    c->calls++;
    if (c->fail && c->calls == 2) return ses_fail(e, SES_EARG, "no more");
    for (size_t i = 0; i < bytes; i++) ((unsigned char *)out)[i] = (unsigned char)((offset + i) % 251);
    return true;
}

static unsigned char *slurp(const char *path, size_t *n)
{
    return (unsigned char *)ses_file_read(path, SIZE_MAX - 1, n, NULL);
}

/* All dtypes, several ranks; the file equals the one that the safetensors library writes. */
static void check_bytes(void)
{
    static const char want[] =
        "{\"__metadata__\":{\"format\":\"pt\"},\"i64\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,"
        "8]},"
        "\"f64\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[8,16]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[16,24]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[24,24]},"
        "\"i32\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[24,28]},"
        "\"bf16\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[28,30]},"
        "\"f16\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[30,32]},"
        "\"i16\":{\"dtype\":\"I16\",\"shape\":[1],\"data_offsets\":[32,34]},"
        "\"i8\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[34,35]},"
        "\"u8\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[35,36]},"
        "\"\xc3\xa9\\\"\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[36,37]}}";
    static const unsigned char data[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    static const struct {
        const char *name;
        ses_dtype dtype;
        int rank;
        int64_t dim[2];
    } all[] = { { "b", SES_F32, 1, { 0 } },     { "\xc3\xa9\"", SES_BOOL, 1, { 1 } },
                { "u8", SES_U8, 1, { 1 } },     { "i8", SES_I8, 1, { 1 } },
                { "i16", SES_I16, 1, { 1 } },   { "f16", SES_F16, 1, { 1 } },
                { "bf16", SES_BF16, 1, { 1 } }, { "i32", SES_I32, 1, { 1 } },
                { "a", SES_F32, 2, { 2, 1 } },  { "f64", SES_F64, 0, { 0 } },
                { "i64", SES_I64, 1, { 1 } } };
    ses_err e = { 0 };
    ses_safetensors_writer *w = ses_safetensors_writer_new(&e);
    bool ok = ses_safetensors_writer_add_meta(w, "format", "pt", &e);
    for (size_t i = 0; i < SES_LEN(all); i++)
        ok =
            ok && ses_safetensors_writer_add(w, all[i].name, all[i].dtype, all[i].rank, all[i].dim, data, &e);
    CHECK_MSG(ok && ses_safetensors_save(w, in_dir("all.safetensors"), false, &e), "%s", e.msg);
    CHECK(!ses_safetensors_save(w, in_dir("all.safetensors"), false, &e) && strstr(e.msg, "already exists"));
    ses_safetensors_writer_free(w);
    size_t n = 0, len = sizeof want - 1;
    unsigned char *p = slurp(in_dir("all.safetensors"), &n);
    CHECK(p && n == 8 + (len + 7) / 8 * 8 + 37 && memcmp(p + 8, want, len) == 0 && p[8 + len] == ' ');
    CHECK(p && (p[0] | (size_t)p[1] << 8) == (len + 7) / 8 * 8);
    ses_safetensors *s = ses_safetensors_open(in_dir("all.safetensors"), &e);
    CHECK(ses_safetensors_count(s) == SES_LEN(all));
    for (size_t i = 0; i < SES_LEN(all) && s; i++) {
        const ses_tensor_entry *t = ses_safetensors_find(s, all[i].name);
        CHECK(t && t->dtype == all[i].dtype && t->rank == all[i].rank &&
              memcmp(t->data, data, t->bytes) == 0);
        CHECK_STR(t->file, "all.safetensors");
    }
    const char *key = NULL, *value = NULL;
    CHECK(ses_safetensors_meta_count(s) == 1 && ses_safetensors_meta_at(s, 0, &key, &value));
    CHECK_STR(key, "format");
    CHECK_STR(value, "pt");
    CHECK(!ses_safetensors_meta_at(s, 1, &key, &value));
    ses_safetensors_free(s);
    ses_free(p);
}

static void check_writer_misuse(void)
{
    ses_err e = { 0 };
    ses_safetensors_writer *w = ses_safetensors_writer_new(&e);
    int64_t dim[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 }, huge[2] = { INT64_MAX, 2 }, minus = -1;
    float x = 1;
    CHECK(!ses_safetensors_writer_add(w, "a", SES_F32, 9, dim, &x, &e));
    CHECK_STR(e.msg, "tensor \"a\": 9 axes, the maximum is 8");
    ses_err_clear(&e);
    CHECK(!ses_safetensors_writer_add(w, "a", SES_F32, 1, &minus, &x, &e));
    CHECK_STR(e.msg, "tensor \"a\": axis 0 has the invalid size -1");
    CHECK(!ses_safetensors_writer_add(w, "a", SES_F32, 2, huge, &x, NULL));
    CHECK(!ses_safetensors_writer_add(w, "a", SES_F64, 1, huge, &x, NULL));
    CHECK(!ses_safetensors_writer_add(w, "a", SES_DTYPE_COUNT, 1, dim, &x, NULL));
    ses_err_clear(&e);
    CHECK(!ses_safetensors_writer_add(w, "__metadata__", SES_F32, 1, dim, &x, &e));
    CHECK_STR(e.msg, "tensor \"__metadata__\": this name is reserved by the format");
    CHECK(ses_safetensors_writer_add(w, "a", SES_F32, 8, dim, &x, NULL));
    ses_err_clear(&e);
    CHECK(!ses_safetensors_writer_add(w, "a", SES_F32, 1, dim, &x, &e));
    CHECK_STR(e.msg, "tensor \"a\": added twice");
    CHECK(ses_safetensors_writer_add_meta(w, "k", "v", NULL));
    ses_err_clear(&e);
    CHECK(!ses_safetensors_writer_add_meta(w, "k", "w", &e));
    CHECK_STR(e.msg, "metadata \"k\" added twice");
    CHECK(ses_safetensors_writer_add(w, "\xff", SES_F32, 1, dim, &x, NULL));
    ses_err_clear(&e);
    CHECK(!ses_safetensors_save(w, in_dir("misuse"), false, &e) && strstr(e.msg, "invalid UTF-8"));
    CHECK(!ses_path_exists(in_dir("misuse")));
    ses_safetensors_writer_free(w);
    ses_safetensors_writer_free(NULL);
}

/* A source callback is called in chunks, in order; if it fails, no file is left. */
static void check_source(void)
{
    counted c = { 0, 0, false };
    ses_err e = { 0 };
    int64_t dim = 3000001;
    ses_safetensors_writer *w = ses_safetensors_writer_new(&e);
    CHECK(ses_safetensors_writer_add_source(w, "s", SES_U8, 1, &dim, produce, &c, &e));
    CHECK(ses_safetensors_save(w, in_dir("source"), false, &e) && c.calls == 3 && c.next == 3000001);
    ses_safetensors *s = ses_safetensors_open(in_dir("source"), &e);
    const ses_tensor_entry *t = ses_safetensors_find(s, "s");
    bool same = t != NULL;
    for (size_t i = 0; same && i < t->bytes; i++) same = ((const unsigned char *)t->data)[i] == i % 251;
    CHECK(same);
    ses_safetensors_free(s);
    c = (counted){ 0, 0, true };
    CHECK(!ses_safetensors_save(w, in_dir("failed"), false, &e) && !ses_path_exists(in_dir("failed")));
    CHECK_STR(e.msg, "tensor \"s\": no more");
    ses_safetensors_writer_free(w);
    unlink(in_dir("source"));
}

/* Opens a file, adds the same tensors to a writer and saves: the bytes must be equal. */
static bool rewrite(const char *from, const char *to)
{
    ses_safetensors *s = ses_safetensors_open(from, NULL);
    ses_safetensors_writer *w = ses_safetensors_writer_new(NULL);
    bool ok = s != NULL;
    for (size_t i = ses_safetensors_count(s); i-- > 0;) {
        const ses_tensor_entry *t = ses_safetensors_at(s, i);
        ok = ok && ses_safetensors_writer_add(w, t->name, t->dtype, t->rank, t->dim, t->data, NULL);
    }
    for (size_t i = 0; i < ses_safetensors_meta_count(s); i++) {
        const char *key, *value;
        ok = ok && ses_safetensors_meta_at(s, i, &key, &value) &&
             ses_safetensors_writer_add_meta(w, key, value, NULL);
    }
    ok = ok && ses_safetensors_save(w, to, true, NULL);
    ses_safetensors_writer_free(w);
    ses_safetensors_free(s);
    size_t n = 0, m = 0;
    unsigned char *a = slurp(from, &n), *b = slurp(to, &m);
    ok = ok && a && b && n == m && memcmp(a, b, n) == 0;
    ses_free(a);
    ses_free(b);
    return ok;
}

typedef struct tally {
    const char *root;
    int files, same;
} tally;

static bool rewrite_case(void *ctx, const char *name)
{
    static const char *const files[] = { "model.safetensors", "golden.safetensors" };
    tally *t = ctx;
    for (size_t i = 0; i < SES_LEN(files); i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s/%s", t->root, name, files[i]);
        if (!ses_path_exists(path)) continue;
        bool same = rewrite(path, in_dir("again"));
        if (!same) printf("    %s comes back otherwise\n", path);
        t->files++;
        t->same += same;
    }
    return true;
}

static void check_rewrite(void)
{
    char root[256];
    snprintf(root, sizeof root, "%s/golden/models", check_shared());
    tally shared = { root, 0, 0 }, own = { "tests/golden", 0, 0 };
    CHECK(rewrite(in_dir("all.safetensors"), in_dir("again")));
    if (ses_path_is_dir(own.root))
        CHECK(ses_dir_each(own.root, rewrite_case, &own, NULL) && own.same == own.files);
    if (!ses_path_is_dir(root)) {
        SKIP("no reference checkpoints");
    } else {
        CHECK(ses_dir_each(root, rewrite_case, &shared, NULL) && shared.files > 0);
        CHECK_MSG(shared.same == shared.files, "%d of %d files come back as they were", shared.same,
                  shared.files);
    }
    unlink(in_dir("again"));
}

/* ---- truncated and changed files: a clean error or a valid load ---- */

static void check_loaded(const ses_safetensors *s, const unsigned char *p, size_t n)
{
    bool inside = true;
    for (size_t i = 0; i < ses_safetensors_count(s); i++) {
        const ses_tensor_entry *t = ses_safetensors_at(s, i);
        const unsigned char *at = t->data;
        inside = inside && at >= p + 8 && at <= p + n && t->bytes <= (size_t)(p + n - at) &&
                 ses_safetensors_find(s, t->name) == t;
        inside = inside && (size_t)t->count * ses_dtype_size(t->dtype) == t->bytes;
    }
    if (!inside) CHECK(inside);
}

static void damage(const unsigned char *whole, size_t n)
{
    static const unsigned char flips[] = { 0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff };
    long loads = 0, refused = 0, odd = 0;
    for (size_t len = 0; len < n; len++) {
        unsigned char *p = malloc(len ? len : 1);
        memcpy(p, whole, len);
        ses_err e = { 0 };
        ses_safetensors *s = ses_safetensors_from_memory(p, len, "x", &e);
        if (!CHECK(!s && e.code == SES_EFORMAT)) printf("    truncated to %zu\n", len);
        ses_safetensors_free(s);
        free(p);
    }
    unsigned char *p = malloc(n);
    memcpy(p, whole, n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < SES_LEN(flips); k++) {
            ses_err e = { 0 };
            p[i] ^= flips[k];
            ses_safetensors *s = ses_safetensors_from_memory(p, n, "x", &e);
            if (s) check_loaded(s, p, n);
            loads += s != NULL;
            refused += !s;
            odd += !s &&
                   ((e.code != SES_EFORMAT && e.code != SES_EUNSUPPORTED) || strncmp(e.msg, "x: ", 3) != 0);
            ses_safetensors_free(s);
            p[i] ^= flips[k];
        }
    CHECK_MSG(loads && refused && !odd, "%ld loads, %ld refusals, %ld odd ones", loads, refused, odd);
    free(p);
}

static void check_damage(void)
{
    size_t n = 0;
    unsigned char *p = slurp(in_dir("all.safetensors"), &n);
    damage(p, n);
    ses_free(p);
    p = assemble("{\"a\":" T("F32", "[2,3]", "[0,24]") ",\"b\":" T("I64", "[]", "[24,32]") "}  ", 32, &n);
    damage(p, n);
    free(p);
    p = assemble(
        "{\"__metadata__\":{\"format\":\"pt\",\"x\":\"\\u00e9\"},\"w\":" T("BF16", "[1,2,3]", "[0,12]") "}",
        12, &n);
    damage(p, n);
    free(p);
}

/* ---- files of several processes ---- */

static bool copy_slice(void *ctx, void *out, size_t offset, size_t bytes, ses_err *e)
{
    (void)e;
    memcpy(out, (const char *)ctx + offset, bytes);
    return true;
}

/* Slices of three writers, one of them empty, give the bytes of a whole save. */
static void check_slices(void)
{
    enum { N = 700000, SMALL = 5 };
    static float x[N], y[SMALL];
    static const size_t border[] = { 0, 0, 123457, N }, small[] = { 0, 2, 5, 5 };
    const int64_t count[] = { N, SMALL };
    ses_err e = { 0 };
    size_t n = 0, m = 0;
    for (size_t i = 0; i < N; i++) x[i] = (float)i;
    for (size_t i = 0; i < SMALL; i++) y[i] = -(float)i;
    ses_safetensors_writer *w = ses_safetensors_writer_new(&e);
    CHECK(ses_safetensors_writer_add(w, "x", SES_F32, 1, &count[0], x, &e) &&
          ses_safetensors_writer_add(w, "a", SES_F32, 1, &count[1], y, &e) &&
          ses_safetensors_save(w, in_dir("whole"), false, &e));
    ses_safetensors_writer_free(w);
    for (int r = 0; r < 3; r++) {
        w = ses_safetensors_writer_new(&e);
        CHECK(ses_safetensors_writer_add_slice(w, "x", SES_F32, N, 4 * border[r],
                                               4 * (border[r + 1] - border[r]), copy_slice, x, &e) &&
              ses_safetensors_writer_add_slice(w, "a", SES_F32, SMALL, 4 * small[r],
                                               4 * (small[r + 1] - small[r]), copy_slice, y, &e));
        if (!r) CHECK(ses_safetensors_create(w, in_dir("slices"), &e));
        CHECK_MSG(ses_safetensors_fill(w, in_dir("slices"), &e), "%s", e.msg);
        ses_err again = { 0 }, absent = { 0 };
        CHECK(!ses_safetensors_create(w, in_dir("slices"), &again) && again.code == SES_EIO);
        CHECK(!ses_safetensors_fill(w, in_dir("absent"), &absent) && absent.code == SES_EIO);
        ses_safetensors_writer_free(w);
    }
    char *a = ses_file_read(in_dir("whole"), 1 << 24, &n, &e),
         *b = ses_file_read(in_dir("slices"), 1 << 24, &m, &e);
    CHECK(a && b && n == m && !memcmp(a, b, n));
    ses_free(a);
    ses_free(b);
    unlink(in_dir("whole"));
    unlink(in_dir("slices"));
}

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/sesame-st-XXXXXX");
    if (!mkdtemp(dir)) return perror(dir), 1;
    CHECK(SES_LEN(bad) >= 60);
    check_bad();
    check_good();
    check_bytes();
    check_writer_misuse();
    check_source();
    check_rewrite();
    check_damage();
    check_slices();
    unlink(in_dir("all.safetensors"));
    CHECK_MSG(rmdir(dir) == 0, "something is left in %s", dir);
    return check_report();
}
