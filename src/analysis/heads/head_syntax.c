/* Agreement of attention heads with dependency relations: counts. */
#include "analysis/heads/head_syntax.h"

#include "base/alloc.h"

enum { OFFSETS = 2 * SES_TREE_MAX_WORDS };

static bool add_relation(ses_head_syntax *s, ses_string name, int64_t *at, ses_err *e)
{
    bool fresh;
    int64_t *value = ses_strmap_insert(&s->index, name.p, name.n, (int64_t)s->n, &fresh, e);
    if (!value) return false;
    *at = *value;
    if (!fresh) return true;
    if (!ses_array_reserve(&s->relation, &s->cap, s->n + 1, sizeof *s->relation, e)) return false;
    s->relation[s->n++] = (ses_syntax_relation){ .name = name };
    return true;
}

/* Numbers the relations in the order of the treebank. */
static bool find_relations(ses_head_syntax *s, ses_err *e)
{
    int64_t at;
    if (!add_relation(s, (ses_string){ "all", 3 }, &at, e)) return false;
    for (size_t i = 0; i < s->trees->n; i++) {
        const ses_tree *t = &s->trees->tree[i];
        for (size_t w = 0; w < t->n; w++) {
            at = -1;
            if (t->word[w].head && !add_relation(s, t->word[w].deprel, &at, e)) return false;
            s->of[t->first + w] = (int32_t)at;
        }
    }
    return true;
}

bool ses_head_syntax_new(ses_head_syntax *s, const ses_treebank *trees, const ses_layer_set *chosen,
                         ses_err *e)
{
    *s = (ses_head_syntax){ .trees = trees, .chosen = chosen };
    if (!(s->of = ses_alloc_array(trees->words, sizeof *s->of, e)) || !find_relations(s, e)) return false;
    s->offsets = ses_alloc_array(s->n * OFFSETS, sizeof *s->offsets, e);
    s->words = ses_alloc_array((size_t)SES_TREE_MAX_WORDS * SES_TREE_MAX_WORDS, sizeof *s->words, e);
    return s->offsets && s->words;
}

void ses_head_syntax_free(ses_head_syntax *s)
{
    ses_strmap_free(&s->index);
    ses_free(s->relation);
    ses_free(s->hits);
    ses_free(s->offsets);
    ses_free(s->of);
    ses_free(s->words);
    *s = (ses_head_syntax){ 0 };
}

static void count_case(ses_head_syntax *s, size_t relation, int64_t offset)
{
    ses_syntax_relation *r = &s->relation[relation];
    int64_t hits = ++s->offsets[relation * OFFSETS + (size_t)(offset + SES_TREE_MAX_WORDS)];
    r->cases++;
    /* The nearest of equal offsets, the head before the dependent first. */
    int64_t far = offset < 0 ? -offset : offset, best = r->offset < 0 ? -r->offset : r->offset;
    bool nearer = far != best ? far < best : offset < r->offset;
    if (hits > r->offset_hits || (hits == r->offset_hits && nearer))
        r->offset = offset, r->offset_hits = hits;
}

static void count_cases(ses_head_syntax *s, const ses_tree *t)
{
    for (size_t w = 0; w < t->n; w++) {
        if (!t->word[w].head) continue;
        int64_t offset = (int64_t)t->word[w].head - 1 - (int64_t)w;
        count_case(s, 0, offset);
        count_case(s, (size_t)s->of[t->first + w], offset);
    }
}

/* The word other than i with the greatest weight; the first of equals. */
static size_t strongest(const float *weight, size_t n, size_t stride, size_t i)
{
    size_t best = i ? 0 : 1;
    for (size_t j = best + 1; j < n; j++)
        if (j != i && weight[j * stride] > weight[best * stride]) best = j;
    return best;
}

static int64_t *hits_of(const ses_head_syntax *s, ses_syntax_direction d, int64_t layer, int64_t head)
{
    return s->hits + (size_t)(((int64_t)d * s->layers + layer) * s->heads + head) * s->n;
}

static void add_head(ses_head_syntax *s, const ses_tree *t, int64_t layer, int64_t head, const float *weight,
                     const ses_attention_units *words)
{
    int64_t *down = hits_of(s, SES_FROM_DEPENDENT, layer, head), *up = hits_of(s, SES_FROM_HEAD, layer, head);
    ses_attention_merge(weight, words, words, false, s->words);
    for (size_t w = 0; w < t->n; w++) {
        if (!t->word[w].head) continue;
        size_t want = (size_t)t->word[w].head - 1, relation = (size_t)s->of[t->first + w];
        bool read = strongest(s->words + w * t->n, t->n, 1, w) == want;
        bool reads = strongest(s->words + w, t->n, t->n, w) == want;
        down[0] += read, down[relation] += read;
        up[0] += reads, up[relation] += reads;
    }
}

/* The first text tells how many layers and heads there are. */
static bool begin(ses_head_syntax *s, const ses_attention_text *t, ses_err *e)
{
    size_t maps, count;
    s->layers = t->layers;
    for (int64_t l = 0; l < t->layers; l++)
        if (t->heads[l] > s->heads) s->heads = t->heads[l];
    if (!ses_mul_size((size_t)s->layers, (size_t)s->heads, &maps) ||
        !ses_mul_size(maps, SES_SYNTAX_DIRECTIONS * s->n, &count))
        return ses_fail(e, SES_ENOMEM, "too many relations");
    return (s->hits = ses_alloc_array(count, sizeof *s->hits, e)) != NULL;
}

bool ses_head_syntax_add(ses_head_syntax *s, const ses_attention_text *t, ses_err *e)
{
    const ses_tree *tree = &s->trees->tree[t->index];
    if (!s->hits && !begin(s, t, e)) return false;
    if (t->truncated) s->truncated++;
    if (t->truncated) return true;
    ses_attention_units words = { .tokens = t->n, .n = (int64_t)tree->n, .of = t->word };
    s->sentences++;
    count_cases(s, tree);
    for (int64_t l = 0; l < t->layers; l++) {
        if (s->chosen && !ses_layer_set_has(s->chosen, l + 1)) continue;
        for (int64_t h = 0; h < t->heads[l]; h++)
            add_head(s, tree, l, h, t->weight[l] + h * t->n * t->n, &words);
    }
    return true;
}

int64_t ses_head_syntax_hits(const ses_head_syntax *s, ses_syntax_direction d, int64_t layer, int64_t head,
                             size_t relation)
{
    return hits_of(s, d, layer, head)[relation];
}

ses_syntax_best ses_head_syntax_best(const ses_head_syntax *s, ses_syntax_direction d, size_t relation)
{
    ses_syntax_best b = { .hits = -1 };
    for (int64_t l = 0; l < s->layers; l++)
        for (int64_t h = 0; h < s->heads; h++) {
            int64_t hits = hits_of(s, d, l, h)[relation];
            if (hits > b.hits) b = (ses_syntax_best){ l, h, hits };
        }
    return b;
}
