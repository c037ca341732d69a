/* Statistics of a corpus, as text and as JSON. Prints to stdout; main thread. */
#ifndef SES_CLI_CORPUS_SHOW_H
#define SES_CLI_CORPUS_SHOW_H

#include "cli/ui/term.h"
#include "sesame/pretrain.h"

typedef struct ses_corpus_view {
    const ses_term *term;
    bool json;
    double seconds; /* it took to build; 0: it was not */
} ses_corpus_view;

/* Reads the whole file: its checksums are compared. */
bool ses_corpus_show(const char *path, const ses_corpus_view *v, ses_err *e);

#endif
