/* Early exit: a classifier after each inner layer; a text leaves the model as soon as a rule trusts one of
 * them, and its tokens are not part of the remaining layers (docs/COMPRESSION.md).
 *
 *     ses_exit_policy rule;
 *     ses_exit_policy_parse("entropy:0.3", &rule, &e) && ses_exit_policy_check(&rule, model, &e);
 *     ses_output_request request = { .logits = true, .exit = &rule };
 *
 * A folder may name a rule of its own: 'sesame convert DIR OUT --exit-rule entropy:0.3'. ses_output_request
 * does not read it: .exit = ses_model_exit_policy(model) does.
 *
 * Ownership: a policy is plain data. Threads: as the model. */
#ifndef SESAME_EXITS_H
#define SESAME_EXITS_H

#include "sesame/hooks.h"

SES_BEGIN_DECLS

typedef enum {
    SES_EXIT_NEVER,    /* all layers */
    SES_EXIT_ENTROPY,  /* the entropy of the labels, divided by that of equal probabilities, is below
                          `threshold` (DeeBERT, FastBERT) */
    SES_EXIT_PATIENCE, /* the best label has stayed the same `count` times in a row (PABEE): count + 1
                          classifiers agree */
    SES_EXIT_LAYER     /* after `count` layers, whatever the scores are */
} ses_exit_rule;

typedef struct ses_exit_policy {
    ses_exit_rule rule;
    double threshold; /* 0 to 1 */
    int64_t count;
} ses_exit_policy;

/* Parses "entropy:0.3", "patience:3", "layer:6" or "never". */
bool ses_exit_policy_parse(const char *text, ses_exit_policy *out, ses_err *e);

/* Can this model leave by this policy? False and an error: it has no exits, or the count is not possible. */
bool ses_exit_policy_check(const ses_exit_policy *p, const ses_model *m, ses_err *e);

/* Number of exits of a model, the last layer not included; 0: none. */
int64_t ses_model_exit_count(const ses_model *m);
/* Layers before exit i, in ascending order: 1 is the first layer. */
int64_t ses_model_exit_layer(const ses_model *m, int64_t i);

/* The rule that the model's folder names ("rule" of "sesame_exits"), used by pipelines, evaluation and
 * prediction that name none; NULL: there is none. The pointer is the model's. */
const ses_exit_policy *ses_model_exit_policy(const ses_model *m);

SES_END_DECLS

#endif
