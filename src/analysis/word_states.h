/* Hidden states of a corpus: texts in, rows [rows, width] of the chosen layers out, batch after batch.
 *
 * A row is a word (the mean of its tokens, or its first token), a token, or a whole text. Texts are read in
 * order, in large batches; one longer than the model runs in overlapping windows, and each of its tokens has
 * the state of the window in which it has the most context. Only one batch is in memory: to read the states
 * layer by layer afterwards, keep them in a ses_state_spool (state_spool.h).
 *
 * Layer 0 is the embeddings, layer N the output of the N-th layer (the last one: last_hidden_state), as in
 * `sesame features`. Encoder-decoders: the states of the encoder, or of the decoder if it is asked for, which
 * then reads the start token and the text, and the encoder the same text or a source of its own; the state of
 * a token is that of the position that reads it.
 *
 *     static bool take(void *ctx, const ses_state_batch *b, ses_err *e)
 *     {
 *         for (size_t i = 0; i < b->rows; i++) use(b->row[i].text, b->x[0] + i * b->width);
 *         return true;
 *     }
 *     int64_t layers[] = { 0, 6, 12 };
 *     ses_word_states_options o = { .layers = layers, .n_layers = 3 };
 *     ok = ses_word_states_run(model, tokenizer, texts, n_texts, &o, take, &mine, e);
 *
 * Threads: a call uses the threads of the model's device; model and tokenizer are only read. */
#ifndef SES_ANALYSIS_WORD_STATES_H
#define SES_ANALYSIS_WORD_STATES_H

#include "sesame/model.h"
#include "sesame/tokenizer.h"

typedef enum {
    /* One row per word. Of a text given as words: exactly one per word, in order; a word without tokens has a
     * row of zeros. Of a text given as a string: one per word of the pre-tokenizer. */
    SES_STATES_OF_WORDS,
    SES_STATES_OF_TOKENS,  /* one row per token, without special tokens */
    SES_STATES_TEXT_MEAN,  /* one row per text: mean of all tokens, with special tokens, as features */
    SES_STATES_TEXT_FIRST, /* one row per text: the first position ([CLS] of BERT) */
    SES_STATES_TEXT_LAST   /* one row per text: the last position */
} ses_state_unit;

typedef struct ses_word_states_options {
    ses_state_unit unit;
    bool first_piece; /* words: the first token instead of the mean */
    bool decoder;     /* encoder-decoders: states of the decoder; the model must have one (no_head not set) */
    const ses_input *source; /* decoder: text of the encoder for each text; NULL: the same texts */
    const int64_t *layers;   /* [n_layers], 0 .. ses_word_states_depth */
    size_t n_layers;
    int64_t window;       /* tokens of a window; 0: the model's maximum */
    int64_t batch_tokens; /* tokens of a forward pass; 0: 1024 */
} ses_word_states_options;

typedef struct ses_state_row {
    size_t text;    /* index among the texts */
    int32_t index;  /* words: the word's number in its text; tokens: the token's; texts: 0 */
    int32_t pieces; /* tokens in the row; 0: none, the row is zero */
    int32_t token;  /* id of the first of them */
    /* Bytes of the text (of its word, if the text was given as words) that the row covers. */
    ses_offset bytes;
} ses_state_row;

/* The rows of whole texts first_text .. first_text + texts - 1; all pointers are valid during the call. */
typedef struct ses_state_batch {
    size_t first_text, texts;
    const size_t *cu_rows; /* [texts + 1], from 0: rows of each text */
    size_t windowed;       /* texts of the batch that are longer than the model and ran in several windows */
    size_t rows, width;
    const ses_state_row *row; /* [rows] */
    const float *const *x;    /* [n_layers]: rows [rows, width], in the order of options.layers */
} ses_state_batch;

/* Takes a batch. False with an error stops the run. */
typedef bool ses_state_fn(void *ctx, const ses_state_batch *b, ses_err *e);

/* Runs the model over n texts and passes their rows to fn. Fails with SES_EARG on a layer out of range, a
 * model without this stack, or a window too small for special tokens. */
bool ses_word_states_run(const ses_model *m, const ses_tokenizer *t, const ses_input *text, size_t n,
                         const ses_word_states_options *o, ses_state_fn *fn, void *ctx, ses_err *e);

/* Last layer that can be asked for: layers of the encoder (or the only stack), or of the decoder. -1: the
 * model has no decoder. */
int64_t ses_word_states_depth(const ses_model *m, bool decoder);

/* Columns of a hidden state. The model must have the decoder that is asked for. */
int64_t ses_word_states_width(const ses_model *m, bool decoder);

/* A model with the config of m and random weights, without heads unless it has a
 * decoder: the baseline of probes. m must outlive it;
 * free it with ses_model_free. */
ses_model *ses_model_random_twin(const ses_model *m, uint64_t seed, ses_err *e);

#endif
