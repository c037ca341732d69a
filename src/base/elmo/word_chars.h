/* Words as sequences of characters, as ELMo reads them: bytes 0 to 255 and the characters below. A word is
 * BEGIN_WORD, its bytes, END_WORD, then PAD up to a fixed number; bytes that do not fit are left out. */
#ifndef SES_BASE_WORD_CHARS_H
#define SES_BASE_WORD_CHARS_H

#include "sesame/base.h"

enum {
    SES_CHAR_BOS = 256, /* the only character of the words that begin and end a sentence */
    SES_CHAR_EOS,
    SES_CHAR_BEGIN_WORD,
    SES_CHAR_END_WORD,
    SES_CHAR_PAD,
    SES_CHARS,              /* number of characters */
    SES_MIN_WORD_CHARS = 3, /* characters of a word: limits */
    SES_MAX_WORD_CHARS = 1024
};

/* Bytes of a word that fit into per_word characters. */
int64_t ses_word_max_bytes(int64_t per_word);
/* Sets to[0, per_word) to the characters of a word of n bytes. */
void ses_word_chars(int16_t *to, int64_t per_word, const char *word, size_t n);
/* The same for a word of one character: SES_CHAR_BOS or SES_CHAR_EOS. */
void ses_word_one_char(int16_t *to, int64_t per_word, int16_t only);

/* A character as a number in a file: bytes are 1 to 256, the other characters -1, -2 and so on, all exact in
 * bf16; 0 means that the word has none. */
double ses_char_to_number(int16_t c);
/* The character; -1 for 0. False: x is another number. */
bool ses_char_from_number(double x, int16_t *c);

#endif
