/* vectors train: trains word vectors on a text. */
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/train/train_monitor.h"
#include "io/text_decoder.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/thread_pool.h"
#include "vector_options.h"
#include "vectors/exact/exact.h"
#include "vectors/train/vector_trainer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

typedef struct args {
    const char *exact, *output, *device;
    bool binary, overwrite, resume;
    int format, encoding;
    int64_t threads, checkpoint_every;
#define SES_VECTORS_SETTING(field, name, ...) const char *field; /* text: NULL unless given */
#include "vectors_settings.def"
#undef SES_VECTORS_SETTING
} args;

static const ses_opt opt[] = {
    SES_OPT_OUTPUT_FILE(args, output, "file to write"),
    SES_OPT_CHOICE(
        args, format, "format", NULL, SES_VECTOR_FORMAT_CHOICES,
        "format of FILE (default word2vec, its text format); fasttext keeps the n-grams, safetensors "
        "is a folder; "
        "pv-dbow and pv-dm: vectors of the lines, named by their numbers (default: a model for "
        "'vectors infer')"),
    SES_OPT_ENCODING(args, encoding),
    SES_OPT_OVERWRITE(args, overwrite),
    SES_OPT_THREADS(args, threads),
    SES_OPT_TEXT(args, device, "device", "DEVICE",
                 "cpu (default), cuda or cuda:N; a GPU trains skipgram, cbow and glove without --maxn",
                 .env = "SESAME_DEVICE", .completion = "devices"),
    SES_OPT_INT(args, checkpoint_every, "checkpoint-every", NULL, 1, 1e9,
                "write FILE.checkpoint at this interval; Ctrl-C writes it too", .value = "SECONDS",
                .group = "details"),
    SES_OPT_FLAG(args, resume, "resume",
                 "continue from FILE.checkpoint; the result has the bits of a run without interruption"),
    SES_OPT_TEXT(args, exact, "exact", "PROGRAM",
                 "reproduce a program bit for bit: word2vec, fasttext or glove"),
    SES_OPT_FLAG(args, binary, "binary", "--exact: write the binary format of the program instead of text",
                 .group = "exact"),
#define SES_VECTORS_SETTING(field, option, ...) SES_OPT_TEXT(args, field, option, "X", __VA_ARGS__),
#include "vectors_settings.def"
#undef SES_VECTORS_SETTING
};

static const char *const setting_name[] = {
#define SES_VECTORS_SETTING(field, option, ...) option,
#include "vectors_settings.def"
#undef SES_VECTORS_SETTING
};

enum { N_SETTINGS = SES_LEN(setting_name), LABEL = 96 };

/* The settings as typed, in the order of setting_name. */
static void settings_of(const args *a, const char *value[N_SETTINGS])
{
    const char *const given[] = {
#define SES_VECTORS_SETTING(field, option, ...) a->field,
#include "vectors_settings.def"
#undef SES_VECTORS_SETTING
    };
    memcpy(value, given, sizeof given);
}

static bool is_gpu(const args *a) { return a->device && strcmp(a->device, "cpu") != 0; }

/* ---- checks before the text is read ---- */

static bool check_folder(const char *output, ses_err *e)
{
    char *dir = ses_path_parent(output, e);
    bool ok = dir && ses_dir_check(dir, e);
    if (ok && access(dir, W_OK) != 0) ok = ses_fail(e, SES_EIO, "%s: %s", dir, strerror(errno));
    if (dir && !ok) ses_wrap(e, "--output %s: its folder", output);
    ses_free(dir);
    return ok;
}

static bool check_files(const ses_call *c, ses_err *e)
{
    const args *a = c->args;
    int inputs = 0;
    for (int i = 0; i < c->n_operands; i++) inputs += !strcmp(c->operands[i], "-");
    if (inputs > 1)
        return ses_fail(e, SES_EUSAGE, "- is given %d times: standard input is read only once", inputs);
    if (!strcmp(a->output, "-"))
        return ses_fail(e, SES_EUSAGE, "--output -: vectors are not written to standard output; name a file");
    return ses_vectors_output_check(a->output, ses_vector_format_name(a->format), a->overwrite, e) &&
           check_folder(a->output, e);
}

/* The checkpoint of an interrupted run may be worth hours. */
static bool check_checkpoint(const ses_vector_job *job, ses_err *e)
{
    if (job->resume || job->overwrite) return true;
    char *path = ses_vector_checkpoint_path(job, e);
    bool ok = path && (!ses_path_exists(path) ||
                       ses_fail(e, SES_EUSAGE,
                                "%s exists: --resume continues that run, --overwrite starts again", path));
    ses_free(path);
    return ok;
}

/* ---- exact programs ---- */

static bool show_exact(void *ctx, int64_t done, int64_t total)
{
    ses_progress *line = ctx;
    line->total = total;
    ses_progress_show(line, done);
    return !ses_train_monitor_should_stop();
}

static bool run_exact(ses_call *c, ses_progress *line, int64_t *words, ses_err *e)
{
    const args *a = c->args;
    const char *value[N_SETTINGS];
    const ses_exact_program *p = ses_exact_find(a->exact, e);
    if (!p) return false;
    const char *other = a->format >= 0        ? "--format"
                        : a->resume           ? "--resume"
                        : a->checkpoint_every ? "--checkpoint-every"
                        : is_gpu(a)           ? "--device"
                        : a->encoding         ? "--encoding"
                                              : NULL;
    if (other)
        return ses_fail(e, SES_EUSAGE, "%s does not apply to --exact, which reproduces a program as it is",
                        other);
    if (c->n_operands > 1) return ses_fail(e, SES_EUSAGE, "--exact takes one text, not %d", c->n_operands);
    ses_exact_job job = { .corpus = c->operands[0],
                          .output = a->output,
                          .binary = a->binary,
                          .overwrite = a->overwrite,
                          .progress = show_exact,
                          .ctx = line };
    settings_of(a, value);
    bool ok = ses_exact_set(p, setting_name, value, N_SETTINGS, &job, e) && p->run(&job, e);
    *words = job.words;
    return ok;
}

/* ---- trainers ---- */

typedef struct display {
    ses_progress *line;
    double start;
    int64_t first; /* words at the first report: a resumed run does not start at 0 */
    double speed;  /* words per second since then; 0: unknown */
    char label[LABEL];
} display;

static bool show(void *ctx, const ses_vector_report *r)
{
    display *d = ctx;
    bool training = r->total > 0;
    if (training && d->first < 0) d->first = r->words, d->start = ses_seconds();
    double seconds = ses_seconds() - d->start;
    if (training && seconds > 0) d->speed = (double)(r->words - d->first) / seconds;
    if (training && seconds > 0)
        snprintf(d->label, sizeof d->label, "pass %d of %d, %.2f M words/s, rate %.5f, loss %.4f", r->pass,
                 r->passes, d->speed / 1e6, r->rate, r->loss);
    d->line->label = training && seconds > 0 ? d->label : r->phase;
    d->line->total = r->total;
    ses_progress_show(d->line, r->words);
    return !ses_train_monitor_should_stop();
}

/* Opens the GPU of --device; on a CPU, trainers use threads. */
static bool open_device(const args *a, ses_vector_job *job, ses_err *e)
{
    if (!is_gpu(a)) return true;
    if (!job->trainer->on_device)
        return ses_fail(
            e, SES_EUSAGE,
            "--device %s: --model %s is trained on a CPU only; a GPU trains skipgram, cbow and glove",
            a->device, job->trainer->name);
    ses_device_options o = { .threads = job->threads };
    return (job->device = ses_device_open(a->device, &o, e)) || ses_wrap(e, "--device");
}

static bool run_trainer(ses_call *c, ses_progress *line, int64_t *words, ses_err *e)
{
    const args *a = c->args;
    const char *value[N_SETTINGS];
    const ses_vector_trainer *t = ses_vector_trainer_find(a->model ? a->model : "skipgram", e);
    display d = { .line = line, .first = -1 };
    ses_vector_job job = { .corpus = (const char *const *)c->operands,
                           .n_corpus = (size_t)c->n_operands,
                           .encoding = (ses_text_encoding)a->encoding,
                           .output = a->output,
                           .format = ses_vector_format_name(a->format),
                           .overwrite = a->overwrite,
                           .threads = a->threads ? (int)a->threads : ses_cpu_count(),
                           .checkpoint_every = (double)a->checkpoint_every,
                           .resume = a->resume,
                           .progress = show,
                           .ctx = &d };
    settings_of(a, value);
    for (size_t i = 0; i < N_SETTINGS; i++)
        if (!strcmp(setting_name[i], "model")) value[i] = NULL;
    if (a->binary)
        return ses_fail(e, SES_EUSAGE, "--binary belongs to --exact; use --format word2vec-binary");
    if (!t || !ses_vector_job_set(&job, t, setting_name, value, N_SETTINGS, e) ||
        !check_checkpoint(&job, e) || !open_device(a, &job, e))
        return false;
    bool ok = t->run(&job, e);
    ses_device_free(job.device);
    ses_progress_end(line);
    ses_warn_skipped(c->operands[0], &job.skipped);
    if (job.stopped) ses_wrap(e, "--resume continues from %s.checkpoint", a->output);
    if (ok && !c->quiet)
        fprintf(stderr,
                "%" PRId64 " words of text, mean loss of the last pass %.4f, training %.2f M words/s\n",
                job.tokens, job.loss, d.speed / 1e6);
    *words = job.words;
    return ok;
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_progress line = ses_progress_start(stderr, &c->err, c->quiet, "training", 0);
    int64_t words = 0;
    double start = ses_seconds();
    if (!check_files(c, e)) return false;
    ses_train_monitor_catch_signals();
    bool ok = a->exact ? run_exact(c, &line, &words, e) : run_trainer(c, &line, &words, e);
    ses_progress_end(&line);
    if (!ok) ses_show_stop(e);
    if (ok && !c->quiet)
        fprintf(stderr, "%s: vectors of %" PRId64 " words, %.1f s\n", a->output, words,
                ses_seconds() - start);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame vectors train --output vectors.txt corpus.txt", "skip-gram with negative sampling" },
    { "sesame vectors train --model cbow --words text --dim 300 --output vectors.txt books/*.txt.gz",
      "CBOW on prose" },
    { "sesame vectors train --maxn 6 --format fasttext --output vectors.bin corpus.txt",
      "vectors of subwords, for fastText" },
    { "sesame vectors train --model glove --dim 100 --output vectors.txt corpus.txt",
      "GloVe: vectors from counts of word pairs" },
    { "sesame vectors train --model pv-dbow --words text --output reviews.safetensors reviews.txt",
      "a vector for each line; 'sesame vectors infer' is for new texts" },
    { "sesame vectors train --exact word2vec --cbow 0 --output vectors.txt corpus.txt",
      "skip-gram with negative sampling, with the bits of word2vec.c" },
    { 0 },
};

const ses_command ses_command_vectors_train = {
    .name = "vectors-train",
    .usage = "CORPUS...",
    .summary = "train word vectors on a text",
    .description =
        "Trains word vectors on a text: words separated by blanks, one sentence per line. Files may be "
        "compressed; - is standard input. The result depends on the text, the settings and the seed, not on "
        "the "
        "threads. The loss is the mean over pairs of a word and a context word: the logistic losses of the "
        "pair and of its negative samples, or of the nodes of its path.\n\n"
        "--exact reproduces another program bit for bit, on one thread, with its own options.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = -1,
    .is_action = true,
    .run = run,
};
