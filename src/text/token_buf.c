/* The token buffer of a workspace: growing, shrinking, and token strings that differ from the id's string. */
#include "base/alloc.h"
#include "tokenizer_impl.h"

bool ses_token_buf_reserve(ses_token_buf *r, size_t n, ses_err *e)
{
    if (n <= r->cap - r->n) return true;
    size_t cap;
    if (!ses_add_size(r->n, n, &cap) || cap > INT32_MAX)
        return ses_fail(e, SES_EARG, "more than 2^31 tokens");
    if (cap < 2 * r->cap) cap = 2 * r->cap;
    if (cap < 256) cap = 256;
    int32_t *id = ses_grow_array(r->id, r->n, cap, sizeof *id, e);
    if (!id) return false;
    r->id = id;
    int32_t *word = ses_grow_array(r->word_id, r->n, cap, sizeof *word, e);
    if (!word) return false;
    r->word_id = word;
    ses_offset *byte = ses_grow_array(r->byte_offset, r->n, cap, sizeof *byte, e);
    if (!byte) return false;
    r->byte_offset = byte;
    r->cap = cap;
    return true;
}

bool ses_token_override_put(ses_encode_ctx *k, const char *p, size_t n, bool added, ses_err *e)
{
    if (!ses_array_reserve(&k->override, &k->cap_overrides, k->n_overrides + 1, sizeof *k->override, e))
        return false;
    uint32_t at = (uint32_t)k->override_text.len;
    if (p && !ses_buf_append(&k->override_text, p, n)) return ses_buf_ok(&k->override_text, e);
    k->override[k->n_overrides++] =
        (ses_token_override){ k->tokens.n, at, p ? (uint32_t)n : SES_STRING_OF_ID, added };
    return true;
}

/* Overrides are usually spread evenly: start where index would be then, and double the distance until the
 * range contains it. Tokens visited in order thus cost a few steps each, not a search of the whole list. */
const ses_token_override *ses_token_override_find(const ses_encode_ctx *k, size_t index)
{
    const ses_token_override *list = k->override;
    size_t n = k->n_overrides, step = 1;
    if (!n || index < list[0].index || index > list[n - 1].index) return NULL;
    double share = (double)(index - list[0].index) / (double)(list[n - 1].index - list[0].index + 1);
    size_t low = (size_t)(share * (double)n), high = low;
    while (low && list[low].index > index) low -= low < step ? low : step, step *= 2;
    while (high < n && list[high].index < index) high += n - high < step ? n - high : step, step *= 2;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (k->override[mid].index < index)
            low = mid + 1;
        else
            high = mid;
    }
    return low < k->n_overrides && k->override[low].index == index ? &k->override[low] : NULL;
}

void ses_encode_ctx_rewind(ses_encode_ctx *k, size_t n, uint32_t words)
{
    k->tokens.n = n;
    k->tokens.n_words = words;
    while (k->n_overrides && k->override[k->n_overrides - 1].index >= n) k->n_overrides--;
}

void ses_encode_ctx_remove(ses_encode_ctx *k, size_t start, size_t count, uint32_t words)
{
    ses_token_buf *r = &k->tokens;
    for (size_t i = start; i + count < r->n; i++) {
        r->id[i] = r->id[i + count];
        r->byte_offset[i] = r->byte_offset[i + count];
        r->word_id[i] = r->word_id[i + count] - (int32_t)words;
    }
    r->n -= count;
    r->n_words -= words;
    size_t n = 0;
    for (size_t i = 0; i < k->n_overrides; i++) {
        ses_token_override m = k->override[i];
        if (m.index >= start && m.index < start + count) continue;
        if (m.index >= start) m.index -= count;
        k->override[n++] = m;
    }
    k->n_overrides = n;
}
