/* A zip archive in memory, seen one way only: as its central directory tells it, with every other place that
 * could tell it otherwise made to agree. Entries are stored, not compressed, lie end to end from the first
 * byte on, and are used where they lie; checksums are not read, so no page of an entry is touched.
 *
 * Whatever else the format knows is refused: encryption, compression, comments, parts on other disks, bytes
 * no entry has. ZIP64 and data descriptors are read. An open archive is read-only. */
#ifndef SES_IO_ZIP_H
#define SES_IO_ZIP_H

#include "base/strmap.h"
#include "sesame/err.h"

typedef struct ses_zip_entry {
    const char *name; /* borrowed from the archive, with no NUL after it */
    size_t name_len;
    const unsigned char *data;
    size_t size;
    size_t header;  /* where its local header begins, */
    size_t end;     /* and where its data ends */
    bool described; /* a data descriptor may follow */
} ses_zip_entry;

typedef struct ses_zip {
    ses_zip_entry *entry; /* in the order of their bytes */
    size_t n;
    ses_strmap names; /* to an entry's index */
} ses_zip;

/* The bytes outlive the ses_zip, which is zeroed before, and to be freed even when this fails. */
bool ses_zip_read(ses_zip *z, const void *bytes, size_t n, ses_err *e);
void ses_zip_free(ses_zip *z); /* back to zero */

const ses_zip_entry *ses_zip_find(const ses_zip *z, const char *name, size_t n); /* NULL when absent */

#endif
