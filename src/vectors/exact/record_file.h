/* Co-occurrence records in a temporary file without a name, which disappears with its descriptor. Records are
 * appended, then read in ranges.
 *
 * Threads: one at a time. */
#ifndef SES_VECTORS_RECORD_FILE_H
#define SES_VECTORS_RECORD_FILE_H

#include "sesame/base.h"

typedef struct ses_record {
    int32_t word, context; /* from 1 */
    double value;
} ses_record;

enum { SES_RECORD_BUFFER = 1 << 14 };

typedef struct ses_record_file {
    int fd;
    const char *beside; /* path whose folder holds the file */
    int64_t n;          /* records, including the buffered ones */
    ses_record *buffer;
    size_t held;
} ses_record_file;

/* Opens a file in the folder of `beside`, which is borrowed. Free it even if this fails; a zeroed one may be
 * freed. */
bool ses_record_file_open(ses_record_file *f, const char *beside, ses_err *e);
bool ses_record_file_put(ses_record_file *f, const ses_record *r, size_t n, ses_err *e);
bool ses_record_file_flush(ses_record_file *f, ses_err *e); /* before the first read */
void ses_record_file_free(ses_record_file *f);              /* back to zero */

/* Reads the records [at, end). */
typedef struct ses_record_reader {
    const ses_record_file *file;
    int64_t at, end;
    ses_record *buffer; /* [SES_RECORD_BUFFER] */
    size_t held, next;
} ses_record_reader;

bool ses_record_reader_open(ses_record_reader *r, const ses_record_file *f, int64_t at, int64_t end,
                            ses_err *e);
/* False without an error: the end. */
bool ses_record_reader_next(ses_record_reader *r, ses_record *out, ses_err *e);
void ses_record_reader_free(ses_record_reader *r);

#endif
