/* The corpus command: builds and describes tokenized corpora. */
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/inspect/corpus_show.h"
#include "cli/shard/shard_plan.h"
#include "cli/train/corpus_shards.h"
#include "cli/train/train_monitor.h"
#include "io/text_decoder.h"
#include "text/tokenizer_config.h"

#include "base/number.h"
#include "base/thread_pool.h"

#include <inttypes.h>
#include <string.h>

typedef struct args {
    const char *tokenizer, *output, *field, *held_out, *label, *shard;
    int format, encoding; /* ses_corpus_format, ses_text_encoding */
    bool split, keep, line_ends, restart, overwrite, json;
    int64_t threads;
} args;

static const ses_opt opt[] = {
    SES_OPT_TEXT(args, tokenizer, "tokenizer", "PATH", "build: folder or file of the tokenizer",
                 .is_model = true),
    SES_OPT_TEXT(args, output, "output", "C", "build, merge: corpus file to write", .letter = 'o',
                 .alias = "to"),
    SES_OPT_CHOICE(args, format, "format", "auto", "auto|text|jsonl",
                   "file format; auto: JSON lines if the name ends in .jsonl, .ndjson or .json"),
    SES_OPT_TEXT(args, field, "field", "NAME", "JSON lines: key of the text", .def = "text"),
    SES_OPT_ENCODING(args, encoding),
    SES_OPT_FLAG(args, split, "split-sentences", "lines are paragraphs: split them into sentences"),
    SES_OPT_FLAG(args, line_ends, "line-ends", "keep line ends within a document as text, for causal models"),
    SES_OPT_FLAG(args, keep, "keep-duplicates", "keep duplicate documents"),
    SES_OPT_TEXT(args, held_out, "held-out", "SHARE",
                 "fraction of documents held out for evaluation, e.g. 0.005 or 0.5%; chosen by their text",
                 .def = "0"),
    SES_OPT_TEXT(args, label, "label", "NAME", "language or control code, at most 31 bytes"),
    SES_OPT_FLAG(args, restart, "restart", "discard an interrupted build instead of continuing it"),
    SES_OPT_FLAG(args, overwrite, "overwrite", "replace C"),
    SES_OPT_SHARD(args, shard),
    SES_OPT_THREADS(args, threads),
    SES_OPT_JSON(args, json),
};

/* "0.005", "0.5%". */
static bool parse_fraction(const char *text, double *out, ses_err *e)
{
    size_t n = strlen(text), digits = strspn(text, "0123456789."), percent = n && text[n - 1] == '%';
    if (!digits || digits + percent != n || *text == '.' || text[digits - 1] == '.' ||
        !ses_parse_double(text, digits, out) || (*out /= percent ? 100 : 1) >= 1)
        return ses_fail(e, SES_EUSAGE,
                        "--held-out \"%s\": expected a number from 0 to 1, or a percentage such as 0.5%%",
                        text);
    return true;
}

static bool progress(void *ctx, uint64_t done, uint64_t of)
{
    ses_progress *line = ctx;
    line->total = (int64_t)of;
    ses_progress_show(line, (int64_t)done);
    return !ses_train_monitor_should_stop();
}

/* A small corpus may have no document for evaluation. */
static bool report_held_out(const ses_call *c, const args *a, ses_err *e)
{
    ses_corpus *corpus = ses_corpus_open(a->output, e);
    if (!corpus) return false;
    const ses_corpus_info *x = ses_corpus_info_of(corpus);
    if (!c->quiet && x->held_out_fraction > 0 && !x->held_out)
        fprintf(stderr,
                "no document is held out for evaluation: --held-out %g of %" PRId64
                " documents; blank lines separate documents\n",
                x->held_out_fraction, x->documents);
    ses_corpus_free(corpus);
    return true;
}

static bool show(const ses_call *c, const args *a, double start, ses_err *e)
{
    if (!report_held_out(c, a, e)) return false;
    return ses_corpus_show(a->output, &(ses_corpus_view){ &c->out, a->json, ses_seconds() - start }, e);
}

static bool build(ses_call *c, const args *a, ses_err *e)
{
    double fraction = 0, start = ses_seconds();
    int64_t resumed = 0;
    ses_tokenizer_config facts;
    if (!a->tokenizer || !a->output)
        return ses_fail(e, SES_EUSAGE, "build: expected --tokenizer and --output");
    if (!parse_fraction(a->held_out, &fraction, e)) return false;
    if (a->label && strlen(a->label) > 31) return ses_fail(e, SES_EUSAGE, "--label: longer than 31 bytes");
    ses_tokenizer *t = ses_tokenizer_open(a->tokenizer, e);
    if (!t) return false;
    ses_train_monitor_catch_signals();
    ses_progress line = ses_progress_start(stderr, &c->err, c->quiet, "reading", 0);
    bool ok = ses_tokenizer_config_read(&facts, a->tokenizer, "", NULL, t, e);
    const char *input[] = { "-" };
    ses_corpus_options o = { .tokenizer = t,
                             .unk_id = ok ? facts.role[SES_ROLE_UNK] : -1,
                             .files = c->n_operands > 1 ? (const char *const *)c->operands + 1 : input,
                             .n_files = c->n_operands > 1 ? (size_t)c->n_operands - 1 : 1,
                             .format = (ses_corpus_format)a->format,
                             .field = a->field,
                             .encoding = (ses_text_encoding)a->encoding,
                             .split_sentences = a->split,
                             .keep_duplicates = a->keep,
                             .newline_tokens = a->line_ends,
                             .held_out_fraction = fraction,
                             .label = a->label,
                             .restart = a->restart,
                             .overwrite = a->overwrite,
                             .threads = a->threads ? (int)a->threads : ses_cpu_count(),
                             .progress = progress,
                             .ctx = &line };
    bool complete = false;
    if (ok && a->shard)
        ok = ses_corpus_build_shard(c, a->output, a->shard, a->tokenizer, &o, &resumed, &complete, e);
    else
        ok = ok && ses_corpus_build(a->output, &o, &resumed, e);
    ses_progress_end(&line);
    ses_tokenizer_free(t);
    if (!ok && ses_train_monitor_should_stop()) { /* main exits with the code of the signal */
        fprintf(stderr, "sesame: %s\n", e->msg);
        *e = (ses_err){ 0 };
    }
    if (ok && resumed && !c->quiet)
        fprintf(stderr, "continued an interrupted build of %" PRId64 " documents\n", resumed);
    return ok && show(c, a, start, e);
}

static bool merge(ses_call *c, const args *a, ses_err *e)
{
    double start = ses_seconds();
    if (!a->output || c->n_operands < 2)
        return ses_fail(e, SES_EUSAGE, "merge: expected --output C and all shards of a corpus, in order");
    return ses_corpus_merge_shards(a->output, c->operands + 1, (size_t)c->n_operands - 1, a->overwrite, e) &&
           show(c, a, start, e);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    bool ok = true;
    if (!strcmp(c->operands[0], "build")) return build(c, a, e);
    if (!strcmp(c->operands[0], "merge")) return merge(c, a, e);
    if (strcmp(c->operands[0], "info"))
        return ses_fail(e, SES_EUSAGE, "unknown action \"%s\"; expected build, merge or info",
                        c->operands[0]);
    if (c->n_operands < 2) return ses_fail(e, SES_EUSAGE, "info: expected a corpus");
    for (int i = 1; i < c->n_operands && ok; i++) {
        if (i > 1 && !a->json) puts("");
        ok = ses_corpus_show(c->operands[i], &(ses_corpus_view){ &c->out, a->json, 0 }, e);
    }
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame corpus build --tokenizer t.json --held-out 0.5% -o c.ids books.txt.xz",
      "hold out documents for evaluation" },
    { "zcat web.gz | sesame corpus build --format jsonl --tokenizer gpt2 -o web.ids",
      "JSON lines from a pipe" },
    { "sesame corpus info c.ids", "count tokens and documents, verify the checksums" },
    { 0 },
};

const ses_command ses_command_corpus = {
    .name = "corpus",
    .usage = "build [FILE...] | merge PART... | info C...",
    .summary = "build or inspect a tokenized corpus",
    .description =
        "build tokenizes texts of any size on all threads and writes one file: token ids with the starts of "
        "words, sentences and documents. Plain text has blank lines between documents; a line is a sentence "
        "(or a "
        "paragraph: see --split-sentences). In JSON lines, each line is a document, and the lines of its "
        "text are "
        "sentences. Files compressed with gzip, xz or zstd are decompressed.\n\n"
        "Duplicate documents are dropped. The result does not depend on the number of threads. An "
        "interrupted "
        "build leaves C.part, and the same command continues it.\n\n"
        "build --shard I/N tokenizes part I of the texts; merge joins all N parts, in order, to the corpus "
        "that one "
        "build gives, byte for byte.\n\n"
        "info prints the statistics of a corpus after verifying its checksums.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = -1,
    .operand_words = "build|merge|info",
    .run = run,
};
