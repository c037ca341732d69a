/* Texts as words, by a rule that is part of a classifier. Nothing is owned; any thread may call. */
#ifndef SES_VECTORS_WORD_SPLIT_H
#define SES_VECTORS_WORD_SPLIT_H

#include "base/str.h"

typedef enum {
    SES_WORDS_DEFAULT, /* the method's */
    /* Lower case as Python's str.lower. A word is a run of letters, marks, digits and '_', and apostrophes
     * between two of them ("don't"); any other character that is not white space is a word of its own. */
    SES_WORDS_TEXT,
    SES_WORDS_BLANK, /* words are separated by white space, their case is kept */
    SES_WORD_RULE_COUNT
} ses_word_rule;

/* Names in options and config.json, '|' between. */
#define SES_WORD_RULE_NAMES "default|text|blank"

/* Words of a text: word i is the bytes begin[i] .. end[i] - 1 of text.data. One blank separates neighbors, so
 * an n-gram is a range of bytes too. A zeroed struct is empty and ready; it is reused from text to text. */
typedef struct ses_words {
    ses_buf lower, text;
    size_t *begin, *end;
    size_t n, cap;
} ses_words;

/* Splits a text into words; those of the text before are gone. */
bool ses_words_split(ses_words *w, ses_string text, ses_word_rule rule, ses_err *e);
void ses_words_free(ses_words *w); /* back to zero */

#endif
