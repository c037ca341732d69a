/* tokenizer.json: a tokenizer that opens can encode and decode, and saving and opening it again gives the
 * same. */
#include "fuzz.h"
#include "sesame/tokenizer.h"

#include <unistd.h>

static const char text[] =
    "Hello, wor\xC3\xA9ld! [MASK] \xE4\xB8\xAD\xE6\x96\x87 a\xCC\x81 1234 <s> \t\x01\xFF don't  ";

static void check(const ses_tokenizer *t, const ses_encoding *x, size_t n)
{
    for (size_t i = 0; i < x->n; i++) {
        MUST(x->id[i] >= 0 && x->id[i] < ses_tokenizer_vocab_size(t));
        MUST(x->byte_offset[i].begin <= n && x->byte_offset[i].end <= n);
    }
}

static void encode(const ses_tokenizer *t)
{
    ses_err e = { 0 };
    const char *out;
    size_t len;
    ses_encode_ctx *k = ses_encode_ctx_new(t, &e);
    MUST(k);
    ses_input in = { .text = { text, sizeof text - 1 }, .pair = { "b a", 3 } };
    ses_encode_options o = {
        .truncation = SES_TRUNCATE_LONGEST_FIRST, .max_length = 9, .stride = 1, .use_stored_limits = true
    };
    if (ses_encode(k, &in, NULL, &e)) {
        check(t, ses_encode_ctx_result(k), sizeof text - 1);
        const ses_encoding *x = ses_encode_ctx_result(k);
        bool decoded = ses_decode(k, x->id, x->n, true, &out, &len, &e);
        if (!decoded) fprintf(stderr, "%s\n", e.msg);
        MUST(decoded);
    } else {
        MUST(e.msg[0]);
    }
    if (ses_encode(k, &in, &o, NULL))
        for (size_t i = 0; i < ses_encode_ctx_overflow_count(k) && i < 20; i++)
            MUST(ses_encode_ctx_overflow(k, i, NULL));
    ses_encode_ctx_free(k);
}

static char *saved(const ses_tokenizer *t, const char *path, size_t *n)
{
    MUST(ses_tokenizer_save(t, path, true, NULL));
    FILE *f = fopen(path, "rb");
    char *s = malloc(1 << 22);
    MUST(f && s);
    *n = fread(s, 1, 1 << 22, f);
    fclose(f);
    remove(path);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_tokenizer *t = ses_tokenizer_from_json((const char *)data, n, &e);
    MUST(!t == (e.code != SES_OK) && (t || e.msg[0]));
    if (!t) return 0;
    encode(t);
    char path[64];
    size_t a, b;
    snprintf(path, sizeof path, "%s/sesame-fuzz-%ld.json", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm",
             (long)getpid()); /* in memory if available, because writes are synced */
    char *first = saved(t, path, &a);
    ses_tokenizer *again = ses_tokenizer_from_json(first, a, &e);
    MUST(again);
    char *second = saved(again, path, &b);
    MUST(a == b && !memcmp(first, second, a));
    free(first);
    free(second);
    ses_tokenizer_free(again);
    ses_tokenizer_free(t);
    return 0;
}
