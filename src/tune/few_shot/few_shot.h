/* Additions of a method that learns from few examples to a fine-tuning run: another task, patterns, unlabeled
 * texts, soft labels. Everything is borrowed; it outlives the run. */
#ifndef SES_TUNE_FEW_SHOT_H
#define SES_TUNE_FEW_SHOT_H

#include "task/prompt/pattern_file.h"
#include "tune/finetuner.h"

typedef struct ses_few_shot {
    const ses_finetune_task *task; /* instead of the task of the options */
    const ses_patterns *patterns;  /* instead of a file */

    /* Cloze tasks: further sequences in each batch, whose masked tokens are predicted. */
    const ses_examples *unlabeled; /* as many texts as a batch has (PET); NULL: none */
    double mlm_weight;             /* loss = (1 - weight) task + weight MLM */
    bool decoupled;                /* ADAPET: decoupled label loss and label conditioning */

    /* Classifiers: scores [rows of training, labels] that are learned instead of the labels (PET). */
    const float *soft;
    double temperature;

    /* SetFit: pairs of each text with texts of its own label, and as many of another label. */
    int64_t pairs;
    int64_t batch_pairs; /* pairs of a batch */
} ses_few_shot;

#endif
