/* Predictions for a part of a file: ses_predictor_predict_stream for shards. Threads: as the predictor. */
#ifndef SES_TUNE_PREDICT_PART_H
#define SES_TUNE_PREDICT_PART_H

#include "sesame/finetune.h"

/* The rows that start in bytes [begin, end) of the decompressed file. Rows of other formats than tables are
 * as if they had the same size: row i of n starts at byte i * bytes / n. */
typedef struct ses_predict_part {
    uint64_t begin, end, bytes; /* bytes: of the whole file */
    /* Receives the first row of a table, if it is before the part; NULL: not needed. */
    bool (*on_first)(void *ctx, const ses_records *row, ses_err *e);
    /* Receives the start of each row, before its prediction. */
    bool (*on_start)(void *ctx, uint64_t offset, ses_err *e);
} ses_predict_part;

/* As ses_predictor_predict_stream; part NULL: the whole file. The callbacks share s->ctx. */
bool ses_predictor_predict_part(ses_predictor *p, const char *path, const ses_predict_stream *s,
                                const ses_predict_part *part, ses_err *e);

#endif
