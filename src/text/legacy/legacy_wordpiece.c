/* WordPiece from vocab.txt, one token per line: BERT and models that share its tokenizer. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/strmap.h"
#include "base/unicode/utf8.h"
#include "folder/tf_folder.h"
#include "legacy.h"
#include "legacy_variants.h"

#include <string.h>

/* The end of a line, and where the next begins: \n, \r\n or \r. */
static const char *line_end(const char *p, const char *stop, const char **next)
{
    while (p < stop && *p != '\n' && *p != '\r') p++;
    *next = p < stop ? p + 1 + (*p == '\r' && p + 1 < stop && p[1] == '\n') : p;
    return p;
}

/* The last line of a duplicate token wins. */
static bool fill_vocab(ses_legacy_converter *o, const char *text, size_t n, const char *name, ses_err *e)
{
    const char *stop = text + n, *next;
    size_t lines = 0, bad = ses_utf8_valid(text, n);
    ses_strmap last = { 0 };
    if (bad != n) return ses_fail(e, SES_EFORMAT, "%s: invalid UTF-8 at byte %zu", name, bad);
    bool ok = true, fresh;
    for (const char *p = text, *end; ok && p < stop; p = next, lines++) {
        end = line_end(p, stop, &next);
        int64_t *at = ses_strmap_insert(&last, p, (size_t)(end - p), (int64_t)lines, &fresh, e);
        ok = at != NULL;
        if (ok) *at = (int64_t)lines;
    }
    ok = ok && ses_vocab_reserve(&o->vocab, lines, n, &o->mem, e);
    for (size_t i = 0; ok && i < last.count; i++) {
        int32_t other;
        ses_vocab_add(&o->vocab, (int32_t)last.entry[i].value, last.entry[i].key, last.entry[i].len, &other);
    }
    ses_strmap_free(&last);
    return ok;
}

static bool write_model(ses_legacy_converter *o, ses_string unk, ses_err *e)
{
    (void)e;
    ses_json_member_object(o->w, "model");
    ses_json_member_string(o->w, "type", "WordPiece");
    ses_json_member_stringn(o->w, "unk_token", unk.p, unk.n);
    ses_json_member_string(o->w, "continuing_subword_prefix", "##");
    ses_json_member_int(o->w, "max_input_chars_per_word", 100);
    ses_json_put_key(o->w, "vocab");
    ses_vocab_save(&o->vocab, o->w);
    ses_json_end_object(o->w);
    return true;
}

/* Does a token other than [UNK], <S> and the like have a capital letter? */
static bool has_capitals(const ses_vocab *v)
{
    for (int32_t id = 0; id < v->size; id++) {
        size_t n;
        const char *s = ses_vocab_token(v, id, &n);
        if (!s || (n && (*s == '[' || *s == '<'))) continue;
        for (size_t i = 0; i < n; i++)
            if (s[i] >= 'A' && s[i] <= 'Z') return true;
    }
    return false;
}

bool ses_legacy_lowercases(const ses_legacy_converter *o)
{
    bool lower;
    if (ses_json_bool(ses_json_get(o->settings, "do_lower_case"), &lower)) return lower;
    if (o->config || o->file || !ses_tf_folder_is(o->dir)) return true;
    ses_path_name name = ses_path_name_of(o->dir);
    if (strstr(name.s, "uncased") || strstr(name.s, "chinese")) return true;
    return !strstr(name.s, "cased") && !has_capitals(&o->vocab);
}

static void write_normalizer(ses_legacy_converter *o)
{
    bool strip;
    const ses_json *accents = ses_json_get(o->settings, "strip_accents");
    ses_json_member_object(o->w, "normalizer");
    ses_json_member_string(o->w, "type", "BertNormalizer");
    ses_json_member_bool(o->w, "clean_text", true);
    ses_json_member_bool(o->w, "handle_chinese_chars",
                         ses_legacy_get_bool(o, "tokenize_chinese_chars", true));
    ses_json_put_key(o->w, "strip_accents");
    if (ses_json_bool(accents, &strip))
        ses_json_put_bool(o->w, strip);
    else
        ses_json_put_null(o->w);
    ses_json_member_bool(o->w, "lowercase", ses_legacy_lowercases(o));
    ses_json_end_object(o->w);
}

bool ses_legacy_write_wordpiece(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e)
{
    const ses_legacy_roles *r = f->variant;
    size_t n;
    const char *file = o->file ? o->file : "vocab.txt";
    char *text = ses_legacy_read_file(o, file, &n, e);
    bool ok = text && fill_vocab(o, text, n, file, e) && ses_legacy_begin_json(o, e) &&
              ses_legacy_write_roles(o, r, NULL, e);
    if (ok) write_normalizer(o);
    ok =
        ok && ses_legacy_put_json(o, "pre_tokenizer", "{\"type\":\"BertPreTokenizer\"}", e) &&
        ses_legacy_write_post(o, r, e) &&
        ses_legacy_put_json(o, "decoder", "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}", e) &&
        write_model(o, ses_legacy_role_token(o, "unk_token", r->unk), e);
    if (ok) ses_legacy_end_json(o);
    ses_free(text);
    return ok;
}
