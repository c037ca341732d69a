/* Attention that reaches back (Transformer-XL, Dai et al. 2019): keys are a memory of earlier tokens and then
 * the batch's own; scores are by content and by distance, of which the sines are projected. */
#ifndef SES_NN_RECALL_H
#define SES_NN_RECALL_H

#include "nn.h"

/* What all layers see of the keys, sequence by sequence. */
typedef struct ses_xl_keys {
    ses_forward_ctx *p;
    int64_t zero_mem_len; /* zeros that stand for the memory of each sequence where a batch brings none */
    const int32_t *host_cu_seqlens;
    ses_tensor *cu_seqlens, *label;    /* offsets; segments, or NULL where the batch has none */
    ses_tensor *mem_rows, *batch_rows; /* where each comes from: mem_rows NULL: no memory is given */
    int64_t max_seqlen, tokens;
    ses_tensor *sines, *dist_to_row; /* of distances, and the row of them for each */
} ses_xl_keys;

/* p and blank are set. False: the tape has failed. ahead: keys may stand behind their queries too. */
bool ses_xl_keys_begin(ses_xl_keys *r, bool ahead);
int64_t ses_xl_mem_len(const ses_xl_keys *r, int64_t s); /* of the memory of sequence s */
/* What keys of layer i are made of, from h, its input; and what a next batch may remember of them. */
ses_tensor *ses_xl_concat_mems(const ses_xl_keys *r, ses_tensor *h, int i);
void ses_xl_output_mems(const ses_xl_keys *r, ses_tensor *all, int i);

/* One layer's attention. Biases are [heads, D]: what a query is worth on its own. */
typedef struct ses_xl_attention_inputs {
    const ses_seqs *seqs; /* of queries */
    ses_tensor *q_pos;    /* among the keys, where queries are not the last of them */
    ses_tensor *mask;     /* sequence after sequence [queries, keys], added; NULL: all is seen */
    int64_t pairs;        /* of queries and keys */
    ses_tensor *query, *key, *value, *distance; /* distance: the sines, projected */
    ses_tensor *content_bias, *distance_bias, *segment_bias;
    ses_tensor *segment;   /* [2, heads * D]: one segment, two; NULL: not told apart */
    int64_t reversed_from; /* sequences from this one on count distances the other way; 0: none does */
} ses_xl_attention_inputs;

ses_tensor *ses_xl_attention(const ses_xl_keys *r, const ses_xl_attention_inputs *a, ses_tensor **probs);

#endif
