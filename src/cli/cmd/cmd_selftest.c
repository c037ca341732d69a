/* selftest: tests every op and kernel variant on this machine against reference loops. */
#include "base/arena.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/standard_output.h"
#include "cli/ui/show_values.h"
#include "kernel/kernel.h"
#include "op/op_check.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct args {
    ses_compute_args compute;
} args;

static const ses_opt opt[] = { SES_OPT_INCLUDE(args, compute, ses_compute_options) };

/* Result of an op at a level: its worst case, as a fraction of the tolerance. */
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
            if (ses_device_operand_dtype(dev) != SES_REAL) d /= SES_BF16_TOL_FACTOR;
            if (!(d <= r.worst)) r.worst = d, r.where = where;
        }
        ses_trial_free(&a);
        ses_trial_free(&b);
    }
    return r;
}

/* An op that the device does not support is not a failure. */
static bool passed(const row *r) { return r->error.code ? r->error.code == SES_EUNSUPPORTED : r->worst <= 1; }

static bool put_json(const row *r, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "op", r->op);
    ses_json_member_string(w, "level", r->level);
    ses_json_member_int(w, "cases", (int64_t)r->cases);
    ses_json_member_real(w, "worst_share", r->worst);
    ses_json_member_bool(w, "ok", passed(r));
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

static void put_text(const row *r)
{
    printf("%-22s %-10s %2zu cases  ", r->op, r->level, r->cases);
    if (r->error.code)
        printf("%s: %s\n", passed(r) ? "unsupported" : "error", r->error.msg);
    else
        printf("worst %5.1f %% of the tolerance  %s%s\n", 100 * r->worst, passed(r) ? "ok" : "FAILED in ",
               passed(r) ? "" : r->where);
}

/* Tests every op on dev against ref. Returns the number of failures, or -1 on error. */
static int check_level(const char *level, ses_device *dev, ses_device *ref, bool json, ses_err *e)
{
    int failed = 0;
    for (const ses_op *const *op = ses_ops(); *op; op++) {
        row r = check_op(*op, level, dev, ref);
        if (!json)
            put_text(&r);
        else if (!put_json(&r, e))
            return -1;
        failed += !passed(&r);
    }
    return failed;
}

/* Tests a CPU at each level up to the chosen one; another device has a single level. */
static int check_device(const ses_compute_args *a, ses_device *ref, ses_err *e)
{
    bool cpu = !strcmp(a->device, "cpu");
    int failed = 0, last = cpu ? (int)ses_compute_isa(a) : SES_ISA_REF;
    for (int isa = SES_ISA_REF; failed >= 0 && isa <= last; isa++) {
        ses_device_options o = { .threads = ses_compute_threads(a),
                                 .isa = (ses_isa)isa,
                                 .dtype = ses_compute_device_options(a).dtype };
        ses_device *dev = ses_device_open(a->device, &o, e);
        const char *level = cpu ? ses_isa_name((ses_isa)isa) : a->device;
        int n = dev ? check_level(level, dev, ref, a->json, e) : -1;
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
    if (failed >= 0 && !ses_stdout_flush(e)) return false; /* the table first, if both go to one file */
    if (failed > 0 && !c->quiet) fprintf(stderr, "%d failed\n", failed);
    if (failed == 0 && !c->quiet) fputs("all passed\n", stderr);
    return failed == 0;
}

static const ses_usage_example examples[] = { { "sesame selftest", "test the CPU" },
                                              { "sesame selftest --device cuda", "test a GPU" },
                                              { "sesame selftest --isa avx2 --json",
                                                "a JSON line per op and level" },
                                              { 0 } };

const ses_command ses_command_selftest = {
    .name = "selftest",
    .usage = "",
    .summary = "test ops and kernels against reference loops",
    .description =
        "Runs each op on its test cases, forward and backward, with every instruction set up to the "
        "chosen one, and compares the results with reference loops in double precision. Takes seconds. "
        "Exit status 1 if an error exceeds its tolerance.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .run = run,
};
