/* vectors test: scores a fastText classifier on texts with labels. */
#include "cli/command.h"
#include "cli/compute_args.h"
#include "fasttext_texts.h"
#include "vector_options.h"

#include "io/text_decoder.h"
#include "vectors/fasttext/fasttext_meter.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct args {
    const char *label;
    ses_label_columns columns;
    int64_t k;
    double threshold;
    bool per_label, json;
} args;

static const ses_opt opt[] = {
    SES_OPT_LABEL_COUNT(args, k),
    SES_OPT_LEAST_PROBABILITY(args, threshold),
    SES_OPT_FLAG(args, per_label, "per-label", "also print F1, precision and recall of each label"),
    SES_OPT_TEXT(args, columns.text, "text-column", "NAME", "tables: column of the texts", .def = "text"),
    SES_OPT_TEXT(args, columns.label, "label-column", "NAME", "tables: column of the labels", .def = "label"),
    SES_OPT_ENCODING(args, columns.encoding),
    SES_OPT_TEXT(args, label, "label", "PREFIX", "prefix of labels", .def = "__label__"),
    SES_OPT_JSON(args, json),
};

static void put_counts(ses_json_writer *w, const ses_fasttext_counts *c)
{
    ses_json_member_real(w, "precision", ses_fasttext_precision(c));
    ses_json_member_real(w, "recall", ses_fasttext_recall(c));
    ses_json_member_real(w, "f1", ses_fasttext_f1(c));
}

static bool print_json(const args *a, const ses_fasttext_model *m, const ses_fasttext_meter *meter,
                       ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_int(w, "n", meter->examples);
    ses_json_member_int(w, "k", a->k);
    put_counts(w, &meter->all);
    if (a->per_label) ses_json_member_object(w, "labels");
    for (size_t i = 0; a->per_label && i < ses_fasttext_n_labels(m); i++) {
        ses_string label = ses_fasttext_label_at(m, i);
        ses_json_put_keyn(w, label.p, label.n);
        ses_json_begin_object(w);
        put_counts(w, &meter->label[i]);
        ses_json_end_object(w);
    }
    if (a->per_label) ses_json_end_object(w);
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, NULL, e);
    if (text) printf("%s\n", text);
    ses_json_writer_free(w);
    return text;
}

static void print(const args *a, const ses_fasttext_model *m, const ses_fasttext_meter *meter)
{
    for (size_t i = 0; a->per_label && i < ses_fasttext_n_labels(m); i++) {
        ses_string label = ses_fasttext_label_at(m, i);
        const ses_fasttext_counts *c = &meter->label[i];
        printf("F1-Score : %8.6f  Precision : %8.6f  Recall : %8.6f   %.*s\n", ses_fasttext_f1(c),
               ses_fasttext_precision(c), ses_fasttext_recall(c), (int)label.n, label.p);
    }
    printf("N\t%" PRId64 "\nP@%" PRId64 "\t%.3g\nR@%" PRId64 "\t%.3g\n", meter->examples, a->k,
           ses_fasttext_precision(&meter->all), a->k, ses_fasttext_recall(&meter->all));
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_label_lines texts = { 0 };
    ses_fasttext_meter meter = { 0 };
    ses_fasttext_model *m = ses_fasttext_open(c->operands[0], e);
    if (m) m->d.label = a->label;
    bool ok = m && ses_label_lines_open(&texts, c->operands[1], &a->columns, e) &&
              ses_fasttext_measure(m, &texts.texts, (size_t)a->k, (float)a->threshold, &meter, e);
    if (ok && !meter.examples)
        ok = ses_fail(e, SES_EARG, "%s: no text has a label of the model", c->operands[1]);
    if (ok && a->json)
        ok = print_json(a, m, &meter, e);
    else if (ok)
        print(a, m, &meter);
    ses_fasttext_meter_free(&meter);
    ses_label_lines_free(&texts);
    ses_fasttext_free(m);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame vectors test model.bin test.txt", "precision and recall of the best label" },
    { 0 },
};

const ses_command ses_command_vectors_test = {
    .name = "vectors-test",
    .usage = "MODEL FILE",
    .summary = "score a fastText classifier",
    .description =
        "Predicts the labels of texts with a fastText model, .bin or .ftz, and prints the number of texts, "
        "precision and recall, as fastText's test.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 2,
    .max_operands = 2,
    .is_action = true,
    .run = run,
};
