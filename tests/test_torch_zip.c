#include "check.h"
#include "io/safetensors_impl.h"
#include "sesame/unstable/tensor.h"
#include "torch_fixture.h"

static zip_file z; /* too large for a small stack */

static ses_safetensors *open_bytes(const void *p, size_t n, ses_err *e)
{
    return ses_tensors_from_memory(ses_torch_add, p, n, "x", e);
}

/* Opens the archive in z from a block of its exact size; want: NULL, or the message after "x: ". */
static void check_z(const char *what, ses_code code, const char *want)
{
    ses_err e = { 0 };
    unsigned char *exact = malloc(z.b.n ? z.b.n : 1);
    memcpy(exact, z.b.data, z.b.n);
    ses_safetensors *s = open_bytes(exact, z.b.n, &e);
    char full[512];
    snprintf(full, sizeof full, "x: %s", want ? want : "");
    if (!want)
        CHECK_MSG(s, "%s: %s", what, e.msg);
    else
        CHECK_STR(s ? what : e.msg, full);
    CHECK_MSG(e.code == code, "%s: code %d", what, (int)e.code);
    ses_safetensors_free(s);
    free(exact);
}

#define F SES_EFORMAT
#define U SES_EUNSUPPORTED

/* ---- archives that are refused ---- */

typedef enum { LOCAL, CENTRAL, END64, LOCATOR, END } record_kind;

/* The archive of TORCH_GOOD with an n-byte little-endian value written at an offset. */
static const struct {
    record_kind kind;
    size_t record, offset;
    uint64_t value;
    size_t n;
    bool plain;
    ses_code code;
    const char *want;
} patches[] = {
    { LOCAL, 0, 0, 'Q', 1, false, F, "not a zip archive" },
    { END, 0, 0, 'Q', 1, false, F,
      "no end record in the last 22 bytes: the file is truncated or has a comment" },
    { END, 0, 20, 1, 2, false, F,
      "no end record in the last 22 bytes: the file is truncated or has a comment" },
    { END, 0, 4, 1, 2, false, U, "a multi-disk archive" },
    { END, 0, 6, 1, 2, true, U, "a multi-disk archive" },
    { END, 0, 8, 6, 2, true, U, "a multi-disk archive" },
    { END, 0, 8, 6, 2, false, F, "zip64: the two end records differ" },
    { END, 0, 12, 6, 2, false, F, "zip64: the two end records differ" },
    { END, 0, 16, 6, 2, false, F, "zip64: the two end records differ" },
    { END, 0, 8, 0xFFFFFFFF, 4, false, SES_OK, NULL }, /* the count is in the ZIP64 record */
    { END, 0, 12, UINT64_MAX, 8, false, SES_OK, NULL },
    { END, 0, 12, UINT64_MAX, 8, true, F,
      "directory of 4294967295 bytes at 4294967295 does not end at its end record (1349)" },
    { END, 0, 8, 0x06000600, 4, true, F, "1536 entries in a directory of 400 bytes" },
    { END, 0, 8, 0x00060006, 4, true, F, "70 bytes after the last entry of the directory" },
    { END, 0, 8, 0x00080008, 4, true, F, "no directory header at 1349" },
    { END, 0, 12, 1, 4, true, F, "directory of 1 bytes at 949 does not end at its end record (1349)" },
    { LOCATOR, 0, 0, 'Q', 1, false, F,
      "directory of 400 bytes at 1306 does not end at its end record (1782)" },
    { LOCATOR, 0, 4, 1, 4, false, U, "a multi-disk archive" },
    { LOCATOR, 0, 8, 1, 8, false, F, "zip64: the end record is not directly before its locator" },
    { LOCATOR, 0, 16, 2, 4, false, U, "a multi-disk archive" },
    { END64, 0, 0, 'Q', 1, false, F, "zip64: the end record is not directly before its locator" },
    { END64, 0, 4, 45, 8, false, U, "zip64: end record of 45 bytes, 44 expected" },
    { END64, 0, 16, 1, 4, false, U, "a multi-disk archive" },
    { END64, 0, 24, 1, 8, false, U, "a multi-disk archive" },
    { END64, 0, 48, UINT64_MAX, 8, false, F, "zip64: the two end records differ" },
    { CENTRAL, 0, 0, 'Q', 1, false, F, "no directory header at 1306" },
    { CENTRAL, 6, 30, 1, 2, false, F, "truncated directory header at 1636" },
    { CENTRAL, 0, 8, 1, 2, false, U, "entry \"m/data.pkl\": encrypted" },
    { CENTRAL, 2, 8, 0x40, 2, false, U, "entry \"m/data/0\": encrypted" },
    { CENTRAL, 2, 8, 0x2000, 2, false, U, "entry \"m/data/0\": encrypted" },
    { CENTRAL, 2, 10, 8, 2, false, U, "entry \"m/data/0\": compressed (deflate), expected a stored entry" },
    { CENTRAL, 2, 10, 93, 2, false, U, "entry \"m/data/0\": compressed (zstd), expected a stored entry" },
    { CENTRAL, 2, 10, 77, 2, false, U,
      "entry \"m/data/0\": compressed (an unknown method), expected a stored entry" },
    { CENTRAL, 2, 20, 25, 4, false, F, "entry \"m/data/0\": stored, but its sizes differ: 25 and 24" },
    { CENTRAL, 2, 28, 0, 2, false, F, "entry without a name" },
    { CENTRAL, 2, 46, 0, 1, false, F, "entry with a NUL in its name" },
    { CENTRAL, 2, 46, 'n', 1, false, F, "entry \"n/data/0\": its local header names \"m/data/0\"" },
    { CENTRAL, 2, 34, 1, 2, false, U, "entry \"m/data/0\": on another disk of the archive" },
    { CENTRAL, 2, 42, 1, 4, false, F, "entry \"m/data/0\": no local header at 1" },
    { CENTRAL, 2, 42, 0xFFFFFFFF, 4, false, F, "entry \"m/data/0\": no local header at 4294967295" },
    { CENTRAL, 2, 42, 1305, 4, false, F, "entry \"m/data/0\": no local header at 1305" },
    { CENTRAL, 2, 20, 0x0000100000001000, 8, false, F,
      "entry \"m/data/0\": 4096 bytes at 768 overlap the directory or exceed the file" },
    { CENTRAL, 2, 20, 0xFFFFFFFFFFFFFFFF, 8, false, F,
      "entry \"m/data/0\": 4294967295 bytes at 768 overlap the directory or exceed the file" },
    { CENTRAL, 2, 20, 0x0000006000000060, 8, false, F, "entry \"m/data/1\" overlaps entry \"m/data/0\"" },
    { LOCAL, 2, 0, 'Q', 1, false, F, "entry \"m/data/0\": no local header at 726" },
    { LOCAL, 2, 8, 8, 2, false, F, "entry \"m/data/0\": its local header and the directory differ" },
    { LOCAL, 2, 6, 1, 2, false, F, "entry \"m/data/0\": its local header and the directory differ" },
    { LOCAL, 2, 22, 23, 4, true, F, "entry \"m/data/0\": its local header and the directory differ" },
    { LOCAL, 2, 18, UINT64_MAX, 8, true, F, "entry \"m/data/0\": its local header and the directory differ" },
    { LOCAL, 2, 26, 9, 2, false, F, "entry \"m/data/0\": its local header names \"m/data/0F\"" },
    { LOCAL, 2, 28, 0xFFFF, 2, false, F, "entry \"m/data/0\": truncated local header" },
    { LOCAL, 2, 28, 0, 2, true, SES_OK, NULL },
};

static void check_patches(void)
{
    for (size_t i = 0; i < SES_LEN(patches); i++) {
        char what[64];
        make_torch_of(&z, TORCH_GOOD, patches[i].plain);
        const size_t *at[] = { z.local, z.central, &z.end64, &z.locator, &z.end };
        for (size_t k = 0; k < patches[i].n; k++)
            z.b.data[at[patches[i].kind][patches[i].record] + patches[i].offset + k] =
                (unsigned char)(patches[i].value >> (8 * k));
        snprintf(what, sizeof what, "patch %zu", i);
        check_z(what, patches[i].code, patches[i].want);
    }
}

/* Archives with other entries. */
static void check_archives(void)
{
    static bytes pickle;
    put_pickle(&pickle, P_HEAD "} .");
    const zip_record data = { "m/data.pkl", pickle.data, pickle.n };
    static const struct {
        zip_record more[2];
        ses_code code;
        const char *want;
    } archives[] = {
        { { { 0 } }, SES_OK, NULL },
        { { { "n/x/data.pkl", "x", 1 }, { "data.pkl", "x", 1 } }, SES_OK, NULL }, /* in the wrong folder */
        { { { "m/", "", 0 }, { "m/byteorder", "little", 6 } }, SES_OK, NULL },
        { { { "m/version", "x", 1 }, { "m/version", "x", 1 } }, F, "two entries \"m/version\"" },
        { { { "m/data.pkl", "x", 1 } }, F, "two entries \"m/data.pkl\"" },
        { { { "n/data.pkl", "x", 1 } }, F, "both \"m/data.pkl\" and \"n/data.pkl\" found" },
        { { { "m/byteorder", "big", 3 } }, U, "byte order \"big\", expected \"little\"" },
        { { { "m/byteorder", "", 0 } }, U, "byte order \"\", expected \"little\"" },
        { { { "m/constants.pkl", "x", 1 } }, U, "a TorchScript program, not a dict of tensors" },
    };
    for (size_t i = 0; i < SES_LEN(archives); i++) {
        zip_record r[3] = { data, archives[i].more[0], archives[i].more[1] };
        make_zip(&z, r, 1 + !!r[1].name + !!r[2].name, i & 1);
        check_z("an archive", archives[i].code, archives[i].want);
    }
    make_zip(&z, &(zip_record){ "m/data", "x", 1 }, 1, false);
    check_z("no pickle", F, "a zip archive without data.pkl: not written by torch.save");
    make_zip(&z, NULL, 0, true);
    check_z("no entry", F, "not a zip archive");
    z.b.n = 0;
    check_z("nothing", F, "not a zip archive");
    put_bytes(&z.b, "version https://git-lfs.github.com/spec/v1\noid", 46);
    check_z("stub", F, "a Git LFS pointer instead of the weights: run `git lfs pull`");
}

/* Bytes between entries, which readers that scan for local headers would see. */
static void check_holes(void)
{
    const zip_record r[] = { { "m/data.pkl", "\x80\x02}.", 4 }, { "m/version", "3", 1 } };
    for (int later = 0; later < 2; later++)
        for (size_t hole = 1; hole < 26; hole += 24) {
            make_zip(&z, r, 2, true);
            size_t at = later ? z.central[0] : z.local[1];
            memmove(z.b.data + at + hole, z.b.data + at, z.b.n - at);
            memset(z.b.data + at, 'h', hole);
            z.b.n += hole;
            z.b.data[z.end + hole + 16] = (unsigned char)(z.central[0] + hole);
            if (!later) z.b.data[z.central[1] + hole + 42] = (unsigned char)(z.local[1] + hole);
            char want[80];
            snprintf(want, sizeof want,
                     later ? "%zu unused bytes before the directory"
                           : "%zu unused bytes before entry \"m/version\"",
                     hole);
            check_z("a hole", F, want);
        }
}

/* Sizes and offsets in the ZIP64 extra field of the directory, as in a file of more than 4 GiB. */
static void check_extra(void)
{
    static const struct {
        const char *extra; /* words */
        uint64_t ones;     /* packed size and size; */
        uint32_t offset;   /* offset */
        ses_code code;
        const char *want;
    } cases[] = {
#define ZERO7 " x00 x00 x00 x00 x00 x00 x00"
        { "x01 x00 x10 x00 x04" ZERO7 " x04" ZERO7, UINT64_MAX, 0, SES_OK, NULL },
        { "x01 x00 x18 x00 x04" ZERO7 " x04" ZERO7 " x00" ZERO7, UINT64_MAX, UINT32_MAX, SES_OK, NULL },
        { "x09 x00 x01 x00 x09 x01 x00 x08 x00 x00" ZERO7, 0x0000000400000004, UINT32_MAX, SES_OK, NULL },
        { "x01 x00 x08 x00 x04" ZERO7, UINT64_MAX, 0, F, "entry \"m/data.pkl\": truncated zip64 field" },
        { "x01 x00 x09 x00 x04" ZERO7, UINT64_MAX, 0, F, "entry \"m/data.pkl\": truncated extra field" },
        { "x01 x00 x08", UINT64_MAX, 0, F, "entry \"m/data.pkl\": truncated extra field" },
        { "x01 x00 x00 x00 x01 x00 x00 x00", 0x0000000400000004, 0, F,
          "entry \"m/data.pkl\": two zip64 fields" },
        { "x01 x00 x10 x00 x04" ZERO7 " x05" ZERO7, UINT64_MAX, 0, F,
          "entry \"m/data.pkl\": stored, but its sizes differ: 5 and 4" },
        { "x01 x00 x10 x00 xff xff xff xff xff xff xff xff xff xff xff xff xff xff xff xff", UINT64_MAX, 0, F,
          "entry \"m/data.pkl\": 18446744073709551615 bytes at 64 overlap the directory or exceed the file" },
        { "x01 x00 x08 x00 xff xff xff xff xff xff xff xff", 0x0000000400000004, UINT32_MAX, F,
          "entry \"m/data.pkl\": no local header at 18446744073709551615" },
    };
    const zip_record r = { "m/data.pkl", "\x80\x02}.", 4 };
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        static bytes extra, tail;
        extra.n = tail.n = 0;
        put_pickle(&extra, cases[i].extra);
        make_zip(&z, &r, 1, false);
        unsigned char *c = z.b.data + z.central[0];
        for (int k = 0; k < 8; k++) c[20 + k] = (unsigned char)(cases[i].ones >> (8 * k));
        for (int k = 0; k < 4; k++) c[42 + k] = (unsigned char)(cases[i].offset >> (8 * k));
        c[30] = (unsigned char)extra.n;
        put_bytes(&tail, z.b.data + z.end64, z.b.n - z.end64);
        z.b.n = z.end64;
        put_bytes(&z.b, extra.data, extra.n);
        tail.data[40] =
            (unsigned char)(tail.data[40] + extra.n); /* size of the directory, twice; offset of the record */
        tail.data[56 + 8] = (unsigned char)(tail.data[56 + 8] + extra.n);
        tail.data[76 + 12] = (unsigned char)(tail.data[76 + 12] + extra.n);
        put_bytes(&z.b, tail.data, tail.n);
        check_z(cases[i].extra, cases[i].code, cases[i].want);
    }
}

/* ---- sweeps ---- */

/* Reads everything or fails with a reason; the elements of each tensor are accessible. */
static bool survives(const unsigned char *p, size_t n)
{
    ses_err e = { 0 };
    float out[64];
    ses_safetensors *s = open_bytes(p, n, &e);
    bool ok = s ? e.code == SES_OK : (e.code == F || e.code == U) && !strncmp(e.msg, "x: ", 3);
    for (size_t i = 0; i < ses_safetensors_count(s); i++) {
        ses_tensor_entry t = *ses_safetensors_at(s, i);
        ok = ok && (size_t)t.count * ses_dtype_size(t.dtype) == t.bytes;
        if (t.count > 64) t.count = 64;
        ok = ok && ses_tensor_entry_to_f32(&t, out, &e);
    }
    ses_safetensors_free(s);
    return ok;
}

static void check_sweeps(bool plain)
{
    make_torch_of(&z, TORCH_GOOD, plain);
    size_t refused = 0;
    for (size_t n = 0; n < z.b.n; n++) {
        unsigned char *exact = malloc(n ? n : 1);
        memcpy(exact, z.b.data, n);
        ses_safetensors *s = open_bytes(exact, n, NULL);
        refused += !s;
        ses_safetensors_free(s);
        CHECK_MSG(survives(exact, n), "truncated to %zu", n);
        free(exact);
    }
    CHECK(refused == z.b.n); /* the end record is at the end */
    unsigned char *exact = malloc(z.b.n);
    memcpy(exact, z.b.data, z.b.n);
    static const unsigned char flips[] = { 1, 2, 4, 8, 16, 32, 64, 128, 255, 0x55 };
    for (size_t i = 0; i < z.b.n; i++)
        for (size_t k = 0; k < SES_LEN(flips); k++) {
            exact[i] ^= flips[k];
            if (!survives(exact, z.b.n)) CHECK_MSG(false, "byte %zu ^ %d", i, flips[k]);
            exact[i] ^= flips[k];
        }
    CHECK(survives(exact, z.b.n));
    free(exact);
}

int main(void)
{
    check_patches();
    check_archives();
    check_holes();
    check_extra();
    check_sweeps(false);
    check_sweeps(true);
    return check_report();
}
