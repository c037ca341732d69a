/* Counters, histograms and their output. */
#define _POSIX_C_SOURCE 200809L
#include "metrics.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "route.h"
#include "sesame/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ROUTES = 96, MAX_CODES = 32, RECENT = 4096, SECONDS = 60 };

/* Upper bounds of the buckets; the last bucket is unbounded. */
static const double time_bounds[] = { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                      0.25,   0.5,   1,      2.5,   5,    10,    30,   60 };
static const double size_bounds[] = { 1,   2,   4,    8,    16,   32,   64,    128,
                                      256, 512, 1024, 2048, 4096, 8192, 16384, 32768 };
enum { BOUNDS = SES_LEN(time_bounds) };

typedef struct histogram {
    uint64_t bucket[BOUNDS + 1], count;
    double sum;
} histogram;

/* A finished request, for the figures of the last minute. */
typedef struct sample {
    uint64_t at_ns, duration_ns;
    int64_t tokens;
} sample;

typedef enum { KIND_EMBED, KIND_PREDICT, KINDS } job_kind; /* the two families of te_* metrics */

struct ses_metrics {
    pthread_mutex_t lock;
    struct {
        const char *path;
        int status;
        uint64_t n;
    } response[MAX_ROUTES * 4];
    size_t n_responses;
    uint64_t errors[MAX_CODES], requests, successes;
    uint64_t inputs, tokens, truncated, sequences, batches, batch_tokens, generated;
    histogram request_time, input_length, batch_size, batch_length, batch_time;
    struct {
        uint64_t count;
        histogram total, encode, queue, compute;
    } kind[KINDS];
    sample recent[RECENT];
    size_t next_recent;
};

ses_metrics *ses_metrics_new(ses_err *e)
{
    ses_metrics *m = ses_alloc(sizeof *m, e);
    if (m) pthread_mutex_init(&m->lock, NULL);
    return m;
}

void ses_metrics_free(ses_metrics *m)
{
    if (!m) return;
    pthread_mutex_destroy(&m->lock);
    ses_free(m);
}

/* ---- counting ---- */

static void add(histogram *h, const double *bounds, double x)
{
    size_t i = 0;
    while (i < BOUNDS && x > bounds[i]) i++;
    h->bucket[i]++;
    h->count++;
    h->sum += x;
}

static double seconds(uint64_t from, uint64_t to) { return to > from ? 1e-9 * (double)(to - from) : 0; }

void ses_metrics_count_response(ses_metrics *m, const char *path, int status, uint64_t ns, bool uses_model)
{
    pthread_mutex_lock(&m->lock);
    size_t i = 0;
    while (i < m->n_responses && (m->response[i].status != status || strcmp(m->response[i].path, path))) i++;
    if (i == m->n_responses && i < SES_LEN(m->response)) {
        m->response[i].path = path, m->response[i].status = status;
        m->n_responses++;
    }
    if (i < SES_LEN(m->response)) m->response[i].n++;
    if (uses_model) {
        m->requests++;
        m->successes += status >= 200 && status < 300;
        add(&m->request_time, time_bounds, 1e-9 * (double)ns);
        m->recent[m->next_recent++ % RECENT] = (sample){ ses_clock_ns(), ns, 0 };
    }
    pthread_mutex_unlock(&m->lock);
}

void ses_metrics_count_job(ses_metrics *m, const ses_job *j)
{
    if (!j->finished_ns) return;
    job_kind k = j->pipeline->task->task->head ? KIND_PREDICT : KIND_EMBED;
    uint64_t now = ses_clock_ns();
    pthread_mutex_lock(&m->lock);
    m->inputs += j->n, m->tokens += (uint64_t)j->tokens, m->truncated += (uint64_t)j->truncated;
    for (size_t i = 0; i < j->n; i++)
        if (j->item[i].request) add(&m->input_length, size_bounds, (double)j->item[i].request->tokens);
    m->kind[k].count++;
    add(&m->kind[k].total, time_bounds, seconds(ses_http_received_ns(j->x), now));
    add(&m->kind[k].encode, time_bounds, 1e-9 * (double)j->encode_ns);
    add(&m->kind[k].queue, time_bounds, seconds(j->queued_ns, j->started_ns));
    add(&m->kind[k].compute, time_bounds, seconds(j->started_ns, j->finished_ns));
    pthread_mutex_unlock(&m->lock);
}

void ses_metrics_count_error(ses_metrics *m, ses_api_code code)
{
    pthread_mutex_lock(&m->lock);
    m->errors[code]++;
    pthread_mutex_unlock(&m->lock);
}

void ses_metrics_count_batch(ses_metrics *m, size_t sequences, int64_t tokens, uint64_t ns)
{
    pthread_mutex_lock(&m->lock);
    m->batches++, m->sequences += sequences, m->batch_tokens += (uint64_t)tokens;
    add(&m->batch_size, size_bounds, (double)sequences);
    add(&m->batch_length, size_bounds, (double)tokens);
    add(&m->batch_time, time_bounds, 1e-9 * (double)ns);
    m->recent[m->next_recent++ % RECENT] = (sample){ ses_clock_ns(), 0, tokens };
    pthread_mutex_unlock(&m->lock);
}

void ses_metrics_count_generated(ses_metrics *m, int64_t tokens)
{
    pthread_mutex_lock(&m->lock);
    m->generated += (uint64_t)tokens;
    pthread_mutex_unlock(&m->lock);
}

/* ---- Prometheus ---- */

static void head(ses_buf *b, const char *name, const char *type, const char *help)
{
    ses_buf_appendf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_counter(ses_buf *b, const char *name, const char *help, uint64_t x)
{
    head(b, name, "counter", help);
    ses_buf_appendf(b, "%s %llu\n", name, (unsigned long long)x);
}

static void put_gauge(ses_buf *b, const char *name, const char *help, double x)
{
    head(b, name, "gauge", help);
    ses_buf_appendf(b, "%s %.9g\n", name, x);
}

static void put_histogram(ses_buf *b, const char *name, const char *help, const histogram *h,
                          const double *bounds)
{
    uint64_t total = 0;
    head(b, name, "histogram", help);
    for (size_t i = 0; i < BOUNDS; i++) {
        total += h->bucket[i];
        ses_buf_appendf(b, "%s_bucket{le=\"%g\"} %llu\n", name, bounds[i], (unsigned long long)total);
    }
    ses_buf_appendf(b, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9g\n%s_count %llu\n", name,
                    (unsigned long long)h->count, name, h->sum, name, (unsigned long long)h->count);
}

int64_t ses_process_resident_bytes(void)
{
    long long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) return 0;
    if (fscanf(f, "%lld %lld", &pages, &resident) != 2) resident = 0;
    fclose(f);
    return (int64_t)resident * (int64_t)sysconf(_SC_PAGESIZE);
}

static void put_responses(const ses_metrics *m, ses_buf *b)
{
    head(b, "sesame_requests_total", "counter", "Responses by route and status.");
    for (size_t i = 0; i < m->n_responses; i++)
        ses_buf_appendf(b, "sesame_requests_total{route=\"%s\",code=\"%d\"} %llu\n", m->response[i].path,
                        m->response[i].status, (unsigned long long)m->response[i].n);
}

static void put_queue(const ses_metrics_context *c, ses_buf *b)
{
    static const char *const names[] = { "interactive", "bulk" };
    static const struct {
        const char *name, *help;
    } gauge[] = { { "sesame_queue_inputs", "Inputs that wait, by lane." },
                  { "sesame_queue_tokens", "Tokens that wait, by lane." },
                  { "sesame_queue_age_seconds", "Age of the oldest request that waits, by lane." } };
    for (size_t g = 0; g < SES_LEN(gauge); g++) {
        head(b, gauge[g].name, "gauge", gauge[g].help);
        for (int i = 0; i < SES_PRIORITIES; i++) {
            const ses_priority_stats *l = &c->queue.priority[i];
            double x = g == 0 ? (double)l->inputs : g == 1 ? (double)l->tokens : l->age;
            ses_buf_appendf(b, "%s{lane=\"%s\"} %.9g\n", gauge[g].name, names[i], x);
        }
    }
    put_gauge(b, "sesame_admitted_inputs", "Inputs that wait or are computed.",
              (double)c->queue.admitted_inputs);
    put_gauge(b, "sesame_connections", "Open connections.", (double)c->http.connections);
    put_counter(b, "sesame_http_rejected_total",
                "Requests rejected before routing: malformed, too slow, too large.",
                (uint64_t)c->http.rejected_total);
    put_counter(b, "sesame_access_log_dropped_total",
                "Lines of the access log that could not be written in time.", c->dropped_log_lines);
    put_gauge(b, "sesame_buffered_bytes", "Bodies and responses in memory.", (double)c->http.buffered_bytes);
}

/* The label err of te_request_failure; NULL: counted under another name. */
static const char *tei_error(ses_api_code code)
{
    switch (code) {
    case SES_API_OVERLOADED: return "overloaded";
    case SES_API_CANCELLED:
    case SES_API_DEADLINE: return "dropped";
    case SES_API_TOKENIZER: return "tokenization";
    case SES_API_EMPTY:
    case SES_API_VALIDATION: return "validation";
    case SES_API_TOO_LARGE: return "batch_size";
    case SES_API_NOT_FOUND: return "model_type";
    case SES_API_BACKEND:
    case SES_API_NOT_FINITE: return "inference";
    default: return NULL;
    }
}

static void put_errors(const ses_metrics *m, ses_buf *b)
{
    static const char *const names[] = { "overloaded", "dropped",    "tokenization", "validation",
                                         "batch_size", "model_type", "inference" };
    head(b, "sesame_rejected_total", "counter", "Requests answered with an error, by reason.");
    for (int c = 1; c < MAX_CODES; c++)
        if (m->errors[c])
            ses_buf_appendf(b, "sesame_rejected_total{reason=\"%s\"} %llu\n",
                            ses_api_error_type(SES_STYLE_TEI, (ses_api_code)c),
                            (unsigned long long)m->errors[c]);
    put_counter(b, "sesame_deadline_misses_total", "Requests whose deadline passed.",
                m->errors[SES_API_DEADLINE]);
    head(b, "te_request_failure", "counter", "Failed requests by reason.");
    for (size_t i = 0; i < SES_LEN(names); i++) {
        uint64_t n = 0;
        for (int c = 1; c < MAX_CODES; c++) {
            const char *name = m->errors[c] ? tei_error((ses_api_code)c) : NULL;
            if (name && !strcmp(name, names[i])) n += m->errors[c];
        }
        ses_buf_appendf(b, "te_request_failure{err=\"%s\"} %llu\n", names[i], (unsigned long long)n);
    }
}

static void put_tei(const ses_metrics *m, const ses_metrics_context *c, ses_buf *b)
{
    static const char *const kinds[] = { "embed", "predict" };
    char name[64];
    put_counter(b, "te_request_count", "Requests.", m->requests);
    put_counter(b, "te_request_success", "Successful requests.", m->successes);
    put_histogram(b, "te_request_duration", "Duration of requests in seconds.", &m->request_time,
                  time_bounds);
    put_histogram(b, "te_request_input_length", "Tokens of each input.", &m->input_length, size_bounds);
    for (int k = 0; k < KINDS; k++) {
        snprintf(name, sizeof name, "te_%s_count", kinds[k]);
        put_counter(b, name, "Computed requests.", m->kind[k].count);
        snprintf(name, sizeof name, "te_%s_success", kinds[k]);
        put_counter(b, name, "Successful requests.", m->kind[k].count);
        snprintf(name, sizeof name, "te_%s_duration", kinds[k]);
        put_histogram(b, name, "Seconds in total.", &m->kind[k].total, time_bounds);
        snprintf(name, sizeof name, "te_%s_tokenization_duration", kinds[k]);
        put_histogram(b, name, "Seconds of tokenization.", &m->kind[k].encode, time_bounds);
        snprintf(name, sizeof name, "te_%s_queue_duration", kinds[k]);
        put_histogram(b, name, "Seconds in the queue.", &m->kind[k].queue, time_bounds);
        snprintf(name, sizeof name, "te_%s_inference_duration", kinds[k]);
        put_histogram(b, name, "Seconds of computation.", &m->kind[k].compute, time_bounds);
    }
    int64_t waiting = 0;
    for (int i = 0; i < SES_PRIORITIES; i++) waiting += c->queue.priority[i].inputs;
    put_gauge(b, "te_queue_size", "Inputs that wait.", (double)waiting);
    put_histogram(b, "te_batch_next_size", "Sequences of each batch.", &m->batch_size, size_bounds);
    put_histogram(b, "te_batch_next_tokens", "Tokens of each batch.", &m->batch_length, size_bounds);
}

void ses_metrics_write_prometheus(ses_metrics *m, const ses_metrics_context *c, ses_buf *b)
{
    head(b, "sesame_build_info", "gauge", "Version of the server.");
    ses_buf_appendf(b, "sesame_build_info{version=\"%s\"} 1\n", SES_VERSION);
    put_gauge(b, "sesame_uptime_seconds", "Time since the start.", c->uptime);
    put_gauge(b, "process_resident_memory_bytes", "Resident memory.", (double)ses_process_resident_bytes());
    put_queue(c, b);
    pthread_mutex_lock(&m->lock);
    put_responses(m, b);
    put_errors(m, b);
    put_histogram(b, "sesame_request_duration_seconds", "Duration of requests.", &m->request_time,
                  time_bounds);
    put_histogram(b, "sesame_batch_sequences", "Sequences of each batch.", &m->batch_size, size_bounds);
    put_histogram(b, "sesame_batch_tokens", "Tokens of each batch.", &m->batch_length, size_bounds);
    put_histogram(b, "sesame_batch_seconds", "Duration of each batch.", &m->batch_time, time_bounds);
    put_counter(b, "sesame_inputs_total", "Inputs computed.", m->inputs);
    put_counter(b, "sesame_tokens_total", "Tokens of all batches.", m->batch_tokens);
    put_counter(b, "sesame_generated_tokens_total", "Tokens generated.", m->generated);
    put_counter(b, "sesame_truncated_tokens_total", "Tokens left out because a text was too long.",
                m->truncated);
    put_tei(m, c, b);
    pthread_mutex_unlock(&m->lock);
}

/* ---- /stats ---- */

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Figures of the last minute. */
typedef struct minute {
    double p50, p99, requests, tokens; /* seconds; per second */
} minute;

static minute last_minute(ses_metrics *m, double uptime)
{
    uint64_t now = ses_clock_ns(), *duration = ses_alloc_array(RECENT, sizeof *duration, NULL);
    minute out = { 0 };
    size_t n = 0, first = m->next_recent > RECENT ? m->next_recent - RECENT : 0;
    double tokens = 0, span = uptime < SECONDS ? uptime : SECONDS, oldest = span;
    for (size_t i = first; i < m->next_recent && duration; i++) {
        const sample *s = &m->recent[i % RECENT];
        double age = seconds(s->at_ns, now);
        if (age > SECONDS) continue;
        if (i == first && first) oldest = age; /* the buffer holds less than a minute */
        if (s->duration_ns) duration[n++] = s->duration_ns;
        tokens += (double)s->tokens;
    }
    if (oldest < span) span = oldest;
    if (n) {
        qsort(duration, n, sizeof *duration, compare);
        out.p50 = 1e-9 * (double)duration[n / 2];
        out.p99 = 1e-9 * (double)duration[(n * 99) / 100];
    }
    if (span > 0) out.requests = (double)n / span, out.tokens = tokens / span;
    ses_free(duration);
    return out;
}

static void put_priorities(const ses_metrics_context *c, ses_json_writer *w)
{
    static const char *const names[] = { "interactive", "bulk" };
    ses_json_member_object(w, "lanes");
    for (int i = 0; i < SES_PRIORITIES; i++) {
        ses_json_member_object(w, names[i]);
        ses_json_member_int(w, "queued", c->queue.priority[i].inputs);
        ses_json_member_int(w, "tokens", c->queue.priority[i].tokens);
        ses_json_member_real(w, "age_seconds", c->queue.priority[i].age);
        ses_json_end_object(w);
    }
    ses_json_end_object(w);
}

void ses_metrics_write_stats(ses_metrics *m, const ses_metrics_context *c, ses_json_writer *w)
{
    pthread_mutex_lock(&m->lock);
    minute last = last_minute(m, c->uptime);
    uint64_t rejected = m->errors[SES_API_OVERLOADED];
    ses_json_member_real(w, "uptime_seconds", c->uptime);
    ses_json_member_uint(w, "requests_total", m->requests);
    ses_json_member_uint(w, "rejected_total", rejected);
    ses_json_member_uint(w, "inputs_total", m->inputs);
    ses_json_member_uint(w, "tokens_total", m->batch_tokens);
    ses_json_member_uint(w, "generated_tokens_total", m->generated);
    ses_json_member_uint(w, "truncated_tokens_total", m->truncated);
    pthread_mutex_unlock(&m->lock);
    put_priorities(c, w);
    ses_json_member_object(w, "batch");
    ses_json_member_uint(w, "sequences", c->queue.last_sequences);
    ses_json_member_int(w, "tokens", c->queue.last_tokens);
    ses_json_member_real(w, "fill", (double)c->queue.last_tokens / (double)c->queue.batch_tokens);
    ses_json_end_object(w);
    ses_json_member_object(w, "latency");
    ses_json_member_real(w, "p50", last.p50);
    ses_json_member_real(w, "p99", last.p99);
    ses_json_end_object(w);
    ses_json_member_real(w, "requests_per_second", last.requests);
    ses_json_member_real(w, "tokens_per_second", last.tokens);
    ses_json_member_int(w, "memory_bytes", ses_process_resident_bytes());
    ses_json_member_int(w, "connections", c->http.connections);
    ses_json_member_array(w, "models");
    for (size_t i = 0; i < c->n_models; i++) ses_json_put_string(w, c->models[i]);
    ses_json_end_array(w);
}
