/* Internals of sentence encoders: modules, as modules.json lists them and their folders describe them.
 * Ownership and threads: as sesame/sentence.h. */
#ifndef SES_MODEL_SENTENCE_H
#define SES_MODEL_SENTENCE_H

#include "nn/nn.h"
#include "sesame/json.h"
#include "sesame/safetensors.h"
#include "sesame/sentence.h"

enum { SES_MAX_MODULES = 32, SES_MAX_POOLS = 16 };

typedef enum {
#define SES_SENTENCE_POOL(id, function, name, legacy_key) SES_SENTENCE_POOL_##id,
#include "sentence_pools.def"
#undef SES_SENTENCE_POOL
    SES_SENTENCE_POOL_COUNT
} ses_sentence_pool;

/* The pooled tokens: all, or the ones after the prompt, possibly none. */
typedef struct ses_pooled_tokens {
    const ses_batch *b;
    int32_t *skipped;       /* [seqs]: leading tokens that are not pooled */
    const int32_t *host_cu; /* offsets of the pooled tokens */
    ses_tensor *x, *cu;     /* rows of the pooled tokens, their offsets */
    ses_tensor *all;        /* rows of all tokens */
} ses_pooled_tokens;

/* sentence_pools.c, or a file of a mode: one row per sequence. */
#define SES_SENTENCE_POOL(id, function, name, legacy_key) \
    ses_tensor *ses_sentence_pool_##function(const ses_pooled_tokens *f, ses_tape *t);
#include "sentence_pools.def"
#undef SES_SENTENCE_POOL
/* The first or last token of each sequence, as a row of `all`. If no token remains: the first one anyway, or
 * SES_IGNORE_INDEX. */
int32_t *ses_sentence_single_token(const ses_pooled_tokens *f, ses_tape *t, ses_sentence_pool mode);

typedef struct ses_module ses_module;

typedef struct ses_module_kind {
    const char *name; /* last part of its type in modules.json */
    /* config NULL: the folder has none */
    bool (*read)(ses_module *m, const ses_json *config, ses_err *e);
    /* *width: of the input, then of the output. */
    bool (*add)(ses_module *m, ses_store *s, int number, int64_t *width, ses_err *e);
    /* NULL: not applied to sentence vectors */
    ses_tensor *(*run)(const ses_module *m, ses_tape *t, ses_tensor *x);
    bool config, weights; /* its folder must contain a config.json; contains a checkpoint */
} ses_module_kind;

struct ses_module {
    const ses_module_kind *kind;
    char *path; /* folder relative to the encoder's; "": the same */
    ses_sentence_pool pool[SES_MAX_POOLS];
    int pools;
    bool skip_prompt; /* prompt tokens are not pooled */
    int64_t in, out;
    bool no_bias, residual;
    ses_act act;
    double dropout;
    ses_dense dense, residual_proj; /* residual_proj: projection of the residual if the widths differ */
    ses_norm norm;
};

/* sentence_config.c: parses modules. Free a list, complete or not, with ses_modules_free. */
typedef struct ses_modules {
    ses_module item[SES_MAX_MODULES];
    size_t n;
} ses_modules;

struct ses_sentence {
    char *dir, *model_dir;
    ses_json_doc *st_config; /* config_sentence_transformers.json; NULL: none */
    ses_modules modules;
    ses_safetensors *file[SES_MAX_MODULES]; /* mapped weights of the modules */
    ses_model *model;
    ses_store *store;
    char layer[32];           /* name of the pooled output */
    bool needs_hidden_states; /* the pooled layer is not the last */
    int64_t width, max_tokens;
    bool lower_case;
};

bool ses_modules_read(ses_modules *m, const ses_json *list, ses_err *e);
void ses_modules_free(ses_modules *m);
const ses_module_kind *ses_module_find(const char *name);            /* NULL: not supported */
const ses_module_kind *const *ses_module_kinds(void);                /* all kinds, NULL-terminated */
bool ses_module_pools(ses_module *m, const char *names, ses_err *e); /* "cls,mean" */
const char *ses_sentence_pool_name(ses_sentence_pool p);
const char *ses_sentence_pool_legacy_key(ses_sentence_pool p);      /* boolean key in older folders */
bool ses_act_from_path(const char *path, ses_act *out, ses_err *e); /* "torch.nn.modules.activation.Tanh" */
const char *ses_act_path(ses_act act);

/* Opens the model of a sentence encoder with the head or pooler of its checkpoint, if it has one; sentence
 * embeddings do not use it. */
ses_model *ses_sentence_open_whole(const ses_sentence *s, ses_device *dev, const ses_model_options *options,
                                   ses_err *e);

#endif
