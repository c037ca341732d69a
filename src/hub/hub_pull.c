/* Downloads a model: the list of files, the plan, the downloads, the snapshot. */
#define _POSIX_C_SOURCE 200809L
#include "hub_pull.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "hub_store.h"
#include "sesame/base.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

enum { PARALLEL = 4 };
static const double BACKOFF = 1;

struct ses_hub_pull {
    ses_hub_name name;
    ses_hub_pull_options o;
    ses_hub_files files;
    ses_hub_store store;
    ses_fetcher fetcher;
    char *dir, *endpoint, *token, *cache, *authorities;
    uint64_t *have;     /* [files.n]: bytes in the cache when the plan was made */
    ses_buf answer;     /* the API's */
    ses_hub_part *part; /* downloads that run */
    size_t n_parts;
    uint64_t complete; /* bytes of the files that need no download */
};

void ses_hub_pull_free(ses_hub_pull *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->n_parts; i++) ses_hub_part_close(&p->part[i]);
    if (p->token) memset(p->token, 0, strlen(p->token));
    ses_curl_unload(&p->fetcher.curl);
    ses_hub_files_free(&p->files);
    ses_hub_store_free(&p->store);
    ses_buf_free(&p->answer);
    ses_free(p->part);
    ses_free(p->have);
    ses_free(p->dir);
    ses_free(p->endpoint);
    ses_free(p->token);
    ses_free(p->cache);
    ses_free(p->authorities);
    ses_free(p);
}

/* ---- refusals ---- */

static bool is_code(const ses_http_headers *r, const char *code) { return !strcmp(r->code, code); }

/* Status codes as instructions. Other codes: the fetcher's message. */
static void explain(const ses_hub_pull *p, const char *file, long status, const ses_http_headers *r,
                    ses_err *e)
{
    const char *id = p->name.id;
    bool gated = is_code(r, "GatedRepo");
    if (status == 404 && is_code(r, "RevisionNotFound"))
        ses_fail(e, SES_EIO, "%s: the hub has no revision \"%s\" of this model", id, p->name.revision);
    else if (status == 404 && file)
        ses_fail(e, SES_EIO, "%s: the hub no longer has %s at commit %s", id, file, p->files.commit);
    else if (status == 404 || (status == 401 && is_code(r, "RepoNotFound")))
        ses_fail(e, SES_EIO, "%s: the hub %s has no such model%s", id, p->endpoint,
                 p->token ? ", or the token has no access to it" : "; if it is private, set HF_TOKEN");
    else if ((status == 401 || status == 403) && (gated || status == 403))
        ses_fail(e, SES_EIO, "%s: access is restricted (%ld): accept the conditions at %s/%s, then %s", id,
                 status, p->endpoint, id,
                 p->token ? "run the command again with the token of that account" : "set HF_TOKEN");
    else if (status == 401)
        ses_fail(e, SES_EIO, "%s: the hub requires a login (401): %s", id,
                 p->token ? "HF_TOKEN is not valid" : "set HF_TOKEN, or check the name");
}

/* ---- the list of files ---- */

static ses_fetch_begin list_begin(void *ctx, uint64_t *offset, ses_err *e)
{
    ses_hub_pull *p = ctx;
    (void)e;
    *offset = p->answer.len = 0;
    return SES_FETCH_GO;
}

static bool list_restart(void *ctx, ses_err *e)
{
    ses_hub_pull *p = ctx;
    (void)e;
    p->answer.len = 0;
    return true;
}

static bool list_take(void *ctx, const void *bytes, size_t n, ses_err *e)
{
    ses_hub_pull *p = ctx;
    if (n > SES_HUB_LIST_MAX - p->answer.len)
        return ses_fail(e, SES_EFORMAT, "the list of files is longer than %d bytes", SES_HUB_LIST_MAX);
    return ses_buf_append(&p->answer, bytes, n) || ses_buf_ok(&p->answer, e);
}

static ses_fetch_end list_end(void *ctx, ses_err *e)
{
    (void)ctx, (void)e;
    return SES_FETCH_COMPLETE;
}

static void list_explain(void *ctx, long status, const ses_http_headers *r, ses_err *e)
{
    explain(ctx, NULL, status, r, e);
}

static const ses_fetch_sink list_sink = { list_begin, list_restart, list_take, list_end, list_explain };

/* "refs/pr/1" is one part of the URL: its slashes are escaped, too. */
static void put_revision(ses_buf *b, const char *revision)
{
    for (const char *at = revision; *at;) {
        char part[SES_HUB_REVISION_MAX + 1];
        size_t n = strcspn(at, "/");
        snprintf(part, sizeof part, "%.*s", (int)n, at);
        ses_url_put_path(b, part);
        at += n;
        if (*at) ses_buf_puts(b, "%2F"), at++;
    }
}

static bool fetch_list(ses_hub_pull *p, ses_err *e)
{
    ses_buf url = { 0 };
    ses_buf_appendf(&url, "%s/api/models/%s/revision/", p->endpoint, p->name.id);
    put_revision(&url, p->name.revision);
    ses_buf_puts(&url, "?blobs=true");
    ses_fetch f = { .url = url.data, .name = p->name.id, .sink = &list_sink, .ctx = p };
    bool ok = ses_buf_ok(&url, e) && ses_fetcher_run(&p->fetcher, &f, 1, e);
    ses_buf_free(&url);
    if (!ok) return false;
    ses_json_doc *doc = ses_json_parse(p->answer.len ? p->answer.data : "", p->answer.len, e);
    ok = doc && ses_hub_files_from_api(&p->files, ses_json_root(doc), e);
    ses_json_free(doc);
    return ok || ses_wrap(e, "%s: answer of %s", p->name.id, p->endpoint);
}

/* ---- the plan ---- */

static bool make_plan(ses_hub_pull *p, bool no_links, ses_err *e)
{
    if (!ses_hub_files_check_usable(&p->files, e)) return ses_wrap(e, "%s", p->name.id);
    p->have = ses_alloc_array(p->files.n, sizeof *p->have, e);
    if (!p->have || !ses_hub_store_open(&p->store, p->cache, &p->name, no_links, e)) return false;
    p->dir = ses_hub_store_snapshot(&p->store, p->files.commit, e);
    for (size_t i = 0; p->dir && i < p->files.n; i++) {
        const ses_hub_file *f = &p->files.item[i];
        if (f->use == SES_HUB_SKIPPED) continue;
        if (!*ses_hub_file_etag(f))
            return ses_fail(e, SES_EFORMAT, "%s: the hub lists no hash of %s", p->name.id, f->path);
        bool has = ses_hub_store_has(&p->store, p->files.commit, f);
        p->have[i] = has ? f->size : ses_hub_store_part_size(&p->store, f);
    }
    return p->dir != NULL;
}

static bool on_tick(void *ctx, const char *note)
{
    const ses_hub_pull *p = ctx;
    uint64_t done = p->complete;
    for (size_t i = 0; i < p->n_parts; i++) done += p->part[i].got;
    return !p->o.on_progress || p->o.on_progress(p->o.ctx, done, note);
}

ses_hub_pull *ses_hub_pull_open(const ses_hub_name *name, const ses_hub_env *env,
                                const ses_hub_pull_options *options, ses_err *e)
{
    if (env->offline) {
        ses_fail(e, SES_EIO,
                 "%s: HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set: no connection was opened; unset it to "
                 "download",
                 name->id);
        return NULL;
    }
    ses_hub_pull *p = ses_alloc(sizeof *p, e);
    if (!p) return NULL;
    p->name = *name;
    p->o = *options;
    p->endpoint = ses_strdup(env->endpoint, e);
    p->token = env->token ? ses_strdup(env->token, e) : NULL;
    p->cache = ses_strdup(env->cache, e);
    p->authorities = env->authorities ? ses_strdup(env->authorities, e) : NULL;
    bool ok = p->endpoint && p->cache && (!env->token || p->token) && (!env->authorities || p->authorities) &&
              ses_curl_load(&p->fetcher.curl, options->curl, e);
    ses_curl curl = p->fetcher.curl;
    p->fetcher = (ses_fetcher){ .curl = curl,
                                .endpoint = p->endpoint,
                                .token = p->token,
                                .agent = "sesame/" SES_VERSION,
                                .authorities = p->authorities,
                                .parallel = options->parallel > 0 ? options->parallel : PARALLEL,
                                .timeout = env->timeout,
                                .backoff = options->backoff > 0 ? options->backoff : BACKOFF,
                                .on_tick = on_tick,
                                .ctx = p };
    if (ok && fetch_list(p, e) && make_plan(p, env->no_links, e)) return p;
    ses_hub_pull_free(p);
    return NULL;
}

const ses_hub_files *ses_hub_pull_files(const ses_hub_pull *p) { return &p->files; }
const char *ses_hub_pull_dir(const ses_hub_pull *p) { return p->dir; }
uint64_t ses_hub_pull_have(const ses_hub_pull *p, size_t i) { return p->have[i]; }

uint64_t ses_hub_pull_total(const ses_hub_pull *p, uint64_t *have)
{
    uint64_t total = 0; /* at most SES_HUB_MAX_FILES files of 2^44 bytes: below 2^62 */
    *have = 0;
    for (size_t i = 0; i < p->files.n; i++) {
        if (p->files.item[i].use == SES_HUB_SKIPPED) continue;
        total += p->files.item[i].size;
        *have += p->have[i];
    }
    return total;
}

/* ---- downloads ---- */

static void file_explain(void *ctx, long status, const ses_http_headers *r, ses_err *e)
{
    const ses_hub_part *part = ctx;
    const ses_hub_pull *p = (const void *)((const char *)part->store - offsetof(ses_hub_pull, store));
    explain(p, part->file->path, status, r, e);
}

static const ses_fetch_sink file_sink = { ses_hub_part_begin, ses_hub_part_restart, ses_hub_part_take,
                                          ses_hub_part_end, file_explain };

/* The disk of a folder that may not exist yet: of the first folder above that does. */
static bool disk_of(const char *path, struct statvfs *fs)
{
    char *at = ses_strdup(path, NULL);
    bool ok = false;
    while (at && !(ok = statvfs(at, fs) == 0) && strcmp(at, "/") && strcmp(at, ".")) {
        char *above = ses_path_parent(at, NULL);
        ses_free(at);
        at = above;
    }
    ses_free(at);
    return ok;
}

static bool check_space(const ses_hub_pull *p, ses_err *e)
{
    struct statvfs fs;
    uint64_t have, need = ses_hub_pull_total(p, &have) - have, available;
    if (!disk_of(p->store.cache, &fs) || !fs.f_blocks ||
        __builtin_mul_overflow((uint64_t)fs.f_bavail, (uint64_t)fs.f_frsize, &available) || need <= available)
        return true;
    return ses_fail(e, SES_EIO, "%s: %" PRIu64 " bytes needed, %" PRIu64 " available on the disk of %s",
                    p->name.id, need, available, p->store.cache);
}

/* The downloads: one for each blob, though several files may share it. */
static bool add_parts(ses_hub_pull *p, ses_err *e)
{
    p->complete = p->n_parts = 0;
    p->part = ses_alloc_array(p->files.n, sizeof *p->part, e);
    for (size_t i = 0; p->part && i < p->files.n; i++) {
        const ses_hub_file *f = &p->files.item[i];
        if (f->use == SES_HUB_SKIPPED) continue;
        bool shared = p->have[i] == f->size && ses_hub_store_has(&p->store, p->files.commit, f);
        if (shared) p->complete += f->size;
        for (size_t k = 0; k < p->n_parts && !shared; k++)
            if (!strcmp(ses_hub_file_etag(p->part[k].file), ses_hub_file_etag(f))) shared = true;
        if (shared) continue;
        if (!ses_hub_part_init(&p->part[p->n_parts], &p->store, f, e)) return false;
        p->n_parts++;
    }
    return p->part != NULL;
}

static bool download(ses_hub_pull *p, ses_err *e)
{
    ses_fetch *fetch = ses_alloc_array(p->n_parts, sizeof *fetch, e);
    char **url = ses_alloc_array(p->n_parts, sizeof *url, e);
    bool ok = fetch && url;
    for (size_t i = 0; ok && i < p->n_parts; i++) {
        ses_buf b = { 0 };
        ses_buf_appendf(&b, "%s/%s/resolve/%s/", p->endpoint, p->name.id, p->files.commit);
        ses_url_put_path(&b, p->part[i].file->path);
        ok = ses_buf_ok(&b, e);
        url[i] = b.data;
        fetch[i] = (ses_fetch){
            .url = b.data, .name = p->part[i].file->path, .sink = &file_sink, .ctx = &p->part[i]
        };
    }
    ok = ok && ses_fetcher_run(&p->fetcher, fetch, p->n_parts, e);
    for (size_t i = 0; url && i < p->n_parts; i++) ses_free(url[i]);
    for (size_t i = 0; i < p->n_parts; i++) ses_hub_part_close(&p->part[i]);
    ses_free(url);
    ses_free(fetch);
    return ok;
}

bool ses_hub_pull_run(ses_hub_pull *p, ses_err *e)
{
    bool ok = check_space(p, e) && ses_hub_store_prepare(&p->store, &p->files, e) && add_parts(p, e) &&
              download(p, e);
    for (size_t i = 0; ok && i < p->files.n; i++)
        if (p->files.item[i].use != SES_HUB_SKIPPED)
            ok = ses_hub_store_link(&p->store, p->files.commit, &p->files.item[i], e);
    ok = ok && ses_hub_store_finish(&p->store, &p->files, p->have, e) &&
         ses_hub_store_set_ref(&p->store, p->name.revision, p->files.commit, e);
    for (size_t i = 0; i < p->n_parts; i++) p->part[i].got = 0;
    p->n_parts = 0;
    return ok;
}
