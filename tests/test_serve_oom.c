/* Allocation failures while statistics are written: no reference to a model is lost. */
#define _GNU_SOURCE
#include "oom.h"
#include "serve/serve_impl.h"
#include "serve_fixture.h"

int main(void)
{
    serving s;
    static const char *const models[] = { "label=tests/pipelines/bert-label" };
    static const char *const paths[] = { "/metrics", "/stats", "/v1/models" };
    serving_start(&s, &(ses_server_options){ .models = models, .n_models = 1 });
    ses_served_model *m = ses_registry_find(ses_server_registry(s.server), NULL, NULL);
    long hits = 0;
    for (size_t i = 0; i < SES_LEN(paths); i++)
        for (long n = 1; n <= 40; n++) {
            ses_http_response a = { 0 };
            oom.failed = 0;
            oom.fail_from = oom.fail_to = oom.calls + n;
            bool ok = ses_http_client_request(s.client, &(ses_http_request){ .target = paths[i] }, &a, NULL);
            oom.fail_from = oom.fail_to = 0;
            hits += oom.failed;
            if (!ok || !a.keep_alive) {
                ses_http_client_free(s.client);
                s.client = serving_connect(&s);
            }
            for (int k = 0; k < 1000 && atomic_load(&m->refs) > 2; k++) sleep_ms(1); /* the job ends */
            if (!CHECK_MSG(atomic_load(&m->refs) == 2, "%s, allocation %ld: %d references", paths[i], n,
                           atomic_load(&m->refs)))
                break;
        }
    CHECK_MSG(hits > 20, "%ld", hits);
    get(&s, "/metrics", 200);
    ses_served_model_release(m);
    serving_stop(&s);
    return check_report();
}
