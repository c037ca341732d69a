/* Downloads from a mock hub on loopback: redirects, ranges, retries, faults, hostile lists; the cache that
 * results; several processes at once. */
#define _GNU_SOURCE
#include "check.h"
#include "hub/hub_cache.h"
#include "hub/hub_pull.h"
#include "hub/hub_store.h"
#include "mock_hub.h"

#include <signal.h>
#include <sys/wait.h>

enum { BIG = 300000 }; /* bytes of model.safetensors */

static char root[256], top[200];

static void put_file(const char *path, const char *data, size_t n)
{
    char full[600], *slash;
    snprintf(full, sizeof full, "%s/%s", root, path);
    slash = strrchr(full, '/');
    *slash = 0;
    CHECK(ses_dir_make(full, NULL));
    *slash = '/';
    CHECK(ses_file_write(full, data, n, true, NULL));
}

static void make_models(void)
{
    char *big = malloc(BIG);
    for (size_t i = 0; i < BIG; i++) big[i] = (char)(i * 2654435761u >> 13);
    snprintf(top, sizeof top, "/tmp/sesame-hub-%ld", (long)getpid());
    snprintf(root, sizeof root, "%s/root", top);
    put_file("acme/tiny/config.json", "{\"a\": 1}", 8);
    put_file("acme/tiny/tokenizer.json", "{}", 2);
    put_file("acme/tiny/vocab.txt", "", 0);
    put_file("acme/tiny/1_Pooling/config.json", "{\"a\": 1}", 8); /* the blob of config.json */
    put_file("acme/tiny/model.safetensors", big, BIG);
    put_file("acme/tiny/onnx/model.onnx", big, 5000);
    put_file("acme/other/tf_model.h5", "x", 1);
    free(big);
}

/* ---- one call ---- */

typedef struct attempt {
    mock_hub *h;
    const char *name, *cache, *token;
    int parallel;
    uint64_t stop_at;              /* bytes; 0: never */
    bool offline, no_links, heals; /* heals: the server is fast after the first retry */
    int timeout;
    /* results */
    ses_err e;
    int notes;
    bool opened, stopped;
} attempt;

static bool on_progress(void *ctx, uint64_t done, const char *note)
{
    attempt *a = ctx;
    a->notes += note != NULL;
    if (note && a->heals) atomic_store(&a->h->slow_ms, 0);
    a->stopped = a->stop_at && done >= a->stop_at;
    return !a->stopped;
}

static bool pull(attempt *a)
{
    char endpoint[80], cache[300];
    ses_hub_name name;
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%d", a->h->port);
    snprintf(cache, sizeof cache, "%s/%s", top, a->cache);
    ses_hub_env env = { .cache = cache,
                        .endpoint = endpoint,
                        .token = (char *)(uintptr_t)a->token,
                        .offline = a->offline,
                        .no_links = a->no_links,
                        .timeout = a->timeout ? a->timeout : 5 };
    ses_hub_pull_options o = {
        .parallel = a->parallel, .backoff = 0.01, .on_progress = on_progress, .ctx = a
    };
    a->e = (ses_err){ 0 };
    a->notes = 0;
    CHECK(ses_hub_name_parse(a->name ? a->name : "acme/tiny", &name, NULL));
    ses_hub_pull *p = ses_hub_pull_open(&name, &env, &o, &a->e);
    a->opened = p != NULL;
    bool ok = p && ses_hub_pull_run(p, &a->e);
    ses_hub_pull_free(p);
    return ok;
}

static const char *cache_path(const char *cache, const char *below)
{
    static char path[3][1000];
    static int at;
    at = (at + 1) % 3;
    snprintf(path[at], sizeof path[at], "%s/%s/models--acme--tiny/%s", top, cache, below);
    return path[at];
}

static bool in_snapshot(const char *cache, const char *file)
{
    char below[300];
    struct stat st;
    snprintf(below, sizeof below, "snapshots/%s/%s", mock_commit, file);
    return stat(cache_path(cache, below), &st) == 0;
}

/* Whether the file in the snapshot has the bytes of the hub. */
static bool is_equal(const char *cache, const char *file)
{
    char below[300], source[600];
    size_t n = 0, k = 0;
    snprintf(below, sizeof below, "snapshots/%s/%s", mock_commit, file);
    snprintf(source, sizeof source, "%s/acme/tiny/%s", root, file);
    char *a = ses_file_read(cache_path(cache, below), 1 << 24, &n, NULL),
         *b = ses_file_read(source, 1 << 24, &k, NULL);
    bool same = a && b && n == k && !memcmp(a, b, n);
    free(a);
    free(b);
    return same;
}

static bool is_complete(const char *cache)
{
    size_t n = 0;
    char *ref = ses_file_read(cache_path(cache, "refs/main"), 100, &n, NULL);
    bool ok = ref && n == 40 && !strcmp(ref, mock_commit) && is_equal(cache, "config.json") &&
              is_equal(cache, "model.safetensors") && is_equal(cache, "1_Pooling/config.json") &&
              is_equal(cache, "vocab.txt") && !in_snapshot(cache, "onnx/model.onnx");
    free(ref);
    return ok;
}

static int count_parts(const char *cache)
{
    char command[600], line[40] = "";
    snprintf(command, sizeof command, "ls %s 2>/dev/null | grep -c incomplete", cache_path(cache, "blobs"));
    FILE *f = popen(command, "r");
    bool ok = f && fgets(line, sizeof line, f);
    if (f) pclose(f);
    return ok ? (int)strtol(line, NULL, 10) : -1;
}

/* ---- cases ---- */

static void test_plain(mock_hub *h)
{
    attempt a = { .h = h, .cache = "plain", .token = "hf_x" };
    CHECK_MSG(pull(&a), "%s", a.e.msg);
    CHECK(is_complete("plain") && count_parts("plain") == 0);
    CHECK_MSG(atomic_load(&h->tokens_here) > 0 && atomic_load(&h->tokens_elsewhere) == 0, "%d %d",
              atomic_load(&h->tokens_here), atomic_load(&h->tokens_elsewhere));
    char to[200];
    char below[100];
    snprintf(below, sizeof below, "snapshots/%s/1_Pooling/config.json", mock_commit);
    ssize_t n = readlink(cache_path("plain", below), to, sizeof to - 1);
    CHECK(n > 15 && !strncmp(to, "../../../blobs/", 15));
    int before = atomic_load(&h->file_requests);
    CHECK_MSG(pull(&a) && atomic_load(&h->file_requests) == before, "%s", a.e.msg); /* nothing again */
    a.cache = "real-files", a.no_links = true;
    CHECK_MSG(pull(&a) && is_complete("real-files"), "%s", a.e.msg);
    CHECK(readlink(cache_path("real-files", below), to, sizeof to) < 0);
    before = atomic_load(&h->file_requests);
    CHECK_MSG(pull(&a) && is_complete("real-files") && atomic_load(&h->file_requests) == before, "%s",
              a.e.msg);
    attempt other = { .h = h, .cache = "ref", .name = "acme/tiny@refs/pr/1" };
    CHECK_MSG(pull(&other), "%s", other.e.msg);
    CHECK(ses_path_exists(cache_path("ref", "refs/refs/pr/1")) &&
          !ses_path_exists(cache_path("ref", "refs/main")));
}

/* Each temporary fault is overcome; the bytes are right. */
static void test_temporary_faults(mock_hub *h)
{
    atomic_int *const fault[] = { &h->fail_429, &h->fail_503, &h->truncate, &h->wrong_bytes, &h->api_503 };
    for (size_t i = 0; i < SES_LEN(fault); i++) {
        char cache[20];
        snprintf(cache, sizeof cache, "fault-%zu", i);
        attempt a = { .h = h, .cache = cache, .parallel = 1 };
        atomic_store(fault[i], fault[i] == &h->wrong_bytes ? 1 : fault[i] == &h->truncate ? 12 : 2);
        CHECK_MSG(pull(&a) && is_complete(cache), "fault %zu: %s", i, a.e.msg);
        CHECK_MSG(a.notes > 0 && atomic_load(fault[i]) == 0, "fault %zu", i);
    }
}

/* Stops in the middle, then continues: with a range, and with servers that treat ranges differently. */
static void test_resume(mock_hub *h)
{
    static const char *const caches[] = { "resume", "resume-200", "resume-416", "resume-bad",
                                          "resume-foreign" };
    atomic_int *const fault[] = { NULL, &h->ignore_range, &h->refuse_range, &h->bad_range, NULL };
    for (size_t i = 0; i < SES_LEN(caches); i++) {
        attempt a = { .h = h, .cache = caches[i], .stop_at = BIG / 2, .parallel = 1 };
        atomic_store(&h->slow_ms, 5);
        CHECK_MSG(!pull(&a) && a.stopped && !a.e.code, "%s", a.e.msg);
        atomic_store(&h->slow_ms, 0);
        CHECK(count_parts(caches[i]) == 1 && !ses_path_exists(cache_path(caches[i], "refs/main")));
        if (i == 4) { /* other bytes under the name of the part: the hash finds them */
            char command[600];
            snprintf(command, sizeof command,
                     "for f in %s/*.incomplete; do printf xxxxx | dd of=$f conv=notrunc status=none; done",
                     cache_path(caches[i], "blobs"));
            CHECK(system(command) == 0);
        }
        int ranges = atomic_load(&h->ranges);
        if (fault[i]) atomic_store(fault[i], 1);
        a.stop_at = 0;
        CHECK_MSG(pull(&a) && is_complete(caches[i]) && count_parts(caches[i]) == 0, "%s: %s", caches[i],
                  a.e.msg);
        CHECK_MSG(atomic_load(&h->ranges) > ranges && (!fault[i] || !atomic_load(fault[i])), "%s", caches[i]);
    }
}

static void fails(attempt *a, const char *message)
{
    CHECK_MSG(!pull(a) && a->e.code && strstr(a->e.msg, message), "%s: %s", message, a->e.msg);
    CHECK(!ses_path_exists(cache_path(a->cache, "refs/main")));
}

static void test_permanent_faults(mock_hub *h)
{
    attempt a = { .h = h, .cache = "bad", .parallel = 1 };
    atomic_store(&h->wrong_bytes, 100);
    fails(&a, "expected hash");
    CHECK(!in_snapshot("bad", "model.safetensors") && count_parts("bad") == 0);
    atomic_store(&h->wrong_bytes, 0);
    atomic_store(&h->fail_503, 100);
    fails(&a, "503");
    atomic_store(&h->fail_503, 0);
    atomic_store(&h->ignore_range, 100), atomic_store(&h->truncate, 100); /* never nearer to the end */
    fails(&a, "times");
    atomic_store(&h->ignore_range, 0), atomic_store(&h->truncate, 0);
    atomic_store(&h->downgrade, 1);
    fails(&a, "redirected to \"ftp:");
    atomic_store(&h->downgrade, 0);
    atomic_store(&h->gated, 1);
    fails(&a, "access is restricted (403)");
    CHECK(strstr(a.e.msg, "HF_TOKEN"));
    atomic_store(&h->gated, 0);
    a.name = "acme/nothing";
    fails(&a, "no such model");
    a.name = "acme/tiny@v9";
    fails(&a, "no revision \"v9\"");
    a.name = "acme/other";
    fails(&a, "no files that Sesame reads");
    a.name = NULL;
    h->token = "hf_right";
    a.token = "hf_wrong";
    fails(&a, "the token has no access");
    a.token = NULL;
    fails(&a, "set HF_TOKEN");
    h->token = NULL;
    int before = atomic_load(&h->requests);
    a.offline = true;
    fails(&a, "OFFLINE");
    CHECK(atomic_load(&h->requests) == before);
    a.offline = false;
    CHECK_MSG(pull(&a) && is_complete("bad"), "%s", a.e.msg); /* nothing was poisoned */
    mock_hub gone = { .port = 1 };
    attempt b = { .h = &gone, .cache = "gone" };
    fails(&b, "acme/tiny: ");
}

/* A connection that stalls is closed after the time limit, and another continues. */
static void test_stall(mock_hub *h)
{
    attempt a = { .h = h, .cache = "stall", .parallel = 1, .timeout = 1, .heals = true };
    atomic_store(&h->slow_ms, 4000);
    CHECK_MSG(pull(&a) && is_complete("stall") && a.notes == 1, "%d: %s", a.notes, a.e.msg);
}

static void test_hostile_lists(mock_hub *h)
{
    static const char *const extra[] = {
        ",{\"rfilename\":\"../../../"
        "escape.json\",\"size\":3,\"blobId\":\"0123456789abcdef0123456789abcdef01234567\"}",
        ",{\"rfilename\":\"/tmp/"
        "escape.json\",\"size\":3,\"blobId\":\"0123456789abcdef0123456789abcdef01234567\"}",
        ",{\"rfilename\":\"merges.txt\",\"size\":3,\"blobId\":\"../../../../../../../../../tmp/xx\"}",
        ",{\"rfilename\":\"merges.txt\",\"size\":99999999999999999999}",
        ",{\"rfilename\":\"merges.txt\",\"size\":3}",
        ",{\"rfilename\":\"merges.txt\",\"size\":17592186044416,\"blobId\":"
        "\"0123456789abcdef0123456789abcdef01234567\"}",
    };
    for (size_t i = 0; i < SES_LEN(extra); i++) {
        attempt a = { .h = h, .cache = "hostile" };
        h->api_extra = extra[i];
        fails(&a, "acme/tiny");
        CHECK_MSG(!ses_path_exists(cache_path("hostile", "")), "%s", extra[i]); /* nothing is written */
    }
    h->api_extra = NULL;
}

/* Links that a hostile cache prepares: nothing is written through them. */
static void test_hostile_cache(mock_hub *h)
{
    static const char *const link[] = { "blobs", "snapshots", "refs", "trees", "" };
    for (size_t i = 0; i < SES_LEN(link); i++) {
        char cache[20], command[2000], victim[400];
        snprintf(cache, sizeof cache, "links-%zu", i);
        snprintf(victim, sizeof victim, "%s/victim-%zu", top, i);
        snprintf(command, sizeof command, "mkdir -p %s %s && rmdir %s && ln -s %s %s", victim,
                 cache_path(cache, link[i]), cache_path(cache, link[i]), victim,
                 cache_path(cache, *link[i] ? link[i] : "."));
        if (!*link[i]) {
            snprintf(command, sizeof command, "mkdir -p %s %s/%s && ln -s %s %s/%s/models--acme--tiny",
                     victim, top, cache, victim, top, cache);
        }
        CHECK(system(command) == 0);
        attempt a = { .h = h, .cache = cache };
        CHECK_MSG(!pull(&a) && strstr(a.e.msg, "expected a folder"), "%s: %s", link[i], a.e.msg);
        snprintf(command, sizeof command, "test -z \"$(ls -A %s)\"", victim);
        CHECK_MSG(system(command) == 0, "%s", link[i]);
    }
    /* the partial file is a link to another file */
    char command[3000], etag[80], data_path[600];
    size_t n;
    snprintf(data_path, sizeof data_path, "%s/acme/tiny/model.safetensors", root);
    char *data = ses_file_read(data_path, 1 << 24, &n, NULL);
    mock_hash(data, n, true, etag);
    free(data);
    snprintf(command, sizeof command,
             "mkdir -p %s && printf keep >%s/keep && ln -s %s/keep %s/%s" SES_HUB_PART,
             cache_path("part-link", "blobs"), top, top, cache_path("part-link", "blobs"), etag);
    CHECK(system(command) == 0);
    attempt a = { .h = h, .cache = "part-link" };
    CHECK(!pull(&a) && a.e.code == SES_EIO);
    snprintf(command, sizeof command, "test \"$(cat %s/keep)\" = keep", top);
    CHECK(system(command) == 0);
}

/* Several processes download the same model: each succeeds, each file is transferred once or continued. */
static void test_processes(mock_hub *h)
{
    pid_t pid[4];
    atomic_store(&h->slow_ms, 2);
    int before = atomic_load(&h->file_requests);
    for (size_t i = 0; i < SES_LEN(pid); i++) {
        pid[i] = fork();
        if (pid[i]) continue;
        attempt a = { .h = h, .cache = "together" };
        _exit(pull(&a) && is_complete("together") ? 0 : 1);
    }
    for (size_t i = 0; i < SES_LEN(pid); i++) {
        int status = -1;
        waitpid(pid[i], &status, 0);
        CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "process %zu", i);
    }
    atomic_store(&h->slow_ms, 0);
    int files = atomic_load(&h->file_requests) - before;
    CHECK_MSG(files == 3, "%d requests for 3 blobs", files);
    CHECK(is_complete("together") && count_parts("together") == 0);
}

int main(void)
{
    ses_curl curl;
    ses_err e = { 0 };
    if (!ses_curl_load(&curl, NULL, &e)) {
        SKIP(e.msg);
        return check_report();
    }
    CHECK(!ses_curl_load(&curl, "libsesame-no-such-curl.so", &e) && strstr(e.msg, "apt install libcurl4"));
    make_models();
    mock_hub h = { .root = root, .lfs_from = 4096 };
    CHECK(mock_start(&h));
    test_plain(&h);
    test_temporary_faults(&h);
    test_resume(&h);
    test_permanent_faults(&h);
    test_hostile_lists(&h);
    test_hostile_cache(&h);
    test_processes(&h);
    test_stall(&h);
    mock_stop(&h);
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", top);
    CHECK(system(command) == 0);
    return check_report();
}
