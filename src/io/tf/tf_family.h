/* Families of google-research's checkpoints: which variables they have, and what transformers calls these.
 * One file tf_NAME.c and one line in tf_families.def per family. Static constant data. */
#ifndef SES_IO_TF_FAMILY_H
#define SES_IO_TF_FAMILY_H

#include "io/safetensors_impl.h"
#include "sesame/json.h"
#include "tf_checkpoint.h"

typedef enum {
    SES_TF_KEEP,
    SES_TF_TRANSPOSE, /* two axes */
    SES_TF_SQUEEZE,   /* drops leading axes of size 1 */
    SES_TF_SPLIT      /* one tensor for each index of the first axis, # in the new name */
} ses_tf_change;

/* A variable name and the tensor name. # and @ match numbers, % matches a name without '/'. A last "*" of
 * `from` matches kernel, bias, gamma, beta and such; "*" of `to` is then weight or bias, and kernels are
 * transposed. to NULL: the variable is left out. */
typedef struct ses_tf_rule {
    const char *from, *to;
    ses_tf_change change;
} ses_tf_rule;

/* A model class, if the variable exists (NULL: always). labels: the variable is [labels, ...]. */
typedef struct ses_tf_class {
    const char *variable, *name;
    bool labels;
} ses_tf_class;

/* A key of config.json that is the size of a variable's axis; axis -1: the count of layers, # in the name.
 * Of several variables for a key, the first that exists. */
typedef struct ses_tf_size {
    const char *key, *variable;
    int axis;
} ses_tf_size;

typedef struct ses_tf_family {
    const char *name;     /* model_type of config.json */
    const char *variable; /* a checkpoint with it belongs to the family */
    const char *only_for; /* classes, separated by spaces, that must be asked for; NULL: none */
    const char *config;   /* the config's file name */
    bool config_optional;
    const char *const (*renamed)[2]; /* keys of this file and of config.json; ends with NULL */
    const char *gelu; /* the activation of transformers that the file calls "gelu"; NULL: "gelu" */
    const ses_tf_size *size;
    size_t n_sizes;
    const char *constants; /* members of config.json, as JSON text of an object; NULL: none */
    /* Writes further members. original: the file's, NULL: absent. */
    bool (*put_config)(const ses_tf_index *x, const ses_json *original, ses_json_writer *w, ses_err *e);
    const ses_tf_class *class;
    size_t n_classes;
    const ses_tf_rule *rule;
    size_t n_rules;
} ses_tf_family;

#define SES_TF_TABLE(field, n, table) .field = (table), .n = SES_LEN(table)

/* The family of a checkpoint. class: the class to be opened, NULL: not known. */
const ses_tf_family *ses_tf_family_of(const ses_tf_index *x, const char *class, ses_err *e);

/* Does the pattern match the name? number: what # and @ matched, -1: nothing. */
bool ses_tf_match(const char *pattern, const char *name, int64_t number[2]);

/* tf_names.c: adds the tensors of a shard under transformers' names. */
bool ses_tf_add(ses_safetensors *s, const ses_tf_family *f, const ses_tf_index *x, int64_t shard,
                const void *bytes, const char *file, ses_err *e);

/* tf_config.c: config.json of a checkpoint. original: the family's config file, or NULL. */
ses_json_doc *ses_tf_config_new(const ses_tf_index *x, const ses_tf_family *f, const ses_json *original,
                                ses_err *e);

#endif
