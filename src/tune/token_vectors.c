/* Copies word vectors into the token table of a model. */
#include "token_vectors.h"

#include "base/alloc.h"
#include "model/model_desc.h"
#include "tensor/device_impl.h"

bool ses_token_vectors_copy(ses_model *m, const ses_tokenizer *t, const ses_vectors *v, int64_t *copied,
                            ses_err *e)
{
    const ses_tensor *table = m->stack[0].token;
    int64_t width = ses_vectors_dim(v), rows = ses_tokenizer_vocab_size(t);
    if (!table)
        return ses_fail(e, SES_EUNSUPPORTED, "%s has no single table of token vectors", m->desc->name);
    if (ses_cols(table) != width)
        return ses_fail(e, SES_EARG, "vectors of %lld numbers, but the model's token vectors have %lld",
                        (long long)width, (long long)ses_cols(table));
    float *row = ses_alloc_array((size_t)width, sizeof *row, e);
    bool ok = row != NULL, found;
    *copied = 0;
    for (int64_t id = 0; ok && id < rows && id < ses_rows(table); id++) {
        size_t n = 0;
        const char *token = ses_tokenizer_id_to_token(t, (int32_t)id, &n);
        if (!token || !n) continue;
        ok = ses_vectors_lookup(v, token, n, row, &found, e);
        if (!ok || !found) continue;
        m->dev->mem->upload(m->dev, ses_master_data(table) + id * width, row, (size_t)width * sizeof *row);
        ++*copied;
    }
    ses_free(row);
    if (!ok) return false;
    ses_store_sync_bf16(m->store);
    return *copied || ses_fail(e, SES_EARG, "no token of the tokenizer is a word of the vectors");
}
