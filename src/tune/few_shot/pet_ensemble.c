/* PET and iPET: see pet_ensemble.h. */
#include "pet_ensemble.h"

#include "base/alloc.h"
#include "data/rng_stream.h"
#include "soft_labels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITE_VOTERS = 0x70657403, SITE_DRAW };

/* ---- votes ---- */

void ses_vote_mean(const ses_tune_vote *vote, const size_t *which, size_t votes, bool equal, size_t n,
                   float *out)
{
    double total = 0;
    for (size_t v = 0; !equal && v < votes; v++) total += vote[which ? which[v] : v].accuracy;
    equal = equal || total <= 0;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t v = 0; v < votes; v++) {
            const ses_tune_vote *x = &vote[which ? which[v] : v];
            sum += (equal ? 1 / (double)votes : x->accuracy / total) * (double)x->score[i];
        }
        out[i] = (float)sum;
    }
}

typedef struct candidate {
    double key; /* log(u) / probability: the largest keys are a weighted sample (Efraimidis, Spirakis 2006) */
    size_t text;
    int32_t label;
} candidate;

static int by_key(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return (x->text > y->text) - (x->text < y->text);
}

size_t ses_vote_draw(const float *score, size_t texts, size_t labels, const double *share, double n,
                     uint64_t seed, uint64_t number, size_t *pick, int32_t *label, ses_err *e)
{
    candidate *c = ses_alloc_array(texts + 1, sizeof *c, e);
    double *left = c ? ses_alloc_array(labels + 1, sizeof *left, e) : NULL;
    size_t taken = 0;
    ses_rng_stream d = ses_rng_stream_of(seed, number, SITE_DRAW);
    for (size_t i = 0; left && i < texts; i++) {
        double p;
        c[i].text = i;
        c[i].label = (int32_t)ses_finetuner_softmax(score + i * labels, labels, &p);
        c[i].key = log(ses_draw_unit(&d) + 0x1p-33) / p;
    }
    for (size_t l = 0; left && l < labels; l++) left[l] = floor(n * share[l] + 0.5);
    if (left) qsort(c, texts, sizeof *c, by_key);
    for (size_t i = 0; left && i < texts; i++)
        if (left[c[i].label]-- >= 1) pick[taken] = c[i].text, label[taken++] = c[i].label;
    ses_free(left);
    ses_free(c);
    return taken;
}

/* ---- generations ---- */

typedef struct ensemble {
    ses_tune_run *r;
    size_t members, labels, texts;
    ses_tune_vote *vote, *before; /* [members] */
    double *share;                /* [labels] of the training data */
    size_t *voter;                /* [members] */
    size_t *pick;
    int32_t *label;
    float *score; /* [texts, labels] */
} ensemble;

static bool ensemble_init(ensemble *x, ses_tune_run *r, ses_err *e)
{
    size_t n = ses_examples_count(r->train);
    *x = (ensemble){ .r = r,
                     .members = r->patterns->n_patterns * (size_t)r->plan.settings.repetitions,
                     .labels = ses_examples_label_count(r->train),
                     .texts = ses_examples_count(r->unlabeled) };
    x->vote = ses_arena_array(&r->mem, x->members, sizeof *x->vote, e);
    x->before = ses_arena_array(&r->mem, x->members, sizeof *x->before, e);
    x->share = ses_arena_array(&r->mem, x->labels, sizeof *x->share, e);
    x->voter = ses_arena_array(&r->mem, x->members, sizeof *x->voter, e);
    x->pick = ses_arena_array(&r->mem, x->texts, sizeof *x->pick, e);
    x->label = ses_arena_array(&r->mem, x->texts, sizeof *x->label, e);
    x->score = ses_arena_array(&r->mem, x->texts * x->labels, sizeof *x->score, e);
    if (!x->vote || !x->before || !x->share || !x->voter || !x->pick || !x->label || !x->score) return false;
    for (size_t i = 0; i < n; i++) x->share[ses_examples_at(r->train, i)->label] += 1 / (double)n;
    return true;
}

/* Chooses the models that label texts for member m: a fraction of the others, at least one. */
static size_t choose_voters(const ensemble *x, int64_t generation, size_t m)
{
    size_t others = x->members - 1, n = (size_t)floor(x->r->plan.settings.voters * (double)others + 0.5);
    ses_rng_stream d =
        ses_rng_stream_of((uint64_t)x->r->o.run.seed, (uint64_t)generation * x->members + m, SITE_VOTERS);
    if (!others) return x->voter[0] = m, 1;
    for (size_t i = 0, k = 0; i < x->members; i++)
        if (i != m) x->voter[k++] = i;
    if (!n) n = 1;
    for (size_t i = 0; i < n; i++) {
        size_t j = i + (size_t)ses_draw_below(&d, (int64_t)(others - i)), t = x->voter[i];
        x->voter[i] = x->voter[j], x->voter[j] = t;
    }
    return n;
}

/* The examples of member m: the training data, and texts that other models have labeled. */
static ses_examples *grow(ensemble *x, int64_t generation, size_t m, ses_err *e)
{
    const ses_tune_settings *s = &x->r->plan.settings;
    double old = (double)ses_examples_count(x->r->train),
           more = old * pow(s->growth, (double)generation) - old;
    size_t voters = choose_voters(x, generation, m);
    ses_vote_mean(x->before, x->voter, voters, s->member_weight == SES_WEIGHT_EQUAL, x->texts * x->labels,
                  x->score);
    size_t n = ses_vote_draw(x->score, x->texts, x->labels, x->share, more, (uint64_t)x->r->o.run.seed,
                             (uint64_t)generation * x->members + m, x->pick, x->label, e);
    return e->code ? NULL : ses_tune_examples(x->r, true, x->pick, x->label, n, e);
}

static bool run_member(ensemble *x, int64_t generation, size_t m, const ses_few_shot *how, ses_err *e)
{
    ses_tune_run *r = x->r;
    int64_t repetitions = r->plan.settings.repetitions;
    ses_examples *grown = generation ? grow(x, generation, m, e) : NULL;
    if (generation && !grown) return false;
    ses_tune_member member = { .train = grown,
                               .how = how,
                               .pattern = (int64_t)m / repetitions + 1,
                               .seed = r->o.run.seed + (int64_t)m % repetitions,
                               .steps = r->plan.settings.member_steps };
    snprintf(member.name, sizeof member.name, "generation-%d-pattern-%d-repetition-%d", (int)generation + 1,
             (int)member.pattern, (int)((int64_t)m % repetitions) + 1);
    bool ok = ses_tune_member_run(r, &member, &x->vote[m], e);
    ses_examples_free(grown);
    return ok;
}

static bool run_generations(ensemble *x, int64_t generations, ses_err *e)
{
    const ses_tune_settings *s = &x->r->plan.settings;
    ses_few_shot how = { .unlabeled = s->mlm_weight > 0 ? x->r->unlabeled : NULL,
                         .mlm_weight = s->mlm_weight };
    bool ok = true;
    for (int64_t g = 0; ok && g < generations; g++) {
        for (size_t m = 0; ok && m < x->members; m++) ok = run_member(x, g, m, &how, e);
        memcpy(x->before, x->vote, x->members * sizeof *x->vote);
    }
    return ok;
}

bool ses_pet_run(ses_tune_run *r, int64_t generations, ses_err *e)
{
    ensemble x;
    if (!ensemble_init(&x, r, e) || !run_generations(&x, generations, e)) return false;
    ses_vote_mean(x.vote, NULL, x.members, r->plan.settings.member_weight == SES_WEIGHT_EQUAL,
                  x.texts * x.labels, x.score);
    return ses_soft_labels_learn(r, x.score, e);
}
