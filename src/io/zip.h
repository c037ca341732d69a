/* Zip archives in memory. The central directory is authoritative, and every other record must agree with
 * it. Entries must be stored, not compressed, and contiguous from the first byte; they are used in place.
 * Checksums are not verified, so no page of an entry is touched.
 *
 * Refused: encryption, compression, comments, multi-disk archives, bytes outside entries. Supported: ZIP64
 * and data descriptors. An open archive is read-only. */
#ifndef SES_IO_ZIP_H
#define SES_IO_ZIP_H

#include "base/strmap.h"
#include "sesame/base.h"

typedef struct ses_zip_entry {
    const char *name; /* borrowed from the archive; not NUL-terminated */
    size_t name_len;
    const unsigned char *data;
    size_t size;
    size_t header;       /* offset of its local header */
    size_t end;          /* offset of the end of its data */
    bool has_descriptor; /* a data descriptor may follow */
} ses_zip_entry;

typedef struct ses_zip {
    ses_zip_entry *entry; /* by offset */
    size_t n;
    ses_strmap names; /* name to index in entry */
} ses_zip;

/* *z must be zeroed; free it even on failure. The bytes must outlive it. */
bool ses_zip_read(ses_zip *z, const void *bytes, size_t n, ses_err *e);
void ses_zip_free(ses_zip *z); /* back to zero */

const ses_zip_entry *ses_zip_find(const ses_zip *z, const char *name, size_t n); /* NULL if absent */

#endif
