/* Adapters: small sets of parameters that change a model. Each kind is a ses_adapter_desc in its own file,
 * listed in SES_ADAPTER_LIST (sesame/model.h). adapter.c opens them and connects them to a model,
 * adapter_targets.c selects dense layers by name, adapter_files.c reads and writes adapter_config.json.
 * Ownership: an adapter belongs to its model. Threads: as sesame/model.h. */
#ifndef SES_MODEL_ADAPTER_H
#define SES_MODEL_ADAPTER_H

#include "folder/model_folder.h"
#include "model/model_desc.h"

#define SES_ADAPTER_FILE "adapter_model.safetensors"
#define SES_PEFT_FILES                            \
    {                                             \
        {                                         \
            SES_ADAPTER_FILE, "adapter_model.bin" \
        }                                         \
    }
#define SES_ADAPTER_PREFIX "base_model.model."
#define SES_PEFT_PYTHON "model = peft.PeftModel.from_pretrained(base, FOLDER)"

/* A dense layer that an adapter can change. */
typedef struct ses_adapter_target {
    char name[96], hf_name[160]; /* "layer.0.attn.query", "bert.encoder.layer.0.attention.self.query" */
    ses_weight_layout layout;
    bool chosen;
    const ses_tensor_entry *x[2]; /* tensors of a loaded adapter */
} ses_adapter_target;

/* A kind of adapter. Functions may be NULL, except required ones. */
typedef struct ses_adapter_desc {
    const char *name, *title; /* "lora", "LoRA" */
    const char *settings;     /* options of fine-tuning that it has, '|' between; NULL: none */
    const char *python;       /* code that adds it to `base`, a model of transformers; NULL: none */
    int64_t projection;       /* width of the hidden layers, unless a new adapter sets it; 0: none */
    const char *peft_type;    /* "LORA" in adapter_config.json */
    const char *prefix;       /* before transformers' names in the file */
    /* files of tensors, each also under its name in PyTorch's format; the first must exist. The second has
     * the parameters of the head. */
    const char *file[2][2];
    bool no_meta;                               /* the files have no metadata */
    bool (*recognizes)(const ses_json *config); /* NULL: peft_type tells */
    bool merges;                                /* a loaded adapter becomes part of the weights */
    /* Settings of a new adapter; required. */
    bool (*check)(const ses_adapter_options *o, ses_err *e);
    /* Reads its keys of adapter_config.json; required. The tensors are open: a->file. */
    bool (*read)(ses_adapter *a, const ses_json *config, ses_err *e);
    /* The adapter of a folder will be trained further. */
    bool (*resume)(ses_adapter *a, ses_err *e);
    /* A dense layer has been declared: adds parameters to it. */
    void (*dense)(ses_adapter *a, ses_store *s, ses_dense *d, const char *name, int64_t out, int64_t in);
    /* Is this parameter of the model trained with a new adapter? */
    bool (*trains)(const char *name);
    /* A layer has been declared: adds parameters to it. */
    void (*layer)(ses_adapter *a, ses_store *s, ses_layer *l, const char *name, int64_t width);
    /* The stacks have been declared: adds parameters to them. */
    bool (*stacks)(ses_adapter *a, ses_model *m, ses_err *e);
    /* All layers have been declared. */
    bool (*end)(ses_adapter *a, ses_err *e);
    /* Changes a weight by tensors of a loaded adapter. */
    bool (*merge)(ses_adapter *a, ses_model *m, const ses_adapter_target *d, ses_tensor *w, ses_tensor *bias,
                  bool check_only, ses_err *e);
    bool merges_bias; /* merge also changes the bias */
    /* The name in the file of a parameter "adapter.*"; false: none. */
    bool (*tensor_name)(const ses_adapter *a, const ses_model *m, const char *name, char *buf, size_t n);
    /* The tensor of a parameter of a head that the file has under a name of its own; NULL: none. */
    const ses_tensor_entry *(*head)(const ses_adapter *a, const char *name);
    /* Adds computed tensors to the file; their values are allocated in mem. */
    bool (*save)(const ses_model *m, ses_safetensors_writer *w, ses_arena *mem, ses_err *e);
    /* Virtual tokens computed in training: hidden layers, activation. */
    struct {
        int64_t hidden;
        ses_act act;
    } mlp;
    /* Writes its keys of adapter_config.json; required. whole: it writes all of them. */
    void (*put)(const ses_model *m, const ses_adapter *a, ses_json_writer *w);
    bool whole;
    /* Writes further files. */
    bool (*save_files)(const ses_model *m, const ses_adapter *a, const char *dir, bool overwrite, ses_err *e);
} ses_adapter_desc;

struct ses_adapter {
    const ses_adapter_desc *desc;
    bool is_new; /* to be trained, with new values or the values of `file`; false: loaded */
    char *dir;   /* its folder; NULL: new */
    char *base;  /* folder of the base model */
    ses_adapter_options o;
    char *targets;
    char name[64];        /* bottleneck: its name in the file */
    int number;           /* among the adapters of the model: 0, 1, ... */
    ses_bottleneck shape; /* bottleneck: without parameters */
    bool after_attn, after_ffn;
    bool use_rslora;       /* LoRA: scaled by alpha / sqrt(rank) */
    bool by_lstm;          /* P-tuning: an LSTM has computed the vectors of the folder, not an MLP */
    int64_t encoder_size;  /* P-tuning: "encoder_hidden_size" of the folder */
    ses_safetensors *file; /* NULL: new values */
    bool *used;            /* [tensors of file] */
    const ses_model *declaring;
    ses_adapter_target *dense;
    size_t n, cap;
    ses_err err;
    ses_adapter *next; /* another adapter of the same model */
};

#define SES_ADAPTER_KIND(number, name) extern const ses_adapter_desc ses_adapter_##name;
#define SES_ADAPTER_CHOICE(number, name)
SES_ADAPTER_LIST(SES_ADAPTER_KIND, SES_ADAPTER_CHOICE)
#undef SES_ADAPTER_KIND
#undef SES_ADAPTER_CHOICE

/* The kind by its name, or by the "peft_type" of a config. NULL and an error with the known ones: none. */
const ses_adapter_desc *ses_adapter_kind_named(const char *name, ses_err *e);
const ses_adapter_desc *ses_adapter_kind_of(const ses_json *config, ses_err *e);

/* adapter_config.json of a folder. */
ses_json_doc *ses_adapter_config_load(const char *dir, ses_err *e);
bool ses_adapter_read_config(ses_adapter *a, const char *dir, const char *base, ses_err *e);
void ses_adapter_mark_used(ses_adapter *a, const ses_tensor_entry *x);

/* The tensors of a folder's adapter. */
ses_safetensors *ses_adapter_open_files(const ses_adapter_desc *d, const char *dir, ses_err *e);

/* adapter_targets.c */
/* Records a declared dense layer. parts: ends of its tensors' names in the file; the second may be NULL.
 * defaults: targets if none are given. True: the adapter changes the layer. */
bool ses_adapter_add_target(ses_adapter *a, const char *dense, ses_weight_layout layout,
                            const char *const parts[2], const char *defaults);
/* Every given target must exist; an adapter that is trained further gets names of its targets. */
bool ses_adapter_check_targets(ses_adapter *a, const char *defaults, ses_err *e);
/* "target_modules", or another list of the targets for which `in` is true (NULL: all). */
void ses_adapter_put_targets(const ses_adapter *a, const char *key, bool (*in)(const ses_adapter_target *d),
                             ses_json_writer *w);
/* Is `end` the last part of the dotted `name`? "...self.query" ends in "query" and in "self.query". */
bool ses_adapter_name_ends(const char *name, const char *end, size_t n);
/* Values of a tensor times scale, in new memory of the device. */
ses_real *ses_adapter_upload(ses_device *dev, const ses_tensor_entry *x, double scale, ses_err *e);

#endif
