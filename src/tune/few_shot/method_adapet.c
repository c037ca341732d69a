/* ADAPET (Tam et al. 2021): a masked LM learns the words of labels against the whole vocabulary, and the
 * tokens of a text given its label. It needs no unlabeled texts. */
#include "tune_method.h"

static bool run(ses_tune_run *r, ses_err *e)
{
    r->how = (ses_few_shot){ .decoupled = true };
    if (!r->plan.has_epochs && !r->o.run.steps) r->o.run.steps = r->plan.settings.member_steps;
    return ses_tune_final(r, e);
}

const ses_tune_method ses_tune_method_adapet = {
    .name = "adapet",
    .summary = "a masked LM and one pattern, trained on labels and on the tokens of labeled texts",
    .settings = "member-steps",
    .needs_patterns = true,
    .run = run,
};
