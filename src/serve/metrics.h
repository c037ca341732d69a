/* Counters and histograms of the server, as Prometheus text (format 0.0.4) and for /stats. Names: sesame_*,
 * in base units, and the te_* names of text-embeddings-inference, so that its dashboards work.
 *
 * Threads: counting takes a lock for a few instructions; any thread. */
#ifndef SES_SERVE_METRICS_H
#define SES_SERVE_METRICS_H

#include "base/str.h"
#include "scheduler.h"

typedef struct ses_metrics ses_metrics;

ses_metrics *ses_metrics_new(ses_err *e);
void ses_metrics_free(ses_metrics *m); /* m may be NULL */

/* A response has been sent: path is that of the route ("" for unknown ones). uses_model: durations and rates
 * count requests that use a model, not files of the page and polls of statistics. */
void ses_metrics_count_response(ses_metrics *m, const char *path, int status, uint64_t ns, bool uses_model);
/* A computed job is answered. */
void ses_metrics_count_job(ses_metrics *m, const ses_job *j);
void ses_metrics_count_error(ses_metrics *m, ses_api_code code);
void ses_metrics_count_batch(ses_metrics *m, size_t sequences, int64_t tokens, uint64_t ns);
void ses_metrics_count_generated(ses_metrics *m, int64_t tokens);

typedef struct ses_metrics_context {
    ses_scheduler_stats queue;
    ses_http_stats http;
    double uptime;
    uint64_t dropped_log_lines;
    const char *const *models; /* [n_models] names */
    size_t n_models;
} ses_metrics_context;

void ses_metrics_write_prometheus(ses_metrics *m, const ses_metrics_context *c, ses_buf *out);
/* Members of the object of /stats. */
void ses_metrics_write_stats(ses_metrics *m, const ses_metrics_context *c, ses_json_writer *w);

int64_t ses_process_resident_bytes(void);

#endif
