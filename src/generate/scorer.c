/* How likely texts are: windows of causal models, masks one by one of masked ones. */
#include "sesame/scorer.h"

#include "base/alloc.h"
#include "logits_processor.h"
#include "model/model_desc.h"
#include "op/op.h"
#include "tensor/device_impl.h"
#include "text/tokenizer_config.h"

#include <math.h>
#include <string.h>

enum { PASS_TOKENS = 4096, PASS_ROWS = 512 }; /* of a pass, at least one sequence; most rows of scores */

struct ses_scorer {
    const ses_model *model;
    ses_scorer_options o;
    bool masked;
    int32_t mask, start; /* -1: none */
    const char *output;  /* the scores' name */
    ses_tokens *tokens;
    ses_tape *tape;
    int32_t *id, *batch_id; /* the texts, one behind the other; what a pass reads */
    float *each;
    uint8_t *special;
    int64_t n, room;
};

void ses_scorer_free(ses_scorer *s)
{
    if (!s) return;
    ses_tokens_free(s->tokens);
    ses_tape_free(s->tape);
    ses_free(s->id), ses_free(s->batch_id), ses_free(s->each), ses_free(s->special);
    ses_free(s);
}

static bool set_up(ses_scorer *s, const ses_tokenizer *t, const char *dir, ses_err *e)
{
    const ses_head_use *use = s->model->class->head;
    while (use < s->model->class->head + 1 && use->head != &ses_head_causal_lm &&
           use->head != &ses_head_masked_lm)
        use++;
    const ses_head *h = use->head;
    s->output = use->output;
    int64_t most = ses_model_max_tokens(s->model);
    ses_tokenizer_config f;
    if (h != &ses_head_causal_lm && h != &ses_head_masked_lm)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "a %s gives no probabilities of a text's tokens: a causal or a masked language model does",
            ses_model_class_name(s->model));
    if (!ses_tokenizer_config_read(&f, dir, ses_model_type(s->model), NULL, t, e)) return false;
    s->masked = h == &ses_head_masked_lm && !s->model->class->decoder_only;
    s->mask = f.role[SES_ROLE_MASK], s->start = f.role[SES_ROLE_BOS];
    if (s->masked && s->mask < 0)
        return ses_fail(e, SES_EUNSUPPORTED, "%s: the tokenizer has no mask token", dir);
    /* models without a table of places */
    if (most > 4096 && f.model_max_length && f.model_max_length < most) most = f.model_max_length;
    if (!s->o.window || s->o.window > most) s->o.window = most < 4096 ? most : 1024;
    if (s->o.window < 2) return ses_fail(e, SES_EARG, "a window of %lld tokens", (long long)s->o.window);
    if (!s->o.stride) s->o.stride = s->o.window / 2;
    if (s->o.stride >= s->o.window) s->o.stride = s->o.window - 1; /* each token has one before it */
    return true;
}

ses_scorer *ses_scorer_new(const ses_model *m, const ses_tokenizer *t, const char *dir,
                           const ses_scorer_options *o, ses_err *e)
{
    ses_scorer *s = ses_alloc(sizeof *s, e);
    if (!s) return NULL;
    s->model = m;
    if (o) s->o = *o;
    if (set_up(s, t, dir, e) && (s->tokens = ses_tokens_new(t, e)) &&
        (s->tape = ses_tape_new(m->dev, NULL, e)))
        return s;
    ses_scorer_free(s);
    return NULL;
}

/* ---- a pass ---- */

typedef struct asked { /* rows of a pass, and which tokens they judge */
    int32_t row[PASS_ROWS];
    int64_t token[PASS_ROWS];
    int64_t n;
    int32_t cu[PASS_ROWS + 1];
    int64_t seqs;
} asked;

/* What each row's token loses, on the device: only these numbers come back. */
static bool read_losses(ses_scorer *s, const asked *a, const ses_tensor *x, ses_real *lost)
{
    ses_device *d = s->model->dev;
    int32_t id[PASS_ROWS];
    for (int64_t i = 0; i < a->n; i++) id[i] = s->id[a->token[i]];
    ses_tensor *right = ses_tape_ints(s->tape, id, a->n);
    ses_tensor *each = ses_tape_input(s->tape, lost, SES_DIM(a->n));
    ses_tensor *lse = ses_tape_input(s->tape, lost, SES_DIM(a->n));
    if (!right || !each || !lse) return false;
    const ses_kernels *k = x->dtype == SES_REAL ? &d->k_f32 : &d->k;
    k->xent_rows(&d->exec, ses_master_data(each), ses_master_data(lse), x->f, right->i, a->n, ses_cols(x),
                 ses_cols(x));
    d->mem->download(d, lost, ses_master_data(each), (size_t)a->n * sizeof *lost);
    return true;
}

static bool judge(ses_scorer *s, asked *a, ses_err *e)
{
    ses_outputs out;
    ses_real lost[PASS_ROWS] = { 0 };
    ses_batch b = { .seqs = a->seqs, .tokens = a->cu[a->seqs], .cu_seqlens = a->cu, .ids = s->batch_id };
    ses_output_request want = { .logits = true, .rows = a->row, .n_rows = a->n };
    ses_tape_reset(s->tape, NULL);
    if (!a->n) return a->seqs = 0, true;
    if (!ses_model_forward(s->model, s->tape, &b, &want, &out, e)) return false;
    const ses_output *logits = ses_outputs_find(&out, s->output);
    if (!logits) return ses_fail(e, SES_EARG, "the model has no output \"%s\"", s->output);
    if (!read_losses(s, a, logits->tensor, lost) || !ses_tape_ok(s->tape, e)) return ses_tape_ok(s->tape, e);
    for (int64_t i = 0; i < a->n; i++) s->each[a->token[i]] = (float)-lost[i];
    a->n = a->seqs = 0;
    return true;
}

/* Room for one more sequence of n tokens, asked for so many of them. */
static bool room_for(ses_scorer *s, asked *a, int64_t n, int64_t rows, ses_err *e)
{
    bool full = a->seqs && (a->cu[a->seqs] + n > PASS_TOKENS || a->n + rows > PASS_ROWS);
    return !full || judge(s, a, e);
}

/* Tokens from `begin` to `end` as a sequence; those from `first` on are judged by the ones before them. */
static bool judge_causal(ses_scorer *s, asked *a, int64_t begin, int64_t first, int64_t end, ses_err *e)
{
    while (first < end) { /* PASS_ROWS at a time: the scores of a large vocabulary are many */
        int64_t until = end - first > PASS_ROWS ? first + PASS_ROWS : end;
        if (!room_for(s, a, until - begin, until - first, e)) return false;
        int32_t at = a->seqs ? a->cu[a->seqs] : 0;
        memcpy(s->batch_id + at, s->id + begin, (size_t)(until - begin) * sizeof *s->id);
        for (int64_t t = first; t < until; t++)
            a->row[a->n] = at + (int32_t)(t - 1 - begin), a->token[a->n++] = t;
        a->cu[0] = 0, a->cu[++a->seqs] = at + (int32_t)(until - begin);
        first = until;
    }
    return true;
}

static bool causal(ses_scorer *s, asked *a, int64_t from, int64_t to, ses_err *e)
{
    int64_t done = from + 1; /* nothing stands before the first */
    for (int64_t begin = from; done < to; begin += s->o.stride) {
        int64_t end = begin + s->o.window < to ? begin + s->o.window : to;
        if (!judge_causal(s, a, begin, done, end, e)) return false;
        done = end;
    }
    return true;
}

/* One token masked, with as much around it as the window holds, and the special tokens at the ends. */
static bool masked(ses_scorer *s, asked *a, int64_t from, int64_t to, ses_err *e)
{
    int64_t head = 0, tail = 0;
    while (head < to - from && s->special[from + head]) head++;
    while (tail < to - from - head && s->special[to - 1 - tail]) tail++;
    int64_t first = from + head, last = to - tail, room = s->o.window - head - tail;
    if (room < 1)
        return ses_fail(e, SES_EARG, "a window of %lld tokens is too small", (long long)s->o.window);
    for (int64_t t = first; t < last; t++) {
        int64_t begin = t - room / 2 < first ? first : t - room / 2;
        int64_t end = begin + room < last ? begin + room : last;
        if (end - room >= first && end - begin < room) begin = end - room;
        int64_t n = head + (end - begin) + tail;
        if (!room_for(s, a, n, 1, e)) return false;
        int32_t at = a->seqs ? a->cu[a->seqs] : 0, *id = s->batch_id + at;
        memcpy(id, s->id + from, (size_t)head * sizeof *id);
        memcpy(id + head, s->id + begin, (size_t)(end - begin) * sizeof *id);
        memcpy(id + head + end - begin, s->id + last, (size_t)tail * sizeof *id);
        id[head + t - begin] = s->mask;
        a->row[a->n] = at + (int32_t)(head + t - begin), a->token[a->n++] = t;
        a->cu[0] = 0, a->cu[++a->seqs] = at + (int32_t)n;
    }
    return true;
}

/* ---- a text ---- */

static bool make_room(ses_scorer *s, int64_t n, ses_err *e)
{
    if (n <= s->room) return true;
    n += n / 2;
    int32_t *id = ses_realloc_array(s->id, (size_t)n, sizeof *id, e);
    if (id) s->id = id;
    float *each = id ? ses_realloc_array(s->each, (size_t)n, sizeof *each, e) : NULL;
    if (each) s->each = each;
    uint8_t *special = each ? ses_realloc_array(s->special, (size_t)n, 1, e) : NULL;
    if (special) s->special = special;
    int32_t *batch = special ? ses_realloc_array(s->batch_id, (size_t)n + PASS_TOKENS + (size_t)s->o.window,
                                                 sizeof *batch, e)
                             : NULL;
    if (!batch) return false;
    s->batch_id = batch, s->room = n;
    return true;
}

/* A text's tokens behind those that are there. */
static bool put_text(ses_scorer *s, ses_string text, ses_err *e)
{
    if (!ses_encode(s->tokens, &(ses_input){ .text = text }, NULL, e)) return false;
    const ses_encoding *x = ses_tokens_result(s->tokens);
    bool start = s->o.prepend_bos && !s->masked && s->start >= 0 && !(x->n && x->id[0] == s->start);
    if (!make_room(s, s->n + (int64_t)x->n + 1, e)) return false;
    int64_t from = s->n;
    if (start) s->id[s->n] = s->start, s->special[s->n++] = 1;
    for (size_t i = 0; i < x->n; i++) s->special[s->n] = x->special_mask[i], s->id[s->n++] = x->id[i];
    for (int64_t i = from; i < s->n; i++) s->each[i] = NAN;
    return true;
}

bool ses_scorer_score(ses_scorer *s, const ses_string *text, size_t n, ses_text_score *out, ses_err *e)
{
    asked *a = ses_alloc(sizeof *a, e);
    bool ok = a != NULL;
    s->n = 0;
    for (size_t i = 0; ok && i < n; i++) {
        int64_t from = s->n;
        ok = put_text(s, text[i], e);
        out[i] = (ses_text_score){ .n = s->n - from };
    }
    int64_t from = 0;
    for (size_t i = 0; ok && i < n; from += out[i++].n)
        ok = (s->masked ? masked : causal)(s, a, from, from + out[i].n, e);
    ok = ok && judge(s, a, e);
    ses_free(a);
    from = 0;
    for (size_t i = 0; ok && i < n; from += out[i++].n) {
        out[i].id = s->id + from;
        out[i].token_logprob = s->each + from;
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
