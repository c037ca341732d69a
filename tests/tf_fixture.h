/* Writes the index of a TensorFlow checkpoint: a LevelDB table with one data block. */
#ifndef TESTS_TF_FIXTURE_H
#define TESTS_TF_FIXTURE_H

#include "base/str.h"
#include "base/wire/crc32c.h"

#include <string.h>

static inline void tf_varint(ses_buf *b, uint64_t x)
{
    for (; x >= 0x80; x >>= 7) ses_buf_put(b, (char)((x & 0x7F) | 0x80));
    ses_buf_put(b, (char)x);
}

static inline void tf_fixed(ses_buf *b, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++) ses_buf_put(b, (char)(x >> 8 * i & 0xFF));
}

static inline void tf_number(ses_buf *b, int field, uint64_t x)
{
    tf_varint(b, (uint64_t)field << 3);
    tf_varint(b, x);
}

static inline void tf_bytes(ses_buf *b, int field, const void *p, size_t n)
{
    tf_varint(b, (uint64_t)field << 3 | 2);
    tf_varint(b, n);
    ses_buf_append(b, p, n);
}

/* A pair that shares no bytes with the previous key. */
static inline void tf_pair(ses_buf *block, const char *key, size_t key_len, const ses_buf *value)
{
    tf_varint(block, 0);
    tf_varint(block, key_len);
    tf_varint(block, value->len);
    ses_buf_append(block, key, key_len);
    ses_buf_append(block, value->data, value->len);
}

typedef struct tf_entry {
    const char *name;
    int dtype;
    int rank;
    uint64_t dim[12];
    uint64_t shard, offset, bytes;
    uint32_t crc; /* not masked */
    bool sliced;
} tf_entry;

static inline void tf_add(ses_buf *block, const tf_entry *t)
{
    ses_buf value = { 0 }, shape = { 0 };
    for (int i = 0; i < t->rank; i++) {
        ses_buf axis = { 0 };
        tf_number(&axis, 1, t->dim[i]);
        tf_bytes(&shape, 2, axis.data, axis.len);
        ses_buf_free(&axis);
    }
    if (t->dtype) tf_number(&value, 1, (uint64_t)t->dtype);
    tf_bytes(&value, 2, shape.data ? shape.data : "", shape.len);
    tf_number(&value, 3, t->shard);
    tf_number(&value, 4, t->offset);
    tf_number(&value, 5, t->bytes);
    tf_varint(&value, 6 << 3 | 5);
    tf_fixed(&value, ses_crc32c_mask(t->crc), 4);
    if (t->sliced) tf_bytes(&value, 7, "", 0);
    tf_pair(block, t->name, strlen(t->name), &value);
    ses_buf_free(&shape);
    ses_buf_free(&value);
}

static inline void tf_header(ses_buf *block, uint64_t shards, uint64_t endianness)
{
    ses_buf value = { 0 };
    tf_number(&value, 1, shards);
    if (endianness) tf_number(&value, 2, endianness);
    tf_pair(block, "", 0, &value);
    ses_buf_free(&value);
}

/* Ends a block and appends it; returns its handle's text in h. type: the compression. */
static inline void tf_block(ses_buf *table, ses_buf *block, int type, ses_buf *h)
{
    h->len = 0;
    tf_varint(h, table->len);
    tf_fixed(block, 0, 4); /* one restart, at 0 */
    tf_fixed(block, 1, 4);
    tf_varint(h, block->len);
    ses_buf_put(block, (char)type);
    uint32_t crc = ses_crc32c_mask(ses_crc32c(block->data, block->len));
    ses_buf_append(table, block->data, block->len);
    tf_fixed(table, crc, 4);
}

/* The table of a data block, which is freed. */
static inline ses_buf tf_table(ses_buf *data, int type)
{
    ses_buf table = { 0 }, index = { 0 }, meta = { 0 }, h = { 0 }, footer = { 0 };
    tf_block(&table, data, type, &h);
    tf_pair(&index, "~", 1, &h);
    tf_block(&table, &meta, 0, &h);
    ses_buf_append(&footer, h.data, h.len);
    tf_block(&table, &index, 0, &h);
    ses_buf_append(&footer, h.data, h.len);
    while (footer.len < 40) ses_buf_put(&footer, 0);
    tf_fixed(&footer, 0xdb4775248b80fb57u, 8);
    ses_buf_append(&table, footer.data, footer.len);
    ses_buf_free(&footer);
    ses_buf_free(&h);
    ses_buf_free(&meta);
    ses_buf_free(&index);
    ses_buf_free(data);
    return table;
}

#endif
