/* Intermediate files of a corpus build, and their journal. */
#define _POSIX_C_SOURCE 200809L
#include "corpus_spool.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "sesame/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 1 << 20, VERIFY_BUFFER = 1 << 16, JOURNAL_MAX = 1 << 28 };

static const char *const name[CORPUS_PARTS] = { "tokens", "words", "sentences", "documents" };

static const char *const JOURNAL = "journal.json";

#define RESTART "--restart starts over"

/* ---- checksums ---- */

/* Continues FNV-1a of 64 bits: the result does not depend on how the bytes are divided into calls. */
static uint64_t checksum(uint64_t sum, const void *p, size_t n)
{
    for (const unsigned char *c = p, *end = n ? c + n : c; c != end; c++) sum = (sum ^ *c) * 0x100000001b3u;
    return sum;
}

static uint64_t checksum_start(void) { return 0xcbf29ce484222325u; }

/* Bytes at the start of a part outside its checksum: the corpus header, which the end of a build
 * overwrites. */
static size_t unchecked_bytes(int part) { return part == PART_TOKENS ? CORPUS_HEADER_BYTES : 0; }

/* ---- the journal ---- */

/* Counters in journal.json. */
static const struct counter {
    const char *key;
    size_t offset;
} counters[] = {
    { "file", offsetof(ses_build_progress, file) },
    { "offset", offsetof(ses_build_progress, offset) },
    { "line", offsetof(ses_build_progress, line) },
    { "documents", offsetof(ses_build_progress, head.documents) },
    { "sentences", offsetof(ses_build_progress, head.sentences) },
    { "tokens", offsetof(ses_build_progress, head.tokens) },
    { "unknown", offsetof(ses_build_progress, head.unknown) },
    { "bytes", offsetof(ses_build_progress, head.bytes) },
    { "duplicates", offsetof(ses_build_progress, head.duplicates) },
    { "empty", offsetof(ses_build_progress, head.empty) },
    { "bad_lines", offsetof(ses_build_progress, head.bad_lines) },
    { "cut", offsetof(ses_build_progress, head.split_documents) },
    { "held_out", offsetof(ses_build_progress, head.held_out) },
    { "held_tokens", offsetof(ses_build_progress, head.held_out_tokens) },
};

/* 16 hexadecimal digits: JSON numbers of other programs have 53 bits. */
static void put_checksum(ses_json_writer *w, const char *key, uint64_t sum)
{
    char hex[24];
    snprintf(hex, sizeof hex, "%016" PRIx64, sum);
    ses_json_member_string(w, key, hex);
}

static bool get_checksum(const ses_json *object, const char *key, uint64_t *sum)
{
    const char *hex = ses_json_string(ses_json_get(object, key), NULL);
    return hex && strlen(hex) == 16 && strspn(hex, "0123456789abcdef") == 16 && sscanf(hex, "%" SCNx64, sum);
}

static bool fail_part(const ses_spool *s, int part, int why, ses_err *e)
{
    char *path = ses_path_join(s->dir, name[part], e);
    bool ok = path && ses_fail_write(path, why, e);
    ses_free(path);
    return ok;
}

bool ses_spool_checkpoint(ses_spool *s, const ses_build_progress *at, ses_err *e)
{
    for (int i = 0; i < CORPUS_PARTS; i++) {
        if (!ses_spool_put(s, i, NULL, 0, e)) return false;
        if (fsync(s->fd[i]) != 0) return fail_part(s, i, errno, e);
    }
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (w) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "settings", s->settings);
        for (size_t i = 0; i < SES_LEN(counters); i++) {
            uint64_t value;
            memcpy(&value, (const char *)at + counters[i].offset, sizeof value);
            ses_json_member_uint(w, counters[i].key, value);
        }
        ses_json_member_array(w, "cut_documents");
        for (size_t i = 0; i < s->n_split; i++) ses_json_put_uint(w, s->split[i]);
        ses_json_end_array(w);
        ses_json_put_key(w, "checksums");
        ses_json_begin_object(w);
        for (int i = 0; i < CORPUS_PARTS; i++) put_checksum(w, name[i], s->sum[i]);
        ses_json_end_object(w);
        ses_json_end_object(w);
    }
    bool ok = ses_json_record_save(w, 0, s->dir, JOURNAL, true, e);
    s->has_journal = s->has_journal || ok;
    return ok;
}

bool ses_spool_note_split(ses_spool *s, uint64_t document, ses_err *e)
{
    if (!ses_array_reserve(&s->split, &s->split_cap, s->n_split + 1, sizeof *s->split, e)) return false;
    s->split[s->n_split++] = document;
    return true;
}

static bool read_split(ses_spool *s, const ses_json *list, ses_err *e)
{
    uint64_t document;
    for (size_t i = 0; i < ses_json_len(list); i++)
        if (!ses_json_uint(ses_json_at(list, i), &document) || !ses_spool_note_split(s, document, e))
            return false;
    return true;
}

/* Reads counters and checksums from a journal; false with an error if it is damaged. */
static bool parse_journal(ses_spool *s, const ses_json *root, ses_build_progress *at, ses_err *e)
{
    const char *settings = ses_json_string(ses_json_get(root, "settings"), NULL);
    const ses_json *sums = ses_json_get(root, "checksums");
    size_t layout[CORPUS_PARTS + 1];
    bool ok = settings != NULL;
    for (size_t i = 0; i < SES_LEN(counters); i++) {
        uint64_t value = 0;
        ok = ok && ses_json_uint(ses_json_get(root, counters[i].key), &value);
        if (ok) memcpy((char *)at + counters[i].offset, &value, sizeof value);
    }
    if (ok && strcmp(settings, s->settings))
        return ses_fail(
            e, SES_EARG,
            "%s has an interrupted build of other texts or options; repeat these to resume it; " RESTART,
            s->dir);
    for (int i = 0; i < CORPUS_PARTS; i++) ok = ok && get_checksum(sums, name[i], &s->sum[i]);
    ok = ok && ses_corpus_layout(&at->head, layout) && read_split(s, ses_json_get(root, "cut_documents"), e);
    return ok || ses_fail(e, SES_EFORMAT, "%s/journal.json: damaged; " RESTART, s->dir);
}

/* *found: a journal with these settings exists, and *at is its progress. */
static bool read_journal(ses_spool *s, ses_build_progress *at, bool *found, ses_err *e)
{
    char *path = ses_path_join(s->dir, JOURNAL, e);
    if (!path) return false;
    s->has_journal = ses_path_exists(path);
    ses_json_doc *d = s->has_journal ? ses_json_record_load(path, JOURNAL_MAX, true, e) : NULL;
    ses_free(path);
    if (!s->has_journal) return true;
    if (!d && e && e->code == SES_EFORMAT) return ses_wrap(e, "damaged journal (" RESTART ")");
    *found = d && parse_journal(s, ses_json_root(d), at, e);
    ses_json_free(d);
    return *found;
}

/* ---- files ---- */

bool ses_spool_put(ses_spool *s, int part, const void *p, size_t n, ses_err *e)
{
    ses_buf *b = &s->buf[part];
    s->size[part] += n;
    s->sum[part] = checksum(s->sum[part], p, n);
    if (n && !ses_buf_append(b, p, n)) return ses_buf_ok(b, e);
    if (n && b->len < BUFFER) return true;
    char *path = b->len ? ses_path_join(s->dir, name[part], e) : NULL;
    bool ok = !b->len || (path && ses_fd_write(s->fd[part], b->data, b->len, path, e));
    ses_free(path);
    if (ok) b->len = 0;
    return ok;
}

/* Compares the first `size` bytes of a part with the checksum in the journal. */
static bool verify_part(const ses_spool *s, int part, const char *path, uint64_t size, ses_err *e)
{
    uint64_t sum = checksum_start(), at = unchecked_bytes(part);
    char *block = ses_alloc(VERIFY_BUFFER, e);
    if (!block) return false;
    bool ok = true;
    while (ok && at < size) {
        ssize_t n = pread(s->fd[part], block, size - at < VERIFY_BUFFER ? (size_t)(size - at) : VERIFY_BUFFER,
                          (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        ok = n > 0 ||
             ses_fail(e, SES_EIO, "%s: cannot read: %s", path, n ? strerror(errno) : "it was truncated");
        if (ok) sum = checksum(sum, block, (size_t)n), at += (uint64_t)n;
    }
    ses_free(block);
    if (ok && sum != s->sum[part])
        return ses_fail(e, SES_EFORMAT, "%s: damaged: its checksum differs from the journal's; " RESTART,
                        path);
    return ok;
}

/* Opens a part. It must contain at least `size` bytes with the journal's checksum. */
static bool open_part(ses_spool *s, int part, uint64_t size, ses_err *e)
{
    char *path = ses_path_join(s->dir, name[part], e);
    if (!path) return false;
    int fd = s->fd[part] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    off_t length = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    bool ok = false;
    if (length < 0)
        ses_fail(e, SES_EIO, "%s: %s", path, strerror(errno));
    else if ((uint64_t)length < size)
        ses_fail(e, SES_EFORMAT, "%s: damaged: shorter than its journal requires; " RESTART, path);
    else
        ok = verify_part(s, part, path, size, e);
    s->size[part] = size;
    ses_free(path);
    return ok;
}

/* Removes the bytes after the last checkpoint. */
static bool truncate_part(ses_spool *s, int part, ses_err *e)
{
    off_t size = (off_t)s->size[part];
    if (ftruncate(s->fd[part], size) == 0 && lseek(s->fd[part], size, SEEK_SET) >= 0) return true;
    return fail_part(s, part, errno, e);
}

static bool remove_file(const char *dir, const char *file, ses_err *e)
{
    char *path = ses_path_join(dir, file, e);
    bool ok = path && ses_file_remove(path, e);
    ses_free(path);
    return ok;
}

/* journal_first: the parts may be incomplete, and no journal may describe them. */
static bool remove_parts(const char *dir, bool journal_first, ses_err *e)
{
    bool ok = !journal_first || remove_file(dir, JOURNAL, e);
    for (int i = 0; i < CORPUS_PARTS && ok; i++) ok = remove_file(dir, name[i], e);
    return ok && remove_file(dir, JOURNAL, e);
}

/* Whether the tokens have become the corpus: a build that was killed before it removed its folder. */
static bool tokens_are_moved(const ses_spool *s, const char *path, bool *moved, ses_err *e)
{
    char *tokens = ses_path_join(s->dir, name[PART_TOKENS], e);
    *moved = tokens && (!ses_path_exists(tokens) || ses_path_same(tokens, path));
    ses_free(tokens);
    return tokens != NULL;
}

/* Creates and locks the folder. */
static bool open_folder(ses_spool *s, const char *path, const char *settings, ses_err *e)
{
    ses_buf dir = { 0 };
    for (int i = 0; i < CORPUS_PARTS; i++) s->fd[i] = -1, s->sum[i] = checksum_start();
    ses_buf_appendf(&dir, "%s.part", path);
    if (!ses_buf_ok(&dir, e)) return false;
    s->dir = dir.data;
    s->settings = ses_strdup(settings, e);
    return s->settings && ses_dir_make(s->dir, e) && (s->lock = ses_dir_lock_new(s->dir, e));
}

/* Whether a corpus is intact and has the label and the counts of the journal. */
static bool matches(const char *path, const ses_build_progress *at, ses_err *e)
{
    const size_t head = offsetof(ses_build_progress, head);
    ses_corpus *c = ses_corpus_open(path, e);
    bool same = c && ses_corpus_verify(c, e);
    const ses_corpus_header *h = same ? ses_corpus_header_of(c) : NULL;
    same = same && !memcmp(h->label, at->head.label, sizeof h->label);
    for (size_t i = 0; same && i < SES_LEN(counters); i++)
        same = counters[i].offset < head ||
               !memcmp((const char *)at + counters[i].offset, (const char *)h + (counters[i].offset - head),
                       sizeof(uint64_t));
    ses_corpus_free(c);
    return same;
}

bool ses_spool_adopt(ses_spool *s, const char *path, const char *settings, ses_build_progress *at,
                     bool *complete, ses_err *e)
{
    ses_err why = { 0 }; /* another build, or damage: not complete */
    bool found = false, moved = false;
    if (!open_folder(s, path, settings, e)) return false;
    *complete = read_journal(s, at, &found, &why) && found && tokens_are_moved(s, path, &moved, &why) &&
                moved && matches(path, at, &why);
    if (!*complete && why.code == SES_ENOMEM) return ses_fail(e, why.code, "%s", why.msg);
    return !*complete || (remove_parts(s->dir, false, e) && ses_dir_remove(s->dir, e));
}

bool ses_spool_open(ses_spool *s, const char *path, const char *settings, bool restart,
                    ses_build_progress *at, ses_err *e)
{
    bool found = false, moved;
    if (!open_folder(s, path, settings, e)) return false;
    if (!tokens_are_moved(s, path, &moved, e)) return false;
    restart |= moved;
    if (restart ? !remove_parts(s->dir, true, e) : !read_journal(s, at, &found, e)) return false;
    if (!found && !restart && !remove_parts(s->dir, true, e)) return false; /* before the first checkpoint */
    for (int i = 0; i < CORPUS_PARTS; i++)
        if (!open_part(s, i, (found ? unchecked_bytes(i) : 0) + ses_corpus_part_bytes(&at->head, i), e))
            return false;
    for (int i = 0; i < CORPUS_PARTS; i++)
        if (!truncate_part(s, i, e)) return false;
    if (found) return true;
    static const char head[CORPUS_HEADER_BYTES]; /* written at the end */
    bool ok = ses_spool_put(s, PART_TOKENS, head, sizeof head, e);
    s->sum[PART_TOKENS] = checksum_start();
    return ok;
}

void ses_spool_free(ses_spool *s)
{
    for (int i = 0; i < CORPUS_PARTS; i++) {
        if (s->dir && s->fd[i] >= 0) close(s->fd[i]);
        ses_buf_free(&s->buf[i]);
    }
    ses_dir_lock_free(s->lock);
    ses_free(s->split);
    ses_free(s->dir);
    ses_free(s->settings);
    *s = (ses_spool){ 0 };
}

static bool map_part(const ses_spool *s, int part, ses_mmap *m, ses_err *e)
{
    char *path = ses_path_join(s->dir, name[part], e);
    bool ok = path && ses_mmap_open(m, path, e);
    ses_free(path);
    return ok;
}

bool ses_spool_documents(ses_spool *s, uint64_t n,
                         bool (*fn)(void *ctx, const ses_corpus_entry *d, ses_err *e), void *ctx, ses_err *e)
{
    ses_mmap m = { 0 };
    if (!n) return true;
    if (!map_part(s, PART_DOCUMENTS, &m, e)) return false;
    const ses_corpus_entry *d = (const void *)m.data;
    bool ok = true;
    for (uint64_t i = 0; ok && i < n && (i + 1) * sizeof *d <= m.size; i++) ok = fn(ctx, &d[i], e);
    ses_mmap_free(&m);
    return ok;
}

/* ---- the end ---- */

/* Appends a part to the tokens and hashes it. The journal stays valid until the final rename: the next run
 * truncates the tokens to it. */
static bool join_part(ses_spool *s, int part, ses_corpus_header *h, ses_err *e)
{
    static const char zero[8] = { 0 };
    ses_mmap m = { 0 };
    if (!ses_spool_put(s, part, NULL, 0, e) || !map_part(s, part, &m, e)) return false;
    size_t skip = unchecked_bytes(part);
    h->part[part] = ses_corpus_hash(m.size ? m.data + skip : NULL, m.size - skip);
    bool ok = true;
    for (size_t at = 0; part != PART_TOKENS && ok && at < m.size; at += BUFFER)
        ok = ses_spool_put(s, PART_TOKENS, m.data + at, m.size - at < BUFFER ? m.size - at : BUFFER, e);
    ses_mmap_free(&m);
    return ok && ses_spool_put(s, PART_TOKENS, zero, -s->size[PART_TOKENS] & 7, e);
}

static bool rename_result(const ses_spool *s, const char *path, bool overwrite, ses_err *e)
{
    char *from = ses_path_join(s->dir, name[PART_TOKENS], e);
    bool ok = from && ses_file_place(from, path, overwrite, e);
    ses_free(from);
    if (!ok) return false;
    char *dir = ses_path_parent(path, e);
    ok = dir && ses_dir_sync(dir, e);
    ses_free(dir);
    return ok;
}

bool ses_spool_finish(ses_spool *s, const char *path, bool overwrite, ses_corpus_header *h, ses_err *e)
{
    char block[CORPUS_HEADER_BYTES] = { 0 };
    for (int i = 0; i < CORPUS_PARTS; i++)
        if (!join_part(s, i, h, e)) return false;
    if (!ses_spool_put(s, PART_TOKENS, NULL, 0, e)) return false;
    memcpy(h->magic, CORPUS_MAGIC, sizeof h->magic);
    h->version = CORPUS_VERSION;
    memcpy(block, h, sizeof *h);
    h->hash = ses_corpus_hash(block, offsetof(ses_corpus_header, hash));
    memcpy(block, h, sizeof *h);
    if (pwrite(s->fd[PART_TOKENS], block, sizeof block, 0) != (ssize_t)sizeof block ||
        fsync(s->fd[PART_TOKENS]) != 0)
        return ses_fail_write(path, errno, e);
    return rename_result(s, path, overwrite, e) && remove_parts(s->dir, false, e) &&
           ses_dir_remove(s->dir, e);
}
