/* fasttext: the supervised classifier of fastText. */
#include "ladder.h"

const ses_rung ses_rung_fasttext = { .name = "fasttext",
                                     .summary = "fastText, words and bigrams",
                                     .method = "fasttext",
                                     .ngrams = 2,
                                     .seeded = true,
                                     .run = ses_rung_run_classifier };
