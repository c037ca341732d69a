/* topics infer: the topics of texts by a trained model. */
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/standard_output.h"
#include "cli/ui/show_values.h"

#include "analysis/text_file.h"
#include "base/alloc.h"
#include "io/text_decoder.h"
#include "vectors/topic/topic_model.h"

#include <math.h>
#include <string.h>

typedef struct args {
    const char *text_column;
    int encoding;
    int64_t top, threads;
    bool json;
} args;

static const ses_opt opt[] = {
    SES_OPT_TEXT(args, text_column, "text-column", "COLUMN",
                 "tables: name or number; default: sentence, text or the only column"),
    SES_OPT_ENCODING(args, encoding),
    SES_OPT_INT(args, top, "top", "0", 0, 65536,
                "write the N largest as TOPIC:WEIGHT; 0: the weights of all topics in order", .value = "N"),
    SES_OPT_THREADS(args, threads),
    SES_OPT_JSON(args, json),
};

/* Finds the topic with the largest weight that is not yet written; -1: none. */
static int64_t next_largest(const double *y, int64_t n, const bool *done)
{
    int64_t best = -1;
    for (int64_t k = 0; k < n; k++)
        if (!done[k] && (best < 0 || fabs(y[k]) > fabs(y[best]))) best = k;
    return best;
}

static void put_row(ses_buf *out, const double *y, int64_t n, int64_t top, bool *done)
{
    memset(done, 0, (size_t)n * sizeof *done);
    for (int64_t i = 0; i < (top && top < n ? top : n); i++) {
        int64_t k = top ? next_largest(y, n, done) : i;
        done[k] = true;
        if (i) ses_buf_put(out, '\t');
        if (top) ses_buf_appendf(out, "%lld:", (long long)k + 1);
        ses_buf_appendf(out, "%.6g", y[k]);
    }
    ses_buf_put(out, '\n');
}

static bool print_rows(const double *y, size_t rows, int64_t n, int64_t top, ses_err *e)
{
    ses_buf out = { 0 };
    bool *done = ses_alloc_array((size_t)n, sizeof *done, e), ok = done != NULL;
    for (size_t r = 0; ok && r < rows; r++) {
        put_row(&out, y + (int64_t)r * n, n, top, done);
        if (out.len < 1 << 20 && r + 1 < rows) continue;
        ok = ses_buf_ok(&out, e) && ses_stdout_write(out.data, out.len, e);
        out.len = 0;
    }
    ses_buf_free(&out);
    ses_free(done);
    return ok;
}

static bool print_json(const ses_text_file *f, const double *y, int64_t n, double perplexity, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_real(w, "perplexity", perplexity);
    ses_json_member_array(w, "texts");
    for (size_t i = 0; i < f->n; i++) {
        ses_json_begin_object(w);
        ses_json_member_uint(w, "line", f->line[i]);
        ses_json_member_array(w, "topics");
        for (int64_t k = 0; k < n; k++) ses_json_put_real(w, y[(int64_t)i * n + k]);
        ses_json_end_array(w);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_text_file f = { 0 };
    ses_topic_model m = { 0 };
    ses_string *text = NULL;
    double *y = NULL, perplexity = NAN;
    size_t unknown = 0;
    if (a->json && a->top)
        return ses_fail(e, SES_EUSAGE, "--top has no effect with --json, which has all weights");
    bool ok = ses_topic_open(&m, c->operands[0], a->threads ? (int)a->threads : ses_cpu_count(), e) &&
              ses_text_file_open(&f, c->operands[1],
                                 &(ses_text_file_options){ .text_column = a->text_column,
                                                           .encoding = (ses_text_encoding)a->encoding },
                                 e);
    int64_t n = ok ? ses_topic_count(&m) : 0;
    if (ok && f.is_words) ok = ses_fail(e, SES_EARG, "columns of words; expected a text per line or a table");
    text = ok ? ses_alloc_array(f.n + 1, sizeof *text, e) : NULL;
    y = text ? ses_alloc_array(f.n + 1, (size_t)n * sizeof *y, e) : NULL;
    for (size_t i = 0; y && i < f.n; i++) text[i] = f.text[i].text;
    ok = y && ses_topic_infer(&m, text, f.n, y, &perplexity, &unknown, e) &&
         (a->json ? print_json(&f, y, n, perplexity, e) : print_rows(y, f.n, n, a->top, e));
    if (ok && !c->quiet && !isnan(perplexity)) fprintf(stderr, "perplexity %.4f\n", perplexity);
    if (ok && !c->quiet && unknown)
        fprintf(stderr,
                "sesame: %s: %zu of %zu texts have no word of the model: their topics are meaningless\n",
                c->operands[1], unknown, f.n);
    ses_free(y), ses_free(text);
    ses_text_file_free(&f);
    ses_topic_model_free(&m);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame topics infer topics new.tsv --top 3", "the three main topics of each text" },
    { 0 },
};

const ses_command ses_command_topics_infer = {
    .name = "topics-infer",
    .usage = "MODEL TEXTS",
    .summary = "find the topics of texts with a trained model",
    .description =
        "Writes a line for each text: the share of each topic (LDA; they sum to 1) or its coordinates (LSA), "
        "separated by tabs. Words that the model does not know are ignored. The perplexity of the texts goes "
        "to "
        "stderr.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 2,
    .max_operands = 2,
    .is_action = true,
    .run = run,
};
