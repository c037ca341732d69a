/* Ensembles: several models predict the same rows, and the means of their probabilities (of numbers: of the
 * values) become the predictions. Tasks have a hook `combine`; this file has the hooks of tasks with scores.
 *
 * All arguments are borrowed. One thread. */
#ifndef SES_TUNE_ENSEMBLE_H
#define SES_TUNE_ENSEMBLE_H

#include "tune/finetuner.h"

struct ses_ensemble_member {
    ses_finetuner *t;
    ses_finetune_set *s; /* the same rows for all members */
    ses_finetune_outputs *o;
    const char *name;     /* the model's folder, for messages */
    const int32_t *label; /* [n_labels] its label for each label of the first member; NULL: the same */
};

/* The label of member m for label i of the first member. */
static inline size_t ses_ensemble_label(const ses_ensemble_member *m, size_t i)
{
    return m->label ? (size_t)m->label[i] : i;
}

/* Finds each label of the first model among the labels of another one: map [n]. Fails and names the labels
 * of both, if they are not the same set. */
bool ses_ensemble_match_labels(const char *const *label, size_t n, const char *const *other, size_t n_other,
                               const char *name, const char *other_name, int32_t *map, ses_err *e);

/* Hooks `combine`. Scores of one label: log of the mean probabilities; of several labels: log odds of the
 * mean probabilities; numbers: their means. */
bool ses_ensemble_combine_classes(const ses_ensemble_member *m, size_t n, ses_err *e);
bool ses_ensemble_combine_sets(const ses_ensemble_member *m, size_t n, ses_err *e);
bool ses_ensemble_combine_reals(const ses_ensemble_member *m, size_t n, ses_err *e);

#endif
