/* Words in output. */
#include "word_output.h"

#include "base/unicode/utf8_replace.h"

const char *ses_word_text(ses_buf *scratch, ses_string word)
{
    scratch->len = 0;
    ses_utf8_replace_invalid(scratch, word.p, word.n);
    return scratch->data ? scratch->data : "";
}

void ses_json_put_word(ses_json_writer *w, ses_buf *scratch, ses_string word)
{
    ses_word_text(scratch, word);
    ses_json_put_stringn(w, scratch->data ? scratch->data : "", scratch->len);
}
