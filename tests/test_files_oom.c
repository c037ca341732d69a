#define _DEFAULT_SOURCE /* mkdtemp */
#include "oom.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/strmap.h"
#include "io/safetensors_impl.h"
#include "sesame/json.h"

#include <unistd.h>

static char dir[64];

static const char text[] =
    "{\"a\":[1,2.5,\"x\\u00e9\",null,{\"b\":{}}],\"b\":1,\"c\":2,\"d\":3,\"e\":4,\"f\":5,\"g\":6,"
    "\"h\":7,\"i\":8,\"j\":{\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,\"7\":7,\"8\":8,\"9\":9}}";

static bool parse(void *ctx, ses_err *e)
{
    (void)ctx;
    ses_json_doc *d = ses_json_parse(text, sizeof text - 1, e);
    ses_json_free(d);
    return d != NULL;
}

static bool load(void *ctx, ses_err *e)
{
    ses_json_doc *d = ses_json_load(ctx, 100000, e);
    ses_json_free(d);
    return d != NULL;
}

static bool write_json(void *ctx, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (!w) return false;
    ses_json_put_value(w, ses_json_root(ctx));
    const char *s = ses_json_writer_text(w, NULL, e);
    ses_json_writer_free(w);
    return s != NULL;
}

static bool buffer(void *ctx, ses_err *e)
{
    (void)ctx;
    ses_buf b = { 0 };
    for (int i = 0; i < 100; i++) ses_buf_appendf(&b, "%d ", i);
    bool ok = ses_buf_ok(&b, e);
    ses_buf_free(&b);
    return ok;
}

static bool map(void *ctx, ses_err *e)
{
    (void)ctx;
    static const char keys[] = "abcdefghijklmnopqrstuvwxyz";
    ses_strmap m = { 0 };
    bool ok = true, fresh;
    for (size_t i = 0; i < 26 && ok; i++) ok = ses_strmap_insert(&m, keys + i, 1, (int64_t)i, &fresh, e);
    int64_t v = 0;
    for (size_t i = 0; i < m.count; i++) CHECK(ses_strmap_find(&m, keys + i, 1, &v) && v == (int64_t)i);
    ses_strmap_free(&m);
    return ok;
}

static bool make_dir(void *ctx, ses_err *e) { return ses_dir_make(ctx, e); }
static bool read_file(void *ctx, ses_err *e)
{
    size_t n;
    char *s = ses_file_read(ctx, 100000, &n, e);
    ses_free(s);
    return s != NULL;
}
static bool write_file(void *ctx, ses_err *e) { return ses_file_write(ctx, "abc", 3, true, e); }

static bool fill(void *ctx, void *out, size_t offset, size_t bytes, ses_err *e)
{
    (void)ctx, (void)offset, (void)e;
    memset(out, 7, bytes);
    return true;
}

/* Tensors of several dtypes, in one file (limit 0) or several. */
static bool save(size_t limit, const char *path, ses_err *e)
{
    static const float data[12] = { 1, 2, 3 };
    static const int64_t dim[] = { 3, 4 };
    ses_safetensors_writer *w = ses_safetensors_writer_new(e);
    bool ok = w && ses_safetensors_writer_add_meta(w, "made by", "a test", e);
    for (int i = 0; i < 20 && ok; i++) {
        char name[24];
        snprintf(name, sizeof name, "tensor.%d", i);
        ok = i & 1 ? ses_safetensors_writer_add(w, name, SES_F32, 2, dim, data, e)
                   : ses_safetensors_writer_add_source(w, name, SES_I16, 2, dim, fill, NULL, e);
    }
    ok = ok &&
         (limit == 1 ? ses_safetensors_save(w, path, true, e) : ses_checkpoint_save(w, path, limit, true, e));
    ses_safetensors_writer_free(w);
    return ok;
}

static bool save_file(void *ctx, ses_err *e) { return save(1, ctx, e); }
static bool save_single(void *ctx, ses_err *e) { return save(0, ctx, e); }
static bool save_shards(void *ctx, ses_err *e) { return save(200, ctx, e); }

static bool open_any(void *ctx, ses_err *e)
{
    ses_safetensors *s = ses_checkpoint_open(ctx, e);
    bool ok = s != NULL;
    if (s) CHECK(ses_safetensors_count(s) == 20 && ses_safetensors_find(s, "tensor.19"));
    ses_safetensors_free(s);
    return ok;
}

static bool open_nothing(void *ctx, ses_err *e)
{
    ses_safetensors *s = ses_checkpoint_open(ctx, e);
    CHECK(!s);
    return e->code != SES_ENOMEM; /* all allocations succeeded, and the folder is empty */
}

static bool no_name(void *ctx, const char *name)
{
    (void)ctx;
    return strncmp(name, ".sesame-", 8) != 0;
}

/* The documented memory bound, on worst-case texts. */
static void check_bound(void)
{
    static const char *const unit[] = {
        "1,",         "[],",
        "{\"a\":1},", "\",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\",",
        "[[[[1]]]],", "{\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,\"7\":7,\"8\":8,\"9\":9},"
    };
    enum { SIZE = 300000 };
    char *big = malloc(SIZE + 100);
    for (size_t i = 0; i <= SES_LEN(unit); i++) {
        size_t n = 0;
        bool object = i == SES_LEN(unit);
        big[n++] = object ? '{' : '[';
        for (unsigned k = 0; n < SIZE; k++)
            n += (size_t)(object ? snprintf(big + n, 100, "\"%x\":1,", k)
                                 : snprintf(big + n, 100, "%s", unit[i]));
        big[n - 1] = object ? '}' : ']';
        size_t before = oom.bytes;
        oom.peak = oom.bytes;
        ses_json_doc *d = ses_json_parse(big, n, NULL);
        CHECK(d);
        CHECK_MSG(oom.peak - before <= 24 * n + 32768, "kind %zu: %zu for %zu", i, oom.peak - before, n);
        ses_json_free(d);
    }
    free(big);
}

/* A header with huge sizes causes no allocation larger than the file. */
static void check_claims(void)
{
    static const char claim[] =
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1000000000000],\"data_offsets\":[0,4000000000000]}}";
    unsigned char bytes[8 + sizeof claim] = { sizeof claim - 1 };
    memcpy(bytes + 8, claim, sizeof claim - 1);
    oom.peak = oom.bytes;
    size_t before = oom.bytes;
    ses_err e = { 0 };
    CHECK(!ses_safetensors_from_memory(bytes, 8 + sizeof claim - 1, "x", &e));
    CHECK_STR(e.msg, "x: tensor \"a\": offset 4000000000000 past the end (the file has 0 bytes of data)");
    CHECK_MSG(oom.peak - before < 40000, "%zu", oom.peak - before);
}

int main(void)
{
    snprintf(dir, sizeof dir, "/tmp/sesame-oom-XXXXXX");
    if (!mkdtemp(dir)) return perror(dir), 1;
    char file[96], deep[96], tensors[96], folder[96], empty[96];
    snprintf(file, sizeof file, "%s/file", dir);
    snprintf(deep, sizeof deep, "%s/a/b", dir);
    snprintf(tensors, sizeof tensors, "%s/x.safetensors", dir);
    snprintf(folder, sizeof folder, "%s/model", dir);
    snprintf(empty, sizeof empty, "%s/empty", dir);

    oom_sweep("parse", parse, NULL);
    ses_json_doc *d = ses_json_parse(text, sizeof text - 1, NULL);
    oom_sweep("write JSON", write_json, d);
    ses_json_free(d);
    oom_sweep("buffer", buffer, NULL);
    oom_sweep("map", map, NULL);
    oom_sweep("make folder", make_dir, deep);
    oom_sweep("write file", write_file, file);
    oom_sweep("read file", read_file, file);
    CHECK(ses_file_write(file, text, sizeof text - 1, true, NULL));
    oom_sweep("load", load, file);
    oom_sweep("save file", save_file, tensors);
    oom_sweep("open file", open_any, tensors);
    oom_sweep("save single", save_single, folder);
    oom_sweep("open single", open_any, folder);
    oom_sweep("save shards", save_shards, folder);
    oom_sweep("open shards", open_any, folder);
    oom_sweep("save single over shards", save_single, folder);
    CHECK(ses_dir_make(empty, NULL));
    oom_sweep("open nothing", open_nothing, empty);
    check_bound();
    check_claims();

    CHECK(ses_dir_each(dir, no_name, NULL, NULL) && ses_dir_each(folder, no_name, NULL, NULL));
    char path[128];
    static const char *const left[] = { "file", "x.safetensors", "model/model.safetensors" };
    for (size_t i = 0; i < SES_LEN(left); i++)
        snprintf(path, sizeof path, "%s/%s", dir, left[i]), unlink(path);
    static const char *const folders[] = { "a/b", "a", "model", "empty", "" }; /* each must be empty now */
    for (size_t i = 0; i < SES_LEN(folders); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, folders[i]);
        CHECK_MSG(rmdir(path) == 0, "%s is not empty", path);
    }
    CHECK(oom.live == 0);
    return check_report();
}
