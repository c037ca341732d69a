/* A model: a Hugging Face folder (config.json and safetensors), open.
 * An open model is read-only unless opened for training, and may be used from several threads, each with a
 * tape of its own. */
#ifndef SESAME_MODEL_H
#define SESAME_MODEL_H

#include "sesame/batch.h"
#include "sesame/json.h"
#include "sesame/store.h"
#include "sesame/tape.h"

SES_BEGIN_DECLS

typedef struct ses_model ses_model;

/* A new low-rank adapter (LoRA, Hu et al. 2021) to be trained while the model stays as it is. */
typedef struct ses_lora {
    int64_t rank;
    double alpha, dropout; /* what it adds is scaled by alpha / rank */
    const char *targets;   /* dense layers with commas between: the reference's modules ("query", "c_attn") or
                            Sesame's ("attn.query", "ffn.up"), by the end of their names; "all" */
} ses_lora;

typedef struct ses_model_options {
    const char *class_name; /* "BertForMaskedLM"; NULL: what config.json says */
    bool no_head;           /* hidden states only: no head, no pooler, no decoder behind an encoder */
    bool train;             /* values copied and gradients made; else the file is mapped */
    bool random_init;       /* no weights are read: begin at random */
    bool check_only;        /* shapes are checked, no number is read: tensors have no data */
    bool no_packing;        /* no second copy of the weights in the order kernels read: half the memory */
    bool strict;            /* a tensor of the checkpoint that is not used is an error */
    uint64_t seed;          /* of random */
    const ses_json *config; /* in place of the folder's config.json; outlives the model */
    bool new_heads;         /* what a head has and the file has not, or in another shape, begins at random */
    const ses_lora *lora;   /* of train: only an adapter and the head are trained; needed while opening */
    const char *base;       /* of a folder with an adapter: the model it belongs to, in place of the one it
                               names */
} ses_model_options;

/* A folder with an adapter (adapter_config.json, adapter_model.safetensors, as the peft library writes them)
 * opens as the model it names with the adapter merged into its weights. dev outlives the model; options may
 * be NULL. */
ses_model *ses_model_open(const char *dir, ses_device *dev, const ses_model_options *options, ses_err *e);

/* A model of this config.json, which outlives it, with random weights. */
ses_model *ses_model_new(const ses_json *config, ses_device *dev, const ses_model_options *options,
                         ses_err *e);
void ses_model_free(ses_model *m);

/* How ses_model_save writes. */
typedef struct ses_save_options {
    /* Of the weights in the file: SES_F32, SES_F16, SES_BF16, or SES_I8: dense ones in 8 bits with a scale
     * an output beside ("NAME_scale"), heads and tables in 16, the rest in 32. */
    ses_dtype dtype;
    ses_dtype tables;   /* with SES_I8, of embeddings: SES_I8 with a scale a row, else they are in 16 */
    size_t shard_bytes; /* 0: one file */
    bool overwrite;     /* else an existing file is an error */
} ses_save_options;

/* Config and weights into a folder (made if absent), each file whole or not at all. A model with a new
 * adapter is saved as that: adapter_config.json, adapter_model.safetensors. options may be NULL: one file,
 * as F32. */
bool ses_model_save(const ses_model *m, const char *dir, const ses_save_options *options, ses_err *e);

/* The weights that ses_model_save wrote to dir, open; the caller frees them. */
struct ses_safetensors *ses_model_open_saved(const ses_model *m, const char *dir, ses_err *e);
/* The name of parameter i of the store in them; false: they do not hold it. */
bool ses_model_saved_name(const ses_model *m, size_t i, char *buf, size_t n);

/* The config of a folder: its config.json, or that of the model its adapter belongs to (base: in place of the
 * one it names) made for the adapter's task. */
ses_json_doc *ses_model_config_open(const char *dir, const char *base, ses_err *e);
/* The folder of the model an adapter's folder belongs to, to be freed with free(); that folder where it
 * has no adapter. */
char *ses_model_base_dir(const char *dir, const char *base, ses_err *e);
bool ses_model_is_adapter(const char *dir);
/* How the folder `dir` of an adapter names its model: "../NAME" where they lie side by side, so that both can
 * be moved together, else the whole path. To be freed with free(); NULL: the model is not there. */
char *ses_adapter_base_name(const char *base, const char *dir);

/* A config with settings changed, in the keys of its model type. Start from SES_CONFIG_PATCH_NONE. */
typedef struct ses_config_patch {
    double dropout, attention_dropout, head_dropout; /* dropout rates; below 0: as they are */
    const char *head;                                /* "linear", "mlp", "lstm", "gru"; NULL: as it is */
    int64_t sizes[4];                                /* of its hidden layers */
    size_t n_sizes;
    bool scalar_mix; /* a learned mix of all layers in place of the last */
} ses_config_patch;
#define SES_CONFIG_PATCH_NONE                                      \
    {                                                              \
        .dropout = -1, .attention_dropout = -1, .head_dropout = -1 \
    }
ses_json_doc *ses_model_config_patch(const ses_json *config, const ses_config_patch *c, ses_err *e);

/* What a forward pass gives: tensors on the tape. */
typedef enum {
    SES_PER_TOKEN,            /* [tokens, ...] */
    SES_PER_SEQUENCE,         /* [seqs, ...] (or [questions, choices]) */
    SES_PER_QUERY_KEY,        /* attention: sequence after sequence [heads, queries, keys] */
    SES_PER_TARGET,           /* [tokens of the decoder, ...] */
    SES_PER_TARGET_QUERY_KEY, /* the decoder's attention to itself */
    SES_PER_CROSS_QUERY_KEY,  /* its attention to the encoder */
    SES_PER_MEMORY,           /* rows of what a batch's mems may be next: sequence after sequence */
    SES_PER_ROW               /* [n_rows, ...]: the rows that were asked for */
} ses_axis;

typedef struct ses_output {
    char name[32]; /* the reference's: "logits", "hidden_states.3", ... */
    ses_tensor *tensor;
    ses_axis axis;
    int64_t col, cols; /* the columns that are this output; cols 0: all */
} ses_output;

typedef struct ses_head_output {
    const char *name, *output; /* of the head, of its scores among the items */
    ses_tensor *loss;          /* its part of the loss; NULL without labels */
} ses_head_output;

enum { SES_MAX_OUTPUT_HEADS = 2 };
typedef struct ses_outputs {
    ses_tensor *loss; /* NULL without labels */
    const ses_output *item;
    size_t n;
    ses_head_output head[SES_MAX_OUTPUT_HEADS];
    size_t heads;
    const int32_t
        *mem_cu_seqlens; /* of the outputs "mems.N", as a next batch wants it; NULL: there are none */
} ses_outputs;

typedef struct ses_output_request {
    bool logits; /* what the heads say, for every token or sequence (else only the loss) */
    bool hidden_states, attentions;
    bool attention_scores; /* before softmax and any bias, of self-attention */
    bool mems;             /* what a next batch remembers, of models that can */
    /* Scores of a vocabulary, or the last hidden state of a class without heads, for these rows alone:
     * tokens of the batch, or of the decoder where that is what the head looks at. NULL: for all. */
    const int32_t *rows;
    int64_t n_rows;
} ses_output_request;

/* Run the model. The batch is checked against the model first: ids, lengths, labels. */
bool ses_model_forward(const ses_model *m, ses_tape *t, const ses_batch *b, const ses_output_request *want,
                       ses_outputs *out, ses_err *e);

ses_store *ses_model_store(const ses_model *m);
const char *ses_model_type(const ses_model *m);       /* "bert" */
const char *ses_model_class_name(const ses_model *m); /* "BertForMaskedLM" */
const char *ses_model_head_name(const ses_model *m);  /* its first head: "masked-lm"; NULL: none */
const ses_json *ses_model_config(const ses_model *m);
int64_t ses_model_max_tokens(const ses_model *m); /* longest sequence */
int64_t ses_model_vocab_size(const ses_model *m);
int64_t ses_model_layer_count(const ses_model *m); /* of the encoder, or the only stack */
int64_t ses_model_label_count(const ses_model *m);
const char *ses_model_label_name(const ses_model *m, int64_t i); /* NULL when it has no name */
ses_dtype ses_model_dtype(const ses_model *m);                   /* of the weights in the file */

/* The reference's name of parameter i of the store; buf of size n is filled. */
bool ses_model_tensor_name(const ses_model *m, size_t i, char *buf, size_t n);

/* The parameter the reference calls so (a tied one by either of its names); -1: none. */
int64_t ses_model_find_tensor(const ses_model *m, const char *theirs);

/* Parameters that began at random because the file has none such, joined by commas: see new_heads. */
const char *ses_model_missing_keys(const ses_model *m);

/* The class of this config's model_type that has this head: "classify", "tag", "span", ... NULL: none. Or
 * that has all of these and no other. */
const char *ses_model_class_for_head(const ses_json *config, const char *head, ses_err *e);
const char *ses_model_class_for_heads(const ses_json *config, const char *const head[], size_t n, ses_err *e);

/* Was this parameter read from the checkpoint (and not computed)? */
bool ses_model_param_in_file(const ses_model *m, const ses_param *p);

/* Tensors of the checkpoint that the model does not use, joined by commas; "" when there is none. */
const char *ses_model_unexpected_keys(const ses_model *m);

/* False and the tensor's name when a weight is NaN or infinite. Reads every weight. */
bool ses_model_check_finite(const ses_model *m, ses_err *e);

SES_END_DECLS

#endif
