/* SentencePiece as a model: the pieces of a .model file, encoded as the SentencePiece library does. */
#include "base/alloc.h"
#include "base/str.h"
#include "text/spm/spm_model.h"
#include "text/vocab/byte_chars.h"

#include <math.h>
#include <string.h>

static const char *const kinds[] = { "unigram", "bpe", "word", "char" };
static const char *const types[] = { "normal", "unknown", "control", "user_defined", "unused", "byte" };

/* ---- opening ---- */

static int word_of(const ses_json *v, const char *const *word, int n)
{
    size_t len;
    const char *s = ses_json_string(v, &len);
    for (int i = 0; s && i < n; i++)
        if (ses_equal(s, len, word[i])) return i + 1;
    return 0;
}

static bool read_piece(ses_spm_model *m, size_t i, const ses_json *entry, ses_string *key, ses_err *e)
{
    double score;
    size_t n = ses_json_len(entry);
    key->p = ses_json_string(ses_json_at(entry, 0), &key->n);
    if (ses_json_type_of(entry) != SES_JSON_ARRAY || n < 2 || n > 3 || !key->p ||
        !ses_json_real(ses_json_at(entry, 1), &score))
        return ses_fail(e, SES_EFORMAT, "must be a piece, its score, and its type unless it is normal");
    m->score[i] = (float)score;
    m->type[i] = (uint8_t)(n == 3 ? word_of(ses_json_at(entry, 2), types, 6) : SES_SPM_NORMAL);
    if (!m->type[i])
        return ses_fail(e, SES_EFORMAT,
                        "the type must be one of normal, unknown, control, user_defined, unused, byte");
    if (!isfinite(m->score[i])) return ses_fail(e, SES_EFORMAT, "the score is not finite");
    if (!key->n) return ses_fail(e, SES_EFORMAT, "a piece must not be empty");
    return key->n < 8000 || ses_fail(e, SES_EFORMAT, "a piece of %zu bytes is too long", key->n);
}

/* Constraints that SentencePiece puts on its pieces. */
static bool check_pieces(ses_spm_model *m, const ses_string *key, ses_err *e)
{
    int bytes = 0;
    m->unk_id = -1;
    if (m->trie.again) {
        ses_string twice = key[m->trie.same[0]];
        return ses_fail(e, SES_EFORMAT, "entries %d and %d are both \"%s\"", m->trie.same[0], m->trie.same[1],
                        ses_quoted_of(twice.p, twice.n).s);
    }
    for (int32_t i = 0; i < m->n; i++) {
        char s[SES_BYTE_TOKEN];
        if (m->type[i] == SES_SPM_UNKNOWN && m->unk_id >= 0)
            return ses_fail(e, SES_EFORMAT, "entries %d and %d are both of type unknown", m->unk_id, i);
        if (m->type[i] == SES_SPM_UNKNOWN) m->unk_id = i;
        if (m->type[i] != SES_SPM_BYTE) continue;
        int b = 0;
        while (b < 256 && (key[i].n != ses_byte_token((uint8_t)b, s) || memcmp(s, key[i].p, key[i].n))) b++;
        if (b == 256 || !m->byte_fallback)
            return ses_fail(e, SES_EFORMAT, "entry %d: %s", i,
                            m->byte_fallback ? "not a byte, <0x00> to <0xFF>"
                                             : "a byte, but byte_fallback is false");
        bytes++;
    }
    if (m->unk_id < 0) return ses_fail(e, SES_EFORMAT, "no piece has type unknown");
    if (m->byte_fallback && bytes != 256)
        return ses_fail(e, SES_EFORMAT, "%d byte pieces instead of 256", bytes);
    return true;
}

static bool build(ses_spm_model *m, ses_string *key, ses_arena *mem, ses_err *e)
{
    size_t n = (size_t)m->n;
    if (!ses_trie_build(&m->trie, key, n, mem, e) || !check_pieces(m, key, e)) return false;
    char s[SES_BYTE_TOKEN];
    for (int b = 0; b < 256; b++) m->byte_id[b] = ses_trie_find(&m->trie, s, ses_byte_token((uint8_t)b, s));
    for (size_t i = 0; i < n; i++)
        if (m->type[i] != SES_SPM_USER_DEFINED) key[i] = (ses_string){ NULL, 0 };
    if (!ses_trie_build(&m->user, key, n, mem, e)) return false;
    if (m->kind == SES_SPM_UNIGRAM) return ses_spm_unigram_open(m, mem, e);
    return m->kind != SES_SPM_BPE || ses_spm_bpe_open(m, mem, e);
}

static bool read_pieces(ses_spm_model *m, const ses_json *list, ses_string *key, ses_arena *mem, ses_err *e)
{
    size_t n = (size_t)m->n, bytes = 0, at = 0;
    m->score = ses_arena_array(mem, n, sizeof *m->score, e);
    m->type = ses_arena_array(mem, n, 1, e);
    m->start = ses_arena_array(mem, n + 1, sizeof *m->start, e);
    if (!m->score || !m->type || !m->start) return false;
    for (size_t i = 0; i < n; bytes += key[i++].n)
        if (!read_piece(m, i, ses_json_at(list, i), &key[i], e)) return ses_wrap(e, "entry %zu", i);
    m->byte = ses_arena_array(mem, bytes, 1, e);
    if (!m->byte) return false;
    for (size_t i = 0; i < n; at += key[i++].n) {
        memcpy(m->byte + at, key[i].p, key[i].n);
        key[i].p = m->byte + at;
        m->start[i] = (uint32_t)at;
    }
    m->start[n] = (uint32_t)at;
    return true;
}

/* A separate vocabulary with other ids for the pieces; pieces missing in it are unknown. */
static bool read_vocab(ses_spm_model *m, const ses_json *settings, ses_arena *mem, ses_err *e)
{
    const ses_json *vocab = ses_json_get(settings, "vocab");
    m->renamed = vocab != NULL;
    if (!vocab) return true;
    if (!ses_vocab_open(&m->vocab, vocab, mem, e)) return ses_wrap(e, "vocab");
    if (!ses_setting_string(settings, "unk_token", NULL, mem, &m->unk, e)) return false;
    m->outer_unk = ses_vocab_id(&m->vocab, m->unk.p, m->unk.n);
    if (m->outer_unk < 0)
        return ses_fail(e, SES_EFORMAT, "unk_token \"%s\" is not in the vocabulary",
                        ses_quoted_of(m->unk.p, m->unk.n).s);
    m->outer = ses_arena_array(mem, (size_t)m->n, sizeof *m->outer, e);
    for (int32_t i = 0; m->outer && i < m->n; i++) {
        int32_t id = ses_vocab_id(&m->vocab, m->byte + m->start[i], m->start[i + 1] - m->start[i]);
        m->outer[i] = id < 0 ? m->outer_unk : id;
    }
    return m->outer != NULL;
}

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    ses_spm_model *m = ses_arena_array(mem, 1, sizeof *m, e);
    const ses_json *list = ses_json_get(settings, "pieces");
    size_t n = ses_json_len(list);
    if (!m || !ses_setting_bool(settings, "byte_fallback", false, &m->byte_fallback, e)) return NULL;
    m->kind = (ses_spm_model_type)word_of(ses_json_get(settings, "kind"), kinds, 4);
    if (!m->kind)
        return ses_fail(e, SES_EFORMAT, "key \"kind\" must be \"unigram\", \"bpe\", \"word\" or \"char\""),
               NULL;
    if (ses_json_type_of(list) != SES_JSON_ARRAY || n > SES_TRIE_MAX)
        return ses_fail(e, SES_EFORMAT, "key \"pieces\" must be a list of at most %d", SES_TRIE_MAX), NULL;
    m->n = (int32_t)n;
    ses_string *key = ses_alloc_array(n, sizeof *key, e);
    bool ok = key && ((read_pieces(m, list, key, mem, e) && build(m, key, mem, e)) || ses_wrap(e, "pieces"));
    ses_free(key);
    return ok && read_vocab(m, settings, mem, e) ? m : NULL;
}

static void save(const void *self, ses_json_writer *w)
{
    const ses_spm_model *m = self;
    ses_json_member_string(w, "kind", kinds[m->kind - 1]);
    ses_json_member_bool(w, "byte_fallback", m->byte_fallback);
    if (m->renamed) {
        ses_json_member_stringn(w, "unk_token", m->unk.p, m->unk.n);
        ses_json_put_key(w, "vocab");
        ses_vocab_save(&m->vocab, w);
    }
    ses_json_member_array(w, "pieces");
    for (int32_t i = 0; i < m->n; i++) {
        ses_json_begin_array(w);
        ses_json_put_stringn(w, m->byte + m->start[i], m->start[i + 1] - m->start[i]);
        ses_json_put_float(w, m->score[i]);
        if (m->type[i] != SES_SPM_NORMAL) ses_json_put_string(w, types[m->type[i] - 1]);
        ses_json_end_array(w);
    }
    ses_json_end_array(w);
}

/* ---- encoding ---- */

size_t ses_spm_next_symbol(const ses_spm_model *m, const char *p, size_t n, bool *user)
{
    uint32_t base = m->user.root;
    int32_t id;
    size_t longest = 0;
    for (size_t i = 0; i < n && ses_trie_step(&m->user, &base, (uint8_t)p[i], &id); i++)
        if (id >= 0) longest = i + 1;
    *user = longest > 0;
    return longest ? longest : ses_spm_char_len(p, n);
}

/* Word and character models: words start at U+2581; user-defined symbols count as characters. */
static bool encode_words_or_chars(const ses_spm_model *m, const char *p, size_t n, ses_token_list *out,
                                  ses_err *e)
{
    for (size_t i = 0, end; i < n; i = end) {
        bool user;
        if (m->kind == SES_SPM_CHAR)
            end = i + ses_spm_next_symbol(m, p + i, n - i, &user);
        else
            for (end = i + 1; end < n && (n - end < 3 || memcmp(p + end, "\xe2\x96\x81", 3));) end++;
        int32_t id = ses_trie_find(&m->trie, p + i, end - i);
        if (!ses_token_list_put(out, id < 0 ? m->unk_id : id, i, end, e)) return false;
    }
    return true;
}

bool ses_spm_resolve_unknown(const ses_spm_model *m, const char *p, const ses_token_list *raw,
                             ses_token_list *out, ses_err *e)
{
    bool after_unk = false;
    size_t count = raw->n;
    for (size_t i = 0; m->byte_fallback && i < raw->n; i++)
        if (raw->token[i].id == m->unk_id) count += raw->token[i].end - raw->token[i].begin;
    if (!ses_token_list_reserve(out, count, e)) return false; /* once: growing a long list copies it often */
    for (size_t i = 0; i < raw->n; i++) {
        const ses_token *t = &raw->token[i];
        bool unk = t->id == m->unk_id, ok = true;
        if (unk && m->byte_fallback)
            for (uint32_t k = t->begin; ok && k < t->end; k++)
                ok = ses_token_list_put(out, m->byte_id[(uint8_t)p[k]], t->begin, t->end, e);
        else if (unk && after_unk)
            out->token[out->n - 1].end = t->end;
        else
            ok = ses_token_list_put(out, t->id, t->begin, t->end, e);
        if (!ok) return false;
        after_unk = unk;
    }
    return true;
}

/* Replace piece ids by ids of the separate vocabulary. An unknown span may be a token there. */
static void rename_tokens(const ses_spm_model *m, const char *p, ses_token_list *out, size_t from)
{
    for (size_t i = from; i < out->n; i++) {
        ses_token *t = &out->token[i];
        int32_t id =
            t->id == m->unk_id ? ses_vocab_id(&m->vocab, p + t->begin, t->end - t->begin) : m->outer[t->id];
        t->id = id < 0 ? m->outer_unk : id;
    }
}

static bool tokenize(const void *self, const char *p, size_t n, ses_token_list *out, ses_arena *scratch,
                     ses_err *e)
{
    const ses_spm_model *m = self;
    ses_token_list raw = { 0 };
    if (n >= INT32_MAX) return ses_fail(e, SES_EARG, "a text of %zu bytes is too long", n);
    ses_mark mark = ses_arena_mark(scratch);
    bool ok = m->kind == SES_SPM_UNIGRAM ? ses_spm_unigram_encode(m, p, n, &raw, scratch, e)
              : m->kind == SES_SPM_BPE   ? ses_spm_bpe_encode(m, p, n, &raw, scratch, e)
                                         : encode_words_or_chars(m, p, n, &raw, e);
    ses_arena_rewind(scratch, mark);
    size_t from = out->n;
    ok = ok && ses_spm_resolve_unknown(m, p, &raw, out, e);
    if (ok && m->renamed) rename_tokens(m, p, out, from);
    ses_token_list_free(&raw);
    return ok;
}

static int64_t size(const void *self)
{
    const ses_spm_model *m = self;
    return m->renamed ? m->vocab.size : m->n;
}

static int64_t count(const void *self)
{
    const ses_spm_model *m = self;
    return m->renamed ? m->vocab.count : m->n;
}

static const char *token(const void *self, int32_t id, size_t *n)
{
    const ses_spm_model *m = self;
    if (m->renamed) return ses_vocab_token(&m->vocab, id, n);
    if (id < 0 || id >= m->n) return NULL;
    *n = m->start[id + 1] - m->start[id];
    return m->byte + m->start[id];
}

static int32_t id_of(const void *self, const char *s, size_t n)
{
    const ses_spm_model *m = self;
    return m->renamed ? ses_vocab_id(&m->vocab, s, n) : ses_trie_find(&m->trie, s, n);
}

static int32_t text_named_id(const void *self)
{
    const ses_spm_model *m = self;
    return m->renamed ? m->outer_unk : m->unk_id;
}

const ses_stage ses_stage_model_sentencepiece = {
    .type = "SentencePiece",
    .kind = SES_MODEL_STAGE,
    .open = open,
    .save = save,
    .tokenize = tokenize,
    .size = size,
    .count = count,
    .token = token,
    .id = id_of,
    .text_named_id = text_named_id,
};
