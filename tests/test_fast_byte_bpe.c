/* The fast path for byte-level BPE against the stages, on random vocabularies and texts, at every
 * instruction set; and backtracking BPE against merging. */
#include "base/rng.h"
#include "base/unicode/utf8.h"
#include "check.h"
#include "text/fast/fast_byte_bpe.h"
#include "text/vocab/byte_chars.h"

typedef struct dice {
    ses_rng_key key;
    uint64_t n;
} dice;

static uint32_t roll(dice *d, uint32_t below) { return ses_rand32(d->key, d->n++) % below; }

/* ---- vocabularies ---- */

enum { MERGES = 400, MAX_TOKEN = 24 };

typedef struct token {
    uint8_t byte[MAX_TOKEN];
    size_t n;
} token;

static void put_token(ses_json_writer *w, const token *t, bool key)
{
    char s[2 * MAX_TOKEN];
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) n += ses_utf8_encode(ses_byte_char(t->byte[i]), s + n);
    key ? ses_json_put_keyn(w, s, n) : ses_json_put_stringn(w, s, n);
}

/* Uses the bytes of the texts, so that merges apply; tokens are merged from earlier ones. */
static size_t draw_merges(dice *d, token *t, uint16_t (*pair)[2])
{
    static const char common[] = " etaoinsh'1. \n\xc3\xa9\xe6\x97\xa5";
    size_t n = 256, merges = 0;
    for (int i = 0; i < 256; i++) t[i] = (token){ { (uint8_t)i }, 1 };
    while (merges < MERGES) {
        size_t part[2];
        for (int k = 0; k < 2; k++)
            part[k] = n > 256 && roll(d, 2) ? 256 + roll(d, (uint32_t)(n - 256))
                                            : (uint8_t)common[roll(d, sizeof common - 1)];
        token new = t[part[0]];
        if (new.n + t[part[1]].n > MAX_TOKEN) {
            merges++;
            continue;
        }
        memcpy(new.byte + new.n, t[part[1]].byte, t[part[1]].n);
        new.n += t[part[1]].n;
        bool old = false;
        for (size_t i = 0; i < n; i++) old |= t[i].n == new.n && !memcmp(t[i].byte, new.byte, new.n);
        merges++;
        if (old) continue;
        pair[n - 256][0] = (uint16_t)part[0];
        pair[n - 256][1] = (uint16_t)part[1];
        t[n++] = new;
    }
    return n;
}

/* twice: some token results from two merges, so that backtracking does not apply. */
static ses_tokenizer *draw_tokenizer(dice *d, bool prefix, bool twice)
{
    static token t[256 + MERGES];
    static uint16_t pair[MERGES][2];
    ses_err e = { 0 };
    size_t n = draw_merges(d, t, pair), len;
    ses_json_writer *w = ses_json_writer_new(-1, &e);
    static const char head[] =
        "{\"version\":\"1.0\",\"added_tokens\":["
        "{\"id\":900,\"content\":\"<|e|>\",\"normalized\":false,\"special\":true},"
        "{\"id\":901,\"content\":\"[M]\",\"normalized\":true,\"lstrip\":true,\"special\":true}]}";
    ses_json_doc *h = ses_json_parse(head, strlen(head), &e);
    ses_json_begin_object(w);
    ses_json_put_key(w, "added_tokens");
    ses_json_put_value(w, ses_json_get(ses_json_root(h), "added_tokens"));
    ses_json_put_key(w, "pre_tokenizer");
    ses_json_begin_object(w);
    ses_json_put_key(w, "type");
    ses_json_put_string(w, "ByteLevel");
    ses_json_put_key(w, "add_prefix_space");
    ses_json_put_bool(w, prefix);
    ses_json_end_object(w);
    ses_json_put_key(w, "model");
    ses_json_begin_object(w);
    ses_json_put_key(w, "type");
    ses_json_put_string(w, "BPE");
    ses_json_put_key(w, "ignore_merges");
    ses_json_put_bool(w, roll(d, 4) == 0);
    ses_json_put_key(w, "vocab");
    ses_json_begin_object(w);
    for (size_t i = 0; i < n; i++) {
        put_token(w, &t[i], true);
        ses_json_put_int(w, (int64_t)i);
    }
    ses_json_end_object(w);
    ses_json_put_key(w, "merges");
    ses_json_begin_array(w);
    for (size_t i = 256; i < n; i++)
        for (int k = 0; k < 1 + (twice && t[i].n == 3 && i % 2); k++) {
            token a = t[pair[i - 256][0]], b = t[pair[i - 256][1]];
            if (k) a = (token){ { t[i].byte[0] }, 1 }, b = (token){ { t[i].byte[1], t[i].byte[2] }, 2 };
            bool known = !k;
            for (size_t j = 256; !known && j < i; j++) known = t[j].n == 2 && !memcmp(t[j].byte, b.byte, 2);
            if (!known) continue;
            ses_json_begin_array(w);
            put_token(w, &a, false);
            put_token(w, &b, false);
            ses_json_end_array(w);
        }
    ses_json_end_array(w);
    ses_json_end_object(w);
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, &len, &e);
    ses_tokenizer *tok = text ? ses_tokenizer_from_json(text, len, &e) : NULL;
    CHECK_MSG(tok, "%s", e.msg);
    ses_json_writer_free(w);
    ses_json_free(h);
    return tok;
}

/* ---- texts ---- */

static size_t draw_text(dice *d, char *out, size_t max)
{
    static const char *const part[] = {
        "the",
        " ",
        " ",
        "  ",
        "\n",
        "\t",
        "1",
        "23",
        "'s",
        "'ll",
        "'",
        "'re",
        "'t",
        "'Ve",
        ".",
        ",\"",
        "!?",
        "é",
        "日本",
        "\xc2\xa0",
        "\u3000",
        "ß",
        "٣",
        "👍",
        "<|e|>",
        "<|e",
        " [M]",
        "[M]",
        "in",
        "on",
        "eta",
        "    ",
        "\r\n",
        "x",
        "²",
        "'d",
        "\u200b",
        "e\u0301",
        "\xff",
        "\xe6\x97",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "hello",
        "\u2028",
        "Ω",
        "ж",
        "''",
        "\xc2\x85"
    };
    size_t n = 0, want = max * roll(d, 100) / 100;
    bool bad = roll(d, 20) == 0;
    while (n < want) {
        const char *s = part[roll(d, SES_LEN(part))];
        size_t len = strlen(s), times = roll(d, 60) ? 1 : 1 + roll(d, 3000);
        if (!bad && ses_utf8_valid(s, len) != len) continue;
        for (; times && n + len <= max; times--, n += len) memcpy(out + n, s, len);
        if (n + len > max) break;
    }
    return n;
}

static bool same(const ses_encoding *a, const ses_encoding *b)
{
    if (!a->n || a->n != b->n) return a->n == b->n;
    return !memcmp(a->id, b->id, a->n * sizeof *a->id) &&
           !memcmp(a->byte_offset, b->byte_offset, a->n * sizeof *a->byte_offset) &&
           !memcmp(a->char_offset, b->char_offset, a->n * sizeof *a->char_offset) &&
           !memcmp(a->word_id, b->word_id, a->n * sizeof *a->word_id);
}

static void set_level(ses_tokenizer *t, int level)
{
    ses_byte_bpe_fast *f = t->fast_path_self;
    f->classify = ses_byte_bpe_classify_ref;
    f->encode_words = ses_byte_bpe_encode_words_ref;
#if defined __x86_64__ && !defined SES_REF_ONLY
    if (level >= 1 && __builtin_cpu_supports("avx2"))
        f->classify = ses_byte_bpe_classify_avx2, f->encode_words = ses_byte_bpe_encode_words_avx2;
    if (level >= 2 && __builtin_cpu_supports("avx512bw")) f->classify = ses_byte_bpe_classify_avx512;
#else
    (void)level;
#endif
}

static void check_same(uint32_t round)
{
    static char text[20000];
    dice d = { { .seed = 11, .step = round }, 0 };
    ses_tokenizer *t = draw_tokenizer(&d, round & 1, round % 5 == 4);
    ses_err e = { 0 };
    if (!t || !CHECK(t->fast_path == &ses_fast_path_byte_bpe)) return;
    set_level(t, (int)(round % 3));
    ses_tokenizer plain = *t;
    plain.fast_path = NULL;
    ses_encode_ctx *fast = ses_encode_ctx_new(t, &e), *exact = ses_encode_ctx_new(&plain, &e);
    int wrong = 0;
    for (int i = 0; i < 60; i++) {
        size_t n = draw_text(&d, text, i % 3 ? 300 : sizeof text);
        ses_word_store *store = &((ses_byte_bpe_work *)fast->fast_path_work)->store;
        if (i % 11 == 10)
            store->head +=
                1u << (i % 2 ? SES_WORD_STORE_BITS + 1 : SES_WORD_STORE_BITS - 1); /* overwritten */
        if (i == 50) store->head = 1u << 31;                                       /* exhausted */
        ses_input in = { .text = { text, n } };
        ses_encode_options o = { 0 };
        if (i % 4 == 1)
            o = (ses_encode_options){ .truncation = SES_TRUNCATE_LONGEST_FIRST,
                                      .max_length = roll(&d, 60),
                                      .truncate_left = i % 8 == 1 };
        bool ok = ses_encode(fast, &in, &o, &e) && ses_encode(exact, &in, &o, &e);
        wrong += !ok || !same(ses_encode_ctx_result(fast), ses_encode_ctx_result(exact));
    }
    CHECK_MSG(!wrong, "round %u: %d of 60 texts differ (%s)", round, wrong, e.msg);
    ses_encode_ctx_free(fast);
    ses_encode_ctx_free(exact);
    ses_tokenizer_free(t);
}

/* Words of 256 to 1000 bytes are cached whole: length and token count take two bytes. */
static void check_cached_long_words(void)
{
    static char word[SES_WORD_STORE_LONG];
    memset(word, 'q', sizeof word);
    dice d = { { .seed = 14 }, 0 };
    ses_tokenizer *t = draw_tokenizer(&d, false, false);
    ses_err e = { 0 };
    ses_encode_ctx *k = t ? ses_encode_ctx_new(t, &e) : NULL;
    for (size_t n = 250; k && n <= sizeof word; n += 50) {
        const ses_byte_bpe_fast *f = t->fast_path_self;
        const ses_word_store *s = &((ses_byte_bpe_work *)k->fast_path_work)->store;
        CHECK(ses_encode(k, &(ses_input){ .text = { word, n } }, NULL, &e));
        size_t tokens = ses_encode_ctx_result(k)->n;
        const ses_word_record *x =
            ses_word_store_at(s, ses_word_store_find(s, ses_word_store_hash(&f->hash, word, n, 0)));
        CHECK(x && ses_word_record_matches(x, word, n, 0) && x->n == tokens);
        CHECK(ses_encode(k, &(ses_input){ .text = { word, n } }, NULL, &e));
        const ses_encoding *r = ses_encode_ctx_result(k);
        CHECK(r->n == tokens && r->byte_offset[r->n - 1].end == n);
    }
    ses_encode_ctx_free(k);
    ses_tokenizer_free(t);
}

/* Texts without spaces, so long that merging must not take quadratic time. */
static void check_long(void)
{
    enum { N = 3 << 20 };
    dice d = { { .seed = 12 }, 0 };
    ses_tokenizer *t = draw_tokenizer(&d, false, false);
    ses_err e = { 0 };
    ses_encode_ctx *k = t ? ses_encode_ctx_new(t, &e) : NULL;
    char *text = malloc(N);
    for (int i = 0; k && text && i < 3; i++) {
        for (size_t j = 0; j < N; j++) text[j] = i == 0 ? 'e' : i == 1 ? "eta"[roll(&d, 3)] : ' ';
        CHECK(ses_encode(k, &(ses_input){ .text = { text, N } }, NULL, &e));
        const ses_encoding *r = ses_encode_ctx_result(k);
        CHECK(r->n && r->byte_offset[r->n - 1].end == N);
    }
    free(text);
    ses_encode_ctx_free(k);
    ses_tokenizer_free(t);
}

/* Backtracking yields the same tokens as merging. */
static void check_backtracking(void)
{
    enum { N = 2000 };
    static char text[N];
    static int32_t id[2][N];
    static uint32_t len[2][N];
    for (uint32_t round = 0; round < 40; round++) {
        dice d = { { .seed = 13, .step = round }, 0 };
        ses_tokenizer *t = draw_tokenizer(&d, false, false);
        ses_err e = { 0 };
        if (!t) return;
        const ses_byte_bpe_fast *f = t->fast_path_self;
        ses_bpe_backtrack w;
        ses_arena scratch = { 0 };
        bool fits = false, all = true;
        CHECK(ses_bpe_backtrack_open(&w, f->m, f->id, &fits, &e) && fits);
        for (int i = 0; fits && i < 200; i++) {
            size_t n = 1 + roll(&d, i % 10 ? 30 : N - 1), count[2] = { n, 0 };
            for (size_t j = 0; j < n; j++) text[j] = " etaoinsh"[roll(&d, 2 + round % 8)];
            for (size_t j = 0; j < n; j++) id[0][j] = f->id[(uint8_t)text[j]], len[0][j] = 1;
            all &= ses_merges_apply(&f->m->merges, id[0], len[0], &count[0], NULL, &scratch, &e) &&
                   ses_bpe_backtrack_encode(&w, text, n, id[1], len[1], &count[1], &scratch, &e) &&
                   count[0] == count[1] && !memcmp(id[0], id[1], count[0] * sizeof id[0][0]) &&
                   !memcmp(len[0], len[1], count[0] * 4);
        }
        CHECK_MSG(all, "round %u", round);
        ses_bpe_backtrack_close(&w);
        ses_arena_free(&scratch);
        ses_tokenizer_free(t);
    }
}

int main(void)
{
    check_backtracking();
    for (uint32_t round = 0; round < 45; round++) check_same(round);
    check_cached_long_words();
    check_long();
    return check_report();
}
