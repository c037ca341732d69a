/* Dinic's algorithm: breadth-first levels of the residual graph, then a blocking flow along them, until the
 * sink is not reached. Each edge is an arc and its reverse, which begins without capacity. */
#include "maxflow.h"

#include "base/alloc.h"

#include <string.h>

/* Residual capacities below are rounding errors: attention weights are at most 1. */
static const double epsilon = 1e-13;

typedef struct arc {
    int32_t to;
    int32_t reverse; /* index of the reverse arc */
} arc;

typedef struct edge {
    int32_t from, to;
    double capacity;
} edge;

struct ses_flow_graph {
    int32_t nodes;
    int64_t n, max;
    edge *edge;       /* until it is finished */
    int32_t *first;   /* [nodes + 1]: arcs of node i are first[i] .. first[i + 1] - 1 */
    arc *arc;         /* [2 n] */
    double *capacity; /* [2 n] */
};

struct ses_flow_solver {
    const ses_flow_graph *g;
    double *rest;   /* [2 n]: residual capacities */
    int32_t *level; /* [nodes]; -1: not reached */
    int32_t *next;  /* [nodes]: the next arc to try */
    int32_t *queue; /* [nodes]: of the search; then the arcs of a path */
};

ses_flow_graph *ses_flow_graph_new(int32_t nodes, int64_t max_edges, ses_err *e)
{
    if (nodes < 1 || max_edges < 0 || max_edges > INT32_MAX / 2) {
        ses_fail(e, SES_EARG, "a graph of %d nodes and %lld edges is too large", (int)nodes,
                 (long long)max_edges);
        return NULL;
    }
    ses_flow_graph *g = ses_alloc(sizeof *g, e);
    if (!g) return NULL;
    g->nodes = nodes, g->max = max_edges;
    g->edge = ses_alloc_array((size_t)max_edges, sizeof *g->edge, e);
    g->first = ses_alloc_array((size_t)nodes + 1, sizeof *g->first, e);
    if (g->edge && g->first) return g;
    ses_flow_graph_free(g);
    return NULL;
}

void ses_flow_graph_free(ses_flow_graph *g)
{
    if (!g) return;
    ses_free(g->edge);
    ses_free(g->first);
    ses_free(g->arc);
    ses_free(g->capacity);
    ses_free(g);
}

void ses_flow_graph_add(ses_flow_graph *g, int32_t from, int32_t to, double capacity)
{
    if (!(capacity > epsilon) || g->n == g->max) return;
    g->edge[g->n++] = (edge){ from, to, capacity };
    g->first[from + 1]++, g->first[to + 1]++;
}

bool ses_flow_graph_finish(ses_flow_graph *g, ses_err *e)
{
    size_t arcs = 2 * (size_t)g->n;
    g->arc = ses_alloc_array(arcs, sizeof *g->arc, e);
    g->capacity = ses_alloc_array(arcs, sizeof *g->capacity, e);
    int32_t *at = ses_alloc_array((size_t)g->nodes + 1, sizeof *at, e);
    if (!g->arc || !g->capacity || !at) return ses_free(at), false;
    for (int32_t i = 0; i < g->nodes; i++) g->first[i + 1] += g->first[i];
    memcpy(at, g->first, ((size_t)g->nodes + 1) * sizeof *at);
    for (int64_t i = 0; i < g->n; i++) {
        const edge *x = &g->edge[i];
        int32_t out = at[x->from]++, back = at[x->to]++;
        g->arc[out] = (arc){ x->to, back };
        g->arc[back] = (arc){ x->from, out };
        g->capacity[out] = x->capacity;
    }
    ses_free(at);
    ses_free(g->edge);
    g->edge = NULL;
    return true;
}

ses_flow_solver *ses_flow_solver_new(const ses_flow_graph *g, ses_err *e)
{
    ses_flow_solver *s = ses_alloc(sizeof *s, e);
    if (!s) return NULL;
    size_t nodes = (size_t)g->nodes;
    s->g = g;
    s->rest = ses_alloc_array(2 * (size_t)g->n, sizeof *s->rest, e);
    s->level = ses_alloc_array(nodes, sizeof *s->level, e);
    s->next = ses_alloc_array(nodes, sizeof *s->next, e);
    s->queue = ses_alloc_array(nodes, sizeof *s->queue, e);
    if (s->rest && s->level && s->next && s->queue) return s;
    ses_flow_solver_free(s);
    return NULL;
}

void ses_flow_solver_free(ses_flow_solver *s)
{
    if (!s) return;
    ses_free(s->rest);
    ses_free(s->level);
    ses_free(s->next);
    ses_free(s->queue);
    ses_free(s);
}

/* Levels of the nodes nearer than `to`; false: it is not reached. */
static bool search(ses_flow_solver *s, int32_t from, int32_t to)
{
    const ses_flow_graph *g = s->g;
    int32_t head = 0, tail = 0;
    for (int32_t i = 0; i < g->nodes; i++) s->level[i] = -1;
    s->level[from] = 0;
    s->queue[tail++] = from;
    while (head < tail) {
        int32_t u = s->queue[head++];
        if (s->level[to] >= 0 && s->level[u] + 1 > s->level[to]) break;
        for (int32_t a = g->first[u]; a < g->first[u + 1]; a++) {
            int32_t v = g->arc[a].to;
            if (s->level[v] >= 0 || s->rest[a] <= epsilon) continue;
            s->level[v] = s->level[u] + 1;
            s->queue[tail++] = v;
        }
    }
    return s->level[to] >= 0;
}

/* Sends what the path of `depth` arcs carries. Returns the amount; *full: the depth of its first full arc. */
static double send(ses_flow_solver *s, const int32_t *path, int32_t depth, int32_t *full)
{
    double amount = s->rest[path[0]];
    for (int32_t i = 1; i < depth; i++)
        if (s->rest[path[i]] < amount) amount = s->rest[path[i]];
    *full = depth;
    for (int32_t i = depth - 1; i >= 0; i--) {
        s->rest[path[i]] -= amount;
        s->rest[s->g->arc[path[i]].reverse] += amount;
        if (s->rest[path[i]] <= epsilon) *full = i;
    }
    return amount;
}

/* A flow along the levels after which each path has a full arc. */
static double block(ses_flow_solver *s, int32_t from, int32_t to)
{
    const ses_flow_graph *g = s->g;
    int32_t *path = s->queue, depth = 0, u = from;
    double sum = 0;
    memcpy(s->next, g->first, (size_t)g->nodes * sizeof *s->next);
    for (;;) {
        if (u == to) {
            sum += send(s, path, depth, &depth);
            u = g->arc[g->arc[path[depth]].reverse].to;
            continue;
        }
        int32_t a = s->next[u], end = g->first[u + 1];
        while (a < end && !(s->rest[a] > epsilon && s->level[g->arc[a].to] == s->level[u] + 1)) a++;
        s->next[u] = a;
        if (a < end) {
            path[depth++] = a;
            u = g->arc[a].to;
        } else if (!depth) {
            return sum;
        } else { /* a dead end */
            s->level[u] = -1;
            u = g->arc[g->arc[path[--depth]].reverse].to;
        }
    }
}

double ses_max_flow(ses_flow_solver *s, int32_t from, int32_t to)
{
    double flow = 0;
    if (from == to) return 0;
    memcpy(s->rest, s->g->capacity, 2 * (size_t)s->g->n * sizeof *s->rest);
    while (search(s, from, to)) flow += block(s, from, to);
    return flow;
}
