/* Word lists of the surface tasks: lookups. Thread-safe on a list that was made. */
#ifndef SES_ANALYSIS_SURFACE_LISTS_H
#define SES_ANALYSIS_SURFACE_LISTS_H

#include "analysis/treebank/surface_tasks.h"
#include "data/rng_stream.h"

/* Whether a form, in lower case, is one of the words of word_content; *at: its entry in lists->chosen. */
bool ses_surface_find_chosen(const ses_surface_lists *l, ses_string form, int64_t *at);

/* Another form with the XPOS of w and a similar count; .p is NULL: there is none. */
ses_string ses_surface_replacement(const ses_surface_lists *l, const ses_conllu_word *w,
                                   ses_rng_stream *draws);

#endif
