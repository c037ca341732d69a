/* Corpora: contents; identical bytes for any number of threads and after an interruption; damaged files and
 * damaged intermediate files are refused. */
#define _POSIX_C_SOURCE 200809L
#include "corpus_fixture.h"

#include "data/corpus/corpus_file.h"
#include "data/corpus/corpus_text.h"
#include "data/token_counts.h"

#include <fcntl.h>
#include <math.h>
#include <sys/wait.h>

static void read_back(const corpus_fixture *f)
{
    ses_err e = { 0 };
    ses_corpus *c =
        corpus_of(f, "c", "ab c\nd.\r\n\n \t\n\nE xx\n\nab c\nd.\n\n...\n", (ses_corpus_options){ 0 }, &e);
    CHECK_MSG(c, "%s", e.msg);
    if (!c) return;
    const ses_corpus_info *x = ses_corpus_info_of(c);
    CHECK(x->documents == 3 && x->sentences == 4 && x->duplicates == 1 && x->empty == 0);
    CHECK(x->tokens == 5 + 2 + 1 && x->unknown_tokens == 2 && x->vocab_size == 16);
    ses_document d = ses_corpus_document(c, 0);
    int32_t id[8];
    uint8_t starts[8];
    CHECK(d.n_sentences == 2 && d.n_tokens == 5 && ses_corpus_sentence_start(c, &d, 1) == 3);
    CHECK(ses_corpus_sentence_start(c, &d, 2) == 5 && ses_corpus_sentence_of_token(c, &d, 2) == 0 &&
          ses_corpus_sentence_of_token(c, &d, 3) == 1);
    ses_corpus_read(c, &d, 0, 5, id, starts);
    const int32_t want[] = { 5, 11, 7, 8, 15 }; /* a ##b c | d . */
    const uint8_t begin[] = { 7, 0, 1, 3, 1 };
    CHECK(!memcmp(id, want, sizeof want) && !memcmp(starts, begin, sizeof begin));
    ses_corpus_read(c, &d, 2, 2, id, starts); /* from the middle */
    CHECK(id[0] == 7 && id[1] == 8 && starts[0] == 1 && starts[1] == 3);
    d = ses_corpus_document(c, 1);
    ses_corpus_read(c, &d, 0, 2, id, starts);
    CHECK(id[0] == 9 && id[1] == 1 && starts[0] == 7 && starts[1] == 1);
    CHECK(ses_corpus_verify(c, &e));
    ses_corpus_free(c);

    c = corpus_of(f, "j", "{\"t\": \"ab\\nc\"}\n\n{\"t\": \"\"}\n{\"t\": \"d\\n\\ne\"}\n",
                  (ses_corpus_options){ .format = SES_CORPUS_JSONL, .field = "t", .label = "en" }, &e);
    CHECK_MSG(c, "%s", e.msg);
    if (!c) return;
    x = ses_corpus_info_of(c);
    CHECK(x->documents == 2 && x->sentences == 4 && x->empty == 1 && x->tokens == 5);
    CHECK_STR(x->label, "en");
    ses_corpus_free(c);

    c = corpus_of(f, "s", "Ab ab. Cd cd! ee. ab\n", (ses_corpus_options){ .split_sentences = true }, &e);
    CHECK(c && ses_corpus_info_of(c)->sentences == 2); /* a lower-case letter follows: not a sentence end */
    ses_corpus_free(c);
    c = corpus_of(f, "k", "ab\n\nab\n", (ses_corpus_options){ .keep_duplicates = true }, &e);
    CHECK(c && ses_corpus_info_of(c)->documents == 2 && !ses_corpus_info_of(c)->duplicates);
    ses_corpus_free(c);
}

static char *large_text(size_t *n)
{
    ses_buf b = { 0 };
    corpus_text(&b, 100000, 1);
    *n = b.len;
    return b.data;
}

typedef struct stopper {
    int after;
} stopper;

static bool stop_after(void *ctx, uint64_t done, uint64_t of)
{
    (void)done, (void)of;
    return ((stopper *)ctx)->after-- > 0;
}

static void same_bytes(const corpus_fixture *f)
{
    ses_err e = { 0 };
    size_t n, size[3] = { 0 };
    int64_t resumed = 0;
    char *text = large_text(&n), *data[3] = { 0 };
    char path[128], out[128];
    const char *file[] = { path, path };
    snprintf(path, sizeof path, "%s/large.txt", f->dir);
    snprintf(out, sizeof out, "%s/large", f->dir);
    CHECK(ses_file_write(file[0], text, n, false, &e));
    ses_free(text);
    ses_corpus_options o = {
        .tokenizer = f->tokenizer, .unk_id = 1, .files = file, .n_files = 2, .held_out_fraction = 0.1
    };
    for (int i = 0; i < 3;
         i++) { /* one thread and chunk; three threads, several chunks; and interrupted between two */
        stopper s = { 2 };
        o.threads = i ? 3 : 1;
        o.chunk_bytes = i ? 10000 : 0;
        o.overwrite = true;
        o.progress = i == 2 ? stop_after : NULL;
        o.ctx = &s;
        bool ok = ses_corpus_build(out, &o, &resumed, &e);
        if (i == 2) {
            CHECK(!ok && strstr(e.msg, "run the same command to resume"));
            e = (ses_err){ 0 };
            o.progress = NULL;
            o.held_out_fraction = 0.2;
            CHECK(!ses_corpus_build(out, &o, &resumed, &e) && strstr(e.msg, "other texts or options"));
            e = (ses_err){ 0 };
            o.held_out_fraction = 0.1;
            ok = ses_corpus_build(out, &o, &resumed, &e);
            CHECK(resumed > 100);
        }
        CHECK_MSG(ok, "%s", e.msg);
        data[i] = ses_file_read(out, 64 << 20, &size[i], &e);
        CHECK(data[i] && size[i] == size[0] && !memcmp(data[i], data[0], size[0]));
        CHECK(!ses_path_exists(corpus_path(f, "large.part")));
    }
    ses_corpus *c = ses_corpus_from_memory(data[0], size[0], &e);
    const ses_corpus_info *x = c ? ses_corpus_info_of(c) : NULL;
    CHECK(x && x->duplicates > x->documents); /* the second file has duplicates only */
    double share = x ? (double)x->held_out / (double)x->documents : 0;
    CHECK_MSG(share > 0.09 && share < 0.11, "%g of %lld", share, x ? (long long)x->documents : 0);
    ses_corpus_free(c);
    for (int i = 0; i < 3; i++) ses_free(data[i]);
}

/* ---- resuming from damaged files ---- */

/* Does not sync, unlike ses_file_write. */
static bool write_file(const char *path, const void *data, size_t n)
{
    FILE *file = fopen(path, "wb");
    bool ok = file && fwrite(data, 1, n, file) == n;
    return file && fclose(file) == 0 && ok;
}

typedef struct interrupted {
    char text[128], out[128], dir[128];
    const char *files[1];
    ses_corpus_options o;
} interrupted;

/* Builds NAME up to its third chunk. */
static void interrupt(const corpus_fixture *f, const char *name, interrupted *b)
{
    ses_err e = { 0 };
    ses_buf text = { 0 };
    int64_t resumed;
    stopper s = { 2 };
    snprintf(b->text, sizeof b->text, "%s/%s.txt", f->dir, name);
    snprintf(b->out, sizeof b->out, "%s/%s", f->dir, name);
    snprintf(b->dir, sizeof b->dir, "%s/%s.part", f->dir, name);
    corpus_text(&text, 4000, 1);
    CHECK(write_file(b->text, text.data, text.len));
    ses_buf_free(&text);
    b->files[0] = b->text;
    b->o = (ses_corpus_options){ .tokenizer = f->tokenizer,
                                 .unk_id = 1,
                                 .files = b->files,
                                 .n_files = 1,
                                 .chunk_bytes = 500,
                                 .overwrite = true,
                                 .progress = stop_after,
                                 .ctx = &s };
    CHECK(!ses_corpus_build(b->out, &b->o, &resumed, &e) && strstr(e.msg, "run the same command to resume"));
    b->o.progress = NULL;
}

/* Writes a file of C.part with one byte changed, and resumes. The build must refuse it without changing any
 * file, or build the same corpus. */
static bool resume_damaged(interrupted *b, const char *path, char *data, size_t n, size_t at,
                           const char *good, size_t good_size)
{
    ses_err e = { 0 };
    int64_t resumed;
    data[at] ^= 1;
    CHECK(write_file(path, data, n));
    bool ok = ses_corpus_build(b->out, &b->o, &resumed, &e), same = false;
    size_t size = 0;
    char *now = ses_file_read(ok ? b->out : path, 1 << 20, &size, NULL);
    if (ok)
        same = now && size == good_size && !memcmp(now, good, size);
    else
        same = now && size == n && !memcmp(now, data, n) && strstr(e.msg, b->dir);
    if (!same) CHECK_MSG(0, "%s, byte %zu: %s", path, at, ok ? "another corpus" : e.msg);
    ses_free(now);
    data[at] ^= 1;
    return ok;
}

static void damaged_parts(const corpus_fixture *f)
{
    static const char *const name[] = { "tokens", "words", "sentences", "documents", "journal.json" };
    interrupted b;
    ses_err e = { 0 };
    int64_t resumed = 0;
    size_t n[5] = { 0 }, size = 0;
    char *data[5], path[192];
    interrupt(f, "broken", &b);
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/%s", b.dir, name[i]);
        data[i] = ses_file_read(path, 1 << 20, &n[i], &e);
        CHECK(data[i] && n[i]);
    }
    CHECK_MSG(ses_corpus_build(b.out, &b.o, &resumed, &e) && resumed > 1, "%s", e.msg);
    char *good = ses_file_read(b.out, 1 << 20, &size, &e);
    for (int i = 0; i < 5 && good; i++) {
        snprintf(path, sizeof path, "%s/%s", b.dir, name[i]);
        for (size_t at = i ? 0 : CORPUS_HEADER_BYTES; at < n[i]; at += i == 4 ? 3 : 1 + n[i] / 50) {
            CHECK(ses_dir_make(b.dir, &e));
            for (int k = 0; k < 5; k++) {
                char to[192];
                snprintf(to, sizeof to, "%s/%s", b.dir, name[k]);
                CHECK(write_file(to, data[k], n[k]));
            }
            bool ok = resume_damaged(&b, path, data[i], n[i], at, good, size);
            if (ok && i < 4) CHECK_MSG(0, "%s, byte %zu: damage not found", name[i], at);
        }
    }
    ses_free(good);
    for (int i = 0; i < 5; i++) ses_free(data[i]);
    CHECK(ses_dir_remove(b.dir, NULL));
}

static int unlinks_left; /* the process is killed before this unlink; 0: never */
int unlink(const char *path)
{
    if (unlinks_left && !--unlinks_left) _exit(9);
    return unlinkat(AT_FDCWD, path, 0);
}

/* A build that is killed before it has removed C.part: the same command finds the corpus complete; another
 * one does not replace it. */
static void killed_at_the_end(const corpus_fixture *f)
{
    interrupted b;
    interrupt(f, "killed", &b);
    CHECK(ses_dir_remove(b.dir, NULL));
    b.o.overwrite = false;
    int kills = 0;
    for (int at = 1;; at++) { /* the name of the tokens, four parts, the journal */
        ses_err e = { 0 };
        int64_t resumed = 0;
        int status = 0;
        pid_t pid = fork();
        if (!pid) {
            unlinks_left = at;
            ses_corpus_build(b.out, &b.o, &resumed, &e);
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        if (!WEXITSTATUS(status)) break;
        if (!ses_path_exists(b.out)) { /* too early */
            CHECK(ses_dir_remove(b.dir, NULL));
            continue;
        }
        kills++;
        CHECK(ses_path_is_dir(b.dir));
        b.o.held_out_fraction = 0.25;
        CHECK(!ses_corpus_build(b.out, &b.o, &resumed, &e) && strstr(e.msg, "use --overwrite"));
        b.o.held_out_fraction = 0;
        ses_err_clear(&e);
        CHECK_MSG(ses_corpus_build(b.out, &b.o, &resumed, &e) && resumed > 1, "killed %d: %s", at, e.msg);
        CHECK(!ses_path_exists(b.dir));
        CHECK(!ses_corpus_build(b.out, &b.o, &resumed, &e) &&
              strstr(e.msg, "already exists; use --overwrite"));
        ses_corpus *c = ses_corpus_open(b.out, NULL);
        CHECK(c && ses_corpus_verify(c, NULL));
        ses_corpus_free(c);
        unlinkat(AT_FDCWD, b.out, 0);
    }
    CHECK(kills == 6);
}

/* A journal without checksums, as older versions wrote it; --restart ignores it. */
static void old_journal(const corpus_fixture *f)
{
    interrupted b;
    ses_err e = { 0 };
    int64_t resumed = 0;
    size_t n = 0;
    char path[192];
    interrupt(f, "old", &b);
    snprintf(path, sizeof path, "%s/journal.json", b.dir);
    char *text = ses_file_read(path, 1 << 20, &n, &e), *at = text ? strstr(text, ", \"checksums\"") : NULL;
    CHECK(at);
    if (at) {
        memcpy(at, "}", sizeof "}");
        CHECK(write_file(path, text, strlen(text)));
        CHECK(!ses_corpus_build(b.out, &b.o, &resumed, &e) && strstr(e.msg, "older version") &&
              strstr(e.msg, "--restart"));
        e = (ses_err){ 0 };
        b.o.restart = true;
        CHECK_MSG(ses_corpus_build(b.out, &b.o, &resumed, &e) && !resumed, "%s", e.msg);
    }
    ses_free(text);
}

static bool opens(const void *data, size_t n)
{
    ses_err e = { 0 };
    ses_corpus *c = ses_corpus_from_memory(data, n, &e);
    bool ok = c && ses_corpus_verify(c, &e);
    CHECK(ok || *e.msg);
    ses_corpus_free(c);
    return ok;
}

static void damage(const corpus_fixture *f)
{
    ses_err e = { 0 };
    size_t n = 0, at[CORPUS_PARTS + 1];
    ses_corpus_free(corpus_of(f, "d", "ab c\nd e.\n\ne a\n", (ses_corpus_options){ 0 }, &e));
    char *data = ses_file_read(corpus_path(f, "d"), 1 << 20, &n, &e);
    CHECK(data && opens(data, n));
    if (!data) return;
    for (size_t k = 0; k < n; k++)
        if (opens(data, k)) CHECK_MSG(0, "truncated to %zu bytes", k);
    ses_corpus_header h;
    memcpy(&h, data, sizeof h);
    CHECK(ses_corpus_layout(&h, at) && at[CORPUS_PARTS] == n);
    for (int part = -1; part < CORPUS_PARTS; part++) {
        size_t from = part < 0 ? 0 : at[part], size = part < 0 ? sizeof h : ses_corpus_part_bytes(&h, part);
        for (size_t i = from; i < from + size; i++) {
            data[i] ^= 1;
            if (opens(data, n)) CHECK_MSG(0, "byte %zu", i);
            data[i] ^= 1;
        }
    }
    CHECK(opens(data, n));
    ses_free(data);
}

static void refusals(const corpus_fixture *f)
{
    static const struct {
        const char *text, *want;
        ses_corpus_options o;
    } bad[] = {
        { "", "no text in", { 0 } },
        { "\n \n\n", "no text in", { 0 } },
        { "{\"text\": \"a\"}\n{\"txt\": \"b\"}\n",
          "line 2: no string field \"text\"",
          { .format = SES_CORPUS_JSONL } },
        { "{\"text\": 5}\n", "not a string", { .format = SES_CORPUS_JSONL } },
        { "{\"text\": \"a\n", "line 1: ", { .format = SES_CORPUS_JSONL } },
        { "a\n", "held-out fraction 1", { .held_out_fraction = 1 } },
    };
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        ses_err e = { 0 };
        ses_corpus *c = corpus_of(f, "bad", bad[i].text, bad[i].o, &e);
        CHECK_MSG(!c && strstr(e.msg, bad[i].want), "%zu: %s", i, e.msg);
        CHECK(!ses_path_exists(corpus_path(f, "bad")) && !ses_path_exists(corpus_path(f, "bad.part")));
        ses_corpus_free(c);
    }
    ses_err e = { 0 };
    CHECK(!ses_corpus_open(corpus_path(f, "c.txt"), &e) && strstr(e.msg, "not a corpus"));
}

/* The fingerprint depends on a tokenizer's behavior only. */
static void fingerprints(const corpus_fixture *f)
{
    ses_err e = { 0 };
    uint64_t a = 0, b = 0;
    ses_buf other = { 0 };
    ses_buf_puts(&other, corpus_tokenizer);
    CHECK(ses_tokenizer_fingerprint(f->tokenizer, &a, &e));
    static const char *const change[][2] = { { "\"padding\":null", "\"padding\":null  " },
                                             { "Lowercase", "NFC" },
                                             { "\"##e\":14", "\"##f\":14" } };
    for (size_t i = 0; i < SES_LEN(change); i++) {
        ses_buf text = { 0 };
        const char *at = strstr(other.data, change[i][0]);
        ses_buf_append(&text, other.data, (size_t)(at - other.data));
        ses_buf_appendf(&text, "%s%s", change[i][1], at + strlen(change[i][0]));
        ses_tokenizer *t = ses_tokenizer_from_json(text.data, text.len, &e);
        CHECK_MSG(t && ses_tokenizer_fingerprint(t, &b, &e), "%s", e.msg);
        CHECK((a == b) == (i == 0));
        ses_tokenizer_free(t);
        ses_buf_free(&text);
    }
    ses_buf_free(&other);
}

static void frequencies(const corpus_fixture *f)
{
    ses_err e = { 0 };
    int64_t count[16] = { 0 }, of[16] = { 0 };
    ses_corpus *c = corpus_of(f, "u", "a a b\nc\n\na\n", (ses_corpus_options){ 0 }, &e);
    if (!CHECK_MSG(c, "%s", e.msg)) return;
    ses_unigram_count(c, SES_COUNT_ALL, count);
    CHECK(count[5] == 3 && count[6] == 1 && count[7] == 1 && count[8] == 0);
    CHECK(fabs(ses_unigram_entropy(count, 16) - (0.6 * log(5.0 / 3) + 0.4 * log(5))) < 1e-12);
    CHECK(isnan(ses_unigram_loss(count, of, 16)));
    of[5] = 1, of[8] = 1; /* add-one smoothing: 4 and 1 of 21 */
    CHECK(fabs(ses_unigram_loss(count, of, 16) - (log(21.0 / 4) + log(21)) / 2) < 1e-12);
    ses_unigram_count(c, SES_COUNT_HELD_OUT, of);
    CHECK(of[5] == 1 && of[6] == 0);
    ses_corpus_free(c);
}

static void sentences(void)
{
    static const struct {
        const char *text;
        size_t end;
    } s[] = { { "One. Two.", 5 },
              { "Mr. Smith left. He", 16 },
              { "It is J. Smith. So", 16 },
              { "He said \"no.\" She", 14 },
              { "3.14 is pi. It", 12 },
              { "What?! No", 7 },
              { "a.m. today. Then", 12 },
              { "no end", 6 },
              { "\xe5\xa5\xbd\xe3\x80\x82\xe5\xa5\xbd", 6 } };
    for (size_t i = 0; i < SES_LEN(s); i++) {
        size_t got = ses_sentence_end(s[i].text, strlen(s[i].text));
        CHECK_MSG(got == s[i].end, "\"%s\": %zu", s[i].text, got);
    }
}

int main(void)
{
    corpus_fixture f = corpus_begin();
    read_back(&f);
    same_bytes(&f);
    damaged_parts(&f);
    old_journal(&f);
    killed_at_the_end(&f);
    damage(&f);
    refusals(&f);
    fingerprints(&f);
    frequencies(&f);
    sentences();
    corpus_end(&f);
    return check_report();
}
