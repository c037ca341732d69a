/* report: writes an HTML report of training runs. */
#include "base/file.h"
#include "cli/command.h"
#include "cli/inspect/run_report.h"

typedef struct args {
    const char *output;
    bool overwrite;
} args;

static const ses_opt opt[] = {
    SES_OPT_TEXT(args, output, "output", "FILE", "output file", .letter = 'o', .def = "report.html",
                 .alias = "to"),
    SES_OPT_FLAG(args, overwrite, "overwrite", "replace an existing FILE"),
};

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_run_records l;
    bool ok = ses_run_records_open(&l, c->operands, (size_t)c->n_operands, e) &&
              ses_run_records_rank(&l, e) && ses_run_report_write(&l, a->output, a->overwrite, e);
    if (ok && !c->quiet) fprintf(stderr, "%s: %zu run%s\n", a->output, l.n, l.n == 1 ? "" : "s");
    ses_run_records_free(&l);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame report search --output search.html", "all runs of a hyperparameter search" },
    { 0 },
};

const ses_command ses_command_report = {
    .name = "report",
    .usage = "RUN...",
    .summary = "write an HTML report of runs",
    .description =
        "Writes one self-contained HTML file, for wide and narrow screens, light and dark: smoothed curves "
        "of "
        "losses, scores, learning rates and gradient norms with a line per run, scores per class, confusion "
        "matrices, the worst errors with their texts, settings, and commands to run next. RUN is a folder as "
        "in "
        "compare. finetune and pretrain write such a report into the folder of each run.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
