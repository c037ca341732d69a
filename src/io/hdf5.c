/* HDF5 files, as ELMo's weights use them: superblock 0 or 1, groups with symbol tables (B-tree 1, local
 * heap), object headers 1, contiguous little-endian datasets of 16, 32 or 64-bit floats. Everything else is
 * refused by name. A dataset is named by its path, "CNN/W_cnn_0", and its values stay in the mapped file.
 *
 * Addresses in a file may point anywhere, so every structure is checked to lie in the file before it is read.
 * The number of visited structures is bounded, and so is the depth of groups: a group may contain itself. */
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/str.h"
#include "safetensors_impl.h"
#include "sesame/unstable/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_DEPTH = 16,     /* groups in groups */
    MAX_LEVELS = 8,     /* levels of a B-tree */
    MAX_VISITS = 65536, /* structures of a file */
    MAX_PATH = 512,
    ADDRESS = 8, /* bytes of an address, and of a length */
    SYMBOL = 40, /* bytes of a symbol table entry */
    BLOCKS = 64, /* continuation blocks of an object header */
};

static const unsigned char signature[] = { 0x89, 'H', 'D', 'F', '\r', '\n', 0x1A, '\n' };

typedef struct hdf5 {
    ses_safetensors *to;
    const unsigned char *p;
    uint64_t size;
    const char *file;
    size_t visits;
    uint64_t group[MAX_DEPTH]; /* header addresses of the groups that contain the current object */
    int depth;
    char path[MAX_PATH]; /* path of the current object, without '/' at its start; empty after an error */
} hdf5;

/* n bytes at an address; NULL: not in the file, or too many structures. */
static const unsigned char *bytes_at(hdf5 *f, uint64_t address, uint64_t n, const char *what, ses_err *e)
{
    if (++f->visits > MAX_VISITS) {
        ses_fail(e, SES_EFORMAT, "more than %d groups, datasets and tables", (int)MAX_VISITS);
        return NULL;
    }
    if (n <= f->size && address <= f->size - n) return f->p + address;
    ses_fail(e, SES_EFORMAT, "%s: %" PRIu64 " bytes at %" PRIu64 ", but the file has %" PRIu64, what, n,
             address, f->size);
    return NULL;
}

/* ---- datasets ---- */

/* The messages of an object header that matter; NULL: absent. */
typedef struct header {
    const unsigned char *space, *type, *layout, *table;
    size_t space_size, type_size, layout_size, table_size;
} header;

static bool read_space(const header *h, ses_tensor_entry *x, ses_err *e)
{
    const unsigned char *p = h->space;
    size_t fixed = h->space_size && p[0] == 2 ? 4 : 8;
    if (!p || h->space_size < fixed) return ses_fail(e, SES_EFORMAT, "its dataspace is missing or truncated");
    if (p[0] != 1 && p[0] != 2)
        return ses_fail(e, SES_EUNSUPPORTED, "dataspace version %d, expected 1 or 2", p[0]);
    if (p[0] == 2 && p[3] == 2) return ses_fail(e, SES_EUNSUPPORTED, "it is a null dataset");
    x->rank = p[1];
    if (x->rank > SES_ENTRY_MAX_DIM)
        return ses_fail(e, SES_EUNSUPPORTED, "%d axes, at most %d are supported", x->rank,
                        (int)SES_ENTRY_MAX_DIM);
    if (h->space_size - fixed < (size_t)x->rank * ADDRESS)
        return ses_fail(e, SES_EFORMAT, "its dataspace is truncated");
    x->count = 1;
    for (int i = 0; i < x->rank; i++) {
        uint64_t dim = ses_le64(p + fixed + i * ADDRESS);
        size_t count;
        if (dim > INT64_MAX || !ses_mul_size((size_t)x->count, (size_t)dim, &count) || count > INT64_MAX / 16)
            return ses_fail(e, SES_EFORMAT, "axis %d has %" PRIu64 " elements: too many", i, dim);
        x->dim[i] = (int64_t)dim;
        x->count = (int64_t)count;
    }
    return true;
}

/* Little-endian IEEE floats. */
static bool read_type(const header *h, ses_tensor_entry *x, ses_err *e)
{
    static const char *const classes[] = {
        "integers", "floats",   "times",      "strings",      "bit fields",
        "opaque",   "compound", "references", "enumerations", "variable-length values",
        "arrays"
    };
    static const struct {
        ses_dtype dtype;
        unsigned char size, sign, exponent_at, exponent, mantissa;
        uint32_t bias;
    } known[] = { { SES_F32, 4, 31, 23, 8, 23, 127 },
                  { SES_F64, 8, 63, 52, 11, 52, 1023 },
                  { SES_F16, 2, 15, 10, 5, 10, 15 } };
    const unsigned char *p = h->type;
    if (!p || h->type_size < 8) return ses_fail(e, SES_EFORMAT, "its datatype is missing or truncated");
    unsigned class = p[0] & 15;
    if (class != 1)
        return ses_fail(e, SES_EUNSUPPORTED, "it has %s, expected floats",
                        class < SES_LEN(classes) ? classes[class] : "values of an unknown class");
    if (h->type_size < 20) return ses_fail(e, SES_EFORMAT, "its datatype is truncated");
    if (p[1] & 0x41) return ses_fail(e, SES_EUNSUPPORTED, "byte order big, expected little");
    for (size_t i = 0; i < SES_LEN(known); i++) {
        unsigned bits = 8u * known[i].size;
        if (ses_le32(p + 4) != known[i].size || p[2] != known[i].sign || ses_le16(p + 8) ||
            ses_le16(p + 10) != bits || p[12] != known[i].exponent_at || p[13] != known[i].exponent ||
            p[14] || p[15] != known[i].mantissa || ses_le32(p + 16) != known[i].bias)
            continue;
        x->dtype = known[i].dtype;
        return true;
    }
    return ses_fail(e, SES_EUNSUPPORTED, "floats of %" PRIu32 " bytes in another layout than IEEE 754",
                    ses_le32(p + 4));
}

static bool read_layout(hdf5 *f, const header *h, ses_tensor_entry *x, ses_err *e)
{
    static const char *const classes[] = { "compact", "contiguous", "chunked", "virtual" };
    const unsigned char *p = h->layout;
    if (!p || h->layout_size < 2) return ses_fail(e, SES_EFORMAT, "its data layout is missing or truncated");
    if (p[0] != 3 && p[0] != 4)
        return ses_fail(e, SES_EUNSUPPORTED, "data layout version %d, expected 3 or 4", p[0]);
    if (p[1] != 1)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "its data layout is %s, expected contiguous: write it with h5py without chunks and "
                        "compression",
                        p[1] < SES_LEN(classes) ? classes[p[1]] : "unknown");
    if (h->layout_size < 2 + 2 * ADDRESS) return ses_fail(e, SES_EFORMAT, "its data layout is truncated");
    uint64_t address = ses_le64(p + 2), bytes = ses_le64(p + 2 + ADDRESS);
    x->bytes = (size_t)x->count * ses_dtype_size(x->dtype); /* count is at most INT64_MAX / 16 */
    if (bytes != x->bytes)
        return ses_fail(e, SES_EFORMAT, "%" PRIu64 " bytes of data, but its shape and type need %zu", bytes,
                        x->bytes);
    if (address == UINT64_MAX && bytes) return ses_fail(e, SES_EFORMAT, "no values were written to it");
    x->data = bytes ? bytes_at(f, address, bytes, "data", e) : f->p;
    return x->data != NULL;
}

static bool read_dataset(hdf5 *f, const header *h, ses_err *e)
{
    ses_tensor_entry x = { .file = f->file };
    if (!read_space(h, &x, e) || !read_type(h, &x, e) || !read_layout(f, h, &x, e)) return false;
    x.name = ses_arena_strndup(&f->to->arena, f->path, strlen(f->path), e);
    return x.name && ses_tensor_entries_reserve(f->to, 1, e) && ses_tensor_entry_add(f->to, &x, e);
}

/* ---- object headers ---- */

typedef struct block {
    uint64_t at, size;
} block;

enum { SPACE = 1, TYPE = 3, EXTERNAL = 7, LAYOUT = 8, FILTERS = 11, CONTINUATION = 16, TABLE = 17 };

static bool take_message(header *h, unsigned kind, unsigned flags, const unsigned char *p, size_t n,
                         ses_err *e)
{
    switch (kind) {
    case SPACE: h->space = p, h->space_size = n; break;
    case TYPE: h->type = p, h->type_size = n; break;
    case LAYOUT: h->layout = p, h->layout_size = n; break;
    case TABLE: h->table = p, h->table_size = n; break;
    case EXTERNAL: return ses_fail(e, SES_EUNSUPPORTED, "its values are in another file");
    case FILTERS:
        return ses_fail(e, SES_EUNSUPPORTED,
                        "it is filtered (compressed): write it with h5py without compression");
    default: return true;
    }
    return !(flags & 2) || ses_fail(e, SES_EUNSUPPORTED, "its type or shape is shared (committed)");
}

/* The messages of one block; continuation blocks are appended to the list. */
static bool read_block(hdf5 *f, block all[BLOCKS], size_t *n, size_t i, header *h, ses_err *e)
{
    const unsigned char *p = bytes_at(f, all[i].at, all[i].size, "object header", e);
    uint64_t left = all[i].size;
    for (; p && left >= 8;) {
        unsigned kind = ses_le16(p), size = ses_le16(p + 2), flags = p[4];
        if (size > left - 8) return ses_fail(e, SES_EFORMAT, "a message of its header is truncated");
        if (kind == CONTINUATION) {
            if (size < 2 * ADDRESS || *n == BLOCKS)
                return ses_fail(e, SES_EFORMAT, "a continuation of its header is invalid");
            all[(*n)++] = (block){ ses_le64(p + 8), ses_le64(p + 8 + ADDRESS) };
        } else if (!take_message(h, kind, flags, p + 8, size, e)) {
            return false;
        }
        p += 8 + size;
        left -= 8 + size;
    }
    return p != NULL;
}

static bool read_header(hdf5 *f, uint64_t address, header *h, ses_err *e)
{
    block all[BLOCKS];
    size_t n = 1;
    const unsigned char *p = bytes_at(f, address, 16, "object header", e);
    if (!p) return false;
    if (!memcmp(p, "OHDR", 4) || p[0] != 1)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "object header version %d, expected 1: write the file with h5py's libver=\"earliest\"",
            memcmp(p, "OHDR", 4) ? p[0] : 2);
    all[0] = (block){ address + 16, ses_le32(p + 8) };
    for (size_t i = 0; i < n; i++)
        if (!read_block(f, all, &n, i, h, e)) return false;
    return true;
}

/* ---- groups ---- */

static bool read_object(hdf5 *f, uint64_t address, ses_err *e);

/* A name in the local heap's data; NULL: not there. */
static const char *heap_name(hdf5 *f, uint64_t heap, uint64_t offset, ses_err *e)
{
    const unsigned char *p = bytes_at(f, heap, 8 + 3 * ADDRESS, "local heap", e);
    if (!p) return NULL;
    if (memcmp(p, "HEAP", 4) || p[4]) {
        ses_fail(e, SES_EFORMAT, "no local heap of version 0 at %" PRIu64, heap);
        return NULL;
    }
    uint64_t size = ses_le64(p + 8), at = ses_le64(p + 8 + 2 * ADDRESS);
    const unsigned char *data = bytes_at(f, at, size, "local heap", e);
    if (!data) return NULL;
    if (offset < size && memchr(data + offset, 0, (size_t)(size - offset)))
        return (const char *)data + offset;
    ses_fail(e, SES_EFORMAT, "a name at %" PRIu64 " of a local heap of %" PRIu64 " bytes", offset, size);
    return NULL;
}

static bool read_symbol(hdf5 *f, const unsigned char *p, uint64_t heap, ses_err *e)
{
    const char *name = heap_name(f, heap, ses_le64(p), e);
    size_t len = strlen(f->path), n = name ? strlen(name) : 0;
    if (!name) return false;
    if (!n || strchr(name, '/') || len + n + 2 > sizeof f->path)
        return ses_fail(e, SES_EFORMAT, "\"%s\" is not a name of a group or dataset",
                        ses_quoted_of(name, n).s);
    snprintf(f->path + len, sizeof f->path - len, "%s%s", len ? "/" : "", name);
    bool ok = ses_le32(p + 2 * ADDRESS) == 2 ? ses_fail(e, SES_EUNSUPPORTED, "it is a symbolic link")
                                             : read_object(f, ses_le64(p + ADDRESS), e);
    if (!ok && *f->path) ses_wrap(e, "\"%s\"", ses_quoted_of(f->path, strlen(f->path)).s);
    f->path[ok ? len : 0] = 0; /* only the innermost object is named */
    return ok;
}

static bool read_symbols(hdf5 *f, uint64_t address, uint64_t heap, ses_err *e)
{
    const unsigned char *p = bytes_at(f, address, 8, "symbol table", e);
    if (!p) return false;
    if (memcmp(p, "SNOD", 4) || p[4] != 1)
        return ses_fail(e, SES_EFORMAT, "no symbol table of version 1 at %" PRIu64, address);
    uint64_t n = ses_le16(p + 6);
    p = bytes_at(f, address + 8, n * SYMBOL, "symbol table", e);
    for (uint64_t i = 0; p && i < n; i++)
        if (!read_symbol(f, p + i * SYMBOL, heap, e)) return false;
    return p != NULL;
}

static bool read_tree(hdf5 *f, uint64_t address, uint64_t heap, int level, ses_err *e)
{
    enum { HEAD = 8 + 2 * ADDRESS };
    const unsigned char *p = bytes_at(f, address, HEAD, "B-tree", e);
    if (!p) return false;
    if (memcmp(p, "TREE", 4) || p[4])
        return ses_fail(e, SES_EFORMAT, "no B-tree of a group at %" PRIu64, address);
    if (p[5] >= MAX_LEVELS || (level >= 0 && p[5] != level))
        return ses_fail(e, SES_EFORMAT, "a B-tree node of level %d at %" PRIu64, p[5], address);
    level = p[5];
    uint64_t n = ses_le16(p + 6);
    p = bytes_at(f, address + HEAD, (2 * n + 1) * ADDRESS, "B-tree", e); /* key, child, key, ... , key */
    for (uint64_t i = 0; p && i < n; i++) {
        uint64_t child = ses_le64(p + (2 * i + 1) * ADDRESS);
        if (!(level ? read_tree(f, child, heap, level - 1, e) : read_symbols(f, child, heap, e)))
            return false;
    }
    return p != NULL;
}

static bool read_group(hdf5 *f, uint64_t address, const header *h, ses_err *e)
{
    if (h->table_size < 2 * ADDRESS) return ses_fail(e, SES_EFORMAT, "its symbol table message is truncated");
    for (int i = 0; i < f->depth; i++)
        if (f->group[i] == address) return ses_fail(e, SES_EFORMAT, "the group contains itself");
    if (f->depth == MAX_DEPTH)
        return ses_fail(e, SES_EUNSUPPORTED, "more than %d groups in each other", (int)MAX_DEPTH);
    f->group[f->depth++] = address;
    bool ok = read_tree(f, ses_le64(h->table), ses_le64(h->table + ADDRESS), -1, e);
    f->depth--;
    return ok;
}

static bool read_object(hdf5 *f, uint64_t address, ses_err *e)
{
    header h = { 0 };
    if (!read_header(f, address, &h, e)) return false;
    if (h.table) return read_group(f, address, &h, e);
    if (h.layout) return read_dataset(f, &h, e);
    return ses_fail(e, SES_EUNSUPPORTED, "neither a dataset nor a group with a symbol table");
}

/* ---- the file ---- */

bool ses_is_hdf5_file(const unsigned char *p, size_t n)
{
    return n >= sizeof signature && !memcmp(p, signature, sizeof signature);
}

static bool read_superblock(hdf5 *f, uint64_t *root, ses_err *e)
{
    const unsigned char *p = f->p;
    if (!ses_is_hdf5_file(p, (size_t)f->size)) return ses_fail(e, SES_EFORMAT, "not an HDF5 file");
    if (f->size < 16) return ses_fail(e, SES_EFORMAT, "truncated: %" PRIu64 " bytes", f->size);
    if (p[8] > 1)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "superblock version %d, expected 0 or 1: write the file with h5py's "
                        "libver=\"earliest\"",
                        p[8]);
    if (p[13] != ADDRESS || p[14] != ADDRESS)
        return ses_fail(e, SES_EUNSUPPORTED, "addresses of %d and lengths of %d bytes, expected %d", p[13],
                        p[14], (int)ADDRESS);
    uint64_t at = p[8] == 1 ? 28 : 24; /* base, free space, end of file, driver; then the root's symbol */
    if (f->size < at + 4 * ADDRESS + SYMBOL)
        return ses_fail(e, SES_EFORMAT, "truncated: %" PRIu64 " bytes", f->size);
    uint64_t base = ses_le64(p + at), end = ses_le64(p + at + 2 * ADDRESS);
    if (base) return ses_fail(e, SES_EUNSUPPORTED, "base address %" PRIu64 ", expected 0", base);
    if (end > f->size)
        return ses_fail(e, SES_EFORMAT, "truncated: %" PRIu64 " bytes, its superblock expects %" PRIu64,
                        f->size, end);
    *root = ses_le64(p + at + 5 * ADDRESS);
    return true;
}

bool ses_hdf5_add(ses_safetensors *s, const void *bytes, size_t n, const char *file, ses_err *e)
{
    hdf5 f = { .to = s, .p = bytes, .size = n };
    uint64_t root = 0;
    f.file = ses_arena_strndup(&s->arena, file, strlen(file), e);
    return f.file && ses_check_not_lfs(bytes, n, "weights", e) && read_superblock(&f, &root, e) &&
           read_object(&f, root, e);
}
