/* The trainer: the same bits on any number of threads and after any interruption; checkpoints that are
 * complete or absent; errors. */
#define _DEFAULT_SOURCE
#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "check.h"
#include "examples_fixture.h"
#include "io/manifest.h"
#include "model_fixture.h"
#include "trainer_fixture.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

/* The expected result: an uninterrupted run without a folder. */
static ses_real *undisturbed(int threads, size_t *n, watch *w)
{
    ses_err e = { 0 };
    run r;
    ses_run_end end;
    run_prepare(&r, threads, NULL);
    CHECK_MSG(run_start(&r, &e), "%s", e.msg);
    CHECK(ses_trainer_total_updates(r.trainer) == UPDATES);
    *w = (watch){ .stop_at = -1, .r = &r };
    CHECK_MSG(ses_trainer_run(r.trainer, &(ses_trainer_hooks){ .ctx = w, .on_step = stepped }, &end, &e),
              "%s", e.msg);
    CHECK(end == SES_RUN_COMPLETE && w->batches == BATCHES);
    CHECK(ses_trainer_state(r.trainer)->updates == UPDATES);
    ses_real *all = bits(&r, n);
    run_free(&r);
    return all;
}

static void test_threads(void)
{
    size_t n, m;
    watch a, b;
    ses_real *one = undisturbed(1, &n, &a), *three = undisturbed(3, &m, &b);
    CHECK(n == m && !memcmp(one, three, n));
    CHECK(!memcmp(a.losses, b.losses, sizeof a.losses));
    CHECK(fabs(a.losses[0] - a.losses[9]) > 1e-3);
    free(one);
    free(three);
}

/* Stopped before each batch in turn, also between the two batches of an update; then resumed. */
static void test_resume(void)
{
    size_t n, m;
    watch whole, w;
    ses_real *want = undisturbed(1, &n, &whole);
    for (int64_t at = 0; at < BATCHES; at++) {
        ses_err e = { 0 };
        run r;
        ses_run_end end;
        ses_resume_result from;
        run_prepare(&r, 1, folder);
        CHECK_MSG(run_start(&r, &e), "%s", e.msg);
        CHECK(ses_trainer_resume(r.trainer, &from, &e) && !from.found);
        w = (watch){ .stop_at = at, .r = &r };
        CHECK_MSG(ses_trainer_run(r.trainer,
                                  &(ses_trainer_hooks){ .ctx = &w, .on_step = stepped, .should_stop = stop },
                                  &end, &e),
                  "%s", e.msg);
        CHECK(end == SES_RUN_STOPPED && w.batches == at);
        run_free(&r);

        run_prepare(&r, 2, folder);
        CHECK_MSG(run_start(&r, &e), "%s", e.msg);
        CHECK_MSG(ses_trainer_resume(r.trainer, &from, &e) && from.found && !*from.skipped, "%s", e.msg);
        CHECK(ses_trainer_state(r.trainer)->batches == at);
        w.stop_at = -1, w.r = &r;
        CHECK_MSG(ses_trainer_run(r.trainer,
                                  &(ses_trainer_hooks){ .ctx = &w, .on_step = stepped, .should_stop = stop },
                                  &end, &e),
                  "%s", e.msg);
        ses_real *got = bits(&r, &m);
        CHECK_MSG(n == m && !memcmp(want, got, n), "resumed at batch %d", (int)at);
        CHECK(!memcmp(w.losses, whole.losses, sizeof w.losses));
        free(got);
        run_free(&r);
        empty(folder);
    }
    free(want);
}

static void spoil(const char *checkpoint, const char *file, long at)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s/%s", folder, checkpoint, file);
    FILE *f = fopen(path, "r+b");
    CHECK(f != NULL);
    if (!f) return;
    fseek(f, at, SEEK_SET);
    int c = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(c ^ 1, f);
    fclose(f);
}

static bool there(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return ses_path_exists(path);
}

/* Runs to the end, saving every second update. */
static void fill_folder(void)
{
    ses_err e = { 0 };
    run r;
    ses_run_end end;
    run_prepare(&r, 1, folder);
    CHECK_MSG(run_start(&r, &e) && ses_trainer_run(r.trainer, &(ses_trainer_hooks){ 0 }, &end, &e), "%s",
              e.msg);
    run_free(&r);
}

static void test_damage(void)
{
    size_t n, m;
    watch w;
    ses_real *want = undisturbed(1, &n, &w);
    fill_folder();
    CHECK(there("checkpoint-2") && there("checkpoint-4") && there("checkpoint-6"));
    spoil("checkpoint-6", "optimizer.safetensors", 3000);
    spoil("checkpoint-4", "trainer_state.json", 40);
    ses_err e = { 0 };
    run r;
    ses_resume_result from;
    ses_run_end end;
    run_prepare(&r, 1, folder);
    CHECK(run_start(&r, &e));
    CHECK_MSG(ses_trainer_resume(r.trainer, &from, &e) && from.found, "%s", e.msg);
    CHECK(strstr(from.dir, "checkpoint-2") &&
          strstr(from.skipped, "checkpoint-6: optimizer.safetensors is damaged"));
    CHECK(strstr(from.skipped, "checkpoint-4: trainer_state.json is damaged"));
    CHECK_MSG(ses_trainer_run(r.trainer, &(ses_trainer_hooks){ 0 }, &end, &e), "%s",
              e.msg); /* replaces the damaged ones */
    ses_real *got = bits(&r, &m);
    CHECK(n == m && !memcmp(want, got, n));
    free(got);
    run_free(&r);
    run_prepare(&r, 1, folder);
    CHECK(run_start(&r, &e) && ses_trainer_resume(r.trainer, &from, &e) && strstr(from.dir, "checkpoint-6"));
    run_free(&r);

    spoil("checkpoint-6", "model.safetensors", 5000);
    spoil("checkpoint-4", "manifest.json", 1);
    char path[128];
    snprintf(path, sizeof path, "%s/checkpoint-2/config.json", folder);
    CHECK(truncate(path, 10) == 0);
    run_prepare(&r, 1, folder);
    CHECK(run_start(&r, &e));
    CHECK(!ses_trainer_resume(r.trainer, &from, &e) && strstr(e.msg, "no intact checkpoint") &&
          strstr(e.msg, "config.json has 10 bytes; expected"));
    run_free(&r);
    empty(folder);
    free(want);
}

/* A run that no disk can hold fails before it starts. */
static void test_disk(void)
{
    ses_err e = { 0 };
    run r;
    run_prepare(&r, 1, folder);
    CHECK(run_start(&r, &e));
    CHECK_MSG(ses_trainer_check_disk(r.trainer, true, &e), "%s", e.msg);
    run_free(&r);
    run_prepare(&r, 1, folder);
    r.o.updates = r.o.keep_checkpoints = (int64_t)1 << 50;
    CHECK(run_start(&r, &e));
    CHECK(!ses_trainer_check_disk(r.trainer, true, &e) && e.code == SES_EIO);
    CHECK_MSG(strstr(e.msg, folder) && strstr(e.msg, "of disk space"), "%s", e.msg);
    e = (ses_err){ 0 };
    run_free(&r);
    run_prepare(&r, 1, folder); /* without evaluations: a checkpoint when stopped or at the end */
    r.o.updates = r.o.keep_checkpoints = (int64_t)1 << 50;
    r.o.save_every = -1;
    CHECK(run_start(&r, &e));
    CHECK_MSG(ses_trainer_check_disk(r.trainer, false, &e), "%s", e.msg);
    run_free(&r);
    empty(folder);
}

/* save_every 0 saves at the end of each epoch if evaluate is NULL. */
static void test_saved_epochs(void)
{
    size_t n, m;
    ses_err e = { 0 };
    watch w;
    run r;
    ses_run_end end;
    ses_real *want = undisturbed(1, &n, &w);
    run_prepare(&r, 1, folder);
    r.o.save_every = r.o.eval_every = 0;
    CHECK(run_start(&r, &e));
    CHECK_MSG(ses_trainer_run(r.trainer, &(ses_trainer_hooks){ .ctx = &w }, &end, &e), "%s", e.msg);
    CHECK(there("checkpoint-3") && there("checkpoint-6") && !there("checkpoint-2"));
    ses_real *all = bits(&r, &m);
    CHECK(n == m && !memcmp(all, want, n));
    free(all);
    free(want);
    run_free(&r);
    empty(folder);
}

/* Changes the last "key" of a checkpoint's state and updates the manifest. */
static void rewrite(const char *checkpoint, const char *key, const char *value)
{
    ses_err e = { 0 };
    char path[256], name[64];
    size_t n;
    snprintf(path, sizeof path, "%s/%s/trainer_state.json", folder, checkpoint);
    snprintf(name, sizeof name, "\"%s\": ", key);
    char *text = ses_file_read(path, 1 << 20, &n, &e), *at = NULL, *out = malloc(n + 256);
    for (char *next = text; next && (next = strstr(next, name)); next++) at = next + strlen(name);
    CHECK_MSG(at != NULL, "%s has no %s", path, key);
    if (at) {
        int len = snprintf(out, n + 256, "%.*s%s%s", (int)(at - text), text, value, at + strcspn(at, ",\n"));
        CHECK(ses_file_write(path, out, (size_t)len, true, &e));
    }
    free(out);
    ses_free(text);
    snprintf(path, sizeof path, "%s/%s/manifest.json", folder, checkpoint);
    CHECK(unlink(path) == 0);
    snprintf(path, sizeof path, "%s/%s", folder, checkpoint);
    CHECK_MSG(ses_manifest_write(path, &e), "%s", e.msg);
}

/* Counters that no run can reach. */
static void test_counters(void)
{
    static const char *const bad[][2] = {
        { "index", "-1" },        { "index", "6" },     { "waiting", "-1" },     { "waiting", "2" },
        { "updates", "-1" },      { "updates", "7" },   { "epoch", "-1" },       { "epoch", "7" },
        { "batches", "-1" },      { "tokens", "-1" },   { "sequences", "-1" },   { "worse", "-1" },
        { "evaluated", "-2" },    { "evaluated", "7" }, { "best_update", "-2" }, { "best_update", "7" },
        { "waiting_loss", "{}" }, { "index", "\"1\"" },
    };
    fill_folder();
    for (size_t i = 0; i < SES_LEN(bad); i++) {
        ses_err e = { 0 };
        run r;
        ses_resume_result from;
        ses_run_end end;
        rewrite("checkpoint-6", bad[i][0], bad[i][1]);
        run_prepare(&r, 1, folder);
        CHECK(run_start(&r, &e));
        CHECK_MSG(ses_trainer_resume(r.trainer, &from, &e) && strstr(from.dir, "checkpoint-4"),
                  "%s %s: %s %s", bad[i][0], bad[i][1], from.dir, e.msg);
        CHECK_MSG(strstr(from.skipped, "checkpoint-6: trainer_state.json: ") &&
                      strstr(from.skipped, bad[i][0]),
                  "%s", from.skipped);
        CHECK_MSG(ses_trainer_run(r.trainer, &(ses_trainer_hooks){ 0 }, &end, &e), "%s", e.msg);
        CHECK(there("checkpoint-6") && ses_trainer_state(r.trainer)->updates == UPDATES);
        run_free(&r);
    }
    empty(folder);
}

/* A damaged checkpoint with a higher number does not displace newer ones. */
static void test_passed_over(void)
{
    ses_err e = { 0 };
    run r;
    ses_resume_result from;
    fill_folder();
    spoil("checkpoint-6", "model.safetensors", 5000);
    run_prepare(&r, 1, folder);
    r.o.keep_checkpoints = 1;
    CHECK(run_start(&r, &e) && ses_trainer_resume(r.trainer, &from, &e) && strstr(from.dir, "checkpoint-4"));
    CHECK(there("checkpoint-6.damaged") && !there("checkpoint-6"));
    for (ses_step_result s; ses_trainer_state(r.trainer)->updates < 5;)
        CHECK(ses_trainer_step(r.trainer, &s, &e));
    CHECK_MSG(ses_trainer_save(r.trainer, &e), "%s", e.msg);
    CHECK(there("checkpoint-5") && !there("checkpoint-4"));
    run_free(&r);

    run_prepare(&r, 1, folder); /* a new run in the same folder */
    r.o.keep_checkpoints = 1;
    CHECK(run_start(&r, &e));
    for (ses_step_result s; ses_trainer_state(r.trainer)->updates < 1;)
        CHECK(ses_trainer_step(r.trainer, &s, &e));
    CHECK(ses_trainer_save(r.trainer, &e) && there("checkpoint-1"));
    CHECK(ses_trainer_delete_checkpoints(r.trainer, &e) && !there("checkpoint-6.damaged") &&
          !there("checkpoint-5"));
    run_free(&r);
    empty(folder);
}

static void test_settings(void)
{
    ses_err e = { 0 };
    run r;
    ses_resume_result from;
    fill_folder();
    run_prepare(&r, 1, folder);
    r.o.settings = "{\"lr\": 0.02}";
    CHECK(run_start(&r, &e) && !ses_trainer_resume(r.trainer, &from, &e));
    CHECK_MSG(strstr(e.msg, "started with lr 0.01, not 0.02"), "%s", e.msg);
    run_free(&r);
    ses_err_clear(&e);
    run_prepare(&r, 1, folder);
    r.o.settings = "{}"; /* a setting that is left out */
    CHECK(run_start(&r, &e) && !ses_trainer_resume(r.trainer, &from, &e));
    CHECK_MSG(strstr(e.msg, "started with lr 0.01, not null"), "%s", e.msg);
    run_free(&r);
    ses_err_clear(&e);
    run_prepare(&r, 1, folder);
    r.o.seed = 78;
    CHECK(run_start(&r, &e) && !ses_trainer_resume(r.trainer, &from, &e));
    CHECK_MSG(strstr(e.msg, "started with seed 77, not 78"), "%s", e.msg);
    run_free(&r);
    for (int other = 0; other < 2; other++) { /* equal counts of examples and tokens, one label differs */
        ses_err_clear(&e);
        run_prepare(&r, 1, folder);
        ses_dataset *d = ses_dataset_new(SES_TARGET_CLASS, 0, 1, &e);
        for (int64_t i = 0; i < EXAMPLES; i++) {
            ses_sequence x = ses_dataset_at(r.data, i);
            if (i == 5) x.label = (x.label + other) % 3;
            x.origin += 100; /* another file with the same content */
            CHECK(ses_dataset_add(d, &x, &e));
        }
        ses_batches *b = ses_batches_new(d, &(ses_batching){ .max_examples = BATCH, .seed = 3 }, &e);
        r.o.source = ses_batches_source(b);
        CHECK(run_start(&r, &e) && ses_trainer_resume(r.trainer, &from, &e) == !other);
        CHECK_MSG(!other || strstr(e.msg, "started with other training data"), "%s", e.msg);
        run_free(&r);
        ses_batches_free(b);
        ses_dataset_free(d);
    }
    CHECK(there("checkpoint-6")); /* kept: not damaged */
    empty(folder);
}

static void test_lock(void)
{
    ses_err e = { 0 };
    run a, b;
    run_prepare(&a, 1, folder);
    run_prepare(&b, 1, folder);
    CHECK(run_start(&a, &e));
    CHECK(!run_start(&b, &e) && strstr(e.msg, "locked by another run (process "));
    ses_trainer_free(a.trainer);
    a.trainer = NULL;
    ses_err_clear(&e);
    CHECK_MSG(run_start(&b, &e), "%s", e.msg);
    run_free(&a);
    run_free(&b);
    empty(folder);
}

/* Killed at any moment: the checkpoints are complete, and a run resumes from them. */
static void test_kill(void)
{
    for (int i = 0; i < 6; i++) {
        pid_t child = fork();
        if (child == 0) {
            ses_err e = { 0 };
            run r;
            ses_run_end end;
            run_prepare(&r, 1, folder);
            r.o.save_every = 1;
            r.o.updates = 1000000;
            if (!run_start(&r, &e)) _exit(1);
            ses_trainer_run(r.trainer, &(ses_trainer_hooks){ 0 }, &end, &e);
            _exit(2);
        }
        usleep((useconds_t)(60000 + 37000 * i));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        ses_err e = { 0 };
        run r;
        ses_resume_result from;
        run_prepare(&r, 1, folder);
        r.o.updates = 1000000;
        CHECK_MSG(run_start(&r, &e), "%s", e.msg);
        CHECK_MSG(ses_trainer_resume(r.trainer, &from, &e) && !*from.skipped, "%s %s", e.msg, from.skipped);
        if (from.found) CHECK(ses_trainer_state(r.trainer)->updates > 0);
        CHECK_MSG(ses_trainer_save(r.trainer, &e), "%s",
                  e.msg); /* removes the leftovers of the killed process */
        run_free(&r);
        char command[160];
        snprintf(command, sizeof command, "test -z \"$(find '%s' -name '.sesame-*')\"", folder);
        CHECK(system(command) == 0);
        empty(folder);
    }
}

/* Killed while a checkpoint replaces another: the old one is restored. */
static void test_replace(void)
{
    ses_err e = { 0 };
    run r;
    ses_resume_result from;
    char is[128], was[128];
    fill_folder();
    snprintf(is, sizeof is, "%s/checkpoint-6", folder);
    snprintf(was, sizeof was, "%s/.sesame-old-checkpoint-6", folder);
    CHECK(rename(is, was) == 0);
    run_prepare(&r, 1, folder);
    CHECK_MSG(run_start(&r, &e) && ses_trainer_resume(r.trainer, &from, &e), "%s", e.msg);
    CHECK(strstr(from.dir, "checkpoint-6") && there("checkpoint-6") && !ses_path_exists(was));
    CHECK(mkdir(was, 0777) == 0); /* and while the old one was removed */
    CHECK_MSG(ses_trainer_save(r.trainer, &e), "%s", e.msg);
    CHECK(there("checkpoint-6") && !ses_path_exists(was));
    run_free(&r);
    CHECK(mkdir(was, 0777) == 0);
    run_prepare(&r, 1, folder);
    CHECK_MSG(run_start(&r, &e) && ses_trainer_resume(r.trainer, &from, &e), "%s", e.msg);
    CHECK(strstr(from.dir, "checkpoint-6") && !*from.skipped && !ses_path_exists(was));
    run_free(&r);
    empty(folder);
}

/* Disk full: the previous checkpoint stays, and no incomplete file is left. */
static void test_full(void)
{
    ses_err e = { 0 };
    run r;
    ses_step_result s;
    ses_resume_result from;
    struct rlimit was, small;
    getrlimit(RLIMIT_FSIZE, &was);
    signal(SIGXFSZ, SIG_IGN);
    run_prepare(&r, 1, folder);
    CHECK(run_start(&r, &e) && ses_trainer_step(r.trainer, &s, &e) && ses_trainer_step(r.trainer, &s, &e));
    CHECK_MSG(ses_trainer_save(r.trainer, &e), "%s", e.msg);
    CHECK(ses_trainer_step(r.trainer, &s, &e) && ses_trainer_step(r.trainer, &s, &e));
    small = was;
    small.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &small);
    bool saved = ses_trainer_save(r.trainer, &e);
    setrlimit(RLIMIT_FSIZE, &was);
    CHECK(!saved && strstr(e.msg, "checkpoint of update 2"));
    CHECK(there("checkpoint-1") && !there("checkpoint-2"));
    ses_err_clear(&e);
    CHECK(ses_trainer_save(r.trainer, &e) && there("checkpoint-2")); /* space is available again */
    run_free(&r);
    run_prepare(&r, 1, folder);
    CHECK(run_start(&r, &e) && ses_trainer_resume(r.trainer, &from, &e) && strstr(from.dir, "checkpoint-2"));
    run_free(&r);
    empty(folder);
}

static void test_nan(void)
{
    ses_err e = { 0 };
    run r;
    ses_step_result s;
    run_prepare(&r, 1, NULL);
    CHECK(run_start(&r, &e) && ses_trainer_step(r.trainer, &s, &e));
    size_t last = ses_store_count(ses_model_store(r.model)) - 2; /* classify.out.weight */
    ses_store_at(ses_model_store(r.model), last)->tensor->f[3] = NAN;
    CHECK(!ses_trainer_step(r.trainer, &s, &e));
    CHECK_MSG(strstr(e.msg, "update 1, epoch 1, batch 2 (lines ") && strstr(e.msg, "loss is nan") &&
                  strstr(e.msg, "in the weights of \"classifier.weight\""),
              "%s", e.msg);
    run_free(&r);
    ses_err_clear(&e);
    run_prepare(&r, 1, NULL);
    r.o.updates = r.o.epochs = 0;
    CHECK(!run_start(&r, &e) && strstr(e.msg, "0 updates"));
    run_free(&r);
}

/* The first batch's loss with smoothed labels, by the formula over its logits. */
static void test_smoothing(void)
{
    enum { LABELS = 3 };
    static const double share = 0.2;
    ses_err e = { 0 };
    run r;
    ses_step_result s;
    ses_batch b;
    ses_outputs out;
    double want = 0;
    run_prepare(&r, 1, NULL);
    r.o.no_dropout = true;
    r.o.label_smoothing = share;
    ses_tape *t = ses_tape_new(r.dev, NULL, &e);
    CHECK(r.o.source.batch(r.o.source.ctx, 0, 0, &b, &e) &&
          ses_model_forward(r.model, t, &b, &(ses_output_request){ .logits = true }, &out, &e));
    for (int64_t i = 0; i < b.seqs; i++) {
        const ses_real *x = out.item[0].tensor->f + i * LABELS;
        double lse = log(exp((double)x[0]) + exp((double)x[1]) + exp((double)x[2]));
        double mean = lse - ((double)x[0] + (double)x[1] + (double)x[2]) / LABELS;
        want += ((1 - share) * (lse - (double)x[b.labels[i]]) + share * mean) / (double)b.seqs;
    }
    CHECK(run_start(&r, &e) && ses_trainer_step(r.trainer, &s, &e));
    CHECK_MSG(fabs(s.loss - want) < 1e-6, "%.9g, not %.9g", s.loss, want);
    ses_tape_free(t);
    run_free(&r);
}

/* Weights of classes: sum(w nll) / sum(w), as CrossEntropyLoss(weight) of PyTorch. */
static void test_class_weights(void)
{
    enum { LABELS = 3 };
    static const double weight[LABELS] = { 0.5, 2, 0.25 };
    ses_err e = { 0 };
    run r;
    ses_step_result s;
    ses_batch b;
    ses_outputs out;
    double sum = 0, weights = 0, first = 0;
    run_prepare(&r, 1, NULL);
    r.o.no_dropout = true;
    r.o.class_weights = weight;
    ses_tape *t = ses_tape_new(r.dev, NULL, &e);
    CHECK(r.o.source.batch(r.o.source.ctx, 0, 0, &b, &e) &&
          ses_model_forward(r.model, t, &b, &(ses_output_request){ .logits = true }, &out, &e));
    for (int64_t i = 0; i < b.seqs; i++) {
        const ses_real *x = out.item[0].tensor->f + i * LABELS;
        double lse = log(exp((double)x[0]) + exp((double)x[1]) + exp((double)x[2]));
        sum += weight[b.labels[i]] * (lse - (double)x[b.labels[i]]);
        weights += weight[b.labels[i]];
    }
    CHECK(run_start(&r, &e) && ses_trainer_step(r.trainer, &s, &e));
    CHECK_MSG(fabs(s.loss - sum / weights) < 1e-6, "%.9g, not %.9g", s.loss, sum / weights);
    first = s.loss;
    for (int i = 0; i < 30; i++) CHECK(ses_trainer_step(r.trainer, &s, &e));
    CHECK_MSG(s.loss < first, "%.9g after 30 steps, %.9g before", s.loss, first); /* it has gradients */
    ses_tape_free(t);
    run_free(&r);
}

static void test_early(void)
{
    ses_err e = { 0 };
    run r;
    ses_run_end end;
    run_prepare(&r, 1, folder);
    r.o.eval_every = 1;
    r.o.save_every = -1;
    r.o.patience = 2;
    r.o.keep_checkpoints = 1;
    CHECK(run_start(&r, &e));
    watch w = { .stop_at = -1, .r = &r, .metric = { 0.5, 0.7, 0.6, 0.7, 0.9 } };
    CHECK_MSG(ses_trainer_run(r.trainer, &(ses_trainer_hooks){ .ctx = &w, .evaluate = evaluate }, &end, &e),
              "%s", e.msg);
    CHECK(end == SES_RUN_EARLY_STOPPED && w.n_eval == 4);
    const ses_train_state *at = ses_trainer_state(r.trainer);
    CHECK(at->updates == 4 && at->best_update == 2 && at->best == 0.7);
    CHECK(there("checkpoint-2") && !there("checkpoint-1") &&
          strstr(ses_trainer_best_dir(r.trainer), "checkpoint-2"));
    size_t n, m;
    ses_real *best = bits(&r, &n);
    run_free(&r);
    empty(folder);

    run_prepare(&r, 1, NULL); /* compare with the weights of update 2 */
    CHECK(run_start(&r, &e));
    for (ses_step_result s; ses_trainer_state(r.trainer)->updates < 2;)
        CHECK(ses_trainer_step(r.trainer, &s, &e));
    ses_real *two = bits(&r, &m);
    CHECK(!memcmp(best, two, (size_t)ses_store_element_count(ses_model_store(r.model)) * sizeof *two));
    free(best);
    free(two);
    run_free(&r);
}

/* A run whose second evaluation is the best, stopped after 3 updates and resumed in `dir`. */
static void begin_best(run *r, watch *w, const char *dir, const char *named)
{
    ses_err e = { 0 };
    ses_run_end end = SES_RUN_COMPLETE;
    ses_resume_result from;
    const ses_trainer_hooks h = { .ctx = w, .should_stop = stop, .evaluate = evaluate };
    run_prepare(r, 1, folder);
    r->o.eval_every = 1, r->o.save_every = 0, r->o.keep_checkpoints = 1;
    *w = (watch){ .stop_at = 5, .r = r, .metric = { 0.5, 0.7, 0.6, 0.4, 0.3, 0.2 } };
    CHECK_MSG(run_start(r, &e) && ses_trainer_run(r->trainer, &h, &end, &e), "%s", e.msg);
    CHECK(end == SES_RUN_STOPPED && there("checkpoint-2") && there("checkpoint-3"));
    run_free(r);
    if (named) rewrite("checkpoint-3", "best_model_checkpoint", named);
    run_prepare(r, 1, dir);
    r->o.eval_every = 1, r->o.save_every = 0, r->o.keep_checkpoints = 1;
    w->stop_at = -1;
    CHECK(run_start(r, &e));
    CHECK_MSG(ses_trainer_resume(r->trainer, &from, &e) && from.found, "%s", e.msg);
    bool good = !named || strstr(named, "/checkpoint-2");
    CHECK_MSG(good ? !*from.skipped : strstr(from.skipped, "\"best_model_checkpoint\" is ") != NULL, "%s",
              from.skipped);
}

/* The best checkpoint is kept if the folder is opened by another path. */
static void test_best_moved(void)
{
    static const char *const hostile[] = { "\"/etc/checkpoint-1\"", "\"..\"", "\"\"", "\"x/../\"" };
    ses_err e = { 0 };
    char path[128];
    run r;
    watch w;
    ses_run_end end;
    const ses_trainer_hooks h = { .ctx = &w, .should_stop = stop, .evaluate = evaluate };
    snprintf(path, sizeof path, "%s/.", folder);
    for (int i = 0; i < 2; i++) {
        begin_best(&r, &w, path, i ? "\"/elsewhere/checkpoint-2\"" : NULL);
        CHECK_MSG(ses_trainer_run(r.trainer, &h, &end, &e), "%s", e.msg);
        CHECK(there("checkpoint-2") && there("checkpoint-6") && !there("checkpoint-3"));
        const char *best = ses_trainer_best_dir(r.trainer);
        CHECK(best && !strncmp(best, path, strlen(path)) && strstr(best, "/checkpoint-2"));
        CHECK(!ses_trainer_restore_error(r.trainer));
        run_free(&r);
        empty(folder);
    }
    for (size_t i = 0; i < SES_LEN(hostile); i++) {
        begin_best(&r, &w, path, hostile[i]);
        CHECK(ses_trainer_state(r.trainer)->updates == 2 &&
              !strncmp(ses_trainer_best_dir(r.trainer), path, strlen(path)));
        run_free(&r);
        empty(folder);
    }
}

/* If the best checkpoint is damaged, the last weights stay, and the error is reported. */
static void test_best_lost(void)
{
    ses_err e = { 0 };
    run r;
    watch w, whole;
    ses_run_end end;
    size_t n, m;
    ses_real *want = undisturbed(1, &n, &whole);
    begin_best(&r, &w, folder, NULL);
    spoil("checkpoint-2", "model.safetensors", 5000);
    CHECK_MSG(ses_trainer_run(r.trainer, &(ses_trainer_hooks){ .ctx = &w, .evaluate = evaluate }, &end, &e),
              "%s", e.msg);
    CHECK(end == SES_RUN_COMPLETE && !ses_trainer_best_dir(r.trainer));
    const char *lost = ses_trainer_restore_error(r.trainer);
    CHECK_MSG(lost && strstr(lost, "checkpoint-2: model.safetensors is damaged"), "%s", lost ? lost : "");
    ses_real *got = bits(&r, &m);
    CHECK(n == m && !memcmp(want, got, n));
    free(want);
    free(got);
    run_free(&r);
    empty(folder);
}

/* Cancels the second evaluation. */
static bool evaluate_broken(void *ctx, double *metric, ses_err *e)
{
    watch *w = ctx;
    if (w->n_eval < 1) return evaluate(ctx, metric, e);
    w->stop_at = 0;
    return ses_fail(e, SES_EARG, "stopped");
}

static void test_stopped_evaluation(void)
{
    ses_err e = { 0 };
    run r;
    ses_run_end end;
    ses_resume_result from;
    run_prepare(&r, 1, folder);
    r.o.eval_every = 1;
    r.o.save_every = 0;
    CHECK(run_start(&r, &e));
    watch w = { .stop_at = -1, .r = &r, .metric = { 0.5, 0.9, 0.6, 0.7, 0.8, 0.1, 0.1, 0.1 } };
    ses_trainer_hooks h = { .ctx = &w, .evaluate = evaluate_broken, .should_stop = stop };
    CHECK_MSG(ses_trainer_run(r.trainer, &h, &end, &e), "%s", e.msg);
    CHECK(end == SES_RUN_STOPPED && e.code == SES_OK && there("checkpoint-2"));
    CHECK(ses_trainer_state(r.trainer)->updates == 2 && ses_trainer_state(r.trainer)->evaluated == 1);
    run_free(&r);

    run_prepare(&r, 1, folder); /* the evaluation is repeated, and its checkpoint is the best */
    r.o.eval_every = 1;
    r.o.save_every = 0;
    r.o.patience = 2;
    w.stop_at = -1;
    h.evaluate = evaluate;
    CHECK(run_start(&r, &e) && ses_trainer_resume(r.trainer, &from, &e) && from.found);
    CHECK_MSG(ses_trainer_run(r.trainer, &h, &end, &e), "%s", e.msg);
    const ses_train_state *at = ses_trainer_state(r.trainer);
    CHECK(end == SES_RUN_EARLY_STOPPED && at->updates == 4 && at->best_update == 2 && at->best == 0.9);
    const char *best = ses_trainer_best_dir(r.trainer);
    CHECK(best && strstr(best, "checkpoint-2"));
    run_free(&r);
    empty(folder);

    run_prepare(&r, 1, folder); /* a failed evaluation is an error */
    r.o.eval_every = 1;
    w = (watch){ .stop_at = -1, .r = &r, .metric = { 0.5 } };
    h = (ses_trainer_hooks){ .ctx = &w, .evaluate = evaluate_broken };
    CHECK(run_start(&r, &e) && !ses_trainer_run(r.trainer, &h, &end, &e) && e.code == SES_EARG);
    run_free(&r);
    empty(folder);
}

int main(void)
{
    snprintf(folder, sizeof folder, "/tmp/sesame-trainer-%ld", (long)getpid());
    test_threads();
    test_resume();
    test_damage();
    test_disk();
    test_saved_epochs();
    test_counters();
    test_passed_over();
    test_settings();
    test_lock();
    test_kill();
    test_replace();
    test_full();
    test_nan();
    test_smoothing();
    test_class_weights();
    test_early();
    test_stopped_evaluation();
    test_best_moved();
    test_best_lost();
    return check_report();
}
