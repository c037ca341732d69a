/* Words of a text. */
#define _POSIX_C_SOURCE 200809L
#include "word_reader.h"

#include "base/alloc.h"
#include "base/unicode/lowercase.h"
#include "io/table_text.h"
#include "io/text_decoder.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A word of SES_WORDS_TEXT is split after it was found: text without blanks, as Chinese, comes in long
 * ones. */
enum { BUFFER = 1 << 18, MAX_UNSPLIT = 1 << 16 };

enum { PLAIN, BLANK, LINE_END, NUL_BYTE, HIGH };

static unsigned kind_of(char byte)
{
    static const uint8_t kind[128] = { [0] = NUL_BYTE, ['\t'] = BLANK, ['\n'] = LINE_END, ['\v'] = BLANK,
                                       ['\f'] = BLANK, ['\r'] = BLANK, [' '] = BLANK };
    unsigned char c = (unsigned char)byte;
    return c < 0x80 ? kind[c] : HIGH;
}

bool ses_word_files_check(const char *const *path, size_t n, ses_err *e)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(path[i], "-") != 0 && access(path[i], R_OK))
            return ses_fail(e, SES_EIO, "%s: %s", path[i], strerror(errno));
        if (!ses_refuse_table(path[i], SES_TEXTS_ALONE, e)) return ses_wrap(e, "%s", path[i]);
    }
    return true;
}

bool ses_word_reader_open(ses_word_reader *r, const char *path, ses_words_rule rule, ses_err *e)
{
    r->rule = rule;
    if (!ses_refuse_table(path, SES_TEXTS_ALONE, e)) return false;
    r->in = ses_input_stream_open_text(path, r->encoding, e);
    return r->in && (r->buffer = ses_alloc(BUFFER, e));
}

void ses_word_reader_free(ses_word_reader *r)
{
    ses_input_stream_free(r->in);
    ses_free(r->buffer);
    ses_buf_free(&r->pieces);
    *r = (ses_word_reader){ 0 };
}

/* Reads more bytes; keeps the bytes from `from` on, which becomes 0. */
static bool fill(ses_word_reader *r, size_t from, ses_err *e)
{
    size_t got;
    if (r->end > from) memmove(r->buffer, r->buffer + from, r->end - from);
    r->end -= from;
    r->at -= from;
    r->line_start -= (int64_t)from;
    if (!ses_input_stream_read(r->in, r->buffer + r->end, BUFFER - r->end, &got, e)) return false;
    r->end += got;
    r->ended = got == 0;
    return true;
}

static void skip(ses_word_reader *r)
{
    if (!r->skipped.too_long++) r->skipped.first_line = r->line + 1;
}

/* The line so far, for its check; the word at `start` has an invalid byte or a NUL. */
static bool fail_word(const ses_word_reader *r, size_t start, size_t len, ses_err *e)
{
    uint64_t before = (uint64_t)((int64_t)start - r->line_start); /* bytes of the line before the word */
    size_t good = ses_text_good(r->buffer + start, len);
    ses_err what = { 0 };
    ses_text_check(r->buffer + start + good, len - good, &what);
    return ses_fail(e, SES_EFORMAT, "line %llu: byte %llu: %s", (unsigned long long)r->line + 1,
                    (unsigned long long)(before + good + 1), strchr(what.msg, ':') + 2);
}

/* Finds the next bytes between blanks. *n 0: a line end; *s NULL: the end of the text. */
static bool next_raw(ses_word_reader *r, const char **s, size_t *n, ses_err *e)
{
    size_t max = r->rule == SES_WORDS_TEXT ? MAX_UNSPLIT : SES_WORD_MAX, start = r->at;
    unsigned seen = 0;
    bool too_long = false;
    *n = 0;
    for (;;) {
        unsigned kind = LINE_END;
        while (r->at < r->end && (kind = kind_of(r->buffer[r->at])) != BLANK && kind != LINE_END)
            seen |= 1u << kind, r->at++;
        if (r->at == r->end && !r->ended) {
            if (r->at - start > max) { /* drops the characters so far */
                size_t len = r->at - start, good = ses_text_good(r->buffer + start, len);
                if (len - good > 3) return fail_word(r, start, len, e);
                too_long = true, start += good;
            }
            if (!fill(r, start, e)) return false;
            start = 0;
            continue;
        }
        size_t len = r->at - start;
        too_long |= len > max;
        bool odd = seen & (1u << NUL_BYTE | 1u << HIGH);
        if (odd && ses_text_good(r->buffer + start, len) != len) return fail_word(r, start, len, e);
        if (too_long) {
            skip(r);
        } else if (len) {
            *s = r->buffer + start;
            *n = len;
            return true;
        }
        if (r->at == r->end) return *s = NULL, true;
        r->at++;
        start = r->at;
        seen = 0;
        too_long = false;
        if (kind == LINE_END) return r->line++, r->line_start = (int64_t)r->at, *s = "", true;
    }
}

/* The next word of pieces; 0: no more. */
static size_t next_piece(ses_word_reader *r, const char **s)
{
    size_t begin, n;
    if (r->next_piece == r->pieces.len) return 0;
    *s = r->pieces.data + r->next_piece;
    n = ses_word_find(*s, r->pieces.len - r->next_piece, r->rule, &begin);
    r->next_piece += begin + n;
    *s += begin;
    return n;
}

bool ses_word_reader_next(ses_word_reader *r, const char **s, size_t *n, ses_err *e)
{
    if (r->rule == SES_WORDS_BLANK) return next_raw(r, s, n, e);
    for (;;) {
        while ((*n = next_piece(r, s))) {
            if (*n <= SES_WORD_MAX) return true;
            skip(r);
        }
        if (!next_raw(r, s, n, e)) return false;
        r->pieces.len = r->next_piece = 0;
        if (!*n) return true;
        if (!ses_lower_append(&r->pieces, *s, *n)) return ses_buf_ok(&r->pieces, e);
    }
}
