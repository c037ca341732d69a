/* Operation of a server: names of folders, reloads beside requests, counts of inputs, a log whose reader
 * stops. */
#define _GNU_SOURCE
#include "serve/access_log.h"
#include "serve/serve_impl.h"
#include "serve_fixture.h"

#include <fcntl.h>

static void test_loopback(void)
{
    static const struct {
        const char *name;
        bool loopback;
    } list[] = { { "localhost", true },
                 { "127.0.0.1", true },
                 { "127.8.9.1", true },
                 { "::1", true },
                 { "127.example.com", 0 },
                 { "127.0.0.1.example.com", 0 },
                 { "localhost.example", 0 },
                 { "0.0.0.0", false },
                 { "::", false },
                 { "128.0.0.1", false },
                 { "", false },
                 { "127.", false } };
    for (size_t i = 0; i < SES_LEN(list); i++)
        CHECK_MSG(ses_http_is_loopback((ses_string){ list[i].name, strlen(list[i].name) }) ==
                      list[i].loopback,
                  "%s", list[i].name);
}

/* "." and ".." are named as their folders. */
static void test_names(void)
{
    ses_err e = { 0 };
    char name[256], old[4096], inside[300];
    if (!CHECK(getcwd(old, sizeof old) && !chdir(tmp_path("encoder")))) return;
    static const struct {
        const char *spec, *name;
    } list[] = { { ".", "encoder" }, { "./", "encoder" }, { "1_Pooling/..", "encoder" },
                 { "x=.", "x" },     { "a/b/", "b" },     { "org/m=/x", "org/m" } };
    for (size_t i = 0; i < SES_LEN(list); i++) {
        CHECK_MSG(ses_registry_spec_name(list[i].spec, name, sizeof name, &e), "%s", e.msg);
        CHECK_STR(name, list[i].name);
    }
    snprintf(inside, sizeof inside, "%s/1_Pooling", tmp_path("encoder"));
    CHECK(!chdir(inside) && ses_registry_spec_name("..", name, sizeof name, &e));
    CHECK_STR(name, "encoder");
    CHECK(!chdir(old));
}

static void test_counts(serving *s)
{
    post(s, "/tokenize", "{\"inputs\":[\"a\",\"b\",\"c\"]}", 200);
    post(s, "/tokenize", "{\"inputs\":[\"a\",\"b\",\"c\",\"d\"]}", 413);
    post(s, "/decode", "{\"ids\":[[62],[62],[62],[62]]}", 413);
    /* the ids are invalid, too, but are not read */
    post(s, "/v1/embeddings", "{\"input\":[[62],[62],[62],[999999]]}", 413);
    post(s, "/v1/embeddings", "{\"input\":[[62],[62],[62]]}", 200);
}

/* ---- reloads ---- */

static void *reload(void *arg)
{
    const serving *s = arg;
    ses_http_client *c = serving_connect(s);
    long failed = 0;
    for (int i = 0; i < 10; i++) {
        ses_http_response a = { 0 };
        ses_http_request r = { .method = "POST", .target = "/admin/models/encoder/reload", .body = "" };
        failed += !ses_http_client_request(c, &r, &a, NULL) || a.status != 200;
    }
    ses_http_client_free(c);
    return (void *)failed;
}

/* More reloads at a time than workers: requests are answered meanwhile. */
static void test_reloads(serving *s)
{
    enum { CLIENTS = 4 };
    pthread_t t[CLIENTS];
    void *failed;
    for (int i = 0; i < CLIENTS; i++)
        if (pthread_create(&t[i], NULL, reload, s)) abort();
    for (int i = 0; i < 30; i++) post(s, "/embed", "{\"inputs\":\"plums\"}", 200);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(t[i], &failed);
        CHECK_MSG(!failed, "%ld reloads failed", (long)failed);
    }
    post(s, "/admin/models/none/reload", "", 404);
    char path[300], aside[300];
    snprintf(path, sizeof path, "%s/config.json", tmp_path("encoder"));
    snprintf(aside, sizeof aside, "%s/aside", tmp_path("encoder"));
    CHECK(!rename(path, aside));
    const ses_json *v = post(s, "/admin/models/encoder/reload", "", 500);
    CHECK(strstr(text_at(v, "error"), "config.json"));
    CHECK(!rename(aside, path));
    post(s, "/embed", "{\"inputs\":\"plums\"}", 200); /* the loaded model stays */
}

/* ---- the log ---- */

/* The pipe has no reader: adding lines does not wait, and the first reader learns how many are missing. */
static void test_blocked_log(void)
{
    enum { LINES = 40000 };
    int fd[2];
    ses_err e = { 0 };
    if (!CHECK(!pipe(fd))) return;
    FILE *out = fdopen(fd[1], "w");
    ses_access_log *l = ses_access_log_new(out, SES_LOG_TEXT, &e);
    if (!CHECK_MSG(l, "%s", e.msg)) return;
    char line[100];
    memset(line, 'a', sizeof line);
    line[sizeof line - 1] = '\n';
    double begin = ses_seconds();
    for (int i = 0; i < LINES; i++) ses_access_log_add(l, line, sizeof line);
    CHECK_MSG(ses_seconds() - begin < 60, "%g s", ses_seconds() - begin);
    uint64_t dropped = ses_access_log_dropped(l);
    CHECK_MSG(dropped > LINES / 2 && dropped < LINES, "%llu", (unsigned long long)dropped);
    /* now the pipe is read */
    ses_buf all = { 0 };
    char part[4096];
    bool added = false;
    fcntl(fd[0], F_SETFL, O_NONBLOCK);
    for (int quiet = 0; quiet < 50;) {
        ssize_t n = read(fd[0], part, sizeof part);
        if (n > 0) ses_buf_append(&all, part, (size_t)n);
        quiet = n > 0 ? 0 : quiet + 1;
        if (n <= 0) sleep_ms(10);
        if (quiet == 10 && !added) ses_access_log_add(l, line, sizeof line), added = true;
    }
    static const char begins[] = "sesame serve: ";
    uint64_t reported = 0, lines = 0;
    CHECK(ses_buf_put(&all, 0));
    for (char *save = NULL, *at = strtok_r(all.data, "\n", &save); at; at = strtok_r(NULL, "\n", &save)) {
        bool report = !strncmp(at, begins, sizeof begins - 1);
        CHECK(!report || strstr(at, " lines of the access log dropped"));
        reported += report ? strtoull(at + sizeof begins - 1, NULL, 10) : 0;
        lines += !report;
    }
    CHECK_MSG(reported == dropped, "%llu reported, %llu dropped", (unsigned long long)reported,
              (unsigned long long)dropped);
    CHECK_MSG(lines == LINES + 1 - dropped, "%llu lines", (unsigned long long)lines);
    ses_buf_free(&all);
    ses_access_log_free(l);
    fclose(out);
    close(fd[0]);
}

/* A server that writes to such a pipe answers, counts, and ends. */
static void test_blocked_server(const ses_server_options *o)
{
    serving s;
    int fd[2];
    if (!CHECK(!pipe(fd))) return;
    fcntl(fd[1], F_SETPIPE_SZ, 4096);
    ses_server_options own = *o;
    own.log = fdopen(fd[1], "w"), own.log_format = SES_LOG_JSON;
    serving_start(&s, &own);
    for (int i = 0; i < 9000; i++) get(&s, "/health", 200);
    CHECK_MSG(metric(&s, "sesame_access_log_dropped_total") > 0, "%g",
              metric(&s, "sesame_access_log_dropped_total"));
    serving_stop(&s);
    fclose(own.log);
    close(fd[0]);
}

int main(void)
{
    serving s;
    static char encoder[300];
    const char *models[] = { encoder };
    make_models();
    snprintf(encoder, sizeof encoder, "encoder=%s", tmp_path("encoder"));
    ses_server_options o = {
        .models = models, .n_models = 1, .max_inputs = 3, .token_ids = true, .admin = true
    };
    test_loopback();
    test_names();
    serving_start(&s, &o);
    test_counts(&s);
    test_reloads(&s);
    serving_stop(&s);
    test_blocked_log();
    test_blocked_server(&o);
    remove_models();
    return check_report();
}
