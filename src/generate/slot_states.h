/* States of earlier tokens, one for each slot, of models without a KV cache: Transformer-XL's mems, the state
 * of recurrent layers. A kind (slot_kinds.def) turns a pass's new tokens into a batch with these states and
 * stores the states that the pass returns.
 *
 * Ownership: a store owns its states; slots share a state until it is replaced. One thread. */
#ifndef SES_GENERATE_SLOT_STATES_H
#define SES_GENERATE_SLOT_STATES_H

#include "base/arena.h"
#include "run/batch_builder.h"

struct ses_config;

/* The first member of a kind's states. */
typedef struct ses_slot_state {
    int64_t refcount;
    struct ses_slot_state *shared; /* a state that this one refers to; NULL: none */
} ses_slot_state;

typedef struct ses_slot_states ses_slot_states;

typedef struct ses_slot_kind {
    bool (*applies)(const ses_model *m);
    bool (*check)(const ses_model *m, ses_err *e); /* NULL: every model can generate */
    bool mems, rnn_state;                          /* the outputs to request */
    /* Makes s->batch from the new tokens. */
    bool (*begin_pass)(ses_slot_states *s, const ses_batch *new_tokens, ses_err *e);
    /* Stores the states of the sequences of s->batch. */
    bool (*end_pass)(ses_slot_states *s, ses_tape *tape, const ses_outputs *out, ses_err *e);
} ses_slot_kind;

struct ses_slot_states {
    const ses_slot_kind *kind;
    const ses_model *model;
    int64_t slots;
    ses_slot_state **state; /* [slots]; NULL: empty */
    ses_arena work;         /* memory of the current pass */
    ses_batch_builder in;
    ses_batch batch; /* the current pass */
};

#define SES_SLOT_KIND(name) extern const ses_slot_kind ses_slot_kind_##name;
#include "slot_kinds.def"
#undef SES_SLOT_KIND

/* The kind of a model's states; NULL: it has a KV cache. */
const ses_slot_kind *ses_slot_kind_of(const ses_model *m);

ses_slot_states *ses_slot_states_new(const ses_model *m, int64_t slots, ses_err *e);
void ses_slot_states_free(ses_slot_states *s);
/* A pass takes this batch, requests the outputs of its kind and ends with end_pass. NULL: failed. */
const ses_batch *ses_slot_states_begin_pass(ses_slot_states *s, const ses_batch *new_tokens, ses_err *e);
bool ses_slot_states_end_pass(ses_slot_states *s, ses_tape *tape, const ses_outputs *out, ses_err *e);
/* Copies slot from[i] to slot to[i] for all i < n at once. */
bool ses_slot_states_reorder(ses_slot_states *s, int64_t n, const int32_t *to, const int32_t *from,
                             ses_err *e);
void ses_slot_states_clear(ses_slot_states *s, int64_t slot);

/* ---- for kinds ---- */

/* Allocates a state of `size` bytes before n numbers; the caller owns its reference. */
void *ses_slot_state_new(size_t size, size_t n, ses_err *e);
ses_slot_state *ses_slot_state_ref(ses_slot_state *t); /* NULL stays NULL */
void ses_slot_state_release(ses_slot_state *t);
/* Replaces the state of a slot, and takes the caller's reference. */
void ses_slot_states_put(ses_slot_states *s, int64_t slot, ses_slot_state *t);
/* Output `name` on the host, in s->work; it must have n numbers. NULL: failed. */
const ses_real *ses_slot_states_read(ses_slot_states *s, ses_tape *tape, const ses_outputs *out,
                                     const char *name, int64_t n, ses_err *e);

#endif
