/* Movement pruning (Sanh et al. 2020; of blocks: Lagunas et al. 2021): each block has a score S that is
 * trained by dL/dS = sum over the block of dL/dW' W. The score of a block whose weights move away from zero
 * grows. The blocks with the largest scores of a matrix are kept. */
#include "pruner.h"

static void rank(const ses_pruner *p, ses_prune_group *g)
{
    p->dev->mem->download(p->dev, g->importance, ses_master_data(g->score),
                          (size_t)g->n_blocks * sizeof *g->importance);
}

const ses_prune_criterion ses_criterion_movement = {
    .name = "movement",
    .summary = "scores trained with the weights: blocks that move away from zero stay",
    .has_scores = true,
    .uses_keep = true,
    .rank = rank,
};
