/* Reads sequences of token ids from the command line, files (possibly compressed, see io/input_stream.h) or
 * standard input, one per line. Only the current batch is kept. Ownership: ses_id_batch_free and
 * ses_id_reader_close; names are borrowed. One thread per reader. */
#ifndef SES_CLI_ID_READER_H
#define SES_CLI_ID_READER_H

#include "cli/option_parser.h"
#include "io/input_stream.h"
#include "run/batch_builder.h"

/* Source of a sequence. */
typedef struct ses_id_origin {
    const char *file; /* NULL: --ids */
    int64_t line;     /* from 1; --ids: number of the option */
    int64_t number;   /* from 1, over all inputs */
} ses_id_origin;

/* Sequences of a batch. */
typedef struct ses_id_batch {
    ses_id_origin *origin; /* [seqs] */
    ses_batch_builder in;  /* input of the model, and of the decoder of an encoder-decoder */
    int64_t seqs;
    size_t seq_cap;
} ses_id_batch;

void ses_id_batch_clear(ses_id_batch *l);
void ses_id_batch_truncate(ses_id_batch *l, int64_t seqs); /* keeps the first ones */
void ses_id_batch_free(ses_id_batch *l);

/* Limits of the model. */
typedef struct ses_id_limits {
    int64_t vocab, tokens, segments;
    bool target;   /* ids after > are decoder input */
    int64_t start; /* default decoder input; -1: none, required */
} ses_id_limits;

typedef struct ses_id_reader {
    ses_opt_list ids;     /* --ids, read first */
    char **file;          /* then these files, up to NULL; "-": standard input */
    const char *text;     /* unread rest of the current --ids */
    size_t next_ids;      /* index of the next --ids */
    ses_input_stream *in; /* the open file; NULL: --ids */
    const char *name;     /* the open file */
    unsigned char buf[4096];
    size_t at, have; /* unread bytes of buf */
    ses_err failed;  /* the first read error of the file */
    int64_t line, number;
    int64_t bytes; /* read from files, as stored */
} ses_id_reader;

typedef enum { SES_ID_READ_END, SES_ID_READ_OK, SES_ID_READ_ERROR } ses_id_read_status;

/* Appends the next sequence to l. An error gives the file and line; then nothing of that line is appended. */
ses_id_read_status ses_id_reader_next(ses_id_reader *r, const ses_id_limits *limit, ses_id_batch *l,
                                      ses_err *e);
void ses_id_reader_close(ses_id_reader *r);

/* "ids.txt: line 3", for messages. */
const char *ses_id_origin_text(char *buf, size_t size, const ses_id_origin *o);

#endif
