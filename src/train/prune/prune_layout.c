/* The weights that are pruned, and their blocks: the dense weights inside the layers, not embeddings, norms
 * or heads. A fused matrix (queries, keys and values; gate and up) is divided into its parts first. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"
#include "model/model_desc.h"
#include "pruner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the shape of a block ---- */

bool ses_block_shape_parse(const char *text, ses_block_shape *out, ses_err *e)
{
    enum { MAX_SIZE = 1 << 20 };
    static const char *const words[] = { "row", "column", "unit" };
    if (!text) text = "32x32";
    for (size_t i = 0; i < SES_LEN(words); i++)
        if (!strcmp(text, words[i])) return out->kind = SES_BLOCK_ROW + i, true;
    char *x, *end;
    long long rows = strtoll(text, &x, 10), cols = *x == 'x' ? strtoll(x + 1, &end, 10) : 0;
    bool ok = x != text && *x == 'x' && end != x + 1 && !*end && rows >= 1 && rows <= MAX_SIZE && cols >= 1 &&
              cols <= MAX_SIZE;
    *out = (ses_block_shape){ .kind = SES_BLOCK_SIZED, .out = rows, .in = cols };
    return ok || ses_fail(e, SES_EUSAGE,
                          "block: \"%s\" is neither a size, outputs x inputs from 1 to %d, as 32x32 or 1x4, "
                          "nor row, column or unit",
                          ses_quoted_of(text, strlen(text)).s, MAX_SIZE);
}

/* ---- weights ---- */

/* A trained dense weight of a layer: "layer.0.attn.query.weight". */
static bool is_prunable(const ses_param *p, const ses_optim_options *optim)
{
    const char *decoder = "decoder.", *layer = "layer.", *name = p->name;
    if (!strncmp(name, decoder, strlen(decoder))) name += strlen(decoder);
    return p->dense && ses_rank(p->tensor) == 2 && p->role == SES_PARAM_TRAINED &&
           !strncmp(name, layer, strlen(layer)) && (!optim->group_of || optim->group_of(optim->ctx, p) >= 0);
}

static bool add_weights(ses_pruner *p, const ses_optim_options *optim, ses_err *e)
{
    size_t n = ses_store_count(p->store);
    if (!(p->weight = ses_alloc_array(n, sizeof *p->weight, e))) return false;
    for (size_t i = 0; i < n; i++) {
        const ses_param *x = ses_store_at(p->store, i);
        if (!is_prunable(x, optim)) continue;
        ses_pruned_weight *w = &p->weight[p->n_weights++];
        *w = (ses_pruned_weight){ .param = x, .n = ses_count(x->tensor) };
        if (!(w->dense = p->dev->mem->alloc(p->dev, (size_t)w->n * sizeof *w->dense, e))) return false;
        p->dev->mem->move(p->dev, w->dense, ses_master_data(x->tensor), (size_t)w->n * sizeof *w->dense);
    }
    return p->n_weights || ses_fail(e, SES_EUNSUPPORTED,
                                    "prune: %s has no trained dense weights inside layers of attention and "
                                    "feed-forward: choose a transformer, and train its layers",
                                    ses_model_class_name(p->model));
}

/* The pruned weight with this tensor; -1: none. */
static int64_t weight_of(const ses_pruner *p, const ses_tensor *w)
{
    for (size_t i = 0; w && i < p->n_weights; i++)
        if (p->weight[i].param->tensor == w) return (int64_t)i;
    return -1;
}

/* ---- groups ---- */

/* Part `slice` of `slices` along the outputs, in blocks of out x in; 0: all outputs of the part, all
 * inputs. */
static ses_prune_part part_of(const ses_pruner *p, size_t weight, int slice, int slices, int64_t out,
                              int64_t in)
{
    const ses_param *x = p->weight[weight].param;
    bool out_first = x->layout == SES_OUT_IN;
    int64_t outputs = x->tensor->dim[out_first ? 0 : 1] / slices, inputs = x->tensor->dim[out_first ? 1 : 0];
    out = out ? out : outputs, in = in ? in : inputs;
    if (out_first)
        return (ses_prune_part){ weight, slice * outputs * inputs, { outputs, inputs, inputs, out, in } };
    return (ses_prune_part){ weight, slice * outputs, { inputs, outputs, slices * outputs, in, out } };
}

static int64_t block_count(const ses_prune_part *x)
{
    return ses_block_grid_rows(&x->grid) * ses_block_grid_cols(&x->grid);
}

static void add_part(ses_prune_group *g, ses_prune_part x)
{
    g->part[g->n_parts++] = x;
    g->n_blocks = block_count(&x);
    g->n_elements += x.grid.rows * x.grid.cols;
}

static ses_prune_group *new_group(ses_pruner *p, const char *name, ses_err *e)
{
    ses_prune_group *g = &p->group[p->n_groups];
    *g = (ses_prune_group){ .name = ses_arena_strndup(&p->names, name, strlen(name), e) };
    if (!g->name) return NULL;
    p->n_groups++;
    return g;
}

/* Matrices in a fused one. */
static int fused_parts(const ses_model *m, const ses_tensor *w)
{
    for (size_t s = 0; s < SES_LEN(m->stack); s++) {
        const ses_stack *k = &m->stack[s];
        for (int64_t i = 0; k->layer && i < k->n_unique; i++) {
            const ses_layer *l = &k->layer[i];
            if (w == l->self.query.w) return k->c->attention.qkv_layout == SES_QKV_FUSED ? 3 : 1;
            if (w == l->cross.key.w) return k->c->attention.qkv_layout == SES_QKV_SEPARATE ? 1 : 2;
            if (w == l->up.w) return k->c->ffn.fused_gate ? 2 : 1;
        }
    }
    return 1;
}

static bool check_size(const ses_pruner *p, const ses_prune_part *x, const ses_block_shape *b, ses_err *e)
{
    const ses_param *w = p->weight[x->weight].param;
    bool out_first = w->layout == SES_OUT_IN;
    int64_t outputs = out_first ? x->grid.rows : x->grid.cols,
            inputs = out_first ? x->grid.cols : x->grid.rows;
    if (b->kind != SES_BLOCK_SIZED || (b->out <= outputs && b->in <= inputs)) return true;
    return ses_fail(
        e, SES_EUSAGE,
        "block: %lldx%lld is larger than \"%s\" with %lld outputs and %lld inputs: choose a smaller "
        "block",
        (long long)b->out, (long long)b->in, w->name, (long long)outputs, (long long)inputs);
}

/* A group per matrix. */
static bool add_matrices(ses_pruner *p, const ses_block_shape *b, ses_err *e)
{
    int64_t out = b->kind == SES_BLOCK_SIZED ? b->out : b->kind == SES_BLOCK_ROW ? 1 : 0;
    int64_t in = b->kind == SES_BLOCK_SIZED ? b->in : b->kind == SES_BLOCK_COLUMN ? 1 : 0;
    for (size_t i = 0; i < p->n_weights; i++) {
        int n = fused_parts(p->model, p->weight[i].param->tensor);
        for (int k = 0; k < n; k++) {
            char name[256];
            snprintf(name, sizeof name, n > 1 ? "%s.%d" : "%s", p->weight[i].param->name, k);
            ses_prune_group *g = new_group(p, name, e);
            if (!g) return false;
            add_part(g, part_of(p, i, k, n, out, in));
            if (!check_size(p, &g->part[0], b, e)) return false;
        }
    }
    return true;
}

/* Adds n slices of w, each in `units` blocks of outputs or, by_input, of inputs; none if w is not pruned. */
static void add_units(const ses_pruner *p, ses_prune_group *g, const ses_tensor *w, int n, int64_t units,
                      bool by_input)
{
    int64_t i = weight_of(p, w);
    for (int k = 0; i >= 0 && k < n; k++) {
        ses_prune_part whole = part_of(p, (size_t)i, k, n, 0, 0);
        bool out_first = p->weight[i].param->layout == SES_OUT_IN;
        int64_t size = by_input == out_first ? whole.grid.cols : whole.grid.rows;
        add_part(g, part_of(p, (size_t)i, k, n, by_input ? 0 : size / units, by_input ? size / units : 0));
    }
}

/* The heads of an attention block. */
static bool add_heads(ses_pruner *p, const ses_attn_params *a, int64_t heads, const char *name, ses_err *e)
{
    if (weight_of(p, a->query.w) < 0 || weight_of(p, a->out.w) < 0 || !heads) return true;
    ses_prune_group *g = new_group(p, name, e);
    if (!g) return false;
    add_units(p, g, a->query.w, fused_parts(p->model, a->query.w), heads, false);
    add_units(p, g, a->key.w, fused_parts(p->model, a->key.w), heads, false);
    add_units(p, g, a->value.w, 1, heads, false);
    add_units(p, g, a->out.w, 1, heads, true);
    return true;
}

/* The rows of a feed-forward block. */
static bool add_rows(ses_pruner *p, const ses_layer *l, const char *name, ses_err *e)
{
    int64_t down = weight_of(p, l->down.w);
    if (weight_of(p, l->up.w) < 0 || down < 0) return true;
    ses_prune_group *g = new_group(p, name, e);
    if (!g) return false;
    const ses_param *x = p->weight[down].param;
    int64_t rows = x->tensor->dim[x->layout == SES_OUT_IN ? 1 : 0];
    add_units(p, g, l->up.w, fused_parts(p->model, l->up.w), rows, false);
    add_units(p, g, l->gate.w, 1, rows, false);
    add_units(p, g, l->down.w, 1, rows, true);
    return true;
}

/* A group per layer's heads and per layer's feed-forward rows. */
static bool add_structures(ses_pruner *p, ses_err *e)
{
    for (size_t s = 0; s < SES_LEN(p->model->stack); s++) {
        const ses_stack *k = &p->model->stack[s];
        for (int64_t i = 0; k->layer && i < k->n_unique; i++) {
            const ses_layer *l = &k->layer[i];
            char name[3][160];
            snprintf(name[0], sizeof name[0], "%slayer.%lld.attn.heads", k->prefix, (long long)i);
            snprintf(name[1], sizeof name[1], "%slayer.%lld.cross.heads", k->prefix, (long long)i);
            snprintf(name[2], sizeof name[2], "%slayer.%lld.ffn.rows", k->prefix, (long long)i);
            if (!add_heads(p, &l->self, ses_stack_heads(k, i), name[0], e) ||
                !add_heads(p, &l->cross, ses_stack_cross_heads(k, i), name[1], e) ||
                !add_rows(p, l, name[2], e))
                return false;
        }
    }
    return p->n_groups ||
           ses_fail(e, SES_EUNSUPPORTED,
                    "block unit: the layers of %s have a structure of their own: use blocks of "
                    "a size, as 32x32, or row or column",
                    ses_model_class_name(p->model));
}

/* Memory of the groups: scores, masks, importance. */
static bool alloc_groups(ses_pruner *p, ses_err *e)
{
    int64_t largest = 0;
    for (size_t i = 0; i < p->n_groups; i++) {
        ses_prune_group *g = &p->group[i];
        size_t bytes = (size_t)g->n_blocks * sizeof *g->factor;
        if (g->n_blocks > largest) largest = g->n_blocks;
        if (p->scores) g->score = ses_store_add(p->scores, g->name, SES_DIM(g->n_blocks), SES_INIT_ZERO);
        if (!(g->factor = p->dev->mem->alloc(p->dev, bytes, e)) ||
            !(g->importance = ses_alloc_array((size_t)g->n_blocks, sizeof *g->importance, e)))
            return false;
    }
    p->scratch = p->dev->mem->alloc(p->dev, (size_t)largest * sizeof *p->scratch, e);
    return p->scratch &&
           (!p->scores || (ses_store_ok(p->scores, e) && ses_store_alloc_trainable(p->scores, e)));
}

bool ses_prune_layout(ses_pruner *p, const ses_optim_options *optim, ses_err *e)
{
    enum { MAX_FUSED = 3 };
    ses_block_shape b;
    if (!ses_block_shape_parse(p->o.block, &b, e) || !add_weights(p, optim, e)) return false;
    p->group = ses_alloc_array(MAX_FUSED * p->n_weights, sizeof *p->group, e);
    return p->group && (b.kind == SES_BLOCK_UNIT ? add_structures(p, e) : add_matrices(p, &b, e)) &&
           alloc_groups(p, e);
}
