/* Running statistics in updates with lanes. */
#include "lane_statistics.h"

#include "base/alloc.h"

/* Copies all statistics to the host (out) or back; host NULL: only counts them. */
static int64_t copy(const ses_lane_statistics *x, ses_real *host, bool out)
{
    int64_t n = 0;
    for (size_t s = 0; s < x->n_stores; s++)
        for (size_t i = 0; i < ses_store_count(x->store[s]); i++) {
            const ses_param *p = ses_store_at(x->store[s], i);
            int64_t count = ses_count(p->tensor);
            size_t bytes = (size_t)count * sizeof *host;
            if (p->role != SES_PARAM_BUFFER || ses_rank(p->tensor) != 1) continue;
            if (host && out)
                x->dev->mem->download(x->dev, host + n, ses_master_data(p->tensor), bytes);
            else if (host)
                x->dev->mem->upload(x->dev, ses_master_data(p->tensor), host + n, bytes);
            n += count;
        }
    return n;
}

bool ses_lane_statistics_init(ses_lane_statistics *x, ses_comm *comm, ses_device *dev,
                              ses_store *const *store, size_t n_stores, int64_t lanes, ses_err *e)
{
    int64_t ranks = ses_comm_size(comm);
    *x = (ses_lane_statistics){
        .comm = comm, .dev = dev, .store = store, .n_stores = n_stores, .lanes = lanes
    };
    x->max_lanes = (lanes + ranks - 1) / ranks;
    if (!(x->n = copy(x, NULL, true))) return true;
    size_t n = (size_t)x->n, each = (size_t)x->max_lanes;
    x->start = ses_alloc_array(n, sizeof *x->start, e);
    x->mine = x->start ? ses_alloc_array(n * each, sizeof *x->mine, e) : NULL;
    x->all = x->mine ? ses_alloc_array(n * each * (size_t)ranks, sizeof *x->all, e) : NULL;
    return x->all != NULL;
}

void ses_lane_statistics_free(ses_lane_statistics *x)
{
    ses_free(x->start);
    ses_free(x->mine);
    ses_free(x->all);
}

void ses_lane_statistics_begin(ses_lane_statistics *x) { copy(x, x->start, true); }
void ses_lane_statistics_before(ses_lane_statistics *x) { copy(x, x->start, false); }

void ses_lane_statistics_after(ses_lane_statistics *x, int64_t i)
{
    if (x->n) copy(x, x->mine + i * x->n, true);
}

bool ses_lane_statistics_end(ses_lane_statistics *x, int64_t used, ses_err *e)
{
    int ranks = ses_comm_size(x->comm);
    if (!x->n) return true;
    size_t bytes = (size_t)(x->max_lanes * x->n) * sizeof *x->mine;
    if (!ses_comm_allgather_equal(x->comm, x->mine, bytes, x->all, e)) return false;
    for (int64_t j = 0; j < x->n; j++) {
        double sum = 0;
        for (int r = 0; r < ranks; r++) {
            ses_lane_node own = ses_lanes_of_rank(x->lanes, r, ranks);
            for (int64_t i = own.begin; i < own.end && i < used; i++)
                sum += (double)x->all[(r * x->max_lanes + i - own.begin) * x->n + j];
        }
        x->start[j] = (ses_real)(sum / (double)used);
    }
    copy(x, x->start, false);
    return true;
}
