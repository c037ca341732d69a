/* Transformer-XL attention (Dai et al. 2019): keys are mems of earlier tokens, then the batch's own; scores
 * depend on content and on relative distance (projected sinusoids). Ownership: everything is on the tape.
 * Threads: as the tape. */
#ifndef SES_NN_RECALL_H
#define SES_NN_RECALL_H

#include "nn.h"

/* The keys of all layers, sequence by sequence. */
typedef struct ses_xl_keys {
    ses_forward_ctx *p;
    int64_t zero_mem_len; /* number of zero mems per sequence for a batch without mems */
    const int32_t *host_cu_seqlens;
    ses_tensor *cu_seqlens, *label; /* offsets; segments, or NULL */
    /* source row of each key in the mems, in the batch; mem_rows NULL: no mems */
    ses_tensor *mem_rows, *batch_rows;
    int64_t max_seqlen, tokens;
    ses_tensor *sines, *dist_to_row; /* sinusoids of the distances, and the row of each distance */
} ses_xl_keys;

/* Sets up the keys; p and zero_mem_len are set. False: the tape has failed. bidirectional: keys may follow
 * their queries. */
bool ses_xl_keys_begin(ses_xl_keys *r, bool bidirectional);
int64_t ses_xl_mem_len(const ses_xl_keys *r, int64_t s); /* number of mems of sequence s */
/* Input of the keys of layer i: mems and h, its hidden states; and the output "mems.i" for the next batch. */
ses_tensor *ses_xl_concat_mems(const ses_xl_keys *r, ses_tensor *h, int i);
void ses_xl_output_mems(const ses_xl_keys *r, ses_tensor *keys, int i);

/* Attention of one layer. Biases [heads, D] are added to the queries. */
typedef struct ses_xl_attention_inputs {
    const ses_seqs *seqs; /* the queries' sequences */
    ses_tensor *q_pos;    /* positions among the keys; NULL: queries are the last keys */
    ses_tensor *mask;     /* [queries, keys] of each sequence, added to the scores; NULL: none */
    int64_t pairs;        /* sum over sequences of queries times keys */
    ses_tensor *query, *key, *value, *distance; /* distance: projected sinusoids */
    ses_tensor *content_bias, *distance_bias, *segment_bias;
    ses_tensor *segment;   /* [2, heads * D]: same segment, other segment; NULL: not used */
    ses_layer_site site;   /* for captures and edits */
    int64_t reversed_from; /* sequences from this one on are reversed; 0: none */
} ses_xl_attention_inputs;

ses_tensor *ses_xl_attention(const ses_xl_keys *r, const ses_xl_attention_inputs *a, ses_tensor **probs);

#endif
