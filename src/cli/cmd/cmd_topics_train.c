/* topics train: fits LDA or LSA to texts. */
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/inspect/topic_report.h"
#include "cli/train/train_monitor.h"

#include "analysis/text_file.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "io/text_decoder.h"

#include <inttypes.h>

/* Settings of the model and its words, of LDA, of LSA; NAME_set: the option was given. */
typedef struct model_args {
    int words, stop_words;
    int64_t topics, min_df, vocabulary, seed;
    double max_df;
    bool words_set, stop_words_set, topics_set, min_df_set, vocabulary_set, seed_set, max_df_set;
} model_args;

typedef struct lda_args {
    int update;
    int64_t passes, chunk, iterations;
    double decay, offset, threshold, alpha, eta;
    const char *start;
    bool update_set, passes_set, chunk_set, iterations_set, decay_set, offset_set, threshold_set, alpha_set,
        eta_set, start_set;
} lda_args;

typedef struct lsa_args {
    int weights;
    int64_t oversampling, rounds;
    double tolerance;
    bool weights_set, oversampling_set, rounds_set, tolerance_set;
} lsa_args;

typedef struct args {
    int method, encoding;
    const char *output, *text_column;
    bool resume, overwrite;
    int64_t threads;
    model_args model;
    lda_args lda;
    lsa_args lsa;
    ses_topic_output show;
} args;

#define WAS_SET(struct_, field_) .was_set = offsetof(struct_##_args, field_##_set)
#define INT(name_, struct_, field_, def_, min_, max_, ...) \
    SES_OPT_INT(struct_##_args, field_, name_, def_, min_, max_, __VA_ARGS__, WAS_SET(struct_, field_))
#define REAL(name_, struct_, field_, def_, min_, max_, ...) \
    SES_OPT_REAL(struct_##_args, field_, name_, def_, min_, max_, __VA_ARGS__, WAS_SET(struct_, field_))
#define CHOICE(name_, struct_, field_, def_, choices_, help_) \
    SES_OPT_CHOICE(struct_##_args, field_, name_, def_, choices_, help_, WAS_SET(struct_, field_))

static const ses_opt model_opt[] = {
    SES_OPT_INT(model_args, topics, "topics", "20", 1, 65536, "number of topics", WAS_SET(model, topics),
                .letter = 'k', .value = "K"),
    CHOICE("words", model, words, "text", "text|blank",
           "text: lower case, runs of at least two letters or digits; blank: separated by white space"),
    CHOICE("stop-words", model, stop_words, "english", "english|none",
           "drop English function words, or nothing"),
    INT("min-df", model, min_df, "2", 1, 1e15, "drop words in fewer texts"),
    REAL("max-df", model, max_df, "1", 0, 1, "drop words in more than this share of the texts"),
    INT("vocabulary", model, vocabulary, "0", 0, 1e9, "keep the N most frequent words; 0: all"),
    INT("seed", model, seed, "1", 0, 1e15, "seed of the random start"),
};

static const ses_opt lda_opt[] = {
    INT("passes", lda, passes, "5", 1, 1e6, "LDA: passes over the texts", .common = true),
    CHOICE("update", lda, update, "online", "online|batch", "LDA: update after each chunk or each pass"),
    INT("chunk", lda, chunk, "2000", 1, 1e9, "LDA: texts of an online update"),
    REAL("decay", lda, decay, "0.5", 0, 1,
         "LDA: online update t = 0, 1, ... has the weight (offset + t)^-decay"),
    REAL("offset", lda, offset, "1", 1, 1e9, "LDA: see --decay"),
    INT("iterations", lda, iterations, "50", 1, 1e6, "LDA: maximum iterations for a text"),
    REAL("threshold", lda, threshold, "0.001", 0, 1e9,
         "LDA: the iterations for a text end once its parameters change by less on average"),
    REAL("alpha", lda, alpha, "0", 0, 1e6, "LDA: prior of the topics of a text; 0: 1 / topics"),
    REAL("eta", lda, eta, "0", 0, 1e6, "LDA: prior of the words of a topic; 0: 1 / topics"),
    SES_OPT_TEXT(lda_args, start, "start", "FILE",
                 "LDA: initial topics, [topics, words] in .npy or a table of numbers; default: random",
                 WAS_SET(lda, start), .is_path = true),
};

static const ses_opt lsa_opt[] = {
    CHOICE("weights", lsa, weights, "tf-idf", "tf-idf|count", "LSA: weights of the words of a text"),
    INT("oversampling", lsa, oversampling, "0", 0, 20000,
        "LSA: more vectors than topics in the iteration; 0: topics, at least 10"),
    INT("rounds", lsa, rounds, "100", 1, 1e6, "LSA: maximum rounds"),
    REAL("tolerance", lsa, tolerance, "1e-9", 0, 1,
         "LSA: end once no singular value changes by more in a round, relative to its size"),
};

static const ses_opt_table model_table = { model_opt, SES_LEN(model_opt) },
                           lda_table = { lda_opt, SES_LEN(lda_opt), "lda" },
                           lsa_table = { lsa_opt, SES_LEN(lsa_opt), "lsa" };

static const ses_opt opt[] = {
    SES_OPT_CHOICE(args, method, "method", "lda", "lda|lsa",
                   "latent Dirichlet allocation or latent semantic analysis"),
    SES_OPT_TEXT(args, output, "output", "DIR", "folder to write", .letter = 'o', .required = true,
                 .is_path = true, .alias = "to"),
    SES_OPT_FLAG(args, overwrite, "overwrite", "replace DIR and other outputs"),
    SES_OPT_FLAG(args, resume, "resume",
                 "continue the LDA training of DIR up to --passes; its other settings stay"),
    SES_OPT_TEXT(args, text_column, "text-column", "COLUMN",
                 "tables: name or number; default: sentence, text or the only column"),
    SES_OPT_ENCODING(args, encoding),
    SES_OPT_INCLUDE(args, model, model_table),
    SES_OPT_INCLUDE(args, lda, lda_table),
    SES_OPT_INCLUDE(args, lsa, lsa_table),
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
    const model_args *m = &a->model;
    const lda_args *lda = &a->lda;
    const lsa_args *lsa = &a->lsa;
    int64_t more = lsa->oversampling ? lsa->oversampling : m->topics > 10 ? m->topics : 10;
    return (ses_topic_settings){
        .method = a->method == 0 ? SES_TOPICS_LDA : SES_TOPICS_LSA,
        .terms = { .split = m->words == 0 ? SES_WORDS_RUNS : SES_WORDS_BLANK,
                   .stop_words = m->stop_words == 0,
                   .min_texts = m->min_df,
                   .max_share = m->max_df,
                   .max_words = m->vocabulary },
        .counts = lsa->weights == 1,
        .passes = lda->passes,
        .lda = { .topics = m->topics,
                 .chunk = lda->chunk,
                 .iterations = lda->iterations,
                 .decay = lda->decay,
                 .offset = lda->offset,
                 .threshold = lda->threshold,
                 .alpha = lda->alpha,
                 .eta = lda->eta,
                 .batch = lda->update == 1,
                 .seed = (uint64_t)m->seed },
        .lsa = { .topics = m->topics,
                 .oversampling = more,
                 .rounds = lsa->rounds,
                 .tolerance = lsa->tolerance,
                 .seed = (uint64_t)m->seed },
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
               ses_topic_resume(m, a->lda.passes, text, n, show_progress, line, stopped, e);
    return ses_topic_train(m, &s, text, n, a->lda.start, threads, show_progress, line, stopped, e);
}

/* Fails for an option that this training would not read. */
static bool check_settings(const args *a, ses_err *e)
{
    bool lda = a->method == 0;
    const char *other = lda ? ses_opt_given(&lsa_table, &a->lsa) : ses_opt_given(&lda_table, &a->lda);
    if (other)
        return ses_fail(e, SES_EUSAGE, "--%s has no effect with --method %s: it belongs to --method %s",
                        other, lda ? "lda" : "lsa", lda ? "lsa" : "lda");
    const lda_args *l = &a->lda;
    if (l->update == 1 && (l->chunk_set || l->decay_set || l->offset_set))
        return ses_fail(e, SES_EUSAGE, "--%s has no effect with --update batch",
                        l->chunk_set   ? "chunk"
                        : l->decay_set ? "decay"
                                       : "offset");
    return true;
}

/* A resumed training reads --passes only. */
static bool check_resume(const args *a, ses_err *e)
{
    lda_args rest = a->lda;
    rest.passes_set = false;
    const char *kept = ses_opt_given(&model_table, &a->model);
    if (!kept) kept = ses_opt_given(&lda_table, &rest);
    return !a->resume || !kept ||
           ses_fail(e, SES_EUSAGE, "--%s has no effect with --resume: the settings of %s stay", kept,
                    a->output);
}

static bool check(const args *a, ses_err *e)
{
    if (!check_settings(a, e) || !check_resume(a, e)) return false;
    if (!a->resume && !a->overwrite && ses_path_exists(a->output))
        return ses_fail(e, SES_EUSAGE, "%s exists: --overwrite replaces it, --resume continues it",
                        a->output);
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
    bool ok = ses_text_file_open(
        &f, c->operands[0],
        &(ses_text_file_options){ .text_column = a->text_column, .encoding = (ses_text_encoding)a->encoding },
        e);
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
