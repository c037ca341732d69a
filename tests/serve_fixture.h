/* A server in a thread of the test, small models of all kinds, and requests whose responses are checked. */
#ifndef TESTS_SERVE_FIXTURE_H
#define TESTS_SERVE_FIXTURE_H

#include "base/clock.h"
#include "base/str.h"
#include "check.h"
#include "http_client.h"
#include "serve/server.h"
#include "sesame/json.h"
#include "sesame/pipeline.h"

#include <pthread.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static inline void sleep_ms(long ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
    nanosleep(&t, NULL);
}

/* ---- folders ---- */

/* A temporary folder that holds models the repository does not have. */
static char serve_tmp[] = "/tmp/sesame-serve-XXXXXX";

static inline const char *tmp_path(const char *name)
{
    static char path[4][256];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", serve_tmp, name);
    return p;
}

static inline void write_text(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(text, 1, n, f) != n || fclose(f)) {
        perror(path);
        exit(1);
    }
}

static inline void write_string(const char *path, const char *text) { write_text(path, text, strlen(text)); }

static inline char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *p = malloc(1 << 22);
    *n = f && p ? fread(p, 1, 1 << 22, f) : 0;
    if (!f || !p) {
        perror(path);
        exit(1);
    }
    fclose(f);
    return p;
}

/* Copies files of a folder, named in a list that ends with NULL. */
static inline void copy_files(const char *from, const char *to, const char *const *names)
{
    char path[512];
    mkdir(to, 0700);
    for (; *names; names++) {
        size_t n;
        snprintf(path, sizeof path, "%s/%s", from, *names);
        char *p = read_all(path, &n);
        snprintf(path, sizeof path, "%s/%s", to, *names);
        write_text(path, p, n);
        free(p);
    }
}

static const char *const model_files[] = { "config.json", "model.safetensors", "tokenizer.json",
                                           "tokenizer_config.json", NULL };

/* A sentence encoder with prompts. */
static inline void make_encoder(const char *name)
{
    char dir[256], path[320];
    snprintf(dir, sizeof dir, "%s", tmp_path(name));
    copy_files("tests/pipelines/bert-mask", dir, model_files);
    snprintf(path, sizeof path, "%s/modules.json", dir);
    write_string(path, "[{\"idx\": 0, \"name\": \"0\", \"path\": \"\", \"type\": "
                       "\"sentence_transformers.models.Transformer\"}, {\"idx\": 1, \"name\": \"1\", "
                       "\"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"}]");
    snprintf(path, sizeof path, "%s/1_Pooling", dir);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/1_Pooling/config.json", dir);
    write_string(path, "{\"word_embedding_dimension\": 16, \"pooling_mode_mean_tokens\": true}");
    snprintf(path, sizeof path, "%s/config_sentence_transformers.json", dir);
    write_string(path, "{\"prompts\": {\"query\": \"plums: \", \"passage\": \"\"}}");
}

/* A generator of the golden files with a vocabulary: w5 to w70. */
static inline void make_generator(const char *from, const char *name)
{
    static const char *const files[] = { "config.json", "generation_config.json", "model.safetensors", NULL };
    char dir[256], path[320], word[16];
    ses_buf b = { 0 };
    snprintf(dir, sizeof dir, "%s", tmp_path(name));
    copy_files(from, dir, files);
    ses_buf_puts(&b, "<s>\n<pad>\n</s>\n<unk>\n[MASK]\n");
    for (int i = 5; i < 71; i++) {
        snprintf(word, sizeof word, "w%d\n", i);
        ses_buf_puts(&b, word);
    }
    snprintf(path, sizeof path, "%s/vocab.txt", dir);
    write_text(path, b.data, b.len);
    ses_buf_free(&b);
    snprintf(path, sizeof path, "%s/tokenizer_config.json", dir);
    write_string(path, "{\"tokenizer_class\": \"BertTokenizer\", \"cls_token\": \"<s>\", \"sep_token\": "
                       "\"</s>\", \"pad_token\": \"<pad>\", \"unk_token\": \"<unk>\"}");
}

/* Makes every weight of a model NaN. */
static inline void make_nan(const char *name)
{
    char path[320];
    size_t n;
    uint64_t head;
    snprintf(path, sizeof path, "%s/model.safetensors", tmp_path(name));
    char *p = read_all(path, &n);
    memcpy(&head, p, sizeof head);
    for (size_t i = 8 + (size_t)head; i + 4 <= n; i += 4) memcpy(p + i, "\0\0\xc0\x7f", 4);
    write_text(path, p, n);
    free(p);
}

static inline void make_models(void)
{
    if (!mkdtemp(serve_tmp)) exit(1);
    make_encoder("encoder");
    make_generator("tests/golden/bart-lm", "rewriter");
}

static inline void remove_models(void)
{
    char command[320];
    snprintf(command, sizeof command, "rm -rf '%s'", serve_tmp);
    if (system(command)) perror(command);
}

/* ---- the server ---- */

typedef struct serving {
    ses_device *dev;
    ses_server *server;
    pthread_t thread;
    int port;
    bool ok;
    ses_http_client *client; /* for the thread of the test */
    ses_http_response a;     /* the last response */
    ses_json_doc *doc;
    char shape[4096];
} serving;

static inline void *serving_run(void *arg)
{
    serving *s = arg;
    s->ok = ses_server_run(s->server, NULL);
    return NULL;
}

/* Called in any thread. */
static inline ses_http_client *serving_connect(const serving *s)
{
    ses_err e = { 0 };
    ses_http_client *c = ses_http_client_open("127.0.0.1", s->port, 300, &e);
    if (c) return c;
    printf("cannot connect: %s\n", e.msg);
    exit(1);
}

static int serve_threads = 1; /* for kernels */

/* o->dev is opened here. */
static inline void serving_start(serving *s, const ses_server_options *o)
{
    ses_err e = { 0 };
    ses_server_options own = *o;
    *s = (serving){ .dev = ses_device_open("cpu", &(ses_device_options){ .threads = serve_threads }, &e) };
    own.dev = s->dev;
    own.drain_seconds = 300;
    s->server = s->dev ? ses_server_new(&own, &e) : NULL;
    if (!CHECK_MSG(s->server, "%s", e.msg)) exit(check_report());
    s->port = ses_server_port(s->server);
    if (pthread_create(&s->thread, NULL, serving_run, s)) abort();
    s->client = serving_connect(s);
}

/* Drains the server; the run must end. */
static inline void serving_stop(serving *s)
{
    ses_http_client_free(s->client);
    ses_json_free(s->doc);
    ses_server_drain(s->server);
    pthread_join(s->thread, NULL);
    CHECK(s->ok);
    ses_server_free(s->server);
    ses_device_free(s->dev);
}

/* ---- requests ---- */

/* Sends a request and checks the status; the response is in s->a, its JSON in s->doc (NULL: none). */
static inline const ses_json *ask(serving *s, const ses_http_request *r, int status)
{
    ses_err e = { 0 };
    ses_json_free(s->doc);
    s->doc = NULL;
    s->a = (ses_http_response){ 0 };
    bool ok = ses_http_client_request(s->client, r, &s->a, &e);
    if (!CHECK_MSG(ok && s->a.status == status, "%s %.200s: status %d, wanted %d: %s%.*s", r->target,
                   r->body ? r->body : "", s->a.status, status, e.msg,
                   s->a.body.n < 300 ? (int)s->a.body.n : 300, s->a.body.p ? s->a.body.p : ""))
        check_failed += 0;
    if (!ok || !s->a.keep_alive) {
        ses_http_client_free(s->client);
        s->client = serving_connect(s);
        s->a.body.n = 0;
        return NULL;
    }
    ses_string type = ses_http_response_header(&s->a, "content-type");
    if (!ses_equal(type.p, type.n, "application/json") || !s->a.body.n) return NULL;
    s->doc = ses_json_parse(s->a.body.p, s->a.body.n, &e);
    CHECK_MSG(s->doc, "%s: not JSON: %s", r->target, e.msg);
    return ses_json_root(s->doc);
}

static inline const ses_json *post_with(serving *s, const char *headers, const char *path, const char *body,
                                        int status)
{
    return ask(s,
               &(ses_http_request){
                   .method = "POST", .target = path, .headers = headers, .body = body, .n = strlen(body) },
               status);
}

static inline const ses_json *post(serving *s, const char *path, const char *body, int status)
{
    return post_with(s, "Content-Type: application/json\r\n", path, body, status);
}

static inline const ses_json *get(serving *s, const char *path, int status)
{
    return ask(s, &(ses_http_request){ .target = path }, status);
}

static inline bool body_is(const serving *s, const char *text)
{
    return s->a.body.n == strlen(text) && !memcmp(s->a.body.p, text, s->a.body.n);
}

/* The value of a response header; -1: absent. */
static inline long header_number(const serving *s, const char *name)
{
    ses_string v = ses_http_response_header(&s->a, name);
    return v.p ? strtol(v.p, NULL, 10) : -1;
}

/* A body with n texts between before and after: a list if there is a quote. Free it with free. */
static inline char *body_of(const char *before, size_t n, const char *text, const char *quote,
                            const char *after)
{
    ses_buf b = { 0 };
    ses_buf_puts(&b, before);
    for (size_t i = 0; i < n; i++)
        ses_buf_appendf(&b, "%s%s%s%s", i && *quote ? "," : "", quote, text, quote);
    ses_buf_puts(&b, after);
    if (!ses_buf_ok(&b, NULL)) abort();
    return b.data;
}

/* A value of /metrics: name with labels, as in the text. -1: absent. */
static inline double metric(serving *s, const char *name)
{
    char line[128];
    snprintf(line, sizeof line, "\n%s ", name);
    get(s, "/metrics", 200);
    const char *at = memmem(s->a.body.p, s->a.body.n, line, strlen(line));
    return at ? strtod(at + strlen(line), NULL) : -1;
}

/* ---- JSON ---- */

/* The member at a path such as "data/0/index". */
static inline const ses_json *member(const ses_json *v, const char *path)
{
    char key[64];
    for (; v && *path; path += *path == '/') {
        size_t n = strcspn(path, "/");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        v = ses_json_type_of(v) == SES_JSON_ARRAY ? ses_json_at(v, (size_t)strtoul(key, NULL, 10))
                                                  : ses_json_get(v, key);
        path += n;
    }
    return v;
}

static inline const char *text_at(const ses_json *v, const char *path)
{
    const char *s = ses_json_string(member(v, path), NULL);
    return s ? s : "(none)";
}

static inline double number_at(const ses_json *v, const char *path)
{
    double x = -1e300;
    return ses_json_real(member(v, path), &x) ? x : -1e300;
}

/* The structure of a value: {key:s,key:[n]}. s: string, n: number, b: bool, 0: null. Elements of the same
 * structure are written once. */
static inline void put_shape(ses_buf *b, const ses_json *v)
{
    static const char scalar[] = { '0', 'b', 'n', 'n', 'n', 's' };
    ses_json_type t = ses_json_type_of(v);
    if (t < SES_JSON_ARRAY) {
        ses_buf_put(b, scalar[t]);
        return;
    }
    bool object = t == SES_JSON_OBJECT;
    ses_buf last = { 0 };
    ses_buf_put(b, object ? '{' : '[');
    for (size_t i = 0, n = 0; i < ses_json_len(v); i++) {
        ses_buf x = { 0 };
        if (object) ses_buf_appendf(&x, "%s:", ses_json_key(v, i, NULL));
        put_shape(&x, ses_json_at(v, i));
        bool same = !object && last.len == x.len && !memcmp(last.data, x.data, x.len);
        if (!same) ses_buf_appendf(b, "%s%.*s", n++ ? "," : "", (int)x.len, x.data);
        ses_buf_free(&last);
        last = x;
    }
    ses_buf_free(&last);
    ses_buf_put(b, object ? '}' : ']');
}

static inline const char *shape_of(serving *s, const ses_json *v)
{
    ses_buf b = { 0 };
    put_shape(&b, v);
    snprintf(s->shape, sizeof s->shape, "%.*s", (int)b.len, b.data);
    ses_buf_free(&b);
    return s->shape;
}

#endif
