/* The words of a text as GloVe's programs read them, and their vocabulary. */
#ifndef SES_VECTORS_GLOVE_WORDS_H
#define SES_VECTORS_GLOVE_WORDS_H

#include "base/arena.h"
#include "base/file.h"
#include "base/strmap.h"

enum { SES_GLOVE_MAX_WORD = 999 };

typedef struct ses_glove_reader {
    const char *path; /* for messages */
    const unsigned char *start, *at, *end;
    char word[SES_GLOVE_MAX_WORD + 1];
    size_t len;
} ses_glove_reader;

typedef enum { SES_GLOVE_WORD, SES_GLOVE_LINE_END, SES_GLOVE_END, SES_GLOVE_INVALID } ses_glove_token;

ses_glove_reader ses_glove_reader_of(const ses_mmap *file, const char *path);
/* Reads a word into r->word. INVALID, with an error: a NUL, form feed or vertical tab, which the original's
 * files cannot hold. */
ses_glove_token ses_glove_read(ses_glove_reader *r, ses_err *e);

typedef struct ses_glove_word {
    const char *text;
    int64_t count;
    size_t len;
} ses_glove_word;

typedef struct ses_glove_vocab {
    ses_arena text;
    ses_strmap rank; /* from 1 */
    ses_glove_word *word;
    size_t n, capacity;
} ses_glove_vocab;

/* Counts the words: most frequent first, ties by their bytes as signed characters. *v must be zeroed; free it
 * even if this fails. */
bool ses_glove_count(ses_glove_vocab *v, const ses_mmap *file, const char *path, int64_t min_count,
                     ses_err *e);
void ses_glove_vocab_free(ses_glove_vocab *v);

#endif
