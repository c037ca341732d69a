/* SentencePiece models in a folder, with the ids that XLM-R, T5 and others assign to the pieces. */
#include "base/alloc.h"
#include "base/str.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "legacy_merges.h"
#include "legacy_variants.h"
#include "text/vocab/score_rounding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- pieces ---- */

typedef struct pieces {
    ses_string *name;
    double *score;
    size_t n, cap;
    size_t front, back; /* range of the model's pieces */
} pieces;

static bool put(pieces *p, ses_string name, double score, ses_err *e)
{
    if (p->n == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 1024;
        ses_string *names = ses_realloc_array(p->name, cap, sizeof *names, e);
        if (!names) return false;
        p->name = names;
        double *scores = ses_realloc_array(p->score, cap, sizeof *scores, e);
        if (!scores) return false;
        p->score = scores;
        p->cap = cap;
    }
    p->name[p->n] = name;
    p->score[p->n++] = score;
    return true;
}

/* Numbered tokens such as <unk_2> to <unk_102>: # is the number. Pegasus must never use them. */
static bool put_numbered(pieces *p, const char *name, size_t n, int first, int last, ses_arena *mem,
                         ses_err *e)
{
    const char *hash = memchr(name, '#', n);
    for (int i = first; hash && i <= last; i++) {
        char s[64];
        int len = snprintf(s, sizeof s, "%.*s%d%.*s", (int)(hash - name), name, i, (int)(name + n - hash - 1),
                           hash + 1);
        char *copy = ses_arena_strndup(mem, s, (size_t)len, e);
        if (!copy || !put(p, (ses_string){ copy, (size_t)len }, memcmp(s, "<unk_", 5) ? 0 : -100, e))
            return false;
    }
    return true;
}

/* Tokens separated by spaces; NAME*FIRST*LAST is a numbered range. */
static bool put_list(pieces *p, const char *list, ses_arena *mem, ses_err *e)
{
    while (list && *(list += strspn(list, " "))) {
        size_t n = strcspn(list, " "), star = strcspn(list, "* ");
        bool ok, unused = n == 12 && !memcmp(list, "<unk>NOTUSED", 12);
        if (star < n) {
            char *end;
            long first = strtol(list + star + 1, &end, 10), last = strtol(end + 1, NULL, 10);
            ok = put_numbered(p, list, star, (int)first, (int)last, mem, e);
        } else {
            ok = put(p, (ses_string){ list, n }, unused ? -100 : 0, e);
        }
        if (!ok) return false;
        list += n;
    }
    return true;
}

/* Whether a piece ends in a digit and a comma. */
static bool ends_in_digit_comma(ses_string s)
{
    if (s.n < 2 || s.p[s.n - 1] != ',') return false;
    size_t at = s.n - 2;
    while (at && ses_utf8_continues(s.p[at])) at--;
    uint32_t c;
    return ses_utf8_decode(s.p + at, s.n - 1 - at, &c) && ses_cp(c)->gc == SES_GC_ND;
}

static bool collect_pieces(ses_legacy_converter *o, const ses_legacy_spm_variant *r, const ses_spm *m,
                           pieces *p, ses_err *e)
{
    char name[32];
    if ((size_t)r->skip > m->n) return ses_fail(e, SES_EFORMAT, "only %zu pieces", m->n);
    if (!put_list(p, r->front, &o->mem, e)) return false;
    p->front = p->n;
    for (size_t i = (size_t)r->skip; i < m->n; i++) {
        double score = m->piece[i].score;
        if (r->no_commas && ends_in_digit_comma(m->piece[i].piece)) score -= 100;
        if (!put(p, m->piece[i].piece, score, e)) return false;
    }
    p->back = p->n;
    int64_t extra = r->extra_ids ? ses_legacy_get_int(o, "extra_ids", r->extra_ids) : 0;
    if (extra < 0 || extra > 100000)
        return ses_fail(e, SES_EFORMAT, "tokenizer_config.json: invalid extra_ids %lld", (long long)extra);
    while (extra-- > 0) {
        int n = snprintf(name, sizeof name, "<extra_id_%lld>", (long long)extra);
        char *copy = ses_arena_strndup(&o->mem, name, (size_t)n, e);
        if (!copy || !put(p, (ses_string){ copy, (size_t)n }, 0, e)) return false;
    }
    return put_list(p, r->back, &o->mem, e);
}

/* Assign ids to the pieces and collect added tokens: control and user-defined pieces, roles, languages. */
static bool assign_ids(ses_legacy_converter *o, const ses_legacy_spm_variant *r, const ses_spm *m,
                       const pieces *p, ses_err *e)
{
    size_t bytes = 0;
    int32_t other;
    for (size_t i = 0; i < p->n; i++) bytes += p->name[i].n;
    if (!ses_vocab_reserve(&o->vocab, p->n, bytes, &o->mem, e)) return false;
    for (size_t i = 0; i < p->n; i++)
        ses_vocab_add(&o->vocab, (int32_t)i, p->name[i].p, p->name[i].n, &other);
    for (size_t i = 0; i < m->n; i++) {
        ses_string s = m->piece[i].piece;
        bool usable = i >= (size_t)r->skip || ses_vocab_id(&o->vocab, s.p, s.n) >= 0;
        if (m->piece[i].type == SES_SPM_CONTROL && usable && !ses_legacy_add(o, s, false, true, e))
            return false;
    }
    if (!ses_legacy_add_special(o, r->also, e)) return false;
    for (size_t i = 0; i < p->n; i++) {
        ses_string s = p->name[i];
        bool not_in_model = i < p->front || i >= p->back,
             unused = s.n > 7 && !memcmp(s.p + s.n - 7, "NOTUSED", 7);
        bool mask = s.n == 6 && !memcmp(s.p, "<mask>", 6);
        if (not_in_model && !unused && !ses_legacy_add(o, s, mask && r->roles.mask_lstrip, true, e))
            return false;
    }
    return true;
}

/* ---- stages ---- */

static bool put_charsmap(ses_legacy_converter *o, const ses_spm *m, ses_err *e)
{
    if (!m->normalizer.charsmap.n) return true;
    ses_json_begin_object(o->w);
    ses_json_member_string(o->w, "type", "Precompiled");
    bool ok = ses_spm_put_charsmap(o->w, "precompiled_charsmap", m->normalizer.charsmap, e);
    ses_json_end_object(o->w);
    return ok;
}

static const char one_space[] = "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"}";

/* White space as SentencePiece treats it: trim, collapse runs, and add one space to a non-empty text, at
 * the end if whitespace_as_suffix is set. A leading space is added by Metaspace, but only if there is
 * none; if spaces at the ends stay, it must be added here. */
static bool put_spaces(ses_legacy_converter *o, const ses_spm *m, ses_err *e)
{
    static const char trim_ends[] =
        "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(?<![ ▁])[ ▁]++\\\\z|\\\\A \"},"
        "\"content\":\"\"}",
                      append_space[] =
                          "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(?<=[\\\\s\\\\S])\\\\z\"},"
                          "\"content\":\" \"}",
                      prepend_space[] = "{\"type\":\"Prepend\",\"prepend\":\" \"}";
    bool remove = m->normalizer.remove_extra_whitespaces;
    if (remove &&
        (!ses_legacy_put_json(o, NULL, one_space, e) || !ses_legacy_put_json(o, NULL, trim_ends, e)))
        return false;
    if (!m->normalizer.add_dummy_prefix || (remove && !m->whitespace_as_suffix)) return true;
    return ses_legacy_put_json(o, NULL, m->whitespace_as_suffix ? append_space : prepend_space, e);
}

static bool put_normalizers(ses_legacy_converter *o, const ses_legacy_spm_variant *r, const ses_spm *m,
                            ses_err *e)
{
    bool lower = ses_legacy_get_bool(o, "do_lower_case", r->lower), ok = true;
    if (r->norm == SES_LEGACY_NORM_QUOTES) {
        ok = ses_legacy_put_json(
                 o, NULL, "{\"type\":\"Replace\",\"pattern\":{\"String\":\"``\"},\"content\":\"\\\"\"}", e) &&
             ses_legacy_put_json(
                 o, NULL, "{\"type\":\"Replace\",\"pattern\":{\"String\":\"''\"},\"content\":\"\\\"\"}", e);
        if (ok && !ses_legacy_get_bool(o, "keep_accents", false))
            ok = ses_legacy_put_json(o, NULL, "{\"type\":\"NFKD\"}", e) &&
                 ses_legacy_put_json(o, NULL, "{\"type\":\"StripAccents\"}", e);
    }
    if (ok && lower && r->norm >= SES_LEGACY_NORM_QUOTES)
        ok = ses_legacy_put_json(o, NULL, "{\"type\":\"Lowercase\"}", e);
    if (ok && r->norm == SES_LEGACY_NORM_LOWER_STRIP)
        ok = ses_legacy_put_json(o, NULL, "{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}", e);
    ok = ok && put_charsmap(o, m, e);
    if (r->plain) return ok && put_spaces(o, m, e);
    return ok && (r->norm == SES_LEGACY_NORM_CHARSMAP || ses_legacy_put_json(o, NULL, one_space, e));
}

static bool has_prefix(const ses_legacy_converter *o, const ses_legacy_spm_variant *r, const ses_spm *m)
{
    return r->plain ? m->normalizer.add_dummy_prefix && !m->whitespace_as_suffix
                    : ses_legacy_get_bool(o, "add_prefix_space", true);
}

/* Whether a piece continues after a space; then the text is not split at spaces. */
static bool crosses_spaces(const ses_spm *m)
{
    for (size_t i = 0; i < m->n; i++) {
        const char *p = m->piece[i].piece.p;
        size_t n = m->piece[i].piece.n;
        for (size_t k = 1; k + 3 <= n; k++)
            if (!memcmp(p + k, "▁", 3)) return true;
    }
    return false;
}

/* No leading space, leading space; the last two do not split at spaces. */
static const char *const metaspace[4] = {
    "{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"never\",\"split\":true}",
    "{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"always\",\"split\":true}",
    "{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"never\",\"split\":false}",
    "{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"always\",\"split\":false}",
};

static bool put_pre_tokenizer(ses_legacy_converter *o, const ses_legacy_spm_variant *r, const ses_spm *m,
                              bool prefix, ses_err *e)
{
    return (!r->whitespace || ses_legacy_put_json(o, NULL, "{\"type\":\"WhitespaceSplit\"}", e)) &&
           (!ses_legacy_get_bool(o, "split_by_punct", false) ||
            ses_legacy_put_json(o, NULL, "{\"type\":\"Punctuation\",\"behavior\":\"Isolated\"}", e)) &&
           ses_legacy_put_json(o, NULL, metaspace[prefix + (r->plain && crosses_spaces(m) ? 2 : 0)], e);
}

/* If there are byte tokens: join them before the leading space is removed. */
static const char *const byte_decoder[2] = {
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"▁\"},\"content\":"
    "\" \"},"
    "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]}",
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"▁\"},\"content\":"
    "\" \"},"
    "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" "
    "\",\"start\":1,\"stop\":0}]}",
};

static bool put_stages(ses_legacy_converter *o, const ses_legacy_spm_variant *r, const ses_spm *m, ses_err *e)
{
    ses_legacy_begin_sequence(o, "normalizer", "normalizers");
    bool prefix = has_prefix(o, r, m), ok = put_normalizers(o, r, m, e);
    ses_legacy_end_sequence(o);
    ses_legacy_begin_sequence(o, "pre_tokenizer", "pretokenizers");
    ok = ok && put_pre_tokenizer(o, r, m, prefix, e);
    ses_legacy_end_sequence(o);
    if (ok && r->plain && m->byte_fallback)
        return ses_legacy_write_post(o, &r->roles, e) &&
               ses_legacy_put_json(o, "decoder", byte_decoder[prefix], e);
    return ok && ses_legacy_write_post(o, &r->roles, e) &&
           ses_legacy_put_json(o, "decoder", metaspace[prefix], e);
}

static void put_unigram(ses_legacy_converter *o, const pieces *p, int64_t unk, bool bytes)
{
    ses_json_member_object(o->w, "model");
    ses_json_member_string(o->w, "type", "Unigram");
    ses_json_member_int(o->w, "unk_id", unk);
    ses_json_member_array(o->w, "vocab");
    for (size_t i = 0; i < p->n; i++) {
        ses_json_begin_array(o->w);
        ses_json_put_stringn(o->w, p->name[i].p, p->name[i].n);
        ses_json_put_real(o->w, ses_score_to_json(p->score[i]));
        ses_json_end_array(o->w);
    }
    ses_json_end_array(o->w);
    ses_json_member_bool(o->w, "byte_fallback", bytes);
    ses_json_end_object(o->w);
}

static int64_t unknown_of(const ses_spm *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->piece[i].type == SES_SPM_UNKNOWN) return (int64_t)i;
    return -1;
}

static ses_string setting_of(const ses_legacy_converter *o, const char *key, const char *def)
{
    ses_string s = { NULL, 0 };
    s.p = ses_json_string(ses_json_get(o->settings, key), &s.n);
    if (!s.p && def) s = (ses_string){ def, strlen(def) };
    return s;
}

static bool write_pieces(ses_legacy_converter *o, const ses_legacy_spm_variant *r, const ses_spm *m,
                         pieces *p, ses_err *e)
{
    int64_t unk = r->unk >= 0 ? r->unk : unknown_of(m);
    o->lang = setting_of(o, "src_lang", r->lang);
    if (!ses_spm_check(m, e) || !collect_pieces(o, r, m, p, e) || !assign_ids(o, r, m, p, e) ||
        !ses_legacy_begin_json(o, e) || !ses_legacy_write_roles(o, &r->roles, NULL, e) ||
        !put_stages(o, r, m, e))
        return false;
    if (unk < 0 || unk >= (int64_t)p->n) return ses_fail(e, SES_EFORMAT, "no piece has type unknown");
    bool bytes = r->plain && m->byte_fallback;
    if (m->kind != SES_SPM_UNIGRAM) {
        size_t merged = m->kind == SES_SPM_CHAR ? 0 : p->n; /* a character model is BPE without merges */
        if (!ses_legacy_put_spm_bpe(o, p->name, p->score, merged, (size_t)unk, bytes, e)) return false;
    } else {
        put_unigram(o, p, unk, bytes);
    }
    ses_legacy_end_json(o);
    return true;
}

bool ses_legacy_write_spm(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e)
{
    static const char *const other[] = { "spiece.model", "sentencepiece.bpe.model", "spm.model",
                                         "tokenizer.model" };
    const ses_legacy_spm_variant *r = f->variant;
    const char *file = o->file ? o->file : r->file;
    for (size_t i = 0; !o->file && i < SES_LEN(other) && !ses_legacy_has_file(o, file); i++) file = other[i];
    char found[256];
    if (!o->file && !ses_legacy_has_file(o, file))
        file = ses_spm_find_file(o->dir, found) ? found : r->file; /* the latter for the error */
    ses_spm m = { 0 };
    pieces p = { 0 };
    size_t n;
    char *bytes = ses_legacy_read_file(o, file, &n, e);
    bool ok = bytes && (ses_spm_parse(&m, bytes, n, e) || ses_wrap(e, "%s/%s", o->dir, file));
    if (ok && m.kind == SES_SPM_WORD)
        ok = ses_fail(e, SES_EUNSUPPORTED, "%s/%s: a word model has no equivalent in tokenizer.json", o->dir,
                      file);
    ok = ok && write_pieces(o, r, &m, &p, e);
    ses_free(p.name);
    ses_free(p.score);
    ses_spm_free(&m);
    ses_free(bytes);
    return ok;
}
