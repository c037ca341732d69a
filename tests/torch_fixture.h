/* Files as torch.save writes them: pickles assembled from a line of words, and zip archives with padding
 * before the data, data descriptors after it, and ZIP64 end records. */
#ifndef TESTS_TORCH_FIXTURE_H
#define TESTS_TORCH_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bytes {
    unsigned char data[1 << 17];
    size_t n;
} bytes;

static inline void put_bytes(bytes *b, const void *p, size_t n)
{
    if (n > sizeof b->data - b->n) abort();
    if (n) memcpy(b->data + b->n, p, n);
    b->n += n;
}

static inline void put_le(bytes *b, uint64_t x, size_t n)
{
    unsigned char le[16] = { 0 };
    for (size_t i = 0; i < 8; i++) le[i] = (unsigned char)(x >> (8 * i));
    put_bytes(b, le, n);
}

/* ---- pickles ---- */

/* Words separated by one blank: a single character is that opcode; xNN a byte; 'TEXT a string (BINUNICODE; ~
 * means a blank); #N an integer; @MODULE:NAME a global. */
static inline void put_pickle(bytes *b, const char *words)
{
    for (const char *w = words; *w;) {
        size_t n = strcspn(w, " ");
        long long i = n > 1 ? strtoll(w + 1, NULL, w[0] == 'x' ? 16 : 10) : 0;
        if (n == 1) {
            put_bytes(b, w, 1);
        } else if (w[0] == 'x') {
            put_le(b, (uint64_t)i, 1);
        } else if (w[0] == '\'') {
            put_le(b, 'X', 1);
            put_le(b, n - 1, 4);
            for (size_t k = 1; k < n; k++) put_le(b, w[k] == '~' ? ' ' : (unsigned char)w[k], 1);
        } else if (w[0] == '#') {
            bool small = i >= INT32_MIN && i <= INT32_MAX;
            put_le(b, small ? 'J' : 0x8A, 1);
            if (!small) put_le(b, 8, 1);
            put_le(b, (uint64_t)i, small ? 4 : 8);
        } else if (w[0] == '@') {
            size_t colon = (size_t)((const char *)memchr(w, ':', n) - w);
            put_le(b, 'c', 1);
            put_bytes(b, w + 1, colon - 1);
            put_le(b, '\n', 1);
            put_bytes(b, w + colon + 1, n - colon - 1);
            put_le(b, '\n', 1);
        } else if (n) {
            abort();
        }
        w += n + (w[n] == ' ');
    }
}

#define P_ORDERED "@collections:OrderedDict ) R "
#define P_STORAGE(type, key, n) "( 'storage @torch:" type "Storage '" key " 'cpu #" n " t Q "
/* storage, then words for offset, shape and strides */
#define P_TENSOR(storage, rest) "@torch._utils:_rebuild_tensor_v2 ( " storage rest " x89 " P_ORDERED "t R "
#define P_HEAD "x80 x02 "
/* A state_dict with these pairs. */
#define P_STATE(pairs) P_HEAD P_ORDERED "( " pairs "u } '_metadata " P_ORDERED "s b ."

/* ---- zip archives ---- */

typedef struct zip_record {
    const char *name;
    const void *data;
    size_t n;
} zip_record;

enum { ZIP_RECORDS = 64 };

/* An archive and the offsets of its parts. */
typedef struct zip_file {
    bytes b;
    size_t local[ZIP_RECORDS], data[ZIP_RECORDS], central[ZIP_RECORDS];
    size_t end64, locator, end;
} zip_file;

static inline void put_local(zip_file *z, const zip_record *r, size_t i, bool plain)
{
    size_t name = strlen(r->name);
    z->local[i] = z->b.n;
    size_t extra = plain ? 0 : 4 + (64 - (z->b.n + 30 + name + 4) % 64) % 64;
    put_le(&z->b, 0x04034b50, 4);
    put_le(&z->b, 0, 2);
    put_le(&z->b, plain ? 0 : 0x0808, 2); /* names are UTF-8, sizes follow the data */
    put_le(&z->b, 0, 2);
    put_le(&z->b, 0, 8); /* time, date, checksum */
    put_le(&z->b, plain ? r->n : 0, 4);
    put_le(&z->b, plain ? r->n : 0, 4);
    put_le(&z->b, name, 2);
    put_le(&z->b, extra, 2);
    put_bytes(&z->b, r->name, name);
    if (extra) {
        put_bytes(&z->b, "FB", 2);
        put_le(&z->b, extra - 4, 2);
        for (size_t k = 4; k < extra; k++) put_le(&z->b, 'Z', 1);
    }
    z->data[i] = z->b.n;
    put_bytes(&z->b, r->data, r->n);
    if (plain || !r->n) return;
    put_le(&z->b, 0x08074b50, 4);
    put_le(&z->b, 0, 4);
    put_le(&z->b, r->n, 4);
    put_le(&z->b, r->n, 4);
}

static inline void put_central(zip_file *z, const zip_record *r, size_t i, bool plain)
{
    size_t name = strlen(r->name);
    z->central[i] = z->b.n;
    put_le(&z->b, 0x02014b50, 4);
    put_le(&z->b, 0, 4);
    put_le(&z->b, plain ? 0 : 0x0808, 2);
    put_le(&z->b, 0, 2);
    put_le(&z->b, 0, 8);
    put_le(&z->b, r->n, 4);
    put_le(&z->b, r->n, 4);
    put_le(&z->b, name, 2);
    put_le(&z->b, 0, 12); /* extra, comment, disk, attributes */
    put_le(&z->b, z->local[i], 4);
    put_bytes(&z->b, r->name, name);
}

/* plain: without padding, descriptors and ZIP64, as other writers do. */
static inline void make_zip(zip_file *z, const zip_record *r, size_t n, bool plain)
{
    if (n > ZIP_RECORDS) abort();
    z->b.n = 0;
    for (size_t i = 0; i < n; i++) put_local(z, &r[i], i, plain);
    size_t at = z->b.n;
    for (size_t i = 0; i < n; i++) put_central(z, &r[i], i, plain);
    size_t size = z->b.n - at;
    z->end64 = z->b.n;
    if (!plain) {
        put_le(&z->b, 0x06064b50, 4);
        put_le(&z->b, 44, 8);
        put_le(&z->b, 0, 12); /* versions, disks */
        put_le(&z->b, n, 8);
        put_le(&z->b, n, 8);
        put_le(&z->b, size, 8);
        put_le(&z->b, at, 8);
        z->locator = z->b.n;
        put_le(&z->b, 0x07064b50, 4);
        put_le(&z->b, 0, 4);
        put_le(&z->b, z->end64, 8);
        put_le(&z->b, 1, 4);
    }
    z->end = z->b.n;
    put_le(&z->b, 0x06054b50, 4);
    put_le(&z->b, 0, 4);
    put_le(&z->b, n, 2);
    put_le(&z->b, n, 2);
    put_le(&z->b, size, 4);
    put_le(&z->b, at, 4);
    put_le(&z->b, 0, 2);
}

/* 24 and 96 bytes: storages "0" and "1" of these files. */
static inline const float *torch_numbers(void)
{
    static const float numbers[30] = { 0.5f, 1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
                                       15,   16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29 };
    return numbers;
}

/* A file with this pickle and these two storages. */
static inline void make_torch(zip_file *z, const void *pickle, size_t n, bool plain)
{
    const zip_record r[] = {
        { "m/data.pkl", pickle, n },
        { "m/byteorder", "little", 6 },
        { "m/data/0", torch_numbers(), 24 },
        { "m/data/1", torch_numbers() + 6, 96 },
        { "m/data/2", "", 0 },
        { "m/version", "3\n", 2 },
        { "m/.data/serialization_id", "0123456789", 10 },
    };
    make_zip(z, r, sizeof r / sizeof *r, plain);
}

static inline void make_torch_of(zip_file *z, const char *words, bool plain)
{
    static bytes pickle;
    pickle.n = 0;
    put_pickle(&pickle, words);
    make_torch(z, pickle.data, pickle.n, plain);
}

#define T_A P_TENSOR(P_STORAGE("Float", "0", "6"), "#0 #2 #3 x86 #3 #1 x86")
#define T_B P_TENSOR(P_STORAGE("Long", "1", "12"), "#2 #4 x85 #1 x85")
#define T_TURNED P_TENSOR(P_STORAGE("Float", "0", "6"), "#0 #3 #2 x86 #1 #3 x86")
#define TORCH_GOOD P_STATE("'a " T_A "'b " T_B "'turned " T_TURNED)

/* ---- files of before 1.6 ---- */

#define P_MAGIC P_HEAD "x8a x0a x6c xfc x9c x46 xf9 x20 x6a xa8 x50 x19 . "
#define P_VERSION P_HEAD "M xe9 x03 . "
#define P_SYSTEM(little) \
    P_HEAD "} ( 'protocol_version M xe9 x03 'little_endian " little " 'type_sizes } 'int K x04 s u . "
#define P_OLD_STORAGE(type, key, n) "( 'storage @torch:" type "Storage '" key " 'cpu #" n " N t Q "
#define OLD_A P_TENSOR(P_OLD_STORAGE("Float", "0", "6"), "#0 #2 #3 x86 #3 #1 x86")
#define OLD_B P_TENSOR(P_OLD_STORAGE("Long", "1", "12"), "#2 #4 x85 #1 x85")
#define OLD_TURNED P_TENSOR(P_OLD_STORAGE("Float", "0", "6"), "#0 #3 #2 x86 #1 #3 x86")
#define OLD_GOOD P_STATE("'a " OLD_A "'b " OLD_B "'turned " OLD_TURNED)
#define OLD_KEYS P_HEAD "] ( '0 '1 e . "

/* The first three pickles; the dict, unless a test has added it; then the keys and the two storages. */
static inline void put_old_head(bytes *b) { put_pickle(b, P_MAGIC P_VERSION P_SYSTEM("x88")); }

static inline void put_old_tail(bytes *b, const char *keys)
{
    put_pickle(b, keys);
    put_le(b, 6, 8);
    put_bytes(b, torch_numbers(), 24);
    put_le(b, 12, 8);
    put_bytes(b, torch_numbers() + 6, 96);
}

static inline void make_old(bytes *b, const char *dict, const char *keys)
{
    b->n = 0;
    put_old_head(b);
    put_pickle(b, dict);
    put_old_tail(b, keys);
}

#endif
