/* Rows of a part of a file, for readers of sesame/unstable/table.h. Threads: as for the reader. */
#ifndef SES_IO_RECORDS_RANGE_H
#define SES_IO_RECORDS_RANGE_H

#include "sesame/unstable/table.h"

/* Limits an open reader, before its first row, to the rows that start in bytes [begin, end) of the
 * decompressed file. path: as it was opened. A plain file is not read up to `begin`, unless quoted fields
 * may contain line ends. */
bool ses_records_set_range(ses_records *r, const char *path, uint64_t begin, uint64_t end, ses_err *e);
/* Start of the last row in the decompressed file. */
uint64_t ses_records_offset(const ses_records *r);
/* Line number of the last row, less the lines that were skipped, until ses_records_line counts them. */
uint64_t ses_records_line_read(const ses_records *r);
/* Whether the last call of ses_records_next failed because of the fields of a row: the next call reads the
 * row after it. */
bool ses_records_row_failed(const ses_records *r);

#endif
