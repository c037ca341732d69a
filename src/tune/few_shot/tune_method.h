/* Methods of learning from few labels: `sesame finetune --method`. A method trains members on examples and
 * unlabeled texts, then the final model, an ordinary fine-tuning run in the output folder. A method is one
 * file method_NAME.c and one line in tune_methods.def.
 *
 * Finished members are kept in OUT/.sesame-members until the run is complete, so that a resumed run does not
 * train them again. Everything is a function of the data, the settings and the seed.
 *
 * Ownership: a run borrows the options; ses_tune_run_free frees the rest. One thread. */
#ifndef SES_TUNE_TUNE_METHOD_H
#define SES_TUNE_TUNE_METHOD_H

#include "base/opt_table.h"
#include "few_shot.h"
#include "tune/finetune_impl.h"

typedef enum { SES_WEIGHT_ACCURACY, SES_WEIGHT_EQUAL } ses_member_weight;

typedef struct ses_tune_settings {
    int64_t repetitions;        /* pet, ipet: members of each pattern */
    int64_t member_steps;       /* pet, ipet, adapet, lm-bff: updates of a member */
    int member_weight;          /* ses_member_weight */
    double mlm_weight;          /* pet, ipet: of the loss of masked tokens of unlabeled texts */
    double temperature;         /* pet, ipet: of soft labels */
    int64_t generations;        /* ipet */
    double growth;              /* ipet: factor of the training set from generation to generation */
    double voters;              /* ipet: fraction of the other members that label texts for one */
    int64_t rounds;             /* self-training */
    double threshold;           /* self-training: least probability of a label */
    int64_t pairs;              /* setfit: pairs of each text with its own label, and as many with another */
    int64_t demonstration_sets; /* lm-bff */
    int64_t search_words;       /* lm-bff: candidates of a label when its word is searched; 0: no search */
} ses_tune_settings;
extern const ses_opt_table ses_tune_option_table; /* for a ses_tune_settings */

typedef struct ses_tune_run ses_tune_run;

typedef struct ses_tune_method {
    const char *name, *summary;
    const char *settings; /* options of ses_tune_option_table it reads, '|' between */
    bool needs_patterns, needs_unlabeled;
    const char *length; /* option that sets the length of its training instead of --epochs; NULL: --epochs */
    bool (*run)(ses_tune_run *r, ses_err *e); /* sets r->final and r->end */
} ses_tune_method;

#define SES_TUNE_METHOD(name) extern const ses_tune_method ses_tune_method_##name;
#include "tune_methods.def"
#undef SES_TUNE_METHOD

const ses_tune_method *ses_tune_method_at(size_t i);           /* NULL past the last */
const ses_tune_method *ses_tune_method_find(const char *name); /* NULL: none */

typedef struct ses_tune_plan {
    const ses_tune_method *method;
    ses_tune_settings settings;
    double c; /* setfit: inverse regularization strength; 0: 1 */
} ses_tune_plan;

struct ses_tune_run {
    ses_finetune_options o; /* options of the final model */
    ses_tune_plan plan;
    ses_device *dev;
    ses_data_spec spec;
    ses_examples *train, *unlabeled; /* unlabeled: with the labels of train; NULL: none */
    ses_examples *divided_train;     /* the file that train and held are parts of (eval 10%); NULL: none */
    ses_examples *held;              /* the part for evaluation */
    ses_examples *whole_train;       /* the file that train is a part of; NULL: train is all of it */
    ses_patterns *patterns;          /* NULL: the method has none */
    ses_json_doc *description;       /* settings that a resumed run must share */
    char *dir;                       /* OUT/.sesame-members */
    ses_run_end end;
    ses_finetune *final; /* NULL: the run was stopped, or was complete */
    ses_examples *extra; /* training examples of the final model; NULL: train */
    ses_few_shot how;    /* additions of the final model */
    ses_finetune_task task;
    float *scores; /* [unlabeled, labels] */
    ses_arena mem;
};

/* Runs the whole method. r->end: SES_RUN_STOPPED if the callback asked for it; SES_RUN_WAS_COMPLETE if a
 * resumed run had nothing to do. NULL on failure. */
ses_tune_run *ses_tune_method_run(const ses_finetune_options *o, const ses_tune_plan *p, ses_device *d,
                                  ses_err *e);
void ses_tune_run_free(ses_tune_run *r); /* r may be NULL */

/* ---- for methods ---- */

/* A member: a model that is trained to label the unlabeled texts. */
typedef struct ses_tune_member {
    char name[64];       /* its file without .json */
    ses_examples *train; /* NULL: r->train */
    const ses_few_shot *how;
    int64_t pattern; /* from 1; 0: no patterns */
    int64_t seed;
    int64_t steps; /* updates; 0: as in the options */
} ses_tune_member;

typedef struct ses_tune_vote {
    float *score;    /* [unlabeled, labels], on r->mem */
    double accuracy; /* on the training examples before training; of a new head: 0 */
} ses_tune_vote;

/* The options of a member's run, which writes nothing. */
ses_finetune_options ses_tune_member_options(ses_tune_run *r, const ses_tune_member *m);
/* Trains a member unless its file exists. False also if the run was stopped: r->end. */
bool ses_tune_member_run(ses_tune_run *r, const ses_tune_member *m, ses_tune_vote *out, ses_err *e);

/* Trains the final model by r->o, r->how and r->extra. */
bool ses_tune_final(ses_tune_run *r, ses_err *e);

/* r->train and n unlabeled texts: number pick[i], label[i]. */
ses_examples *ses_tune_examples(const ses_tune_run *r, bool with_train, const size_t *pick,
                                const int32_t *label, size_t n, ses_err *e);
/* A notice to the callback; false and r->end: it asks to stop. */
bool ses_tune_notify(ses_tune_run *r, const char *fmt, ...) SES_PRINTF(2, 3);
/* Label with the highest score of row i, and its probability. */
int32_t ses_tune_best(const ses_tune_run *r, const float *score, size_t i, double *probability);

#endif
