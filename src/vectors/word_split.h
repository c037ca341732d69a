/* Texts as words: the rules of the trainers, the classifiers and the topic models. Nothing is owned; any
 * thread may call. */
#ifndef SES_VECTORS_WORD_SPLIT_H
#define SES_VECTORS_WORD_SPLIT_H

#include "base/str.h"

typedef enum {
    SES_WORDS_BLANK, /* words are separated by ASCII white space (and NUL), otherwise as they are */
    /* Prose, lower case as Python's str.lower. A word is a run of letters, marks, digits and '_', and
     * apostrophes between two of them ("don't"); any other character that is not white space, and each CJK
     * character, is a word of its own. */
    SES_WORDS_TEXT,
    /* The same runs without apostrophes, CJK characters among them, and no other words: scikit-learn's
     * vectorizers, which keep runs of at least two characters. */
    SES_WORDS_RUNS
} ses_words_rule;

/* Names of the first two in options and files, '|' between. */
#define SES_WORDS_RULE_NAMES "blank|text"
const char *ses_words_rule_name(ses_words_rule rule);
/* The rule of a name; false: neither "blank" nor "text", or NULL. */
bool ses_words_rule_of(const char *name, ses_words_rule *rule);

/* Finds the first word of s, which is lower case already: returns its bytes, 0: there is none; *begin: where
 * it begins. */
size_t ses_word_find(const char *s, size_t n, ses_words_rule rule, size_t *begin);

/* Words of a text: word i is the bytes begin[i] .. end[i] - 1 of text.data. One blank separates neighbors, so
 * an n-gram is a range of bytes too. A zeroed struct is empty and ready; it is reused from text to text. */
typedef struct ses_words {
    ses_buf lower, text;
    size_t *begin, *end;
    size_t n, cap;
} ses_words;

/* Splits a text into words, which replace the words of the text before. */
bool ses_words_split(ses_words *w, ses_string text, ses_words_rule rule, ses_err *e);
void ses_words_free(ses_words *w); /* back to zero */

#endif
