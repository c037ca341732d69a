/* fasttext: the supervised classifier of fastText, if this build has the method. */
#include "ladder.h"
#include "vectors/classify/classifier.h"

#include <stdio.h>

static bool unavailable(const ses_ladder *l, char *buf, size_t size)
{
    ses_err ignored = { 0 };
    (void)l;
    if (ses_classifier_find("fasttext", &ignored)) return false;
    snprintf(buf, size, "this build has no method fasttext");
    return true;
}

const ses_rung ses_rung_fasttext = { .name = "fasttext",
                                     .summary = "fastText, words and bigrams",
                                     .method = "fasttext",
                                     .ngrams = 2,
                                     .seeded = true,
                                     .unavailable = unavailable,
                                     .run = ses_rung_run_classifier };
