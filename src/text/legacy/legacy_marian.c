/* Marian: source.spm segments the text, vocab.json assigns ids to the pieces. target.spm does so for texts of
 * the target language, whose ids are in target_vocab.json if the vocabularies are separate. transformers has
 * no tokenizer.json for it; it uses the pieces of SentencePiece. */
#include "base/alloc.h"
#include "base/str.h"
#include "legacy_variants.h"
#include "text/vocab/score_rounding.h"

#include <string.h>

static const ses_legacy_roles roles = { .eos = "</s>",
                                        .unk = "<unk>",
                                        .pad = "<pad>",
                                        .post = SES_LEGACY_POST_TEMPLATE,
                                        .single = "$A E",
                                        .pair = "$A $B E" };

/* ">>fra<<" at the start of a text names a language. It is not a special token: decoding keeps it. */
static bool add_languages(ses_legacy_converter *o, ses_err *e)
{
    for (int32_t id = 0; id < o->vocab.size; id++) {
        size_t n;
        const char *s = ses_vocab_token(&o->vocab, id, &n);
        if (!s || n < 5 || memcmp(s, ">>", 2) || memcmp(s + n - 2, "<<", 2)) continue;
        if (!ses_legacy_add(o, (ses_string){ s, n }, false, false, e)) return false;
    }
    return true;
}

/* Write stages of HF Tokenizers: pieces missing in source.spm get a score so low that they match only
 * unknown text. */
static bool write_unigram(ses_legacy_converter *o, const ses_spm *m, ses_err *e)
{
    enum { UNUSED = -100000 };
    ses_string unk = ses_legacy_role_token(o, "unk_token", "<unk>");
    double *score = ses_arena_array(&o->mem, (size_t)o->vocab.size, sizeof *score, e);
    if (!score) return false;
    for (int32_t id = 0; id < o->vocab.size; id++) score[id] = UNUSED;
    for (size_t i = 0; i < m->n; i++) {
        int32_t id = ses_vocab_id(&o->vocab, m->piece[i].piece.p, m->piece[i].piece.n);
        if (id >= 0 && m->piece[i].type == SES_SPM_NORMAL) score[id] = m->piece[i].score;
        if (id >= 0 && m->piece[i].type == SES_SPM_USER_DEFINED) score[id] = 0;
    }
    ses_json_member_object(o->w, "model");
    ses_json_member_string(o->w, "type", "Unigram");
    ses_json_member_int(o->w, "unk_id", ses_vocab_id(&o->vocab, unk.p, unk.n));
    ses_json_member_array(o->w, "vocab");
    for (int32_t id = 0; id < o->vocab.size; id++) {
        size_t n = 0;
        const char *s = ses_vocab_token(&o->vocab, id, &n);
        if (!s) return ses_fail(e, SES_EFORMAT, "vocab.json: no token has id %d", id);
        ses_json_begin_array(o->w);
        ses_json_put_stringn(o->w, s, n);
        ses_json_put_real(o->w, ses_score_to_json(score[id]));
        ses_json_end_array(o->w);
    }
    ses_json_end_array(o->w);
    ses_json_member_bool(o->w, "byte_fallback", false);
    ses_json_end_object(o->w);
    return true;
}

static bool write_portable_stages(ses_legacy_converter *o, const ses_spm *m, ses_err *e)
{
    static const char metaspace[] =
        "{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"always\",\"split\":true}";
    static const char ends[] =
        "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"\\\\A +| +\\\\z\"},\"content\":\"\"}";
    static const char runs[] = "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"}";
    ses_legacy_begin_sequence(o, "normalizer", "normalizers");
    bool ok = true;
    if (m->normalizer.charsmap.n) {
        ses_json_begin_object(o->w);
        ses_json_member_string(o->w, "type", "Precompiled");
        ok = ses_spm_put_charsmap(o->w, "precompiled_charsmap", m->normalizer.charsmap, e);
        ses_json_end_object(o->w);
    }
    if (m->normalizer.remove_extra_whitespaces)
        ok = ok && ses_legacy_put_json(o, NULL, ends, e) && ses_legacy_put_json(o, NULL, runs, e);
    ses_legacy_end_sequence(o);
    return ok && ses_legacy_put_json(o, "pre_tokenizer", metaspace, e) &&
           ses_legacy_put_json(o, "decoder", metaspace, e) && write_unigram(o, m, e);
}

bool ses_legacy_write_marian(ses_legacy_converter *o, const ses_legacy_family *f, ses_err *e)
{
    (void)f;
    size_t n;
    ses_spm m = { 0 };
    bool separate = ses_legacy_get_bool(o, "separate_vocabs", ses_legacy_has_file(o, "target_vocab.json"));
    const char *pieces = o->target ? "target.spm" : "source.spm",
               *ids = o->target && separate ? "target_vocab.json" : "vocab.json";
    char *bytes = ses_legacy_read_file(o, pieces, &n, e);
    bool ok = bytes && (ses_spm_parse(&m, bytes, n, e) || ses_wrap(e, "%s/%s", o->dir, pieces)) &&
              ses_spm_check(&m, e) && ses_legacy_read_vocab(o, ids, e) && ses_legacy_begin_json(o, e) &&
              (separate || add_languages(o, e)) && ses_legacy_write_roles(o, &roles, NULL, e) &&
              ses_legacy_write_post(o, &roles, e) &&
              (o->portable ? write_portable_stages(o, &m, e)
                           : ses_spm_write_stages(&m, &o->vocab,
                                                  ses_legacy_role_token(o, "unk_token", "<unk>"), o->w, e));
    if (ok) ses_legacy_end_json(o);
    ses_spm_free(&m);
    ses_free(bytes);
    return ok;
}
