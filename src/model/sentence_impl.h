/* What a sentence encoder is made of: its modules, as modules.json lists them and their folders describe
 * them. */
#ifndef SES_MODEL_SENTENCE_H
#define SES_MODEL_SENTENCE_H

#include "nn/nn.h"
#include "sesame/json.h"
#include "sesame/safetensors.h"
#include "sesame/sentence.h"

enum { SES_MAX_MODULES = 32, SES_MAX_POOLS = 16 };

/* How tokens become one vector, in the order in which old folders' switches are joined. */
typedef enum {
    SES_SENTENCE_POOL_FIRST,    /* cls */
    SES_SENTENCE_POOL_MAX,      /* max */
    SES_SENTENCE_POOL_MEAN,     /* mean */
    SES_SENTENCE_POOL_SQRT,     /* mean_sqrt_len_tokens: the sum over the root of the length */
    SES_SENTENCE_POOL_WEIGHTED, /* weightedmean: token i, counted from 1, weighs i */
    SES_SENTENCE_POOL_LAST,     /* lasttoken */
    SES_SENTENCE_POOL_COUNT
} ses_sentence_pool;

typedef struct ses_module ses_module;

typedef struct ses_module_kind {
    const char *name; /* the last part of its type in modules.json */
    bool (*read)(ses_module *m, const ses_json *config, ses_err *e); /* config NULL: the folder has none */
    /* *width: of what comes in, then of what goes out. */
    bool (*add)(ses_module *m, ses_store *s, int number, int64_t *width, ses_err *e);
    ses_tensor *(*run)(const ses_module *m, ses_tape *t, ses_tensor *x); /* NULL: not on sentences */
    bool config, weights; /* its folder must have a config.json; has a checkpoint */
} ses_module_kind;

struct ses_module {
    const ses_module_kind *kind;
    char *path; /* of its folder below the encoder's; "": the same */
    ses_sentence_pool pool[SES_MAX_POOLS];
    int pools;
    bool skip_prompt; /* tokens of the prompt are not pooled */
    int64_t in, out;
    bool no_bias, residual;
    ses_act act;
    double dropout;
    ses_dense dense, residual_proj; /* side: what the residual goes through where widths differ */
    ses_norm norm;
};

/* sentence_config.c: outside text to modules. A list is freed by ses_modules_free, half-made too. */
typedef struct ses_modules {
    ses_module item[SES_MAX_MODULES];
    size_t n;
} ses_modules;

struct ses_sentence {
    char *dir, *model_dir;
    ses_json_doc *st_config; /* config_sentence_transformers.json; NULL: none */
    ses_modules modules;
    ses_safetensors *file[SES_MAX_MODULES]; /* mapped weights of modules */
    ses_model *model;
    ses_store *store;
    char layer[32];           /* the output that is pooled */
    bool needs_hidden_states; /* it is not the last */
    int64_t width, max_tokens;
    bool lower_case;
};

bool ses_modules_read(ses_modules *m, const ses_json *list, ses_err *e);
void ses_modules_free(ses_modules *m);
const ses_module_kind *ses_module_find(const char *name);            /* NULL: not one of ours */
const ses_module_kind *const *ses_module_kinds(void);                /* all, NULL at the end */
bool ses_module_pools(ses_module *m, const char *names, ses_err *e); /* "cls,mean" */
const char *ses_sentence_pool_name(ses_sentence_pool p);
const char *ses_sentence_pool_legacy_key(ses_sentence_pool p);      /* in older folders */
bool ses_act_from_path(const char *path, ses_act *out, ses_err *e); /* "torch.nn.modules.activation.Tanh" */
const char *ses_act_path(ses_act act);

#endif
