/* Shards: --shard I/N divides the input of a command into N parts. Their outputs, concatenated, are the
 * output of one process.
 *
 * The input is divided into blocks of SES_SHARD_BLOCK bytes of each (decompressed) file; a record belongs to
 * the block in which it starts. Blocks depend on the input only, and shard I has blocks [I*M/N, (I+1)*M/N) of
 * all M. A file has at least one block, so that some shard opens an empty file.
 *
 * Ownership: names are borrowed; ses_shard_plan_free frees the rest. Main thread only: standard input may be
 * replaced. */
#ifndef SES_CLI_SHARD_PLAN_H
#define SES_CLI_SHARD_PLAN_H

#include "base/opt_table.h"

enum { SES_SHARD_BLOCK = 4096, SES_SHARD_MAX = 1000000 };

typedef struct ses_shard {
    int64_t index, count; /* count 0: the whole input */
} ses_shard;

#define SES_OPT_SHARD(struct_, field)                                                                    \
    SES_OPT_TEXT(struct_, field, "shard", "I/N",                                                         \
                 "process part I of N, I from 0: the outputs of all parts, concatenated, are the whole", \
                 .completion = "")

/* "2/8"; NULL: the whole input. */
bool ses_shard_parse(const char *text, ses_shard *out, ses_err *e);

/* Part of a file: the records that start in bytes [begin, end), decompressed. */
typedef struct ses_span {
    const char *file;
    uint64_t begin, end;  /* end UINT64_MAX: to the end of the file */
    uint64_t first_block; /* number of the block at `begin`, in all files */
} ses_span;

uint64_t ses_span_block(const ses_span *s, uint64_t offset); /* the block of a record */

typedef struct ses_shard_file {
    const char *name;
    uint64_t bytes, blocks; /* decompressed */
    bool compressed;
} ses_shard_file;

typedef struct ses_shard_plan {
    ses_shard shard;
    ses_shard_file *file;
    size_t n_files;
    uint64_t blocks, first, last; /* number of blocks in all files; this shard has [first, last) */
} ses_shard_plan;

/* Measures n files; "-" is standard input, which is copied to a temporary file unless it is a regular one.
 * A shard of count 0 measures nothing and has one block. *p must be zeroed. */
bool ses_shard_plan_make(ses_shard_plan *p, ses_shard shard, const char *const *file, size_t n, ses_err *e);
void ses_shard_plan_free(ses_shard_plan *p);

/* The parts of files with blocks [from, to), in order; free with ses_free. No shard: all files. */
ses_span *ses_shard_plan_spans(const ses_shard_plan *p, uint64_t from, uint64_t to, size_t *n, ses_err *e);

/* Hash of the bytes that the output of the shard depends on: its part of plain files, all of compressed ones,
 * and the first block of the first file, which has the names of columns. */
bool ses_shard_plan_hash(const ses_shard_plan *p, uint64_t *hash, ses_err *e);

#endif
