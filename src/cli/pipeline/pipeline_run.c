/* Runs a pipeline on arguments, files or standard input. */
#define _POSIX_C_SOURCE 200809L
#include "atomic_output.h"
#include "cli/input_size.h"
#include "cli/standard_output.h"
#include "cli/text_operands.h"
#include "cli/ui/show_values.h"
#include "line_reader.h"
#include "npy_writer.h"
#include "pipeline_command.h"
#include "sesame/table.h"
#include "task/task.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TRUNCATION_NOTICES = 5 };

typedef struct pipeline_job {
    const ses_call *call;
    const ses_pipeline_args *a;
    ses_pipeline *p;
    ses_line_reader in;
    const char *name; /* current file */
    ses_progress progress;
    ses_npy npy;
    ses_row_writer rows;
    ses_atomic_output to;
    bool lines;   /* item numbers are line numbers, else argument numbers */
    bool several; /* more than one item */
    int64_t n_truncated;
    int64_t failed; /* items with an error */
} pipeline_job;

/* ---- results ---- */

static void format_location(char *buf, size_t size, const pipeline_job *j, int64_t number)
{
    bool named = j->name && strcmp(j->name, "-") != 0;
    snprintf(buf, size, "%s%s%s %" PRId64, named ? j->name : "", named ? ": " : "",
             j->lines ? "line" : "text", number);
}

static void notify_truncated(pipeline_job *j, const ses_result *r)
{
    char at[300];
    if (!r->truncated || j->call->quiet || ++j->n_truncated > MAX_TRUNCATION_NOTICES) return;
    format_location(at, sizeof at, j, r->item->number);
    fputs("sesame: ", stderr);
    ses_put_escaped(stderr, at);
    fprintf(stderr, ": truncated by %" PRId64 " tokens: the maximum sequence length is %" PRId64 "\n",
            r->truncated, ses_pipeline_max_seq_len(j->p));
}

static bool put_row(pipeline_job *j, const ses_result *r, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (w && ses_result_write_columns(r, j->call->command->task, j->call->task_args, w, e))
        return ses_rows_put(&j->rows, w, e); /* frees w */
    ses_json_writer_free(w);
    return false;
}

static bool put_json(const ses_result *r, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_result_write_json(r, w);
    return ses_json_writer_print(w, e);
}

/* Prints a piece of generated text (streaming). */
static bool put_piece(void *ctx, const char *piece, size_t n)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++) { /* replace control characters */
        unsigned char c = (unsigned char)piece[i];
        putchar(c >= ' ' ? c == 0x7F ? '?' : c : c == '\n' || c == '\t' ? c : '?');
    }
    return !fflush(stdout);
}

/* A signal ends the program at once, unless a result is being written: then after the result, or when a write
 * fails. */
static volatile sig_atomic_t writing, pending_signal;
static const int handled_signals[] = { SIGINT, SIGTERM };

static void raise_default(int sig)
{
    signal(sig, SIG_DFL);
    raise(sig);
}

static void on_signal(int sig)
{
    if (writing)
        pending_signal = sig;
    else
        raise_default(sig);
}

static void catch_signals(void)
{
    for (size_t i = 0; i < SES_LEN(handled_signals); i++) {
        struct sigaction a = { .sa_handler = on_signal }, before;
        sigemptyset(&a.sa_mask);
        sigaction(handled_signals[i], NULL, &before);
        if (before.sa_handler != SIG_IGN) sigaction(handled_signals[i], &a, NULL);
    }
}

/* Blocks the signals while threads start, which inherit the mask: only the main thread receives them. */
static sigset_t block_signals(void)
{
    sigset_t s, was;
    sigemptyset(&s);
    for (size_t i = 0; i < SES_LEN(handled_signals); i++) sigaddset(&s, handled_signals[i]);
    pthread_sigmask(SIG_BLOCK, &s, &was);
    return was;
}

static bool put_rows(pipeline_job *j, const ses_result *r, ses_err *e)
{
    for (int64_t i = 0; i < r->n_vectors; i++)
        if (!ses_npy_add(&j->npy, r->vectors + i * r->vector_size, r->vector_size, e)) return false;
    j->npy.cols = r->vector_size;
    return true;
}

static bool put_result(pipeline_job *j, const ses_result *r, ses_err *e)
{
    notify_truncated(j, r);
    if (ses_rows_active(&j->rows)) return put_row(j, r, e);
    if (r->streamed) { /* already printed */
        putchar('\n');
        return true;
    }
    if (r->schema->view == SES_VIEW_ARRAY) return put_rows(j, r, e);
    if (j->a->compute.json || r->schema->view == SES_VIEW_JSON) return put_json(r, e);
    return ses_pipeline_show(r, &j->call->out, j->several, e);
}

static bool put(void *ctx, const ses_result *r, ses_err *e)
{
    writing = 1;
    bool ok = put_result(ctx, r, e) && ses_stdout_flush(e);
    writing = 0;
    if (pending_signal) raise_default(pending_signal);
    return ok;
}

/* Handles an item error: ends the run, or reports the error and continues (--keep-going). */
static bool on_item_error(void *ctx, const ses_item *item, const ses_err *why, ses_err *e)
{
    pipeline_job *j = ctx;
    char at[300];
    ses_err error = *why;
    format_location(at, sizeof at, j, item->number);
    ses_wrap(&error, "%s", at);
    if (!j->a->keep_going) return ses_fail(e, error.code, "%s", error.msg);
    j->failed++;
    fputs("sesame: ", stderr);
    ses_put_escaped(stderr, error.msg);
    putc('\n', stderr);
    if (ses_rows_active(&j->rows)) return ses_rows_put_error(&j->rows, error.msg, e) && ses_stdout_flush(e);
    if (!j->a->compute.json) return true;
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_json_member_string(w, "error", error.msg);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e) && ses_stdout_flush(e);
}

static bool feed(pipeline_job *j, ses_item *item, int64_t number, ses_err *e)
{
    item->number = number;
    return ses_pipeline_feed(j->p, item, e);
}

/* Reports an item that is not fed, after the results of the items before it. kept: its row is kept. */
static bool fail_item(pipeline_job *j, int64_t number, bool kept, const ses_err *why, ses_err *e)
{
    ses_err first = { 0 };
    if (!ses_pipeline_flush(j->p, e)) return false;
    if (kept || !j->a->keep_going || ses_rows_keep_none(&j->rows, &first))
        return on_item_error(j, &(ses_item){ .number = number }, why, e);
    char at[300];
    format_location(at, sizeof at, j, number);
    return ses_fail(e, why->code, "%s: %s (%s)", at, why->msg, first.msg);
}

/* ---- items ---- */

static bool has_pair_option(const pipeline_job *j)
{
    return ses_task_count_pair_options(j->call->command->task, j->call->task_args) > 0;
}

/* Fills the next item (text, pair, list) from n words; returns the number of words used. */
static size_t build_item(const pipeline_job *j, ses_string *word, size_t n, ses_item *item)
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
static bool takes_lines(const pipeline_job *j, size_t at)
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

/* The texts of all arguments; *input holds the texts of standard input. */
static ses_string *argument_texts(const pipeline_job *j, ses_buf *input, size_t *n, ses_err *e)
{
    const ses_call *c = j->call;
    size_t operands = (size_t)c->n_operands, cap = operands;
    for (size_t i = 0; i < operands; i++)
        if (ses_operand_is_stdin(c->operands[i]) && !ses_read_stdin(input, e)) return NULL;
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

static bool run_arguments(pipeline_job *j, ses_err *e)
{
    size_t n;
    ses_buf input = { 0 };
    ses_string *word = argument_texts(j, &input, &n, e);
    bool ok = word != NULL;
    int64_t number = 0;
    for (size_t at = 0; ok && at < n;) {
        ses_item item;
        at += build_item(j, word + at, n - at, &item);
        j->several |= at < n;
        ok = feed(j, &item, ++number, e);
    }
    ok = ok && ses_pipeline_flush(j->p, e);
    ses_free(word);
    ses_buf_free(&input);
    return ok;
}

/* Runs the item whose texts are all given by options: --question and --context. */
static bool run_options(pipeline_job *j, ses_err *e)
{
    return feed(j, &(ses_item){ 0 }, 1, e) && ses_pipeline_flush(j->p, e);
}

static bool feed_json(pipeline_job *j, const char *line, size_t n, ses_err *e)
{
    ses_err why = { 0 };
    ses_item item = { 0 };
    ses_string *list = NULL;
    ses_json_doc *doc = ses_json_parse_line(line, n, &why);
    const ses_json *v = ses_json_root(doc);
    bool kept =
        !ses_rows_active(&j->rows) || (doc && ses_rows_keep_json(&j->rows, (ses_string){ line, n }, v, &why));
    bool ok = doc && kept && ses_pipeline_item_from_json(j->p, v, &item, &list, &why);
    ok = ok ? feed(j, &item, j->in.line, e) : fail_item(j, j->in.line, kept, &why, e);
    ses_free(list);
    ses_json_free(doc);
    return ok;
}

/* Feeds a line of text. A task with several texts per item expects them separated by tabs. */
static bool feed_line(pipeline_job *j, const char *line, size_t n, ses_err *e)
{
    const ses_item_schema *parts = &j->call->command->task->item_schema;
    bool several =
        (parts->requires_pair && !has_pair_option(j)) || (parts->requires_list && !parts->list_replaces_text);
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
    build_item(j, word, words, &item);
    bool kept = !ses_rows_active(&j->rows) || ses_rows_keep_text(&j->rows, text, &why);
    bool ok = kept ? feed(j, &item, j->in.line, e) : fail_item(j, j->in.line, false, &why, e);
    ses_free(word);
    return ok;
}

static bool run_lines(pipeline_job *j, ses_err *e)
{
    const char *line;
    size_t n;
    ses_line_status got;
    j->several = true;
    while ((got = ses_line_next(&j->in, &line, &n, e)) == SES_LINE_OK) {
        if (j->in.line == 1) { /* next file: results of the last one come first, under its name */
            if (!ses_pipeline_flush(j->p, e)) return false;
            j->name = j->in.name;
        }
        if (!(j->a->jsonl ? feed_json(j, line, n, e) : feed_line(j, line, n, e))) return false;
        if (!ses_line_ready(&j->in) && (!ses_pipeline_flush(j->p, e) || !ses_stdout_flush(e))) return false;
        ses_progress_show(&j->progress, j->progress.total ? j->in.bytes : ses_pipeline_get_stats(j->p).items);
    }
    if (got == SES_LINE_ERROR) { /* write the results of the items before it */
        ses_err ignored = { 0 };
        ses_pipeline_flush(j->p, &ignored);
        return false;
    }
    return ses_pipeline_flush(j->p, e);
}

/* Feeds the rows of a table. A row that cannot be read ends the run, after the results of the rows before. */
static bool feed_rows(pipeline_job *j, ses_records *r, ses_err *e)
{
    const ses_string *row;
    ses_err broken = { 0 };
    while (ses_records_next(r, &row, &broken) && row) {
        ses_err why = { 0 };
        ses_item item = { .text = { row[0].p, row[0].n } };
        bool kept = !ses_rows_active(&j->rows) || ses_rows_keep_record(&j->rows, r, &why);
        int64_t line = (int64_t)ses_records_line(r);
        if (!(kept ? feed(j, &item, line, e) : fail_item(j, line, false, &why, e))) return false;
        ses_progress_show(&j->progress, j->progress.total ? j->in.bytes + (int64_t)ses_records_consumed(r)
                                                          : ses_pipeline_get_stats(j->p).items);
    }
    j->in.bytes += (int64_t)ses_records_consumed(r);
    if (!ses_pipeline_flush(j->p, e)) return false;
    return !broken.code || ses_fail(e, broken.code, "%s", broken.msg) || ses_wrap(e, "%s", j->name);
}

/* Reads the texts from a column of each file. */
static bool run_column(pipeline_job *j, ses_err *e)
{
    ses_records_options o = { .columns = &j->a->column, .n_columns = 1, .no_header = j->a->no_header };
    bool ok = true;
    j->several = true;
    for (size_t i = 0; ok && i < j->in.n_files; i++) {
        ses_records *r = ses_records_open(j->in.file[i], &o, e);
        j->name = j->in.file[i];
        ok = r && feed_rows(j, r, e);
        ses_records_free(r);
    }
    return ok;
}

/* ---- the command ---- */

static void notify_speed(const pipeline_job *j, double seconds)
{
    char a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT];
    ses_pipeline_stats stats = ses_pipeline_get_stats(j->p);
    bool generated = stats.tokens_generated > 0;
    int64_t tokens = generated ? stats.tokens_generated : stats.tokens_read;
    fprintf(stderr, "%s text%s, %s tokens%s in ", ses_grouped_text(a, stats.items),
            stats.items == 1 ? "" : "s", ses_grouped_text(b, tokens), generated ? " generated" : "");
    fputs(ses_elapsed_text(a, seconds), stderr);
    fprintf(stderr, ": %s texts/s, %s tokens/s\n", ses_rate_text(a, stats.items, seconds),
            ses_rate_text(b, tokens, seconds));
    if (stats.truncated > MAX_TRUNCATION_NOTICES)
        fprintf(stderr, "sesame: %s texts were truncated\n", ses_grouped_text(a, stats.truncated));
}

static void notify_context_limited(const pipeline_job *j)
{
    char a[SES_NUMBER_TEXT];
    int64_t n = ses_pipeline_get_stats(j->p).context_limited;
    if (!n || j->call->quiet) return;
    fprintf(stderr,
            "sesame: %s text%s before the requested length: the context of the model is %" PRId64
            " tokens, prompt included\n",
            ses_grouped_text(a, n), n == 1 ? " ends" : "s end",
            ses_model_max_tokens(ses_pipeline_model(j->p)));
}

static bool has_output_option(const ses_call *c)
{
    const ses_task *t = c->command->task;
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(t->opt, t->n_opt); (o = ses_opt_next(&it));)
        if (!strcmp(o->name, "output"))
            return *(const int *)(const void *)((const char *)c->task_args + o->offset) >= 0;
    return false;
}

/* An array without rows still has a number of columns: run any text to learn it. */
static bool end_array(pipeline_job *j, ses_err *e)
{
    if (j->npy.begun) return ses_npy_end(&j->npy, e);
    if (ses_pipeline_get_stats(j->p).items || !has_output_option(j->call)) return true;
    const ses_result *r = ses_pipeline_run(j->p, &(ses_item){ .text = ses_str("a") }, e);
    if (!r || r->schema->view != SES_VIEW_ARRAY) return r != NULL;
    j->npy.cols = r->vector_size;
    return ses_npy_end(&j->npy, e);
}

/* The options give both texts of an item. */
static bool has_both_texts(const ses_call *c)
{
    return ses_task_count_pair_options(c->command->task, c->task_args) == 2;
}

static bool check_arguments(const ses_call *c, const ses_pipeline_args *a, ses_err *e)
{
    const char *names = c->command->task->item_schema.pair_option;
    if (has_both_texts(c) && (c->n_operands || a->files.n || a->jsonl || a->column))
        return ses_fail(e, SES_EUSAGE,
                        "--%.*s and --%s give both texts: expected no argument, file or column",
                        (int)strcspn(names, "|"), names, strchr(names, '|') + 1);
    if (a->jsonl || a->column)
        return ses_operands_require_files(
            c, 0, "with --jsonl or --column arguments are files, '-' is standard input", e);
    return ses_operands_check_stdin(c, e);
}

/* --keep writes rows: JSON lines with --json. */
static bool check_rows(const ses_call *c, const ses_pipeline_args *a, ses_err *e)
{
    if (a->rows.prefix && a->rows.keep < 0) return ses_fail(e, SES_EUSAGE, "--result-prefix needs --keep");
    if (a->rows.keep < 0) return true;
    bool texts = c->n_operands && !a->jsonl && !a->column;
    if (has_both_texts(c) || (texts && (c->n_operands > 1 || !ses_operand_is_stdin(c->operands[0]))))
        return ses_fail(e, SES_EUSAGE, "--keep needs rows: use -f FILE, --column or --jsonl");
    if (has_output_option(c)) return ses_fail(e, SES_EUSAGE, "--keep and --output are mutually exclusive");
    bool table = a->rows.keep == SES_ROWS_CSV || a->rows.keep == SES_ROWS_TSV;
    return !(a->compute.json && table) || ses_fail(e, SES_EUSAGE, "--json means --keep jsonl");
}

static bool check_usage(const ses_call *c, const ses_pipeline_args *a, ses_err *e)
{
    if (!check_arguments(c, a, e)) return false;
    if (c->n_operands && a->files.n)
        return ses_fail(e, SES_EUSAGE, "arguments and --file are mutually exclusive");
    if (a->column && a->jsonl)
        return ses_fail(e, SES_EUSAGE, "--jsonl does not apply to --column, which detects JSON lines");
    if (a->compute.json && has_output_option(c)) /* both select the output format */
        return ses_fail(e, SES_EUSAGE, "--json and --output are mutually exclusive");
    return check_rows(c, a, e);
}

static void notify_warnings(const pipeline_job *j)
{
    const char *s = ses_pipeline_warnings(j->p);
    while (*s && !j->call->quiet) {
        size_t n = strcspn(s, "\n");
        fputs("sesame: ", stderr);
        char line[512];
        snprintf(line, sizeof line, "%.*s", (int)(n < 500 ? n : 500), s);
        ses_put_escaped(stderr, line);
        putc('\n', stderr);
        s += n + (s[n] == '\n');
    }
}

static bool open_rows(pipeline_job *j, ses_err *e)
{
    const char *name[8];
    ses_row_args args = j->a->rows;
    if (args.keep == SES_ROWS_AUTO && (j->a->compute.json || !j->a->column)) args.keep = SES_ROWS_JSONL;
    ses_rows_open(&j->rows, &args, j->a->keep_going);
    size_t n = ses_task_column_names(j->call->command->task, j->call->task_args, name);
    return ses_rows_set_results(&j->rows, name, n, e);
}

static bool run(pipeline_job *j, ses_err *e)
{
    static const char *const standard[] = { "-" };
    const ses_call *c = j->call;
    bool texts = c->n_operands && !j->a->jsonl && !j->a->column; /* else the arguments are files */
    bool only_stdin = c->n_operands == 1 && ses_operand_is_stdin(c->operands[0]);
    ses_pipeline_set_callback(j->p, put, j);
    ses_pipeline_set_error_callback(j->p, on_item_error, j);
    if (j->a->batch_tokens) ses_pipeline_set_batch_tokens(j->p, j->a->batch_tokens);
    if (ses_pipeline_can_stream(j->p) && !j->a->compute.json && !ses_rows_active(&j->rows) &&
        (c->out.tty || ses_pipeline_stream_setting(j->p))) {
        ses_pipeline_set_stream(j->p, put_piece, j);
        ses_pipeline_set_batch_tokens(j->p, 1); /* one text at a time */
    }
    notify_warnings(j);
    bool limited = !j->a->max_seq_len || ses_pipeline_set_max_seq_len(j->p, j->a->max_seq_len);
    if (!limited && !c->quiet)
        fputs("sesame: --max-seq-len has no effect: this task does not truncate texts\n", stderr);
    if (has_both_texts(c)) return run_options(j, e);
    if (texts)
        ses_hint_file_operand(c, takes_lines(j, 0) ? "-f FILE reads the texts in it, one per line"
                                                   : "- <FILE reads the text in it");
    if (texts && !only_stdin) return run_arguments(j, e);
    j->lines = true;
    j->in.file = j->a->files.item;
    j->in.n_files = j->a->files.n;
    if (c->n_operands) j->in.file = (const char *const *)c->operands, j->in.n_files = (size_t)c->n_operands;
    bool has_files = j->in.n_files > 0;
    if (!has_files) j->in.file = standard, j->in.n_files = 1;
    if (!has_files && !c->quiet && isatty(STDIN_FILENO))
        fputs("Reading texts from the terminal, one per line; Ctrl-D ends.\n", stderr);
    j->progress = ses_progress_start(stderr, &c->err, c->quiet || (c->out.tty && !j->a->rows.to), "texts",
                                     ses_input_size(j->in.file, j->in.n_files));
    bool ok = j->a->column ? run_column(j, e) : run_lines(j, e);
    ses_progress_end(&j->progress);
    if (ok && !c->quiet) notify_speed(j, ses_seconds() - j->progress.start);
    return ok;
}

/* Sets the task's options for results shown as text, unless the command line set them. */
static bool set_shown_settings(const ses_call *c, ses_err *e)
{
    const ses_task *t = c->command->task;
    for (const ses_setting *s = t->shown_settings; s && s->name; s++) {
        const ses_opt *o;
        for (ses_opt_iter it = ses_opt_begin(t->opt, t->n_opt); (o = ses_opt_next(&it));)
            if (!strcmp(o->name, s->name) && o->type == SES_OPT_CHOICE &&
                *(int *)(void *)((char *)c->task_args + o->offset) < 0 &&
                !ses_opt_set(o, c->task_args, o->name, s->value, e))
                return false;
    }
    return true;
}

bool ses_pipeline_command(ses_call *c, ses_err *e)
{
    const ses_pipeline_args *a = c->args;
    pipeline_job j = { .call = c, .a = a, .npy = { .f = stdout } };
    const char *to = a->rows.to;
    bool shown = !a->compute.json && a->rows.keep < 0;
    if (!check_usage(c, a, e) || (shown && !set_shown_settings(c, e)) || !open_rows(&j, e) ||
        (to && !ses_atomic_output_begin(&j.to, to, a->rows.overwrite, e))) {
        ses_rows_free(&j.rows);
        return false;
    }
    ses_device_options o = ses_compute_device_options(&a->compute);
    catch_signals();
    sigset_t was = block_signals();
    ses_device *dev = ses_device_open(a->compute.device, &o, e);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    ses_pipeline_options options = { .base_model = a->adapter ? a->model : NULL };
    j.p = dev ? ses_pipeline_new(c->command->task, a->adapter ? a->adapter : a->model, dev, c->task_args,
                                 &options, e)
              : NULL;
    bool ok = j.p && run(&j, e);
    if (j.p) notify_context_limited(&j);
    ok = ok && ses_rows_end(&j.rows, e) && end_array(&j, e) && (!to || ses_atomic_output_commit(&j.to, e));
    if (to) ses_atomic_output_end(&j.to, e);
    ses_rows_free(&j.rows);
    ses_npy_free(&j.npy);
    ses_line_reader_close(&j.in);
    ses_pipeline_free(j.p);
    ses_device_free(dev);
    return ok && !j.failed;
}
