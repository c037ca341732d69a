/* Documents as word ids: one per line, an empty line is an empty document. */
#ifndef SES_VECTORS_DOCUMENTS_H
#define SES_VECTORS_DOCUMENTS_H

#include "vectors/word_reader.h"
#include "vectors/word_vocab.h"

typedef struct ses_documents {
    ses_word_vocab vocab;
    int32_t *id;    /* words of the vocabulary, document after document */
    int64_t *start; /* [n + 1]: first word of each document */
    int64_t n;
    ses_words_skipped skipped;
    size_t id_capacity, start_capacity;
} ses_documents;

typedef struct ses_documents_options {
    ses_words_rule rule;
    int64_t min_count;
    size_t max_words; /* 0: no limit */
    ses_text_encoding encoding;
    /* Called about every million words with the words so far; false: stop. NULL: none. */
    bool (*progress)(void *ctx, int64_t words);
    void *ctx;
} ses_documents_options;

/* Reads all lines of the files and selects the vocabulary. *d must be zeroed; free it even if this fails. */
bool ses_documents_read(ses_documents *d, const char *const *path, size_t n_paths,
                        const ses_documents_options *o, ses_err *e);
/* Reads the next lines, at most `max`, with the vocabulary of a model; other words are left out. d->n is 0 at
 * the end. */
bool ses_documents_next(ses_documents *d, ses_word_reader *from, const ses_word_vocab *vocab, int64_t max,
                        ses_err *e);
void ses_documents_free(ses_documents *d);

#endif
