/* vectors supervised: trains a fastText classifier. */
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/train/train_monitor.h"
#include "labeled_texts.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

#include <inttypes.h>
#include <string.h>

typedef struct args {
    const char *output, *loss, *label, *pretrained;
    ses_labeled_columns columns;
    bool overwrite, resume;
    int64_t dim, epoch, min_count, min_count_label, neg, ngrams, bucket, minn, maxn, seed, threads, batch;
    double lr;
} args;

#define NUMBER(option, field, default_, low, high, text)                                                   \
    {                                                                                                      \
        .name = option, .type = SES_OPT_INT, .offset = offsetof(args, field), .def = default_, .min = low, \
        .max = high, .help = text                                                                          \
    }
#define TEXT(option, field, default_, what, text)                                               \
    {                                                                                           \
        .name = option, .type = SES_OPT_TEXT, .offset = offsetof(args, field), .def = default_, \
        .value = what, .help = text                                                             \
    }

static const ses_opt opt[] = {
    { .name = "output",
      .letter = 'o',
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, output),
      .value = "FILE",
      .required = true,
      .help = "model to write, by custom MODEL.bin" },
    { .name = "overwrite",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, overwrite),
      .help = "replace FILE" },
    { .name = "resume",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, resume),
      .help = "continue an interrupted training from FILE.state" },
    TEXT("text-column", columns.text, "text", "NAME", "tables: column of the texts"),
    TEXT("label-column", columns.label, "label", "NAME", "tables: column of the labels"),
    TEXT("label", label, "__label__", "PREFIX", "prefix of labels"),
    { .name = "lr",
      .type = SES_OPT_REAL,
      .offset = offsetof(args, lr),
      .def = "0.1",
      .min = 0,
      .max = 1e6,
      .help = "initial learning rate" },
    NUMBER("dim", dim, "100", 1, 1 << 16, "columns"),
    NUMBER("epoch", epoch, "5", 1, 1 << 20, "passes over the texts"),
    TEXT("loss", loss, "softmax", "LOSS", "softmax, ns, hs or ova"),
    NUMBER("neg", neg, "5", 0, 1 << 16, "negative samples of the loss ns"),
    NUMBER("wordNgrams", ngrams, "1", 1, 1 << 10, "largest number of words of an n-gram"),
    NUMBER("minn", minn, "0", 0, 1 << 10, "least length of a character n-gram"),
    NUMBER("maxn", maxn, "0", 0, 1 << 10, "largest length of a character n-gram; 0: none"),
    NUMBER("bucket", bucket, "2000000", 0, 2147483647, "rows for n-grams"),
    NUMBER("minCount", min_count, "1", 0, 1 << 30, "least count of a word"),
    NUMBER("minCountLabel", min_count_label, "0", 0, 1 << 30, "least count of a label"),
    TEXT("pretrainedVectors", pretrained, NULL, "FILE", "text file of word vectors to start with"),
    NUMBER("seed", seed, "0", 0, 2147483647, "seed of the random numbers"),
    NUMBER("batch", batch, "0", 0, 1 << 20, "texts of a batch; 0: a default"),
    SES_OPT_THREADS(args, threads),
};

static bool show(void *ctx, int64_t done, int64_t total)
{
    ses_progress *line = ctx;
    line->total = total;
    ses_progress_show(line, done);
    return !ses_train_monitor_should_stop();
}

static ses_fasttext_options options_of(const args *a)
{
    ses_fasttext_options o = ses_fasttext_defaults();
    o.set.dim = (int32_t)a->dim;
    o.set.epoch = (int32_t)a->epoch;
    o.set.min_count = (int32_t)a->min_count;
    o.set.neg = (int32_t)a->neg;
    o.set.word_ngrams = (int32_t)a->ngrams;
    o.set.bucket = (int32_t)a->bucket;
    o.set.minn = (int32_t)a->minn;
    o.set.maxn = (int32_t)a->maxn;
    o.min_count_label = a->min_count_label;
    o.lr = a->lr;
    o.seed = a->seed;
    o.label = a->label;
    o.pretrained = a->pretrained;
    return o;
}

static bool train(ses_call *c, const char *state, ses_progress *line, ses_err *e)
{
    const args *a = c->args;
    double start = ses_seconds();
    ses_labeled_texts texts = { 0 };
    ses_fasttext_options o = options_of(a);
    o.progress = show;
    o.ctx = line;
    ses_fasttext_run run = { .batch = a->batch, .state = state, .resume = a->resume, .save_seconds = 60 };
    ses_fasttext_model m = { 0 };
    run.pool = ses_thread_pool_new(a->threads ? (int)a->threads : ses_cpu_count(), e);
    bool ok = run.pool && ses_fasttext_loss_of(a->loss, &o.set.loss, e) && ses_fasttext_check(&o, e) &&
              ses_labeled_texts_open(&texts, c->operands[0], &a->columns, e) &&
              ses_fasttext_train(&o, &texts.texts, &run, &m, e) &&
              ses_fasttext_save(&m, a->output, a->overwrite, e);
    ses_progress_end(line);
    if (ok && !c->quiet)
        fprintf(stderr, "%s: %zu words, %zu labels, loss %.4f, %.2f M words/s, %.1f s\n", a->output,
                ses_fasttext_n_words(&m), ses_fasttext_n_labels(&m), run.loss,
                (double)run.words / 1e6 / (ses_seconds() - start), ses_seconds() - start);
    ses_fasttext_clear(&m);
    ses_labeled_texts_free(&texts);
    ses_thread_pool_free(run.pool);
    return ok;
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_buf state = { 0 };
    if (!a->overwrite && ses_path_exists(a->output))
        return ses_fail(e, SES_EUSAGE, "%s exists: --overwrite replaces it", a->output);
    ses_train_monitor_catch_signals();
    ses_progress line = ses_progress_start(stderr, &c->err, c->quiet, "training", 0);
    ses_buf_appendf(&state, "%s.state", a->output);
    bool ok = ses_buf_ok(&state, e);
    if (ok && !a->resume && ses_path_exists(state.data))
        ok = ses_fail(e, SES_EUSAGE,
                      "%s is the state of an interrupted training: --resume continues it; remove it to "
                      "start again",
                      state.data);
    ok = ok && train(c, state.data, &line, e);
    if (!ok && ses_train_monitor_should_stop()) { /* main exits with the code of the signal */
        fprintf(stderr, "sesame: %s\n", e->msg);
        *e = (ses_err){ 0 };
    }
    ses_buf_free(&state);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame vectors supervised --output news.bin --wordNgrams 2 train.txt",
      "train on lines such as \"__label__sport the final score\"" },
    { "sesame vectors supervised -o news.bin --text-column text --label-column topic train.csv",
      "train on a table" },
    { 0 },
};

const ses_command ses_command_vectors_supervised = {
    .name = "vectors-supervised",
    .usage = "FILE",
    .summary = "train a fastText classifier of texts",
    .description = "Trains a fastText classifier: the mean of the vectors of a text's words and n-grams "
                   "predicts its label. "
                   "FILE has lines whose labels are words with a prefix, or is a table (.tsv, .csv, .jsonl). "
                   "The result is a "
                   "fastText model and has the same bits for any number of threads. 'sesame vectors train "
                   "--exact fasttext "
                   "--model supervised' gives the bits of fastText itself.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .is_action = true,
    .run = run,
};
