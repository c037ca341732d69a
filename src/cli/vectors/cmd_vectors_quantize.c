/* vectors quantize: compresses a fastText model. */
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/train/train_monitor.h"
#include "vector_options.h"

#include "base/clock.h"
#include "base/file.h"
#include "vectors/fasttext/fasttext_quantize.h"

#include <inttypes.h>
#include <string.h>

typedef struct args {
    const char *output, *retrain;
    bool overwrite, qnorm, qout;
    int64_t cutoff, dsub, epoch, threads;
    double lr;
    bool epoch_set, lr_set;
} args;

static const ses_opt opt[] = {
    SES_OPT_OUTPUT_FILE(args, output, "file to write, by custom MODEL.ftz"),
    SES_OPT_OVERWRITE(args, overwrite),
    SES_OPT_INT(args, cutoff, "cutoff", "0", 0, 2147483647, "rows of words and n-grams to keep; 0: all"),
    SES_OPT_TEXT(args, retrain, "retrain", "FILE", "train the kept rows again on this text with labels"),
    SES_OPT_INT(args, epoch, "epoch", "5", 1, 1 << 20, "passes of --retrain over the text",
                .was_set = offsetof(args, epoch_set)),
    SES_OPT_REAL(args, lr, "lr", "0.05", 0, 1e6, "initial learning rate of --retrain",
                 .was_set = offsetof(args, lr_set)),
    SES_OPT_FLAG(args, qnorm, "qnorm", "quantize the norms of rows separately"),
    SES_OPT_FLAG(args, qout, "qout", "quantize the output matrix too (from 256 labels)"),
    SES_OPT_INT(args, dsub, "dsub", "2", 1, 1 << 16, "columns that share one code"),
    SES_OPT_THREADS(args, threads),
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
    double start = ses_seconds();
    if (!ses_output_file_check(a->output, a->overwrite, e)) return false;
    if (a->retrain && !a->cutoff) return ses_fail(e, SES_EUSAGE, "--retrain needs --cutoff");
    if (!a->retrain && (a->epoch_set || a->lr_set))
        return ses_fail(e, SES_EUSAGE, "--%s needs --retrain", a->epoch_set ? "epoch" : "lr");
    ses_train_monitor_catch_signals();
    ses_mmap text = { 0 };
    if (a->retrain && !ses_mmap_open(&text, a->retrain, e)) return false;
    ses_progress line = ses_progress_start(stderr, &c->err, c->quiet, "training", 0);
    ses_fasttext_quantizing q = {
        .cutoff = a->cutoff,
        .norms = a->qnorm,
        .output = a->qout,
        .dsub = (int32_t)a->dsub,
        .retrain = { (const char *)text.data, text.size },
        .again = { .set.epoch = (int32_t)a->epoch, .lr = a->lr, .progress = show, .ctx = &line }
    };
    ses_thread_pool *pool = ses_thread_pool_new(a->threads ? (int)a->threads : ses_cpu_count(), e);
    ses_fasttext_model *m = pool ? ses_fasttext_open(c->operands[0], e) : NULL;
    size_t before = m ? m->file.size : 0;
    bool ok = m && ses_fasttext_quantize(m, &q, pool, e) && ses_fasttext_save(m, a->output, a->overwrite, e);
    ses_progress_end(&line);
    if (!ok) ses_show_stop(e);
    if (ok && !c->quiet)
        fprintf(stderr, "%s: %zu words, %" PRId64 " rows, from %.1f MB, %.1f s\n", a->output,
                ses_fasttext_n_words(m), m->in.rows, (double)before / 1e6, ses_seconds() - start);
    ses_fasttext_free(m);
    ses_thread_pool_free(pool);
    ses_mmap_free(&text);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame vectors quantize model.bin --output model.ftz --qnorm", "compress a fastText model" },
    { "sesame vectors quantize model.bin -o model.ftz --cutoff 100000 --retrain train.txt",
      "keep 100,000 rows and train them again" },
    { 0 },
};

const ses_command ses_command_vectors_quantize = {
    .name = "vectors-quantize",
    .usage = "MODEL.bin",
    .summary = "compress a fastText model",
    .description = "Compresses a fastText model by product quantization: each part of a row becomes the "
                   "number of one of "
                   "256 centroids. The file has the bytes that fastText's quantize writes on one thread.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .is_action = true,
    .run = run,
};
