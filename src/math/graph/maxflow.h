/* Maximum flow between two nodes of a directed graph with real capacities (Dinic's algorithm).
 *
 * Ownership: the caller frees graphs and solvers. Threads: a finished graph is read-only and may be shared;
 * a solver belongs to one thread. Failure: NULL or false and the error. */
#ifndef SES_MATH_MAXFLOW_H
#define SES_MATH_MAXFLOW_H

#include "sesame/base.h"

typedef struct ses_flow_graph ses_flow_graph;
typedef struct ses_flow_solver ses_flow_solver;

/* A graph with nodes 0 .. nodes - 1 and at most max_edges edges. */
ses_flow_graph *ses_flow_graph_new(int32_t nodes, int64_t max_edges, ses_err *e);
void ses_flow_graph_free(ses_flow_graph *g); /* g may be NULL */

/* Adds an edge; one without capacity is left out. */
void ses_flow_graph_add(ses_flow_graph *g, int32_t from, int32_t to, double capacity);

/* Ends the edges: needed before a solver is made. */
bool ses_flow_graph_finish(ses_flow_graph *g, ses_err *e);

/* A workspace for flows of a finished graph, which must outlive it. */
ses_flow_solver *ses_flow_solver_new(const ses_flow_graph *g, ses_err *e);
void ses_flow_solver_free(ses_flow_solver *s); /* s may be NULL */

/* The value of a maximum flow; 0 if both nodes are the same. */
double ses_max_flow(ses_flow_solver *s, int32_t from, int32_t to);

#endif
