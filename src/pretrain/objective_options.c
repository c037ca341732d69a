/* Options of the pretraining objectives. */
#include "objective_options.h"

static const ses_opt opt[] = {
    SES_OPT_REAL(ses_objective_options, mask_rate, "mask-rate", "-1", -1, 1,
                 "fraction of tokens to predict; -1: the objective's default, 0.15 for mlm"),
    SES_OPT_REAL(ses_objective_options, mask_rate_end, "mask-rate-end", "-1", -1, 1,
                 "mask rate at the end of the run, reached linearly; -1: constant"),
    SES_OPT_TEXT(
        ses_objective_options, mask_units, "mask-unit", "UNIT[:WEIGHT],...",
        "unit masked together: token, word, ngram or span; of several, as token:0.5,span:0.5, each batch "
        "draws one, with static masks each text; default: by the objective"),
    SES_OPT_REAL(
        ses_objective_options, keep_rate, "mask-keep", "-1", -1, 1,
        "fraction of the chosen tokens left unchanged; -1: the objective's default, 0.1 for mlm, 0.15 for "
        "rtd"),
    SES_OPT_REAL(ses_objective_options, random_rate, "mask-random", "-1", -1, 1,
                 "fraction of the chosen tokens replaced by a random token, the others by the mask; -1: the "
                 "objective's default, 0.1 for mlm, 0 for rtd"),
    SES_OPT_INT(ses_objective_options, mask_copies, "mask-copies", "0", 0, 1 << 20,
                "static masks per text (BERT: 10); 0: dynamic masking"),
    SES_OPT_REAL(ses_objective_options, span_length, "span-length", "-1", -1, 1000,
                 "mlm, t5, bart: mean span length; -1: the objective's default"),
    SES_OPT_INT(ses_objective_options, max_span, "span-longest", "-1", -1, 1000,
                "maximum words of a span or n-gram; -1: the objective's default"),
    SES_OPT_TEXT(ses_objective_options, noise, "noise", "LIST",
                 "bart: of mask, delete, infill, permute, rotate; default: infill,permute"),
    SES_OPT_INT(
        ses_objective_options, pieces, "pieces", "2", 1, 1024,
        "xl, plm: pieces of a text, each attending to the previous ones; bptt: windows of a text with a "
        "carried state, of --length tokens each"),
    SES_OPT_FLAG(ses_objective_options, vary_window, "vary-window",
                 "bptt: windows of random lengths around --length (AWD-LSTM)"),
    SES_OPT_REAL(ses_objective_options, replaced_weight, "replaced-weight", "50", 0, 1e6,
                 "rtd: discriminator loss weight"),
    SES_OPT_REAL(ses_objective_options, sampling_temperature, "sampling-heat", "1", 0.01, 100,
                 "rtd: generator sampling temperature"),
    SES_OPT_REAL(
        ses_objective_options, generator_size, "generator-size", "-1", -1, 4,
        "rtd: widths of the generator as a fraction of the model's, without --generator; -1: 0.25, or 1 "
        "with --generator-tying all"),
    SES_OPT_CHOICE(ses_objective_options, generator_tying, "generator-tying", NULL, "none|embeddings|all",
                   "rtd: weights that generator and model share; default: embeddings, or none with "
                   "--generator-frozen"),
    SES_OPT_FLAG(ses_objective_options, freeze_generator, "generator-frozen",
                 "rtd: do not train the generator, whose weights are in the folder --generator"),
};
const ses_opt_table ses_objective_option_table = { opt, SES_LEN(opt), "objective" };
