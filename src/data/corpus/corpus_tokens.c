/* Tokenization of documents for a corpus, and tokenizer fingerprints. */
#include "corpus_tokens.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "io/text_decoder.h"
#include "sesame/json.h"

#include <string.h>

/* A document in the worker's buffers: offsets of its arrays, and its counts. */
typedef struct stored {
    size_t token, sentence;
    ses_corpus_text text; /* pointers not set */
} stored;

bool ses_corpus_worker_open(ses_corpus_worker *w, const ses_corpus_options *o, ses_err *e)
{
    w->o = o;
    w->tokens = ses_encode_ctx_new(o->tokenizer, e);
    return w->tokens != NULL;
}

void ses_corpus_worker_free(ses_corpus_worker *w)
{
    ses_encode_ctx_free(w->tokens);
    ses_buf_free(&w->id);
    ses_buf_free(&w->word);
    ses_buf_free(&w->sentence);
    ses_buf_free(&w->out);
    ses_buf_free(&w->line);
}

/* Tokenizers without pre-tokenization (SentencePiece) mark word starts in the token. */
static bool marks_word_start(const ses_tokenizer *t, int32_t id)
{
    size_t n;
    const char *s = ses_tokenizer_id_to_token(t, id, &n);
    return s && ((n >= 3 && !memcmp(s, "\xe2\x96\x81", 3)) || (n >= 2 && !memcmp(s, "\xc4\xa0", 2)));
}

static bool add_sentence(ses_corpus_worker *w, stored *at, const char *p, size_t n, ses_err *e)
{
    ses_input in = { .text = { p, n } };
    if (!ses_encode(w->tokens, &in, &(ses_encode_options){ .no_special = true }, e)) return false;
    const ses_encoding *x = ses_encode_ctx_result(w->tokens);
    if (!x->n) return true;
    uint32_t first = (uint32_t)at->text.tokens;
    ses_buf_append(&w->sentence, &first, sizeof first);
    ses_buf_append(&w->id, x->id, x->n * sizeof *x->id);
    for (size_t i = 0; i < x->n; i++) {
        bool starts = i == 0 || x->word_id[i] != x->word_id[i - 1] || x->word_id[i] < 0 ||
                      marks_word_start(w->o->tokenizer, x->id[i]);
        ses_buf_put(&w->word, (char)starts);
        at->text.unknown += x->id[i] == w->o->unk_id;
    }
    at->text.tokens += (int64_t)x->n;
    at->text.sentences++;
    return ses_buf_ok(&w->id, e) && ses_buf_ok(&w->word, e) && ses_buf_ok(&w->sentence, e);
}

/* Adds the sentences of a line. more: another line follows. */
static bool add_line(ses_corpus_worker *w, stored *at, const char *p, size_t n, bool more, ses_err *e)
{
    static const ses_hash_key key = { 0x736573616d65, 4 };
    uint64_t pair[2] = { at->text.hash, ses_hash(key, p, n) };
    at->text.hash = ses_hash(key, pair, sizeof pair);
    while (n) {
        size_t end = w->o->split_sentences ? ses_sentence_end(p, n) : n;
        const char *text = p;
        size_t len = end;
        if (w->o->newline_tokens && more && end == n) {
            w->line.len = 0;
            ses_buf_append(&w->line, p, end);
            ses_buf_put(&w->line, '\n');
            if (!ses_buf_ok(&w->line, e)) return false;
            text = w->line.data;
            len = w->line.len;
        }
        if (!add_sentence(w, at, text, len, e)) return false;
        p += end;
        n -= end;
    }
    return true;
}

static bool add_lines(ses_corpus_worker *w, stored *at, const char *p, size_t n, ses_err *e)
{
    at->text.bytes = n;
    while (n) {
        const char *lf = memchr(p, '\n', n);
        size_t end = lf ? (size_t)(lf - p) : n, text = end;
        if (text && p[text - 1] == '\r') text--;
        bool more = lf && end + 1 < n;
        if (text && !add_line(w, at, p, text, more, e)) return false;
        p += lf ? end + 1 : end;
        n -= lf ? end + 1 : end;
    }
    return true;
}

static bool add_json_document(ses_corpus_worker *w, stored *at, const ses_text_document *d, ses_err *e)
{
    const char *field = w->o->field ? w->o->field : "text";
    size_t n = d->n;
    while (n && (d->p[n - 1] == '\n' || d->p[n - 1] == '\r')) n--;
    ses_json_doc *doc = ses_json_parse(d->p, n, e);
    if (!doc) return false;
    size_t len = 0;
    const ses_json *v = ses_json_get(ses_json_root(doc), field);
    const char *text = ses_json_string(v, &len);
    bool ok = text ? add_lines(w, at, text, len, e)
                   : ses_fail(e, SES_EFORMAT,
                              "no string field \"%s\"%s; select the text field with the option field",
                              ses_quoted_of(field, strlen(field)).s, v ? " (not a string)" : "");
    ses_json_free(doc);
    return ok;
}

static bool add_document(ses_corpus_worker *w, const ses_text_document *d, ses_err *e)
{
    stored at = { .token = w->id.len / sizeof(int32_t), .sentence = w->sentence.len / sizeof(uint32_t) };
    if (!w->json && !ses_text_check_lines(d->p, d->n, d->line, e)) return false;
    bool ok = w->json ? add_json_document(w, &at, d, e) : add_lines(w, &at, d->p, d->n, e);
    if (!ok) return ses_wrap(e, "line %llu", (unsigned long long)d->line);
    at.text.continues = d->continues;
    ses_buf_append(&w->out, &at, sizeof at);
    if (!ses_buf_ok(&w->out, e)) return false;
    w->n_out++;
    return true;
}

void ses_corpus_worker_run(ses_corpus_worker *w)
{
    w->id.len = w->word.len = w->sentence.len = w->out.len = 0;
    w->n_out = 0;
    w->e = (ses_err){ 0 };
    w->failed = false;
    for (size_t i = 0; i < w->n_docs && !w->failed; i++) w->failed = !add_document(w, &w->doc[i], &w->e);
}

ses_corpus_text ses_corpus_worker_text(const ses_corpus_worker *w, size_t i)
{
    stored at;
    memcpy(&at, w->out.data + i * sizeof at, sizeof at);
    at.text.id = w->id.data ? (const int32_t *)(const void *)w->id.data + at.token : NULL;
    at.text.word = w->word.data ? (const uint8_t *)w->word.data + at.token : NULL;
    at.text.sentence =
        w->sentence.data ? (const uint32_t *)(const void *)w->sentence.data + at.sentence : NULL;
    return at.text;
}

/* ---- the fingerprint ---- */

static char upper(char c) { return c >= 'a' && c <= 'z' ? (char)(c - 32) : c; }

/* Hashes the strings of all ids, and the ids of a text that consists of all these strings and of their upper
 * case. This runs every token through normalization, pre-tokenization and the model. */
bool ses_tokenizer_fingerprint(const ses_tokenizer *t, uint64_t *print, ses_err *e)
{
    static const ses_hash_key key = { 0x736573616d65, 5 };
    static const char extra[] = "Hello, World!  It's 3.14 \xc3\x89t\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87\tend";
    int64_t size = ses_tokenizer_vocab_size(t);
    ses_buf all = { 0 };
    ses_encode_ctx *k = ses_encode_ctx_new(t, e);
    const int32_t *id = NULL;
    size_t n_ids = 0;
    bool ok = k != NULL;
    for (int64_t i = 0; i < size && ok; i++) {
        size_t n = 0;
        const char *s = ses_tokenizer_id_to_token(t, (int32_t)i, &n);
        if (s) ses_buf_append(&all, s, n);
        ok = ses_buf_put(&all, s ? ' ' : '\n');
    }
    for (size_t i = 0, n = all.len; i < n && ok; i++) ok = ses_buf_put(&all, upper(all.data[i]));
    ses_buf_puts(&all, extra);
    ok = k && ses_buf_ok(&all, e) && ses_encode_ids(k, all.data, all.len, false, &id, &n_ids, e);
    if (ok) {
        uint64_t sum[3] = { (uint64_t)size, ses_hash(key, all.data, all.len),
                            ses_hash(key, id, n_ids * sizeof *id) };
        *print = ses_hash(key, sum, sizeof sum);
    }
    ses_encode_ctx_free(k);
    ses_buf_free(&all);
    return ok;
}
