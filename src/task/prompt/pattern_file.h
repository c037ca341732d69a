/* Pattern files: templates that turn a text into a cloze question, and the words that represent the labels
 * (Schick and Schuetze 2021, "PET").
 *
 *     { "patterns": ["{text} It was {mask}.", "Just {mask}! {sep} {text}"],
 *       "verbalizers": { "negative": "terrible", "positive": ["great", "good"] } }
 *
 * A pattern has {mask} once, {text} once, {pair} at most once, and {sep} at most once: the part after it is
 * the second text of the model. Several words of a label share it: the mean of their scores counts.
 * "demonstrations" (LM-BFF) is optional: answered examples, { "label": ..., "text": ..., "pair": ... }, of
 * which a text is read with one for each label, "demonstration_sets" times.
 *
 * Ownership: a ses_patterns owns all its strings. Threads: read-only once it is open. */
#ifndef SES_TASK_PATTERN_FILE_H
#define SES_TASK_PATTERN_FILE_H

#include "base/arena.h"
#include "sesame/json.h"

/* Name of the file in a model folder. */
#define SES_PATTERN_FILE "patterns.json"

enum {
    SES_MAX_PATTERNS = 64,
    SES_MAX_PATTERN_PIECES = 32,
    SES_MAX_VERBALIZERS = 4096,
    SES_MAX_LABEL_WORDS = 64,
    SES_MAX_DEMONSTRATIONS = 1 << 20,
    SES_MAX_DEMONSTRATION_SETS = 64
};

typedef enum {
    SES_PIECE_WORDS,
    SES_PIECE_TEXT,
    SES_PIECE_PAIR,
    SES_PIECE_MASK,
    SES_PIECE_SEP
} ses_piece_kind;

typedef struct ses_pattern_piece {
    ses_piece_kind kind;
    ses_string words; /* SES_PIECE_WORDS */
} ses_pattern_piece;

typedef struct ses_cloze_pattern {
    const char *source; /* as in the file */
    ses_pattern_piece *piece;
    size_t n;
    bool has_pair, has_sep;
} ses_cloze_pattern;

typedef struct ses_verbalizer {
    const char *label;
    const char **word; /* [n], at least one */
    size_t n;
} ses_verbalizer;

typedef struct ses_demonstration {
    const char *label;
    ses_string text, pair;
} ses_demonstration;

typedef struct ses_patterns {
    ses_arena mem;
    ses_cloze_pattern *pattern;
    size_t n_patterns;
    ses_verbalizer *verbalizer;
    size_t n_verbalizers;
    ses_demonstration *demonstration;
    size_t n_demonstrations;
    int64_t demonstration_sets; /* times a text is read with other demonstrations; from 1 */
} ses_patterns;

/* NULL on failure; the error names the pattern or label. Free with ses_patterns_free. */
ses_patterns *ses_patterns_open(const char *path, ses_err *e);
ses_patterns *ses_patterns_parse(const char *text, size_t n, ses_err *e);
void ses_patterns_free(ses_patterns *p); /* p may be NULL */

/* Writes the file: pattern `only` from 1 (0: all), and the demonstrations. */
bool ses_patterns_save(const ses_patterns *p, size_t only, const char *dir, const char *name, ses_err *e);

#endif
