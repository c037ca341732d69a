/* The description of a model type: tables of config keys, tensor names and classes. Each type is a file
 * src/model/NAME.c and a line in models.def. Also the internals of ses_model.
 *
 * Ownership: descriptions are static. Threads: as sesame/model.h. */
#ifndef SES_MODEL_DESC_H
#define SES_MODEL_DESC_H

#include "base/arena.h"
#include "model/flops/model_flops.h"
#include "nn/exit/exit_heads.h"
#include "nn/nn.h"
#include "sesame/json.h"
#include "sesame/safetensors.h"

/* A key of config.json: the field it sets, its type and range. Several keys may set one field: older and
 * newer spellings. */
typedef enum { SES_KEY_TYPE_INT, SES_KEY_TYPE_REAL, SES_KEY_TYPE_BOOL, SES_KEY_TYPE_ACT } ses_key_type;

typedef struct ses_config_key {
    const char *key;
    ses_key_type type;
    size_t offset; /* in ses_config */
    double min, max;
    bool required; /* false: the model's default applies */
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

/* Limits far beyond any real model: larger values in a config are a mistake or an attack. */
enum { SES_MAX_VOCAB = 1 << 24, SES_MAX_WIDTH = 1 << 16, SES_MAX_FFN = 1 << 20, SES_MAX_POSITIONS = 1 << 20 };
enum { SES_MAX_BEAM = 100 };

/* A parameter's name in Sesame and in transformers. # is a layer number (or its group's), @ its number in the
 * group, * the rest of the name. A leading / marks a tensor of a head, which has no prefix. If a name has
 * several rows, the first is canonical, and files may use any. A leading ~ marks a row for models without
 * tied weights. An empty name: a copy of another tensor, which nothing reads. */
typedef struct ses_tensor_name {
    const char *name, *hf_name;
} ses_tensor_name;

/* Tensors of another layout, with the patterns of ses_tensor_name: `from` behind any prefix becomes to[0], or
 * its rows are divided equally among to[0], to[1], ... */
enum { SES_RENAME_PARTS = 8 };
typedef struct ses_tensor_rename {
    const char *from, *to[SES_RENAME_PARTS];
} ses_tensor_rename;

/* A class of transformers: the model with these heads. */
typedef struct ses_class {
    const char *name;
    bool pooler;
    ses_head_use head[SES_MAX_OUTPUT_HEADS];
    bool encoder_only, decoder_only; /* one half of an encoder-decoder */
    /* without decoder input: the decoder reads the encoder's input, shifted */
    bool decoder_input_from_source;
    bool passage_first;             /* question answering: the passage precedes the question */
    bool includes_token;            /* clears input.excludes_token */
    bool no_output_drop;            /* rnn.output_drop belongs to another head (the language model's) */
    ses_summary summary;            /* replaces the config's; 0: the config's */
    bool uses_sequence_summary_act; /* the summary's activation is summary.sequence_summary_act */
    const char *prefix;             /* replaces the model's; NULL: the model's */
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

/* A table and its length; lists of tables end with an empty one. */
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

typedef struct ses_model_desc ses_model_desc;

struct ses_model_desc {
    const char *name; /* model_type of config.json */
    /* prefix of the base model's tensors in classes with a head; files may lack it */
    const char *prefix;
    ses_config defaults;            /* the model type's settings, and values of absent keys */
    const ses_stack_vtable *vtable; /* functions that it overrides; NULL: none */
    /* the same of the decoder of an encoder-decoder */
    const ses_stack_vtable *decoder_vtable;
    bool carries_state;           /* generates with ses_batch.rnn_state instead of a KV cache */
    bool encoder_decoder;         /* an encoder and a decoder */
    int sentinels;                /* number of sentinel tokens (T5's <extra_id_N>); 0: none */
    bool tokenizer_sets_segments; /* transformers' tokenizer for it returns token type ids */
    ses_key_table keys[2];
    /* reads what the tables cannot; or NULL */
    bool (*post_read)(ses_config *c, const ses_json *config, ses_err *e);
    const char *const *reads;  /* keys of changing_keys.def that post_read reads, NULL-terminated; or NULL */
    ses_name_table tensors[5]; /* in search order; the table config.name_table is searched first */
    const ses_tensor_rename *renames; /* other layouts of files; NULL: none */
    size_t n_renames;
    const char *signature;  /* part of a tensor's name that only this type has; NULL: none */
    bool borrowed_name;     /* folders of other types have this name, too: their tensors decide */
    const ses_class *class; /* the first is the base model */
    size_t n_classes;
    /* Models whose encoder and decoder are models of other types: reads both configs and sets m->c,
     * m->source and m->part, instead of the tables above; or NULL. */
    bool (*read_parts)(ses_model *m, const ses_json *config, ses_err *e);
    const char *unread; /* prefix of tensors that files may contain, but that nothing reads; or NULL */
    /* config keys of models whose layers have local or global attention: `key` lists a name per layer, which
     * replaces `every`, the distance of global layers; key NULL: no such list; every NULL: another key
     * may list the layers, too, so that they cannot be removed */
    struct {
        const char *key, *every, *local, *global;
    } layer_kinds;
};

#define SES_MODEL(name) extern const ses_model_desc ses_model_##name;
#include "models.def"
#undef SES_MODEL

const ses_model_desc *const *ses_models(void); /* all descriptions, NULL-terminated */

/* Do transformers' tokenizers of this class ("DebertaV2TokenizerFast") return token type ids?
 * tokenizer_class NULL: the class that belongs to model_type. */
bool ses_model_sets_segments(const char *tokenizer_class, const char *model_type);

/* Shared tables: BERT's and BART's config keys and tensor names. */
enum { SES_BERT_KEYS = 16, SES_BERT_TENSORS = 18, SES_BERT_NORMS = 3 };
extern const ses_config_key ses_bert_keys[SES_BERT_KEYS];
extern const ses_tensor_name ses_bert_tensors[SES_BERT_TENSORS]; /* all but norms of layers */
extern const ses_tensor_name ses_bert_norms[SES_BERT_NORMS];
enum { SES_BERT_HEADS = 13, SES_ROBERTA_HEADS = 11 }; /* names of head tensors */
extern const ses_tensor_name ses_bert_heads[SES_BERT_HEADS], ses_roberta_heads[SES_ROBERTA_HEADS];
enum { SES_BART_KEYS = 21, SES_BART_TENSORS = 42 };
extern const ses_config_key ses_bart_keys[SES_BART_KEYS];
extern const ses_tensor_name ses_bart_tensors[SES_BART_TENSORS];
bool ses_bert_post_read(ses_config *c, const ses_json *config, ses_err *e);
/* The same for models with "position_embedding_type" and "add_cross_attention"; the keys that it reads. */
bool ses_bert_post_read_positions(ses_config *c, const ses_json *config, ses_err *e);
extern const char *const ses_bert_reads[];

typedef struct ses_adapter ses_adapter;

/* The encoder or decoder of a model whose parts are models of other types. */
typedef struct ses_part_desc {
    const ses_model_desc *desc; /* NULL: the model has no such parts */
    const char *outer, *prefix; /* tensor names begin with outer, the base model's with outer and prefix */
} ses_part_desc;

struct ses_model {
    const ses_model_desc *desc;
    const ses_class *class;
    ses_device *dev;
    ses_json_doc *doc; /* owns config, if the model was opened from a folder; else NULL */
    const ses_json *config;
    ses_config c;          /* heads and the last stack */
    ses_config source;     /* the encoder before a decoder */
    ses_part_desc part[2]; /* encoder and decoder */
    bool parts_tied;       /* encoder and decoder have the same weights: a file may have either */
    ses_store *store;
    ses_stack stack[2]; /* encoder and decoder, or the only stack */
    ses_dense bridge;   /* the encoder's hidden states to the decoder's width; w NULL: the same width */
    ses_dense pooler;
    ses_scalar_mix scalar_mix;
    ses_layer_choice choice; /* layers that the heads read; n 0: the last one */
    ses_head_params head[SES_MAX_OUTPUT_HEADS];
    ses_safetensors *file; /* mapped weights; NULL: copied */
    ses_dtype dtype;
    char *unexpected_keys, *missing_keys; /* missing_keys NULL: none */
    size_t first_head_param; /* parameters from this index on belong to the pooler and the heads */
    char *dir;
    ses_adapter *adapter; /* NULL: none */
    ses_adapter_hook adapter_hook;
    ses_low_rank_hook low_rank_hook;
    size_t n_factorized;  /* dense layers that are declared with factors */
    ses_err low_rank_err; /* the first rank that is too large */
    bool is_view;         /* everything but the struct belongs to another model */
    ses_exits exits;      /* n 0: none */
    ses_flops_rates flops;
};

/* config.c: the description of the config's model_type. */
const ses_model_desc *ses_config_find_model(const ses_json *config, ses_err *e);
/* The model's key for a field; the spelling that the config uses, if there are several. NULL: none. */
const ses_config_key *ses_config_key_of(const ses_model_desc *d, const ses_json *config, size_t field,
                                        ses_key_type type);
/* Reads all keys into c and checks them. */
bool ses_config_read(const ses_model_desc *d, const ses_json *config, ses_config *c, ses_err *e);
/* changing_keys.c: fails if a key of `object`, which is config or an object in it, changes the results and
 * the model does not read it. */
bool ses_config_check_keys(const ses_model_desc *d, const ses_json *object, const ses_json *config,
                           ses_err *e);
const char *ses_changing_key_at(size_t i); /* these keys; NULL past the end */
/* Reads a key, for post_read: an absent or null key keeps the value, another type is an error. */
bool ses_config_bool(const ses_json *config, const char *key, bool *value, ses_err *e);
bool ses_config_int(const ses_json *config, const char *key, int64_t *value, ses_err *e);
bool ses_config_text(const ses_json *config, const char *key, const char **value, ses_err *e);
/* Index of a key's value among n names; an absent key is the first name. */
bool ses_config_name(const ses_json *config, const char *key, const char *const names[], size_t n,
                     size_t *out, ses_err *e);
/* rope_config.c: one object of settings; "rope_parameters", "rope_theta" and "rope_scaling" of a config, for
 * both kinds of layers; a key with the part of a head that is rotated. Defaults are set. */
bool ses_rope_read(ses_config *c, const ses_json *object, ses_rope *rope, ses_err *e);
bool ses_rope_config(ses_config *c, const ses_json *config, ses_err *e);
bool ses_rope_read_fraction(ses_config *c, const ses_json *config, const char *key, ses_err *e);
/* The class `name`; NULL: the one in "architectures", or the base model. */
const ses_class *ses_config_class(const ses_model_desc *d, const ses_json *config, const char *name,
                                  ses_err *e);
/* The class without head, and without decoder after an encoder. */
const ses_class *ses_config_headless_class(const ses_model_desc *d, ses_err *e);

/* The head that generates text token by token; NULL: none. */
const ses_head_use *ses_class_lm_head(const ses_model_desc *d, const ses_class *c);

const char *ses_class_prefix(const ses_model *m); /* prefix of the base model's tensors */

/* Which tokens the states of the encoder, or of the only stack, have seen. */
typedef enum {
    SES_READS_ALL,           /* all of the text */
    SES_READS_LEFT_TO_RIGHT, /* the first one: itself only; the last one: all */
    SES_READS_BOTH_WAYS      /* recurrent: half of the columns read from either end */
} ses_reading;
ses_reading ses_model_reading(const ses_model *m);

/* Fails if the first token of a text, which option `what` chooses as its vector, has seen no other. */
bool ses_model_check_first_token(const ses_model *m, const char *what, ses_err *e);

/* Do segment ids change the output? */
static inline bool ses_model_uses_segments(const ses_model *m)
{
    return ses_config_uses_segments(m->stack[0].c);
}

/* names.c: matches a name against a pattern: # is a number, a final * the rest. */
bool ses_name_match(const char *pattern, const char *name, int *number, const char **rest);
/* Fills number and rest into a transformers pattern; false: buf is too small. inner: layers per group. */
bool ses_name_expand(char *buf, size_t n, const char *prefix, const char *pattern, int number, int inner,
                     const char *rest);

/* tensor_renames.c: adds the tensors of the model's own layout to a file of another. */
bool ses_tensors_rename(const ses_model_desc *d, ses_safetensors *file, ses_err *e);
bool ses_tensor_is_renamed(const ses_model_desc *d, const char *name);
/* The config with the model_type of the folder's tensors, if it names another: takes ownership of doc, also
 * on failure. */
ses_json_doc *ses_config_recognize(ses_json_doc *doc, const char *dir, ses_err *e);

/* names.c: transformers' name of a parameter, with the base model's prefix if the class has one; and for
 * which = 1, 2, ... its other names in some files. */
bool ses_name_to_hf(const ses_model *m, const char *name, char *buf, size_t n);
bool ses_name_to_hf_alias(const ses_model *m, const char *name, int which, char *buf, size_t n);
/* The same, followed by the names of the tensors it is tied to. */
bool ses_name_to_hf_any(const ses_model *m, const char *name, int which, char *buf, size_t n);
/* The name of a tensor in a file, as a model type knows it. */
typedef enum {
    SES_NAME_COPY,     /* a copy of a parameter, which nothing reads */
    SES_NAME_KNOWN,    /* a parameter of a class or setting of this type */
    SES_NAME_FOREIGN,  /* none, although the tensor lies among its embeddings and layers */
    SES_NAME_ELSEWHERE /* none, beside them: a head of another task */
} ses_file_name;
ses_file_name ses_model_file_name(const ses_model *m, const char *name);
/* Every trained parameter has a name in files; one without would be lost when the model is saved. */
bool ses_model_check_names(const ses_model *m, ses_err *e);
/* model.c: the longest text of the decoder, or of the only stack (ses_model_max_tokens: of the first). */
int64_t ses_model_max_target_tokens(const ses_model *m);
/* Tokens that the first stack can read (ses_model_vocab_size: tokens that the decoder can write). */
int64_t ses_model_source_vocab_size(const ses_model *m);
/* The token table (the decoder's, if there is one), which is the vocabulary projection if embed.tied. */
const ses_tensor *ses_model_projection(const ses_model *m);

/* model.c: ses_model_open with a config that ses_model_config_open returned for the same folder and base, so
 * that it is not parsed again; NULL: reads it. Takes ownership of config, also on failure. */
ses_model *ses_model_open_config(const char *name, ses_json_doc *config, ses_device *dev,
                                 const ses_model_options *options, ses_err *e);

/* model.c: the hidden states of a model: shares its weights, has no head and no pooler. encoder_only: of an
 * encoder-decoder, the encoder alone. Free it with ses_model_free, before m. */
ses_model *ses_model_hidden_view(const ses_model *m, bool encoder_only, ses_err *e);

/* model.c: reads and checks the config, and declares the parameters: everything but the values. */
bool ses_model_declare(ses_model *m, const ses_json *config, const ses_model_options *o, ses_err *e);

/* model.c: tells the stacks that their parameters have values. random: initial ones. */
bool ses_model_loaded(ses_model *m, bool random, ses_err *e);

/* Initializes one parameter at random. */
void ses_model_init_param(ses_model *m, size_t i, uint64_t seed);

/* load.c */
/* Finds a parameter in the file by any of its names; NULL: none. */
const ses_tensor_entry *ses_model_find(const ses_model *m, const char *name);
bool ses_model_load(ses_model *m, const char *dir, const ses_model_options *o, ses_err *e);
/* Loads parameter i of a store from a tensor of a file, which must stay open: maps it if possible. final: the
 * values will not change, so that a dense weight may be quantized and its f32 values dropped. */
bool ses_param_load(ses_store *s, size_t i, const ses_safetensors *file, const ses_tensor_entry *x,
                    const ses_model_options *o, bool final, ses_err *e);
/* Fills a parameter that no file contains. */
bool ses_model_compute_buffer(ses_model *m, size_t i, ses_err *e);

/* load.c: finds a tensor of a file by transformers' name after the prefix `before`, in any spelling. */
const ses_tensor_entry *ses_entry_find(const ses_model *m, const ses_safetensors *file, const char *before,
                                       const char *name);

/* adapter_files.c: ses_model_config_open for a model class, which decides between the two models in a
 * TensorFlow checkpoint of ELECTRA; NULL: not known. */
ses_json_doc *ses_model_config_open_as(const char *dir, const char *base, const char *class_name, ses_err *e);

/* adapter.c: the tensors of a folder's adapter; free them with ses_safetensors_free. */
ses_safetensors *ses_adapter_tensors_open(const char *dir, ses_err *e);
/* The adapter of a folder, or a new one. */
ses_adapter *ses_adapter_open(const char *dir, const char *base, ses_err *e);
ses_adapter *ses_adapter_new(const ses_adapter_options *o, const char *base, ses_err *e);
/* The adapter of a folder, to be trained further: its settings are its own. */
ses_adapter *ses_adapter_continue(const char *dir, const char *base, double dropout, ses_err *e);
void ses_adapter_free(ses_adapter *a);
/* Appends the adapter of a folder to a list, for the base model in folder `base`. */
bool ses_adapter_add(ses_adapter **list, const char *dir, const char *base, ses_err *e);
/* Fails if two adapters replace the same parameter of the model below its heads. */
bool ses_adapter_check_disjoint(const ses_adapter *a, const ses_model *m, ses_err *e);
/* Settings of the adapter that is trained; NULL: none. */
const ses_adapter_options *ses_model_adapter(const ses_model *m);
const char *ses_adapter_base(const ses_adapter *a); /* folder of the base model */
bool ses_adapter_is_new(const ses_adapter *a);
/* The title of an adapter that cannot become part of the weights; NULL: none. */
const char *ses_adapter_unmerged(const ses_adapter *a);
/* Adapters may change layers that are declared between begin and end; ses_adapter_stacks: the stacks have
 * been declared. False: a target does not exist. */
void ses_adapter_begin(ses_adapter *a, ses_model *m);
bool ses_adapter_stacks(ses_adapter *a, ses_model *m, ses_err *e);
bool ses_adapter_end(ses_adapter *a, ses_model *m, ses_err *e);
/* The adapter's tensor of a parameter; NULL: none. */
const ses_tensor_entry *ses_adapter_find(ses_adapter *a, const ses_model *m, const char *name);
/* Will ses_adapter_merge change the parameter? */
bool ses_adapter_changes(const ses_adapter *a, const char *ours);
/* Does it come from a folder? */
bool ses_adapter_has_file(const ses_adapter *a);
/* The error for a tensor that the adapter's file lacks. Always false. */
bool ses_adapter_missing(const ses_model *m, const char *ours, const char *shape, ses_err *e);
/* Names the adapter in the error of a model that was opened with it. False. a may be NULL. */
bool ses_adapter_wrap_misfit(const ses_adapter *a, ses_err *e);
/* Changes the weights of the model by the loaded adapters. All their tensors must have been used. */
bool ses_adapter_merge(ses_adapter *a, ses_model *m, const ses_model_options *o, ses_err *e);
/* The name of parameter i in an adapter file; false: not part of the adapter. */
bool ses_adapter_name(const ses_model *m, size_t i, char *buf, size_t n);
/* Does the tensor of an adapter file belong to a head, to no layer of the model? */
bool ses_adapter_is_head(const char *name);
/* Does a parameter with this name belong to an adapter, not to the model? */
bool ses_adapter_owns(const char *name);
bool ses_adapter_save_config(const ses_model *m, const char *dir, bool overwrite, ses_err *e);

/* save.c: a parameter as the data source of ses_safetensors_writer_add_source. */
typedef struct ses_param_source {
    ses_device *dev;
    const ses_tensor *t;
    ses_dtype dtype;
    const float *scale; /* SES_I8: scale of each output */
    ses_weight_layout layout;
} ses_param_source;
/* Bytes [offset, offset + bytes) of the parameter in the file's dtype; source: a ses_param_source. Uses the
 * threads of a CPU. */
bool ses_param_read(void *source, void *out, size_t offset, size_t bytes, ses_err *e);
/* How ses_model_save stores the parameter. Scales are allocated in mem. */
bool ses_param_source_init(ses_param_source *s, const ses_model *m, const ses_param *p,
                           const ses_save_options *o, ses_arena *mem, ses_err *e);
/* Elements at .. at + n - 1 in the file's dtype, on this thread; n <= SES_PARAM_PIECE. scale: with s->scale,
 * the scale of each of them, [n]. */
enum { SES_PARAM_PIECE = 2048 };
bool ses_param_convert(const ses_param_source *s, void *out, float *scale, size_t at, size_t n, ses_err *e);

/* class_match.c: the error for a missing tensor, with the classes that the checkpoint supports. */
bool ses_model_missing_tensor(const ses_model *m, const char *tensor, const char *shape, ses_err *e);

/* pruned_heads.c: reads the key; the rest of the config is read. */
bool ses_pruned_heads_read(const ses_model_desc *d, const ses_json *config, ses_config *c, ses_err *e);
/* Why heads cannot be removed from such a model; NULL: they can. */
const char *ses_pruned_heads_unsupported(const ses_model_desc *d, const ses_config *c);

/* low_rank.c: reads "sesame_low_rank"; the rest of the config is read. */
bool ses_low_rank_read(const ses_model_desc *d, const ses_json *config, ses_config *c, ses_err *e);
/* Why weights of such a model cannot be factorized; NULL: they can. */
const char *ses_low_rank_unsupported(const ses_model_desc *d, const ses_config *c);
/* The same for its token table. */
const char *ses_low_rank_unsupported_table(const ses_model_desc *d, const ses_config *c);
/* The layers that are declared between begin and end have factors as the config requires; end: all heads
 * have been declared. */
bool ses_low_rank_begin(ses_model *m, ses_err *e);
bool ses_low_rank_end(ses_model *m, ses_err *e);
/* The key of a dense layer in "weights": transformers' name of "layer.0.attn.query.weight" without ".weight"
 * and without the prefix of the base model, which depends on the class. False: it has none. */
bool ses_low_rank_key(const ses_model *m, const char *weight, char *buf, size_t n);

/* model_exits.c: reads "sesame_exits"; the rest of the config is read. */
bool ses_exits_read(const ses_json *config, ses_config *c, ses_err *e);
/* Writes the rule into the config.json of a folder with exits. */
bool ses_exit_rule_store(const char *dir, const char *rule, ses_err *e);
/* The config without a rule of its exits. */
ses_json_doc *ses_exit_rule_drop(const ses_json *config, ses_err *e);
/* Why a model cannot have exits; NULL: it can. */
const char *ses_exits_unsupported(const ses_model_desc *d, const ses_config *c);
/* Declares the exits of m->c after the heads; a class without a sequence classifier has none. */
bool ses_model_add_exits(ses_model *m, ses_err *e);
/* Sets the loss of training passes. SES_EXITS_FROZEN: the model runs without dropout, only the exits have
 * theirs; the caller trains no other parameters. */
void ses_model_train_exits(ses_model *m, ses_exits_loss loss, bool from_last);
/* Checks request->exit. */
bool ses_exits_check_request(const ses_model *m, const ses_tape *t, const ses_batch *b,
                             const ses_output_request *r, ses_err *e);
/* The outputs of a pass in which texts may have left: scores of all texts, their layers, and, with labels
 * [texts], the loss. */
void ses_exits_finish(const ses_model *m, ses_forward_ctx *p, ses_outputs *out, const int32_t *labels);

/* ffn_widths.c: the same for "sesame_ffn_widths". */
bool ses_ffn_widths_read(const ses_model_desc *d, const ses_json *config, ses_config *c, ses_err *e);
/* Why feed-forward rows and layers cannot be removed from such a model; NULL: they can. */
const char *ses_ffn_widths_unsupported(const ses_model_desc *d, const ses_config *c);

/* config_patch.c: the model's key for a field of ses_config (offsetof): the spelling that the config uses, if
 * there are several; NULL: none. */
const ses_config_key *ses_config_key_of(const ses_model_desc *d, const ses_json *config, size_t field,
                                        ses_key_type type);

/* find_label.c: the name of label i, "LABEL_i" (in buf) if it has none. */
enum { SES_LABEL_TEXT = 32 };
const char *ses_model_label_text(const ses_model *m, int64_t i, char buf[SES_LABEL_TEXT]);
/* The label with this name (another case is accepted if it is unique) or number; else an error with the
 * names. */
bool ses_model_find_label(const ses_model *m, ses_string text, int64_t *label, ses_err *e);
/* The first label that has different names in a and b; -1: none. A label without a name differs from none. */
int64_t ses_model_labels_differ(const ses_model *a, const ses_model *b);

/* batch.c: validates a batch. */
bool ses_model_check_batch(const ses_model *m, const ses_batch *b, ses_err *e);

/* virtual_batch.c: a batch with virtual tokens before its sequences. */
typedef struct ses_virtual_batch {
    ses_batch batch;
    ses_output_request request;
    const int32_t *virtual_rows; /* [batch.tokens]; NULL: the batch is unchanged */
    int32_t *token;              /* [tokens]: the index of each token in the new batch */
    int64_t tokens;              /* tokens of the former batch; 0: the batch is unchanged */
} ses_virtual_batch;
/* Lets *b and *r point to v, which must outlive the pass, if the model has virtual tokens. */
bool ses_virtual_batch_make(const ses_model *m, ses_tape *t, const ses_batch **b,
                            const ses_output_request **r, ses_virtual_batch *v, ses_err *e);
/* Removes virtual tokens from outputs by token. */
void ses_virtual_batch_shrink(const ses_virtual_batch *v, ses_tape *t, ses_output *item, size_t n);

/* model_hooks.c: validates captures and edits; the batch is valid. */
bool ses_model_check_hooks(const ses_model *m, const ses_batch *b, const ses_output_request *r, ses_err *e);

/* lens_head.c: the use of the language model head; NULL and an error: the class has none. */
const ses_head_use *ses_model_lens_head(const ses_model *m, ses_err *e);
/* Logits of rows of a hidden state that the head's stack gives out, "hidden_states.N". last: N is the last
 * layer, whose state includes the final norm. NULL: the tape has failed. */
ses_tensor *ses_model_lens(const ses_model *m, ses_tape *t, ses_tensor *x, bool last);

#endif
