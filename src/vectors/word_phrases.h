/* Phrases: joins pairs of neighboring words that occur together more often than by chance (Mikolov et al.
 * 2013), as word2phrase: with counts a and b of the words, ab of the pair and a text of n words,
 *     (ab - min_count) / a / b * n > threshold
 * Pairs are counted across line ends but joined within lines; a word joins one pair at most. The output has
 * word2phrase's bytes unless the text has words of more than 58 bytes or does not end with a line end. */
#ifndef SES_VECTORS_WORD_PHRASES_H
#define SES_VECTORS_WORD_PHRASES_H

#include "word_reader.h"

typedef struct ses_phrases_job {
    const char *corpus, *output;
    bool overwrite;
    ses_words_rule rule;
    ses_text_encoding encoding;
    int64_t min_count;
    double threshold;
    int passes; /* each pass joins the words of the pass before: up to 2^passes words */
    bool (*progress)(void *ctx, int64_t words); /* false: stop; NULL: none */
    void *ctx;
    int64_t words, joined; /* results: words of the text, pairs joined in all passes */
    ses_words_skipped skipped;
} ses_phrases_job;

bool ses_phrases_run(ses_phrases_job *job, ses_err *e);

#endif
