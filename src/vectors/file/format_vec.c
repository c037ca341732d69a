/* fastText .vec: word2vec text with nine significant digits. Only the name of a file tells the two apart. */
#include "text_rows.h"

#include "io/input_stream.h"

static bool detect(const ses_vectors *v)
{
    return ses_input_stream_has_suffix(v->path, ".vec") && ses_text_rows_detect(v);
}

static void put_row(ses_buf *out, const ses_vector_line *l)
{
    ses_text_row_put(out, l, SES_TEXT_NINE_DIGITS, false);
}

const ses_word_format ses_word_format_vec = {
    .name = "vec",
    .title = "fastText .vec",
    .detect = detect,
    .open = ses_text_rows_open_header,
    .next = ses_text_rows_next,
    .get = ses_text_rows_get,
    .put_head = ses_vector_header_put,
    .put_row = put_row,
    .refuses = ses_text_rows_refuses,
};
