/* `sesame run`: runs one batch at a time and shows each sequence by the views of the model's heads.
 * Ownership: the run command owns everything in ses_run_view. Threads: main thread only. */
#ifndef SES_CLI_RUN_MODEL_H
#define SES_CLI_RUN_MODEL_H

#include "base/json/json_helpers.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "id_reader.h"
#include "model/model_desc.h"
#include "sesame/tokenizer.h"

typedef struct ses_run_args {
    ses_compute_args compute;
    ses_opt_list ids;
    const char *class_name, *adapter;
    int64_t batch_tokens, top, position, mask_id, choices, max_answer, layer, head;
    bool logits, hidden_states, attentions, strict, lean;
} ses_run_args;

typedef struct ses_run_view {
    const ses_run_args *a;
    const ses_term *term; /* stdout */
    ses_device *dev;
    ses_model *model;
    ses_tape *tape;
    ses_tokenizer *tokenizer; /* NULL: none readable; ids are shown */
    ses_id_batch batch;
    ses_outputs out;    /* outputs of the current batch */
    ses_json_writer *w; /* current result; NULL: text output */
    float *row;         /* buffer of ses_run_rows and ses_run_values */
    size_t row_cap;
    int64_t sequences, tokens; /* processed */
} ses_run_view;

/* Output by name: find returns NULL if missing, output requires it. */
const ses_output *ses_run_find(const ses_run_view *r, const char *name);
const ses_output *ses_run_output(const ses_run_view *r, const char *name);

/* Tokens of a sequence. Its rows in outputs start at `first`. */
typedef struct ses_token_slice {
    const int32_t *id;
    int64_t first, n;
} ses_token_slice;
ses_token_slice ses_run_input_tokens(const ses_run_view *r, int64_t s);
ses_token_slice ses_run_target_tokens(const ses_run_view *r, int64_t s);
/* The tokens of the rows of o. */
ses_token_slice ses_run_output_tokens(const ses_run_view *r, const ses_output *o, int64_t s);
bool ses_model_reads_target(const ses_model *m); /* its decoder has its own input */

/* Columns of a row. */
int64_t ses_run_cols(const ses_output *o);

/* Rows [first, first + n) of an output on the host, valid until the next call; NULL on failure. */
const float *ses_run_rows(ses_run_view *r, const ses_output *o, int64_t first, int64_t n, ses_err *e);

/* n values from index `first`, for outputs without rows. */
const float *ses_run_values(ses_run_view *r, const ses_output *o, int64_t first, int64_t n, ses_err *e);

/* "103 [MASK]", or the id alone if its text is unknown. Returns buf. */
enum { SES_TOKEN_TEXT = 80 };
const char *ses_run_token_text(const ses_run_view *r, int32_t id, char buf[SES_TOKEN_TEXT]);
/* A member, if the text is known. */
void ses_json_member_token(const ses_run_view *r, const char *key, int64_t id);

/* log(sum(exp(x))) in double precision: exp(x - this) is the softmax. */
double ses_run_log_sum_exp(const float *x, int64_t n);

/* The k highest scores, best first: offer each candidate; at most `cap` are kept. */
typedef struct ses_top_score {
    int64_t i, j; /* candidate: an index, or a span */
    double score;
} ses_top_score;
void ses_top_scores_offer(ses_top_score *best, int64_t *n, int64_t cap, ses_top_score x);
/* Returns their number. */
int64_t ses_top_scores(ses_top_score *best, int64_t cap, const float *x, int64_t n);

/* Shows the outputs of a head for sequence s (the first of a question): as text, or as members of r->w. */
typedef bool ses_view_fn(ses_run_view *r, const ses_head_use *use, int64_t s, ses_err *e);
typedef struct ses_view {
    const ses_head *head;
    ses_view_fn *show;
} ses_view;
ses_view_fn *ses_view_for_head(const ses_head *h);

/* Views of outputs that do not belong to a head. */
bool ses_view_vectors(ses_run_view *r, int64_t s, ses_err *e); /* hidden states of a model without a head */
bool ses_view_hidden_states(ses_run_view *r, int64_t s, ses_err *e);
bool ses_view_attentions(ses_run_view *r, int64_t s, ses_err *e);

/* Draws p [queries, keys] in shades, with the position and token of each row. */
void ses_heatmap_print(const ses_run_view *r, const float *p, int64_t queries, int64_t keys,
                       const int32_t *ids);

#endif
