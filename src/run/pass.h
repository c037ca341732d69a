/* A forward pass: a batch of sequences in, outputs on the host out. One thread at a time. */
#ifndef SES_RUN_PASS_H
#define SES_RUN_PASS_H

#include "batch_builder.h"

typedef struct ses_pass {
    const ses_model *model;
    ses_tape *tape;
    bool record;          /* for a backward pass */
    ses_batch_builder in; /* the next batch: empty after a pass */
    ses_batch batch;      /* what the last pass read; valid until a sequence is added */
    ses_output_request request;
    ses_outputs out;
    ses_real *host; /* the output read last */
    size_t host_cap;
} ses_pass;

bool ses_pass_open(ses_pass *p, const ses_model *m, ses_err *e);
void ses_pass_close(ses_pass *p);
/* Makes the sequences of p->in the batch, sets the request with their rows, and resets the tape. */
void ses_pass_begin(ses_pass *p, const ses_output_request *want);
/* Runs the model on the sequences of p->in, for the rows of p->in if it has any. */
bool ses_pass_run(ses_pass *p, const ses_output_request *want, ses_err *e);
/* An output; NULL and an error: the model has none of this name. */
const ses_output *ses_pass_output(const ses_pass *p, const char *name, ses_err *e);
/* The same on the host, until the next call. */
const ses_real *ses_pass_read(ses_pass *p, const char *name, ses_err *e);

#endif
