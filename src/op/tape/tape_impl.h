/* The tape's internals, for tape.c and graph_replay.c. Ownership and threads: as sesame/unstable/tape.h. */
#ifndef SES_OP_TAPE_IMPL_H
#define SES_OP_TAPE_IMPL_H

#include "base/arena.h"
#include "op/op.h"

struct ses_tape {
    ses_device *dev;
    ses_tape_options opt;
    ses_arena mem;           /* activations and gradients, on the device */
    ses_arena recompute_mem; /* activations of a recomputed segment, see ses_recompute */
    ses_arena *acts;         /* the arena that currently receives activations */
    ses_arena tmp;           /* scratch of one op call, on the device */
    ses_arena host;          /* tensors, nodes, attributes */
    struct ses_free_buffer *free_buffers;
    ses_node *last;              /* last recorded node */
    const ses_tensor *i8_source; /* see ses_tape_cache_i8 */
    const ses_i8_rows *i8_rows;
    int64_t nodes;               /* nodes made since the last reset */
    const ses_tape_watch *watch; /* see ses_tape_set_watch; NULL: none */
    bool in_backward;
    uint32_t site;                  /* next RNG site: number of calls that drew random numbers in this step */
    struct ses_graph_cache *graphs; /* see ses_graph_replay; NULL: none yet */
    double flops;                   /* see ses_tape_add_flops */
    ses_err err;
};

void ses_graph_cache_free(ses_tape *t);

#endif
