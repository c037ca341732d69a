/* eval --task FILE.json: likelihoods, perplexity and exact match of language models. */
#include "likelihood_eval.h"

#include "base/alloc.h"
#include "base/file.h"
#include "cli/train/direct_eval.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "sesame/base.h"
#include "sesame/examples.h"
#include "sesame/finetune.h"
#include "tune/eval/eval_likelihood.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const ses_opt opt[] = {
    SES_OPT_INT(ses_likelihood_args, shots, "shots", "-1", -1, 100000,
                "task files: examples before each document; -1: the number in the task file",
                .alias = "num-fewshot", .value = "K"),
    SES_OPT_TEXT(ses_likelihood_args, fewshot, "fewshot", "FILE",
                 "task files: file of the examples, instead of the one that the task file names",
                 .is_path = true),
    SES_OPT_INT(ses_likelihood_args, limit, "limit", "0", 0, 9e15,
                "task files: evaluate the first N documents only; 0: all", .value = "N", .zero_word = "all"),
    SES_OPT_TEXT(ses_likelihood_args, log, "log", "FILE",
                 "task files: write the log-likelihood of each request to this file, as JSON lines",
                 .is_path = true),
    SES_OPT_INT(ses_likelihood_args, batch_tokens, "batch-tokens", "auto", 1, 1 << 24,
                "task files: tokens of a forward pass; auto: 4096; results do not depend on it", .value = "N",
                .zero_word = "auto"),
};
const ses_opt_table ses_likelihood_option_table = { opt, SES_LEN(opt), "texts" };

/* ---- which evaluation ---- */

static bool is_finetune_task(const char *task)
{
    const char *name;
    if (ses_benchmark_find(task) || ses_direct_eval_find(task)) return true;
    for (size_t i = 0; (name = ses_finetune_task_name(i, NULL)); i++)
        if (!strcmp(name, task)) return true;
    return false;
}

static const char needs_task[] = "--shots needs --task FILE.json or the name of a task file";

bool ses_likelihood_task_path(const char *task, const ses_likelihood_args *a, char **path, ses_err *e)
{
    size_t n = task ? strlen(task) : 0;
    bool is_file = n > 5 && !strcmp(task + n - 5, ".json"), given = a->shots >= 0;
    *path = NULL;
    if (!task && given) return ses_fail(e, SES_EUSAGE, "%s", needs_task);
    if (!task || (!given && !is_file && is_finetune_task(task))) return true;
    ses_err bad = { 0 };
    *path = is_file ? ses_strdup(task, e) : ses_eval_task_find(task, &bad);
    if (*path || (!given && !is_file)) return true;
    if (given && is_finetune_task(task)) return ses_fail(e, SES_EUSAGE, "%s", needs_task);
    char *names = bad.code ? NULL : ses_eval_task_list(&bad);
    if (bad.code) return ses_fail(e, bad.code, "%s", bad.msg);
    ses_fail(e, SES_EUSAGE, "no task file %s: expected FILE.json or one of %s", ses_quoted_of(task, n).s,
             names && *names ? names : "the bundled tasks, which are not installed");
    ses_free(names);
    return false;
}

bool ses_likelihood_args_check_unused(const ses_likelihood_args *a, ses_err *e)
{
    const char *name = a->limit          ? "limit"
                       : a->log          ? "log"
                       : a->fewshot      ? "fewshot"
                       : a->batch_tokens ? "batch-tokens"
                                         : NULL;
    return !name ||
           ses_fail(e, SES_EUSAGE,
                    "--%s applies to task files: give --task FILE.json, or a bundled task with --shots K",
                    name);
}

/* ---- output ---- */

static void put_number(ses_text_table *table, double x)
{
    if (isnan(x))
        ses_text_table_cell(table, "-");
    else
        ses_text_table_cell(table, "%.4f", x);
}

static bool show(const ses_likelihood_call *d, const ses_eval_task *task, const ses_eval_likelihood_result *r,
                 double seconds, ses_err *e)
{
    const ses_term *t = &d->call->out;
    char rate[SES_NUMBER_TEXT], took[SES_NUMBER_TEXT];
    bool intervals = d->bootstrap->resamples > 0;
    ses_text_table *table =
        ses_text_table_new(intervals ? "Metric|>Value|>Error|>Low|>High" : "Metric|>Value|>Error", e);
    if (!table) return false;
    for (size_t i = 0; i < r->n_scores; i++) {
        ses_text_table_cell(table, "%s", ses_eval_metric_name[r->score[i].metric]);
        put_number(table, r->score[i].value);
        put_number(table, r->score[i].error);
        if (intervals) put_number(table, r->score[i].low), put_number(table, r->score[i].high);
    }
    bool ok = ses_text_table_print(table, stdout, t, 0, e);
    ses_text_table_free(table);
    puts("");
    ses_show_line(t, "Task", "%s, %zu documents, %" PRId64 " example%s each", task->name, r->documents,
                  r->shots, r->shots == 1 ? "" : "s");
    if (!isnan(r->chance)) {
        char majority[64] = "";
        if (!isnan(r->majority))
            snprintf(majority, sizeof majority, ", most frequent choice %.4f", r->majority);
        ses_show_line(t, "Baselines", "chance %.4f%s", r->chance, majority);
    }
    ses_show_line(t, "Requests", "%" PRId64 " in %s, %s per second", r->stats.requests,
                  ses_elapsed_text(took, seconds), ses_rate_text(rate, r->stats.requests, seconds));
    if (r->stats.truncated)
        ses_show_line(t, "Truncated", "%" PRId64 " contexts lost tokens at their beginning",
                      r->stats.truncated);
    if (intervals) ses_show_line(t, "Intervals", "%g %% bootstrap confidence", d->bootstrap->confidence);
    return ok;
}

static void put_score(const ses_eval_score *s, bool intervals, ses_json_writer *w)
{
    const char *name = ses_eval_metric_name[s->metric];
    char key[96];
    snprintf(key, sizeof key, "eval_%s", name);
    ses_json_member_real(w, key, s->value);
    snprintf(key, sizeof key, "eval_%s_stderr", name);
    if (!isnan(s->error)) ses_json_member_real(w, key, s->error);
    if (!intervals) return;
    snprintf(key, sizeof key, "eval_%s_low", name);
    ses_json_member_real(w, key, s->low);
    snprintf(key, sizeof key, "eval_%s_high", name);
    ses_json_member_real(w, key, s->high);
}

static bool print_json(const ses_likelihood_call *d, const ses_eval_task *task,
                       const ses_eval_likelihood_result *r, double seconds, ses_err *e)
{
    bool intervals = d->bootstrap->resamples > 0;
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "task", task->name);
    ses_json_member_int(w, "num_fewshot", r->shots);
    for (size_t i = 0; i < r->n_scores; i++) put_score(&r->score[i], intervals, w);
    if (intervals) ses_json_member_real(w, "eval_confidence", d->bootstrap->confidence / 100);
    if (!isnan(r->chance)) {
        ses_json_member_real(w, "chance", r->chance);
        ses_json_member_real(w, "majority", r->majority);
    }
    ses_json_member_int(w, "eval_samples", (int64_t)r->documents);
    ses_json_member_int(w, "requests", r->stats.requests);
    ses_json_member_int(w, "truncated", r->stats.truncated);
    ses_json_member_int(w, "tokens_scored", r->scored_tokens);
    ses_json_member_int(w, "tokens_read", r->stats.tokens_read);
    ses_json_member_real(w, "seconds", seconds);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

/* ---- the evaluation ---- */

static bool write_log(void *ctx, const char *line, size_t n, ses_err *e)
{
    return ses_file_writer_put(ctx, line, n, e);
}

static void show_progress(void *ctx, int64_t done, int64_t total)
{
    ses_progress *p = ctx;
    p->total = total;
    ses_progress_show(p, done);
}

static bool evaluate(const ses_likelihood_call *d, const ses_model *m, const ses_tokenizer *t,
                     const char *dir, const ses_eval_task *task, ses_eval_likelihood_result *r, ses_err *e)
{
    const ses_likelihood_args *a = d->args;
    ses_progress line = ses_progress_start(stderr, &d->call->err, d->call->quiet, "tokens", 0);
    ses_file_writer *log = a->log ? ses_file_writer_open(a->log, true, e) : NULL;
    if (a->log && !log) return false;
    ses_eval_likelihood_options o = {
        .prompts = { .file = d->file,
                     .fewshot = a->fewshot,
                     .shots = a->shots,
                     .seed = (uint64_t)d->bootstrap->seed,
                     .limit = a->limit },
        .bootstrap = { .resamples = d->bootstrap->resamples,
                       .level = d->bootstrap->confidence / 100,
                       .seed = (uint64_t)d->bootstrap->seed },
        .likelihood = { .pass_tokens = a->batch_tokens, .progress = show_progress, .ctx = &line },
        .log = log ? write_log : NULL,
        .log_ctx = log,
    };
    bool ok = ses_eval_likelihood_run(m, t, dir, task, &o, r, e) && (!log || ses_file_writer_commit(log, e));
    ses_file_writer_free(log);
    ses_progress_end(&line);
    return ok;
}

/* The folder with the tokenizer's files: of an adapter without them, the one of its base model. base: see
 * ses_model_options. Free it with free(). */
static char *tokenizer_dir(const char *name, const char *base, ses_err *e)
{
    char *dir = ses_model_resolve(name, NULL, e);
    if (!dir || !ses_model_is_adapter(dir)) return dir;
    char *config = ses_path_join(dir, "tokenizer_config.json", e);
    bool own = config && ses_path_exists(config);
    ses_free(config);
    if (own) return dir;
    char *below = base ? ses_model_resolve(base, NULL, e) : ses_model_base_dir(dir, NULL, e);
    free(dir);
    return below;
}

bool ses_eval_likelihood(const ses_likelihood_call *d, ses_err *e)
{
    ses_device_options o = ses_compute_device_options(d->compute);
    ses_eval_likelihood_result r;
    ses_eval_task *task = ses_eval_task_open(d->task, e);
    ses_device *dev = task ? ses_device_open(d->compute->device, &o, e) : NULL;
    const char *adapter = ses_first_adapter(d->adapters), *name = adapter ? adapter : d->dir;
    ses_model_options with = { .base = adapter ? d->dir : NULL };
    if (adapter) with.adapters = d->adapters->item + 1, with.n_adapters = d->adapters->n - 1;
    ses_model *m = dev ? ses_model_open(name, dev, &with, e) : NULL;
    char *dir = m ? tokenizer_dir(name, with.base, e) : NULL;
    ses_tokenizer *t = dir ? ses_tokenizer_open(dir, e) : NULL;
    double start = ses_seconds();
    bool ok = t && evaluate(d, m, t, dir, task, &r, e);
    double seconds = ses_seconds() - start;
    if (ok) ok = d->compute->json ? print_json(d, task, &r, seconds, e) : show(d, task, &r, seconds, e);
    ses_tokenizer_free(t);
    free(dir);
    ses_model_free(m);
    ses_device_free(dev);
    ses_eval_task_free(task);
    return ok;
}
