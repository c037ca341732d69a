/* Sets of shards. */
#define _POSIX_C_SOURCE 200809L
#include "shard_merge.h"

#include "base/alloc.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The identity of a shard without what differs between shards. */
static char *common_settings(const ses_json_doc *marker, ses_err *e)
{
    static const char *const own[] = { "shard", "input_hash", "output", "overwrite", "json" };
    ses_buf out = { 0 };
    const ses_json *all = ses_json_get(ses_json_root(marker), "settings");
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    for (size_t i = 0; i < ses_json_len(all); i++) {
        const char *key = ses_json_key(all, i, NULL);
        bool skip = false;
        for (size_t k = 0; k < SES_LEN(own); k++) skip |= !strcmp(key, own[k]);
        if (skip) continue;
        ses_json_put_key(w, key);
        ses_json_put_value(w, ses_json_at(all, i));
    }
    ses_json_end_object(w);
    size_t n;
    const char *text = ses_json_writer_text(w, &n, e);
    if (text) ses_buf_append(&out, text, n);
    ses_json_writer_free(w);
    if (text && ses_buf_ok(&out, e)) return out.data;
    ses_buf_free(&out);
    return NULL;
}

static bool open_one(ses_shard_set *s, const char *part, ses_err *e)
{
    char *marker = ses_shard_marker_path(part, ".done", e);
    s->marker[s->n] = marker ? ses_shard_marker_read(marker, &s->counts[s->n], e) : NULL;
    bool ok = s->marker[s->n] != NULL;
    if (marker && !ok) ses_fail(e, SES_EARG, "%s: %s is missing: the shard is not complete", part, marker);
    s->n += ok;
    ses_free(marker);
    return ok;
}

static bool check_one(const ses_shard_set *s, size_t i, const char *command, char *const *part, size_t n,
                      ses_err *e)
{
    const ses_json *v = ses_json_root(s->marker[i]);
    int64_t index = -1, count = -1;
    ses_json_int(ses_json_get(v, "shard"), &index);
    ses_json_int(ses_json_get(v, "shards"), &count);
    const char *by = ses_json_string(ses_json_get(ses_json_get(v, "settings"), "command"), NULL);
    if (!by || strcmp(by, command))
        return ses_fail(e, SES_EARG, "%s: not a shard of `sesame %s`", part[i], command);
    if (count != (int64_t)n || index != (int64_t)i)
        return ses_fail(e, SES_EARG,
                        "%s: shard %" PRId64 "/%" PRId64 ", expected %zu/%zu: give all shards in order",
                        part[i], index, count, i, n);
    return ses_shard_file_check(part[i], &s->counts[i], e);
}

bool ses_shard_set_open(ses_shard_set *s, const char *command, char *const *part, size_t n, ses_err *e)
{
    s->marker = ses_alloc_array(n, sizeof *s->marker, e);
    s->counts = s->marker ? ses_alloc_array(n, sizeof *s->counts, e) : NULL;
    char *first = NULL;
    bool ok = s->counts != NULL;
    for (size_t i = 0; ok && i < n; i++) {
        ok = open_one(s, part[i], e) && check_one(s, i, command, part, n, e);
        char *settings = ok ? common_settings(s->marker[i], e) : NULL;
        ok = settings != NULL;
        if (ok && first && strcmp(settings, first))
            ok = ses_fail(e, SES_EARG,
                          "%s: its settings or input differ from the settings and input of %s (see %s.done)",
                          part[i], part[0], part[i]);
        if (!first) first = settings, settings = NULL;
        ses_free(settings);
    }
    ses_free(first);
    return ok;
}

void ses_shard_set_free(ses_shard_set *s)
{
    for (size_t i = 0; i < s->n; i++) ses_json_free(s->marker[i]);
    ses_free(s->marker);
    ses_free(s->counts);
    *s = (ses_shard_set){ 0 };
}

bool ses_shard_done_write(const char *path, const ses_shard_plan *p, const char *identity,
                          ses_shard_counts *n, const char *extra, ses_err *e)
{
    struct stat st;
    ses_sha sha = ses_sha256_start();
    char *marker = ses_shard_marker_path(path, ".done", e);
    int fd = marker ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool ok = fd >= 0 && fstat(fd, &st) == 0;
    if (marker && !ok) ses_fail(e, SES_EIO, "%s: %s", path, strerror(errno));
    ok = ok && ses_shard_hash_file(fd, path, 0, (uint64_t)st.st_size, &sha, e);
    if (ok) {
        n->bytes = (uint64_t)st.st_size;
        ses_sha_hex(&sha, n->sha256);
        ok = ses_shard_marker_write(marker, p, identity, n, extra, e);
    }
    if (fd >= 0) close(fd);
    ses_free(marker);
    return ok;
}
