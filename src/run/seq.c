#include "seq.h"

#include "base/alloc.h"
#include "model/model_desc.h"

#include <string.h>

/* Words outside the vocabulary; id [n] gets their ids. */
static bool add_words(ses_batch_builder *b, const ses_config *c, const ses_seq *q, int32_t *id, ses_err *e)
{
    for (size_t i = 0; q->extra_word && i < q->n; i++)
        if (q->extra_word[i] >= 0) id[i] = (int32_t)(c->vocab + b->n_extra_words + q->extra_word[i]);
    return ses_batch_builder_add_words(b, q->extra_word_chars, q->n_extra_words, c->chars.per_word, e);
}

bool ses_batch_builder_add_seq(ses_batch_builder *b, const ses_model *m, const ses_seq *q, bool segments,
                               ses_err *e)
{
    const ses_config *c = m->stack[0].c;
    int64_t n = (int64_t)q->n;
    size_t at = b->ids.n;
    for (size_t i = 0; i < q->n_rows; i++)
        if (!ses_ints_push(&b->rows, (int32_t)at + q->rows[i], e)) return false;
    if (!ses_batch_builder_add(b, q->id, segments ? q->type_id : NULL, n, e)) return false;
    if (m->stack[1].layer && !m->c.decoder.input_from_source && !ses_batch_builder_shift(b, m, q->id, n, e))
        return false;
    if (q->answer_mask && (!ses_ints_append(&b->answer_mask, q->answer_mask, n, e) ||
                           !ses_ints_push(&b->choice_positions, q->cls, e)))
        return false;
    if (q->modal_rows && (!ses_ints_append(&b->positions, q->positions, n, e) ||
                          !ses_batch_builder_add_vectors(b, q->modal_rows, n, q->modal_vectors, q->n_modal,
                                                         c->embed.modal_width, e)))
        return false;
    return (!c->chars.per_word || add_words(b, c, q, b->ids.p + at, e)) &&
           (!q->char_cu || ses_batch_builder_add_chars(b, q->chars, q->char_cu, n, e));
}
