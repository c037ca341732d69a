/* A body of POST /analyze: the options of every analysis, and its layers. Options that name files are
 * refused. */
#include "analysis/analysis.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "fuzz.h"
#include "serve/body.h"

static void read_for(const ses_analysis *a, const ses_json *parameters)
{
    ses_job j = { 0 };
    ses_err e = { 0 };
    void *args = calloc(1, a->args_size + 1);
    MUST(args && ses_opt_defaults(a->opt, a->n_opt, args, &e));
    bool ok = ses_body_options(&j, parameters, a->opt, a->n_opt, args);
    MUST(ok ? !j.error.code : j.error.code && *j.error.message);
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(a->opt, a->n_opt); ok && (o = ses_opt_next(&it));)
        if (o->value && (!strcmp(o->value, "FILE") || !strcmp(o->value, "DIR")))
            MUST(!ses_json_get(parameters, o->name));
    ses_opt_free(a->opt, a->n_opt, args);
    free(args);
    ses_arena_free(&j.mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ses_err e = { 0 };
    ses_json_doc *doc = ses_json_parse((const char *)data, n, &e);
    const ses_json *body = ses_json_root(doc), *parameters = ses_json_get(body, "parameters");
    ses_job j = { 0 };
    ses_layer_set layers;
    const char *text = NULL;
    if (doc && ses_body_string(&j, body, "layers", &text) && text)
        MUST(ses_layer_set_parse(&layers, text, 12, &e) || e.code);
    for (const ses_analysis_entry *a = ses_analysis_entries();
         ses_json_type_of(parameters) == SES_JSON_OBJECT && a->name; a++)
        read_for(a->analysis, parameters);
    ses_arena_free(&j.mem);
    ses_json_free(doc);
    return 0;
}
