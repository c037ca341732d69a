/* A model: a Hugging Face folder (config.json and safetensors), open.
 *
 * Ownership: the caller frees a model with ses_model_free, before its device. Strings, configs, stores and
 * tensors that a model returns are borrowed and live until then, unless a comment states otherwise.
 * Threads: an open model is read-only unless opened for training; several threads may use it, each with a
 * tape of its own. Opening, saving and training belong to one thread.
 * Failure: a function that takes `e` returns NULL or false and sets the error; e may be NULL. */
#ifndef SESAME_MODEL_H
#define SESAME_MODEL_H

#include "sesame/base.h"
#include "sesame/hooks.h"
#include "sesame/json.h"
#include "sesame/unstable/store.h"
#include "sesame/unstable/tape.h"

SES_BEGIN_DECLS

/* ---- Batches ----
 *
 * A batch: the input of a model. Sequences are concatenated without padding; sequence s is tokens
 * cu_seqlens[s] .. cu_seqlens[s + 1] - 1.
 *
 * Ownership: all arrays belong to the caller, are on the host, and must stay unchanged during the forward
 * pass (on a recording tape with recompute: until the tape is reset). NULL: absent.
 * Threads: a batch is plain data; several threads may read one batch, unless it uses a cache. */

struct ses_cache;
struct ses_word_cache;

typedef struct ses_batch {
    int64_t seqs, tokens;
    const int32_t *cu_seqlens; /* [seqs + 1], cumulative lengths from 0 to tokens */
    const int32_t *ids;        /* [tokens] */
    const int32_t *segments;   /* [tokens], token type ids (XLM: language ids); NULL: all 0 */
    const int32_t *positions;  /* [tokens]; NULL: 0, 1, ... in each sequence */
    int64_t choices;           /* multiple choice: consecutive sequences per question; 0: none */
    /* [seqs]: prefix length. The first prefix_len tokens of a sequence are visible to all its tokens, later
     * tokens are causal (prefix LM); -1: right to left. NULL: the model's own attention mask. */
    const int32_t *prefix_len;
    /* [seqs]: position of the token that scores a choice (GPT-2 double heads), or of the CLS token (question
     * answering by beam search); NULL: the last token. */
    const int32_t *choice_positions;
    /* [tokens]: 0 if a token cannot begin or end an answer (question answering by beam search); NULL: all
     * can. */
    const int32_t *answer_mask;

    /* Words outside the vocabulary, for models that read characters (ELMo): id vocab_size + i is row i of
     * extra_word_chars, [n_extra_words, characters of a word]. */
    const int16_t *extra_word_chars;
    int64_t n_extra_words;
    /* keeps the vectors of words between batches, in inference on a CPU; NULL: nothing is kept */
    struct ses_word_cache *word_cache;

    /* Vectors beside tokens (MMBT). modal_rows: row of modal_vectors that replaces the token's vector; -1:
     * the token's own. NULL: tokens only. */
    const int32_t *modal_rows;     /* [tokens] */
    const ses_real *modal_vectors; /* [n_modal, width] */
    int64_t n_modal;
    /* Bytes of each token's word (taggers), and their cumulative numbers [tokens + 1]. */
    const int32_t *word_chars, *word_char_cu;

    /* Input of the decoder of an encoder-decoder. target_ids NULL: the labels, shifted right. */
    const int32_t *target_cu_seqlens; /* [seqs + 1] */
    const int32_t *target_ids;
    const int32_t *target_positions; /* [target tokens]; NULL: 0, 1, ... */

    /* Permutation LMs (XLNet). */
    const uint8_t *perm_mask; /* [len, len] of each sequence: 1 if query i must not attend to key j */
    /* Positions to predict, in each sequence target_cu_seqlens[s + 1] - target_cu_seqlens[s] of them;
     * target_ids is NULL, and labels are [targets]. */
    const int32_t *predict_positions;
    const int32_t *mem_cu_seqlens; /* [seqs + 1]: tokens in the mems of each sequence */
    const ses_real *mems;          /* [layers, mem tokens, hidden]: earlier inputs of each layer */

    /* [seqs, ses_model_state_size()]: state of a recurrent model after the tokens before these, from the
     * output "rnn_state" of an earlier batch; NULL: zeros. It gets no gradient. */
    const ses_real *rnn_state;
    /* Recurrent models in training: gradients pass through the state of at most `window` tokens (truncated
     * backpropagation through time). 0: the model's own setting. */
    int64_t window;

    /* [tokens, hidden]: the encoder's output for cu_seqlens, from the output "encoder_last_hidden_state" of
     * an earlier batch; ids are NULL. NULL: the encoder reads ids. */
    const ses_real *encoder_states;

    /* Cached sequences: see sesame/model.h. */
    struct ses_cache *cache;
    const int32_t *slots; /* [seqs], all different */

    /* Labels; SES_IGNORE_INDEX: not part of the loss. */
    const int32_t *labels; /* [tokens], [seqs], [questions] or [target tokens], depending on the head */
    /* [seqs]: next sentence, sentence order; 1 if a question has no answer (beam search); [questions]: the
     * correct choice of double heads. */
    const int32_t *pair_labels;
    const int32_t *starts, *ends; /* [seqs]: first and last token of an answer, counted in its sequence */
    const ses_real *targets;      /* [seqs, labels]: regression, multi-label classification */
} ses_batch;

/* ---- Early exits ----
 *
 * Early exit: a classifier after each inner layer; a text leaves the model as soon as a rule trusts one of
 * them, and its tokens are not part of the remaining layers (docs/COMPRESSION.md).
 *
 *     ses_exit_policy rule;
 *     ses_exit_policy_parse("entropy:0.3", &rule, &e) && ses_exit_policy_check(&rule, model, &e);
 *     ses_output_request request = { .logits = true, .exit = &rule };
 *
 * A folder may name a rule of its own: 'sesame convert DIR OUT --exit-rule entropy:0.3'. ses_output_request
 * does not read it: .exit = ses_model_exit_policy(model) does.
 *
 * Ownership: a policy is plain data. Threads: as the model. */

typedef enum {
    SES_EXIT_NEVER,    /* all layers */
    SES_EXIT_ENTROPY,  /* the entropy of the labels, divided by that of equal probabilities, is below
                          `threshold` (DeeBERT, FastBERT) */
    SES_EXIT_PATIENCE, /* the best label has stayed the same `count` times in a row (PABEE): count + 1
                          classifiers agree */
    SES_EXIT_LAYER     /* after `count` layers, whatever the scores are */
} ses_exit_rule;

typedef struct ses_exit_policy {
    ses_exit_rule rule;
    double threshold; /* 0 to 1 */
    int64_t count;
} ses_exit_policy;

/* Parses "entropy:0.3", "patience:3", "layer:6" or "never". */
bool ses_exit_policy_parse(const char *text, ses_exit_policy *out, ses_err *e);

/* Can this model leave by this policy? False and an error: it has no exits, or the count is not possible. */
bool ses_exit_policy_check(const ses_exit_policy *p, const ses_model *m, ses_err *e);

/* Number of exits of a model, the last layer not included; 0: none. */
int64_t ses_model_exit_count(const ses_model *m);
/* Layers before exit i, in ascending order: 1 is the first layer. */
int64_t ses_model_exit_layer(const ses_model *m, int64_t i);

/* The rule that the model's folder names ("rule" of "sesame_exits"), used by pipelines, evaluation and
 * prediction that name none; NULL: there is none. The pointer is the model's. */
const ses_exit_policy *ses_model_exit_policy(const ses_model *m);

/* ---- Models ---- */

typedef struct ses_model ses_model;

/* ---- finding ---- */

/* The folder of a model, given its path or its name. An existing file or folder is returned as it is. Names
 * of the Hugging Face hub, ORG/NAME[@REVISION] or hf://ORG/NAME[@REVISION], are searched for in its cache
 * (HF_HUB_CACHE, HF_HOME); nothing is downloaded ('sesame pull' does that). Other strings with '/' are
 * returned as they are. Other names are searched for in the folders of `search_path`, separated by ':' (NULL:
 * of the environment variable SESAME_MODELS), then among the bundled models: beside the running program and
 * the library, and in the installation prefix. Free the result with free(). NULL and an error that lists the
 * searched folders: no such model.
 *
 * ses_model_open, ses_sentence_open and pipelines call it with search_path NULL, so that they accept names,
 * too. */
char *ses_model_resolve(const char *name, const char *search_path, ses_err *e);

/* Name of the bundled model for a pipeline task ("fill-mask"); NULL: none. A static string. */
const char *ses_model_default(const char *task);

/* ---- opening ---- */

/* The choices of `adapter` after "none", in the order of their numbers: KIND(NUMBER, name) is a kind of
 * adapter, CHOICE(NUMBER, name) another choice. auto: the kind of an adapter folder's adapter, else none. */
#define SES_ADAPTER_LIST(KIND, CHOICE) \
    KIND(LORA, lora)                   \
    CHOICE(AUTO, auto)                 \
    KIND(IA3, ia3)                     \
    KIND(BITFIT, bitfit)               \
    KIND(PROMPT, prompt)               \
    KIND(PTUNING, ptuning)             \
    KIND(PREFIX, prefix)               \
    KIND(BOTTLENECK, bottleneck)

/* A new adapter: a small set of parameters, trained while the model stays frozen. */
typedef struct ses_adapter_options {
    /* LoRA (Hu et al. 2021) */
    int64_t rank;
    double alpha, dropout; /* the update is scaled by alpha / rank */
    /* Dense layers, separated by commas: transformers' modules ("query", "c_attn") or Sesame's ("attn.query",
     * "ffn.up"), by the end of their names; "all"; NULL or "": query and value projections; of IA3: key and
     * value projections and the last feed-forward layer. */
    const char *targets;
    const char *kind; /* "lora", "ia3", "bitfit", "prompt", "ptuning", "prefix", "bottleneck"; NULL: "lora" */
    int64_t virtual_tokens; /* prompt, ptuning, prefix */
    /* prefix, ptuning: units of the hidden layers that compute the virtual tokens in training; 0: the virtual
     * tokens are trained themselves (ptuning needs them) */
    int64_t projection;
    double reduction;      /* bottleneck: hidden size / units of its hidden layer */
    const char *placement; /* bottleneck: "seq" (Pfeiffer), "double" (Houlsby), "parallel"; NULL: "seq" */
} ses_adapter_options;

typedef struct ses_model_options {
    const char *class_name; /* "BertForMaskedLM"; NULL: from config.json */
    bool no_head;           /* hidden states only: no head, no pooler, no decoder after an encoder */
    bool train;             /* copy the values and allocate gradients; false: map the file */
    bool random_init;       /* initialize at random, read no weights */
    bool check_only;        /* check shapes, read no values: tensors have no data */
    bool no_packing;        /* no second copy of the weights in kernel order: half the memory, slower */
    bool strict;            /* an unused tensor of the checkpoint is an error */
    uint64_t seed;          /* seed of random values */
    const ses_json *config; /* replaces the folder's config.json; must outlive the model */
    bool new_heads;         /* head parameters that the file lacks in this shape are initialized at random */
    const ses_adapter_options
        *adapter_options; /* with train: only an adapter and the head are trained; needed while opening. Of an
                             * adapter folder: its adapter is trained further, with its own settings; only
                             * the dropout is used */
    const char *base;     /* base model of an adapter folder, instead of the one it names */
    /* A model of the same weights (of the base model, for an adapter folder) on the same device: parameters
     * that both have and no adapter changes use its memory. It must not be trained, must have no adapter and
     * must outlive the new model. */
    const ses_model *shared;
    bool new_tokens; /* with train: the token table may have more rows than the file's; the new ones are
                        initialized at random */
    /* Further adapter folders for the same base model, applied after the folder's own, needed while opening:
     * LoRA adds its products, IA3 multiplies its factors, bottleneck adapters follow each other; a head is
     * taken from the last folder that has it. An error: two adapters with virtual tokens, or that replace the
     * same tensor. */
    const char *const *adapters;
    size_t n_adapters;
} ses_model_options;

/* Opens a model by name or path (see ses_model_resolve) on a device, which must outlive it; options may be
 * NULL. An adapter folder (adapter_config.json and adapter_model.safetensors of the peft library) opens as
 * its base model with the adapter merged into the weights. */
ses_model *ses_model_open(const char *name, ses_device *dev, const ses_model_options *options, ses_err *e);

/* Makes a model of this config.json, which must outlive it, with random weights; options may be NULL. */
ses_model *ses_model_new(const ses_json *config, ses_device *dev, const ses_model_options *options,
                         ses_err *e);

/* Frees a model; m may be NULL. */
void ses_model_free(ses_model *m);

/* ---- saving ---- */

typedef struct ses_save_options {
    /* Weights in the file: SES_F32, SES_F16, SES_BF16; or SES_I8: dense weights in 8 bits with one
     * scale per output ("NAME_scale"), heads and embeddings in 16 bits, the rest in 32. The file is then
     * model.sesame-int8, which other programs do not read. */
    ses_dtype dtype;
    ses_dtype tables;   /* with SES_I8, of embeddings: SES_I8 with one scale per row; else 16 bits */
    size_t shard_bytes; /* maximum size of a file; 0: one file */
    bool overwrite;     /* replace existing files; false: they are an error */
} ses_save_options;

/* Writes config and weights to a folder, which is created if needed; each file is written atomically. A model
 * with a new adapter is saved as adapter_config.json and adapter_model.safetensors. options NULL: one F32
 * file. */
bool ses_model_save(const ses_model *m, const char *dir, const ses_save_options *options, ses_err *e);

/* Opens the weights that ses_model_save wrote to dir; free them with ses_safetensors_free. */
struct ses_safetensors *ses_model_open_saved(const ses_model *m, const char *dir, ses_err *e);

/* Writes the name of the store's parameter i in these weights to buf, which has n bytes. False: they do not
 * contain it. */
bool ses_model_saved_name(const ses_model *m, size_t i, char *buf, size_t n);

/* ---- configs and adapters ---- */

/* Opens the config of a folder: its config.json, or for an adapter folder that of the base model (`base`, or
 * NULL: the one it names), changed for the adapter's task. Free it with ses_json_free. */
ses_json_doc *ses_model_config_open(const char *dir, const char *base, ses_err *e);

/* The base model's folder of an adapter folder (`base` replaces the one it names); dir itself if it is not an
 * adapter. Free the result with free(). */
char *ses_model_base_dir(const char *dir, const char *base, ses_err *e);

/* Does the folder contain an adapter_config.json? */
bool ses_model_is_adapter(const char *dir);

/* The kind of a folder's adapter: "lora", "ia3", ... A static string; NULL: no adapter that can be read. */
const char *ses_model_adapter_kind(const char *dir);

/* How an adapter in folder `dir` should name its base model: "../NAME" if both are in the same folder, so
 * that they can be moved together, else the absolute path. Free the result with free(). NULL: no such
 * folder. */
char *ses_adapter_base_name(const char *base, const char *dir);

/* Settings to change in a config. Start from SES_CONFIG_PATCH_NONE. */
typedef struct ses_config_patch {
    double dropout, attention_dropout, head_dropout; /* rates; below 0: unchanged */
    const char *head;                                /* "linear", "mlp", "lstm", "gru"; NULL: unchanged */
    int64_t sizes[4];                                /* units of its hidden layers */
    size_t n_sizes;
    bool scalar_mix; /* heads read a learned mix of all layers (ELMo) */
    /* heads read these layers, not the last: 0 is the embeddings, -1 the last layer */
    int64_t layers[64];
    size_t n_layers;
    const char *combine; /* "mean", "sum", "concat" or "mix" (a learned weighted sum); NULL: mean.
                            concat needs a head of the list above */
    bool causal;         /* causal attention; no effect on model types without this setting */
} ses_config_patch;
#define SES_CONFIG_PATCH_NONE                                      \
    {                                                              \
        .dropout = -1, .attention_dropout = -1, .head_dropout = -1 \
    }

/* A copy of a config with settings changed, under the keys of its model type. Free it with ses_json_free. An
 * error: the model type has no such setting. */
ses_json_doc *ses_model_config_patch(const ses_json *config, const ses_config_patch *c, ses_err *e);

/* The class of the config's model_type with this head: "classify", "tag", "span", ... A static string; NULL
 * and an error: none. */
const char *ses_model_class_for_head(const ses_json *config, const char *head, ses_err *e);

/* The class with exactly these n heads. A static string; NULL and an error: none. */
const char *ses_model_class_for_heads(const ses_json *config, const char *const head[], size_t n, ses_err *e);

/* ---- running ---- */

/* First axis of an output. */
typedef enum {
    SES_PER_TOKEN,            /* [tokens, ...] */
    SES_PER_SEQUENCE,         /* [seqs, ...] (or [questions, choices]) */
    SES_PER_QUERY_KEY,        /* attention: [heads, queries, keys] of each sequence */
    SES_PER_TARGET,           /* [decoder tokens, ...] */
    SES_PER_TARGET_QUERY_KEY, /* the decoder's self-attention */
    SES_PER_CROSS_QUERY_KEY,  /* the decoder's cross attention */
    SES_PER_MEMORY,           /* rows of mems for the next batch, sequence after sequence */
    SES_PER_ROW,              /* [n_rows, ...]: the requested rows */
    SES_PER_KEY               /* keys of models with mems: mems, then tokens, sequence after sequence */
} ses_axis;

typedef struct ses_output {
    char name[32]; /* transformers' name: "logits", "hidden_states.3", ... */
    ses_tensor *tensor;
    ses_axis axis;
    int64_t col, cols; /* this output is columns col .. col + cols - 1; cols 0: all */
} ses_output;

typedef struct ses_head_output {
    const char *name, *output; /* the head's name; the name of its scores among the outputs */
    ses_tensor *loss;          /* its part of the loss; NULL without labels */
} ses_head_output;

enum { SES_MAX_OUTPUT_HEADS = 2 };

/* The results of a forward pass. All pointers belong to the tape and live until it is reset. */
typedef struct ses_outputs {
    ses_tensor *loss; /* NULL without labels */
    const ses_output *item;
    size_t n;
    ses_head_output head[SES_MAX_OUTPUT_HEADS];
    size_t heads;
    const int32_t *mem_cu_seqlens; /* offsets of the outputs "mems.N", for the next batch; NULL: none */
} ses_outputs;

/* The requested outputs. */
typedef struct ses_output_request {
    bool logits; /* scores of the heads for every token or sequence; false: only the loss */
    bool hidden_states, attentions;
    bool attention_scores; /* self-attention scores before the softmax and any bias */
    bool mems;             /* for the next batch, of models with segment recurrence */
    bool rnn_state;        /* for the next batch, of recurrent models: "rnn_state" [seqs, state size] */
    /* Compute LM logits, or the last hidden state of a class without heads, only for these rows: tokens of
     * the batch, or of the decoder if the head reads it. NULL: for all. */
    const int32_t *rows;
    int64_t n_rows;
    /* Captures and edits inside layers: see sesame/hooks.h. */
    bool qkv, head_outputs, ffn_activations, embeddings, head_inputs;
    bool capture_gradients; /* recording tape: ses_backward keeps the gradients of these outputs and of
                               hidden_states, see ses_tape_read_grad */
    const ses_edits *edits; /* NULL: none */
    /* Classifiers with exits, inference only: texts leave by this rule. The scores of a text come from its
     * exit; the output "exit_layers" [seqs, 1] has the number of layers each text has passed. Hidden states,
     * attentions, captures and edits cannot be requested at the same time. NULL: all layers. */
    const ses_exit_policy *exit;
} ses_output_request;

/* Runs the model on a tape of its device. request NULL: only the loss. *out is valid if the call succeeds.
 * The batch is validated first (SES_EARG). After any other failure the tape keeps the error, and must be
 * reset before its next use. */
bool ses_model_forward(const ses_model *m, ses_tape *t, const ses_batch *b, const ses_output_request *request,
                       ses_outputs *out, ses_err *e);

/* The output of this name ("logits", "last_hidden_state", "hidden_states.3"); NULL: none. name may be
 * NULL. The result lives as long as the outputs. */
const ses_output *ses_outputs_find(const ses_outputs *out, const char *name);

/* ---- properties ---- */

/* The parameters. */
ses_store *ses_model_store(const ses_model *m);
/* model_type of config.json: "bert". */
const char *ses_model_type(const ses_model *m);
/* The class: "BertForMaskedLM". */
const char *ses_model_class_name(const ses_model *m);
/* The first head: "masked-lm"; NULL: none. */
const char *ses_model_head_name(const ses_model *m);
/* config.json as it was read. */
const ses_json *ses_model_config(const ses_model *m);
/* Maximum length of a sequence in tokens. */
int64_t ses_model_max_tokens(const ses_model *m);
/* Rows of the token table. */
int64_t ses_model_vocab_size(const ses_model *m);
/* Layers of the encoder, or of the only stack. */
int64_t ses_model_layer_count(const ses_model *m);
/* Numbers in the state of a recurrent model for one sequence (ses_batch.rnn_state); 0: it carries none. */
int64_t ses_model_state_size(const ses_model *m);
/* Number of labels of a classification head. */
int64_t ses_model_label_count(const ses_model *m);
/* Name of label i; NULL: it has none. */
const char *ses_model_label_name(const ses_model *m, int64_t i);
/* dtype of the weights in the file: SES_I8 if dense weights are, else that of most elements. Of an adapter:
 * the dtype of its base model. */
ses_dtype ses_model_dtype(const ses_model *m);

/* Writes transformers' name of the store's parameter i to buf, which has n bytes. False: it has none, or buf
 * is too small. */
bool ses_model_tensor_name(const ses_model *m, size_t i, char *buf, size_t n);

/* Index of the parameter that transformers calls so (a tied one by either name); -1: none. */
int64_t ses_model_find_tensor(const ses_model *m, const char *hf_name);

/* Was this parameter read from the checkpoint, not computed or initialized? */
bool ses_model_param_in_file(const ses_model *m, const ses_param *p);

/* Parameters initialized at random because the file lacks them (see new_heads), separated by commas; "":
 * none. */
const char *ses_model_missing_keys(const ses_model *m);

/* Tensors of the checkpoint that the model does not use, separated by commas; "": none. */
const char *ses_model_unexpected_keys(const ses_model *m);

/* Reads every weight; false and the tensor's name if a value is NaN or infinite. */
bool ses_model_check_finite(const ses_model *m, ses_err *e);

/* ---- KV caches ----
 *
 * A KV cache: keys and values of the tokens that a decoder has processed, so that a forward pass computes
 * new tokens only.
 *
 * A cache has slots; each holds one sequence. A batch that names a cache, and a slot for each of its
 * sequences, continues these sequences: its tokens are the new ones (any number per sequence), and positions
 * continue. On a CPU the results have the bits of a single pass over the whole text, however it is split.
 *
 * In an encoder-decoder a slot also holds keys and values of its source text for cross attention. The batch
 * that starts an empty slot provides the source (cu_seqlens and ids, with target_ids as the decoder's input);
 * later batches have ids NULL. Slots copied from each other share their source.
 *
 * Ownership: the caller frees a cache with ses_cache_free, before its model.
 * Threads: a cache belongs to one model and may be used by one thread at a time.
 * Caches are for inference: the tape must not record. */

typedef struct ses_cache ses_cache;

/* Makes a cache with `slots` empty slots of `length` tokens each. NULL and an error: out of memory, or a
 * model that cannot have one (SES_EUNSUPPORTED): not a causal decoder, positions that skip padding (RoBERTa),
 * states of earlier tokens instead (XLNet). */
ses_cache *ses_cache_new(const ses_model *m, int64_t slots, int64_t length, ses_err *e);

/* Frees a cache; c may be NULL. */
void ses_cache_free(ses_cache *c);

/* Number of slots. */
int64_t ses_cache_slots(const ses_cache *c);

/* Tokens that each slot can hold. */
int64_t ses_cache_capacity(const ses_cache *c);

/* Memory of keys and values in bytes, on the device. */
size_t ses_cache_bytes(const ses_cache *c);

/* Enlarges the number of slots, their capacity, or both, and keeps their contents; smaller values are
 * ignored. False and an error: out of memory; the cache is unchanged. */
bool ses_cache_grow(ses_cache *c, int64_t slots, int64_t length, ses_err *e);

/* Tokens in a slot; slot must be below ses_cache_slots. */
int64_t ses_cache_len(const ses_cache *c, int64_t slot);

/* Removes all tokens of a slot after the first `len`; 0 also removes the source. */
void ses_cache_trim(ses_cache *c, int64_t slot, int64_t len);

/* Copies slot from[i] to slot to[i] for all i < n at once, as beam search needs it; the entries of `to` must
 * differ. Copies only the rows in which two slots may differ: beams that split a few tokens ago cost these
 * tokens. False and an error: invalid slot, or out of memory; the cache is unchanged. */
bool ses_cache_reorder(ses_cache *c, int64_t n, const int32_t *to, const int32_t *from, ses_err *e);

SES_END_DECLS

#endif
