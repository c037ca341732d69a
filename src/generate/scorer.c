/* Scores texts: sliding windows for causal models, one mask at a time for masked ones. */
#include "sesame/scorer.h"

#include "base/alloc.h"
#include "model/model_desc.h"
#include "op/op.h"
#include "tensor/device_impl.h"
#include "text/tokenizer_config.h"

#include <math.h>
#include <string.h>

/* Limits of a forward pass: tokens (at least one sequence) and rows of logits. */
enum { PASS_TOKENS = 4096, PASS_ROWS = 512 };

struct ses_scorer {
    const ses_model *model;
    ses_scorer_options o;
    bool masked;             /* else causal */
    bool backward;           /* causal from the end of a text to its beginning */
    int32_t mask_id, bos_id; /* -1: none */
    const char *logits_name; /* name of the model's output */
    ses_encode_ctx *tokens;
    ses_tape *tape;
    int32_t *id, *batch_id; /* all texts, concatenated; input of a pass */
    float *logprob;         /* [n]; NAN: not scored */
    uint8_t *special;
    int32_t *word; /* [n]: index of the token's word in its text; -1: special token */
    int64_t n, capacity;
};

void ses_scorer_free(ses_scorer *s)
{
    if (!s) return;
    ses_encode_ctx_free(s->tokens);
    ses_tape_free(s->tape);
    ses_free(s->id), ses_free(s->batch_id), ses_free(s->logprob), ses_free(s->special), ses_free(s->word);
    ses_free(s);
}

/* Checks the model and sets defaults of window and stride. */
static bool prepare(ses_scorer *s, const ses_tokenizer *t, const char *dir, ses_err *e)
{
    const ses_head_use *use = s->model->class->head;
    while (use < s->model->class->head + 1 && use->head != &ses_head_causal_lm &&
           use->head != &ses_head_masked_lm)
        use++;
    const ses_head *h = use->head;
    s->logits_name = use->output;
    int64_t max = ses_model_max_tokens(s->model);
    ses_tokenizer_config c;
    if (h != &ses_head_causal_lm && h != &ses_head_masked_lm)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "%s does not predict tokens: expected a causal or masked language model",
                        ses_model_class_name(s->model));
    if (!ses_tokenizer_config_read(&c, dir, ses_model_type(s->model), NULL, t, e)) return false;
    s->masked = h == &ses_head_masked_lm && !s->model->class->decoder_only;
    s->backward = s->model->c.rnn.backward;
    s->mask_id = c.role[SES_ROLE_MASK], s->bos_id = c.role[SES_ROLE_BOS];
    if (s->masked && s->mask_id < 0)
        return ses_fail(e, SES_EUNSUPPORTED, "%s: the tokenizer has no mask token", dir);
    if (s->o.mask_word_rest && !s->masked)
        return ses_fail(e, SES_EARG, "%s: %s is a causal model, expected a masked one", dir,
                        ses_model_class_name(s->model));
    if (!s->o.temperature) s->o.temperature = 1;
    if (!(s->o.temperature > 0) || isinf(s->o.temperature))
        return ses_fail(e, SES_EARG, "temperature is %g, expected a finite number above 0", s->o.temperature);
    enum { NO_POSITION_TABLE = 4096, DEFAULT_WINDOW = 1024 }; /* models without one have no own limit */
    if (max > NO_POSITION_TABLE && c.model_max_length && c.model_max_length < max) max = c.model_max_length;
    if (!s->o.window || s->o.window > max) s->o.window = max < NO_POSITION_TABLE ? max : DEFAULT_WINDOW;
    if (s->o.window < 2)
        return ses_fail(e, SES_EARG, "window is %lld tokens, expected at least 2", (long long)s->o.window);
    if (!s->o.stride) s->o.stride = s->o.window / 2;
    if (s->o.stride >= s->o.window) s->o.stride = s->o.window - 1; /* each scored token needs one before it */
    return true;
}

ses_scorer *ses_scorer_new(const ses_model *m, const ses_tokenizer *t, const char *dir,
                           const ses_scorer_options *o, ses_err *e)
{
    ses_scorer *s = ses_alloc(sizeof *s, e);
    if (!s) return NULL;
    s->model = m;
    if (o) s->o = *o;
    if (prepare(s, t, dir, e) && (s->tokens = ses_encode_ctx_new(t, e)) &&
        (s->tape = ses_tape_new(m->dev, NULL, e)))
        return s;
    ses_scorer_free(s);
    return NULL;
}

/* ---- a pass ---- */

/* The sequences of a pass, the rows of logits it needs, and the tokens these rows score. */
typedef struct pass {
    int32_t row[PASS_ROWS];
    int64_t token[PASS_ROWS];
    int64_t n_rows;
    int32_t cu_seqlens[PASS_ROWS + 1];
    int64_t seqs;
} pass;

/* Cross entropy of each row's token, computed on the device: only these numbers are copied to the host.
 * Divides the logits x by the temperature. */
static bool read_losses(ses_scorer *s, const pass *a, ses_tensor *x, ses_real *loss)
{
    ses_device *d = s->model->dev;
    int32_t id[PASS_ROWS];
    for (int64_t i = 0; i < a->n_rows; i++) id[i] = s->id[a->token[i]];
    ses_tensor *target = ses_tape_ints(s->tape, id, a->n_rows);
    ses_tensor *losses = ses_tape_input(s->tape, loss, SES_DIM(a->n_rows));
    ses_tensor *lse = ses_tape_input(s->tape, loss, SES_DIM(a->n_rows));
    if (!target || !losses || !lse) return false;
    const ses_kernels *k = x->dtype == SES_REAL ? &d->k_f32 : &d->k;
    if (s->o.temperature != 1)
        k->scale(&d->exec, (ses_dst){ .data = x->f }, x->f, (ses_real)(1 / s->o.temperature), ses_count(x));
    k->xent_rows(&d->exec, ses_master_data(losses), ses_master_data(lse), x->f, target->i, a->n_rows,
                 ses_cols(x), ses_cols(x));
    d->mem->download(d, loss, ses_master_data(losses), (size_t)a->n_rows * sizeof *loss);
    return true;
}

/* Runs the pass and stores the log-probabilities. */
static bool run_pass(ses_scorer *s, pass *a, ses_err *e)
{
    ses_outputs out;
    ses_real loss[PASS_ROWS] = { 0 };
    ses_batch b = {
        .seqs = a->seqs, .tokens = a->cu_seqlens[a->seqs], .cu_seqlens = a->cu_seqlens, .ids = s->batch_id
    };
    ses_output_request request = { .logits = true, .rows = a->row, .n_rows = a->n_rows };
    ses_tape_reset(s->tape, NULL);
    if (!a->n_rows) return a->seqs = 0, true;
    if (!ses_model_forward(s->model, s->tape, &b, &request, &out, e)) return false;
    const ses_output *logits = ses_outputs_find(&out, s->logits_name);
    if (!logits) return ses_fail(e, SES_EARG, "the model has no output \"%s\"", s->logits_name);
    if (!read_losses(s, a, logits->tensor, loss) || !ses_tape_ok(s->tape, e)) return ses_tape_ok(s->tape, e);
    for (int64_t i = 0; i < a->n_rows; i++) s->logprob[a->token[i]] = (float)-loss[i];
    a->n_rows = a->seqs = 0;
    return true;
}

/* Runs the pass first if it has no room for another sequence of n tokens and this many rows. */
static bool make_room(ses_scorer *s, pass *a, int64_t n, int64_t rows, ses_err *e)
{
    bool full = a->seqs && (a->cu_seqlens[a->seqs] + n > PASS_TOKENS || a->n_rows + rows > PASS_ROWS);
    return !full || run_pass(s, a, e);
}

/* Adds the tokens [begin, end) as a sequence; tokens from `first` on are scored, given the ones before
 * them. */
static bool add_window(ses_scorer *s, pass *a, int64_t begin, int64_t first, int64_t end, ses_err *e)
{
    while (first < end) { /* at most PASS_ROWS at a time, which bounds the memory of the logits */
        int64_t until = end - first > PASS_ROWS ? first + PASS_ROWS : end;
        if (!make_room(s, a, until - begin, until - first, e)) return false;
        int32_t at = a->seqs ? a->cu_seqlens[a->seqs] : 0;
        memcpy(s->batch_id + at, s->id + begin, (size_t)(until - begin) * sizeof *s->id);
        for (int64_t t = first; t < until; t++)
            a->row[a->n_rows] = at + (int32_t)(t - 1 - begin), a->token[a->n_rows++] = t;
        a->cu_seqlens[0] = 0, a->cu_seqlens[++a->seqs] = at + (int32_t)(until - begin);
        first = until;
    }
    return true;
}

/* Scores the text [from, to) of a causal model in overlapping windows. */
static bool score_causal(ses_scorer *s, pass *a, int64_t from, int64_t to, ses_err *e)
{
    int64_t done = from + 1; /* the first token has none before it */
    for (int64_t begin = from; done < to; begin += s->o.stride) {
        int64_t end = begin + s->o.window < to ? begin + s->o.window : to;
        if (!add_window(s, a, begin, done, end, e)) return false;
        done = end;
    }
    return true;
}

/* Masks each token of the text [from, to) in turn, with as much context as the window holds, between the
 * special tokens at both ends. */
static bool score_masked(ses_scorer *s, pass *a, int64_t from, int64_t to, ses_err *e)
{
    int64_t head = 0, tail = 0;
    while (head < to - from && s->special[from + head]) head++;
    while (tail < to - from - head && s->special[to - 1 - tail]) tail++;
    int64_t first = from + head, last = to - tail, width = s->o.window - head - tail;
    if (width < 1)
        return ses_fail(e, SES_EARG, "a window of %lld tokens is too small", (long long)s->o.window);
    for (int64_t t = first; t < last; t++) {
        int64_t begin = t - width / 2 < first ? first : t - width / 2;
        int64_t end = begin + width < last ? begin + width : last;
        if (end - width >= first && end - begin < width) begin = end - width;
        int64_t n = head + (end - begin) + tail;
        if (!make_room(s, a, n, 1, e)) return false;
        int32_t at = a->seqs ? a->cu_seqlens[a->seqs] : 0, *id = s->batch_id + at;
        memcpy(id, s->id + from, (size_t)head * sizeof *id);
        memcpy(id + head, s->id + begin, (size_t)(end - begin) * sizeof *id);
        memcpy(id + head + end - begin, s->id + last, (size_t)tail * sizeof *id);
        int64_t masked = t + 1;
        while (s->o.mask_word_rest && masked < end && s->word[masked] == s->word[t]) masked++;
        for (int64_t i = t; i < masked; i++) id[head + i - begin] = s->mask_id;
        a->row[a->n_rows] = at + (int32_t)(head + t - begin), a->token[a->n_rows++] = t;
        a->cu_seqlens[0] = 0, a->cu_seqlens[++a->seqs] = at + (int32_t)n;
    }
    return true;
}

/* ---- a text ---- */

static bool reserve(ses_scorer *s, int64_t n, ses_err *e)
{
    if (n <= s->capacity) return true;
    n += n / 2;
    int32_t *id = ses_realloc_array(s->id, (size_t)n, sizeof *id, e);
    if (id) s->id = id;
    float *logprob = id ? ses_realloc_array(s->logprob, (size_t)n, sizeof *logprob, e) : NULL;
    if (logprob) s->logprob = logprob;
    uint8_t *special = logprob ? ses_realloc_array(s->special, (size_t)n, 1, e) : NULL;
    if (special) s->special = special;
    int32_t *word = special ? ses_realloc_array(s->word, (size_t)n, sizeof *word, e) : NULL;
    if (word) s->word = word;
    int32_t *batch =
        word ? ses_realloc_array(s->batch_id, (size_t)n + PASS_TOKENS + (size_t)s->o.window, sizeof *batch, e)
             : NULL;
    if (!batch) return false;
    s->batch_id = batch, s->capacity = n;
    return true;
}

/* Exchanges the order in which a backward model reads the text [from, to) and the order of its tokens. */
static void reverse(ses_scorer *s, int64_t from, int64_t to)
{
    for (; from < --to; from++) {
        int32_t id = s->id[from];
        float logprob = s->logprob[from];
        s->id[from] = s->id[to], s->id[to] = id;
        s->logprob[from] = s->logprob[to], s->logprob[to] = logprob;
    }
}

/* Appends the tokens of a text, in the order in which the model reads them. */
static bool add_text(ses_scorer *s, ses_string text, ses_err *e)
{
    if (!ses_encode(s->tokens, &(ses_input){ .text = text }, NULL, e)) return false;
    const ses_encoding *x = ses_encode_ctx_result(s->tokens);
    bool bos = s->o.prepend_bos && !s->masked && s->bos_id >= 0 && !(x->n && x->id[0] == s->bos_id);
    if (!reserve(s, s->n + (int64_t)x->n + 1, e)) return false;
    int64_t from = s->n;
    if (bos) s->id[s->n] = s->bos_id, s->word[s->n] = -1, s->special[s->n++] = 1;
    for (size_t i = 0; i < x->n; i++) {
        s->special[s->n] = x->special_mask[i], s->word[s->n] = x->word_id[i];
        s->id[s->n++] = x->id[i];
    }
    for (int64_t i = from; i < s->n; i++) s->logprob[i] = NAN;
    if (s->backward) reverse(s, from + bos, s->n);
    return true;
}

bool ses_scorer_score(ses_scorer *s, const ses_string *text, size_t n, ses_text_score *out, ses_err *e)
{
    pass *a = ses_alloc(sizeof *a, e);
    bool ok = a != NULL;
    s->n = 0;
    for (size_t i = 0; ok && i < n; i++) {
        int64_t from = s->n;
        ok = add_text(s, text[i], e);
        out[i] = (ses_text_score){ .n = s->n - from };
    }
    int64_t from = 0;
    for (size_t i = 0; ok && i < n; from += out[i++].n)
        ok = (s->masked ? score_masked : score_causal)(s, a, from, from + out[i].n, e);
    ok = ok && run_pass(s, a, e);
    ses_free(a);
    from = 0;
    for (size_t i = 0; ok && i < n; from += out[i++].n) {
        if (s->backward) reverse(s, from, from + out[i].n);
        out[i].id = s->id + from;
        out[i].token_logprob = s->logprob + from;
        for (int64_t k = 0; k < out[i].n; k++)
            if (!isnan(out[i].token_logprob[k]))
                out[i].logprob += (double)out[i].token_logprob[k], out[i].n_scored++;
    }
    return ok;
}

bool ses_scorer_score_text(ses_scorer *s, const char *text, size_t n, ses_text_score *out, ses_err *e)
{
    *out = (ses_text_score){ 0 };
    return ses_scorer_score(s, &(ses_string){ text, n }, 1, out, e);
}
