#include "compute_args.h"

#include "base/str.h"
#include "base/thread_pool.h"
#include "kernel/kernel.h"

#include <stdio.h>
#include <string.h>

ses_isa ses_compute_isa(const ses_compute_args *s)
{
    ses_isa best = ses_isa_best();
    return s->isa < 0 || s->isa > (int)best ? best : (ses_isa)s->isa;
}

int ses_compute_threads(const ses_compute_args *s)
{
    return s->threads > 0 ? (int)s->threads : ses_cpu_count();
}

ses_device_options ses_compute_device_options(const ses_compute_args *s)
{
    static const ses_dtype choice[] = { SES_F32, SES_F16, SES_BF16,
                                        SES_I8 }; /* as SES_OPT_COMPUTE has them */
    return (ses_device_options){ .threads = (int)s->threads,
                                 .isa = ses_compute_isa(s),
                                 .dtype = choice[s->dtype],
                                 .embedding_dtype = s->int8_embeddings ? SES_I8 : SES_F32 };
}

/* Code a folder brings along: its architecture is one of ours, and only ours is run. */
static void tell_code(const ses_model *m)
{
    const char *name = ses_json_string(ses_json_at(ses_json_get(ses_model_config(m), "auto_map"), 0), NULL);
    if (name)
        fprintf(stderr, "sesame: config.json: \"auto_map\" names code (%s), which is never run\n",
                ses_quoted_of(name, strlen(name)).s);
}

void ses_notify_unused_tensors(const ses_model *m)
{
    tell_code(m);
    enum { SHOWN = 3 };
    const char *names = ses_model_unexpected_keys(m), *end = names;
    int n = *names != 0;
    for (const char *at = names; (at = strstr(at, ", ")); at += 2)
        if (n++ == SHOWN) end = at;
    if (n <= SHOWN) end = names + strlen(names);
    if (!n) return;
    fprintf(stderr, "sesame: %d tensor%s not used by a %s: %.*s", n, n == 1 ? "" : "s",
            ses_model_class_name(m), (int)(end - names), names);
    if (n > SHOWN) fprintf(stderr, " and %d more", n - SHOWN);
    fputs("\n", stderr);
}
