/* vectors: logistic regression on the mean of word vectors. */
#include "ladder.h"

static bool run(ses_ladder *l, const ses_rung *r, const char *dir, int64_t seed, ses_err *e)
{
    return ses_ladder_with_vectors(l, r, dir, seed, ses_ladder_run_classifier, e);
}

const ses_rung ses_rung_vectors = { .name = "vectors",
                                    .summary = "mean of word vectors, logistic regression",
                                    .seeded = true,
                                    .method = "cbow",
                                    .check = ses_ladder_check_vectors,
                                    .run = run };
