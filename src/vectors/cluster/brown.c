/* Brown clustering: see brown.h.
 *
 * The current clusters are in slots. p1[s]: probability of cluster s; p2[s][t]: of cluster t after s;
 * q2[s][t]: its term of the mutual information, p2 log2(p2 / (p1[s] p1[t])). gain[s][t], s < t: change of
 * the mutual information if s and t are merged, a sum over slots u, which are added and removed one by
 * one. */
#include "brown.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

typedef struct slots {
    int64_t n; /* capacity: clusters + 1 */
    ses_thread_pool *pool;
    bool *used;       /* [n] */
    int32_t *node;    /* [n]: the tree node of the cluster */
    double *p1;       /* [n] */
    double *p2, *q2;  /* [n, n] */
    double *gain;     /* [n, n] */
    int32_t *slot_of; /* [words]: the slot of each word in a slot; -1: not yet clustered */
    int64_t *best;    /* [n]: best partner of a row */
    int64_t merges;
    const int32_t *number;
    ses_brown *tree;
} slots;

/* A slot seen by all others: its row and column of p2, and its terms of the information. */
typedef struct view {
    double p1;
    double *to, *from, *term; /* [n]: p2[u][v], p2[v][u], q2[u][v] + q2[v][u] (once if u = v) */
} view;

static double term(double p, double product) { return p > 0 ? p * log2(p / product) : 0; }

static double pair_term(const slots *x, int64_t s, int64_t t)
{
    return s == t ? x->q2[s * x->n + s] : x->q2[s * x->n + t] + x->q2[t * x->n + s];
}

/* The part of gain[v][w] that comes from the terms with u. */
static double part(const slots *x, const view *u, int64_t v, int64_t w)
{
    double to = u->to[v] + u->to[w], from = u->from[v] + u->from[w];
    if (to <= 0 && from <= 0) return 0; /* so are the terms */
    double product = (x->p1[v] + x->p1[w]) * u->p1;
    return term(to, product) + term(from, product) - u->term[v] - u->term[w];
}

static bool new_view(view *v, int64_t n, ses_err *e)
{
    *v = (view){ .to = ses_alloc_array((size_t)n, 3 * sizeof *v->to, e) };
    v->from = v->to + (v->to ? n : 0);
    v->term = v->from + (v->to ? n : 0);
    return v->to != NULL;
}

static void look(const slots *x, view *v, int64_t u)
{
    v->p1 = x->p1[u];
    for (int64_t s = 0; s < x->n; s++) {
        v->to[s] = x->p2[u * x->n + s];
        v->from[s] = x->p2[s * x->n + u];
        v->term[s] = x->used[s] ? pair_term(x, s, u) : 0;
    }
}

/* Words are older than merged clusters. Their numbers count the words that were dropped, too. */
static int64_t age(const slots *x, int32_t node)
{
    return node < x->tree->n ? x->number[node] : (int64_t)INT32_MAX + node;
}

static bool is_older(const slots *x, int64_t s, int64_t t) { return age(x, x->node[s]) < age(x, x->node[t]); }

/* gain[s][t] from all slots. Merges of equal value are decided by rounding errors: the order of the terms is
 * one that decides most of them as wcluster does. */
static double whole_gain(const slots *x, int64_t s, int64_t t)
{
    int64_t n = x->n;
    if (is_older(x, t, s)) {
        int64_t swap = s;
        s = t, t = swap;
    }
    double p1 = x->p1[s] + x->p1[t], sum = -pair_term(x, s, s) - pair_term(x, t, t) - pair_term(x, s, t);
    for (int64_t u = 0; u < n; u++)
        if (x->used[u] && u != s && u != t) sum -= pair_term(x, s, u) + pair_term(x, t, u);
    sum += term(x->p2[s * n + s] + x->p2[s * n + t] + x->p2[t * n + s] + x->p2[t * n + t], p1 * p1);
    for (int64_t u = 0; u < n; u++) {
        if (!x->used[u] || u == s || u == t) continue;
        double to = x->p2[s * n + u] + x->p2[t * n + u], from = x->p2[u * n + s] + x->p2[u * n + t];
        if (to > 0 || from > 0) sum += term(to, p1 * x->p1[u]) + term(from, p1 * x->p1[u]);
    }
    return sum;
}

static double *gain_at(const slots *x, int64_t s, int64_t t)
{
    return &x->gain[s < t ? s * x->n + t : t * x->n + s];
}

/* ---- updates of all pairs, a row per chunk ---- */

typedef struct pair_job {
    slots *x;
    const view *add, *drop, *drop2; /* may be NULL */
    int64_t slot, slot2;            /* rows of these slots are left out; -1: none */
} pair_job;

static void update_row(void *ctx, int64_t s, void *scratch)
{
    const pair_job *j = ctx;
    slots *x = j->x;
    (void)scratch;
    if (!x->used[s] || s == j->slot || s == j->slot2) return;
    for (int64_t t = s + 1; t < x->n; t++) {
        if (!x->used[t] || t == j->slot || t == j->slot2) continue;
        double *g = &x->gain[s * x->n + t];
        if (j->drop) *g -= part(x, j->drop, s, t);
        if (j->drop2) *g -= part(x, j->drop2, s, t);
        if (j->add) *g += part(x, j->add, s, t);
    }
}

static void whole_row(void *ctx, int64_t s, void *scratch)
{
    const pair_job *j = ctx;
    slots *x = j->x;
    (void)scratch;
    if (x->used[s] && s != j->slot) *gain_at(x, s, j->slot) = whole_gain(x, s, j->slot);
}

static void first_row(void *ctx, int64_t s, void *scratch)
{
    const pair_job *j = ctx;
    slots *x = j->x;
    (void)scratch;
    for (int64_t t = s + 1; x->used[s] && t < x->n; t++)
        if (x->used[t]) x->gain[s * x->n + t] = whole_gain(x, s, t);
}

/* The best younger partner of a cluster. */
static void best_of_row(void *ctx, int64_t s, void *scratch)
{
    slots *x = ((const pair_job *)ctx)->x;
    (void)scratch;
    x->best[s] = -1;
    for (int64_t t = 0; x->used[s] && t < x->n; t++)
        if (x->used[t] && is_older(x, s, t) &&
            (x->best[s] < 0 || *gain_at(x, s, t) > *gain_at(x, s, x->best[s])))
            x->best[s] = t;
}

/* The pair of the largest gain; of equal ones the first in the order of the older, then the younger slot. */
static void find_best(slots *x, int64_t *s, int64_t *t)
{
    pair_job j = { .x = x };
    ses_parallel_for(x->pool, x->n, best_of_row, &j);
    *s = -1;
    for (int64_t r = 0; r < x->n; r++)
        if (x->best[r] >= 0 && (*s < 0 || *gain_at(x, r, x->best[r]) > *gain_at(x, *s, x->best[*s]))) *s = r;
    *t = x->best[*s];
    if (*s > *t) { /* the merged cluster stays in the later slot, t */
        int64_t swap = *s;
        *s = *t, *t = swap;
    }
}

/* ---- adding a word, merging two clusters ---- */

static void set_terms(slots *x, int64_t u)
{
    int64_t n = x->n;
    for (int64_t s = 0; s < n; s++) {
        if (!x->used[s]) continue;
        double product = x->p1[u] * x->p1[s];
        x->q2[u * n + s] = term(x->p2[u * n + s], product);
        x->q2[s * n + u] = term(x->p2[s * n + u], product);
    }
}

static void clear_slot(slots *x, int64_t u)
{
    for (int64_t s = 0; s < x->n; s++)
        x->p2[u * x->n + s] = x->p2[s * x->n + u] = x->q2[u * x->n + s] = x->q2[s * x->n + u] = 0;
    x->p1[u] = 0;
    x->used[u] = false;
}

/* Puts a word into a free slot; slot_of: the slots of clustered words through their merges. */
static void add_word(slots *x, const ses_brown_words *w, int64_t word, int64_t u)
{
    double all = (double)(w->tokens - 1);
    int64_t n = x->n;
    x->used[u] = true;
    x->node[u] = (int32_t)word;
    x->slot_of[word] = (int32_t)u;
    x->p1[u] = (double)w->vocab.word[w->id[word]].count / (double)w->tokens;
    for (int64_t i = w->right_start[word]; i < w->right_start[word + 1]; i++) {
        int32_t s = x->slot_of[w->right[i].word];
        if (s >= 0) x->p2[u * n + s] += (double)w->right[i].count / all;
    }
    for (int64_t i = w->left_start[word]; i < w->left_start[word + 1]; i++) {
        int32_t s = x->slot_of[w->left[i].word];
        if (s >= 0 && s != u) x->p2[s * n + u] += (double)w->left[i].count / all;
    }
    set_terms(x, u);
}

/* The left branch is the older cluster. */
static ses_brown_node branches(const slots *x, int32_t a, int32_t b)
{
    return age(x, a) < age(x, b) ? (ses_brown_node){ a, b } : (ses_brown_node){ b, a };
}

/* Merges slot t into s: probabilities and terms, not the gains. */
static void join(slots *x, int64_t s, int64_t t, int64_t words)
{
    int64_t n = x->n;
    x->tree->merge[x->merges] = branches(x, x->node[s], x->node[t]);
    x->node[s] = (int32_t)(x->tree->n + x->merges++);
    double inside = x->p2[s * n + s] + x->p2[s * n + t] + x->p2[t * n + s] + x->p2[t * n + t];
    for (int64_t u = 0; u < n; u++) {
        if (!x->used[u] || u == s || u == t) continue;
        x->p2[s * n + u] += x->p2[t * n + u];
        x->p2[u * n + s] += x->p2[u * n + t];
    }
    x->p1[s] += x->p1[t];
    x->p2[s * n + s] = inside;
    clear_slot(x, t);
    for (int64_t w = 0; w < words; w++)
        if (x->slot_of[w] == t) x->slot_of[w] = (int32_t)s;
    set_terms(x, s);
}

static void merge(slots *x, int64_t s, int64_t t, view v[3], int64_t words)
{
    look(x, &v[0], s);
    look(x, &v[1], t);
    pair_job j = { .x = x, .drop = &v[0], .drop2 = &v[1], .add = &v[2], .slot = s, .slot2 = t };
    join(x, s, t, words);
    look(x, &v[2], s);
    ses_parallel_for(x->pool, x->n, update_row, &j);
    ses_parallel_for(x->pool, x->n, whole_row, &j);
}

static double information(const slots *x)
{
    double sum = 0;
    for (int64_t i = 0; i < x->n * x->n; i++) sum += x->q2[i];
    return sum;
}

/* ---- all of it ---- */

static bool cluster(slots *x, const ses_brown_words *w, int64_t clusters, const ses_brown_options *o,
                    view v[3], ses_err *e)
{
    int64_t s, t, free_slot = clusters;
    for (int64_t word = 0; word < w->n; word++) x->slot_of[word] = -1;
    for (int64_t c = 0; c < clusters; c++) add_word(x, w, c, c);
    pair_job j = { .x = x };
    ses_parallel_for(x->pool, x->n, first_row, &j);
    for (int64_t word = clusters; word < w->n; word++) {
        if (o->progress && !o->progress(o->ctx, word, w->n))
            return ses_fail(e, SES_EARG, "stopped at word %lld of %lld", (long long)word, (long long)w->n);
        add_word(x, w, word, free_slot);
        look(x, &v[2], free_slot);
        j = (pair_job){ .x = x, .add = &v[2], .slot = free_slot, .slot2 = -1 };
        ses_parallel_for(x->pool, x->n, update_row, &j);
        ses_parallel_for(x->pool, x->n, whole_row, &j);
        find_best(x, &s, &t);
        merge(x, t, s, v, word + 1);
        free_slot = s;
    }
    x->tree->information = information(x);
    while (x->merges + 1 < w->n) {
        find_best(x, &s, &t);
        merge(x, t, s, v, 0);
    }
    return true;
}

bool ses_brown_fit(ses_brown *b, const ses_brown_words *w, int64_t clusters, const ses_brown_options *o,
                   ses_thread_pool *pool, ses_err *e)
{
    if (clusters < 1 || clusters > SES_BROWN_MAX_CLUSTERS)
        return ses_fail(e, SES_EARG, "%lld clusters; expected 1 to %d", (long long)clusters,
                        SES_BROWN_MAX_CLUSTERS);
    if (clusters > w->n) clusters = w->n;
    b->n = w->n, b->clusters = clusters;
    b->merge = ses_alloc_array((size_t)w->n, sizeof *b->merge, e);
    slots x = { .n = clusters + 1, .pool = pool, .number = w->number, .tree = b };
    size_t n = (size_t)x.n;
    double *square = b->merge ? ses_alloc_array(n, (3 * n + 1) * sizeof *square, e) : NULL;
    x.used = square ? ses_alloc_array(n, sizeof *x.used, e) : NULL;
    x.node = x.used ? ses_alloc_array(n, sizeof *x.node, e) : NULL;
    x.best = x.node ? ses_alloc_array(n, sizeof *x.best, e) : NULL;
    x.slot_of = x.best ? ses_alloc_array((size_t)w->n, sizeof *x.slot_of, e) : NULL;
    view v[3] = { 0 };
    bool ok = x.slot_of && new_view(&v[0], x.n, e) && new_view(&v[1], x.n, e) && new_view(&v[2], x.n, e);
    if (ok) {
        x.p2 = square, x.q2 = square + n * n, x.gain = square + 2 * n * n, x.p1 = square + 3 * n * n;
        ok = cluster(&x, w, clusters, o, v, e);
    }
    for (int i = 0; i < 3; i++) ses_free(v[i].to);
    ses_free(square), ses_free(x.used), ses_free(x.node), ses_free(x.best), ses_free(x.slot_of);
    return ok;
}

void ses_brown_free(ses_brown *b)
{
    ses_free(b->merge);
    *b = (ses_brown){ 0 };
}

/* ---- paths ---- */

typedef struct visit {
    int32_t node;
    int32_t depth; /* length of the path to it */
    char bit;      /* its last bit; 0: the root, or below a cluster */
} visit;

bool ses_brown_each(const ses_brown *b, ses_brown_fn *fn, void *ctx, ses_err *e)
{
    if (!b->n) return true;
    int64_t first_joint = b->n + (b->n - b->clusters); /* merges from here on join clusters */
    visit *stack = ses_alloc_array((size_t)b->n + 1, sizeof *stack, e);
    char *path = stack ? ses_alloc((size_t)b->clusters + 1, e) : NULL;
    int64_t top = 0;
    bool ok = path != NULL;
    if (ok) stack[top++] = (visit){ (int32_t)(b->n > 1 ? 2 * b->n - 2 : 0), 0, 0 };
    while (ok && top) {
        visit v = stack[--top];
        if (v.bit) path[v.depth - 1] = v.bit;
        path[v.depth] = '\0';
        if (v.node < b->n) {
            ok = fn(ctx, path, v.node, e);
            continue;
        }
        const ses_brown_node *m = &b->merge[v.node - b->n];
        bool joint = v.node >= first_joint;
        stack[top++] = (visit){ m->right, v.depth + joint, joint ? '1' : 0 };
        stack[top++] = (visit){ m->left, v.depth + joint, joint ? '0' : 0 };
    }
    ses_free(stack), ses_free(path);
    return ok;
}
