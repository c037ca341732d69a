/* Options of what scores texts by a language model. */
#include "scoring_args.h"

static const ses_opt opt[] = {
    SES_OPT_CHOICE(
        ses_scoring_args, pll, "pll", "token", "token|word",
        "masked models: mask the scored token alone, or with it the tokens of its word to the right "
        "(PLL-word-l2r)",
        .was_set = offsetof(ses_scoring_args, pll_set)),
    SES_OPT_REAL(ses_scoring_args, temperature, "temperature", "1", 0.01, 100,
                 "likelihood of texts: divide logits by X before the softmax",
                 .was_set = offsetof(ses_scoring_args, temperature_set), .value = "X"),
};

const ses_opt_table ses_scoring_option_table = { opt, SES_LEN(opt), "texts" };

ses_scorer *ses_scoring_args_new_scorer(const ses_scoring_args *a, const ses_model *m, const ses_tokenizer *t,
                                        const char *dir, ses_scorer_options o, ses_err *e)
{
    o.mask_word_rest = a->pll == SES_PLL_WORD;
    o.temperature = a->temperature;
    ses_scorer *s = ses_scorer_new(m, t, dir, &o, e);
    if (!s && o.mask_word_rest) ses_wrap(e, "--pll word");
    return s;
}
