/* Options of what scores texts by a language model. */
#include "scoring_args.h"

static const ses_opt opt[] = {
    { .name = "pll",
      .type = SES_OPT_CHOICE,
      .offset = offsetof(ses_scoring_args, pll),
      .was_set = offsetof(ses_scoring_args, pll_set),
      .def = "token",
      .choices = "token|word",
      .help = "masked models: mask the scored token alone, or with it the tokens of its word to the right "
              "(PLL-word-l2r)" },
    { .name = "temperature",
      .type = SES_OPT_REAL,
      .offset = offsetof(ses_scoring_args, temperature),
      .was_set = offsetof(ses_scoring_args, temperature_set),
      .value = "X",
      .def = "1",
      .min = 0.01,
      .max = 100,
      .help = "likelihood of texts: divide logits by X before the softmax" },
};

const ses_opt_table ses_scoring_option_table = { opt, SES_LEN(opt) };

ses_scorer *ses_scoring_args_new_scorer(const ses_scoring_args *a, const ses_model *m, const ses_tokenizer *t,
                                        const char *dir, ses_scorer_options o, ses_err *e)
{
    o.mask_word_rest = a->pll == SES_PLL_WORD;
    o.temperature = a->temperature;
    ses_scorer *s = ses_scorer_new(m, t, dir, &o, e);
    if (!s && o.mask_word_rest) ses_wrap(e, "--pll word");
    return s;
}
