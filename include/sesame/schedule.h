/* Learning-rate schedules: a factor of the base learning rate for each update, by the formulas of
 * transformers. Plain values: no ownership, any thread. */
#ifndef SESAME_SCHEDULE_H
#define SESAME_SCHEDULE_H

#include "sesame/err.h"

SES_BEGIN_DECLS

typedef struct ses_schedule {
    /* "constant", "linear", "cosine", "inverse_sqrt", "polynomial" or "slanted" (schedules.def) */
    const char *name;
    int64_t warmup, total;  /* updates of linear warmup; updates of the whole run */
    double power;           /* polynomial */
    double end_factor;      /* polynomial: the factor at the end */
    double num_cycles;      /* cosine: 0.5 falls once to 0 */
    double timescale;       /* inverse_sqrt; 0: warmup, or 10000 if warmup is 0 */
    double cut_frac, ratio; /* slanted (ULMFiT): fraction of the run that rises; highest over lowest rate */
} ses_schedule;

/* Fills out with the defaults of the schedule `name`: power 1, end_factor 0, num_cycles 0.5, cut_frac 0.1,
 * ratio 32, warmup and total 0. Fails with SES_EARG on an unknown name. */
bool ses_schedule_defaults(const char *name, ses_schedule *out, ses_err *e);

/* Lists the schedules: the name of the i-th, NULL past the last. description may be NULL. Static strings. */
const char *ses_schedule_name(size_t i, const char **description);

/* The factor of update `step`, counted from 0. s->name must be a known schedule. Cannot fail. */
double ses_schedule_at(const ses_schedule *s, int64_t step);

/* Whether the factors depend on `total`: a run can be extended if they do not. name NULL: constant. */
bool ses_schedule_uses_total(const ses_schedule *s);

/* ratio * total, rounded up as transformers does. */
int64_t ses_warmup_updates(double ratio, int64_t total);

SES_END_DECLS

#endif
