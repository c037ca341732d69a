/* Trainers of word vectors: fast, and with the same bits for any number of threads. A trainer is a
 * ses_vector_trainer and one line in vector_trainers.def. The programs that vectors/exact reproduces are
 * slower and keep their quirks.
 *
 * Ownership: a job borrows everything; trainers free what they allocate before they return. */
#ifndef SES_VECTORS_VECTOR_TRAINER_H
#define SES_VECTORS_VECTOR_TRAINER_H

#include "sesame/base.h"
#include "vectors/word_corpus.h"

typedef enum { SES_VECTOR_REAL, SES_VECTOR_INTEGER, SES_VECTOR_CHOICE } ses_vector_type;

typedef struct ses_vector_setting {
    const char *name, *def; /* option without hyphens; its default as typed */
    ses_vector_type type;
    double low, high;    /* inclusive range of a number */
    const char *choices; /* "a|b": the value is the index */
    const char *idle;    /* "loss=hs": no effect if that setting has this value; NULL: always of use */
} ses_vector_setting;

typedef struct ses_vector_report {
    const char *phase;    /* "reading", "training" */
    int64_t words, total; /* words done, of all passes; total 0: unknown */
    double rate, loss;    /* learning rate; mean loss per pair since the last report */
    int pass, passes;
} ses_vector_report;

/* Reports progress; false: stop. */
typedef bool ses_vector_progress(void *ctx, const ses_vector_report *r);

enum { SES_VECTOR_MAX_SETTINGS = 24 };

typedef struct ses_vector_trainer ses_vector_trainer;

typedef struct ses_vector_job {
    const ses_vector_trainer *trainer;
    const char *const *corpus; /* paths */
    size_t n_corpus;
    ses_text_encoding encoding; /* the corpus has it */
    const char *output;
    const char *format; /* a format of ses_vectors_save; NULL: the default of the trainer */
    bool overwrite;
    int threads;
    ses_device *device; /* trains there; NULL: on the threads. Only if the trainer is on_device */
    double value[SES_VECTOR_MAX_SETTINGS];     /* in the order of the trainer's list */
    const char *text[SES_VECTOR_MAX_SETTINGS]; /* the same as text */
    /* A checkpoint, OUTPUT.checkpoint, is written if this many seconds have passed since the last (0: never),
     * and when progress stops the run; it is removed once the output is complete. */
    double checkpoint_every;
    bool resume;                   /* continue from the checkpoint */
    ses_vector_progress *progress; /* NULL: none */
    void *ctx;

    int64_t words, tokens; /* results: vocabulary size, words of the text that are in it */
    double loss;           /* mean loss per pair of the last pass */
    ses_words_skipped skipped;
    bool stopped; /* progress stopped the run; the checkpoint has its state */
} ses_vector_job;

struct ses_vector_trainer {
    const char *name, *summary;
    const ses_vector_setting *setting;
    size_t n_settings;
    bool (*run)(ses_vector_job *job, ses_err *e);
    bool on_device; /* can train on a GPU */
};

#define SES_VECTOR_TRAINER(name) extern const ses_vector_trainer ses_vector_trainer_##name;
#include "vector_trainers.def"
#undef SES_VECTOR_TRAINER

const ses_vector_trainer *ses_vector_trainer_find(const char *name, ses_err *e);
/* Fills job->trainer, text and value from names and values as typed (NULL: not given); the others get their
 * defaults. Fails for a setting that the trainer does not have, for one that has no effect beside the others,
 * and for a value out of range. */
bool ses_vector_job_set(ses_vector_job *job, const ses_vector_trainer *t, const char *const *name,
                        const char *const *value, size_t n, ses_err *e);
/* Level of the kernels, on which the bits depend: of the CPU, or "cuda". */
const char *ses_vector_job_level(const ses_vector_job *job);
/* Path of the checkpoint. Free with ses_free. */
char *ses_vector_checkpoint_path(const ses_vector_job *job, ses_err *e);

#endif
