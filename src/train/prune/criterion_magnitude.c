/* Magnitude pruning (Zhu and Gupta 2017): the blocks of a matrix with the largest root mean square are
 * kept. */
#include "pruner.h"

#include <math.h>

static int64_t block_size(const ses_block_grid *g, int64_t k)
{
    int64_t across = ses_block_grid_cols(g), r = k / across * g->block_rows, c = k % across * g->block_cols;
    int64_t rows = g->rows - r < g->block_rows ? g->rows - r : g->block_rows;
    int64_t cols = g->cols - c < g->block_cols ? g->cols - c : g->block_cols;
    return rows * cols;
}

static void rank(const ses_pruner *p, ses_prune_group *g)
{
    size_t bytes = (size_t)g->n_blocks * sizeof *g->importance;
    p->dev->mem->zero(p->dev, p->scratch, bytes);
    for (int i = 0; i < g->n_parts; i++) {
        const ses_real *w = p->weight[g->part[i].weight].dense + g->part[i].offset;
        p->dev->k_f32.block_dot(&p->dev->exec, p->scratch, w, w, g->part[i].grid);
    }
    p->dev->mem->download(p->dev, g->importance, p->scratch, bytes);
    for (int64_t k = 0; k < g->n_blocks; k++) {
        int64_t n = 0;
        for (int i = 0; i < g->n_parts; i++) n += block_size(&g->part[i].grid, k);
        g->importance[k] = (ses_real)sqrt((double)g->importance[k] / (double)n);
    }
}

const ses_prune_criterion ses_criterion_magnitude = {
    .name = "magnitude",
    .summary = "blocks with the largest root mean square stay",
    .uses_keep = true,
    .rank = rank,
};
