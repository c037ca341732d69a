#include "sesame/score.h"

#include "base/alloc.h"
#include "process.h"
#include "task.h"

#include <math.h>
#include <string.h>

enum { PASS_TOKENS = 4096, PASS_ROWS = 512 }; /* of a pass, at least one sequence; most rows of scores */

struct ses_scorer {
    const ses_model *model;
    ses_score_options o;
    bool masked;
    int32_t mask, start; /* -1: none */
    const char *output;  /* the scores' name */
    ses_tokens *tokens;
    ses_tape *tape;
    int32_t *id, *batch_id; /* the text; what a pass reads */
    float *each, *row;      /* row: of scores */
    uint8_t *special;
    int64_t n, room;
    ses_real *raw;
};

void ses_scorer_free(ses_scorer *s)
{
    if (!s) return;
    ses_tokens_free(s->tokens);
    ses_tape_free(s->tape);
    ses_free(s->id), ses_free(s->batch_id), ses_free(s->each), ses_free(s->row), ses_free(s->special),
        ses_free(s->raw);
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
    ses_facts f;
    if (h != &ses_head_causal_lm && h != &ses_head_masked_lm)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "a %s gives no probabilities of a text's tokens: a causal or a masked language model does",
            ses_model_class(s->model));
    if (!ses_facts_read(&f, dir, ses_model_type(s->model), t, e)) return false;
    s->masked = h == &ses_head_masked_lm && !s->model->class->decoder_only;
    s->mask = f.role[SES_ROLE_MASK], s->start = f.role[SES_ROLE_BOS];
    if (s->masked && s->mask < 0)
        return ses_fail(e, SES_EUNSUPPORTED, "%s: the tokenizer has no mask token", dir);
    /* models without a table of places */
    if (most > 4096 && f.max_length && f.max_length < most) most = f.max_length;
    if (!s->o.window || s->o.window > most) s->o.window = most < 4096 ? most : 1024;
    if (s->o.window < 2) return ses_fail(e, SES_EARG, "a window of %lld tokens", (long long)s->o.window);
    if (!s->o.stride) s->o.stride = s->o.window / 2;
    if (s->o.stride >= s->o.window) s->o.stride = s->o.window - 1; /* each token has one before it */
    return true;
}

ses_scorer *ses_scorer_new(const ses_model *m, const ses_tokenizer *t, const char *dir,
                           const ses_score_options *o, ses_err *e)
{
    ses_scorer *s = ses_alloc(sizeof *s, e);
    if (!s) return NULL;
    s->model = m;
    if (o) s->o = *o;
    size_t V = (size_t)ses_model_vocab(m), n;
    if (!set_up(s, t, dir, e) || !ses_mul_size(V, PASS_ROWS, &n)) goto fail;
    s->tokens = ses_tokens_new(t, e);
    s->tape = s->tokens ? ses_tape_new(m->dev, NULL, e) : NULL;
    s->row = ses_alloc_array(V, sizeof *s->row, e);
    s->raw = ses_alloc_array(n, sizeof *s->raw, e);
    if (s->tape && s->row && s->raw) return s;
fail:
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

static bool judge(ses_scorer *s, asked *a, ses_err *e)
{
    ses_outputs out;
    int64_t V = ses_model_vocab(s->model);
    ses_batch b = { .seqs = a->seqs, .tokens = a->cu[a->seqs], .cu = a->cu, .ids = s->batch_id };
    ses_want want = { .logits = true, .rows = a->row, .n_rows = a->n };
    ses_tape_reset(s->tape, NULL);
    if (!a->n) return a->seqs = 0, true;
    if (!ses_model_forward(s->model, s->tape, &b, &want, &out, e)) return false;
    size_t at = 0;
    while (at + 1 < out.n && strcmp(out.item[at].name, s->output) != 0) at++;
    if (!ses_tape_read(s->tape, out.item[at].tensor, s->raw)) return false;
    for (int64_t i = 0; i < a->n; i++) {
        for (int64_t v = 0; v < V; v++) s->row[v] = (float)s->raw[i * V + v];
        s->each[a->token[i]] = (float)((double)s->row[s->id[a->token[i]]] - ses_log_sum_exp(s->row, V));
    }
    a->n = a->seqs = 0;
    return true;
}

/* Tokens from `begin` to `end` as a sequence; those from `first` on are judged by the ones before them. */
static bool judge_causal(ses_scorer *s, asked *a, int64_t begin, int64_t first, int64_t end, ses_err *e)
{
    while (first < end) { /* PASS_ROWS at a time: the scores of a large vocabulary are many */
        int64_t until = end - first > PASS_ROWS ? first + PASS_ROWS : end;
        memcpy(s->batch_id, s->id + begin, (size_t)(until - begin) * sizeof *s->id);
        a->cu[0] = 0, a->cu[1] = (int32_t)(until - begin), a->seqs = 1;
        for (int64_t t = first; t < until; t++) a->row[a->n] = (int32_t)(t - 1 - begin), a->token[a->n++] = t;
        if (!judge(s, a, e)) return false;
        first = until;
    }
    return true;
}

static bool causal(ses_scorer *s, asked *a, ses_err *e)
{
    int64_t done = 1; /* nothing stands before the first */
    for (int64_t begin = 0; done < s->n; begin += s->o.stride) {
        int64_t end = begin + s->o.window < s->n ? begin + s->o.window : s->n;
        if (!judge_causal(s, a, begin, done, end, e)) return false;
        done = end;
    }
    return true;
}

/* One token masked, with as much around it as the window holds, and the special tokens at the ends. */
static bool masked(ses_scorer *s, asked *a, ses_err *e)
{
    int64_t head = 0, tail = 0;
    while (head < s->n && s->special[head]) head++;
    while (tail < s->n - head && s->special[s->n - 1 - tail]) tail++;
    int64_t first = head, last = s->n - tail, room = s->o.window - head - tail;
    if (room < 1)
        return ses_fail(e, SES_EARG, "a window of %lld tokens is too small", (long long)s->o.window);
    for (int64_t t = first; t < last; t++) {
        int64_t begin = t - room / 2 < first ? first : t - room / 2;
        int64_t end = begin + room < last ? begin + room : last;
        if (end - room >= first && end - begin < room) begin = end - room;
        int64_t n = head + (end - begin) + tail;
        if (a->seqs && (a->cu[a->seqs] + n > PASS_TOKENS || a->n == PASS_ROWS) && !judge(s, a, e))
            return false;
        int32_t at = a->seqs ? a->cu[a->seqs] : 0, *to = s->batch_id + at;
        memcpy(to, s->id, (size_t)head * sizeof *to);
        memcpy(to + head, s->id + begin, (size_t)(end - begin) * sizeof *to);
        memcpy(to + head + end - begin, s->id + last, (size_t)tail * sizeof *to);
        to[head + t - begin] = s->mask;
        a->row[a->n] = at + (int32_t)(head + t - begin), a->token[a->n++] = t;
        a->cu[0] = 0, a->cu[++a->seqs] = at + (int32_t)n;
    }
    return judge(s, a, e);
}

/* ---- a text ---- */

static bool make_room(ses_scorer *s, int64_t n, ses_err *e)
{
    if (n <= s->room) return true;
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

bool ses_scorer_text(ses_scorer *s, const char *text, size_t n, ses_scored *out, ses_err *e)
{
    if (!ses_encode(s->tokens, &(ses_input){ .text = { text, n } }, NULL, e)) return false;
    const ses_encoding *x = ses_tokens_result(s->tokens);
    bool start = s->o.start && !s->masked && s->start >= 0 && !(x->n && x->id[0] == s->start);
    asked *a = ses_alloc(sizeof *a, e);
    bool ok = a && make_room(s, (int64_t)x->n + 1, e);
    if (ok) {
        s->n = start;
        if (start) s->id[0] = s->start, s->special[0] = 1;
        for (size_t i = 0; i < x->n; i++) s->special[s->n] = x->special[i], s->id[s->n++] = x->id[i];
        for (int64_t i = 0; i < s->n; i++) s->each[i] = NAN;
        ok = s->masked ? masked(s, a, e) : causal(s, a, e);
    }
    ses_free(a);
    *out = (ses_scored){ .id = s->id, .each = s->each, .n = ok ? s->n : 0 };
    for (int64_t i = 0; i < out->n; i++)
        if (!isnan(s->each[i])) out->logprob += (double)s->each[i], out->tokens++;
    return ok;
}
