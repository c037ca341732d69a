/* Functions shared by convert and quantize.
 * Ownership: all arguments are borrowed. Main thread only. */
#ifndef SES_CLI_CONVERT_MODEL_H
#define SES_CLI_CONVERT_MODEL_H

#include "cli/command.h"
#include "sesame/model.h"
#include "sesame/sentence.h"

/* Scores before and after quantization. */
typedef struct ses_quantize_scores {
    const char *metric; /* NULL: not measured */
    double original, quantized, drop;
} ses_quantize_scores;

typedef struct ses_convert_options {
    ses_dtype dtype, embedding_dtype; /* embedding_dtype: for I8 only */
    bool overwrite, json;
    int threads;                /* 0: one per core */
    ses_quantize_scores scores; /* for the JSON summary */
    double sparse;              /* share of the blocks of four inputs that become zero; 0: none */
    /* NULL, or called before the output gets its name, with its folder: fills the scores, or fails, so that
     * nothing is written if the output is a new folder */
    bool (*check)(void *ctx, const char *dir, ses_quantize_scores *scores, ses_err *e);
    void *ctx;
} ses_convert_options;

/* The output folder. An existing folder is written in place. A new one is written as `dir`, beside its final
 * name, and renamed by _close; if the command fails, _close removes `dir` and nothing else. */
typedef struct ses_convert_output {
    const char *to, *dir;
    char *stage; /* NULL: written in place */
    size_t name_len;
} ses_convert_output;

bool ses_convert_output_open(ses_convert_output *o, const char *to, ses_err *e);
/* ok: whether the command succeeded so far. Returns whether it succeeded. */
bool ses_convert_output_close(ses_convert_output *o, bool ok, ses_err *e);

typedef struct ses_convert_open_options {
    ses_device *dev;
    const char *base, *class_name; /* see ses_model_options */
    bool strict;
} ses_convert_open_options;

/* A model with the values of its weights. */
typedef struct ses_convert_source {
    const char *dir;
    ses_model *model;
    ses_sentence *sentence; /* NULL: not a sentence encoder */
} ses_convert_source;

/* Opens the model in folder s->dir (convert_average.c). Call _close also on failure. */
bool ses_convert_open(ses_convert_source *s, const ses_convert_open_options *o, ses_err *e);
void ses_convert_close(ses_convert_source *s);

/* The folder of the tokenizer files: of the model, or of the base model of an adapter; `base` as above. Free
 * the result with ses_free. */
char *ses_convert_tokenizer_dir(const ses_convert_source *s, const char *base, ses_err *e);

/* Replaces the weights of s by the mean over s and the models `more`, by folder or name. Fails if the models
 * are not of one architecture, or have different tokenizers or modules with weights. *same_dtype: the weights
 * of all models have the type of s. */
bool ses_convert_average(ses_convert_source *s, const ses_convert_open_options *o, const ses_opt_list *more,
                         bool *same_dtype, ses_err *e);

/* Converts the model in operands[0] to folder operands[1] and prints a summary. */
bool ses_convert_model(ses_call *c, const ses_convert_options *o, ses_err *e);

/* Copies a file, if it exists, from one folder to another and appends its name to `copied`. */
bool ses_convert_copy(const char *from, const char *to, const char *name, bool overwrite, ses_buf *copied,
                      ses_err *e);
/* Converts the adapter in folder `from` (convert_adapter.c). */
bool ses_convert_adapter(const ses_call *c, const char *from, const char *to, ses_dtype dtype, bool overwrite,
                         bool json, ses_err *e);

#endif
