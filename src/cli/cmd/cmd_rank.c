/* rank: orders texts by the uncertainty of a model, to choose the ones to label. */
#include "base/alloc.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/pipeline/line_reader.h"
#include "cli/standard_output.h"
#include "cli/text_operands.h"
#include "cli/ui/show_values.h"
#include "io/table_text.h"
#include "io/text_decoder.h"
#include "metric/uncertainty.h"
#include "model/model_desc.h"
#include "sesame/pipeline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct args {
    ses_compute_args compute;
    const char *model;
    int by; /* a ses_uncertainty */
    int64_t top, max_length;
    int encoding;
} args;

static const ses_opt opt[] = {
    SES_OPT_TEXT(args, model, "model", "DIR",
                 "classifier or tagger: folder or name; default: the bundled sentiment model", .letter = 'm',
                 .is_model = true),
    SES_OPT_CHOICE(
        args, by, "by", "entropy", SES_UNCERTAINTY_CHOICES,
        "entropy of the labels in nats; margin: best probability minus the second; least-confidence: 1 "
        "minus "
        "the best probability"),
    SES_OPT_INT(args, top, "top", "all", 1, 1e9, "the N most uncertain texts; memory then depends on N alone",
                .letter = 'n', .value = "N|all", .zero_word = "all"),
    SES_OPT_INT(args, max_length, "max-length", "0", 0, 1 << 20,
                "maximum number of tokens of a text; 0: the model's"),
    SES_OPT_ENCODING(args, encoding),
    SES_OPT_INCLUDE(args, compute, ses_compute_options),
};

/* ---- the most uncertain texts ---- */

typedef struct entry {
    double score;
    int64_t number; /* number of the line in all files, from 1: the order of equal scores */
    int64_t line;   /* in its file */
    const char *file;
    char *text, *label; /* one allocation; label NULL: tags */
    size_t text_len;
} entry;

typedef struct ranking {
    ses_uncertainty by;
    entry *item; /* with a limit: a heap, the least uncertain one first */
    size_t n, cap, limit;
} ranking;

/* Whether a comes before b in the output. */
static bool is_before(const ranking *r, const entry *a, const entry *b)
{
    if (a->score != b->score) return ses_uncertainty_is_above(r->by, a->score, b->score);
    return a->number < b->number;
}

static void sift_down(const ranking *r, size_t i, size_t n)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && is_before(r, &r->item[child], &r->item[child + 1])) child++;
        if (!is_before(r, &r->item[i], &r->item[child])) return;
        entry x = r->item[i];
        r->item[i] = r->item[child];
        r->item[child] = x;
    }
}

/* Adds an entry; x->text becomes the ranking's, or is freed. */
static bool add(ranking *r, const entry *x, ses_err *e)
{
    if (r->limit && r->n == r->limit) {
        if (!is_before(r, x, &r->item[0])) return ses_free(x->text), true;
        ses_free(r->item[0].text);
        r->item[0] = *x;
        sift_down(r, 0, r->n);
        return true;
    }
    if (!ses_array_reserve(&r->item, &r->cap, r->n + 1, sizeof *r->item, e)) return ses_free(x->text), false;
    r->item[r->n++] = *x;
    if (r->n == r->limit)
        for (size_t i = r->n / 2; i-- > 0;) sift_down(r, i, r->n);
    return true;
}

/* Heap sort: in place, in the order of the output. */
static void sort(const ranking *r)
{
    for (size_t i = r->n / 2; i-- > 0;) sift_down(r, i, r->n);
    for (size_t n = r->n; n > 1; n--) {
        entry x = r->item[0];
        r->item[0] = r->item[n - 1];
        r->item[n - 1] = x;
        sift_down(r, 0, n - 1);
    }
}

static void ranking_free(ranking *r)
{
    for (size_t i = 0; i < r->n; i++) ses_free(r->item[i].text);
    ses_free(r->item);
}

/* ---- scores ---- */

typedef struct job {
    const args *a;
    ses_pipeline *pipeline;
    bool tags, independent; /* token labels; labels that do not exclude each other */
    ranking ranking;
    float *p; /* [cap] probabilities of a text */
    size_t cap;
    const char **file; /* files by the number of their first line */
    int64_t *first;
    size_t n_files;
    int64_t lines, empty;
} job;

/* Mean over the tokens; a text without tokens is certain. */
static double score_tags(const job *j, const ses_result *r)
{
    double sum = 0;
    for (int64_t i = 0; i < r->n_vectors; i++)
        sum += ses_uncertainty_of(j->ranking.by, r->vectors + i * r->vector_size, (size_t)r->vector_size);
    if (r->n_vectors) return sum / (double)r->n_vectors;
    return j->ranking.by == SES_BY_MARGIN ? 1 : 0;
}

static bool score_labels(job *j, const ses_result *r, double *score, ses_err *e)
{
    if (!ses_array_reserve(&j->p, &j->cap, r->n + 1, sizeof *j->p, e)) return false;
    for (size_t i = 0; i < r->n; i++) j->p[i] = (float)r->row[i].score;
    *score = (j->independent ? ses_uncertainty_of_labels : ses_uncertainty_of)(j->ranking.by, j->p, r->n);
    return true;
}

static bool take(void *ctx, const ses_result *r, ses_err *e)
{
    job *j = ctx;
    size_t n = r->item->text.n, file = j->n_files;
    const char *label = j->tags || !r->n ? NULL : r->row[0].label.p;
    entry x = { .number = r->item->number, .text_len = n };
    if (j->tags)
        x.score = score_tags(j, r);
    else if (!score_labels(j, r, &x.score, e))
        return false;
    while (file > 1 && j->first[file - 1] > x.number) file--;
    x.file = j->file[file - 1];
    x.line = x.number - j->first[file - 1] + 1;
    x.text = ses_alloc_array(n + 2 + (label ? strlen(label) : 0), 1, e);
    if (!x.text) return false;
    memcpy(x.text, r->item->text.p, n);
    if (label) {
        x.label = x.text + n + 1;
        memcpy(x.label, label, strlen(label)); /* the memory is zeroed */
    }
    return add(&j->ranking, &x, e);
}

/* ---- input ---- */

static bool feed_file(job *j, const char *name, ses_err *e)
{
    ses_span span = ses_line_whole_file(name);
    ses_line_reader in = { .span = &span, .n_spans = 1, .encoding = (ses_text_encoding)j->a->encoding };
    const char *line;
    size_t n;
    ses_line_status status;
    if (!ses_refuse_table(name, SES_TEXTS_ALONE, e)) return ses_wrap(e, "%s", name);
    j->file[j->n_files] = name;
    j->first[j->n_files++] = j->lines + 1;
    bool ok = true;
    while (ok && (status = ses_line_next(&in, &line, &n, e)) == SES_LINE_OK) {
        j->lines++;
        if (!n) {
            j->empty++;
            continue;
        }
        ses_item item = { .text = { line, n }, .number = j->lines };
        ok = (ses_text_check(line, n, e) && ses_pipeline_feed(j->pipeline, &item, e)) ||
             ses_wrap(e, "%s: line %" PRId64, name, in.line);
    }
    ok = ok && status == SES_LINE_END;
    ses_line_reader_close(&in);
    return ok;
}

static bool feed_all(job *j, const ses_call *c, ses_err *e)
{
    size_t n = c->n_operands ? (size_t)c->n_operands : 1;
    j->file = ses_alloc_array(n, sizeof *j->file, e);
    j->first = j->file ? ses_alloc_array(n, sizeof *j->first, e) : NULL;
    bool ok = j->first != NULL;
    for (size_t i = 0; ok && i < n; i++) ok = feed_file(j, c->n_operands ? c->operands[i] : "-", e);
    return ok && ses_pipeline_flush(j->pipeline, e);
}

/* ---- output ---- */

static void put_json(const entry *x, size_t rank, bool files, ses_json_writer *w)
{
    ses_json_begin_object(w);
    ses_json_member_int(w, "rank", (int64_t)rank);
    ses_json_member_real(w, "score", x->score);
    if (files) ses_json_member_string(w, "file", x->file);
    ses_json_member_int(w, "line", x->line);
    if (x->label) ses_json_member_string(w, "label", x->label);
    ses_json_member_stringn(w, "text", x->text, x->text_len);
    ses_json_end_object(w);
}

static bool put(const job *j, size_t i, ses_buf *out, ses_err *e)
{
    const entry *x = &j->ranking.item[i];
    out->len = 0;
    if (j->a->compute.json) {
        ses_json_writer *w = ses_json_writer_new(0, e);
        if (!w) return false;
        put_json(x, i + 1, j->n_files > 1, w);
        return ses_json_writer_print(w, e);
    }
    ses_buf_appendf(out, "%.6f\t", x->score);
    if (j->n_files > 1) ses_buf_appendf(out, "%s:", x->file);
    ses_buf_appendf(out, "%" PRId64 "\t", x->line);
    if (x->label) ses_buf_appendf(out, "%s\t", x->label);
    ses_buf_append(out, x->text, x->text_len);
    ses_buf_append(out, "\n", 1);
    return ses_buf_ok(out, e) && ses_stdout_write(out->data, out->len, e);
}

static bool put_all(job *j, ses_err *e)
{
    ses_buf out = { 0 };
    bool ok = true;
    sort(&j->ranking);
    for (size_t i = 0; ok && i < j->ranking.n; i++) ok = put(j, i, &out, e);
    ses_buf_free(&out);
    return ok;
}

/* ---- the command ---- */

/* Opens the model for texts, else for tokens; the first error counts if both fail. */
static bool open_model(job *j, ses_device *dev, ses_err *e)
{
    static const ses_setting all[] = { { "top_k", "all" }, { 0 } };
    static const ses_setting each[] = { { "aggregation_strategy", "none" }, { 0 } };
    ses_err other = { 0 };
    j->pipeline = ses_pipeline_open("text-classification", j->a->model, dev, all, e);
    if (!j->pipeline) j->pipeline = ses_pipeline_open("token-classification", j->a->model, dev, each, &other);
    if (!j->pipeline) return false;
    j->tags = e->code != 0;
    *e = (ses_err){ 0 };
    const ses_model *m = ses_pipeline_model(j->pipeline);
    if (!j->tags && m && m->c.head.problem == SES_PROBLEM_REGRESSION)
        return ses_fail(e, SES_EARG, "%s predicts a number: it has no probabilities of labels", j->a->model);
    j->independent = !j->tags && m && (m->c.head.problem == SES_PROBLEM_MULTI || m->c.labels == 1);
    if (j->a->max_length) ses_pipeline_set_max_seq_len(j->pipeline, j->a->max_length);
    ses_pipeline_set_callback(j->pipeline, take, j);
    return true;
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    job j = { .a = a, .ranking = { .by = (ses_uncertainty)a->by, .limit = (size_t)a->top } };
    ses_device_options d = ses_compute_device_options(&a->compute);
    if (!ses_operands_require_files(c, 0, "rank reads texts from files or standard input", e) ||
        !ses_operands_check_stdin(c, e))
        return false;
    ses_device *dev = ses_device_open(a->compute.device, &d, e);
    bool ok = dev && open_model(&j, dev, e) && feed_all(&j, c, e);
    if (ok && !j.ranking.n) ok = ses_fail(e, SES_EFORMAT, "%s: no text", j.file[0]);
    if (ok && j.empty && !c->quiet) fprintf(stderr, "%" PRId64 " empty lines were left out\n", j.empty);
    ok = ok && put_all(&j, e);
    ranking_free(&j.ranking);
    ses_pipeline_free(j.pipeline);
    ses_device_free(dev);
    ses_free(j.p);
    ses_free(j.file);
    ses_free(j.first);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame rank -m sst2 reviews.txt --top 100", "the 100 reviews to label next" },
    { "sesame rank -m sst2 reviews.txt --by margin --top 100 | cut -f 4- >to-label.txt",
      "their texts alone" },
    { "zcat news.gz | sesame rank -m ner --json --top 50", "sentences for a tagger" },
    { 0 },
};

const ses_command ses_command_rank = {
    .name = "rank",
    .usage = "[FILE...]",
    .summary = "order texts by uncertainty, to label the first ones",
    .description =
        "Scores each line of the files, or of standard input, by the uncertainty of a classifier or tagger "
        "and "
        "prints the most uncertain texts first: score, line, predicted label and text, with tabs between; "
        "equal "
        "scores in the order of the input. To label the first ones and train again is active learning by "
        "uncertainty sampling.\n\n"
        "Taggers: the mean over the tokens; no label is printed. Models with several labels for a text: the "
        "mean over "
        "the labels, each a decision between two. Empty lines are left out.\n\n"
        "With --top N the command keeps N texts in memory, whatever the length of the input.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .max_operands = -1,
    .default_model_of = "text-classification",
    .run = run,
};
