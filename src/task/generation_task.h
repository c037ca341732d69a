/* What the tasks that write have in common: options, prompts, generation, texts. */
#ifndef SES_TASK_WRITING_H
#define SES_TASK_WRITING_H

#include "generate/generate_impl.h"
#include "task.h"

typedef struct ses_template ses_template;

enum { SES_WRITING_OPTIONS = 41 };

typedef struct ses_writing_args {
    ses_generate_options o;          /* what was given of it: */
    bool given[SES_WRITING_OPTIONS]; /* by the option's place in the table */
    int do_sample, full_text, renormalize;
    ses_list stop, bad_words, suppress, begin_suppress, eos, forced_eos;
    const char *prefix, *template, *task, *src_lang, *tgt_lang;
    int64_t shots, forced_bos;
    bool stream, logprobs;
} ses_writing_args;

extern const ses_opt ses_writing_opt[SES_WRITING_OPTIONS];

typedef struct ses_writing { /* a pipeline's */
    ses_generation *folder;
    ses_generate_options o;
    ses_template *template;
    ses_string prefix;
    int32_t src_lang; /* -1: as the tokenizer does it */
    bool full_text;   /* the prompt is part of the answer */
} ses_writing;

typedef struct ses_writing_job { /* an item's */
    ses_string prompt;
    ses_row *text; /* [n] */
    size_t n;
} ses_writing_job;

bool ses_writing_open(ses_pipeline *p, ses_err *e);
void ses_writing_close(ses_pipeline *p);
bool ses_writing_encode(ses_pipeline *p, ses_job *j, ses_err *e);
bool ses_writing_run(ses_pipeline *p, ses_job *const *job, ses_seq *const *seq, size_t n, ses_err *e);
bool ses_writing_finish(ses_pipeline *p, ses_job *j, ses_result *r, const ses_shape *shape, ses_err *e);

/* Everything of a task that writes but its words. */
#define SES_WRITING_TASK(finish_)                                                                           \
    .opt = ses_writing_opt, .n_opt = SES_WRITING_OPTIONS, .args_size = sizeof(ses_writing_args),            \
    .self_size = sizeof(ses_writing), .job_size = sizeof(ses_writing_job), .streams = true, .writes = true, \
    .open = ses_writing_open, .close = ses_writing_close, .encode = ses_writing_encode,                     \
    .run = ses_writing_run, .finish = finish_

/* prompt_template.c: prompts from a file with an instruction, examples and the place of the text. */
ses_template *ses_template_open(const char *path, ses_err *e);
ses_template *ses_template_new(ses_json_doc *doc, ses_err *e); /* doc is the template's from here on */
void ses_template_free(ses_template *t);
/* The prompt for a text with so many examples (below 0: all there are); to be freed with ses_free. */
char *ses_template_prompt(const ses_template *t, ses_string text, ses_string pair, int64_t shots, size_t *n,
                          ses_err *e);
size_t ses_template_stops(const ses_template *t, const char *const **stop);

#endif
