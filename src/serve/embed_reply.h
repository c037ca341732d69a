/* Shared by the routes that return vectors: inputs to items, vectors to a response. */
#ifndef SES_SERVE_EMBED_REPLY_H
#define SES_SERVE_EMBED_REPLY_H

#include "body.h"
#include "route.h"

typedef enum { SES_VECTORS_FLOAT, SES_VECTORS_BASE64, SES_VECTORS_BYTES } ses_vector_format;

enum { SES_EMBED_SETTINGS = 4 }; /* settings that ses_embed_submit adds */

typedef struct ses_embed_request {
    const char *model;       /* NULL: the server's first encoder */
    int64_t dimensions;      /* 0: all */
    int normalize;           /* 1: on, 0: off, -1: as the folder specifies */
    bool truncate;           /* false: a text that is too long is an error */
    bool left;               /* truncate at the beginning */
    const char *prompt_name; /* NULL: the default */
    int64_t max_tokens;      /* limit of a text, special tokens excluded; 0: none */
    ses_vector_format format;
    ses_body_settings settings; /* others, with room for SES_EMBED_SETTINGS more; zeroed: none */
    bool errors_of_items;       /* an input that fails does not fail the others */
    bool normalized;            /* the vectors have length 1: filled by ses_embed_submit */
} ses_embed_request;

/* Reads "dimensions", "normalize", "truncate", "truncation_direction" and "prompt_name" of an object. */
bool ses_embed_read(ses_job *j, const ses_json *object, ses_embed_request *r);
/* The member is one of these. */
bool ses_embed_reads(const char *member);

/* Reads Cohere's "truncate": NONE, START or END, which is the default. */
bool ses_cohere_read_truncate(ses_job *j, bool *truncate, bool *left);
/* Shortens a text to max tokens of the job's pipeline, p: a clone of this worker. The text ends at the end of
 * a token, after which its beginning may have other tokens. */
bool ses_text_shorten(ses_job *j, ses_pipeline *p, ses_string *text, size_t max);

/* Encodes the texts and submits the job; j->state is the request. False: j->error. */
bool ses_embed_submit(ses_worker *w, ses_job *j, ses_embed_request *r, const ses_string *text, size_t n,
                      ses_job_fn *done);

/* The writer for vectors as JSON; NULL: the job has been answered, with bytes or an error. */
ses_json_writer *ses_embed_begin(ses_worker *w, ses_job *j);
/* Vector i of the job with the requested dimensions; NULL and j->error: no memory. */
const float *ses_embed_vector(ses_job *j, size_t i, int64_t *size);
/* Writes vector i of the job, as numbers or base64. */
void ses_embed_put(ses_json_writer *json, ses_job *j, size_t i);
/* Writes a vector as an array of numbers or as base64 of little-endian f32. */
void ses_embed_put_vector(ses_json_writer *json, const float *x, int64_t n, ses_vector_format format);
/* The client prefers bytes: Accept: application/octet-stream. */
bool ses_embed_wants_bytes(const ses_job *j);

#endif
