/* Running statistics of models (batch norm) in updates with lanes. A forward pass changes them, so they would
 * depend on the batches that a rank has seen. Instead, every lane starts with the statistics at the start of
 * the update, and the update ends with the mean of the lanes' statistics, added in the order of the
 * lanes: the same on all ranks, for any number of ranks.
 *
 * Vectors of role SES_PARAM_BUFFER count as such; constant ones keep their bits. Device, stores and
 * communicator are borrowed. One thread. */
#ifndef SES_TRAIN_LANE_STATISTICS_H
#define SES_TRAIN_LANE_STATISTICS_H

#include "comm/comm_impl.h"
#include "lane_tree.h"
#include "sesame/unstable/store.h"

typedef struct ses_lane_statistics {
    ses_comm *comm;
    ses_device *dev;
    ses_store *const *store;
    size_t n_stores;
    int64_t lanes;
    int64_t n;                    /* numbers per lane; 0: the models have no such vectors */
    int64_t max_lanes;            /* largest number of lanes of a rank */
    ses_real *start, *mine, *all; /* [n], [max_lanes, n], [ranks, max_lanes, n], on the host */
} ses_lane_statistics;

bool ses_lane_statistics_init(ses_lane_statistics *x, ses_comm *comm, ses_device *dev,
                              ses_store *const *store, size_t n_stores, int64_t lanes, ses_err *e);
void ses_lane_statistics_free(ses_lane_statistics *x);

/* An update: begin; before and after each lane of this rank, i counted from 0; end, with the number of lanes
 * of the update. */
void ses_lane_statistics_begin(ses_lane_statistics *x);
void ses_lane_statistics_before(ses_lane_statistics *x);
void ses_lane_statistics_after(ses_lane_statistics *x, int64_t i);
bool ses_lane_statistics_end(ses_lane_statistics *x, int64_t used, ses_err *e);

#endif
