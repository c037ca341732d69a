/* Adds special tokens to a tokenizer: its tokenizer.json with more added tokens is opened again. */
#include "tokenizer_extend.h"

#include "base/json/json_helpers.h"
#include "tokenizer_impl.h"

#include <string.h>

static void put_token(ses_json_writer *w, int64_t id, const char *token)
{
    static const char *const off[] = { "single_word", "lstrip", "rstrip", "normalized" };
    ses_json_begin_object(w);
    ses_json_member_int(w, "id", id);
    ses_json_member_string(w, "content", token);
    for (size_t i = 0; i < SES_LEN(off); i++) ses_json_member_bool(w, off[i], false);
    ses_json_member_bool(w, "special", true);
    ses_json_end_object(w);
}

static void put_added(const ses_tokenizer *t, const ses_json *now, const char *const *token, size_t n,
                      ses_json_writer *w)
{
    int64_t id = ses_tokenizer_vocab_size(t);
    ses_json_begin_array(w);
    for (size_t i = 0; i < ses_json_len(now); i++) ses_json_put_value(w, ses_json_at(now, i));
    for (size_t i = 0; i < n; i++)
        if (ses_tokenizer_token_to_id(t, token[i], strlen(token[i])) < 0) put_token(w, id++, token[i]);
    ses_json_end_array(w);
}

static ses_json_doc *to_json(const ses_tokenizer *t, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (w) ses_tokenizer_put(t, w);
    return w ? ses_json_writer_parse(w, e) : NULL;
}

ses_tokenizer *ses_tokenizer_extend(const ses_tokenizer *t, const char *const *token, size_t n, ses_err *e)
{
    ses_json_doc *doc = to_json(t, e);
    ses_json_writer *w = doc ? ses_json_writer_new(0, e) : NULL;
    const ses_json *root = doc ? ses_json_root(doc) : NULL;
    if (w) ses_json_begin_object(w);
    for (size_t i = 0; w && i < ses_json_len(root); i++) {
        const char *key = ses_json_key(root, i, NULL);
        ses_json_put_key(w, key);
        if (!strcmp(key, "added_tokens"))
            put_added(t, ses_json_at(root, i), token, n, w);
        else
            ses_json_put_value(w, ses_json_at(root, i));
    }
    if (w) ses_json_end_object(w);
    size_t len;
    const char *text = w ? ses_json_writer_text(w, &len, e) : NULL;
    ses_tokenizer *out = text ? ses_tokenizer_from_json(text, len, e) : NULL;
    ses_json_writer_free(w);
    ses_json_free(doc);
    return out;
}
