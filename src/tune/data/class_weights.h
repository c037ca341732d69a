/* Weights of classes in the loss: `--class-weights`. */
#ifndef SES_TUNE_CLASS_WEIGHTS_H
#define SES_TUNE_CLASS_WEIGHTS_H

#include "base/opt_table.h"
#include "sesame/finetune.h"

#define SES_OPT_CLASS_WEIGHTS(struct_, field)                                                                \
    SES_OPT_TEXT(struct_, field, "class-weights", "balanced|FILE",                                           \
                 "classify: weights of the classes in the loss, as class_weight of scikit-learn: balanced: " \
                 "by 1 / examples; FILE: a JSON object, {\"label\": weight}",                                \
                 .group = "method")

/* The weights of n classes, of which the first ones are the labels of the examples. "balanced": examples /
 * (classes that occur * examples of the class), 1 for a class without examples. NULL on failure: a label of
 * the file that the data lack or the other way round, a weight that is negative or not a number. Free with
 * ses_free. */
double *ses_class_weights_read(const char *from, const ses_examples *rows, size_t n, ses_err *e);
/* The settings that exclude weights. */
bool ses_class_weights_check(const ses_finetune_options *o, ses_data_kind kind, bool own_loss, ses_err *e);

#endif
