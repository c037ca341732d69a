/* The features of the words of a tagger's rows, computed for many rows at a time.
 *
 * Ownership: a block belongs to its set and is freed by ses_tag_words_free. Threads: as the finetuner. */
#ifndef SES_TUNE_TAG_WORDS_H
#define SES_TUNE_TAG_WORDS_H

#include "finetuner.h"

typedef struct ses_tag_words ses_tag_words;

void ses_tag_words_free(ses_tag_words *b); /* NULL is allowed */

/* Encodes the words of a row; the result is in t->tokens. in: the words, in mem. */
bool ses_tag_encode(ses_finetuner *t, const ses_labeled_example *r, ses_input *in, ses_arena *mem,
                    ses_err *e);

/* Sets the features of a row of s in q, and computes the features of the next rows, too, if the row's are not
 * known. Features are valid until the next call, or until mem is freed. Encodes other rows. */
bool ses_tag_words_get(ses_finetuner *t, ses_finetune_set *s, size_t row, ses_sequence *q, ses_arena *mem,
                       ses_err *e);

#endif
