/* Input of pipeline commands: arguments, options, lines and columns of files, or a shard of them. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "cli/input_size.h"
#include "cli/standard_output.h"
#include "cli/text_operands.h"
#include "io/records_range.h"
#include "io/text_decoder.h"
#include "pipeline_job.h"
#include "task/task.h"

#include <string.h>
#include <unistd.h>

/* ---- numbers ---- */

static const char standard_name[] = "-";

/* The lines before the first one read of the current file. A table counts the lines that it skips. */
static int64_t count_lines_before(ses_pipeline_job *j)
{
    uint64_t lines = 0;
    if (j->table) {
        uint64_t read = ses_records_line_read(j->table);
        return (int64_t)(ses_records_line(j->table) - read);
    }
    return j->first && ses_input_count_lines(j->name, j->first, &lines, NULL) ? (int64_t)lines : 0;
}

static void ensure_counted(ses_pipeline_job *j)
{
    if (!j->is_counted && j->lines) j->lines_before = count_lines_before(j);
    j->is_counted = true;
}

int64_t ses_pipeline_job_number(ses_pipeline_job *j, int64_t number)
{
    if (j->counts_first || !j->lines) return number;
    ensure_counted(j);
    return number + j->lines_before;
}

/* The number of the row read last, as items have it. */
static int64_t row_number(ses_pipeline_job *j)
{
    if (j->counts_first) ensure_counted(j);
    int64_t read = (int64_t)ses_records_line_read(j->table);
    return j->is_counted && !j->counts_first ? read - j->lines_before : read;
}

static int64_t line_number(ses_pipeline_job *j)
{
    if (!j->counts_first) return j->in.line;
    ensure_counted(j);
    return j->in.line + j->lines_before;
}

/* The next file or part of a file. */
static void begin_part(ses_pipeline_job *j, const char *name, uint64_t first)
{
    j->name = name;
    j->first = first;
    j->lines_before = 0;
    j->is_counted = false;
}

/* ---- feeding ---- */

static bool feed(ses_pipeline_job *j, ses_item *item, int64_t number, ses_err *e)
{
    item->number = number;
    return ses_pipeline_feed(j->p, item, e);
}

/* Notes the block of a record, and shows the progress: in blocks of a shard, else in bytes or items. */
static bool begin_record(ses_pipeline_job *j, const ses_span *part, uint64_t offset, int64_t bytes,
                         ses_err *e)
{
    bool shard = ses_shard_job_given(&j->shard);
    uint64_t block = shard ? ses_span_block(part, offset) : 0;
    ses_progress_show(&j->progress, shard               ? (int64_t)(block - j->shard.plan.first)
                                    : j->progress.total ? bytes
                                                        : ses_pipeline_get_stats(j->p).items);
    return ses_shard_output_fed(&j->shard.out, block, e);
}

/* Reports an item that is not fed, after the results of the items before it. kept: its row is kept. */
static bool fail_item(ses_pipeline_job *j, int64_t number, bool kept, const ses_err *why, ses_err *e)
{
    ses_err first = { 0 };
    if (!ses_pipeline_flush(j->p, e)) return false;
    if (kept || !j->a->keep_going || ses_rows_keep_none(&j->rows, &first))
        return ses_pipeline_job_item_error(j, &(ses_item){ .number = number }, why, e);
    char at[300];
    ses_pipeline_job_locate(at, sizeof at, j, number);
    return ses_fail(e, why->code, "%s: %s (%s)", at, why->msg, first.msg);
}

/* ---- items ---- */

static bool has_pair_option(const ses_pipeline_job *j)
{
    return ses_task_count_pair_options(j->call->command->task, j->call->task_args) > 0;
}

/* Fills the next item (text, pair, list) from n words; returns the number of words used. */
static size_t build_item(const ses_pipeline_job *j, ses_string *word, size_t n, ses_item *item)
{
    const ses_item_schema *parts = &j->call->command->task->item_schema;
    *item = (ses_item){ .text = word[0] };
    size_t used = 1;
    if (used < n && parts->requires_pair && !has_pair_option(j)) item->pair = word[used++];
    if (!parts->requires_list || parts->list_replaces_text) return used;
    item->list = word + used;
    item->n_list = n - used;
    return n;
}

/* Whether "-" as argument `at` means the lines of standard input. Otherwise all of it is one text, such as
 * the context of a question. */
static bool takes_lines(const ses_pipeline_job *j, size_t at)
{
    const ses_item_schema *parts = &j->call->command->task->item_schema;
    bool pair = parts->requires_pair && !has_pair_option(j);
    bool list = parts->requires_list && !parts->list_replaces_text;
    return list ? at > pair : !pair;
}

/* Appends the lines of the text, or the text without the line ends at its end. */
static size_t split_input(ses_string *word, ses_buf *text, bool lines)
{
    size_t n = 0;
    const char *p = text->data, *end = p + text->len;
    while (!lines && end > p && (end[-1] == '\n' || end[-1] == '\r')) end--;
    if (!lines) return word[0] = (ses_string){ p, (size_t)(end - p) }, 1;
    while (p < end) {
        const char *lf = memchr(p, '\n', (size_t)(end - p)), *stop = lf ? lf : end;
        word[n++] = (ses_string){ p, (size_t)(stop - p) - (lf && stop > p && stop[-1] == '\r') };
        p = stop + 1;
    }
    return n;
}

static ses_text_encoding encoding_of(const ses_pipeline_job *j) { return (ses_text_encoding)j->a->encoding; }

/* The texts of all arguments; *input holds the texts of standard input. */
static ses_string *argument_texts(const ses_pipeline_job *j, ses_buf *input, size_t *n, ses_err *e)
{
    const ses_call *c = j->call;
    size_t operands = (size_t)c->n_operands, cap = operands;
    for (size_t i = 0; i < operands; i++)
        if (ses_operand_is_stdin(c->operands[i]) && !ses_read_stdin(input, encoding_of(j), e)) return NULL;
    for (size_t i = 0; i < input->len; i++) cap += input->data[i] == '\n';
    ses_string *word = ses_alloc_array(cap, sizeof *word, e);
    *n = 0;
    for (size_t i = 0; word && i < operands; i++)
        if (ses_operand_is_stdin(c->operands[i]))
            *n += split_input(word + *n, input, takes_lines(j, i));
        else
            word[(*n)++] = ses_str(c->operands[i]);
    return word;
}

static bool run_arguments(ses_pipeline_job *j, ses_err *e)
{
    size_t n;
    ses_buf input = { 0 };
    ses_string *word = argument_texts(j, &input, &n, e);
    bool ok = word != NULL;
    int64_t number = 0;
    for (size_t i = 0; ok && i < n; i++)
        ok = ses_text_check_argument(word[i].p, word[i].n, e) ||
             ses_wrap(e, "%s", ses_quoted_of(word[i].p, word[i].n).s);
    for (size_t at = 0; ok && at < n;) {
        ses_item item;
        at += build_item(j, word + at, n - at, &item);
        j->several |= at < n;
        ok = (!ses_rows_active(&j->rows) || ses_rows_keep_text(&j->rows, item.text, e)) &&
             feed(j, &item, ++number, e);
    }
    ok = ok && ses_pipeline_flush(j->p, e);
    ses_free(word);
    ses_buf_free(&input);
    return ok;
}

/* Runs the item whose texts are all given by options: --question and --context. */
static bool run_options(ses_pipeline_job *j, ses_err *e)
{
    return feed(j, &(ses_item){ 0 }, 1, e) && ses_pipeline_flush(j->p, e);
}

static bool feed_json(ses_pipeline_job *j, const char *line, size_t n, ses_err *e)
{
    ses_err why = { 0 };
    ses_item item = { 0 };
    ses_string *list = NULL;
    int64_t number = line_number(j);
    ses_json_doc *doc = ses_json_parse_line(line, n, &why);
    const ses_json *v = ses_json_root(doc);
    bool kept =
        !ses_rows_active(&j->rows) || (doc && ses_rows_keep_json(&j->rows, (ses_string){ line, n }, v, &why));
    bool ok = doc && kept && ses_pipeline_item_from_json(j->p, v, &item, &list, &why);
    ok = ok ? feed(j, &item, number, e) : fail_item(j, number, kept, &why, e);
    ses_free(list);
    ses_json_free(doc);
    return ok;
}

/* Whether a line has several texts, separated by tabs. */
static bool splits_lines(const ses_pipeline_job *j)
{
    const ses_item_schema *parts = &j->call->command->task->item_schema;
    return (parts->requires_pair && !has_pair_option(j)) ||
           (parts->requires_list && !parts->list_replaces_text);
}

/* Feeds a line of text. */
static bool feed_line(ses_pipeline_job *j, const char *line, size_t n, ses_err *e)
{
    bool several = splits_lines(j);
    size_t words = 1;
    ses_string text = { line, n };
    for (size_t i = 0; several && i < n; i++) words += line[i] == '\t';
    ses_string *word = ses_alloc_array(words, sizeof *word, e);
    if (!word) return false;
    for (size_t i = 0; i < words; i++) {
        const char *tab = i + 1 < words ? memchr(line, '\t', n) : NULL;
        size_t len = tab ? (size_t)(tab - line) : n;
        word[i] = (ses_string){ line, len };
        if (tab) line += len + 1, n -= len + 1;
    }
    ses_item item;
    ses_err why = { 0 };
    int64_t number = line_number(j);
    build_item(j, word, words, &item);
    bool kept = ses_text_check(text.p, text.n, &why) &&
                (!ses_rows_active(&j->rows) || ses_rows_keep_text(&j->rows, text, &why));
    bool ok = kept ? feed(j, &item, number, e) : fail_item(j, number, !ses_rows_active(&j->rows), &why, e);
    ses_free(word);
    return ok;
}

/* ---- the files ---- */

static bool run_lines(ses_pipeline_job *j, ses_err *e)
{
    const char *line;
    size_t n;
    ses_line_status got;
    while ((got = ses_line_next(&j->in, &line, &n, e)) == SES_LINE_OK) {
        if (j->in.line == 1) { /* next file: results of the last one come first, under its name */
            if (!ses_pipeline_flush(j->p, e)) return false;
            begin_part(j, j->in.name, j->in.first);
        }
        if (!begin_record(j, &j->in.open, j->in.start, ses_line_progress(&j->in), e)) return false;
        if (!(j->a->jsonl ? feed_json(j, line, n, e) : feed_line(j, line, n, e))) return false;
        if (!ses_line_ready(&j->in) && (!ses_pipeline_flush(j->p, e) || !ses_stdout_flush(e))) return false;
    }
    if (got == SES_LINE_ERROR) { /* write the results of the items before it */
        ses_err ignored = { 0 };
        ses_pipeline_flush(j->p, &ignored);
        return false;
    }
    return ses_pipeline_flush(j->p, e);
}

/* Feeds the rows of a table. A row that cannot be read ends the run, after the results of the rows before. */
static bool feed_rows(ses_pipeline_job *j, const ses_span *part, ses_err *e)
{
    const ses_string *row;
    ses_records *r = j->table;
    ses_err broken = { 0 };
    while (ses_records_next(r, &row, &broken) && row) {
        ses_err why = { 0 };
        ses_item item = { .text = { row[0].p, row[0].n } };
        int64_t number = row_number(j), bytes = j->in.bytes + (int64_t)ses_records_consumed(r);
        if (!begin_record(j, part, ses_records_offset(r), bytes, e)) return false;
        bool kept = !ses_rows_active(&j->rows) || ses_rows_keep_record(&j->rows, r, &why);
        if (!(kept ? feed(j, &item, number, e) : fail_item(j, number, false, &why, e))) return false;
    }
    j->in.bytes += (int64_t)ses_records_consumed(r);
    if (!ses_pipeline_flush(j->p, e)) return false;
    return !broken.code || ses_fail(e, broken.code, "%s", broken.msg) || ses_wrap(e, "%s", j->name);
}

/* Opens the part of a table. */
static bool open_table(ses_pipeline_job *j, const ses_span *part, ses_err *e)
{
    ses_records_options o = {
        .columns = &j->a->column, .n_columns = 1, .no_header = j->a->no_header, .encoding = encoding_of(j)
    };
    begin_part(j, part->file, 0);
    j->table = ses_records_open(part->file, &o, e);
    return j->table && (!ses_shard_job_given(&j->shard) ||
                        ses_records_set_range(j->table, part->file, part->begin, part->end, e) ||
                        ses_wrap(e, "%s", part->file));
}

static void close_table(ses_pipeline_job *j)
{
    ses_records_free(j->table);
    j->table = NULL;
}

/* Reads the texts from a column of each file. */
static bool run_column(ses_pipeline_job *j, const ses_span *part, size_t n, ses_err *e)
{
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        ok = open_table(j, &part[i], e) && feed_rows(j, &part[i], e);
        close_table(j);
    }
    return ok;
}

/* ---- earlier parts ---- */

/* Keeps the first line or row of some parts; *found: there is one. */
static bool keep_first(ses_pipeline_job *j, const ses_span *part, size_t n, bool *found, ses_err *e)
{
    const char *line;
    const ses_string *row = NULL;
    size_t len;
    bool ok = true;
    for (size_t i = 0; j->a->column && ok && !*found && i < n; i++) {
        ok = open_table(j, &part[i], e) &&
             (ses_records_next(j->table, &row, e) || ses_wrap(e, "%s", part[i].file));
        *found = ok && row;
        if (*found) ok = ses_rows_keep_record(&j->rows, j->table, e) || ses_wrap(e, "%s", part[i].file);
        close_table(j);
    }
    if (j->a->column) return ok;
    ses_line_reader in = { .span = part, .n_spans = n, .encoding = encoding_of(j) };
    ses_line_status got = ses_line_next(&in, &line, &len, e);
    *found = got == SES_LINE_OK;
    ses_json_doc *doc = *found && j->a->jsonl ? ses_json_parse_line(line, len, e) : NULL;
    if (*found && j->a->jsonl)
        ok = doc && ses_rows_keep_json(&j->rows, (ses_string){ line, len }, ses_json_root(doc), e);
    else if (*found)
        ok = ses_rows_keep_text(&j->rows, (ses_string){ line, len }, e);
    if (!ok) ses_wrap(e, "%s: line 1", in.name);
    ses_json_free(doc);
    ses_line_reader_close(&in);
    return ok && got != SES_LINE_ERROR;
}

/* The first row of the whole input gives the columns of --keep, and comes after their header. */
static bool continue_rows(ses_pipeline_job *j, ses_err *e)
{
    size_t n;
    bool found = false;
    uint64_t from = ses_shard_job_block(&j->shard);
    if (!ses_rows_active(&j->rows) || !ses_shard_job_given(&j->shard) || !from) return true;
    ses_span *part = ses_shard_plan_spans(&j->shard.plan, 0, from, &n, e);
    off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
    bool ok = part && keep_first(j, part, n, &found, e);
    if (at >= 0) lseek(STDIN_FILENO, at, SEEK_SET); /* if it is one of the files, it is read again */
    if (found) ses_rows_continue(&j->rows);
    ses_free(part);
    return ok;
}

/* ---- all items ---- */

bool ses_pipeline_item_is_text(const ses_call *c)
{
    const ses_item_schema *parts = &c->command->task->item_schema;
    bool pair = parts->requires_pair && !ses_task_count_pair_options(c->command->task, c->task_args);
    return !pair && (!parts->requires_list || parts->list_replaces_text);
}

bool ses_pipeline_has_both_texts(const ses_call *c)
{
    return ses_task_count_pair_options(c->command->task, c->task_args) == 2;
}

const char *const *ses_pipeline_job_files(const ses_call *c, const ses_pipeline_args *a, size_t *n)
{
    static const char *const standard[] = { standard_name };
    bool texts = c->n_operands && !a->jsonl && !a->column; /* else the arguments are files */
    bool only_stdin = c->n_operands == 1 && ses_operand_is_stdin(c->operands[0]);
    *n = 0;
    if (ses_pipeline_has_both_texts(c) || (texts && !only_stdin)) return NULL;
    *n = c->n_operands ? (size_t)c->n_operands : a->files.n;
    if (*n) return c->n_operands ? (const char *const *)c->operands : a->files.item;
    *n = 1;
    return standard;
}

static bool run_files(ses_pipeline_job *j, const char *const *file, size_t n_files, ses_err *e)
{
    const ses_call *c = j->call;
    char label[48];
    size_t n;
    const ses_shard_plan *plan = &j->shard.plan;
    bool asked = c->n_operands || j->a->files.n, shard = ses_shard_job_given(&j->shard);
    j->lines = j->several = true;
    if (!asked && !c->quiet && isatty(STDIN_FILENO))
        fputs("Reading texts from the terminal, one per line; Ctrl-D ends.\n", stderr);
    if (!continue_rows(j, e)) return false;
    ses_span *part = ses_shard_plan_spans(plan, ses_shard_job_block(&j->shard), plan->last, &n, e);
    if (!part) return false;
    j->in.span = part;
    j->in.n_spans = n;
    j->in.encoding = encoding_of(j);
    j->progress =
        ses_progress_start(stderr, &c->err, c->quiet || (c->out.tty && !j->a->rows.to),
                           ses_shard_job_label(&j->shard, label, "texts"),
                           shard ? (int64_t)(plan->last - plan->first) : ses_input_size(file, n_files));
    bool ok = j->a->column ? run_column(j, part, n, e) : run_lines(j, e);
    ses_progress_end(&j->progress);
    ses_line_reader_close(&j->in);
    ses_free(part);
    return ok;
}

bool ses_pipeline_job_feed(ses_pipeline_job *j, ses_err *e)
{
    size_t n;
    const ses_call *c = j->call;
    const char *const *file = ses_pipeline_job_files(c, j->a, &n);
    if (ses_pipeline_has_both_texts(c)) return run_options(j, e);
    if (c->n_operands && !j->a->jsonl && !j->a->column)
        ses_hint_file_operand(c, takes_lines(j, 0) ? "-f FILE reads the texts in it, one per line"
                                                   : "- <FILE reads the text in it");
    for (size_t i = 0; !j->a->jsonl && !j->a->column && !splits_lines(j) && i < n; i++)
        ses_hint_table_lines(c, file[i]);
    return n ? run_files(j, file, n, e) : run_arguments(j, e);
}
