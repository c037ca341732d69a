/* iPET: PET in generations, each trained on texts that the one before has labeled. */
#include "pet_ensemble.h"

static bool run(ses_tune_run *r, ses_err *e) { return ses_pet_run(r, r->plan.settings.generations, e); }

const ses_tune_method ses_tune_method_ipet = {
    .name = "ipet",
    .summary = "PET in generations that learn from each other",
    .settings =
        "repetitions|member-steps|member-weights|mlm-weight|soft-temperature|generations|growth|voters",
    .needs_patterns = true,
    .needs_unlabeled = true,
    .run = run,
};
