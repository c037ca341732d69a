/* One rank of a test under mpirun: the collectives of comm_cases.h. Usage: comm_rank [TRANSPORT]. Prints what
 * failed; rank 0 ends with the count of its checks. */
#define _DEFAULT_SOURCE
#include "comm_cases.h"

int main(int argc, char **argv)
{
    ses_err e = { 0 };
    ses_comm_options o = { .transport = argc > 1 ? argv[1] : NULL };
    ses_comm *c = ses_comm_open(&o, &e);
    if (!c) {
        printf("%s\n", e.msg);
        return 1;
    }
    run_exchanges(c);
    run_gathers(c);
    run_agreement(c);
    if (!ses_comm_rank(c))
        printf("%d passed, %d failed; %d ranks by %s\n", check_passed, check_failed, ses_comm_size(c),
               ses_comm_transport(c));
    ses_comm_free(c);
    return check_failed ? 1 : 0;
}
