/* WordPiece: repeatedly takes the longest token that the rest of the word starts with; all but the first
 * carry the continuing prefix. A word that cannot be split this way, or is too long, becomes the unknown
 * token. */
#include "model_wordpiece.h"
#include "base/str.h"
#include "base/unicode/utf8.h"

#include <string.h>

/* Find the longest token. It bounds the length of a match; otherwise a long word takes quadratic time. */
static void measure(ses_wordpiece *m)
{
    for (int32_t id = 0; id < m->vocab.size; id++) {
        size_t n;
        const char *s = ses_vocab_token(&m->vocab, id, &n);
        if (!s) continue;
        if (n > m->longest) m->longest = n;
    }
}

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    ses_wordpiece *m = ses_arena_array(mem, 1, sizeof *m, e);
    if (!m) return NULL;
    if (!ses_setting_string(settings, "unk_token", "[UNK]", mem, &m->unknown, e) ||
        !ses_setting_string(settings, "continuing_subword_prefix", "##", mem, &m->prefix, e) ||
        !ses_setting_int(settings, "max_input_chars_per_word", 100, 0, INT32_MAX, &m->max_chars, e))
        return NULL;
    if (!ses_vocab_open(&m->vocab, ses_json_get(settings, "vocab"), mem, e)) {
        ses_wrap(e, "key \"vocab\"");
        return NULL;
    }
    m->unknown_id = ses_vocab_id(&m->vocab, m->unknown.p, m->unknown.n);
    measure(m);
    return m;
}

static void save(const void *self, ses_json_writer *w)
{
    const ses_wordpiece *m = self;
    ses_json_member_stringn(w, "unk_token", m->unknown.p, m->unknown.n);
    ses_json_member_stringn(w, "continuing_subword_prefix", m->prefix.p, m->prefix.n);
    ses_json_member_int(w, "max_input_chars_per_word", m->max_chars);
    ses_json_put_key(w, "vocab");
    ses_vocab_save(&m->vocab, w);
}

/* Longest token with the prefix key[0, from): its bytes after the prefix, and its id. */
static size_t longest(const ses_wordpiece *m, const char *key, size_t from, size_t n, int32_t *id)
{
    while (n > from) {
        if (!ses_utf8_continues(key[n])) {
            *id = ses_vocab_id(&m->vocab, key, n);
            if (*id >= 0) return n - from;
        }
        n--;
    }
    return 0;
}

static bool tokenize(const void *self, const char *word, size_t n, ses_token_list *out, ses_arena *scratch,
                     ses_err *e)
{
    const ses_wordpiece *m = self;
    size_t start = out->n, at = 0;
    bool known = ses_utf8_count(word, n) <= (size_t)m->max_chars;
    char *key = known ? ses_arena_alloc(scratch, m->prefix.n + m->longest + 1, e) : NULL;
    if (known && !key) return false;
    while (known &&
           at < n) { /* key: the prefix and the rest of the word, up to the length of the longest token */
        size_t lead = at ? m->prefix.n : 0, rest = n - at < m->longest ? n - at : m->longest;
        memcpy(key, m->prefix.p, lead);
        memcpy(key + lead, word + at, rest);
        key[lead + rest] = at + rest < n ? word[at + rest] : 0;
        int32_t id = -1;
        size_t len = longest(m, key, lead, lead + rest, &id);
        known = len > 0;
        if (known && !ses_token_list_put(out, id, at, at + len, e)) return false;
        at += len;
    }
    if (known) return true;
    out->n = start;
    if (m->unknown_id < 0)
        return ses_fail(e, SES_EARG, "unknown word, and unk_token \"%s\" is not in the vocabulary",
                        ses_quoted_of(m->unknown.p, m->unknown.n).s);
    return ses_token_list_put(out, m->unknown_id, 0, n, e);
}

static bool has_subword_prefix(const void *self) { return ((const ses_wordpiece *)self)->prefix.n > 0; }

const ses_stage ses_stage_model_wordpiece = {
    .type = "WordPiece",
    .kind = SES_MODEL_STAGE,
    .open = open,
    .save = save,
    .tokenize = tokenize,
    .size = ses_vocab_model_size,
    .count = ses_vocab_model_count,
    .token = ses_vocab_model_token,
    .id = ses_vocab_model_id,
    .has_subword_prefix = has_subword_prefix,
};
