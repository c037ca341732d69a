/* Adaptive embeddings and softmax (Grave et al. 2016; Baevski and Auli 2018): rare tokens have shorter
 * vectors and are predicted in two steps, p(token) = p(cluster) p(token | cluster). */
#include "nn.h"

#include <math.h>
#include <stdio.h>

/* Number of tables: all clusters share one if div_val is 1. */
static int tables(const ses_config *c) { return c->adaptive.div_val == 1 ? 1 : (int)c->adaptive.clusters; }

static int64_t width(const ses_config *c, int i)
{
    int64_t w = c->embed.width ? c->embed.width : c->hidden;
    for (; i > 0 && c->adaptive.div_val > 1; i--) w /= c->adaptive.div_val;
    return w;
}

static int64_t size(const ses_config *c, int i)
{
    return c->adaptive.div_val == 1 ? c->vocab : c->adaptive.cutoffs[i + 1] - c->adaptive.cutoffs[i];
}

static bool projected(const ses_config *c) { return c->adaptive.div_val != 1 || width(c, 0) != c->hidden; }

static ses_tensor *add(ses_store *s, const char *what, int i, const char *tail,
                       const int64_t dim[SES_MAX_DIM], ses_init init)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%d%s", what, i, tail);
    return ses_store_add(s, name, dim, init);
}

void ses_adaptive_softmax_add(ses_adaptive_softmax *k, ses_store *s, const ses_config *c)
{
    for (int i = 0; i < tables(c); i++)
        k->table[i] = add(s, "embed.cluster", i, ".table", SES_DIM(size(c, i), width(c, i)), SES_INIT_NORMAL);
    for (int i = 0; i < tables(c) && projected(c); i++)
        k->project[i] =
            add(s, "embed.cluster", i, ".project", SES_DIM(c->hidden, width(c, i)), SES_INIT_NORMAL);
}

/* A parameter of the embeddings that the softmax shares. */
static ses_tensor *shared(const ses_store *s, int i, const char *tail)
{
    char name[64];
    snprintf(name, sizeof name, "embed.cluster.%d%s", i, tail);
    const ses_param *p = ses_store_find(s, name);
    return p ? p->tensor : NULL;
}

void ses_adaptive_softmax_add_lm(ses_adaptive_softmax *k, ses_store *s, const ses_config *c)
{
    for (int i = 0; i < tables(c); i++) {
        int64_t n = size(c, i), w = width(c, i);
        k->table[i] = c->embed.tied ? shared(s, i, ".table")
                                    : add(s, "lm.cluster", i, ".weight", SES_DIM(n, w), SES_INIT_NORMAL);
        k->bias[i] = add(s, "lm.cluster", i, ".bias", SES_DIM(n), SES_INIT_ZERO);
    }
    for (int i = 0; i < (int)c->adaptive.clusters && projected(c); i++)
        k->project[i] = c->adaptive.tie_projs >> i & 1
                            ? shared(s, c->adaptive.div_val == 1 ? 0 : i, ".project")
                            : add(s, "lm.project", i, "", SES_DIM(c->hidden, width(c, i)), SES_INIT_NORMAL);
    if (c->adaptive.clusters > 1)
        k->cluster = ses_dense_add(s, c->adaptive.clusters - 1, width(c, 0), SES_BIAS, "lm.clusters");
}

/* ---- embedding ---- */

/* Embeds the tokens of cluster i, zeros for all others; NULL: the batch has no token of the cluster. */
static ses_tensor *embed_cluster(const ses_adaptive_softmax *k, ses_forward_ctx *p, const ses_seqs *q, int i)
{
    const ses_config *c = p->c;
    ses_tape *t = p->tape;
    int32_t *id = ses_tape_host_alloc(t, (size_t)q->tokens, sizeof *id),
            *row = ses_tape_host_alloc(t, (size_t)q->tokens, sizeof *row);
    int64_t n = 0;
    for (int64_t j = 0; id && row && j < q->tokens; j++) {
        bool in_cluster =
            q->host_ids[j] >= c->adaptive.cutoffs[i] && q->host_ids[j] < c->adaptive.cutoffs[i + 1];
        row[j] = in_cluster ? (int32_t)n : SES_IGNORE_INDEX;
        if (in_cluster) id[n++] = (int32_t)(q->host_ids[j] - c->adaptive.cutoffs[i]);
    }
    if (!n) return NULL;
    ses_tensor *x = ses_gather(t, k->table[i], ses_tape_ints(t, id, n));
    x = ses_linear(t, x, k->project[i], NULL, SES_ACT_NONE, SES_OUT_IN);
    return ses_gather(t, x, ses_tape_ints(t, row, q->tokens));
}

ses_tensor *ses_adaptive_softmax_embed(const ses_adaptive_softmax *k, ses_forward_ctx *p, const ses_seqs *q)
{
    const ses_config *c = p->c;
    ses_tape *t = p->tape;
    ses_tensor *x = NULL;
    if (c->adaptive.div_val == 1) {
        x = ses_gather(t, k->table[0], q->ids);
        if (k->project[0]) x = ses_linear(t, x, k->project[0], NULL, SES_ACT_NONE, SES_OUT_IN);
    } else {
        for (int i = 0; i < (int)c->adaptive.clusters; i++) {
            ses_tensor *y = embed_cluster(k, p, q, i);
            x = x && y ? ses_add(t, x, y) : x ? x : y;
        }
    }
    return ses_scale(t, x, sqrt((double)c->hidden));
}

/* ---- prediction ---- */

/* Projects hidden states to the width of cluster i. The embedding uses the same matrix in the other
 * direction, for which it is packed; the reshaped copy has no packed weights. */
static ses_tensor *to_cluster_width(const ses_adaptive_softmax *k, ses_tape *t, ses_tensor *x, int i)
{
    if (!k->project[i]) return x;
    ses_tensor *w = ses_reshape(t, k->project[i], k->project[i]->dim);
    return ses_linear(t, x, w, NULL, SES_ACT_NONE, SES_IN_OUT);
}

/* Logits of the tokens of cluster i. */
static ses_tensor *cluster_logits(const ses_adaptive_softmax *k, const ses_config *c, ses_tape *t,
                                  ses_tensor *x, int i)
{
    if (c->adaptive.div_val != 1) return ses_linear(t, x, k->table[i], k->bias[i], SES_ACT_NONE, SES_OUT_IN);
    ses_tensor *y = ses_linear(t, x, k->table[0], k->bias[0], SES_ACT_NONE, SES_OUT_IN);
    return c->adaptive.clusters == 1 ? y
                                     : ses_columns(t, y, c->adaptive.cutoffs[i],
                                                   c->adaptive.cutoffs[i + 1] - c->adaptive.cutoffs[i]);
}

/* Logits of the shortlist, followed by one logit per remaining cluster. */
static ses_tensor *shortlist_logits(const ses_adaptive_softmax *k, const ses_config *c, ses_tape *t,
                                    ses_tensor *x)
{
    ses_tensor *narrow_x = to_cluster_width(k, t, x, 0), *y = cluster_logits(k, c, t, narrow_x, 0);
    if (!k->cluster.w) return y;
    ses_tensor *const both[] = { y, ses_dense_run(t, k->cluster, narrow_x, SES_ACT_NONE) };
    return ses_concat(t, 2, both);
}

/* Column `col` of x, repeated n times. */
static ses_tensor *repeat_column(ses_tape *t, ses_tensor *x, int64_t col, int64_t n)
{
    ses_real *one = ses_tape_host_alloc(t, (size_t)n, sizeof *one);
    if (!one) return NULL;
    for (int64_t j = 0; j < n; j++) one[j] = 1;
    return ses_linear(t, ses_columns(t, x, col, 1), ses_tape_input(t, one, SES_DIM(n, 1)), NULL, SES_ACT_NONE,
                      SES_OUT_IN);
}

ses_tensor *ses_adaptive_softmax_logits(const ses_adaptive_softmax *k, ses_forward_ctx *p, ses_tensor *x)
{
    const ses_config *c = p->c;
    ses_tape *t = p->tape;
    ses_tensor *head = ses_log_softmax(t, shortlist_logits(k, c, t, x)), *part[SES_MAX_CLUSTERS];
    if (c->adaptive.clusters == 1) return head;
    part[0] = ses_columns(t, head, 0, c->adaptive.cutoffs[1]);
    for (int i = 1; i < (int)c->adaptive.clusters; i++) {
        ses_tensor *y = ses_log_softmax(t, cluster_logits(k, c, t, to_cluster_width(k, t, x, i), i));
        part[i] = ses_add(t, y, repeat_column(t, head, c->adaptive.cutoffs[1] + i - 1, ses_cols(y)));
    }
    return ses_concat(t, (int)c->adaptive.clusters, part);
}

/* Cross entropy within cluster i, weighted by its fraction of the n rows; NULL: no label is in the
 * cluster. */
static ses_tensor *cluster_loss(const ses_adaptive_softmax *k, ses_forward_ctx *p, ses_tensor *x,
                                const int32_t *label, int64_t n, int i)
{
    const ses_config *c = p->c;
    ses_tape *t = p->tape;
    int32_t *row = ses_tape_host_alloc(t, (size_t)n, sizeof *row),
            *target = ses_tape_host_alloc(t, (size_t)n, sizeof *target);
    int64_t n_rows = 0;
    for (int64_t j = 0; row && target && j < n; j++)
        if (label[j] >= c->adaptive.cutoffs[i] && label[j] < c->adaptive.cutoffs[i + 1])
            row[n_rows] = (int32_t)j, target[n_rows++] = (int32_t)(label[j] - c->adaptive.cutoffs[i]);
    if (!n_rows) return NULL;
    ses_tensor *y = to_cluster_width(k, t, ses_gather(t, x, ses_tape_ints(t, row, n_rows)), i),
               *labels = ses_tape_ints(t, target, n_rows);
    ses_tensor *loss = c->adaptive.div_val == 1
                           ? ses_cross_entropy(t, cluster_logits(k, c, t, y, i), labels)
                           : ses_linear_cross_entropy(t, y, k->table[i], k->bias[i], labels);
    return ses_scale(t, loss, (double)n_rows / (double)n);
}

ses_tensor *ses_adaptive_softmax_loss(const ses_adaptive_softmax *k, ses_forward_ctx *p, ses_tensor *x,
                                      const int32_t *label, int64_t n)
{
    const ses_config *c = p->c;
    ses_tape *t = p->tape;
    int32_t *target =
        ses_tape_host_alloc(t, (size_t)n, sizeof *target); /* a token of the shortlist, or a cluster */
    if (!target) return NULL;
    for (int64_t j = 0; j < n; j++) {
        int64_t i = 0;
        while (i + 1 < c->adaptive.clusters && label[j] >= c->adaptive.cutoffs[i + 1]) i++;
        target[j] = i ? (int32_t)(c->adaptive.cutoffs[1] + i - 1) : label[j];
    }
    ses_tensor *loss = ses_cross_entropy(t, shortlist_logits(k, c, t, x), ses_tape_ints(t, target, n));
    for (int i = 1; i < (int)c->adaptive.clusters; i++) {
        ses_tensor *part = cluster_loss(k, p, x, label, n, i);
        if (part) loss = ses_add(t, loss, part);
    }
    return loss;
}
