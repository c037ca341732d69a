/* The points of a map: texts or words in context from a file, with the columns that color them.
 * Ownership: everything is in the arena of the set; ses_map_points_free frees it. One thread. */
#ifndef SES_ANALYSIS_MAP_POINTS_H
#define SES_ANALYSIS_MAP_POINTS_H

#include "base/arena.h"
#include "sesame/tokenizer.h"
#include "sesame/unstable/table.h"
#include "sesame/vectors.h"

typedef struct ses_map_source {
    const char *path;
    const char *words;  /* words to find, separated by commas; "all": every word; NULL: by the format */
    bool texts;         /* CoNLL-U: map sentences, not words */
    const char *column; /* column with the text; NULL: "text" or "sentence" of a table, else plain lines */
    ses_records_options records;
    bool labels_only; /* vectors are given: each row of the file describes one */
    int64_t most;     /* a random sample of at most this many points; 0: all */
    uint64_t seed;
} ses_map_source;

typedef struct ses_map_point {
    size_t text;  /* index of its text */
    int32_t word; /* index of its word; -1: the text itself */
    size_t row;   /* its number among the points found */
    size_t begin; /* first byte of the word in its text */
} ses_map_point;

typedef struct ses_map_column {
    const char *name;
    const char **value; /* one per point */
} ses_map_column;

enum { SES_MAP_MAX_COLUMNS = 64 };

typedef struct ses_map_points {
    ses_arena arena;
    bool of_words;
    size_t n, found; /* points; points before sampling */
    ses_map_point *point;
    const char **label; /* a word, or a text */
    ses_map_column column[SES_MAP_MAX_COLUMNS];
    size_t n_columns;
    ses_input *text;    /* texts with points, in the order of the file */
    const char **plain; /* the texts as one string */
    size_t n_texts;
} ses_map_points;

/* Reads a file: CoNLL-U (by its name), a table (TSV, CSV, JSON lines: by its name or a given column), or
 * texts, one per line. Fails if it has no points, and names a word that does not occur. */
bool ses_map_points_read(ses_map_points *p, const ses_map_source *s, ses_err *e);
/* Points without a file, labelled by their numbers among n; s gives the sample. */
bool ses_map_points_number(ses_map_points *p, const ses_map_source *s, size_t n, ses_err *e);
/* The first n words of a file of word vectors (s->most: at most), with a column "rank" that groups them by
 * their position: 1-10, 11-100, ... */
bool ses_map_points_words(ses_map_points *p, const ses_map_source *s, const ses_vectors *v, ses_err *e);
void ses_map_points_free(ses_map_points *p);
/* Index of a column; fails and lists the columns if there is none of this name. */
bool ses_map_points_column(const ses_map_points *p, const char *name, size_t *index, ses_err *e);

#endif
