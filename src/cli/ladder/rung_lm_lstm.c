/* lm-lstm: an LSTM language model of the training texts, whose weights start an LSTM classifier (Dai and Le
 * 2015). */
#include "ladder.h"

static bool run(ses_ladder *l, const ses_rung *r, const char *dir, int64_t seed, ses_err *e)
{
    (void)r;
    return ses_ladder_run_lstm(l, dir, seed, "causal", e);
}

const ses_rung ses_rung_lm_lstm = {
    .name = "lm-lstm", .summary = "LSTM, started as a language model", .seeded = true, .run = run
};
