/* A BPE model, shared by its stage and the fast paths. On the tokenizer's arena, read-only. */
#ifndef SES_TEXT_BPE_H
#define SES_TEXT_BPE_H

#include "merges.h"
#include "text/stage.h"

enum { SES_BPE_DIRECT = 512 }; /* covers all characters of byte-level BPE */

typedef struct ses_bpe {
    ses_vocab vocab;
    ses_merges merges;
    ses_string prefix, suffix, unk; /* p NULL: not set */
    int32_t unk_id;                 /* -1: not set, or not in the vocabulary */
    bool fuse_unk, byte_fallback, ignore_merges;
    /* ids from here on are intermediate merge results only, unknown in the output; -1: none */
    int64_t unk_from;
    bool plain;                     /* neither prefix nor suffix: characters are looked up directly */
    int32_t direct[SES_BPE_DIRECT]; /* if plain: ids of the first code points; -1: not in the vocabulary */
    int32_t byte[256];              /* ids of <0x00> to <0xFF>, -1: none */
} ses_bpe;

#endif
