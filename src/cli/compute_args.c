/* The options of commands that compute, and the device they describe. */
#include "compute_args.h"

#include "base/str.h"
#include "base/thread_pool.h"
#include "kernel/kernel.h"

#include <stdio.h>
#include <string.h>

/* The choices of --isa begin with ref. */
static ses_isa chosen_isa(int choice) { return (ses_isa)(choice + SES_ISA_REF); }

/* Refuses a level that a build for this machine alone (./demo) left out: the next lower one may be slow. */
static bool check_isa(const char *from, int choice, ses_err *e)
{
    ses_isa isa = chosen_isa(choice);
    if (!ses_isa_left_out(isa)) return true;
    return ses_fail(e, SES_EUSAGE, "%s: this build has no %s kernels: run make", from, ses_isa_name(isa));
}

static const ses_opt device_opt[] = {
    SES_OPT_THREADS(ses_compute_args, threads),
    SES_OPT_CHOICE(ses_compute_args, isa, "isa", NULL, SES_ISA_CHOICES,
                   "highest instruction set to use; default: the best available", .env = "SESAME_ISA",
                   .check = check_isa),
    SES_OPT_CHOICE(
        ses_compute_args, dtype, "dtype", "f32", "f32|f16|bf16|int8",
        "type of weights in inference; bf16: also of the operands of products, in training too; on a "
        "GPU: of activations"),
    SES_OPT_TEXT(ses_compute_args, device, "device", "DEVICE", "cpu, cuda or cuda:N", .def = "cpu",
                 .env = "SESAME_DEVICE", .completion = "devices", .common = true),
};
const ses_opt_table ses_device_option_table = { device_opt, SES_LEN(device_opt), "compute" };

static const ses_opt opt[] = {
    { .table = &ses_device_option_table },
    SES_OPT_JSON(ses_compute_args, json),
};
const ses_opt_table ses_compute_options = { opt, SES_LEN(opt) };

ses_isa ses_compute_isa(const ses_compute_args *a)
{
    return ses_isa_limit(a->isa < 0 ? SES_ISA_BEST : chosen_isa(a->isa)); /* -1: not given */
}

const char *ses_compute_level(const ses_compute_args *a)
{
    ses_isa isa = ses_compute_isa(a);
    return ses_isa_name(ses_compute_device_options(a).dtype == SES_BF16 ? isa : ses_isa_vectors(isa));
}

int ses_compute_threads(const ses_compute_args *a)
{
    return a->threads > 0 ? (int)a->threads : ses_cpu_count();
}

ses_device_options ses_compute_device_options(const ses_compute_args *a)
{
    static const ses_dtype choice[] = { SES_F32, SES_F16, SES_BF16, SES_I8 }; /* in the order of --dtype */
    return (ses_device_options){ .threads = (int)a->threads,
                                 .isa = ses_compute_isa(a),
                                 .dtype = choice[a->dtype],
                                 .embedding_dtype = a->int8_embeddings ? SES_I8 : SES_F32 };
}

/* auto_map names Python code in the folder. The architecture is a built-in one, so the code is not needed. */
static void notify_remote_code(const ses_model *m)
{
    const char *name = ses_json_string(ses_json_at(ses_json_get(ses_model_config(m), "auto_map"), 0), NULL);
    if (name)
        fprintf(stderr, "sesame: config.json: \"auto_map\" names code (%s), which is never run\n",
                ses_quoted_of(name, strlen(name)).s);
}

void ses_notify_unused_tensors(const ses_model *m)
{
    notify_remote_code(m);
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
