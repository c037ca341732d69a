/* Options of pruning during training. */
#include "pruner.h"
#include "train/train_options.h"

ses_pruning_options ses_pruning_defaults(void)
{
    return (ses_pruning_options){
        .warmup = 0.1, .cooldown = 0.3, .score_lr = 0.01, .threshold = 0.1, .penalty = 1
    };
}

static const ses_opt opt[] = {
    SES_OPT_TEXT(
        ses_pruning_options, criterion, "prune", "CRITERION",
        "set blocks of the layers' weights to zero while training: movement, soft-movement or magnitude "
        "(docs/COMPRESSION.md); rows and heads that become empty are removed when the model is saved"),
    SES_OPT_TEXT(
        ses_pruning_options, block, "block", "OUTxIN",
        "with --prune: shape of a block, outputs x inputs, as 32x32 or 1x4; row: an output, column: an "
        "input, unit: a head, a feed-forward row; default: 32x32"),
    SES_OPT_REAL(ses_pruning_options, keep, "keep", "0", 0, 1000,
                 "with --prune: fraction of the blocks of each matrix that is kept, above 0 and at most 1"),
    SES_OPT_REAL(ses_pruning_options, warmup, "prune-warmup", "0.1", 0, 1e9,
                 "updates before the kept fraction begins to fall from 1; below 1: fraction of the run"),
    SES_OPT_REAL(ses_pruning_options, cooldown, "prune-cooldown", "0.3", 0, 1e9,
                 "updates after the kept fraction has reached --keep; below 1: fraction of the run"),
    SES_OPT_REAL(ses_pruning_options, score_lr, "score-lr", "0.01", 0, 100,
                 "movement: peak learning rate of the scores"),
    SES_OPT_REAL(ses_pruning_options, threshold, "prune-threshold", "0.1", 0, 1,
                 "soft-movement: smallest sigmoid of the score of a kept block"),
    SES_OPT_REAL(ses_pruning_options, penalty, "prune-penalty", "1", 0, 1e6,
                 "soft-movement: weight of the mean sigmoid of the scores in the loss"),
};
const ses_opt_table ses_pruning_option_table = { opt, SES_LEN(opt), "compress" };
