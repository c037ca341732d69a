/* BPE from vocab.json and merges.txt: byte-level (GPT-2, RoBERTa, BART and others), and word-level with an
 * end-of-word suffix (OpenAI GPT, CTRL, XLM). */
#include "base/alloc.h"
#include "base/str.h"
#include "legacy_variants.h"

#include <string.h>

static void write_merges(ses_legacy_converter *o, const ses_legacy_merges *m)
{
    ses_json_member_array(o->w, "merges");
    for (size_t i = 0; i < m->n; i++) {
        ses_json_begin_array(o->w);
        ses_json_put_stringn(o->w, m->pair[i][0].p, m->pair[i][0].n);
        ses_json_put_stringn(o->w, m->pair[i][1].p, m->pair[i][1].n);
        ses_json_end_array(o->w);
    }
    ses_json_end_array(o->w);
}

static void begin_model(ses_legacy_converter *o, ses_string unk)
{
    ses_json_member_object(o->w, "model");
    ses_json_member_string(o->w, "type", "BPE");
    ses_json_put_key(o->w, "dropout");
    ses_json_put_null(o->w);
    ses_json_put_key(o->w, "unk_token");
    if (unk.p)
        ses_json_put_stringn(o->w, unk.p, unk.n);
    else
        ses_json_put_null(o->w);
}

/* ---- byte-level BPE ---- */

static void write_byte_level(ses_legacy_converter *o, const char *key, bool prefix)
{
    ses_json_member_object(o->w, key);
    ses_json_member_string(o->w, "type", "ByteLevel");
    ses_json_member_bool(o->w, "add_prefix_space", prefix);
    ses_json_member_bool(o->w, "trim_offsets", true);
    ses_json_member_bool(o->w, "use_regex", true);
    ses_json_end_object(o->w);
}

bool ses_legacy_write_byte_bpe(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e)
{
    const ses_legacy_roles *r = f->variant;
    ses_legacy_merges m;
    if (!ses_legacy_read_vocab(o, "vocab.json", e) ||
        !ses_legacy_read_merges(o, SES_LEGACY_MERGES_STRICT, &m, e))
        return false;
    bool ok = ses_legacy_begin_json(o, e) && ses_legacy_write_roles(o, r, NULL, e) &&
              ses_legacy_put_json(o, "normalizer", "null", e);
    if (ok) write_byte_level(o, "pre_tokenizer", ses_legacy_get_bool(o, "add_prefix_space", false));
    ok = ok && ses_legacy_write_post(o, r, e);
    if (ok) {
        write_byte_level(o, "decoder", true);
        begin_model(o, (ses_string){ NULL, 0 });
        ses_json_member_string(o->w, "continuing_subword_prefix", "");
        ses_json_member_string(o->w, "end_of_word_suffix", "");
        ses_json_put_key(o->w, "vocab");
        ses_vocab_save(&o->vocab, o->w);
        write_merges(o, &m);
        ses_json_end_object(o->w);
        ses_legacy_end_json(o);
    }
    ses_legacy_merges_free(&m);
    return ok;
}

/* ---- BPE with an end-of-word suffix ---- */

/* A token as spelled in the merges. CTRL writes "ab@@" for ab inside a word and "ab" for ab at its end. */
static ses_string merge_spelling(const ses_legacy_converter *o, int32_t id, bool at_signs, ses_string unk,
                                 ses_buf *buf)
{
    size_t n;
    const char *s = ses_vocab_token(&o->vocab, id, &n);
    if (!s || !at_signs || (n == unk.n && !memcmp(s, unk.p, n))) return (ses_string){ s, n };
    buf->len = 0;
    bool inside = n > 2 && !memcmp(s + n - 2, "@@", 2);
    ses_buf_append(buf, s, inside ? n - 2 : n);
    if (!inside) ses_buf_puts(buf, "</w>");
    return (ses_string){ buf->data, buf->len };
}

/* Give every symbol that merging can produce an id. Symbols missing in the vocabulary get ids after it;
 * they are unknown if they remain in the result. */
static bool build_merge_vocab(ses_legacy_converter *o, const ses_legacy_merges *m, bool at_signs,
                              ses_string unk, ses_vocab *v, ses_err *e)
{
    size_t bytes = o->vocab.filled + (size_t)o->vocab.size * 4, size = (size_t)o->vocab.size + 3 * m->n;
    int32_t next = o->vocab.size, other;
    for (size_t i = 0; i < m->n; i++) bytes += 2 * (m->pair[i][0].n + m->pair[i][1].n);
    if (!ses_vocab_reserve(v, size, bytes, &o->mem, e)) return false;
    ses_buf buf = { 0 };
    for (int32_t id = 0; id < o->vocab.size; id++) {
        ses_string s = merge_spelling(o, id, at_signs, unk, &buf);
        if (s.p && !ses_vocab_add(v, id, s.p, s.n, &other)) {
            ses_buf_free(&buf);
            return ses_fail(e, SES_EFORMAT, "vocab.json: ids %d and %d have the same token", other, id);
        }
    }
    for (size_t i = 0; i < m->n; i++) {
        buf.len = 0;
        for (int k = 0; k < 2; k++) {
            ses_buf_append(&buf, m->pair[i][k].p, m->pair[i][k].n);
            next += ses_vocab_add(v, next, m->pair[i][k].p, m->pair[i][k].n, &other);
        }
        if (!ses_buf_ok(&buf, e)) break;
        next += ses_vocab_add(v, next, buf.data, buf.len, &other);
    }
    v->size = next;
    bool ok = ses_buf_ok(&buf, e);
    ses_buf_free(&buf);
    return ok;
}

static void put_pattern(ses_legacy_converter *o, const char *kind, const char *pattern)
{
    ses_json_member_object(o->w, "pattern");
    ses_json_member_string(o->w, kind, pattern);
    ses_json_end_object(o->w);
}

static bool write_normalizer(ses_legacy_converter *o, const ses_legacy_word_variant *r, ses_err *e)
{
    if (!r->replace) return ses_legacy_put_json(o, "normalizer", r->normalizer, e);
    ses_legacy_begin_sequence(o, "normalizer", "normalizers");
    for (const ses_legacy_replace *x = r->replace; x->from; x++) {
        ses_json_begin_object(o->w);
        ses_json_member_string(o->w, "type", "Replace");
        put_pattern(o, x->regex ? "Regex" : "String", x->from);
        ses_json_member_string(o->w, "content", x->to);
        ses_json_end_object(o->w);
    }
    bool ok = ses_legacy_put_json(o, NULL, r->normalizer, e);
    ses_legacy_end_sequence(o);
    return ok;
}

static bool write_pre_tokenizer(ses_legacy_converter *o, const ses_legacy_word_variant *r, ses_err *e)
{
    if (!r->words) return ses_legacy_put_json(o, "pre_tokenizer", r->pre_tokenizer, e);
    ses_json_member_object(o->w, "pre_tokenizer");
    ses_json_member_string(o->w, "type", "Split");
    put_pattern(o, "Regex", r->words);
    ses_json_member_string(o->w, "behavior", "Removed");
    ses_json_member_bool(o->w, "invert", true);
    ses_json_end_object(o->w);
    return true;
}

bool ses_legacy_write_word_bpe(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e)
{
    const ses_legacy_word_variant *r = f->variant;
    ses_legacy_merges m;
    ses_vocab v;
    ses_string unk = ses_legacy_role_token(o, "unk_token", "<unk>");
    if (!ses_legacy_read_vocab(o, "vocab.json", e) || !ses_legacy_read_merges(o, r->lines, &m, e))
        return false;
    bool ok = build_merge_vocab(o, &m, r->at_signs, unk, &v, e) && ses_legacy_begin_json(o, e) &&
              ses_legacy_write_roles(o, &r->roles, r->also, e) && write_normalizer(o, r, e) &&
              write_pre_tokenizer(o, r, e) && ses_legacy_write_post(o, &r->roles, e) &&
              ses_legacy_put_json(o, "decoder", "{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}", e);
    if (ok) {
        begin_model(o, unk);
        ses_json_member_string(o->w, "end_of_word_suffix", "</w>");
        if (v.size > o->vocab.size) ses_json_member_int(o->w, "unk_from", o->vocab.size);
        ses_json_put_key(o->w, "vocab");
        ses_vocab_save(&v, o->w);
        write_merges(o, &m);
        ses_json_end_object(o->w);
        ses_legacy_end_json(o);
    }
    ses_legacy_merges_free(&m);
    return ok;
}
