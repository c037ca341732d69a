/* word2vec text: a header, then rows with a blank after each number, as word2vec.c writes them. */
#include "text_rows.h"

static void put_row(ses_buf *out, const ses_vector_line *l)
{
    ses_text_row_put(out, l, SES_TEXT_SIX_DECIMALS, false);
}

const ses_word_format ses_word_format_word2vec = {
    .name = "word2vec",
    .title = "word2vec text",
    .detect = ses_text_rows_detect,
    .open = ses_text_rows_open_header,
    .next = ses_text_rows_next,
    .get = ses_text_rows_get,
    .put_head = ses_vector_header_put,
    .put_row = put_row,
    .refuses = ses_text_rows_refuses,
};
