/* The commands of pipelines: one implementation, whose names, options and words are the tasks'. */
#ifndef SES_CLI_PIPELINE_H
#define SES_CLI_PIPELINE_H

#include "cli/command.h"
#include "cli/compute_args.h"
#include "sesame/pipeline.h"

typedef struct ses_pipeline_args {
    ses_compute_args compute;
    const char *model, *adapter;
    ses_opt_list files;
    int64_t batch_tokens, max_seq_len;
    const char *column, *to;
    bool jsonl, keep_going, no_header, overwrite;
} ses_pipeline_args;

bool ses_pipeline_command(ses_call *c, ses_err *e);

/* An answer for a person; `several`: more follow, so each names its text. */
bool ses_pipeline_show(const ses_result *r, const ses_term *t, bool several, ses_err *e);

#endif
