/* Prompts of an evaluation: the texts of a document by the templates of its task, with examples before it.
 *
 * Ownership: the caller frees prompts; the task must outlive them. Threads: one at a time. */
#ifndef SES_TUNE_EVAL_PROMPT_H
#define SES_TUNE_EVAL_PROMPT_H

#include "eval_task.h"

typedef struct ses_prompt_options {
    const char *file;    /* documents: a file, or a folder with the task's files; NULL: the task's file */
    const char *fewshot; /* file of examples; NULL: the task's, in the folder of `file`, else `file` itself */
    int64_t shots;       /* examples before each document; below 0: the task's number */
    uint64_t seed;
    int64_t limit; /* documents, at most; 0: all */
} ses_prompt_options;

typedef struct ses_prompts {
    const ses_eval_task *task;
    ses_docs *docs, *pool; /* pool: of examples; may be docs */
    int64_t shots;
    uint64_t seed;
    size_t n;              /* documents to evaluate */
    size_t *drawn;         /* [shots] scratch */
    ses_buf text, example; /* scratch */
} ses_prompts;

/* Reads the documents and the examples. Fails if a template names a column that they do not have, or if there
 * are fewer examples than `shots`. */
bool ses_prompts_open(ses_prompts *p, const ses_eval_task *t, const ses_prompt_options *o, ses_err *e);
void ses_prompts_free(ses_prompts *p); /* also after a failed open */

/* Each appends a text of document i. */
bool ses_prompts_context(ses_prompts *p, size_t i, ses_buf *out, ses_err *e); /* with examples */
bool ses_prompts_target(ses_prompts *p, size_t i, ses_buf *out, ses_err *e);
bool ses_prompts_counted(ses_prompts *p, size_t i, ses_buf *out,
                         ses_err *e); /* doc_to_count, or the target */

/* Choices of a document: text[end[k - 1] .. end[k]) is choice k. Zeroed: empty. */
typedef struct ses_choices {
    ses_buf text;
    size_t *end;
    size_t n, cap;
    int64_t right;
} ses_choices;
bool ses_prompts_choices(ses_prompts *p, size_t i, ses_choices *c, ses_err *e);
ses_string ses_choices_at(const ses_choices *c, size_t k);
void ses_choices_free(ses_choices *c);

/* The examples of document i: indices in the pool, [shots], valid until the next call. */
const size_t *ses_prompts_draw(ses_prompts *p, size_t i, ses_err *e);

#endif
