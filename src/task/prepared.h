/* Items that are encoded in one thread, run in another and finished in a third: for programs with a queue of
 * their own (the server). The pipelines of the three threads must be clones of each other
 * (ses_pipeline_clone): same task, settings and model.
 *
 *     ses_request *r = ses_request_prepare(p1, &item, &e);               tokenizer thread
 *     ses_pipeline_run_sequences(p2, requests, sequences, n, &e);        compute thread, a batch
 *     ses_request_finish(p3, r, &result, &e);                            when r->collected == r->n_seqs
 *
 * Ownership: the caller frees a request, after its last result has been read and before the pipeline it was
 * prepared with. A request is used by one thread at a time, a pipeline, too. */
#ifndef SES_TASK_PREPARED_H
#define SES_TASK_PREPARED_H

#include "pipeline_impl.h"

/* Copies and encodes an item: r->seq[r->n_seqs] are its token sequences, possibly none. NULL: the item is
 * invalid. */
ses_request *ses_request_prepare(ses_pipeline *p, const ses_item *item, ses_err *e);
void ses_request_free(ses_request *r); /* r may be NULL */

/* Runs sequences as one batch: seq[i] belongs to request[i], sequences of one request follow each other in
 * order. If the pipeline has a callback for failed items, their errors are stored in request[i]->error and
 * the others succeed; else the first error fails the call. */
bool ses_pipeline_run_sequences(ses_pipeline *p, ses_request **request, ses_seq **seq, size_t n, ses_err *e);

/* The result of a request whose sequences have all run; it borrows from the request. */
bool ses_request_finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e);

#endif
