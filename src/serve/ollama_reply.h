/* Shared by Ollama's routes. */
#ifndef SES_SERVE_OLLAMA_REPLY_H
#define SES_SERVE_OLLAMA_REPLY_H

#include "job.h"

typedef struct ses_ollama_time {
    int64_t seconds; /* Unix time */
    int nanoseconds;
} ses_ollama_time;

ses_ollama_time ses_ollama_now(void);
/* "KEY": "2026-11-19T20:30:04.000000000Z" */
void ses_ollama_put_time(ses_json_writer *json, const char *key, ses_ollama_time t);
/* "total_duration", "load_duration" and "prompt_eval_count" */
void ses_ollama_put_durations(ses_json_writer *json, const ses_job *j);

#endif
