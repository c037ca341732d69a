/* Parts of /openapi.json that follow from the loaded models and the limits of the server: which models a
 * route may name, and values that depend on the model. */
#ifndef SES_SERVE_MODEL_SCHEMA_H
#define SES_SERVE_MODEL_SCHEMA_H

#include "registry.h"
#include "server.h"

typedef struct ses_schema_context {
    ses_json_writer *json;
    const ses_server_options *o;
    ses_served_model **model; /* [n], in the order they were loaded */
    size_t n;
    ses_registry *registry; /* for aliases */
    bool names_models;      /* false: the request has no key, so no names */
} ses_schema_context;

/* Members of "components/schemas": Texts, AnyTexts, NewTokens, and "Models-NAME" of the routes that choose a
 * model: constraints of a body for each model that the route accepts. */
void ses_model_schemas_put(const ses_schema_context *c);
/* Members "dimensions" and "prompt_name" of requests for vectors of a model. */
void ses_model_vectors_put(const ses_schema_context *c, ses_served_model *m);
/* The tokenizer adds special tokens to an empty text. A text without tokens has no vector. */
bool ses_model_reads_empty(const ses_served_model *m);
/* A loaded model can answer a route with this schema of its body. */
bool ses_model_route_is_of_use(const ses_schema_context *c, const char *request);
/* Constraints of a path's last part: the names of the loaded models. */
void ses_model_names_put(const ses_schema_context *c);

#endif
