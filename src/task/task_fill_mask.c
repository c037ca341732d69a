/* fill-mask: predicts the tokens behind the masks of a text. */
#include "base/alloc.h"
#include "base/rng.h"
#include "pipeline_impl.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdlib.h>

typedef struct args {
    int64_t top_k, seed, draws;
    double temperature;
    ses_opt_list targets;
    bool has_top_k, sample, one_by_one;
} args;

static const ses_opt opt[] = {
    SES_OPT_INT(
        args, top_k, "top-k", "5", 1, 1 << 24,
        "number of tokens for each mask, best first; with --draws: draw from the N best (default: all)",
        .letter = 'k', .was_set = offsetof(args, has_top_k), .value = "N|all", .zero_word = "all"),
    SES_OPT_LIST(args, targets, "targets", "A,B",
                 "score only these tokens; a word of several tokens counts as its first"),
    SES_OPT_REAL(args, temperature, "temperature", "1", 1e-3, 1e3, "softmax temperature"),
    SES_OPT_FLAG(args, sample, "do-sample", "sample the tokens by probability, without replacement"),
    SES_OPT_INT(args, draws, "draws", "0", 0, 1 << 16,
                "draw N tokens for each mask by probability, with replacement, instead of the best; 0: off"),
    SES_OPT_FLAG(args, one_by_one, "one-by-one",
                 "with --draws: fill the masks from left to right, each given the tokens drawn before it"),
    SES_OPT_INT(args, seed, "seed", "0", 0, 9e15, "random seed for --do-sample and --draws"),
};

static const ses_result_schema schema = { SES_FORM_ROWS,
                                          SES_VIEW_BARS,
                                          { { "score", SES_FIELD_SCORE },
                                            { "token", SES_FIELD_TOKEN },
                                            { "token_str", SES_FIELD_WORD },
                                            { "sequence", SES_FIELD_TEXT } } };

typedef struct task_state {
    int32_t *target; /* [n_targets], ascending; NULL: all tokens */
    size_t n_targets;
    bool noted; /* that a text has a mask in another spelling */
} task_state;

typedef struct candidate {
    int32_t id;
    float score;
} candidate;

/* A mask, in the window with the most context on both sides. */
typedef struct mask {
    uint32_t byte;        /* offset in the text */
    size_t seq, at;       /* window, position in it */
    candidate *candidate; /* [n], best first */
    int64_t n;
} mask;

typedef struct item_state {
    mask *mask; /* [n], in text order */
    size_t n;
    size_t *by_window; /* their indices, window after window */
} item_state;

/* ---- targets ---- */

static int by_value(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The token of a target: itself, or the first of its tokens; -1: none. */
static bool target_id(ses_pipeline *p, ses_string s, int32_t *id, ses_err *e)
{
    const int32_t *ids;
    size_t n;
    *id = ses_tokenizer_token_to_id(p->tokenizer, s.p, s.n);
    if (*id >= 0) return true;
    if (!ses_encode_ids(p->tokens, s.p, s.n, false, &ids, &n, e)) return false;
    if (!n) return ses_pipeline_warn(p, e, "target \"%s\" has no tokens and is left out", s.p);
    *id = ids[0];
    size_t len = 0;
    const char *token = ses_tokenizer_id_to_token(p->tokenizer, *id, &len);
    return ses_pipeline_warn(p, e, "target \"%s\" is not one token: \"%.*s\" is used instead", s.p, (int)len,
                             token);
}

static bool find_targets(ses_pipeline *p, ses_err *e)
{
    const args *a = p->settings.args;
    task_state *task = p->state;
    ses_string *list;
    size_t n, kept = 0;
    if (!a->targets.n) return true;
    if (!ses_pipeline_split_list(p, &a->targets, false, &list, &n, e)) return false;
    task->target = ses_arena_array(&p->mem, n + 1, sizeof *task->target, e);
    if (!task->target) return false;
    for (size_t i = 0; i < n; i++) {
        int32_t id = -1;
        if (!target_id(p, list[i], &id, e)) return false;
        if (id >= 0) task->target[task->n_targets++] = id;
    }
    qsort(task->target, task->n_targets, sizeof *task->target, by_value);
    for (size_t i = 0; i < task->n_targets; i++)
        if (!i || task->target[i] != task->target[i - 1]) task->target[kept++] = task->target[i];
    task->n_targets = kept;
    return kept || ses_fail(e, SES_EUSAGE, "--targets: no target has a token");
}

static bool open_task(ses_pipeline *p, ses_err *e)
{
    if (p->tokenizer_config.role[SES_ROLE_MASK] < 0)
        return ses_fail(e, SES_EUNSUPPORTED, "%s: the tokenizer has no mask token", p->dir);
    return find_targets(p, e);
}

/* ---- masks ---- */

/* Tokens on the shorter side of a position. */
static size_t context_around(const ses_seq *q, size_t at) { return at < q->n - 1 - at ? at : q->n - 1 - at; }

static bool add_mask(ses_request *r, size_t s, size_t at, size_t capacity, ses_err *e)
{
    item_state *st = r->state;
    uint32_t byte = r->seq[s].byte_offset[at].begin;
    for (size_t i = st->n; i-- > 0 && st->mask[i].byte >= byte;) { /* found before, in another window */
        mask *x = &st->mask[i];
        if (x->byte != byte) continue;
        if (context_around(&r->seq[s], at) > context_around(&r->seq[x->seq], x->at)) x->seq = s, x->at = at;
        return true;
    }
    if (st->n == capacity) return ses_fail(e, SES_EARG, "more masks than counted");
    st->mask[st->n++] = (mask){ .byte = byte, .seq = s, .at = at };
    return true;
}

/* Requests logits for the masks of each window and drops windows without a mask. The rows of a window are its
 * masks: st->by_window from its tag on. */
static bool request_rows(ses_request *r, ses_err *e)
{
    item_state *st = r->state;
    size_t *first = ses_arena_array(&r->mem, r->n_seqs + 1, sizeof *first, e), kept = 0;
    int32_t *rows = ses_arena_array(&r->mem, st->n, sizeof *rows, e);
    st->by_window = ses_arena_array(&r->mem, st->n, sizeof *st->by_window, e);
    if (!first || !rows || !st->by_window) return false;
    for (size_t i = 0; i < st->n; i++) first[st->mask[i].seq + 1]++;
    for (size_t s = 0; s < r->n_seqs; s++) {
        r->seq[s].tag = (int64_t)first[s];
        r->seq[s].rows = rows + first[s];
        first[s + 1] += first[s];
    }
    for (size_t i = 0; i < st->n; i++) {
        ses_seq *q = &r->seq[st->mask[i].seq];
        size_t at = (size_t)q->tag + q->n_rows++;
        rows[at] = (int32_t)st->mask[i].at;
        st->by_window[at] = i;
    }
    for (size_t s = 0; s < r->n_seqs; s++) {
        ses_seq q = r->seq[s];
        if (!q.n_rows) r->tokens -= (int64_t)q.n;
        if (!q.n_rows) continue;
        for (size_t i = 0; i < q.n_rows; i++) st->mask[st->by_window[(size_t)q.tag + i]].seq = kept;
        r->seq[kept++] = q;
    }
    r->n_seqs = kept;
    return true;
}

/* Number of tokens of the text; windows overlap, so shared tokens count once. */
static size_t text_tokens(const ses_request *r)
{
    size_t n = 0;
    uint32_t end = 0, last = 0;
    for (size_t s = 0; s < r->n_seqs; s++, end = last)
        for (size_t i = 0; i < r->seq[s].n; i++) {
            if (r->seq[s].sequence_id[i] < 0 || (s && r->seq[s].byte_offset[i].begin < end)) continue;
            n++, last = r->seq[s].byte_offset[i].end;
        }
    return n;
}

/* Each mask is predicted from one window; the tokens outside the longest of them count as left out. */
static void count_truncated(ses_request *r, size_t whole)
{
    size_t longest = 0;
    for (size_t s = 0; s < r->n_seqs; s++) {
        size_t n = 0;
        for (size_t i = 0; i < r->seq[s].n; i++) n += r->seq[s].sequence_id[i] >= 0;
        if (n > longest) longest = n;
    }
    r->truncated = whole > longest ? (int64_t)(whole - longest) : 0;
}

static bool check_draws(const ses_pipeline *p, const args *a, ses_err *e)
{
    if (a->draws && a->sample)
        return ses_fail(e, SES_EUSAGE, "do-sample draws without replacement, draws with: set one of them");
    if (a->one_by_one && !a->draws) return ses_fail(e, SES_EUSAGE, "one-by-one needs draws");
    const ses_model *m = p->model;
    return !a->one_by_one || (!m->stack[1].layer && !m->stack[0].c->chars.per_word) ||
           ses_fail(e, SES_EUNSUPPORTED, "one-by-one: %s is not an encoder of tokens", m->class->name);
}

/* Length of a mask in the spelling of another model, or of a gap of underscores, at s; 0: none. */
static size_t other_mask(const char *s, size_t n)
{
    static const char *const spelling[] = {
        "[MASK]", "<mask>", "<MASK>", "[mask]", "<extra_id_0>", "{mask}"
    };
    for (size_t i = 0; i < SES_LEN(spelling); i++) {
        size_t len = strlen(spelling[i]);
        if (len <= n && !memcmp(s, spelling[i], len)) return len;
    }
    size_t gap = 0;
    while (gap < n && s[gap] == '_') gap++;
    return gap >= 3 ? gap : 0;
}

/* A text without the model's mask: other spellings become it. */
static bool respell_masks(ses_pipeline *p, ses_request *r, ses_string name, ses_string *text, ses_err *e)
{
    task_state *task = p->state;
    ses_string from = *text, first = { 0 };
    ses_buf b = { 0 };
    for (size_t i = 0; i + name.n <= from.n; i++)
        if (!memcmp(from.p + i, name.p, name.n)) return true;
    for (size_t i = 0, n; i < from.n; i += n ? n : 1) {
        n = other_mask(from.p + i, from.n - i);
        if (n && !first.n) first = (ses_string){ from.p + i, n };
        ses_buf_append(&b, n ? name.p : from.p + i, n ? name.n : 1);
    }
    bool ok = ses_buf_ok(&b, e);
    if (ok && first.n) {
        text->p = ses_arena_strndup(&r->mem, b.data, b.len, e);
        text->n = b.len;
        ok = text->p &&
             (task->noted || ses_pipeline_warn(p, e, "\"%.*s\" is read as %.*s, the mask of this model",
                                               (int)first.n, first.p, (int)name.n, name.p));
        task->noted = true;
    }
    ses_buf_free(&b);
    return ok;
}

static bool encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    item_state *st = r->state;
    if (!check_draws(p, r->args, e)) return false;
    int32_t mask_id = p->tokenizer_config.role[SES_ROLE_MASK];
    ses_input in = { .text = r->item.text };
    ses_string mask_name = { 0 };
    mask_name.p = ses_tokenizer_id_to_token(p->tokenizer, mask_id, &mask_name.n);
    if (!respell_masks(p, r, mask_name, &in.text, e)) return false;
    if (!ses_request_encode_windows(p, r, &in, SES_TRUNCATE_ONLY_FIRST, p->settings.max_seq_len / 2, e))
        return false;
    size_t count = 0, whole = text_tokens(r);
    for (size_t s = 0; s < r->n_seqs; s++)
        for (size_t i = 0; i < r->seq[s].n; i++) count += r->seq[s].id[i] == mask_id;
    if (!count)
        return ses_fail(e, SES_EARG, "no mask in the text: expected at least one %.*s", (int)mask_name.n,
                        mask_name.p);
    st->mask = ses_arena_array(&r->mem, count, sizeof *st->mask, e);
    for (size_t s = 0; st->mask && s < r->n_seqs; s++)
        for (size_t i = 0; i < r->seq[s].n; i++)
            if (r->seq[s].id[i] == mask_id && !add_mask(r, s, i, count, e)) return false;
    if (!st->mask || !request_rows(r, e)) return false;
    if (((const args *)r->args)->one_by_one && r->n_seqs > 1)
        return ses_fail(e, SES_EARG,
                        "one-by-one: the text is longer than the model accepts, and its masks are in %zu "
                        "windows; shorten it",
                        r->n_seqs);
    count_truncated(r, whole);
    return true;
}

/* ---- tokens ---- */

/* Gumbel top-k: the highest values of log p + Gumbel noise are samples without replacement. The noise
 * depends on the seed, the item's number, the mask and the token only. */
static void add_noise(float *y, const float *p, int64_t n, const args *a, int64_t item, size_t group)
{
    ses_rng_key key = { (uint64_t)a->seed, (uint32_t)item, (uint32_t)group };
    for (int64_t i = 0; i < n; i++) {
        uint32_t r[4];
        ses_philox(r, key, (uint64_t)i);
        double u = ((double)r[0] + 0.5) / 4294967296.0;
        y[i] = (float)(log((double)p[i] > 0 ? (double)p[i] : 1e-300) - log(-log(u)));
    }
}

static bool reads_number(const void *options)
{
    const args *a = options;
    return a->sample || a->draws;
}

static void probabilities(const args *a, const float *logit, int64_t V, float *out)
{
    for (int64_t i = 0; i < V; i++) out[i] = (float)((double)logit[i] / a->temperature);
    ses_softmax_row(out, out, V);
}

/* ---- draws with replacement ---- */

/* A number in (0, 1), a function of the seed, the item's number, the mask and the draw. */
static double uniform(const args *a, int64_t item, size_t group, int64_t draw)
{
    enum { DRAWS = 0x64726177 }; /* apart from the numbers of add_noise */
    uint32_t r[4];
    ses_philox(r, (ses_rng_key){ (uint64_t)a->seed, (uint32_t)item, (uint32_t)group ^ DRAWS },
               (uint64_t)draw);
    return ((double)r[0] + 0.5) / 4294967296.0;
}

/* Draws `first` to first + n - 1 of a mask, by probability among the targets and the top-k best. */
static bool draw_tokens(ses_pipeline *p, ses_request *r, size_t group, const float *logit, int64_t V,
                        int64_t first, int64_t n, candidate *out, ses_err *e)
{
    const args *a = r->args;
    const task_state *task = p->state;
    int64_t m = task->target ? (int64_t)task->n_targets : V,
            k = a->has_top_k && a->top_k && a->top_k < m ? a->top_k : m;
    float *prob = ses_alloc_array((size_t)(V + m), sizeof *prob, e), *order = prob + V;
    int32_t *at = prob ? ses_alloc_array((size_t)k, sizeof *at, e) : NULL;
    double *sum = at ? ses_alloc_array((size_t)k, sizeof *sum, e) : NULL, total = 0;
    if (sum) {
        probabilities(a, logit, V, prob);
        for (int64_t i = 0; i < m; i++) order[i] = prob[task->target ? task->target[i] : i];
        k = ses_top_k(order, m, k, at);
        for (int64_t i = 0; i < k; i++) sum[i] = total += (double)order[at[i]];
        for (int64_t d = 0; d < n; d++) {
            double x = total * uniform(a, r->item.number, group, first + d);
            int64_t low = 0, high = k - 1; /* the first sum above x */
            while (low < high) {
                int64_t middle = (low + high) / 2;
                if (sum[middle] > x)
                    high = middle;
                else
                    low = middle + 1;
            }
            int32_t id = task->target ? task->target[at[low]] : at[low];
            out[d] = (candidate){ id, prob[id] };
        }
    }
    ses_free(sum);
    ses_free(at);
    ses_free(prob);
    return sum != NULL;
}

/* The logits [V] of position `at` of the sequence with other ids; to `out`. */
static bool mask_logits(ses_pipeline *p, ses_pass *pass, const ses_seq *q, const int32_t *id, int32_t at,
                        int64_t V, float *out, ses_err *e)
{
    bool segments = ses_model_uses_segments(p->model) && p->tokenizer_config.sets_segments;
    if (!ses_batch_builder_add(&pass->in, id, segments ? q->type_id : NULL, (int64_t)q->n, e) ||
        !ses_ints_push(&pass->in.rows, at, e) || !ses_pass_run(pass, &p->settings.outputs, e))
        return false;
    const ses_real *x = ses_pass_read(pass, p->head->output, e);
    for (int64_t i = 0; x && i < V; i++) out[i] = (float)x[i];
    return x != NULL;
}

/* Draw after draw, fills the masks from left to right. first: the logits of the leftmost mask. */
static bool draw_one_by_one(ses_pipeline *p, ses_request *r, ses_seq *q, const float *first, int64_t V,
                            ses_err *e)
{
    const args *a = r->args;
    item_state *st = r->state;
    ses_pass pass;
    int32_t *id = ses_pass_open(&pass, p->model, e) ? ses_alloc_array(q->n, sizeof *id, e) : NULL;
    float *logit = id ? ses_alloc_array((size_t)V, sizeof *logit, e) : NULL;
    bool ok = logit != NULL;
    for (int64_t d = 0; ok && d < a->draws; d++) {
        memcpy(id, q->id, q->n * sizeof *id);
        for (size_t g = 0; ok && g < st->n; g++) {
            mask *x = &st->mask[g];
            ok = !g || mask_logits(p, &pass, q, id, (int32_t)x->at, V, logit, e);
            ok = ok && draw_tokens(p, r, g, g ? logit : first, V, d, 1, &x->candidate[d], e);
            if (ok) id[x->at] = x->candidate[d].id;
        }
    }
    ses_free(logit);
    ses_free(id);
    ses_pass_close(&pass);
    return ok;
}

/* Draws for the masks of a window; logit [n_rows, V]. */
static bool draw_window(ses_pipeline *p, ses_request *r, ses_seq *q, const float *logit, int64_t V,
                        ses_err *e)
{
    const args *a = r->args;
    item_state *st = r->state;
    for (size_t i = 0; i < q->n_rows; i++) {
        size_t g = st->by_window[(size_t)q->tag + i];
        mask *x = &st->mask[g];
        x->n = a->draws;
        x->candidate = ses_arena_array(&r->mem, (size_t)a->draws, sizeof *x->candidate, e);
        if (!x->candidate) return false;
        if (!a->one_by_one && !draw_tokens(p, r, g, logit + (int64_t)i * V, V, 0, a->draws, x->candidate, e))
            return false;
    }
    return !a->one_by_one || draw_one_by_one(p, r, q, logit, V, e);
}

/* ---- the best tokens ---- */

static bool fill_one(ses_pipeline *p, ses_request *r, mask *x, size_t group, const float *logit, int64_t V,
                     ses_err *e)
{
    const args *a = r->args;
    const task_state *task = p->state;
    int64_t n = task->target ? (int64_t)task->n_targets : V, k = a->top_k && a->top_k < n ? a->top_k : n;
    float *work = ses_alloc_array((size_t)V + (size_t)n, sizeof *work, e), *order = work + V;
    int32_t *at = work ? ses_alloc_array((size_t)k, sizeof *at, e) : NULL;
    x->candidate = at ? ses_arena_array(&r->mem, (size_t)k, sizeof *x->candidate, e) : NULL;
    if (x->candidate) {
        probabilities(a, logit, V, work);
        for (int64_t i = 0; task->target && i < n; i++) order[i] = work[task->target[i]];
        if (!task->target) memcpy(order, work, (size_t)n * sizeof *order);
        if (a->sample) add_noise(order, order, n, a, r->item.number, group);
        x->n = ses_top_k(order, n, k, at);
        for (int64_t i = 0; i < x->n; i++) {
            int32_t id = task->target ? task->target[at[i]] : at[i];
            x->candidate[i] = (candidate){ id, work[id] };
        }
    }
    ses_free(at);
    ses_free(work);
    return x->candidate != NULL;
}

static bool collect(ses_pipeline *p, ses_request *r, ses_seq *q, ses_err *e)
{
    item_state *st = r->state;
    ses_output_rows rows = ses_request_output_rows(p, q, p->head->output, e);
    if (rows.x && ((const args *)r->args)->draws) return draw_window(p, r, q, rows.x, rows.cols, e);
    for (size_t i = 0; rows.x && i < q->n_rows; i++) {
        size_t at = st->by_window[(size_t)q->tag + i];
        if (!fill_one(p, r, &st->mask[at], at, rows.x + (int64_t)i * rows.cols, rows.cols, e)) return false;
    }
    return rows.x != NULL;
}

/* The text with one mask filled, without padding; of draws one by one, with all masks filled by draw
 * `draw`. */
static ses_string fill_text(ses_pipeline *p, ses_request *r, const mask *m, int32_t id, int64_t draw,
                            ses_err *e)
{
    const item_state *st = r->state;
    const ses_seq *q = &r->seq[m->seq];
    bool all = ((const args *)r->args)->one_by_one, single = st->n == 1 || all;
    int32_t *ids = ses_alloc_array(q->n, sizeof *ids, e);
    size_t n = 0, g = 0;
    for (size_t i = 0; ids && i < q->n; i++) {
        int32_t x = i == m->at ? id : q->id[i];
        if (all && g < st->n && st->mask[g].at == i) x = st->mask[g++].candidate[draw].id;
        if (x >= ses_tokenizer_vocab_size(p->tokenizer)) x = p->tokenizer_config.role[SES_ROLE_PAD];
        if (x != p->tokenizer_config.role[SES_ROLE_PAD]) ids[n++] = x;
    }
    ses_string text = ids ? ses_request_decode(p, r, ids, n, !single, e) : (ses_string){ 0 };
    ses_free(ids);
    return text;
}

static bool finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    const item_state *st = r->state;
    for (size_t g = 0; g < st->n; g++)
        for (int64_t i = 0; i < st->mask[g].n; i++) {
            const mask *x = &st->mask[g];
            const ses_seq *q = &r->seq[x->seq];
            ses_result_row *row = ses_request_add_row(r, e);
            if (!row) return false;
            row->token = x->candidate[i].id;
            row->score = (double)x->candidate[i].score;
            row->group = g;
            row->index = (int64_t)x->at;
            row->char_span = q->char_offset[x->at];
            row->byte_span = q->byte_offset[x->at];
            bool known = row->token <
                         ses_tokenizer_vocab_size(p->tokenizer); /* embedding tables may have unused rows */
            row->word = known ? ses_request_decode(p, r, &row->token, 1, true, e)
                              : ses_request_copy_string(r, "", 0, e);
            row->text = fill_text(p, r, x, row->token, i, e);
            if (!row->word.p || !row->text.p) return false;
        }
    out->groups = st->n;
    out->schema = &schema;
    return true;
}

static const ses_head *const heads[] = { &ses_head_masked_lm, &ses_head_seq2seq_lm, NULL };
static const ses_usage_example examples[] = {
    { "sesame fill-mask -m bert-base-uncased \"Paris is the [MASK] of France.\"", "the five best tokens" },
    { "sesame fill-mask -m DIR --targets he,she \"[MASK] is a nurse.\"", "probabilities of two words" },
    { "sesame fill-mask -m DIR --top-k 1 --json -f texts.txt", "one JSON line for each text" },
    { "sesame fill-mask --draws 5 --one-by-one --seed 7 \"The [MASK] [MASK] sleeps.\"",
      "five texts drawn with replacement" },
    { 0 },
};

const ses_task ses_task_fill_mask = {
    .description =
        "Predicts the token behind each mask of a text ([MASK] or <mask>, depending on the "
        "tokenizer) with a masked language model. Several masks are predicted independently, unless "
        "--one-by-one draws them from left to right. In a "
        "text longer than the model accepts, each mask is predicted from a window around it; "
        "tokens outside are reported as left out. A JSON line is {\"text\": ...}.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .state_size = sizeof(task_state),
    .request_size = sizeof(item_state),
    .head = heads,
    .item_schema = { .text = "text" },
    .item_settings = "top-k|temperature|do-sample|draws|seed",
    .reads_number = reads_number,
    .needs_bidirectional = true,
    .open = open_task,
    .encode = encode,
    .collect = collect,
    .finish = finish,
};
