/* SentencePiece's unigram encoding: the best path, in single precision from the left, as its library sums. */
#include "spm_model.h"

#include <float.h>
#include <math.h>

/* A user-defined symbol gets a bonus for its length that no other way of cutting reaches. */
bool ses_spm_unigram_open(ses_spm_model *m, ses_arena *mem, ses_err *e)
{
    float least = FLT_MAX;
    m->weight = ses_arena_array(mem, (size_t)m->n + 1, sizeof *m->weight, e);
    m->pair = ses_trie_pairs(&m->trie, mem, e);
    if (!m->weight || !m->pair) return false;
    *m->weight++ = -INFINITY;
    for (int32_t i = 0; i < m->n; i++) {
        bool user = m->type[i] == SES_SPM_USER_DEFINED, normal = m->type[i] == SES_SPM_NORMAL;
        uint32_t len = m->start[i + 1] - m->start[i];
        m->weight[i] = user ? (float)(0.1 * ((double)len - 1)) : normal ? m->score[i] : -INFINITY;
        if (normal && m->score[i] < least) least = m->score[i];
    }
    m->unk_score = least - 10;
    for (int c = 0; c < 128; c++) {
        int32_t id = ses_trie_find(&m->trie, &(char){ (char)c }, 1);
        bool used = id >= 0 && m->weight[id] > -INFINITY;
        m->alone[c] = (ses_spm_alone){ used ? m->weight[id] : m->unk_score, used ? id : m->unk_id };
    }
    return true;
}

/* The best paths to each place: their sums, -INFINITY where a place is not reached, and of their last pieces
 * the start and the id. */
typedef struct paths {
    float *sum;
    uint64_t *last; /* start << 32 | id */
} paths;

static uint64_t link(size_t start, int32_t id) { return (uint64_t)start << 32 | (uint32_t)id; }

/* A path that is not better stays. No branch: which of two is better cannot be guessed. */
static inline void offer(paths at, size_t to, float sum, uint64_t last)
{
    float old = at.sum[to];
    uint64_t mask = 0 - (uint64_t)(sum > old);
    at.sum[to] = sum > old ? sum : old;
    at.last[to] ^= (at.last[to] ^ last) & mask;
}

/* Sums past 1e5 lose digits, so the library then counts from the present place again. */
static void rebase(const ses_spm_model *m, paths at, size_t from, size_t n)
{
    float offset = at.sum[from];
    for (size_t i = from; i <= n && i - from <= (size_t)m->trie.longest + 4; i++) at.sum[i] -= offset;
}

/* Pieces that begin at i, from the trie's node that k - i bytes lead to. True: one ends at `single`. */
static inline bool offer_rest(const ses_spm_model *m, const char *p, size_t n, size_t i, size_t k,
                              uint32_t base, size_t single, paths at)
{
    bool found = false;
    int32_t id;
    while (k < n && ses_trie_step(&m->trie, &base, (uint8_t)p[k], &id)) {
        k++;
        if (id < 0 || m->weight[id] == -INFINITY) continue;
        offer(at, k, m->weight[id] + at.sum[i], link(i, id));
        found |= k == single;
    }
    return found;
}

/* The same for a character of ASCII with AHEAD bytes from it on: that many steps without a branch, since when
 * a walk ends cannot be guessed either. */
enum { AHEAD = 5 };

static inline void offer_ascii(const ses_spm_model *m, const char *text, size_t n, size_t i, paths at)
{
    const uint8_t *p = (const uint8_t *)text + i;
    float sum = at.sum[i];
    uint64_t u = m->pair[p[0] << 8 | p[1]];
    offer(at, i + 1, m->alone[p[0]].score + sum, link(i, m->alone[p[0]].id));
    for (size_t k = 2;; k++) {
        int64_t id = (int64_t)ses_trie_value(u) - 1; /* -1: no piece ends here, and its weight is -INFINITY */
        offer(at, i + k, m->weight[id] + sum, link(i, (int32_t)id));
        if (k == AHEAD) break;
        u = ses_trie_next(&m->trie, u, p[k]);
    }
    if (u) offer_rest(m, text, n, i, i + AHEAD, ses_trie_base(u), 0, at);
}

static void forward(const ses_spm_model *m, const char *p, size_t n, paths at)
{
    for (size_t i = 0; i < n;) {
        if (at.sum[i] < -1e5f || at.sum[i] > 1e5f) rebase(m, at, i, n);
        if ((uint8_t)p[i] < 0x80 && i + AHEAD <= n) {
            offer_ascii(m, p, n, i++, at);
            continue;
        }
        size_t step = ses_spm_char(p + i, n - i);
        if (!offer_rest(m, p, n, i, i, m->trie.root, i + step, at))
            offer(at, i + step, m->unk_score + at.sum[i], link(i, m->unk_id));
        i += step;
    }
}

static bool put_path(const uint64_t *last, size_t n, ses_token_list *out, ses_err *e)
{
    size_t count = 0;
    for (size_t i = n; i; i = last[i] >> 32) count++;
    if (!ses_tokens_reserve(out, count, e)) return false;
    out->n += count;
    ses_token *t = out->token + out->n;
    for (size_t i = n; i; i = last[i] >> 32)
        *--t = (ses_token){ (int32_t)(uint32_t)last[i], (uint32_t)(last[i] >> 32), (uint32_t)i };
    return true;
}

static bool open_paths(paths *at, size_t n, float sum, ses_arena *scratch, ses_err *e)
{
    at->sum = ses_arena_alloc(scratch, (n + 1) * sizeof *at->sum, e);
    at->last = at->sum ? ses_arena_alloc(scratch, (n + 1) * sizeof *at->last, e) : NULL;
    if (!at->last) return false;
    for (size_t i = 0; i <= n; i++) at->sum[i] = i ? -INFINITY : sum, at->last[i] = 0;
    return true;
}

bool ses_spm_unigram_encode(const ses_spm_model *m, const char *p, size_t n, ses_token_list *out,
                            ses_arena *scratch, ses_err *e)
{
    paths at;
    if (!open_paths(&at, n, 0, scratch, e)) return false;
    forward(m, p, n, at);
    return put_path(at.last, n, out, e);
}

/* The two best sums to a place, of different paths. */
typedef struct two {
    double first, second;
} two;

static void offer_two(two *to, const two *from, double score)
{
    double sum[2] = { from->first + score, from->second + score };
    for (int i = 0; i < 2; i++)
        if (sum[i] > to->first)
            to->second = to->first, to->first = sum[i];
        else if (sum[i] > to->second)
            to->second = sum[i];
}

static double gap_of(const ses_spm_model *m, const char *p, size_t n, two *at)
{
    for (size_t i = 0; i <= n; i++) at[i] = (two){ -INFINITY, -INFINITY };
    at[0].first = 0;
    for (size_t i = 0; i < n;) {
        size_t step = ses_spm_char(p + i, n - i);
        uint32_t base = m->trie.root;
        bool single = false;
        int32_t id;
        for (size_t k = i; k < n && ses_trie_step(&m->trie, &base, (uint8_t)p[k], &id);) {
            k++;
            if (id < 0 || m->weight[id] == -INFINITY) continue;
            offer_two(&at[k], &at[i], m->weight[id]);
            single |= k == i + step;
        }
        if (!single) offer_two(&at[i + step], &at[i], m->unk_score);
        i += step;
    }
    return at[n].first - at[n].second;
}

bool ses_spm_unigram_part(const ses_spm_model *m, const char *p, size_t n, float *sum, double *gap,
                          ses_token_list *out, ses_arena *scratch, ses_err *e)
{
    paths at;
    if (!open_paths(&at, n, *sum, scratch, e)) return false;
    two *sums = gap ? ses_arena_alloc(scratch, (n + 1) * sizeof *sums, e) : NULL;
    if (gap && !sums) return false;
    forward(m, p, n, at);
    *sum = at.sum[n];
    if (gap) *gap = gap_of(m, p, n, sums);
    return put_path(at.last, n, out, e);
}
