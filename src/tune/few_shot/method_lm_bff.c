/* LM-BFF (Gao et al. 2021): a masked LM reads a pattern with an answered example of each label behind it. */
#include "verbalizer_search.h"

/* The training examples become demonstrations of the patterns. */
static bool add_demonstrations(ses_tune_run *r, ses_err *e)
{
    ses_patterns *p = r->patterns;
    size_t n = ses_examples_count(r->train);
    p->demonstration = ses_arena_array(&p->mem, n, sizeof *p->demonstration, e);
    if (!p->demonstration) return false;
    for (size_t i = 0; i < n; i++) {
        const ses_labeled_example *x = ses_examples_at(r->train, i);
        p->demonstration[i] =
            (ses_demonstration){ ses_examples_label_name(r->train, (size_t)x->label), x->text_a, x->text_b };
    }
    p->n_demonstrations = n;
    p->demonstration_sets = r->plan.settings.demonstration_sets;
    return true;
}

static bool run(ses_tune_run *r, ses_err *e)
{
    if (r->plan.settings.search_words && !ses_verbalizer_search(r, e)) return false;
    if (!add_demonstrations(r, e)) return false;
    r->how = (ses_few_shot){ .patterns = r->patterns };
    if (!r->plan.has_epochs && !r->o.run.steps) r->o.run.steps = r->plan.settings.member_steps;
    return ses_tune_final(r, e);
}

const ses_tune_method ses_tune_method_lm_bff = {
    .name = "lm-bff",
    .summary = "a masked LM and one pattern with answered examples",
    .settings = "member-steps|demonstration-sets|search-words",
    .needs_patterns = true,
    .run = run,
};
