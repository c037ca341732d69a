/* serve: answers requests over HTTP with the loaded models, and serves the page. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/clock.h"
#include "cli/compute_args.h"
#include "cli/model_args.h"
#include "serve/server.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STOP_SECONDS = 2 }; /* from the second SIGTERM to the end of the process */

typedef struct args {
    ses_compute_args compute;
    ses_opt_list models, allowed_hosts;
    const char *host, *unix_socket, *models_file, *api_key_file;
    int64_t port, workers, batch_tokens, max_inputs, queue_inputs, queue_tokens, max_new_tokens;
    int64_t max_body, max_connections;
    double deadline, drain, head_seconds, body_seconds, idle_seconds;
    int log_format;
    bool token_ids, admin, insecure;
} args;

static const ses_opt opt[] = {
    { .name = "model",
      .letter = 'm',
      .type = SES_OPT_LIST,
      .offset = offsetof(args, models),
      .value = "[NAME=]DIR",
      .help =
          "model to serve: a folder, a bundled model or NAME=FOLDER; may be repeated. Default: the bundled "
          "models" },
    { .name = "models-file",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, models_file),
      .value = "FILE",
      .help = "more models, one per line; read again on SIGHUP" },
    { .name = "host",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, host),
      .value = "ADDRESS",
      .def = "127.0.0.1",
      .help = "address to listen on; others than loopback need --api-key-file or --insecure" },
    { .name = "port",
      .letter = 'p',
      .type = SES_OPT_INT,
      .offset = offsetof(args, port),
      .value = "N",
      .def = "8080",
      .max = 65535,
      .help = "port to listen on; 0: any free port" },
    { .name = "unix-socket",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, unix_socket),
      .value = "PATH",
      .help = "listen on this Unix socket instead" },
    { .name = "api-key-file",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, api_key_file),
      .value = "FILE",
      .env = "SESAME_API_KEY_FILE",
      .help = "keys, one per line; requests need Authorization: Bearer KEY" },
    { .name = "insecure",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, insecure),
      .help = "allow --host with another address than loopback without a key" },
    { .name = "allowed-host",
      .type = SES_OPT_LIST,
      .offset = offsetof(args, allowed_hosts),
      .value = "NAME",
      .help = "accept this name in the Host header, besides localhost and the address; may be repeated" },
    { .name = "admin",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, admin),
      .help = "serve /admin/models/NAME/reload and /unload" },
    { .name = "token-ids",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, token_ids),
      .help = "accept token ids as input of /v1/embeddings" },
    { .name = "batch-tokens",
      .type = SES_OPT_INT,
      .offset = offsetof(args, batch_tokens),
      .value = "N",
      .max = 1 << 24,
      .help = "maximum tokens per batch; default: 2048, on a GPU 16384" },
    { .name = "workers",
      .type = SES_OPT_INT,
      .offset = offsetof(args, workers),
      .value = "N",
      .max = 64,
      .help = "threads that tokenize, compute and answer, at least 2; default: 2, on a GPU 4" },
    { .name = "max-inputs",
      .type = SES_OPT_INT,
      .offset = offsetof(args, max_inputs),
      .value = "N",
      .def = "2048",
      .min = 1,
      .max = 1 << 24,
      .help = "inputs per request; more are rejected with 400 or 422" },
    { .name = "queue-inputs",
      .type = SES_OPT_INT,
      .offset = offsetof(args, queue_inputs),
      .value = "N",
      .def = "4096",
      .min = 1,
      .max = 1 << 24,
      .help = "inputs admitted at a time; more are rejected with 429" },
    { .name = "queue-tokens",
      .type = SES_OPT_INT,
      .offset = offsetof(args, queue_tokens),
      .value = "N",
      .def = "1048576",
      .min = 1,
      .max = 1e12,
      .help = "tokens admitted at a time; more are rejected with 429" },
    { .name = "max-new-tokens",
      .type = SES_OPT_INT,
      .offset = offsetof(args, max_new_tokens),
      .value = "N",
      .def = "1024",
      .min = 1,
      .max = 1 << 20,
      .help = "maximum tokens that a request may generate" },
    { .name = "max-body",
      .type = SES_OPT_SIZE,
      .offset = offsetof(args, max_body),
      .value = "SIZE",
      .def = "32M",
      .min = 1024,
      .max = 1e12,
      .help = "size of a request; larger ones are rejected with 413" },
    { .name = "max-connections",
      .type = SES_OPT_INT,
      .offset = offsetof(args, max_connections),
      .value = "N",
      .def = "1024",
      .min = 1,
      .max = 1 << 20,
      .help = "open connections" },
    { .name = "deadline",
      .type = SES_OPT_REAL,
      .offset = offsetof(args, deadline),
      .value = "SECONDS",
      .def = "300",
      .min = 0.001,
      .max = 1e6,
      .help = "time for a request that has no x-deadline-ms header; then it is answered with 504" },
    { .name = "drain",
      .type = SES_OPT_REAL,
      .offset = offsetof(args, drain),
      .value = "SECONDS",
      .def = "30",
      .min = 0.001,
      .max = 1e6,
      .help = "time for requests in progress after SIGTERM" },
    { .name = "header-timeout",
      .type = SES_OPT_REAL,
      .offset = offsetof(args, head_seconds),
      .value = "SECONDS",
      .def = "10",
      .min = 0.001,
      .max = 1e6,
      .help = "time for a client to send the headers of a request" },
    { .name = "body-timeout",
      .type = SES_OPT_REAL,
      .offset = offsetof(args, body_seconds),
      .value = "SECONDS",
      .def = "60",
      .min = 0.001,
      .max = 1e6,
      .help = "time for a client to send the body of a request" },
    { .name = "idle-timeout",
      .type = SES_OPT_REAL,
      .offset = offsetof(args, idle_seconds),
      .value = "SECONDS",
      .def = "75",
      .min = 0.001,
      .max = 1e6,
      .help = "time a connection may stay open without a request" },
    { .name = "access-log",
      .type = SES_OPT_CHOICE,
      .offset = offsetof(args, log_format),
      .choices = "none|text|json",
      .def = "none",
      .implicit_value = "text",
      .help = "write a line for each request to standard error, without its texts" },
    SES_OPT_INCLUDE(args, compute, ses_compute_options),
};

/* ---- signals ---- */

/* SIGTERM and SIGINT drain, a second one stops the server, a third one ends the process; SIGHUP reloads the
 * models. A thread waits for them. */
typedef struct signals {
    ses_server *server;
    sigset_t set;
    pthread_t thread;
    int last;                 /* the signal that ended the server; 0: none */
    atomic_bool ended, freed; /* ses_server_run has returned; the server has been freed */
    sem_t left;               /* the thread does not use the server any more */
} signals;

/* Until the server ends. */
static void control_server(signals *s)
{
    for (int signal; !sigwait(&s->set, &signal) && !atomic_load(&s->ended);) {
        if (signal == SIGUSR2) continue;
        if (signal == SIGHUP) {
            ses_server_reload(s->server);
        } else if (s->last) {
            ses_server_stop(s->server);
            break;
        } else {
            s->last = signal;
            ses_server_drain(s->server);
        }
    }
}

/* The server stops or is being freed. A long computation could delay that. */
static void *wait_for_signals(void *ctx)
{
    signals *s = ctx;
    struct timespec limit = { .tv_sec = STOP_SECONDS };
    control_server(s);
    bool stopped = !atomic_load(&s->ended);
    sem_post(&s->left);
    while (!atomic_load(&s->freed)) {
        int signal = stopped ? sigtimedwait(&s->set, NULL, &limit) : sigwaitinfo(&s->set, NULL);
        if (atomic_load(&s->freed)) break;
        if (signal == SIGTERM || signal == SIGINT || (signal < 0 && errno == EAGAIN)) _exit(1);
    }
    return NULL;
}

static void end_signals(signals *s)
{
    atomic_store(&s->freed, true);
    pthread_kill(s->thread, SIGUSR2);
    pthread_join(s->thread, NULL);
    sem_destroy(&s->left);
}

static void block_signals(signals *s)
{
    sigemptyset(&s->set);
    sigaddset(&s->set, SIGTERM);
    sigaddset(&s->set, SIGINT);
    sigaddset(&s->set, SIGHUP);
    sigaddset(&s->set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &s->set, NULL); /* threads inherit the mask */
    signal(SIGPIPE, SIG_IGN);
}

/* ---- options ---- */

static const char *const bundled[] = { "sesame-embed", "sesame-small", "sesame-sentiment", "sesame-ner",
                                       "sesame-qa",    "sesame-nli",   "sesame-gpt" };

static bool server_options(const args *a, ses_device *dev, ses_server_options *o, ses_err *e)
{
    if (!a->unix_socket && !ses_http_is_loopback((ses_string){ a->host, strlen(a->host) }) &&
        !a->api_key_file && !a->insecure)
        return ses_fail(
            e, SES_EUSAGE,
            "--host %s can be reached from other machines: add --api-key-file FILE, or --insecure if that "
            "is intended",
            a->host);
    *o = (ses_server_options){
        .models = a->models.item,
        .n_models = a->models.n,
        .models_file = a->models_file,
        .api_key_file = a->api_key_file,
        .dev = dev,
        .workers = (int)a->workers,
        .batch_tokens = a->batch_tokens,
        .max_inputs = a->max_inputs,
        .queue_inputs = a->queue_inputs,
        .queue_tokens = a->queue_tokens,
        .max_new_tokens = a->max_new_tokens,
        .deadline_seconds = a->deadline,
        .drain_seconds = a->drain,
        .token_ids = a->token_ids,
        .admin = a->admin,
        .log_format = (ses_log_format)a->log_format,
        .log = stderr,
    };
    o->http = (ses_http_options){
        .host = a->host,
        .port = a->unix_socket ? -1 : (int)a->port,
        .unix_socket = a->unix_socket,
        .socket_activation = true,
        .limits = { .max_body_bytes = (size_t)a->max_body,
                    .max_connections = (int)a->max_connections,
                    .head_seconds = a->head_seconds,
                    .body_seconds = a->body_seconds,
                    .idle_seconds = a->idle_seconds },
    };
    if (!a->models.n && !a->models_file) o->models = bundled, o->n_models = SES_LEN(bundled);
    return true;
}

/* The list ends with NULL; free it with ses_free. */
static const char **host_list(const args *a, ses_err *e)
{
    const char **list = ses_alloc_array(a->allowed_hosts.n + 1, sizeof *list, e);
    for (size_t i = 0; list && i < a->allowed_hosts.n; i++) list[i] = a->allowed_hosts.item[i];
    return list;
}

/* ---- running ---- */

static void print_address(const ses_call *c, const args *a, const ses_server *s, double seconds)
{
    if (c->quiet) return;
    if (a->unix_socket)
        fprintf(stderr, "sesame serve: ready in %.0f ms at unix:%s\n", 1000 * seconds, a->unix_socket);
    else
        fprintf(stderr, "sesame serve: ready in %.0f ms at http://%s%s%s:%d\n", 1000 * seconds,
                strchr(a->host, ':') ? "[" : "", a->host, strchr(a->host, ':') ? "]" : "",
                ses_server_port(s));
    fflush(stderr);
}

static bool serve(const ses_call *c, const args *a, ses_server_options *o, signals *sig, ses_err *e)
{
    double started = ses_seconds();
    ses_server *s = sig->server = ses_server_new(o, e);
    if (!s) return false;
    sem_init(&sig->left, 0, 0);
    if (pthread_create(&sig->thread, NULL, wait_for_signals, sig)) {
        ses_server_free(s);
        return ses_fail(e, SES_ENOMEM, "cannot start a thread");
    }
    print_address(c, a, s, ses_seconds() - started);
    bool ok = ses_server_run(s, e);
    atomic_store(&sig->ended, true);
    pthread_kill(sig->thread, SIGUSR2);
    while (sem_wait(&sig->left)) continue;
    ses_server_free(s);
    end_signals(sig);
    return ok;
}

/* Caches of tokenizers are large arrays of zeros, most of which stay untouched. glibc takes fresh pages for
 * them until the first such block is freed; later it clears recycled memory, which makes all pages resident.
 * A fixed threshold keeps the fresh pages. */
static void set_allocator(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 16 << 20);
#endif
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_server_options o;
    signals sig = { 0 };
    set_allocator();
    block_signals(&sig);
    ses_device_options device = ses_compute_device_options(&a->compute);
    ses_device *dev = ses_device_open(a->compute.device, &device, e);
    const char **hosts = dev ? host_list(a, e) : NULL;
    bool ok = hosts && server_options(a, dev, &o, e);
    if (ok) {
        if (a->allowed_hosts.n) o.http.allowed_hosts = hosts;
        ok = serve(c, a, &o, &sig, e);
    }
    ses_free(hosts);
    ses_device_free(dev);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame serve", "the bundled models and the page at http://127.0.0.1:8080" },
    { "sesame serve -m all-MiniLM-L6-v2 --port 9000", "one encoder" },
    { "curl localhost:8080/embed --json '{\"inputs\": \"A text.\"}'", "an embedding" },
    { 0 },
};

const ses_command ses_command_serve = {
    .name = "serve",
    .usage = "",
    .summary = "serve models over HTTP, with a page",
    .description =
        "Answers requests in the forms of OpenAI (/v1/embeddings, /v1/completions), "
        "text-embeddings-inference "
        "(/embed, /rerank, ...), Cohere, Ollama and Hugging Face (/models/NAME/pipeline/TASK), and serves a "
        "page "
        "to try the models. /openapi.json describes all routes; docs/SERVING.md explains them.\n\n"
        "SIGTERM and Ctrl-C answer the requests in progress, then end. SIGHUP loads the models again.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .run = run,
};
