/* GloVe text: rows without a header, one blank before each number. */
#include "text_rows.h"

enum { LOOK = 4096 };

/* The last format tried: any file whose first line is text. */
static bool detect(const ses_vectors *v)
{
    size_t n = v->n < LOOK ? v->n : LOOK;
    if (v->is_folder) return false;
    for (size_t i = 0; i < n && v->p[i] != '\n'; i++)
        if ((unsigned char)v->p[i] < ' ' && v->p[i] != '\t' && v->p[i] != '\r') return false;
    return true;
}

static bool open(ses_vectors *v, ses_err *e) { return ses_text_rows_open(v, NULL, e); }

static void put_row(ses_buf *out, const ses_vector_line *l)
{
    ses_text_row_put(out, l, SES_TEXT_SIX_DECIMALS, true);
}

const ses_word_format ses_word_format_glove = {
    .name = "glove",
    .title = "GloVe text",
    .detect = detect,
    .open = open,
    .next = ses_text_rows_next,
    .get = ses_text_rows_get,
    .put_row = put_row,
    .refuses = ses_text_rows_refuses,
};
