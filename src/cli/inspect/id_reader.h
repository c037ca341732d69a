/* Sequences of token ids from the command line, files or standard input, one a line; nothing but the batch in
 * hand is kept. */
#ifndef SES_CLI_ID_READER_H
#define SES_CLI_ID_READER_H

#include "cli/option_parser.h"

#include <stdio.h>

/* Where a sequence came from. */
typedef struct ses_id_origin {
    const char *file; /* NULL: --ids */
    int64_t line;     /* from 1; of --ids: which one */
    int64_t number;   /* from 1, over all input */
} ses_id_origin;

/* Tokens of sequences laid end to end. */
typedef struct ses_packed_ids {
    int32_t *cu; /* [seqs + 1] */
    int32_t *id;
    int64_t n;
    size_t room;
} ses_packed_ids;

/* Sequences as ses_batch wants them. */
typedef struct ses_id_batch {
    ses_id_origin *origin;   /* [seqs] */
    ses_packed_ids text;     /* what the model reads */
    ses_packed_ids target;   /* what its decoder reads, where it has one beside an encoder */
    ses_packed_ids segments; /* of text; cu is not used */
    int64_t seqs;
    size_t seq_room;
} ses_id_batch;

void ses_id_batch_clear(ses_id_batch *l);
void ses_id_batch_free(ses_id_batch *l);

/* What the model takes. */
typedef struct ses_id_limits {
    int64_t vocab, tokens, segments;
    bool target;   /* a decoder reads what follows a > */
    int64_t start; /* what it reads where nothing does; -1: that is an error */
} ses_id_limits;

typedef struct ses_id_reader {
    ses_opt_list given; /* --ids, read first */
    char **file;        /* then these, up to NULL; "-" is standard input */
    const char *text;   /* the rest of the given sequence being read */
    size_t next_given;  /* so many of them are done */
    FILE *f;
    const char *name; /* of the file open */
    int64_t line, number;
    int64_t bytes; /* of files, read so far */
} ses_id_reader;

typedef enum { SES_ID_READ_END, SES_ID_READ_OK, SES_ID_READ_ERROR } ses_id_read_status;

/* Append the next sequence to l. An error names the file and line, and nothing of that line is appended. */
ses_id_read_status ses_id_reader_next(ses_id_reader *r, const ses_id_limits *limit, ses_id_batch *l,
                                      ses_err *e);
void ses_id_reader_close(ses_id_reader *r);

/* "ids.txt: line 3", for messages. */
const char *ses_id_origin_text(char *buf, size_t size, const ses_id_origin *o);

#endif
