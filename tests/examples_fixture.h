/* A few examples of three classes, of 3 to 10 tokens. */
#ifndef SES_EXAMPLES_FIXTURE_H
#define SES_EXAMPLES_FIXTURE_H

#include "check.h"
#include "sesame/unstable/dataset.h"

enum { EXAMPLES = 13 };

static ses_dataset *examples(void)
{
    ses_err e = { 0 };
    ses_dataset *d = ses_dataset_new(SES_TARGET_CLASS, 0, 1, &e);
    for (int i = 0; i < EXAMPLES; i++) {
        int32_t ids[12];
        int n = 3 + i * 5 % 8;
        for (int j = 0; j < n; j++) ids[j] = (i * 7 + j * 3) % 37;
        CHECK(ses_dataset_add(d, &(ses_sequence){ .n = n, .ids = ids, .label = i % 3, .origin = i + 1 }, &e));
    }
    return d;
}

#endif
