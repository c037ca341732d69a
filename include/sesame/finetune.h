/* Fine-tuning: train a pretrained model on labeled examples, evaluate it, save it, predict with it.
 *
 *     ses_finetune_options o = ses_finetune_defaults();
 *     o.model = "sesame-small", o.train = "train.csv", o.eval = "dev.csv", o.run.output = "out";
 *     ses_finetune *f = ses_finetune_new(&o, device, &e);
 *     bool ok = f && ses_finetune_run(f, NULL, &e);           -- trains, evaluates, writes the folder
 *     double accuracy;
 *     if (ok) ses_scores_find(&ses_finetune_report(f)->scores, "accuracy", &accuracy);
 *     ses_finetune_free(f);
 *
 * The folder is opened again by ses_predictor_open, by the pipelines of sesame/pipeline.h and by
 * transformers.
 *
 * Tasks: "classify" (one label), "multi_label", "regress", "tag" (a label per word), "answer" (a span of a
 * passage), "choose" (one of several texts), "rewrite" (text to text), "continue" (causal language
 * modeling), "embed" (sentence vectors); or the name of a benchmark (sesame/examples.h), which also names
 * columns and labels.
 *
 * Ownership: strings and examples named by options are borrowed until the object made from them is freed;
 * what a getter returns is borrowed from its object. The device outlives all of them. Threads: an object
 * is used by one thread at a time; the device computes with as many as it was opened with. Failure: false
 * or NULL, with the reason in e; a failed _new or _open leaves nothing to free. */
#ifndef SESAME_FINETUNE_H
#define SESAME_FINETUNE_H

#include "sesame/examples.h"
#include "sesame/model.h"
#include "sesame/training.h"

SES_BEGIN_DECLS

/* ---- labeled files ---- */

typedef enum {
    SES_FORMAT_AUTO, /* by the task and the file name */
    SES_FORMAT_TSV,
    SES_FORMAT_CSV,
    SES_FORMAT_JSONL,
    SES_FORMAT_CONLL,
    SES_FORMAT_CONLLU,
    SES_FORMAT_SQUAD,
    SES_FORMAT_TEXT
} ses_file_format;

/* How a labeled file is read. Zeroed: task and columns are detected. Lists have '|' between their items. */
typedef struct ses_data_options {
    const char *task; /* see above; NULL: detected from the file, see ses_finetune_detect_task */
    const char *text, *pair, *label; /* columns: a name or a number from 1; NULL: by common names */
    const char *choices;             /* columns of the choices; embed: of texts that do not match the first */
    const char *labels;              /* label set in order; NULL: the labels that occur, sorted */
    const char *delimiter;           /* one ASCII character or "tab"; NULL: tab, or comma in CSV */
    int format;                      /* ses_file_format */
    int quotes;                      /* ses_quotes */
    bool no_header;                  /* the first line is an example; columns are numbers */
    bool
        skip_bad; /* drop rows with an empty text or an error; SQuAD: answers that are not in their context */
    int64_t token_column, tag_column; /* CoNLL: from 1, or from the end (-1); 0: the first, the last */
    const char *label_separator;      /* multi_label: one character, "tab" or "json"; NULL: detected */
    int encoding;                     /* ses_text_encoding */
} ses_data_options;

/* The task a file is made for: "answer" for SQuAD's JSON, "tag" for CoNLL columns, "rewrite", "embed" or
 * "regress" by column names and values, "continue" for plain text, else "classify". Reads at most 1,000 rows.
 * Returns a static string; NULL with the reason in e: the file cannot be read. */
const char *ses_finetune_detect_task(const char *path, const ses_data_options *o, ses_err *e);

/* The i-th task, NULL past the last. summary: may be NULL; receives a one-line description. Static
 * strings; any thread. */
const char *ses_finetune_task_name(size_t i, const char **summary);

/* ---- settings ---- */

/* Data that evaluates sentence vectors. */
typedef enum { SES_EVAL_AUTO, SES_EVAL_SCORES, SES_EVAL_TRIPLETS } ses_embed_eval;

/* Labels of spans (tag). BIO: B- begins a span, I- continues it; BIOES: E- ends it, S- is a span of one
 * token. */
typedef enum {
    SES_SCHEME_AUTO, /* training: labels as they are; otherwise as the model's */
    SES_SCHEME_BIO,  /* convert labels: IOB1, BIO and BIOES are read */
    SES_SCHEME_BIOES
} ses_label_scheme;

/* Inputs of a causal model. GPT-1: start, delimiter and extract tokens around and between the texts; the head
 * reads the extract token. */
typedef enum { SES_INPUTS_PLAIN, SES_INPUTS_GPT1 } ses_input_layout;
/* Learning rate of GPT-1's fine-tuning, used with these inputs unless another one is given by name. */
#define SES_GPT1_LR 6.25e-5

/* Settings of a task; a task reads its own and ignores the others. */
typedef struct ses_finetune_task_options {
    int64_t max_length;   /* tokens per sequence; longer ones are truncated or split; 0: the task's default */
    const char *metrics;  /* '|' between; NULL: the task's defaults */
    bool all_pieces;      /* tag: every piece of a word gets its label, not only the first */
    bool crf;             /* tag: train a CRF over the labels of a sequence */
    int scheme;           /* tag: ses_label_scheme of training labels and of predictions */
    int64_t stride;       /* answer: tokens shared by neighboring windows of a passage */
    int64_t max_answer;   /* answer: maximum length in tokens */
    int64_t n_best;       /* answer: candidate start and end positions */
    bool allow_no_answer; /* answer: a passage may have none (SQuAD 2.0) */
    double null_threshold; /* answer: minimum score margin for returning no answer */
    bool line_by_line;  /* continue: each text is a sequence; false: texts are joined and split into blocks */
    const char *prefix; /* rewrite: put before each text, "summarize: "; or NULL */
    int64_t max_target; /* rewrite: maximum tokens of the output */
    int64_t num_beams;  /* rewrite: beams of evaluation and prediction; 0: as in generation_config.json */
    const char *src_lang, *tgt_lang; /* rewrite: language tokens, "en_XX"; or NULL */
    const char *loss;          /* embed: negatives, softmax, cosine, contrastive, triplet; NULL: negatives;
                                * continue: causal, autoencoder; NULL: causal */
    const char *pooling;       /* embed: cls, max, mean, ...; NULL: as in the folder, else mean */
    double margin;             /* embed: margin of the loss; negative: 5 for triplet, 0.5 for contrastive */
    double cosine_temperature; /* embed: divides the cosines of `negatives` */
    int eval_with;             /* embed: ses_embed_eval */
    int inputs;                /* classify, regress, choose: ses_input_layout in training */
    bool both_orders;          /* GPT-1 inputs: a pair is read in both orders, the scores are added */
    double lm_loss;            /* GPT-1 inputs: weight of the language modeling loss */
    /* classify: a pattern file (docs/LITTLE_DATA.md) makes a masked LM the classifier; NULL: none */
    const char *patterns;
    int64_t pattern;                     /* number of the pattern in the file; 0: the first */
    const struct ses_few_shot *few_shot; /* set by `sesame finetune --method`; NULL: none */
} ses_finetune_task_options;

/* The choices of SES_ADAPTER_LIST (sesame/model.h). */
#define SES_ADAPTER_NUMBER(number, name) SES_ADAPT_##number,
#define SES_ADAPTER_NAME(number, name) "|" #name
typedef enum {
    SES_ADAPT_NONE, /* all weights are trained; the adapter of an adapter folder is merged first */
    SES_ADAPTER_LIST(SES_ADAPTER_NUMBER, SES_ADAPTER_NUMBER) SES_ADAPT_END,
    SES_ADAPT_LAST = SES_ADAPT_END - 1
} ses_adapter_kind;
/* The names of ses_adapter_kind: "none|lora|...". */
#define SES_ADAPTER_KINDS "none" SES_ADAPTER_LIST(SES_ADAPTER_NAME, SES_ADAPTER_NAME)

typedef enum {
    SES_HEAD_DEFAULT, /* the model's own kind */
    SES_HEAD_LINEAR,
    SES_HEAD_MLP1, /* one hidden layer */
    SES_HEAD_MLP2, /* two */
    SES_HEAD_BILSTM,
    SES_HEAD_BIGRU
} ses_transfer_head;

/* Which parameters are trained, and how fast. */
typedef struct ses_transfer_options {
    int adapter; /* ses_adapter_kind: only an adapter and the head are trained */
    int64_t lora_rank;
    double lora_alpha, lora_dropout; /* scaling: alpha / rank */
    const char *lora_targets;        /* layers of LoRA or IA3, ',' between; NULL: see ses_adapter_options */
    double layer_decay;              /* learning-rate ratio between adjacent layers; 1: equal rates */
    const char *freeze;     /* "N": freeze embeddings and the N-1 lowest layers; "all": train only the head */
    bool unfreeze;          /* train the head first, unfreeze one more layer each epoch (ULMFiT) */
    int head;               /* ses_transfer_head, classify, tag and answer */
    const char *head_sizes; /* widths of its hidden layers, ',' between; NULL: 256 */
    bool mix_layers;        /* feed the head a learned weighted sum of all layers (ELMo) */
    const char *layers;     /* feed it these, as "9-12" or "-1": 0 is the embeddings; NULL: the last */
    int combine;            /* several layers: 0 mean, 1 sum, 2 concatenation (needs `head`) */
    double dropout, attention_dropout, classifier_dropout; /* negative: as in config.json */
    int64_t virtual_tokens;                                /* adapters prompt, ptuning, prefix */
    int64_t projection; /* prefix, ptuning: see ses_adapter_options; 0: none, of ptuning 128 */
    double reduction;   /* bottleneck: hidden size / units of the hidden layer */
    int placement;      /* bottleneck: 0 seq, 1 double, 2 parallel */
} ses_transfer_options;

/* Learning rate of taggers of words unless another one is given by name. */
#define SES_TAGGER_LR 0.002

/* A further data set of a run, with a task of its own. */
typedef struct ses_finetune_data_set {
    const char *train, *eval; /* labeled files; either all data sets of a run have `eval`, or none */
    ses_examples *train_examples, *eval_examples; /* instead of the files */
    ses_data_options data;
    ses_finetune_task_options task;
    const char *command_options; /* for run.json of its folder, see ses_finetune_options; or NULL */
} ses_finetune_data_set;

/* Early exit (docs/COMPRESSION.md): classifiers after inner layers. Task classify, encoders only. */
enum {
    SES_TRAIN_EXITS_AUTO,  /* jointly if the model has exits for the task, else none */
    SES_TRAIN_EXITS_NONE,  /* the saved model has none */
    SES_TRAIN_EXITS_JOINT, /* with the model */
    SES_TRAIN_EXITS_FROZEN /* alone: the model and its own classifier stay as they are */
};
typedef struct ses_exit_options {
    int train;          /* SES_TRAIN_EXITS_* */
    const char *layers; /* "3,6,9": after these layers, from 1; NULL: after all but the last */
    int head;           /* 0: dense layer, tanh and scores; 1: scores only */
    int targets;        /* 0: labels; 1, frozen only: probabilities of the last layer (FastBERT) */
} ses_exit_options;

typedef struct ses_finetune_options {
    const char *model;  /* folder or name of the pretrained model, see ses_model_resolve */
    const char *config; /* instead of model: random weights by a config.json, or a preset ("bert-mini") */
    /* Instead of both: an open model, borrowed, opened with `train` and a head for the task; `tokenizer`
     * is required. If the task has labels, they are the model's. */
    ses_model *open_model;
    const char *const *set; /* [n_set] "KEY=VALUE": changes of the config, e.g. of dropout rates */
    size_t n_set;
    /* Instead of all three, for the task tag: a new tagger on these embeddings of words, ',' between:
     * "static:FILE", "transformer:DIR", "word", "char". Set a learning rate for a new model, as
     * SES_TAGGER_LR. */
    const char *embed;
    const char *encoder; /* with embed: "bilstm", "window" or "sentence"; NULL: bilstm */
    int64_t lm_layer;    /* with embed: language models enter after this layer (TagLM: 1); 0: at the input */
    const char *tokenizer; /* folder or file; NULL: the model's */
    /* with config: file of word vectors that become the first token vectors; NULL: random */
    const char *vectors;

    const char *train, *eval; /* labeled files; eval may be NULL: no evaluation */
    /* tag: a file of sentences in the format of `train`, whose labels are ignored; Cross-View Training takes
     * turns with the labeled batches. NULL: none. */
    const char *unlabeled;
    /* Instead of the files: examples in memory, see ses_examples_new. Their labels may be reordered: if
     * the model has the same labels, its order is kept, and evaluation labels get the order of the
     * training labels. */
    ses_examples *train_examples, *eval_examples;
    ses_data_options data;
    ses_finetune_task_options task;

    ses_training_options run;  /* length, optimizer, checkpoints, output folder */
    int64_t bucket;            /* sort by length within N batches; 0: off */
    double label_smoothing;    /* 0: off */
    const char *class_weights; /* classify: "balanced", or a JSON file {"label": weight}; NULL: equal */
    ses_transfer_options transfer;
    ses_teacher_options teacher;

    const char *metric; /* score that selects the best checkpoint, or "loss"; NULL: the task's default */
    double eval_epochs; /* epochs between evaluations, instead of run.eval_every; 0: off */
    int64_t patience;   /* stop after N evaluations without improvement; 0: never */
    int64_t bootstrap;  /* resamples for confidence intervals of the final scores; 0: none */
    double confidence;  /* level of these intervals, in percent */

    const char *command;         /* command line, written to run.json and README.md; or NULL */
    const char *command_options; /* its options, a JSON object, written to run.json; or NULL */
    ses_training_fn *on_event;   /* progress and cancellation; or NULL */
    void *ctx;
    /* Multi-task training: [n_also] further data sets. One encoder and a head per task are trained; batches
     * are drawn in proportion to (training examples)^mix_alpha, 0 to 1. The mean of the tasks' main scores
     * selects the best checkpoint. The output folder gets a folder per task, a complete model each, and
     * tasks.json. */
    const ses_finetune_data_set *also;
    size_t n_also;
    double mix_alpha;

    /* Train on a random subset of the training data, drawn by run.seed; subsets of one seed are nested. */
    int64_t train_size; /* examples in all, classes in proportion; 0: all examples */
    /* Instead: examples of each class; several labels: of each label, tags: sentences with each entity type.
     * An error if a class has fewer. 0: all examples. */
    int64_t shots;

    /* Evaluate once, after training, the weights of the last update: the evaluation data select nothing. */
    bool last_weights;

    /* Pruning during training. Rows and heads that become empty are removed from the model that is written.
     */
    ses_pruning_options pruning;
    ses_exit_options exits;
    /* Quantization-aware training: dense layers compute with the rounding of int8 products. The saved weights
     * are f32; quantized to int8 they give the scores of this run. */
    bool quantize_aware;
} ses_finetune_options;

/* The settings of `sesame finetune` without options: three epochs of AdamW, batches of 32, learning rate
 * 5e-5 with 10 % warmup and linear decay, seed 42. A value: nothing to free; cannot fail. */
ses_finetune_options ses_finetune_defaults(void);

/* The same settings by name: the options of `sesame finetune`, "lr" or "batch_size", with their defaults. */
typedef struct ses_finetune_settings ses_finetune_settings;
/* Parses and checks settings, whose strings are borrowed until ses_finetune_settings_free. NULL on failure:
 * an unknown name, a value out of range (SES_EUSAGE). */
ses_finetune_settings *ses_finetune_settings_new(const ses_setting *settings, ses_err *e);
void ses_finetune_settings_free(ses_finetune_settings *s); /* s may be NULL */
/* The settings as options, which borrow from s. */
ses_finetune_options ses_finetune_settings_options(const ses_finetune_settings *s);

/* ---- evaluation ---- */

/* One class: a label, or an entity type of tags. NaN: the metrics do not give it. */
typedef struct ses_class_score {
    char name[64];
    double precision, recall, f1, number; /* number: of examples */
} ses_class_score;

typedef struct ses_eval_report {
    double loss; /* mean over sequences; NaN: unknown */
    size_t n;    /* examples */
    ses_scores scores;
    ses_class_score *classes;
    size_t n_classes;
    const char *const *labels; /* [n_labels] borrowed from the predictor or the run */
    size_t n_labels;
    int64_t *confusion; /* [n_labels, n_labels]: true label, predicted label; NULL: the task has no labels */
    double level;       /* level of the confidence intervals; 0: no intervals */
    /* Texts that may leave early (exit): texts by the number of layers they passed, [n_layers + 1], and the
     * mean; NULL and 0: none may. */
    int64_t *exit_counts;
    size_t n_layers;
    double mean_layers;
} ses_eval_report;

/* Frees the contents of a report and zeroes it. A zeroed report is fine. */
void ses_eval_report_free(ses_eval_report *r);
/* Whether the i-th score belongs to a summary: not the loss, which is r->loss, not a score of a class, not a
 * micro average that repeats another score. */
bool ses_eval_report_is_overall(const ses_eval_report *r, size_t i);
/* Writes members of the JSON object being written: eval_NAME, eval_NAME_low and eval_NAME_high of each score,
 * eval_loss, eval_samples, eval_labels, eval_confusion_matrix. Errors are kept in w. */
void ses_eval_report_put(const ses_eval_report *r, ses_json_writer *w);

/* ---- predictions ---- */

typedef struct ses_predictions ses_predictions;

/* One example's prediction; a task sets its own fields, others are 0 or NULL. Borrowed from the
 * predictions. */
typedef struct ses_prediction {
    const char *label;         /* classify: the best label */
    double score;              /* classify, choose: its probability */
    double value;              /* regress: the number; embed: cosine of the first two texts */
    const char *const *labels; /* multi_label: the labels that apply; tag: one per word, NULL: truncated */
    size_t n_labels;
    int64_t choice;   /* choose: index of the best choice */
    const char *text; /* answer, rewrite, choose: the text; "" : no answer */
    double nll;       /* continue: negative log likelihood */
    int64_t n_tokens; /* continue: predicted tokens */
    int64_t layers;   /* classify with exit: layers the text has passed */
} ses_prediction;

/* Number of predictions: the examples; of joined texts (continue): the blocks. */
size_t ses_predictions_count(const ses_predictions *p);
/* The i-th prediction, i below the count. Its strings are valid until ses_predictions_free. */
ses_prediction ses_predictions_at(const ses_predictions *p, size_t i);
/* Writes the i-th prediction as a JSON object, as `sesame predict` prints it. Errors are kept in w. */
void ses_predictions_put(const ses_predictions *p, size_t i, ses_json_writer *w);
/* Frees the predictions; call it before the predictor, and examples in memory, are freed. p may be NULL. */
void ses_predictions_free(ses_predictions *p);

/* ---- a run ---- */

typedef struct ses_finetune ses_finetune;

/* Reads the data, opens the model and prepares training on device d, which outlives the run. The output
 * folder is checked, nothing is written yet. o is copied; its strings, examples and open model are
 * borrowed. NULL on failure: unreadable files, options that exclude each other (SES_EUSAGE), a model
 * without a class for the task. */
ses_finetune *ses_finetune_new(const ses_finetune_options *o, ses_device *d, ses_err *e);
/* Frees a run with its model. f may be NULL. */
void ses_finetune_free(ses_finetune *f);

/* Trains, evaluates the best weights and writes the output folder: the model, its tokenizer, README.md,
 * run.json, trainer_state.json, train_results.json, eval_results.json, all_results.json. If run.output is
 * NULL, only the logs that are set are written and the weights are the last, not the best. end (may be
 * NULL): whether the run is complete, stopped early or was cancelled by the callback; a cancelled run has
 * saved a checkpoint and continues with run.resume. SES_RUN_WAS_COMPLETE: run.resume found a complete run;
 * nothing is trained or written, the best weights are loaded and evaluated again, the last checkpoint
 * supplies time and energy. False: training failed (a loss is NaN) or a file could not be written. A model
 * that was in the folder is then unchanged; if only moving the new files failed, the folder may lack
 * config.json and not load. Checkpoints and logs of an earlier run may be gone, unless run.resume is set.
 * A second call fails with SES_EARG. */
bool ses_finetune_run(ses_finetune *f, ses_run_end *end, ses_err *e);

/* The last evaluation; n is 0 if there was none. */
const ses_eval_report *ses_finetune_report(const ses_finetune *f);
/* The model, the trainer, the number of labels and the i-th label (NULL past the last). Borrowed from f. */
ses_model *ses_finetune_model(const ses_finetune *f);
ses_trainer *ses_finetune_trainer(const ses_finetune *f);
size_t ses_finetune_labels(const ses_finetune *f);
const char *ses_finetune_label(const ses_finetune *f, size_t i);
/* Name of the score that selects the best checkpoint: "accuracy", "loss". */
const char *ses_finetune_metric(const ses_finetune *f);
/* The folder of data set i in the output folder; NULL past the last, and in a run with one data set. */
const char *ses_finetune_folder(const ses_finetune *f, size_t i);
/* Figures of the run; call it after ses_finetune_run. */
ses_training_stats ses_finetune_stats(const ses_finetune *f);
/* Weights of one name in all layers, "attn.query", and how many of them pruning has kept. */
typedef struct ses_pruned_kind {
    char name[48];
    int64_t weights, kept;
} ses_pruned_kind;
typedef struct ses_pruning_report {
    double kept; /* fraction of the pruned weights */
    ses_pruned_kind kind[24];
    size_t n_kinds;
    /* in all layers; left: in the model that was written, without empty heads and feed-forward rows */
    int64_t heads, heads_left, rows, rows_left, parameters, parameters_left;
} ses_pruning_report;
/* The report of a run with pruning, after ses_finetune_run; NULL: none. Borrowed from f. */
const ses_pruning_report *ses_finetune_pruning(const ses_finetune *f);
/* Writes the members of all_results.json into the JSON object being written; call it after
 * ses_finetune_run. Errors are kept in w. */
void ses_finetune_put_results(const ses_finetune *f, ses_json_writer *w);
/* Writes the command that runs the model in folder dir, truncated to size bytes: "sesame
 * text-classification --model DIR 'some text'". */
void ses_finetune_usage(const ses_finetune *f, const char *dir, char *buf, size_t size);

/* ---- a fine-tuned model ---- */

typedef struct ses_predictor ses_predictor;

typedef struct ses_predictor_options {
    ses_data_options data; /* task NULL: the task of the model's class */
    ses_finetune_task_options task;
    const char *base;   /* folder of the base model, if dir is an adapter and names another; or NULL */
    const char *rename; /* names of predicted labels, by name or number: "0=negative,1=positive"; or NULL */
    int64_t bootstrap, seed;
    double confidence; /* see ses_finetune_options */
    ses_training_fn *on_event;
    void *ctx;
    /* [n_ensemble] folders or names of further models: predictions are the means of the probabilities (of
     * numbers: of the values) of all. Labels are matched by name. NULL: one model. */
    const char *const *ensemble;
    size_t n_ensemble;
    const char *const *adapters; /* further adapter folders: see ses_model_options; needed while opening */
    size_t n_adapters;
    const char
        *exit; /* texts leave early by this rule, as "entropy:0.3": see sesame/model.h; NULL: none do */
} ses_predictor_options;

/* The settings of `sesame eval` without options. A value: nothing to free; cannot fail. */
ses_predictor_options ses_predictor_defaults(void);

/* Opens a folder written by a run, or any model with a head for the task, by path or name
 * (ses_model_resolve), on device d, which outlives it. The weights are read by the first evaluation or
 * prediction. NULL on failure. */
ses_predictor *ses_predictor_open(const char *dir, const ses_predictor_options *o, ses_device *d, ses_err *e);
/* Frees a predictor that was opened. p may be NULL. */
void ses_predictor_free(ses_predictor *p);
/* The model a run has trained. It belongs to the run: do not free it. */
ses_predictor *ses_finetune_predictor(ses_finetune *f);

/* Evaluates a labeled file. out is overwritten; free it with ses_eval_report_free, before p is freed.
 * False: the file cannot be read, has other labels than the model, or the callback has returned false. */
bool ses_predictor_evaluate(ses_predictor *p, const char *path, ses_eval_report *out, ses_err *e);
/* Predicts the rows of a file, which needs no labels. NULL on failure, as above. Free with
 * ses_predictions_free. */
ses_predictions *ses_predictor_predict(ses_predictor *p, const char *path, ses_err *e);
/* The same for files of any length: the rows of a table are read and predicted in groups, so that memory does
 * not depend on their number. Files of other formats are one group. */
typedef struct ses_predict_stream {
    int64_t group; /* rows of a group; 0: 1,024. The first group is one row, which shows the members of a
                      prediction before other rows are read */
    /* Receives each row of a table when it is read, before its group; NULL: not needed. Fails for files
     * without rows. */
    bool (*on_row)(void *ctx, const ses_records *row, ses_err *e);
    /* Receives the predictions of each group, borrowed until it returns. */
    bool (*on_predictions)(void *ctx, const ses_predictions *p, ses_err *e);
    void *ctx;
} ses_predict_stream;
bool ses_predictor_predict_stream(ses_predictor *p, const char *path, const ses_predict_stream *s,
                                  ses_err *e);
/* The same for examples in memory (ses_examples_new), made with ses_predictor_labels as `like`. evaluate
 * may reorder their labels to the model's. The examples outlive the predictions. */
bool ses_predictor_evaluate_examples(ses_predictor *p, ses_examples *d, ses_eval_report *out, ses_err *e);
ses_predictions *ses_predictor_predict_examples(ses_predictor *p, const ses_examples *d, ses_err *e);

/* The labels of the model, a set without examples; NULL: the task or the model has none. Borrowed from p. */
const ses_examples *ses_predictor_labels(const ses_predictor *p);
/* Changes the rule by which texts leave early; rule NULL: none do. */
bool ses_predictor_set_exit(ses_predictor *p, const char *rule, ses_err *e);
/* Exits of the model before its last layer; 0 also before the first evaluation or prediction. */
int64_t ses_predictor_exit_count(const ses_predictor *p);
/* Name of the score that compares models of the task: "accuracy". A static string. */
const char *ses_predictor_metric(const ses_predictor *p);

SES_END_DECLS

#endif
