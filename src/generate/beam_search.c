/* Beam search: the best hypotheses are extended together. The order of operations and the rounding to
 * float are the same as in transformers.
 *
 * Diverse beam search (Vijayakumar et al. 2016) splits the beams into groups that search one after the
 * other. For each beam of an earlier group that has just chosen a token, the token costs
 * `diversity_penalty`. */
#include "base/alloc.h"
#include "base/rng.h"
#include "generate_impl.h"

#include <math.h>
#include <string.h>

#define EXCLUDED (-1e9f) /* score of a candidate that must not be chosen */

/* A beam with one more token. */
typedef struct candidate {
    float score, key; /* key: decides the rank */
    int32_t beam, id; /* the beam it extends, the new token */
    float logprob;
    bool ends;
    ses_finish_reason why;
} candidate;

typedef struct finished { /* a finished text, or an empty entry */
    float score;
    bool is_set, is_returned;
    ses_text_tokens t;
    int64_t n;
    ses_finish_reason why;
} finished;

typedef struct beam_group {
    int64_t first, n_beams;  /* its hypotheses */
    finished *text, *merged; /* [n_beams], best first; merged: the other buffer while merging */
    bool done, may_improve;  /* may_improve: a beam may still beat a finished text */
} beam_group;

typedef struct beam_search {
    beam_group *group; /* [n_groups] */
    int64_t n_groups;
    candidate *found, *sorted; /* [n_candidates] */
    int64_t n_candidates;
    ses_text_tokens *extended; /* [n_hyps]: buffers for the extended texts */
    ses_top_token *top;        /* [n_hyps, n_top]: top tokens of this step */
    int32_t *chosen;           /* [n_hyps]: tokens of this step */
    int32_t *probe;            /* [max_length]: a candidate's text */
} beam_search;

static int64_t count_hyps(const ses_generate_options *o) { return o->num_beams; }

static finished *new_finished(ses_prompt_state *p, int64_t n, ses_err *e)
{
    finished *x = ses_arena_array(&p->mem, (size_t)n, sizeof *x, e);
    for (int64_t i = 0; x && i < n; i++) {
        x[i] = (finished){ .score = EXCLUDED, .n = p->prompt_len, .why = SES_FINISH_CANCELLED };
        if (!ses_text_tokens_new(p, &x[i].t, e)) return NULL;
    }
    return x;
}

static bool begin(ses_generator *g, ses_prompt_state *p, ses_err *e)
{
    beam_search *s = ses_arena_array(&p->mem, 1, sizeof *s, e);
    if (!s) return false;
    (void)g;
    size_t n = (size_t)p->n_hyps;
    s->n_groups = p->o.num_beam_groups;
    s->group = ses_arena_array(&p->mem, (size_t)s->n_groups, sizeof *s->group, e);
    int64_t n_beams = p->n_hyps / s->n_groups, per_beam = 1 + p->o.eos.n;
    s->n_candidates =
        (per_beam > 2 ? per_beam : 2) * n_beams; /* enough if one of each beam is an EOS token */
    s->found = ses_arena_array(&p->mem, (size_t)s->n_candidates, sizeof *s->found, e);
    s->sorted = ses_arena_array(&p->mem, (size_t)s->n_candidates, sizeof *s->sorted, e);
    s->extended = ses_arena_array(&p->mem, n, sizeof *s->extended, e);
    s->top = ses_arena_array(&p->mem, n * (size_t)p->n_top + 1, sizeof *s->top, e);
    s->chosen = ses_arena_array(&p->mem, n, sizeof *s->chosen, e);
    s->probe = ses_arena_array(&p->mem, (size_t)p->max_length, sizeof *s->probe, e);
    if (!s->group || !s->found || !s->sorted || !s->extended || !s->top || !s->chosen || !s->probe)
        return false;
    for (int64_t i = 0; i < p->n_hyps; i++) {
        if (!ses_text_tokens_new(p, &s->extended[i], e)) return false;
        p->hyp[i].score = i % n_beams ? EXCLUDED : 0; /* the first step extends one beam of each group */
    }
    for (int64_t k = 0; k < s->n_groups; k++) {
        s->group[k] = (beam_group){ .first = k * n_beams, .n_beams = n_beams, .may_improve = true };
        if (!(s->group[k].text = new_finished(p, n_beams, e)) ||
            !(s->group[k].merged = new_finished(p, n_beams, e)))
            return false;
    }
    p->search = s;
    return true;
}

/* ---- candidates ---- */

/* Inserts c into a list of at most max candidates, best key first; of equal keys the earlier one first. */
static void insert(candidate *list, int64_t *n, int64_t max, const candidate *c)
{
    int64_t at = *n;
    if (at == max && !(c->key > list[max - 1].key)) return;
    if (at == max) at--;
    for (; at > 0 && c->key > list[at - 1].key; at--) list[at] = list[at - 1];
    list[at] = *c;
    if (*n < max) ++*n;
}

/* Penalizes the tokens that earlier groups have chosen in this step. */
static void apply_diversity(ses_generator *g, const ses_prompt_state *p, const beam_group *group)
{
    const beam_search *s = p->search;
    for (int64_t i = 0; i < group->first; i++)
        if (!s->group[i / group->n_beams].done) g->score[s->chosen[i]] -= (float)p->o.diversity_penalty;
}

/* Gumbel noise: the highest keys are a sample without replacement. */
static float add_gumbel(const ses_prompt_state *p, float score, int64_t position, uint64_t index)
{
    ses_rng_key key = { .seed = p->o.seed, .step = (uint32_t)position, .site = p->random_site };
    double u = ((double)ses_rand32(key, index) + 0.5) * 0x1p-32;
    return (float)((double)score - log(-log(u)));
}

/* Finds the best candidates of a group, *count of them. */
static bool find_candidates(ses_generator *g, ses_prompt_state *p, const beam_group *group,
                            const ses_real *const *logits, int64_t *count, ses_err *e)
{
    beam_search *s = p->search;
    int64_t n = 0, position = p->hyp[group->first].n - p->prompt_len;
    for (int64_t b = 0; b < group->n_beams; b++) {
        int64_t beam = group->first + b;
        const ses_hypothesis *h = &p->hyp[beam];
        double lse;
        if (!ses_generate_next_scores(g, p, h, logits[beam], true, &lse, e)) return false;
        if (p->n_top) memcpy(s->top + beam * p->n_top, g->top, (size_t)p->n_top * sizeof *g->top);
        apply_diversity(g, p, group);
        for (int32_t id = 0; id < g->vocab_size; id++) {
            float score = g->score[id] + h->score;
            candidate c = { .score = score, .key = score, .beam = (int32_t)beam, .id = id };
            if (p->o.do_sample && score > -INFINITY)
                c.key =
                    add_gumbel(p, score, position, (uint64_t)beam * (uint64_t)g->vocab_size + (uint64_t)id);
            if (n == s->n_candidates && !(c.key > s->found[n - 1].key)) continue;
            c.logprob = (float)((double)logits[beam][id] - lse);
            insert(s->found, &n, s->n_candidates, &c);
        }
    }
    *count = n;
    return true;
}

/* Marks the candidates that end their text. */
static bool check_ends(ses_prompt_state *p, int64_t n, bool *all_end, ses_err *e)
{
    beam_search *s = p->search;
    *all_end = true;
    for (int64_t i = 0; i < n; i++) {
        candidate *c = &s->found[i];
        const ses_hypothesis *h = &p->hyp[c->beam];
        memcpy(s->probe, h->t.id, (size_t)h->n * sizeof *s->probe);
        s->probe[h->n] = c->id;
        if (!ses_generate_check_stop(p, s->probe, h->n + 1, &c->why, &c->ends, e)) return false;
        *all_end &= c->ends;
    }
    return true;
}

static void copy_extended(const ses_text_tokens *to, const ses_prompt_state *p, const candidate *c)
{
    const beam_search *s = p->search;
    const ses_hypothesis *h = &p->hyp[c->beam];
    size_t n_top = (size_t)p->n_top, at = (size_t)(h->n - p->prompt_len);
    memcpy(to->id, h->t.id, (size_t)h->n * sizeof *to->id);
    memcpy(to->logprob, h->t.logprob, at * sizeof *to->logprob);
    to->id[h->n] = c->id, to->logprob[at] = c->logprob;
    if (!n_top) return;
    memcpy(to->top, h->t.top, at * n_top * sizeof *to->top);
    memcpy(to->top + at * n_top, s->top + (size_t)c->beam * n_top, n_top * sizeof *to->top);
}

/* ---- finished texts and running beams ---- */

static bool all_finished(const beam_group *group)
{
    for (int64_t t = 0; t < group->n_beams; t++)
        if (!group->text[t].is_set) return false;
    return true;
}

/* Sorts the candidates by score / length^length_penalty. Only candidates among the best n_beams that have
 * just ended count; early stopping and a group that cannot improve exclude all. Returns their number. */
static int64_t sort_ended(const ses_prompt_state *p, const beam_group *group, int64_t n)
{
    const beam_search *s = p->search;
    int64_t length = p->hyp[group->first].n + 1 - p->prompt_len, count = 0;
    float divisor = (float)pow((double)length, p->o.length_penalty);
    bool full = p->o.early_stopping == SES_EARLY_TRUE && all_finished(group);
    for (int64_t i = 0; i < n; i++) {
        candidate c = s->found[i];
        bool ended = c.ends && i < group->n_beams;
        c.score = c.score / divisor + (full ? EXCLUDED : 0) + (group->may_improve ? 0 : EXCLUDED) +
                  (ended ? 0 : EXCLUDED);
        c.key = c.score, c.ends = ended;
        insert(s->sorted, &count, s->n_candidates, &c);
    }
    return count;
}

/* Merges the finished texts with the candidates that have just ended. Of equal scores the older text
 * comes first, but a text comes before an empty entry. */
static void merge_finished(ses_prompt_state *p, beam_group *group, int64_t n)
{
    const beam_search *s = p->search;
    int64_t n_sorted = sort_ended(p, group, n), at_old = 0, at_new = 0;
    for (int64_t m = 0; m < group->n_beams; m++) {
        finished *to = &group->merged[m];
        bool has_new = at_new < n_sorted, take_old = at_old < group->n_beams;
        if (take_old && has_new && group->text[at_old].score == s->sorted[at_new].score)
            take_old = group->text[at_old].is_set || !s->sorted[at_new].ends;
        if (take_old && (!has_new || group->text[at_old].score >= s->sorted[at_new].score)) {
            finished swap = *to; /* the entries exchange their buffers */
            *to = group->text[at_old], group->text[at_old++] = swap;
            continue;
        }
        const candidate *c = &s->sorted[at_new++];
        copy_extended(&to->t, p, c);
        to->n = p->hyp[c->beam].n + 1, to->score = c->score, to->is_set = c->ends, to->why = c->why;
    }
    finished *swap = group->text;
    group->text = group->merged, group->merged = swap;
}

/* The best candidates that have not ended become the group's beams; the cache follows. */
static void extend_beams(ses_generator *g, ses_prompt_state *p, const beam_group *group, int64_t n)
{
    beam_search *s = p->search;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        candidate c = s->found[i];
        c.score += c.ends ? EXCLUDED : 0, c.key = c.score;
        insert(s->sorted, &count, group->n_beams, &c);
    }
    for (int64_t b = 0; b < count; b++) {
        const candidate *c = &s->sorted[b];
        int64_t at = group->first + b;
        copy_extended(&s->extended[at], p, c);
        s->chosen[at] = c->id;
        ses_generate_reorder_cache(g, p, p->hyp[at].slot, p->hyp[c->beam].slot);
    }
    for (int64_t b = 0; b < count; b++) {
        int64_t at = group->first + b;
        ses_hypothesis *h = &p->hyp[at];
        ses_text_tokens swap = h->t;
        h->t = s->extended[at], s->extended[at] = swap;
        h->score = s->sorted[b].score;
    }
}

/* Can the best beam, of n tokens, become better than the worst finished text? */
static bool can_improve(const ses_prompt_state *p, const beam_group *group, int64_t n)
{
    bool optimistic = p->o.early_stopping == SES_EARLY_NEVER && p->o.length_penalty > 0;
    int64_t length = (optimistic ? p->max_length : n) - p->prompt_len;
    float best = p->hyp[group->first].score / (float)pow((double)length, p->o.length_penalty);
    float worst = INFINITY;
    for (int64_t t = 0; t < group->n_beams; t++) worst = fminf(worst, group->text[t].score);
    return best > worst || (!all_finished(group) && best > EXCLUDED);
}

static bool step_group(ses_generator *g, ses_prompt_state *p, beam_group *group,
                       const ses_real *const *logits, ses_err *e)
{
    bool all_end;
    int64_t n;
    if (!find_candidates(g, p, group, logits, &n, e) || !check_ends(p, n, &all_end, e)) return false;
    merge_finished(p, group, n);
    extend_beams(g, p, group, n);
    group->may_improve = group->may_improve && can_improve(p, group, p->hyp[group->first].n + 1);
    bool stop_early = p->o.early_stopping == SES_EARLY_TRUE && all_finished(group);
    group->done = !group->may_improve || all_end || stop_early;
    return true;
}

static bool step(ses_generator *g, ses_prompt_state *p, const ses_real *const *logits, ses_err *e)
{
    beam_search *s = p->search;
    p->done = true;
    for (int64_t k = 0; k < s->n_groups; k++) {
        beam_group *group = &s->group[k];
        if (!group->done && !step_group(g, p, group, logits, e)) return false;
        p->done &= group->done;
    }
    for (int64_t i = 0; i < p->n_hyps; i++) {
        p->hyp[i].done = s->group[i / s->group[0].n_beams].done;
        if (!p->hyp[i].done) p->hyp[i].n++;
    }
    return true;
}

/* The best texts of all groups. */
static bool finish(ses_prompt_state *p, ses_generated_sequence *out, ses_err *e)
{
    beam_search *s = p->search;
    for (int64_t i = 0; i < p->o.num_return_sequences; i++) {
        finished *best = NULL;
        for (int64_t k = 0; k < s->n_groups; k++)
            for (int64_t t = 0; t < s->group[k].n_beams; t++) {
                finished *x = &s->group[k].text[t];
                if (!x->is_returned && (!best || x->score > best->score)) best = x;
            }
        if (!ses_generated_sequence_copy(&out[i], p, &best->t, best->n, e)) return false;
        out[i].score = (double)best->score;
        out[i].finish = best->is_set ? best->why : SES_FINISH_CANCELLED;
        best->is_returned = true;
    }
    return true;
}

const ses_decoding ses_decoding_beam = { count_hyps, begin, step, finish };
