/* sa-lstm: a sequence autoencoder of the training texts, whose weights start an LSTM classifier (Dai and Le
 * 2015). */
#include "ladder.h"

static bool run(ses_ladder *l, const ses_rung *r, const char *dir, int64_t seed, ses_err *e)
{
    (void)r;
    return ses_ladder_run_lstm(l, dir, seed, "autoencoder", e);
}

const ses_rung ses_rung_sa_lstm = {
    .name = "sa-lstm", .summary = "LSTM, started as a sequence autoencoder", .seeded = true, .run = run
};
