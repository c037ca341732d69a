/* State of the supervised trainer, shared by fasttext_trainer.c, fasttext_output.c and fasttext_state.c. */
#ifndef SES_VECTORS_FASTTEXT_TRAINER_IMPL_H
#define SES_VECTORS_FASTTEXT_TRAINER_IMPL_H

#include "fasttext_bags.h"
#include "row_steps.h"

/* Uses of random numbers: the `site` of a key. */
enum {
    SES_FASTTEXT_SITE_INIT = 1,
    SES_FASTTEXT_SITE_ORDER,
    SES_FASTTEXT_SITE_LABEL,
    SES_FASTTEXT_SITE_NEGATIVE
};

typedef struct ses_fasttext_trainer {
    const ses_fasttext_options *o;
    ses_fasttext_run *run;
    ses_fasttext_model *m;
    ses_fasttext_bags bags;
    const ses_row_steps *steps;
    size_t dim, stride, in_rows, labels, batch;
    float *in, *out;             /* [in_rows, stride], [labels, stride] */
    float *hidden[2], *gradient; /* [batch, stride]; hidden[i % 2]: of batch i */
    float *frequent;             /* [bags.n_frequent, stride]: their rows while training */
    float *score;                /* [labels] */
    int32_t *negative;
    size_t n_negative;
    uint32_t *order; /* examples in the order of this epoch */
    int32_t *mine;   /* [parts, most rows of an example]: rows that one part adds to */
    size_t most_rows, parts;
    size_t epoch, at; /* the next batch to train: number `at` of this epoch; its hidden vectors are ready */
    int64_t tokens_done; /* in all epochs */
    double loss;         /* sum over this epoch */
    int64_t trained;     /* examples in `loss` */
    float rate;
    bool diverged;
} ses_fasttext_trainer;

/* Trains the output matrix on one example and stores the gradient of its hidden vector. */
void ses_fasttext_train_output(ses_fasttext_trainer *t, size_t example, float *hidden, float *gradient);
/* Copies the frequent rows out of the input matrix, or back. */
void ses_fasttext_move_frequent(const ses_fasttext_trainer *t, bool back);
/* State of an interrupted run. */
bool ses_fasttext_state_save(const ses_fasttext_trainer *t, ses_err *e);
bool ses_fasttext_state_load(ses_fasttext_trainer *t, ses_err *e);

#endif
