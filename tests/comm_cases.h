/* Collectives with many sizes on one rank of a communicator. dev: NULL, or a device whose memory the host can
 * read. */
#ifndef TESTS_COMM_CASES_H
#define TESTS_COMM_CASES_H

#include "check.h"
#include "comm/comm_impl.h"
#include "comm_fixture.h"

static unsigned char pattern(int from, int to, size_t i, int round)
{
    return (unsigned char)(from * 31 + to * 7 + (int)(i % 251) * 13 + round * 101);
}

/* Sizes that differ between pairs, zero and large ones included. */
static inline size_t pair_bytes(int from, int to, int round)
{
    static const size_t sizes[] = { 0, 1, 17, 4096, 70001, 0, 3000001, 5 };
    return sizes[(from * 5 + to * 3 + round) % 8];
}

typedef struct blocks {
    ses_comm_block send[RANKS], recv[RANKS];
} blocks;

static inline blocks make_blocks(ses_comm *c, int round)
{
    blocks b;
    int me = ses_comm_rank(c);
    for (int r = 0; r < ses_comm_size(c); r++) {
        b.send[r].bytes = pair_bytes(me, r, round);
        b.recv[r].bytes = pair_bytes(r, me, round);
        b.send[r].data = malloc(b.send[r].bytes + 1);
        b.recv[r].data = calloc(b.recv[r].bytes + 1, 1);
        for (size_t i = 0; i < b.send[r].bytes; i++)
            ((unsigned char *)b.send[r].data)[i] = pattern(me, r, i, round);
    }
    return b;
}

static inline void check_blocks(ses_comm *c, blocks *b, int round)
{
    int me = ses_comm_rank(c);
    for (int r = 0; r < ses_comm_size(c); r++) {
        const unsigned char *p = b->recv[r].data;
        size_t wrong = 0;
        for (size_t i = 0; i < b->recv[r].bytes; i++) wrong += p[i] != pattern(r, me, i, round);
        CHECK_MSG(!wrong && !p[b->recv[r].bytes], "rank %d from %d: %zu wrong bytes", me, r, wrong);
        free(b->send[r].data);
        free(b->recv[r].data);
    }
}

static inline void run_exchanges(ses_comm *c, ses_device *dev)
{
    enum { QUEUED = 5 };
    ses_err e = { 0 };
    for (int round = 0; round < 4; round++) {
        blocks b = make_blocks(c, round);
        CHECK_MSG(ses_comm_exchange(c, dev, b.send, b.recv, &e), "%s", e.msg);
        check_blocks(c, &b, round);
    }
    blocks queued[QUEUED];
    for (int round = 0; round < QUEUED; round++) {
        queued[round] = make_blocks(c, 10 + round);
        blocks copy = queued[round]; /* the arrays are copied: they may go */
        CHECK(ses_comm_exchange_begin(c, dev, copy.send, copy.recv, &e));
        memset(&copy, 0, sizeof copy);
    }
    blocks now = make_blocks(c, 20); /* behind the queued ones */
    CHECK(ses_comm_exchange(c, dev, now.send, now.recv, &e));
    CHECK_MSG(ses_comm_flush(c, &e), "%s", e.msg);
    CHECK(ses_comm_flush(c, &e));
    for (int round = 0; round < QUEUED; round++) check_blocks(c, &queued[round], 10 + round);
    check_blocks(c, &now, 20);
}

static inline void run_gathers(ses_comm *c, ses_device *dev)
{
    static const size_t part[] = { 3, 0, 100001, 64, 1 };
    int n = ses_comm_size(c), me = ses_comm_rank(c);
    size_t offset[RANKS + 1] = { 5 }, wrong = 0;
    ses_err e = { 0 };
    for (int r = 0; r < n; r++) offset[r + 1] = offset[r] + part[r % 5];
    unsigned char *all = calloc(offset[n] + 1, 1);
    for (size_t i = offset[me]; i < offset[me + 1]; i++) all[i] = pattern(me, 0, i, 1);
    CHECK_MSG(ses_comm_allgather(c, dev, all, offset, &e), "%s", e.msg);
    for (int r = 0; r < n; r++)
        for (size_t i = offset[r]; i < offset[r + 1]; i++) wrong += all[i] != pattern(r, 0, i, 1);
    CHECK(!wrong && !all[0] && !all[offset[n]]);
    free(all);
    int64_t mine = me * 1000 + 7, values[RANKS] = { 0 };
    CHECK(ses_comm_allgather_equal(c, &mine, sizeof mine, values, &e));
    for (int r = 0; r < n; r++) CHECK(values[r] == r * 1000 + 7);
    for (int root = 0; root < n; root++) {
        static const size_t sizes[] = { 1, 1000, 64 << 10, (64 << 10) + 1, 1000003 };
        for (size_t k = 0; k < SES_LEN(sizes); k++) {
            unsigned char *p = calloc(sizes[k], 1);
            for (size_t i = 0; me == root && i < sizes[k]; i++) p[i] = pattern(root, 3, i, (int)k);
            CHECK_MSG(ses_comm_bcast(c, p, sizes[k], root, &e), "%s", e.msg);
            wrong = 0;
            for (size_t i = 0; i < sizes[k]; i++) wrong += p[i] != pattern(root, 3, i, (int)k);
            CHECK(!wrong);
            free(p);
        }
    }
    CHECK(ses_comm_barrier(c, &e));
}

static inline void run_agreement(ses_comm *c)
{
    char expected[400];
    int n = ses_comm_size(c), me = ses_comm_rank(c);
    ses_err e = { 0 };
    CHECK(ses_comm_all_ok(c, true, &e));
    CHECK(ses_comm_agree(c, "seed", "42", &e));
    /* one rank fails: all have its error */
    ses_comm_set_update(c, 57);
    if (me == n - 1) ses_fail(&e, SES_ENOMEM, "out of memory");
    CHECK(!ses_comm_all_ok(c, me != n - 1, &e));
    snprintf(expected, sizeof expected, "rank %d on %s, update 57: out of memory", n - 1,
             ses_comm_host(c, n - 1));
    CHECK_STR(e.msg, n > 1 ? expected : "out of memory");
    CHECK(e.code == SES_ENOMEM);
    /* all fail in the same way: nothing to add */
    ses_err_clear(&e);
    ses_fail(&e, SES_EARG, "no such file");
    CHECK(!ses_comm_all_ok(c, false, &e));
    CHECK_STR(e.msg, "no such file");
    /* two fail differently: the lowest one is named */
    ses_err_clear(&e);
    if (me) ses_fail(&e, SES_EIO, "failure of %d", me);
    if (n > 1) {
        CHECK(!ses_comm_all_ok(c, !me, &e));
        snprintf(expected, sizeof expected, "rank 1 on %s, update 57: failure of 1", ses_comm_host(c, 1));
        CHECK_STR(e.msg, expected);
        ses_err_clear(&e);
        CHECK(!ses_comm_agree(c, "seed", me == n - 1 ? "43" : "42", &e));
        snprintf(expected, sizeof expected, "seed differs: rank 0 on %s has \"42\", rank %d on %s has \"43\"",
                 ses_comm_host(c, 0), n - 1, ses_comm_host(c, n - 1));
        CHECK_STR(e.msg, expected);
    }
    ses_err_clear(&e);
    CHECK(ses_comm_all_ok(c, true, &e)); /* the communicator still works */
}

#endif
