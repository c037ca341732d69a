/* Decodes ids to text. */
#include "base/alloc.h"
#include "tokenizer_impl.h"

/* Concatenate k->strings into k->text, separated by `between`. */
static bool join(ses_encode_ctx *k, const char *between, ses_err *e)
{
    for (size_t i = 0; i < k->strings.n; i++) {
        if (i) ses_buf_puts(&k->text, between);
        ses_buf_append(&k->text, k->strings.string[i].p, k->strings.string[i].n);
    }
    return ses_buf_ok(&k->text, e);
}

/* Run the decoder over k->strings, then join the strings. */
static bool run_decoder(ses_encode_ctx *k, const char **text, size_t *len, ses_err *e)
{
    const ses_tokenizer *t = k->t;
    const ses_stage_list *steps = &t->steps[SES_DECODER];
    for (size_t i = 0; i < steps->n; i++)
        if (!steps->step[i].stage->decode(steps->step[i].self, &k->strings, e)) return false;
    if (!ses_buf_reserve(&k->text, 1) || !join(k, t->stage[SES_DECODER].stage ? "" : " ", e))
        return ses_buf_ok(&k->text, e);
    *text = k->text.data;
    *len = k->text.len;
    return true;
}

static void reset_decoder(ses_encode_ctx *k)
{
    k->strings.n = k->text.len = 0;
    ses_arena_reset(&k->strings.mem);
}

/* Compares strings: some models have the string of a special token under a second id too. */
static bool is_special(const ses_tokenizer *t, const char *s, size_t n)
{
    const ses_added_token *a = ses_added_by_name(&t->added, s, n);
    return a && a->special;
}

bool ses_tokenizer_is_special(const ses_tokenizer *t, int32_t id)
{
    size_t n = 0;
    const char *s = ses_tokenizer_id_to_token(t, id, &n);
    return s && is_special(t, s, n);
}

bool ses_decode(ses_encode_ctx *k, const int32_t *id, size_t n, bool keep_special, const char **text,
                size_t *len, ses_err *e)
{
    const ses_tokenizer *t = k->t;
    reset_decoder(k);
    for (size_t i = 0; i < n; i++) {
        size_t bytes = 0;
        const char *s = ses_tokenizer_id_to_token(t, id[i], &bytes);
        if (!s)
            return ses_fail(e, SES_EARG, "id %d at index %zu is not in the vocabulary of size %lld", id[i], i,
                            (long long)t->vocab_size);
        if (!keep_special && is_special(t, s, bytes)) continue;
        if (!ses_strings_put(&k->strings, s, bytes, e)) return false;
    }
    return run_decoder(k, text, len, e);
}

bool ses_decode_strings(ses_encode_ctx *k, const ses_string *token, size_t n, const char **text, size_t *len,
                        ses_err *e)
{
    reset_decoder(k);
    for (size_t i = 0; i < n; i++)
        if (!ses_strings_put(&k->strings, token[i].p, token[i].n, e)) return false;
    return run_decoder(k, text, len, e);
}
