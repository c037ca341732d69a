/* A step of a trainer with lanes: an update, of which each rank computes its lanes. */
#include "base/alloc.h"
#include "train/optim/optim_kind.h"
#include "trainer_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The message of a rank in an update: a header and the results of its batches, `bytes` bytes in all. */
typedef struct rank_header {
    int64_t wants_stop;
} rank_header;

typedef struct ses_update_rows {
    size_t bytes;
    char *mine, *all;
} ses_update_rows;

static ses_batch_row *rows_of(char *rank) { return (ses_batch_row *)(void *)(rank + sizeof(rank_header)); }

static bool open_rows(ses_trainer *t, ses_err *e)
{
    size_t lanes = ((size_t)t->o.lanes + (size_t)t->ranks - 1) / (size_t)t->ranks, batches, bytes;
    if (!ses_mul_size(lanes, (size_t)t->o.accumulate, &batches) ||
        !ses_mul_size(batches, sizeof(ses_batch_row), &bytes))
        return ses_fail(e, SES_EARG, "too many batches per update");
    if (!(t->rows = ses_alloc(sizeof *t->rows, e))) return false;
    t->rows->bytes = sizeof(rank_header) + bytes;
    return (t->rows->mine = ses_alloc_array(1, t->rows->bytes, e)) &&
           (t->rows->all = ses_alloc_array((size_t)t->ranks, t->rows->bytes, e));
}

/* Ranks that differ in these would compute something else, or wait for each other. */
static bool agree(const ses_trainer *t, ses_err *e)
{
    char text[160];
    snprintf(text, sizeof text,
             "%lld lanes of %lld batches, %lld updates, seed %llu, optimizer %s, gradients %s",
             (long long)t->o.lanes, (long long)t->o.accumulate, (long long)t->total_updates,
             (unsigned long long)t->o.seed, t->o.optim.name ? t->o.optim.name : "default",
             t->o.comm_bf16 ? "bf16" : "f32");
    return ses_comm_agree(t->o.comm, "run", text, e) &&
           ses_comm_agree(t->o.comm, "settings", t->settings, e) &&
           ses_comm_agree(t->o.comm, "training data", t->data_hash, e);
}

bool ses_trainer_open_lanes(ses_trainer *t, ses_err *e)
{
    const ses_optim_kind *kind = ses_optim_find(t->o.optim.name);
    ses_lanes_options o = { .comm = t->o.comm,
                            .dev = t->dev,
                            .store = t->store,
                            .n_stores = t->n_stores,
                            .lanes = t->o.lanes,
                            .bucket = t->o.bucket,
                            .whole_tensors = kind && kind->whole_tensors,
                            .bf16 = t->o.comm_bf16,
                            .no_overlap = t->o.no_overlap };
    if (t->o.lanes == 1 && t->ranks == 1) return true;
    return agree(t, e) && ses_comm_attach_device(t->o.comm, t->dev, e) && open_rows(t, e) &&
           ses_lane_statistics_init(&t->statistics, t->o.comm, t->dev, t->store, t->n_stores, t->o.lanes,
                                    e) &&
           (t->lanes = ses_lanes_new(&o, e));
}

void ses_trainer_close_lanes(ses_trainer *t)
{
    if (t->rows) {
        ses_free(t->rows->mine);
        ses_free(t->rows->all);
        ses_free(t->rows);
    }
    ses_lane_statistics_free(&t->statistics);
    ses_lanes_free(t->lanes);
}

static int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

/* Batches of the update that starts at batch `index` of an epoch. */
static int64_t batches_from(const ses_trainer *t, int64_t index, int64_t epoch_batches)
{
    return min(ses_trainer_update_batches(t), epoch_batches - index);
}

/* The first batch of this rank in the update after the one of n batches that starts at the current index. */
static void set_next_update(const ses_trainer *t, int64_t n, ses_batch_run *r)
{
    bool last = t->at.index + n >= t->epoch_batches;
    int64_t epoch = t->at.epoch + last, index = last ? 0 : t->at.index + n;
    int64_t count = last ? t->o.source.count(t->o.source.ctx, epoch) : t->epoch_batches;
    int64_t first = t->o.accumulate * ses_lanes_of_rank(t->o.lanes, t->rank, t->ranks).begin;
    bool none = t->at.updates + 1 >= t->total_updates || first >= batches_from(t, index, count);
    r->next_epoch = none ? -1 : epoch;
    r->next_index = index + first;
}

/* Computes the lanes of this rank in an update of n batches. */
static bool run_lanes(ses_trainer *t, int64_t n, ses_err *e)
{
    int64_t each = t->o.accumulate;
    if (!ses_lanes_begin(t->lanes, (n + each - 1) / each, e)) return false;
    ses_lane_node own = ses_lanes_own(t->lanes);
    ses_batch_row *row = rows_of(t->rows->mine);
    ses_lane_statistics_begin(&t->statistics);
    for (int64_t lane = own.begin; lane < own.end; lane++) {
        ses_lane_statistics_before(&t->statistics);
        int64_t end = min(n, (lane + 1) * each);
        for (int64_t i = lane * each; i < end; i++) {
            ses_batch_run r = { .index = t->at.index + i,
                                .number = t->at.batches + i,
                                .is_first = i == lane * each,
                                .next_epoch = t->at.epoch,
                                .next_index = t->at.index + i + 1 };
            if (i + 1 == end) r.watch = ses_lanes_watch(t->lanes, lane);
            if (i + 1 == end && lane + 1 == own.end) set_next_update(t, n, &r);
            if (!ses_trainer_run_batch(t, &r, row++, e)) return false;
        }
        ses_lane_statistics_after(&t->statistics, lane - own.begin);
        if (!ses_lanes_add(t->lanes, lane, e)) return false;
    }
    return ses_lanes_end(t->lanes, e) && ses_lane_statistics_end(&t->statistics, (n + each - 1) / each, e);
}

/* Collects the results of all batches, in their order in the run. Fails if a loss is not finite. */
static bool gather_rows(ses_trainer *t, int64_t n, double *weight, ses_step_result *out, ses_err *e)
{
    int64_t i = 0;
    *(rank_header *)(void *)t->rows->mine = (rank_header){ t->wants_stop };
    if (!ses_comm_allgather_equal(t->o.comm, t->rows->mine, t->rows->bytes, t->rows->all, e)) return false;
    t->must_stop = false;
    *weight = 0;
    for (int r = 0; r < t->ranks; r++) {
        char *rank = t->rows->all + (size_t)r * t->rows->bytes;
        int64_t end = min(n, t->o.accumulate * ses_lanes_of_rank(t->o.lanes, r, t->ranks).end);
        t->must_stop |= ((rank_header *)(void *)rank)->wants_stop != 0;
        for (ses_batch_row *row = rows_of(rank); i < end; i++, row++) {
            if (!isfinite(row->loss)) {
                ses_batch_range failed = { t->at.index + i, t->at.index + i + 1 };
                ses_trainer_fail_not_finite(t, "loss", row->loss, failed, e);
                return ses_trainer_wrap_batch(t, t->at.index + i, e);
            }
            out->loss += row->loss * (double)row->predictions;
            out->tokens += row->tokens;
            out->sequences += row->sequences;
            out->flops += row->flops;
            *weight += (double)row->predictions;
        }
    }
    return true;
}

/* Sends what the next forward pass reads to all ranks. */
static bool gather_values(ses_trainer *t, ses_err *e)
{
    bool copies = t->dev->activation_dtype != SES_REAL;
    for (size_t i = 0; i < t->n_stores; i++)
        if (!ses_lanes_gather_values(t->lanes, i, copies, e)) return false;
    t->weights_outdated = copies && t->ranks > 1;
    return true;
}

bool ses_trainer_step_lanes(ses_trainer *t, ses_step_result *out, ses_err *e)
{
    int64_t n = batches_from(t, t->at.index, t->epoch_batches);
    double weight;
    if (!run_lanes(t, n, e) || !gather_rows(t, n, &weight, out, e)) return false;
    if (!ses_trainer_update(t, weight, (ses_batch_range){ t->at.index, t->at.index + n }, out, e))
        return ses_trainer_wrap_batch(t, t->at.index + n - 1, e);
    if (!gather_values(t, e)) return false;
    t->at.updates++;
    t->at.index += n;
    t->at.batches += n;
    t->at.tokens += out->tokens;
    t->at.sequences += out->sequences;
    t->at.flops += out->flops;
    return true;
}
