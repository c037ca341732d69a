/* State of a pipeline command: input, model and output. Ownership: the command frees each member. Main thread
 * only. */
#ifndef SES_CLI_PIPELINE_JOB_H
#define SES_CLI_PIPELINE_JOB_H

#include "atomic_output.h"
#include "cli/shard/shard_output.h"
#include "line_reader.h"
#include "npy_writer.h"
#include "pipeline_command.h"

typedef struct ses_pipeline_job {
    const ses_call *call;
    const ses_pipeline_args *a;
    ses_pipeline *p;
    ses_line_reader in;
    ses_records *table; /* rows of the current file, with --column */
    const char *name;   /* current file */
    ses_progress progress;
    ses_npy npy;
    ses_row_writer rows;
    ses_atomic_output to;
    ses_shard_job shard;
    size_t n_warned; /* bytes of the pipeline's warnings that were printed */
    bool lines;      /* item numbers are line numbers, else argument numbers */
    bool several;    /* more than one item */
    int64_t n_truncated;
    int64_t failed;        /* items with an error */
    int64_t empty;         /* items with an empty text */
    int64_t single;        /* items without a second text */
    char first_empty[300]; /* where the first one is */

    /* Items have the numbers of lines read, and the lines before them are counted when a number is shown.
     * counts_first: the task reads the number. */
    bool counts_first, is_counted;
    int64_t lines_before;
    uint64_t first; /* where the first line of the part starts in the file */
} ses_pipeline_job;

/* The files to read; *n 0: texts are arguments or options. Standard input has the name "-". */
const char *const *ses_pipeline_job_files(const ses_call *c, const ses_pipeline_args *a, size_t *n);

/* Feeds all items: of the options, arguments or files. */
bool ses_pipeline_job_feed(ses_pipeline_job *j, ses_err *e);

/* The number to show for an item: counts the lines before the part, if that has not been done. */
int64_t ses_pipeline_job_number(ses_pipeline_job *j, int64_t number);
/* "FILE: line 3". */
void ses_pipeline_job_locate(char *buf, size_t size, ses_pipeline_job *j, int64_t number);
/* Ends the run, or reports the error and continues (--keep-going). */
bool ses_pipeline_job_item_error(void *job, const ses_item *item, const ses_err *why, ses_err *e);

/* An argument is an item, not one of its several texts. */
bool ses_pipeline_item_is_text(const ses_call *c);
/* The options give both texts of an item. */
bool ses_pipeline_has_both_texts(const ses_call *c);

#endif
