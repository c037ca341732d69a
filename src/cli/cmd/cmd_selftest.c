/* selftest: every op and every kernel variant against the plain reference, on the machine that will run
 * them. */
#include "base/arena.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "kernel/kernel.h"
#include "op/op_check.h"
#include "sesame/json.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct args {
    ses_compute_args compute;
} args;

static const ses_opt opt[] = { SES_OPT_INCLUDE(args, compute, ses_compute_options) };

/* One op at one level: its worst case. */
typedef struct row {
    const char *op, *level, *where;
    size_t cases;
    double worst;
    ses_err error;
} row;

static row check_op(const ses_op *op, const char *level, ses_device *dev, ses_device *ref)
{
    row r = { .op = op->name, .level = level, .where = "", .cases = op->n_cases };
    for (size_t i = 0; i < op->n_cases && !r.error.code; i++) {
        ses_trial a = { 0 }, b = { 0 };
        const char *where = "";
        if (ses_trial_run(&b, ref, op, &op->cases[i], NULL, &r.error) &&
            ses_trial_run(&a, dev, op, &op->cases[i], NULL, &r.error)) {
            double d = ses_trial_distance(&a, &b, &op->cases[i], &where);
            if (dev->activation_dtype != SES_REAL) d /= SES_BF16_TOL_FACTOR;
            if (!(d <= r.worst)) r.worst = d, r.where = where;
        }
        ses_trial_free(&a);
        ses_trial_free(&b);
    }
    return r;
}

/* An op that a device does not have says so, and is not wrong. */
static bool fine(const row *r) { return r->error.code ? r->error.code == SES_EUNSUPPORTED : r->worst <= 1; }

static bool put_json(const row *r, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_json_put_key(w, "op");
    ses_json_put_string(w, r->op);
    ses_json_put_key(w, "level");
    ses_json_put_string(w, r->level);
    ses_json_put_key(w, "cases");
    ses_json_put_int(w, (int64_t)r->cases);
    ses_json_put_key(w, "worst_share");
    ses_json_put_real(w, r->worst);
    ses_json_put_key(w, "ok");
    ses_json_put_bool(w, fine(r));
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, NULL, e);
    if (text) puts(text);
    ses_json_writer_free(w);
    return text != NULL;
}

static void put_text(const row *r)
{
    printf("%-22s %-8s %2zu cases  ", r->op, r->level, r->cases);
    if (r->error.code)
        printf("%s: %s\n", fine(r) ? "none" : "error", r->error.msg);
    else
        printf("worst %5.1f %% of the tolerance  %s%s\n", 100 * r->worst, fine(r) ? "ok" : "FAILED in ",
               fine(r) ? "" : r->where);
}

/* Every op on dev against ref. Returns how many failed, or -1. */
static int check_level(const char *level, ses_device *dev, ses_device *ref, bool json, ses_err *e)
{
    int failed = 0;
    for (const ses_op *const *op = ses_ops(); *op; op++) {
        row r = check_op(*op, level, dev, ref);
        if (!json)
            put_text(&r);
        else if (!put_json(&r, e))
            return -1;
        failed += !fine(&r);
    }
    return failed;
}

/* A CPU at each of its levels up to the chosen one; another device has one level, its own. */
static int check_device(const ses_compute_args *s, ses_device *ref, ses_err *e)
{
    bool cpu = !strcmp(s->device, "cpu");
    int failed = 0, last = cpu ? (int)ses_compute_isa(s) : SES_ISA_REF;
    for (int isa = SES_ISA_REF; failed >= 0 && isa <= last; isa++) {
        ses_device_options o = { .threads = ses_compute_threads(s),
                                 .isa = (ses_isa)isa,
                                 .dtype = ses_compute_device_options(s).dtype };
        ses_device *dev = ses_device_open(s->device, &o, e);
        const char *level = cpu ? ses_isa_name((ses_isa)isa) : s->device;
        int n = dev ? check_level(level, dev, ref, s->json, e) : -1;
        failed = n < 0 ? -1 : failed + n;
        ses_device_free(dev);
    }
    return failed;
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_device *ref = ses_device_open("cpu", &(ses_device_options){ .threads = 1, .isa = SES_ISA_REF }, e);
    if (!ref) return false;
    int failed = check_device(&a->compute, ref, e);
    ses_device_free(ref);
    if (failed > 0 && !c->quiet) fprintf(stderr, "%d failed\n", failed);
    if (failed == 0 && !c->quiet) fputs("all fine\n", stderr);
    return failed == 0;
}

static const ses_usage_example examples[] = { { "sesame selftest", "check this machine" },
                                              { "sesame selftest --device cuda", "check its GPU" },
                                              { "sesame selftest --isa avx2 --json",
                                                "one object an op and level" },
                                              { 0 } };

const ses_command ses_command_selftest = {
    .name = "selftest",
    .usage = "",
    .summary = "test ops and kernels against reference loops",
    .description =
        "Runs each op on its own test cases, forwards and backwards, with every instruction set up to the "
        "chosen one, and compares with plain C loops in double precision. Takes seconds. Exit code 1 when "
        "something is off by more than its tolerance.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .run = run,
};
