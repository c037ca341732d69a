/* Computes likelihoods. Spans are sorted, so that spans with the same context are neighbors: a unit. One row
 * of logits gives the first token of all continuations of a unit. If several have more tokens, the context
 * is computed once into a slot of the KV cache; each continuation then extends the slot, which is trimmed
 * back to the context. Equal spans are computed once. Passes are filled with sequences of several units,
 * without padding. */
#include "likelihood_impl.h"

#include "base/alloc.h"
#include "base/sort.h"
#include "model/model_desc.h"
#include "nn/cache_impl.h"
#include "nn/decoder_input.h"
#include "op/op.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <string.h>

/* Numbers in the logits of a pass, and at least MIN_ROWS rows, unless one sequence has more; contexts
 * below MIN_CACHED tokens are computed again for each continuation. */
enum { PASS_LOGITS = 1 << 21, MIN_ROWS = 256, MIN_CACHED = 8 };

typedef struct job {
    const int32_t *id; /* context, scored tokens, tail */
    ses_scored_span *s;
} job;

/* Jobs with the same context. */
typedef struct unit {
    size_t first, n;
    /* in the cache: */
    size_t at;    /* job that its slot extends */
    int32_t fed;  /* tokens of its continuation in the slot */
    int64_t base; /* length of the slot with the context alone */
    bool in_pass;
} unit;

/* A token to score, by a row of logits. */
typedef struct target {
    int64_t row;
    int32_t id;
    ses_scored_span *span;
} target;

typedef struct runner {
    ses_likelihood *l;
    job *job;
    size_t *leader; /* [n]: the first job equal to this one */
    size_t n;
    int64_t max_rows, done, total; /* done, total: in tokens */
    /* the next pass */
    ses_batch_builder *in;
    ses_ints *ids; /* in->ids; with an encoder in->target_ids */
    target *target;
    size_t n_targets, target_cap;
    int32_t *label; /* [rows] */
    size_t label_cap;
    bool continues; /* sequences continue their slots: encoder-decoders read no source */
    bool is_cached;
    ses_real *logits, *loss;
    size_t logits_cap, loss_cap;
} runner;

static bool is_seq2seq(const runner *r) { return r->l->kind == SES_LIKELIHOOD_SEQ2SEQ; }

/* The decoder's first input is the last label (mBART), not a start token. */
static bool wraps(const runner *r) { return is_seq2seq(r) && ses_decoder_wraps(&r->l->model->c); }

/* ---- a pass ---- */

/* Rows of logits on the host; r->loss gets log(sum(exp)) of each. */
static bool read_logits(runner *r, const ses_tensor *x, ses_err *e)
{
    ses_likelihood *l = r->l;
    ses_device *d = l->model->dev;
    int64_t n_rows = l->pass.request.n_rows;
    size_t n;
    if (!ses_mul_size((size_t)n_rows, (size_t)l->vocab, &n) ||
        !ses_array_reserve(&r->logits, &r->logits_cap, n, sizeof *r->logits, e) ||
        !ses_array_reserve(&r->loss, &r->loss_cap, (size_t)n_rows, sizeof *r->loss, e))
        return false;
    memset(r->loss, 0, (size_t)n_rows * sizeof *r->loss);
    ses_tensor *label = ses_tape_ints(l->pass.tape, r->label, n_rows);
    ses_tensor *loss = ses_tape_input(l->pass.tape, r->loss, SES_DIM(n_rows));
    ses_tensor *lse = ses_tape_input(l->pass.tape, r->loss, SES_DIM(n_rows));
    if (!label || !loss || !lse) return ses_tape_ok(l->pass.tape, e);
    const ses_kernels *k = x->dtype == SES_REAL ? &d->k_f32 : &d->k;
    k->xent_rows(&d->exec, ses_master_data(loss), ses_master_data(lse), x->f, label->i, n_rows, l->vocab,
                 ses_cols(x));
    d->mem->download(d, r->loss, ses_master_data(lse), (size_t)n_rows * sizeof *r->loss);
    return ses_tape_read(l->pass.tape, x, r->logits) || ses_tape_ok(l->pass.tape, e);
}

/* The most likely token of a row, the first of equal ones. */
static int32_t best_of(const ses_real *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return (int32_t)best;
}

/* Adds the log-probabilities of the targets to their spans, in the order of their tokens. */
static bool use_logits(runner *r, ses_err *e)
{
    int64_t vocab = r->l->vocab, row = -1;
    int32_t best = -1;
    for (size_t i = 0; i < r->n_targets; i++) {
        const target *t = &r->target[i];
        const ses_real *x = r->logits + t->row * vocab;
        if (t->row != row) row = t->row, best = best_of(x, vocab);
        double logprob = (double)x[t->id] - (double)r->loss[row];
        if (isnan(logprob))
            return ses_fail(e, SES_EFORMAT, "the model computes NaN: its weights are damaged");
        t->span->logprob += logprob;
        t->span->is_greedy &= best == t->id;
    }
    return true;
}

static bool run_pass(runner *r, ses_err *e)
{
    static const ses_output_request want = { .logits = true };
    ses_likelihood *l = r->l;
    ses_pass *p = &l->pass;
    int64_t tokens = (int64_t)(r->in->ids.n + r->in->target_ids.n);
    if (!r->ids->n) return true;
    if (!ses_array_reserve(&r->label, &r->label_cap, r->in->rows.n, sizeof *r->label, e)) return false;
    for (size_t i = r->n_targets; i-- > 0;) r->label[r->target[i].row] = r->target[i].id;
    ses_pass_begin(p, &want);
    if (r->is_cached) p->batch.cache = l->cache;
    if (!ses_model_forward(l->model, p->tape, &p->batch, &p->request, &p->out, e)) return false;
    const ses_output *logits = ses_outputs_find(&p->out, l->logits_name);
    if (!logits || logits->axis != SES_PER_ROW || ses_count(logits->tensor) != p->request.n_rows * l->vocab)
        return ses_fail(e, SES_EARG, "the model has no logits over its vocabulary");
    if (!read_logits(r, logits->tensor, e) || !use_logits(r, e)) return false;
    l->stats.passes++;
    l->stats.tokens_read += tokens;
    r->done += (int64_t)r->n_targets;
    r->n_targets = 0;
    if (l->o.progress) l->o.progress(l->o.ctx, r->done, r->total);
    return true;
}

/* Runs the pass if it has no room for a sequence of these sizes. */
static bool make_room(runner *r, int64_t tokens, int64_t rows, ses_err *e)
{
    bool full = (int64_t)(r->in->ids.n + r->in->target_ids.n) + tokens > r->l->o.pass_tokens ||
                (int64_t)r->in->rows.n + rows > r->max_rows;
    return !full || run_pass(r, e);
}

/* Ends a sequence; source: what the encoder of an encoder-decoder reads. */
static bool end_sequence(runner *r, int32_t slot, const int32_t *source, int64_t n_source, ses_err *e)
{
    if (r->is_cached && !ses_ints_push(&r->in->slots, slot, e)) return false;
    if (!is_seq2seq(r)) return ses_batch_builder_end_sequence(r->in, e);
    return r->continues || ses_batch_builder_add(r->in, source, NULL, n_source, e);
}

/* Requests the logits of a token of the pass. */
static bool put_row(runner *r, size_t token, ses_err *e)
{
    return ses_ints_push(&r->in->rows, (int32_t)token, e);
}

/* The last row predicts the token `id` of a span. */
static bool put_target(runner *r, int32_t id, ses_scored_span *s, ses_err *e)
{
    if (!ses_array_reserve(&r->target, &r->target_cap, r->n_targets + 1, sizeof *r->target, e)) return false;
    r->target[r->n_targets++] = (target){ (int64_t)r->in->rows.n - 1, id, s };
    return true;
}

/* ---- whole sequences ---- */

static bool is_leader(const runner *r, size_t i) { return r->leader[i] == i; }
static const int32_t *scored_ids(const job *j) { return j->id + j->s->n_context; }

/* Lets the last row score the first token of every continuation of one token. */
static bool put_single_targets(runner *r, const unit *u, ses_err *e)
{
    for (size_t i = u->first; i < u->first + u->n; i++)
        if (is_leader(r, i) && r->job[i].s->n_scored == 1 &&
            !put_target(r, scored_ids(&r->job[i])[0], r->job[i].s, e))
            return false;
    return true;
}

/* A sequence with the context and the continuation without its last token. u: the unit whose continuations of
 * one token the first row scores, too; NULL: none. */
static bool add_whole(runner *r, const job *j, const unit *u, ses_err *e)
{
    const ses_scored_span *s = j->s;
    const int32_t *scored = scored_ids(j);
    bool seq2seq = is_seq2seq(r);
    if (!make_room(r, s->n_context + s->n_scored - !seq2seq, s->n_scored, e)) return false;
    size_t at = r->ids->n + (seq2seq ? 0 : (size_t)s->n_context - 1);
    if (seq2seq ? !ses_batch_builder_shift(r->in, r->l->model, scored, s->n_scored, e)
                : !ses_ints_append(r->ids, j->id, s->n_context, e) ||
                      !ses_ints_append(r->ids, scored, s->n_scored - 1, e))
        return false;
    for (int32_t i = 0; i < s->n_scored; i++) {
        if (!put_row(r, at + (size_t)i, e)) return false;
        bool single = u && s->n_scored == 1; /* among the single ones */
        if (!single && !put_target(r, scored[i], j->s, e)) return false;
        if (!i && u && !put_single_targets(r, u, e)) return false;
    }
    return end_sequence(r, 0, j->id, s->n_context, e);
}

/* Each continuation with its own copy of the context. */
static bool add_plain_unit(runner *r, const unit *u, ses_err *e)
{
    bool alone = r->l->o.no_sharing || wraps(r);
    const unit *share = alone ? NULL : u;
    for (size_t i = u->first; i < u->first + u->n; i++) {
        if (!is_leader(r, i) || (!alone && r->job[i].s->n_scored == 1)) continue;
        if (!add_whole(r, &r->job[i], share, e)) return false;
        if (!alone) share = NULL;
    }
    for (size_t i = u->first; share && i < u->first + u->n; i++) /* all have one token */
        if (is_leader(r, i)) return add_whole(r, &r->job[i], share, e);
    return true;
}

/* ---- masked models ---- */

/* A sequence with a mask in place of scored token k. */
static bool add_mask(runner *r, const job *j, int32_t k, ses_err *e)
{
    int64_t n = (int64_t)j->s->n_context + j->s->n_scored + j->s->n_tail;
    if (!make_room(r, n, 1, e)) return false;
    size_t at = r->ids->n + (size_t)(j->s->n_context + k);
    if (!ses_ints_append(r->ids, j->id, n, e)) return false;
    r->ids->p[at] = r->l->mask_id;
    return put_row(r, at, e) && end_sequence(r, 0, NULL, 0, e);
}

static bool add_masked_unit(runner *r, const unit *u, ses_err *e)
{
    bool alone = r->l->o.no_sharing, shared = false;
    for (size_t i = u->first; i < u->first + u->n; i++) {
        const job *j = &r->job[i];
        bool single = j->s->n_scored == 1 && !alone;
        if (!is_leader(r, i) || (single && shared)) continue;
        for (int32_t k = 0; k < j->s->n_scored; k++) {
            if (!add_mask(r, j, k, e)) return false;
            if (!single && !put_target(r, scored_ids(j)[k], j->s, e)) return false;
        }
        if (single && !put_single_targets(r, u, e)) return false;
        shared |= single;
    }
    return true;
}

/* ---- contexts in the cache ---- */

/* The next job of a unit, from i on, that has more than one token; the end of the unit: none. */
static size_t next_long(const runner *r, const unit *u, size_t i)
{
    while (i < u->first + u->n && (!is_leader(r, i) || r->job[i].s->n_scored == 1)) i++;
    return i;
}

static int64_t longest_of(const runner *r, const unit *u)
{
    int64_t n = 1;
    for (size_t i = u->first; i < u->first + u->n; i++)
        if (r->job[i].s->n_scored > n) n = r->job[i].s->n_scored;
    return n;
}

static bool uses_cache(const runner *r, const unit *u)
{
    if (!r->l->cache) return false;
    if (longest_of(r, u) > r->max_rows) return true; /* the continuation is read in parts */
    size_t first = next_long(r, u, u->first);
    bool several = first < u->first + u->n && next_long(r, u, first + 1) < u->first + u->n;
    return several && (is_seq2seq(r) || r->job[u->first].s->n_context >= MIN_CACHED);
}

/* Reads the context into slot k and scores the first tokens of all continuations. */
static bool add_context(runner *r, unit *u, int32_t k, ses_err *e)
{
    const job *j = &r->job[u->first];
    bool seq2seq = is_seq2seq(r);
    u->base = seq2seq ? 1 : j->s->n_context;
    u->at = next_long(r, u, u->first), u->fed = 0;
    if (!make_room(r, u->base + (seq2seq ? j->s->n_context : 0), 1, e) ||
        !(seq2seq ? ses_batch_builder_start(r->in, r->l->model, NULL, 0, e)
                  : ses_ints_append(r->ids, j->id, u->base, e)) ||
        !put_row(r, r->ids->n - 1, e))
        return false;
    for (size_t i = u->first; i < u->first + u->n; i++)
        if (is_leader(r, i) && !put_target(r, scored_ids(&r->job[i])[0], r->job[i].s, e)) return false;
    return end_sequence(r, k, j->id, j->s->n_context, e);
}

/* Extends slot k by the next tokens of its continuation. */
static bool add_part(runner *r, unit *u, int32_t k, ses_err *e)
{
    const job *j = &r->job[u->at];
    int64_t n = j->s->n_scored - 1 - u->fed;
    if (n > r->max_rows) n = r->max_rows;
    if (!make_room(r, n, n, e)) return false;
    const int32_t *id = scored_ids(j) + u->fed;
    for (int64_t i = 0; i < n; i++) {
        if (!put_row(r, r->ids->n + (size_t)i, e) || !put_target(r, id[i + 1], j->s, e)) return false;
    }
    u->fed += (int32_t)n;
    u->in_pass = true;
    return ses_ints_append(r->ids, id, n, e) && end_sequence(r, k, NULL, 0, e) &&
           (!is_seq2seq(r) || ses_batch_builder_end_target(r->in, e));
}

/* Continuations of the units in slots 0 .. n - 1, one of each unit at a time. */
static bool extend_slots(runner *r, unit *u, int32_t n, ses_err *e)
{
    for (bool any = true; any;) {
        any = false;
        for (int32_t k = 0; k < n; k++) {
            u[k].in_pass = false;
            if (u[k].at >= u[k].first + u[k].n) continue;
            if (!add_part(r, &u[k], k, e)) return false;
            any = true;
        }
        if (!run_pass(r, e)) return false;
        for (int32_t k = 0; k < n; k++) {
            if (!u[k].in_pass || u[k].fed < r->job[u[k].at].s->n_scored - 1) continue;
            ses_cache_trim(r->l->cache, k, u[k].base);
            u[k].at = next_long(r, &u[k], u[k].at + 1), u[k].fed = 0;
        }
    }
    return true;
}

static int64_t slot_length(const runner *r, const unit *u)
{
    return (is_seq2seq(r) ? 1 : r->job[u->first].s->n_context) + longest_of(r, u) - 1;
}

/* Units that fit into the cache at once: at least one. *rows: tokens of their slots. */
static int32_t count_chunk(const runner *r, const unit *u, size_t n, int64_t *rows)
{
    int32_t k = 0;
    int64_t tokens = 0;
    *rows = 0;
    while ((size_t)k < n && k < ses_cache_slots(r->l->cache)) {
        int64_t more = slot_length(r, &u[k]);
        tokens += r->job[u[k].first].s->n_context;
        if (k && (*rows + more > r->l->o.pass_tokens || tokens > r->l->o.pass_tokens)) break;
        *rows += more;
        k++;
    }
    return k;
}

static bool run_chunk(runner *r, unit *u, int32_t n, int64_t rows, ses_err *e)
{
    ses_cache *c = r->l->cache;
    bool ok = ses_cache_grow_rows(c, rows + n * c->virtual_rows, e);
    r->is_cached = true;
    for (int32_t k = 0; ok && k < n; k++) {
        ok =
            ses_cache_reserve(c, k, slot_length(r, &u[k])) || ses_fail(e, SES_ENOMEM, "the KV cache is full");
        ok = ok && add_context(r, &u[k], k, e);
    }
    ok = ok && run_pass(r, e);
    r->continues = true;
    ok = ok && extend_slots(r, u, n, e);
    r->is_cached = r->continues = false;
    for (int32_t k = 0; k < n; k++) {
        ses_cache_trim(c, k, 0);
        (void)ses_cache_reserve(c, k, 0);
    }
    return ok;
}

/* ---- all spans ---- */

static int compare_ids(const int32_t *a, int32_t n_a, const int32_t *b, int32_t n_b)
{
    if (n_a != n_b) return n_a > n_b ? -1 : 1; /* long ones first */
    return n_a ? memcmp(a, b, (size_t)n_a * sizeof *a) : 0;
}

static int compare_contexts(const job *a, const job *b)
{
    int c = compare_ids(a->id, a->s->n_context, b->id, b->s->n_context);
    return c ? c
             : compare_ids(scored_ids(a) + a->s->n_scored, a->s->n_tail, scored_ids(b) + b->s->n_scored,
                           b->s->n_tail);
}

static int compare_jobs(const void *a, const void *b)
{
    const job *x = a, *y = b;
    int c = compare_contexts(x, y);
    return c ? c : compare_ids(scored_ids(x), x->s->n_scored, scored_ids(y), y->s->n_scored);
}

static bool sort_jobs(runner *r, ses_err *e)
{
    ses_likelihood *l = r->l;
    r->job = ses_alloc_array(r->n, sizeof *r->job, e);
    r->leader = ses_alloc_array(r->n, sizeof *r->leader, e);
    if (!r->job || !r->leader) return false;
    for (size_t i = 0; i < r->n; i++) {
        ses_scored_span *s = &l->span[l->first_new + i];
        r->job[i] = (job){ ses_scored_span_ids(l, s), s };
    }
    if (!ses_stable_sort(r->job, r->n, sizeof *r->job, compare_jobs, e)) return false;
    for (size_t i = 0; i < r->n; i++) {
        bool equal = i && !l->o.no_sharing && !compare_jobs(&r->job[i - 1], &r->job[i]);
        r->leader[i] = equal ? r->leader[i - 1] : i;
        if (!equal) r->total += r->job[i].s->n_scored;
    }
    return true;
}

/* The units: units for the cache first; *cached: their number. */
static unit *make_units(const runner *r, size_t *n, size_t *cached, ses_err *e)
{
    unit *u = ses_alloc_array(2 * r->n, sizeof *u, e), *plain = u ? u + r->n : NULL;
    size_t n_plain = 0;
    *n = *cached = 0;
    for (size_t i = 0, end; u && i < r->n; i = end) {
        for (end = i + 1; end < r->n && !compare_contexts(&r->job[i], &r->job[end]);) end++;
        unit one = { .first = i, .n = end - i };
        if (uses_cache(r, &one))
            u[(*cached)++] = one;
        else
            plain[n_plain++] = one;
    }
    if (u) memmove(u + *cached, plain, n_plain * sizeof *u);
    *n = *cached + n_plain;
    return u;
}

static bool run_units(runner *r, ses_err *e)
{
    size_t n, cached, i = 0;
    unit *u = make_units(r, &n, &cached, e);
    bool ok = u != NULL;
    while (ok && i < cached) {
        int64_t rows;
        int32_t k = count_chunk(r, u + i, cached - i, &rows);
        ok = run_chunk(r, u + i, k, rows, e);
        i += (size_t)k;
    }
    for (; ok && i < n; i++)
        ok = (r->l->kind == SES_LIKELIHOOD_MASKED ? add_masked_unit : add_plain_unit)(r, &u[i], e);
    ok = ok && run_pass(r, e);
    ses_free(u);
    return ok;
}

bool ses_likelihood_run_spans(ses_likelihood *l, ses_err *e)
{
    runner r = { .l = l, .n = l->n_spans - l->first_new };
    if (!r.n) return true;
    r.in = &l->pass.in;
    r.ids = is_seq2seq(&r) ? &r.in->target_ids : &r.in->ids;
    ses_batch_builder_clear(r.in);
    r.max_rows = PASS_LOGITS / l->vocab;
    if (r.max_rows < MIN_ROWS) r.max_rows = MIN_ROWS;
    bool ok = sort_jobs(&r, e) && run_units(&r, e);
    for (size_t i = 0; ok && i < r.n; i++) {
        const ses_scored_span *from = r.job[r.leader[i]].s;
        r.job[i].s->logprob = from->logprob, r.job[i].s->is_greedy = from->is_greedy;
    }
    ses_free(r.job), ses_free(r.leader), ses_free(r.label), ses_free(r.target);
    ses_free(r.logits), ses_free(r.loss);
    return ok;
}
