/* Times and durations in Ollama's form. */
#define _POSIX_C_SOURCE 200809L
#include "ollama_reply.h"

#include "base/clock.h"

#include <stdio.h>
#include <time.h>

ses_ollama_time ses_ollama_now(void)
{
    struct timespec t = { 0 };
    clock_gettime(CLOCK_REALTIME, &t);
    return (ses_ollama_time){ (int64_t)t.tv_sec, (int)t.tv_nsec };
}

void ses_ollama_put_time(ses_json_writer *json, const char *key, ses_ollama_time t)
{
    char when[32] = "", text[48];
    time_t seconds = (time_t)t.seconds;
    struct tm utc;
    if (gmtime_r(&seconds, &utc)) strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text, sizeof text, "%s.%09dZ", when, t.nanoseconds);
    ses_json_member_string(json, key, text);
}

void ses_ollama_put_durations(ses_json_writer *json, const ses_job *j)
{
    ses_json_member_uint(json, "total_duration", ses_clock_ns() - ses_http_received_ns(j->x));
    ses_json_member_uint(json, "load_duration", 0);
    ses_json_member_int(json, "prompt_eval_count", j->tokens);
}
