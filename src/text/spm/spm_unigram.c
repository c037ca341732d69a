/* SentencePiece's unigram encoding: Viterbi search with single-precision sums from the left, like the
 * library. */
#include "spm_model.h"

#include <float.h>
#include <math.h>

/* A user-defined symbol gets a length bonus that exceeds every other segmentation. */
bool ses_spm_unigram_open(ses_spm_model *m, ses_arena *mem, ses_err *e)
{
    float least = FLT_MAX;
    m->weight = ses_arena_array(mem, (size_t)m->n + 1, sizeof *m->weight, e);
    if (!m->weight) return false;
    *m->weight++ = -INFINITY;
    for (int32_t i = 0; i < m->n; i++) {
        bool user = m->type[i] == SES_SPM_USER_DEFINED, normal = m->type[i] == SES_SPM_NORMAL;
        uint32_t len = m->start[i + 1] - m->start[i];
        m->weight[i] = user ? (float)(0.1 * ((double)len - 1)) : normal ? m->score[i] : -INFINITY;
        if (normal && m->score[i] < least) least = m->score[i];
    }
    m->unk_score = least - 10;
    return ses_viterbi32_pieces_open(&m->pieces, &m->trie, m->weight, m->unk_score, m->unk_id, mem, e);
}

static const float max_sum =
    1e5f; /* larger sums lose precision, so the library restarts the sum from there */

static void rebase(const ses_spm_model *m, ses_viterbi32_list at, size_t from, size_t n)
{
    float offset = at.sum[from];
    for (size_t i = from; i <= n && i - from <= (size_t)m->trie.longest + 4; i++) at.sum[i] -= offset;
}

SES_VITERBI_INLINE void forward(const ses_spm_model *m, const char *p, size_t n, ses_viterbi32_list at,
                                bool second)
{
    for (size_t i = 0, to; i < n; i = to) {
        if (at.sum[i] < -max_sum || at.sum[i] > max_sum) rebase(m, at, i, n);
        to = ses_viterbi32_offer_ascii(&m->pieces, p, n, i, max_sum, at, second);
        if (to > i) continue;
        to = i + ses_spm_char_len(p + i, n - i);
        if (!ses_viterbi32_offer_rest(&m->pieces, p, n, i, i, m->trie.root, to, at, second))
            ses_viterbi32_offer_unknown(&m->pieces, i, to - i, at, second);
    }
}

static bool put_path(const uint64_t *last, size_t n, ses_token_list *out, ses_err *e)
{
    size_t count = 0;
    for (size_t i = n; i; i = last[i] >> 32) count++;
    if (!ses_token_list_reserve(out, count, e)) return false;
    out->n += count;
    ses_token *t = out->token + out->n;
    for (size_t i = n; i; i = last[i] >> 32)
        *--t = (ses_token){ (int32_t)(uint32_t)last[i], (uint32_t)(last[i] >> 32), (uint32_t)i };
    return true;
}

bool ses_spm_unigram_encode(const ses_spm_model *m, const char *p, size_t n, ses_token_list *out,
                            ses_arena *scratch, ses_err *e)
{
    ses_viterbi32_list at;
    if (!ses_viterbi32_list_open(&at, n, 0, false, scratch, e)) return false;
    forward(m, p, n, at, false);
    return put_path(at.last, n, out, e);
}

/* Gap between the best and the second-best path. Every other path joins the best path for the last time at
 * some position, by another piece; its gap is the gap there. */
static float gap_of(ses_viterbi32_list at, size_t n)
{
    float gap = INFINITY;
    for (size_t i = n; i; i = at.last[i] >> 32) gap = fminf(gap, at.sum[i] - at.second[i]);
    return gap;
}

bool ses_spm_unigram_encode_part(const ses_spm_model *m, const char *p, size_t n, float *sum, float *gap,
                                 ses_token_list *out, ses_arena *scratch, ses_err *e)
{
    ses_viterbi32_list at;
    if (!ses_viterbi32_list_open(&at, n, *sum, gap, scratch, e)) return false;
    if (gap)
        forward(m, p, n, at, true), *gap = gap_of(at, n);
    else
        forward(m, p, n, at, false);
    *sum = at.sum[n];
    return put_path(at.last, n, out, e);
}
