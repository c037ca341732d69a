/* Files of skip-gram and CBOW: vectors of words, or a fastText model with the n-grams. */
#include "word2vec.h"

#include "base/alloc.h"
#include "vectors/fasttext/fasttext_model.h"
#include "vectors/vector_table.h"

#include <string.h>

/* The vector of a word as fastText computes it: the mean of its rows. */
static void word_row(const void *ctx, int64_t i, float *out)
{
    const ses_w2v *w = ctx;
    size_t dim = (size_t)w->dim, stride = (size_t)w->stride;
    if (!w->sub.start) {
        memcpy(out, w->weight + (size_t)i * stride, dim * sizeof *out);
        return;
    }
    size_t from = w->sub.start[i], to = w->sub.start[i + 1];
    float share = (float)(1.0 / (double)(to - from));
    memset(out, 0, dim * sizeof *out);
    for (size_t k = from; k < to; k++)
        for (size_t c = 0; c < dim; c++) out[c] += w->weight[(size_t)w->sub.row[k] * stride + c];
    for (size_t c = 0; c < dim; c++) out[c] *= share;
}

/* Moves the rows together, without the padding. */
static void pack(ses_w2v *w)
{
    for (int64_t i = 1; i < w->in_rows + w->out_rows; i++)
        memmove(w->weight + i * w->dim, w->weight + i * w->stride, (size_t)w->dim * sizeof *w->weight);
    memset(w->weight + (w->in_rows + w->out_rows) * w->dim, 0, (size_t)w->dim * sizeof *w->weight);
    w->stride = w->dim;
}

/* The matrices refer to the packed weights. fastText has as many outputs as words: a tree has one node less,
 * and the row of zeros after the last is the missing one. */
static bool write_model(ses_w2v *w, ses_err *e)
{
    const double *value = w->job->value;
    const ses_word_vocab *v = &w->corpus.vocab;
    bool subwords = w->sub.start != NULL;
    ses_fasttext_model m = { .n_pruned = -1 };
    m.set = (ses_fasttext_settings){ .dim = (int32_t)w->dim,
                                     .ws = w->window,
                                     .epoch = w->epochs,
                                     .min_count = (int32_t)value[SES_W2V_MIN_COUNT],
                                     .neg = w->negative,
                                     .word_ngrams = 1,
                                     .loss = w->hs ? SES_FASTTEXT_HIERARCHICAL : SES_FASTTEXT_NEGATIVE,
                                     .model = w->cbow ? SES_FASTTEXT_CBOW : SES_FASTTEXT_SKIPGRAM,
                                     .bucket = subwords ? (int32_t)value[SES_W2V_BUCKET] : 0,
                                     .minn = subwords ? (int32_t)value[SES_W2V_MINN] : 0,
                                     .maxn = (int32_t)value[SES_W2V_MAXN],
                                     .lr_update_rate = 100,
                                     .t = value[SES_W2V_SAMPLE] };
    m.d.word = ses_alloc_array(v->n, sizeof *m.d.word, e);
    if (!m.d.word) return false;
    m.d.n = m.d.n_words = v->n;
    m.d.tokens = v->tokens;
    for (size_t i = 0; i < v->n; i++)
        m.d.word[i] =
            (ses_fasttext_word){ .text = v->word[i].text, .len = v->word[i].len, .count = v->word[i].count };
    pack(w);
    m.in.rows = w->in_rows, m.out.rows = (int64_t)v->n, m.in.columns = m.out.columns = w->dim;
    m.in.file = (const unsigned char *)w->weight;
    m.out.file = (const unsigned char *)(w->weight + w->in_rows * w->dim);
    bool ok = ses_fasttext_save(&m, w->job->output, w->job->overwrite, e);
    ses_fasttext_clear(&m);
    return ok;
}

bool ses_w2v_write(ses_w2v *w, ses_err *e)
{
    const char *format = w->job->format ? w->job->format : "word2vec";
    ses_vector_table t = { .vocab = &w->corpus.vocab, .dim = w->dim, .row = word_row, .ctx = w };
    if (!strcmp(format, "fasttext")) return write_model(w, e);
    return ses_vector_table_save(&t, format, w->job->output, w->job->overwrite, e);
}
