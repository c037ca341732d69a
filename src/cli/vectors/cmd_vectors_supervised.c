/* vectors supervised: trains a fastText classifier. */
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/train/data_notes.h"
#include "cli/train/train_monitor.h"
#include "fasttext_texts.h"
#include "vector_options.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "io/text_decoder.h"
#include "vectors/fasttext/fasttext_tune.h"

#include <inttypes.h>
#include <string.h>

typedef struct args {
    const char *output, *loss, *label, *pretrained;
    ses_label_columns columns;
    bool overwrite, resume;
    int64_t dim, epoch, min_count, min_count_label, neg, ngrams, bucket, minn, maxn, seed, threads, batch;
    double lr;
    struct {
        const char *valid, *metric, *size;
        int64_t seconds, trials, predictions;
        bool metric_set, predictions_set;
    } tune;
    bool epoch_set, lr_set, dim_set, ngrams_set, minn_set, maxn_set, bucket_set, neg_set;
} args;

#define NUMBER(option, field, default_, low, high, ...) \
    SES_OPT_INT(args, field, option, default_, low, high, __VA_ARGS__)
/* A number with a flag for "was given": autotune keeps such settings, others may have no effect. */
#define TUNED(option, field, default_, low, high, ...) \
    SES_OPT_INT(args, field, option, default_, low, high, __VA_ARGS__, .was_set = offsetof(args, field##_set))
#define TEXT(option, field, default_, what, ...) \
    SES_OPT_TEXT(args, field, option, what, __VA_ARGS__, .def = default_)

static const ses_opt opt[] = {
    SES_OPT_OUTPUT_FILE(args, output, "model to write, by custom MODEL.bin"),
    SES_OPT_OVERWRITE(args, overwrite),
    SES_OPT_FLAG(args, resume, "resume", "continue an interrupted training from FILE.state"),
    TEXT("text-column", columns.text, "text", "NAME", "tables: column of the texts"),
    TEXT("label-column", columns.label, "label", "NAME", "tables: column of the labels"),
    SES_OPT_ENCODING(args, columns.encoding),
    TEXT("label", label, "__label__", "PREFIX", "prefix of labels"),
    SES_OPT_REAL(args, lr, "lr", "0.1", 0, 1e6, "initial learning rate", .was_set = offsetof(args, lr_set)),
    TUNED("dim", dim, "100", 1, 1 << 16, "columns"),
    TUNED("epoch", epoch, "5", 1, 1 << 20, "passes over the texts"),
    TEXT("loss", loss, "softmax", "LOSS", "softmax, ns, hs or ova"),
    TUNED("neg", neg, "5", 0, 1 << 16, "negative samples of the loss ns"),
    TUNED("wordNgrams", ngrams, "1", 1, 1 << 10, "largest number of words of an n-gram"),
    TUNED("minn", minn, "0", 0, 1 << 10, "least length of a character n-gram"),
    TUNED("maxn", maxn, "0", 0, 1 << 10, "largest length of a character n-gram; 0: none"),
    TUNED("bucket", bucket, "2000000", 0, 2147483647, "rows for n-grams"),
    NUMBER("minCount", min_count, "1", 0, 1 << 30, "least count of a word"),
    NUMBER("minCountLabel", min_count_label, "0", 0, 1 << 30, "least count of a label"),
    TEXT("pretrainedVectors", pretrained, NULL, "FILE", "text file of word vectors to start with"),
    NUMBER("seed", seed, "0", 0, 2147483647, "seed of the random numbers"),
    NUMBER("batch", batch, "0", 0, 1 << 20, "texts of a batch; 0: a default"),
    TEXT("autotune-validation", tune.valid, NULL, "FILE",
         "search for settings by the score on these texts; given settings are kept"),
    NUMBER("autotune-duration", tune.seconds, "0", 0, 1 << 30,
           "seconds to search; default: 300, or no limit with trials", .group = "autotune"),
    NUMBER("autotune-trials", tune.trials, "0", 0, 1 << 30,
           "trials of the search; the result then depends on the seed only", .group = "autotune"),
    SES_OPT_TEXT(args, tune.metric, "autotune-metric", "METRIC",
                 "f1, f1:LABEL, precisionAtRecall:PERCENT[:LABEL] or recallAtPrecision:PERCENT[:LABEL]",
                 .def = "f1", .was_set = offsetof(args, tune.metric_set), .group = "autotune"),
    TEXT("autotune-modelsize", tune.size, NULL, "SIZE", "quantize to files of at most this size, such as 2M",
         .group = "autotune"),
    TUNED("autotune-predictions", tune.predictions, "1", 1, 1 << 20, "labels per text for the score",
          .group = "autotune"),
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

static void show_trial(void *ctx, const ses_fasttext_trial *t)
{
    const ses_call *c = ctx;
    const ses_fasttext_settings *s = &t->o.set;
    if (c->quiet) return;
    fprintf(stderr,
            "trial %" PRId64 ": epoch %d, lr %.4g, dim %d, wordNgrams %d, minn %d, maxn %d, bucket %d: ",
            t->number, s->epoch, t->o.lr, s->dim, s->word_ngrams, s->minn, s->maxn, s->bucket);
    if (*t->reason)
        fprintf(stderr, "%s", t->reason);
    else
        fprintf(stderr, "score %.4f%s", t->score, t->best ? " (best)" : "");
    fprintf(stderr, ", %.1f s\n", t->seconds);
}

static bool tune(ses_call *c, const ses_fasttext_options *o, const ses_fasttext_texts *texts,
                 ses_fasttext_run *run, ses_fasttext_model *m, ses_err *e)
{
    const args *a = c->args;
    ses_label_lines valid = { 0 };
    ses_fasttext_trial best;
    ses_fasttext_tuning t = { .start = *o,
                              .fixed = { .epoch = a->epoch_set,
                                         .lr = a->lr_set,
                                         .dim = a->dim_set,
                                         .word_ngrams = a->ngrams_set,
                                         .minn = a->minn_set,
                                         .maxn = a->maxn_set,
                                         .bucket = a->bucket_set },
                              .seconds = a->tune.seconds || a->tune.trials ? (double)a->tune.seconds : 300,
                              .trials = a->tune.trials,
                              .predictions = (size_t)a->tune.predictions,
                              .pool = run->pool,
                              .on_trial = show_trial,
                              .ctx = c };
    t.start.set.bucket = (int32_t)a->bucket; /* o has none if its settings have no n-grams */
    bool ok = ses_fasttext_metric_parse(&t.metric, a->tune.metric, e) &&
              (!a->tune.size || ses_fasttext_size_of(a->tune.size, &t.model_size, e)) &&
              ses_label_lines_open(&valid, a->tune.valid, &a->columns, e) &&
              ses_fasttext_tune(&t, texts, &valid.texts, m, &best, e);
    ses_label_lines_free(&valid);
    return ok;
}

/* Whether a table can be learned; prints the notices about its rows. */
static bool check_table(const ses_call *c, const ses_label_lines *t, ses_err *e)
{
    if (!t->table) return true;
    ses_note_data(c, t->table, t->texts.name, true);
    return ses_examples_check_learnable(t->table, e) || ses_wrap(e, "%s", t->texts.name);
}

static bool train(ses_call *c, const char *state, ses_progress *line, ses_err *e)
{
    const args *a = c->args;
    double start = ses_seconds();
    ses_label_lines texts = { 0 };
    ses_fasttext_options o = options_of(a);
    o.progress = show;
    o.ctx = line;
    ses_fasttext_run run = { .batch = a->batch, .state = state, .resume = a->resume, .save_seconds = 60 };
    ses_fasttext_model m = { 0 };
    run.pool = ses_thread_pool_new(a->threads ? (int)a->threads : ses_cpu_count(), e);
    bool ok = run.pool && ses_fasttext_loss_of(a->loss, &o.set.loss, e) && ses_fasttext_check(&o, e) &&
              ses_label_lines_open(&texts, c->operands[0], &a->columns, e) && check_table(c, &texts, e) &&
              (a->tune.valid ? tune(c, &o, &texts.texts, &run, &m, e)
                             : ses_fasttext_train(&o, &texts.texts, &run, &m, e)) &&
              ses_fasttext_save(&m, a->output, a->overwrite, e) && ses_file_remove(state, e);
    ses_progress_end(line);
    if (ok && !c->quiet) {
        fprintf(stderr, "%s: %zu words, %zu labels", a->output, ses_fasttext_n_words(&m),
                ses_fasttext_n_labels(&m));
        if (run.words)
            fprintf(stderr, ", loss %.4f, %.2f M words/s", run.loss,
                    (double)run.words / 1e6 / (ses_seconds() - start));
        fprintf(stderr, ", %.1f s\n", ses_seconds() - start);
    }
    ses_fasttext_clear(&m);
    ses_label_lines_free(&texts);
    ses_thread_pool_free(run.pool);
    return ok;
}

static bool check_usage(const ses_call *c, ses_err *e)
{
    const args *a = c->args;
    bool tunes =
        a->tune.seconds || a->tune.trials || a->tune.size || a->tune.metric_set || a->tune.predictions_set;
    if (!a->tune.valid && tunes)
        return ses_fail(e, SES_EUSAGE, "--autotune-validation FILE is needed to search for settings");
    if (a->tune.valid && a->resume) return ses_fail(e, SES_EUSAGE, "a search for settings cannot be resumed");
    if (a->tune.valid && !strcmp(a->tune.valid, "-") && !strcmp(c->operands[0], "-"))
        return ses_fail(e, SES_EUSAGE, "'-' (standard input) is given 2 times");
    if (a->minn > a->maxn && (!a->tune.valid || a->maxn_set)) /* a search chooses a maxn that is not given */
        return ses_fail(e, SES_EUSAGE, "--minn %" PRId64 " is larger than --maxn %" PRId64, a->minn, a->maxn);
    if (a->neg_set && strcmp(a->loss, "ns") != 0)
        return ses_fail(e, SES_EUSAGE, "--neg has no effect with --loss %s; use --loss ns", a->loss);
    if (a->bucket_set && a->ngrams < 2 && !a->maxn && !a->tune.valid)
        return ses_fail(e, SES_EUSAGE, "--bucket has no effect without n-grams: --wordNgrams 2 or --maxn");
    return true;
}

static bool check_state(const char *state, bool resume, ses_err *e)
{
    if (resume && !ses_path_exists(state))
        return ses_fail(e, SES_EUSAGE, "%s does not exist: nothing to resume", state);
    if (!resume && ses_path_exists(state))
        return ses_fail(e, SES_EUSAGE,
                        "%s is the state of an interrupted training: --resume continues it; remove it to "
                        "start again",
                        state);
    return true;
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_buf state = { 0 };
    if (!check_usage(c, e)) return false;
    if (!ses_output_file_check(a->output, a->overwrite, e)) return false;
    ses_train_monitor_catch_signals();
    ses_progress line = ses_progress_start(stderr, &c->err, c->quiet, "training", 0);
    ses_buf_appendf(&state, "%s.state", a->output);
    bool ok =
        ses_buf_ok(&state, e) && check_state(state.data, a->resume, e) && train(c, state.data, &line, e);
    if (!ok) ses_show_stop(e);
    ses_buf_free(&state);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame vectors supervised --output news.bin --wordNgrams 2 train.txt",
      "train on lines such as \"__label__sport the final score\"" },
    { "sesame vectors supervised -o news.bin --autotune-validation dev.txt --autotune-duration 120 train.txt",
      "search for settings for two minutes" },
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
                   "FILE has lines whose labels are words with a prefix, or is a table (.tsv, .csv, .jsonl); "
                   "it may be compressed (.gz, .xz, .zst), and '-' is standard input. "
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
