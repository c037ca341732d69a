/* topics train: fits LDA or LSA to texts. */
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/inspect/topic_report.h"
#include "cli/train/train_monitor.h"

#include "analysis/text_file.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"

#include <inttypes.h>

typedef struct args {
    int method, words, stop_words, update, weights;
    const char *output, *text_column, *start;
    bool resume, overwrite;
    int64_t topics, passes, min_df, vocabulary, chunk, iterations, oversampling, rounds, seed, threads;
    double max_df, decay, offset, threshold, alpha, eta, tolerance;
    ses_topic_output show;
} args;

#define INT(name_, field_, def_, min_, max_, help_)                                                      \
    {                                                                                                    \
        .name = name_, .type = SES_OPT_INT, .offset = offsetof(args, field_), .value = "N", .def = def_, \
        .min = min_, .max = max_, .help = help_                                                          \
    }
#define REAL(name_, field_, def_, min_, max_, help_)                                                      \
    {                                                                                                     \
        .name = name_, .type = SES_OPT_REAL, .offset = offsetof(args, field_), .value = "X", .def = def_, \
        .min = min_, .max = max_, .help = help_                                                           \
    }
#define CHOICE(name_, field_, def_, choices_, help_)                                                  \
    {                                                                                                 \
        .name = name_, .type = SES_OPT_CHOICE, .offset = offsetof(args, field_), .choices = choices_, \
        .def = def_, .help = help_                                                                    \
    }

static const ses_opt opt[] = {
    CHOICE("method", method, "lda", "lda|lsa", "latent Dirichlet allocation or latent semantic analysis"),
    { .name = "topics",
      .letter = 'k',
      .type = SES_OPT_INT,
      .offset = offsetof(args, topics),
      .value = "K",
      .def = "20",
      .min = 1,
      .max = 65536,
      .help = "number of topics" },
    { .name = "output",
      .letter = 'o',
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, output),
      .value = "DIR",
      .required = true,
      .is_path = true,
      .help = "folder to write" },
    { .name = "overwrite",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, overwrite),
      .help = "replace DIR and other outputs" },
    { .name = "resume",
      .type = SES_OPT_FLAG,
      .offset = offsetof(args, resume),
      .help = "continue the LDA training of DIR up to --passes; its other settings stay" },
    { .name = "text-column",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, text_column),
      .value = "COLUMN",
      .help = "tables: name or number; default: sentence, text or the first column" },
    CHOICE("words", words, "text", "text|blank",
           "text: lower case, runs of at least two letters or digits; blank: separated by white space"),
    CHOICE("stop-words", stop_words, "english", "english|none", "drop English function words, or nothing"),
    INT("min-df", min_df, "2", 1, 1e15, "drop words in fewer texts"),
    REAL("max-df", max_df, "1", 0, 1, "drop words in more than this share of the texts"),
    INT("vocabulary", vocabulary, "0", 0, 1e9, "keep the N most frequent words; 0: all"),
    INT("passes", passes, "5", 1, 1e6, "LDA: passes over the texts"),
    CHOICE("update", update, "online", "online|batch", "LDA: update after each chunk or each pass"),
    INT("chunk", chunk, "2000", 1, 1e9, "LDA: texts of an online update"),
    REAL("decay", decay, "0.5", 0, 1, "LDA: update t = 0, 1, ... has the weight (offset + t)^-decay"),
    REAL("offset", offset, "1", 1, 1e9, "LDA: see --decay"),
    INT("iterations", iterations, "50", 1, 1e6, "LDA: maximum iterations for a text"),
    REAL("threshold", threshold, "0.001", 0, 1e9,
         "LDA: the iterations for a text end once its parameters change by less on average"),
    REAL("alpha", alpha, "0", 0, 1e6, "LDA: prior of the topics of a text; 0: 1 / topics"),
    REAL("eta", eta, "0", 0, 1e6, "LDA: prior of the words of a topic; 0: 1 / topics"),
    { .name = "start",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, start),
      .value = "FILE",
      .is_path = true,
      .help = "LDA: initial topics, [topics, words] in .npy or a table of numbers; default: random" },
    CHOICE("weights", weights, "tf-idf", "tf-idf|count", "LSA: weights of the words of a text"),
    INT("oversampling", oversampling, "0", 0, 20000,
        "LSA: more vectors than topics in the iteration; 0: topics, at least 10"),
    INT("rounds", rounds, "100", 1, 1e6, "LSA: maximum rounds"),
    REAL("tolerance", tolerance, "1e-9", 0, 1,
         "LSA: end once no singular value changes by more in a round, relative to its size"),
    INT("seed", seed, "1", 0, 1e15, "seed of the random start"),
    SES_OPT_THREADS(args, threads),
    SES_OPT_INCLUDE(args, show, ses_topic_output_options),
};

static bool show_progress(void *ctx, int64_t done, int64_t total)
{
    ses_progress *line = ctx;
    line->total = total;
    ses_progress_show(line, done);
    return !ses_train_monitor_should_stop();
}

static ses_topic_settings settings_of(const args *a)
{
    int64_t more = a->oversampling ? a->oversampling : a->topics > 10 ? a->topics : 10;
    return (ses_topic_settings){
        .method = a->method == 0 ? SES_TOPICS_LDA : SES_TOPICS_LSA,
        .terms = { .split = a->words == 0 ? SES_WORDS_RUNS : SES_WORDS_BLANK,
                   .stop_words = a->stop_words == 0,
                   .min_texts = a->min_df,
                   .max_share = a->max_df,
                   .max_words = a->vocabulary },
        .counts = a->weights == 1,
        .passes = a->passes,
        .lda = { .topics = a->topics,
                 .chunk = a->chunk,
                 .iterations = a->iterations,
                 .decay = a->decay,
                 .offset = a->offset,
                 .threshold = a->threshold,
                 .alpha = a->alpha,
                 .eta = a->eta,
                 .batch = a->update == 1,
                 .seed = (uint64_t)a->seed },
        .lsa = { .topics = a->topics,
                 .oversampling = more,
                 .rounds = a->rounds,
                 .tolerance = a->tolerance,
                 .seed = (uint64_t)a->seed },
    };
}

/* The texts as strings: words of CoNLL files are joined by blanks. */
static ses_string *strings_of(ses_text_file *f, ses_err *e)
{
    ses_string *text = ses_alloc_array(f->n + 1, sizeof *text, e);
    if (text && f->is_words) {
        ses_fail(e, SES_EARG, "columns of words; expected a text per line or a table");
        ses_free(text);
        return NULL;
    }
    for (size_t i = 0; text && i < f->n; i++) text[i] = f->text[i].text;
    return text;
}

static bool fit(const args *a, ses_topic_model *m, const ses_string *text, size_t n, ses_progress *line,
                bool *stopped, ses_err *e)
{
    int threads = a->threads ? (int)a->threads : ses_cpu_count();
    ses_topic_settings s = settings_of(a);
    if (a->resume)
        return ses_topic_open(m, a->output, threads, e) &&
               ses_topic_resume(m, a->passes, text, n, show_progress, line, stopped, e);
    return ses_topic_train(m, &s, text, n, a->start, threads, show_progress, line, stopped, e);
}

static bool check(const args *a, ses_err *e)
{
    if (!a->resume && !a->overwrite && ses_path_exists(a->output))
        return ses_fail(e, SES_EUSAGE, "%s exists: --overwrite replaces it, --resume continues it",
                        a->output);
    if (a->start && (a->method != 0 || a->resume))
        return ses_fail(e, SES_EUSAGE, "--start is for a new LDA model");
    ses_topic_output o = a->show;
    o.overwrite = a->overwrite;
    return ses_topic_output_check(&o, e);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_text_file f = { 0 };
    ses_topic_model m = { 0 };
    bool stopped = false;
    if (!check(a, e)) return false;
    ses_train_monitor_catch_signals();
    double start = ses_seconds();
    bool ok = ses_text_file_open(&f, c->operands[0], &(ses_text_file_options){ a->text_column }, e);
    ses_string *text = ok ? strings_of(&f, e) : NULL;
    ses_progress line = ses_progress_start(stderr, &c->err, c->quiet, "training", 0);
    ok = text && fit(a, &m, text, f.n, &line, &stopped, e);
    ses_progress_end(&line);
    ok = ok && ses_topic_save(&m, a->output, a->overwrite || a->resume, e);
    if (!ok && ses_train_monitor_should_stop()) { /* main exits with the code of the signal */
        fprintf(stderr, "sesame: %s\n", e->msg);
        *e = (ses_err){ 0 };
    }
    if (ok && stopped)
        fprintf(stderr, "%s: stopped in pass %" PRId64 "; --resume continues\n", a->output, m.lda.pass + 1);
    else if (ok && !c->quiet)
        fprintf(stderr, "%s: %" PRId64 " topics, %zu texts, %" PRId64 " words, %.1f s\n", a->output,
                ses_topic_count(&m), f.n, m.vocab.words, ses_seconds() - start);
    ses_topic_output o = a->show;
    o.overwrite = a->overwrite;
    if (ok && stopped)
        ok = false;
    else
        ok = ok && ses_topic_report(c, &m, ses_path_name_of(a->output).s, &o, e);
    ses_topic_model_free(&m);
    ses_free(text);
    ses_text_file_free(&f);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame topics train --topics 20 --passes 10 -o topics news.tsv", "LDA of the texts in a table" },
    { "sesame topics train --method lsa -k 100 -o lsa texts.txt", "LSA, one text per line" },
    { "sesame topics train --passes 20 --resume -o topics news.tsv", "ten more passes" },
    { 0 },
};

const ses_command ses_command_topics_train = {
    .name = "topics-train",
    .usage = "TEXTS",
    .summary = "train a topic model on texts",
    .description =
        "Trains a topic model on the texts of a file: one per line, or a column of a table (.tsv, .csv, "
        ".jsonl), "
        "possibly compressed. LDA is online variational Bayes (Hoffman et al. 2010), LSA a randomized "
        "singular "
        "value decomposition. The result does not depend on --threads.\n\n"
        "Coherence of a topic: over the pairs of its ten top words, i before j, with the shares p of the "
        "texts "
        "that contain the words: UMass is the mean of ln((p(i,j) + 1e-12) / p(i)), NPMI that of "
        "ln((p(i,j) + 1e-12) / (p(i) p(j))) / -ln(p(i,j) + 1e-12). Higher is better.\n\n"
        "The perplexity of a pass is exp(-bound / words); the bound of each text is that before its update.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .is_action = true,
    .run = run,
};
