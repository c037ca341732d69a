/* CheckList: failure rates of a text classifier on behavioral tests.
 *
 * MFT: a case fails if a text gets another label than expected. INV: if the label of a text differs from the
 * original's, unless the probability of the original's label changes by at most the tolerance. DIR: if the
 * probability of the label (default: the original's prediction) moves against the direction by more than the
 * tolerance; a case that cannot fail, because that probability is at its end already, is left out.
 *
 * Ownership: the caller frees what it opens. One thread at a time. */
#ifndef SES_TUNE_EVAL_CHECKLIST_H
#define SES_TUNE_EVAL_CHECKLIST_H

#include "data/checklist_cases.h"
#include "sesame/pipeline.h"

typedef struct ses_checklist_test {
    char *capability, *name;
    ses_checklist_type type;
    int64_t cases, failed, left_out; /* cases: without the left out ones */
    uint64_t first_failed_line;      /* 0: none */
} ses_checklist_test;

typedef struct ses_checklist ses_checklist;

/* p: a pipeline "text-classification" with top_k 0 (all labels), which must outlive the result; its callback
 * is set. Fails if the model has one label only. */
ses_checklist *ses_checklist_new(ses_pipeline *p, ses_err *e);
void ses_checklist_free(ses_checklist *k); /* k may be NULL */

/* Adds a case that begins in this line; cases run in batches. ses_pipeline_flush runs the last of them. */
bool ses_checklist_feed(ses_checklist *k, const ses_checklist_case *c, uint64_t line, ses_err *e);

/* Tests in the order of their first case, borrowed. */
const ses_checklist_test *ses_checklist_tests(const ses_checklist *k, size_t *n);

#endif
