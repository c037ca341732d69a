/* The characters of a vocabulary, for models that read characters. */
#include "base/alloc.h"
#include "base/elmo/word_chars.h"
#include "model/model_desc.h"
#include "model_presets.h"
#include "tensor/device_impl.h"

/* Tokens that begin and end a text are one character each; -1: others. */
static int16_t only_char(const ses_special_tokens *x, int32_t id)
{
    bool begins = x->before.n && x->before.id[0] == id, ends = x->after.n && x->after.id[0] == id;
    return begins ? SES_CHAR_BOS : ends ? SES_CHAR_EOS : -1;
}

bool ses_model_set_words(ses_model *m, const ses_tokenizer *t, int64_t *shortened, ses_err *e)
{
    int64_t per_word = m->c.chars.per_word;
    *shortened = 0;
    const ses_param *p = per_word ? ses_store_find(m->store, "chars.words") : NULL;
    if (!p) return true;
    size_t max = (size_t)ses_word_max_bytes(per_word);
    ses_special_tokens *special = ses_special_tokens_new(t, m->c.vocab, e);
    int16_t *chars = special ? ses_alloc_array((size_t)per_word, sizeof *chars, e) : NULL;
    ses_real *row = chars ? ses_alloc_array((size_t)per_word, sizeof *row, e) : NULL;
    for (int32_t id = 0; row && id < m->c.vocab; id++) {
        size_t n = 0;
        const char *word = ses_tokenizer_id_to_token(t, id, &n);
        int16_t only = only_char(special, id);
        if (only >= 0)
            ses_word_one_char(chars, per_word, only);
        else
            ses_word_chars(chars, per_word, word ? word : "", n), *shortened += n > max;
        for (int64_t i = 0; i < per_word; i++) row[i] = (ses_real)ses_char_to_number(chars[i]);
        m->dev->mem->upload(m->dev, ses_master_data(p->tensor) + id * per_word, row,
                            (size_t)per_word * sizeof *row);
    }
    bool ok = row && ses_model_loaded(m, false, e);
    ses_free(row);
    ses_free(chars);
    ses_special_tokens_free(special);
    return ok;
}
