/* Runs a pipeline on arguments, files or standard input. */
#define _POSIX_C_SOURCE 200809L
#include "cli/standard_output.h"
#include "cli/text_operands.h"
#include "cli/ui/show_values.h"
#include "kernel/kernel.h"
#include "pipeline_job.h"
#include "task/task.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TRUNCATION_NOTICES = 5 };

/* ---- results ---- */

void ses_pipeline_job_locate(char *buf, size_t size, ses_pipeline_job *j, int64_t number)
{
    const char *name = j->name && !strcmp(j->name, "-") ? "standard input" : j->name;
    snprintf(buf, size, "%s%s%s %" PRId64, name ? name : "", name ? ": " : "", j->lines ? "line" : "text",
             ses_pipeline_job_number(j, number));
}

static void notify_truncated(ses_pipeline_job *j, const ses_result *r)
{
    char at[300];
    if (!r->truncated || j->call->quiet || ++j->n_truncated > MAX_TRUNCATION_NOTICES) return;
    ses_pipeline_job_locate(at, sizeof at, j, r->item->number);
    fputs("sesame: ", stderr);
    ses_put_escaped(stderr, at);
    fprintf(stderr, ": truncated by %" PRId64 " tokens: the maximum sequence length is %" PRId64 "\n",
            r->truncated, ses_pipeline_max_seq_len(j->p));
}

static void count_empty(ses_pipeline_job *j, const ses_item *item)
{
    ses_string text = item->text.p ? item->text : (ses_string){ "", 0 };
    j->single += !item->pair.p;
    if (!item->text.p || ses_trim(text).n) return;
    if (!j->empty++) ses_pipeline_job_locate(j->first_empty, sizeof j->first_empty, j, item->number);
}

static void notify_empty(const ses_pipeline_job *j)
{
    char a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT];
    int64_t all = ses_pipeline_get_stats(j->p).items;
    if (!j->empty || j->call->quiet) return;
    if (all == 1) {
        fputs("sesame: the text is empty: the result comes from special tokens only\n", stderr);
        return;
    }
    fprintf(stderr, "sesame: %s of %s texts %s empty, first ", ses_grouped_text(a, j->empty),
            ses_grouped_text(b, all), j->empty == 1 ? "is" : "are");
    ses_put_escaped(stderr, j->first_empty);
    fputs(": their results come from special tokens only\n", stderr);
}

/* The value of the task's option --text-pair; NULL: not given. */
static const char *pair_option(const ses_call *c)
{
    const ses_task *t = c->command->task;
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(t->opt, t->n_opt); (o = ses_opt_next(&it));)
        if (!strcmp(o->name, "text-pair"))
            return *(const char *const *)(const void *)((const char *)c->task_args + o->offset);
    return NULL;
}

/* A classifier of natural language inference compares two texts. */
static void notify_single(const ses_pipeline_job *j)
{
    bool classifies = j->call->command->task == &ses_task_text_classification;
    const ses_model *m = ses_pipeline_model(j->p); /* NULL: a classifier without a model */
    if (!j->single || j->call->quiet || !classifies || !m || pair_option(j->call) ||
        !ses_task_suits(&ses_task_zero_shot, m))
        return;
    fputs("sesame: the model compares two texts, but a text was given alone; JSON lines with "
          "\"text\" and \"text_pair\" have both\n",
          stderr);
}

static bool put_row(ses_pipeline_job *j, const ses_result *r, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (w && ses_result_write_columns(r, j->call->command->task, j->call->task_args, w, e))
        return ses_rows_put(&j->rows, w, e); /* frees w */
    ses_json_writer_free(w);
    return false;
}

static bool put_json(ses_pipeline_job *j, const ses_result *r, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_result_write_json(r, w);
    return ses_rows_print(&j->rows, w, e);
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
static volatile sig_atomic_t writing, pending_signal, resumable;
static const int handled_signals[] = { SIGINT, SIGTERM };

static void raise_default(int sig)
{
    static const char note[] = "\nsesame: interrupted; the same command continues this shard\n";
    if (resumable && write(STDERR_FILENO, note, sizeof note - 1) < 0) resumable = 0;
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

/* The numbers without a header: arrays that can be concatenated. */
static bool put_raw(const ses_result *r, ses_err *e)
{
    return ses_stdout_write(r->vectors, (size_t)(r->n_vectors * r->vector_size) * sizeof *r->vectors, e);
}

/* Shows a result with the number of its line in the file, if lines before it were skipped. */
static bool show(ses_pipeline_job *j, const ses_result *r, ses_err *e)
{
    ses_result numbered = *r;
    ses_item item = *r->item;
    if ((r->schema->view == SES_VIEW_NUMBERS || r->schema->view == SES_VIEW_COMMAS) && r->n)
        item.number = ses_pipeline_job_number(j, item.number);
    numbered.item = &item;
    return ses_pipeline_show(&numbered, &j->call->out, j->several, e);
}

static bool put_rows(ses_pipeline_job *j, const ses_result *r, ses_err *e)
{
    for (int64_t i = 0; i < r->n_vectors; i++)
        if (!ses_npy_add(&j->npy, r->vectors + i * r->vector_size, r->vector_size, e)) return false;
    j->npy.cols = r->vector_size;
    return true;
}

static bool put_result(ses_pipeline_job *j, const ses_result *r, ses_err *e)
{
    notify_truncated(j, r);
    count_empty(j, r->item);
    if (ses_rows_active(&j->rows)) return put_row(j, r, e);
    if (r->streamed) { /* already printed */
        putchar('\n');
        return true;
    }
    if (r->schema->view == SES_VIEW_ARRAY) return put_rows(j, r, e);
    if (r->schema->view == SES_VIEW_RAW) return put_raw(r, e);
    if (j->a->compute.json || r->schema->view == SES_VIEW_JSON) return put_json(j, r, e);
    return show(j, r, e);
}

static bool put(void *ctx, const ses_result *r, ses_err *e)
{
    ses_pipeline_job *j = ctx;
    writing = 1;
    bool ok = put_result(j, r, e) && ses_stdout_flush(e) && ses_shard_output_done(&j->shard.out, false, e);
    writing = 0;
    if (pending_signal) raise_default(pending_signal);
    return ok;
}

static bool put_error(ses_pipeline_job *j, const char *message, ses_err *e)
{
    if (ses_rows_active(&j->rows)) return ses_rows_put_error(&j->rows, message, e);
    if (!j->a->compute.json) return true;
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "error", message);
    ses_json_end_object(w);
    return ses_rows_print(&j->rows, w, e);
}

bool ses_pipeline_job_item_error(void *ctx, const ses_item *item, const ses_err *why, ses_err *e)
{
    ses_pipeline_job *j = ctx;
    char at[300];
    ses_err error = *why;
    ses_pipeline_job_locate(at, sizeof at, j, item->number);
    ses_wrap(&error, "%s", at);
    if (!j->a->keep_going) return ses_fail(e, error.code, "%s", error.msg);
    j->failed++;
    fputs("sesame: ", stderr);
    ses_put_escaped(stderr, error.msg);
    putc('\n', stderr);
    return put_error(j, error.msg, e) && ses_stdout_flush(e) && ses_shard_output_done(&j->shard.out, true, e);
}

/* ---- the command ---- */

static void notify_speed(const ses_pipeline_job *j, double seconds)
{
    char a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT];
    ses_pipeline_stats stats = ses_pipeline_get_stats(j->p);
    bool generated = stats.tokens_generated > 0;
    int64_t tokens = generated ? stats.tokens_generated : stats.tokens_read;
    char label[48];
    if (ses_shard_job_given(&j->shard)) fprintf(stderr, "%s: ", ses_shard_job_label(&j->shard, label, ""));
    fprintf(stderr, "%s text%s, %s tokens%s in ", ses_grouped_text(a, stats.items),
            stats.items == 1 ? "" : "s", ses_grouped_text(b, tokens), generated ? " generated" : "");
    fputs(ses_elapsed_text(a, seconds), stderr);
    fprintf(stderr, ": %s texts/s, %s tokens/s\n", ses_rate_text(a, stats.items, seconds),
            ses_rate_text(b, tokens, seconds));
    if (stats.truncated > MAX_TRUNCATION_NOTICES)
        fprintf(stderr, "sesame: %s texts were truncated\n", ses_grouped_text(a, stats.truncated));
}

static void notify_context_limited(const ses_pipeline_job *j)
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

static void notify_shortened(const ses_pipeline_job *j)
{
    char a[SES_NUMBER_TEXT];
    ses_pipeline_stats stats = ses_pipeline_get_stats(j->p);
    int64_t n = stats.shortened_words;
    if (!n || j->call->quiet) return;
    fprintf(stderr, "sesame: %s word%s than %" PRId64 " bytes: only the beginning of such words is read\n",
            ses_grouped_text(a, n), n == 1 ? " is longer" : "s are longer", stats.max_word_bytes);
}

/* The task's option --format; false: it has none. */
static bool find_format(const ses_call *c, ses_opt *out)
{
    const ses_task *t = c->command->task;
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(t->opt, t->n_opt); (o = ses_opt_next(&it));)
        if (!strcmp(o->name, "format")) return *out = *o, true;
    return false;
}

/* The word of that option, not terminated; NULL: not given. */
static const char *format_word(const ses_call *c, size_t *n)
{
    ses_opt o;
    const char *word = NULL;
    if (!find_format(c, &o)) return NULL;
    int at = *(const int *)(const void *)((const char *)c->task_args + o.offset);
    if (at >= 0) ses_list_at(o.choices, (size_t)at, &word, n);
    return word;
}

static bool has_format(const ses_call *c)
{
    size_t n;
    return format_word(c, &n) != NULL;
}

static bool is_format(const ses_opt *o, const char *text)
{
    const char *word;
    size_t n;
    for (size_t i = 0; text && ses_list_at(o->choices, i, &word, &n); i++)
        if (ses_equal(word, n, text)) return true;
    return false;
}

/* The ending of a file in small letters, without the dot; empty: none. */
static const char *ending_of(const char *path, char out[static 8])
{
    const char *dot = path ? strrchr(path, '.') : NULL;
    snprintf(out, 8, "%s", dot ? dot + 1 : "");
    for (char *c = out; *c; c++)
        if (*c >= 'A' && *c <= 'Z') *c += 32;
    return out;
}

/* --output and --to, and the format by the ending of the file. -o was --format once: -o npy still is. */
static bool read_output(const ses_call *c, ses_pipeline_args *a, ses_err *e)
{
    ses_opt format;
    bool vectors = find_format(c, &format);
    if (vectors && is_format(&format, a->rows.output)) {
        if (has_format(c))
            return ses_fail(e, SES_EUSAGE, "-o %s and --format exclude each other", a->rows.output);
        if (!c->quiet)
            fprintf(stderr, "sesame: -o %s is now --format %s; -o names the output file\n", a->rows.output,
                    a->rows.output);
        if (!ses_opt_set(&format, c->task_args, "-o", a->rows.output, e)) return false;
        a->rows.output = NULL;
    }
    bool chosen = has_format(c) || a->compute.json;
    int keep = a->rows.keep;
    if (!ses_row_args_resolve(&a->rows, e)) return false;
    if (chosen || keep >= 0) { /* options come before the ending */
        a->rows.keep = keep;
        a->rows.array &= a->compute.json;
        return true;
    }
    char buffer[8];
    const char *ending = ending_of(a->rows.to, buffer);
    if (vectors && is_format(&format, ending)) {
        a->rows.keep = -1;
        return ses_opt_set(&format, c->task_args, a->rows.to, ending, e);
    }
    if (!strcmp(ending, "npy"))
        return ses_fail(e, SES_EUSAGE,
                        "%s: %s has no vectors for a NumPy file; expected .csv, .tsv, .json or .jsonl",
                        a->rows.to, c->command->name);
    a->compute.json = a->rows.array || ses_row_args_ends(&a->rows, ".jsonl");
    return true;
}

/* An array without rows still has a number of columns: run any text to learn it. */
static bool end_array(ses_pipeline_job *j, ses_err *e)
{
    if (j->npy.begun) return ses_npy_end(&j->npy, e);
    if (ses_pipeline_get_stats(j->p).items || !has_format(j->call)) return true;
    const ses_result *r = ses_pipeline_run(j->p, &(ses_item){ .text = ses_str("a") }, e);
    if (!r || r->schema->view != SES_VIEW_ARRAY) return r != NULL;
    j->npy.cols = r->vector_size;
    return ses_npy_end(&j->npy, e);
}

static bool check_arguments(const ses_call *c, const ses_pipeline_args *a, ses_err *e)
{
    const char *names = c->command->task->item_schema.pair_option;
    if (ses_pipeline_has_both_texts(c) && (c->n_operands || a->files.n || a->jsonl || a->column))
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
    bool are_rows = c->n_operands == 1 && ses_operand_is_stdin(c->operands[0]);
    if (ses_pipeline_has_both_texts(c) || (texts && !are_rows && !ses_pipeline_item_is_text(c)))
        return ses_fail(e, SES_EUSAGE, "a table needs rows: use -f FILE, --column or --jsonl");
    if (has_format(c)) return ses_fail(e, SES_EUSAGE, "--keep and --format are mutually exclusive");
    bool table = a->rows.keep == SES_ROWS_CSV || a->rows.keep == SES_ROWS_TSV;
    return !(a->compute.json && table) || ses_fail(e, SES_EUSAGE, "--json means --keep jsonl");
}

/* Shards are parts of files, and their outputs can be concatenated. */
static bool check_shard(const ses_call *c, const ses_pipeline_args *a, ses_err *e)
{
    size_t n;
    ses_shard shard;
    if (!a->rows.shard) return true;
    if (!ses_shard_parse(a->rows.shard, &shard, e)) return false;
    if (!ses_pipeline_job_files(c, a, &n))
        return ses_fail(e, SES_EUSAGE,
                        "--shard divides files: use -f FILE, --column, --jsonl or standard input");
    if (a->encoding)
        return ses_fail(e, SES_EUSAGE,
                        "--shard divides files by bytes: convert them to UTF-8 first, without --encoding");
    const char *word = format_word(c, &n);
    return !(word && ses_equal(word, n, "npy")) ||
           ses_fail(
               e, SES_EUSAGE,
               "--shard: NumPy files cannot be concatenated; use --format f32 (numpy.fromfile reads it), "
               "jsonl or tsv");
}

static bool check_usage(const ses_call *c, const ses_pipeline_args *a, ses_err *e)
{
    if (!check_arguments(c, a, e)) return false;
    if (c->n_operands && a->files.n)
        return ses_fail(e, SES_EUSAGE, "arguments and --file are mutually exclusive");
    if (a->column && a->jsonl)
        return ses_fail(e, SES_EUSAGE, "--jsonl does not apply to --column, which detects JSON lines");
    if (a->compute.json && has_format(c)) /* both select the output format */
        return ses_fail(e, SES_EUSAGE, "--json and --format are mutually exclusive");
    return check_rows(c, a, e) && check_shard(c, a, e);
}

/* Prints the warnings since the last call. */
static void notify_warnings(ses_pipeline_job *j)
{
    const char *s = ses_pipeline_warnings(j->p) + j->n_warned;
    j->n_warned += strlen(s);
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

static bool open_rows(ses_pipeline_job *j, ses_err *e)
{
    const char *name[8];
    ses_row_args args = j->a->rows;
    if (args.keep == SES_ROWS_AUTO && (j->a->compute.json || !j->a->column)) args.keep = SES_ROWS_JSONL;
    ses_rows_open(&j->rows, &args, j->a->keep_going);
    size_t n = ses_task_column_names(j->call->command->task, j->call->task_args, name);
    return ses_rows_set_results(&j->rows, name, n, e);
}

static bool run(ses_pipeline_job *j, ses_err *e)
{
    const ses_call *c = j->call;
    const ses_task *task = c->command->task;
    j->counts_first = task->reads_number && task->reads_number(c->task_args);
    ses_pipeline_set_callback(j->p, put, j);
    ses_pipeline_set_error_callback(j->p, ses_pipeline_job_item_error, j);
    if (j->a->batch_tokens) ses_pipeline_set_batch_tokens(j->p, j->a->batch_tokens);
    ses_pipeline_set_batch_size(j->p, j->a->batch_size);
    if (ses_pipeline_can_stream(j->p) && !j->a->compute.json && !ses_rows_active(&j->rows) &&
        (c->out.tty || ses_pipeline_stream_setting(j->p))) {
        ses_pipeline_set_stream(j->p, put_piece, j);
        ses_pipeline_set_batch_tokens(j->p, 1); /* one text at a time */
    }
    notify_warnings(j);
    bool limited = !j->a->max_seq_len || ses_pipeline_set_max_seq_len(j->p, j->a->max_seq_len);
    if (!limited && !c->quiet)
        fputs("sesame: --max-seq-len has no effect: this task does not truncate texts\n", stderr);
    double start = ses_seconds();
    bool ok = ses_pipeline_job_feed(j, e);
    if (ok && (j->lines || j->a->verbose) && !c->quiet) notify_speed(j, ses_seconds() - start);
    return ok;
}

/* Sets the task's options for results shown as text, unless the command line set them. */
static bool set_shown_settings(const ses_call *c, ses_err *e)
{
    const ses_task *t = c->command->task;
    for (const ses_setting *s = t->shown_settings; s && s->name; s++) {
        const ses_opt *o;
        for (ses_opt_iter it = ses_opt_begin(t->opt, t->n_opt); (o = ses_opt_next(&it));)
            if (!strcmp(o->name, s->name) && o->type == SES_OPT_IS_CHOICE &&
                *(int *)(void *)((char *)c->task_args + o->offset) < 0 &&
                !ses_opt_set(o, c->task_args, o->name, s->value, e))
                return false;
    }
    return true;
}

/* Begins the output: a file that is complete or absent, a resumable file of a shard, or standard output. */
static bool begin_output(ses_pipeline_job *j, ses_err *e)
{
    size_t n;
    const ses_pipeline_args *a = j->a;
    enum { MAX_MODELS = 16 };
    const char *models[MAX_MODELS] = { a->model }, *to = a->rows.to;
    for (size_t i = 0; i < a->adapters.n && i + 2 < MAX_MODELS; i++)
        models[i + (a->model != NULL)] = a->adapters.item[i];
    ses_shard_conditions conditions = { models, ses_compute_level(&a->compute) };
    const char *const *file = ses_pipeline_job_files(j->call, a, &n);
    if (!ses_shard_job_begin(&j->shard, j->call, a->rows.shard, file, n, &conditions, to, a->rows.overwrite,
                             e))
        return false;
    return !to || a->rows.shard || ses_atomic_output_begin(&j->to, to, a->rows.overwrite, e);
}

static bool commit_output(ses_pipeline_job *j, ses_err *e)
{
    if (ses_shard_output_active(&j->shard.out)) return ses_shard_output_commit(&j->shard.out, e);
    return !j->a->rows.to || ses_atomic_output_commit(&j->to, e);
}

static bool open_and_run(ses_pipeline_job *j, ses_err *e)
{
    const ses_call *c = j->call;
    const ses_pipeline_args *a = j->a;
    ses_device_options o = ses_compute_device_options(&a->compute);
    resumable = ses_shard_output_active(&j->shard.out) && !c->quiet;
    catch_signals();
    sigset_t was = block_signals();
    ses_device *dev = ses_device_open(a->compute.device, &o, e);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    const char *adapter = ses_first_adapter(&a->adapters);
    ses_pipeline_options options = { .base_model = adapter ? a->model : NULL };
    if (adapter) options.adapters = a->adapters.item + 1, options.n_adapters = a->adapters.n - 1;
    j->p =
        dev ? ses_pipeline_new(c->command->task, adapter ? adapter : a->model, dev, c->task_args, &options, e)
            : NULL;
    bool ok = j->p && run(j, e);
    if (j->p) notify_context_limited(j);
    if (j->p) notify_shortened(j);
    if (j->p) notify_empty(j), notify_single(j), notify_warnings(j);
    ok = ok && ses_rows_end(&j->rows, e) && end_array(j, e) && commit_output(j, e);
    ses_pipeline_free(j->p);
    ses_device_free(dev);
    return ok;
}

bool ses_pipeline_command(ses_call *c, ses_err *e)
{
    ses_pipeline_args own = *(const ses_pipeline_args *)c->args;
    const ses_pipeline_args *a = c->args = &own;
    ses_pipeline_job j = {
        .call = c, .a = a, .npy = { .f = stdout }, .to.before = -1, .shard.out.before = -1
    };
    if (!read_output(c, &own, e)) return false;
    bool shown = !a->compute.json && a->rows.keep < 0;
    bool ok = check_usage(c, a, e) && (!shown || set_shown_settings(c, e)) && open_rows(&j, e) &&
              begin_output(&j, e) && (j.shard.complete || open_and_run(&j, e));
    bool failed = j.failed || j.shard.out.failed;
    ses_atomic_output_end(&j.to, e);
    ses_shard_job_end(&j.shard, e);
    ses_rows_free(&j.rows);
    ses_npy_free(&j.npy);
    return ok && !failed;
}
