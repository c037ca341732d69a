/* A text as word ids: read once, from any number of files, then kept in memory or, if it is larger than a
 * limit, in an unnamed temporary file that is memory-mapped. Several threads may read it.
 *
 *     ses_word_corpus c = { 0 };
 *     ses_word_corpus_options o = { .min_count = 5, .beside = output };
 *     ok = ses_word_corpus_read(&c, path, n_paths, &o, e);
 *     for (int64_t i = 0; ok && i < c.n; i++) c.id[i] ... SES_SENTENCE_END between sentences
 *     ses_word_corpus_free(&c); */
#ifndef SES_VECTORS_WORD_CORPUS_H
#define SES_VECTORS_WORD_CORPUS_H

#include "word_reader.h"
#include "word_vocab.h"

enum { SES_SENTENCE_END = -1 };

typedef struct ses_word_corpus_options {
    ses_words_rule rule;
    int64_t min_count;
    size_t max_words;   /* size of the vocabulary; 0: no limit */
    size_t max_memory;  /* bytes of ids that are kept in memory; 0: SES_CORPUS_MEMORY */
    const char *beside; /* the temporary file is created in the folder of this path; NULL: in memory always */
    ses_text_encoding encoding;
    /* Called about every million words with the words so far; false: stop. NULL: none. */
    bool (*progress)(void *ctx, int64_t words);
    void *ctx;
} ses_word_corpus_options;

#define SES_CORPUS_MEMORY ((size_t)4 << 30)

typedef struct ses_word_corpus {
    ses_word_vocab vocab;
    /* Ids of the words in the vocabulary, in the order of the text, without the dropped words;
     * SES_SENTENCE_END after the last word of each line that has one. */
    int32_t *id;
    int64_t n;         /* length of id, sentence ends included */
    int64_t sentences; /* lines with a word of the vocabulary */
    ses_words_skipped skipped;

    size_t capacity;
    int fd; /* temporary file + 1; 0: in memory */
    size_t mapped;
} ses_word_corpus;

/* *c must be zeroed; free it even if this fails. */
bool ses_word_corpus_read(ses_word_corpus *c, const char *const *path, size_t n_paths,
                          const ses_word_corpus_options *o, ses_err *e);
void ses_word_corpus_free(ses_word_corpus *c);
/* A sentence about the words that were skipped, for a warning; false: none were. */
bool ses_words_skipped_text(const ses_words_skipped *s, ses_buf *out);

#endif
