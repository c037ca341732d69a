/* BPE merging with three priority queues that all give the same result.
 *
 * Few symbols (nearly every word): an array of ranks, scanned for the minimum. More: a heap of (rank,
 * position). Very many (a text without spaces): one list of positions per rank, processed from the lowest
 * rank up and sorted by position, plus a heap for new pairs whose rank is at or below the current one
 * (possible in merge tables derived from SentencePiece models). Pairs mostly appear in order, so this is
 * close to linear, while a heap of millions would miss the cache at every step. */
#include "merges.h"

#include "base/alloc.h"

#include <string.h>

enum { MAX_FEW = 32, MIN_LISTS = 512, NONE = -1 };

/* ---- few symbols ---- */

static void record_parts(const ses_merge_trace *w, const ses_merge *s)
{
    if (w->wanted[s->id]) w->parts[s->id][0] = s->left, w->parts[s->id][1] = s->right;
}

static uint64_t rank_and_id(const ses_merges *m, int32_t left, int32_t right, const ses_merge_trace *trace)
{
    const ses_merge *s = ses_merges_find(m, left, right);
    if (s && trace) record_parts(trace, s);
    return s ? (uint64_t)s->rank << 32 | (uint32_t)s->id : UINT64_MAX;
}

static inline size_t apply_few(const ses_merges *m, int32_t *id, uint32_t *len, size_t n,
                               const ses_merge_trace *trace)
{
    uint64_t pair[MAX_FEW]; /* rank << 32 | result of symbols i and i + 1 */
    for (size_t i = 0; i + 1 < n; i++) pair[i] = rank_and_id(m, id[i], id[i + 1], trace);
    while (n > 1) {
        size_t at = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (pair[i] >> 32 < pair[at] >> 32) at = i; /* equal ranks: the first wins */
        if (pair[at] == UINT64_MAX) break;
        id[at] = (int32_t)(uint32_t)pair[at];
        len[at] += len[at + 1];
        size_t rest = n - at - 2;
        memmove(&id[at + 1], &id[at + 2], rest * sizeof *id);
        memmove(&len[at + 1], &len[at + 2], rest * sizeof *len);
        if (rest) memmove(&pair[at], &pair[at + 1], rest * sizeof *pair);
        n--;
        if (at) pair[at - 1] = rank_and_id(m, id[at - 1], id[at], trace);
        if (at + 1 < n) pair[at] = rank_and_id(m, id[at], id[at + 1], trace);
    }
    return n;
}

/* ---- many symbols ---- */

typedef struct symbol {
    int32_t id;
    uint32_t len; /* 0: merged into its left neighbor */
    int32_t prev, next;
} symbol;

typedef struct node { /* one position in the list of a rank */
    uint32_t position;
    int32_t next;
} node;

typedef struct queue {
    uint64_t *heap; /* rank << 32 | position, minimum first */
    size_t n_heap, cap_heap;
    int32_t *list;       /* [ranks] head of each rank's list; NULL: everything is in the heap */
    uint64_t *non_empty; /* one bit per rank: its list is not empty */
    node *node;
    size_t n_node, cap_node;
    int32_t free_node;               /* free nodes */
    uint32_t rank;                   /* current rank; lower ranks have no lists */
    uint32_t *current, *sort_buffer; /* its positions in order, and a buffer for sorting */
    size_t at, n_current, cap_current;
    const ses_merge_trace *trace;
    ses_arena *mem;
} queue;

/* Capacity for n on the arena; the old block is freed when the caller rewinds the arena. */
static bool reserve(void **p, size_t used, size_t n, size_t *cap, size_t size, ses_arena *mem, ses_err *e)
{
    if (n <= *cap) return true;
    size_t bytes, want = *cap ? *cap : 512;
    while (want < n) want *= 2;
    void *q = ses_mul_size(want, size, &bytes) ? ses_arena_alloc(mem, bytes, e) : NULL;
    if (!q) return ses_fail(e, SES_ENOMEM, "out of memory for %zu pairs", want);
    if (used) memcpy(q, *p, used * size);
    *p = q, *cap = want;
    return true;
}

static bool heap_push(queue *q, uint64_t key, ses_err *e)
{
    void *p = q->heap;
    if (!reserve(&p, q->n_heap, q->n_heap + 1, &q->cap_heap, sizeof *q->heap, q->mem, e)) return false;
    q->heap = p;
    size_t i = q->n_heap++;
    for (; i && q->heap[(i - 1) / 2] > key; i = (i - 1) / 2) q->heap[i] = q->heap[(i - 1) / 2];
    q->heap[i] = key;
    return true;
}

static uint64_t heap_pop(queue *q)
{
    uint64_t top = q->heap[0], last = q->heap[--q->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < q->n_heap; i = child) {
        if (child + 1 < q->n_heap && q->heap[child + 1] < q->heap[child]) child++;
        if (q->heap[child] >= last) break;
        q->heap[i] = q->heap[child];
    }
    q->heap[i] = last;
    return top;
}

static bool queue_push(queue *q, uint32_t rank, uint32_t position, ses_err *e)
{
    if (!q->list || (q->n_current && rank <= q->rank))
        return heap_push(q, (uint64_t)rank << 32 | position, e);
    int32_t i = q->free_node;
    if (i != NONE) {
        q->free_node = q->node[i].next;
    } else {
        void *p = q->node;
        if (!reserve(&p, q->n_node, q->n_node + 1, &q->cap_node, sizeof *q->node, q->mem, e)) return false;
        q->node = p;
        i = (int32_t)q->n_node++;
    }
    bool non_empty = q->non_empty[rank / 64] >> rank % 64 & 1;
    q->node[i] = (node){ position, non_empty ? q->list[rank] : NONE };
    q->list[rank] = i;
    q->non_empty[rank / 64] |= (uint64_t)1 << rank % 64;
    return true;
}

/* Sort positions into `out`. Long lists use radix sort, eleven bits at a time. */
static void sort_positions(uint32_t *position, uint32_t *out, size_t n)
{
    if (n <= 64) {
        for (size_t i = 0; i < n; i++) {
            size_t k = i;
            for (; k && out[k - 1] > position[i]; k--) out[k] = out[k - 1];
            out[k] = position[i];
        }
        return;
    }
    for (int shift = 0; shift < 33; shift += 11) {
        uint32_t count[2048] = { 0 }, sum = 0;
        for (size_t i = 0; i < n; i++) count[position[i] >> shift & 2047]++;
        for (size_t b = 0; b < 2048; b++) {
            uint32_t c = count[b];
            count[b] = sum;
            sum += c;
        }
        for (size_t i = 0; i < n; i++) out[count[position[i] >> shift & 2047]++] = position[i];
        uint32_t *swap = position;
        position = out, out = swap;
    }
}

/* Move the positions of q->rank's list into q->open, sorted; free its nodes. */
static bool open_list(queue *q, ses_err *e)
{
    size_t n = 0;
    int32_t last = NONE;
    for (int32_t i = q->list[q->rank]; i != NONE; last = i, i = q->node[i].next) n++;
    if (n > q->cap_current) {
        void *current = NULL, *sort_buffer = NULL;
        size_t cap = 0;
        if (!reserve(&current, 0, n, &cap, sizeof *q->current, q->mem, e)) return false;
        cap = 0;
        if (!reserve(&sort_buffer, 0, n, &cap, sizeof *q->sort_buffer, q->mem, e)) return false;
        q->current = current, q->sort_buffer = sort_buffer, q->cap_current = cap;
    }
    size_t k = n; /* a list grows at its head: reverse order is the order of insertion */
    for (int32_t i = q->list[q->rank]; i != NONE; i = q->node[i].next) q->current[--k] = q->node[i].position;
    q->node[last].next = q->free_node;
    q->free_node = q->list[q->rank];
    q->at = 0, q->n_current = n;
    while (k + 1 < n && q->current[k] < q->current[k + 1]) k++;
    if (k + 1 == n) return true;
    sort_positions(q->current, q->sort_buffer, n);
    uint32_t *swap = q->current;
    q->current = q->sort_buffer, q->sort_buffer = swap;
    return true;
}

enum { EMPTY, FOUND, FAILED };

/* Next pair: lowest rank, leftmost. */
static int queue_pop(queue *q, uint32_t ranks, uint32_t *rank, uint32_t *position, ses_err *e)
{
    if (q->list && q->at == q->n_current && !q->n_heap) {
        size_t word = q->rank / 64, words = ((size_t)ranks + 63) / 64;
        while (word < words && !q->non_empty[word]) word++;
        if (word == words) return EMPTY;
        q->rank = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(q->non_empty[word]);
        q->non_empty[word] &= q->non_empty[word] - 1;
        if (!open_list(q, e)) return FAILED;
    }
    bool list = q->at < q->n_current;
    if (!list && !q->n_heap) return EMPTY;
    if (q->n_heap && (!list || q->heap[0] < ((uint64_t)q->rank << 32 | q->current[q->at]))) {
        uint64_t key = heap_pop(q);
        *rank = (uint32_t)(key >> 32), *position = (uint32_t)key;
    } else {
        *rank = q->rank, *position = q->current[q->at++];
    }
    return FOUND;
}

static bool offer(queue *q, const ses_merges *m, const symbol *s, int32_t left, ses_err *e)
{
    const ses_merge *pair = ses_merges_find(m, s[left].id, s[s[left].next].id);
    if (pair && q->trace) record_parts(q->trace, pair);
    return !pair || queue_push(q, pair->rank, (uint32_t)left, e);
}

/* Merge the pair at this position unless one of its symbols has changed since. */
static bool merge_at(queue *q, const ses_merges *m, symbol *s, uint32_t rank, uint32_t position, ses_err *e)
{
    symbol *left = &s[position];
    if (!left->len || left->next == NONE) return true;
    symbol *right = &s[left->next];
    const ses_merge *pair = ses_merges_find(m, left->id, right->id);
    if (!pair || pair->rank != rank) return true;
    left->id = pair->id;
    left->len += right->len;
    left->next = right->next;
    right->len = 0;
    if (left->next != NONE) s[left->next].prev = (int32_t)position;
    return (left->prev == NONE || offer(q, m, s, left->prev, e)) &&
           (left->next == NONE || offer(q, m, s, (int32_t)position, e));
}

static bool queue_open(queue *q, const ses_merges *m, size_t n, ses_arena *mem, ses_err *e)
{
    *q = (queue){ .free_node = NONE, .mem = mem };
    if (n < MIN_LISTS) return true;
    q->non_empty = ses_arena_array(mem, (size_t)m->ranks / 64 + 1, sizeof *q->non_empty, e);
    q->list = ses_arena_alloc(mem, ((size_t)m->ranks + 1) * sizeof *q->list, e);
    return q->non_empty && q->list;
}

static bool apply_many(const ses_merges *m, int32_t *id, uint32_t *len, size_t *n,
                       const ses_merge_trace *trace, ses_arena *scratch, ses_err *e)
{
    queue q;
    symbol *s = ses_arena_array(scratch, *n, sizeof *s, e);
    if (!s || !queue_open(&q, m, *n, scratch, e)) return false;
    q.trace = trace;
    for (size_t i = 0; i < *n; i++)
        s[i] = (symbol){ id[i], len[i], (int32_t)i - 1, i + 1 < *n ? (int32_t)i + 1 : NONE };
    for (size_t i = 0; i + 1 < *n; i++)
        if (!offer(&q, m, s, (int32_t)i, e)) return false;
    uint32_t rank, position;
    int got;
    while ((got = queue_pop(&q, m->ranks, &rank, &position, e)) == FOUND)
        if (!merge_at(&q, m, s, rank, position, e)) return false;
    if (got == FAILED) return false;
    size_t k = 0;
    for (int32_t i = 0; i != NONE; i = s[i].next, k++) id[k] = s[i].id, len[k] = s[i].len;
    *n = k;
    return true;
}

static bool apply_part(const ses_merges *m, int32_t *id, uint32_t *len, size_t *n,
                       const ses_merge_trace *trace, ses_arena *scratch, ses_err *e)
{
    if (*n > MAX_FEW) {
        ses_mark mark = ses_arena_mark(scratch);
        bool ok = apply_many(m, id, len, n, trace, scratch, e);
        ses_arena_rewind(scratch, mark);
        return ok;
    }
    if (*n) *n = trace ? apply_few(m, id, len, *n, trace) : apply_few(m, id, len, *n, NULL);
    return true;
}

bool ses_merges_apply(const ses_merges *m, int32_t *id, uint32_t *len, size_t *n,
                      const ses_merge_trace *trace, ses_arena *scratch, ses_err *e)
{
    if (*n > INT32_MAX / 2) return ses_fail(e, SES_EARG, "a word of %zu symbols is too long", *n);
    if (*n <= MAX_FEW || !m->filter || trace) return apply_part(m, id, len, n, trace, scratch, e);
    size_t total = *n, kept = 0;
    for (size_t begin = 0, end; begin < total; begin = end) { /* parts that no merge can cross */
        for (end = begin + 1; end < total && ses_merges_may_cross(m, id[end - 1], id[end]);) end++;
        size_t k = end - begin;
        if (!apply_part(m, id + begin, len + begin, &k, NULL, scratch, e)) return false;
        memmove(id + kept, id + begin, k * sizeof *id);
        memmove(len + kept, len + begin, k * sizeof *len);
        kept += k;
    }
    *n = kept;
    return true;
}
