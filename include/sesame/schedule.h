/* How a learning rate goes over a run: a factor of the rate for each update, as the reference library
 * computes it. Values only: nothing to free. */
#ifndef SESAME_SCHEDULE_H
#define SESAME_SCHEDULE_H

#include "sesame/err.h"

SES_BEGIN_DECLS

typedef struct ses_schedule {
    /* Of schedules.def: "constant", "linear", "cosine", "inverse_sqrt", "polynomial", "slanted". */
    const char *name;
    int64_t warmup, total;  /* updates; total is of the whole run */
    double power;           /* of polynomial */
    double end_factor;      /* of polynomial: the last factor */
    double num_cycles;      /* of cosine: 0.5 goes down once */
    double timescale;       /* of inverse_sqrt; 0: warmup, or 10000 without */
    double cut_frac, ratio; /* of slanted: share of the run that goes up, highest over lowest rate */
} ses_schedule;

/* The usual numbers: power 1, end 0, half a cosine, 10 % up and 32 times. False: none of this name. */
bool ses_schedule_defaults(const char *name, ses_schedule *out, ses_err *e);
const char *ses_schedule_name(size_t i, const char **what); /* the i-th of schedules.def; NULL past the end */

/* Of update `step`, counted from 0. The schedule is one ses_schedule_defaults has filled. */
double ses_schedule_at(const ses_schedule *s, int64_t step);

/* Updates that `ratio` of a run is, as the reference rounds: up. */
int64_t ses_warmup_updates(double ratio, int64_t total);

SES_END_DECLS

#endif
