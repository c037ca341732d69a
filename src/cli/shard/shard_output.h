/* Resumable output of a shard. Results go to FILE.partial, which is standard output meanwhile; FILE.progress
 * has the number of complete blocks. After an interruption the same command truncates FILE.partial to the
 * last recorded block and continues there, with the same bytes. At the end FILE.partial becomes FILE, and
 * FILE.done (shard_marker.h) is written last.
 *
 * A command calls fed for each record it reads and done for each result it has written, in the same order.
 * Ownership: ses_shard_output_end frees everything. Main thread only: standard output belongs to the
 * process. */
#ifndef SES_CLI_SHARD_OUTPUT_H
#define SES_CLI_SHARD_OUTPUT_H

#include "shard_marker.h"

/* Records fed before the first one of a block. */
typedef struct ses_block_border {
    uint64_t records, block;
} ses_block_border;

typedef struct ses_shard_output {
    const ses_call *call;
    const ses_shard_plan *plan;
    char *path, *partial, *progress, *done, *identity;
    bool overwrite;
    int before; /* duplicate of the original standard output; -1: not redirected */
    ses_sha sha;
    uint64_t hashed;          /* bytes in sha */
    ses_shard_counts at;      /* at the last complete block */
    uint64_t fed, finished;   /* records */
    uint64_t failed;          /* records with an error */
    uint64_t fed_block;       /* block of the last record fed */
    ses_block_border *border; /* [first, n): borders of blocks that are fed but not finished */
    size_t first, n, cap;
    uint64_t saved_block; /* next block in FILE.progress */
    double next_save;     /* when it is to be written again */
    bool committed;
} ses_shard_output;

/* Starts or continues FILE. identity is taken over and freed. *complete: there is nothing to do. The input
 * continues with block o->at.block. o must be zeroed. */
bool ses_shard_output_begin(ses_shard_output *o, const ses_call *c, const ses_shard_plan *p, const char *path,
                            char *identity, bool overwrite, bool *complete, ses_err *e);
bool ses_shard_output_active(const ses_shard_output *o);

/* Before a record of this block is processed; and after the result of the next record has been written and
 * flushed. Both do nothing if the output is not active. */
bool ses_shard_output_fed(ses_shard_output *o, uint64_t block, ses_err *e);
bool ses_shard_output_done(ses_shard_output *o, bool failed, ses_err *e);

bool ses_shard_output_commit(ses_shard_output *o, ses_err *e);
/* Restores standard output. After a failure the complete blocks are recorded; without any, nothing is
 * left. */
void ses_shard_output_end(ses_shard_output *o, ses_err *e);

/* ---- the shard of a call ---- */

/* The part of the input that a call processes, and its output. */
typedef struct ses_shard_job {
    ses_shard_plan plan;
    ses_shard_output out; /* active: --shard and --to are given */
    bool complete;        /* the output exists already */
} ses_shard_job;

/* Plans the part of n files that --shard selects (text; NULL: all), and starts the output file `to` (NULL:
 * standard output). j must be zeroed; end it also after a failure. */
bool ses_shard_job_begin(ses_shard_job *j, const ses_call *c, const char *text, const char *const *file,
                         size_t n, const ses_shard_conditions *conditions, const char *to, bool overwrite,
                         ses_err *e);
bool ses_shard_job_given(const ses_shard_job *j);     /* --shard */
uint64_t ses_shard_job_block(const ses_shard_job *j); /* the first block to process */
void ses_shard_job_end(ses_shard_job *j, ses_err *e);
/* "shard 2/8", in buf, for the progress line; without --shard: `otherwise`. */
const char *ses_shard_job_label(const ses_shard_job *j, char buf[48], const char *otherwise);

#endif
