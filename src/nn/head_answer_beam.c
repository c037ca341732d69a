/* Question answering by beam search (Yang et al. 2019, XLNet): the end of an answer depends on its start. The
 * best start_n_top starts are each continued with their best end_n_top ends; a third score tells whether the
 * question has no answer. In training the end is predicted from the given start. */
#include "nn.h"

#include "base/alloc.h"

#include <math.h>

static int64_t classes(const ses_config *c)
{
    (void)c;
    return 2; /* pair_labels: does the question have no answer? */
}

/* h->out: start; dense, norm, dense2: end; label_scores, custom[0]: no answer. */
static void add(ses_head_params *h, ses_store *s, const ses_config *c, ses_tensor *token)
{
    int64_t C = ses_head_width(c);
    (void)token;
    h->out = ses_dense_add(s, 1, C, SES_BIAS, "beam.start");
    h->dense = ses_dense_add(s, C, 2 * C, SES_BIAS, "beam.end.dense");
    h->norm = ses_norm_add(s, C, SES_NORM_LAYER, "beam.end.norm");
    h->dense2 = ses_dense_add(s, 1, C, SES_BIAS, "beam.end.out");
    h->label_scores = ses_dense_add(s, C, 2 * C, SES_BIAS, "beam.none.dense");
    h->custom[0] = ses_dense_add(s, 1, C, SES_NO_BIAS, "beam.none.out");
}

/* Logits of tokens that cannot be part of an answer become -1e30. */
static ses_tensor *mask(ses_forward_ctx *p, ses_tensor *x)
{
    static const ses_real masked = -1e30f;
    const int32_t *allowed = p->batch->answer_mask;
    if (!allowed) return x;
    ses_real *y = ses_tape_host_alloc(p->tape, (size_t)p->in.tokens, sizeof *y);
    for (int64_t t = 0; y && t < p->in.tokens; t++) y[t] = allowed[t] ? 0 : masked;
    return y ? ses_add(p->tape, x, ses_tape_input(p->tape, y, SES_DIM(p->in.tokens, 1))) : NULL;
}

/* Rows of x: row[s] for each sequence, in its tokens; per_token: repeated for all tokens of s. */
static ses_tensor *states(ses_forward_ctx *p, ses_tensor *x, const int32_t *row, bool per_token)
{
    const int32_t *cu = p->in.host_cu_seqlens;
    int64_t n = per_token ? p->in.tokens : p->in.seqs, at = 0;
    int32_t *id = ses_tape_host_alloc(p->tape, (size_t)n, sizeof *id);
    for (int64_t s = 0; id && s < p->in.seqs; s++) {
        int32_t len = cu[s + 1] - cu[s], r = row ? row[s] : len - 1;
        if (r < 0 || r >= len) r = 0; /* its loss is ignored */
        for (int32_t k = 0; k < (per_token ? len : 1); k++) id[at++] = cu[s] + r;
    }
    return id ? ses_gather(p->tape, x, ses_tape_ints(p->tape, id, n)) : NULL;
}

static ses_tensor *end_logits(const ses_head_params *h, ses_forward_ctx *p, ses_tensor *x,
                              const int32_t *start)
{
    ses_tensor *both = ses_concat(p->tape, 2, (ses_tensor *[]){ x, states(p, x, start, true) });
    ses_tensor *y = ses_dense_run(p->tape, h->dense, both, SES_ACT_TANH);
    y = ses_norm_run(p->tape, h->norm, y, NULL, p->c->norm.eps);
    return mask(p, ses_dense_run(p->tape, h->dense2, y, SES_ACT_NONE));
}

/* [B, 1]: above 0 if the question has no answer. start: state of the start, [B, C]. */
static ses_tensor *none_logits(const ses_head_params *h, ses_forward_ctx *p, ses_tensor *x, ses_tensor *start)
{
    ses_tensor *cls = states(p, x, p->batch->choice_positions, false);
    ses_tensor *both = ses_concat(p->tape, 2, (ses_tensor *[]){ start, cls });
    return ses_dense_run(p->tape, h->custom[0], ses_dense_run(p->tape, h->label_scores, both, SES_ACT_TANH),
                         SES_ACT_NONE);
}

/* ---- training ---- */

static void add_loss(const ses_head_params *h, ses_forward_ctx *p, ses_tensor *x, ses_tensor *starts)
{
    const ses_batch *b = p->batch;
    int32_t *both = ses_tape_host_alloc(p->tape, 2 * (size_t)b->seqs, sizeof *both);
    ses_real *none = ses_tape_host_alloc(p->tape, (size_t)b->seqs, sizeof *none);
    if (!both || !none) return;
    for (int64_t s = 0; s < b->seqs; s++) both[2 * s] = b->starts[s], both[2 * s + 1] = b->ends[s];
    ses_tensor *y = ses_concat(p->tape, 2, (ses_tensor *[]){ starts, end_logits(h, p, x, b->starts) });
    ses_forward_add_loss(
        p, ses_span_cross_entropy(p->tape, y, p->in.cu_seqlens, ses_tape_ints(p->tape, both, 2 * b->seqs)));
    if (!b->pair_labels) return;
    for (int64_t s = 0; s < b->seqs; s++) none[s] = b->pair_labels[s] == 1;
    y = none_logits(h, p, x, states(p, x, b->starts, false));
    ses_tensor *target = ses_tape_input(p->tape, none, SES_DIM(b->seqs, 1));
    ses_forward_add_loss(p, ses_scale(p->tape, ses_target_loss(p->tape, y, target, SES_LOSS_BCE), 0.5));
}

/* ---- the beam ---- */

/* Reads logits [T, 1] and replaces them by probabilities, sequence by sequence. */
static bool read_probabilities(ses_forward_ctx *p, const ses_tensor *logits, ses_real *y)
{
    const int32_t *cu = p->in.host_cu_seqlens;
    if (!logits || !ses_tape_read(p->tape, logits, y)) return false;
    for (int64_t s = 0; s < p->in.seqs; s++) {
        double most = -INFINITY, sum = 0;
        for (int32_t t = cu[s]; t < cu[s + 1]; t++) most = fmax(most, (double)y[t]);
        for (int32_t t = cu[s]; t < cu[s + 1]; t++) sum += exp((double)y[t] - most);
        for (int32_t t = cu[s]; t < cu[s + 1]; t++) y[t] = (ses_real)(exp((double)y[t] - most) / sum);
    }
    return true;
}

/* The k tokens with the highest probability, best first; a short sequence leaves probabilities of 0. */
static void best(const ses_real *y, int32_t n, int64_t k, ses_real *probability, ses_real *index,
                 int64_t stride)
{
    for (int64_t j = 0; j < k; j++) {
        int32_t top = -1;
        for (int32_t t = 0; t < n; t++) {
            bool taken = false;
            for (int64_t i = 0; i < j; i++) taken |= (int32_t)index[i * stride] == t;
            if (!taken && (top < 0 || y[t] > y[top])) top = t;
        }
        probability[j * stride] = top < 0 ? 0 : y[top];
        index[j * stride] = (ses_real)(top < 0 ? 0 : top);
    }
}

typedef struct beam {
    int64_t starts, ends; /* start_n_top, end_n_top */
    ses_real *y;          /* [T] */
    ses_real *start, *start_index, *end, *end_index;
    int32_t *row; /* [B] */
} beam;

static bool beam_new(beam *b, ses_forward_ctx *p)
{
    size_t B = (size_t)p->in.seqs;
    b->starts = p->c->head.start_n_top, b->ends = p->c->head.end_n_top;
    size_t n = B * (size_t)b->starts, all = n * (size_t)b->ends;
    b->y = ses_tape_host_alloc(p->tape, (size_t)p->in.tokens, sizeof *b->y);
    b->start = ses_tape_host_alloc(p->tape, n, sizeof *b->start);
    b->start_index = ses_tape_host_alloc(p->tape, n, sizeof *b->start_index);
    b->end = ses_tape_host_alloc(p->tape, all, sizeof *b->end);
    b->end_index = ses_tape_host_alloc(p->tape, all, sizeof *b->end_index);
    b->row = ses_tape_host_alloc(p->tape, B, sizeof *b->row);
    return b->y && b->start && b->start_index && b->end && b->end_index && b->row;
}

static void output(ses_forward_ctx *p, const ses_real *x, int64_t cols, const char *name)
{
    ses_forward_output(p, SES_PER_SEQUENCE, ses_tape_input(p->tape, x, SES_DIM(p->in.seqs, cols)), "%s",
                       name);
}

/* Ends of start i of every sequence: transformers' order, rank of the end before rank of the start. */
static bool search_ends(const ses_head_params *h, ses_forward_ctx *p, ses_tensor *x, beam *b, int64_t i)
{
    const int32_t *cu = p->in.host_cu_seqlens;
    for (int64_t s = 0; s < p->in.seqs; s++) b->row[s] = (int32_t)b->start_index[s * b->starts + i];
    if (!read_probabilities(p, end_logits(h, p, x, b->row), b->y)) return false;
    for (int64_t s = 0; s < p->in.seqs; s++) {
        int64_t at = s * b->starts * b->ends + i;
        best(b->y + cu[s], cu[s + 1] - cu[s], b->ends, b->end + at, b->end_index + at, b->starts);
    }
    return true;
}

static void search(const ses_head_params *h, ses_forward_ctx *p, ses_tensor *x, ses_tensor *starts)
{
    const int32_t *cu = p->in.host_cu_seqlens;
    beam b;
    if (!starts || !beam_new(&b, p) || !read_probabilities(p, starts, b.y)) return;
    for (int64_t s = 0; s < p->in.seqs; s++)
        best(b.y + cu[s], cu[s + 1] - cu[s], b.starts, b.start + s * b.starts, b.start_index + s * b.starts,
             1);
    /* the expected start: mean of rows scaled by probability times length */
    ses_real *weight = ses_tape_host_alloc(p->tape, (size_t)p->in.tokens, sizeof *weight);
    if (!weight) return;
    for (int64_t s = 0; s < p->in.seqs; s++)
        for (int32_t t = cu[s]; t < cu[s + 1]; t++) weight[t] = b.y[t] * (ses_real)(cu[s + 1] - cu[s]);
    ses_tensor *scaled = ses_scale_rows(p->tape, x, ses_tape_input(p->tape, weight, SES_DIM(p->in.tokens)));
    ses_tensor *none = none_logits(h, p, x, ses_pool_rows(p->tape, scaled, p->in.cu_seqlens, SES_POOL_MEAN));
    for (int64_t i = 0; i < b.starts; i++)
        if (!search_ends(h, p, x, &b, i)) return;
    output(p, b.start, b.starts, "start_top_log_probs");
    output(p, b.start_index, b.starts, "start_top_index");
    output(p, b.end, b.starts * b.ends, "end_top_log_probs");
    output(p, b.end_index, b.starts * b.ends, "end_top_index");
    ses_forward_output(p, SES_PER_SEQUENCE, none, "cls_logits");
}

static void run(const ses_head_params *h, const ses_head_use *use, ses_forward_ctx *p, const ses_state *at)
{
    (void)use; /* outputs with fixed names */
    ses_tensor *starts = mask(p, ses_dense_run(p->tape, h->out, at->x, SES_ACT_NONE));
    bool labeled = p->batch->starts && p->batch->ends;
    if (labeled) add_loss(h, p, at->x, starts);
    if (p->request->logits || !labeled) search(h, p, at->x, starts);
}

const ses_head ses_head_answer_beam = { .name = "answer-beam",
                                        .peft_task = "QUESTION_ANS",
                                        .description = "answers a question from a passage, by beam search",
                                        .scores = SES_SCORES_TOKENS,
                                        .axis = SES_LABEL_PER_SEQUENCE,
                                        .class_count = classes,
                                        .add = add,
                                        .run = run };
