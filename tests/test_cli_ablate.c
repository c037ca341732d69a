/* Recipes of ablation studies as jobs, and tables of their results against SciPy 1.17. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/file.h"
#include "check.h"
#include "cli/ablate/ablate_show.h"
#include "cli/experiment/job_runner.h"
#include "cli/train/train_monitor.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_near(double got, double want)
{
    bool ok = fabs(got - want) <= 1e-9 * fmax(fabs(want), 1e-3);
    if (!ok) printf("    %.17g, expected %.17g\n", got, want);
    return ok;
}

typedef struct fixture {
    ses_call call;
    ses_ablate_args args;
    ses_ablate study;
    char path[64];
    ses_err e;
} fixture;

/* Reads a recipe and plans its jobs; the files in it exist. */
static bool open_study(fixture *f, const char *recipe)
{
    f->args.output = "/nonexistent/study";
    f->args.confidence = 95;
    f->args.jobs = 1;
    f->args.compute.isa = -1;
    f->args.compute.device = "cpu";
    f->call.args = &f->args;
    f->study = (ses_ablate){ .c = &f->call, .a = &f->args, .path = f->path };
    snprintf(f->path, sizeof f->path, "/tmp/test_cli_ablate-%d.json", (int)getpid());
    bool ok = ses_file_write(f->path, recipe, strlen(recipe), true, &f->e) &&
              ses_ablate_read(&f->study, &f->e) && ses_ablate_plan(&f->study, &f->e);
    unlink(f->path);
    if (!ok) printf("    %s\n", f->e.msg);
    return ok;
}

static void finish_job(ses_ablate_job *j, const char *key, double value)
{
    char text[120];
    int n = snprintf(text, sizeof text, "{\"results\": {\"%s\": %.17g, \"train_flops\": 2e15}}", key, value);
    j->record = ses_json_parse(text, (size_t)n, NULL);
    j->base.state = SES_JOB_DONE;
}

static bool has_word(const ses_ablate_job *j, const char *word)
{
    for (size_t i = 0; i < j->n_words; i++)
        if (!strcmp(j->word[i], word)) return true;
    return false;
}

#define COMMON                                                                                          \
    "\"common\": {\"corpus\": \"README.md\", \"tokenizer\": \"README.md\", \"preset\": \"bert-tiny\", " \
    "\"set\": \"a=1\"}"
#define TASK "{\"task\": \"classify\", \"train\": \"README.md\", \"eval\": \"README.md\"}"

/* ---- jobs ---- */

static void test_plan(void)
{
    fixture f = { 0 };
    CHECK(open_study(&f, "{" COMMON ", \"tune\": {\"lr\": 0.001, \"epochs\": 2}, \"pretrain-seeds\": [4, 9],"
                         "\"seeds\": 2, \"runs\": {\"x\": {\"set\": [\"b=2\"], \"preset\": \"bert-mini\"},"
                         "\"y\": {\"set\": null, \"tune\": {\"epochs\": 5}}, \"z\": {\"model\": \"models\", "
                         "\"pretrain\": false}}, \"tasks\": {\"t\": " TASK ", \"p\": {\"command\": "
                         "\"perplexity\", \"data\": \"README.md\"}}}"));
    const ses_ablate *s = &f.study;
    /* x and y: 2 x (pretraining, 2 seeds, perplexity); z: 2 seeds, perplexity */
    CHECK(s->n_jobs == 19 && s->n_runs == 3 && s->n_tasks == 2);
    const ses_ablate_job *x = &s->job[0], *t = &s->job[1], *second = &s->job[4], *y = &s->job[8],
                         *z = &s->job[16];
    CHECK(x->task == SIZE_MAX && x->base.after == SIZE_MAX && t->base.after == 0 &&
          s->job[3].base.after == 0);
    CHECK(has_word(x, "--set=a=1") && has_word(x, "--set=b=2")); /* lists grow */
    CHECK(has_word(x, "--preset=bert-mini") && !has_word(x, "--preset=bert-tiny"));
    CHECK(has_word(x, "--seed=4") && has_word(second, "--seed=9") && second->task == SIZE_MAX);
    CHECK(!has_word(y, "--set=a=1") && has_word(y, "--preset=bert-tiny")); /* null removes */
    CHECK(has_word(t, "--epochs=2") && has_word(t, "--lr=0.001") && has_word(t, "--seed=1"));
    CHECK(has_word(&s->job[9], "--epochs=5") && !has_word(&s->job[9], "--epochs=2"));
    CHECK(z->base.after == SIZE_MAX && z->task == 0 && has_word(z, "--model=models"));
    CHECK(!strcmp(second->dir, "/nonexistent/study/x,seed=9"));
    CHECK(!strcmp(s->job[5].dir, "/nonexistent/study/x,seed=9,tasks/t,seed=1"));
    CHECK(s->task[1].lower_is_better && !s->task[0].lower_is_better && s->n_averaged == 1);
    ses_ablate_free(&f.study);
}

/* ---- table ---- */

static const double score[4][3] = {
    { 0.61, 0.63, 0.62 }, { 0.58, 0.60, 0.575 }, { 0.66, 0.64, 0.65 }, { 0.585, 0.59, 0.60 }
};

static void test_cells(void)
{
    fixture f = { 0 };
    CHECK(open_study(&f, "{" COMMON
                         ", \"runs\": {\"a\": {}, \"b\": {}, \"c\": {}, \"d\": {}}, \"tasks\": {\"t\": " TASK
                         "}, \"published\": {\"a\": {\"t\": 80}, \"b\": {\"t\": 79}, \"c\": {\"t\": 75}, "
                         "\"d\": {\"t\": 70}}}"));
    ses_ablate *s = &f.study;
    ses_ablate_comparison c;
    CHECK(s->n_jobs == 16);
    for (size_t i = 0; i < s->n_jobs; i++)
        finish_job(&s->job[i], i % 4 ? "eval_accuracy" : "eval_mlm_loss",
                   i % 4 ? score[i / 4][i % 4 - 1] : 2);
    CHECK(ses_ablate_fill(s, &f.e) && s->n_columns == 1 && s->column[0].scale == 100);
    const ses_ablate_entry *b = ses_ablate_entry_at(s, 1, 0), *d = ses_ablate_entry_at(s, 3, 0);
    CHECK(b->n == 3 && is_near(b->interval.mean, 0.585) && is_near(b->median, 0.58) &&
          is_near(b->interval.low, 0.5521379469613578) && is_near(b->interval.high, 0.6178620530386422));
    CHECK(is_near(d->interval.mean, 0.5916666666666667) && is_near(d->median, 0.59) && d->published == 70);
    CHECK(is_near(s->costs[0].flops, 2e15) && isnan(s->costs[0].price));
    CHECK(ses_ablate_compare(s, 0, &c, &f.e) && c.n == 4 && c.n_pairs == 3 && fabs(c.spearman) < 1e-12);
    CHECK(is_near(c.pair[0].own.difference, 3.5) && is_near(c.pair[0].own.low, 0.7619336349967556) &&
          is_near(c.pair[0].own.high, 6.238066365003244) && is_near(c.pair[0].own.p, 0.024522474152268957) &&
          c.pair[0].order == SES_ORDER_SAME && c.pair[0].published == 1);
    CHECK(is_near(c.pair[1].own.low, -9.238066365003245) && is_near(c.pair[1].own.p, 0.003173987217621719) &&
          c.pair[1].order == SES_ORDER_DIFFERS);
    CHECK(is_near(c.pair[2].own.high, 7.906675157039685) && c.pair[2].order == SES_ORDER_SAME);
    CHECK(!strcmp(c.verdict, "differs: c above a (p = 0.021); c above b (p = 0.0032)"));
    char text[80];
    CHECK(!strcmp(ses_ablate_entry_text(s, 1, 0, "+-", text, sizeof text), "58.50 +-3.29"));
    for (size_t i = 6; i < 8; i++) { /* two seeds of b */
        ses_json_free(s->job[i].record), s->job[i].record = NULL;
        s->job[i].base.state = SES_JOB_FAILED;
    }
    s->n_columns = 0;
    CHECK(ses_ablate_fill(s, &f.e));
    CHECK(!strcmp(ses_ablate_entry_text(s, 1, 0, "+-", text, sizeof text), "58.00 (2 failed)"));
    ses_ablate_free(s);
}

/* Two pretrained models: the interval is over their means. A lower perplexity is better. */
static void test_models(void)
{
    static const double value[2][3] = { { 0.5, 0.6, 0.7 }, { 0.52, 0.66, 0.53 } };
    fixture f = { 0 };
    CHECK(open_study(
        &f, "{" COMMON ", \"runs\": {\"a\": {}, \"b\": {}}, \"pretrain-seeds\": 2, \"tasks\": {\"t\": " TASK
            ", \"u\": " TASK ", \"p\": {\"command\": \"perplexity\", \"data\": \"README.md\"}},"
            "\"published\": {\"a\": {\"p\": 5}, \"b\": {\"p\": 4}}, \"scores\": [\"mlm_loss\"]}"));
    ses_ablate *s = &f.study;
    ses_ablate_comparison c;
    for (size_t i = 0; i < s->n_jobs; i++) {
        ses_ablate_job *j = &s->job[i];
        const ses_ablate_task *t = ses_ablate_task_of(s, j);
        if (!t)
            finish_job(j, "eval_mlm_loss", 3 + (double)j->pretrain_seed);
        else if (t->tunes)
            finish_job(j, "eval_accuracy", value[j->pretrain_seed][j->seed] + (j->task ? 0.1 : 0));
        else
            finish_job(j, "perplexity", 10 * (double)(j->run + 1) + 0.5 * (double)j->pretrain_seed);
    }
    CHECK(ses_ablate_fill(s, &f.e) && s->n_columns == 5);
    const ses_ablate_entry *t = ses_ablate_entry_at(s, 0, 1), *mean = ses_ablate_entry_at(s, 0, 4);
    CHECK(t->n == 2 && t->results == 6 && is_near(t->value[0], 0.6) && is_near(t->value[1], 0.57));
    CHECK(is_near(t->median, 0.565) && is_near(t->interval.low, 0.39440692895738005) &&
          is_near(t->interval.high, 0.7755930710426199));
    CHECK(!strcmp(s->column[4].name, "mean") && is_near(mean->interval.mean, 63.5) && mean->results == 6);
    CHECK(is_near(ses_ablate_entry_at(s, 0, 0)->interval.mean, 3.5));
    CHECK(ses_ablate_compare(s, 3, &c, &f.e) && c.n == 2 && is_near(c.spearman, -1)); /* b is worse */
    CHECK(c.pair[0].better == 1 && c.pair[0].published == 1 && is_near(c.pair[0].own.difference, -10) &&
          c.pair[0].order == SES_ORDER_DIFFERS && strstr(c.verdict, "differs: a above b"));
    CHECK(!ses_ablate_compare(s, 1, &c, &f.e) && f.e.code == SES_OK);
    CHECK(!strcmp(s->job[2].base.name, "a, pretraining seed 1: t, seed 2"));
    ses_ablate_free(s);
}

/* Runs of some tasks: no jobs, no cells and no mean of the others. */
static void test_tasks_of_runs(void)
{
    fixture f = { 0 };
    f.args.tasks = "t,u";
    CHECK(open_study(
        &f, "{" COMMON ", \"runs\": {\"a\": {}, \"b\": {\"tasks\": [\"u\"]}, \"c\": {\"tasks\": []}, "
            "\"d\": {\"pretrain\": false, \"model\": \"models\", \"tasks\": [\"p\", \"t\"]}}, "
            "\"seeds\": 2, \"tasks\": {\"p\": {\"command\": \"perplexity\", \"data\": \"README.md\"}, "
            "\"t\": " TASK ", \"u\": " TASK "}, \"published\": {\"a\": {\"t\": 1}, \"b\": {\"t\": 2, "
            "\"mean\": 3}}}"));
    ses_ablate *s = &f.study;
    ses_ablate_comparison c;
    char text[80];
    /* a: pretraining and 2 x 2 seeds; b: pretraining and 2; c: pretraining; d: 2, without p of --tasks */
    CHECK(s->n_jobs == 11 && s->n_tasks == 2 && s->n_averaged == 2);
    CHECK(s->job[6].run == 1 && s->job[6].task == 1 && s->job[6].base.after == 5 && s->job[8].run == 2);
    CHECK(s->job[9].run == 3 && s->job[9].task == 0 && !ses_ablate_has_task(s, 3, 1));
    for (size_t i = 0; i < s->n_jobs; i++) finish_job(&s->job[i], "eval_accuracy", 0.5);
    ses_json_free(s->job[7].record), s->job[7].record = NULL;
    ses_json_free(s->job[10].record), s->job[10].record = NULL;
    s->job[7].base.state = s->job[10].base.state = SES_JOB_FAILED;
    CHECK(ses_ablate_fill(s, &f.e) && s->n_columns == 3 && s->column[2].kind == SES_COLUMN_MEAN);
    CHECK(ses_ablate_has_column(s, 0, 2) && !ses_ablate_has_column(s, 1, 2) &&
          ses_ablate_has_column(s, 1, 1));
    static const char *const want[4][3] = { { "50.00 +-0.00", "50.00 +-0.00", "50.00 +-0.00" },
                                            { "-", "50.00 (1 failed)", "-" },
                                            { "-", "-", "-" },
                                            { "50.00 (1 failed)", "-", "-" } };
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 3; k++) {
            const char *got = ses_ablate_entry_text(s, i, k, "+-", text, sizeof text);
            CHECK(!strcmp(got, want[i][k]) || (printf("    %zu, %zu: %s\n", i, k, got), false));
        }
    CHECK(!ses_ablate_compare(s, 0, &c, &f.e) && f.e.code == SES_OK); /* b has a published score only */
    ses_ablate_free(s);
}

static void test_median(void)
{
    double odd[] = { 3, 1, 2 }, even[] = { 4, 1, 3, 2 };
    CHECK(ses_ablate_median(odd, 3) == 2 && ses_ablate_median(even, 4) == 2.5);
    CHECK(isnan(ses_ablate_median(odd, 0)));
    CHECK(ses_ablate_lower_is_better("mlm_loss") && ses_ablate_lower_is_better("clm_perplexity") &&
          !ses_ablate_lower_is_better("accuracy"));
}

/* ---- the runner ---- */

typedef struct one_job {
    ses_planned_job job;
    bool waits; /* its process ends, and a signal comes before the runner sees its end */
} one_job;

static ses_planned_job *job_of(void *ctx, size_t i)
{
    one_job *x = ctx;
    siginfo_t info;
    if (i == 0 && x->waits) {
        waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
        ses_train_monitor_set_signal(SIGINT);
        x->waits = false;
    }
    return &x->job;
}

static bool start_job(void *ctx, size_t i, int *pid, ses_err *e)
{
    (void)i, (void)e;
    ((one_job *)ctx)->waits = true;
    *pid = (int)fork();
    if (!*pid) _exit(1);
    return *pid > 0;
}

static bool end_job(void *ctx, size_t i, bool stopping, int *pid, ses_err *e)
{
    (void)ctx, (void)i, (void)stopping, (void)pid;
    return ses_fail(e, SES_EARG, "its process has failed");
}

static char *log_of(void *ctx, size_t i, ses_err *e)
{
    (void)ctx, (void)i;
    return ses_strdup("/nonexistent/log", e);
}

/* Ctrl-C ends the children, too: they have not failed. */
static void test_stopped_job(void)
{
    one_job x = { .job = { .name = "x", .after = SIZE_MAX } };
    ses_call c = { .quiet = true };
    ses_job_runner r = { .c = &c,
                         .noun = "jobs",
                         .n = 1,
                         .at_once = 2,
                         .ctx = &x,
                         .job = job_of,
                         .start = start_job,
                         .end = end_job,
                         .log = log_of };
    ses_err e = { 0 };
    bool stopped = false;
    CHECK(ses_job_runner_run(&r, &stopped, &e) && stopped);
    CHECK(x.job.state == SES_JOB_OPEN && !*x.job.reason);
    ses_train_monitor_set_signal(0);
}

int main(void)
{
    test_stopped_job();
    test_plan();
    test_cells();
    test_models();
    test_tasks_of_runs();
    test_median();
    return check_report();
}
