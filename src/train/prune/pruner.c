/* Pruning during training: see pruner.h. */
#include "pruner.h"

#include "base/alloc.h"
#include "base/suggest.h"
#include "base/thread_pool.h"
#include "model/model_desc.h"
#include "train/optim/optim_kind.h"

#include <math.h>
#include <string.h>

static const ses_prune_criterion *const criteria[] = {
#define SES_CRITERION(name) &ses_criterion_##name,
#include "criteria.def"
#undef SES_CRITERION
};

const char *ses_prune_criterion_name(size_t i, const char **summary)
{
    if (i >= SES_LEN(criteria)) return NULL;
    if (summary) *summary = criteria[i]->summary;
    return criteria[i]->name;
}

/* ---- options ---- */

static const char *name_at(const void *ctx, size_t i)
{
    (void)ctx;
    return ses_prune_criterion_name(i, NULL);
}

static const ses_prune_criterion *find(const char *name, ses_err *e)
{
    for (size_t i = 0; i < SES_LEN(criteria); i++)
        if (!strcmp(criteria[i]->name, name)) return criteria[i];
    ses_fail_unknown(e, SES_EUSAGE, "criterion of prune", (ses_string){ name, strlen(name) }, name_at, NULL);
    return NULL;
}

bool ses_pruning_check(const ses_pruning_options *o, ses_err *e)
{
    ses_block_shape b;
    if (!o->criterion)
        return (o->keep <= 0 && !o->block) ||
               ses_fail(e, SES_EUSAGE, "%s is a setting of prune: set prune, too",
                        o->block ? "block" : "keep");
    const ses_prune_criterion *c = find(o->criterion, e);
    if (!c) return false;
    if (c->uses_keep && !(o->keep > 0 && o->keep <= 1))
        return ses_fail(e, SES_EUSAGE,
                        "prune %s: keep is %g; expected a fraction above 0 and at most 1, as 0.3", c->name,
                        o->keep);
    if (!c->uses_keep && o->keep > 0)
        return ses_fail(e, SES_EUSAGE,
                        "prune %s: penalty and threshold decide how many blocks are kept: leave keep out",
                        c->name);
    return ses_block_shape_parse(o->block, &b, e);
}

void ses_pruning_put_settings(const ses_pruning_options *o, ses_json_writer *w)
{
    if (!o->criterion) return;
    ses_json_member_string(w, "prune", o->criterion);
    ses_json_member_string(w, "block", o->block ? o->block : "32x32");
    ses_json_member_real(w, "keep", o->keep);
    ses_json_member_real(w, "prune_warmup", o->warmup);
    ses_json_member_real(w, "prune_cooldown", o->cooldown);
    ses_json_member_real(w, "score_lr", o->score_lr);
    ses_json_member_real(w, "prune_threshold", o->threshold);
    ses_json_member_real(w, "prune_penalty", o->penalty);
}

/* ---- new and free ---- */

/* x updates; below 1: a fraction of the run. */
static int64_t updates_of(double x, int64_t total)
{
    return x >= 1 ? (int64_t)x : (int64_t)ceil(x * (double)total);
}

static bool set_schedule(ses_pruner *p, ses_err *e)
{
    p->begin = updates_of(p->o.warmup, p->total);
    p->end = p->total - updates_of(p->o.cooldown, p->total);
    return p->end >= p->begin ||
           ses_fail(
               e, SES_EUSAGE,
               "prune-warmup and prune-cooldown take %lld and %lld updates, the run has %lld: lower them",
               (long long)p->begin, (long long)(p->total - p->end), (long long)p->total);
}

ses_pruner *ses_pruner_new(const ses_pruning_options *o, ses_model *m, const ses_optim_options *optim,
                           int64_t updates, ses_err *e)
{
    if (!ses_pruning_check(o, e)) return NULL;
    if (ses_model_adapter(m)) {
        ses_fail(
            e, SES_EUNSUPPORTED,
            "prune changes the weights of the model, which an adapter leaves as they are: train without one");
        return NULL;
    }
    if (ses_json_len(ses_json_get(ses_model_config(m), "sesame_low_rank"))) {
        ses_fail(e, SES_EUNSUPPORTED,
                 "prune: the factors of a factorized model (\"sesame_low_rank\") have no rows and heads to "
                 "remove: prune the model before it is factorized");
        return NULL;
    }
    const ses_optim_kind *kind = optim->name ? ses_optim_find(optim->name) : NULL;
    if (optim->ema_decay > 0 || (kind && kind->average_weight)) {
        ses_fail(
            e, SES_EUNSUPPORTED,
            "prune: an average of weights would fill the zeros: set ema_decay to 0, and use an optimizer "
            "that does not average, as adamw");
        return NULL;
    }
    ses_pruner *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    *p = (ses_pruner){ .o = *o,
                       .criterion = find(o->criterion, e),
                       .model = m,
                       .store = ses_model_store(m),
                       .dev = ses_store_device(ses_model_store(m)),
                       .total = updates };
    bool ok = p->criterion && set_schedule(p, e) &&
              (!p->criterion->has_scores || (p->scores = ses_store_new(p->dev, e))) &&
              ses_prune_layout(p, optim, e);
    if (ok) return ses_pruner_restore(p, 0), p;
    ses_pruner_free(p);
    return NULL;
}

void ses_pruner_free(ses_pruner *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->n_weights; i++)
        if (p->weight[i].dense) p->dev->mem->free(p->dev, p->weight[i].dense);
    for (size_t i = 0; i < p->n_groups; i++) {
        if (p->group[i].factor) p->dev->mem->free(p->dev, p->group[i].factor);
        ses_free(p->group[i].importance);
    }
    if (p->scratch) p->dev->mem->free(p->dev, p->scratch);
    ses_free(p->weight);
    ses_free(p->group);
    ses_store_free(p->scores);
    ses_arena_free(&p->names);
    ses_free(p);
}

bool ses_pruner_optim(const ses_pruner *p, ses_optim_options *out, ses_err *e)
{
    if (!ses_optim_defaults("adamw", out, e)) return false;
    out->lr = p->o.score_lr;
    return true;
}

/* ---- schedule ---- */

double ses_pruner_target(const ses_pruner *p, int64_t updates)
{
    if (updates >= p->end) return p->o.keep;
    if (updates <= p->begin) return 1;
    double left = 1 - (double)(updates - p->begin) / (double)(p->end - p->begin);
    return p->o.keep + (1 - p->o.keep) * left * left * left;
}

bool ses_pruner_is_final(const ses_pruner *p, int64_t updates) { return updates >= p->end; }

double ses_pruner_kept(const ses_pruner *p)
{
    double kept = 0, all = 0;
    for (size_t i = 0; i < p->n_groups; i++) {
        const ses_prune_group *g = &p->group[i];
        kept += (double)g->n_elements * (double)g->n_kept / (double)g->n_blocks;
        all += (double)g->n_elements;
    }
    return kept / all;
}

/* ---- masks ---- */

/* Bits whose order as integers is that of the numbers. */
static uint64_t key_of(ses_real x)
{
    const uint64_t sign = (uint64_t)1 << (8 * sizeof x - 1);
    uint64_t bits = 0;
    x += 0; /* -0 becomes 0 */
    memcpy(&bits, &x, sizeof x);
    return bits & sign ? ~bits & (sign | (sign - 1)) : bits | sign;
}

/* The key of the n_kept-th largest number, digit by digit; *equal: how many numbers with this key are among
 * the n_kept largest. */
static uint64_t nth_key(const ses_real *x, int64_t n, int64_t n_kept, int64_t *equal)
{
    uint64_t prefix = 0;
    for (int shift = 8 * (int)sizeof *x - 8; shift >= 0; shift -= 8) {
        int64_t count[256] = { 0 };
        for (int64_t i = 0; i < n; i++) {
            uint64_t key = key_of(x[i]) >> shift;
            if (key >> 8 == prefix) count[key & 255]++;
        }
        uint64_t digit = 255;
        for (; digit > 0 && count[digit] < n_kept; digit--) n_kept -= count[digit];
        prefix = prefix << 8 | digit;
    }
    *equal = n_kept;
    return prefix;
}

void ses_keep_largest(ses_real *x, int64_t n, int64_t n_kept)
{
    int64_t equal = 0;
    uint64_t last = n_kept < n ? nth_key(x, n, n_kept, &equal) : 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = key_of(x[i]);
        x[i] = n_kept >= n || key > last || (key == last && equal-- > 0);
    }
}

typedef struct choice {
    ses_pruner *p;
    double target;
} choice;

/* The masks of group i, from its importance. At least one block is kept. */
static void choose(void *ctx, int64_t i, void *scratch)
{
    (void)scratch;
    const choice *c = ctx;
    ses_prune_group *g = &c->p->group[i];
    int64_t n = (int64_t)floor(c->target * (double)g->n_blocks + 0.5);
    if (c->p->criterion->threshold) {
        double least = c->p->criterion->threshold(c->p);
        n = 0;
        for (int64_t k = 0; k < g->n_blocks; k++) n += (double)g->importance[k] > least;
    }
    g->n_kept = n < 1 ? 1 : n;
    ses_keep_largest(g->importance, g->n_blocks, g->n_kept);
}

/* The store's weights become W M. */
static void mask_weights(const ses_pruner *p)
{
    for (size_t i = 0; i < p->n_groups; i++) {
        const ses_prune_group *g = &p->group[i];
        for (int k = 0; k < g->n_parts; k++) {
            const ses_pruned_weight *w = &p->weight[g->part[k].weight];
            p->dev->k_f32.block_scale(&p->dev->exec, ses_master_data(w->param->tensor) + g->part[k].offset,
                                      w->dense + g->part[k].offset, g->factor, g->part[k].grid);
        }
    }
    ses_store_sync_bf16(p->store);
}

void ses_pruner_restore(ses_pruner *p, int64_t updates)
{
    choice c = { p, ses_pruner_target(p, updates) };
    p->updates = updates;
    for (size_t i = 0; i < p->n_groups; i++) p->criterion->rank(p, &p->group[i]);
    ses_parallel_for(p->dev->exec.pool, (int64_t)p->n_groups, choose, &c);
    for (size_t i = 0; i < p->n_groups; i++) {
        const ses_prune_group *g = &p->group[i];
        p->dev->mem->upload(p->dev, g->factor, g->importance, (size_t)g->n_blocks * sizeof *g->factor);
    }
    mask_weights(p);
}

/* ---- an update ---- */

void ses_pruner_gradients(ses_pruner *p, double weight)
{
    for (size_t i = 0; i < p->n_groups; i++) {
        const ses_prune_group *g = &p->group[i];
        for (int k = 0; k < g->n_parts; k++) {
            const ses_prune_part *x = &g->part[k];
            const ses_pruned_weight *w = &p->weight[x->weight];
            ses_real *grad = w->param->tensor->grad + x->offset;
            if (g->score)
                p->dev->k_f32.block_dot(&p->dev->exec, g->score->grad, grad, w->dense + x->offset, x->grid);
            p->dev->k_f32.block_scale(&p->dev->exec, grad, grad, g->factor, x->grid);
        }
        if (p->criterion->penalize) p->criterion->penalize(p, g, weight);
    }
}

void ses_pruner_expand(ses_pruner *p)
{
    for (size_t i = 0; i < p->n_weights; i++) {
        const ses_pruned_weight *w = &p->weight[i];
        p->dev->mem->move(p->dev, ses_master_data(w->param->tensor), w->dense,
                          (size_t)w->n * sizeof *w->dense);
    }
}

void ses_pruner_apply(ses_pruner *p, int64_t updates)
{
    for (size_t i = 0; i < p->n_weights; i++) {
        const ses_pruned_weight *w = &p->weight[i];
        p->dev->mem->move(p->dev, w->dense, ses_master_data(w->param->tensor),
                          (size_t)w->n * sizeof *w->dense);
    }
    ses_pruner_restore(p, updates);
}
