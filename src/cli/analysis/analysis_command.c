/* Opens model and tokenizer for an analysis, runs it, and draws or writes its report. */
#define _POSIX_C_SOURCE 200809L
#include "analysis_command.h"

#include "analysis/analysis.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/unicode/utf8.h"
#include "cli/standard_output.h"
#include "hub/hub_name.h"
#include "io/text_reader.h"
#include "model/bundled_models.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_SEED = 42 /* as in analyses.c */, MAX_TEXT = 16 << 20 };

typedef struct analysis_run {
    const ses_call *c;
    const ses_analysis_args *a;
    ses_analysis_call call;
    ses_progress progress;
    const char *label; /* text of the progress line; NULL: none is shown */
    char *own_dir;     /* folder of the model operand */
    char **own_operands;
    ses_buf input; /* standard input, for the operand "-" */
} analysis_run;

static void show_progress(void *ctx, const char *label, int64_t done, int64_t total)
{
    analysis_run *r = ctx;
    if (!r->label || strcmp(r->label, label) != 0) {
        if (r->label) ses_progress_end(&r->progress);
        r->progress = ses_progress_start(stderr, &r->c->err, r->c->quiet, label, total);
        r->label = label;
    }
    ses_progress_show(&r->progress, done);
}

static bool check_operands(const ses_call *c, const ses_analysis *x, ses_err *e)
{
    bool model_operand = x->has_model_operand && !((const ses_analysis_args *)c->args)->model;
    if (c->n_operands < x->min_operands + model_operand)
        return ses_fail(e, SES_EUSAGE, "missing argument; usage: sesame %s %s", c->command->name,
                        x->operands);
    if (x->max_operands >= 0 && c->n_operands > x->max_operands + model_operand)
        return ses_fail(e, SES_EUSAGE, "unexpected argument '%s'",
                        c->operands[x->max_operands + model_operand]);
    return true;
}

static bool check_text(const char *dashes, const char *name, const char *text, ses_err *e)
{
    size_t n = text ? strlen(text) : 0, good = text ? ses_utf8_valid(text, n) : 0;
    return good == n || ses_fail(e, SES_EARG, "%s%s: invalid UTF-8 at byte %zu; expected a text in UTF-8",
                                 dashes, name, good + 1);
}

/* Texts of operands and options must be UTF-8: reports contain them. */
static bool check_texts(const ses_call *c, const ses_analysis *x, ses_err *e)
{
    const ses_opt *o;
    for (int i = 0; x->text_operand && i < c->n_operands; i++)
        if (!check_text("", i ? "a choice" : "the text", c->operands[i], e)) return false;
    for (ses_opt_iter it = ses_opt_begin(x->opt, x->n_opt); (o = ses_opt_next(&it));) {
        if (o->type != SES_OPT_IS_TEXT || o->is_path || o->is_model) continue;
        const char *const *value = (const void *)((const char *)c->task_args + o->offset);
        if (!check_text("--", o->name, *value, e)) return false;
    }
    return true;
}

/* Fails before any work if an output exists. */
static bool check_outputs(const ses_analysis_args *a, ses_err *e)
{
    const char *path[] = { a->html, a->svg, a->json && strcmp(a->json, "-") != 0 ? a->json : NULL };
    for (size_t i = 0; i < SES_LEN(path); i++)
        if (path[i] && !a->overwrite && ses_path_exists(path[i]))
            return ses_fail(e, SES_EUSAGE, "%s exists: --overwrite replaces it", path[i]);
    return true;
}

static bool choose_model(analysis_run *r, ses_err *e)
{
    const ses_analysis *x = r->call.analysis;
    if (x->needs_no_model && x->needs_no_model(r->c->task_args)) return true;
    r->call.model_dir = r->call.model_name = r->a->model;
    if (x->has_model_operand && !r->a->model) {
        r->call.model_name = r->c->operands[0];
        r->call.model_dir = r->own_dir = ses_model_resolve(r->c->operands[0], NULL, e);
        r->call.operands++, r->call.n_operands--;
        if (!r->own_dir) return false;
    }
    if (x->model != SES_ANALYSIS_NO_MODEL && !r->call.model_dir)
        return ses_fail(e, SES_EUSAGE, "--model DIR is required");
    return true;
}

static bool read_standard_input(ses_buf *text, ses_err *e)
{
    ses_text_reader in = { 0 };
    const char *line = NULL;
    size_t n = 0;
    bool ok = ses_text_reader_open(&in, "-", MAX_TEXT, e);
    while (ok && (ok = ses_text_reader_next(&in, &line, &n, e)) && line) {
        if (text->len) ses_buf_put(text, '\n');
        ses_buf_append(text, line, n);
        if (text->len > MAX_TEXT)
            ok = ses_fail(e, SES_EARG, "standard input has more than %d bytes", MAX_TEXT);
    }
    ses_text_reader_free(&in);
    if (ok && !text->len)
        return ses_fail(e, SES_EARG, "standard input is empty: the argument - reads a text from it");
    ses_buf_put(text, '\0');
    return ok && ses_buf_ok(text, e);
}

/* Replaces the text "-" by standard input. */
static bool read_text(analysis_run *r, ses_err *e)
{
    ses_analysis_call *call = &r->call;
    if (!call->analysis->text_operand || !call->n_operands || strcmp(call->operands[0], "-") != 0)
        return true;
    size_t n = (size_t)call->n_operands;
    r->own_operands = ses_alloc_array(n + 1, sizeof *r->own_operands, e);
    if (!r->own_operands || !read_standard_input(&r->input, e)) return false;
    memcpy(r->own_operands, call->operands, n * sizeof *r->own_operands);
    r->own_operands[0] = r->input.data;
    r->own_operands[n] = NULL;
    call->operands = r->own_operands;
    return true;
}

static bool open_model(analysis_run *r, ses_err *e)
{
    ses_analysis_call *call = &r->call;
    bool decoder = ses_analysis_asks_decoder(call->analysis, call->args);
    ses_model_options o = { .no_head = call->analysis->model == SES_ANALYSIS_HIDDEN_STATES && !decoder,
                            .train = call->analysis->model == SES_ANALYSIS_GRADIENTS,
                            .no_packing = call->analysis->model == SES_ANALYSIS_F32 };
    if (call->analysis->model == SES_ANALYSIS_NO_MODEL || !call->model_dir)
        return ses_layer_set_parse(&call->layers, NULL, 0, e);
    const char *dir = r->a->adapter ? r->a->adapter : call->model_dir;
    if (r->a->adapter) o.base = call->model_dir;
    call->model = ses_model_open(dir, call->dev, &o, e);
    call->tokenizer = call->model ? ses_tokenizer_open(call->model_dir, e) : NULL;
    return call->tokenizer &&
           ses_layer_set_parse(&call->layers, r->a->layers,
                               ses_analysis_last_layer(call->analysis, call->args, call->model), e);
}

/* ---- output ---- */

static bool write_file(const char *path, const ses_buf *b, bool overwrite, ses_err *e)
{
    return ses_buf_ok(b, e) && ses_file_write(path, b->data, b->len, overwrite, e);
}

static bool write_html(const analysis_run *r, const ses_report_head *h, ses_err *e)
{
    ses_buf out = { 0 };
    bool ok = ses_report_html(r->call.report, h, &out, e) && write_file(r->a->html, &out, r->a->overwrite, e);
    ses_buf_free(&out);
    return ok;
}

static bool write_svg(const analysis_run *r, const ses_report_head *h, ses_err *e)
{
    ses_buf out = { 0 };
    bool ok = ses_report_svg(r->call.report, h, &out, e) && write_file(r->a->svg, &out, r->a->overwrite, e);
    ses_buf_free(&out);
    return ok;
}

static bool write_json(const analysis_run *r, const ses_report_head *h, ses_err *e)
{
    ses_buf out = { 0 };
    bool to_stdout = !strcmp(r->a->json, "-"),
         ok = ses_report_envelope(r->call.report, h, &out, e) &&
              (to_stdout ? ses_stdout_write(out.data, out.len, e)
                         : write_file(r->a->json, &out, r->a->overwrite, e));
    ses_buf_free(&out);
    return ok;
}

static bool draw(const analysis_run *r, ses_err *e)
{
    ses_buf out = { 0 };
    const ses_term *t = &r->c->out;
    ses_report_draw(r->call.report, &(ses_draw){ t->width, t->color, t->unicode }, &out);
    bool ok = ses_report_ok(r->call.report, e) && ses_buf_ok(&out, e) &&
              (!out.len || ses_stdout_write(out.data, out.len, e));
    ses_buf_free(&out);
    return ok;
}

static void put_command_line(const analysis_run *r, ses_buf *out)
{
    const ses_command *cmd = r->c->command;
    char model[4096];
    ses_buf_appendf(out, "sesame %s", cmd->name);
    for (int i = 0; i < r->c->n_operands; i++) {
        ses_buf_put(out, ' ');
        ses_shell_word_put(out, r->c->operands[i], strlen(r->c->operands[i]));
    }
    ses_options_put_command_line(cmd->analysis->opt, cmd->analysis->n_opt, r->c->task_args, out);
    if (r->call.model_name && !cmd->analysis->has_model_operand) {
        ses_model_spelling(r->call.model_name, model, sizeof model);
        ses_buf_puts(out, " -m ");
        ses_shell_word_put(out, model, strlen(model));
    }
    if (r->a->layers) ses_buf_appendf(out, " --layers %s", r->a->layers);
    if (r->a->adapter) ses_buf_appendf(out, " --adapter %s", ses_model_label_of(r->a->adapter).s);
    if (r->a->seed != DEFAULT_SEED) ses_buf_appendf(out, " --seed %lld", (long long)r->a->seed);
}

/* The settings of the envelope: layers and adapter, then the options of the analysis. */
static void put_settings(const analysis_run *r, ses_json_writer *w)
{
    const ses_analysis *x = r->call.analysis;
    ses_path_name adapter = ses_path_name_of(r->a->adapter ? r->a->adapter : "");
    ses_json_begin_object(w);
    ses_json_member_string(w, "layers", r->a->layers);
    ses_json_member_string(w, "adapter", r->a->adapter ? adapter.s : NULL);
    ses_options_put_members(x->opt, x->n_opt, r->c->task_args, w);
    ses_json_end_object(w);
}

static bool write_report(const analysis_run *r, ses_err *e)
{
    ses_buf command = { 0 };
    ses_json_writer *w = ses_json_writer_new(0, e);
    put_command_line(r, &command);
    put_settings(r, w);
    const char *settings = ses_json_writer_text(w, NULL, e);
    ses_model_label model = ses_model_label_of(r->call.model_name ? r->call.model_name : "");
    ses_report_head h = { .analysis = r->c->command->name,
                          .title = r->c->command->summary,
                          .model = r->call.model_name ? model.s : NULL,
                          .command = command.data,
                          .settings = settings,
                          .seed = r->call.seed };
    bool to_stdout = r->a->json && !strcmp(r->a->json, "-"),
         ok = settings && ses_buf_ok(&command, e) && (!r->a->html || write_html(r, &h, e)) &&
              (!r->a->svg || write_svg(r, &h, e)) && (!r->a->json || write_json(r, &h, e)) &&
              (to_stdout || draw(r, e));
    ses_json_writer_free(w);
    ses_buf_free(&command);
    return ok;
}

/* Ends the progress line and the process. Outputs are written whole, temporary files have no name. */
static void on_interrupt(int sig)
{
    static const char text[] = "\nsesame: interrupted, the analysis has no result\n";
    ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
    (void)n;
    signal(sig, SIG_DFL);
    raise(sig);
}

static void catch_interrupt(void)
{
    struct sigaction a = { .sa_handler = on_interrupt }, before;
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, NULL, &before);
    if (before.sa_handler == SIG_DFL) sigaction(SIGINT, &a, NULL);
}

bool ses_analysis_command(ses_call *c, ses_err *e)
{
    const ses_analysis_args *a = c->args;
    const char *tmp = getenv("TMPDIR");
    analysis_run r = { .c = c, .a = a };
    r.call = (ses_analysis_call){ .analysis = c->command->analysis,
                                  .args = c->task_args,
                                  .operands = c->operands,
                                  .n_operands = c->n_operands,
                                  .adapter = a->adapter,
                                  .tmp_dir = tmp && *tmp ? tmp : NULL,
                                  .seed = (uint64_t)a->seed,
                                  .overwrite = a->overwrite,
                                  .html = a->html != NULL,
                                  .json = a->json != NULL,
                                  .progress = show_progress,
                                  .progress_ctx = &r };
    if (!check_operands(c, r.call.analysis, e) || !check_texts(c, r.call.analysis, e) || !check_outputs(a, e))
        return false;
    catch_interrupt();
    ses_device_options o = ses_compute_device_options(&a->compute);
    bool ok = choose_model(&r, e) && read_text(&r, e);
    r.call.dev = ok ? ses_device_open(a->compute.device, &o, e) : NULL;
    r.call.report = r.call.dev ? ses_report_new(e) : NULL;
    ok = r.call.report && open_model(&r, e) && r.call.analysis->run(&r.call, e);
    if (r.label) ses_progress_end(&r.progress);
    ok = ok && ses_report_ok(r.call.report, e) && write_report(&r, e);
    ses_report_free(r.call.report);
    ses_tokenizer_free(r.call.tokenizer);
    ses_model_free(r.call.model);
    ses_device_free(r.call.dev);
    ses_free(r.own_dir);
    ses_free(r.own_operands);
    ses_buf_free(&r.input);
    return ok;
}
