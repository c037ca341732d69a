/* SentencePiece's unigram encoding: the best path, in single precision from the left, as its library sums. */
#include "spm_model.h"

#include <float.h>

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

bool ses_spm_unigram_encode(const ses_spm_model *m, const char *p, size_t n, ses_token_list *out,
                            ses_arena *scratch, ses_err *e)
{
    best *at = ses_arena_alloc(scratch, (n + 1) * sizeof *at, e);
    if (!at) return false;
    for (size_t i = 0; i <= n; i++) at[i] = (best){ 0, NONE, NONE };
    forward(m, p, n, at);
    size_t count = 0;
    for (size_t i = n; i; i = (size_t)at[i].start) count++;
    if (!ses_tokens_reserve(out, count, e)) return false;
    out->n += count;
    ses_token *t = out->token + out->n;
    for (size_t i = n; i; i = (size_t)at[i].start)
        *--t = (ses_token){ at[i].id, (uint32_t)at[i].start, (uint32_t)i };
    return true;
}
