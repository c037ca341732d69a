/* Records of shards: FILE.done, written when FILE is complete, and FILE.progress while it is not. A checksum
 * covers all of a record (base/json/json_helpers.h).
 *
 * The identity of a result is a JSON object of everything its bytes depend on: version, command, shard,
 * input, options, models. A result with another identity is not continued.
 *
 * Ownership: texts are freed with ses_free. Threads: main thread only. */
#ifndef SES_CLI_SHARD_MARKER_H
#define SES_CLI_SHARD_MARKER_H

#include "base/sha.h"
#include "cli/command.h"
#include "shard_plan.h"

/* Counts of the output so far. */
typedef struct ses_shard_counts {
    uint64_t block;           /* blocks before this one are complete */
    uint64_t records, failed; /* failed: records with an error (--keep-going) */
    uint64_t bytes;
    char sha256[SES_SHA256_HEX + 1]; /* hash of these bytes */
} ses_shard_counts;

/* More of the identity than the command has: models is a list of folders, ending with NULL; isa may be
 * NULL. */
typedef struct ses_shard_conditions {
    const char *const *models;
    const char *isa;
} ses_shard_conditions;

/* The identity of the result of a call. Options that do not change results, as --threads, are left out. */
char *ses_shard_identity(const ses_call *c, const ses_shard_plan *p, const ses_shard_conditions *conditions,
                         ses_err *e);

/* PATH followed by ".done" or ".progress". */
char *ses_shard_marker_path(const char *path, const char *suffix, ses_err *e);

/* Writes a record. extra: a JSON object whose members are added; NULL: none. */
bool ses_shard_marker_write(const char *marker, const ses_shard_plan *p, const char *identity,
                            const ses_shard_counts *n, const char *extra, ses_err *e);
/* Reads a record; NULL without an error: there is none. */
ses_json_doc *ses_shard_marker_read(const char *marker, ses_shard_counts *n, ses_err *e);
/* Fails unless the record has this identity, and names the first difference. what: "partial result". */
bool ses_shard_marker_check(const ses_json_doc *marker, const char *name, const char *identity,
                            const char *what, ses_err *e);

/* Fails unless the file has the size and hash of its record. */
bool ses_shard_file_check(const char *path, const ses_shard_counts *n, ses_err *e);

/* Whether PATH and PATH.done exist and belong together; prints a line if so. overwrite: removes the marker
 * instead. Fails if the marker has another identity. *n: its counts. */
bool ses_shard_is_complete(const ses_call *c, const char *path, const char *identity, bool overwrite,
                           ses_shard_counts *n, bool *complete, ses_err *e);

/* Adds bytes [from, to) of an open file to a hash. */
bool ses_shard_hash_file(int fd, const char *name, uint64_t from, uint64_t to, ses_sha *sha, ses_err *e);

#endif
