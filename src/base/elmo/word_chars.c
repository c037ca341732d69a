/* Words as characters. */
#include "word_chars.h"

static void finish(int16_t *to, int64_t at, int64_t per_word)
{
    to[at++] = SES_CHAR_END_WORD;
    while (at < per_word) to[at++] = SES_CHAR_PAD;
}

int64_t ses_word_max_bytes(int64_t per_word) { return per_word - 2; } /* BEGIN_WORD, END_WORD */

void ses_word_chars(int16_t *to, int64_t per_word, const char *word, size_t n)
{
    int64_t at = 0;
    to[at++] = SES_CHAR_BEGIN_WORD;
    for (size_t i = 0; i < n && at < per_word - 1; i++) to[at++] = (unsigned char)word[i];
    finish(to, at, per_word);
}

void ses_word_one_char(int16_t *to, int64_t per_word, int16_t only)
{
    to[0] = SES_CHAR_BEGIN_WORD;
    to[1] = only;
    finish(to, 2, per_word);
}

double ses_char_to_number(int16_t c) { return c < SES_CHAR_BOS ? c + 1 : SES_CHAR_BOS - 1 - c; }

bool ses_char_from_number(double x, int16_t *c)
{
    if (!(x >= SES_CHAR_BOS - SES_CHARS && x <= SES_CHAR_BOS) || x != (double)(int)x) return false;
    *c = (int16_t)(x < 0 ? SES_CHAR_BOS - 1 - (int)x : (int)x - 1);
    return true;
}
