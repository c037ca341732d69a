/* A case folder: a checkpoint, and transformers' results for it (golden.safetensors). transformers pads; here
 * the padded arrays become an unpadded batch, and outputs are compared at real tokens. A case owns its
 * arrays; one thread. */
#ifndef GOLDEN_CASE_H
#define GOLDEN_CASE_H

#include "base/arena.h"
#include "sesame/model.h"
#include "sesame/safetensors.h"

typedef struct golden_case {
    const char *name; /* name of the folder, without its path */
    const char *dir;
    ses_safetensors *golden;
    ses_arena mem;        /* arrays of the batch */
    int64_t rows, width;  /* the padded arrays are [rows, width] */
    const int32_t *index; /* [tokens]: index of a token in [rows, width] */
    int64_t target_width; /* width of the decoder's arrays, or number of predicted positions */
    /* Index of a target in [rows, target_width]; NULL: targets are a prefix. */
    const int32_t *target_index;
    int64_t mem_len;           /* mem tokens before each row */
    bool pads_at_end;          /* padding is at the ends of rows only */
    bool positions_count_pads; /* the batch's positions count padding */
    bool encoder_decoder;
    bool first_loss_only; /* only the first of two heads' losses was trained */
    bool lost_positions;  /* the checkpoint lacks the position table it was made with */
    ses_batch batch;
} golden_case;

bool golden_case_open(golden_case *c, const char *dir, ses_err *e);
void golden_case_free(golden_case *c);

/* A tensor of golden.safetensors as doubles (in the arena); NULL: none. */
const double *golden_values(golden_case *c, const char *name, int64_t *count, ses_err *e);

#endif
