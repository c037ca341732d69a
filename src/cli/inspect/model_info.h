/* `sesame info`: reads the facts about a model folder and prints them.
 * Ownership: ses_model_info_free frees everything but `path`. One thread per ses_model_info. */
#ifndef SES_CLI_MODEL_INFO_H
#define SES_CLI_MODEL_INFO_H

#include "cli/command.h"
#include "sesame/model.h"
#include "sesame/safetensors.h"
#include "sesame/sentence.h"
#include "tensor_stats.h"
#include "text/tokenizer_files.h"

typedef struct ses_model_info_part {
    const char *name;
    int64_t elements;
} ses_model_info_part;

typedef struct ses_model_info_file {
    const char *name;
    uint64_t bytes;
} ses_model_info_file;

/* Bytes. Mapped pages are shared between processes and can be evicted; the others belong to the process. */
typedef struct ses_model_info_memory {
    uint64_t mapped;
    uint64_t copied;      /* weights converted to f32 */
    uint64_t packed;      /* packed weights, made on first use */
    uint64_t activations; /* estimate, see ses_model_info_activations */
    uint64_t training;    /* weights, gradients and both AdamW moments in f32, without activations */
} ses_model_info_memory;

enum { SES_MODEL_INFO_PARTS = 10 };

typedef struct ses_model_info {
    const char *path;
    ses_sentence *sentence; /* NULL: not a sentence encoder; then dir is path */
    const char *dir;        /* folder of the model */
    char *base;             /* base model of an adapter; else NULL */
    ses_safetensors *weights;
    ses_tensor_stats *stats; /* one per tensor */
    ses_device *dev;
    ses_model *model; /* NULL: only the tensors are known; `problem` is the reason */
    ses_err problem;
    ses_model_info_part part[SES_MODEL_INFO_PARTS];
    size_t n_parts;
    int64_t parameters; /* the sum of the parts */
    ses_model_info_file *file;
    size_t n_files;
    int64_t elements[SES_DTYPE_COUNT]; /* elements in the files, by dtype */
    const char *tokenizer[SES_TOKENIZER_FILES];
    size_t n_tokenizer;
    int64_t tokenizer_size;    /* vocabulary size; 0: none, or unreadable */
    ses_err tokenizer_problem; /* reason */
    int64_t tokens;            /* sequence length of the memory estimate */
    ses_model_info_memory memory;
} ses_model_info;

/* lenient: succeed with the tensors alone if the model cannot be opened. tokens 0: 512, or the maximum
 * length of the model if shorter. strict: as in ses_model_options. Zero-initialize first; call
 * ses_model_info_free also on failure. */
bool ses_model_info_read(ses_model_info *i, const char *path, int64_t tokens, bool lenient, bool strict,
                         ses_err *e);
void ses_model_info_free(ses_model_info *i);

/* Upper bound of the activation memory of inference, in bytes. */
uint64_t ses_model_info_activations(const ses_model *m, int64_t tokens);

bool ses_model_info_show(const ses_model_info *i, const ses_term *t, ses_err *e);
bool ses_model_info_show_tensors(const ses_model_info *i, const ses_term *t, ses_err *e);
bool ses_model_info_print_json(const ses_model_info *i, bool tensors, ses_err *e);

/* model_info_forms.c: lines and members of removed heads, widths by layer, exits and factorized weights. */
bool ses_model_info_show_forms(const ses_model_info *i, const ses_term *t, ses_err *e);
void ses_model_info_put_forms(const ses_model *m, ses_json_writer *w);

#endif
