/* The decoder's input: the labels (the text that it writes), shifted right by one position. It begins with
 * the start token of the config, or with the last label (mBART: the language). Only generation begins
 * otherwise, as its options specify (generate/generate_check.c). */
#ifndef SES_DECODER_INPUT_H
#define SES_DECODER_INPUT_H

#include "config.h"
#include "sesame/base.h"

/* The token before n labels: the start token, or the last label that is not ignored. Zero labels: the start
 * token. Fails if the config lacks a start token that is needed. */
bool ses_decoder_first(const ses_config *c, const int32_t *label, size_t n, int32_t *first, ses_err *e);

/* The labels shifted right: to[n] is the first token and the labels without the last one. */
bool ses_decoder_shift(const ses_config *c, const int32_t *label, size_t n, int32_t *to, ses_err *e);

/* Is the last label the first token? It then differs between texts. */
bool ses_decoder_wraps(const ses_config *c);

/* The position of n shifted labels that reads label i; -1: none reads it. */
int64_t ses_decoder_position(const ses_config *c, int64_t i, int64_t n);

/* A token for a decoder that has to run although nothing of it is read. */
int32_t ses_decoder_filler(const ses_config *c);

#endif
