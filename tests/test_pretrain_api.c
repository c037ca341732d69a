/* sesame/pretrain.h: runs with and without an output folder, events, cancelling and resuming with the same
 * bits, result statistics, errors. */
#define _POSIX_C_SOURCE 200809L
#include "pretrain_fixture.h"

#include <math.h>
#include <sys/statvfs.h>

static bool disk_is_full;

/* Replaces that of the C library. */
int statvfs(const char *name, struct statvfs *s)
{
    (void)name;
    *s = (struct statvfs){ .f_blocks = 1, .f_frsize = 1 };
    return disk_is_full ? 0 : -1;
}

/* ---- a run and its events ---- */

typedef struct events {
    int count[SES_TRAINING_NOTICE + 1];
    int stop_after; /* steps; 0: never */
    bool stop_at_notice;
    int files;
} events;

static bool on_event(void *ctx, const ses_training_event *event)
{
    events *v = ctx;
    v->count[event->kind]++;
    if (v->stop_at_notice && event->kind == SES_TRAINING_NOTICE) return false;
    return !v->stop_after || v->count[SES_TRAINING_STEP] < v->stop_after;
}

static bool add_files(void *ctx, const char *dir, ses_err *e)
{
    ((events *)ctx)->files++;
    char *path = ses_path_join(dir, "note.txt", e);
    bool ok = path && ses_file_write(path, "x", 1, false, e);
    ses_free(path);
    return ok;
}

/* Sum of the absolute weights; NaN if the run failed. */
static double run(const ses_pretrain_options *o, int threads, ses_run_end *end, ses_pretrain_result *result)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = threads }, &e);
    ses_pretrain *p = dev ? ses_pretrain_new(o, dev, &e) : NULL;
    bool ok = p && ses_pretrain_run(p, end, &e);
    double sum = 0;
    CHECK_MSG(ok, "%s", e.msg);
    if (ok && result) *result = *ses_pretrain_result_of(p);
    const ses_store *s = ok ? ses_model_store(ses_pretrain_model(p)) : NULL;
    for (size_t i = 0; s && i < ses_store_count(s); i++) {
        const ses_tensor *x = ses_store_at(s, i)->tensor;
        for (int64_t k = 0; k < ses_count(x); k++) sum += (double)(1 + k % 7) * fabs((double)x->f[k]);
    }
    double value;
    ses_json_writer *w = ses_json_writer_new(0, NULL);
    ses_json_begin_object(w);
    if (ok) ses_pretrain_put_results(p, w);
    ses_json_end_object(w);
    CHECK(!ok || strstr(ses_json_writer_text(w, NULL, NULL), "\"train_loss\""));
    ses_json_writer_free(w);
    if (ok && (*end == SES_RUN_COMPLETE || *end == SES_RUN_WAS_COMPLETE))
        CHECK(ses_scores_find(ses_pretrain_result_of(p)->scores, "mlm_accuracy", &value));
    if (ok) CHECK(!ses_pretrain_run(p, end, &e) && strstr(e.msg, "started before"));
    ses_pretrain_free(p);
    ses_device_free(dev);
    return ok ? sum : NAN;
}

static void test_run(const pretrain_fixture *f)
{
    ses_run_end end;
    ses_pretrain_result r = { 0 };
    events v = { 0 };
    ses_pretrain_options o = pretrain_options(f);
    o.on_event = on_event, o.add_files = add_files, o.ctx = &v;
    double sum = run(&o, 1, &end, &r);
    CHECK(end == SES_RUN_COMPLETE && v.count[SES_TRAINING_STARTED] == 1 && v.count[SES_TRAINING_STEP] == 12);
    CHECK(v.count[SES_TRAINING_EVALUATED] == 2 && v.count[SES_TRAINING_EVALUATING] >= 2 && !v.files);
    CHECK(r.n_baselines == 1 && !strcmp(r.baseline[0].name, "mlm") && r.baseline[0].loss > 0);
    CHECK(isfinite(r.eval_loss) && r.pass_tokens > 0 && r.stats.updates == 6 && r.stats.tokens > 0);
    CHECK(run(&o, 2, &end, NULL) == sum);
    o.run.seed++;
    CHECK(run(&o, 1, &end, NULL) != sum);
}

/* A run that is cancelled after three batches, in the middle of an update, and resumed. */
static void test_resume(const pretrain_fixture *f)
{
    ses_run_end end;
    events v = { .stop_after = 3 };
    ses_pretrain_options o = pretrain_options(f);
    double whole = run(&o, 1, &end, NULL);
    o.on_event = on_event, o.add_files = add_files, o.ctx = &v;
    o.run.output = f->output;
    run(&o, 1, &end, NULL);
    CHECK(end == SES_RUN_STOPPED && v.count[SES_TRAINING_STEP] == 3 && !v.files);
    v = (events){ 0 };
    o.run.resume = true;
    CHECK(run(&o, 1, &end, NULL) == whole && end == SES_RUN_COMPLETE && v.count[SES_TRAINING_STEP] == 9);
    CHECK(v.count[SES_TRAINING_NOTICE] == 1 && v.files == 1);

    static const char *const names[] = { "config.json",        "model.safetensors",
                                         "tokenizer.json",     "README.md",
                                         "trainer_state.json", "all_results.json",
                                         "run.json",           "note.txt" };
    for (size_t i = 0; i < SES_LEN(names); i++) {
        char path[200];
        snprintf(path, sizeof path, "%s/%s", f->output, names[i]);
        CHECK_MSG(ses_path_exists(path), "%s", path);
    }
}

/* A complete run that is resumed on a full disk: the moving average of the weights, scores and figures. */
static void test_was_complete(const pretrain_fixture *f)
{
    ses_run_end end;
    ses_pretrain_result first = { 0 }, again = { 0 };
    events v = { .stop_at_notice = true };
    ses_pretrain_options o = pretrain_options(f);
    o.ema_decay = 0.5;
    o.run.output = f->output;
    o.run.overwrite = true;
    double sum = run(&o, 1, &end, &first);
    CHECK(end == SES_RUN_COMPLETE);
    o.run.overwrite = false, o.run.resume = true;
    disk_is_full = true;
    CHECK(run(&o, 1, &end, &again) == sum && end == SES_RUN_WAS_COMPLETE);
    disk_is_full = false;
    CHECK(again.eval_loss == first.eval_loss && again.stats.updates == 6 && again.stats.seconds > 0);
    CHECK(again.baseline[0].loss == first.baseline[0].loss);
    o.on_event = on_event, o.ctx = &v; /* the notice that it is complete is answered with false */
    run(&o, 1, &end, NULL);
    CHECK(end == SES_RUN_STOPPED && v.count[SES_TRAINING_NOTICE] == 1);
}

/* ---- lists and errors ---- */

static void test_lists(void)
{
    size_t n = 0, presets = 0;
    const char *description;
    bool is_auxiliary, found = false;
    for (const char *name; (name = ses_objective_name(n, &description, &is_auxiliary)); n++) {
        CHECK(*description);
        if (!strcmp(name, "nsp")) found = is_auxiliary;
    }
    while (ses_pretrain_preset_name(presets)) presets++;
    CHECK(n >= 18 && found && presets >= 15 && !strcmp(ses_objective_name(0, NULL, NULL), "mlm"));
}

static void fails(const ses_pretrain_options *o, ses_code code, const char *message)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    CHECK(!ses_pretrain_new(o, dev, NULL));
    CHECK(!ses_pretrain_new(o, dev, &e) && e.code == code);
    CHECK_MSG(strstr(e.msg, message), "\"%s\" lacks \"%s\"", e.msg, message);
    ses_device_free(dev);
}

static void test_errors(const pretrain_fixture *f)
{
    ses_pretrain_options o = pretrain_options(f);
    o.config = "x";
    fails(&o, SES_EUSAGE, "exactly one of preset, config and model");
    o = pretrain_options(f), o.n_corpora = 0;
    fails(&o, SES_EUSAGE, "at least one corpus");
    o = pretrain_options(f), o.tokenizer = NULL;
    fails(&o, SES_EUSAGE, "needs a tokenizer");
    o = pretrain_options(f), o.objectives = "mlm,tea";
    fails(&o, SES_EARG, "unknown objective \"tea\"");
    o = pretrain_options(f), o.lengths = "16:0.5,32:0.4";
    fails(&o, SES_EUSAGE, "the fractions add up to 0.9");
    o = pretrain_options(f), o.run.output = f->output;
    fails(&o, SES_EIO, "not empty");
    o = pretrain_options(f), o.teacher.model = f->files.dir;
    fails(&o, SES_EIO, "config.json");
}

/* A run that failed before its first step cannot be started again, and frees what it had opened. */
static void test_failed_start(const pretrain_fixture *f)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    ses_pretrain_options o = pretrain_options(f);
    o.run.optimizer = "fly";
    ses_pretrain *p = ses_pretrain_new(&o, dev, &e);
    CHECK(p && !ses_pretrain_run(p, NULL, &e) && strstr(e.msg, "fly"));
    e = (ses_err){ 0 };
    CHECK(p && !ses_pretrain_run(p, NULL, &e) && strstr(e.msg, "started before"));
    ses_pretrain_free(p);
    ses_device_free(dev);
}

int main(void)
{
    pretrain_fixture f;
    pretrain_begin(&f);
    test_run(&f);
    test_resume(&f);
    test_was_complete(&f);
    test_lists();
    test_errors(&f);
    test_failed_start(&f);
    pretrain_end(&f);
    return check_report();
}
