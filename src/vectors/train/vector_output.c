/* Writers of word vectors: word2vec's text and binary formats, fastText's .bin. */
#include "vector_output.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"

#include <inttypes.h>

enum {
    FT_MAGIC = 793712314,
    FT_VERSION = 12,
    FT_HS = 1,
    FT_NS = 2,
    FT_CBOW = 1,
    FT_SKIPGRAM = 2,
    FT_RATE = 100
};

typedef struct output {
    const ses_vector_file *f;
    ses_file_writer *w;
    ses_buf buf;
    float *row; /* [dim] */
} output;

static bool flush(output *o, ses_err *e)
{
    bool ok = ses_buf_ok(&o->buf, e) && ses_file_writer_put(o->w, o->buf.data, o->buf.len, e);
    o->buf.len = 0;
    return ok;
}

/* ---- word2vec ---- */

static bool write_words(output *o, ses_err *e)
{
    const ses_vector_file *f = o->f;
    ses_buf_appendf(&o->buf, "%zu %" PRId64 "\n", f->vocab->n, f->dim);
    for (size_t i = 0; i < f->vocab->n; i++) {
        f->words.row(f->words.ctx, (int64_t)i, o->row);
        ses_buf_append(&o->buf, f->vocab->word[i].text, f->vocab->word[i].len);
        if (f->format == SES_VECTORS_BINARY) {
            ses_buf_put(&o->buf, ' ');
            ses_buf_append(&o->buf, o->row, (size_t)f->dim * sizeof *o->row);
        }
        for (int64_t c = 0; f->format == SES_VECTORS_TEXT && c < f->dim; c++) {
            char number[SES_NUMBER_CHARS];
            size_t n = ses_format_float(o->row[c], number);
            ses_buf_put(&o->buf, ' ');
            ses_buf_append(&o->buf, number, n);
        }
        ses_buf_put(&o->buf, '\n');
        if (!flush(o, e)) return false;
    }
    return true;
}

/* ---- fastText ---- */

static void put(ses_buf *b, int64_t x, size_t size) { ses_buf_append(b, &x, size); } /* little-endian */

static void put_header(output *o)
{
    const ses_fasttext_header *s = o->f->ft;
    const ses_word_vocab *v = o->f->vocab;
    int64_t words = (int64_t)v->n;
    const int64_t argument[] = { FT_MAGIC,
                                 FT_VERSION,
                                 o->f->dim,
                                 s->window,
                                 s->epochs,
                                 s->min_count,
                                 s->negative,
                                 1,
                                 s->hs ? FT_HS : FT_NS,
                                 s->cbow ? FT_CBOW : FT_SKIPGRAM,
                                 s->bucket,
                                 s->minn,
                                 s->maxn,
                                 FT_RATE };
    for (size_t i = 0; i < SES_LEN(argument); i++) put(&o->buf, argument[i], 4);
    ses_buf_append(&o->buf, &s->sample, sizeof s->sample);
    put(&o->buf, words, 4); /* entries, words, labels */
    put(&o->buf, words, 4);
    put(&o->buf, 0, 4);
    put(&o->buf, v->tokens, 8);
    put(&o->buf, -1, 8); /* not pruned */
    for (size_t i = 0; i < v->n; i++) {
        ses_buf_append(&o->buf, v->word[i].text, v->word[i].len + 1);
        put(&o->buf, v->word[i].count, 8);
        put(&o->buf, 0, 1); /* a word */
    }
}

static bool write_matrix(output *o, const ses_vector_matrix *m, ses_err *e)
{
    put(&o->buf, 0, 1); /* not quantized */
    put(&o->buf, m->rows, 8);
    put(&o->buf, o->f->dim, 8);
    for (int64_t i = 0; i < m->rows; i++) {
        m->row(m->ctx, i, o->row);
        ses_buf_append(&o->buf, o->row, (size_t)o->f->dim * sizeof *o->row);
        if (!flush(o, e)) return false;
    }
    return flush(o, e);
}

static bool write_fasttext(output *o, ses_err *e)
{
    put_header(o);
    return write_matrix(o, &o->f->ft->in, e) && write_matrix(o, &o->f->ft->out, e);
}

bool ses_vector_file_write(const ses_vector_file *f, ses_err *e)
{
    output o = { .f = f, .w = ses_file_writer_open(f->path, f->overwrite, e) };
    bool ok = o.w && (o.row = ses_alloc_array((size_t)f->dim, sizeof *o.row, e)) &&
              (f->format == SES_VECTORS_FASTTEXT ? write_fasttext(&o, e) : write_words(&o, e)) &&
              ses_file_writer_commit(o.w, e);
    ses_file_writer_free(o.w);
    ses_buf_free(&o.buf);
    ses_free(o.row);
    return ok;
}
