/* The curriculum of a pretraining run: stages, batches and evaluations. */
#include "curriculum.h"

#include "base/alloc.h"
#include "comm/comm_impl.h"
#include "data/token_counts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* An epoch of the trainer: one pass over the texts, or the part of it that is left in a stage. */
typedef struct stage_epoch {
    size_t stage;
    int64_t pass;           /* epoch of the passages */
    int64_t first, batches; /* number of its first batch in the run; batches */
} stage_epoch;

/* A position in an epoch: batch `index` starts with passage `row`. */
typedef struct cursor {
    int64_t epoch, index, row;
} cursor;

/* The prefetched batch; while it is built, the batch in use. */
typedef struct spare_batch {
    ses_batch_builder builder;
    size_t primary;
    int64_t epoch, index, row;
} spare_batch;

struct ses_curriculum {
    ses_curriculum_options o;
    ses_passages *passages[SES_MAX_STAGES];
    int64_t frame[SES_MAX_STAGES]; /* special tokens per sequence */
    int64_t end[SES_MAX_STAGES];   /* batches of the run at the stage's end */
    int64_t updates, pass_tokens, pass_skipped;
    stage_epoch *epoch; /* [n_epochs] known so far */
    size_t n_epochs, cap;
    cursor at;
    int64_t row;        /* first passage of the batch in use */
    spare_batch next;   /* epoch -1: none */
    ses_passages *eval; /* opened by the first evaluation */
    ses_err error;      /* error of count(), which cannot fail; reported with the next batch */
};

/* ---- batches ---- */

/* Fraction of the full size of batch `number` of the run (batch-size warmup). */
static double size_fraction(const ses_curriculum *c, int64_t number)
{
    double whole = (double)c->o.update_batches * (double)c->updates;
    double ramp = whole * c->o.batch_ramp, done = (double)number;
    return done >= ramp ? 1 : c->o.ramp_from + (1 - c->o.ramp_from) * done / ramp;
}

/* Number of passages in batch `number` of the run, which starts at passage `row` of `rows`; -1: failed. */
static int64_t count_passages(ses_curriculum *c, size_t stage, int64_t pass, int64_t number, int64_t row,
                              int64_t rows, ses_err *e)
{
    double fraction = c->updates ? size_fraction(c, number) : 1;
    int64_t n = 0, used = 0, budget = (int64_t)(fraction * (double)c->o.tokens);
    int64_t max = c->o.sequences ? (int64_t)fmax(1, fraction * (double)c->o.sequences) : INT64_MAX;
    while (n < max && row + n < rows) {
        int64_t length = c->o.sequences ? 0 : ses_passages_length(c->passages[stage], pass, row + n, e);
        if (length < 0) return -1;
        used += length + c->frame[stage];
        if (!c->o.sequences && n && used > budget) break;
        n++;
    }
    return n;
}

/* Number of batches in a pass, at most `max`; -1: failed. */
static int64_t count_batches(ses_curriculum *c, size_t stage, int64_t pass, int64_t first, int64_t max,
                             ses_err *e)
{
    int64_t rows = ses_passages_count(c->passages[stage], pass, e), n = 0;
    for (int64_t row = 0; row < rows && n < max; n++) {
        int64_t k = count_passages(c, stage, pass, first + n, row, rows, e);
        if (k < 0) return -1;
        row += k;
    }
    return rows < 0 ? -1 : n;
}

/* ---- epochs ---- */

static bool add_epoch(ses_curriculum *c, ses_err *e)
{
    stage_epoch last = c->n_epochs ? c->epoch[c->n_epochs - 1] : (stage_epoch){ .pass = -1 };
    stage_epoch l = { .stage = last.stage, .first = last.first + last.batches, .pass = last.pass + 1 };
    while (l.stage + 1 < c->o.n_stages && l.first >= c->end[l.stage]) l.stage++;
    bool last_stage = l.stage + 1 == c->o.n_stages; /* ends with the run */
    int64_t max = last_stage ? INT64_MAX : c->end[l.stage] - l.first;
    l.batches = count_batches(c, l.stage, l.pass, l.first, max, e);
    if (l.batches < 1) return false;
    if (!ses_array_reserve(&c->epoch, &c->cap, c->n_epochs + 1, sizeof *c->epoch, e)) return false;
    c->epoch[c->n_epochs++] = l;
    return true;
}

static const stage_epoch *epoch_at(ses_curriculum *c, int64_t i, ses_err *e)
{
    while ((int64_t)c->n_epochs <= i)
        if (!add_epoch(c, e)) return NULL;
    return &c->epoch[i];
}

static int64_t count(void *ctx, int64_t epoch)
{
    ses_curriculum *c = ctx;
    const stage_epoch *l = epoch_at(c, epoch, &c->error);
    return l ? l->batches : 1; /* the batch reports the error */
}

/* Moves the cursor to batch `index` of an epoch. */
static bool seek(ses_curriculum *c, const stage_epoch *l, int64_t epoch, int64_t index, int64_t rows,
                 ses_err *e)
{
    if (c->at.epoch != epoch || c->at.index > index) c->at = (cursor){ .epoch = epoch };
    while (c->at.index < index) {
        int64_t n = count_passages(c, l->stage, l->pass, l->first + c->at.index, c->at.row, rows, e);
        if (n < 0) return false;
        c->at.row += n;
        c->at.index++;
    }
    return true;
}

/* Builds a batch in the objectives' builder. */
static bool build(ses_curriculum *c, int64_t epoch, int64_t index, ses_err *e)
{
    const stage_epoch *l = epoch_at(c, epoch, e);
    if (!l || c->error.code) return l ? ses_fail(e, c->error.code, "%s", c->error.msg) : false;
    ses_passages *p = c->passages[l->stage];
    int64_t rows = ses_passages_count(p, l->pass, e), number = l->first + index;
    if (rows < 0 || !seek(c, l, epoch, index, rows, e)) return false;
    int64_t n = count_passages(c, l->stage, l->pass, number, c->at.row, rows, e);
    double progress = fmin(1, (double)number / ((double)c->o.update_batches * (double)c->updates));
    ses_objective_mix *mix = c->o.objectives;
    mix->build.length = c->o.stage[l->stage].length;
    if (n < 0) return false;
    ses_objective_mix_begin_batch(mix, ses_objective_mix_choose(mix, (uint64_t)number), progress);
    for (int64_t i = 0; i < n; i++) {
        ses_passage x;
        if (!ses_passages_at(p, l->pass, c->at.row + i, &x, e) || !ses_objective_mix_add_passage(mix, &x, e))
            return false;
    }
    return true;
}

/* Swaps the objectives' builder with the spare batch. */
static void swap_spare(ses_curriculum *c)
{
    ses_objective_mix *mix = c->o.objectives;
    spare_batch saved = { .builder = mix->builder, .primary = mix->primary, .row = c->row };
    mix->builder = c->next.builder;
    mix->primary = c->next.primary;
    c->row = c->next.row;
    c->next.builder = saved.builder;
    c->next.primary = saved.primary;
    c->next.row = saved.row;
}

static bool batch(void *ctx, int64_t epoch, int64_t index, ses_batch *out, ses_err *e)
{
    ses_curriculum *c = ctx;
    if (c->next.epoch == epoch && c->next.index == index)
        swap_spare(c);
    else if (!build(c, epoch, index, e))
        return false;
    else
        c->row = c->at.row;
    c->next.epoch = -1;
    return ses_objective_mix_end_batch(c->o.objectives, out, e);
}

/* An error is reported when the batch is requested. */
static void prefetch(void *ctx, int64_t epoch, int64_t index)
{
    ses_curriculum *c = ctx;
    swap_spare(c);
    bool ok = build(c, epoch, index, NULL);
    c->row = c->at.row;
    swap_spare(c);
    c->next.epoch = ok ? epoch : -1;
    c->next.index = index;
}

static void describe(void *ctx, int64_t epoch, int64_t index, char *buf, size_t n)
{
    ses_curriculum *c = ctx;
    (void)index;
    if (epoch < (int64_t)c->n_epochs)
        snprintf(buf, n,
                 "passage %" PRId64 " and following of pass %" PRId64 ", at most %" PRId64 " tokens each",
                 c->row + 1, c->epoch[epoch].pass + 1, c->o.stage[c->epoch[epoch].stage].length);
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
        .ctx = c, .count = count, .batch = batch, .prefetch = prefetch, .describe = describe, .hash = hash
    };
}

/* ---- construction ---- */

static bool check(const ses_curriculum_options *o, ses_err *e)
{
    double sum = 0;
    if (!o->n_stages || o->n_stages > SES_MAX_STAGES)
        return ses_fail(e, SES_EARG, "expected 1 to %d stages", SES_MAX_STAGES);
    for (size_t i = 0; i < o->n_stages; i++) {
        if (!(o->stage[i].fraction > 0))
            return ses_fail(e, SES_EARG, "stage %zu: the fraction of the run must be above 0", i + 1);
        sum += o->stage[i].fraction;
    }
    if (fabs(sum - 1) > 1e-6)
        return ses_fail(e, SES_EARG, "the fractions of the stages add up to %g; expected 1", sum);
    if (!o->sequences == !o->tokens) return ses_fail(e, SES_EARG, "set either sequences or tokens per batch");
    if (!(o->batch_ramp >= 0 && o->batch_ramp <= 1) || !(o->ramp_from >= 0 && o->ramp_from <= 1))
        return ses_fail(e, SES_EARG, "the fractions of the batch-size warmup must be 0 to 1");
    return true;
}

/* Opens the passages of a stage: sequences of `length` tokens without the tokens the objectives add. */
static ses_passages *open_passages(ses_curriculum *c, int64_t length, bool eval, int64_t *frame, ses_err *e)
{
    ses_passages_options o = c->o.passages;
    c->o.objectives->build.length = length;
    o.seq_len = ses_objective_mix_max_passage(c->o.objectives);
    o.min_tokens = ses_objective_mix_min_passage(c->o.objectives);
    /* static masking: a mask is a function of the passage's number */
    o.copies = eval ? 0 : c->o.objectives->build.o.mask_copies;
    if (eval) {
        o.parts = c->o.eval_part;
        o.n_parts = c->o.n_eval_parts;
        o.held_out = c->o.eval_held_out;
        o.exponent = 1;
    }
    if (o.seq_len < 2) {
        ses_fail(e, SES_EARG, "sequences of %" PRId64 " tokens are too short for text and special tokens",
                 length);
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
    if (c->o.update_batches < 1) c->o.update_batches = 1;
    c->at.epoch = c->next.epoch = -1;
    double sum = 0;
    for (size_t i = 0; i < o->n_stages; i++)
        if (!(c->passages[i] = open_passages(c, o->stage[i].length, false, &c->frame[i], e))) goto fail;
    c->pass_tokens = ses_passages_tokens(c->passages[0], 0, e);
    c->pass_skipped = ses_passages_skipped(c->passages[0], 0, e);
    c->updates = o->updates;
    if (!c->updates) {
        int64_t batches = count_batches(c, 0, 0, 0, INT64_MAX, e);
        if (batches < 0) goto fail;
        c->updates = (int64_t)ceil(o->epochs * (double)batches / (double)c->o.update_batches);
    }
    if (c->updates < 1) {
        ses_fail(e, SES_EARG, "the run has 0 updates; set epochs or updates above 0");
        goto fail;
    }
    for (size_t i = 0; i < o->n_stages; i++) {
        sum += o->stage[i].fraction;
        c->end[i] =
            c->o.update_batches * (i + 1 == o->n_stages ? c->updates : (int64_t)(sum * (double)c->updates));
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
    ses_passages_free(c->eval);
    ses_batch_builder_free(&c->next.builder);
    ses_free(c->epoch);
    ses_free(c);
}

int64_t ses_curriculum_updates(const ses_curriculum *c) { return c->updates; }
int64_t ses_curriculum_pass_skipped(const ses_curriculum *c) { return c->pass_skipped; }
int64_t ses_curriculum_pass_tokens(const ses_curriculum *c) { return c->pass_tokens; }

/* ---- evaluation ---- */

enum { EVAL_BATCH = 4096, UNIGRAM_TOKENS = 1 << 20 };

/* The work on batches: rank r of `size` computes batches r, r + size, ... */
typedef struct visitor {
    bool (*batch)(void *ctx, const ses_batch *b, int64_t row, ses_err *e); /* row: of the next batch */
    bool (*end_round)(void *ctx, ses_err *e); /* after `size` batches, and after the last; or NULL */
    void *ctx;
    int rank, size;
} visitor;

/* Adds passages from *row on to a batch; not to build: only counts them. *used: their tokens. */
static bool fill_eval_batch(ses_curriculum *c, ses_passages *p, bool to_build, int64_t rows, int64_t *row,
                            int64_t *used, ses_err *e)
{
    for (*used = 0; *row < rows && *used < EVAL_BATCH; ++*row) {
        ses_passage x = { 0 };
        if (to_build ? !ses_passages_at(p, 0, *row, &x, e) ||
                           !ses_objective_mix_add_passage(c->o.objectives, &x, e)
                     : (x.n = ses_passages_length(p, 0, *row, e)) < 0)
            return false;
        *used += x.n;
    }
    return true;
}

/* Visits batches of the first pass, about `tokens` tokens in all. */
static bool for_each_batch(ses_curriculum *c, ses_passages *p, size_t primary, int64_t tokens,
                           const visitor *v, ses_err *e)
{
    int64_t rows = ses_passages_count(p, 0, e), done = 0, number = 0;
    ses_objective_mix *mix = c->o.objectives;
    for (int64_t row = 0; row < rows && done < tokens; number++) {
        ses_batch b;
        int64_t used;
        bool own = number % v->size == v->rank;
        if (own) ses_objective_mix_begin_batch(mix, primary, 0);
        if (!fill_eval_batch(c, p, own, rows, &row, &used, e)) return false;
        done += used;
        if (own && (!ses_objective_mix_end_batch(mix, &b, e) || !v->batch(v->ctx, &b, row, e))) return false;
        if (v->end_round && (number + 1) % v->size == 0 && !v->end_round(v->ctx, e)) return false;
    }
    return rows > 0 && (!v->end_round || number % v->size == 0 || v->end_round(v->ctx, e));
}

/* Sets the evaluation settings: first stage, default mask rate, dynamic masking. Returns the run's
 * settings. */
static ses_objective_options set_eval_options(ses_curriculum *c)
{
    ses_objective_mix *mix = c->o.objectives;
    ses_objective_options saved = mix->build.o;
    mix->build.length = c->o.stage[0].length;
    mix->build.o.mask_rate = mix->build.o.mask_rate_end = -1;
    mix->build.o.mask_copies = 0;
    return saved;
}

static bool open_eval(ses_curriculum *c, ses_err *e)
{
    int64_t frame;
    return c->eval || (c->eval = open_passages(c, c->o.stage[0].length, true, &frame, e));
}

/* The message of a rank after its batch of a round. */
typedef struct round_sums {
    ses_metric_sums sums; /* this batch; empty: the round has none for this rank */
    bool stop;
} round_sums;

typedef struct measure_ctx {
    ses_objective_mix *mix;
    ses_tape *tape;
    ses_comm *comm;
    round_sums mine, *all; /* all: [ranks] */
    ses_metric_sums *sums;
    bool (*should_continue)(void *ctx);
    void *ctx;
    bool cancelled;
} measure_ctx;

static bool measure(void *ctx, const ses_batch *b, int64_t row, ses_err *e)
{
    measure_ctx *m = ctx;
    ses_tape_reset(m->tape, &(ses_tape_options){ .record = false, .seed = 1, .step = (uint32_t)row });
    if (!ses_objective_mix_measure(m->mix, m->tape, b, &m->mine.sums, e)) return false;
    m->mine.stop = m->should_continue && !m->should_continue(m->ctx);
    return true;
}

/* Adds the sums of the round's batches, in their order. */
static bool share_round(void *ctx, ses_err *e)
{
    measure_ctx *m = ctx;
    if (!ses_comm_allgather_equal(m->comm, &m->mine, sizeof m->mine, m->all, e)) return false;
    m->mine = (round_sums){ 0 };
    for (int r = 0; r < ses_comm_size(m->comm); r++) {
        ses_metric_sums_merge(m->sums, &m->all[r].sums);
        m->cancelled |= m->all[r].stop;
    }
    return !m->cancelled || ses_fail(e, SES_EIO, "the evaluation was cancelled");
}

bool ses_curriculum_evaluate(ses_curriculum *c, int64_t tokens, bool (*should_continue)(void *ctx), void *ctx,
                             ses_metric_sums *out, bool *cancelled, ses_err *e)
{
    ses_objective_mix *mix = c->o.objectives;
    measure_ctx m = {
        .mix = mix, .comm = c->o.comm, .sums = out, .should_continue = should_continue, .ctx = ctx
    };
    visitor v = { measure, share_round, &m, ses_comm_rank(c->o.comm), ses_comm_size(c->o.comm) };
    *out = (ses_metric_sums){ 0 };
    if (!open_eval(c, e)) return false;
    m.all = ses_alloc_array((size_t)v.size, sizeof *m.all, e);
    m.tape = m.all ? ses_tape_new(ses_store_device(ses_model_store(mix->model)),
                                  &(ses_tape_options){ .record = false }, e)
                   : NULL;
    bool ok = m.tape != NULL;
    ses_objective_options saved = set_eval_options(c);
    for (size_t primary = 0; ok && (primary < mix->n_primary || primary == 0); primary++)
        ok = for_each_batch(c, c->eval, primary, tokens, &v, e);
    mix->build.o = saved;
    ses_tape_free(m.tape);
    ses_free(m.all);
    if (cancelled) *cancelled = m.cancelled;
    return ok;
}

typedef struct count_ctx {
    int64_t *count, vocab;
} count_ctx;

static bool count_labels(void *ctx, const ses_batch *b, int64_t row, ses_err *e)
{
    const count_ctx *k = ctx;
    int64_t n = b->target_cu_seqlens ? b->target_cu_seqlens[b->seqs] : b->tokens;
    (void)row, (void)e;
    for (int64_t i = 0; b->labels && i < n; i++)
        if (b->labels[i] >= 0 && b->labels[i] < k->vocab) k->count[b->labels[i]]++;
    return true;
}

bool ses_curriculum_unigram_loss(ses_curriculum *c, size_t primary, int64_t tokens, double *loss, ses_err *e)
{
    ses_objective_mix *mix = c->o.objectives;
    count_ctx train = { .vocab = ses_model_vocab_size(mix->model) }, eval = train;
    *loss = NAN;
    if (primary >= mix->n_primary || !c->o.n_eval_parts)
        return true; /* no token labels, or no evaluation texts */
    if (!open_eval(c, e)) return false;
    train.count = ses_alloc_array((size_t)train.vocab, sizeof *train.count, e);
    eval.count = ses_alloc_array((size_t)train.vocab, sizeof *eval.count, e);
    ses_objective_options saved = set_eval_options(c);
    bool ok = train.count && eval.count &&
              for_each_batch(c, c->passages[0], primary, UNIGRAM_TOKENS,
                             &(visitor){ count_labels, NULL, &train, 0, 1 }, e) &&
              for_each_batch(c, c->eval, primary, tokens, &(visitor){ count_labels, NULL, &eval, 0, 1 }, e);
    mix->build.o = saved;
    if (ok) *loss = ses_unigram_loss(train.count, eval.count, train.vocab);
    ses_free(train.count);
    ses_free(eval.count);
    return ok;
}
