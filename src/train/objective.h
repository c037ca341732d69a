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
    double as_kept, as_random; /* of the chosen tokens; the others become the mask */
    int mask_unit;             /* ses_mask_unit; below 0: usual */
    int64_t mask_copies; /* static masking: so many passes over the texts, then the same again (see curriculum.h);
                            0: every pass has new masks */
    double span_length;  /* mean length of a span */
    int64_t span_longest;
    const char *noise;      /* denoising: "infill,permute"; NULL: these two */
    int64_t pieces;         /* recurrence: a passage is read in so many pieces, remembering; below 1: 2 */
    double replaced_weight; /* replaced token detection: of the discriminator's loss; 50 */
    double sampling_heat;   /* and of what the generator says before it is drawn from; 1 */
} ses_objective_options;

/* A batch in the making: arrays that stay empty are not in it. */
typedef struct ses_draft {
    ses_ints ids, segments, positions, cu, seen;
    ses_ints labels, pair_labels;
    ses_ints target_ids, target_positions, target_cu, target_places;
    uint8_t *perm;
    size_t n_perm, perm_cap;
} ses_draft;

bool ses_draft_begin(ses_draft *d, ses_err *e); /* empties it */
bool ses_draft_end_sequence(ses_draft *d, ses_err *e);
bool ses_draft_end_target(ses_draft *d, ses_err *e);
uint8_t *ses_draft_perm(ses_draft *d, int64_t n, ses_err *e); /* n more, zeroed */
ses_batch ses_draft_batch(const ses_draft *d);
void ses_draft_free(ses_draft *d);

/* What passages are laid with. */
typedef struct ses_laying {
    ses_objective_options o;
    const ses_lexicon *x;
    const int32_t *code; /* [codes] of each corpus of a mixture, the token that stands for it; -1: none */
    int64_t codes;
    int64_t length;  /* most tokens of a sequence */
    bool pair;       /* the model has an encoder and a decoder */
    double progress; /* of the run, 0 to 1 */
    uint64_t seed;
    ses_bounds words; /* scratch */
    ses_ints chosen, text;
    ses_noised noised;
} ses_laying;

/* What must be there. */
enum {
    SES_NEEDS_MASK = 1,
    SES_NEEDS_SENTINELS = 2,
    SES_NEEDS_PAIRS = 4,    /* passages of two segments */
    SES_NEEDS_PARTNER = 8,  /* a generator that is trained along */
    SES_NEEDS_ORDER = 16,   /* a model that reads in any order */
    SES_NEEDS_MEMORY = 32,  /* a model that remembers */
    SES_NEEDS_DECODER = 64, /* an encoder and a decoder */
};

/* What a model is asked about tokens a generator has replaced. */
enum {
    SES_ASKS_MASKED = 1, /* only of those that were masked */
    SES_ASKS_TOKENS = 2  /* the original tokens, not whether they are */
};

/* Sums over an evaluation: sum / count is a mean. */
typedef struct ses_tally_item {
    char name[40];
    double sum, count;
} ses_tally_item;
enum { SES_TALLY_MOST = 24 };
typedef struct ses_tally {
    ses_tally_item item[SES_TALLY_MOST];
    size_t n;
} ses_tally;
void ses_tally_add(ses_tally *t, const char *objective, const char *what, double sum, double count);
double ses_tally_mean(const ses_tally *t, const char *objective, const char *what); /* 0: nothing counted */

typedef struct ses_aim ses_aim;

typedef struct ses_objective {
    const char *name, *does;
    bool rides;
    unsigned needs;
    const char *head; /* whose loss it is: the name of a head; and with an encoder and a decoder, where */
    const char *pair_head; /* that differs. NULL: the same */
    ses_pairing pairing;   /* what a second segment is */
    unsigned asks;         /* of replaced tokens */
    double rate;           /* usual mask rate, */
    double kept, random;   /* of the chosen tokens: shares that stay, or become any token, */
    ses_mask_unit unit;    /* what is masked at once, */
    double span;           /* and lengths of spans */
    int64_t longest;
    /* Sequences of a passage, with labels; of one that rides: labels alone. */
    bool (*lay)(ses_laying *w, const struct ses_objective *o, const ses_passage *p, ses_draft *d, ses_err *e);
    /* Tokens of a passage whose sequences have at most w->length; NULL: what the frame leaves. */
    int64_t (*fits)(const ses_laying *w, const struct ses_objective *o);
    bool (*check)(const ses_laying *w, ses_err *e); /* of the options; NULL: any will do */
    /* NULL: what the model's heads say. */
    ses_tensor *(*loss)(ses_aim *a, const struct ses_objective *o, ses_tape *t, const ses_batch *b,
                        ses_err *e);
    bool (*measure)(ses_aim *a, const struct ses_objective *o, ses_tape *t, const ses_batch *b,
                    ses_tally *tally, ses_err *e);
    /* The loss an evaluation came to, as it is trained; NULL: the mean of NAME_loss. */
    double (*total)(const ses_aim *a, const struct ses_objective *o, const ses_tally *tally);
} ses_objective;

#define SES_OBJECTIVE(id) extern const ses_objective ses_objective_##id;
#include "objectives.def"
#undef SES_OBJECTIVE

/* ---- a combination ---- */

enum { SES_AIM_MOST = 8 };

struct ses_aim {
    ses_laying w;
    struct {
        const ses_objective *objective;
        double weight;
    } item[SES_AIM_MOST]; /* those that lay first */
    size_t n, ways;       /* ways: how many lay */
    size_t way;           /* of the batch in the making */
    ses_draft draft;
    ses_model *model, *partner;
    struct ses_distill *distill; /* what a teacher says counts too; NULL: there is none */
};

typedef struct ses_aim_options {
    const char *objectives; /* "mlm:1,nsp:1"; without a number: 1 */
    ses_objective_options o;
    const ses_lexicon *lexicon;
    const int32_t *code; /* as in ses_laying; borrowed, and so is the lexicon */
    int64_t codes, length;
    uint64_t seed;
} ses_aim_options;

extern const ses_objective_options ses_objective_usual;

/* config: of the model to be trained. */
ses_aim *ses_aim_new(const ses_aim_options *o, const ses_json *config, ses_err *e);
void ses_aim_free(ses_aim *a);

unsigned ses_aim_needs(const ses_aim *a);      /* of any of them */
ses_pairing ses_aim_pairing(const ses_aim *a); /* of passages: what a strange second segment is */
int64_t ses_aim_fits(const ses_aim *a);        /* tokens of a passage */
const char *ses_aim_class(const ses_aim *a, const ses_json *config, ses_err *e); /* with the heads it needs */
/* Which model is trained, and its partner, or NULL. */
bool ses_aim_models(ses_aim *a, ses_model *model, ses_model *partner, ses_err *e);

/* A teacher beside the labels, of objectives whose loss is the model's heads'; borrowed. */
bool ses_aim_teacher(ses_aim *a, struct ses_distill *d, ses_err *e);

/* A batch: begin, add passages, end. way: which of those that lay; ses_aim_turn: whose turn batch number
 * i of the run is. progress: of the run. */
size_t ses_aim_turn(const ses_aim *a, uint64_t number);
bool ses_aim_begin(ses_aim *a, size_t way, double progress, ses_err *e);
bool ses_aim_add(ses_aim *a, const ses_passage *p, ses_err *e);
bool ses_aim_batch(ses_aim *a, ses_batch *out, ses_err *e); /* borrowed until the next begins */

ses_tensor *ses_aim_loss(void *aim, ses_tape *t, const ses_batch *b, ses_err *e); /* a ses_loss_of */
/* Losses and accuracies of a batch, on a tape that does not train: "mlm_loss", "mlm_accuracy", ... */
bool ses_aim_measure(ses_aim *a, ses_tape *t, const ses_batch *b, ses_tally *tally, ses_err *e);

/* Of all together: those that take turns by their shares, those that ride on top. */
double ses_aim_total(const ses_aim *a, const ses_tally *tally);

/* Replaced tokens: the generator's config, with layers of so much of the model's width; and its embeddings
 * made the model's (before an optimizer is). ses_aim_models does the latter. */
ses_json_doc *ses_generator_config(const ses_json *config, double share, ses_err *e);
bool ses_share_embeddings(ses_model *model, ses_model *partner, ses_err *e);

/* ---- for objectives ---- */

double ses_rate_of(const ses_laying *w, const ses_objective *o);
ses_masking ses_masking_of(const ses_laying *w, const ses_objective *o);
/* Draws about a passage; purpose: one number a use. */
ses_draws ses_passage_draws(const ses_laying *w, const ses_passage *p, uint32_t purpose);
enum { SES_DRAW_MASK = 1, SES_DRAW_SPLIT, SES_DRAW_ORDER, SES_DRAW_TURN };
int64_t ses_framed_room(const ses_laying *w); /* tokens the frame leaves room for */
/* One sequence: id and label (NULL: none) of every token of p, special tokens around. */
bool ses_lay_framed(const ses_laying *w, const ses_passage *p, const int32_t *id, const int32_t *label,
                    ses_draft *d, ses_err *e);
/* Ids of a passage (or their labels) as one stretch: its code, and the end of text before each document;
 * `special`, unless 0, in place of both. */
bool ses_lay_causal(const ses_laying *w, const ses_passage *p, const int32_t *id, int32_t special,
                    ses_ints *to, ses_err *e);
/* w->text: the passage masked; w->chosen: its labels. */
bool ses_lay_masks(ses_laying *w, const ses_objective *o, const ses_passage *p, ses_err *e);
int32_t ses_code_of(const ses_laying *w, const ses_passage *p);               /* -1: none */
const ses_output *ses_output_named(const ses_outputs *out, const char *name); /* NULL: none */
/* Rows of a head's scores that are compared with a label, and the labels; arrays on the tape. */
int64_t ses_label_rows(ses_tape *t, const ses_batch *b, const char *head, int32_t **rows, int32_t **labels);
/* Loss and accuracy of head i over n labels. */
bool ses_tally_head(ses_tally *tally, const char *objective, ses_tape *t, const ses_outputs *out, size_t i,
                    const int32_t *label, int64_t n, ses_err *e);
/* How many of n rows [n, V] have their label on top. */
int64_t ses_count_right(ses_tape *t, const ses_tensor *x, const int32_t *label, int64_t n, ses_err *e);

#endif
