/* What the tasks that write have in common: options, prompts, generation, texts. */
#ifndef SES_TASK_WRITING_H
#define SES_TASK_WRITING_H

#include "generate/generate_impl.h"
#include "task.h"

typedef struct ses_prompt_template ses_prompt_template;

enum { SES_GENERATION_OPTION_COUNT = 41 };

typedef struct ses_generation_args {
    ses_generate_options o;                  /* what was given of it: */
    bool given[SES_GENERATION_OPTION_COUNT]; /* by the option's place in the table */
    int do_sample, full_text, renormalize;
    ses_opt_list stop, bad_words, suppress, begin_suppress, eos, forced_eos;
    const char *prefix, *template, *task, *src_lang, *tgt_lang;
    int64_t shots, forced_bos;
    bool stream, logprobs;
} ses_generation_args;

extern const ses_opt ses_generation_opt[SES_GENERATION_OPTION_COUNT];

typedef struct ses_generation_task { /* a pipeline's */
    ses_generation_config *folder;
    ses_generate_options o;
    ses_prompt_template *template;
    ses_string prefix;
    int32_t src_lang; /* -1: as the tokenizer does it */
    bool full_text;   /* the prompt is part of the answer */
} ses_generation_task;

typedef struct ses_generation_request { /* an item's */
    ses_string prompt;
    ses_result_row *text; /* [n] */
    size_t n;
} ses_generation_request;

bool ses_generation_task_open(ses_pipeline *p, ses_err *e);
void ses_generation_task_close(ses_pipeline *p);
bool ses_generation_task_encode(ses_pipeline *p, ses_request *j, ses_err *e);
bool ses_generation_task_run(ses_pipeline *p, ses_request *const *job, ses_seq *const *seq, size_t n,
                             ses_err *e);
bool ses_generation_task_finish(ses_pipeline *p, ses_request *j, ses_result *r,
                                const ses_result_schema *shape, ses_err *e);

/* Everything of a task that writes but its words. */
#define SES_GENERATION_TASK(finish_)                                                    \
    .opt = ses_generation_opt, .n_opt = SES_GENERATION_OPTION_COUNT,                    \
    .args_size = sizeof(ses_generation_args), .self_size = sizeof(ses_generation_task), \
    .job_size = sizeof(ses_generation_request), .can_stream = true, .writes = true,     \
    .open = ses_generation_task_open, .close = ses_generation_task_close,               \
    .encode = ses_generation_task_encode, .run = ses_generation_task_run, .finish = finish_

/* prompt_template.c: prompts from a file with an instruction, examples and the place of the text. */
ses_prompt_template *ses_prompt_template_open(const char *path, ses_err *e);
ses_prompt_template *ses_prompt_template_new(ses_json_doc *doc,
                                             ses_err *e); /* doc is the template's from here on */
void ses_prompt_template_free(ses_prompt_template *t);
/* The prompt for a text with so many examples (below 0: all there are); to be freed with ses_free. */
char *ses_prompt_template_fill(const ses_prompt_template *t, ses_string text, ses_string pair, int64_t shots,
                               size_t *n, ses_err *e);
size_t ses_prompt_template_stops(const ses_prompt_template *t, const char *const **stop);

#endif
