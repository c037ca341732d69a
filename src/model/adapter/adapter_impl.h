/* LoRA adapters in the peft library's format: internals shared by adapter.c (declaring, merging) and
 * adapter_files.c (adapter_config.json, the config of an adapter folder). Ownership: an adapter belongs to
 * its model. Threads: as sesame/model.h. */
#ifndef SES_MODEL_ADAPTER_H
#define SES_MODEL_ADAPTER_H

#include "hub/adapter_folder.h"
#include "model/model_desc.h"

#define SES_ADAPTER_FILE "adapter_model.safetensors"
#define SES_ADAPTER_PREFIX "base_model.model."

/* A dense layer that can have LoRA matrices. */
typedef struct ses_lora_target {
    char name[96], hf_name[160]; /* "layer.0.attn.query", "bert.encoder.layer.0.attention.self.query" */
    ses_weight_layout layout;
    bool has_lora;
    const ses_tensor_entry *lora_a, *lora_b; /* tensors of a loaded adapter */
} ses_lora_target;

struct ses_adapter {
    bool is_new; /* to be trained, with new values or the values of `file`; false: loaded and merged */
    char *base;  /* folder of the base model */
    ses_lora lora;
    char *targets;
    bool use_rslora;       /* scaled by alpha / sqrt(rank) */
    ses_safetensors *file; /* NULL: new values */
    bool *used;            /* [tensors of file] */
    ses_lora_hook hook;
    const ses_model *declaring;
    ses_lora_target *dense;
    size_t n, cap;
    ses_err err;
};

bool ses_adapter_read_config(ses_adapter *a, const char *dir, const char *base, ses_err *e);

#endif
