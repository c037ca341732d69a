/* Objectives of pretraining: how a passage becomes sequences with labels, and what a model loses on them.
 * One file objective_NAME.c and a line in objectives.def each.
 *
 * They are combined as "mlm:1,nsp:0.5". Those that ride (nsp, sop, sbo) only add labels to the sequences of
 * another, and their losses are added, times their weights. Those that lay sequences of their own take
 * turns: each batch is one's, as often as its weight says. */
#ifndef SES_TRAIN_OBJECTIVE_H
#define SES_TRAIN_OBJECTIVE_H

#include "data/noise.h"
#include "sesame/model.h"
#include "sesame/passages.h"
#include "sesame/trainer.h"

/* What a user may say of them; a number below 0: the objective's usual one. See cli/train/objective_options.h. */
typedef struct ses_objective_options {
    /* The rate moves from one to the other over the run; end below 0: stays. */
    double mask_rate, mask_rate_end;
    double keep_rate, random_rate; /* of the chosen tokens; the others become the mask */
    int mask_unit;                 /* ses_mask_unit; below 0: usual */
    int64_t
        mask_copies; /* static masking: so many passes over the texts, then the same again (see curriculum.h);
                            0: every pass has new masks */
    double span_length; /* mean length of a span */
    int64_t max_span;
    const char *noise;      /* denoising: "infill,permute"; NULL: these two */
    int64_t pieces;         /* recurrence: a passage is read in so many pieces, remembering; below 1: 2 */
    double replaced_weight; /* replaced token detection: of the discriminator's loss; 50 */
    double sampling_temperature; /* and of what the generator says before it is drawn from; 1 */
} ses_objective_options;

/* A batch in the making: arrays that stay empty are not in it. */
typedef struct ses_batch_builder {
    ses_ints ids, segments, positions, cu_seqlens, prefix_len;
    ses_ints labels, pair_labels;
    ses_ints target_ids, target_positions, target_cu_seqlens, predict_positions;
    uint8_t *perm;
    size_t n_perm, perm_cap;
} ses_batch_builder;

bool ses_batch_builder_begin(ses_batch_builder *d, ses_err *e); /* empties it */
bool ses_batch_builder_end_sequence(ses_batch_builder *d, ses_err *e);
bool ses_batch_builder_end_target(ses_batch_builder *d, ses_err *e);
uint8_t *ses_batch_builder_add_perm(ses_batch_builder *d, int64_t n, ses_err *e); /* n more, zeroed */
ses_batch ses_batch_builder_batch(const ses_batch_builder *d);
void ses_batch_builder_free(ses_batch_builder *d);

/* What passages are laid with. */
typedef struct ses_build_ctx {
    ses_objective_options o;
    const ses_special_tokens *special_tokens;
    const int32_t
        *control_code; /* [codes] of each corpus of a mixture, the token that stands for it; -1: none */
    int64_t n_control_codes;
    int64_t length;       /* most tokens of a sequence */
    bool encoder_decoder; /* the model has an encoder and a decoder */
    double progress;      /* of the run, 0 to 1 */
    uint64_t seed;
    ses_word_spans words; /* scratch */
    ses_ints chosen, text;
    ses_noised_text noised;
} ses_build_ctx;

/* What must be there. */
enum {
    SES_NEEDS_MASK = 1,
    SES_NEEDS_SENTINELS = 2,
    SES_NEEDS_PAIRS = 4,        /* passages of two segments */
    SES_NEEDS_GENERATOR = 8,    /* a generator that is trained along */
    SES_NEEDS_PERMUTATION = 16, /* a model that reads in any order */
    SES_NEEDS_RECURRENCE = 32,  /* a model that remembers */
    SES_NEEDS_DECODER = 64,     /* an encoder and a decoder */
};

/* What a model is asked about tokens a generator has replaced. */
enum {
    SES_RTD_MASKED_ONLY = 1,   /* only of those that were masked */
    SES_RTD_PREDICT_TOKENS = 2 /* the original tokens, not whether they are */
};

/* Sums over an evaluation: sum / count is a mean. */
typedef struct ses_metric_sum {
    char name[40];
    double sum, count;
} ses_metric_sum;
enum { SES_MAX_METRIC_SUMS = 24 };
typedef struct ses_metric_sums {
    ses_metric_sum item[SES_MAX_METRIC_SUMS];
    size_t n;
} ses_metric_sums;
void ses_metric_sums_add(ses_metric_sums *t, const char *objective, const char *what, double sum,
                         double count);
double ses_metric_sums_mean(const ses_metric_sums *t, const char *objective,
                            const char *what); /* 0: nothing counted */

typedef struct ses_objective_mix ses_objective_mix;

typedef struct ses_objective {
    const char *name, *description;
    bool is_auxiliary;
    unsigned needs;
    const char *head; /* whose loss it is: the name of a head; and with an encoder and a decoder, where */
    const char *seq2seq_head;      /* that differs. NULL: the same */
    ses_pairing pairing;           /* what a second segment is */
    unsigned rtd_targets;          /* of replaced tokens */
    double mask_rate;              /* usual mask rate, */
    double keep_rate, random_rate; /* of the chosen tokens: shares that stay, or become any token, */
    ses_mask_unit mask_unit;       /* what is masked at once, */
    double span_length;            /* and lengths of spans */
    int64_t max_span;
    /* Sequences of a passage, with labels; of one that rides: labels alone. */
    bool (*build)(ses_build_ctx *w, const struct ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                  ses_err *e);
    /* Tokens of a passage whose sequences have at most w->length; NULL: what the frame leaves. */
    int64_t (*max_passage)(const ses_build_ctx *w, const struct ses_objective *o);
    bool (*check)(const ses_build_ctx *w, ses_err *e); /* of the options; NULL: any will do */
    /* NULL: what the model's heads say. */
    ses_tensor *(*loss)(ses_objective_mix *a, const struct ses_objective *o, ses_tape *t, const ses_batch *b,
                        ses_err *e);
    bool (*measure)(ses_objective_mix *a, const struct ses_objective *o, ses_tape *t, const ses_batch *b,
                    ses_metric_sums *tally, ses_err *e);
    /* The loss an evaluation came to, as it is trained; NULL: the mean of NAME_loss. */
    double (*total_loss)(const ses_objective_mix *a, const struct ses_objective *o,
                         const ses_metric_sums *tally);
} ses_objective;

#define SES_OBJECTIVE(id) extern const ses_objective ses_objective_##id;
#include "objectives.def"
#undef SES_OBJECTIVE

/* ---- a combination ---- */

enum { SES_MAX_OBJECTIVES = 8 };

struct ses_objective_mix {
    ses_build_ctx build;
    struct {
        const ses_objective *objective;
        double weight;
    } item[SES_MAX_OBJECTIVES]; /* those that lay first */
    size_t n, n_primary;        /* ways: how many lay */
    size_t primary;             /* of the batch in the making */
    ses_batch_builder builder;
    ses_model *model, *generator;
    struct ses_distill *distill; /* what a teacher says counts too; NULL: there is none */
};

typedef struct ses_objective_mix_options {
    const char *objectives; /* "mlm:1,nsp:1"; without a number: 1 */
    ses_objective_options o;
    const ses_special_tokens *lexicon;
    const int32_t *control_code; /* as in ses_build_ctx; borrowed, and so is the lexicon */
    int64_t n_control_codes, length;
    uint64_t seed;
} ses_objective_mix_options;

extern const ses_objective_options ses_objective_defaults;

/* config: of the model to be trained. */
ses_objective_mix *ses_objective_mix_new(const ses_objective_mix_options *o, const ses_json *config,
                                         ses_err *e);
void ses_objective_mix_free(ses_objective_mix *a);

unsigned ses_objective_mix_needs(const ses_objective_mix *a); /* of any of them */
ses_pairing ses_objective_mix_pairing(
    const ses_objective_mix *a); /* of passages: what a strange second segment is */
int64_t ses_objective_mix_max_passage(const ses_objective_mix *a); /* tokens of a passage */
const char *ses_objective_mix_class(const ses_objective_mix *a, const ses_json *config,
                                    ses_err *e); /* with the heads it needs */
/* Which model is trained, and its partner, or NULL. */
bool ses_objective_mix_set_models(ses_objective_mix *a, ses_model *model, ses_model *partner, ses_err *e);

/* A teacher beside the labels, of objectives whose loss is the model's heads'; borrowed. */
bool ses_objective_mix_set_teacher(ses_objective_mix *a, struct ses_distill *d, ses_err *e);

/* A batch: begin, add passages, end. way: which of those that lay; ses_objective_mix_choose: whose turn batch number
 * i of the run is. progress: of the run. */
size_t ses_objective_mix_choose(const ses_objective_mix *a, uint64_t number);
bool ses_objective_mix_begin_batch(ses_objective_mix *a, size_t way, double progress, ses_err *e);
bool ses_objective_mix_add_passage(ses_objective_mix *a, const ses_passage *p, ses_err *e);
bool ses_objective_mix_end_batch(ses_objective_mix *a, ses_batch *out,
                                 ses_err *e); /* borrowed until the next begins */

ses_tensor *ses_objective_mix_loss(void *aim, ses_tape *t, const ses_batch *b,
                                   ses_err *e); /* a ses_loss_fn */
/* Losses and accuracies of a batch, on a tape that does not train: "mlm_loss", "mlm_accuracy", ... */
bool ses_objective_mix_measure(ses_objective_mix *a, ses_tape *t, const ses_batch *b, ses_metric_sums *tally,
                               ses_err *e);

/* Of all together: those that take turns by their shares, those that ride on top. */
double ses_objective_mix_total_loss(const ses_objective_mix *a, const ses_metric_sums *tally);

/* Replaced tokens: the generator's config, with layers of so much of the model's width; and its embeddings
 * made the model's (before an optimizer is). ses_objective_mix_set_models does the latter. */
ses_json_doc *ses_generator_config(const ses_json *config, double share, ses_err *e);
bool ses_share_embeddings(ses_model *model, ses_model *partner, ses_err *e);

/* ---- for objectives ---- */

double ses_mask_rate_at(const ses_build_ctx *w, const ses_objective *o);
ses_masking ses_masking_settings(const ses_build_ctx *w, const ses_objective *o);
/* Draws about a passage; purpose: one number a use. */
ses_rng_stream ses_passage_rng(const ses_build_ctx *w, const ses_passage *p, uint32_t purpose);
enum { SES_RNG_MASK = 1, SES_RNG_SPLIT, SES_RNG_PERMUTE, SES_RNG_OBJECTIVE };
int64_t ses_framed_max_passage(const ses_build_ctx *w); /* tokens the frame leaves room for */
/* One sequence: id and label (NULL: none) of every token of p, special tokens around. */
bool ses_build_framed(const ses_build_ctx *w, const ses_passage *p, const int32_t *id, const int32_t *label,
                      ses_batch_builder *d, ses_err *e);
/* Ids of a passage (or their labels) as one stretch: its code, and the end of text before each document;
 * `special`, unless 0, in place of both. */
bool ses_build_causal(const ses_build_ctx *w, const ses_passage *p, const int32_t *id, int32_t special,
                      ses_ints *to, ses_err *e);
/* w->text: the passage masked; w->chosen: its labels. */
bool ses_build_masked(ses_build_ctx *w, const ses_objective *o, const ses_passage *p, ses_err *e);
int32_t ses_control_code_of(const ses_build_ctx *w, const ses_passage *p); /* -1: none */
/* Rows of a head's scores that are compared with a label, and the labels; arrays on the tape. */
int64_t ses_label_rows(ses_tape *t, const ses_batch *b, const char *head, int32_t **rows, int32_t **labels);
/* Loss and accuracy of head i over n labels. */
bool ses_metric_sums_add_head(ses_metric_sums *tally, const char *objective, ses_tape *t,
                              const ses_outputs *out, size_t i, const int32_t *label, int64_t n, ses_err *e);
/* How many of n rows [n, V] have their label on top. */
int64_t ses_count_correct(ses_tape *t, const ses_tensor *x, const int32_t *label, int64_t n, ses_err *e);

#endif
