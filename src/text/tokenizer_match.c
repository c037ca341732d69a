/* Whether a tokenizer is that of a model: see tokenizer_match.h. */
#include "tokenizer_match.h"

#include "tokenizer_files.h"

bool ses_tokenizer_check_model(const ses_tokenizer *t, const char *path, const char *model, ses_err *e)
{
    if (!ses_dir_has_tokenizer(model)) return true;
    ses_tokenizer *own = ses_tokenizer_open(model, e);
    if (!own) return false;
    int64_t size = ses_tokenizer_vocab_size(own), all = 0, same = 0;
    for (int32_t id = 0; id < size; id++) {
        size_t n;
        const char *token = ses_tokenizer_id_to_token(own, id, &n);
        all += token != NULL;
        same += token && ses_tokenizer_token_to_id(t, token, n) == id;
    }
    ses_tokenizer_free(own);
    return 2 * same >= all || ses_fail(e, SES_EARG,
                                       "the tokenizer %s belongs to another model: %lld of the %lld tokens "
                                       "of %s have the same id; leave "
                                       "it out, or train new weights",
                                       path, (long long)same, (long long)all, model);
}
