/* Attention that reaches back (Transformer-XL, Dai et al. 2019): keys are a memory of earlier tokens and then
 * the batch's own; scores are by content and by distance, of which the sines are projected. */
#ifndef SES_NN_RECALL_H
#define SES_NN_RECALL_H

#include "nn.h"

/* What all layers see of the keys, sequence by sequence. */
typedef struct ses_recall {
    ses_pass *p;
    int64_t blank; /* zeros that stand for the memory of each sequence where a batch brings none */
    const int32_t *host_cu;
    ses_tensor *cu, *label;          /* offsets; segments, or NULL where the batch has none */
    ses_tensor *mem_rows, *own_rows; /* where each comes from: mem_rows NULL: no memory is given */
    int64_t longest, tokens;
    ses_tensor *sines, *at; /* of distances, and the row of them for each */
} ses_recall;

/* p and blank are set. False: the tape has failed. ahead: keys may stand behind their queries too. */
bool ses_recall_begin(ses_recall *r, bool ahead);
int64_t ses_recall_length(const ses_recall *r, int64_t s); /* of the memory of sequence s */
/* What keys of layer i are made of, from h, its input; and what a next batch may remember of them. */
ses_tensor *ses_recall_with(const ses_recall *r, ses_tensor *h, int i);
void ses_recall_note(const ses_recall *r, ses_tensor *all, int i);

/* One layer's attention. Biases are [heads, D]: what a query is worth on its own. */
typedef struct ses_recall_attend {
    const ses_seqs *seqs; /* of queries */
    ses_tensor *place;    /* among the keys, where queries are not the last of them */
    ses_tensor *mask;     /* sequence after sequence [queries, keys], added; NULL: all is seen */
    int64_t pairs;        /* of queries and keys */
    ses_tensor *query, *key, *value, *distance; /* distance: the sines, projected */
    ses_tensor *content_bias, *distance_bias, *segment_bias;
    ses_tensor *segment; /* [2, heads * D]: one segment, two; NULL: not told apart */
    int64_t turned;      /* sequences from this one on count distances the other way; 0: none does */
} ses_recall_attend;

ses_tensor *ses_recall_run(const ses_recall *r, const ses_recall_attend *a, ses_tensor **probs);

#endif
