/* A batch: the input of a model. Sequences are concatenated without padding; sequence s is tokens
 * cu_seqlens[s] .. cu_seqlens[s + 1] - 1.
 *
 * Ownership: all arrays belong to the caller, are on the host, and must stay unchanged during the forward
 * pass (on a recording tape with recompute: until the tape is reset). NULL: absent.
 * Threads: a batch is plain data; several threads may read one batch, unless it uses a cache. */
#ifndef SESAME_BATCH_H
#define SESAME_BATCH_H

#include "sesame/types.h"

SES_BEGIN_DECLS

struct ses_cache;
struct ses_word_cache;

typedef struct ses_batch {
    int64_t seqs, tokens;
    const int32_t *cu_seqlens; /* [seqs + 1], cumulative lengths from 0 to tokens */
    const int32_t *ids;        /* [tokens] */
    const int32_t *segments;   /* [tokens], token type ids (XLM: language ids); NULL: all 0 */
    const int32_t *positions;  /* [tokens]; NULL: 0, 1, ... in each sequence */
    int64_t choices;           /* multiple choice: consecutive sequences per question; 0: none */
    /* [seqs]: prefix length. The first prefix_len tokens of a sequence are visible to all its tokens, later
     * tokens are causal (prefix LM); -1: right to left. NULL: the model's own attention mask. */
    const int32_t *prefix_len;
    /* [seqs]: position of the token that scores a choice (GPT-2 double heads), or of the CLS token (question
     * answering by beam search); NULL: the last token. */
    const int32_t *choice_positions;
    /* [tokens]: 0 if a token cannot begin or end an answer (question answering by beam search); NULL: all
     * can. */
    const int32_t *answer_mask;

    /* Words outside the vocabulary, for models that read characters (ELMo): id vocab_size + i is row i of
     * extra_word_chars, [n_extra_words, characters of a word]. */
    const int16_t *extra_word_chars;
    int64_t n_extra_words;
    /* keeps the vectors of words between batches, in inference on a CPU; NULL: nothing is kept */
    struct ses_word_cache *word_cache;

    /* Vectors beside tokens (MMBT). modal_rows: row of modal_vectors that replaces the token's vector; -1:
     * the token's own. NULL: tokens only. */
    const int32_t *modal_rows;     /* [tokens] */
    const ses_real *modal_vectors; /* [n_modal, width] */
    int64_t n_modal;
    /* Bytes of each token's word (taggers), and their cumulative numbers [tokens + 1]. */
    const int32_t *word_chars, *word_char_cu;

    /* Input of the decoder of an encoder-decoder. target_ids NULL: the labels, shifted right. */
    const int32_t *target_cu_seqlens; /* [seqs + 1] */
    const int32_t *target_ids;
    const int32_t *target_positions; /* [target tokens]; NULL: 0, 1, ... */

    /* Permutation LMs (XLNet). */
    const uint8_t *perm_mask; /* [len, len] of each sequence: 1 if query i must not attend to key j */
    /* Positions to predict, in each sequence target_cu_seqlens[s + 1] - target_cu_seqlens[s] of them;
     * target_ids is NULL, and labels are [targets]. */
    const int32_t *predict_positions;
    const int32_t *mem_cu_seqlens; /* [seqs + 1]: tokens in the mems of each sequence */
    const ses_real *mems;          /* [layers, mem tokens, hidden]: earlier inputs of each layer */

    /* [seqs, ses_model_state_size()]: state of a recurrent model after the tokens before these, from the
     * output "rnn_state" of an earlier batch; NULL: zeros. It gets no gradient. */
    const ses_real *rnn_state;
    /* Recurrent models in training: gradients pass through the state of at most `window` tokens (truncated
     * backpropagation through time). 0: the model's own setting. */
    int64_t window;

    /* [tokens, hidden]: the encoder's output for cu_seqlens, from the output "encoder_last_hidden_state" of
     * an earlier batch; ids are NULL. NULL: the encoder reads ids. */
    const ses_real *encoder_states;

    /* Cached sequences: see sesame/cache.h. */
    struct ses_cache *cache;
    const int32_t *slots; /* [seqs], all different */

    /* Labels; SES_IGNORE_INDEX: not part of the loss. */
    const int32_t *labels; /* [tokens], [seqs], [questions] or [target tokens], depending on the head */
    /* [seqs]: next sentence, sentence order; 1 if a question has no answer (beam search); [questions]: the
     * correct choice of double heads. */
    const int32_t *pair_labels;
    const int32_t *starts, *ends; /* [seqs]: first and last token of an answer, counted in its sequence */
    const ses_real *targets;      /* [seqs, labels]: regression, multi-label classification */
} ses_batch;

SES_END_DECLS

#endif
