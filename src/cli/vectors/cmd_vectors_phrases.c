/* vectors phrases: joins words that belong together. */
#include "cli/command.h"
#include "cli/train/train_monitor.h"
#include "vector_options.h"

#include "base/clock.h"
#include "base/file.h"
#include "io/text_decoder.h"
#include "vectors/word_corpus.h"
#include "vectors/word_phrases.h"

#include <inttypes.h>

typedef struct args {
    const char *output;
    bool overwrite;
    int words, encoding;
    int64_t min_count, passes;
    double threshold;
} args;

static const ses_opt opt[] = {
    SES_OPT_OUTPUT_FILE(args, output, "text to write"),
    SES_OPT_OVERWRITE(args, overwrite),
    SES_OPT_REAL(args, threshold, "threshold", "100", 0, 0,
                 "score above which a pair is joined; a larger one joins fewer", .value = "X"),
    SES_OPT_INT(args, min_count, "min-count", "5", 1, 1 << 30, "least count of a word and of a pair",
                .value = "N"),
    SES_OPT_INT(args, passes, "passes", "1", 1, 16, "passes; the second joins up to four words, and so forth",
                .value = "N"),
    SES_OPT_CHOICE(args, words, "words", "blank", SES_WORDS_RULE_NAMES,
                   "blank: words are separated by blanks; text: prose, lower-cased and split"),
    SES_OPT_ENCODING(args, encoding),
};

static bool show(void *ctx, int64_t words)
{
    ses_progress_show(ctx, words);
    return !ses_train_monitor_should_stop();
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_progress line = ses_progress_start(stderr, &c->err, c->quiet, "words", 0);
    ses_phrases_job job = { .corpus = c->operands[0],
                            .output = a->output,
                            .overwrite = a->overwrite,
                            .rule = (ses_words_rule)a->words,
                            .encoding = (ses_text_encoding)a->encoding,
                            .min_count = a->min_count,
                            .threshold = a->threshold,
                            .passes = (int)a->passes,
                            .progress = show,
                            .ctx = &line };
    double start = ses_seconds();
    if (!ses_output_file_check(a->output, a->overwrite, e)) return false;
    ses_train_monitor_catch_signals();
    bool ok = ses_phrases_run(&job, e);
    ses_progress_end(&line);
    ses_warn_skipped(c->operands[0], &job.skipped);
    if (!ok) ses_show_stop(e);
    if (ok && !c->quiet)
        fprintf(stderr, "%s: %" PRId64 " words, %" PRId64 " pairs joined, %.1f s\n", a->output, job.words,
                job.joined, ses_seconds() - start);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame vectors phrases --output phrases.txt corpus.txt", "join pairs such as new_york" },
    { "sesame vectors phrases --passes 2 --output phrases.txt corpus.txt", "also new_york_times" },
    { 0 },
};

const ses_command ses_command_vectors_phrases = {
    .name = "vectors-phrases",
    .usage = "CORPUS",
    .summary = "join words that belong together, as word2phrase",
    .description = "Joins pairs of words by _ if they occur together more often than by chance: "
                   "(ab - min-count) / a / b * words > threshold. Settings and output are word2phrase's.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .is_action = true,
    .run = run,
};
