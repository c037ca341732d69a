/* Ranks of a communicator as processes of this machine, over TCP with torchrun's variables. */
#ifndef TESTS_COMM_FIXTURE_H
#define TESTS_COMM_FIXTURE_H

#include "check.h"
#include "comm/comm_impl.h"
#include "comm/net.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 5 }; /* at most */

typedef void rank_fn(ses_comm *c, void *ctx);

/* A port that was free a moment ago, below the range of ports that the system assigns. */
static inline int comm_free_port(void)
{
    for (int i = 0; i < 1000; i++) {
        int port,
            fd = ses_net_listen(20000 + ((int)getpid() * 37 + check_passed * 11 + i) % 12000, &port, NULL);
        if (fd < 0) continue;
        ses_net_close(&fd);
        return port;
    }
    return -1;
}

static inline void comm_set_rank(int rank, int size, int port)
{
    char text[16];
    snprintf(text, sizeof text, "%d", rank);
    setenv("RANK", text, 1);
    setenv("LOCAL_RANK", text, 1);
    snprintf(text, sizeof text, "%d", size);
    setenv("WORLD_SIZE", text, 1);
    snprintf(text, sizeof text, "%d", port);
    setenv("MASTER_PORT", text, 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
}

/* The body of a rank's process. */
static inline int comm_rank_main(int rank, int size, int port, const ses_comm_options *o, rank_fn *fn,
                                 void *ctx)
{
    ses_err e = { 0 };
    check_passed = check_failed = 0;
    comm_set_rank(rank, size, port);
    ses_comm *c = ses_comm_open(o, &e);
    CHECK_MSG(c, "rank %d: %s", rank, e.msg);
    if (c) fn(c, ctx);
    ses_comm_free(c);
    fflush(stdout);
    return check_failed ? 1 : 0;
}

/* Runs fn on each rank. Returns the number of ranks that failed. */
static inline int comm_ranks(int size, const ses_comm_options *o, rank_fn *fn, void *ctx)
{
    pid_t pid[RANKS];
    int failed = 0, status, port = comm_free_port();
    fflush(stdout);
    for (int r = 0; r < size; r++) {
        pid[r] = fork();
        if (!pid[r]) _exit(comm_rank_main(r, size, port, o, fn, ctx));
    }
    for (int r = 0; r < size; r++)
        failed += waitpid(pid[r], &status, 0) != pid[r] || !WIFEXITED(status) || WEXITSTATUS(status);
    return failed;
}

#endif
