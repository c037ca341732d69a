/* word2vec binary: a header line, then for each word its bytes, a blank, and its numbers as f32. word2vec.c
 * ends each row with a line feed, gensim does not. Rows have no fixed size, so the index is built by skipping
 * from word to word. */
#include "base/alloc.h"
#include "text_rows.h"

#include <inttypes.h>
#include <string.h>

static bool detect(const ses_vectors *v)
{
    ses_vector_header h;
    return !v->is_folder && ses_vector_header_read(v, &h) && h.size < v->n && !ses_vector_row_is_text(v, &h);
}

static bool open(ses_vectors *v, ses_err *e)
{
    ses_vector_header h;
    size_t need;
    ses_vector_header_read(v, &h); /* detect has found it */
    v->at = h.size, v->dim = h.dim, v->stated = h.count;
    if (!ses_vector_dim_check(h.dim, e)) return false;
    bool fits = ses_mul_size((size_t)h.count, 4 * (size_t)h.dim + 2, &need) && need <= v->n - h.size;
    return fits || ses_fail(e, SES_EFORMAT,
                            "the header gives %" PRId64 " words of %" PRId64
                            " numbers, which do not fit into %zu bytes: the file is truncated",
                            h.count, h.dim, v->n);
}

static bool next(ses_vectors *v, ses_vector_row *row, ses_err *e)
{
    size_t bytes = 4 * (size_t)v->dim;
    while (v->at < v->n && v->p[v->at] == '\n') v->at++;
    size_t left = v->n - v->at, look = left < SES_VECTORS_MAX_WORD + 1 ? left : SES_VECTORS_MAX_WORD + 1;
    if (v->read == v->stated) {
        if (!left) return true;
        ses_fail(e, SES_EFORMAT, "the header gives %" PRId64 " words, %zu bytes follow them", v->stated,
                 left);
        return ses_wrap(e, "byte %zu", v->at);
    }
    const char *word = v->p + v->at, *end = look ? memchr(word, ' ', look) : NULL;
    if (!end && look < left)
        ses_fail(e, SES_EFORMAT, "a word of more than %d bytes: the file is damaged", SES_VECTORS_MAX_WORD);
    else if (!end || left - (size_t)(end + 1 - word) < bytes)
        ses_fail(e, SES_EFORMAT, "the file is truncated: the header gives %" PRId64 " words", v->stated);
    else if (ses_vector_word_check(word, (size_t)(end - word), e)) {
        *row = (ses_vector_row){ word, end + 1, (uint32_t)(end - word) };
        v->at += (size_t)(end + 1 - word) + bytes;
        return true;
    }
    return ses_wrap(e, "byte %zu, row %" PRId64, v->at, v->read + 1);
}

static void put_row(ses_buf *out, const ses_vector_line *l)
{
    ses_buf_append(out, l->word.p, l->word.n);
    ses_buf_put(out, ' ');
    ses_buf_append(out, l->x, (size_t)l->dim * sizeof *l->x);
    ses_buf_put(out, '\n');
}

const ses_word_format ses_word_format_word2vec_binary = {
    .name = "word2vec-binary",
    .title = "word2vec binary",
    .detect = detect,
    .open = open,
    .next = next,
    .put_head = ses_vector_header_put,
    .put_row = put_row,
    .refuses = ses_text_rows_refuses,
};
