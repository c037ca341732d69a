/* Allocations that fail on one of two ranks during collectives: both ranks end with the same error. */
#define _DEFAULT_SOURCE
#include "comm_fixture.h"
#include "oom.h"

typedef struct outcome {
    long failed; /* allocations */
    char text[300];
} outcome;

typedef struct scenario {
    long n; /* the allocation of rank 1 that fails */
    int out[2];
} scenario;

/* All collectives that allocate. */
static bool run_collectives(ses_comm *c, ses_err *e)
{
    static unsigned char data[4][200000];
    int other = 1 - ses_comm_rank(c);
    ses_comm_block send[2] = { { 0 } }, recv[2] = { { 0 } };
    send[other] = (ses_comm_block){ data[0], sizeof data[0] };
    recv[other] = (ses_comm_block){ data[1], sizeof data[1] };
    ses_err difference = { 0 };
    if (!ses_comm_exchange_begin(c, NULL, send, recv, e) ||
        !ses_comm_exchange_begin(c, NULL, send, recv, e) || !ses_comm_flush(c, e) ||
        !ses_comm_bcast(c, data[2], sizeof data[2], 1, e) || !ses_comm_all_ok(c, true, e))
        return false;
    CHECK(!ses_comm_agree(c, "rank", other ? "0" : "1", &difference));
    if (!strstr(difference.msg, "rank differs")) return ses_fail(e, difference.code, "%s", difference.msg);
    return ses_comm_barrier(c, e);
}

static void run_rank(ses_comm *c, void *ctx)
{
    const scenario *s = ctx;
    ses_err e = { 0 };
    outcome o = { 0 };
    ses_comm_set_update(c, 3);
    oom.calls = oom.failed = 0;
    if (ses_comm_rank(c) == 1) oom.fail_from = oom.fail_to = s->n;
    bool ok = run_collectives(c, &e);
    oom.fail_from = 0;
    o.failed = oom.failed;
    snprintf(o.text, sizeof o.text, "%.250s", ok ? "" : e.msg);
    CHECK(write(s->out[1], &o, sizeof o) == (ssize_t)sizeof o);
}

int main(void)
{
    bool hit = true;
    long n = 0;
    while (hit && n < 50) {
        scenario s = { .n = ++n };
        outcome o[2] = { { 0 } };
        CHECK(!pipe(s.out));
        CHECK(!comm_ranks(2, NULL, run_rank, &s));
        for (int i = 0; i < 2; i++) CHECK(read(s.out[0], &o[i], sizeof o[i]) == (ssize_t)sizeof o[i]);
        close(s.out[0]);
        close(s.out[1]);
        hit = o[0].failed + o[1].failed;
        CHECK_MSG(!strcmp(o[0].text, o[1].text), "allocation %ld: \"%s\" and \"%s\"", n, o[0].text,
                  o[1].text);
        CHECK_MSG(hit ? strstr(o[0].text, "rank 1 on ") && strstr(o[0].text, ", update 3: ") &&
                            strstr(o[0].text, "memory")
                      : !*o[0].text,
                  "allocation %ld: \"%s\"", n, o[0].text);
    }
    CHECK_MSG(n > 3, "%ld allocations", n);
    return check_report();
}
