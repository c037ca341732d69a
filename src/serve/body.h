/* Reads members of request bodies. An absent or null member keeps the value; another type is an error of the
 * request (j->error, false). Strings are borrowed from the body. */
#ifndef SES_SERVE_BODY_H
#define SES_SERVE_BODY_H

#include "job.h"

/* The member; NULL: absent or null. */
const ses_json *ses_body_get(const ses_json *object, const char *key);

bool ses_body_string(ses_job *j, const ses_json *object, const char *key, const char **out);
bool ses_body_bool(ses_job *j, const ses_json *object, const char *key, bool *out);
bool ses_body_int(ses_job *j, const ses_json *object, const char *key, int64_t min, int64_t max,
                  int64_t *out);
bool ses_body_real(ses_job *j, const ses_json *object, const char *key, double min, double max, double *out);
/* *out NULL: absent or null. */
bool ses_body_object(ses_job *j, const ses_json *object, const char *key, const ses_json **out);
/* Index of a string among "a|b|c". */
bool ses_body_choice(ses_job *j, const ses_json *object, const char *key, const char *choices, int *out);

/* A text, with the length it has in the body. */
ses_string ses_body_text(const ses_json *v);          /* p NULL: not a string */
bool ses_body_whole(const ses_json *v, int64_t *out); /* an integer, also as 5.0; false: it is none */
/* A text or an array of texts. Empty arrays are an error, empty texts unless may_be_empty. */
bool ses_body_texts(ses_job *j, const ses_json *v, const char *key, ses_string **list, size_t *n,
                    bool may_be_empty);
/* The error for a value of the wrong type. Returns false. */
bool ses_body_wrong_type(ses_job *j, const char *key, const ses_json *v, const char *expected);
/* *key: the one of two members of the body that is present; a: neither. Both: an error. */
bool ses_body_either(ses_job *j, const char *a, const char *b, const char **key);
/* The error for a missing member. Returns false. */
bool ses_body_missing(ses_job *j, const char *key);

/* A value of the request as text in the job's memory; lists become texts separated by commas. NULL:
 * j->error. */
const char *ses_body_value_text(ses_job *j, const char *name, const ses_json *v);
/* Sets options in args from the members of an object (NULL: none). Options that name files are refused. */
bool ses_body_options(ses_job *j, const ses_json *object, const ses_opt *opt, size_t n, void *args);

/* Settings of a pipeline, split into settings of the whole pipeline and of each item. */
typedef struct ses_body_settings {
    ses_setting *pipeline, *item; /* end with { 0 }; in the job's memory */
    size_t n_pipeline, n_item, capacity;
} ses_body_settings;
bool ses_settings_begin(ses_job *j, ses_body_settings *s, size_t max);
/* Adds name = value (a static string, or one in the job's memory), where the task expects it. */
void ses_settings_add(ses_body_settings *s, const ses_task *t, const char *name, const char *value);
/* The same with ses_body_value_text. */
bool ses_settings_add_json(ses_job *j, ses_body_settings *s, const ses_task *t, const char *name,
                           const ses_json *v);

#endif
