/* Inside of a distillation: its terms, one file term_NAME.c and one line in distill_terms.def each, and what
 * they share. One thread. */
#ifndef SES_TRAIN_DISTILL_IMPL_H
#define SES_TRAIN_DISTILL_IMPL_H

#include "model/model_desc.h"
#include "train/distill.h"

struct ses_distill {
    ses_distill_options o;
    ses_model *student;
    const ses_model *teacher;
    const ses_model **more; /* [n_more] further teachers; borrowed */
    size_t n_more;
    ses_tape *tape;         /* teacher's tape: not recorded, no dropout */
    ses_store *store;       /* holds the projections; NULL: equal widths */
    ses_tensor *project[2]; /* [teacher width, student width]: embeddings, layers */
};

/* The losses of one batch. */
typedef struct ses_distill_step {
    ses_distill *d;
    ses_tape *t; /* the student's */
    const ses_batch *batch;
    const ses_output_request *want;
    ses_outputs ours, theirs;
    ses_tensor *sum; /* NULL: no term yet */
    ses_err *e;
} ses_distill_step;

typedef struct ses_distill_term {
    size_t weight; /* offset of its weight, a double of ses_distill_options; terms of weight 0 are left out */
    bool mean_teachers; /* applies to several teachers */
    bool projects;      /* compares hidden states, which it projects to the teacher's width */
    bool (*check)(const ses_distill *d, ses_err *e); /* or NULL: options and models need no check */
    void (*request)(ses_output_request *want);       /* outputs of both models */
    bool (*add)(ses_distill_step *s);                /* adds its losses */
} ses_distill_term;

#define SES_DISTILL_TERM(name) extern const ses_distill_term ses_distill_term_##name;
#include "distill_terms.def"
#undef SES_DISTILL_TERM

/* Adds a loss, times the weight. */
bool ses_distill_add(ses_distill_step *s, ses_tensor *loss, double weight);
/* The teacher's tensor y, checked to have the shape of the student's x. NULL: failed. */
ses_tensor *ses_distill_target(ses_distill_step *s, const ses_tensor *x, const ses_output *y,
                               const char *what);
/* Output "NAME.i"; NULL: none. */
const ses_output *ses_distill_output(const ses_outputs *o, const char *name, int64_t i);
int64_t ses_distill_count(const ses_outputs *o, const char *name); /* such outputs, from 0 on */
/* Projects a hidden state of layer i to the teacher's width. */
ses_tensor *ses_distill_project(ses_distill_step *s, ses_tensor *x, int64_t i);
/* Squared error layer by layer. embeddings: 1 if the outputs include the embeddings as layer 0. */
bool ses_distill_add_layers(ses_distill_step *s, const char *name, const char *label, int64_t embeddings,
                            double weight);

#endif
