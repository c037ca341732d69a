/* Weighted combinations of objectives, "mlm:1,nsp:0.5".
 *
 * Primary objectives build sequences of their own and alternate: each batch belongs to one of them, chosen
 * with a probability proportional to its weight. Auxiliary objectives (nsp, sop, sbo) add labels to the
 * same sequences; their losses are added, times their weights.
 *
 * The mix borrows models, teacher, special tokens and control codes. One thread. */
#ifndef SES_TRAIN_OBJECTIVE_MIX_H
#define SES_TRAIN_OBJECTIVE_MIX_H

#include "objective.h"

enum { SES_MAX_OBJECTIVES = 8 };

struct ses_objective_mix {
    ses_build_ctx build;
    struct {
        const ses_objective *objective;
        double weight;
    } item[SES_MAX_OBJECTIVES]; /* [n], primary ones first */
    size_t n, n_primary;
    size_t primary; /* objective of the current batch */
    ses_batch_builder builder;
    ses_model *model, *generator;
    struct ses_distill *distill; /* NULL: no teacher */
};

typedef struct ses_objective_mix_options {
    const char *objectives; /* "mlm:1,nsp:1"; the default weight is 1 */
    ses_objective_options o;
    const ses_special_tokens *special_tokens;
    const int32_t *control_code; /* as in ses_build_ctx */
    int64_t n_control_codes, length;
    uint64_t seed;
} ses_objective_mix_options;

/* config: config.json of the model to train. */
ses_objective_mix *ses_objective_mix_new(const ses_objective_mix_options *o, const ses_json *config,
                                         ses_err *e);
void ses_objective_mix_free(ses_objective_mix *mix);

unsigned ses_objective_mix_needs(const ses_objective_mix *mix);      /* union of the objectives' needs */
ses_pairing ses_objective_mix_pairing(const ses_objective_mix *mix); /* negative pairs of passages */
int64_t ses_objective_mix_max_passage(const ses_objective_mix *mix); /* maximum tokens of a passage */
int64_t ses_objective_mix_min_passage(const ses_objective_mix *mix); /* shorter passages are skipped */
/* Is the result a left-to-right model? True if an objective is causal and all of them share its head. */
bool ses_objective_mix_is_causal(const ses_objective_mix *mix);
/* The model class that has the heads of all objectives. */
const char *ses_objective_mix_class(const ses_objective_mix *mix, const ses_json *config, ses_err *e);
/* generator: NULL if no objective needs one. Ties its weights to the model's: call it before an optimizer is
 * made. */
bool ses_objective_mix_set_models(ses_objective_mix *mix, ses_model *model, ses_model *generator, ses_err *e);
/* Distills from a teacher. Fails if an objective computes a loss of its own. */
bool ses_objective_mix_set_teacher(ses_objective_mix *mix, struct ses_distill *d, ses_err *e);

/* The primary objective of batch `number` of the run. */
size_t ses_objective_mix_choose(const ses_objective_mix *mix, uint64_t number);

/* Building a batch: begin, add passages, end. progress: of the run, 0 to 1. */
void ses_objective_mix_begin_batch(ses_objective_mix *mix, size_t primary, double progress);
bool ses_objective_mix_add_passage(ses_objective_mix *mix, const ses_passage *p, ses_err *e);
/* The batch is borrowed until the next begin. */
bool ses_objective_mix_end_batch(ses_objective_mix *mix, ses_batch *out, ses_err *e);

/* A ses_loss_fn; mix: a ses_objective_mix. */
ses_tensor *ses_objective_mix_loss(void *mix, ses_tape *t, const ses_batch *b, ses_err *e);

/* For ses_trainer_options.predictions: labels of the batch's primary objective; -1: the loss of a teacher or
 * of ELECTRA, which is not a mean over labels. */
int64_t ses_objective_mix_predictions(void *mix, const ses_batch *b);

/* Adds losses and accuracies of a batch ("mlm_loss", "mlm_accuracy", ...), on a tape that does not record. */
bool ses_objective_mix_measure(ses_objective_mix *mix, ses_tape *t, const ses_batch *b, ses_metric_sums *sums,
                               ses_err *e);

/* Mean of the primary losses, weighted, plus the weighted auxiliary losses. */
double ses_objective_mix_total_loss(const ses_objective_mix *mix, const ses_metric_sums *sums);

/* ELECTRA: the generator's config, with widths of `fraction` times the model's. */
ses_json_doc *ses_generator_config(const ses_json *config, double fraction, ses_err *e);
/* Makes the generator use weights of the model; generator_tying.c. */
bool ses_generator_tie(ses_model *model, ses_model *generator, ses_generator_tying tying, ses_err *e);

#endif
