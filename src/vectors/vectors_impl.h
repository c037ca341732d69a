/* Private parts of open files of word vectors, shared by the formats (vectors/file). */
#ifndef SES_VECTORS_IMPL_H
#define SES_VECTORS_IMPL_H

#include "base/file.h"
#include "base/str.h"
#include "base/strmap.h"
#include "sesame/vectors.h"

typedef struct ses_vector_row {
    const char *word; /* NULL: past the last row */
    const void *data; /* its numbers: text, or f32, little-endian and possibly unaligned */
    uint32_t len;     /* bytes of the word */
} ses_vector_row;

typedef struct ses_word_format ses_word_format;

struct ses_vectors {
    const ses_word_format *format;
    char *path;
    bool is_folder;
    const char *p; /* bytes of the file; a folder has none */
    size_t n;
    ses_mmap map;   /* owner of p; empty: heap */
    ses_buf heap;   /* owner of p if it was decompressed or read from a pipe */
    int64_t dim;    /* 0 until the format has read it */
    int64_t stated; /* words by the header; -1: unknown */
    size_t at;      /* position of the next row: a byte, or an index */
    int64_t read;   /* rows read, duplicates included */
    bool complete;  /* all rows have been read */
    ses_vector_row *row;
    size_t n_rows, cap_rows;
    ses_strmap names;
    void *extra; /* data of the format */
};

/* Rows to write. */
typedef struct ses_vector_line {
    ses_string word;
    const float *x;
    int64_t dim;
    bool full_precision;
} ses_vector_line;

/* A format: one file, format_NAME.c, and one line in vector_formats.def. */
struct ses_word_format {
    const char *name, *title; /* title: for people */
    /* Whether the file, with path, is_folder, p and n set, has this format. The first that accepts wins. */
    bool (*detect)(const ses_vectors *v);
    /* Reads the header: sets dim, stated and at. */
    bool (*open)(ses_vectors *v, ses_err *e);
    /* Reads one row and advances `at`. Checks everything except the numbers. */
    bool (*next)(ses_vectors *v, ses_vector_row *row, ses_err *e);
    /* Copies the numbers of a row. NULL: f32, as ses_vector_floats. */
    bool (*get)(const ses_vectors *v, const ses_vector_row *row, float *out, ses_err *e);
    /* Vector of a word outside of the vocabulary; *known is false on entry. NULL: there are none. */
    bool (*unknown)(const ses_vectors *v, ses_string word, float *out, bool *known, ses_err *e);
    int64_t (*count)(const ses_vectors *v, int64_t i); /* occurrences of word i; NULL: unknown */
    void (*close)(ses_vectors *v);                     /* frees extra; NULL: nothing to do */
    /* Writing: put_head (may be NULL) and one put_row per row append to a buffer; refuses gives the reason
     * why a word cannot be stored, NULL: it can. A format with `save` writes everything itself. Neither
     * put_row nor save: read only. */
    void (*put_head)(ses_buf *out, int64_t count, int64_t dim);
    void (*put_row)(ses_buf *out, const ses_vector_line *line);
    const char *(*refuses)(ses_string word);
    bool (*save)(const ses_vectors *v, const char *path, const ses_vectors_save_options *o, ses_err *e);
    /* A format whose files are in a folder: fails unless the path is such a folder, which may be replaced.
     * NULL: the format is one file. */
    bool (*check_folder)(const char *path, ses_err *e);
};

const ses_word_format *ses_word_format_at(size_t i); /* NULL past the last */

/* Vectors whose format is not set yet. path: for messages. */
ses_vectors *ses_vectors_new(const char *path, ses_err *e);
/* The same as ses_vectors_open for bytes in memory, borrowed. path: for messages and .vec. */
ses_vectors *ses_vectors_from_memory(const void *bytes, size_t n, const char *path, ses_err *e);

/* Reads one row after another, words that occurred before included; row.word is NULL past the last. Not
 * together with ses_vectors_read_words. */
bool ses_vectors_next_row(ses_vectors *v, ses_vector_row *row, ses_err *e);
bool ses_vectors_get_row(const ses_vectors *v, const ses_vector_row *row, float *out, ses_err *e);

/* Copies dim floats; fails if one is not finite. */
bool ses_vector_floats(const ses_vectors *v, const void *data, float *out, ses_err *e);
/* Fails if one of the dim numbers is not finite. */
bool ses_vector_check_finite(const ses_vectors *v, const float *x, ses_err *e);
/* Fails unless 1 <= dim <= SES_VECTORS_MAX_DIM. */
bool ses_vector_dim_check(int64_t dim, ses_err *e);
/* Fails for a word that is empty, longer than SES_VECTORS_MAX_WORD or contains a NUL. */
bool ses_vector_word_check(const char *word, size_t n, ses_err *e);

#endif
