/* The models a server has loaded, by name, and pipelines that share their weights.
 *
 * Ownership: the registry and every job hold references; a model is freed with its last reference, so that
 * requests in progress keep a model that has been unloaded or replaced. Threads: all functions lock. */
#ifndef SES_SERVE_REGISTRY_H
#define SES_SERVE_REGISTRY_H

#include "folder_state.h"
#include "serve/chat/chat_folder.h"
#include "sesame/generate.h"
#include "task/prepared.h"

#include <pthread.h>
#include <stdatomic.h>

/* SES_MAX_JOB_TOKENS: of one request, which is encoded before it is admitted or rejected. */
enum { SES_MAX_WORKERS = 64, SES_MAX_SERVED_PIPELINES = 32, SES_MAX_JOB_TOKENS = 8 << 20 };

typedef struct ses_served_model ses_served_model;

/* A task with pipeline settings on a model. */
typedef struct ses_served_pipeline {
    struct ses_served_pipeline *next;
    ses_served_model *model; /* borrowed: the model owns its pipelines */
    const ses_task_entry *task;
    char *key;                                        /* task and settings, canonical */
    ses_pipeline *compute;                            /* used by the thread that computes */
    _Atomic(ses_pipeline *) encoder[SES_MAX_WORKERS]; /* clones, by worker; NULL: not used yet */
    int users;                                        /* jobs that use it; guarded by the model's lock */
    uint64_t last_used;
} ses_served_pipeline;

struct ses_served_model {
    char *name, *dir;
    ses_device *dev;
    ses_model *model;               /* NULL: a classifier of texts, which its first pipeline owns */
    ses_folder_state weights;       /* the folder that has the weights: an adapter uses its base model's */
    struct ses_served_model *base;  /* a reference to the model whose weights it shares; NULL: none */
    const ses_tokenizer *tokenizer; /* that of the first pipeline; NULL: it has none */
    bool is_sentence_encoder;       /* the folder has a modules.json */
    const ses_task_entry *own_task; /* the task of the model's head; NULL: none */
    int64_t created;                /* Unix time */
    pthread_mutex_t lock;           /* guards the pipelines */
    ses_served_pipeline *pipelines;
    size_t n_pipelines;
    ses_chat_folder chat;     /* empty if the model does not generate text */
    ses_generator *generator; /* used by the thread that computes; NULL: no text has been generated */
    atomic_int refs;
};

typedef struct ses_registry ses_registry;

ses_registry *ses_registry_new(ses_device *dev, ses_err *e);
void ses_registry_free(ses_registry *r); /* r may be NULL */

/* Loads a model under a name, or replaces the model of this name. spec: FOLDER, NAME or NAME=FOLDER. */
bool ses_registry_load(ses_registry *r, const char *spec, ses_err *e);
/* The name under which a spec is loaded. */
bool ses_registry_spec_name(const char *spec, char *buf, size_t n, ses_err *e);
bool ses_registry_unload(ses_registry *r, const char *name, ses_err *e);
/* Loads the model of a name again from its folder. */
bool ses_registry_reload(ses_registry *r, const char *name, ses_err *e);

/* A reference to a model: by name, or with name NULL or "" the first that supports the task (NULL: any).
 * NULL: none. Release it with ses_served_model_release. */
ses_served_model *ses_registry_find(ses_registry *r, const char *name, const ses_task_entry *task);
/* A reference to the only model made for a task, or if none is, to the only one that supports it. NULL: none,
 * or several. */
ses_served_model *ses_registry_only(ses_registry *r, const ses_task_entry *task);
/* Another name for a loaded model, "NAME=MODEL". Before requests are served. */
bool ses_registry_alias(ses_registry *r, const char *spec, ses_err *e);
/* The name of alias i, and that of its model. NULL: past the end. */
const char *ses_registry_alias_at(const ses_registry *r, size_t i, const char **model);
void ses_served_model_retain(ses_served_model *m);
void ses_served_model_release(ses_served_model *m); /* m may be NULL */
/* References to all models, in the order they were loaded; free the array with ses_free. NULL: no memory. */
ses_served_model **ses_registry_list(ses_registry *r, size_t *n, ses_err *e);

/* The model_type of config.json; the type of the numbers. */
const char *ses_served_model_type(const ses_served_model *m);
const char *ses_served_model_dtype(const ses_served_model *m);
/* Number of its weights, and their bytes in memory; 0: not known. */
int64_t ses_served_model_parameters(const ses_served_model *m);
int64_t ses_served_model_bytes(const ses_served_model *m);
bool ses_served_model_supports(const ses_served_model *m, const ses_task_entry *task);
/* A classifier: a text may have several labels; its outputs are numbers without labels; it can tell harmful
 * texts from others. */
bool ses_served_model_has_many_labels(const ses_served_model *m);
bool ses_served_model_predicts_numbers(const ses_served_model *m);
bool ses_served_model_moderates(const ses_served_model *m);
bool ses_label_is_harmless(ses_string label); /* "safe", "non-toxic" */

/* The pipeline of a task with settings that belong to the whole pipeline (NULL: defaults). Opened when it is
 * first used. Release it with ses_served_pipeline_release, before the model. If a model has too many, one
 * that is not used is closed; *full (may be NULL): all are in use, one may be free later. */
ses_served_pipeline *ses_served_pipeline_get(ses_served_model *m, const ses_task_entry *task,
                                             const ses_setting *settings, bool *full, ses_err *e);
void ses_served_pipeline_release(ses_served_pipeline *p); /* p may be NULL */
/* The pipeline of the model's own task: opened with the model, never closed before it. */
ses_served_pipeline *ses_served_model_pipeline(ses_served_model *m);
/* The clone of a worker; another thread may ask for it in advance. */
ses_pipeline *ses_served_pipeline_encoder(ses_served_pipeline *p, int worker, ses_err *e);
/* ses_served_pipeline_get without opening or reading anything; NULL: the pipeline or the worker's clone does
 * not exist yet. */
ses_served_pipeline *ses_served_pipeline_find(ses_served_model *m, const ses_task_entry *task,
                                              const ses_setting *settings, int worker);

#endif
