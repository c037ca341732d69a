/* bench tokenizer: megabytes of text per second, ids and offsets, line by line. Uses the vocabularies and
 * texts of the shared test data if present, else a synthetic vocabulary and text. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/thread_pool.h"
#include "bench.h"
#include "cli/standard_output.h"
#include "cli/ui/text_table.h"
#include "sesame/tokenizer.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT = 8 << 20, QUICK_TEXT = 1 << 20, WORDS = 6000, MAX_TEXTS = 4 };

typedef struct text {
    const char *name;
    ses_buf b;
} text;

/* The lines of one thread. */
typedef struct worker {
    ses_encode_ctx *k;
    const char *p;
    size_t n, tokens;
    bool ok;
} worker;

typedef struct run {
    ses_thread_pool *pool;
    worker *worker;
    int threads;
} run;

/* ---- texts ---- */

static uint32_t next(uint32_t *state) { return *state = *state * 1664525 + 1013904223; }

/* Word i of the synthetic language: two to four syllables. */
static void put_word(ses_buf *b, uint32_t i)
{
    static const char consonants[] = "bdfgklmnprstvz", vowels[] = "aeiou";
    uint32_t state = i * 2654435761u + 12345;
    for (uint32_t n = 2 + next(&state) % 3; n; n--) {
        ses_buf_put(b, consonants[(next(&state) >> 8) % (sizeof consonants - 1)]);
        ses_buf_put(b, vowels[(next(&state) >> 8) % (sizeof vowels - 1)]);
    }
}

/* Draws a word; low numbers are frequent, roughly as in a natural language. */
static uint32_t draw_word(uint32_t *state)
{
    uint32_t a = (next(state) >> 8) % WORDS, b = (next(state) >> 8) % WORDS, c = (next(state) >> 8) % WORDS;
    uint32_t low = a < b ? a : b;
    return (low < c ? low : c) * (1 + (next(state) >> 8) % 4 / 3);
}

static void synthetic_prose(ses_buf *b, size_t bytes, const char *space)
{
    uint32_t state = 1;
    while (b->len < bytes) {
        for (uint32_t words = 20 + (next(&state) >> 8) % 180; words; words--) {
            put_word(b, draw_word(&state));
            ses_buf_puts(b, (next(&state) >> 8) % 9 ? space : ", ");
        }
        ses_buf_puts(b, ".\n");
    }
}

static ses_tokenizer *synthetic_tokenizer(ses_err *e)
{
    ses_buf b = { 0 };
    int id = 1;
    ses_buf_puts(
        &b, "{\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
            "\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"[UNK]\":0");
    for (char c = 'a'; c <= 'z'; c++, id += 2)
        ses_buf_appendf(&b, ",\"%c\":%d,\"##%c\":%d", c, id, c, id + 1);
    ses_buf word = { 0 }, all = { 0 };
    for (uint32_t i = 0; i < WORDS; i++) { /* skip duplicates */
        word.len = 0;
        ses_buf_put(&word, '"');
        put_word(&word, i);
        ses_buf_puts(&word, "\":");
        if (!word.data || (all.data && strstr(all.data, word.data))) continue;
        ses_buf_append(&all, word.data, word.len);
        ses_buf_appendf(&b, ",%s%d", word.data, id++);
    }
    ses_buf_puts(&b, "}}}");
    ses_tokenizer *t = ses_buf_ok(&b, e) ? ses_tokenizer_from_json(b.data, b.len, e) : NULL;
    ses_buf_free(&b);
    ses_buf_free(&word);
    ses_buf_free(&all);
    return t;
}

static bool read_text(ses_buf *b, const char *dir, const char *name)
{
    char path[1024];
    size_t n;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    char *s = ses_file_read(path, (size_t)1 << 28, &n, NULL);
    if (s) ses_buf_append(b, s, n);
    ses_free(s);
    return s != NULL;
}

static void repeat(ses_buf *b, size_t bytes)
{
    size_t n = b->len;
    while (n && b->len + n <= bytes && ses_buf_reserve(b, n)) ses_buf_append(b, b->data, n);
}

static size_t read_texts(text *t, const char *dir, size_t bytes)
{
    static const char *const languages[] = {
        "eng",      "deu_1996", "fra", "spa", "rus", "ell_monotonic", "arb",   "heb", "hin", "tha",
        "cmn_hans", "jpn",      "kor", "vie", "tur", "fin",           "pol",   "hun", "tam", "kat",
        "ita",      "por_BR",   "nld", "swe", "ces", "ukr",           "pes_1", "ben", "hye", "ind"
    };
    t[0].name = "English";
    if (!read_text(&t[0].b, dir, "data/pretrain-corpus/sample-2mb.txt")) return 0;
    t[1].name = "many languages";
    for (size_t i = 0; i < SES_LEN(languages); i++) {
        char name[64];
        snprintf(name, sizeof name, "vocab/text/udhr/%s.txt", languages[i]);
        read_text(&t[1].b, dir, name);
    }
    t[2].name = "no spaces";
    for (size_t i = 0; i < t[0].b.len; i++)
        if (t[0].b.data[i] != ' ') ses_buf_put(&t[2].b, t[0].b.data[i]);
    for (size_t i = 0; i < 3; i++) repeat(&t[i].b, bytes);
    return 3;
}

static size_t synthetic_texts(text *t, size_t bytes)
{
    t[0].name = "made-up prose";
    synthetic_prose(&t[0].b, bytes, " ");
    t[1].name = "no spaces";
    synthetic_prose(&t[1].b, bytes, "");
    return 2;
}

/* ---- measurement ---- */

static void encode_lines(void *ctx, int64_t i, void *scratch)
{
    (void)scratch;
    worker *s = &((run *)ctx)->worker[i];
    s->tokens = 0;
    for (const char *p = s->p, *end = s->p + s->n; p < end;) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((lf ? lf : end) - p);
        s->ok = s->ok && ses_encode(s->k, &(ses_input){ .text = { p, n } }, NULL, NULL);
        s->tokens += ses_encode_ctx_result(s->k)->n;
        p += n + 1;
    }
}

static void encode(void *ctx, int64_t call)
{
    run *r = ctx;
    (void)call;
    ses_parallel_for(r->pool, r->threads, encode_lines, r);
}

/* Returns the seconds of one pass over the text; 0: failed. */
static double measure(ses_bench *b, const ses_tokenizer *t, const ses_buf *in, size_t *tokens, ses_err *e)
{
    run r = { .threads = b->threads, .pool = ses_thread_pool_new(b->threads, e) };
    r.worker = ses_alloc_array((size_t)r.threads, sizeof *r.worker, e);
    bool ok = r.pool && r.worker;
    size_t at = 0;
    for (int i = 0; ok && i < r.threads; i++) { /* complete lines for each thread */
        size_t end = in->len / (size_t)r.threads * (size_t)(i + 1);
        if (i + 1 == r.threads) end = in->len;
        while (end < in->len && in->data[end - 1] != '\n') end++;
        r.worker[i] =
            (worker){ .k = ses_encode_ctx_new(t, e), .p = in->data + at, .n = end - at, .ok = true };
        ok = r.worker[i].k != NULL;
        at = end;
    }
    ses_bench_case timed = { .fn = encode, .ctx = &r };
    if (ok) ses_bench_time(b, &timed, 1);
    *tokens = 0;
    for (int i = 0; r.worker && i < r.threads; i++) {
        ok = ok && r.worker[i].ok;
        *tokens += r.worker[i].tokens;
        ses_encode_ctx_free(r.worker[i].k);
    }
    ses_free(r.worker);
    ses_thread_pool_free(r.pool);
    return ok ? timed.best : 0;
}

typedef struct result {
    const char *model, *text;
    double mb, tokens; /* millions per second */
    double load;       /* seconds to open the tokenizer */
} result;

static bool show(const ses_bench *b, const result *r, size_t n, ses_err *e)
{
    if (b->json) {
        bool ok = true;
        for (size_t i = 0; i < n && ok; i++) {
            char shape[96];
            snprintf(shape, sizeof shape, "%s, %s", r[i].model, r[i].text);
            ok = ses_bench_row(b, "tokenizer", shape, r[i].mb, "MB/s", -1, e);
        }
        return ok;
    }
    ses_text_table *t = ses_text_table_new("Tokenizer|Text|>MB/s|>M tokens/s|>ms to load", e);
    if (!t) return false;
    for (size_t i = 0; i < n; i++) {
        ses_text_table_cell(t, "%s", r[i].model);
        ses_text_table_cell(t, "%s", r[i].text);
        ses_text_table_cell(t, r[i].mb > 0 ? "%.0f" : "failed", r[i].mb);
        ses_text_table_cell(t, "%.1f", r[i].tokens);
        ses_text_table_cell(t, "%.1f", 1e3 * r[i].load);
    }
    ses_bench_heading(b, "tokenizer", "  ids and offsets, line by line, %d thread%s", b->threads,
                      b->threads == 1 ? "" : "s");
    bool ok = ses_text_table_print(t, stdout, &b->call->out, 0, e);
    putchar('\n');
    ok = ok && ses_stdout_flush(e);
    ses_text_table_free(t);
    return ok;
}

/* Opens the tokenizer several times; *best: seconds of the fastest. */
static ses_tokenizer *open_timed(const char *path, double *best, ses_err *e)
{
    ses_tokenizer *t = NULL;
    for (int i = 0; i < 5; i++) {
        ses_tokenizer_free(t);
        double start = ses_seconds();
        if (!(t = ses_tokenizer_open(path, e))) return NULL;
        double took = ses_seconds() - start;
        if (!i || took < *best) *best = took;
    }
    return t;
}

static bool run_all(ses_bench *b, ses_err *e)
{
    static const char *const names[] = {
        "bert-base-uncased", "bert-base-multilingual-cased", "gpt2",           "roberta-base",
        "t5-base",           "t5-base/spiece.model",         "albert-base-v2", "barthez"
    };
    const char *dir = getenv("SESAME_SHARED") ? getenv("SESAME_SHARED") : "../shared";
    text texts[MAX_TEXTS] = { 0 };
    result r[SES_LEN(names) * MAX_TEXTS];
    size_t n = 0, bytes = b->quick ? QUICK_TEXT : TEXT, n_texts = read_texts(texts, dir, bytes);
    bool real = n_texts > 0, ok = true;
    if (!real) n_texts = synthetic_texts(texts, bytes);
    size_t n_names = !real ? 1 : b->quick ? 5 : SES_LEN(names);
    b->total = (int64_t)(n_texts * n_names);
    for (size_t m = 0; ok && m < n_names; m++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/vocab/%s", dir, names[m]);
        double load = 0;
        ses_tokenizer *t = real ? open_timed(path, &load, e) : synthetic_tokenizer(e);
        ok = t != NULL;
        for (size_t i = 0; ok && i < n_texts && !ses_bench_stopped(); i++) {
            size_t tokens;
            double seconds = measure(b, t, &texts[i].b, &tokens, e);
            double per = seconds > 0 ? 1e-6 / seconds : 0;
            r[n++] = (result){ real ? names[m] : "made-up WordPiece", texts[i].name,
                               per * (double)texts[i].b.len, per * (double)tokens, load };
        }
        ses_tokenizer_free(t);
    }
    ses_progress_end(&b->progress);
    ok = ok && show(b, r, n, e);
    for (size_t i = 0; i < MAX_TEXTS; i++) ses_buf_free(&texts[i].b);
    return ok;
}

const ses_bench_kind ses_bench_tokenizer = {
    .name = "tokenizer", .run = run_all, .both_thread_counts = true, .cpu_only = true
};
