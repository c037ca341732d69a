/* vectors train: trains word vectors on a text. */
#include "cli/command.h"
#include "cli/train/train_monitor.h"

#include "base/clock.h"
#include "base/file.h"
#include "vectors/exact/exact.h"

#include <inttypes.h>
#include <string.h>

typedef struct args {
    const char *exact, *output;
    bool binary, overwrite;
#define SES_VECTORS_SETTING(field, name, help) const char *field; /* text: NULL unless given */
#include "vectors_settings.def"
#undef SES_VECTORS_SETTING
} args;

static const ses_opt opt[] = {
    { .name = "exact",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, exact),
      .value = "PROGRAM",
      .required = true,
      .help = "reproduce a program bit for bit: word2vec, fasttext or glove" },
    { .name = "output",
      .letter = 'o',
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, output),
      .value = "FILE",
      .required = true,
      .help = "file to write" },
    { .name = "binary",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, binary),
      .help = "write the binary format of the program instead of text" },
    { .name = "overwrite",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, overwrite),
      .help = "replace FILE" },
#define SES_VECTORS_SETTING(field, option, what) \
    { .name = option, .type = SES_OPT_TEXT, .offset = offsetof(args, field), .value = "X", .help = what },
#include "vectors_settings.def"
#undef SES_VECTORS_SETTING
};

static bool show(void *ctx, int64_t done, int64_t total)
{
    ses_progress *line = ctx;
    line->total = total;
    ses_progress_show(line, done);
    return !ses_train_monitor_should_stop();
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    static const char *const name[] = {
#define SES_VECTORS_SETTING(field, option, help) option,
#include "vectors_settings.def"
#undef SES_VECTORS_SETTING
    };
    const char *const value[] = {
#define SES_VECTORS_SETTING(field, option, help) a->field,
#include "vectors_settings.def"
#undef SES_VECTORS_SETTING
    };
    const ses_exact_program *p = ses_exact_find(a->exact, e);
    ses_progress line = ses_progress_start(stderr, &c->err, c->quiet, "training", 0);
    ses_exact_job job = { .corpus = c->operands[0],
                          .output = a->output,
                          .binary = a->binary,
                          .overwrite = a->overwrite,
                          .progress = show,
                          .ctx = &line };
    ses_train_monitor_catch_signals();
    double start = ses_seconds();
    if (p && !a->overwrite && ses_path_exists(a->output))
        ses_fail(e, SES_EUSAGE, "%s exists: --overwrite replaces it", a->output);
    bool ok =
        p && e->code == SES_OK && ses_exact_set(p, name, value, SES_LEN(name), &job, e) && p->run(&job, e);
    ses_progress_end(&line);
    if (!ok && ses_train_monitor_should_stop()) { /* main exits with the code of the signal */
        fprintf(stderr, "sesame: %s\n", e->msg);
        *e = (ses_err){ 0 };
    }
    if (ok && !c->quiet)
        fprintf(stderr, "%s: vectors of %" PRId64 " words, %.1f s\n", a->output, job.words,
                ses_seconds() - start);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame vectors train --exact word2vec --cbow 0 --output vectors.txt corpus.txt",
      "skip-gram with negative sampling, as word2vec.c" },
    { 0 },
};

const ses_command ses_command_vectors_train = {
    .name = "vectors-train",
    .usage = "CORPUS",
    .summary = "train word vectors on a text",
    .description = "Trains word vectors on a text: words separated by blanks, one sentence per line.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .is_action = true,
    .run = run,
};
