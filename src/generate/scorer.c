/* Scores texts: sliding windows for causal models, one mask at a time for masked ones. */
#include "sesame/generate.h"

#include "base/alloc.h"
#include "model/model_desc.h"
#include "op/op.h"
#include "run/pass.h"
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
    ses_pass pass;
    int32_t *id;    /* all texts, concatenated */
    float *logprob; /* [n]; NAN: not scored */
    uint8_t *special;
    int32_t *word; /* [n]: index of the token's word in its text; -1: special token */
    int64_t n, capacity;
};

void ses_scorer_free(ses_scorer *s)
{
    if (!s) return;
    ses_encode_ctx_free(s->tokens);
    ses_pass_close(&s->pass);
    ses_free(s->id), ses_free(s->logprob), ses_free(s->special), ses_free(s->word);
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
    if (prepare(s, t, dir, e) && (s->tokens = ses_encode_ctx_new(t, e)) && ses_pass_open(&s->pass, m, e))
        return s;
    ses_scorer_free(s);
    return NULL;
}

/* ---- a pass ---- */

/* The tokens that the rows of a pass score. */
typedef struct pass {
    int64_t token[PASS_ROWS];
    int64_t n_rows;
} pass;

/* Cross entropy of each row's token, computed on the device: only these numbers are copied to the host.
 * Divides the logits x by the temperature. */
static bool read_losses(ses_scorer *s, const pass *a, ses_tensor *x, ses_real *loss)
{
    ses_device *d = s->model->dev;
    int32_t id[PASS_ROWS];
    for (int64_t i = 0; i < a->n_rows; i++) id[i] = s->id[a->token[i]];
    ses_tensor *target = ses_tape_ints(s->pass.tape, id, a->n_rows);
    ses_tensor *losses = ses_tape_input(s->pass.tape, loss, SES_DIM(a->n_rows));
    ses_tensor *lse = ses_tape_input(s->pass.tape, loss, SES_DIM(a->n_rows));
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
    static const ses_output_request want = { .logits = true };
    ses_real loss[PASS_ROWS] = { 0 };
    if (!a->n_rows) return true;
    if (!ses_pass_run(&s->pass, &want, e)) return false;
    const ses_output *logits = ses_pass_output(&s->pass, s->logits_name, e);
    if (!logits) return false;
    if (!read_losses(s, a, logits->tensor, loss) || !ses_tape_ok(s->pass.tape, e))
        return ses_tape_ok(s->pass.tape, e);
    for (int64_t i = 0; i < a->n_rows; i++) s->logprob[a->token[i]] = (float)-loss[i];
    a->n_rows = 0;
    return true;
}

/* Runs the pass first if it has no room for another sequence of n tokens and this many rows. */
static bool make_room(ses_scorer *s, pass *a, int64_t n, int64_t rows, ses_err *e)
{
    int64_t tokens = (int64_t)s->pass.in.ids.n;
    bool full = tokens && (tokens + n > PASS_TOKENS || a->n_rows + rows > PASS_ROWS);
    return !full || run_pass(s, a, e);
}

/* Token t is scored by row `row` of the pass. */
static bool add_row(ses_scorer *s, pass *a, size_t row, int64_t t, ses_err *e)
{
    a->token[a->n_rows++] = t;
    return ses_ints_push(&s->pass.in.rows, (int32_t)row, e);
}

/* Adds the tokens [begin, end) as a sequence; tokens from `first` on are scored, given the ones before
 * them. */
static bool add_window(ses_scorer *s, pass *a, int64_t begin, int64_t first, int64_t end, ses_err *e)
{
    while (first < end) { /* at most PASS_ROWS at a time, which bounds the memory of the logits */
        int64_t until = end - first > PASS_ROWS ? first + PASS_ROWS : end;
        if (!make_room(s, a, until - begin, until - first, e)) return false;
        ses_batch_builder *b = &s->pass.in;
        for (int64_t t = first; t < until; t++)
            if (!add_row(s, a, b->ids.n + (size_t)(t - 1 - begin), t, e)) return false;
        if (!ses_batch_builder_add(b, s->id + begin, NULL, until - begin, e)) return false;
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
        ses_ints *id = &s->pass.in.ids;
        size_t at = id->n + (size_t)head;
        if (!ses_ints_append(id, s->id + from, head, e) ||
            !ses_ints_append(id, s->id + begin, end - begin, e) ||
            !ses_ints_append(id, s->id + last, tail, e) || !ses_batch_builder_end_sequence(&s->pass.in, e) ||
            !add_row(s, a, at + (size_t)(t - begin), t, e))
            return false;
        int64_t masked = t + 1;
        while (s->o.mask_word_rest && masked < end && s->word[masked] == s->word[t]) masked++;
        for (int64_t i = t; i < masked; i++) id->p[at + (size_t)(i - begin)] = s->mask_id;
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
    if (word) s->capacity = n;
    return word != NULL;
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
    ses_batch_builder_clear(&s->pass.in);
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
