/* Operands that are texts, standard input or files. */
#define _POSIX_C_SOURCE 200809L
#include "text_operands.h"

#include "base/file.h"
#include "io/input_stream.h"
#include "io/table_text.h"
#include "io/text_decoder.h"
#include "line_limit.h"

#include <string.h>

enum { CHUNK = 1 << 16 };

bool ses_operand_is_stdin(const char *operand) { return !strcmp(operand, "-"); }

void ses_hint_file_operand(const ses_call *c, const char *advice)
{
    for (int i = 0; i < c->n_operands && !c->quiet; i++) {
        const char *s = c->operands[i];
        if (ses_operand_is_stdin(s) || !*s || !ses_path_exists(s) || ses_path_is_dir(s)) continue;
        fputs("sesame: ", stderr);
        ses_put_escaped(stderr, s);
        fprintf(stderr, ": a file of this name exists, but arguments are texts; %s\n", advice);
        return;
    }
}

void ses_hint_table_lines(const ses_call *c, const char *path)
{
    if (c->quiet || !ses_is_table_file(path)) return;
    fputs("sesame: ", stderr);
    ses_put_escaped(stderr, path);
    fputs(": a table, but each line is read as a text, with all columns and the header; --column NAME reads "
          "one "
          "column\n",
          stderr);
}

bool ses_operands_require_files(const ses_call *c, int first, const char *advice, ses_err *e)
{
    for (int i = first; i < c->n_operands; i++)
        if (!ses_operand_is_stdin(c->operands[i]) && !ses_path_exists(c->operands[i]))
            return ses_fail(e, SES_EIO, "%s: No such file or directory; %s", c->operands[i], advice);
    return true;
}

bool ses_operands_check_stdin(const ses_call *c, ses_err *e)
{
    int n = 0;
    for (int i = 0; i < c->n_operands; i++) n += ses_operand_is_stdin(c->operands[i]);
    return n < 2 || ses_fail(e, SES_EUSAGE, "'-' (standard input) is given %d times", n);
}

bool ses_read_stdin(ses_buf *text, ses_text_encoding encoding, ses_err *e)
{
    ses_input_stream *in = ses_input_stream_open_text("-", encoding, e);
    size_t got = 1, start = text->len;
    bool ok = in != NULL;
    while (ok && got) {
        ses_buf_reserve(text, CHUNK);
        ok = ses_buf_ok(text, e) && ses_input_stream_read(in, text->data + text->len, CHUNK, &got, e);
        if (ok) text->len += got;
        if (ok && text->len - start > SES_MAX_LINE)
            ok = ses_fail(e, SES_EARG, "longer than %d MiB", SES_MAX_LINE >> 20);
    }
    ses_input_stream_free(in);
    ok = ok && (text->len == start || ses_text_check_lines(text->data + start, text->len - start, 1, e));
    return ok || ses_wrap(e, "standard input");
}
