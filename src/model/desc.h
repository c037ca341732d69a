/* What a model type is: tables. One file src/model/NAME.c and a line in models.def. */
#ifndef SES_MODEL_DESC_H
#define SES_MODEL_DESC_H

#include "nn/nn.h"
#include "sesame/json.h"
#include "sesame/safetensors.h"

/* A key of config.json: where it goes, what it may be. */
typedef enum { SES_KEY_INT, SES_KEY_REAL, SES_KEY_BOOL, SES_KEY_ACT } ses_key_type;

typedef struct ses_config_key {
    const char *key;
    ses_key_type type;
    size_t offset; /* in ses_config */
    double min, max;
    bool required;
    double fallback; /* when absent or null; an ses_act for SES_KEY_ACT */
} ses_config_key;

/* Ours, theirs: # stands for a layer's number, * for the rest of the name. */
typedef struct ses_name {
    const char *ours, *theirs;
} ses_name;

/* A class of the reference library: which heads stand on the encoder. */
typedef struct ses_class {
    const char *name;
    bool pooler;
    ses_head_use head[2];
} ses_class;

typedef struct ses_model_desc {
    const char *name;   /* config.json's model_type */
    const char *prefix; /* of the base model's tensors in a model with a head; files may lack it */
    const ses_config_key *key;
    size_t n_keys;
    bool (*check)(const ses_config *c, const ses_json *config, ses_err *e); /* what a table cannot say */
    const ses_name *tensor;
    size_t n_tensors;
    const ses_class *class; /* the first is the base model */
    size_t n_classes;
} ses_model_desc;

#define SES_MODEL(name) extern const ses_model_desc ses_model_##name;
#include "models.def"
#undef SES_MODEL

const ses_model_desc *const *ses_models(void); /* all of them, NULL at the end */

struct ses_model {
    const ses_model_desc *desc;
    const ses_class *class;
    ses_device *dev;
    ses_json_doc *doc; /* owns config when the model was opened from a folder */
    const ses_json *config;
    ses_config c;
    ses_store *store;
    ses_encoder encoder;
    ses_head_params head[2];
    ses_safetensors *file; /* mapped weights; NULL when copied */
    ses_dtype dtype;
    char *surplus;
    char *dir;
};

/* config.c */
const ses_model_desc *ses_config_model(const ses_json *config, ses_err *e);
bool ses_config_read(const ses_model_desc *d, const ses_json *config, ses_config *c, ses_err *e);
const ses_class *ses_config_class(const ses_model_desc *d, const ses_json *config, const char *name,
                                  ses_err *e);

/* names.c: the reference's name of one of ours, with the base model's prefix where the class wants it. */
bool ses_name_theirs(const ses_model_desc *d, const ses_class *k, const char *ours, char *buf, size_t n);

/* load.c */
bool ses_model_load(ses_model *m, const char *dir, const ses_model_options *o, ses_err *e);

/* batch.c: everything a batch may get wrong. */
bool ses_model_check_batch(const ses_model *m, const ses_batch *b, ses_err *e);

#endif
