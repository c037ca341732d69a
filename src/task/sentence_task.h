/* What tasks on sentence encoders share: one vector for each text. */
#ifndef SES_TASK_SENTENCE_TASK_H
#define SES_TASK_SENTENCE_TASK_H

#include "sesame/sentence.h"
#include "task.h"

typedef struct ses_sentence_args { /* first in the options' struct */
    const char *pooling, *prompt, *prompt_name;
    int64_t layer;
    bool normalize, no_normalize;
} ses_sentence_args;

typedef struct ses_sentence_task { /* first in the pipeline's own */
    ses_sentence *sentence;
    ses_output output;
    ses_string prompt;
    int32_t prompt_tokens; /* at the front of each sequence, where these are not pooled */
    bool closed;           /* a special token stands behind a prompt alone */
} ses_sentence_task;

#define SES_SENTENCE_OPT(args, field)                                                                       \
    { .name = "pooling",                                                                                    \
      .type = SES_OPT_TEXT,                                                                                 \
      .offset = offsetof(args, field.pooling),                                                              \
      .value = "WAY",                                                                                       \
      .help =                                                                                               \
          "how tokens' vectors become one: cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken, " \
          "or several joined, cls,max; without it as the folder says, else mean" },                         \
        { .name = "layer",                                                                                  \
          .type = SES_OPT_INT,                                                                              \
          .offset = offsetof(args, field.layer),                                                            \
          .def = "0",                                                                                       \
          .min = -1024,                                                                                     \
          .max = 1024,                                                                                      \
          .help = "whose vectors: 1 is the first layer, -1 the last, -2 the one before; 0: the last" },     \
        { .name = "normalize",                                                                              \
          .type = SES_OPT_FLAG,                                                                             \
          .offset = offsetof(args, field.normalize),                                                        \
          .help = "make vectors of length 1, whatever the folder says" },                                   \
        { .name = "no-normalize",                                                                           \
          .type = SES_OPT_FLAG,                                                                             \
          .offset = offsetof(args, field.no_normalize),                                                     \
          .help = "leave their length as it comes" },                                                       \
        { .name = "prompt",                                                                                 \
          .type = SES_OPT_TEXT,                                                                             \
          .offset = offsetof(args, field.prompt),                                                           \
          .value = "TEXT",                                                                                  \
          .help = "put this in front of each text" },                                                       \
    {                                                                                                       \
        .name = "prompt-name", .type = SES_OPT_TEXT, .offset = offsetof(args, field.prompt_name),           \
        .value = "NAME",                                                                                    \
        .help = "put the folder's prompt of this name in front; without it the folder's default"            \
    }

/* Slots of a task. */
bool ses_sentence_task_load(ses_pipeline *p, ses_err *e);
bool ses_sentence_task_open(ses_pipeline *p, ses_err *e);
void ses_sentence_task_close(ses_pipeline *p);
bool ses_sentence_task_forward(ses_pipeline *p, const ses_batch *b, const ses_output_request *want,
                               ses_outputs *out, ses_err *e);

ses_seq *ses_sentence_task_add(ses_pipeline *p, ses_request *j, ses_string text,
                               ses_err *e); /* a text's sequence */
ses_output_rows ses_sentence_task_vector(ses_pipeline *p, const ses_seq *q,
                                         ses_err *e); /* of the one being taken */

#endif
