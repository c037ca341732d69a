/* TensorFlow checkpoints: tests/fixtures/tf, written by TensorFlow, and damaged files. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "base/file.h"
#include "check.h"
#include "folder/tf_folder.h"
#include "io/tf/tf_read.h"
#include "model/model_desc.h"
#include "sesame/base.h"
#include "sesame/unstable/tensor.h"
#include "tf_fixture.h"

#include <unistd.h>

#define FIXTURES "tests/fixtures/tf/"

/* ---- checkpoints of TensorFlow ---- */

static void check_line(const ses_safetensors *s, const char *line)
{
    char name[256], shape[128] = "";
    const char *space = strchr(line, ' '), *end = strrchr(line, ' ');
    uint32_t crc = (uint32_t)strtoul(end + 1, NULL, 16);
    snprintf(name, sizeof name, "%.*s", (int)(space - line), line);
    const ses_tensor_entry *t = ses_safetensors_find(s, name);
    if (!CHECK_MSG(t, "no %s", name)) return;
    for (int i = 0; i < t->rank; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", i ? "x" : "",
                 (long long)t->dim[i]);
    CHECK_MSG(strlen(shape) == (size_t)(end - space - 1) && !strncmp(shape, space + 1, strlen(shape)),
              "%s %s", name, shape);
    CHECK_MSG(ses_crc32c(t->data, t->bytes) == crc, "%s", name);
    CHECK(t->dtype == SES_F32 && t->bytes == 4 * (size_t)t->count);
}

/* Every tensor of the safetensors folder, with the same bytes; and `more` that it does not store. */
static void check_tensors(const char *folder, const char *class, const char *list, size_t more)
{
    char path[256];
    ses_err e = { 0 };
    size_t n, lines = 0;
    snprintf(path, sizeof path, FIXTURES "%s", folder);
    ses_safetensors *s = ses_checkpoint_open_as(path, class, &e);
    snprintf(path, sizeof path, FIXTURES "%s/%s", folder, list);
    char *text = ses_file_read(path, 1 << 20, &n, &e);
    if (CHECK_MSG(s && text, "%s: %s", folder, e.msg)) {
        for (char *p = text, *end; (end = strchr(p, '\n')); p = end + 1, lines++) {
            *end = 0;
            check_line(s, p);
        }
        CHECK_MSG(ses_safetensors_count(s) == lines + more, "%s: %zu tensors, %zu lines", folder,
                  ses_safetensors_count(s), lines);
    }
    ses_free(text);
    ses_safetensors_free(s);
}

static void check_model(const char *folder, const char *class, const char *type, const char *want)
{
    char path[256];
    ses_err e = { 0 };
    snprintf(path, sizeof path, FIXTURES "%s", folder);
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_model *m = ses_model_open(path, dev, &(ses_model_options){ .class_name = class, .strict = true }, &e);
    if (CHECK_MSG(m, "%s: %s", folder, e.msg)) {
        CHECK_STR(ses_model_type(m), type);
        CHECK_STR(ses_model_class_name(m), want);
        CHECK_STR(ses_model_unexpected_keys(m), "");
    }
    ses_model_free(m);
    ses_device_free(dev);
}

static void test_families(void)
{
    static const struct {
        const char *folder, *type, *class;
        size_t more; /* tensors that safetensors folders leave out, because they are tied */
    } all[] = {
        { "bert", "bert", "BertForPreTraining", 0 },
        { "albert", "albert", "AlbertForPreTraining", 0 },
        { "electra", "electra", "ElectraForPreTraining", 0 },
        { "mobilebert", "mobilebert", "MobileBertForPreTraining", 0 },
        { "xlnet", "xlnet", "XLNetLMHeadModel", 0 },
        { "gpt2", "gpt2", "GPT2LMHeadModel", 0 },
        { "t5", "t5", "T5ForConditionalGeneration", 0 },
        { "t5-gated", "t5", "T5ForConditionalGeneration", 0 },
    };
    for (size_t i = 0; i < SES_LEN(all); i++) {
        check_tensors(all[i].folder, NULL, "tensors.txt", all[i].more);
        check_model(all[i].folder, NULL, all[i].type, all[i].class);
    }
    check_tensors("electra", "ElectraForMaskedLM", "generator.txt", 0);
    check_model("electra", "ElectraForMaskedLM", "electra", "ElectraForMaskedLM");
}

/* The embeddings stay in the mapped file, transposed weights are copies. */
static void test_mapping(void)
{
    ses_err e = { 0 };
    ses_safetensors *s = ses_checkpoint_open(FIXTURES "bert", &e);
    if (!CHECK_MSG(s, "%s", e.msg)) return;
    CHECK(ses_safetensors_is_mapped(s, ses_safetensors_find(s, "bert.embeddings.word_embeddings.weight")));
    CHECK(!ses_safetensors_is_mapped(s, ses_safetensors_find(s, "bert.pooler.dense.weight")));
    CHECK(!ses_safetensors_find(s, "global_step"));
    ses_safetensors_free(s);
}

static void check_config(const ses_json *c, const char *key, int64_t want)
{
    int64_t got = -1;
    CHECK_MSG(ses_json_int(ses_json_get(c, key), &got) && got == want, "%s: %lld", key, (long long)got);
}

static void test_config(void)
{
    ses_err e = { 0 };
    ses_json_doc *d = ses_model_config_open(FIXTURES "t5-gated", NULL, &e);
    if (CHECK_MSG(d, "%s", e.msg)) {
        const ses_json *c = ses_json_root(d);
        bool tied = true;
        check_config(c, "vocab_size", 24), check_config(c, "d_model", 8), check_config(c, "d_kv", 4);
        check_config(c, "num_heads", 2), check_config(c, "relative_attention_num_buckets", 6);
        CHECK_STR(ses_json_string(ses_json_get(c, "feed_forward_proj"), NULL), "gated-gelu");
        CHECK(ses_json_bool(ses_json_get(c, "tie_word_embeddings"), &tied) && !tied);
    }
    ses_json_free(d);
    d = ses_model_config_open(FIXTURES "albert", NULL, &e);
    if (CHECK_MSG(d, "%s", e.msg))
        CHECK_STR(ses_json_string(ses_json_get(ses_json_root(d), "hidden_act"), NULL), "gelu_new");
    ses_json_free(d);
    d = ses_model_config_open(FIXTURES "gpt2", NULL, &e);
    if (CHECK_MSG(d, "%s", e.msg)) check_config(ses_json_root(d), "n_positions", 16);
    if (d) check_config(ses_json_root(d), "eos_token_id", 23);
    ses_json_free(d);
}

/* ---- damaged indexes ---- */

static ses_buf whole_index(const char *path)
{
    ses_buf b = { 0 };
    size_t n;
    char *p = ses_file_read(path, 1 << 20, &n, NULL);
    CHECK(p && ses_buf_append(&b, p, n));
    ses_free(p);
    return b;
}

/* Parses a block of its exact size and frees the table. want: NULL, or the message. */
static void check_index(ses_buf table, const char *want)
{
    ses_err e = { 0 };
    ses_tf_index x;
    char *exact = malloc(table.len ? table.len : 1);
    memcpy(exact, table.data, table.len);
    bool ok = ses_tf_index_parse(&x, exact, table.len, &e);
    if (want)
        CHECK_STR(ok ? "accepted" : e.msg, want);
    else
        CHECK_MSG(ok, "%s", e.msg);
    ses_tf_index_free(&x);
    free(exact);
    ses_buf_free(&table);
}

static void check_entry(const tf_entry *t, const char *want)
{
    ses_buf b = { 0 };
    tf_header(&b, 1, 0);
    tf_add(&b, t);
    check_index(tf_table(&b, 0), want);
}

static void test_entries(void)
{
    const tf_entry good = { .name = "x", .dtype = 1, .rank = 2, .dim = { 2, 3 }, .bytes = 24 };
    tf_entry t = good;
    check_entry(&t, NULL);
    t.dtype = 7;
    check_entry(&t, "tensor \"x\": dtype DT_STRING (7) is not supported");
    t.dtype = 99;
    check_entry(&t, "tensor \"x\": unknown dtype 99");
    t.dtype = 0;
    check_entry(&t, "tensor \"x\": dtype missing");
    t = good, t.bytes = 20;
    check_entry(&t, "tensor \"x\": 20 bytes, 6 elements of F32 need 24");
    t = good, t.dim[0] = UINT64_MAX;
    check_entry(&t, "tensor \"x\": shape has an axis of size -1");
    t = good, t.dim[0] = (uint64_t)1 << 62;
    check_entry(&t, "tensor \"x\": the number of elements exceeds 63 bits");
    t = good, t.rank = 9;
    check_entry(&t, "tensor \"x\": shape of more than 8 axes");
    t = good, t.shard = 1;
    check_entry(&t, "tensor \"x\": shard 1 of 1");
    t = good, t.sliced = true;
    check_entry(&t, "tensor \"x\": the tensor is stored in slices (a partitioned variable), which are not "
                    "supported");
    t = good, t.name = "_CHECKPOINTABLE_OBJECT_GRAPH";
    check_entry(&t, "an object-based checkpoint (tf.train.Checkpoint); supported are checkpoints with "
                    "variable names (tf.compat.v1.train.Saver), as google-research publishes them");
}

static void test_tables(void)
{
    ses_buf b = { 0 }, raw = { 0 };
    const tf_entry x = { .name = "x", .dtype = 1, .bytes = 4 }, w = { .name = "w", .dtype = 1, .bytes = 4 };
    tf_header(&b, 1, 1);
    check_index(tf_table(&b, 0), "header: big-endian numbers, expected little-endian");
    tf_header(&b, 0, 0);
    check_index(tf_table(&b, 0), "header: header without shards");
    tf_header(&b, 1000000, 0);
    check_index(tf_table(&b, 0), "header: 1000000 shards, the maximum is 100000");
    tf_header(&b, 1, 0);
    check_index(tf_table(&b, 0), "no tensors");
    tf_add(&b, &x);
    check_index(tf_table(&b, 0), "header missing: not the index of a checkpoint");
    tf_header(&b, 1, 0), tf_add(&b, &x), tf_add(&b, &w);
    check_index(tf_table(&b, 0), "keys are not in ascending order");
    tf_header(&b, 1, 0), tf_add(&b, &x);
    check_index(tf_table(&b, 1), "block compressed with Snappy, expected none: write the checkpoint with "
                                 "tf.train.Saver");
    tf_header(&b, 1, 0), tf_add(&b, &x);
    check_index(tf_table(&b, 3), "block of compression type 3, expected 0 (none)");
    raw = whole_index(FIXTURES "bert/bert_model.ckpt.index");
    raw.data[100] ^= 1;
    check_index(raw, "wrong checksum of the block at byte 0: the file is damaged");
    raw = whole_index(FIXTURES "bert/bert_model.ckpt.index");
    raw.data[raw.len - 1] ^= 1;
    check_index(raw, "no LevelDB table: the last 8 bytes are da4775248b80fb57, expected db4775248b80fb57");
    raw = whole_index(FIXTURES "bert/bert_model.ckpt.index");
    raw.len = 47;
    check_index(raw, "file of 47 bytes, too short for the footer (48 bytes)");
    for (size_t n = 48;; n += 7) { /* never accepted, never read past the end */
        raw = whole_index(FIXTURES "bert/bert_model.ckpt.index");
        bool whole = n >= raw.len;
        memmove(raw.data, raw.data + raw.len - (whole ? raw.len : n), whole ? raw.len : n);
        raw.len = whole ? raw.len : n;
        ses_tf_index x_;
        CHECK(ses_tf_index_parse(&x_, raw.data, raw.len, NULL) == whole);
        ses_tf_index_free(&x_);
        ses_buf_free(&raw);
        if (whole) break;
    }
}

/* ---- shards ---- */

/* Two tensors of 4 bytes each at these offsets in a shard of 8 bytes. */
static void check_offsets(uint64_t a, uint64_t b, const char *want)
{
    static const char data[] = "\1\2\3\4\5\6\7\10";
    ses_err e = { 0 };
    ses_tf_index x;
    ses_buf block = { 0 };
    tf_entry t = { .name = "a", .dtype = 1, .offset = a, .bytes = 4, .crc = ses_crc32c(data + a % 5, 4) };
    tf_header(&block, 1, 0);
    tf_add(&block, &t);
    t.name = "b", t.offset = b, t.crc = ses_crc32c(data + b % 5, 4);
    tf_add(&block, &t);
    ses_buf table = tf_table(&block, 0);
    CHECK_MSG(ses_tf_index_parse(&x, table.data, table.len, &e), "%s", e.msg);
    bool ok = ses_tf_shard_check(&x, 0, data, 8, &e);
    CHECK_STR(ok ? "" : e.msg, want);
    ses_tf_index_free(&x);
    ses_buf_free(&table);
}

static void test_offsets(void)
{
    check_offsets(0, 4, "");
    check_offsets(4, 0, "");
    check_offsets(0, 2, "tensor \"b\": offset 2 overlaps the previous tensor (ends at 4)");
    check_offsets(0, 5,
                  "tensor \"b\": 4 bytes at 5 past the end (the file has 8 bytes): the file is truncated");
    check_offsets(UINT64_MAX - 2, 0,
                  "tensor \"a\": 4 bytes at 18446744073709551613 past the end (the file has 8 bytes): the "
                  "file is truncated");
}

static char dir[] = "/tmp/tf_checkpoint.XXXXXX";

static void copy(const char *name, size_t missing, int flip)
{
    char from[256], to[256];
    size_t n;
    snprintf(from, sizeof from, FIXTURES "bert/%s", name);
    snprintf(to, sizeof to, "%s/%s", dir, name);
    char *p = ses_file_read(from, 1 << 20, &n, NULL);
    if (CHECK(p) && flip >= 0) p[flip] ^= 64;
    CHECK(p && ses_file_write(to, p, n - missing, true, NULL));
    ses_free(p);
}

/* want: the end of the message, after the folder. */
static void check_open(const char *want)
{
    ses_err e = { 0 };
    ses_safetensors *s = ses_checkpoint_open(dir, &e);
    if (!want)
        CHECK_MSG(s, "%s", e.msg);
    else
        CHECK_STR(s ? "opened" : strncmp(e.msg, dir, strlen(dir)) ? e.msg : e.msg + strlen(dir), want);
    ses_safetensors_free(s);
}

static void test_folder(void)
{
    char path[256], missing[600];
    if (!CHECK(mkdtemp(dir))) return;
    copy("bert_model.ckpt.index", 0, -1);
    snprintf(missing, sizeof missing,
             "/bert_model.ckpt.index: shard 1 of 3: %s/bert_model.ckpt.data-00000-of-00003: "
             "No such file or directory",
             dir);
    check_open(missing);
    copy("bert_model.ckpt.data-00000-of-00003", 0, -1);
    copy("bert_model.ckpt.data-00001-of-00003", 0, -1);
    copy("bert_model.ckpt.data-00002-of-00003", 0, -1);
    check_open(NULL);
    copy("bert_model.ckpt.data-00001-of-00003", 0, 4000);
    ses_err e = { 0 };
    ses_safetensors *s = ses_checkpoint_open(dir, &e);
    CHECK_MSG(!s && strstr(e.msg, "bert_model.ckpt.data-00001-of-00003: tensor \"bert/") &&
                  strstr(e.msg, "wrong checksum") && strstr(e.msg, "damaged"),
              "%s", e.msg);
    ses_safetensors_free(s);
    copy("bert_model.ckpt.data-00001-of-00003", 4, -1);
    e = (ses_err){ 0 };
    s = ses_checkpoint_open(dir, &e);
    CHECK_MSG(!s && strstr(e.msg, "past the end (the file has 5380 bytes): the file is truncated"), "%s",
              e.msg);
    ses_safetensors_free(s);
    copy("bert_model.ckpt.data-00001-of-00003", 0, -1);
    check_open(NULL);
    e = (ses_err){ 0 };
    CHECK(!ses_model_config_open(dir, NULL, &e) && strstr(e.msg, "bert_config.json: not found"));
    static const char *const names[] = { "index", "data-00000-of-00003", "data-00001-of-00003",
                                         "data-00002-of-00003" };
    for (size_t i = 0; i < SES_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/bert_model.ckpt.%s", dir, names[i]);
        CHECK(ses_file_remove(path, NULL));
    }
}

/* ---- choice among several checkpoints ---- */

static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    CHECK(ses_file_write(path, text, strlen(text), true, NULL));
}

static void check_prefix(const char *want)
{
    ses_err e = { 0 };
    char *prefix = ses_tf_folder_prefix(dir, &e);
    CHECK_STR(prefix ? prefix : e.msg + strlen(dir), want);
    ses_free(prefix);
}

static void test_prefixes(void)
{
    static const char *const names[] = { "a.index", "b.index", "m-9.index", "m-10.index", "checkpoint" };
    char path[256];
    CHECK(!ses_tf_folder_is(dir));
    check_prefix(": no TensorFlow checkpoint (*.index) found");
    put("a.index", "");
    check_prefix("a");
    CHECK(ses_tf_folder_is(dir));
    put("m-9.index", ""), put("m-10.index", "");
    check_prefix("m-10");
    put("checkpoint", "model_checkpoint_path: \"/old/folder/m-9\"\nall_model_checkpoint_paths: \"m-10\"\n");
    check_prefix("m-9");
    put("checkpoint", "model_checkpoint_path: \"gone\"\n");
    check_prefix("m-10");
    for (size_t i = 2; i < SES_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        ses_file_remove(path, NULL);
    }
    put("b.index", "");
    ses_err e = { 0 };
    CHECK(!ses_tf_folder_prefix(dir, &e) && strstr(e.msg, ": several checkpoints ("));
    for (size_t i = 0; i < SES_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        ses_file_remove(path, NULL);
    }
    CHECK(!rmdir(dir));
}

int main(void)
{
    test_families();
    test_mapping();
    test_config();
    test_entries();
    test_tables();
    test_offsets();
    test_folder();
    test_prefixes();
    return check_report();
}
