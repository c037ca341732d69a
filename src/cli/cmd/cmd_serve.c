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
    ses_opt_list models, aliases, allowed_hosts;
    const char *host, *unix_socket, *models_file, *api_key_file, *tiktoken;
    int64_t port, workers, batch_tokens, max_inputs, queue_inputs, queue_tokens, max_new_tokens;
    int64_t max_body, max_connections;
    double deadline, drain, head_seconds, body_seconds, idle_seconds;
    int log_format;
    bool token_ids, any_model, admin, insecure;
} args;

static const ses_opt opt[] = {
    SES_OPT_LIST(args, models, "model", "[NAME=]DIR",
                 "model to serve: a folder, a bundled model or NAME=FOLDER. Default: the bundled "
                 "models",
                 .letter = 'm'),
    SES_OPT_TEXT(args, models_file, "models-file", "FILE", "more models, one per line; read again on SIGHUP"),
    SES_OPT_LIST(args, aliases, "alias", "NAME=MODEL",
                 "requests may call this loaded model NAME, too: text-embedding-3-small=sesame-embed"),
    SES_OPT_FLAG(args, any_model, "any-model",
                 "a request that names an unknown model gets the only loaded model for its task"),
    SES_OPT_TEXT(args, host, "host", "ADDRESS",
                 "address to listen on; others than loopback need --api-key-file or --insecure",
                 .def = "127.0.0.1"),
    SES_OPT_INT(args, port, "port", "8080", 0, 65535, "port to listen on; 0: any free port", .letter = 'p',
                .value = "N"),
    SES_OPT_TEXT(args, unix_socket, "unix-socket", "PATH", "listen on this Unix socket instead"),
    SES_OPT_TEXT(args, api_key_file, "api-key-file", "FILE",
                 "keys, one per line; requests need Authorization: Bearer KEY", .env = "SESAME_API_KEY_FILE"),
    SES_OPT_FLAG(args, insecure, "insecure", "allow --host with another address than loopback without a key"),
    SES_OPT_LIST(args, allowed_hosts, "allowed-host", "NAME",
                 "accept this name in the Host header, besides localhost and the address", .group = "access"),
    SES_OPT_FLAG(args, admin, "admin", "serve /admin/models/NAME/reload and /unload", .group = "access"),
    SES_OPT_FLAG(args, token_ids, "token-ids", "accept token ids as input of /v1/embeddings",
                 .group = "access"),
    SES_OPT_TEXT(args, tiktoken, "tiktoken", "FILE",
                 "token ids in /v1/embeddings are of this vocabulary (cl100k_base.tiktoken for LangChain)"),
    SES_OPT_INT(args, batch_tokens, "batch-tokens", NULL, 0, 1 << 24,
                "maximum tokens per batch; default: 2048, on a GPU 16384", .value = "N"),
    SES_OPT_INT(args, workers, "workers", NULL, 0, 64,
                "threads that tokenize, compute and answer, at least 2; default: 2, on a GPU 4",
                .value = "N"),
    SES_OPT_INT(args, max_inputs, "max-inputs", "2048", 1, 1 << 24,
                "inputs per request; more are rejected with 413", .value = "N", .group = "limits"),
    SES_OPT_INT(args, queue_inputs, "queue-inputs", "4096", 1, 1 << 24,
                "inputs admitted at a time; more are rejected with 429", .value = "N", .group = "limits"),
    SES_OPT_INT(args, queue_tokens, "queue-tokens", "1048576", 1, 1e12,
                "tokens admitted at a time; more are rejected with 429", .value = "N", .group = "limits"),
    SES_OPT_INT(args, max_new_tokens, "max-new-tokens", "1024", 1, 1 << 20,
                "maximum tokens that a request may generate", .value = "N", .group = "limits"),
    SES_OPT_SIZE(args, max_body, "max-body", "32M", 1024, 1e12,
                 "size of a request; larger ones are rejected with 413", .value = "SIZE", .group = "limits"),
    SES_OPT_INT(args, max_connections, "max-connections", "1024", 1, 1 << 20, "open connections",
                .value = "N", .group = "limits"),
    SES_OPT_REAL(args, deadline, "deadline", "300", 0.001, 1e6,
                 "time for a request that has no x-deadline-ms header; then it is answered with 504",
                 .value = "SECONDS", .group = "times"),
    SES_OPT_REAL(args, drain, "drain", "30", 0.001, 1e6, "time for requests in progress after SIGTERM",
                 .value = "SECONDS", .group = "times"),
    SES_OPT_REAL(args, head_seconds, "header-timeout", "10", 0.001, 1e6,
                 "time for a client to send the headers of a request", .value = "SECONDS", .group = "times"),
    SES_OPT_REAL(args, body_seconds, "body-timeout", "60", 0.001, 1e6,
                 "time for a client to send the body of a request", .value = "SECONDS", .group = "times"),
    SES_OPT_REAL(args, idle_seconds, "idle-timeout", "75", 0.001, 1e6,
                 "time a connection may stay open without a request", .value = "SECONDS", .group = "times"),
    SES_OPT_CHOICE(args, log_format, "access-log", "none", "none|text|json",
                   "write a line for each request to standard error, without its texts",
                   .implicit_value = "text"),
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
        .aliases = a->aliases.item,
        .n_aliases = a->aliases.n,
        .any_model = a->any_model,
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
        .tiktoken = a->tiktoken,
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
