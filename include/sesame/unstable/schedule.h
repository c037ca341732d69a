/* Learning-rate schedules: a factor of the base learning rate for each update, by the formulas of
 * transformers. Plain values: no ownership, any thread. */
#ifndef SESAME_SCHEDULE_H
#define SESAME_SCHEDULE_H

#include "sesame/base.h"

SES_BEGIN_DECLS

typedef struct ses_schedule {
    /* "constant", "linear", "cosine", "inverse_sqrt", "polynomial", "slanted", "plateau", "one_cycle" or
     * "wsd" (schedules.def) */
    const char *name;
    int64_t warmup, total;  /* updates of linear warmup; updates of the whole run */
    double power;           /* polynomial */
    double end_factor;      /* polynomial: the factor at the end */
    double num_cycles;      /* cosine: 0.5 falls once to 0 */
    double timescale;       /* inverse_sqrt; 0: warmup, or 10000 if warmup is 0 */
    double cut_frac, ratio; /* slanted (ULMFiT): fraction of the run that rises; highest over lowest rate */
    /* plateau: the rate is multiplied by `decay` when more than `patience` evaluations in a row bring no
     * improvement, as by PyTorch's ReduceLROnPlateau. `decays`: how often so far; the trainer counts. */
    double decay;
    int64_t patience, decays;
    /* one_cycle (Smith 2018, as fastai's): along half cosines from 1 / start_ratio to 1 over the first
     * rise_frac of the run, then to 1 / end_ratio; the momentum from momentum_high to momentum_low and back.
     * momentum_high 0: the momentum stays. */
    double rise_frac, start_ratio, end_ratio, momentum_high, momentum_low;
    double decay_part; /* wsd: fraction of the run at its end in which the factor falls to 0 */
} ses_schedule;

/* Fills out with the defaults of the schedule `name`: power 1, end_factor 0, num_cycles 0.5, cut_frac 0.1,
 * ratio 32, decay 0.5, patience 3, rise_frac 0.25, start_ratio 25, end_ratio 1e5, momentum 0.8 to 0.7
 * (ULMFiT), decay_part 0.2, warmup and total 0. Fails with SES_EARG on an unknown name. */
bool ses_schedule_defaults(const char *name, ses_schedule *out, ses_err *e);

/* Lists the schedules: the name of the i-th, NULL past the last. description may be NULL. Static strings. */
const char *ses_schedule_name(size_t i, const char **description);

/* The factor of update `step`, counted from 0. s->name must be a known schedule. Cannot fail. */
double ses_schedule_at(const ses_schedule *s, int64_t step);

/* Whether the factors depend on `total`: a run can be extended if they do not. name NULL: constant. */
bool ses_schedule_uses_total(const ses_schedule *s);

/* Whether the schedule rises at its start, so that it needs no warmup: slanted, one_cycle. */
bool ses_schedule_rises(const ses_schedule *s);
/* Whether the factor stays constant until the last `decay_part` of the run: wsd. */
bool ses_schedule_decays_late(const ses_schedule *s);
/* Whether the factors depend on evaluations: plateau. */
bool ses_schedule_needs_evaluation(const ses_schedule *s);
/* The momentum (SGD) or beta1 (Adam) of update `step`; < 0: the optimizer's own. */
double ses_schedule_momentum_at(const ses_schedule *s, int64_t step);

/* ratio * total, rounded up as transformers does. */
int64_t ses_warmup_updates(double ratio, int64_t total);

SES_END_DECLS

#endif
