/* TensorBoard event files: scalars over steps, as `tensorboard --logdir DIR` reads them.
 *
 * A file is a sequence of records: length (u64), masked CRC-32C of the length, payload, masked CRC-32C of
 * the payload, all little-endian. The payload is an Event protocol buffer:
 *     1 wall_time (double)  2 step (int64)  3 file_version (string)  5 summary  7 session_log
 * with summary = { 1: { 1 tag (string), 2 simple_value (float) } ... } and session_log = { 1 status }.
 *
 * Each call writes complete records, so a killed process leaves at most one incomplete record, which
 * readers ignore. Times are passed by the caller, in seconds since 1970. A file belongs to one thread. */
#ifndef SES_IO_EVENT_FILE_H
#define SES_IO_EVENT_FILE_H

#include "sesame/base.h"

typedef struct ses_event_file ses_event_file;

typedef struct ses_event_value {
    const char *tag; /* "train/loss": the part before the '/' is a section */
    double value;    /* NaN and infinity are kept */
} ses_event_value;

/* Creates events.out.tfevents.SECONDS.MICROSECONDS.sesame in dir, which is created if absent. step: the first
 * step that will follow; TensorBoard hides values of older files in the folder from this step on. */
ses_event_file *ses_event_file_new(const char *dir, double wall, int64_t step, ses_err *e);
void ses_event_file_free(ses_event_file *f);
const char *ses_event_file_path(const ses_event_file *f);

/* Writes all values of one step. */
bool ses_event_file_put(ses_event_file *f, double wall, int64_t step, const ses_event_value *v, size_t n,
                        ses_err *e);

/* Removes Sesame's event files; dir may be absent. */
bool ses_event_files_remove(const char *dir, ses_err *e);

#endif
