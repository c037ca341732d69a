/* What a model type is: tables. One file src/model/NAME.c and a line in models.def. */
#ifndef SES_MODEL_DESC_H
#define SES_MODEL_DESC_H

#include "nn/nn.h"
#include "sesame/json.h"
#include "sesame/safetensors.h"

/* A key of config.json: where it goes, what it may be. Several keys may fill one field: old and new
 * spellings. */
typedef enum { SES_KEY_TYPE_INT, SES_KEY_TYPE_REAL, SES_KEY_TYPE_BOOL, SES_KEY_TYPE_ACT } ses_key_type;

typedef struct ses_config_key {
    const char *key;
    ses_key_type type;
    size_t offset; /* in ses_config */
    double min, max;
    bool required; /* else what the model's arch says stays */
} ses_config_key;

#define SES_KEY_INTEGER(key, field, min, max)                               \
    {                                                                       \
        key, SES_KEY_TYPE_INT, offsetof(ses_config, field), min, max, false \
    }
#define SES_KEY_REQUIRED(key, field, max)                                \
    {                                                                    \
        key, SES_KEY_TYPE_INT, offsetof(ses_config, field), 1, max, true \
    }
#define SES_KEY_RATE(key, field)                                             \
    {                                                                        \
        key, SES_KEY_TYPE_REAL, offsetof(ses_config, field), 0, 0.999, false \
    }
#define SES_KEY_NUMBER(key, field, min, max)                                 \
    {                                                                        \
        key, SES_KEY_TYPE_REAL, offsetof(ses_config, field), min, max, false \
    }
#define SES_KEY_FLAG(key, field)                                         \
    {                                                                    \
        key, SES_KEY_TYPE_BOOL, offsetof(ses_config, field), 0, 1, false \
    }
#define SES_KEY_ACTIVATION(key, field)                                  \
    {                                                                   \
        key, SES_KEY_TYPE_ACT, offsetof(ses_config, field), 0, 0, false \
    }

/* Sizes no model of this kind comes near; a config beyond them is a mistake or an attack. */
enum { SES_MAX_VOCAB = 1 << 24, SES_MAX_WIDTH = 1 << 16, SES_MAX_FFN = 1 << 20, SES_MAX_POSITIONS = 1 << 20 };

/* Ours, theirs. # stands for a layer's number (or its group's), @ for its number in the group, * for the
 * rest of the name. A leading / marks a head's tensor, which has no prefix. Several rows for one of ours: the
 * first is its name, a file may have any. A leading ~ marks a row for models that tie no weights. */
typedef struct ses_tensor_name {
    const char *name, *hf_name;
} ses_tensor_name;

/* A class of the reference library: which heads stand on the model. */
typedef struct ses_class {
    const char *name;
    bool pooler;
    ses_head_use head[SES_MAX_OUTPUT_HEADS];
    bool encoder_only, decoder_only; /* of an encoder and decoder, one alone */
    bool
        decoder_input_from_source; /* the decoder reads the input once more, where it is given nothing else */
    ses_summary summary;           /* in place of the config's; 0: as the config says */
    bool uses_sequence_summary_act; /* the summary's activation is the config's told_act */
    const char *prefix;             /* in place of the model's; NULL: as the model's */
} ses_class;

#define SES_USE_HEAD(head_, output_)                                                               \
    {                                                                                              \
        .head = &ses_head_##head_, .output = output_, .labels_offset = offsetof(ses_batch, labels) \
    }
#define SES_USE_PAIR_HEAD(head_, output_)                                                               \
    {                                                                                                   \
        .head = &ses_head_##head_, .output = output_, .labels_offset = offsetof(ses_batch, pair_labels) \
    }
#define SES_CLASS(class, ...)                  \
    {                                          \
        .name = class, .head = { __VA_ARGS__ } \
    }
#define SES_POOLED_CLASS(class, ...)                           \
    {                                                          \
        .name = class, .pooler = true, .head = { __VA_ARGS__ } \
    }

/* A table and its length; desc lists end with an empty one. */
typedef struct ses_key_table {
    const ses_config_key *key;
    size_t n;
} ses_key_table;

typedef struct ses_name_table {
    const ses_tensor_name *name;
    size_t n;
} ses_name_table;

#define SES_TABLE(a)  \
    {                 \
        a, SES_LEN(a) \
    }

typedef struct ses_model_desc {
    const char *name;    /* config.json's model_type */
    const char *prefix;  /* of the base model's tensors in a model with a head; files may lack it */
    ses_config defaults; /* how this model differs from others, and what absent keys mean */
    const ses_stack_vtable *vtable; /* what it does in a way of its own; NULL: nothing */
    bool encoder_decoder;           /* an encoder and a decoder */
    int sentinels; /* tokens of its own that mark what was left out of a text, where it has such */
    bool tokenizer_sets_segments; /* the reference's tokenizer for it says which segment each token is of */
    ses_key_table keys[2];
    bool (*post_read)(ses_config *c, const ses_json *config,
                      ses_err *e); /* what a table cannot say; or NULL */
    ses_name_table tensors[4];     /* asked in this order, config.first_names before all */
    const ses_class *class;        /* the first is the base model */
    size_t n_classes;
} ses_model_desc;

#define SES_MODEL(name) extern const ses_model_desc ses_model_##name;
#include "models.def"
#undef SES_MODEL

const ses_model_desc *const *ses_models(void); /* all of them, NULL at the end */
/* Do the transformers tokenizers of this class ("DebertaV2TokenizerFast") give the model segment ids?
 * tokenizer_class NULL: the class that belongs to model_type. */
bool ses_model_sets_segments(const char *tokenizer_class, const char *model_type);

/* Shared tables: BERT's config keys and encoder names, BART's. */
enum { SES_BERT_KEYS = 15, SES_BERT_TENSORS = 13 };
extern const ses_config_key ses_bert_keys[SES_BERT_KEYS];
extern const ses_tensor_name ses_bert_tensors[SES_BERT_TENSORS];
enum { SES_BERT_HEADS = 12, SES_ROBERTA_HEADS = 11 }; /* names of what stands on them */
extern const ses_tensor_name ses_bert_heads[SES_BERT_HEADS], ses_roberta_heads[SES_ROBERTA_HEADS];
enum { SES_BART_KEYS = 21, SES_BART_TENSORS = 42 };
extern const ses_config_key ses_bart_keys[SES_BART_KEYS];
extern const ses_tensor_name ses_bart_tensors[SES_BART_TENSORS];
bool ses_bert_post_read(ses_config *c, const ses_json *config, ses_err *e);

typedef struct ses_adapter ses_adapter;

struct ses_model {
    const ses_model_desc *desc;
    const ses_class *class;
    ses_device *dev;
    ses_json_doc *doc; /* owns config when the model was opened from a folder */
    const ses_json *config;
    ses_config c;
    ses_store *store;
    ses_stack stack[2]; /* encoder and decoder, or the only one */
    ses_dense pooler;
    ses_scalar_mix scalar_mix;
    ses_head_params head[SES_MAX_OUTPUT_HEADS];
    ses_safetensors *file; /* mapped weights; NULL when copied */
    ses_dtype dtype;
    char *unexpected_keys, *missing_keys; /* fresh NULL: nothing */
    size_t first_head_param;              /* parameters from here on are the pooler's and the heads' */
    char *dir;
    ses_adapter *adapter; /* NULL: none */
};

/* config.c */
const ses_model_desc *ses_config_find_model(const ses_json *config, ses_err *e);
bool ses_config_read(const ses_model_desc *d, const ses_json *config, ses_config *c, ses_err *e);
/* A key for finish(): where it is absent or null the value stays, another type is an error. */
bool ses_config_bool(const ses_json *config, const char *key, bool *value, ses_err *e);
bool ses_config_int(const ses_json *config, const char *key, int64_t *value, ses_err *e);
bool ses_config_text(const ses_json *config, const char *key, const char **value, ses_err *e);
/* Which of n names a key's value is; the first is what an absent key means. */
bool ses_config_name(const ses_json *config, const char *key, const char *const names[], size_t n,
                     size_t *out, ses_err *e);
const ses_class *ses_config_class(const ses_model_desc *d, const ses_json *config, const char *name,
                                  ses_err *e);
const ses_class *ses_config_headless_class(const ses_model_desc *d,
                                           ses_err *e); /* no head, no decoder behind it */

/* The head a text is written with, a token after the other; NULL: there is none. */
const ses_head_use *ses_class_lm_head(const ses_model_desc *d, const ses_class *c);

const char *ses_class_prefix(const ses_model *m); /* of the base model's tensors */

/* names.c: the reference's name of one of ours, with the base model's prefix where the class wants it; and
 * which = 1, 2, ..., other names it has in some files. */
bool ses_name_to_hf(const ses_model *m, const char *ours, char *buf, size_t n);
bool ses_name_to_hf_alias(const ses_model *m, const char *ours, int which, char *buf, size_t n);
/* The same, and then the names of what it is tied to. */
bool ses_name_to_hf_any(const ses_model *m, const char *ours, int which, char *buf, size_t n);
/* The token table that is the vocabulary's projection too where the two are tied. */
const ses_tensor *ses_model_projection(const ses_model *m);

/* model.c: config read and checked, parameters declared: everything but the numbers. */
bool ses_model_declare(ses_model *m, const ses_json *config, const ses_model_options *o, ses_err *e);

void ses_model_init_param(ses_model *m, size_t i, uint64_t seed); /* random numbers of one */

/* load.c */
/* By any name it ever had; NULL: none. */
const ses_tensor_entry *ses_model_find(const ses_model *m, const char *ours);
bool ses_model_load(ses_model *m, const char *dir, const ses_model_options *o, ses_err *e);
/* Parameter i of a store from a tensor of a file, which stays open: mapped where it can be. final: nothing
 * is going to change it, so that a dense weight may be rounded and its values left out. */
bool ses_param_load(ses_store *s, size_t i, const ses_safetensors *file, const ses_tensor_entry *x,
                    const ses_model_options *o, bool final, ses_err *e);
bool ses_model_compute_buffer(ses_model *m, size_t i, ses_err *e); /* numbers of a parameter no file holds */

/* load.c: a tensor of a file by the reference's name, `before` in front, in any spelling it ever had. */
const ses_tensor_entry *ses_entry_find(const ses_model *m, const ses_safetensors *file, const char *before,
                                       const char *name);

/* adapter.c: an adapter of a folder, or a new one. */
ses_adapter *ses_adapter_open(const char *dir, const char *base, ses_err *e);
ses_adapter *ses_adapter_new(const ses_lora *l, const char *base, ses_err *e);
void ses_adapter_free(ses_adapter *a);
const char *ses_adapter_base(const ses_adapter *a); /* folder of the model's weights */
bool ses_adapter_is_new(const ses_adapter *a);
void ses_adapter_begin(ses_adapter *a, ses_model *m);           /* what is declared now may be adapted, */
bool ses_adapter_end(ses_adapter *a, ses_model *m, ses_err *e); /* until now; false: a target is nowhere */
/* A trained head of the adapter, by our name; NULL: the adapter has none such. */
const ses_tensor_entry *ses_adapter_find(ses_adapter *a, const ses_model *m, const char *ours);
bool ses_adapter_merge(ses_adapter *a, ses_model *m, const ses_model_options *o, ses_err *e);
bool ses_adapter_name(const ses_model *m, size_t i, char *buf, size_t n);
bool ses_adapter_save_config(const ses_model *m, const char *dir, bool overwrite, ses_err *e);

/* save.c: a parameter on its way into a file, a source for ses_safetensors_writer_add_source. */
typedef struct ses_param_source {
    ses_device *dev;
    const ses_tensor *t;
    ses_dtype dtype;
    const float *scale; /* of SES_I8: what each output's numbers are multiples of */
    ses_weight_layout layout;
} ses_param_source;
bool ses_param_read(void *source, void *out, size_t offset, size_t bytes, ses_err *e);

/* class_match.c: the error for a tensor that is missing: what the checkpoint could be opened as. */
bool ses_model_missing_tensor(const ses_model *m, const char *tensor, const char *shape, ses_err *e);

/* batch.c: everything a batch may get wrong. */
bool ses_model_check_batch(const ses_model *m, const ses_batch *b, ses_err *e);

#endif
