/* Options of pruning during training. */
#include "pruner.h"
#include "train/train_options.h"

ses_pruning_options ses_pruning_defaults(void)
{
    return (ses_pruning_options){
        .warmup = 0.1, .cooldown = 0.3, .score_lr = 0.01, .threshold = 0.1, .penalty = 1
    };
}

#define AT(field) offsetof(ses_pruning_options, field)
static const ses_opt opt[] = {
    { .name = "prune",
      .type = SES_OPT_TEXT,
      .offset = AT(criterion),
      .value = "CRITERION",
      .help =
          "set blocks of the layers' weights to zero while training: movement, soft-movement or magnitude "
          "(docs/COMPRESSION.md); rows and heads that become empty are removed when the model is saved" },
    { .name = "block",
      .type = SES_OPT_TEXT,
      .offset = AT(block),
      .value = "OUTxIN",
      .help = "with --prune: shape of a block, outputs x inputs, as 32x32 or 1x4; row: an output, column: an "
              "input, unit: a head, a feed-forward row; default: 32x32" },
    { .name = "keep",
      .type = SES_OPT_REAL,
      .offset = AT(keep),
      .def = "0",
      .min = 0,
      .max = 1000,
      .help = "with --prune: fraction of the blocks of each matrix that is kept, above 0 and at most 1" },
    { .name = "prune-warmup",
      .type = SES_OPT_REAL,
      .offset = AT(warmup),
      .def = "0.1",
      .min = 0,
      .max = 1e9,
      .help = "updates before the kept fraction begins to fall from 1; below 1: fraction of the run" },
    { .name = "prune-cooldown",
      .type = SES_OPT_REAL,
      .offset = AT(cooldown),
      .def = "0.3",
      .min = 0,
      .max = 1e9,
      .help = "updates after the kept fraction has reached --keep; below 1: fraction of the run" },
    { .name = "score-lr",
      .type = SES_OPT_REAL,
      .offset = AT(score_lr),
      .def = "0.01",
      .min = 0,
      .max = 100,
      .help = "movement: peak learning rate of the scores" },
    { .name = "prune-threshold",
      .type = SES_OPT_REAL,
      .offset = AT(threshold),
      .def = "0.1",
      .min = 0,
      .max = 1,
      .help = "soft-movement: smallest sigmoid of the score of a kept block" },
    { .name = "prune-penalty",
      .type = SES_OPT_REAL,
      .offset = AT(penalty),
      .def = "1",
      .min = 0,
      .max = 1e6,
      .help = "soft-movement: weight of the mean sigmoid of the scores in the loss" },
};
const ses_opt_table ses_pruning_option_table = { opt, SES_LEN(opt) };
