/* Reader of stored zip archives. */
#include "zip.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOCAL = 30,
    CENTRAL = 46,
    END = 22,
    END64 = 56,
    LOCATOR = 20,
    DESCRIPTOR_MAX = 24
}; /* record sizes in bytes */
enum { ENCRYPTED = 1 << 0, DESCRIBED = 1 << 3, STRONG = 1 << 6, MASKED = 1 << 13 };

/* The archive and the position of its central directory. */
typedef struct view {
    const unsigned char *p;
    size_t n;
    uint64_t count, offset, size; /* entries, offset and bytes of the directory */
} view;

/* One file header of the central directory, or the local one. */
typedef struct header {
    unsigned flags, method;
    uint64_t packed, size, offset;
    const unsigned char *name, *extra;
    size_t name_len, extra_len;
} header;

static bool has_signature(const unsigned char *p, char a, char b)
{
    return p[0] == 'P' && p[1] == 'K' && p[2] == a && p[3] == b;
}

/* ---- finding the directory ---- */

/* A field of the end record that is too small for its value is all ones, and the ZIP64 record has the value;
 * otherwise both must agree. */
static bool agree(uint64_t small, uint64_t ones, uint64_t large) { return small == ones || small == large; }

static bool read_end64(view *v, const unsigned char *end, ses_err *e)
{
    size_t at = v->n - END - LOCATOR; /* offset of the locator */
    const unsigned char *locator = v->p + at, *r;
    if (at < END64 || ses_le64(locator + 8) != at - END64 || !has_signature(v->p + at - END64, 6, 6))
        return ses_fail(e, SES_EFORMAT, "zip64: the end record is not directly before its locator");
    r = v->p + at - END64;
    if (ses_le64(r + 4) != END64 - 12)
        return ses_fail(e, SES_EUNSUPPORTED, "zip64: end record of %" PRIu64 " bytes, %d expected",
                        ses_le64(r + 4), END64 - 12);
    if (ses_le32(locator + 4) || ses_le32(locator + 16) > 1 || ses_le32(r + 16) || ses_le32(r + 20) ||
        ses_le64(r + 24) != ses_le64(r + 32))
        return ses_fail(e, SES_EUNSUPPORTED, "a multi-disk archive");
    v->count = ses_le64(r + 32);
    v->size = ses_le64(r + 40);
    v->offset = ses_le64(r + 48);
    if (!agree(ses_le16(end + 8), 0xFFFF, v->count) || !agree(ses_le16(end + 10), 0xFFFF, v->count) ||
        !agree(ses_le32(end + 12), 0xFFFFFFFF, v->size) || !agree(ses_le32(end + 16), 0xFFFFFFFF, v->offset))
        return ses_fail(e, SES_EFORMAT, "zip64: the two end records differ");
    return true;
}

static bool find_directory(view *v, ses_err *e)
{
    if (v->n < END || !has_signature(v->p, 3, 4)) return ses_fail(e, SES_EFORMAT, "not a zip archive");
    const unsigned char *end = v->p + v->n - END;
    if (!has_signature(end, 5, 6) || ses_le16(end + 20))
        return ses_fail(e, SES_EFORMAT,
                        "no end record in the last %d bytes: the file is truncated or has a comment", END);
    if ((ses_le16(end + 4) && ses_le16(end + 4) != 0xFFFF) ||
        (ses_le16(end + 6) && ses_le16(end + 6) != 0xFFFF))
        return ses_fail(e, SES_EUNSUPPORTED, "a multi-disk archive");
    size_t stop = v->n - END; /* the directory must end here */
    if (stop >= LOCATOR && has_signature(end - LOCATOR, 6, 7)) {
        if (!read_end64(v, end, e)) return false;
        stop -= LOCATOR + END64;
    } else {
        v->count = ses_le16(end + 10);
        v->size = ses_le32(end + 12);
        v->offset = ses_le32(end + 16);
        if (ses_le16(end + 8) != v->count) return ses_fail(e, SES_EUNSUPPORTED, "a multi-disk archive");
    }
    if (v->offset > stop || v->size != stop - v->offset)
        return ses_fail(e, SES_EFORMAT,
                        "directory of %" PRIu64 " bytes at %" PRIu64 " does not end at its end record (%zu)",
                        v->size, v->offset, stop);
    if (v->count > v->size / CENTRAL)
        return ses_fail(e, SES_EFORMAT, "%" PRIu64 " entries in a directory of %" PRIu64 " bytes", v->count,
                        v->size);
    return true;
}

/* ---- headers ---- */

/* The ZIP64 extra field has, in this order, the sizes and offset whose 32-bit fields are all ones. */
static bool read_extra(header *h, ses_err *e)
{
    uint64_t *large[] = { &h->size, &h->packed, &h->offset };
    bool seen = false;
    for (size_t at = 0; at < h->extra_len;) {
        const unsigned char *x = h->extra + at;
        size_t left = h->extra_len - at, len = left >= 4 ? ses_le16(x + 2) : 0;
        if (left < 4 || len > left - 4) return ses_fail(e, SES_EFORMAT, "truncated extra field");
        at += 4 + len;
        if (ses_le16(x) != 1) continue;
        if (seen) return ses_fail(e, SES_EFORMAT, "two zip64 fields");
        seen = true;
        x += 4;
        for (size_t i = 0; i < SES_LEN(large); i++) {
            if (*large[i] != 0xFFFFFFFF) continue;
            if (len < 8) return ses_fail(e, SES_EFORMAT, "truncated zip64 field");
            *large[i] = ses_le64(x);
            x += 8;
            len -= 8;
        }
    }
    return true;
}

static const char *method_name(unsigned method)
{
    switch (method) {
    case 8: return "deflate";
    case 9: return "deflate64";
    case 12: return "bzip2";
    case 14: return "lzma";
    case 93: return "zstd";
    case 95: return "xz";
    default: return "an unknown method";
    }
}

/* Checks that an entry of the central directory is stored and not encrypted. */
static bool check_stored(const header *h, ses_err *e)
{
    if (h->flags & (ENCRYPTED | STRONG | MASKED)) return ses_fail(e, SES_EUNSUPPORTED, "encrypted");
    if (h->method)
        return ses_fail(e, SES_EUNSUPPORTED, "compressed (%s), expected a stored entry",
                        method_name(h->method));
    if (h->packed != h->size)
        return ses_fail(e, SES_EFORMAT, "stored, but its sizes differ: %" PRIu64 " and %" PRIu64, h->packed,
                        h->size);
    return true;
}

/* The local header must repeat the directory, except that streaming writers leave the sizes to a data
 * descriptor after the data. */
static bool check_local(const view *v, const header *h, ses_zip_entry *z, ses_err *e)
{
    if (h->offset > v->offset || v->offset - h->offset < LOCAL || !has_signature(v->p + h->offset, 3, 4))
        return ses_fail(e, SES_EFORMAT, "no local header at %" PRIu64, h->offset);
    const unsigned char *p = v->p + h->offset;
    size_t space = (size_t)(v->offset - h->offset) - LOCAL;
    header l = { .flags = ses_le16(p + 6),
                 .method = ses_le16(p + 8),
                 .packed = ses_le32(p + 18),
                 .size = ses_le32(p + 22),
                 .name = p + LOCAL,
                 .name_len = ses_le16(p + 26),
                 .extra_len = ses_le16(p + 28) };
    if (l.name_len + l.extra_len > space) return ses_fail(e, SES_EFORMAT, "truncated local header");
    l.extra = l.name + l.name_len;
    space -= l.name_len + l.extra_len;
    if (l.name_len != h->name_len || memcmp(l.name, h->name, l.name_len) != 0)
        return ses_fail(e, SES_EFORMAT, "its local header names \"%s\"",
                        ses_quoted_of((const char *)l.name, l.name_len).s);
    bool in_descriptor = l.flags & DESCRIBED && !l.size && !l.packed;
    if (!in_descriptor && (l.size == 0xFFFFFFFF || l.packed == 0xFFFFFFFF) && !read_extra(&l, e))
        return ses_wrap(e, "local header");
    if (l.flags != h->flags || l.method != h->method ||
        (!in_descriptor && (l.packed != h->packed || l.size != h->size)))
        return ses_fail(e, SES_EFORMAT, "its local header and the directory differ");
    if (h->size > space)
        return ses_fail(e, SES_EFORMAT,
                        "%" PRIu64 " bytes at %" PRIu64 " overlap the directory or exceed the file", h->size,
                        (uint64_t)(l.extra + l.extra_len - v->p));
    *z = (ses_zip_entry){ .name = (const char *)h->name,
                          .name_len = h->name_len,
                          .data = l.extra + l.extra_len,
                          .size = (size_t)h->size,
                          .header = (size_t)h->offset,
                          .has_descriptor = l.flags & DESCRIBED };
    z->end = (size_t)(z->data - v->p) + z->size;
    return true;
}

/* Reads the directory header at *at, and advances *at. */
static bool read_entry(const view *v, uint64_t *at, ses_zip_entry *z, ses_err *e)
{
    const unsigned char *p = v->p + v->offset + *at;
    uint64_t left = v->size - *at;
    if (left < CENTRAL || !has_signature(p, 1, 2))
        return ses_fail(e, SES_EFORMAT, "no directory header at %" PRIu64, v->offset + *at);
    header h = { .flags = ses_le16(p + 8),
                 .method = ses_le16(p + 10),
                 .packed = ses_le32(p + 20),
                 .size = ses_le32(p + 24),
                 .offset = ses_le32(p + 42),
                 .name = p + CENTRAL,
                 .name_len = ses_le16(p + 28),
                 .extra_len = ses_le16(p + 30) };
    size_t tail = h.name_len + h.extra_len + ses_le16(p + 32);
    if (tail > left - CENTRAL)
        return ses_fail(e, SES_EFORMAT, "truncated directory header at %" PRIu64, v->offset + *at);
    *at += CENTRAL + tail;
    h.extra = h.name + h.name_len;
    unsigned disk = ses_le16(p + 34);
    if (!h.name_len || memchr(h.name, 0, h.name_len))
        return ses_fail(e, SES_EFORMAT, "entry %s", h.name_len ? "with a NUL in its name" : "without a name");
    if (disk && disk != 0xFFFF)
        ses_fail(e, SES_EUNSUPPORTED, "on another disk of the archive");
    else if (read_extra(&h, e) && check_stored(&h, e) && check_local(v, &h, z, e))
        return true;
    return ses_wrap(e, "entry \"%s\"", ses_quoted_of((const char *)h.name, h.name_len).s);
}

/* ---- all entries together ---- */

static int by_offset(const void *a, const void *b)
{
    const ses_zip_entry *x = a, *y = b;
    return x->header < y->header ? -1 : x->header > y->header;
}

/* Entries and their descriptors must fill the archive up to the directory. */
static bool check_contiguous(const ses_zip *z, size_t stop, ses_err *e)
{
    size_t at = 0, max_gap = 0; /* bytes allowed before the next entry */
    for (size_t i = 0; i < z->n; i++) {
        const ses_zip_entry *x = &z->entry[i];
        ses_quoted name = ses_quoted_of(x->name, x->name_len);
        if (x->header < at)
            return ses_fail(e, SES_EFORMAT, "entry \"%s\" overlaps entry \"%s\"", name.s,
                            ses_quoted_of(x[-1].name, x[-1].name_len).s);
        if (x->header - at > max_gap)
            return ses_fail(e, SES_EFORMAT, "%zu unused bytes before entry \"%s\"", x->header - at, name.s);
        at = x->end;
        max_gap = x->has_descriptor ? DESCRIPTOR_MAX : 0;
    }
    if (stop - at > max_gap)
        return ses_fail(e, SES_EFORMAT, "%zu unused bytes before the directory", stop - at);
    return true;
}

bool ses_zip_read(ses_zip *z, const void *bytes, size_t n, ses_err *e)
{
    view v = { .p = bytes, .n = n };
    uint64_t at = 0;
    if (!find_directory(&v, e)) return false;
    z->entry = ses_alloc_array((size_t)v.count, sizeof *z->entry, e);
    if (!z->entry) return false;
    for (; z->n < v.count; z->n++)
        if (!read_entry(&v, &at, &z->entry[z->n], e)) return false;
    if (at != v.size)
        return ses_fail(e, SES_EFORMAT, "%" PRIu64 " bytes after the last entry of the directory",
                        v.size - at);
    if (z->n) qsort(z->entry, z->n, sizeof *z->entry, by_offset);
    for (size_t i = 0; i < z->n; i++) {
        const ses_zip_entry *x = &z->entry[i];
        bool fresh = false;
        if (!ses_strmap_insert(&z->names, x->name, x->name_len, (int64_t)i, &fresh, e)) return false;
        if (!fresh)
            return ses_fail(e, SES_EFORMAT, "two entries \"%s\"", ses_quoted_of(x->name, x->name_len).s);
    }
    return check_contiguous(z, (size_t)v.offset, e);
}

void ses_zip_free(ses_zip *z)
{
    ses_free(z->entry);
    ses_strmap_free(&z->names);
    *z = (ses_zip){ 0 };
}

const ses_zip_entry *ses_zip_find(const ses_zip *z, const char *name, size_t n)
{
    int64_t i;
    return ses_strmap_find(&z->names, name, n, &i) ? &z->entry[i] : NULL;
}
