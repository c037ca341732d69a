/* TensorBoard's event files: numbers over steps, as `tensorboard --logdir DIR` shows them.
 *
 * A file is a sequence of records: length (u64), masked CRC-32C of the length, bytes, masked CRC-32C of the
 * bytes, all little-endian. The bytes are an Event of protocol buffers:
 *     1 wall_time (double)  2 step (int64)  3 file_version (string)  5 summary  7 session_log
 * with summary = { 1: { 1 tag (string), 2 simple_value (float) } ... } and session_log = { 1 status }.
 *
 * Each call writes whole records, so a killed process leaves at most one cut short, which readers pass over.
 * The clock is the caller's: seconds since 1970. */
#ifndef SES_IO_EVENT_FILE_H
#define SES_IO_EVENT_FILE_H

#include "sesame/err.h"

typedef struct ses_event_file ses_event_file;

typedef struct ses_event_value {
    const char *tag; /* "train/loss": what stands before the '/' is a section */
    double value;    /* NaN and infinity are shown as such */
} ses_event_value;

/* A new file in dir, made if absent: events.out.tfevents.SECONDS.MICROSECONDS.sesame. step: the first
 * to come; what older files of the folder say of it and of later ones is not shown. */
ses_event_file *ses_event_file_new(const char *dir, double wall, int64_t step, ses_err *e);
void ses_event_file_free(ses_event_file *f);
const char *ses_event_file_path(const ses_event_file *f);

/* All values of one step. */
bool ses_event_file_put(ses_event_file *f, double wall, int64_t step, const ses_event_value *v, size_t n,
                        ses_err *e);

bool ses_event_files_remove(const char *dir, ses_err *e); /* those of Sesame; fine where dir is absent */

uint32_t ses_crc32c(const void *p, size_t n); /* Castagnoli's polynomial, as iSCSI (RFC 3720) */

#endif
