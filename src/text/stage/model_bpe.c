/* Byte-pair encoding (Sennrich et al. 2016): starts from the characters of a word and merges pairs of the
 * merge list, lowest rank first. */
#include "text/vocab/bpe.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/unicode/utf8.h"
#include "text/vocab/byte_chars.h"

#include <string.h>

/* ---- opening ---- */

static void fill_tables(ses_bpe *m)
{
    char s[8];
    for (int b = 0; b < 256; b++) m->byte[b] = ses_vocab_id(&m->vocab, s, ses_byte_token((uint8_t)b, s));
    for (uint32_t c = 0; c < SES_BPE_DIRECT; c++)
        m->direct[c] = ses_vocab_id(&m->vocab, s, ses_utf8_encode(c, s));
}

/* An optional string: p stays NULL if the key is missing or null. */
static bool read_string(const ses_json *settings, const char *key, ses_arena *mem, ses_string *out,
                        ses_err *e)
{
    return ses_setting_absent(settings, key) || ses_setting_string(settings, key, NULL, mem, out, e);
}

static void save_string(ses_json_writer *w, const char *key, ses_string s)
{
    ses_json_put_key(w, key);
    if (s.p)
        ses_json_put_stringn(w, s.p, s.n);
    else
        ses_json_put_null(w);
}

static bool read_dropout(const ses_json *settings, ses_err *e)
{
    const ses_json *v = ses_json_get(settings, "dropout");
    double p;
    if (!v || ses_json_type_of(v) == SES_JSON_NULL) return true;
    if (!ses_json_real(v, &p) || !(p >= 0 && p <= 1))
        return ses_fail(e, SES_EFORMAT, "dropout: must be null or a number from 0 to 1");
    return p == 0 || ses_fail(e, SES_EUNSUPPORTED, "dropout: BPE dropout is not supported, set it to null");
}

static ses_string name_of(const void *vocab, int32_t id)
{
    ses_string s = { NULL, 0 };
    s.p = ses_vocab_token(vocab, id, &s.n);
    return s.p ? s : (ses_string){ NULL, 0 };
}

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    ses_bpe *m = ses_arena_array(mem, 1, sizeof *m, e);
    if (!m || !read_dropout(settings, e) || !read_string(settings, "unk_token", mem, &m->unk, e) ||
        !read_string(settings, "continuing_subword_prefix", mem, &m->prefix, e) ||
        !read_string(settings, "end_of_word_suffix", mem, &m->suffix, e) ||
        !ses_setting_bool(settings, "fuse_unk", false, &m->fuse_unk, e) ||
        !ses_setting_bool(settings, "byte_fallback", false, &m->byte_fallback, e) ||
        !ses_setting_bool(settings, "ignore_merges", false, &m->ignore_merges, e) ||
        !ses_setting_int(settings, "unk_from", -1, 0, INT32_MAX, &m->unk_from, e))
        return NULL;
    const ses_json *vocab = ses_json_get(settings, "vocab"), *merges = ses_json_get(settings, "merges");
    if (!vocab || !merges)
        return ses_fail(e, SES_EFORMAT, "key \"%s\" is missing", vocab ? "merges" : "vocab"), NULL;
    if (!ses_vocab_open(&m->vocab, vocab, mem, e)) return ses_wrap(e, "vocab"), NULL;
    if (!ses_merges_open(&m->merges, merges, &m->vocab, m->prefix.n, mem, e))
        return ses_wrap(e, "merges"), NULL;
    if (!m->prefix.n && !ses_merges_build_filter(&m->merges, m->vocab.size, name_of, &m->vocab, mem, e))
        return NULL;
    m->plain = !m->prefix.n && !m->suffix.n;
    m->unk_id = m->unk.p ? ses_vocab_id(&m->vocab, m->unk.p, m->unk.n) : -1;
    if (m->unk_from >= 0 && (m->unk_id < 0 || m->unk_id >= m->unk_from || m->unk_from > m->vocab.size))
        return ses_fail(e, SES_EFORMAT, "unk_from: requires an unk_token with a smaller id"), NULL;
    fill_tables(m);
    return m;
}

static void save(const void *self, ses_json_writer *w)
{
    const ses_bpe *m = self;
    ses_json_put_key(w, "dropout");
    ses_json_put_null(w);
    save_string(w, "unk_token", m->unk);
    save_string(w, "continuing_subword_prefix", m->prefix);
    save_string(w, "end_of_word_suffix", m->suffix);
    ses_json_member_bool(w, "fuse_unk", m->fuse_unk);
    ses_json_member_bool(w, "byte_fallback", m->byte_fallback);
    ses_json_member_bool(w, "ignore_merges", m->ignore_merges);
    if (m->unk_from >= 0) ses_json_member_int(w, "unk_from", m->unk_from);
    ses_json_put_key(w, "vocab");
    ses_vocab_save(&m->vocab, w);
    ses_json_put_key(w, "merges");
    ses_merges_save(&m->merges, &m->vocab, w);
}

/* ---- encoding ---- */

/* The symbols of a word before merging. */
typedef struct symbols {
    int32_t *id;
    uint32_t *len;
    size_t n;
    uint32_t unk_len; /* length of an unknown span not yet emitted; 0: none */
} symbols;

static void put(symbols *s, int32_t id, uint32_t len)
{
    s->id[s->n] = id;
    s->len[s->n++] = len;
}

static void put_unk(const ses_bpe *m, symbols *s)
{
    if (s->unk_len) put(s, m->unk_id, s->unk_len);
    s->unk_len = 0;
}

static bool put_bytes(const ses_bpe *m, symbols *s, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (m->byte[(unsigned char)p[i]] < 0) return false;
    for (size_t i = 0; i < n; i++) put(s, m->byte[(unsigned char)p[i]], 1);
    return true;
}

/* A character that is not in the vocabulary, with its prefix and suffix. As in HF Tokenizers, byte tokens
 * do not end an unknown span, and the character is dropped without an unknown token. */
static bool put_missing(const ses_bpe *m, symbols *s, const char *p, size_t n, size_t n_char, ses_err *e)
{
    if (m->byte_fallback && put_bytes(m, s, p, n)) return true;
    if (!m->unk.p) return true;
    if (m->unk_id < 0)
        return ses_fail(e, SES_EFORMAT, "unknown character, and unk_token \"%s\" is not in the vocabulary",
                        ses_quoted_of(m->unk.p, m->unk.n).s);
    if (!m->fuse_unk) put_unk(m, s);
    s->unk_len += (uint32_t)n_char;
    return true;
}

/* A character as spelled in the vocabulary at this position of the word: with prefix or suffix. */
static ses_string spell(const ses_bpe *m, const char *p, size_t n, bool first, bool last, char *buf)
{
    if (m->plain) return (ses_string){ p, n };
    size_t k = 0;
    if (!first && m->prefix.n) memcpy(buf, m->prefix.p, m->prefix.n), k = m->prefix.n;
    memcpy(buf + k, p, n), k += n;
    if (last && m->suffix.n) memcpy(buf + k, m->suffix.p, m->suffix.n), k += m->suffix.n;
    return (ses_string){ buf, k };
}

static bool split(const ses_bpe *m, const char *word, size_t n, symbols *s, char *buf, ses_err *e)
{
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t step = ses_utf8_decode(word + i, n - i, &c);
        if (!step) return ses_fail(e, SES_EARG, "invalid UTF-8 at byte %zu of a word", i);
        ses_string p = spell(m, word + i, step, !i, i + step == n, buf);
        int32_t id = m->plain && c < SES_BPE_DIRECT ? m->direct[c] : ses_vocab_id(&m->vocab, p.p, p.n);
        if (id >= 0) {
            put_unk(m, s);
            put(s, id, (uint32_t)step);
        } else if (!put_missing(m, s, p.p, p.n, step, e)) {
            return false;
        }
        i += step;
    }
    put_unk(m, s);
    return true;
}

static bool merge(const ses_bpe *m, const char *word, size_t n, ses_token_list *out, ses_arena *scratch,
                  ses_err *e)
{
    size_t max_symbols; /* maximum number of symbols: one per byte, including prefixes and suffixes */
    if (!ses_mul_size(n, m->plain || !m->byte_fallback ? 1 : 1 + m->prefix.n, &max_symbols) ||
        !ses_add_size(max_symbols, m->suffix.n, &max_symbols) || n > INT32_MAX)
        return ses_fail(e, SES_EARG, "a word of %zu bytes is too long", n);
    symbols s = { 0 };
    s.id = ses_arena_alloc(scratch, max_symbols * sizeof *s.id, e);
    s.len = ses_arena_alloc(scratch, max_symbols * sizeof *s.len, e);
    char *buf = ses_arena_alloc(scratch, m->prefix.n + 4 + m->suffix.n, e);
    if (!s.id || !s.len || !buf || !split(m, word, n, &s, buf, e) ||
        !ses_merges_apply(&m->merges, s.id, s.len, &s.n, NULL, scratch, e))
        return false;
    /* The offset may run past the end if bytes of a prefix were emitted, as in HF Tokenizers. */
    size_t at = 0;
    for (size_t i = 0; i < s.n; at += s.len[i++]) {
        bool step = m->unk_from >= 0 && s.id[i] >= m->unk_from;
        if (!ses_token_list_put(out, step ? m->unk_id : s.id[i], at, at + s.len[i], e)) return false;
    }
    return true;
}

static bool tokenize(const void *self, const char *word, size_t n, ses_token_list *out, ses_arena *scratch,
                     ses_err *e)
{
    const ses_bpe *m = self;
    if (!n) return true;
    if (m->ignore_merges) {
        int32_t id = ses_vocab_id(&m->vocab, word, n);
        if (id >= 0) return ses_token_list_put(out, id, 0, n, e);
    }
    ses_mark mark = ses_arena_mark(scratch);
    bool ok = merge(m, word, n, out, scratch, e);
    ses_arena_rewind(scratch, mark);
    return ok;
}

static int64_t size(const void *self)
{
    const ses_bpe *m = self;
    return m->unk_from >= 0 ? m->unk_from : m->vocab.size;
}

static int64_t count(const void *self)
{
    const ses_bpe *m = self;
    return m->unk_from >= 0 ? m->unk_from : m->vocab.count;
}

static const char *token(const void *self, int32_t id, size_t *n)
{
    return id < size(self) ? ses_vocab_token(&((const ses_bpe *)self)->vocab, id, n) : NULL;
}

static int32_t id_of(const void *self, const char *s, size_t n)
{
    int32_t id = ses_vocab_id(&((const ses_bpe *)self)->vocab, s, n);
    return id < size(self) ? id : -1;
}

static bool has_subword_prefix(const void *self) { return ((const ses_bpe *)self)->prefix.n > 0; }

const ses_stage ses_stage_model_bpe = {
    .type = "BPE",
    .kind = SES_MODEL_STAGE,
    .open = open,
    .save = save,
    .tokenize = tokenize,
    .size = size,
    .count = count,
    .token = token,
    .id = id_of,
    .has_subword_prefix = has_subword_prefix,
};
