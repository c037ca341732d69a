/* transformer: the last hidden state of a frozen encoder at the first token of each word. Words beyond the
 * encoder's longest text get zeros. */
#include "word_stack.h"

#include "base/alloc.h"
#include "frozen_model.h"

static void *open(const char *path, ses_device *dev, int64_t *width, ses_err *e)
{
    ses_frozen_model *x = ses_frozen_open(path, dev, e);
    if (x) *width = x->width;
    return x;
}

static bool embed(void *self, const ses_string *word, size_t n, float *out, int64_t stride, ses_err *e)
{
    ses_frozen_model *x = self;
    ses_input in = { .words = word, .n_words = n };
    ses_encode_options o = { .truncation = SES_TRUNCATE_ONLY_FIRST,
                             .max_length = ses_model_max_tokens(x->model) };
    if (!ses_encode(x->tokens, &in, &o, e)) return false;
    const ses_encoding *k = ses_encode_ctx_result(x->tokens);
    ses_real *y = k->n ? ses_frozen_states(x, k->id, k->type_id, k->n, e) : NULL;
    int32_t before = -1;
    for (size_t i = 0; y && i < k->n; i++) {
        int32_t at = k->special_mask[i] ? -1 : k->word_id[i];
        if (at < 0 || at == before) continue;
        for (int64_t j = 0; j < x->width; j++) out[at * stride + j] = (float)y[(int64_t)i * x->width + j];
        before = at;
    }
    bool ok = y || !k->n;
    ses_free(y);
    return ok;
}

const ses_word_embedder_kind ses_word_embedder_transformer = {
    .name = "transformer",
    .value = "DIR",
    .open = open,
    .close = ses_frozen_close,
    .embed = embed,
    .save = ses_frozen_save,
};
