/* Lattice of all segmentations of a word: forward-backward sums and the two best paths. */
#include "unigram_lattice.h"

#include "base/alloc.h"
#include "base/unicode/utf8.h"

#include <math.h>

bool ses_piece_model_build(ses_piece_model *m, ses_arena *mem, ses_err *e)
{
    static const double UNKNOWN_PENALTY = 10; /* log probability below the least likely piece */
    double lowest = 0;
    for (size_t i = 1; i < m->n; i++)
        if (m->score[i] < lowest) lowest = m->score[i];
    m->unknown = lowest - UNKNOWN_PENALTY;
    return ses_trie_build(&m->trie, m->piece, m->n, mem, e);
}

void ses_lattice_free(ses_lattice *l)
{
    ses_free(l->forward);
    ses_free(l->backward);
    ses_free(l->best);
    ses_free(l->path[0]);
    ses_free(l->path[1]);
}

static bool reserve(ses_lattice *l, size_t n, ses_err *e)
{
    if (n + 1 <= l->cap) return true;
    size_t cap = 2 * (n + 1);
    void *p;
    l->cap = 0;
    if (!(p = ses_realloc_array(l->forward, cap, sizeof *l->forward, e))) return false;
    l->forward = p;
    if (!(p = ses_realloc_array(l->backward, cap, sizeof *l->backward, e))) return false;
    l->backward = p;
    if (!(p = ses_realloc_array(l->best, cap, sizeof *l->best, e))) return false;
    l->best = p;
    for (int i = 0; i < 2; i++) {
        if (!(p = ses_realloc_array(l->path[i], cap, sizeof *l->path[i], e))) return false;
        l->path[i] = p;
    }
    l->cap = cap;
    return true;
}

static size_t char_size(char c)
{
    uint8_t b = (uint8_t)c;
    return b < 0x80 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

/* Iterates over the pieces that p starts with; a character that is not a piece yields piece 0. */
typedef struct walk {
    const ses_piece_model *m;
    const char *p;
    size_t n, at, first; /* bytes seen; length of the first character */
    uint32_t node;
    bool single, done;
} walk;

static walk walk_from(const ses_piece_model *m, const char *p, size_t n)
{
    return (walk){ .m = m, .p = p, .n = n, .first = char_size(*p), .node = m->trie.root };
}

static bool walk_next(walk *w, int32_t *piece, size_t *len)
{
    while (!w->done && w->at < w->n) {
        int32_t value;
        if (!ses_trie_step(&w->m->trie, &w->node, (uint8_t)w->p[w->at], &value)) break;
        w->at++;
        if (value <= 0) continue;
        *piece = value;
        *len = w->at;
        w->single |= w->at == w->first;
        return true;
    }
    w->done = true;
    if (w->single) return false;
    w->single = true;
    *piece = 0;
    *len = w->first;
    return true;
}

static double score_of(const ses_piece_model *m, int32_t piece)
{
    return piece ? m->score[piece] : m->unknown;
}

static double log_add(double a, double b)
{
    double high = a > b ? a : b, low = a > b ? b : a;
    return low == -INFINITY ? high : high + log1p(exp(low - high));
}

/* forward[i]: log of the total probability of all segmentations of the first i bytes; backward[i]: of the
 * rest. */
static void forward_backward(ses_lattice *l, const ses_piece_model *m, const char *p, size_t n)
{
    for (size_t i = 0; i <= n; i++) l->forward[i] = l->backward[i] = -INFINITY;
    l->forward[0] = l->backward[n] = 0;
    for (size_t i = 0; i < n; i += char_size(p[i])) {
        int32_t piece;
        size_t len;
        for (walk w = walk_from(m, p + i, n - i); walk_next(&w, &piece, &len);)
            l->forward[i + len] = log_add(l->forward[i + len], l->forward[i] + score_of(m, piece));
    }
    for (size_t i = n; i-- > 0;) {
        int32_t piece;
        size_t len;
        if (ses_utf8_continues(p[i])) continue; /* inside a character */
        for (walk w = walk_from(m, p + i, n - i); walk_next(&w, &piece, &len);)
            l->backward[i] = log_add(l->backward[i], l->backward[i + len] + score_of(m, piece));
    }
}

bool ses_lattice_add_expected(ses_lattice *l, const ses_piece_model *m, const ses_counted_word *w,
                              double *expected, double *log_prob, ses_err *e)
{
    if (!reserve(l, w->n, e)) return false;
    forward_backward(l, m, w->p, w->n);
    double total = l->forward[w->n];
    for (size_t i = 0; i < w->n; i += char_size(w->p[i])) {
        int32_t piece;
        size_t len;
        for (walk k = walk_from(m, w->p + i, w->n - i); walk_next(&k, &piece, &len);)
            expected[piece] +=
                (double)w->count * exp(l->forward[i] + score_of(m, piece) + l->backward[i + len] - total);
    }
    *log_prob = total * (double)w->count;
    return true;
}

/* Insert a path into the two best of position `at`. */
static void offer(ses_lattice *l, size_t at, double score, int32_t piece, size_t from, int rank,
                  int max_paths)
{
    struct ses_lattice_node *b = &l->best[at];
    int k = score > b->score[0] ? 0 : max_paths == 2 && score > b->score[1] ? 1 : 2;
    if (k == 2) return;
    if (k == 0)
        b->score[1] = b->score[0], b->piece[1] = b->piece[0], b->from[1] = b->from[0],
        b->rank[1] = b->rank[0];
    b->score[k] = score, b->piece[k] = piece, b->from[k] = (uint32_t)from, b->rank[k] = (uint32_t)rank;
}

static void trace(ses_lattice *l, size_t n, int path_index)
{
    size_t len = 0, at = n;
    uint32_t rank = (uint32_t)path_index;
    while (at) {
        const struct ses_lattice_node *b = &l->best[at];
        l->path[path_index][len++] = b->piece[rank];
        uint32_t from = b->from[rank];
        rank = b->rank[rank];
        at = from;
    }
    for (size_t i = 0; i < len / 2; i++) {
        int32_t swap = l->path[path_index][i];
        l->path[path_index][i] = l->path[path_index][len - 1 - i];
        l->path[path_index][len - 1 - i] = swap;
    }
    l->n_path[path_index] = len;
}

bool ses_lattice_best(ses_lattice *l, const ses_piece_model *m, const char *p, size_t n, int max_paths,
                      int *found, ses_err *e)
{
    if (!reserve(l, n, e)) return false;
    for (size_t i = 0; i <= n; i++) l->best[i].score[0] = l->best[i].score[1] = -INFINITY;
    l->best[0].score[0] = 0;
    for (size_t i = 0; i < n; i += char_size(p[i])) {
        int32_t piece;
        size_t len;
        for (walk w = walk_from(m, p + i, n - i); walk_next(&w, &piece, &len);)
            for (int k = 0; k < max_paths && l->best[i].score[k] > -INFINITY; k++)
                offer(l, i + len, l->best[i].score[k] + score_of(m, piece), piece, i, k, max_paths);
    }
    *found = 0;
    for (int k = 0; k < max_paths && l->best[n].score[k] > -INFINITY; k++) trace(l, n, k), ++*found;
    return true;
}
