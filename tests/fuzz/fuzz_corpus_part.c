/* Resuming an interrupted corpus build. The first byte selects how the rest changes the folder C.part:
 *   even   changes of bytes: file, offset (2 bytes), value to XOR
 *   odd    changes of counters in a journal with correct checksums: counter, value (8 bytes)
 * A build with changed bytes fails or writes the same corpus. */
#define _POSIX_C_SOURCE 200809L
#include "fuzz_folder.h"

#include "../corpus_fixture.h"

#include "data/corpus/corpus_spool.h"
#include "sesame/json.h"

enum { FILES = 5, JOURNAL = 4, CHUNK_BYTES = 150, MAX_BYTES = 1 << 16 };

static const char *const name[FILES] = { "tokens", "words", "sentences", "documents", "journal.json" };
static const char text[] = "ab c\nd e.\n\ne a b c d\n\nab.\nab cd.\n\nbad cab.\n\n";

typedef struct contents {
    char *data;
    size_t n;
} contents;

/* The interrupted build and its result, made once. */
static struct {
    char dir[40], text[64], out[64];
    const char *files[1];
    ses_tokenizer *tokenizer;
    contents part[FILES], corpus;
} fixture;

static contents load(const char *path)
{
    contents c = { 0 };
    c.data = ses_file_read(path, MAX_BYTES, &c.n, NULL);
    return c;
}

static const char *part_path(int i)
{
    static char path[80];
    snprintf(path, sizeof path, "%s.part/%s", fixture.out, name[i]);
    return path;
}

static bool stop_at_once(void *ctx, uint64_t done, uint64_t of)
{
    (void)ctx, (void)done, (void)of;
    return false;
}

static bool build(bool stop, ses_err *e)
{
    int64_t resumed;
    ses_corpus_options o = { .tokenizer = fixture.tokenizer,
                             .unk_id = 1,
                             .files = fixture.files,
                             .n_files = 1,
                             .chunk_bytes = CHUNK_BYTES,
                             .overwrite = true,
                             .progress = stop ? stop_at_once : NULL };
    return ses_corpus_build(fixture.out, &o, &resumed, e);
}

static void remove_folder(void)
{
    char dir[80];
    snprintf(dir, sizeof dir, "%s.part", fixture.out);
    ses_dir_remove(dir, NULL);
    ses_dir_remove(fixture.dir, NULL);
}

static void make_fixture(void)
{
    ses_err e = { 0 };
    ses_buf all = { 0 };
    fuzz_folder(fixture.dir);
    atexit(remove_folder);
    snprintf(fixture.text, sizeof fixture.text, "%s/text", fixture.dir);
    snprintf(fixture.out, sizeof fixture.out, "%s/c", fixture.dir);
    fixture.files[0] = fixture.text;
    for (int i = 0; i < 8; i++) ses_buf_appendf(&all, "%.*s\n\n%s", i + 1, "abcdeabcde", text);
    fuzz_file(fixture.text, all.data, all.len);
    ses_buf_free(&all);
    fixture.tokenizer = ses_tokenizer_from_json(corpus_tokenizer, strlen(corpus_tokenizer), &e);
    MUST(fixture.tokenizer && !build(true, &e));
    for (int i = 0; i < FILES; i++) MUST((fixture.part[i] = load(part_path(i))).n);
    e = (ses_err){ 0 };
    MUST(build(false, &e));
    MUST((fixture.corpus = load(fixture.out)).n);
}

static void change_bytes(const uint8_t *data, size_t n)
{
    for (; n >= 4; data += 4, n -= 4) {
        contents *c = &fixture.part[data[0] % FILES];
        c->data[(size_t)(data[1] | data[2] << 8) % c->n] ^= (char)data[3];
    }
}

/* Writes a journal with changed counters by the function that writes all journals. */
static void change_counters(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_spool s = { 0 };
    ses_build_progress at = { .head.id_bytes = 2 };
    uint64_t *counter[] = { &at.file,           &at.offset,         &at.line,       &at.head.documents,
                            &at.head.sentences, &at.head.tokens,    &at.head.bytes, &at.head.held_out,
                            &at.head.unknown,   &at.head.duplicates };
    ses_json_doc *d = ses_json_parse(fixture.part[JOURNAL].data, fixture.part[JOURNAL].n, &e);
    const char *settings = d ? ses_json_string(ses_json_get(ses_json_root(d), "settings"), NULL) : NULL;
    MUST(settings && ses_spool_open(&s, fixture.out, settings, false, &at, &e));
    for (; n >= 9; data += 9, n -= 9) memcpy(counter[data[0] % SES_LEN(counter)], data + 1, 8);
    MUST(ses_spool_checkpoint(&s, &at, &e));
    ses_spool_free(&s);
    ses_json_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    char dir[80];
    if (!n || n > 400) return 0;
    if (!fixture.tokenizer) make_fixture();
    bool counters = data[0] & 1;
    snprintf(dir, sizeof dir, "%s.part", fixture.out);
    MUST(ses_dir_make(dir, &e));
    if (!counters) change_bytes(data + 1, n - 1);
    for (int i = 0; i < FILES; i++) fuzz_file(part_path(i), fixture.part[i].data, fixture.part[i].n);
    if (!counters) change_bytes(data + 1, n - 1); /* XOR again: as before */
    if (counters) change_counters(data + 1, n - 1);
    bool ok = build(false, &e);
    MUST(ok == (e.code == SES_OK));
    if (!ok || counters) return 0;
    contents now = load(fixture.out);
    MUST(now.n == fixture.corpus.n && !memcmp(now.data, fixture.corpus.data, now.n));
    ses_free(now.data);
    return 0;
}
