/* Soft movement pruning (Sanh et al. 2020): the blocks with sigmoid(S) above a threshold are kept; a penalty,
 * the mean of sigmoid(S) over the blocks of each matrix and over the matrices, lowers the scores. Its weight
 * rises as the schedule's kept fraction would fall. */
#include "pruner.h"

#include <math.h>

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static void penalize(const ses_pruner *p, const ses_prune_group *g, double weight)
{
    size_t bytes = (size_t)g->n_blocks * sizeof *g->importance;
    double rise = 1 - p->o.keep, done = rise > 0 ? (1 - ses_pruner_target(p, p->updates)) / rise : 1;
    double each = weight * p->o.penalty * done / (double)g->n_blocks / (double)p->n_groups;
    ses_real *x = g->importance;
    p->dev->mem->download(p->dev, x, ses_master_data(g->score), bytes);
    for (int64_t k = 0; k < g->n_blocks; k++) {
        double s = sigmoid((double)x[k]);
        x[k] = (ses_real)(each * s * (1 - s));
    }
    p->dev->mem->upload(p->dev, p->scratch, x, bytes);
    p->dev->k_f32.add(&p->dev->exec, g->score->grad, g->score->grad, p->scratch, g->n_blocks);
}

static void rank(const ses_pruner *p, ses_prune_group *g)
{
    ses_criterion_movement.rank(p, g);
    for (int64_t k = 0; k < g->n_blocks; k++) g->importance[k] = (ses_real)sigmoid((double)g->importance[k]);
}

static double threshold(const ses_pruner *p) { return p->o.threshold; }

const ses_prune_criterion ses_criterion_soft_movement = {
    .name = "soft-movement",
    .summary = "blocks whose trained score is above a threshold stay; a penalty lowers the scores",
    .has_scores = true,
    .penalize = penalize,
    .rank = rank,
    .threshold = threshold,
};
