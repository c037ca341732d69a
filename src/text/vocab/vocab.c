/* Vocabularies: a hash table from tokens to ids, and token strings by id. */
#include "vocab.h"

#include "base/str.h"

#include <string.h>

static size_t slots_for(size_t n)
{
    size_t slots = 16;
    while (slots < 2 * n) slots *= 2;
    return slots;
}

bool ses_vocab_reserve(ses_vocab *v, size_t size, size_t bytes, ses_arena *mem, ses_err *e)
{
    *v = (ses_vocab){ .size = (int32_t)size, .key = ses_hash_key_new() };
    if (size > INT32_MAX / 4 || bytes > UINT32_MAX)
        return ses_fail(e, SES_EARG, "a vocabulary of %zu ids and %zu bytes is too large", size, bytes);
    v->mask = slots_for(size) - 1;
    v->byte = ses_arena_array(mem, bytes, 1, e);
    v->start = ses_arena_array(mem, size, sizeof *v->start, e);
    v->len = ses_arena_array(mem, size, sizeof *v->len, e);
    v->slot = ses_arena_array(mem, v->mask + 1, sizeof *v->slot, e);
    if (!v->byte || !v->start || !v->len || !v->slot) return false;
    memset(v->len, 0xff, size * sizeof *v->len);
    return true;
}

/* The slot of a token, or the free slot for it. */
static size_t find(const ses_vocab *v, const char *token, size_t n, uint64_t hash)
{
    uint64_t tag = hash & ~(uint64_t)UINT32_MAX;
    for (size_t i = hash & v->mask;; i = (i + 1) & v->mask) {
        uint64_t s = v->slot[i];
        if (!s) return i;
        if ((s & ~(uint64_t)UINT32_MAX) != tag) continue;
        uint32_t id = (uint32_t)s - 1;
        if (v->len[id] == n && !memcmp(v->byte + v->start[id], token, n)) return i;
    }
}

bool ses_vocab_add(ses_vocab *v, int32_t id, const char *token, size_t n, int32_t *other)
{
    uint64_t hash = ses_hash(v->key, token, n);
    size_t i = find(v, token, n, hash);
    if (v->slot[i]) {
        *other = (int32_t)((uint32_t)v->slot[i] - 1);
        return false;
    }
    v->slot[i] = (hash & ~(uint64_t)UINT32_MAX) | ((uint32_t)id + 1);
    v->start[id] = v->filled;
    v->len[id] = (uint32_t)n;
    if (n) memcpy(v->byte + v->filled, token, n);
    v->filled += (uint32_t)n;
    v->count++;
    return true;
}

/* Ids far above the number of tokens indicate an error and would waste memory. */
static int64_t id_limit(size_t count) { return 8 * (int64_t)count + 65536; }

static bool measure(const ses_json *object, int64_t *size, size_t *bytes, ses_err *e)
{
    size_t count = ses_json_len(object);
    *size = 0, *bytes = 0;
    for (size_t i = 0; i < count; i++) {
        size_t n;
        const char *token = ses_json_key(object, i, &n);
        int64_t id;
        if (!ses_json_int(ses_json_at(object, i), &id) || id < 0)
            return ses_fail(e, SES_EFORMAT, "\"%s\": an id must be a non-negative integer",
                            ses_quoted_of(token, n).s);
        if (id >= id_limit(count))
            return ses_fail(e, SES_EFORMAT, "\"%s\": id %lld is too large for a vocabulary of %zu tokens",
                            ses_quoted_of(token, n).s, (long long)id, count);
        if (id >= *size) *size = id + 1;
        *bytes += n;
    }
    return true;
}

bool ses_vocab_open(ses_vocab *v, const ses_json *object, ses_arena *mem, ses_err *e)
{
    int64_t size;
    size_t bytes;
    if (ses_json_type_of(object) != SES_JSON_OBJECT)
        return ses_fail(e, SES_EFORMAT, "must be an object that maps tokens to ids");
    if (!measure(object, &size, &bytes, e) || !ses_vocab_reserve(v, (size_t)size, bytes, mem, e))
        return false;
    for (size_t i = 0; i < ses_json_len(object); i++) {
        size_t n;
        const char *token = ses_json_key(object, i, &n);
        int64_t id = 0;
        int32_t other; /* keys of a JSON object are distinct */
        ses_json_int(ses_json_at(object, i), &id);
        if (v->len[id] != SES_VOCAB_HOLE)
            return ses_fail(e, SES_EFORMAT, "\"%s\" and \"%s\" have the same id %lld",
                            ses_quoted_of(v->byte + v->start[id], v->len[id]).s, ses_quoted_of(token, n).s,
                            (long long)id);
        ses_vocab_add(v, (int32_t)id, token, n, &other);
    }
    return true;
}

void ses_vocab_save(const ses_vocab *v, ses_json_writer *w)
{
    ses_json_begin_object(w);
    for (int32_t id = 0; id < v->size; id++) {
        size_t n;
        const char *token = ses_vocab_token(v, id, &n);
        if (!token) continue;
        ses_json_put_keyn(w, token, n);
        ses_json_put_int(w, id);
    }
    ses_json_end_object(w);
}

int32_t ses_vocab_id(const ses_vocab *v, const char *token, size_t n)
{
    return (int32_t)((uint32_t)v->slot[find(v, token, n, ses_hash(v->key, token, n))] - 1);
}

const char *ses_vocab_token(const ses_vocab *v, int32_t id, size_t *n)
{
    if (id < 0 || id >= v->size || v->len[id] == SES_VOCAB_HOLE) return NULL;
    *n = v->len[id];
    return v->byte + v->start[id];
}

int64_t ses_vocab_model_size(const void *self) { return ((const ses_vocab *)self)->size; }

int64_t ses_vocab_model_count(const void *self) { return ((const ses_vocab *)self)->count; }

const char *ses_vocab_model_token(const void *self, int32_t id, size_t *n)
{
    return ses_vocab_token(self, id, n);
}

int32_t ses_vocab_model_id(const void *self, const char *token, size_t n)
{
    return ses_vocab_id(self, token, n);
}
