/* Looking into a forward pass and changing it: tensors captured inside layers (ses_output_request), their
 * gradients, and edits of heads, neurons, hidden states and embeddings.
 *
 * Captured outputs, by the fields of ses_output_request; N is a layer, counted from 0:
 *   qkv              queries.N, keys.N, values.N   [tokens, heads * D], as they enter attention: after rotary
 *                                                  positions; queries of XLNet and Transformer-XL include
 *                                                  the content bias
 *   head_outputs     head_outputs.N     [tokens, heads * D]: input of attention's output projection
 *   ffn_activations  ffn_activations.N  [tokens, width]: input of the feed-forward block's last projection
 *                                       (gated: the product); of MobileBERT's blocks side by side
 *   embeddings       inputs_embeds, decoder_inputs_embeds  [tokens, width]: rows of the token table, before
 *                                       positions and segments are added
 *   head_inputs      head_inputs        [sequences, width]: input of the last linear layer of a classifier of
 *                                       sequences
 * Names start with "encoder_" or "decoder_", like the names of attentions; "cross_" is cross attention: its
 * keys and values have a row per token of the encoder; "query_" is the query stream of XLNet. Keys and values
 * of models with mems have a row for each mem and each token (SES_PER_KEY).
 *
 * A pass without captures and edits costs nothing more. In a pass that has some, plain products replace fused
 * and int8 products that hide these tensors, and layers compute all rows; a KV cache cannot be used.
 *
 * Ownership: edits and what they point to belong to the caller and must live until ses_model_forward returns.
 * Threads: as the tape. */
#ifndef SESAME_HOOKS_H
#define SESAME_HOOKS_H

#include "sesame/unstable/tape.h"

SES_BEGIN_DECLS

typedef struct ses_model ses_model;

/* A part of a model. */
typedef enum {
    SES_PART_MAIN,    /* the encoder, or the only stack of layers */
    SES_PART_DECODER, /* the decoder of an encoder-decoder */
    SES_PART_CROSS    /* its cross attention */
} ses_part;

enum { SES_ALL_LAYERS = -1 };

/* Multiplies the output of a head. */
typedef struct ses_head_edit {
    ses_part part;
    int64_t layer, head;
    double factor;
} ses_head_edit;

/* Sets column `neuron` of ffn_activations.N for all tokens. */
typedef struct ses_neuron_edit {
    ses_part part;
    int64_t layer, neuron;
    double value;
} ses_neuron_edit;

/* Replaces a row of hidden_states.N: `layer` 0 is the input of the first layer, the number of layers the
 * output of the last (after the final norm, if the model has one). */
typedef struct ses_hidden_edit {
    ses_part part;
    int64_t layer, row; /* row: token of the batch, or of the decoder's input */
    const ses_real *vector;
} ses_hidden_edit;

/* Multiplies a row of values.N in all heads. */
typedef struct ses_value_edit {
    ses_part part;
    int64_t layer; /* SES_ALL_LAYERS: every one */
    int64_t row;   /* token of the batch (SES_PART_CROSS: of the encoder), or of the decoder's input */
    double factor;
} ses_value_edit;

typedef struct ses_edits {
    const ses_head_edit *heads;
    const ses_neuron_edit *neurons;
    const ses_hidden_edit *hidden;
    const ses_value_edit *values;
    size_t n_heads, n_neurons, n_hidden, n_values;
    /* all rows of these outputs; NULL: computed from the ids */
    const ses_real *inputs_embeds, *decoder_inputs_embeds;
} ses_edits;

/* Copies the gradient that ses_backward computed for a captured tensor (ses_output_request
 * .capture_gradients) to host, which has ses_count(x) elements; zeros if the loss does not depend on it.
 * False: x is NULL, requires no gradient, or the tape has failed. */
bool ses_tape_read_grad(ses_tape *t, const ses_tensor *x, ses_real *host);

/* Layers, heads of a layer, neurons of the widest layer of a part; 0: the model has no such part. */
int64_t ses_model_part_layers(const ses_model *m, ses_part part);
int64_t ses_model_part_heads(const ses_model *m, ses_part part, int64_t layer);
int64_t ses_model_part_neurons(const ses_model *m, ses_part part);
/* Neurons of one layer: layers of a pruned model have different widths. */
int64_t ses_model_layer_neurons(const ses_model *m, ses_part part, int64_t layer);

/* The factor of the products of queries and keys before the softmax. */
double ses_model_attention_scale(const ses_model *m, ses_part part, int64_t layer);

SES_END_DECLS

#endif
