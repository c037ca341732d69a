/* Opens the vector index of a text file for the commands index and search: builds it if it is missing,
 * updates it if the file has changed.
 *
 * Ownership: ses_text_index_close frees everything; arguments are borrowed. Threads: main thread only. */
#ifndef SES_CLI_TEXT_INDEX_H
#define SES_CLI_TEXT_INDEX_H

#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/shard/shard_plan.h"
#include "sesame/pipeline.h"
#include "task/vector_index.h"

typedef struct ses_text_index_args {
    int64_t threads;
    const char *device, *model, *column, *jsonl, *output, *text_prompt;
    const char *prompt, *prompt_name; /* search: before queries */
    const char *file, *shard;         /* index */
    int dtype;                        /* 0: f16, 1: int8, -1: that of the index, f16 for a new one */
    bool no_header, rebuild, json, merge;
    int encoding; /* a ses_text_encoding: of the file and of standard input */
} ses_text_index_args;

extern const ses_opt_table ses_text_index_options;

typedef struct ses_text_index {
    ses_device *dev;
    ses_pipeline *encoder;         /* owns the model */
    ses_pipeline *embed, *queries; /* for texts and queries: with their prompts */
    ses_thread_pool *pool;
    ses_vector_index *index;
    char *path;   /* index file */
    float *probe; /* [dim]: vector of the fixed text */
    int64_t dim;
    int64_t embedded, reused; /* texts of this call */
    int64_t truncated;        /* embedded texts that exceed the maximum length */
    bool is_written;          /* the index was missing or outdated */

    /* Set before the open: part of the file to index, whatever the index file has; NULL: all. */
    const ses_span *part;
    int64_t records; /* lines or rows read, also blank ones */
} ses_text_index;

/* Fails if the index is damaged or was built with another model, unless args->rebuild. t must be zeroed;
 * close it also after a failure. */
bool ses_text_index_open(ses_text_index *t, const ses_call *c, const ses_text_index_args *a, const char *file,
                         ses_err *e);
void ses_text_index_close(ses_text_index *t);

/* The name of numbers in the index: "line", or "row" of a table. */
const char *ses_text_index_unit(const ses_text_index_args *a);
/* Embeds a query; out: [dim]. */
bool ses_text_index_embed(ses_text_index *t, ses_string text, float *out, ses_err *e);

#endif
