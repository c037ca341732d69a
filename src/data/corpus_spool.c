/* Intermediate files of a corpus build, and their journal. */
#define _POSIX_C_SOURCE 200809L
#include "corpus_spool.h"

#include "base/alloc.h"
#include "base/file.h"
#include "sesame/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 1 << 20, JOURNAL_MAX = 1 << 20 };

static const char *const name[CORPUS_PARTS] = { "tokens", "words", "sentences", "documents" };

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

bool ses_spool_checkpoint(ses_spool *s, const ses_build_progress *at, ses_err *e)
{
    for (int i = 0; i < CORPUS_PARTS; i++) {
        if (!ses_spool_put(s, i, NULL, 0, e)) return false;
        if (fsync(s->fd[i]) != 0) return ses_fail(e, SES_EIO, "%s/%s: %s", s->dir, name[i], strerror(errno));
    }
    size_t n;
    ses_json_writer *w = ses_json_writer_new(0, e);
    char *path = ses_path_join(s->dir, "journal.json", e);
    if (w) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "settings", s->settings);
        for (size_t i = 0; i < SES_LEN(counters); i++) {
            uint64_t value;
            memcpy(&value, (const char *)at + counters[i].offset, sizeof value);
            ses_json_member_uint(w, counters[i].key, value);
        }
        ses_json_end_object(w);
    }
    const char *text = w && path ? ses_json_writer_text(w, &n, e) : NULL;
    bool ok = text && ses_file_write(path, text, n, true, e);
    s->has_journal = s->has_journal || ok;
    ses_json_writer_free(w);
    ses_free(path);
    return ok;
}

/* *found: a journal with these settings exists, and *at is its progress. */
static bool read_journal(ses_spool *s, ses_build_progress *at, bool *found, ses_err *e)
{
    char *path = ses_path_join(s->dir, "journal.json", e);
    if (!path) return false;
    bool exists = ses_path_exists(path), ok = true;
    ses_json_doc *d = exists ? ses_json_load(path, JOURNAL_MAX, e) : NULL;
    ses_free(path);
    *found = false;
    s->has_journal = exists;
    if (!exists) return true;
    const ses_json *root = d ? ses_json_root(d) : NULL;
    const char *settings = ses_json_string(ses_json_get(root, "settings"), NULL);
    for (size_t i = 0; i < SES_LEN(counters); i++) {
        uint64_t value = 0;
        ok = ok && ses_json_uint(ses_json_get(root, counters[i].key), &value);
        if (ok) memcpy((char *)at + counters[i].offset, &value, sizeof value);
    }
    if (d && (!settings || !ok))
        ses_fail(e, SES_EFORMAT, "%s: damaged journal; use --restart to start over", s->dir);
    else if (d && strcmp(settings, s->settings))
        ses_fail(e, SES_EARG,
                 "%s has an interrupted build of other texts or options; repeat these to resume it, or use "
                 "--restart",
                 s->dir);
    else
        *found = d != NULL;
    ses_json_free(d);
    return *found;
}

/* ---- files ---- */

bool ses_spool_put(ses_spool *s, int part, const void *p, size_t n, ses_err *e)
{
    ses_buf *b = &s->buf[part];
    s->size[part] += n;
    if (n && !ses_buf_append(b, p, n)) return ses_buf_ok(b, e);
    if (n && b->len < BUFFER) return true;
    for (size_t done = 0; done < b->len;) {
        ssize_t k = write(s->fd[part], b->data + done, b->len - done);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0)
            return ses_fail(e, SES_EIO, "%s/%s: cannot write: %s", s->dir, name[part],
                            strerror(k ? errno : ENOSPC));
        done += (size_t)k;
    }
    b->len = 0;
    return true;
}

/* Opens a part and truncates it to the length in the journal. */
static bool open_part(ses_spool *s, int part, uint64_t size, ses_err *e)
{
    char *path = ses_path_join(s->dir, name[part], e);
    if (!path) return false;
    int fd = s->fd[part] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    off_t length = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
    bool ok = length >= 0 && (uint64_t)length >= size && ftruncate(fd, (off_t)size) == 0 &&
              lseek(fd, (off_t)size, SEEK_SET) >= 0;
    if (length >= 0 && (uint64_t)length < size)
        ses_fail(e, SES_EFORMAT, "%s: shorter than its journal requires; use --restart to start over", path);
    else if (!ok)
        ses_fail(e, SES_EIO, "%s: %s", path, strerror(errno));
    s->size[part] = size;
    ses_free(path);
    return ok;
}

static bool remove_parts(const char *dir, ses_err *e)
{
    bool ok = true;
    for (int i = -1; i < CORPUS_PARTS && ok; i++) {
        char *path = ses_path_join(dir, i < 0 ? "journal.json" : name[i], e);
        ok = path && ses_file_remove(path, e);
        ses_free(path);
    }
    return ok;
}

bool ses_spool_open(ses_spool *s, const char *path, const char *settings, bool restart,
                    ses_build_progress *at, ses_err *e)
{
    ses_buf dir = { 0 };
    bool found = false;
    for (int i = 0; i < CORPUS_PARTS; i++) s->fd[i] = -1;
    ses_buf_appendf(&dir, "%s.part", path);
    if (!ses_buf_ok(&dir, e)) return false;
    s->dir = dir.data;
    s->settings = ses_strdup(settings, e);
    if (!s->settings || !ses_dir_make(s->dir, e) || !(s->lock = ses_dir_lock_new(s->dir, e))) return false;
    if (restart ? !remove_parts(s->dir, e) : !read_journal(s, at, &found, e)) return false;
    if (!found && !restart && !remove_parts(s->dir, e)) return false; /* killed before the first checkpoint */
    for (int i = 0; i < CORPUS_PARTS; i++)
        if (!open_part(s, i,
                       (i == 0 && found ? CORPUS_HEADER_BYTES : 0) + ses_corpus_part_bytes(&at->head, i), e))
            return false;
    static const char head[CORPUS_HEADER_BYTES]; /* written at the end */
    return found || ses_spool_put(s, PART_TOKENS, head, sizeof head, e);
}

void ses_spool_free(ses_spool *s)
{
    for (int i = 0; i < CORPUS_PARTS; i++) {
        if (s->dir && s->fd[i] >= 0) close(s->fd[i]);
        ses_buf_free(&s->buf[i]);
    }
    ses_dir_lock_free(s->lock);
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
    size_t skip = part == PART_TOKENS ? CORPUS_HEADER_BYTES : 0;
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
    bool ok = from != NULL;
    if (ok && !overwrite && ses_path_exists(path))
        ok = ses_fail(e, SES_EIO, "%s: %s", path, strerror(EEXIST));
    if (ok && rename(from, path) != 0) ok = ses_fail(e, SES_EIO, "%s: %s", path, strerror(errno));
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
        return ses_fail(e, SES_EIO, "%s: cannot write: %s", path, strerror(errno));
    return rename_result(s, path, overwrite, e) && remove_parts(s->dir, e) && ses_dir_remove(s->dir, e);
}
