/* model.safetensors.index.json with valid shards. */
#include "fuzz.h"
#include "io/safetensors_impl.h"

#define U8(offsets) "{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":" offsets "}"

static const struct {
    const char *file, *header;
    size_t data;
} shards[] = {
    { "m1", "{\"__metadata__\":{\"format\":\"pt\"},\"a\":" U8("[0,1]") ",\"b\":" U8("[1,2]") "}", 2 },
    { "m2", "{\"c\":" U8("[0,1]") "}", 1 },
    { "m3", "{\"b\":" U8("[0,1]") "}", 1 },
    { "m4", "{}", 0 },
    { "m5", "{\"__metadata__\":{},\"d\":" U8("[0,1]") "}", 1 },
    { "m6", "{\"__metadata__\":{\"x\":\"1\",\"y\":\"2\",\"z\":\"3\"},\"e\":" U8("[0,1]") "}", 1 },
};

typedef struct store {
    uint8_t bytes[SES_LEN(shards)][200];
} store;

static bool get(void *ctx, const char *file, const void **bytes, size_t *n, ses_err *e)
{
    store *s = ctx;
    MUST(file[0] && file[0] != '.' && !strchr(file, '/'));
    for (size_t i = 0; i < SES_LEN(shards); i++) {
        if (strcmp(shards[i].file, file) != 0) continue;
        size_t len = strlen(shards[i].header);
        memset(s->bytes[i], 0, sizeof s->bytes[i]);
        s->bytes[i][0] = (uint8_t)len;
        memcpy(s->bytes[i] + 8, shards[i].header, len);
        *bytes = s->bytes[i];
        *n = 8 + len + shards[i].data;
        return true;
    }
    return ses_fail(e, SES_EIO, "%s: not there", file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    store st;
    ses_err e = { 0 };
    ses_safetensors *s = ses_checkpoint_from_index((const char *)data, n, get, &st, &e);
    MUST(s || e.code == SES_EFORMAT || e.code == SES_EIO);
    MUST(!s || ses_safetensors_count(s) <= 4);
    for (size_t i = 0; i < ses_safetensors_count(s); i++)
        MUST(ses_safetensors_find(s, ses_safetensors_at(s, i)->name) == ses_safetensors_at(s, i));
    ses_safetensors_free(s);
    return 0;
}
