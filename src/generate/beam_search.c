/* Beam search: the best few texts are carried on together, in the reference's order of operations, in float.
 *
 * With groups (diverse beams, Vijayakumar et al. 2016) the lanes are cut into groups that search one
 * after the other; a token costs a group `diversity_penalty` for each beam of an earlier group that has
 * just chosen it. */
#include "base/alloc.h"
#include "base/rng.h"
#include "generate_impl.h"

#include <math.h>
#include <string.h>

#define NEVER (-1e9f) /* the score of what must not be chosen */

typedef struct candidate {
    float score, key; /* key: what it is ranked by */
    int32_t beam, id; /* the lane it continues */
    float logprob;
    bool ends;
    ses_finish_reason why;
} candidate;

typedef struct ended { /* a finished text */
    float score;
    bool is;
    int32_t *id;
    float *logprob;
    int64_t n;
    ses_finish_reason why;
} ended;

typedef struct group {
    int64_t first, beams; /* its lanes */
    ended *text, *merged; /* [beams], best first; the other while merging */
    bool done, hopeful;   /* hopeful: a running beam may still become better than a finished one */
} group;

typedef struct search {
    group *group;
    int64_t groups;
    candidate *found, *sorted; /* [keep] */
    int64_t keep;
    int32_t **id; /* [lanes]: spare buffers for texts on their way */
    float **logprob;
    int32_t *chosen; /* [lanes]: tokens of this step */
    int32_t *probe;  /* [max_length] */
} search;

static int64_t lanes(const ses_generate_options *o) { return o->num_beams; }

static ended *texts(ses_prompt_state *k, int64_t n, ses_err *e)
{
    ended *x = ses_arena_array(&k->mem, (size_t)n, sizeof *x, e);
    for (int64_t i = 0; x && i < n; i++) {
        x[i] = (ended){ .score = NEVER, .n = k->given, .why = SES_FINISH_CANCELLED };
        x[i].id = ses_arena_array(&k->mem, (size_t)k->max_length, sizeof *x->id, e);
        x[i].logprob = ses_arena_array(&k->mem, (size_t)k->max_length, sizeof *x->logprob, e);
        if (!x[i].id || !x[i].logprob) return NULL;
        memcpy(x[i].id, k->lane[0].id, (size_t)k->given * sizeof *x->id);
    }
    return x;
}

static bool begin(ses_generate_ctx *w, ses_prompt_state *k, ses_err *e)
{
    search *s = ses_arena_array(&k->mem, 1, sizeof *s, e);
    if (!s) return false;
    size_t L = (size_t)k->lanes;
    s->groups = w->o.num_beam_groups;
    s->group = ses_arena_array(&k->mem, (size_t)s->groups, sizeof *s->group, e);
    int64_t beams = k->lanes / s->groups, more = 1 + w->o.eos.n;
    s->keep = (more > 2 ? more : 2) * beams;
    s->found = ses_arena_array(&k->mem, (size_t)s->keep, sizeof *s->found, e);
    s->sorted = ses_arena_array(&k->mem, (size_t)s->keep, sizeof *s->sorted, e);
    s->id = ses_arena_array(&k->mem, L, sizeof *s->id, e);
    s->logprob = ses_arena_array(&k->mem, L, sizeof *s->logprob, e);
    s->chosen = ses_arena_array(&k->mem, L, sizeof *s->chosen, e);
    s->probe = ses_arena_array(&k->mem, (size_t)k->max_length, sizeof *s->probe, e);
    if (!s->group || !s->found || !s->sorted || !s->id || !s->logprob || !s->chosen || !s->probe)
        return false;
    for (int64_t i = 0; i < k->lanes; i++) {
        s->id[i] = ses_arena_array(&k->mem, (size_t)k->max_length, sizeof **s->id, e);
        s->logprob[i] = ses_arena_array(&k->mem, (size_t)k->max_length, sizeof **s->logprob, e);
        if (!s->id[i] || !s->logprob[i]) return false;
        k->lane[i].score = i % beams ? NEVER : 0; /* the first step continues one beam of a group */
    }
    for (int64_t g = 0; g < s->groups; g++) {
        s->group[g] = (group){ .first = g * beams, .beams = beams, .hopeful = true };
        if (!(s->group[g].text = texts(k, beams, e)) || !(s->group[g].merged = texts(k, beams, e)))
            return false;
    }
    k->state = s;
    return true;
}

/* Into a list of the best by key, the first of equals first. */
static void enter(candidate *list, int64_t *n, int64_t most, const candidate *c)
{
    int64_t at = *n;
    if (at == most && !(c->key > list[most - 1].key)) return;
    if (at == most) at--;
    for (; at > 0 && c->key > list[at - 1].key; at--) list[at] = list[at - 1];
    list[at] = *c;
    if (*n < most) ++*n;
}

/* What the earlier groups chose in this step costs. */
static void diversify(ses_generate_ctx *w, const search *s, const group *g)
{
    for (int64_t i = 0; i < g->first; i++)
        if (!s->group[i / g->beams].done) w->score[s->chosen[i]] -= (float)w->o.diversity_penalty;
}

/* Gumbel noise on every score makes the best by key a draw without replacement. */
static float noisy(const ses_generate_ctx *w, const ses_prompt_state *k, float score, int64_t place,
                   uint64_t which)
{
    ses_rng_key key = { .seed = w->o.seed, .step = (uint32_t)place, .site = k->mark };
    double u = ((double)ses_rand32(key, which) + 0.5) * 0x1p-32;
    return (float)((double)score - log(-log(u)));
}

/* The best continuations of a group's beams. */
static int64_t find(ses_generate_ctx *w, ses_prompt_state *k, search *s, const group *g,
                    const ses_real *const *raw)
{
    int64_t n = 0, place = k->lane[g->first].n - k->given;
    for (int64_t b = 0; b < g->beams; b++) {
        const ses_hypothesis *l = &k->lane[g->first + b];
        double lse = ses_generate_next_scores(w, k, l, raw[g->first + b], true);
        diversify(w, s, g);
        for (int32_t id = 0; id < w->vocab; id++) {
            float score = w->score[id] + l->score;
            candidate c = { .score = score, .key = score, .beam = (int32_t)(g->first + b), .id = id };
            if (w->o.do_sample && score > -INFINITY)
                c.key =
                    noisy(w, k, score, place, (uint64_t)(g->first + b) * (uint64_t)w->vocab + (uint64_t)id);
            if (n == s->keep && !(c.key > s->found[n - 1].key)) continue;
            c.logprob = (float)((double)raw[g->first + b][id] - lse);
            enter(s->found, &n, s->keep, &c);
        }
    }
    return n;
}

static bool judge(ses_generate_ctx *w, ses_prompt_state *k, search *s, int64_t n, bool *all_end, ses_err *e)
{
    *all_end = true;
    for (int64_t i = 0; i < n; i++) {
        candidate *c = &s->found[i];
        const ses_hypothesis *l = &k->lane[c->beam];
        memcpy(s->probe, l->id, (size_t)l->n * sizeof *s->probe);
        s->probe[l->n] = c->id;
        if (!ses_generate_check_stop(w, k, s->probe, l->n + 1, &c->why, &c->ends, e)) return false;
        *all_end &= c->ends;
    }
    return true;
}

static void copy_text(int32_t *id, float *logprob, const ses_prompt_state *k, const ses_hypothesis *l,
                      const candidate *c)
{
    memcpy(id, l->id, (size_t)l->n * sizeof *id);
    memcpy(logprob, l->logprob, (size_t)(l->n - k->given) * sizeof *logprob);
    id[l->n] = c->id, logprob[l->n - k->given] = c->logprob;
}

/* Finished texts: what there was and what has just ended among the best, by the score for their length. */
static void settle(const ses_generate_ctx *w, ses_prompt_state *k, const search *s, group *g, int64_t n)
{
    int64_t written = k->lane[g->first].n + 1 - k->given, m = 0, i = 0;
    float by = (float)pow((double)written, w->o.length_penalty);
    bool full = w->o.early_stopping == SES_EARLY_TRUE;
    for (int64_t t = 0; t < g->beams; t++) full &= g->text[t].is;
    int64_t fresh = 0; /* candidates in the order of their adjusted scores */
    for (int64_t c = 0; c < n; c++) {
        candidate x = s->found[c];
        bool just = x.ends && c < g->beams;
        x.score = x.score / by + (full ? NEVER : 0) + (g->hopeful ? 0 : NEVER) + (just ? 0 : NEVER);
        x.key = x.score, x.ends = just;
        enter(s->sorted, &fresh, s->keep, &x);
    }
    for (int64_t c = 0; m < g->beams; m++) { /* merged: of equals the older first, but a text before none */
        ended *to = &g->merged[m];
        bool more = c < fresh, older = i < g->beams;
        if (older && more && g->text[i].score == s->sorted[c].score)
            older = g->text[i].is || !s->sorted[c].ends;
        if (older && (!more || g->text[i].score >= s->sorted[c].score)) {
            ended spare = *to;
            *to = g->text[i], g->text[i++] = spare; /* buffers change hands */
            continue;
        }
        const candidate *x = &s->sorted[c++];
        const ses_hypothesis *l = &k->lane[x->beam];
        copy_text(to->id, to->logprob, k, l, x);
        to->n = l->n + 1, to->score = x->score, to->is = x->ends, to->why = x->why;
    }
    ended *old = g->text;
    g->text = g->merged, g->merged = old;
}

/* The best that go on become the group's beams; their slots follow. */
static void carry_on(ses_generate_ctx *w, ses_prompt_state *k, search *s, const group *g, int64_t n)
{
    int64_t m = 0;
    for (int64_t c = 0; c < n; c++) {
        candidate x = s->found[c];
        x.score += x.ends ? NEVER : 0, x.key = x.score;
        enter(s->sorted, &m, g->beams, &x);
    }
    for (int64_t b = 0; b < m; b++) {
        const candidate *x = &s->sorted[b];
        int64_t at = g->first + b;
        copy_text(s->id[at], s->logprob[at], k, &k->lane[x->beam], x);
        s->chosen[at] = x->id;
        ses_generate_reorder_cache(w, k->lane[at].slot, k->lane[x->beam].slot);
    }
    for (int64_t b = 0; b < m; b++) {
        ses_hypothesis *l = &k->lane[g->first + b];
        int32_t *id = l->id;
        float *logprob = l->logprob;
        l->id = s->id[g->first + b], s->id[g->first + b] = id;
        l->logprob = s->logprob[g->first + b], s->logprob[g->first + b] = logprob;
        l->score = s->sorted[b].score;
    }
}

/* Can a running beam become better than the worst finished text? */
static bool hope(const ses_generate_ctx *w, const ses_prompt_state *k, const group *g, int64_t n)
{
    bool far = w->o.early_stopping == SES_EARLY_NEVER && w->o.length_penalty > 0;
    int64_t length = (far ? k->max_length : n) - k->given;
    float best = k->lane[g->first].score / (float)pow((double)length, w->o.length_penalty), worst = INFINITY;
    bool open = false;
    for (int64_t t = 0; t < g->beams; t++) {
        open |= !g->text[t].is;
        worst = fminf(worst, g->text[t].score);
    }
    return best > worst || (open && best > NEVER);
}

static bool step_group(ses_generate_ctx *w, ses_prompt_state *k, search *s, group *g,
                       const ses_real *const *raw, ses_err *e)
{
    bool all_end, full = true;
    int64_t n = find(w, k, s, g, raw);
    if (!judge(w, k, s, n, &all_end, e)) return false;
    settle(w, k, s, g, n);
    carry_on(w, k, s, g, n);
    g->hopeful = g->hopeful && hope(w, k, g, k->lane[g->first].n + 1);
    for (int64_t t = 0; t < g->beams; t++) full &= g->text[t].is;
    g->done = !g->hopeful || all_end || (full && w->o.early_stopping == SES_EARLY_TRUE);
    return true;
}

static bool step(ses_generate_ctx *w, ses_prompt_state *k, const ses_real *const *raw, ses_err *e)
{
    search *s = k->state;
    k->done = true;
    for (int64_t g = 0; g < s->groups; g++) {
        group *x = &s->group[g];
        if (!x->done && !step_group(w, k, s, x, raw, e)) return false;
        k->done &= x->done;
    }
    for (int64_t i = 0; i < k->lanes; i++) {
        k->lane[i].done = s->group[i / s->group[0].beams].done;
        if (!k->lane[i].done) k->lane[i].n++;
    }
    return true;
}

static bool finish(ses_generate_ctx *w, ses_prompt_state *k, ses_generated_sequence *out, ses_err *e)
{
    search *s = k->state;
    for (int64_t i = 0; i < w->o.num_return_sequences; i++) {
        ended *best = NULL;
        for (int64_t g = 0; g < s->groups; g++)
            for (int64_t t = 0; t < s->group[g].beams; t++) {
                ended *x = &s->group[g].text[t];
                if (x->id && (!best || x->score > best->score)) best = x;
            }
        if (!ses_generated_sequence_copy(&out[i], k, best->id, best->n, best->logprob, e)) return false;
        out[i].score = (double)best->score, out[i].finish = best->is ? best->why : SES_FINISH_CANCELLED;
        best->id = NULL;
    }
    return true;
}

const ses_decoding ses_decoding_beam = { lanes, begin, step, finish };
