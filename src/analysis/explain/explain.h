/* Attribution: how much each token of a text contributes to one number that a model computes, its target
 * (the logit of a label, a token, a tag or a span, or the difference of two). A method is one file
 * method_NAME.c and one line in methods.def.
 *
 * Ownership: everything lives in the arena of the ses_explain. Threads: one thread. */
#ifndef SES_ANALYSIS_EXPLAIN_H
#define SES_ANALYSIS_EXPLAIN_H

#include "analysis/analysis.h"
#include "base/arena.h"
#include "model/model_desc.h"
#include "run/pass.h"
#include "text/tokenizer_config.h"

/* Tokens of the input: the text (and its pair), or the decoder's input. */
typedef struct ses_explain_side {
    int64_t n;
    int32_t *id, *segment;
    uint8_t *special;  /* kept by baselines, never removed */
    uint8_t *pair;     /* belongs to the second text */
    int32_t *word;     /* number of its word; -1: special */
    ses_offset *bytes; /* in its text; of generated tokens 0 */
    const char *text;  /* a given target; NULL: the texts of ses_explain, or generated tokens */
    const char **name;
    int64_t words;
} ses_explain_side;

typedef enum {
    SES_EXPLAIN_SEQUENCE, /* logits of a sequence */
    SES_EXPLAIN_TOKEN,    /* logits of a token */
    SES_EXPLAIN_LM,       /* logits of a token over the vocabulary */
    SES_EXPLAIN_SPAN      /* start and end logits */
} ses_explain_kind;

/* The number that is explained. */
typedef struct ses_explain_target {
    ses_explain_kind kind;
    const char *output;                /* name of the logits */
    bool of_decoder;                   /* positions count the decoder's tokens */
    int64_t position;                  /* row of the logits */
    int64_t start, end;                /* SES_EXPLAIN_SPAN */
    int64_t label, foil;               /* columns; foil -1: none */
    const char *name, *foil_name, *at; /* for people; at: the word or token of the position, or NULL */
    int64_t classes;
    bool independent; /* each logit has a probability of its own: a sigmoid */
    /* Multiple choice: logits of the other choices. A choice is a sequence with one logit. */
    const double *rival;
    int64_t n_rivals;
    /* Permutation LM: no token attends to tokens hide_begin .. hide_end - 1; `position` is predicted. */
    int64_t hide_begin, hide_end;
} ses_explain_target;

typedef struct ses_explain_args {
    const char *pair, *target, *label, *foil, *token, *word, *influence, *text_column, *label_column;
    int method, unit, occlude, baseline;
    int64_t steps, ngram, top;
    double c;
} ses_explain_args;

enum { SES_EXPLAIN_SOURCE, SES_EXPLAIN_TARGET, SES_EXPLAIN_SIDES };

/* The values of one token of a target text. */
typedef struct ses_explain_column {
    int64_t at; /* its index in the target text */
    double *value[SES_EXPLAIN_SIDES];
    double score, probability, base_score, delta;
    int64_t steps;
} ses_explain_column;

typedef struct ses_explain {
    const ses_analysis_call *call;
    const ses_explain_args *args;
    const ses_model *m;
    ses_arena mem;
    const char *text, *pair; /* pair NULL: none */
    ses_encode_ctx *tokens;
    ses_tokenizer_config config;
    ses_pass pass;
    ses_explain_side full;                    /* all tokens of the texts, without names */
    ses_explain_side side[SES_EXPLAIN_SIDES]; /* what the model reads; n 0: none */
    /* a target text: its tokens behind the start token, and the tokens to explain */
    ses_explain_side written;
    ses_explain_column *column; /* [n_columns] */
    int64_t n_columns;
    bool repeated; /* not the first column: its notes are in the report */
    bool sets_segments;
    bool echo; /* the decoder reads the source again: its embeddings belong to the source's tokens */
    ses_explain_target target;
    int64_t width[SES_EXPLAIN_SIDES]; /* columns of the embeddings */
    /* the result */
    double *value[SES_EXPLAIN_SIDES]; /* [n] of each token; NAN: not computed */
    double score, probability;        /* the target's; probability NAN: none */
    double base_score, delta;         /* integrated gradients; NAN: none */
    int64_t steps;
    const char *unit, *scale; /* units of score and values: "logit", ... */
    bool is_unsigned;
} ses_explain;

/* A method: fills value of each side and `score`. */
typedef struct ses_explain_method {
    const char *description; /* a sentence for the report */
    bool (*run)(ses_explain *x, ses_err *e);
} ses_explain_method;

#define SES_EXPLAIN_METHOD(id, name) extern const ses_explain_method ses_explain_##id;
#include "methods.def"
#undef SES_EXPLAIN_METHOD

/* ---- explain_input.c ---- */

/* Encodes the texts. If they have more tokens than the model reads, side[SES_EXPLAIN_SOURCE] is a window, and
 * a note describes it. ses_explain_choose_target makes the decoder's input of an encoder-decoder. */
bool ses_explain_encode(ses_explain *x, ses_err *e);
/* Tokens of the longer text (of a question's passage) that the window leaves out; 0: all are read. */
int64_t ses_explain_excess(const ses_explain *x);
/* Moves the window: tokens of the longer text from its token `first` on; clipped at its end. */
bool ses_explain_window(ses_explain *x, int64_t first, ses_err *e);
/* Moves the window so that token t of `full` is in its middle. */
bool ses_explain_window_around(ses_explain *x, int64_t t, ses_err *e);
/* Says which part of the text the window is. */
void ses_explain_note_window(ses_explain *x, const char *which);

/* The decoder's input of a target text: the start token (of mBART, the last token of the text), then the
 * tokens of the text. */
bool ses_explain_side_of_target(ses_explain *x, const char *text, ses_explain_side *s, ses_err *e);
/* A side from generated ids. */
bool ses_explain_side_of_ids(ses_explain *x, const int32_t *id, int64_t n, ses_explain_side *s, ses_err *e);
/* The text of a token, without spaces. */
const char *ses_explain_token_name(ses_explain *x, int32_t id, ses_err *e);

/* Tokens begin .. end - 1 of a side as written in the text; of the decoder's input, their names. */
const char *ses_explain_text_of(ses_explain *x, const ses_explain_side *s, int64_t begin, int64_t end,
                                ses_err *e);
/* The first token of a word; -1: no such word. */
int64_t ses_explain_word_begin(const ses_explain_side *s, int64_t word);
const char *ses_explain_word_text(ses_explain *x, const ses_explain_side *s, int64_t word, ses_err *e);
/* The word of a side that --word names, by its text or its number from 1. */
bool ses_explain_find_word(ses_explain *x, const ses_explain_side *s, int64_t *word, ses_err *e);

/* ---- explain_target.c ---- */

/* Finds out what the options ask for; runs the model for what they leave open. */
bool ses_explain_choose_target(ses_explain *x, ses_err *e);
/* The id of a token of the vocabulary that an option names. */
bool ses_explain_find_token(ses_explain *x, const char *option, const char *text, int64_t *id, ses_err *e);

/* The choosers of explain_lm.c, explain_choice.c, explain_decoder.c. */
bool ses_explain_choose_masked(ses_explain *x, ses_err *e);
bool ses_explain_choose_next(ses_explain *x, ses_err *e);
bool ses_explain_choose_choice(ses_explain *x, ses_err *e);
bool ses_explain_choose_written(ses_explain *x, ses_err *e);
/* Makes a token of the target text the target, after the tokens before it. */
bool ses_explain_set_column(ses_explain *x, int64_t i, ses_err *e);

/* ---- explain_pass.c: the model on many variants of the input ---- */

/* One variant: ids of both sides, tokens that are absent, tokens whose values are zero in attention.
 * NULL: the original ids; none. */
typedef struct ses_explain_variant {
    const int32_t *id[SES_EXPLAIN_SIDES];
    const uint8_t *absent[SES_EXPLAIN_SIDES], *zero_value[SES_EXPLAIN_SIDES];
} ses_explain_variant;

typedef struct ses_explain_zeroing {
    ses_part part;
    int64_t layer;
} ses_explain_zeroing;

/* Receives an output of variants first .. first + n - 1: their rows one after the other. */
typedef struct ses_explain_taker {
    const char *output;
    void (*take)(void *ctx, int64_t first, int64_t n, const ses_real *rows, int64_t cols);
    void *ctx;
} ses_explain_taker;

typedef struct ses_explain_pass {
    int64_t n;
    const ses_explain_variant *variant; /* [n]; NULL: all are the original */
    /* [n, side.n, width]: token vectors; NULL: by the ids */
    const ses_real *embeds[SES_EXPLAIN_SIDES];
    const char *label; /* text of the progress line; NULL: none */
    /* Layer and part in which zero_value applies; NULL: all parts and the layers of --layers. */
    const ses_explain_zeroing *zeroing;
    /* results, allocated by the caller; NULL: not wanted */
    double *score, *log_likelihood;      /* [n] */
    ses_real *vector[SES_EXPLAIN_SIDES]; /* [n, side.n, width]: token vectors of the variants */
    ses_real *grad[SES_EXPLAIN_SIDES];   /* [n, side.n, width]: gradients of the scores */
    const ses_explain_taker *taker;
} ses_explain_pass;

bool ses_explain_run(ses_explain *x, const ses_explain_pass *p, ses_err *e);
/* Raw logits of the original input: the rows of the output named, all of them. */
const ses_real *ses_explain_logits(ses_explain *x, const char *output, int64_t *rows, int64_t *cols,
                                   ses_err *e);
/* Sides that have token vectors; the second one may be an echo. */
int ses_explain_vector_sides(const ses_explain *x);
int64_t ses_explain_vectors(const ses_explain *x, int side); /* number of token vectors */
/* Adds the values of an echoed decoder input to the source's tokens. */
void ses_explain_fold_echo(ses_explain *x, double *echo);
/* Token vectors of the original input, or of these ids. */
bool ses_explain_embed(ses_explain *x, const ses_explain_variant *v, ses_real *out[SES_EXPLAIN_SIDES],
                       ses_err *e);

/* ---- explain_units.c: pieces, words or n-grams of words ---- */

typedef struct ses_explain_unit {
    int side;
    int64_t begin, end; /* tokens */
} ses_explain_unit;

/* All units of the input without special tokens, in order. */
const ses_explain_unit *ses_explain_units(ses_explain *x, size_t *n, ses_err *e);
/* Values of units to tokens: shared equally; tokens of several units get the mean. */
void ses_explain_spread(ses_explain *x, const ses_explain_unit *u, const double *value, size_t n);
/* The token that replaces removed tokens: mask, or the best substitute. *role: its name. */
int32_t ses_explain_filler(const ses_explain *x, const char **role);
/* The token of --baseline; -1: the tokenizer has none. */
int32_t ses_explain_baseline(const ses_explain *x);

/* ---- explain_report.c, explain_influence.c ---- */

/* A word, or a special token, with the sum of the values of its tokens. */
typedef struct ses_explain_word {
    const char *name;
    double value;
    int side;
    int64_t begin, end; /* tokens */
} ses_explain_word;

/* Words of both sides with these values; NULL: x->value. Returns their number, at most the tokens'. */
size_t ses_explain_words(ses_explain *x, double *const value[SES_EXPLAIN_SIDES], ses_explain_word *w);
void ses_explain_put_report(ses_explain *x, const char *method, const char *description);
/* explain_matrix.c: all columns of a target text. */
void ses_explain_put_matrix(ses_explain *x, const char *method, const char *description);
bool ses_explain_influence(ses_explain *x, ses_err *e);

#endif
