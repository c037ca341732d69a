/* fill-mask: which tokens fit where a mask stands. */
#include "base/alloc.h"
#include "base/rng.h"
#include "task.h"

#include <math.h>
#include <stdlib.h>

typedef struct args {
    int64_t top_k, seed;
    double temperature;
    ses_opt_list targets;
    bool sample;
} args;

static const ses_opt opt[] = {
    { .name = "top-k",
      .letter = 'k',
      .type = SES_OPT_INT,
      .offset = offsetof(args, top_k),
      .value = "N|all",
      .def = "5",
      .zero_word = "all",
      .min = 1,
      .max = 1 << 24,
      .help = "so many tokens for each mask, the likeliest first" },
    { .name = "targets",
      .type = SES_OPT_LIST,
      .offset = offsetof(args, targets),
      .value = "A,B",
      .help = "only these tokens; of a word that is not one token, its first" },
    { .name = "temperature",
      .type = SES_OPT_REAL,
      .offset = offsetof(args, temperature),
      .def = "1",
      .min = 1e-3,
      .max = 1e3,
      .help = "divide the model's outputs by this before they become probabilities" },
    { .name = "do-sample",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, sample),
      .help = "draw the tokens at random, by their probabilities, none twice" },
    { .name = "seed",
      .type = SES_OPT_INT,
      .offset = offsetof(args, seed),
      .def = "0",
      .max = 9e15,
      .help = "of --do-sample: another seed, other tokens" },
};

static const ses_result_schema shape = { SES_FORM_ROWS,
                                         SES_VIEW_BARS,
                                         { { "score", SES_FIELD_SCORE },
                                           { "token", SES_FIELD_TOKEN },
                                           { "token_str", SES_FIELD_WORD },
                                           { "sequence", SES_FIELD_TEXT } } };

typedef struct self {
    int32_t *target; /* rising */
    size_t n_targets;
} self;

typedef struct guess {
    int32_t id;
    float score;
} guess;

typedef struct spot { /* a mask, in the window where most is seen around it */
    uint32_t byte;
    size_t seq, at;
    guess *guess;
    int64_t n;
} spot;

typedef struct state {
    spot *spot; /* in the text's order */
    size_t n;
    size_t *list; /* the same, window after window */
} state;

/* ---- targets ---- */

static int by_value(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The token of a target: itself, or the first it is cut into; -1: none. */
static bool target_id(ses_pipeline *p, ses_string s, int32_t *id, ses_err *e)
{
    const int32_t *ids;
    size_t n;
    *id = ses_tokenizer_token_to_id(p->tokenizer, s.p, s.n);
    if (*id >= 0) return true;
    if (!ses_encode_ids(p->tokens, s.p, s.n, false, &ids, &n, e)) return false;
    if (!n) return ses_pipeline_warn(p, e, "target \"%s\" gives no token and is left out", s.p);
    *id = ids[0];
    size_t len = 0;
    const char *token = ses_tokenizer_id_to_token(p->tokenizer, *id, &len);
    return ses_pipeline_warn(p, e, "target \"%s\" is not one token: \"%.*s\" stands for it", s.p, (int)len,
                             token);
}

static bool find_targets(ses_pipeline *p, ses_err *e)
{
    const args *a = p->args;
    self *my = p->self;
    ses_string *list;
    size_t n, kept = 0;
    if (!a->targets.n) return true;
    if (!ses_pipeline_split_list(p, &a->targets, false, &list, &n, e)) return false;
    my->target = ses_arena_array(&p->mem, n + 1, sizeof *my->target, e);
    if (!my->target) return false;
    for (size_t i = 0; i < n; i++) {
        int32_t id = -1;
        if (!target_id(p, list[i], &id, e)) return false;
        if (id >= 0) my->target[my->n_targets++] = id;
    }
    qsort(my->target, my->n_targets, sizeof *my->target, by_value);
    for (size_t i = 0; i < my->n_targets; i++)
        if (!i || my->target[i] != my->target[i - 1]) my->target[kept++] = my->target[i];
    my->n_targets = kept;
    return kept || ses_fail(e, SES_EUSAGE, "--targets: none of them gives a token");
}

static bool begin(ses_pipeline *p, ses_err *e)
{
    if (p->facts.role[SES_ROLE_MASK] < 0)
        return ses_fail(e, SES_EUNSUPPORTED, "%s: the tokenizer has no mask token", p->dir);
    return find_targets(p, e);
}

/* ---- masks ---- */

static size_t room_around(const ses_seq *q, size_t at) { return at < q->n - 1 - at ? at : q->n - 1 - at; }

static bool note_mask(ses_request *j, size_t s, size_t at, size_t room, ses_err *e)
{
    state *st = j->state;
    uint32_t byte = j->seq[s].byte[at].begin;
    for (size_t i = st->n; i-- > 0 && st->spot[i].byte >= byte;) { /* again, in another window */
        spot *x = &st->spot[i];
        if (x->byte != byte) continue;
        if (room_around(&j->seq[s], at) > room_around(&j->seq[x->seq], x->at)) x->seq = s, x->at = at;
        return true;
    }
    if (st->n == room) return ses_fail(e, SES_EARG, "more masks than places");
    st->spot[st->n++] = (spot){ .byte = byte, .seq = s, .at = at };
    return true;
}

/* Places to ask about in each window; windows without one do not run. A window's rows are its masks, in the
 * order of st->list from its mark on. */
static bool ask(ses_request *j, ses_err *e)
{
    state *st = j->state;
    size_t *first = ses_arena_array(&j->mem, j->n_seqs + 1, sizeof *first, e), kept = 0;
    int32_t *rows = ses_arena_array(&j->mem, st->n, sizeof *rows, e);
    st->list = ses_arena_array(&j->mem, st->n, sizeof *st->list, e);
    if (!first || !rows || !st->list) return false;
    for (size_t i = 0; i < st->n; i++) first[st->spot[i].seq + 1]++;
    for (size_t s = 0; s < j->n_seqs; s++) {
        j->seq[s].mark = (int64_t)first[s];
        j->seq[s].rows = rows + first[s];
        first[s + 1] += first[s];
    }
    for (size_t i = 0; i < st->n; i++) {
        ses_seq *q = &j->seq[st->spot[i].seq];
        size_t at = (size_t)q->mark + q->n_rows++;
        rows[at] = (int32_t)st->spot[i].at;
        st->list[at] = i;
    }
    for (size_t s = 0; s < j->n_seqs; s++) {
        ses_seq q = j->seq[s];
        if (!q.n_rows) j->tokens -= (int64_t)q.n;
        if (!q.n_rows) continue;
        for (size_t i = 0; i < q.n_rows; i++) st->spot[st->list[(size_t)q.mark + i]].seq = kept;
        j->seq[kept++] = q;
    }
    j->n_seqs = kept;
    return true;
}

/* Tokens of the text itself in all windows, those they share once. */
static size_t text_tokens(const ses_request *j)
{
    size_t n = 0;
    uint32_t end = 0, last = 0;
    for (size_t s = 0; s < j->n_seqs; s++, end = last)
        for (size_t i = 0; i < j->seq[s].n; i++) {
            if (j->seq[s].sequence[i] < 0 || (s && j->seq[s].byte[i].begin < end)) continue;
            n++, last = j->seq[s].byte[i].end;
        }
    return n;
}

/* Each mask is seen in one window: what is outside of the longest of these is left out. */
static void count_cut(ses_request *j, size_t whole)
{
    size_t seen = 0;
    for (size_t s = 0; s < j->n_seqs; s++) {
        size_t n = 0;
        for (size_t i = 0; i < j->seq[s].n; i++) n += j->seq[s].sequence[i] >= 0;
        if (n > seen) seen = n;
    }
    j->cut = whole > seen ? (int64_t)(whole - seen) : 0;
}

static bool encode(ses_pipeline *p, ses_request *j, ses_err *e)
{
    state *st = j->state;
    int32_t mask = p->facts.role[SES_ROLE_MASK];
    ses_input in = { .text = j->item.text };
    if (!ses_request_encode_windows(p, j, &in, SES_TRUNCATE_ONLY_FIRST, p->limit / 2, e)) return false;
    size_t most = 0, whole = text_tokens(j);
    for (size_t s = 0; s < j->n_seqs; s++)
        for (size_t i = 0; i < j->seq[s].n; i++) most += j->seq[s].id[i] == mask;
    size_t len = 0;
    const char *name = ses_tokenizer_id_to_token(p->tokenizer, mask, &len);
    if (!most) return ses_fail(e, SES_EARG, "no mask in the text: write %.*s where one is", (int)len, name);
    st->spot = ses_arena_array(&j->mem, most, sizeof *st->spot, e);
    for (size_t s = 0; st->spot && s < j->n_seqs; s++)
        for (size_t i = 0; i < j->seq[s].n; i++)
            if (j->seq[s].id[i] == mask && !note_mask(j, s, i, most, e)) return false;
    if (!st->spot || !ask(j, e)) return false;
    count_cut(j, whole);
    return true;
}

/* ---- tokens ---- */

/* Gumbel's trick: the highest of log p + noise are draws without replacement. Noise hangs on the seed, the
 * item's number, the mask and the token alone. */
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

static bool guess_one(ses_pipeline *p, ses_request *j, spot *x, size_t group, const float *logit, int64_t V,
                      ses_err *e)
{
    const args *a = p->args;
    const self *my = p->self;
    int64_t n = my->target ? (int64_t)my->n_targets : V, k = a->top_k && a->top_k < n ? a->top_k : n;
    float *work = ses_alloc_array((size_t)V + (size_t)n, sizeof *work, e), *order = work + V;
    int32_t *at = work ? ses_alloc_array((size_t)k, sizeof *at, e) : NULL;
    x->guess = at ? ses_arena_array(&j->mem, (size_t)k, sizeof *x->guess, e) : NULL;
    if (x->guess) {
        for (int64_t i = 0; i < V; i++) work[i] = (float)((double)logit[i] / a->temperature);
        ses_softmax_row(work, work, V);
        for (int64_t i = 0; my->target && i < n; i++) order[i] = work[my->target[i]];
        if (!my->target) memcpy(order, work, (size_t)n * sizeof *order);
        if (a->sample) add_noise(order, order, n, a, j->item.number, group);
        x->n = ses_top_k(order, n, k, at);
        for (int64_t i = 0; i < x->n; i++) {
            int32_t id = my->target ? my->target[at[i]] : at[i];
            x->guess[i] = (guess){ id, work[id] };
        }
    }
    ses_free(at);
    ses_free(work);
    return x->guess != NULL;
}

static bool take(ses_pipeline *p, ses_request *j, ses_seq *q, ses_err *e)
{
    state *st = j->state;
    ses_output_rows r = ses_request_output_rows(p, q, p->use->output, e);
    for (size_t i = 0; r.x && i < q->n_rows; i++) {
        size_t at = st->list[(size_t)q->mark + i];
        if (!guess_one(p, j, &st->spot[at], at, r.x + (int64_t)i * r.cols, r.cols, e)) return false;
    }
    return r.x != NULL;
}

/* The sequence with one mask filled in, without padding. */
static ses_string filled(ses_pipeline *p, ses_request *j, const ses_seq *q, size_t at, int32_t id,
                         bool single, ses_err *e)
{
    int32_t *ids = ses_alloc_array(q->n, sizeof *ids, e);
    size_t n = 0;
    for (size_t i = 0; ids && i < q->n; i++) {
        int32_t x = i == at ? id : q->id[i];
        if (x != p->facts.role[SES_ROLE_PAD]) ids[n++] = x;
    }
    ses_string text = ids ? ses_request_decode(p, j, ids, n, !single, e) : (ses_string){ 0 };
    ses_free(ids);
    return text;
}

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    const state *st = j->state;
    for (size_t g = 0; g < st->n; g++)
        for (int64_t i = 0; i < st->spot[g].n; i++) {
            const spot *x = &st->spot[g];
            const ses_seq *q = &j->seq[x->seq];
            ses_result_row *row = ses_request_add_row(j, e);
            if (!row) return false;
            row->token = x->guess[i].id;
            row->score = (double)x->guess[i].score;
            row->group = g;
            row->index = (int64_t)x->at;
            row->char_span = q->point[x->at];
            row->byte_span = q->byte[x->at];
            bool known = row->token < ses_tokenizer_vocab_size(p->tokenizer); /* tables may have spare rows */
            row->word = known ? ses_request_decode(p, j, &row->token, 1, true, e)
                              : ses_request_copy_string(j, "", 0, e);
            row->text =
                filled(p, j, q, x->at, known ? row->token : p->facts.role[SES_ROLE_PAD], st->n == 1, e);
            if (!row->word.p || !row->text.p) return false;
        }
    r->groups = st->n;
    r->schema = &shape;
    return true;
}

static const ses_head *const heads[] = { &ses_head_masked_lm, &ses_head_seq2seq_lm, NULL };
static const ses_usage_example examples[] = {
    { "sesame fill-mask -m bert-base-uncased \"Paris is the [MASK] of France.\"", "five tokens that fit" },
    { "sesame fill-mask -m DIR --targets he,she \"[MASK] is a nurse.\"", "how likely each of two words is" },
    { "sesame fill-mask -m DIR --top-k 1 --json -f texts.txt", "one object a line, as the reference has it" },
    { 0 },
};

const ses_task ses_task_fill_mask = {
    .description =
        "Says which tokens a model trained to fill masks puts in place of each mask of a text ([MASK], "
        "<mask>, as the tokenizer calls it), and how likely each is. Several masks are each filled "
        "alone, the others standing. Of a text longer than the model reads, each mask is seen in a "
        "window around it, and what is outside is told as left out. A JSON line is {\"text\": ...}.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .self_size = sizeof(self),
    .job_size = sizeof(state),
    .head = heads,
    .item_schema = { .text = "text" },
    .looks_ahead = true,
    .open = begin,
    .encode = encode,
    .take = take,
    .finish = finish,
};
