/* Maps a function over the lines of files or standard input on several threads and writes the results to
 * standard output in input order. Compressed files are decompressed. Input is processed as it arrives, so
 * that interactive use answers each line. Memory: a few chunks, or the longest line (at most 256 MiB).
 *
 * Threads: fn runs on `threads` workers at once; `worker` tells them apart. */
#ifndef SES_CLI_MAP_LINES_H
#define SES_CLI_MAP_LINES_H

#include "base/str.h"
#include "command.h"
#include "io/text_decoder.h"

/* Processes a line without its line end (LF or CRLF) and appends the result to out. false: stop; the
 * lines before it are written, and the error gets the file name and line number. */
typedef bool ses_line_fn(void *ctx, int worker, const char *line, size_t n, ses_buf *out, ses_err *e);

/* files ends with NULL; an empty list and "-" mean standard input. */
bool ses_map_lines(char *const *files, ses_text_encoding encoding, int threads, ses_line_fn *fn, void *ctx,
                   ses_err *e);

/* Files of texts and their encoding, from options. */
typedef struct ses_text_files {
    ses_opt_list files;
    int encoding; /* a ses_text_encoding */
} ses_text_files;

/* Maps fn over the texts of a command line, by the rule of cli/text_operands.h: the operands, or the lines of
 * `files`; if both are empty, standard input. operands_are_files: all operands are files. */
bool ses_map_texts(const ses_call *c, const ses_text_files *files, bool operands_are_files, int threads,
                   ses_line_fn *fn, void *ctx, ses_err *e);

/* The options -f FILE and --encoding of commands that use ses_map_texts; field: a ses_text_files. */
#define SES_OPT_TEXT_FILES(struct_, field)                                                     \
    SES_OPT_LIST(struct_, field.files, "file", "FILE",                                         \
                 "read texts from this file, one per line; -: standard input", .letter = 'f'), \
        SES_OPT_ENCODING(struct_, field.encoding)

#endif
