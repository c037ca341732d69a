#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "base/file.h"
#include "check.h"
#include "io/safetensors_impl.h"

#include <sys/stat.h>
#include <unistd.h>

/* ---- an index and its shards, from memory ---- */

#define T(offsets) "{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":" offsets "}"

/* Headers of the existing shards; each is followed by one zero byte per tensor. */
static const struct {
    const char *file, *header;
    size_t data;
} shards[] = {
    { "m1", "{\"__metadata__\":{\"k\":\"1\"},\"a\":" T("[0,1]") ",\"b\":" T("[1,2]") "}", 2 },
    { "m2", "{\"__metadata__\":{\"k\":\"2\"},\"c\":" T("[0,1]") "}", 1 },
    { "again", "{\"b\":" T("[0,1]") "}", 1 },
    { "broken", "{\"d\":" T("[0,2]") "}", 1 },
    { "empty", "{}", 0 },
    { "bare", "{\"__metadata__\":{},\"e\":" T("[0,1]") "}", 1 },
};

typedef struct store {
    unsigned char bytes[SES_LEN(shards)][200];
} store;

static bool get(void *ctx, const char *file, const void **bytes, size_t *n, ses_err *e)
{
    store *s = ctx;
    for (size_t i = 0; i < SES_LEN(shards); i++) {
        if (strcmp(shards[i].file, file) != 0) continue;
        size_t len = strlen(shards[i].header);
        memset(s->bytes[i], 0, sizeof s->bytes[i]);
        s->bytes[i][0] = (unsigned char)len;
        memcpy(s->bytes[i] + 8, shards[i].header, len);
        *bytes = s->bytes[i];
        *n = 8 + len + shards[i].data;
        return true;
    }
    return ses_fail(e, SES_EIO, "%s: not there", file);
}

typedef struct index_case {
    const char *text;
    ses_code code;
    const char *want; /* after "model.safetensors.index.json: "; NULL: accepted */
} index_case;

#define F SES_EFORMAT
#define MAP(x) "{\"metadata\":{\"total_size\":3},\"weight_map\":" x "}"
#define BOTH "\"a\":\"m1\",\"b\":\"m1\",\"c\":\"m2\""
#define PLAIN(x) "weight_map: tensor \"a\": \"" x "\" is not a plain file name"

static const index_case indices[] = {
    { MAP("{" BOTH "}"), SES_OK, NULL },
    { "{\"weight_map\":{\"b\":\"m1\",\"c\":\"m2\",\"a\":\"m1\"},\"x\":[1]}", SES_OK, NULL },
    { "", F, "line 1, column 1 (byte 0): a value expected, not the end of the text" },
    { "{", F, "line 1, column 2 (byte 1): a key expected, not the end of the text" },
    { "[]", F, "an object expected, not an array" },
    { "3", F, "an object expected, not an integer" },
    { "{}", F, "weight_map missing" },
    { "{\"metadata\":{}}", F, "weight_map missing" },
    { MAP("[]"), F, "weight_map: an object expected, not an array" },
    { MAP("null"), F, "weight_map: an object expected, not null" },
    { MAP("{}"), F, "weight_map is empty" },
    { MAP("{\"a\":1}"), F, "weight_map: tensor \"a\": a file name expected, not an integer" },
    { MAP("{\"a\":\"m1\",\"b\":null}"), F, "weight_map: tensor \"b\": a file name expected, not null" },
    { MAP("{\"a\":\"\"}"), F, PLAIN("") },
    { MAP("{\"a\":\".\"}"), F, PLAIN(".") },
    { MAP("{\"a\":\"..\"}"), F, PLAIN("..") },
    { MAP("{\"a\":\".hidden\"}"), F, PLAIN(".hidden") },
    { MAP("{\"a\":\"../m1\"}"), F, PLAIN("../m1") },
    { MAP("{\"a\":\"/etc/passwd\"}"), F, PLAIN("/etc/passwd") },
    { MAP("{\"a\":\"x/m1\"}"), F, PLAIN("x/m1") },
    { MAP("{\"a\":\"x\\\\m1\"}"), F, PLAIN("x\\m1") },
    { MAP("{\"a\":\"m1\\u0000\"}"), F, PLAIN("m1\\x00") },
    { MAP("{\"a\":\"m..1\"}"), F, PLAIN("m..1") },
    { MAP("{\"a\":\"m1\",\"b\":\"m1\",\"a\":\"m2\"}"), F,
      "line 1, column 62 (byte 61): key \"a\" appears twice" },
    { MAP("{\"a\":\"m1\",\"b\":\"m1\",\"c\":\"m3\"}"), SES_EIO, "m3: not there" },
    { MAP("{\"a\":\"m1\",\"b\":\"m1\",\"c\":\"m1\"}"), F, "tensor \"c\" is not in m1" },
    { MAP("{" BOTH ",\"d\":\"m2\"}"), F, "tensor \"d\" is not in m2" },
    { MAP("{" BOTH ",\"d\":\"empty\"}"), F, "tensor \"d\" is not in empty" },
    { MAP("{" BOTH ",\"d\\u0000\":\"m2\"}"), F, "tensor \"d\\x00\" is not in m2" },
    { MAP("{\"a\":\"m2\",\"b\":\"m1\",\"c\":\"m2\"}"), F, "tensor \"a\" is in m1, not in m2" },
    { MAP("{\"a\":\"m1\",\"c\":\"m2\"}"), F, "tensor \"b\" of m1 is not in weight_map" },
    { MAP("{" BOTH ",\"e\":\"again\"}"), F, "m1: tensor \"b\" is also in again" },
    { MAP("{" BOTH ",\"d\":\"broken\"}"), F,
      "broken: tensor \"d\": offset 2 past the end (the file has 1 bytes of data)" },
};

static void check_indices(void)
{
    for (size_t i = 0; i < SES_LEN(indices); i++) {
        store st;
        ses_err e = { 0 };
        char want[300];
        ses_safetensors *s =
            ses_checkpoint_from_index(indices[i].text, strlen(indices[i].text), get, &st, &e);
        snprintf(want, sizeof want, "model.safetensors.index.json: %s",
                 indices[i].want ? indices[i].want : "");
        if (indices[i].want)
            CHECK_STR(s ? "accepted" : e.msg, want);
        else
            CHECK_MSG(s, "%s: %s", indices[i].text, e.msg);
        CHECK(e.code == indices[i].code);
        if (s) {
            const char *key, *value = "";
            CHECK(ses_safetensors_count(s) == 3 && ses_safetensors_find(s, "c") == ses_safetensors_at(s, 2));
            CHECK_STR(ses_safetensors_find(s, "c")->file, "m2");
            CHECK(ses_safetensors_meta_count(s) == 1 && ses_safetensors_meta_at(s, 0, &key, &value));
            CHECK_STR(value, "1"); /* header of the first shard */
        }
        ses_safetensors_free(s);
    }
}

/* ---- folders ---- */

/* The first shard has no metadata, the second has: the second's is used. */
static void check_metadata(void)
{
    store st;
    ses_err e = { 0 };
    const char *text = "{\"weight_map\":{\"e\":\"bare\",\"c\":\"m2\"}}", *key, *value = "";
    ses_safetensors *s = ses_checkpoint_from_index(text, strlen(text), get, &st, &e);
    CHECK_MSG(s, "%s", e.msg);
    CHECK(s && ses_safetensors_meta_count(s) == 1 && ses_safetensors_meta_at(s, 0, &key, &value));
    CHECK_STR(value, "2");
    ses_safetensors_free(s);
}

static char dir[64];

static const char *in_dir(const char *name)
{
    static char path[8][160];
    static int next;
    char *p = path[next++ % 8];
    snprintf(p, 160, "%s/%s", dir, name);
    return p;
}

static bool put(const char *name, const char *text)
{
    return ses_file_write(in_dir(name), text, strlen(text), true, NULL);
}

static void check_refused(const char *path, ses_code code, const char *want)
{
    ses_err e = { 0 };
    ses_safetensors *s = ses_checkpoint_open(path, &e);
    char full[512];
    snprintf(full, sizeof full, "%s%s", path, want);
    CHECK_STR(s ? "accepted" : e.msg, full);
    CHECK(e.code == code);
    ses_safetensors_free(s);
}

typedef bool saver(const ses_safetensors_writer *w, const char *dir, size_t limit, bool overwrite,
                   ses_err *e);

/* n tensors of 100 bytes, t0 added last; all bytes are `value`. */
static bool save_by(saver *by, int n, unsigned char value, size_t limit, bool overwrite, ses_err *e)
{
    unsigned char data[100];
    memset(data, value, sizeof data);
    ses_safetensors_writer *w = ses_safetensors_writer_new(e);
    bool ok = w != NULL;
    for (int i = n; i-- > 0 && ok;) {
        char name[16];
        snprintf(name, sizeof name, "t%d", (int)(i % 1000));
        ok = ses_safetensors_writer_add(w, name, SES_U8, 2, (const int64_t[]){ 10, 10 }, data, e);
    }
    ok = ok && by(w, in_dir("out"), limit, overwrite, e);
    ses_safetensors_writer_free(w);
    return ok;
}

static bool save(int n, unsigned char value, size_t limit, bool overwrite, ses_err *e)
{
    return save_by(ses_checkpoint_save, n, value, limit, overwrite, e);
}

static bool join_name(void *ctx, const char *name)
{
    char *s = ctx; /* sorted file names of a small folder */
    char all[600];
    size_t n = strlen(name), at = 0;
    while (s[at] && strcmp(s + at, name) < 0) { /* each ends in '\n' */
        size_t len = strcspn(s + at, "\n") + 1;
        if (strncmp(s + at, name, len - 1) > 0) break;
        at += len;
    }
    snprintf(all, sizeof all, "%.*s%.*s\n%s", (int)at, s, (int)n, name, s + at);
    memcpy(s, all, strlen(all) + 1);
    return true;
}

/* Checks the file names in the folder, and that it opens as n tensors of one value. */
static void check_folder(const char *want, int n, int value)
{
    char names[600] = "";
    CHECK(ses_dir_each(in_dir("out"), join_name, names, NULL));
    CHECK_STR(names, want);
    ses_err e = { 0 };
    ses_safetensors *s = ses_checkpoint_open(in_dir("out"), &e);
    CHECK_MSG(s && ses_safetensors_count(s) == (size_t)n, "%s", e.msg);
    bool same = true;
    for (size_t i = 0; i < ses_safetensors_count(s); i++)
        for (size_t j = 0; j < 100; j++)
            same = same && ((const unsigned char *)ses_safetensors_at(s, i)->data)[j] == value;
    CHECK(same);
    const char *key, *text = "";
    CHECK(ses_safetensors_meta_at(s, 0, &key, &text) && strcmp(key, "format") == 0 &&
          strcmp(text, "pt") == 0);
    ses_safetensors_free(s);
}

#define SINGLE "model.safetensors\n"
#define INDEX "model.safetensors.index.json\n"
#define TWO "model-00001-of-00002.safetensors\nmodel-00002-of-00002.safetensors\n"
#define THREE \
    "model-00001-of-00003.safetensors\nmodel-00002-of-00003.safetensors\nmodel-00003-of-00003.safetensors\n"

static void check_layouts(void)
{
    ses_err e = { 0 };
    CHECK_MSG(save(3, 1, 0, false, &e), "%s", e.msg); /* creates the folder */
    check_folder(SINGLE, 3, 1);
    CHECK(!save(3, 2, 0, false, &e) && strstr(e.msg, "model.safetensors: already exists"));
    ses_err_clear(&e);
    CHECK(!save(3, 2, 100, false, &e) && strstr(e.msg, "out: model.safetensors exists already"));
    check_folder(SINGLE, 3, 1);
    CHECK(save(3, 2, 100, true, NULL));
    check_folder(THREE INDEX, 3, 2);
    CHECK(save(3, 3, 100, true, NULL));
    check_folder(THREE INDEX, 3, 3);
    CHECK(save(3, 4, 200, true, NULL));
    check_folder(TWO INDEX, 3, 4);
    ses_err_clear(&e);
    CHECK(!save(3, 5, 0, false, &e) && strstr(e.msg, " already"));
    check_folder(TWO INDEX, 3, 4);
    CHECK(save(3, 5, 300, true, NULL)); /* all fit: one file */
    check_folder(SINGLE, 3, 5);
    CHECK(save(2, 6, 50, true, NULL)); /* each above the limit: one shard each */
    check_folder(TWO INDEX, 2, 6);

    static const char index[] = "{\n  \"metadata\": {\n    \"total_size\": 200\n  },\n  \"weight_map\": {\n"
                                "    \"t0\": \"model-00002-of-00002.safetensors\",\n"
                                "    \"t1\": \"model-00001-of-00002.safetensors\"\n  }\n}\n";
    size_t n;
    char *text = ses_file_read(in_dir("out/model.safetensors.index.json"), 10000, &n, NULL);
    CHECK_STR(text, index);
    ses_free(text);
    CHECK(save(0, 0, 0, true, NULL)); /* a file without tensors is valid */
    check_folder(SINGLE, 0, 0);
    unlink(in_dir("out/model.safetensors"));
    rmdir(in_dir("out"));
}

#define INT8 "model.sesame-int8\n"
#define INT8_INDEX "model.sesame-int8.index.json\n"
#define INT8_TWO "model-00001-of-00002.sesame-int8\nmodel-00002-of-00002.sesame-int8\n"

/* int8 folders: no file that other programs read as weights, before or after an overwrite. */
static void check_int8(void)
{
    ses_err e = { 0 };
    CHECK_MSG(save_by(ses_checkpoint_save_int8, 3, 1, 0, false, &e), "%s", e.msg);
    check_folder(INT8, 3, 1);
    CHECK(!save(3, 2, 0, false, &e) && strstr(e.msg, "out: model.sesame-int8 exists already"));
    check_folder(INT8, 3, 1);
    CHECK(save_by(ses_checkpoint_save_int8, 2, 2, 100, true, NULL));
    check_folder(INT8_TWO INT8_INDEX, 2, 2);
    CHECK(save(3, 3, 0, true, NULL));
    check_folder(SINGLE, 3, 3);
    ses_err_clear(&e);
    CHECK(!save_by(ses_checkpoint_save_int8, 3, 4, 0, false, &e) &&
          strstr(e.msg, "out: model.safetensors exists already"));
    CHECK(save(2, 4, 100, true, NULL));
    CHECK(save_by(ses_checkpoint_save_int8, 2, 5, 100, true, NULL));
    check_folder(INT8_TWO INT8_INDEX, 2, 5);
    CHECK(put("out/model.safetensors.txt", "x")); /* not a weight file: kept */
    CHECK(save_by(ses_checkpoint_save_int8, 1, 6, 0, true, NULL));
    check_folder("model.safetensors.txt\n" INT8, 1, 6);
    unlink(in_dir("out/model.safetensors.txt"));
    unlink(in_dir("out/model.sesame-int8"));
    rmdir(in_dir("out"));
}

/* A caller's "format" is kept, and written once. */
static void check_format(void)
{
    ses_safetensors_writer *w = ses_safetensors_writer_new(NULL);
    CHECK(ses_safetensors_writer_add_meta(w, "by", "me", NULL) &&
          ses_safetensors_writer_add_meta(w, "format", "np", NULL));
    ses_err e = { 0 };
    CHECK_MSG(ses_checkpoint_save(w, in_dir("out"), 0, false, &e), "%s", e.msg);
    ses_safetensors_writer_free(w);
    ses_safetensors *s = ses_checkpoint_open(in_dir("out"), &e);
    const char *key = "", *value = "";
    CHECK(ses_safetensors_meta_count(s) == 2 && ses_safetensors_meta_at(s, 1, &key, &value));
    CHECK_STR(value, "np");
    ses_safetensors_free(s);
    unlink(in_dir("out/model.safetensors"));
    rmdir(in_dir("out"));
}

static void check_missing(void)
{
    check_refused(in_dir("absent"), SES_EIO, ": No such file or directory");
    check_refused(dir, SES_EIO,
                  ": neither model.safetensors nor pytorch_model.bin nor an index of shards nor a "
                  "TensorFlow checkpoint found");
    CHECK(put("tf_model.h5", "x"));
    char advice[512];
    snprintf(
        advice, sizeof advice,
        ": found tf_model.h5, expected model.safetensors: take a revision of the model with safetensors, or "
        "convert it in Python with transformers 4: AutoModel.from_pretrained(\"%s\", from_tf=True)"
        ".save_pretrained(\"OUT\"), with the class of its task in place of AutoModel",
        dir);
    check_refused(dir, SES_EUNSUPPORTED, advice);
    CHECK(put("pytorch_model.bin", "x"));
    check_refused(dir, SES_EFORMAT, "/pytorch_model.bin: not a zip archive");
    CHECK(put("model.safetensors.index.json", "{\"weight_map\":{\"a\":\"m1\"}}"));
    char want[256];
    snprintf(want, sizeof want, "/model.safetensors.index.json: %s: No such file or directory", in_dir("m1"));
    check_refused(dir, SES_EIO, want);
    CHECK(put("m1", "version https://git-lfs.github.com/spec/v1\n"));
    check_refused(dir, SES_EFORMAT,
                  "/model.safetensors.index.json: m1: a Git LFS pointer instead of the weights:"
                  " run `git lfs pull`");
    CHECK(put("model.safetensors.index.json", "version https://git-lfs.github.com/spec/v1\n"));
    check_refused(dir, SES_EFORMAT,
                  "/model.safetensors.index.json: a Git LFS pointer instead of the index:"
                  " run `git lfs pull`");
    CHECK(put("model.safetensors", "")); /* preferred if both exist */
    check_refused(dir, SES_EFORMAT,
                  "/model.safetensors: file of 0 bytes, too short for the header length (8 bytes)");
    unlink(in_dir("model.safetensors"));
    CHECK(mkdir(in_dir("model.safetensors"), 0700) == 0);
    check_refused(dir, SES_EIO, "/model.safetensors: Is a directory");
    rmdir(in_dir("model.safetensors"));
    if (geteuid() == 0) {
        SKIP("permissions mean nothing to root");
    } else {
        CHECK(chmod(dir, 0) == 0);
        check_refused(dir, SES_EIO, ": Permission denied");
        CHECK(chmod(dir, 0700) == 0);
    }
    unlink(in_dir("model.safetensors.index.json")), unlink(in_dir("m1")), unlink(in_dir("pytorch_model.bin")),
        unlink(in_dir("tf_model.h5"));
}

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/sesame-ckpt-XXXXXX");
    if (!mkdtemp(dir)) return perror(dir), 1;
    check_indices();
    check_metadata();
    check_missing();
    check_layouts();
    check_int8();
    check_format();
    CHECK_MSG(rmdir(dir) == 0, "something is left in %s", dir);
    return check_report();
}
