/* Shared by the tasks that generate text: options, prompts, generation, decoding. The pipeline's state is a
 * ses_generation_task, a request's a ses_generation_request; both are owned by their pipeline or request. */
#ifndef SES_TASK_GENERATION_TASK_H
#define SES_TASK_GENERATION_TASK_H

#include "pipeline_impl.h"
#include "prompt_template.h"
#include "sesame/generate.h"

/* Indices into ses_generation_opt, in the order of the help. */
typedef enum {
    SES_GEN_MAX_NEW_TOKENS,
    SES_GEN_MAX_LENGTH,
    SES_GEN_MIN_NEW_TOKENS,
    SES_GEN_MIN_LENGTH,
    SES_GEN_NUM_BEAMS,
    SES_GEN_NUM_BEAM_GROUPS,
    SES_GEN_NUM_RETURN_SEQUENCES,
    SES_GEN_LENGTH_PENALTY,
    SES_GEN_DIVERSITY_PENALTY,
    SES_GEN_EARLY_STOPPING,
    SES_GEN_DO_SAMPLE,
    SES_GEN_TEMPERATURE, /* first option of sampling */
    SES_GEN_TOP_K,
    SES_GEN_TOP_P,
    SES_GEN_MIN_P,
    SES_GEN_TYPICAL_P,
    SES_GEN_EPSILON_CUTOFF,
    SES_GEN_ETA_CUTOFF,
    SES_GEN_TOP_H,
    SES_GEN_SEED, /* last option of sampling */
    SES_GEN_REPETITION_PENALTY,
    SES_GEN_ENCODER_REPETITION_PENALTY,
    SES_GEN_PRESENCE_PENALTY,
    SES_GEN_FREQUENCY_PENALTY,
    SES_GEN_NO_REPEAT_NGRAM_SIZE,
    SES_GEN_ENCODER_NO_REPEAT_NGRAM_SIZE,
    SES_GEN_STOP_STRINGS,
    SES_GEN_BAD_WORDS,
    SES_GEN_SUPPRESS_TOKENS,
    SES_GEN_BEGIN_SUPPRESS_TOKENS,
    SES_GEN_EOS_TOKEN_ID,
    SES_GEN_FORCED_BOS_TOKEN_ID,
    SES_GEN_RETURN_FULL_TEXT,
    SES_GEN_PREFIX,
    SES_GEN_TEMPLATE,
    SES_GEN_SHOTS,
    SES_GEN_TASK,
    SES_GEN_SRC_LANG,
    SES_GEN_TGT_LANG,
    SES_GEN_STREAM,
    SES_GEN_RENORMALIZE_LOGITS,
    SES_GEN_LOGPROBS,
    SES_GEN_TOP_LOGPROBS,
    SES_GEN_PROMPT_LOGPROBS,
    SES_GEN_FORCED_EOS_TOKEN_ID,
    SES_GENERATION_OPTION_COUNT
} ses_generation_option;

typedef struct ses_generation_args {
    ses_generate_options o;                    /* the fields whose option was set */
    bool was_set[SES_GENERATION_OPTION_COUNT]; /* by ses_generation_option; only options that write to o */
    int do_sample, full_text, renormalize;     /* 0 or 1; -1: not set */
    ses_opt_list stop, bad_words, suppress, begin_suppress, eos, forced_eos;
    const char *prefix, *template, *task, *src_lang, *tgt_lang;
    int64_t shots, forced_bos;
    bool stream, logprobs, prompt_logprobs;
} ses_generation_args;

extern const ses_opt ses_generation_opt[SES_GENERATION_OPTION_COUNT];
extern const char ses_generation_item_settings[];

typedef struct ses_generation_task {
    ses_generation_config *config; /* generation_config.json */
    ses_generate_options o;        /* the folder's, with the pipeline's settings applied */
    ses_prompt_template *template; /* NULL: texts are prompts */
    ses_string prefix;
    int32_t src_lang; /* language token of the source; -1: the tokenizer's default */
} ses_generation_task;

/* The end of a generated text: why, and after how many tokens. */
typedef struct ses_generation_end {
    ses_finish_reason finish;
    int64_t tokens;
} ses_generation_end;

typedef struct ses_generation_run ses_generation_run;

typedef struct ses_generation_request {
    ses_string prompt;
    const ses_generate_options *o; /* the pipeline's, or a copy with the item's settings */
    ses_generate_options *own;     /* o, if it is the request's; else NULL */
    ses_id_bias *bias;             /* own->sequence_bias, [bias_capacity]; NULL: none has been added */
    size_t bias_capacity;
    bool hides_stop;         /* texts end before the stop string; default: after it */
    ses_generation_run *run; /* NULL: not started, or finished */
    /* results */
    ses_result_row *text;    /* [n] */
    ses_generation_end *end; /* [n] */
    size_t n;
    bool cancelled; /* the texts are incomplete */
} ses_generation_request;

/* Hooks of a task; finish takes the schema, so that each task has a finish of its own. */
bool ses_generation_task_open(ses_pipeline *p, ses_err *e);
void ses_generation_task_close(ses_pipeline *p);
bool ses_generation_task_encode(ses_pipeline *p, ses_request *r, ses_err *e);
bool ses_generation_task_run(ses_pipeline *p, ses_request *const *request, ses_seq *const *seq, size_t n,
                             ses_err *e);
bool ses_generation_task_finish(ses_request *r, ses_result *out, const ses_result_schema *schema, ses_err *e);

/* The options ask for one text for each prompt, and nothing else about it. */
static inline bool ses_generation_has_one_text(const ses_generation_args *a)
{
    return a->o.num_return_sequences <= 1 && !a->logprobs;
}

/* generation_request.c: settings of a request that are not options of the task. Call them before it
 * starts. */

/* The request's own options: a copy of the pipeline's. Lists in them must live as long as the request; r->mem
 * may own them. NULL: no memory. */
ses_generate_options *ses_generation_request_own_options(ses_request *r, ses_err *e);
/* Adds a stop string, copied. Fails if it is empty or contains NUL. */
bool ses_generation_request_add_stop(ses_request *r, ses_string stop, ses_err *e);
/* Adds to the score of a token at each position ("logit_bias"). */
bool ses_generation_request_add_bias(ses_request *r, int32_t id, double bias, ses_err *e);
/* A request whose prompt is given as token ids instead of item->text. NULL: an id is outside the vocabulary,
 * or the prompt is too long. */
ses_request *ses_generation_request_from_ids(ses_pipeline *p, const ses_item *item, const int32_t *id,
                                             size_t n, ses_err *e);

/* generation_run.c: requests on a generator, for programs that run requests of several clients together. */

/* A generated token; borrowed during the callback. */
typedef struct ses_generation_token {
    const ses_token_event *event; /* sequence, log-probabilities, top tokens, end of the text */
    int32_t id;
    ses_string token; /* the tokenizer's spelling; n 0: the id is not in its vocabulary */
    bool special;     /* a special token, which texts leave out */
    /* Text that is final with this token: an incomplete character, and a space that clean-up may remove, wait
     * for the next token. The pieces of a sequence add up to its text, without the prompt. */
    ses_string text;
} ses_generation_token;

typedef struct ses_generation_callbacks {
    /* After each token; returns false to cancel the request. NULL: none. A request with beams must have
     * none. */
    bool (*on_token)(void *ctx, ses_request *r, const ses_generation_token *t);
    /* Once, after the last token. r->error: why the request failed; NULL: the task's finish can be called,
     * also if it was cancelled. */
    void (*on_finish)(void *ctx, ses_request *r);
    void *ctx;
} ses_generation_callbacks;

/* Adds an encoded request to a generator of the same model. p decodes texts during ses_generator_step: it may
 * be another pipeline than the one that has encoded r, with the same task and tokenizer. r, and the pipeline
 * that encoded it, must stay until on_finish. False and an error: it was refused; on_finish is not called. */
bool ses_generation_task_start(ses_pipeline *p, ses_request *r, ses_generator *g,
                               const ses_generation_callbacks *callbacks, ses_err *e);
/* Cancels it; on_finish follows in the current or next step. Returns false if it has finished. In the thread
 * of the generator. */
bool ses_generation_task_cancel(ses_request *r);

/* generation_settings.c: fills task->o and the rest of the state; checks the settings. */
bool ses_generation_settings_read(ses_pipeline *p, ses_err *e);
/* Applies the options that were set on top of *o. */
void ses_generation_settings_apply(const ses_generation_args *a, ses_generate_options *o);
/* A minimum must not be above its maximum. */
bool ses_generation_check_lengths(const ses_generate_options *o, ses_err *e);

/* The model has an encoder that reads the prompt. */
static inline bool ses_generation_has_encoder(const ses_pipeline *p)
{
    return p->head->head == &ses_head_seq2seq_lm;
}

/* All members of a task that generates text except its words, heads and schemas. */
#define SES_GENERATION_TASK(finish_)                                                           \
    .opt = ses_generation_opt, .n_opt = SES_GENERATION_OPTION_COUNT,                           \
    .args_size = sizeof(ses_generation_args), .item_settings = ses_generation_item_settings,   \
    .state_size = sizeof(ses_generation_task), .request_size = sizeof(ses_generation_request), \
    .can_stream = true, .generates = true, .open = ses_generation_task_open,                   \
    .close = ses_generation_task_close, .encode = ses_generation_task_encode,                  \
    .run_batch = ses_generation_task_run, .finish = finish_

#endif
