/* Tokenizers against encodings by Hugging Face Tokenizers: ../shared/golden/tokenizers/NAME.jsonl.xz, made
 * with the tokenizer.json of ../shared/vocab/NAME. Prints one line of totals per file and the first
 * differences. */
#define _POSIX_C_SOURCE 200809L
#include "base/file.h"
#include "base/str.h"
#include "check.h"
#include "sesame/json.h"
#include "sesame/tokenizer.h"

#include <dirent.h>
#include <inttypes.h>

enum { SHOW = 5, LINE = 1 << 24 };

typedef struct run {
    const char *name;
    ses_encode_ctx *k;
    bool plain; /* not from a tokenizer.json */
    int cases, wrong, shown;
} run;

static void differ(run *r, int line, const char *what, const char *detail)
{
    if (r->shown++ < SHOW) printf("  %s line %d: %s%s%s\n", r->name, line, what, *detail ? ": " : "", detail);
}

static ses_string text_of(const ses_json *v)
{
    ses_string s = { 0 };
    s.p = ses_json_string(v, &s.n);
    return s;
}

static bool same_ids(const ses_json *want, const ses_encoding *got, char *detail, size_t size)
{
    size_t n = ses_json_len(want);
    for (size_t i = 0; i < n || i < got->n; i++) {
        int64_t id = -1;
        if (i < n) ses_json_int(ses_json_at(want, i), &id);
        if (i < n && i < got->n && got->id[i] == id) continue;
        snprintf(detail, size, "token %zu of %zu is %" PRId64 ", got %d of %zu", i, n, id,
                 i < got->n ? got->id[i] : -1, got->n);
        return false;
    }
    return true;
}

static bool same_offsets(const ses_json *want, const ses_encoding *got, char *detail, size_t size)
{
    for (size_t i = 0; i < got->n; i++) {
        int64_t a = -1, b = -1;
        ses_json_int(ses_json_at(ses_json_at(want, i), 0), &a);
        ses_json_int(ses_json_at(ses_json_at(want, i), 1), &b);
        if (got->char_offset[i].begin == (uint64_t)a && got->char_offset[i].end == (uint64_t)b) continue;
        snprintf(detail, size, "token %zu at [%" PRId64 ", %" PRId64 "), got [%u, %u)", i, a, b,
                 got->char_offset[i].begin, got->char_offset[i].end);
        return false;
    }
    return ses_json_len(want) == got->n;
}

/* Word ids; null is -1. */
static bool same_words(const ses_json *want, const ses_encoding *got)
{
    for (size_t i = 0; i < got->n; i++) {
        int64_t w = -1;
        ses_json_int(ses_json_at(want, i), &w);
        if (got->word_id[i] != w) return false;
    }
    return ses_json_len(want) == got->n;
}

static bool same_bytes(const ses_json *want, const uint8_t *got, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t w = -1;
        ses_json_int(ses_json_at(want, i), &w);
        if (got[i] != w) return false;
    }
    return ses_json_len(want) == n;
}

static bool compare(run *r, int line, const ses_json *v, const ses_encoding *got)
{
    char detail[160] = "";
    const char *what = NULL;
    if (!same_ids(ses_json_get(v, "i"), got, detail, sizeof detail))
        what = "ids";
    else if (!same_offsets(ses_json_get(v, "o"), got, detail, sizeof detail))
        what = "offsets";
    else if (!same_words(ses_json_get(v, "w"), got))
        what = "word ids";
    else if (!same_bytes(ses_json_get(v, "y"), got->type_id, got->n))
        what = "type ids";
    else if (!same_bytes(ses_json_get(v, "s"), got->special_mask, got->n))
        what = "special tokens mask";
    if (what) differ(r, line, what, detail);
    return !what;
}

static bool same_text(run *r, int line, const ses_json *v)
{
    const ses_encoding *got = ses_encode_ctx_result(r->k);
    ses_string want = text_of(ses_json_get(v, "d"));
    const char *text;
    size_t n;
    ses_err e = { 0 };
    if (!ses_decode(r->k, got->id, got->n, false, &text, &n, &e))
        return differ(r, line, "decode", e.msg), false;
    if (n == want.n && !memcmp(text, want.p, n)) return true;
    char detail[160];
    snprintf(detail, sizeof detail, "%.60s | %.60s", ses_quoted_of(want.p, want.n).s,
             ses_quoted_of(text, n).s);
    return differ(r, line, "decoded text", detail), false;
}

static bool same_overflow(run *r, int line, const ses_json *want)
{
    char detail[160] = "";
    size_t n = ses_encode_ctx_overflow_count(r->k);
    if (n != ses_json_len(want)) {
        snprintf(detail, sizeof detail, "%zu, got %zu", ses_json_len(want), n);
        return differ(r, line, "overflowing parts", detail), false;
    }
    for (size_t i = 0; i < n; i++)
        if (!same_ids(ses_json_at(want, i), ses_encode_ctx_overflow(r->k, i, NULL), detail, sizeof detail))
            return differ(r, line, "ids of an overflowing part", detail), false;
    return true;
}

static bool check_pair(run *r, int line, const ses_json *v)
{
    static const char *const names[] = { "none", "longest_first", "only_first", "only_second" };
    ses_encode_options o = { 0 };
    ses_string strategy = text_of(ses_json_get(v, "strategy"));
    for (int i = 1; i < 4; i++)
        if (strategy.p && !strcmp(strategy.p, names[i])) o.truncation = (ses_truncation)i;
    ses_json_int(ses_json_get(v, "max"), &o.max_length);
    ses_json_int(ses_json_get(v, "stride"), &o.stride);
    ses_err e = { 0 };
    ses_input in = { .text = text_of(ses_json_get(v, "a")), .pair = text_of(ses_json_get(v, "b")) };
    bool ok = ses_encode(r->k, &in, &o, &e);
    if (ses_json_get(v, "error")) return ok ? (differ(r, line, "an error was expected", ""), false) : true;
    if (!ok) return differ(r, line, "failed", e.msg), false;
    return compare(r, line, v, ses_encode_ctx_result(r->k)) &&
           same_overflow(r, line, ses_json_get(v, "over"));
}

static bool check_words(run *r, int line, const ses_json *v)
{
    const ses_json *list = ses_json_get(v, "words");
    size_t n = ses_json_len(list);
    ses_string *word = calloc(n + 1, sizeof *word);
    for (size_t i = 0; i < n; i++) word[i] = text_of(ses_json_at(list, i));
    ses_err e = { 0 };
    bool ok = ses_encode(r->k, &(ses_input){ .words = word, .n_words = n }, NULL, &e);
    if (!ok) differ(r, line, "failed", e.msg);
    ok = ok && compare(r, line, v, ses_encode_ctx_result(r->k));
    free(word);
    return ok;
}

static bool check_text(run *r, int line, const ses_json *v)
{
    ses_err e = { 0 };
    if (!ses_encode(r->k, &(ses_input){ .text = text_of(ses_json_get(v, "t")) }, NULL, &e))
        return differ(r, line, "failed", e.msg), false;
    return compare(r, line, v, ses_encode_ctx_result(r->k)) && same_text(r, line, v);
}

/* SentencePiece: ids, pieces, text. Legacy tokenizer classes: ids. */
static bool check_plain(run *r, int line, const ses_json *v)
{
    char detail[160] = "";
    const ses_json *pieces = ses_json_get(v, "p");
    ses_encode_options o = { .no_special = pieces != NULL };
    ses_err e = { 0 };
    if (!ses_encode(r->k, &(ses_input){ .text = text_of(ses_json_get(v, "t")) }, &o, &e))
        return differ(r, line, "failed", e.msg), false;
    const ses_encoding *got = ses_encode_ctx_result(r->k);
    if (!same_ids(ses_json_get(v, "i"), got, detail, sizeof detail))
        return differ(r, line, "ids", detail), false;
    for (size_t i = 0; pieces && i < got->n; i++) {
        ses_string want = text_of(ses_json_at(pieces, i));
        size_t n;
        const char *s = ses_encode_ctx_string(r->k, got, i, &n);
        if (n == want.n && !memcmp(s, want.p, n)) continue;
        snprintf(detail, sizeof detail, "%.60s | %.60s", ses_quoted_of(want.p, want.n).s,
                 ses_quoted_of(s, n).s);
        return differ(r, line, "pieces", detail), false;
    }
    return !ses_json_get(v, "d") || same_text(r, line, v);
}

static bool check_line(run *r, int line, const ses_json *v)
{
    if (r->plain) return check_plain(r, line, v);
    if (ses_json_get(v, "words")) return check_words(r, line, v);
    return ses_json_get(v, "a") ? check_pair(r, line, v) : check_text(r, line, v);
}

/* File or folder of a set of encodings: spm-FOLDER-FILE is FOLDER/FILE.model, slow-NAME is a folder. */
static void find_path(const char *shared, const char *name, char *path, size_t size)
{
    if (!strncmp(name, "slow-", 5)) {
        snprintf(path, size, "%s/vocab/%s", shared, name + 5);
        return;
    }
    snprintf(path, size, "%s/vocab/%s/tokenizer.json", shared, name);
    if (strncmp(name, "spm-", 4)) return;
    for (const char *dash = strchr(name + 4, '-'); dash; dash = strchr(dash + 1, '-')) {
        snprintf(path, size, "%s/vocab/%.*s/%s.model", shared, (int)(dash - name - 4), name + 4, dash + 1);
        if (ses_path_exists(path)) return;
    }
}

static void check_file(const char *shared, const char *name)
{
    char path[512], command[600];
    ses_err e = { 0 };
    run r = { .name = name, .plain = !strncmp(name, "spm-", 4) || !strncmp(name, "slow-", 5) };
    find_path(shared, name, path, sizeof path);
    ses_tokenizer *t = ses_tokenizer_open(path, &e);
    r.k = t ? ses_encode_ctx_new(t, &e) : NULL;
    if (!CHECK_MSG(r.k, "%s", e.msg)) return;
    snprintf(command, sizeof command, "xz -dc '%s/golden/tokenizers/%s.jsonl.xz'", shared, name);
    FILE *in = popen(command, "r");
    char *line = malloc(LINE);
    for (int i = 1; in && fgets(line, LINE, in); i++) {
        ses_json_doc *doc = ses_json_parse(line, strlen(line), &e);
        if (!CHECK_MSG(doc, "%s line %d: %s", name, i, e.msg)) break;
        r.cases++;
        r.wrong += !check_line(&r, i, ses_json_root(doc));
        ses_json_free(doc);
    }
    free(line);
    if (in) pclose(in);
    CHECK_MSG(r.cases && !r.wrong, "%s: %d of %d cases differ", name, r.wrong, r.cases);
    printf("%-64s %d cases, %d differ\n", name, r.cases, r.wrong);
    ses_encode_ctx_free(r.k);
    ses_tokenizer_free(t);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

int main(int argc, char **argv)
{
    const char *shared = check_shared();
    char path[512], *name[64];
    size_t n = 0;
    snprintf(path, sizeof path, "%s/golden/tokenizers", shared);
    DIR *d = opendir(path);
    if (!d || system("xz --version >/dev/null 2>&1")) {
        SKIP(d ? "no xz to read the golden encodings" : "no golden encodings");
        if (d) closedir(d);
        return check_report();
    }
    for (struct dirent *f; (f = readdir(d)) && n < SES_LEN(name);) {
        char *dot = strstr(f->d_name, ".jsonl.xz");
        if (!dot) continue;
        *dot = 0;
        name[n++] = strdup(f->d_name);
    }
    closedir(d);
    qsort(name, n, sizeof *name, by_name);
    for (size_t i = 0; i < n; i++) {
        if (argc < 2 || !strcmp(argv[1], name[i])) check_file(shared, name[i]);
        free(name[i]);
    }
    return check_report();
}
