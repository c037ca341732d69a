/* Continuing texts: every token is learned from those before it. Texts are joined and cut into blocks of
 * equal length, what is left at the end goes, as in the reference's script; or each is a sequence of its
 * own. */
#include "finetuner.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool add(ses_finetuner *t, ses_finetune_set *s, int32_t row, const int32_t *id, size_t n, ses_err *e)
{
    ses_encoding k = { .n = n, .id = id };
    return ses_finetuner_add_sequence(t, s, row, &k, &(ses_sequence){ .tags = id }, NULL, NULL, e);
}

/* Whole blocks of what has come together. */
static bool add_blocks(ses_finetuner *t, ses_finetune_set *s, int32_t row, ses_err *e)
{
    size_t at = 0, block = (size_t)t->max_tokens;
    for (; s->n_pending - at >= block; at += block) {
        if (!add(t, s, row, s->pending + at, block, e)) return false;
        s->row[s->n - 1] = (int32_t)(s->n - 1); /* a block stands for itself */
    }
    memmove(s->pending, s->pending + at, (s->n_pending - at) * sizeof *s->pending);
    s->n_pending -= at;
    return true;
}

static bool encode(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                   ses_err *e)
{
    const int32_t *id;
    size_t n, len = r->text_a.n;
    if (t->o.line_by_line) {
        while (len && r->text_a.p[len - 1] == '\n') len--;
        ses_input in = { .text = { r->text_a.p, len } };
        ses_encode_options o = { .truncation = SES_TRUNCATE_ONLY_FIRST, .max_length = t->max_tokens };
        if (!ses_encode(t->tokens, &in, &o, e)) return false;
        const ses_encoding *k = ses_tokens_result(t->tokens);
        s->n_truncated += ses_tokens_overflow_count(t->tokens) > 0;
        return !k->n || add(t, s, row, k->id, k->n, e); /* of nothing, nothing is learned */
    }
    if (!ses_encode_ids(t->tokens, r->text_a.p, len, true, &id, &n, e) ||
        !ses_array_reserve(&s->pending, &s->pending_cap, s->n_pending + n, sizeof *s->pending, e))
        return false;
    if (n) memcpy(s->pending + s->n_pending, id, n * sizeof *id);
    s->n_pending += n;
    return add_blocks(t, s, row, e);
}

static bool encoded(ses_finetuner *t, ses_finetune_set *s, ses_err *e)
{
    if (t->o.line_by_line) return true;
    s->n_rows = s->n;
    return s->n || ses_fail(e, SES_EFORMAT,
                            "%zu tokens in all do not fill a block of %" PRId64
                            "; a smaller --max-length, or --lines, makes sequences of them",
                            s->n_pending, t->max_tokens);
}

static bool begin(ses_finetuner *t, const ses_finetune_set *s, ses_task_outputs *p, ses_err *e)
{
    (void)t;
    p->nll = ses_arena_array(&p->mem, s->n_rows, sizeof *p->nll, e);
    p->n_nll = ses_arena_array(&p->mem, s->n_rows, sizeof *p->n_nll, e);
    return p->nll && p->n_nll;
}

/* One sequence at a time: the loss of each is wanted, and scores of a whole vocabulary are never kept. */
static bool pass(ses_finetuner *t, const ses_finetune_set *s, ses_task_outputs *p, const ses_batch *b,
                 int64_t first, ses_err *e)
{
    for (int64_t i = 0; i < b->seqs; i++) {
        int32_t at = b->cu_seqlens[i], n = b->cu_seqlens[i + 1] - at, row = s->row[first + i];
        const int32_t cu[] = { 0, n };
        ses_batch one = { .seqs = 1,
                          .tokens = n,
                          .cu_seqlens = cu,
                          .ids = b->ids + at,
                          .segments = b->segments + at,
                          .labels = b->labels + at };
        ses_outputs out;
        ses_real loss = 0;
        if (n < 2) continue; /* nothing stands before the first */
        ses_tape_reset(t->tape, &(ses_tape_options){ 0 });
        if (!ses_model_forward(t->model, t->tape, &one, &(ses_output_request){ 0 }, &out, e) ||
            !ses_tape_read(t->tape, out.loss, &loss))
            return false;
        p->nll[row] = (double)loss * (n - 1);
        p->n_nll[row] = n - 1;
    }
    return true;
}

static bool finish(ses_finetuner *t, const ses_finetune_set *s, ses_task_outputs *p, ses_err *e)
{
    double sum = 0, n = 0;
    (void)t, (void)e;
    for (size_t r = 0; r < s->n_rows; r++) sum += p->nll[r], n += (double)p->n_nll[r];
    p->loss = sum / n;
    return true;
}

static bool evaluation(ses_finetuner *t, const ses_finetune_set *s, const ses_task_outputs *p,
                       ses_evaluation *v, ses_arena *mem, ses_err *e)
{
    (void)t, (void)s, (void)mem, (void)e;
    v->nll = p->nll;
    v->n_nll = p->n_nll;
    return true;
}

static void put(ses_finetuner *t, const ses_finetune_set *s, const ses_task_outputs *p, size_t row,
                ses_json_writer *w)
{
    (void)t, (void)s;
    double mean = p->n_nll[row] ? p->nll[row] / (double)p->n_nll[row] : NAN;
    ses_json_put_key(w, "tokens");
    ses_json_put_int(w, p->n_nll[row]);
    ses_json_put_key(w, "loss");
    ses_json_put_real(w, mean);
    ses_json_put_key(w, "perplexity");
    ses_json_put_real(w, exp(mean));
}

const ses_finetune_task ses_finetune_task_continue = {
    .name = "continue",
    .summary = "how texts go on, token by token",
    .head = &ses_head_causal_lm,
    .data = SES_DATA_TEXT,
    .format = SES_DATA_LINES,
    .target = SES_TARGET_TAGS,
    .default_max_length = 1024,
    .generates = true,
    .metrics = "perplexity",
    .best_metric = "perplexity",
    .encode = encode,
    .finish_encoding = encoded,
    .begin = begin,
    .pass = pass,
    .finish = finish,
    .fill_evaluation = evaluation,
    .put_prediction = put,
};
