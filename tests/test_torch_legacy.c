/* PyTorch's legacy format, before version 1.6: consecutive pickles, then the storages. */
#include "check.h"
#include "io/safetensors_impl.h"
#include "sesame/unstable/tensor.h"
#include "torch_fixture.h"

static bytes b; /* too large for a small stack */

/* Opens b from a block of its exact size. */
static ses_safetensors *open_exact(size_t n, unsigned char **exact, ses_err *e)
{
    *exact = malloc(n ? n : 1);
    if (!*exact) abort();
    memcpy(*exact, b.data, n);
    return ses_tensors_from_memory(ses_torch_add, *exact, n, "x", e);
}

static void check_good(void)
{
    ses_err e = { 0 };
    unsigned char *exact;
    float a[6], turned[6];
    make_old(&b, OLD_GOOD, OLD_KEYS);
    ses_safetensors *s = open_exact(b.n, &exact, &e);
    if (CHECK_MSG(s && ses_safetensors_count(s) == 3, "%s", e.msg)) {
        const float *x = torch_numbers();
        const ses_tensor_entry *i = ses_safetensors_find(s, "b");
        CHECK(ses_tensor_entry_to_f32(ses_safetensors_find(s, "a"), a, NULL) && !memcmp(a, x, sizeof a));
        CHECK(ses_tensor_entry_to_f32(ses_safetensors_find(s, "turned"), turned, NULL));
        for (int k = 0; k < 6; k++) CHECK(turned[k % 3 * 2 + k / 3] == x[k]);
        CHECK(i && i->dtype == SES_I64 && i->count == 4 && !memcmp(i->data, x + 6 + 4, 32));
        CHECK((const unsigned char *)i->data >= exact && (const unsigned char *)i->data < exact + b.n);
    }
    ses_safetensors_free(s);
    free(exact);
    CHECK(ses_is_torch_file(b.data, b.n) && !ses_is_torch_file(b.data, 14));
}

#define F SES_EFORMAT
#define U SES_EUNSUPPORTED

/* Words of the file without its storages. */
static const struct {
    const char *words;
    ses_code code;
    const char *want;
} bad[] = {
    { P_MAGIC, F, "pickle of the version, at byte 15: not a pickle of protocol 2 to 5" },
    { P_MAGIC P_HEAD "M xe8 x03 . " P_SYSTEM("x88") OLD_GOOD " " OLD_KEYS, U, "format version is not 1001" },
    { P_MAGIC P_VERSION P_SYSTEM("x89") OLD_GOOD " " OLD_KEYS, U, "byte order \"big\", expected \"little\"" },
    { P_MAGIC P_VERSION P_HEAD "] 'little_endian a . " P_HEAD "N . " OLD_KEYS, U,
      "contains None, expected a dict of tensors" }, /* not a dict, and half a pair */
    { P_MAGIC P_VERSION P_SYSTEM("x88") P_HEAD "@os:system N . " OLD_KEYS, U,
      "pickle of the dict, at byte 97: byte 2: GLOBAL: refused global os.system" },
    { P_MAGIC P_VERSION P_SYSTEM("x88") P_HEAD "] . " OLD_KEYS, U,
      "contains a list, expected a dict of tensors" },
    { P_MAGIC P_VERSION P_SYSTEM("x88") OLD_GOOD " " P_HEAD "] ( '0 e . ", F,
      "104 bytes follow the last storage" },
    { P_MAGIC P_VERSION P_SYSTEM("x88") OLD_GOOD " " P_HEAD "] ( '1 '0 e . ", F,
      "storage \"1\" has 6 elements, expected 12" },
    { P_MAGIC P_VERSION P_SYSTEM("x88") OLD_GOOD " " P_HEAD "] ( '0 '0 e . ", F,
      "storage \"0\" appears twice" },
    { P_MAGIC P_VERSION P_SYSTEM("x88") OLD_GOOD " " P_HEAD "] ( '0 '7 e . ", F,
      "storage \"7\" belongs to no tensor" },
    { P_MAGIC P_VERSION P_SYSTEM("x88") OLD_GOOD " " P_HEAD "] ( '0 N e . ", F,
      "a storage key is not a string" },
    { P_MAGIC P_VERSION P_SYSTEM("x88") P_STATE("'a " T_A) " " OLD_KEYS, F,
      "storage: a persistent id of 6 elements expected" },
    { P_MAGIC P_VERSION P_SYSTEM("x88") P_STATE("'a " P_TENSOR(
          "( 'storage @torch:FloatStorage '0 'cpu #6 ( '9 #0 #6 t t Q ", "#0 #6 x85 #1 x85")) " " OLD_KEYS,
      U, "storage \"0\" is a view of another storage" },
    { P_MAGIC P_VERSION P_SYSTEM("x88") P_STATE("'a " OLD_A "'b " OLD_B "'c " P_TENSOR(
          P_OLD_STORAGE("Long", "0", "6"), "#0 #6 x85 #1 x85")) " " OLD_KEYS,
      F, "tensor \"c\": storage \"0\" has 24 bytes, expected 6 elements of I64" },
    { P_MAGIC P_VERSION P_SYSTEM("x88") P_STATE("'a " P_TENSOR(
          P_OLD_STORAGE("Float", "0", "4611686018427387905"), "#0 #6 x85 #1 x85")) " " P_HEAD "] '0 a . ",
      F, "storage \"0\": truncated: 136 bytes left for 4611686018427387905 elements of F32" },
};

static void check_bad(void)
{
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        ses_err e = { 0 };
        unsigned char *exact;
        char want[256];
        b.n = 0;
        put_pickle(&b, bad[i].words);
        put_old_tail(&b, "");
        snprintf(want, sizeof want, "x: %s", bad[i].want);
        ses_safetensors *s = open_exact(b.n, &exact, &e);
        CHECK_STR(s ? "read" : e.msg, want);
        CHECK_MSG(e.code == bad[i].code, "%s: code %d", want, (int)e.code);
        ses_safetensors_free(s);
        free(exact);
    }
}

/* Truncated anywhere, it is refused; with one changed byte, it is refused or read within its bytes. */
static void check_damage(void)
{
    make_old(&b, OLD_GOOD, OLD_KEYS);
    for (size_t n = 0; n < b.n; n++) {
        unsigned char *exact;
        ses_safetensors *s = open_exact(n, &exact, NULL);
        CHECK_MSG(!s, "%zu bytes are read", n);
        ses_safetensors_free(s);
        free(exact);
    }
    for (size_t at = 0; at < b.n; at++)
        for (int bit = 0; bit < 8; bit++) {
            unsigned char *exact;
            ses_err e = { 0 };
            b.data[at] ^= (unsigned char)(1 << bit);
            ses_safetensors *s = open_exact(b.n, &exact, &e);
            float sum = 0, x[16];
            for (size_t i = 0; i < ses_safetensors_count(s); i++) {
                const ses_tensor_entry *t = ses_safetensors_at(s, i);
                if (t->count <= 16 && ses_tensor_entry_to_f32(t, x, NULL))
                    for (int64_t k = 0; k < t->count; k++) sum += x[k];
            }
            CHECK_MSG(s || e.code == F || e.code == U, "byte %zu, bit %d: %s, %g", at, bit, e.msg,
                      (double)sum);
            ses_safetensors_free(s);
            free(exact);
            b.data[at] ^= (unsigned char)(1 << bit);
        }
}

int main(void)
{
    check_good();
    check_bad();
    check_damage();
    return check_report();
}
