/* Fine-tuning: rows of labeled data become sequences and targets; outputs of a model become predictions and
 * scores. A kind of task is one file tune_NAME.c and one line in finetune_tasks.def. */
#ifndef SES_TASK_TUNE_H
#define SES_TASK_TUNE_H

#include "base/arena.h"
#include "base/str.h"
#include "generate/logit_scores.h"
#include "sesame/dataset.h"
#include "sesame/examples.h"
#include "sesame/generate.h"
#include "sesame/metric.h"
#include "sesame/sentence.h"
#include "sesame/trainer.h"
#include "task/task.h"
#include "text/tokenizer_config.h"

typedef struct ses_finetune_task ses_finetune_task;

/* Rows as sequences. */
typedef struct ses_finetune_set {
    const ses_examples *rows;
    size_t n_rows;
    ses_dataset *data;
    int32_t *row;          /* [sequences]: which row a sequence is of */
    int32_t *word;         /* [tokens] of tags: the word whose label the token has; -1: none */
    ses_offset *byte_span; /* [tokens] of answers: where in the passage; begin above end: nowhere */
    size_t n, cap, tokens, tokens_cap;
    int32_t *pending; /* of blocks: tokens that do not fill one yet */
    size_t n_pending, pending_cap;
    int64_t n_truncated;  /* rows that were too long and lost something */
    int64_t n_lost_words; /* of tags: words that no token stands for */
} ses_finetune_set;

void ses_finetune_set_free(ses_finetune_set *s);

/* What a model said about a set. */
typedef struct ses_task_outputs {
    double loss;       /* mean over sequences; NaN without labels */
    float *score;      /* [rows, labels] logits of kinds that have a label a row */
    int32_t *tags;     /* [words of all rows]; word w of row r is tag[tag_cu[r] + w]; -1: cut off */
    size_t *tag_cu;    /* [rows + 1] */
    const char **text; /* [rows] answers, texts written */
    double *nll;       /* [rows] of texts: negative log likelihood, */
    int64_t *n_nll;    /* of so many tokens */
    double *no_answer; /* [rows] score of none over the best answer */
    void *state;       /* the kind's, while it takes */
    ses_arena mem;     /* all of it */
} ses_task_outputs;

void ses_task_outputs_free(ses_task_outputs *p);

typedef struct ses_finetuner_options {
    const ses_finetune_task *kind;
    const char *base; /* of a folder with an adapter: the model's, in place of the one it names; or NULL */
    const ses_lora *lora;  /* train an adapter beside the model; or NULL */
    const char *metrics;   /* in place of the kind's usual ones; or NULL */
    int64_t max_length;    /* most tokens of a sequence; 0: what the model takes */
    int64_t stride;        /* tokens two windows of a passage share */
    bool all_pieces;       /* every piece of a word has its label, not the first alone */
    int64_t n_best;        /* starts and ends tried for an answer */
    int64_t max_answer;    /* tokens of an answer */
    bool allow_no_answer;  /* a passage may have no answer */
    double null_threshold; /* how much more likely none must be */
    bool unlabeled;        /* rows have no labels, and no text to be written */
    bool line_by_line;     /* each text is a sequence of its own; else they are joined and cut in blocks */
    const char *prefix;    /* in front of each text to be rewritten; or NULL */
    int64_t max_target;    /* most tokens of what is written */
    int64_t num_beams;     /* 0: as the model's folder says */
    const char *src_lang, *tgt_lang; /* tokens that name languages, as "en_XX"; or NULL */
    const char *pooling;             /* how tokens become a vector; NULL: as the folder says, or mean */
    double margin;                   /* of losses that have one; below 0: the usual */
    double temperature;              /* cosines are divided by it */
} ses_finetuner_options;

typedef struct ses_finetuner {
    ses_finetuner_options o;
    ses_device *dev;
    ses_tokenizer *tokenizer;
    const char *tokenizer_path; /* its path */
    ses_tokens *tokens;
    ses_tokenizer_config facts;
    ses_json_doc *config;
    ses_model *model;
    ses_tape *tape;
    int64_t max_tokens; /* tokens of a sequence */
    ses_arena mem;
    const char **label; /* [n_labels] names */
    size_t n_labels;
    ses_sentence *sentence;  /* of vectors: whose model t->model is, */
    ses_store *extra_params; /* what their loss has to learn; or NULL */
    ses_tensor *class_w, *class_b;
    size_t n_classes;      /* labels of the training data */
    double max_abs_target; /* the largest of its numbers, sign apart; */
    bool scale_targets;    /* numbers are divided by it */
    uint64_t seed;
    ses_generation_config *generation; /* of kinds that write, and */
    int32_t src_lang, tgt_lang;        /* tokens of their languages; -1: not said */
    int32_t *scratch;                  /* segments and tags of a sequence */
    size_t scratch_cap;
} ses_finetuner;

struct ses_finetune_task {
    const char *name, *summary;
    const ses_head *head;                         /* NULL: a sentence encoder */
    const char *loss_name;                        /* which of the losses of a task; or NULL */
    const ses_finetune_task *const *other_losses; /* the task with its other losses, then NULL; or NULL */
    bool eval_triplets;                           /* usually measured with triplets, not with scores */
    ses_data_kind data;
    ses_data_format format;
    ses_target target;
    /* Sequences of a row that come together: choices, texts to compare. NULL: each is one of its own. */
    int64_t (*group)(const ses_finetuner *t, const ses_examples *rows);
    int64_t width;                              /* numbers of a target; 0: as many as the model has labels */
    int64_t default_max_length;                 /* most tokens where nobody says; 0: what the model takes */
    bool generates;                             /* texts: generation_config.json is of interest */
    bool has_label_names;                       /* labels have names, in config.json too */
    const char *problem_type;                   /* config.json's problem_type, or NULL */
    const char *metrics;                        /* usual ones, '|' between; */
    const char *best_metric;                    /* the score that chooses the best */
    bool (*open)(ses_finetuner *t, ses_err *e); /* the model is there; may be NULL */
    ses_loss_fn *loss;                          /* its ctx is the tuner; NULL: what the model's head says */
    bool (*encode)(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                   ses_err *e);
    bool (*finish_encoding)(ses_finetuner *t, ses_finetune_set *s,
                            ses_err *e); /* after the last row; may be NULL */
    bool (*begin)(ses_finetuner *t, const ses_finetune_set *s, ses_task_outputs *p, ses_err *e);
    /* A batch whose first sequence has this number, in place of a pass and take; may be NULL. */
    bool (*pass)(ses_finetuner *t, const ses_finetune_set *s, ses_task_outputs *p, const ses_batch *b,
                 int64_t first, ses_err *e);
    /* Outputs of one sequence (of a group: of its first), on the host: [n, cols]. */
    bool (*collect)(ses_finetuner *t, const ses_finetune_set *s, ses_task_outputs *p, int64_t sequence,
                    const float *x, int64_t n, int64_t cols, ses_err *e);
    bool (*finish)(ses_finetuner *t, const ses_finetune_set *s, ses_task_outputs *p,
                   ses_err *e); /* may be NULL */
    /* What metrics read; arrays on mem. */
    bool (*fill_evaluation)(ses_finetuner *t, const ses_finetune_set *s, const ses_task_outputs *p,
                            ses_evaluation *v, ses_arena *mem, ses_err *e);
    void (*put_prediction)(ses_finetuner *t, const ses_finetune_set *s, const ses_task_outputs *p, size_t row,
                           ses_json_writer *w);
};

#define SES_FINETUNE_TASK(name) extern const ses_finetune_task ses_finetune_task_##name;
#include "finetune_tasks.def"
#undef SES_FINETUNE_TASK

const ses_finetune_task *ses_finetune_task_need(const char *name, ses_err *e);
const char *ses_finetune_task_name(size_t i, const char **what); /* NULL past the end */

/* A tuner reads a tokenizer; then come labels, then a model. */
ses_finetuner *ses_finetuner_new(const ses_finetuner_options *o, const char *tokenizer,
                                 const char *model_type, ses_device *dev, ses_err *e);
void ses_finetuner_free(ses_finetuner *t);
bool ses_finetuner_set_labels(ses_finetuner *t, const ses_examples *train, ses_err *e);

/* The config with this task's class and labels, kept in t->config. vocab: rows of the token table, or 0. */
bool ses_finetuner_build_config(ses_finetuner *t, const ses_json *base, int64_t vocab, ses_err *e);
/* t->model, by t->config: weights of dir with a new head where it has none, or (dir NULL) random ones. */
bool ses_finetuner_open_model(ses_finetuner *t, const char *dir, bool train, uint64_t seed, ses_err *e);

/* A folder that every command and the reference load: the model, of vectors the encoder with its modules. */
bool ses_finetuner_save(const ses_finetuner *t, const char *dir, const ses_save_options *o, ses_err *e);

/* The task with this loss; NULL: the usual one. */
const ses_finetune_task *ses_finetune_task_with_loss(const ses_finetune_task *k, const char *loss,
                                                     ses_err *e);

/* How files of this kind are read; a benchmark's spec says more. */
ses_data_spec ses_finetune_task_spec(const ses_finetune_task *k);

bool ses_finetuner_encode(ses_finetuner *t, const ses_examples *rows, ses_finetune_set *out, ses_err *e);
/* progress: told after each batch how many sequences are done; false ends it. NULL: nobody. */
bool ses_finetuner_predict(ses_finetuner *t, const ses_finetune_set *s, ses_task_outputs *out,
                           bool (*progress)(void *ctx, int64_t done, int64_t of), void *ctx, ses_err *e);

/* What metrics read; arrays on mem. And all metrics of it, in the order asked for. b may be NULL. */
bool ses_finetuner_fill_evaluation(ses_finetuner *t, const ses_finetune_set *s, const ses_task_outputs *p,
                                   ses_evaluation *v, ses_arena *mem, ses_err *e);
bool ses_finetuner_score(const ses_finetuner *t, const ses_evaluation *v, const ses_bootstrap *b,
                         ses_scores *out, ses_err *e);

/* ---- for kinds ---- */

/* Adds the encoding as a sequence; targets are the caller's. word and bytes: as ses_finetune_set, or NULL. */
bool ses_finetuner_add_sequence(ses_finetuner *t, ses_finetune_set *s, int32_t row, const ses_encoding *k,
                                ses_sequence *q, const int32_t *word, const ses_offset *bytes, ses_err *e);
/* Of kinds with `cols` scores a row: gold and predicted labels; the best of a row, and its probability. */
bool ses_finetuner_fill_labels(const ses_finetune_set *s, const ses_task_outputs *p, size_t cols,
                               ses_evaluation *v, ses_arena *mem, ses_err *e);
/* Of kinds with one score a row, a number: what was to be hit, and what was said. */
bool ses_finetuner_fill_reals(const ses_finetune_set *s, const ses_task_outputs *p, ses_evaluation *v,
                              ses_arena *mem, ses_err *e);
int64_t ses_finetuner_softmax(const float *x, size_t cols, double *probability);
int32_t *ses_finetuner_scratch(ses_finetuner *t, size_t n, ses_err *e);

#endif
