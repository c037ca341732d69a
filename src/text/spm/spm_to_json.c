/* Writes a SentencePiece model as a tokenizer.json with stages of type "SentencePiece". */
#include "spm_to_json.h"

#include "base/alloc.h"
#include "base/base64.h"
#include "base/str.h"
#include "base/unicode/utf8.h"

bool ses_spm_put_charsmap(ses_json_writer *w, const char *key, ses_string charsmap, ses_err *e)
{
    char *text = ses_alloc(ses_base64_encoded_size(charsmap.n), e);
    if (!text) return false;
    ses_base64_encode(charsmap.p, charsmap.n, text);
    ses_json_member_stringn(w, key, text, ses_base64_encoded_size(charsmap.n));
    ses_free(text);
    return true;
}

static void put_pieces(ses_json_writer *w, const char *key, const ses_spm *m, ses_spm_piece_type type)
{
    ses_json_member_array(w, key);
    for (size_t i = 0; i < m->n; i++)
        if (m->piece[i].type == type) ses_json_put_stringn(w, m->piece[i].piece.p, m->piece[i].piece.n);
    ses_json_end_array(w);
}

static bool put_normalizer(ses_json_writer *w, const ses_spm_normalizer *n, ses_err *e)
{
    ses_json_member_bool(w, "add_dummy_prefix", n->add_dummy_prefix);
    ses_json_member_bool(w, "remove_extra_whitespaces", n->remove_extra_whitespaces);
    ses_json_member_bool(w, "escape_whitespaces", n->escape_whitespaces);
    return ses_spm_put_charsmap(w, "charsmap", n->charsmap, e);
}

static void put_model(ses_json_writer *w, const ses_spm *m, const ses_vocab *vocab, ses_string unk)
{
    static const char *const kind[] = { "unigram", "bpe", "word", "char" };
    static const char *const type[] = { "normal", "unknown", "control", "user_defined", "unused", "byte" };
    ses_json_member_string(w, "kind", kind[m->kind - 1]);
    ses_json_member_bool(w, "byte_fallback", m->byte_fallback);
    if (vocab) {
        ses_json_member_stringn(w, "unk_token", unk.p, unk.n);
        ses_json_put_key(w, "vocab");
        ses_vocab_save(vocab, w);
    }
    ses_json_member_array(w, "pieces");
    for (size_t i = 0; i < m->n; i++) {
        const ses_spm_piece *p = &m->piece[i];
        ses_json_begin_array(w);
        ses_json_put_stringn(w, p->piece.p, p->piece.n);
        ses_json_put_float(w, p->score);
        if (p->type != SES_SPM_NORMAL) ses_json_put_string(w, type[p->type - 1]);
        ses_json_end_array(w);
    }
    ses_json_end_array(w);
}

static ses_string unknown_of(const ses_spm *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->piece[i].type == SES_SPM_UNKNOWN) return m->piece[i].piece;
    return m->unk;
}

static bool put_decoder(ses_json_writer *w, const ses_spm *m, ses_err *e)
{
    ses_json_member_bool(w, "add_dummy_prefix", m->normalizer.add_dummy_prefix);
    ses_json_member_bool(w, "remove_extra_whitespaces", m->normalizer.remove_extra_whitespaces);
    ses_json_member_bool(w, "byte_fallback", m->byte_fallback);
    ses_string unk = unknown_of(m);
    ses_json_member_stringn(w, "unk", unk.p, unk.n);
    ses_json_member_stringn(w, "unk_surface", m->unk_surface.p, m->unk_surface.n);
    put_pieces(w, "control", m, SES_SPM_CONTROL);
    ses_json_put_key(w, "denormalizer");
    if (!m->denormalizer.charsmap.n) {
        ses_json_put_null(w);
        return true;
    }
    ses_json_begin_object(w);
    bool ok = put_normalizer(w, &m->denormalizer, e);
    ses_json_end_object(w);
    return ok;
}

static void begin_stage(ses_json_writer *w, const char *key)
{
    ses_json_member_object(w, key);
    ses_json_member_string(w, "type", "SentencePiece");
}

bool ses_spm_check(const ses_spm *m, ses_err *e)
{
    for (size_t i = 0; i < m->n; i++)
        if (ses_utf8_valid(m->piece[i].piece.p, m->piece[i].piece.n) != m->piece[i].piece.n)
            return ses_fail(e, SES_EFORMAT, "piece %zu is not valid UTF-8", i);
        else if (!(m->piece[i].score - m->piece[i].score == 0))
            return ses_fail(e, SES_EFORMAT, "piece %zu: the score is not finite", i);
    if (ses_utf8_valid(m->unk_surface.p, m->unk_surface.n) != m->unk_surface.n)
        return ses_fail(e, SES_EFORMAT, "unk_surface is not valid UTF-8");
    return m->n || ses_fail(e, SES_EFORMAT, "not a SentencePiece model: no pieces");
}

bool ses_spm_write_stages(const ses_spm *m, const ses_vocab *vocab, ses_string unk, ses_json_writer *w,
                          ses_err *e)
{
    if (!ses_spm_check(m, e)) return false;
    begin_stage(w, "normalizer");
    bool ok = put_normalizer(w, &m->normalizer, e);
    ses_json_member_bool(w, "whitespace_as_suffix", m->whitespace_as_suffix);
    put_pieces(w, "user_defined", m, SES_SPM_USER_DEFINED);
    ses_json_end_object(w);
    begin_stage(w, "model");
    put_model(w, m, vocab, unk);
    ses_json_end_object(w);
    begin_stage(w, "decoder");
    ok = ok && put_decoder(w, m, e);
    ses_json_end_object(w);
    return ok;
}

bool ses_spm_write(const ses_spm *m, ses_json_writer *w, ses_err *e)
{
    ses_json_begin_object(w);
    ses_json_member_string(w, "version", "1.0");
    bool ok = ses_spm_write_stages(m, NULL, (ses_string){ NULL, 0 }, w, e);
    ses_json_end_object(w);
    return ok;
}
