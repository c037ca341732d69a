/* Co-occurrence counts of a text in bounded memory, and their shuffling: what GloVe's cooccur and shuffle do,
 * with the same order of additions and random numbers. */
#ifndef SES_VECTORS_GLOVE_RECORDS_H
#define SES_VECTORS_GLOVE_RECORDS_H

#include "glove_words.h"
#include "record_file.h"

/* Counts the words within `window` of each other in a line, weighted by 1 / distance, both ways. memory: GB.
 * *out must be zeroed; the temporary files are beside out_path. */
bool ses_glove_cooccur(ses_record_file *out, const char *out_path, const ses_glove_vocab *v,
                       const ses_mmap *file, const char *path, int window, double memory, ses_err *e);

/* Writes the records of `in` to *out in random order. */
bool ses_glove_shuffle(ses_record_file *out, const char *out_path, const ses_record_file *in, uint32_t seed,
                       double memory, ses_err *e);

#endif
