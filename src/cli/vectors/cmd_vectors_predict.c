/* vectors predict: predicts labels of texts with a fastText classifier. */
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/line_limit.h"
#include "fasttext_texts.h"
#include "vector_options.h"

#include "base/alloc.h"
#include "io/table_text.h"
#include "io/text_reader.h"
#include "sesame/unstable/table.h"
#include "vectors/fasttext/fasttext_model.h"

#include <math.h>
#include <stdio.h>

typedef struct args {
    const char *text_column;
    int64_t k;
    double threshold;
    bool json;
} args;

static const ses_opt opt[] = {
    SES_OPT_TEXT(args, text_column, "text-column", "NAME", "tables: column of the texts", .def = "text"),
    SES_OPT_LABEL_COUNT(args, k),
    SES_OPT_LEAST_PROBABILITY(args, threshold),
    SES_OPT_JSON(args, json),
};

static bool print_json(const ses_fasttext_model *m, const ses_fasttext_guess *guess, size_t n, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
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

/* Texts: rows of a table, or lines. */
typedef struct source {
    ses_records *table;
    ses_text_reader lines;
} source;

static bool open_source(source *s, const char *path, const char *column, ses_err *e)
{
    if (!ses_is_table_name(path))
        return ses_text_reader_open(&s->lines, path, SES_MAX_LINE, e) || ses_wrap(e, "%s", path);
    s->table = ses_records_open(path, &(ses_records_options){ .columns = &column, .n_columns = 1 }, e);
    return s->table != NULL;
}

static bool next_text(source *s, const char **text, size_t *n, ses_err *e)
{
    const ses_string *row;
    if (!s->table) return ses_text_reader_next(&s->lines, text, n, e);
    if (!ses_records_next(s->table, &row, e)) return false;
    *text = row ? row->p : NULL;
    *n = row ? row->n : 0;
    return true;
}

static bool predict(const args *a, const ses_fasttext_model *m, source *s, ses_err *e)
{
    size_t labels = ses_fasttext_n_labels(m), k = (uint64_t)a->k < labels ? (size_t)a->k : labels, n;
    ses_fasttext_line line = { 0 };
    ses_fasttext_guess *guess = ses_alloc_array(k, sizeof *guess, e);
    const char *text;
    size_t len;
    bool ok = guess;
    while (ok && (ok = next_text(s, &text, &len, e)) && text) {
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
    source s = { 0 };
    ses_fasttext_model *m = ses_fasttext_open(c->operands[0], e);
    const char *path = c->n_operands > 1 ? c->operands[1] : "-";
    bool ok =
        m && open_source(&s, path, a->text_column, e) && (predict(a, m, &s, e) || ses_wrap(e, "%s", path));
    ses_records_free(s.table);
    ses_text_reader_free(&s.lines);
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
    .description = "Prints the best labels of each line of FILE, of each row if it is a table (.tsv, .csv, "
                   ".jsonl), or of "
                   "standard input, with their probabilities, as "
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
