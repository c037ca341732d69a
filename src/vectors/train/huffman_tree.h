/* Huffman tree of a vocabulary, for hierarchical softmax. */
#ifndef SES_VECTORS_HUFFMAN_TREE_H
#define SES_VECTORS_HUFFMAN_TREE_H

#include "vectors/word_vocab.h"

enum { SES_HUFFMAN_MAX_CODE = 64 };

/* The path of word i from the root is node[start[i]] .. node[start[i + 1] - 1]: twice the number of an inner
 * node (0 .. n - 2), plus 1 if the path takes its second branch (fastText stores it so). */
typedef struct ses_huffman_tree {
    int64_t *start;
    int32_t *node;
} ses_huffman_tree;

/* *t must be zeroed; words must be sorted by falling count. Free it even if this fails. */
bool ses_huffman_tree_build(ses_huffman_tree *t, const ses_word_vocab *v, ses_err *e);
void ses_huffman_tree_free(ses_huffman_tree *t);

#endif
