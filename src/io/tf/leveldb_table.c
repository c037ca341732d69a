/* Reader of LevelDB tables. */
#include "leveldb_table.h"

#include "base/bytes.h"
#include "base/wire/crc32c.h"
#include "base/wire/protobuf.h"

#include <inttypes.h>
#include <string.h>

static const uint64_t magic = 0xdb4775248b80fb57u;

typedef struct handle {
    uint64_t offset, size; /* without the trailer */
} handle;

typedef struct key_buf {
    char s[SES_LEVELDB_MAX_KEY];
    size_t n;
    size_t shareable; /* how much of it the next key may share: nothing at the start of a block */
    bool any;         /* false: no key yet */
} key_buf;

typedef struct table {
    const unsigned char *p;
    size_t n;      /* without the footer */
    uint64_t next; /* end of the previous data block */
    key_buf index_key, key;
    ses_leveldb_visit *visit;
    void *ctx;
} table;

static const unsigned char *read_handle(const unsigned char *p, const unsigned char *end, handle *h)
{
    p = ses_varint(p, end, &h->offset);
    return p ? ses_varint(p, end, &h->size) : NULL;
}

/* The bytes of a block, after its checks. */
static const unsigned char *open_block(const table *t, handle h, ses_err *e)
{
    enum { TYPE = 1, TRAILER = 5, SNAPPY = 1 };
    if (h.offset > t->n || t->n - h.offset < TRAILER || h.size > t->n - h.offset - TRAILER) {
        ses_fail(e, SES_EFORMAT, "block of %" PRIu64 " bytes at %" PRIu64 " past the end (%zu bytes)", h.size,
                 h.offset, t->n);
        return NULL;
    }
    const unsigned char *p = t->p + h.offset, *end = p + h.size;
    if (ses_crc32c_mask(ses_crc32c(p, (size_t)h.size + TYPE)) != ses_le32(end + TYPE))
        ses_fail(e, SES_EFORMAT, "wrong checksum of the block at byte %" PRIu64 ": the file is damaged",
                 h.offset);
    else if (*end == SNAPPY)
        ses_fail(e, SES_EUNSUPPORTED,
                 "block compressed with Snappy, expected none: write the checkpoint with tf.train.Saver");
    else if (*end)
        ses_fail(e, SES_EUNSUPPORTED, "block of compression type %d, expected 0 (none)", *end);
    else
        return p;
    return NULL;
}

/* Appends the key's own part to the part it shares; keys must ascend. */
static bool next_key(key_buf *k, uint64_t shared, const unsigned char *own, uint64_t n, ses_err *e)
{
    if (shared > k->shareable)
        return ses_fail(e, SES_EFORMAT, "key shares %" PRIu64 " of %zu bytes", shared, k->shareable);
    if (n > sizeof k->s - shared) return ses_fail(e, SES_EFORMAT, "key of more than %zu bytes", sizeof k->s);
    size_t old = k->n - (size_t)shared, common = old < n ? old : (size_t)n;
    int order = common ? memcmp(own, k->s + shared, common) : 0;
    if (k->any && (order < 0 || (order == 0 && n <= old)))
        return ses_fail(e, SES_EFORMAT, "keys are not in ascending order");
    if (n) memcpy(k->s + shared, own, (size_t)n);
    k->n = k->shareable = (size_t)(shared + n);
    k->any = true;
    return true;
}

typedef bool take_entry(table *t, ses_string key, const unsigned char *value, size_t n, ses_err *e);

static bool each_entry(table *t, handle h, key_buf *key, take_entry *take, ses_err *e)
{
    const unsigned char *p = open_block(t, h, e);
    if (!p) return false;
    uint64_t restarts = h.size >= 4 ? ses_le32(p + h.size - 4) : UINT64_MAX;
    if (restarts > (h.size - 4) / 4)
        return ses_fail(e, SES_EFORMAT, "block of %" PRIu64 " bytes is too short for its restarts", h.size);
    const unsigned char *end = p + h.size - 4 - 4 * restarts;
    key->shareable = 0;
    while (p < end) {
        uint64_t shared, own, value;
        const unsigned char *at = ses_varint(p, end, &shared);
        at = at ? ses_varint(at, end, &own) : NULL;
        at = at ? ses_varint(at, end, &value) : NULL;
        if (!at || own > (uint64_t)(end - at) || value > (uint64_t)(end - at) - own)
            return ses_fail(e, SES_EFORMAT, "entry past the end of its block at byte %zu",
                            (size_t)(p - t->p));
        if (!next_key(key, shared, at, own, e)) return false;
        if (!take(t, (ses_string){ key->s, key->n }, at + own, (size_t)value, e)) return false;
        p = at + own + value;
    }
    return true;
}

static bool take_pair(table *t, ses_string key, const unsigned char *value, size_t n, ses_err *e)
{
    return t->visit(t->ctx, key, (ses_string){ (const char *)value, n }, e);
}

/* An entry of the index: the handle of a data block. Its key is at least the last one of the block. */
static bool take_block(table *t, ses_string key, const unsigned char *value, size_t n, ses_err *e)
{
    handle h;
    (void)key;
    if (!read_handle(value, value + n, &h)) return ses_fail(e, SES_EFORMAT, "damaged handle of a block");
    if (h.offset < t->next) return ses_fail(e, SES_EFORMAT, "blocks overlap at byte %" PRIu64, h.offset);
    if (!each_entry(t, h, &t->key, take_pair, e)) return false;
    t->next = h.offset + h.size;
    return true;
}

bool ses_leveldb_each(const void *bytes, size_t n, ses_leveldb_visit *visit, void *ctx, ses_err *e)
{
    table t = { .p = bytes, .visit = visit, .ctx = ctx };
    handle meta, index;
    if (n < SES_LEVELDB_FOOTER)
        return ses_fail(e, SES_EFORMAT, "file of %zu bytes, too short for the footer (%d bytes)", n,
                        SES_LEVELDB_FOOTER);
    t.n = n - SES_LEVELDB_FOOTER;
    const unsigned char *footer = t.p + t.n, *end = footer + SES_LEVELDB_FOOTER - 8;
    if (ses_le64(end) != magic)
        return ses_fail(e, SES_EFORMAT,
                        "no LevelDB table: the last 8 bytes are %016" PRIx64 ", expected %016" PRIx64,
                        ses_le64(end), magic);
    const unsigned char *p = read_handle(footer, end, &meta);
    if (!p || !read_handle(p, end, &index)) return ses_fail(e, SES_EFORMAT, "damaged footer");
    return each_entry(&t, index, &t.index_key, take_block, e);
}
