/* A model with its task: encodes labeled examples as sequences and targets, runs the model over them,
 * turns its outputs into predictions and scores. A task is one file tune_NAME.c and one line in
 * finetune_tasks.def.
 *
 * A ses_finetuner owns its tokenizer, config and model; examples are borrowed while a set made from them
 * is used. One thread at a time. */
#ifndef SES_TUNE_FINETUNER_H
#define SES_TUNE_FINETUNER_H

#include "base/arena.h"
#include "nn/nn.h"
#include "sesame/finetune.h"
#include "sesame/generate.h"
#include "sesame/sentence.h"
#include "sesame/unstable/dataset.h"
#include "task/gpt/gpt_inputs.h"
#include "task/task.h"
#include "text/tokenizer_config.h"
#include "vectors/classify/classifier.h"

typedef struct ses_finetune_task ses_finetune_task;
typedef struct ses_ensemble_member ses_ensemble_member; /* ensemble.h */

/* Examples ("rows") as sequences. */
typedef struct ses_finetune_set {
    const ses_examples *rows; /* borrowed */
    size_t n_rows;            /* examples; of joined texts: blocks */
    ses_dataset *data;
    int32_t *row;          /* [n]: row of a sequence */
    int32_t *word;         /* [tokens] of tags: word whose label the token predicts; -1: none */
    ses_offset *byte_span; /* [tokens] of answers: bytes of the passage; begin > end: not in the passage */
    size_t n, cap, tokens, tokens_cap;
    int32_t *pending; /* blocks: tokens that do not fill one yet */
    size_t n_pending, pending_cap;
    int64_t n_truncated;         /* rows with more tokens than fit */
    int64_t n_lost_words;        /* tags: words without a token (truncated or empty) */
    int64_t n_shortened_words;   /* words of which a model of characters reads the beginning only */
    struct ses_tag_words *words; /* taggers: features of the rows that are being encoded; or NULL */
} ses_finetune_set;

void ses_finetune_set_free(ses_finetune_set *s); /* zeroes it */

/* Outputs of a model for a set; a task fills its own arrays, others are NULL. */
typedef struct ses_finetune_outputs {
    double loss;       /* mean over sequences; NaN: no labels */
    float *score;      /* [rows, cols] logits, cosines or a number */
    size_t cols;       /* columns of `score` */
    float *prob;       /* for ensembles: [words, labels] of tags, [tokens, 2] of answers; else NULL */
    int32_t *tags;     /* word w of row r: tags[tag_cu[r] + w]; -1: truncated */
    size_t *tag_cu;    /* [rows + 1] */
    const char **text; /* [rows] answers, generated texts */
    double *nll;       /* [rows] negative log likelihood */
    int64_t *n_nll;    /* [rows] tokens in it */
    double *no_answer; /* [rows] score of no answer minus the best answer's */
    int32_t *layers;   /* [rows] layers passed, if texts leave early; else NULL */
    void *state;       /* private to the task, between begin and finish */
    ses_arena mem;     /* owns all of it */
} ses_finetune_outputs;

void ses_finetune_outputs_free(ses_finetune_outputs *o); /* zeroes it */

typedef struct ses_finetuner_options {
    const ses_finetune_task *task;
    ses_finetune_task_options settings; /* resolved: max_length 0 is the model's, metrics are set */
    const char *base; /* base model of an adapter folder, if not the one it names; or NULL */
    const ses_adapter_options *adapter_options; /* train an adapter; or NULL */
    ses_model *model;            /* an open model, borrowed, instead of one to be opened; or NULL */
    const char *const *adapters; /* further adapter folders; n_adapters of them */
    size_t n_adapters;
} ses_finetuner_options;

typedef struct ses_finetuner {
    const ses_finetune_task *task;
    ses_finetune_task_options settings;
    const char *base;
    const ses_adapter_options *adapter_options;
    const char *const *adapters; /* while the model is opened */
    size_t n_adapters;
    bool unlabeled;   /* the examples have no labels and no target texts */
    bool in_ensemble; /* a member of an ensemble: outputs keep the probabilities that `combine` reads */
    ses_device *dev;
    ses_comm *comm;  /* ranks that share evaluations; borrowed; NULL: one rank */
    bool is_stopped; /* the last pass ended because the callback of a rank asked for it */
    ses_tokenizer *tokenizer;
    const char *tokenizer_path;
    ses_encode_ctx *tokens;
    ses_tokenizer_config tokenizer_config;
    ses_json_doc *config;
    ses_model *model;
    bool borrows_model;
    ses_classifier *classifier; /* instead of a model and its tokenizer; or NULL */
    ses_tape *tape;
    int64_t max_tokens;     /* per sequence */
    int64_t embedding_size; /* width of a new model's token vectors; 0: as in its config */
    ses_arena mem;
    const char **label; /* [n_labels] names */
    size_t n_labels;
    ses_tag_scheme tag_scheme;     /* tag: of the training labels */
    struct ses_word_stack *words;  /* tagger: the vectors of words; NULL: the model reads tokens */
    ses_sentence *sentence;        /* embed: owns `model` */
    ses_store *extra_params;       /* embed: parameters of the loss; or NULL */
    ses_tensor *class_w, *class_b; /* embed: classifier of the softmax loss */
    size_t n_classes;              /* labels of the training data */
    double max_abs_target;         /* largest absolute value of its numbers */
    bool scale_targets;            /* numbers are divided by max_abs_target */
    uint64_t seed;
    ses_tokenizer *target_tokenizer;   /* rewrite: of the target texts; NULL: tokenizer */
    ses_encode_ctx *target_tokens;     /* workspace of target_tokenizer */
    ses_generation_config *generation; /* rewrite */
    int32_t src_lang, tgt_lang;        /* rewrite: language tokens; -1: none */
    int32_t *scratch;                  /* ids and tags of a sequence */
    size_t scratch_cap;
    ses_gpt_inputs gpt;          /* inputs of GPT-1 */
    bool has_new_tokens;         /* the tokenizer has more tokens than the file it was read from */
    void *state;                 /* the task's: made by its open, freed by its close */
    const ses_exit_policy *exit; /* borrowed: texts leave early in predictions; NULL: none */
} ses_finetuner;

struct ses_finetune_task {
    const char *name, *summary;
    const char *aliases;        /* other names, '|' between: pipelines that use the model; or NULL */
    const ses_head *head;       /* NULL: a sentence encoder */
    const ses_head *lm_head;    /* the class has it before `head` (double heads); NULL: none */
    const ses_head *other_head; /* used instead if the class that config.json names has it; or NULL */
    const char *loss_name;      /* name of the loss, if the task has several; or NULL */
    /* The task with each of its other losses, then NULL; or NULL. */
    const ses_finetune_task *const *other_losses;
    bool eval_triplets; /* evaluated with triplets by default, not with scores */
    ses_data_kind data;
    ses_data_format format;
    ses_target target;
    /* Sequences per row that form one example: choices, texts to compare. NULL: 1. */
    int64_t (*group)(const ses_finetuner *t, const ses_examples *rows);
    int64_t width;              /* numbers of a target; 0: labels of the model */
    int64_t default_max_length; /* 0: the model's */
    bool generates;             /* text: generation_config.json is part of the model */
    bool has_label_names;       /* id2label of config.json */
    bool has_exits;             /* texts may leave at the model's early exits */
    const char *problem_type;   /* written to config.json; or NULL */
    const char *metrics;        /* defaults, '|' between */
    const char *best_metric;    /* score that selects the best checkpoint */
    bool in_percent;            /* best_metric is at most 100, not 1 */

    /* Computes the outputs of all rows without sequences: the task has no tokenizer and no model. NULL:
     * sequences in batches, by the functions below. */
    bool (*predict_rows)(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, ses_err *e);
    ses_way way;                             /* how this task is done */
    const ses_finetune_task *ways[SES_WAYS]; /* the task in other ways; NULL: not in this way */
    /* Called when the tokenizer is open, which it may replace; may be NULL. */
    bool (*open_tokenizer)(ses_finetuner *t, ses_err *e);
    /* Writes vocab_size and sesame_inputs of the model's config; base: config.json. May be NULL. */
    void (*put_config)(const ses_finetuner *t, const ses_json *base, ses_json_writer *w);
    /* Called when the model is open; may be NULL. */
    bool (*open)(ses_finetuner *t, ses_err *e);
    void (*close)(ses_finetuner *t); /* frees t->state, which may be NULL; NULL: there is none */
    /* Writes files of its own into the model folder; NULL: none. */
    bool (*save)(const ses_finetuner *t, const char *dir, ses_err *e);
    /* Replaces *source, which reads `batches`, as the source of training. NULL: no change. */
    bool (*wrap_source)(ses_finetuner *t, const ses_finetune_set *s, ses_batches *batches, uint64_t seed,
                        ses_batch_source *source, ses_err *e);
    ses_loss_fn *loss; /* its ctx is the finetuner; NULL: the loss of the model's head */
    /* Adds the sequences of one row to s. */
    bool (*encode)(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                   ses_err *e);
    /* Called after the last row; may be NULL. */
    bool (*finish_encoding)(ses_finetuner *t, ses_finetune_set *s, ses_err *e);

    /* Allocates the arrays of o. */
    bool (*begin)(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, ses_err *e);
    /* Runs a batch whose first sequence has number `first`. NULL: one forward pass, then collect for each
     * sequence. */
    bool (*predict_batch)(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o,
                          const ses_batch *b, int64_t first, ses_err *e);
    /* Stores the head's outputs [n, cols] of one sequence (of a group: of its first), on the host. */
    bool (*collect)(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, int64_t sequence,
                    const float *x, int64_t n, int64_t cols, ses_err *e);
    /* Called after the last batch; may be NULL. */
    bool (*finish)(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o, ses_err *e);

    /* Writes the mean of the outputs of n models for the same rows to the outputs of the first model. NULL:
     * the task has no ensembles. */
    bool (*combine)(const ses_ensemble_member *m, size_t n, ses_err *e);

    /* Fills what the metrics read; arrays on mem. */
    bool (*fill_evaluation)(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            ses_evaluation *v, ses_arena *mem, ses_err *e);
    /* Fills a zeroed prediction; arrays on mem. */
    bool (*fill_prediction)(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                            size_t row, ses_prediction *p, ses_arena *mem, ses_err *e);
    /* Writes the prediction's members into the JSON object begun. */
    void (*put_prediction)(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                           size_t row, ses_json_writer *w);
};

#define SES_FINETUNE_TASK(name) extern const ses_finetune_task ses_finetune_task_##name;
#include "finetune_tasks.def"
#undef SES_FINETUNE_TASK

/* classify by a ses_classifier (tune_classifier.c) */
extern const ses_finetune_task ses_finetune_task_by_classifier;
/* classify by a masked LM and patterns (tune_cloze.c) */
extern const ses_finetune_task ses_finetune_task_by_cloze;

const ses_finetune_task *ses_finetune_task_find(const char *name);       /* NULL: none */
const ses_finetune_task *ses_finetune_task_for_data(ses_data_kind kind); /* the first that reads it */
/* task_of_model.c: name of the task of a model with these heads; NULL: none. */
const char *ses_finetune_task_of_heads(const ses_head_use head[SES_MAX_OUTPUT_HEADS], const ses_config *c);
/* The same of a folder (base: as ses_model_config_open); a sentence encoder has the task embed, a classifier
 * of texts and a folder with patterns classify. NULL and an error: none. */
const char *ses_finetune_task_of_folder(const char *dir, const char *base, ses_err *e);
/* The task with this loss; loss NULL: the default. */
const ses_finetune_task *ses_finetune_task_with_loss(const ses_finetune_task *k, const char *loss,
                                                     ses_err *e);
/* How files of the task are read; a benchmark's spec adds columns and labels. */
ses_data_spec ses_finetune_task_spec(const ses_finetune_task *k);

/* Order of calls: new (reads the tokenizer), set_labels, build_config, open_model. */
ses_finetuner *ses_finetuner_new(const ses_finetuner_options *o, const char *tokenizer,
                                 const char *model_type, ses_device *dev, ses_err *e);
void ses_finetuner_free(ses_finetuner *t);
/* A finetuner with a classifier, which it owns also on failure; ses_finetuner_set_labels sets its labels. */
ses_finetuner *ses_finetuner_new_classifier(const ses_finetuner_options *o, ses_classifier *c,
                                            ses_device *dev, ses_err *e);
/* A finetuner with a tokenizer in memory and embeddings of words, which it owns also on failure. */
ses_finetuner *ses_finetuner_new_tagger(const ses_finetuner_options *o, ses_tokenizer *tokenizer,
                                        struct ses_word_stack *words, ses_device *dev, ses_err *e);
bool ses_finetuner_set_labels(ses_finetuner *t, const ses_examples *train, ses_err *e);
/* Sets t->config: base with this task's class and labels. */
bool ses_finetuner_build_config(ses_finetuner *t, const ses_json *base, ses_err *e);
/* Opens t->model (unless it was given) by t->config: the weights of dir, with a new head if dir has none
 * for the task; dir NULL: random weights. */
bool ses_finetuner_open_model(ses_finetuner *t, const char *dir, bool train, uint64_t seed, ses_err *e);
/* Writes the model folder; of a sentence encoder with its modules. */
bool ses_finetuner_save(const ses_finetuner *t, const char *dir, const ses_save_options *o, ses_err *e);

bool ses_finetuner_encode(ses_finetuner *t, const ses_examples *rows, ses_finetune_set *out, ses_err *e);
/* progress: called after each batch (of each rank) with the sequences done; false ends the pass with an error
 * on all ranks. May be NULL. */
bool ses_finetuner_predict(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *out,
                           bool (*progress)(void *ctx, int64_t done, int64_t total), void *ctx, ses_err *e);

/* Fills v; arrays on mem. */
bool ses_finetuner_fill_evaluation(ses_finetuner *t, const ses_finetune_set *s, const ses_finetune_outputs *o,
                                   ses_evaluation *v, ses_arena *mem, ses_err *e);
/* Appends the scores of the metrics of a list, '|' between, in this order. b may be NULL. */
bool ses_metric_list_run(const char *metrics, const ses_evaluation *v, const ses_bootstrap *b,
                         ses_scores *out, ses_err *e);
/* The same for settings.metrics. */
bool ses_finetuner_score(const ses_finetuner *t, const ses_evaluation *v, const ses_bootstrap *b,
                         ses_scores *out, ses_err *e);

/* ---- labels of spans: tag_labels.c ---- */

/* The scheme whose rules all sequences of labels follow. */
ses_tag_scheme ses_tag_labels_scheme(const ses_examples *rows);
/* The scheme of label names: BIOES if there is an E- or S-, else BIO if there is a B- or I-. */
ses_tag_scheme ses_tag_names_scheme(const ses_examples *labels);
/* The first label that is neither O nor has a prefix, next to labels of spans ("PER" next to "B-PER"); NULL:
 * none. */
const char *ses_tag_names_stray(const ses_examples *labels);
/* Converts the names of a sequence, borrowed, to a scheme: label [n], NULL: none. New names are on mem. */
bool ses_tag_names_convert(const char **label, size_t n, ses_tag_scheme to, ses_arena *mem, ses_err *e);

/* ---- helpers of tasks ---- */

/* Adds the encoding as a sequence; targets are set in q. word, byte_span: as in ses_finetune_set; or NULL. */
bool ses_finetuner_add_sequence(ses_finetuner *t, ses_finetune_set *s, int32_t row, const ses_encoding *k,
                                ses_sequence *q, const int32_t *word, const ses_offset *byte_span,
                                ses_err *e);
/* unknown_words.c: sets q->chars and q->char_cu if the model reads the characters of words outside its
 * vocabulary; arrays on mem. Counts s->n_shortened_words. */
bool ses_finetuner_add_unknown_words(const ses_finetuner *t, ses_finetune_set *s, const ses_input *in,
                                     const ses_encoding *k, ses_sequence *q, ses_arena *mem, ses_err *e);
/* Tasks with `cols` logits per row: memory for them; the logits of a sequence to its row (a hook `collect`);
 * true and predicted labels. */
bool ses_finetuner_begin_scores(const ses_finetune_set *s, size_t cols, ses_finetune_outputs *o, ses_err *e);
bool ses_finetuner_collect_scores(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o,
                                  int64_t sequence, const float *x, int64_t n, int64_t cols, ses_err *e);
bool ses_finetuner_fill_labels(const ses_finetune_set *s, const ses_finetune_outputs *o, size_t cols,
                               ses_evaluation *v, ses_arena *mem, ses_err *e);
/* Tasks with one number per row: true and predicted values. */
bool ses_finetuner_fill_reals(const ses_finetune_set *s, const ses_finetune_outputs *o, ses_evaluation *v,
                              ses_arena *mem, ses_err *e);
/* Index of the largest logit, and its probability. */
int64_t ses_finetuner_softmax(const float *x, size_t cols, double *probability);
/* n integers, valid until the next call. */
int32_t *ses_finetuner_scratch(ses_finetuner *t, size_t n, ses_err *e);

#endif
