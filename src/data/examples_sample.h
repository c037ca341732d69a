/* Random subsets of labeled examples, for training with few examples. A subset is a function of the examples
 * and the seed; subsets of one seed are nested: the 8 examples of one are among the 16 of another. */
#ifndef SES_DATA_EXAMPLES_SAMPLE_H
#define SES_DATA_EXAMPLES_SAMPLE_H

#include "sesame/examples.h"

typedef struct ses_sample {
    /* Examples in all; classification: in proportion to the classes. 0: not limited. */
    int64_t size;
    /* Examples of each class instead; several labels: of each label, tagging: sentences with each entity type
     * (without types: each tag), so that a sentence may count for several. 0: not limited. */
    int64_t shots;
    uint64_t seed;
    bool others; /* the examples that are not drawn instead */
} ses_sample;

/* The subset, in the order of d and with its labels; all examples if neither number is set. It borrows the
 * strings of d, which must outlive it. NULL on failure: more examples than d or one of its classes has,
 * shots of data without classes. Free with ses_examples_free. */
ses_examples *ses_examples_sample(const ses_examples *d, const ses_sample *s, ses_err *e);

#endif
