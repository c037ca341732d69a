/* What `sesame info` finds out about a folder, and how it shows it. */
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
    int64_t numbers;
} ses_model_info_part;

typedef struct ses_model_info_file {
    const char *name;
    uint64_t bytes;
} ses_model_info_file;

/* Bytes. `mapped` is the files', shared by all who run the model and given up when memory is short; the
 * others are each process's own. */
typedef struct ses_model_info_memory {
    uint64_t mapped;
    uint64_t copied;      /* weights that had to be converted to f32 */
    uint64_t packed;      /* weights in the order gemm reads, made when first used */
    uint64_t activations; /* an estimate, see ses_model_info_activations */
    uint64_t training;    /* weights, gradients and AdamW's two moments, all f32; activations come on top */
} ses_model_info_memory;

enum { SES_MODEL_INFO_PARTS = 8 };

typedef struct ses_model_info {
    const char *path;
    ses_sentence *sentence; /* NULL: the folder is no sentence encoder's, and dir is path */
    const char *dir;        /* where the model lies */
    char *base;             /* of an adapter: its model's folder; else NULL */
    ses_safetensors *weights;
    ses_tensor_stats *stats; /* one a tensor */
    ses_device *dev;
    ses_model *model; /* NULL: nothing but the tensors is known, and `problem` says why */
    ses_err problem;
    ses_model_info_part part[SES_MODEL_INFO_PARTS];
    size_t n_parts;
    ses_model_info_file *file;
    size_t n_files;
    int64_t numbers[SES_DTYPE_COUNT]; /* in the files, by dtype */
    const char *tokenizer[SES_TOKENIZER_FILES];
    size_t n_tokenizer;
    int64_t tokenizer_size;    /* tokens it knows; 0: there is none, or it cannot be read */
    ses_err tokenizer_problem; /* why not */
    int64_t tokens;            /* memory is counted for one sequence of so many */
    ses_model_info_memory memory;
} ses_model_info;

/* `lenient`: when the model cannot be opened but its tensors can be read, that is all there is. `tokens` 0:
 * 512, or the model's longest sequence if that is shorter. `strict`: as in ses_model_options. Zero-initialize
 * first; ses_model_info_free after failure too. */
bool ses_model_info_read(ses_model_info *i, const char *path, int64_t tokens, bool lenient, bool strict,
                         ses_err *e);
void ses_model_info_free(ses_model_info *i);

/* Bytes of activations that inference needs at most, for so many tokens. */
uint64_t ses_model_info_activations(const ses_model *m, int64_t tokens);

bool ses_model_info_show(const ses_model_info *i, const ses_term *t, ses_err *e);
bool ses_model_info_show_tensors(const ses_model_info *i, const ses_term *t, ses_err *e);
bool ses_model_info_print_json(const ses_model_info *i, bool tensors, ses_err *e);

#endif
