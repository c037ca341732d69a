/* The ranks of a distributed run and the links between them, for `sesame doctor --mpi`. */
#ifndef SES_CLI_RANK_REPORT_H
#define SES_CLI_RANK_REPORT_H

#include "cli/command.h"
#include "cli/compute_args.h"

/* Joins the ranks that a launcher started; rank 0 prints. links: measures them too, about `seconds` in all.
 * On failure one rank has the error in e, the others none. */
bool ses_rank_report(const ses_call *c, const ses_compute_args *a, bool links, double seconds, ses_err *e);

#endif
