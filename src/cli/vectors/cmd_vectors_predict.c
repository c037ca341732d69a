/* vectors predict: predicts labels of texts with a fastText classifier. */
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/line_limit.h"
#include "vector_options.h"

#include "base/alloc.h"
#include "io/text_reader.h"
#include "vectors/fasttext/fasttext_model.h"

#include <math.h>
#include <stdio.h>

typedef struct args {
    int64_t k;
    double threshold;
    bool json;
} args;

static const ses_opt opt[] = {
    SES_OPT_LABEL_COUNT(args, k),
    SES_OPT_LEAST_PROBABILITY(args, threshold),
    SES_OPT_JSON(args, json),
};

static bool print_json(const ses_fasttext_model *m, const ses_fasttext_guess *guess, size_t n, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_json_begin_array(w);
    for (size_t i = 0; i < n; i++) {
        ses_string label = ses_fasttext_label_at(m, (size_t)guess[i].label);
        ses_json_begin_object(w);
        ses_json_member_stringn(w, "label", label.p, label.n);
        ses_json_put_key(w, "score");
        ses_json_put_float(w, expf(guess[i].score));
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    const char *text = ses_json_writer_text(w, NULL, e);
    if (text) printf("%s\n", text);
    ses_json_writer_free(w);
    return text;
}

static bool predict(const args *a, const ses_fasttext_model *m, ses_text_reader *r, ses_err *e)
{
    size_t labels = ses_fasttext_n_labels(m), k = (uint64_t)a->k < labels ? (size_t)a->k : labels, n;
    ses_fasttext_line line = { 0 };
    ses_fasttext_guess *guess = ses_alloc_array(k, sizeof *guess, e);
    const char *text;
    size_t len;
    bool ok = guess;
    while (ok && (ok = ses_text_reader_next(r, &text, &len, e)) && text) {
        ok = ses_fasttext_line_of(m, text, len, &line, e) &&
             ses_fasttext_predict(m, &line, k, (float)a->threshold, guess, &n, e);
        if (ok && a->json) ok = print_json(m, guess, n, e);
        for (size_t i = 0; ok && !a->json && i < n; i++) {
            ses_string label = ses_fasttext_label_at(m, (size_t)guess[i].label);
            printf("%s%.*s %.6g", i ? " " : "", (int)label.n, label.p, (double)expf(guess[i].score));
        }
        if (ok && !a->json) putchar('\n');
    }
    ses_fasttext_line_free(&line);
    ses_free(guess);
    return ok;
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_text_reader r = { 0 };
    ses_fasttext_model *m = ses_fasttext_open(c->operands[0], e);
    const char *path = c->n_operands > 1 ? c->operands[1] : "-";
    bool ok = m && ses_text_reader_open(&r, path, SES_MAX_LINE, e) && predict(a, m, &r, e);
    ses_text_reader_free(&r);
    ses_fasttext_free(m);
    return ok;
}

static const ses_usage_example examples[] = {
    { "echo 'the final score' | sesame vectors predict model.bin -k 3", "the three best labels" },
    { 0 },
};

const ses_command ses_command_vectors_predict = {
    .name = "vectors-predict",
    .usage = "MODEL [FILE]",
    .summary = "predict labels with a fastText classifier",
    .description =
        "Prints the best labels of each line of FILE, or of standard input, with their probabilities, as "
        "fastText's predict-prob. MODEL is .bin or .ftz.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 2,
    .is_action = true,
    .run = run,
};
