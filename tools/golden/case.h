/* A case folder: a checkpoint, and what the reference library made of it (golden.safetensors).
 * The reference pads; here the padded arrays become an unpadded batch, and outputs are compared at real
 * positions. */
#ifndef GOLDEN_CASE_H
#define GOLDEN_CASE_H

#include "base/arena.h"
#include "sesame/model.h"
#include "sesame/safetensors.h"

typedef struct gold_case {
    const char *name; /* the folder's, without its path */
    const char *dir;
    ses_safetensors *gold;
    ses_arena mem;        /* the batch's arrays */
    int64_t rows, width;  /* the padded arrays are [rows, width] */
    const int32_t *place; /* [tokens]: where in [rows, width] a token stands */
    int64_t target_width; /* of the decoder's arrays, or of the places asked about */
    /* Where in [rows, target_width] a target stands; NULL: targets are a prefix. */
    const int32_t *target_place;
    int64_t memory;      /* tokens before each row */
    bool counted;        /* pads stand at the ends of rows only */
    bool by_place;       /* the batch's positions are places of the padded rows, pads counted */
    bool pair;           /* the model has an encoder and a decoder */
    bool one_of_two;     /* of two heads' losses the first alone was learned from */
    bool lost_positions; /* the checkpoint lacks the position table it was made with */
    ses_batch batch;
} gold_case;

bool gold_case_open(gold_case *c, const char *dir, ses_err *e);
void gold_case_free(gold_case *c);

/* A tensor of golden.safetensors as doubles (arena), or NULL when there is none. */
const double *gold_numbers(gold_case *c, const char *name, int64_t *count, ses_err *e);

#endif
