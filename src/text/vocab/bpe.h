/* A BPE model, for its own stage and for the fast paths that know it. */
#ifndef SES_TEXT_BPE_H
#define SES_TEXT_BPE_H

#include "merges.h"
#include "text/stage.h"

enum { SES_BPE_DIRECT = 512 }; /* covers the characters that stand for bytes */

typedef struct ses_bpe {
    ses_vocab vocab;
    ses_merges merges;
    ses_string prefix, suffix, unk; /* p NULL: not set */
    int32_t unk_id;                 /* -1: not set, or not in the vocabulary */
    bool fuse_unk, byte_fallback, ignore_merges;
    int64_t unk_from; /* ids from here on are steps of merging only, and unknown at its end; -1: none are */
    bool plain;       /* no prefix, no suffix: a character is looked up as it is */
    int32_t direct[SES_BPE_DIRECT]; /* ids of the first characters of Unicode, -1: none; when plain */
    int32_t byte[256];              /* ids of <0x00> to <0xFF>, -1: none */
} ses_bpe;

#endif
