/* Options of what scores texts by a language model. */
#include "scoring_args.h"

static const ses_opt opt[] = {
    { .name = "pll",
      .type = SES_OPT_CHOICE,
      .offset = offsetof(ses_scoring_args, mask),
      .def = "token",
      .choices = "token|word",
      .help = "masked models: mask the scored token alone, or with it the tokens of its word to the right "
              "(PLL-word-l2r)" },
    { .name = "temperature",
      .type = SES_OPT_REAL,
      .offset = offsetof(ses_scoring_args, temperature),
      .value = "X",
      .def = "1",
      .min = 0.01,
      .max = 100,
      .help = "divide logits by X before the softmax" },
};

const ses_opt_table ses_scoring_option_table = { opt, SES_LEN(opt) };

void ses_scoring_args_apply(const ses_scoring_args *a, ses_scorer_options *o)
{
    o->mask_word_rest = a->mask == SES_SCORING_WORD;
    o->temperature = a->temperature;
}

const char *ses_scoring_args_used(const ses_scoring_args *a)
{
    return a->mask != SES_SCORING_TOKEN ? "pll" : a->temperature != 1 ? "temperature" : NULL;
}
