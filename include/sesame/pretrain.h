/* Pretraining: train a language model on unlabelled text, from random weights or from a checkpoint.
 *
 *     const char *corpora[] = { "books.ids" };                    -- built by ses_corpus_build
 *     ses_pretrain_options o = ses_pretrain_defaults();
 *     o.corpora = corpora, o.n_corpora = 1, o.tokenizer = "tokenizer.json";
 *     o.preset = "bert-mini", o.objectives = "mlm", o.run.output = "out";
 *     ses_pretrain *p = ses_pretrain_new(&o, device, &e);
 *     if (p && ses_pretrain_run(p, NULL, &e)) printf("%g\n", ses_pretrain_result_of(p)->eval_loss);
 *     ses_pretrain_free(p);
 *
 * The output folder holds the model in transformers' format with its tokenizer, a model card, the scores
 * and the log; ses_model_open, the pipelines of sesame/pipeline.h and ses_finetune_new open it. A run is
 * deterministic: its weights depend on the options and the texts, not on the number of threads, and a
 * resumed run ends with the same bits as an uninterrupted one.
 *
 * Ownership: strings and arrays named by options are borrowed until ses_pretrain_free; what a getter
 * returns is borrowed from the run. The device outlives the run. Threads: a run is used by one thread at a
 * time, which also calls the callbacks; the device computes with as many threads as it was opened with.
 * Failure: false or NULL, with the reason in e (SES_EUSAGE: options are missing or contradict each other);
 * a failed _new leaves nothing to free. */
#ifndef SESAME_PRETRAIN_H
#define SESAME_PRETRAIN_H

#include "sesame/model.h"
#include "sesame/tokenizer.h"
#include "sesame/training.h"
#include "sesame/unstable/table.h"

SES_BEGIN_DECLS

/* ---- Corpora ----
 *
 * A corpus: tokenized text in one file, with the boundaries of documents, sentences and words.
 * docs/TRAINING.md describes the file format.
 *
 * The file is mapped, not read: it may be larger than memory. ses_corpus_build creates it.
 * Ownership: results by value or copied to the caller's arrays.
 * Threads: an open corpus is immutable; several threads may read it. */

enum { SES_STARTS_WORD = 1, SES_STARTS_SENTENCE = 2, SES_STARTS_DOCUMENT = 4 };

/* A training passage before any corruption, without special tokens. */
typedef struct ses_passage {
    const int32_t *id;     /* [n] token ids */
    const uint8_t *starts; /* [n] SES_STARTS_* flags of each token */
    int64_t n;
    int64_t split;    /* first token of the second segment; n: one segment only */
    bool is_negative; /* the second segment does not follow the first: random (NSP) or swapped (SOP) */
    uint64_t number;  /* unique in the run; key of all random draws for this passage */
    int32_t corpus;   /* index in the mixture: selects the language or control code */
} ses_passage;

typedef struct ses_corpus ses_corpus;

/* The header of a corpus file. */
typedef struct ses_corpus_info {
    int64_t vocab_size; /* ids are below it */
    int64_t documents, sentences, tokens;
    int64_t unknown_tokens;            /* occurrences of the unknown token */
    int64_t bytes;                     /* bytes of input text */
    int64_t duplicates, empty;         /* documents skipped */
    int64_t invalid_lines;             /* lines with invalid UTF-8, which becomes U+FFFD */
    int64_t split_documents;           /* documents that continue a text that was too long for one */
    int64_t held_out, held_out_tokens; /* held-out documents and their tokens; included above */
    double held_out_fraction;          /* as requested */
    uint64_t tokenizer_fingerprint;    /* ses_tokenizer_fingerprint of the tokenizer */
    uint64_t content_hash;             /* hash of everything after the header: equal for equal corpora */
    char label[32];                    /* language or control code; "" */
} ses_corpus_info;

/* ---- reading ---- */

/* Opens a corpus file and checks its index. NULL on failure. Free with ses_corpus_free. */
ses_corpus *ses_corpus_open(const char *path, ses_err *e);
/* The same for a file in memory: n bytes, aligned to 8, borrowed until ses_corpus_free. */
ses_corpus *ses_corpus_from_memory(const void *data, size_t n, ses_err *e);
/* Closes a corpus. c may be NULL. */
void ses_corpus_free(ses_corpus *c);
/* The header; valid until ses_corpus_free. */
const ses_corpus_info *ses_corpus_info_of(const ses_corpus *c);
/* Reads all of the file; false if a byte has changed since it was written. */
bool ses_corpus_verify(const ses_corpus *c, ses_err *e);

/* A document: its sentences and tokens as ranges of the corpus. */
typedef struct ses_document {
    int64_t index;
    int64_t first_sentence, n_sentences, first_token, n_tokens;
    bool held_out;
} ses_document;

/* Document i; i must be below ses_corpus_info.documents. */
ses_document ses_corpus_document(const ses_corpus *c, int64_t i);

/* First token of sentence s of document d, relative to the document; d->n_tokens if s is d->n_sentences. */
int64_t ses_corpus_sentence_start(const ses_corpus *c, const ses_document *d, int64_t s);
/* The sentence that contains a token, both relative to the document. */
int64_t ses_corpus_sentence_of_token(const ses_corpus *c, const ses_document *d, int64_t token);

/* Copies tokens [first, first + n) of a document: ids to id[n], SES_STARTS_* flags to starts[n]. Either may
 * be NULL. */
void ses_corpus_read(const ses_corpus *c, const ses_document *d, int64_t first, int64_t n, int32_t *id,
                     uint8_t *starts);

/* ---- building ---- */

typedef enum { SES_CORPUS_AUTO /* by the file name */, SES_CORPUS_TEXT, SES_CORPUS_JSONL } ses_corpus_format;

/* Plain text: blank lines separate documents; each line is a sentence, or a paragraph if split_sentences.
 * JSON lines: each line is a document, one field of it is the text, whose lines are sentences. A document
 * longer than 16 MiB is split at a line end. */
typedef struct ses_corpus_options {
    const ses_tokenizer *tokenizer; /* borrowed during the build */
    int32_t unk_id;                 /* id of the unknown token, to count it; -1: none */
    const char *const *files;       /* "-": standard input; compressed files: see docs/DEPENDENCIES.md */
    size_t n_files;
    ses_corpus_format format;
    const char *field; /* field of JSON lines with the text; NULL: "text" */
    bool split_sentences, keep_duplicates;
    bool newline_tokens; /* sentences end in a line-end token, except the last of a document */
    double held_out_fraction;
    const char *label;
    bool restart, overwrite;
    int threads;         /* does not change the result; 0: 1 */
    int64_t chunk_bytes; /* text tokenized at once; does not change the result; 0: 8 MiB */
    /* Called regularly with the bytes read so far and in total; false stops the build. NULL: none. */
    bool (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
    ses_text_encoding encoding; /* the files have it; not for parts of files */
} ses_corpus_options;

/* Writes the corpus to `path`. Intermediate files are in the folder PATH.part. If that folder holds an
 * interrupted build of the same texts and options, the build resumes there, and *resumed is the number of
 * documents it already has. The resulting bytes are the same with and without interruptions. */
bool ses_corpus_build(const char *path, const ses_corpus_options *o, int64_t *resumed, ses_err *e);

/* A fingerprint of a tokenizer's behavior, independent of how its file is written: equal fingerprints mean
 * equal ids. Thread-safe. */
bool ses_tokenizer_fingerprint(const ses_tokenizer *t, uint64_t *print, ses_err *e);

/* ---- Passages ----
 *
 * Passages: the training sequences of an epoch, packed from documents of one or more corpora. Also called
 * rows.
 *
 * The rows of an epoch are a function of (options, epoch), independent of threads, resumption and the order
 * of calls. Documents are shuffled by (seed, epoch) and grouped into blocks of some million tokens; each
 * block is packed into rows, which are shuffled within the block.
 * Memory: four bytes per document, plus the row boundaries of one block.
 *
 * Ownership: corpora are borrowed until ses_passages_free.
 * Threads: a ses_passages belongs to one thread. */

/* The four input formats of RoBERTa, and GPT's blocks. */
typedef enum {
    SES_PACK_FULL_SENTENCES, /* as many full sentences as fit, across documents */
    SES_PACK_DOC_SENTENCES,  /* the same, but a row ends with its document */
    SES_PACK_SEGMENT_PAIR,   /* two segments of several sentences each (BERT) */
    SES_PACK_SENTENCE_PAIR,  /* two sentences */
    SES_PACK_BLOCKS          /* seq_len tokens, regardless of sentences (GPT) */
} ses_packing;

/* The second segment of a negative pair. */
typedef enum {
    SES_PAIRS_POSITIVE, /* no negative pairs */
    SES_PAIRS_RANDOM,   /* from another document (next sentence prediction) */
    SES_PAIRS_SWAPPED   /* the segment before the first (sentence order prediction) */
} ses_pairing;

/* A corpus of a mixture. Its fraction of an epoch's tokens is proportional to weight * (its tokens) ^
 * exponent. */
typedef struct ses_mixture_part {
    const ses_corpus *corpus;
    double weight;
} ses_mixture_part;

typedef struct ses_passages_options {
    const ses_mixture_part *parts; /* copied */
    size_t n_parts;
    double exponent; /* XLM's smoothing over languages; 1: proportional to size; 0: uniform */
    ses_packing packing;
    ses_pairing pairing;
    double negative_rate;     /* rate of negative pairs; BERT: 0.5 */
    double short_seq_prob;    /* probability of a shorter random target length for segment pairs; BERT: 0.1 */
    int64_t seq_len;          /* maximum tokens of a row, without special tokens */
    int64_t min_tokens;       /* rows with fewer tokens are skipped; 0 or 1: none */
    int64_t separator_tokens; /* tokens reserved at each document start inside a row */
    bool break_at_documents;  /* a row never spans documents */
    bool held_out;            /* use the held-out documents instead of the training ones */
    bool in_order;            /* do not shuffle */
    uint64_t seed;
    /* Epochs with different rows; later ones have the rows of epoch % copies, with the same numbers, in
     * another order. 0: all epochs differ. */
    int64_t copies;
} ses_passages_options;

typedef struct ses_passages ses_passages;

/* Prepares epoch 0. Fails if no document can be used. NULL on failure. Free with ses_passages_free. */
ses_passages *ses_passages_new(const ses_passages_options *o, ses_err *e);
/* Frees the passages, not the corpora. r may be NULL. */
void ses_passages_free(ses_passages *r);

/* Number of rows of an epoch, at least 1; -1 on failure. */
int64_t ses_passages_count(ses_passages *r, int64_t epoch, ses_err *e);
/* Number of rows of an epoch that are skipped because of min_tokens; -1 on failure. */
int64_t ses_passages_skipped(ses_passages *r, int64_t epoch, ses_err *e);
/* Number of tokens of an epoch's rows; -1 on failure. */
int64_t ses_passages_tokens(ses_passages *r, int64_t epoch, ses_err *e);

/* Reads row i of an epoch; i must be in range. The passage is valid until the next call. */
bool ses_passages_at(ses_passages *r, int64_t epoch, int64_t i, ses_passage *out, ses_err *e);
/* Number of tokens of row i, without reading them; -1 on failure. */
int64_t ses_passages_length(ses_passages *r, int64_t epoch, int64_t i, ses_err *e);

/* ---- Pretraining ---- */

/* ---- objectives ---- */

/* Weights that the generator of rtd shares with the model. */
typedef enum { SES_TIE_NONE, SES_TIE_EMBEDDINGS, SES_TIE_ALL /* the whole encoder */ } ses_generator_tying;

/* Settings of objectives; an objective ignores the settings of others. Negative values: the objective's
 * default. */
typedef struct ses_objective_options {
    double mask_rate, mask_rate_end; /* fraction of tokens to predict, at the start and the end of the run;
                                        mask_rate_end negative: constant */
    double keep_rate, random_rate;   /* fractions of the chosen tokens left unchanged, replaced by a random
                                        token; the others become the mask token */
    int mask_unit;                   /* masked together: 0 token, 1 word, 2 n-gram, 3 span */
    int64_t mask_copies;         /* static masking: N variants of each text (BERT: 10); 0: dynamic masking */
    double span_length;          /* mean length of a span */
    int64_t max_span;            /* maximum words of a span or n-gram */
    const char *noise;           /* bart: of mask, delete, infill, permute, rotate; NULL: "infill,permute" */
    int64_t pieces;              /* xl, plm: pieces of a text, each attending to the ones before; < 1: 2 */
                                 /* bptt: windows of a text, each continuing the state of the one before */
    bool vary_window;            /* bptt: windows of random lengths, as AWD-LSTM */
    double replaced_weight;      /* rtd: weight of the discriminator's loss */
    double sampling_temperature; /* rtd: temperature of the generator's samples */
    int generator_tying;         /* rtd: a ses_generator_tying; negative: the embeddings, or none if frozen */
    bool freeze_generator;       /* rtd: the generator is not trained */
    /* Names of mask_unit with weights, "token:0.5,span:0.5": each batch draws its unit, with mask_copies each
     * text; NULL: mask_unit. */
    const char *mask_units;
    /* rtd: widths of a generator without a config, as a fraction of the model's; negative: 0.25, or 1 if all
     * weights are tied */
    double generator_size;
} ses_objective_options;

/* Lists the objectives: the name of the i-th, NULL past the last. description, is_auxiliary may be NULL. An
 * auxiliary objective (nsp, sop, sbo) adds labels to the sequences of another. The strings are static. */
const char *ses_objective_name(size_t i, const char **description, bool *is_auxiliary);

/* ---- settings ---- */

typedef struct ses_pretrain_options {
    /* Text. */
    const char *const *corpora; /* [n_corpora] token files, "PATH" or "PATH:WEIGHT" */
    size_t n_corpora;
    double exponent;         /* corpus i gets a fraction proportional to weight * tokens ^ exponent (XLM) */
    const char *eval_corpus; /* NULL: the held-out documents of the corpora, if any */
    int64_t eval_tokens;     /* tokens per evaluation; 0: 100,000 */
    const char *tokenizer;   /* folder or file, the one the corpora were built with; NULL: the model's */
    int packing;             /* a ses_packing; negative: chosen by the objectives */
    bool break_at_documents; /* a sequence never contains two documents */

    /* Model: exactly one of the first three. */
    const char *preset;     /* random weights: a published size, see ses_pretrain_preset_name */
    const char *config;     /* random weights: a config.json */
    const char *model;      /* continue with a pretrained model: folder or name, see ses_model_resolve */
    const char *const *set; /* [n_set] "KEY=VALUE": changes to preset or config, "hidden_size=128" */
    size_t n_set;
    /* rtd: preset or config.json of the generator, or a model folder to start from; NULL: the model's config
     * with objective.generator_size */
    const char *generator;

    /* Objectives: primary ones alternate by weight, auxiliary ones add their weighted loss. */
    const char *objectives; /* "mlm", "mlm:1,nsp:0.5"; NULL: "mlm" */
    ses_objective_options objective;
    ses_teacher_options teacher; /* distillation */

    /* Curriculum. */
    /* Maximum sequence length "128", or stages "128:0.9,512:0.1" with fractions of the run; the last stage
     * may omit its fraction. NULL: "128". */
    const char *lengths;
    double batch_ramp;  /* fraction of the run with batch-size warmup; 0: none */
    double ramp_from;   /* fraction of the batch size at its start */
    double max_seconds; /* time budget instead of epochs or steps: a few updates are timed first; 0: none */

    double beta2;     /* Adam's beta2; 0: the optimizer's default */
    double ema_decay; /* save an exponential moving average of the weights; 0: the last weights */
    ses_training_options run;

    /* For run.json: a command line, and its options as a JSON object; or NULL. */
    const char *command, *command_options;
    ses_training_fn *on_event; /* progress and cancellation; NULL: none */
    /* Adds files to the folder of the final model before it is published; NULL: none. */
    bool (*add_files)(void *ctx, const char *dir, ses_err *e);
    void *ctx; /* argument of both callbacks */
} ses_pretrain_options;

/* Masked language modeling, one epoch, sequences of 128 tokens, batches of 32, AdamW with learning rate
 * 5e-4, 6 % warmup and linear decay, seed 42. corpora, tokenizer, a model and run.output are left to set. */
ses_pretrain_options ses_pretrain_defaults(void);

/* The same settings by name: the options of `sesame pretrain`, "lr" or "mask_rate", with their defaults. */
typedef struct ses_pretrain_settings ses_pretrain_settings;
/* Parses and checks settings, whose strings are borrowed until ses_pretrain_settings_free. NULL on failure:
 * an unknown name, a value out of range (SES_EUSAGE). */
ses_pretrain_settings *ses_pretrain_settings_new(const ses_setting *settings, ses_err *e);
void ses_pretrain_settings_free(ses_pretrain_settings *s); /* s may be NULL */
/* The settings as options, which borrow from s. Fails if max_time is not a duration. */
bool ses_pretrain_settings_options(const ses_pretrain_settings *s, ses_pretrain_options *o, ses_err *e);

/* Lists the presets: the name of the i-th, NULL past the last. A static string. */
const char *ses_pretrain_preset_name(size_t i);

/* ---- a run ---- */

typedef struct ses_pretrain ses_pretrain;

/* Opens tokenizer, corpora, models and teacher, and checks the options. Writes nothing. The options are
 * copied, the strings borrowed. Fails with SES_EIO if run.output is not empty (see run.resume,
 * run.overwrite), with SES_EARG if a corpus was built with another tokenizer or the model does not fit an
 * objective. */
ses_pretrain *ses_pretrain_new(const ses_pretrain_options *o, ses_device *dev, ses_err *e);
void ses_pretrain_free(ses_pretrain *p); /* p may be NULL */

/* Trains, evaluates and writes the output folder, once per object. end may be NULL. If the callback stops
 * the run (SES_RUN_STOPPED), a checkpoint is saved but no model is written: a new run with run.resume
 * continues. SES_RUN_WAS_COMPLETE: run.resume found a complete run; nothing is trained or written, its final
 * weights are loaded and evaluated again, the last checkpoint supplies time and energy. Fails with SES_EIO
 * if another run uses the folder. On failure the checkpoints stay. A failure
 * to write logs does not fail the run; it is reported by a notice. */
bool ses_pretrain_run(ses_pretrain *p, ses_run_end *end, ses_err *e);

enum { SES_MAX_BASELINES = 8 };

/* Statistics of a run. */
typedef struct ses_pretrain_result {
    int64_t pass_tokens; /* tokens of one pass over the texts; 0 before training starts */
    /* Unigram baselines, known when training starts: the loss NAME_loss of predicting labels by frequency. */
    struct {
        const char *name;
        double loss; /* NaN: not defined */
    } baseline[SES_MAX_BASELINES];
    size_t n_baselines;
    double eval_loss;         /* last evaluation; NaN: none */
    const ses_scores *scores; /* last evaluation: losses, accuracies, perplexities; may be empty */
    ses_training_stats stats; /* after training */
} ses_pretrain_result;

/* Valid until the next call on p; complete after ses_pretrain_run. */
const ses_pretrain_result *ses_pretrain_result_of(ses_pretrain *p);

/* Borrowed. The trainer exists from SES_TRAINING_STARTED on, before it is NULL. The generator is NULL
 * unless an objective needs one. */
ses_model *ses_pretrain_model(const ses_pretrain *p);
ses_model *ses_pretrain_generator(const ses_pretrain *p);
const ses_trainer *ses_pretrain_trainer(const ses_pretrain *p);

/* Puts the members of all_results.json: epoch, train_loss, train_runtime, ..., eval_loss,
 * eval_mlm_accuracy, ... Call it after training. w has an open object. */
void ses_pretrain_put_results(const ses_pretrain *p, ses_json_writer *w);

SES_END_DECLS

#endif
