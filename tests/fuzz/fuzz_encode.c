/* Encoding of arbitrary bytes: the first byte selects the tokenizer, the second the options; the rest is
 * text. Fast path and stages agree; offsets are inside the text and in order, except for reordered marks. */
#include "fuzz.h"
#include "sesame/json.h"
#include "text/tokenizer_impl.h"

enum { MOST = 64 };

static ses_tokenizer *all[MOST];
static size_t n_all, n_plain; /* the first n_plain have offsets inside the text */

static void load(const char *file)
{
    ses_json_doc *doc = ses_json_load(file, 1 << 24, NULL);
    const ses_json *setups = doc ? ses_json_get(ses_json_root(doc), "setups") : NULL;
    for (size_t i = 0; i < ses_json_len(setups) && n_all < MOST; i++) {
        size_t n;
        ses_json_writer *w = ses_json_writer_new(0, NULL);
        ses_json_put_value(w, ses_json_at(setups, i));
        const char *text = ses_json_writer_text(w, &n, NULL);
        all[n_all] = ses_tokenizer_from_json(text, n, NULL);
        MUST(all[n_all]);
        n_all++;
        ses_json_writer_free(w);
    }
    ses_json_free(doc);
    MUST(n_all);
}

/* Load the small tokenizers of the tests. Some of stages.json report offsets past the end of a text. */
static void load_all(void)
{
    load("tests/text/cases.json");
    n_plain = n_all;
    load("tests/text/stages.json");
}

static void same(const ses_encoding *a, const ses_encoding *b)
{
    MUST(a->n == b->n);
    for (size_t i = 0; i < a->n; i++) {
        MUST(a->id[i] == b->id[i] && a->word_id[i] == b->word_id[i] && a->type_id[i] == b->type_id[i]);
        MUST(!memcmp(&a->byte_offset[i], &b->byte_offset[i], sizeof *a->byte_offset) &&
             !memcmp(&a->char_offset[i], &b->char_offset[i], sizeof *a->char_offset));
    }
}

static void in_text(const ses_encoding *x, size_t n)
{
    for (size_t i = 0; i < x->n; i++)
        MUST(x->byte_offset[i].begin <= x->byte_offset[i].end && x->byte_offset[i].end <= n &&
             x->char_offset[i].end <= x->byte_offset[i].end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n_all) load_all();
    if (n < 2) return 0;
    const ses_tokenizer *t = all[data[0] % n_all];
    ses_tokenizer exact = *t;
    exact.fast_path = NULL;
    ses_encode_options o = { .no_special = data[1] & 1 };
    if (data[1] & 2) {
        o.truncation = (ses_truncation)(1 + data[1] / 4 % 3);
        o.max_length = 3 + data[1] / 16;
        o.truncate_left = data[1] & 8;
    }
    ses_input in = { .text = { (const char *)data + 2, n - 2 } };
    ses_err e[2] = { 0 };
    ses_encode_ctx *k[2] = { ses_encode_ctx_new(t, NULL), ses_encode_ctx_new(&exact, NULL) };
    bool ok[2];
    for (int i = 0; i < 2; i++) MUST(k[i]), ok[i] = ses_encode(k[i], &in, &o, &e[i]);
    MUST(ok[0] == ok[1] && (ok[0] || !strcmp(e[0].msg, e[1].msg)));
    if (ok[0]) {
        same(ses_encode_ctx_result(k[0]), ses_encode_ctx_result(k[1]));
        if (data[0] % n_all < n_plain) in_text(ses_encode_ctx_result(k[0]), n - 2);
        MUST(ses_encode_ctx_overflow_count(k[0]) == ses_encode_ctx_overflow_count(k[1]));
        for (size_t i = 0; i < ses_encode_ctx_overflow_count(k[0]) && i < 8; i++)
            same(ses_encode_ctx_overflow(k[0], i, NULL), ses_encode_ctx_overflow(k[1], i, NULL));
    }
    for (int i = 0; i < 2; i++) ses_encode_ctx_free(k[i]);
    return 0;
}
