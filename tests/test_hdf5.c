/* HDF5: files of h5py (tests/fixtures/hdf5), refused kinds, damaged and hostile files. */
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/file.h"
#include "check.h"
#include "io/safetensors_impl.h"
#include "sesame/unstable/tensor.h"

#define FIXTURES "tests/fixtures/hdf5/"

/* Opens a copy of exactly n bytes, so that a sanitizer sees reads behind them. */
static ses_safetensors *open_bytes(const void *p, size_t n, ses_err *e)
{
    return ses_tensors_from_memory(ses_hdf5_add, p, n, "x", e);
}

static void check_dataset(const ses_safetensors *s, const char *name, ses_dtype dtype, int rank,
                          const int64_t *dim, const float *want)
{
    float got[16] = { 0 };
    const ses_tensor_entry *t = ses_safetensors_find(s, name);
    if (!CHECK_MSG(t && t->count <= 16, "%s", name)) return;
    CHECK_MSG(t->dtype == dtype && t->rank == rank, "%s: dtype %d, rank %d", name, (int)t->dtype, t->rank);
    for (int i = 0; i < rank; i++) CHECK_MSG(t->dim[i] == dim[i], "%s: axis %d", name, i);
    CHECK(ses_tensor_entry_to_f32(t, got, NULL));
    for (int64_t i = 0; i < t->count; i++) CHECK_MSG(got[i] == want[i], "%s[%d] = %g", name, (int)i, got[i]);
    CHECK(!t->count || ses_safetensors_is_mapped(s, t));
}

static void test_good(void)
{
    ses_err e = { 0 };
    ses_safetensors *s = ses_checkpoint_open(FIXTURES "good.h5", &e); /* found by its first bytes */
    if (!CHECK_MSG(s, "%s", e.msg)) return;
    CHECK(ses_safetensors_count(s) == 6);
    check_dataset(s, "char_embed", SES_F32, 2, (int64_t[]){ 2, 3 },
                  (float[]){ 0, 0.25f, 0.5f, 0.75f, 1, 1.25f });
    check_dataset(s, "CNN/W_cnn_0", SES_F32, 4, (int64_t[]){ 1, 2, 2, 2 },
                  (float[]){ -3, -2, -1, 0, 1, 2, 3, 4 });
    check_dataset(s, "CNN/b_cnn_0", SES_F64, 1, (int64_t[]){ 2 }, (float[]){ 1.5f, -2.5f });
    check_dataset(s, "CNN/RNN/B", SES_F16, 1, (int64_t[]){ 3 }, (float[]){ 0.5f, 1, -1 });
    check_dataset(s, "scalar", SES_F32, 0, NULL, (float[]){ 7 });
    check_dataset(s, "empty", SES_F32, 2, (int64_t[]){ 0, 3 }, NULL);
    ses_safetensors_free(s);

    s = ses_checkpoint_open(FIXTURES "many.h5", &e);
    CHECK_MSG(ses_safetensors_count(s) == 12, "%s", e.msg);
    for (int i = 0; i < 12 && s; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", i);
        check_dataset(s, name, SES_F32, 1, (int64_t[]){ 1 }, (float[]){ (float)i });
    }
    ses_safetensors_free(s);
}

static void test_refused(void)
{
    static const struct {
        const char *file, *message;
    } cases[] = {
        { "latest", "superblock version 3, expected 0 or 1: write the file with h5py's libver=\"earliest\"" },
        { "integers", "\"x\": it has integers, expected floats" },
        { "big", "\"x\": byte order big, expected little" },
        { "link", "\"y\": it is a symbolic link" },
        { "unwritten", "\"x\": no values were written to it" },
        { "compact",
          "\"x\": its data layout is compact, expected contiguous: write it with h5py without chunks "
          "and compression" },
        { "chunked",
          "\"x\": its data layout is chunked, expected contiguous: write it with h5py without chunks "
          "and compression" },
        { "compressed", "\"x\": it is filtered (compressed): write it with h5py without compression" },
    };
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        char path[128], want[512];
        ses_err e = { 0 };
        snprintf(path, sizeof path, FIXTURES "%s.h5", cases[i].file);
        snprintf(want, sizeof want, "%s: %s", path, cases[i].message);
        ses_safetensors *s = ses_checkpoint_open(path, &e);
        CHECK(!s && (e.code == SES_EUNSUPPORTED || e.code == SES_EFORMAT));
        CHECK_STR(e.msg, want);
        ses_safetensors_free(s);
    }
}

static unsigned char *copy_of(const char *file, size_t *n)
{
    char path[128];
    snprintf(path, sizeof path, FIXTURES "%s.h5", file);
    return (unsigned char *)ses_file_read(path, 1 << 20, n, NULL);
}

/* Every prefix fails; so does every file whose superblock claims less, unless nothing was lost. */
static void test_truncated(void)
{
    size_t n;
    unsigned char *all = copy_of("good", &n);
    if (!CHECK(all)) return;
    for (size_t len = 0; len < n; len += len < 200 ? 1 : 37) {
        ses_err e = { 0 };
        unsigned char *exact = malloc(len ? len : 1);
        memcpy(exact, all, len);
        ses_safetensors *s = open_bytes(exact, len, &e);
        CHECK_MSG(!s && e.code == SES_EFORMAT, "%zu bytes: %s", len, e.msg);
        if (len >= 96) {
            for (int i = 0; i < 8; i++) exact[40 + i] = (unsigned char)((uint64_t)len >> (8 * i));
            ses_safetensors_free(open_bytes(exact, len, NULL));
        }
        free(exact);
    }
    ses_free(all);
}

/* Every byte of a file set to 0, 1 and 255: an error or valid tensors. */
static void test_damaged(void)
{
    static const unsigned char values[] = { 0, 1, 255 };
    size_t n;
    unsigned char *all = copy_of("good", &n);
    if (!CHECK(all)) return;
    for (size_t i = 0; i < n; i++)
        for (size_t v = 0; v < SES_LEN(values); v++) {
            ses_err e = { 0 };
            unsigned char old = all[i];
            all[i] = values[v];
            ses_safetensors *s = open_bytes(all, n, &e);
            if ((s != NULL) != (e.code == SES_OK)) CHECK_MSG(false, "byte %zu", i);
            for (size_t k = 0; k < ses_safetensors_count(s); k++) {
                const ses_tensor_entry *t = ses_safetensors_at(s, k);
                const unsigned char *p = t->data;
                if (p < all || t->bytes > n || (size_t)(p - all) > n - t->bytes)
                    CHECK_MSG(false, "byte %zu", i);
            }
            ses_safetensors_free(s);
            all[i] = old;
        }
    CHECK(true);
    ses_free(all);
}

/* The entry of the group CNN points to the root group; then a dataset to its own group's header. */
static void test_cycle(void)
{
    size_t n, found = 0;
    ses_err e = { 0 };
    unsigned char *all = copy_of("good", &n);
    if (!CHECK(all)) return;
    uint64_t root = ses_le64(all + 24 + 5 * 8);
    for (size_t i = 0; i + 8 <= n; i++) { /* symbol tables: entries of 40 bytes */
        if (memcmp(all + i, "SNOD", 4)) continue;
        for (int k = 0; k < 8; k++) all[i + 8 + 8 + (size_t)k] = (unsigned char)(root >> (8 * k));
        found++;
    }
    CHECK(found > 1);
    CHECK(!open_bytes(all, n, &e) && e.code == SES_EFORMAT);
    CHECK_MSG(strstr(e.msg, "\": the group contains itself"), "%s", e.msg);
    ses_free(all);
}

int main(void)
{
    test_good();
    test_refused();
    test_truncated();
    test_damaged();
    test_cycle();
    return check_report();
}
