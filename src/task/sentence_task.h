/* Shared by the tasks on sentence encoders (embed, similarity): options, and one vector for each text. A
 * task's option struct begins with ses_sentence_args, its pipeline state with ses_sentence_task. The
 * pipeline owns the encoder unless it is shared. */
#ifndef SES_TASK_SENTENCE_TASK_H
#define SES_TASK_SENTENCE_TASK_H

#include "pipeline_impl.h"

typedef struct ses_sentence_args {
    const char *pooling, *prompt, *prompt_name;
    int64_t layer;
    bool normalize, no_normalize;
    int truncation_side; /* 0: left, 1: right, -1: the default of the tokenizer */
} ses_sentence_args;

extern const ses_opt_table ses_sentence_options_table; /* offsets relative to ses_sentence_args */

typedef struct ses_sentence_task {
    ses_output output;      /* "sentence_embedding" of the current batch */
    ses_string prompt;      /* put before each text */
    int32_t prompt_tokens;  /* at the start of each sequence, if the encoder does not pool them; else 0 */
    bool ends_with_special; /* the prompt alone is followed by a special token */
} ses_sentence_task;

/* Hooks of a task. */
bool ses_sentence_task_load(ses_pipeline *p, ses_err *e);
bool ses_sentence_task_open(ses_pipeline *p, ses_err *e);
bool ses_sentence_task_forward(ses_pipeline *p, const ses_batch *b, const ses_output_request *request,
                               ses_outputs *out, ses_err *e);

/* Encodes a text, after the prompt, as the request's next sequence; NULL after an error. */
ses_seq *ses_sentence_task_encode(ses_pipeline *p, ses_request *r, ses_string text, ses_err *e);
/* The vector of the sequence being collected. */
ses_output_rows ses_sentence_task_vector(ses_pipeline *p, const ses_seq *q, ses_err *e);

#endif
