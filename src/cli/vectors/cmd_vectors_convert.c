/* vectors convert: writes word vectors in another format. */
#include "base/file.h"
#include "cli/command.h"
#include "cli/train/train_monitor.h"
#include "sesame/vectors.h"
#include "vector_options.h"

#include <string.h>

typedef struct args {
    const char *output, *to;
    int format;
    int64_t limit;
    bool overwrite, full_precision;
} args;

static const ses_opt opt[] = {
    SES_OPT_CHOICE(args, format, "format", NULL, SES_VECTOR_FORMAT_CHOICES, "format to write"),
    SES_OPT_TEXT(args, to, "to", "FORMAT", "older name of --format"),
    SES_OPT_OUTPUT_FILE(args, output, "file to write; safetensors: a folder"),
    SES_OPT_FLAG(
        args, full_precision, "full-precision",
        "text: write the shortest numbers that read back the same, not six decimals (word2vec, glove)"),
    SES_OPT_INT(args, limit, "restrict", "0", 0, 1e9, "write the first N words of the file; 0: all",
                .value = "N", .zero_word = "all"),
    SES_OPT_OVERWRITE(args, overwrite),
};

static bool show(void *ctx, int64_t done, int64_t total)
{
    ses_progress *line = ctx;
    line->total = total;
    ses_progress_show(line, done);
    return !ses_train_monitor_should_stop();
}

static bool save(ses_call *c, const args *a, const ses_vectors *v, ses_err *e)
{
    const char *name = ses_vector_format_name(a->format);
    ses_progress line = ses_progress_start(stderr, &c->err, c->quiet, "writing", 0);
    ses_vectors_save_options o = {
        .overwrite = a->overwrite, .full_precision = a->full_precision, .progress = show, .ctx = &line
    };
    ses_train_monitor_catch_signals();
    bool ok = ses_vectors_save(v, name, a->output, &o, e);
    ses_progress_end(&line);
    if (!ok) ses_show_stop(e);
    bool six = ok && !a->full_precision && (!strcmp(name, "word2vec") || !strcmp(name, "glove"));
    char count[SES_NUMBER_TEXT];
    if (ok && !c->quiet)
        fprintf(stderr, "%s: %s words, %lld dimensions%s\n", a->output,
                ses_grouped_text(count, ses_vectors_count(v)), (long long)ses_vectors_dim(v),
                six ? "; numbers have six decimals (--full-precision keeps all)" : "");
    if (ok) ses_report_duplicate_words(c, c->operands[0], v);
    return ok;
}

/* The format of --format, or of --to as it was called. */
static bool read_format(const ses_call *c, args *a, ses_err *e)
{
    const ses_opt *format = &opt[0];
    if (a->to && a->format >= 0) return ses_fail(e, SES_EUSAGE, "--to and --format are the same option");
    if (a->to && !ses_opt_set(format, a, "--to", a->to, e)) return false;
    if (a->to && !c->quiet) fputs("sesame: --to FORMAT is now --format FORMAT\n", stderr);
    return a->format >= 0 || ses_fail(e, SES_EUSAGE, "--format %s is required", ses_opt_value_name(format));
}

static bool run(ses_call *c, ses_err *e)
{
    args own = *(const args *)c->args;
    const args *a = &own;
    if (!read_format(c, &own, e)) return false;
    if (!ses_vectors_output_check(a->output, ses_vector_format_name(a->format), a->overwrite, e))
        return false;
    ses_vectors *v = ses_vectors_open(c->operands[0], e);
    bool ok = v && ses_vectors_read_words(v, a->limit, e) && save(c, a, v, e);
    ses_vectors_free(v);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame vectors convert vectors.bin --format glove --output vectors.txt", "from binary to text" },
    { "sesame vectors convert wiki.vec --format safetensors --output wiki", "a folder that opens at once" },
    { 0 },
};

const ses_command ses_command_vectors_convert = {
    .name = "vectors-convert",
    .usage = "FILE",
    .summary = "write word vectors in another format",
    .description = "Writes word vectors in another format. The format of FILE is detected from its contents.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .is_action = true,
    .run = run,
};
