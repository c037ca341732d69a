#include "curriculum.h"

#include "base/alloc.h"
#include "data/token_counts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* One pass over the texts, or what a stage has left for it. */
typedef struct leg {
    size_t stage;
    int64_t pass;           /* epoch of the passages */
    int64_t first, batches; /* of the run */
} leg;

/* Where a walk over the batches of a leg stands: batch `index` begins with passage `row`. */
typedef struct cursor {
    int64_t leg, index, row;
} cursor;

/* A batch made before it was asked for; and while it is being made, the one that is in use. */
typedef struct spare {
    ses_batch_builder draft;
    size_t way;
    int64_t epoch, index, row;
} spare;

struct ses_curriculum {
    ses_curriculum_options o;
    ses_passages *passages[SES_MAX_STAGES];
    int64_t frame[SES_MAX_STAGES]; /* special tokens of a sequence, for counting a batch's */
    int64_t end[SES_MAX_STAGES];   /* batches of the run at its end */
    int64_t updates, pass_tokens;
    leg *leg;
    size_t legs, cap;
    cursor at;
    int64_t row;        /* the first passage of the batch in use */
    spare next;         /* epoch -1: none */
    ses_passages *held; /* for evaluations, made at the first */
    ses_err lost;       /* what count could not tell */
};

/* ---- batches ---- */

/* How much of its full size batch number i of the run has. */
static double share_at(const ses_curriculum *c, int64_t number)
{
    double whole = (double)c->o.accumulate * (double)c->updates;
    double ramp = whole * c->o.batch_ramp, done = (double)number;
    return done >= ramp ? 1 : c->o.ramp_from + (1 - c->o.ramp_from) * done / ramp;
}

/* The passages of batch number `number` of the run, the first being `row` of `rows`: how many. */
static int64_t fill_batch(ses_curriculum *c, size_t stage, int64_t pass, int64_t number, int64_t row,
                          int64_t rows, ses_err *e)
{
    double share = c->updates ? share_at(c, number) : 1;
    int64_t n = 0, used = 0, budget = (int64_t)(share * (double)c->o.tokens);
    int64_t most = c->o.sequences ? (int64_t)fmax(1, share * (double)c->o.sequences) : INT64_MAX;
    while (n < most && row + n < rows) {
        int64_t length = c->o.sequences ? 0 : ses_passages_length(c->passages[stage], pass, row + n, e);
        if (length < 0) return -1;
        used += length + c->frame[stage];
        if (!c->o.sequences && n && used > budget) break;
        n++;
    }
    return n;
}

/* Batches of a pass, at most so many. */
static int64_t count_batches(ses_curriculum *c, size_t stage, int64_t pass, int64_t first, int64_t most,
                             ses_err *e)
{
    int64_t rows = ses_passages_count(c->passages[stage], pass, e), n = 0;
    for (int64_t row = 0; row < rows && n < most; n++) {
        int64_t k = fill_batch(c, stage, pass, first + n, row, rows, e);
        if (k < 0) return -1;
        row += k;
    }
    return rows < 0 ? -1 : n;
}

/* ---- legs ---- */

static bool next_leg(ses_curriculum *c, ses_err *e)
{
    leg last = c->legs ? c->leg[c->legs - 1] : (leg){ .pass = -1 };
    int64_t copies =
        c->o.objectives->build.o.mask_copies; /* static masking: the same passes again and again */
    leg l = { .stage = last.stage, .first = last.first + last.batches, .pass = last.pass + 1 };
    if (copies > 0) l.pass %= copies;
    while (l.stage + 1 < c->o.n_stages && l.first >= c->end[l.stage]) l.stage++;
    bool last_stage = l.stage + 1 == c->o.n_stages; /* the trainer ends it */
    int64_t most = last_stage ? INT64_MAX : c->end[l.stage] - l.first;
    l.batches = count_batches(c, l.stage, l.pass, l.first, most, e);
    if (l.batches < 1) return false;
    if (!ses_array_reserve(&c->leg, &c->cap, c->legs + 1, sizeof *c->leg, e)) return false;
    c->leg[c->legs++] = l;
    return true;
}

static const leg *leg_at(ses_curriculum *c, int64_t i, ses_err *e)
{
    while ((int64_t)c->legs <= i)
        if (!next_leg(c, e)) return NULL;
    return &c->leg[i];
}

static int64_t count(void *ctx, int64_t epoch)
{
    ses_curriculum *c = ctx;
    const leg *l = leg_at(c, epoch, &c->lost);
    return l ? l->batches : 1; /* the batch will tell */
}

static bool walk_to(ses_curriculum *c, const leg *l, int64_t epoch, int64_t index, int64_t rows, ses_err *e)
{
    if (c->at.leg != epoch || c->at.index > index) c->at = (cursor){ .leg = epoch };
    while (c->at.index < index) {
        int64_t n = fill_batch(c, l->stage, l->pass, l->first + c->at.index, c->at.row, rows, e);
        if (n < 0) return false;
        c->at.row += n;
        c->at.index++;
    }
    return true;
}

/* A batch in the aim's draft. */
static bool lay(ses_curriculum *c, int64_t epoch, int64_t index, ses_err *e)
{
    const leg *l = leg_at(c, epoch, e);
    if (!l || c->lost.code) return l ? ses_fail(e, c->lost.code, "%s", c->lost.msg) : false;
    ses_passages *p = c->passages[l->stage];
    int64_t rows = ses_passages_count(p, l->pass, e), number = l->first + index;
    if (rows < 0 || !walk_to(c, l, epoch, index, rows, e)) return false;
    int64_t n = fill_batch(c, l->stage, l->pass, number, c->at.row, rows, e);
    double progress = fmin(1, (double)number / ((double)c->o.accumulate * (double)c->updates));
    ses_objective_mix *a = c->o.objectives;
    a->build.length = c->o.stage[l->stage].length;
    if (n < 0 ||
        !ses_objective_mix_begin_batch(a, ses_objective_mix_choose(a, (uint64_t)number), progress, e))
        return false;
    for (int64_t i = 0; i < n; i++) {
        ses_passage x;
        if (!ses_passages_at(p, l->pass, c->at.row + i, &x, e) || !ses_objective_mix_add_passage(a, &x, e))
            return false;
    }
    return true;
}

static void exchange(ses_curriculum *c)
{
    ses_objective_mix *a = c->o.objectives;
    spare had = { .draft = a->builder, .way = a->primary, .row = c->row };
    a->builder = c->next.draft;
    a->primary = c->next.way;
    c->row = c->next.row;
    c->next.draft = had.draft;
    c->next.way = had.way;
    c->next.row = had.row;
}

static bool batch(void *ctx, int64_t epoch, int64_t index, ses_batch *out, ses_err *e)
{
    ses_curriculum *c = ctx;
    if (c->next.epoch == epoch && c->next.index == index)
        exchange(c);
    else if (!lay(c, epoch, index, e))
        return false;
    else
        c->row = c->at.row;
    c->next.epoch = -1;
    return ses_objective_mix_end_batch(c->o.objectives, out, e);
}

/* What goes wrong is told when the batch is asked for. */
static void ahead(void *ctx, int64_t epoch, int64_t index)
{
    ses_curriculum *c = ctx;
    exchange(c);
    bool ok = lay(c, epoch, index, NULL);
    c->row = c->at.row;
    exchange(c);
    c->next.epoch = ok ? epoch : -1;
    c->next.index = index;
}

static void describe(void *ctx, int64_t epoch, int64_t index, char *buf, size_t n)
{
    ses_curriculum *c = ctx;
    (void)index;
    if (epoch < (int64_t)c->legs)
        snprintf(buf, n, "from passage %" PRId64 " of pass %" PRId64 ", at most %" PRId64 " tokens each",
                 c->row + 1, c->leg[epoch].pass + 1, c->o.stage[c->leg[epoch].stage].length);
}

static uint64_t hash(void *ctx)
{
    const ses_curriculum *c = ctx;
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < c->o.passages.n_parts; i++)
        h = (h ^ ses_corpus_info_of(c->o.passages.parts[i].corpus)->content_hash) * 1099511628211u;
    return h;
}

ses_batch_source ses_curriculum_source(ses_curriculum *c)
{
    return (ses_batch_source){
        .ctx = c, .count = count, .batch = batch, .prefetch = ahead, .describe = describe, .hash = hash
    };
}

/* ---- making one ---- */

static bool check(const ses_curriculum_options *o, ses_err *e)
{
    double sum = 0;
    if (!o->n_stages || o->n_stages > SES_MAX_STAGES)
        return ses_fail(e, SES_EARG, "1 to %d stages", SES_MAX_STAGES);
    for (size_t i = 0; i < o->n_stages; i++) {
        if (!(o->stage[i].fraction > 0))
            return ses_fail(e, SES_EARG, "stage %zu has no share of the run", i + 1);
        sum += o->stage[i].fraction;
    }
    if (fabs(sum - 1) > 1e-6)
        return ses_fail(e, SES_EARG, "shares of the stages add up to %g, not to 1", sum);
    if (!o->sequences == !o->tokens)
        return ses_fail(e, SES_EARG, "a batch is so many passages, or so many tokens");
    if (!(o->batch_ramp >= 0 && o->batch_ramp <= 1) || !(o->ramp_from >= 0 && o->ramp_from <= 1))
        return ses_fail(e, SES_EARG, "shares of a batch ramp are from 0 to 1");
    return true;
}

/* Passages of a stage: what the objectives leave of its length. */
static ses_passages *open_passages(ses_curriculum *c, int64_t length, bool eval, int64_t *frame, ses_err *e)
{
    ses_passages_options o = c->o.passages;
    c->o.objectives->build.length = length;
    o.seq_len = ses_objective_mix_max_passage(c->o.objectives);
    if (eval) {
        o.parts = c->o.eval_part;
        o.n_parts = c->o.n_eval_parts;
        o.held_out = c->o.eval_held_out;
        o.exponent = 1;
    }
    if (o.seq_len < 2) {
        ses_fail(e, SES_EARG, "sequences of %" PRId64 " tokens leave no room for text", length);
        return NULL;
    }
    *frame = length - o.seq_len;
    return ses_passages_new(&o, e);
}

ses_curriculum *ses_curriculum_new(const ses_curriculum_options *o, ses_err *e)
{
    if (!check(o, e)) return NULL;
    ses_curriculum *c = ses_alloc(sizeof *c, e);
    if (!c) return NULL;
    c->o = *o;
    if (c->o.accumulate < 1) c->o.accumulate = 1;
    c->at.leg = c->next.epoch = -1;
    double sum = 0;
    for (size_t i = 0; i < o->n_stages; i++)
        if (!(c->passages[i] = open_passages(c, o->stage[i].length, false, &c->frame[i], e))) goto fail;
    c->pass_tokens = ses_passages_tokens(c->passages[0], 0, e);
    c->updates = o->updates;
    if (!c->updates) {
        int64_t batches = count_batches(c, 0, 0, 0, INT64_MAX, e);
        if (batches < 0) goto fail;
        c->updates = (int64_t)ceil(o->epochs * (double)batches / (double)c->o.accumulate);
    }
    if (c->updates < 1) {
        ses_fail(e, SES_EARG, "a run of 0 updates");
        goto fail;
    }
    for (size_t i = 0; i < o->n_stages; i++) {
        sum += o->stage[i].fraction;
        c->end[i] =
            c->o.accumulate * (i + 1 == o->n_stages ? c->updates : (int64_t)(sum * (double)c->updates));
    }
    return c;
fail:
    ses_curriculum_free(c);
    return NULL;
}

void ses_curriculum_free(ses_curriculum *c)
{
    if (!c) return;
    for (size_t i = 0; i < SES_MAX_STAGES; i++) ses_passages_free(c->passages[i]);
    ses_passages_free(c->held);
    ses_batch_builder_free(&c->next.draft);
    ses_free(c->leg);
    ses_free(c);
}

int64_t ses_curriculum_updates(const ses_curriculum *c) { return c->updates; }
int64_t ses_curriculum_pass_tokens(const ses_curriculum *c) { return c->pass_tokens; }

/* ---- evaluation ---- */

enum { EVAL_BATCH = 4096, LABELS_FROM = 1 << 20 }; /* tokens */

typedef bool taker(void *ctx, const ses_batch *b, int64_t row, ses_err *e);

/* Batches of the first pass, about so many tokens in all; row: where the next one begins. */
static bool each_batch(ses_curriculum *c, ses_passages *p, size_t way, int64_t tokens, taker *take, void *ctx,
                       ses_err *e)
{
    int64_t rows = ses_passages_count(p, 0, e), done = 0;
    ses_objective_mix *a = c->o.objectives;
    for (int64_t row = 0; row < rows && done < tokens;) {
        ses_batch b;
        int64_t used = 0;
        if (!ses_objective_mix_begin_batch(a, way, 0, e)) return false;
        for (; row < rows && used < EVAL_BATCH; row++) {
            ses_passage x;
            if (!ses_passages_at(p, 0, row, &x, e) || !ses_objective_mix_add_passage(a, &x, e)) return false;
            used += x.n;
        }
        done += used;
        if (!ses_objective_mix_end_batch(a, &b, e) || !take(ctx, &b, row, e)) return false;
    }
    return rows > 0;
}

/* As every run is measured: sequences of the first stage, the usual mask rate. Gives what the run has. */
static ses_objective_options usual(ses_curriculum *c)
{
    ses_objective_mix *a = c->o.objectives;
    ses_objective_options had = a->build.o;
    a->build.length = c->o.stage[0].length;
    a->build.o.mask_rate = a->build.o.mask_rate_end = -1;
    a->build.o.mask_copies = 0;
    return had;
}

static bool open_held(ses_curriculum *c, ses_err *e)
{
    int64_t frame;
    return c->held || (c->held = open_passages(c, c->o.stage[0].length, true, &frame, e));
}

typedef struct measuring {
    ses_objective_mix *aim;
    ses_tape *tape;
    ses_metric_sums *tally;
    bool (*go_on)(void *ctx);
    void *ctx;
} measuring;

static bool measure(void *ctx, const ses_batch *b, int64_t row, ses_err *e)
{
    const measuring *m = ctx;
    ses_tape_reset(m->tape, &(ses_tape_options){ .record = false, .seed = 1, .step = (uint32_t)row });
    if (!ses_objective_mix_measure(m->aim, m->tape, b, m->tally, e)) return false;
    return !m->go_on || m->go_on(m->ctx) || ses_fail(e, SES_EIO, "the evaluation was broken off");
}

bool ses_curriculum_evaluate(ses_curriculum *c, int64_t tokens, bool (*go_on)(void *ctx), void *ctx,
                             ses_metric_sums *out, ses_err *e)
{
    ses_objective_mix *a = c->o.objectives;
    measuring m = { .aim = a, .tally = out, .go_on = go_on, .ctx = ctx };
    *out = (ses_metric_sums){ 0 };
    if (!open_held(c, e)) return false;
    m.tape =
        ses_tape_new(ses_store_device(ses_model_store(a->model)), &(ses_tape_options){ .record = false }, e);
    if (!m.tape) return false;
    ses_objective_options had = usual(c);
    bool ok = true;
    for (size_t way = 0; ok && (way < a->n_primary || way == 0); way++)
        ok = each_batch(c, c->held, way, tokens, measure, &m, e);
    a->build.o = had;
    ses_tape_free(m.tape);
    return ok;
}

typedef struct counting {
    int64_t *count, vocab;
} counting;

static bool count_labels(void *ctx, const ses_batch *b, int64_t row, ses_err *e)
{
    const counting *k = ctx;
    int64_t n = b->target_cu_seqlens ? b->target_cu_seqlens[b->seqs] : b->tokens;
    (void)row, (void)e;
    for (int64_t i = 0; b->labels && i < n; i++)
        if (b->labels[i] >= 0 && b->labels[i] < k->vocab) k->count[b->labels[i]]++;
    return true;
}

bool ses_curriculum_unigram_loss(ses_curriculum *c, size_t way, int64_t tokens, double *loss, ses_err *e)
{
    ses_objective_mix *a = c->o.objectives;
    counting by = { .vocab = ses_model_vocab_size(a->model) }, of = by;
    *loss = NAN;
    if (way >= a->n_primary || !c->o.n_eval_parts)
        return true; /* labels of pairs, or nothing to measure with */
    if (!open_held(c, e)) return false;
    by.count = ses_alloc_array((size_t)by.vocab, sizeof *by.count, e);
    of.count = ses_alloc_array((size_t)by.vocab, sizeof *of.count, e);
    ses_objective_options had = usual(c);
    bool ok = by.count && of.count && each_batch(c, c->passages[0], way, LABELS_FROM, count_labels, &by, e) &&
              each_batch(c, c->held, way, tokens, count_labels, &of, e);
    a->build.o = had;
    if (ok) *loss = ses_unigram_loss(by.count, of.count, by.vocab);
    ses_free(by.count);
    ses_free(of.count);
    return ok;
}
