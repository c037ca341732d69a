/* PET: pattern-exploiting training (Schick and Schuetze 2021). */
#include "pet_ensemble.h"

static bool run(ses_tune_run *r, ses_err *e) { return ses_pet_run(r, 1, e); }

const ses_tune_method ses_tune_method_pet = {
    .name = "pet",
    .summary = "models of several cloze patterns label texts for a classifier",
    .settings = "repetitions|member-steps|member-weights|mlm-weight|soft-temperature",
    .needs_patterns = true,
    .needs_unlabeled = true,
    .run = run,
};
