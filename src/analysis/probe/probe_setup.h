/* Checks and choices common to all kinds of probes. */
#ifndef SES_ANALYSIS_PROBE_SETUP_H
#define SES_ANALYSIS_PROBE_SETUP_H

#include "io/conllu.h"
#include "probe_kind.h"

/* Input of a kind: options apply to some inputs only. */
typedef enum {
    SES_PROBE_WORDS_CONLLU = 1,  /* tag: CoNLL-U */
    SES_PROBE_WORDS_COLUMNS = 2, /* tag: other column files */
    SES_PROBE_TEXT_TABLE = 4,    /* text: tables */
    SES_PROBE_TEXT_CONLLU = 8,   /* text: tasks made from trees */
    SES_PROBE_ARCS = 16,
    SES_PROBE_TREES = 32
} ses_probe_input;

/* Fails (SES_EUSAGE) if the user gave an option that this probe would ignore. */
bool ses_probe_check_options(const ses_probe_args *a, ses_probe_input input, ses_err *e);

/* Fails if --pool chooses a position that has seen one token only. */
bool ses_probe_check_pool(const ses_analysis_call *c, const ses_probe_args *a, ses_err *e);

/* Writes the chosen layers in ascending order to layers [SES_LAYER_SET_MAX], their number to *n. Layer 0, the
 * baseline, is always among them; *added: the user did not choose it. */
bool ses_probe_choose_layers(const ses_analysis_call *c, bool decoder, int64_t *layers, size_t *n,
                             bool *added, ses_err *e);

/* Notes how many invalid sentences of a file were skipped. */
void ses_probe_note_skipped(const ses_analysis_call *c, const ses_conllu *f, const char *path);

/* Counts the test texts that are training texts, and notes them. */
bool ses_probe_note_overlap(ses_report *report, const ses_input *train, size_t n_train, const ses_input *test,
                            size_t n_test, size_t *shared, ses_err *e);

/* Notes that `windowed` texts are longer than the model. */
void ses_probe_note_windows(const ses_analysis_call *c, size_t windowed);

#endif
