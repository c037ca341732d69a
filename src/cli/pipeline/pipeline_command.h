/* Pipeline commands: one implementation for all tasks; a task provides name, options, description and
 * examples. Ownership: a call borrows its arguments. Threads: main thread only. */
#ifndef SES_CLI_PIPELINE_COMMAND_H
#define SES_CLI_PIPELINE_COMMAND_H

#include "cli/command.h"
#include "cli/compute_args.h"
#include "row_writer.h"
#include "sesame/pipeline.h"

typedef struct ses_pipeline_args {
    ses_compute_args compute;
    const char *model;
    ses_opt_list adapters;
    ses_opt_list files;
    int64_t batch_tokens, batch_size, max_seq_len;
    const char *column;
    ses_row_args rows;
    bool jsonl, keep_going, no_header, verbose;
    int encoding; /* a ses_text_encoding */
} ses_pipeline_args;

bool ses_pipeline_command(ses_call *c, ses_err *e);

/* Prints a result as text. has_title: print the input text above it, because the command has several
 * inputs. */
bool ses_pipeline_show(const ses_result *r, const ses_term *t, bool has_title, ses_err *e);

#endif
