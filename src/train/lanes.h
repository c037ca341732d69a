/* The gradient of an update: the sums of its lanes, added by the tree of lane_tree.h, on one or several
 * ranks.
 *
 * A rank computes consecutive lanes, one after another, in the stores' gradient buffers. It adds as far as
 * the tree allows and keeps at most log2(lanes) + 1 partial sums. Then the ranks exchange partial sums: each
 * receives the sums of its own elements (shards.h) and adds them, again by the tree. The number of ranks
 * decides who adds; the tree decides the order.
 *
 * Partial sums are sent in buckets of a fixed number of elements. During a watched backward pass
 * (ses_lanes_watch) a bucket is sent as soon as the last lane of the rank has completed it. All ranks send
 * the buckets in one order: that in which the first update of rank 0 completed them.
 *
 * The communicator, device and stores are borrowed. One thread. */
#ifndef SES_TRAIN_LANES_H
#define SES_TRAIN_LANES_H

#include "comm/comm_impl.h"
#include "lane_tree.h"
#include "op/op.h"
#include "shards.h"

typedef struct ses_lanes ses_lanes;

typedef struct ses_lanes_options {
    ses_comm *comm; /* NULL: one rank */
    ses_device *dev;
    ses_store *const *store; /* [n_stores], open for training; each is sharded on its own */
    size_t n_stores;
    int64_t lanes;
    int64_t bucket;     /* elements; 0: 6,553,600 */
    bool whole_tensors; /* a parameter has one owner */
    bool bf16;          /* partial sums are rounded to bf16 before they are sent */
    bool no_overlap;    /* ses_lanes_watch returns NULL */
} ses_lanes_options;

/* NULL: out of memory, or fewer lanes than ranks. */
ses_lanes *ses_lanes_new(const ses_lanes_options *o, ses_err *e);
void ses_lanes_free(ses_lanes *l);
const ses_shards *ses_lanes_shards(const ses_lanes *l, size_t store);

/* An update of `used` lanes: begin, add each lane of this rank in order, end. The gradient buffers contain a
 * lane's sum when it is added and must be zeroed before the next lane. After end they contain the sum of all
 * lanes in the elements that this rank owns, and nothing useful in the others. */
bool ses_lanes_begin(ses_lanes *l, int64_t used, ses_err *e);
ses_lane_node ses_lanes_own(const ses_lanes *l); /* lanes of this rank; may be empty */
bool ses_lanes_add(ses_lanes *l, int64_t lane, ses_err *e);
bool ses_lanes_end(ses_lanes *l, ses_err *e);

/* For the last backward pass of a lane; NULL: it is not the rank's last lane, or nothing can be sent during
 * it. */
const ses_tape_watch *ses_lanes_watch(ses_lanes *l, int64_t lane);

/* The norm of the gradient in the buffers after ses_lanes_end; equal on all ranks. */
bool ses_lanes_grad_norm(ses_lanes *l, double *norm, ses_err *e);

/* Sends the values of a store that each rank owns to all ranks. copies: the bf16 copies, and the f32 values
 * that a forward pass may read on a device with bf16 activations; else all f32 values. */
bool ses_lanes_gather_values(ses_lanes *l, size_t store, bool copies, ses_err *e);

/* Are the f32 values of p sent along with the copies? Products and lookups read copies alone. Other ops may
 * read f32 (ses_op.f32_inputs) of tensors of any shape: norms, biases (XLNet's biases of queries are
 * [heads, D]), the transitions of a CRF. */
bool ses_lanes_sends_f32(const ses_param *p);

#endif
