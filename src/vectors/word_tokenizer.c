/* Writes a word-level tokenizer.json with the words of a file of vectors. */
#include "word_tokenizer.h"

#include "base/file.h"
#include "base/unicode/utf8.h"
#include "sesame/json.h"

#include <string.h>

static const char *const special[] = { "[PAD]", "[UNK]", "[SEP]" };
enum { SEP = 2 };

static bool is_special(ses_string w)
{
    for (size_t i = 0; i < SES_LEN(special); i++)
        if (w.n == strlen(special[i]) && !memcmp(w.p, special[i], w.n)) return true;
    return false;
}

static bool is_cased(const ses_vectors *v)
{
    for (int64_t i = 0; i < ses_vectors_count(v); i++) {
        ses_string w = ses_vectors_word(v, i);
        for (size_t j = 0; j < w.n && !is_special(w); j++)
            if (w.p[j] >= 'A' && w.p[j] <= 'Z') return true;
    }
    return false;
}

static void put_added_tokens(ses_json_writer *w)
{
    ses_json_member_array(w, "added_tokens");
    for (size_t i = 0; i < SES_LEN(special); i++) {
        ses_json_begin_object(w);
        ses_json_member_int(w, "id", (int64_t)i);
        ses_json_member_string(w, "content", special[i]);
        ses_json_member_bool(w, "single_word", false);
        ses_json_member_bool(w, "lstrip", false);
        ses_json_member_bool(w, "rstrip", false);
        ses_json_member_bool(w, "normalized", false);
        ses_json_member_bool(w, "special", true);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

/* One piece of a template: a sequence ("A", "B") or the special token. */
static void put_piece(ses_json_writer *w, const char *kind, const char *id, int64_t type)
{
    ses_json_begin_object(w);
    ses_json_member_object(w, kind);
    ses_json_member_string(w, "id", id);
    ses_json_member_int(w, "type_id", type);
    ses_json_end_object(w);
    ses_json_end_object(w);
}

static void put_template(ses_json_writer *w)
{
    ses_json_member_object(w, "post_processor");
    ses_json_member_string(w, "type", "TemplateProcessing");
    for (int pair = 0; pair < 2; pair++) {
        ses_json_member_array(w, pair ? "pair" : "single");
        for (int i = 0; i <= pair; i++) {
            put_piece(w, "Sequence", i ? "B" : "A", i);
            put_piece(w, "SpecialToken", special[SEP], i);
        }
        ses_json_end_array(w);
    }
    ses_json_member_object(w, "special_tokens");
    ses_json_member_object(w, special[SEP]);
    ses_json_member_string(w, "id", special[SEP]);
    ses_json_member_array(w, "ids");
    ses_json_put_int(w, SEP);
    ses_json_end_array(w);
    ses_json_member_array(w, "tokens");
    ses_json_put_string(w, special[SEP]);
    ses_json_end_array(w);
    ses_json_end_object(w);
    ses_json_end_object(w);
    ses_json_end_object(w);
}

static void put_type(ses_json_writer *w, const char *member, const char *type)
{
    ses_json_put_key(w, member);
    if (!type) {
        ses_json_put_null(w);
        return;
    }
    ses_json_begin_object(w);
    ses_json_member_string(w, "type", type);
    ses_json_end_object(w);
}

static void put_model(ses_json_writer *w, const ses_vectors *v, int64_t *skipped)
{
    int64_t id = 0;
    ses_json_member_object(w, "model");
    ses_json_member_string(w, "type", "WordLevel");
    ses_json_member_object(w, "vocab");
    for (; id < (int64_t)SES_LEN(special); id++) ses_json_member_int(w, special[id], id);
    *skipped = 0;
    for (int64_t i = 0; i < ses_vectors_count(v); i++) {
        ses_string word = ses_vectors_word(v, i);
        bool valid = ses_utf8_valid(word.p, word.n) == word.n;
        *skipped += !valid;
        if (!valid || is_special(word)) continue;
        ses_json_put_keyn(w, word.p, word.n);
        ses_json_put_int(w, id++);
    }
    ses_json_end_object(w);
    ses_json_member_string(w, "unk_token", "[UNK]");
    ses_json_end_object(w);
}

bool ses_word_tokenizer_write(const ses_vectors *v, const char *path, bool overwrite, int64_t *skipped,
                              ses_err *e)
{
    size_t n;
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "version", "1.0");
    put_added_tokens(w);
    put_type(w, "normalizer", is_cased(v) ? NULL : "Lowercase");
    put_type(w, "pre_tokenizer", "BertPreTokenizer");
    put_template(w);
    put_type(w, "decoder", NULL);
    put_model(w, v, skipped);
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, &n, e);
    ses_file_writer *f = text ? ses_file_writer_open(path, overwrite, e) : NULL;
    bool ok = f && ses_file_writer_put(f, text, n, e) && ses_file_writer_commit(f, e);
    ses_file_writer_free(f);
    ses_json_writer_free(w);
    return ok;
}
