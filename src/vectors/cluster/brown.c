/* Brown clustering: see brown.h.
 *
 * The current clusters are in slots. p1[s]: probability of cluster s; p2[s][t]: of cluster t after s;
 * q2[s][t]: its term of the mutual information, p2 log2(p2 / (p1[s] p1[t])). loss[s][t], s older than t: what
 * the mutual information loses if s and t are merged, a sum over slots u, whose parts are added and removed
 * one by one.
 *
 * Rounding errors decide merges of equal value, so that the numbers equal the numbers of wcluster to the last
 * bit: the same slots (two more than clusters), the same order of additions, and of equal losses the first in
 * the order of the slots. */
#include "brown.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

/* A slot seen by all others. */
typedef struct view {
    double p1;
    double *to, *from, *both; /* [n]: p2[u][v], p2[v][u], q2[u][v] + q2[v][u] (once if u = v) */
    bool *is_near;            /* [n]: to or from is not 0 */
    int32_t *near;            /* [n_near]: these slots */
    int64_t n_near;
} view;

typedef struct slots {
    int64_t n; /* capacity: clusters + 2 */
    ses_thread_pool *pool;
    bool *used;        /* [n] */
    int32_t *node;     /* [n]: the tree node of the cluster */
    int64_t *age;      /* [n]: order of the clusters */
    double *p1;        /* [n] */
    double *p2, *q2;   /* [n, n] */
    double *loss;      /* [n, n]: infinite unless both slots are in use and the first is older */
    int64_t *best;     /* [n]: best partner of a row; -1: none */
    int64_t *count;    /* [n]: bigrams of a new word with each slot; 0 in between */
    int64_t free[2];   /* slots for the next clusters; -1: none */
    int32_t *parent;   /* [nodes]: the node it was merged into; itself: none */
    int32_t *slot_of;  /* [nodes]: the slot of a node that was not merged; -1: not yet clustered */
    view drop[2], add; /* slots that are merged; the slot that is new */
    int64_t merges;
    const ses_brown_words *w;
    ses_brown *tree;
} slots;

#define ZERO 1e-10 /* probabilities below this have no term */

static double term(double p, double product) { return p < ZERO ? 0 : p * log2(p / product); }

static double both_terms(const slots *x, int64_t s, int64_t t)
{
    return s == t ? x->q2[s * x->n + s] : x->q2[s * x->n + t] + x->q2[t * x->n + s];
}

/* The terms with u of the union of v and w. */
static double union_terms(const slots *x, const view *u, int64_t v, int64_t w)
{
    double to = u->to[v] + u->to[w], from = u->from[v] + u->from[w];
    double product = (x->p1[v] + x->p1[w]) * u->p1;
    return term(from, product) + term(to, product);
}

static void look(const slots *x, view *v, int64_t u)
{
    v->p1 = x->p1[u];
    v->n_near = 0;
    for (int64_t s = 0; s < x->n; s++) {
        v->to[s] = x->p2[u * x->n + s];
        v->from[s] = x->p2[s * x->n + u];
        v->is_near[s] = x->used[s] && (v->to[s] > 0 || v->from[s] > 0);
        v->both[s] = v->is_near[s] ? both_terms(x, s, u) : 0;
        if (v->is_near[s]) v->near[v->n_near++] = (int32_t)s;
    }
}

/* loss[s][t] from all slots. s is older. */
static double whole_loss(const slots *x, int64_t s, int64_t t)
{
    int64_t n = x->n;
    const double *q2 = x->q2, *p2 = x->p2;
    double p1 = x->p1[s] + x->p1[t], sum = 0;
    for (int64_t u = 0; u < n; u++) {
        if (!x->used[u]) continue;
        sum += q2[s * n + u] + q2[u * n + s];
        sum += q2[t * n + u] + q2[u * n + t];
    }
    sum -= q2[s * n + s] + q2[t * n + t];
    sum -= both_terms(x, s, t);
    for (int64_t u = 0; u < n; u++) {
        if (!x->used[u] || u == s || u == t) continue;
        double to = p2[s * n + u] + p2[t * n + u], from = p2[u * n + s] + p2[u * n + t];
        if (to > 0 || from > 0) sum -= term(to, p1 * x->p1[u]) + term(from, p1 * x->p1[u]);
    }
    return sum - term(p2[s * n + s] + p2[s * n + t] + p2[t * n + s] + p2[t * n + t], p1 * p1);
}

/* ---- rows of losses, one per chunk ---- */

static bool is_older(const slots *x, int64_t s, int64_t t) { return x->age[s] < x->age[t]; }

/* loss of a cluster and slot u, which is new, in the row of the older one. */
static void set_loss(slots *x, int64_t s, int64_t u)
{
    bool older = is_older(x, s, u);
    x->loss[s * x->n + u] = older ? whole_loss(x, s, u) : (double)INFINITY;
    x->loss[u * x->n + s] = older ? (double)INFINITY : whole_loss(x, u, s);
}

/* The first of the smallest losses of a row. */
static void find_partner(slots *x, int64_t s)
{
    const double *loss = x->loss + s * x->n;
    double least = (double)INFINITY;
    x->best[s] = -1;
    for (int64_t t = 0; t < x->n; t++)
        if (loss[t] < least) least = loss[t], x->best[s] = t;
}

static void add_to_pair(slots *x, int64_t s, int64_t t)
{
    const view *u = &x->add;
    double *l = &x->loss[s * x->n + t];
    if (*l < (double)INFINITY) *l += u->both[s] + u->both[t] - union_terms(x, u, s, t);
}

/* The losses of a cluster after another one, x->add, came. Pairs that both have no bigrams with it do not
 * change. */
static void add_to_row(void *ctx, int64_t s, void *scratch)
{
    slots *x = ctx;
    const view *u = &x->add;
    int64_t slot = x->free[0];
    (void)scratch;
    if (!x->used[s] || s == slot) return;
    for (int64_t t = 0; u->is_near[s] && t < x->n; t++)
        if (t != slot) add_to_pair(x, s, t);
    for (int64_t i = 0; !u->is_near[s] && i < u->n_near; i++)
        if (u->near[i] != slot) add_to_pair(x, s, u->near[i]);
    set_loss(x, s, slot);
    find_partner(x, s);
}

static void merge_in_pair(slots *x, int64_t v, int64_t w)
{
    const view *s = &x->drop[0], *t = &x->drop[1], *u = &x->add;
    double *at = &x->loss[v * x->n + w], l = *at;
    if (!(l < (double)INFINITY)) return;
    l -= s->both[v] + s->both[w] + t->both[v] + t->both[w];
    double of_s = s->is_near[v] || s->is_near[w] ? union_terms(x, s, v, w) : 0,
           of_t = t->is_near[v] || t->is_near[w] ? union_terms(x, t, v, w) : 0;
    l += of_s + of_t;
    l += u->both[v] + u->both[w];
    *at = l - union_terms(x, u, v, w);
}

/* The losses of a cluster after the two of x->drop became x->add. */
static void merge_in_row(void *ctx, int64_t v, void *scratch)
{
    slots *x = ctx;
    const view *u = &x->add;
    int64_t slot = x->slot_of[x->tree->n + x->merges - 1];
    (void)scratch;
    if (!x->used[v] || v == slot) return;
    for (int64_t w = 0; u->is_near[v] && w < x->n; w++)
        if (w != slot) merge_in_pair(x, v, w);
    for (int64_t i = 0; !u->is_near[v] && i < u->n_near; i++)
        if (u->near[i] != slot) merge_in_pair(x, v, u->near[i]);
    set_loss(x, v, slot);
    find_partner(x, v);
}

static void first_row(void *ctx, int64_t s, void *scratch)
{
    slots *x = ctx;
    (void)scratch;
    for (int64_t t = 0; t < x->n; t++)
        x->loss[s * x->n + t] =
            x->used[s] && x->used[t] && is_older(x, s, t) ? whole_loss(x, s, t) : (double)INFINITY;
    find_partner(x, s);
}

/* The pair of the smallest loss; of equal ones the first in the order of the older, then the younger slot. */
static void find_best(const slots *x, int64_t *s, int64_t *t)
{
    double least = (double)INFINITY;
    *s = *t = -1;
    for (int64_t r = 0; r < x->n; r++)
        if (x->used[r] && x->best[r] >= 0 && x->loss[r * x->n + x->best[r]] < least)
            *s = r, *t = x->best[r], least = x->loss[r * x->n + *t];
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

/* Puts a node into a slot without bigrams. Words are older than merged clusters; their numbers count the
 * words that were dropped, too. */
static void fill_slot(slots *x, int64_t u, int64_t node)
{
    int64_t n = x->n;
    for (int64_t s = 0; s < n; s++)
        x->p2[u * n + s] = x->p2[s * n + u] = x->q2[u * n + s] = x->q2[s * n + u] = 0;
    x->used[u] = true;
    x->node[u] = (int32_t)node;
    x->slot_of[node] = (int32_t)u;
    x->age[u] = node < x->tree->n ? x->w->number[node] : (int64_t)INT32_MAX + node;
}

static void free_slot(slots *x, int64_t u)
{
    x->used[u] = false;
    x->best[u] = -1;
    for (int64_t s = 0; s < x->n; s++) x->loss[u * x->n + s] = x->loss[s * x->n + u] = (double)INFINITY;
}

/* The slot of the cluster of a word; -1: not yet clustered. */
static int32_t slot_of_word(slots *x, int32_t node)
{
    while (x->parent[node] != node) {
        x->parent[node] = x->parent[x->parent[node]];
        node = x->parent[node];
    }
    return x->slot_of[node];
}

/* Counts the bigrams of a word with each slot, and moves the probabilities to row or column u of p2. */
static void count_bigrams(slots *x, const ses_brown_bigram *item, int64_t n, double *p2, int64_t stride)
{
    double all = (double)(x->w->tokens - 1);
    for (int64_t i = 0; i < n; i++) {
        int32_t s = slot_of_word(x, item[i].word);
        if (s >= 0) x->count[s] += item[i].count;
    }
    for (int64_t s = 0; s < x->n; s++) {
        if (x->count[s]) p2[s * stride] = (double)x->count[s] / all;
        x->count[s] = 0;
    }
}

static void add_word(slots *x, int64_t word, int64_t u)
{
    const ses_brown_words *w = x->w;
    int64_t n = x->n;
    fill_slot(x, u, word);
    x->p1[u] = (double)w->vocab.word[w->id[word]].count / (double)w->tokens;
    count_bigrams(x, w->right + w->right_start[word], w->right_start[word + 1] - w->right_start[word],
                  x->p2 + u * n, 1);
    count_bigrams(x, w->left + w->left_start[word], w->left_start[word + 1] - w->left_start[word], x->p2 + u,
                  n);
    set_terms(x, u);
}

/* Probabilities and terms of the union of slots s and t, the older first, in slot u. */
static void join(slots *x, int64_t s, int64_t t, int64_t u)
{
    int64_t n = x->n, node = x->tree->n + x->merges;
    double *p2 = x->p2;
    x->tree->merge[x->merges++] = (ses_brown_node){ x->node[s], x->node[t] };
    x->parent[x->node[s]] = x->parent[x->node[t]] = (int32_t)node;
    x->used[s] = x->used[t] = false;
    fill_slot(x, u, node);
    x->p1[u] = x->p1[s] + x->p1[t];
    p2[u * n + u] = p2[s * n + s] + p2[s * n + t] + p2[t * n + s] + p2[t * n + t];
    for (int64_t v = 0; v < n; v++) {
        if (!x->used[v] || v == u) continue;
        p2[u * n + v] = p2[s * n + v] + p2[t * n + v];
        p2[v * n + u] = p2[v * n + s] + p2[v * n + t];
    }
    set_terms(x, u);
}

/* Merges slots s and t, the older first. The next two clusters get their slots. */
static void merge(slots *x, int64_t s, int64_t t)
{
    int64_t u = x->free[0] >= 0 ? x->free[0] : x->free[1];
    look(x, &x->drop[0], s);
    look(x, &x->drop[1], t);
    join(x, s, t, u);
    look(x, &x->add, u);
    free_slot(x, s);
    free_slot(x, t);
    x->free[0] = s, x->free[1] = t;
    ses_parallel_for(x->pool, x->n, merge_in_row, x);
}

static double information(const slots *x)
{
    double sum = 0;
    for (int64_t s = 0; s < x->n; s++)
        for (int64_t t = 0; t < x->n; t++)
            if (x->used[s] && x->used[t]) sum += x->q2[s * x->n + t];
    return sum;
}

/* ---- all of it ---- */

static bool cluster(slots *x, int64_t clusters, const ses_brown_options *o, ses_err *e)
{
    int64_t s, t, words = x->w->n;
    for (int64_t c = 0; c < clusters; c++) add_word(x, c, c);
    x->free[0] = clusters, x->free[1] = clusters + 1;
    ses_parallel_for(x->pool, x->n, first_row, x);
    for (int64_t word = clusters; word < words; word++) {
        if (o->progress && !o->progress(o->ctx, word, words))
            return ses_fail(e, SES_EARG, "stopped at word %lld of %lld", (long long)word, (long long)words);
        add_word(x, word, x->free[0]);
        look(x, &x->add, x->free[0]);
        ses_parallel_for(x->pool, x->n, add_to_row, x);
        find_partner(x, x->free[0]);
        x->free[0] = -1;
        find_best(x, &s, &t);
        merge(x, s, t);
    }
    x->tree->information = information(x);
    while (x->merges + 1 < words) {
        find_best(x, &s, &t);
        merge(x, s, t);
    }
    return true;
}

/* ---- memory ---- */

static bool new_view(view *v, size_t n, ses_err *e)
{
    v->to = ses_alloc_array(n, 3 * sizeof *v->to, e);
    v->from = v->to + (v->to ? n : 0);
    v->both = v->from + (v->to ? n : 0);
    v->is_near = ses_alloc_array(n, sizeof *v->is_near, e);
    v->near = ses_alloc_array(n, sizeof *v->near, e);
    return v->to && v->is_near && v->near;
}

static void free_view(view *v) { ses_free(v->to), ses_free(v->is_near), ses_free(v->near); }

static bool new_slots(slots *x, ses_err *e)
{
    size_t n = (size_t)x->n, nodes = 2 * (size_t)x->tree->n;
    double *square = ses_alloc_array(n, (3 * n + 1) * sizeof *square, e);
    x->p2 = square;
    x->used = ses_alloc_array(n, sizeof *x->used, e);
    x->node = ses_alloc_array(n, sizeof *x->node, e);
    x->age = ses_alloc_array(n, sizeof *x->age, e);
    x->best = ses_alloc_array(n, sizeof *x->best, e);
    x->count = ses_alloc_array(n, sizeof *x->count, e);
    x->parent = ses_alloc_array(nodes, sizeof *x->parent, e);
    x->slot_of = ses_alloc_array(nodes, sizeof *x->slot_of, e);
    if (!square || !x->used || !x->node || !x->age || !x->best || !x->count || !x->parent || !x->slot_of)
        return false;
    x->q2 = square + n * n, x->loss = square + 2 * n * n, x->p1 = square + 3 * n * n;
    for (size_t i = 0; i < nodes; i++) x->parent[i] = (int32_t)i, x->slot_of[i] = -1;
    return new_view(&x->drop[0], n, e) && new_view(&x->drop[1], n, e) && new_view(&x->add, n, e);
}

static void free_slots(slots *x)
{
    void *own[] = { x->p2, x->used, x->node, x->age, x->best, x->count, x->parent, x->slot_of };
    for (size_t i = 0; i < SES_LEN(own); i++) ses_free(own[i]);
    free_view(&x->drop[0]), free_view(&x->drop[1]), free_view(&x->add);
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
    slots x = { .n = clusters + 2, .pool = pool, .w = w, .tree = b };
    bool ok = b->merge && new_slots(&x, e) && cluster(&x, clusters, o, e);
    free_slots(&x);
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
