/* Structured pruning of a fine-tuned model: heads by gradient importance, feed-forward rows by Taylor score,
 * layers; written as a smaller model folder.
 *
 * Ownership: options are borrowed during the call. Threads: one thread; the device has its own. */
#ifndef SES_TUNE_PART_PRUNING_H
#define SES_TUNE_PART_PRUNING_H

#include "model/reduce.h"
#include "sesame/finetune.h"

/* Order in which layers are removed. SES_LAYERS_ALTERNATE keeps layers at equal distances, the first one
 * included. */
typedef enum {
    SES_LAYERS_FROM_TOP,
    SES_LAYERS_FROM_BOTTOM,
    SES_LAYERS_ALTERNATE,
    SES_LAYERS_BY_IMPORTANCE
} ses_layer_order;

typedef struct ses_part_pruning_options {
    ses_predictor_options predictor; /* task (NULL: that of the model's head), columns, callback */
    const char *data;                /* labeled file; NULL: neither scores nor importance */
    const char *output;              /* folder */
    double heads, ffn;               /* removed fraction, below 1; 0: none */
    int64_t layers;                  /* layers that stay; 0: all */
    ses_layer_order order;
    bool by_layer;        /* remove the same fraction of each layer; false: compare parts of all layers */
    int64_t multiple;     /* feed-forward widths become multiples of it (in narrow blocks: of less); 0: any */
    int64_t max_examples; /* sequences that importance is computed from, drawn at random; 0: all */
    ses_reduced_form form;
    bool overwrite;
    bool no_score; /* do not evaluate the model on data before and after */
} ses_part_pruning_options;

/* Size and score of a model. */
typedef struct ses_part_pruning_figures {
    int64_t layers, heads, rows; /* all layers together */
    int64_t parameters;          /* the written form has them, with zeros if it is filled */
    double flops; /* multiplications and additions in the layers, for SES_PART_PRUNING_TOKENS tokens */
    double score; /* NaN: none */
} ses_part_pruning_figures;

enum { SES_PART_PRUNING_TOKENS = 128 };

typedef struct ses_part_pruning_result {
    ses_part_pruning_figures before, after;
    char metric[64];  /* name of the score; "": none */
    int64_t examples; /* sequences that importance was computed from; 0: none were needed */
} ses_part_pruning_result;

/* Prunes the model in folder dir and writes the result. False: bad options (SES_EUSAGE), a model that cannot
 * be pruned, unreadable data, or the callback has returned false; nothing is written then. */
bool ses_part_pruning_run(const char *dir, const ses_part_pruning_options *o, ses_device *d,
                          ses_part_pruning_result *r, ses_err *e);

#endif
