/* Self-training: a classifier labels texts, and the next one learns the labels of high probability. */
#include "tune_method.h"

#include <stdio.h>

/* Examples for the next model; *n: how many texts got a label. */
static ses_examples *confident(ses_tune_run *r, const float *score, size_t *n, ses_err *e)
{
    size_t texts = ses_examples_count(r->unlabeled);
    size_t *pick = ses_arena_array(&r->mem, texts, sizeof *pick, e);
    int32_t *label = pick ? ses_arena_array(&r->mem, texts, sizeof *label, e) : NULL;
    *n = 0;
    for (size_t i = 0; label && i < texts; i++) {
        double p;
        int32_t best = ses_tune_best(r, score, i, &p);
        if (p >= r->plan.settings.threshold) pick[*n] = i, label[(*n)++] = best;
    }
    return label ? ses_tune_examples(r, true, pick, label, *n, e) : NULL;
}

static bool run(ses_tune_run *r, ses_err *e)
{
    for (int64_t round = 1; round < r->plan.settings.rounds; round++) {
        size_t n;
        ses_tune_vote vote;
        ses_tune_member m = { .train = r->extra, .seed = r->o.run.seed };
        snprintf(m.name, sizeof m.name, "round-%d", (int)round);
        if (!ses_tune_member_run(r, &m, &vote, e)) return false;
        ses_examples *next = confident(r, vote.score, &n, e);
        if (!next) return false;
        ses_examples_free(r->extra);
        r->extra = next;
        if (!ses_tune_notify(r, "round %d: %zu of %zu texts have a label of probability %g or more",
                             (int)round, n, ses_examples_count(r->unlabeled), r->plan.settings.threshold))
            return true;
    }
    return ses_tune_final(r, e);
}

const ses_tune_method ses_tune_method_self_training = {
    .name = "self-training",
    .summary = "a classifier learns its own sure labels, round by round",
    .settings = "rounds|threshold",
    .needs_unlabeled = true,
    .run = run,
};
