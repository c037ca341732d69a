/* Fine-tuning with the inputs of GPT-1: tokens, sequences, loss, predictions. */
#include "gpt_tuning.h"

#include "base/alloc.h"
#include "model/model_desc.h"
#include "text/tokenizer_extend.h"

#include <math.h>
#include <stdio.h>

/* ---- the variant of a task ---- */

const ses_finetune_task *ses_finetune_task_with_inputs(const ses_finetune_task *k, int inputs, ses_err *e)
{
    if (inputs == SES_INPUTS_PLAIN) return k;
    if (!k->ways[SES_WAY_GPT])
        ses_fail(e, SES_EUSAGE, "inputs gpt1: the tasks classify, regress and choose have them, not %s",
                 k->name);
    return k->ways[SES_WAY_GPT];
}

bool ses_finetune_task_of_config(const ses_finetune_task **k, const ses_json *config,
                                 ses_finetune_task_options *o, ses_err *e)
{
    ses_gpt_inputs g;
    if (!ses_gpt_inputs_read(config, NULL, &g, e)) return false;
    if (!g.enabled || !((*k)->ways[SES_WAY_GPT] || (*k)->way == SES_WAY_GPT)) return true;
    if ((*k)->ways[SES_WAY_GPT]) *k = (*k)->ways[SES_WAY_GPT];
    o->both_orders = g.both_orders;
    return true;
}

/* ---- tokens ---- */

bool ses_gpt_open_tokenizer(ses_finetuner *t, ses_err *e)
{
    t->gpt = (ses_gpt_inputs){ .enabled = true, .both_orders = t->settings.both_orders };
    if (ses_gpt_inputs_find_tokens(&t->gpt, t->tokenizer)) return true;
    ses_tokenizer *more = ses_tokenizer_extend(t->tokenizer, ses_gpt_token_names, SES_GPT_TOKENS, e);
    ses_encode_ctx *tokens = more ? ses_encode_ctx_new(more, e) : NULL;
    if (!tokens) {
        ses_tokenizer_free(more);
        return false;
    }
    ses_encode_ctx_free(t->tokens);
    ses_tokenizer_free(t->tokenizer);
    t->tokenizer = more;
    t->tokens = tokens;
    t->has_new_tokens = true;
    return ses_gpt_inputs_find_tokens(&t->gpt, more) ||
           ses_fail(e, SES_EUNSUPPORTED, "the tokenizer does not accept new tokens");
}

void ses_gpt_put_config(const ses_finetuner *t, const ses_json *base, ses_json_writer *w)
{
    int64_t vocab = 0, tokens = ses_tokenizer_vocab_size(t->tokenizer);
    ses_json_int(ses_json_get(base, "vocab_size"), &vocab);
    ses_json_member_int(w, "vocab_size", vocab > tokens ? vocab : tokens);
    ses_gpt_inputs_put(&t->gpt, w);
}

bool ses_gpt_open(ses_finetuner *t, ses_err *e)
{
    const ses_model *m = t->model;
    const ses_config *c = &m->c;
    if (!m->stack[0].causal || m->stack[1].layer || !m->stack[0].token)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "inputs gpt1: %s is not a causal model, as openai-gpt and gpt2 are: its last token "
                        "need not read the text",
                        m->class->name);
    if (t->gpt.both_orders && !c->head.no_classifier_bias)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "both-orders: the head of %s has a bias, so that scores of both "
                        "orders cannot be added",
                        m->class->name);
    bool plain_lm = c->embed.tied && c->lm.no_transform && !c->lm.bias && !c->lm.logit_scale &&
                    !c->adaptive.clusters && ses_cols(m->stack[0].token) == c->hidden;
    return t->settings.lm_loss <= 0 || plain_lm ||
           ses_fail(e, SES_EUNSUPPORTED,
                    "lm-loss: %s has no LM head that is its token table alone; set --lm-loss 0",
                    m->class->name);
}

/* ---- sequences ---- */

int64_t ses_gpt_group(const ses_finetuner *t, const ses_examples *rows)
{
    (void)rows;
    return t->gpt.both_orders ? 2 : 1;
}

bool ses_gpt_add_texts(ses_finetuner *t, ses_string a, ses_string b, int32_t row, ses_finetune_set *s,
                       ses_sequence *q, ses_err *e)
{
    ses_input in = { .text = a };
    bool truncated;
    size_t n;
    if (b.n) in.pair = b;
    if (t->gpt.both_orders && !b.n)
        return ses_fail(e, SES_EFORMAT, "no second text: both-orders compares pairs");
    if (!ses_gpt_inputs_encode(t->tokens, &in, t->max_tokens, &n, &truncated, e)) return false;
    s->n_truncated += truncated;
    int32_t *id = ses_finetuner_scratch(t, n, e);
    for (int k = 0; id && k <= t->gpt.both_orders; k++) {
        ses_gpt_inputs_fill(&t->gpt, t->tokens, b.n > 0, k, id);
        ses_encoding x = { .n = n, .id = id };
        if (!ses_finetuner_add_sequence(t, s, row, &x, q, NULL, NULL, e)) return false;
    }
    return id != NULL;
}

/* ---- scores and loss ---- */

/* Scores of the examples of a batch; hidden: *last receives the last hidden states. */
static ses_tensor *scores(const ses_finetuner *t, ses_tape *tape, const ses_batch *b, bool hidden,
                          ses_tensor **last, ses_err *e)
{
    const ses_model *m = t->model;
    const char *name = NULL;
    ses_batch x = *b;
    ses_outputs out;
    char last_name[40];
    x.labels = x.pair_labels = NULL;
    x.targets = NULL;
    for (size_t i = 0; i < SES_LEN(m->class->head); i++)
        if (m->class->head[i].head == t->task->head) name = m->class->head[i].output;
    if (!ses_model_forward(m, tape, &x, &(ses_output_request){ .hidden_states = hidden }, &out, e))
        return NULL;
    const ses_output *o = ses_outputs_find(&out, name);
    snprintf(last_name, sizeof last_name, "hidden_states.%d", (int)m->stack[0].depth);
    const ses_output *h = ses_outputs_find(&out, last_name);
    if (!o || (hidden && !h)) {
        ses_fail(e, SES_EARG, "%s has no scores for the task %s", m->class->name, t->task->name);
        return NULL;
    }
    *last = h ? h->tensor : NULL;
    if (!t->gpt.both_orders) return o->tensor;
    int64_t cols = ses_cols(o->tensor), n = b->seqs / 2;
    ses_tensor *both = ses_reshape(tape, o->tensor, SES_DIM(n, 2 * cols));
    return ses_add(tape, ses_columns(tape, both, 0, cols), ses_columns(tape, both, cols, cols));
}

static ses_tensor *task_loss(const ses_finetuner *t, ses_tape *tape, const ses_batch *b, ses_tensor *y)
{
    int64_t n = ses_rows(y);
    if (t->task->target == SES_TARGET_CLASS)
        return ses_cross_entropy(tape, y, ses_tape_ints(tape, b->labels, n));
    return ses_target_loss(tape, y, ses_tape_input(tape, b->targets, SES_DIM(n, ses_cols(y))), SES_LOSS_MSE);
}

/* The token after each token, but not across sequences. */
static ses_tensor *lm_loss(const ses_finetuner *t, ses_tape *tape, const ses_batch *b, ses_tensor *hidden)
{
    int32_t *row = ses_tape_host_alloc(tape, (size_t)b->tokens, sizeof *row),
            *label = ses_tape_host_alloc(tape, (size_t)b->tokens, sizeof *label);
    int64_t n = 0;
    for (int64_t s = 0; row && label && s < b->seqs; s++)
        for (int32_t i = b->cu_seqlens[s]; i + 1 < b->cu_seqlens[s + 1]; i++)
            row[n] = i, label[n++] = b->ids[i + 1];
    if (!row || !label) return NULL;
    ses_tensor *x = ses_gather(tape, hidden, ses_tape_ints(tape, row, n));
    return ses_linear_cross_entropy(tape, x, t->model->stack[0].token, NULL, ses_tape_ints(tape, label, n));
}

ses_tensor *ses_gpt_loss(void *finetuner, ses_tape *tape, const ses_batch *b, ses_err *e)
{
    const ses_finetuner *t = finetuner;
    bool with_lm = t->settings.lm_loss > 0;
    ses_tensor *hidden = NULL, *y = scores(t, tape, b, with_lm, &hidden, e);
    ses_tensor *loss = y ? task_loss(t, tape, b, y) : NULL;
    if (!loss || !with_lm) return loss;
    return ses_add(tape, loss, ses_scale(tape, lm_loss(t, tape, b, hidden), t->settings.lm_loss));
}

bool ses_gpt_predict_batch(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o,
                           const ses_batch *b, int64_t first, ses_err *e)
{
    ses_real loss = NAN;
    ses_tensor *hidden;
    ses_tape_reset(t->tape, &(ses_tape_options){ 0 });
    ses_tensor *y = scores(t, t->tape, b, false, &hidden, e);
    ses_tensor *z = y && !t->unlabeled ? task_loss(t, t->tape, b, y) : NULL;
    ses_real *x = y ? ses_alloc_array((size_t)ses_count(y), sizeof *x, e) : NULL;
    bool ok = x && ses_tape_read(t->tape, y, x) && (!z || ses_tape_read(t->tape, z, &loss));
    int64_t cols = ok ? ses_cols(y) : 0, rows = ok ? ses_rows(y) : 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < cols; k++)
            o->score[s->row[first + r * (b->seqs / rows)] * cols + k] = (float)x[r * cols + k];
    if (ok) o->loss += (double)loss * (double)b->seqs;
    ses_free(x);
    return ok;
}
