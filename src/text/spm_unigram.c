/* SentencePiece's unigram encoding: the best path, in single precision from the left, as its library sums. */
#include "spm_model.h"

#include <float.h>
#include <math.h>

enum { NONE = -1 };

/* A user-defined symbol gets a bonus for its length that no other way of cutting reaches. */
bool ses_spm_unigram_open(ses_spm_model *m, ses_arena *mem, ses_err *e)
{
    float least = FLT_MAX;
    m->weight = ses_arena_array(mem, (size_t)m->n, sizeof *m->weight, e);
    if (!m->weight) return false;
    for (int32_t i = 0; i < m->n; i++) {
        bool user = m->type[i] == SES_SPM_USER_DEFINED, normal = m->type[i] == SES_SPM_NORMAL;
        uint32_t len = m->start[i + 1] - m->start[i];
        m->weight[i] =
            (ses_spm_weight){ user ? (float)(0.1 * ((double)len - 1)) : m->score[i], user || normal };
        if (normal && m->score[i] < least) least = m->score[i];
    }
    m->unk_score = least - 10;
    return true;
}

/* The best path to a place. */
typedef struct best {
    float score;
    int32_t start; /* of its last piece; NONE: not reached */
    int32_t id;
} best;

static void offer(best *to, float score, size_t start, int32_t id)
{
    if (to->start == NONE || score > to->score) *to = (best){ score, (int32_t)start, id };
}

/* Sums past 1e5 lose digits, so the library then counts from the present place again. */
static void rebase(best *at, size_t from, size_t frontier)
{
    float offset = at[from].score;
    for (size_t i = from; i <= frontier; i++)
        if (i == from || at[i].start != NONE) at[i].score -= offset;
}

static void forward(const ses_spm_model *m, const char *p, size_t n, best *at)
{
    size_t frontier = 0; /* the last place reached */
    for (size_t i = 0; i < n;) {
        size_t step = ses_spm_char(p + i, n - i);
        uint32_t base = m->trie.root;
        bool single = false;
        int32_t id;
        if (at[i].score < -1e5f || at[i].score > 1e5f) rebase(at, i, frontier);
        for (size_t k = i; k < n && ses_trie_step(&m->trie, &base, (uint8_t)p[k], &id);) {
            k++;
            if (id < 0 || !m->weight[id].used) continue;
            if (k > frontier) frontier = k;
            offer(&at[k], m->weight[id].score + at[i].score, i, id);
            single |= k == i + step;
        }
        if (!single) {
            if (i + step > frontier) frontier = i + step;
            offer(&at[i + step], m->unk_score + at[i].score, i, m->unk_id);
        }
        i += step;
    }
}

static bool put_path(const best *at, size_t n, ses_token_list *out, ses_err *e)
{
    size_t count = 0;
    for (size_t i = n; i; i = (size_t)at[i].start) count++;
    if (!ses_tokens_reserve(out, count, e)) return false;
    out->n += count;
    ses_token *t = out->token + out->n;
    for (size_t i = n; i; i = (size_t)at[i].start)
        *--t = (ses_token){ at[i].id, (uint32_t)at[i].start, (uint32_t)i };
    return true;
}

static best *open_places(size_t n, float sum, ses_arena *scratch, ses_err *e)
{
    best *at = ses_arena_alloc(scratch, (n + 1) * sizeof *at, e);
    for (size_t i = 0; at && i <= n; i++) at[i] = (best){ 0, NONE, NONE };
    if (at) at[0].score = sum;
    return at;
}

bool ses_spm_unigram_encode(const ses_spm_model *m, const char *p, size_t n, ses_token_list *out,
                            ses_arena *scratch, ses_err *e)
{
    best *at = open_places(n, 0, scratch, e);
    if (!at) return false;
    forward(m, p, n, at);
    return put_path(at, n, out, e);
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
            if (id < 0 || !m->weight[id].used) continue;
            offer_two(&at[k], &at[i], m->weight[id].score);
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
    best *at = open_places(n, *sum, scratch, e);
    two *sums = at && gap ? ses_arena_alloc(scratch, (n + 1) * sizeof *sums, e) : NULL;
    if (!at || (gap && !sums)) return false;
    forward(m, p, n, at);
    *sum = at[n].score;
    if (gap) *gap = gap_of(m, p, n, sums);
    return put_path(at, n, out, e);
}
