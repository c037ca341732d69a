/* Unigram language model (Kudo 2018): of all segmentations of a word, the one with the highest sum of
 * scores. */
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "text/vocab/byte_chars.h"
#include "text/vocab/score_rounding.h"
#include "text/vocab/unigram_model.h"

#include <math.h>
#include <string.h>

static const double unk_penalty = 10; /* subtracted from the lowest piece score */

/* ---- opening ---- */

static bool read_piece(const ses_json *entry, ses_string *piece, double *score, ses_err *e)
{
    piece->p = ses_json_string(ses_json_at(entry, 0), &piece->n);
    if (ses_json_type_of(entry) != SES_JSON_ARRAY || ses_json_len(entry) != 2 || !piece->p ||
        !ses_json_real(ses_json_at(entry, 1), score))
        return ses_fail(e, SES_EFORMAT, "must be a pair of piece and score");
    *score = ses_score_from_json(*score);
    return fabs(*score) < 1e200 || ses_fail(e, SES_EFORMAT, "the score is out of range");
}

/* Read pieces and scores; key[i] points into the arena. */
static bool read_pieces(ses_unigram *m, const ses_json *list, ses_string *key, ses_arena *mem, ses_err *e)
{
    size_t bytes = 0, at = 0;
    double lowest = INFINITY;
    for (size_t i = 0; i < (size_t)m->n; i++) {
        if (!read_piece(ses_json_at(list, i), &key[i], &m->score[i], e)) return ses_wrap(e, "entry %zu", i);
        if (m->score[i] < lowest) lowest = m->score[i];
        bytes += key[i].n; /* cannot overflow: less than the document */
    }
    m->unk_score = lowest - unk_penalty;
    m->byte = ses_arena_array(mem, bytes, 1, e);
    if (!m->byte) return false;
    for (size_t i = 0; i < (size_t)m->n; at += key[i++].n) {
        if (key[i].n) memcpy(m->byte + at, key[i].p, key[i].n);
        key[i].p = m->byte + at;
        m->start[i] = (uint32_t)at;
    }
    m->start[m->n] = (uint32_t)at;
    return true;
}

static bool read_vocab(ses_unigram *m, const ses_json *list, ses_arena *mem, ses_err *e)
{
    size_t n = ses_json_len(list);
    if (ses_json_type_of(list) != SES_JSON_ARRAY)
        return ses_fail(e, SES_EFORMAT, "vocab: must be a list of pieces and scores");
    if (n > SES_TRIE_MAX)
        return ses_fail(e, SES_EFORMAT, "vocab: %zu pieces exceed the limit of %d", n, SES_TRIE_MAX);
    m->n = (int32_t)n;
    m->score = ses_arena_array(mem, n + 1, sizeof *m->score, e);
    m->start = ses_arena_array(mem, n + 1, sizeof *m->start, e);
    ses_arena own = { 0 };
    ses_string *key = ses_arena_array(&own, n, sizeof *key, e);
    if (m->score) *m->score++ = -INFINITY;
    bool ok = m->score && m->start && key && read_pieces(m, list, key, mem, e) &&
              ses_trie_build(&m->trie, key, n, mem, e);
    ses_arena_free(&own);
    return ok || ses_wrap(e, "vocab");
}

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    ses_unigram *m = ses_arena_array(mem, 1, sizeof *m, e);
    int64_t unk;
    if (!m || !ses_setting_bool(settings, "byte_fallback", false, &m->byte_fallback, e)) return NULL;
    if (!ses_json_get(settings, "vocab")) return ses_fail(e, SES_EFORMAT, "key \"vocab\" is missing"), NULL;
    if (!read_vocab(m, ses_json_get(settings, "vocab"), mem, e) ||
        !ses_setting_int(settings, "unk_id", -1, 0, INT64_MAX, &unk, e))
        return NULL;
    if (unk >= m->n)
        return ses_fail(e, SES_EFORMAT, "unk_id: %lld is not less than the number of pieces, %d",
                        (long long)unk, m->n),
               NULL;
    m->unk_id = (int32_t)unk;
    if (!ses_viterbi64_pieces_open(&m->pieces, &m->trie, m->score, m->unk_score, m->unk_id, mem, e))
        return NULL;
    char s[SES_BYTE_TOKEN];
    for (int b = 0; b < 256; b++) m->byte_id[b] = ses_trie_find(&m->trie, s, ses_byte_token((uint8_t)b, s));
    return m;
}

static void save(const void *self, ses_json_writer *w)
{
    const ses_unigram *m = self;
    ses_json_put_key(w, "unk_id");
    if (m->unk_id < 0)
        ses_json_put_null(w);
    else
        ses_json_put_int(w, m->unk_id);
    ses_json_member_array(w, "vocab");
    for (int32_t i = 0; i < m->n; i++) {
        ses_json_begin_array(w);
        ses_json_put_stringn(w, m->byte + m->start[i], m->start[i + 1] - m->start[i]);
        ses_json_put_real(w, ses_score_to_json(m->score[i]));
        ses_json_end_array(w);
    }
    ses_json_end_array(w);
    ses_json_member_bool(w, "byte_fallback", m->byte_fallback);
}

/* ---- encoding ---- */

static bool forward(const ses_unigram *m, const char *word, size_t n, ses_viterbi64_list at, ses_err *e)
{
    for (size_t i = 0, to; i < n; i = to) {
        /* no unk_id: an unknown character is an error, so check characters one by one */
        to = m->unk_id < 0 ? i : ses_viterbi64_offer_ascii(&m->pieces, word, n, i, INFINITY, at, false);
        if (to > i) continue;
        uint32_t c;
        size_t step = ses_utf8_decode(word + i, n - i, &c);
        if (!step) return ses_fail(e, SES_EARG, "invalid UTF-8 at byte %zu of a word", i);
        to = i + step;
        if (ses_viterbi64_offer_rest(&m->pieces, word, n, i, i, m->trie.root, to, at, false)) continue;
        if (m->unk_id < 0 && m->unk_score + at.sum[i] > at.sum[to])
            return ses_fail(e, SES_EFORMAT, "byte %zu of a word is unknown, and the model has no unk_id", i);
        ses_viterbi64_offer_unknown(&m->pieces, i, step, at, false);
    }
    return true;
}

/* An unknown span becomes a piece if the vocabulary has it, else bytes, else the unknown token. */
static bool put_unknown(const ses_unigram *m, const char *word, size_t begin, size_t end, ses_token_list *out,
                        ses_err *e)
{
    int32_t id = ses_trie_find(&m->trie, word + begin, end - begin);
    bool bytes = id < 0 && m->byte_fallback;
    for (size_t i = begin; bytes && i < end; i++) bytes = m->byte_id[(uint8_t)word[i]] >= 0;
    if (!bytes) return ses_token_list_put(out, id < 0 ? m->unk_id : id, begin, end, e);
    for (size_t i = begin; i < end; i++)
        if (!ses_token_list_put(out, m->byte_id[(uint8_t)word[i]], begin, end, e)) return false;
    return true;
}

static int32_t id_of_last(uint64_t last) { return (int32_t)(uint32_t)last; }

/* Reverse the links of the best path: each position on it then holds the end and the id of its piece. */
static void reverse_path(uint64_t *last, size_t n)
{
    uint64_t here = last[n];
    for (size_t end = n, start;; end = start) {
        start = here >> 32;
        uint64_t earlier = last[start];
        last[start] = (uint64_t)end << 32 | (uint32_t)here;
        if (!start) break;
        here = earlier;
    }
}

bool ses_unigram_encode(const ses_unigram *m, const char *word, size_t n, ses_token_list *out,
                        ses_arena *scratch, ses_err *e)
{
    if (!n) return true;
    if (n >= INT32_MAX) return ses_fail(e, SES_EARG, "a word of %zu bytes is too long", n);
    ses_viterbi64_list at;
    if (!ses_viterbi64_list_open(&at, n, 0, false, scratch, e) || !forward(m, word, n, at, e)) return false;
    reverse_path(at.last, n);
    for (size_t i = 0, end; i < n; i = end) {
        end = at.last[i] >> 32;
        if (id_of_last(at.last[i]) != m->unk_id) {
            if (!ses_token_list_put(out, id_of_last(at.last[i]), i, end, e)) return false;
            continue;
        }
        while (end < n && id_of_last(at.last[end]) == m->unk_id) end = at.last[end] >> 32;
        if (!put_unknown(m, word, i, end, out, e)) return false;
    }
    return true;
}

static bool tokenize(const void *self, const char *word, size_t n, ses_token_list *out, ses_arena *scratch,
                     ses_err *e)
{
    ses_mark mark = ses_arena_mark(scratch);
    bool ok = ses_unigram_encode(self, word, n, out, scratch, e);
    ses_arena_rewind(scratch, mark);
    return ok;
}

static int64_t size(const void *self) { return ((const ses_unigram *)self)->n; }

static const char *token(const void *self, int32_t id, size_t *n)
{
    const ses_unigram *m = self;
    if (id < 0 || id >= m->n) return NULL;
    *n = m->start[id + 1] - m->start[id];
    return m->byte + m->start[id];
}

static int32_t id_of(const void *self, const char *s, size_t n)
{
    return ses_trie_find(&((const ses_unigram *)self)->trie, s, n);
}

static int32_t text_named_id(const void *self) { return ((const ses_unigram *)self)->unk_id; }

const ses_stage ses_stage_model_unigram = {
    .type = "Unigram",
    .kind = SES_MODEL_STAGE,
    .open = open,
    .save = save,
    .tokenize = tokenize,
    .size = size,
    .token = token,
    .id = id_of,
    .text_named_id = text_named_id,
};
