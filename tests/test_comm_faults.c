/* Failures of ranks: every other rank ends within a bounded time with one and the same error, and exactly one
 * of them reports it. Ranks are processes of this machine, over TCP. */
#define _DEFAULT_SOURCE
#include "base/clock.h"
#include "check.h"
#include "comm/hello.h"
#include "comm_fixture.h"

#include <sys/socket.h>
#include <time.h>

static void sleep_seconds(double s)
{
    nanosleep(&(struct timespec){ (time_t)s, (long)((s - (double)(time_t)s) * 1e9) }, NULL);
}

typedef enum {
    FAULT_KILL,   /* SIGKILL */
    FAULT_STOP,   /* SIGSTOP: no heartbeats */
    FAULT_STALL,  /* heartbeats, but no call */
    FAULT_ABORT,  /* ses_comm_abort */
    FAULT_EXIT,   /* exit without a word */
    FAULT_LEAVE,  /* ses_comm_free before the others */
    FAULT_QUEUED, /* SIGKILL while exchanges are queued */
    FAULT_COMMON, /* all ranks abort with an error they share */
} fault;

typedef struct scenario {
    fault what;
    int victim;
    double timeout, stall;
    int out; /* pipe: each rank writes its outcome */
} scenario;

typedef struct outcome {
    int rank;
    bool reports, same_again;
    double seconds; /* until the error came */
    char text[512];
} outcome;

/* The last update of the victim, which the error names. */
enum { LAST_UPDATE = 57 };

/* The victim does this instead of the next exchange. */
static void fail_now(ses_comm *c, const scenario *s)
{
    ses_err e = { 0 };
    switch (s->what) {
    case FAULT_KILL:
    case FAULT_QUEUED: kill(getpid(), SIGKILL); break;
    case FAULT_STOP: kill(getpid(), SIGSTOP); break;
    case FAULT_STALL: sleep_seconds(s->stall + 30); break;
    case FAULT_EXIT: _exit(3);
    case FAULT_ABORT:
        ses_fail(&e, SES_EIO, "/data/run: no space left on device");
        ses_comm_abort(c, &e);
        break;
    case FAULT_LEAVE: ses_comm_free(c); _exit(0);
    case FAULT_COMMON: break;
    }
}

static bool one_update(ses_comm *c, const scenario *s, int update, ses_err *e)
{
    enum { BYTES = 200000 };
    static unsigned char buffer[2 * RANKS][BYTES];
    ses_comm_block send[RANKS], recv[RANKS];
    int n = ses_comm_size(c);
    for (int r = 0; r < n; r++) {
        send[r] = (ses_comm_block){ buffer[r], BYTES };
        recv[r] = (ses_comm_block){ buffer[n + r], BYTES };
    }
    ses_comm_set_update(c, update);
    if (update == LAST_UPDATE) {
        sleep_seconds(0.15); /* a heartbeat carries the update */
        if (s->what == FAULT_QUEUED && !ses_comm_exchange_begin(c, NULL, send, recv, e)) return false;
        if (ses_comm_rank(c) == s->victim) fail_now(c, s);
    }
    if (s->what == FAULT_COMMON && update == LAST_UPDATE) {
        if (ses_comm_rank(c) == s->victim) ses_fail(e, SES_ENOMEM, "out of memory");
        if (!ses_comm_all_ok(c, ses_comm_rank(c) != s->victim, e)) {
            ses_wrap(e, "training"); /* as callers do */
            ses_comm_abort(c, e);
            return false;
        }
    }
    if (s->what != FAULT_QUEUED) return ses_comm_exchange(c, NULL, send, recv, e);
    return ses_comm_exchange_begin(c, NULL, send, recv, e) && ses_comm_flush(c, e);
}

static void run_until_failure(ses_comm *c, void *ctx)
{
    const scenario *s = ctx;
    ses_err e = { 0 }, again = { 0 };
    double begin = 0;
    for (int update = LAST_UPDATE - 5; update < LAST_UPDATE + 5; update++) {
        if (update == LAST_UPDATE) begin = ses_seconds();
        if (!one_update(c, s, update, &e)) break;
    }
    outcome o = { .rank = ses_comm_rank(c), .seconds = ses_seconds() - begin };
    o.reports = ses_comm_should_report(c);
    snprintf(o.text, sizeof o.text, "%.500s", e.msg);
    o.same_again = !ses_comm_barrier(c, &again) && (!strcmp(again.msg, e.msg) || s->what == FAULT_COMMON);
    CHECK(write(s->out, &o, sizeof o) == (ssize_t)sizeof o);
}

/* Runs the scenario; returns the outcomes of the ranks that had one. */
static int run_scenario(scenario s, int size, outcome *o, double *seconds)
{
    int fd[2], n = 0, status, port = comm_free_port();
    pid_t pid[RANKS];
    ses_comm_options options = { .timeout = s.timeout, .stall_timeout = s.stall };
    CHECK(!pipe(fd));
    s.out = fd[1];
    fflush(stdout);
    for (int r = 0; r < size; r++) {
        pid[r] = fork();
        if (pid[r]) continue;
        close(fd[0]);
        _exit(comm_rank_main(r, size, port, &options, run_until_failure, &s));
    }
    close(fd[1]);
    double begin = ses_seconds();
    for (int r = 0; r < size; r++)
        if (r != s.victim || s.what == FAULT_COMMON || s.what == FAULT_ABORT) waitpid(pid[r], &status, 0);
    *seconds = ses_seconds() - begin;
    if (s.what == FAULT_STOP) { /* it continues, finds the error and ends without a second report */
        kill(pid[s.victim], SIGCONT);
        sleep_seconds(1);
    }
    if (s.what == FAULT_STALL) kill(pid[s.victim], SIGKILL);
    if (s.what != FAULT_COMMON && s.what != FAULT_ABORT) waitpid(pid[s.victim], &status, 0);
    while (n < size && read(fd[0], &o[n], sizeof *o) == (ssize_t)sizeof *o) n++;
    close(fd[0]);
    return n;
}

/* outcomes: the ranks that see the error. limit: seconds from the fault to the end of all other ranks. */
static void check_fault(fault what, int victim, int size, int outcomes, double limit, const char *reason)
{
    scenario s = { .what = what, .victim = victim, .timeout = 2, .stall = what == FAULT_STALL ? 2 : 100 };
    outcome o[RANKS];
    char host[256] = "", expected[1024];
    double seconds;
    gethostname(host, sizeof host - 1);
    snprintf(expected, sizeof expected, "%srank %d on %s, update %d: %s",
             what == FAULT_COMMON ? "training: " : "", victim, host, LAST_UPDATE, reason);
    int n = run_scenario(s, size, o, &seconds), reports = 0;
    CHECK_MSG(n == outcomes, "fault %d of rank %d: %d outcomes", (int)what, victim, n);
    for (int i = 0; i < n; i++) {
        /* a rank may receive the others' error, wrapped, and wrap it again */
        CHECK_MSG(what == FAULT_COMMON ? strstr(o[i].text, expected) != NULL : !strcmp(o[i].text, expected),
                  "fault %d, rank %d: \"%s\", expected \"%s\"", (int)what, o[i].rank, o[i].text, expected);
        CHECK(o[i].same_again);
        CHECK_MSG(o[i].seconds < limit || o[i].rank == victim, "fault %d, rank %d: %.1f s", (int)what,
                  o[i].rank, o[i].seconds);
        reports += o[i].reports;
    }
    CHECK_MSG(reports == 1, "fault %d of rank %d: %d reports", (int)what, victim, reports);
    CHECK_MSG(seconds < limit + 8, "fault %d of rank %d: ended after %.1f s", (int)what, victim, seconds);
}

static void test_faults(void)
{
    static const char ended[] = "its process ended without a message (killed, crashed or out of memory)";
    static const char silent[] =
        "no sign of life for 2 s: the process or its machine hangs, or the network is down";
    for (int victim = 0; victim < 3; victim++) {
        check_fault(FAULT_KILL, victim, 3, 2, 2, ended);
        check_fault(FAULT_STOP, victim, 3, 3, 6, silent);
        check_fault(FAULT_STALL, victim, 3, 2, 6, "it made no progress for 2 s while other ranks waited");
        check_fault(FAULT_ABORT, victim, 3, 3, 2, "/data/run: no space left on device");
    }
    check_fault(FAULT_KILL, 0, 5, 4, 2, ended);
    check_fault(FAULT_KILL, 1, 2, 1, 2, ended);
    check_fault(FAULT_KILL, 0, 2, 1, 2, ended);
    check_fault(FAULT_EXIT, 1, 3, 2, 2, ended);
    check_fault(FAULT_EXIT, 0, 3, 2, 2, ended);
    check_fault(FAULT_QUEUED, 2, 3, 2, 2, ended);
    check_fault(FAULT_LEAVE, 2, 3, 2, 4, "it ended before the other ranks");
    check_fault(FAULT_LEAVE, 0, 3, 2, 4, "it ended before the other ranks");
    check_fault(FAULT_COMMON, 1, 3, 3, 2, "out of memory");
}

/* ---- a whole run is suspended ---- */

static void run_slowly(ses_comm *c, void *ctx)
{
    ses_err e = { 0 };
    (void)ctx;
    for (int update = 0; update < 100 && !e.code; update++) {
        ses_comm_set_update(c, update);
        sleep_seconds(0.02);
        CHECK_MSG(ses_comm_barrier(c, &e), "%s", e.msg);
    }
}

/* All ranks stop for longer than the timeout and continue: the run is not disturbed. */
static void test_suspended(void)
{
    enum { SIZE = 3 };
    pid_t pid[SIZE];
    int status, port = comm_free_port();
    ses_comm_options o = { .timeout = 2 };
    fflush(stdout);
    for (int r = 0; r < SIZE; r++) {
        pid[r] = fork();
        if (!pid[r]) _exit(comm_rank_main(r, SIZE, port, &o, run_slowly, NULL));
    }
    sleep_seconds(1);
    for (int r = 0; r < SIZE; r++) kill(pid[r], SIGSTOP);
    sleep_seconds(3);
    for (int r = 0; r < SIZE; r++) kill(pid[r], SIGCONT);
    for (int r = 0; r < SIZE; r++) {
        waitpid(pid[r], &status, 0);
        CHECK_MSG(WIFEXITED(status) && !WEXITSTATUS(status), "rank %d did not survive a pause", r);
    }
}

/* ---- joining ---- */

/* Opens a communicator as a rank and gives its error. */
static void open_as(int rank, int size, int port, double timeout, char *text, size_t n)
{
    ses_err e = { 0 };
    ses_comm_options o = { .timeout = timeout };
    comm_set_rank(rank, size, port);
    ses_comm *c = ses_comm_open(&o, &e);
    snprintf(text, n, "%.500s", c ? "joined" : e.msg);
    ses_comm_free(c);
}

/* Ranks of `size` that start; the others are missing. Returns their texts. */
static void start_ranks(const int *rank, int n, const int *size, int port, double timeout, char text[][512])
{
    int fd[RANKS][2];
    fflush(stdout);
    for (int i = 0; i < n; i++) {
        CHECK(!pipe(fd[i]));
        if (fork()) continue;
        char out[512];
        open_as(rank[i], size[i], port, timeout, out, sizeof out);
        _exit(write(fd[i][1], out, sizeof out) != (ssize_t)sizeof out);
    }
    for (int i = 0; i < n; i++) {
        CHECK(read(fd[i][0], text[i], 512) == 512);
        close(fd[i][0]);
        close(fd[i][1]);
    }
    while (wait(NULL) > 0) {}
}

static void test_missing(void)
{
    char text[RANKS][512];
    start_ranks((int[]){ 0, 2 }, 2, (int[]){ 4, 4 }, comm_free_port(), 0.2, text);
    for (int i = 0; i < 2; i++)
        CHECK_STR(text[i], "joining the other ranks by tcp: of 4 ranks, rank 1, 3 did not join within 2 s");
    int port = comm_free_port();
    char expected[300];
    start_ranks((int[]){ 1 }, 1, (int[]){ 2 }, port, 0.1, text);
    snprintf(
        expected, sizeof expected,
        "joining the other ranks by tcp: rank 0 at 127.0.0.1, port %d, did not answer within 1 s: cannot "
        "connect: Connection refused",
        port);
    CHECK_STR(text[0], expected);
    /* they do not agree on the number of ranks, or on who is who */
    start_ranks((int[]){ 0, 1 }, 2, (int[]){ 3, 4 }, comm_free_port(), 0.5, text);
    for (int i = 0; i < 2; i++)
        CHECK_STR(text[i], "joining the other ranks by tcp: rank 1 on 127.0.0.1 expects 4 ranks, rank 0 "
                           "expects 3");
    start_ranks((int[]){ 0, 1, 1 }, 3, (int[]){ 3, 3, 3 }, comm_free_port(), 0.5, text);
    CHECK_STR(text[0],
              "joining the other ranks by tcp: two processes are rank 1; the second one is on 127.0.0.1");
}

/* ---- strangers and other versions ---- */

static int connect_stranger(int port)
{
    ses_ip ip = { { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 } };
    int fd = -1;
    for (double end = ses_seconds() + 5; fd < 0 && ses_seconds() < end; sleep_seconds(0.02))
        fd = ses_net_connect(&ip, port, end, NULL);
    return fd;
}

/* Strangers connect first: silent ones, garbage, a hello of another run, half a hello. */
static void test_strangers(void)
{
    enum { SILENT = 70 };
    int port = comm_free_port(), size = 2, fd[SILENT + 3], status;
    char garbage[1000], text[512];
    unsigned char hello[SES_HELLO_BYTES];
    memset(garbage, 'x', sizeof garbage);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        open_as(0, size, port, 2, text, sizeof text);
        _exit(strcmp(text, "joined") != 0);
    }
    for (int i = 0; i < SILENT + 3; i++) CHECK((fd[i] = connect_stranger(port)) >= 0);
    ses_hello h = ses_hello_of(SES_HELLO_JOIN, 1, 2, 12345, 0);
    ses_hello_write(&h, hello);
    double soon = ses_seconds() + 2;
    ses_net_send(fd[SILENT], garbage, sizeof garbage, soon, NULL);
    CHECK(ses_net_send(fd[SILENT + 1], hello, sizeof hello, soon, NULL)); /* another job */
    CHECK(ses_net_send(fd[SILENT + 2], hello, sizeof hello / 2, soon, NULL));
    ses_hello answer;
    CHECK(ses_hello_recv(fd[SILENT + 1], &answer, soon, NULL) && answer.kind == SES_HELLO_REFUSED);
    open_as(1, size, port, 2, text, sizeof text);
    CHECK_STR(text, "joined");
    waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
    for (int i = 0; i < SILENT + 3; i++) ses_net_close(&fd[i]);
}

/* Rank 0 refuses a rank of another version, with the reason. */
static void check_version(const char *version, uint32_t protocol, const char *reason)
{
    int port = comm_free_port(), fd[2], status;
    char text[512], refusal[SES_REFUSAL + 1] = { 0 }, expected[700];
    CHECK(!pipe(fd));
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        open_as(0, 2, port, 1, text, sizeof text);
        _exit(write(fd[1], text, sizeof text) != (ssize_t)sizeof text);
    }
    int s = connect_stranger(port);
    ses_hello h = ses_hello_of(SES_HELLO_JOIN, 1, 2, 0, 1234), answer;
    snprintf(h.version, sizeof h.version, "%s", version);
    h.protocol = protocol;
    double soon = ses_seconds() + 5;
    CHECK(ses_hello_send(s, &h, soon, NULL) && ses_hello_recv(s, &answer, soon, NULL));
    CHECK(answer.kind == SES_HELLO_REFUSED && ses_net_recv(s, refusal, SES_REFUSAL, soon, NULL));
    CHECK(read(fd[0], text, sizeof text) == (ssize_t)sizeof text);
    CHECK_STR(refusal, reason);
    snprintf(expected, sizeof expected, "joining the other ranks by tcp: %s", reason);
    CHECK_STR(text, expected);
    ses_net_close(&s);
    close(fd[0]);
    close(fd[1]);
    waitpid(pid, &status, 0);
}

int main(void)
{
    test_missing();
    test_strangers();
    check_version(
        "0.0.7", SES_COMM_PROTOCOL,
        "rank 1 on 127.0.0.1 runs Sesame 0.0.7, this rank 0.1.0: install the same version everywhere");
    check_version(
        "0.1.0", 99,
        "rank 1 on 127.0.0.1 has version 99 of the protocol between ranks, this rank 1: install the "
        "same build everywhere");
    test_faults();
    test_suspended();
    return check_report();
}
