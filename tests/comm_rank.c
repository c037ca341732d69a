/* One rank of a test. Usage: comm_rank TRANSPORT [FILE [UPDATES]].
 * The collectives of comm_cases.h; prints what failed, and rank 0 the count of its checks. If FILE is given:
 * makes UPDATES exchanges (20), 10 ms apart, until one fails, and writes the error to FILE.RANK, "report: "
 * before it on the rank that reports it. Rank KILL_RANK, a variable, is killed in update 10. */
#define _DEFAULT_SOURCE
#include "comm_cases.h"

#include <time.h>

static void write_error(const ses_comm *c, const char *file, const ses_err *e)
{
    char path[400];
    const char *rank = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("RANK");
    snprintf(path, sizeof path, "%s.%s", file, rank ? rank : "0");
    FILE *f = fopen(path, "w");
    if (!f) return;
    fprintf(f, "%s%s\n", c && ses_comm_should_report(c) ? "report: " : "", e->msg);
    fclose(f);
}

/* A bounded number of exchanges, small and large. */
static bool exchange_all(ses_comm *c, long updates, ses_err *e)
{
    enum { BYTES = 300000, KILL_UPDATE = 10 };
    const char *kill_rank = getenv("KILL_RANK");
    static unsigned char all[RANKS * BYTES];
    size_t offset[RANKS + 1] = { 0 };
    for (int r = 0; r < ses_comm_size(c); r++) offset[r + 1] = offset[r] + BYTES;
    for (long update = 0; update < updates; update++) {
        nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
        ses_comm_set_update(c, update);
        if (update == KILL_UPDATE && kill_rank && strtol(kill_rank, NULL, 10) == ses_comm_rank(c))
            raise(SIGKILL);
        if (!ses_comm_allgather(c, NULL, all, offset, e) || !ses_comm_barrier(c, e)) return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    ses_err e = { 0 };
    const char *file = argc > 2 ? argv[2] : NULL;
    ses_comm_options o = { .transport = argc > 1 ? argv[1] : NULL, .timeout = file ? 3 : 0 };
    ses_comm *c = ses_comm_open(&o, &e);
    if (file) {
        signal(SIGTERM, SIG_IGN); /* mpirun sends it when another rank ends; programs finish their message */
        bool ok = c && exchange_all(c, argc > 3 ? strtol(argv[3], NULL, 10) : 20, &e);
        if (!ok) write_error(c, file, &e);
        ses_comm_free(c);
        return ok ? 0 : 1;
    }
    if (!c) {
        printf("%s\n", e.msg);
        return 1;
    }
    run_exchanges(c, NULL);
    run_gathers(c, NULL);
    run_agreement(c);
    if (!ses_comm_rank(c))
        printf("%d passed, %d failed; %d ranks by %s\n", check_passed, check_failed, ses_comm_size(c),
               ses_comm_transport(c));
    ses_comm_free(c);
    return check_failed ? 1 : 0;
}
