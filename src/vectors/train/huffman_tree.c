/* Huffman trees. */
#include "huffman_tree.h"

#include "base/alloc.h"

typedef struct build {
    int64_t *count;  /* [2 n - 1]: words, then inner nodes in the order of their creation */
    int32_t *parent; /* [2 n - 1] */
    uint8_t *second; /* [2 n - 1]: the second branch of its parent */
} build;

/* Joins the two rarest nodes until one is left. Words and inner nodes are two queues in order of count. */
static void join(build *b, size_t n)
{
    int64_t word = (int64_t)n - 1;
    size_t inner = n;
    for (size_t made = n; made < 2 * n - 1; made++) {
        for (int k = 0; k < 2; k++) {
            bool take_word = word >= 0 && (inner == made || b->count[word] < b->count[inner]);
            size_t child = take_word ? (size_t)word-- : inner++;
            b->count[made] += b->count[child];
            b->parent[child] = (int32_t)made;
            b->second[child] = k == 1;
        }
    }
}

static bool write_paths(ses_huffman_tree *t, const build *b, size_t n, ses_err *e)
{
    size_t root = 2 * n - 2;
    for (size_t i = 0; i < n; i++) {
        int64_t len = 0;
        for (size_t at = i; at != root; at = (size_t)b->parent[at]) len++;
        if (len > SES_HUFFMAN_MAX_CODE)
            return ses_fail(e, SES_EUNSUPPORTED, "a Huffman code longer than %d bits", SES_HUFFMAN_MAX_CODE);
        t->start[i + 1] = t->start[i] + len;
    }
    t->node = ses_alloc_array((size_t)t->start[n] + 1, sizeof *t->node, e);
    if (!t->node) return false;
    for (size_t i = 0; i < n; i++) {
        int64_t to = t->start[i + 1];
        for (size_t at = i; at != root; at = (size_t)b->parent[at])
            t->node[--to] = 2 * (b->parent[at] - (int32_t)n) + b->second[at];
    }
    return true;
}

bool ses_huffman_tree_build(ses_huffman_tree *t, const ses_word_vocab *v, ses_err *e)
{
    size_t n = v->n;
    build b = { ses_alloc_array(2 * n, sizeof *b.count, e), ses_alloc_array(2 * n, sizeof *b.parent, e),
                ses_alloc_array(2 * n, 1, e) };
    bool ok = b.count && b.parent && b.second && (t->start = ses_alloc_array(n + 1, sizeof *t->start, e));
    if (ok) {
        for (size_t i = 0; i < n; i++) b.count[i] = v->word[i].count;
        join(&b, n);
        ok = write_paths(t, &b, n, e);
    }
    ses_free(b.count);
    ses_free(b.parent);
    ses_free(b.second);
    return ok;
}

void ses_huffman_tree_free(ses_huffman_tree *t)
{
    ses_free(t->start);
    ses_free(t->node);
    *t = (ses_huffman_tree){ 0 };
}
