/* `sesame run`: one batch at a time through the model, then each sequence shown by the views of its heads. */
#ifndef SES_CLI_RUN_MODEL_H
#define SES_CLI_RUN_MODEL_H

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

typedef struct ses_runner {
    const ses_run_args *a;
    const ses_term *term; /* of stdout */
    ses_device *dev;
    ses_model *model;
    ses_tape *tape;
    ses_tokenizer *tokenizer; /* NULL: the folder has none that can be read; ids must do */
    ses_id_batch lines;
    ses_outputs out;    /* of the batch in hand */
    ses_json_writer *w; /* of the line being written; NULL: text */
    float *row;         /* what ses_run_rows brought last */
    size_t row_room;
    int64_t sequences, tokens; /* done */
} ses_runner;

/* The output of that name: find answers NULL where there is none, output takes it for granted. */
const ses_output *ses_run_find(const ses_runner *r, const char *name);
const ses_output *ses_run_output(const ses_runner *r, const char *name);

/* The tokens of sequence s: of what the model reads, or its decoder. Rows of outputs count from `first`. */
typedef struct ses_token_slice {
    const int32_t *id;
    int64_t first, n;
} ses_token_slice;
ses_token_slice ses_run_input_tokens(const ses_runner *r, int64_t s);
ses_token_slice ses_run_target_tokens(const ses_runner *r, int64_t s);
ses_token_slice ses_run_output_tokens(const ses_runner *r, const ses_output *o,
                                      int64_t s); /* those its rows stand for */
bool ses_model_reads_target(const ses_model *m);  /* its decoder reads something of its own */

/* How many numbers a row of the output has. */
int64_t ses_run_cols(const ses_output *o);

/* Rows [first, first + n) of an output, on the host until the next call; NULL: no memory. */
const float *ses_run_rows(ses_runner *r, const ses_output *o, int64_t first, int64_t n, ses_err *e);

/* The same of an output without rows: n numbers from `first`. */
const float *ses_run_values(ses_runner *r, const ses_output *o, int64_t first, int64_t n, ses_err *e);

/* "103 [MASK]", or the id alone where its text is not known. Returns buf. */
enum { SES_TOKEN_TEXT = 80 };
const char *ses_run_token_text(const ses_runner *r, int32_t id, char buf[SES_TOKEN_TEXT]);
void ses_json_member_token(const ses_runner *r, const char *key,
                           int64_t id); /* a member, where the text is known */

/* log of the sum of exponentials: exp(x - this) is a softmax. */
double ses_log_sum(const float *x, int64_t n);

/* The highest of scores, best first. Offer each, keep `room`. */
typedef struct ses_top_score {
    int64_t i, j; /* what the score is of */
    double score;
} ses_top_score;
void ses_top_scores_offer(ses_top_score *best, int64_t *n, int64_t room, ses_top_score x);
int64_t ses_top_scores(ses_top_score *best, int64_t room, const float *x, int64_t n); /* how many there are */

/* How one head's outputs for sequence s (a question's first) are shown: as text, or as members of r->w. */
typedef bool ses_view_fn(ses_runner *r, const ses_head_use *use, int64_t s, ses_err *e);
typedef struct ses_view {
    const ses_head *head;
    ses_view_fn *show;
} ses_view;
ses_view_fn *ses_view_for_head(const ses_head *h);

/* What is asked for besides the heads. */
bool ses_view_vectors(ses_runner *r, int64_t s, ses_err *e); /* of a model without heads */
bool ses_view_hidden_states(ses_runner *r, int64_t s, ses_err *e);
bool ses_view_attentions(ses_runner *r, int64_t s, ses_err *e);

/* Columns a bar may take after `used` others. */
int ses_view_bar_width(const ses_term *t, int used);
void ses_json_put_floats(ses_json_writer *w, const float *x, int64_t n); /* an array */

/* A picture of p [queries, keys] in shades, rows marked by position and token. */
void ses_heatmap_print(const ses_runner *r, const float *p, int64_t queries, int64_t keys,
                       const int32_t *ids);

#endif
