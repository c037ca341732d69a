/* SentencePiece's BPE: merges adjacent symbols whose concatenation is a piece, highest score first,
 * leftmost of equal ones. Scores are converted to ranks and pieces to merge pairs, so that the common BPE
 * merge code applies. */
#include "spm_model.h"

#include "base/alloc.h"
#include "base/unicode/utf8.h"

#include <string.h>

enum { MAX_DEPTH = 100 }; /* nesting when splitting unused pieces */

static bool can_merge(const ses_spm_model *m, int32_t id) /* whether the piece can result from a merge */
{
    uint8_t t = m->type[id];
    return t == SES_SPM_NORMAL || t == SES_SPM_USER_DEFINED || t == SES_SPM_UNUSED;
}

/* ---- ranks: order of scores, highest first; equal scores share a rank ---- */

/* Map a float to an unsigned integer with the same order; -0 is below +0. */
static uint32_t order_key(float score)
{
    uint32_t bits;
    memcpy(&bits, &score, sizeof bits);
    return bits >> 31 ? ~bits : bits | 1u << 31;
}

static void sort_descending(uint64_t *a, uint64_t *buffer, size_t n)
{
    for (int shift = 32; shift < 64; shift += 8) {
        size_t count[256] = { 0 }, sum = 0;
        for (size_t i = 0; i < n; i++) count[255 - (a[i] >> shift & 255)]++;
        for (size_t b = 0; b < 256; b++) {
            size_t c = count[b];
            count[b] = sum;
            sum += c;
        }
        for (size_t i = 0; i < n; i++) buffer[count[255 - (a[i] >> shift & 255)]++] = a[i];
        uint64_t *swap = a;
        a = buffer, buffer = swap;
    }
}

static uint32_t *ranks_of(const ses_spm_model *m, ses_err *e)
{
    size_t n = (size_t)m->n;
    uint32_t *rank = ses_alloc_array(n, sizeof *rank, e);
    uint64_t *key = ses_alloc_array(n, sizeof *key, e), *buffer = ses_alloc_array(n, sizeof *buffer, e);
    bool ok = rank && key && buffer;
    for (size_t i = 0; ok && i < n; i++) key[i] = (uint64_t)order_key(m->score[i]) << 32 | i;
    if (ok) sort_descending(key, buffer, n);
    uint32_t r = 0;
    for (size_t i = 0; ok && i < n; i++) {
        if (i && key[i] >> 32 != key[i - 1] >> 32) r++;
        rank[(uint32_t)key[i]] = r;
    }
    ses_free(key);
    ses_free(buffer);
    if (!ok) ses_free(rank);
    return ok ? rank : NULL;
}

/* ---- merges ---- */

static size_t splits_of(const ses_spm_model *m, int32_t id) /* boundaries between characters */
{
    size_t count = ses_utf8_count(m->byte + m->start[id], m->start[id + 1] - m->start[id]);
    return count ? count - 1 : 0;
}

/* The symbol of a span: a piece, a character, or -1. */
static int32_t symbol_of(const ses_spm_model *m, const char *p, size_t n)
{
    int32_t id = ses_trie_find(&m->trie, p, n);
    if (ses_spm_char_len(p, n) < n) return id >= 0 && can_merge(m, id) ? id : -1;
    if (id >= 0) return id;
    id = ses_vocab_id(&m->chars, p, n);
    return id < 0 ? -1 : m->n + id;
}

/* Assign an id to a character that is not a piece, so that merge pairs can refer to it. */
static void number_chars(ses_spm_model *m, int32_t id)
{
    int32_t other;
    size_t end = m->start[id + 1];
    for (size_t i = m->start[id], step; i < end; i += step) {
        step = ses_spm_char_len(m->byte + i, end - i);
        if (ses_trie_find(&m->trie, m->byte + i, step) < 0)
            ses_vocab_add(&m->chars, m->chars.count, m->byte + i, step, &other);
    }
}

static void add_merges(ses_spm_model *m, int32_t id, uint32_t rank)
{
    size_t end = m->start[id + 1];
    for (size_t i = m->start[id] + ses_spm_char_len(m->byte + m->start[id], end - m->start[id]); i < end;
         i += ses_spm_char_len(m->byte + i, end - i)) {
        int32_t left = symbol_of(m, m->byte + m->start[id], i - m->start[id]);
        int32_t right = left < 0 ? -1 : symbol_of(m, m->byte + i, end - i);
        if (right >= 0) ses_merges_put(&m->merges, left, right, rank, id);
    }
}

static ses_string name_of(const void *self, int32_t id)
{
    const ses_spm_model *m = self;
    ses_string s = { NULL, 0 };
    if (id < m->n)
        s = (ses_string){ m->byte + m->start[id], m->start[id + 1] - m->start[id] };
    else
        s.p = ses_vocab_token(&m->chars, id - m->n, &s.n);
    return s;
}

bool ses_spm_bpe_open(ses_spm_model *m, ses_arena *mem, ses_err *e)
{
    size_t merges = 0, chars = 0, bytes = 0;
    bool unused = false;
    for (int32_t i = 0; i < m->n; i++) {
        size_t splits = can_merge(m, i) ? splits_of(m, i) : 0;
        if (!splits) continue;
        merges += splits, chars += splits + 1, bytes += m->start[i + 1] - m->start[i];
        unused |= m->type[i] == SES_SPM_UNUSED;
    }
    uint32_t *rank = ranks_of(m, e);
    bool ok = rank && ses_merges_reserve(&m->merges, merges, mem, e);
    /* upper bound of distinct characters */
    size_t max_chars = chars < 0x110000 ? chars : 0x110000;
    ok = ok && ses_vocab_reserve(&m->chars, max_chars, bytes, mem, e);
    for (int32_t i = 0; ok && i < m->n; i++)
        if (can_merge(m, i) && splits_of(m, i)) number_chars(m, i);
    for (int32_t i = 0; ok && i < m->n; i++)
        if (can_merge(m, i)) add_merges(m, i, rank[i]);
    ok = ok && ses_merges_build_filter(&m->merges, m->n + m->chars.count, name_of, m, mem, e);
    if (ok && unused) {
        m->unused = ses_arena_array(mem, (size_t)m->n, 1, e);
        ok = m->unused != NULL;
        for (int32_t i = 0; ok && i < m->n; i++) m->unused[i] = m->type[i] == SES_SPM_UNUSED;
    }
    ses_free(rank);
    return ok;
}

/* ---- encoding ---- */

/* Id of a symbol that never merges: a user-defined one, or a character that occurs in no piece. */
static int32_t unmergeable(int32_t id) { return -2 - id; }

static int32_t piece_of(const ses_spm_model *m, int32_t symbol)
{
    if (symbol < 0) symbol = -2 - symbol;
    return symbol < m->n ? symbol : m->unk_id;
}

static uint32_t length_of(const ses_spm_model *m, int32_t symbol)
{
    return symbol < m->n ? m->start[symbol + 1] - m->start[symbol] : m->chars.len[symbol - m->n];
}

typedef struct part {
    int32_t symbol;
    uint32_t len;
    int depth;
} part;

/* Replace an unused piece by its parts, recursively down to used pieces. */
static bool put_parts(const ses_spm_model *m, int32_t (*parts)[2], part top, uint32_t at, ses_token_list *out,
                      ses_err *e)
{
    part stack[MAX_DEPTH + 2]; /* each level leaves one right part on the stack */
    int n = 0;
    stack[n++] = top;
    while (n) {
        part p = stack[--n];
        bool split = p.depth <= MAX_DEPTH && p.symbol >= 0 && p.symbol < m->n && m->unused[p.symbol] &&
                     parts[p.symbol][1] >= 0;
        if (split) {
            int32_t left = parts[p.symbol][0], right = parts[p.symbol][1];
            uint32_t len = length_of(m, left);
            stack[n++] = (part){ right, p.len - len, p.depth + 1 };
            stack[n++] = (part){ left, len, p.depth + 1 };
            continue;
        }
        if (!ses_token_list_put(out, piece_of(m, p.symbol), at, at + p.len, e)) return false;
        at += p.len;
    }
    return true;
}

static size_t split(const ses_spm_model *m, const char *p, size_t n, int32_t *id, uint32_t *len)
{
    size_t k = 0;
    for (size_t i = 0, step; i < n; i += step, k++) {
        bool user;
        step = ses_spm_next_symbol(m, p + i, n - i, &user);
        int32_t symbol = user ? ses_trie_find(&m->trie, p + i, step) : symbol_of(m, p + i, step);
        id[k] = user || symbol < 0 ? unmergeable(symbol < 0 ? m->n : symbol) : symbol;
        len[k] = (uint32_t)step;
    }
    return k;
}

bool ses_spm_bpe_encode(const ses_spm_model *m, const char *p, size_t n, ses_token_list *out,
                        ses_arena *scratch, ses_err *e)
{
    int32_t *id = ses_arena_alloc(scratch, n * sizeof *id, e);
    uint32_t *len = ses_arena_alloc(scratch, n * sizeof *len, e);
    if (!id || !len) return false;
    ses_merge_trace trace = { m->unused, NULL };
    if (m->unused) {
        trace.parts = ses_arena_alloc(scratch, (size_t)m->n * sizeof *trace.parts, e);
        if (!trace.parts) return false;
        memset(trace.parts, 0xff, (size_t)m->n * sizeof *trace.parts);
    }
    size_t k = split(m, p, n, id, len);
    if (!ses_merges_apply(&m->merges, id, len, &k, m->unused ? &trace : NULL, scratch, e)) return false;
    uint32_t at = 0;
    for (size_t i = 0; i < k; at += len[i++]) {
        bool ok = m->unused ? put_parts(m, trace.parts, (part){ id[i], len[i], 0 }, at, out, e)
                            : ses_token_list_put(out, piece_of(m, id[i]), at, at + len[i], e);
        if (!ok) return false;
    }
    return true;
}
