/* Captures and edits inside layers (sesame/hooks.h). Layers call these functions only if p->hooked is set;
 * the embeddings check p->hooks_embeds.
 *
 * Ownership: everything is on the tape. Threads: as the tape. */
#ifndef SES_NN_LAYER_HOOKS_H
#define SES_NN_LAYER_HOOKS_H

#include "nn.h"

/* Sets p->hooked, p->captures and p->hooks_embeds; request is set. */
void ses_hooks_begin(ses_forward_ctx *p);

/* The site of layer i's self-attention and feed-forward block. */
ses_layer_site ses_layer_site_of(const ses_stack *k, int i);

/* Splits fused or interleaved inputs into queries, keys and values, and sets *layout. */
void ses_hook_split(ses_forward_ctx *p, ses_attention_inputs *in, ses_qkv_layout *layout, int64_t heads);
/* The same, then applies the edits of values and captures all three. */
void ses_hook_qkv(ses_forward_ctx *p, const ses_layer_site *at, ses_attention_inputs *in,
                  ses_qkv_layout *layout);
/* Each function below returns x, or its replacement. */
ses_tensor *ses_hook_head_outputs(ses_forward_ctx *p, const ses_layer_site *at, ses_tensor *x);
ses_tensor *ses_hook_ffn(ses_forward_ctx *p, const ses_layer_site *at, ses_tensor *x);
/* Block `block` of several in one layer; n blocks are captured together in the end. */
ses_tensor *ses_hook_ffn_block(ses_forward_ctx *p, const ses_layer_site *at, int64_t block, ses_tensor *x);
void ses_hook_ffn_blocks(ses_forward_ctx *p, const ses_layer_site *at, int64_t n, ses_tensor *const x[]);
ses_tensor *ses_hook_hidden(ses_forward_ctx *p, const ses_layer_site *at, ses_tensor *x);
/* x: the rows of the token table, or NULL if they are not needed for the result. */
ses_tensor *ses_hook_embeds(ses_forward_ctx *p, const ses_seqs *q, ses_tensor *x);

#endif
