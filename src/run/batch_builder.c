#include "batch_builder.h"

#include "base/alloc.h"
#include "model/model_desc.h"
#include "nn/decoder_input.h"

#include <string.h>

/* Offsets of each array in the builder and in the batch. */
static const struct {
    size_t from, to;
} array[] = {
#define AT(name) { offsetof(ses_batch_builder, name), offsetof(ses_batch, name) },
    AT(ids) AT(segments) AT(positions) AT(prefix_len) AT(labels) AT(pair_labels) AT(starts) AT(ends)
        AT(choice_positions) AT(answer_mask) AT(slots) AT(modal_rows) AT(word_chars) AT(word_char_cu)
            AT(target_ids) AT(target_positions) AT(predict_positions) AT(cu_seqlens) AT(target_cu_seqlens)
#undef AT
};

static ses_ints *array_at(const ses_batch_builder *b, size_t i)
{
    return (ses_ints *)(void *)((char *)b + array[i].from);
}

void ses_batch_builder_clear(ses_batch_builder *b)
{
    for (size_t i = 0; i < SES_LEN(array); i++) array_at(b, i)->n = 0;
    b->rows.n = b->perm_mask.n = b->targets.n = b->modal_vectors.n = b->extra_word_chars.n = 0;
    b->choices = b->n_modal = b->n_extra_words = 0;
}

void ses_batch_builder_free(ses_batch_builder *b)
{
    for (size_t i = 0; i < SES_LEN(array); i++) ses_free(array_at(b, i)->p);
    ses_free(b->rows.p), ses_free(b->perm_mask.p), ses_free(b->targets.p);
    ses_free(b->modal_vectors.p), ses_free(b->extra_word_chars.p);
    *b = (ses_batch_builder){ 0 };
}

static const void *filled(const ses_growing *a) { return a->n ? a->p : NULL; }

ses_batch ses_batch_builder_batch(const ses_batch_builder *b)
{
    size_t ends = b->ids.n ? b->cu_seqlens.n : b->target_cu_seqlens.n;
    ses_batch out = { .seqs = ends ? (int64_t)ends - 1 : 0,
                      .tokens = (int64_t)b->ids.n,
                      .choices = b->choices,
                      .perm_mask = filled(&b->perm_mask),
                      .targets = filled(&b->targets),
                      .modal_vectors = filled(&b->modal_vectors),
                      .n_modal = b->n_modal,
                      .extra_word_chars = filled(&b->extra_word_chars),
                      .n_extra_words = b->n_extra_words };
    for (size_t i = 0; i < SES_LEN(array); i++)
        if (array_at(b, i)->n) memcpy((char *)&out + array[i].to, &array_at(b, i)->p, sizeof out.ids);
    if (!b->ids.n) out.cu_seqlens = NULL; /* the decoder alone reads */
    return out;
}

/* ---- sequences ---- */

/* Offsets begin with 0. */
static bool push_end(ses_ints *cu, size_t end, ses_err *e)
{
    return (cu->n || ses_ints_push(cu, 0, e)) && ses_ints_push(cu, (int32_t)end, e);
}

bool ses_batch_builder_end_sequence(ses_batch_builder *b, ses_err *e)
{
    return push_end(&b->cu_seqlens, b->ids.n, e);
}

bool ses_batch_builder_add(ses_batch_builder *b, const int32_t *ids, const int32_t *segments, int64_t n,
                           ses_err *e)
{
    return ses_ints_append(&b->ids, ids, n, e) &&
           (!segments || ses_ints_append(&b->segments, segments, n, e)) &&
           ses_batch_builder_end_sequence(b, e);
}

bool ses_batch_builder_add_encoding(ses_batch_builder *b, const ses_encoding *k, bool segments, ses_err *e)
{
    for (size_t i = 0; segments && i < k->n; i++)
        if (!ses_ints_push(&b->segments, k->type_id[i], e)) return false;
    return ses_batch_builder_add(b, k->id, NULL, (int64_t)k->n, e);
}

/* n more elements; NULL: no memory. */
static void *grow(ses_growing *a, size_t n, size_t size, ses_err *e)
{
    size_t want;
    if (!ses_add_size(a->n, n, &want)) return NULL;
    if (!ses_array_reserve(&a->p, &a->cap, want, size, e)) return NULL;
    void *at = (char *)a->p + a->n * size;
    a->n = want;
    return at;
}

uint8_t *ses_batch_builder_add_perm(ses_batch_builder *b, int64_t n, ses_err *e)
{
    uint8_t *at = grow(&b->perm_mask, (size_t)n, 1, e);
    if (at) memset(at, 0, (size_t)n);
    return at;
}

bool ses_batch_builder_add_values(ses_batch_builder *b, const ses_real *x, int64_t n, ses_err *e)
{
    ses_real *at = grow(&b->targets, (size_t)n, sizeof *at, e);
    if (at) memcpy(at, x, (size_t)n * sizeof *at);
    return at != NULL;
}

bool ses_batch_builder_add_vectors(ses_batch_builder *b, const int32_t *rows, int64_t n, const float *x,
                                   int64_t n_modal, int64_t width, ses_err *e)
{
    ses_real *at = grow(&b->modal_vectors, (size_t)(n_modal * width), sizeof *at, e);
    for (int64_t i = 0; at && i < n_modal * width; i++) at[i] = (ses_real)x[i];
    for (int64_t i = 0; at && i < n; i++)
        if (!ses_ints_push(&b->modal_rows,
                           rows && rows[i] < 0 ? -1 : (int32_t)(b->n_modal + (rows ? rows[i] : i)), e))
            return false;
    b->n_modal += n_modal;
    return at != NULL;
}

bool ses_batch_builder_add_words(ses_batch_builder *b, const int16_t *chars, int64_t n, int64_t per_word,
                                 ses_err *e)
{
    size_t count = (size_t)(n * per_word);
    int16_t *at = count ? grow(&b->extra_word_chars, count, sizeof *at, e) : NULL;
    if (at) memcpy(at, chars, count * sizeof *at);
    b->n_extra_words += n;
    return at || !count;
}

bool ses_batch_builder_add_chars(ses_batch_builder *b, const int32_t *chars, const int32_t *cu, int64_t n,
                                 ses_err *e)
{
    for (int64_t i = 1; i <= n; i++)
        if (!push_end(&b->word_char_cu, b->word_chars.n + (size_t)(cu[i] - cu[0]), e)) return false;
    return ses_ints_append(&b->word_chars, chars, cu[n] - cu[0], e);
}

/* ---- what the decoder reads ---- */

bool ses_batch_builder_end_target(ses_batch_builder *b, ses_err *e)
{
    const ses_ints *x = b->target_ids.n          ? &b->target_ids
                        : b->predict_positions.n ? &b->predict_positions
                                                 : &b->labels;
    return push_end(&b->target_cu_seqlens, x->n, e);
}

bool ses_batch_builder_start(ses_batch_builder *b, const ses_model *m, const int32_t *label, int64_t n,
                             ses_err *e)
{
    int32_t first;
    return ses_decoder_first(&m->c, label, (size_t)n, &first, e) && ses_ints_push(&b->target_ids, first, e) &&
           ses_ints_append(&b->target_ids, label, n, e) && ses_batch_builder_end_target(b, e);
}

bool ses_batch_builder_shift(ses_batch_builder *b, const ses_model *m, const int32_t *label, int64_t n,
                             ses_err *e)
{
    if (!ses_batch_builder_start(b, m, label, n, e)) return false;
    b->target_cu_seqlens.p[b->target_cu_seqlens.n - 1] = (int32_t)--b->target_ids.n;
    return true;
}

bool ses_batch_builder_idle(ses_batch_builder *b, const ses_model *m, ses_err *e)
{
    return ses_ints_push(&b->target_ids, ses_decoder_filler(&m->c), e) && ses_batch_builder_end_target(b, e);
}
