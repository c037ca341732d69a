/* search: finds the texts of a file that are closest in meaning to a query. */
#include "base/alloc.h"
#include "base/file.h"
#include "cli/pipeline/text_index.h"
#include "cli/standard_output.h"
#include "cli/text_operands.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "kernel/kernel.h"

#include <string.h>

typedef struct args {
    ses_text_index_args index;
    const char *file, *rerank;
    int64_t k, candidates;
} args;

static const ses_opt opt[] = {
    SES_OPT_TEXT(args, file, "file", "FILE", "file of texts to search, instead of the last argument",
                 .letter = 'f'),
    SES_OPT_INT(args, k, "top-k", "5", 1, 100000, "number of results for each query", .letter = 'k',
                .value = "N"),
    SES_OPT_TEXT(args, rerank, "rerank", "DIR", "score the best candidates again with this cross-encoder",
                 .is_model = true),
    SES_OPT_INT(args, candidates, "candidates", "50", 1, 100000,
                "with --rerank: number of texts to score, at least the number of results", .value = "N"),
    SES_OPT_TEXT(args, index.prompt, "prompt", "TEXT",
                 "put TEXT before each query; default: the folder's prompt \"query\", otherwise its default "
                 "prompt"),
    SES_OPT_TEXT(args, index.prompt_name, "prompt-name", "NAME",
                 "put the folder's prompt of this name before each query"),
    SES_OPT_INCLUDE(args, index, ses_text_index_options),
};

typedef struct search_result {
    int64_t number; /* line or row, from 1 */
    double score;
    ses_string text;
} search_result;

typedef struct query_list {
    ses_string *text;
    size_t n;
    ses_buf input; /* texts of standard input */
} query_list;

/* ---- queries ---- */

static bool read_queries(const ses_call *c, query_list *q, ses_err *e)
{
    size_t cap = (size_t)c->n_operands;
    if (!ses_operands_check_stdin(c, e)) return false;
    for (int i = 0; i < c->n_operands; i++)
        if (ses_operand_is_stdin(c->operands[i]) &&
            !ses_read_stdin(&q->input, (ses_text_encoding)((const args *)c->args)->index.encoding, e))
            return false;
    for (size_t i = 0; i < q->input.len; i++) cap += q->input.data[i] == '\n';
    q->text = ses_alloc_array(cap, sizeof *q->text, e);
    for (int i = 0; q->text && i < c->n_operands; i++) {
        if (!ses_operand_is_stdin(c->operands[i])) {
            q->text[q->n++] = ses_str(c->operands[i]);
            continue;
        }
        const char *p = q->input.data, *end = p + q->input.len;
        for (const char *stop; p < end; p = stop + 1) {
            const char *lf = memchr(p, '\n', (size_t)(end - p));
            stop = lf ? lf : end;
            size_t n = (size_t)(stop - p) - (stop > p && stop[-1] == '\r');
            if (n) q->text[q->n++] = (ses_string){ p, n };
        }
    }
    return q->text && (q->n || ses_fail(e, SES_EARG, "standard input has no query"));
}

/* ---- output ---- */

static bool put_json(ses_string query, const search_result *r, int64_t n, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_stringn(w, "query", query.p, query.n);
    ses_json_member_array(w, "results");
    for (int64_t i = 0; i < n; i++) {
        ses_json_begin_object(w);
        ses_json_member_int(w, "index", r[i].number - 1);
        ses_json_member_real(w, "score", r[i].score);
        ses_json_member_stringn(w, "text", r[i].text.p, r[i].text.n);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

/* Copies the start of a text on one line, at most `columns` characters, and escapes control characters. */
static void format_text(char *out, size_t size, ses_string s, size_t columns)
{
    char line[800];
    size_t n = 0;
    for (size_t i = 0, chars = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool starts = (c & 0xC0) != 0x80;
        if (starts && (chars++ == columns || n + 8 > sizeof line)) {
            memcpy(line + n, "...", 3);
            n += 3;
            break;
        }
        if (n + 4 < sizeof line) line[n++] = c == '\n' || c == '\t' || c == '\r' || !c ? ' ' : (char)c;
    }
    line[n] = 0;
    ses_escape_controls(out, size, line);
}

static bool show(const ses_call *c, const args *a, bool several, ses_string query, const search_result *r,
                 int64_t n, ses_err *e)
{
    enum { BAR = 16, OTHER_COLUMNS = 48 };
    char text[3200], bar[SES_BAR_SIZE];
    size_t columns =
        c->out.tty && c->out.width > OTHER_COLUMNS + 20 ? (size_t)c->out.width - OTHER_COLUMNS : 160;
    if (several) {
        format_text(text, sizeof text, query, 160);
        printf("%s%s%s\n", ses_style_on(&c->out, SES_BOLD), text, ses_style_on(&c->out, SES_PLAIN));
    }
    ses_text_table *table = ses_text_table_new(">|>|||", e);
    if (!table) return false;
    for (int64_t i = 0; i < n; i++) {
        double fraction = r[i].score < 0 ? 0 : r[i].score > 1 ? 1 : r[i].score;
        ses_text_table_cell(table, "%lld", (long long)i + 1);
        ses_text_table_cell(table, "%.4f", r[i].score);
        ses_text_table_style(table, SES_BOLD);
        ses_text_table_cell(table, "%s", ses_bar_text(&c->out, bar, fraction, BAR));
        ses_text_table_style(table, SES_GREEN);
        ses_text_table_cell(table, "%s %lld", ses_text_index_unit(&a->index), (long long)r[i].number);
        ses_text_table_style(table, SES_DIM);
        format_text(text, sizeof text, r[i].text, columns);
        ses_text_table_cell(table, "%s", text);
    }
    bool ok = ses_text_table_print(table, stdout, &c->out, 2, e);
    ses_text_table_free(table);
    return ok;
}

/* ---- search ---- */

/* The file to search: --file, or the last of several arguments, which must exist. */
static const char *take_file(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    const char *last = c->operands[c->n_operands - 1];
    if (a->file) {
        ses_hint_file_operand(c, "-f FILE gives the texts to search");
        return a->file;
    }
    if (c->n_operands > 1 && ses_path_exists(last) && !ses_path_is_dir(last)) {
        c->operands[--c->n_operands] = NULL;
        return last;
    }
    ses_fail(e, SES_EUSAGE,
             "no file to search: give it last, as in 'sesame search QUERY FILE', or by -f FILE");
    return NULL;
}

/* Replaces the order and scores of n candidates by the cross-encoder's. */
static bool rerank(ses_pipeline *p, ses_string query, search_result *r, int64_t n, ses_err *e)
{
    ses_string *list = ses_alloc_array((size_t)n, sizeof *list, e);
    search_result *before = list ? ses_alloc_array((size_t)n, sizeof *before, e) : NULL;
    const ses_result *got = NULL;
    if (before) {
        memcpy(before, r, (size_t)n * sizeof *r);
        for (int64_t i = 0; i < n; i++) list[i] = r[i].text;
        got = ses_pipeline_run(p, &(ses_item){ .text = query, .list = list, .n_list = (size_t)n }, e);
    }
    for (size_t i = 0; got && i < got->n; i++) {
        r[i] = before[got->row[i].index];
        r[i].score = got->row[i].score;
    }
    ses_free(list);
    ses_free(before);
    return got != NULL;
}

static bool run_query(const ses_call *c, const ses_text_index *t, ses_pipeline *cross, const query_list *q,
                      size_t i, const ses_index_hit *hits, int64_t n, ses_err *e)
{
    const args *a = c->args;
    search_result *r = ses_alloc_array((size_t)n, sizeof *r, e);
    if (!r) return false;
    for (int64_t h = 0; h < n; h++)
        r[h] = (search_result){ .number = ses_vector_index_line(t->index, hits[h].index),
                                .score = (double)hits[h].score,
                                .text = ses_vector_index_text(t->index, hits[h].index) };
    int64_t k = a->k < n ? a->k : n;
    bool ok = (!cross || !n || rerank(cross, q->text[i], r, n, e)) &&
              (a->index.json ? put_json(q->text[i], r, k, e) : show(c, a, q->n > 1, q->text[i], r, k, e));
    ses_free(r);
    return ok;
}

static bool run_queries(const ses_call *c, ses_text_index *t, ses_pipeline *cross, const query_list *q,
                        ses_err *e)
{
    const args *a = c->args;
    int64_t count = ses_vector_index_info_of(t->index)->count;
    int64_t k = cross && a->candidates > a->k ? a->candidates : a->k;
    if (k > count) k = count;
    float *vector = ses_alloc_array(q->n * (size_t)t->dim, sizeof *vector, e);
    ses_index_hit *hits = vector ? ses_alloc_array(q->n, (size_t)k * sizeof *hits, e) : NULL;
    bool ok = hits != NULL;
    for (size_t i = 0; ok && i < q->n; i++)
        ok = ses_text_index_embed(t, q->text[i], vector + i * (size_t)t->dim, e);
    double start = ses_seconds();
    ok = ok && ses_vector_index_search(t->index, t->pool, ses_isa_best(), vector, (int64_t)q->n, k, hits, e);
    double seconds = ses_seconds() - start;
    for (size_t i = 0; ok && i < q->n; i++) ok = run_query(c, t, cross, q, i, hits + i * (size_t)k, k, e);
    char b[SES_NUMBER_TEXT], s[SES_NUMBER_TEXT];
    ok = ok && ses_stdout_flush(e); /* the results first, if both go to one file */
    if (ok && !c->quiet)
        fprintf(stderr, "%s text%s searched in %s\n", ses_grouped_text(b, count), count == 1 ? "" : "s",
                ses_elapsed_text(s, seconds));
    ses_free(vector);
    ses_free(hits);
    return ok;
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    query_list q = { 0 };
    ses_text_index t = { 0 };
    ses_pipeline *cross = NULL;
    if (a->index.prompt && a->index.prompt_name)
        return ses_fail(e, SES_EUSAGE, "--prompt and --prompt-name exclude each other");
    const char *file = take_file(c, e);
    bool ok = file && read_queries(c, &q, e) && ses_text_index_open(&t, c, &a->index, file, e);
    if (ok && a->rerank) {
        cross = ses_pipeline_open("rerank", a->rerank, t.dev, NULL, e);
        ok = cross != NULL;
    }
    ok = ok && run_queries(c, &t, cross, &q, e);
    ses_pipeline_free(cross);
    ses_text_index_close(&t);
    ses_free(q.text);
    ses_buf_free(&q.input);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame search \"how to cook rice\" notes.txt", "the five closest lines" },
    { "sesame search -k 3 --json --column abstract -f papers.csv \"masked language models\" \"tokenizers\"",
      "two queries in a column, as JSON" },
    { "sesame search \"opening hours\" -f faq.jsonl --jsonl question --rerank DIR",
      "candidates ranked by a cross-encoder" },
    { 0 },
};

const ses_command ses_command_search = {
    .name = "search",
    .usage = "QUERY... [FILE]",
    .summary = "search texts by meaning",
    .description =
        "Finds the texts of a file that are closest in meaning to each query: exact search by the dot "
        "product of "
        "normalized embeddings. Arguments are queries and, without -f, last the file; '-' reads one query "
        "per line from standard input. The "
        "texts are the lines of the file, a column, or a key of JSON lines.\n\n"
        "The embeddings are kept in an index file, FILE.sesame-index or -o INDEX. It is built if it is "
        "missing "
        "and updated if the file has changed; see 'sesame index'.\n\n"
        "A JSON line is {\"query\", \"results\": [{\"index\", \"score\", \"text\"}, ...]}; index is the "
        "number of "
        "the line or row, from 0.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = -1,
    .default_model_of = "embed",
    .run = run,
};
