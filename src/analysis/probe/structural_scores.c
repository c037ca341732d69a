/* Scores of structural probes: UUAS, DSpr, root accuracy, NSpr. */
#include "structural_scores.h"

#include "base/alloc.h"
#include "math/correlation.h"
#include "math/graph/mst.h"

#include <math.h>

enum { MIN_LENGTH = 5, MAX_LENGTH = 50 };

/* Scores of one sentence. */
typedef struct sentence_scores {
    int correct, edges; /* edges of the tree without punctuation */
    double dspr, nspr;  /* sums over words with a correlation; NaN: none */
    int correlated;     /* words in dspr */
    bool root, several;
} sentence_scores;

typedef struct scoring {
    const ses_structural_gold *gold;
    sentence_scores *s;
} scoring;

/* Distances between the content words of a sentence: predicted, or gold. */
typedef struct content_distances {
    const ses_real *predicted;
    const int16_t *gold; /* used if predicted is NULL */
    const int32_t *node;
    size_t n; /* words of the sentence */
} content_distances;

static double content_distance(const void *ctx, size_t i, size_t j)
{
    const content_distances *d = ctx;
    size_t at = (size_t)d->node[i] * d->n + (size_t)d->node[j];
    return d->predicted ? (double)d->predicted[at] : d->gold[at];
}

static void score_tree(const ses_tree *t, const ses_real *predicted, const int16_t *gold,
                       sentence_scores *out)
{
    int32_t node[SES_TREE_MAX_WORDS], found[SES_TREE_MAX_WORDS], wanted[SES_TREE_MAX_WORDS];
    double key[SES_TREE_MAX_WORDS];
    size_t n = ses_tree_content_words(t, node);
    content_distances p = { .predicted = predicted, .node = node, .n = t->n };
    content_distances g = { .gold = gold, .node = node, .n = t->n };
    ses_mst(content_distance, &p, n, found, key);
    ses_mst(content_distance, &g, n, wanted, key);
    out->edges = (int)n - 1;
    for (size_t k = 1; k < n; k++) {
        int32_t a = (int32_t)k, b = wanted[k];
        out->correct += found[a] == b || found[b] == a;
    }
}

static double correlate(const ses_real *predicted, const int16_t *gold, size_t n)
{
    double a[SES_TREE_MAX_WORDS], b[SES_TREE_MAX_WORDS], work[2 * SES_TREE_MAX_WORDS];
    for (size_t j = 0; j < n; j++) a[j] = (double)predicted[j], b[j] = gold[j];
    return ses_spearman(a, b, n, work);
}

static void score_distances(void *ctx, size_t i, const ses_real *predicted)
{
    const scoring *c = ctx;
    const ses_tree *t = &c->gold->trees->tree[i];
    const int16_t *gold = c->gold->distance + c->gold->at[i];
    sentence_scores *out = &c->s[i];
    score_tree(t, predicted, gold, out);
    for (size_t w = 0; w < t->n; w++) {
        double r = correlate(predicted + w * t->n, gold + w * t->n, t->n);
        if (!isnan(r)) out->dspr += r, out->correlated++;
    }
}

static size_t least(const ses_real *depth, const int32_t *node, size_t n)
{
    size_t best = 0;
    for (size_t k = 1; k < n; k++)
        if (depth[node[k]] < depth[node[best]]) best = k;
    return best;
}

static void score_depths(void *ctx, size_t i, const ses_real *predicted)
{
    const scoring *c = ctx;
    const ses_tree *t = &c->gold->trees->tree[i];
    int32_t node[SES_TREE_MAX_WORDS];
    size_t n = ses_tree_content_words(t, node);
    c->s[i].nspr = correlate(predicted, c->gold->depth + t->first, t->n);
    c->s[i].root = !t->word[node[least(predicted, node, n)]].head;
    c->s[i].several = n > 1;
}

/* Means over each length, then over the lengths. */
static double mean_of_lengths(const double *sum, const size_t *count)
{
    double total = 0;
    size_t lengths = 0;
    for (int n = MIN_LENGTH; n <= MAX_LENGTH; n++)
        if (count[n]) total += sum[n] / (double)count[n], lengths++;
    return lengths ? total / (double)lengths : NAN;
}

static double share(size_t part, size_t whole) { return whole ? (double)part / (double)whole : NAN; }

static void sum_distances(const scoring *c, ses_structural_scores *out)
{
    double sum[MAX_LENGTH + 1] = { 0 };
    size_t count[MAX_LENGTH + 1] = { 0 }, correct = 0;
    out->edges = 0;
    for (size_t i = 0; i < c->gold->trees->n; i++) {
        const sentence_scores *s = &c->s[i];
        size_t n = c->gold->trees->tree[i].n;
        correct += (size_t)s->correct;
        out->edges += (size_t)s->edges;
        if (n <= MAX_LENGTH) sum[n] += s->dspr, count[n] += (size_t)s->correlated;
    }
    out->uuas = share(correct, out->edges);
    out->dspr = mean_of_lengths(sum, count);
}

static void sum_depths(const scoring *c, ses_structural_scores *out)
{
    double sum[MAX_LENGTH + 1] = { 0 };
    size_t count[MAX_LENGTH + 1] = { 0 }, roots = 0, several = 0, roots_of_several = 0;
    for (size_t i = 0; i < c->gold->trees->n; i++) {
        const sentence_scores *s = &c->s[i];
        size_t n = c->gold->trees->tree[i].n;
        roots += s->root;
        several += s->several;
        roots_of_several += s->root && s->several;
        if (n <= MAX_LENGTH && !isnan(s->nspr)) sum[n] += s->nspr, count[n]++;
    }
    out->sentences = c->gold->trees->n;
    out->sentences_of_several = several;
    out->root = share(roots, out->sentences);
    out->root_of_several = share(roots_of_several, several);
    out->nspr = mean_of_lengths(sum, count);
}

bool ses_structural_score(const ses_structural_probe *distance, const ses_structural_probe *depth,
                          ses_device *device, const ses_structural_set *set, ses_structural_scores *out,
                          ses_err *e)
{
    scoring c = { .gold = set->gold };
    c.s = ses_alloc_array(set->gold->trees->n, sizeof *c.s, e);
    bool ok = c.s != NULL;
    if (ok && distance && (ok = ses_structural_predict(distance, device, set, score_distances, &c, e)))
        sum_distances(&c, out);
    if (ok && depth && (ok = ses_structural_predict(depth, device, set, score_depths, &c, e)))
        sum_depths(&c, out);
    ses_free(c.s);
    return ok;
}

bool ses_structural_score_order(const ses_structural_gold *gold, ses_structural_scores *out, ses_err *e)
{
    scoring c = { .gold = gold };
    c.s = ses_alloc_array(gold->trees->n, sizeof *c.s, e);
    size_t max = SES_TREE_MAX_WORDS;
    ses_real *x = c.s ? ses_alloc_array(max * max, sizeof *x, e) : NULL;
    for (size_t i = 0; x && i < gold->trees->n; i++) {
        size_t n = gold->trees->tree[i].n;
        for (size_t j = 0; j < n; j++)
            for (size_t k = 0; k < n; k++) x[j * n + k] = (ses_real)(j > k ? j - k : k - j);
        score_distances(&c, i, x);
        score_depths(&c, i, x); /* the first row: 0, 1, 2, ... */
    }
    if (x) sum_distances(&c, out), sum_depths(&c, out);
    ses_free(x);
    ses_free(c.s);
    return x != NULL;
}

void ses_structural_tree(const ses_tree *t, const ses_real *distance, const ses_real *depth, int32_t *head)
{
    int32_t node[SES_TREE_MAX_WORDS];
    double key[SES_TREE_MAX_WORDS];
    size_t n = ses_tree_content_words(t, node);
    content_distances p = { .predicted = distance, .node = node, .n = t->n };
    ses_mst(content_distance, &p, n, head, key);
    ses_mst_reroot(head, (int32_t)least(depth, node, n));
}
