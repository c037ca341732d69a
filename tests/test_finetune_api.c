/* sesame/finetune.h: runs from memory and from files, cancellation, resuming, prediction, detection of the
 * task. */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "check.h"
#include "sesame/sesame.h"
#include "train/model_presets.h"
#include "tune/finetuner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

static char root[] = "/tmp/sesame-finetune-XXXXXX";

static bool disk_is_full;

/* Replaces that of the C library. */
int statvfs(const char *name, struct statvfs *s)
{
    (void)name;
    *s = (struct statvfs){ .f_blocks = 1, .f_frsize = 1 };
    return disk_is_full ? 0 : -1;
}

static const char *path(const char *name)
{
    static char buf[4][256];
    static int next;
    char *p = buf[next++ % 4];
    snprintf(p, sizeof buf[0], "%s/%s", root, name);
    return p;
}

static void write_file(const char *name, const char *text)
{
    CHECK(ses_file_write(path(name), text, strlen(text), true, NULL));
}

static void write_model_files(void)
{
    write_file(
        "vocab.txt",
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\nbad\nfilm\nthe\nwas\nit\nanna\nbob\nin\nparis\n.\n");
    write_file("config.json",
               "{\"model_type\": \"bert\", \"hidden_size\": 16, \"num_hidden_layers\": 1, "
               "\"num_attention_heads\": 2, \"intermediate_size\": 32, \"max_position_embeddings\": 32, "
               "\"type_vocab_size\": 2, \"vocab_size\": 16, \"hidden_act\": \"gelu\", "
               "\"hidden_dropout_prob\": 0.1, \"attention_probs_dropout_prob\": 0.1, "
               "\"layer_norm_eps\": 1e-12, \"initializer_range\": 0.05}");
}

static ses_finetune_options options(const char *task)
{
    ses_finetune_options o = ses_finetune_defaults();
    o.config = path("config.json");
    o.tokenizer = path("vocab.txt");
    o.data.task = task;
    o.run.lr = 5e-3;
    o.run.epochs = 8;
    o.run.batch_size = 8;
    return o;
}

enum { N = 48 };

static ses_examples *texts(const ses_examples *like)
{
    static const char *const text[] = { "the film was good .", "it was bad .", "anna in paris ." };
    static const char *const label[] = { "pos", "neg", "city" };
    ses_example_input x[N];
    for (size_t i = 0; i < N; i++) x[i] = (ses_example_input){ .text = text[i % 3], .label = label[i % 3] };
    return ses_examples_new(SES_DATA_CLASSIFY, x, N, NULL, like, NULL);
}

static double score(const ses_eval_report *r, const char *name)
{
    double x = NAN;
    ses_scores_find(&r->scores, name, &x);
    return x;
}

/* ---- classification ---- */

static void from_memory(ses_device *dev)
{
    ses_err e = { 0 };
    ses_examples *train = texts(NULL), *eval = texts(train);
    ses_finetune_options o = options(NULL); /* the task is that of the examples */
    o.train_examples = train, o.eval_examples = eval;
    o.run.output = path("memory");
    ses_finetune *f = ses_finetune_new(&o, dev, &e);
    ses_run_end end;
    CHECK(f && ses_finetune_run(f, &end, &e) && end == SES_RUN_COMPLETE);
    CHECK(score(ses_finetune_report(f), "accuracy") > 0.99);
    CHECK(ses_finetune_labels(f) == 3 && !strcmp(ses_finetune_label(f, 0), "city") &&
          !ses_finetune_label(f, 3));
    CHECK(!strcmp(ses_finetune_metric(f), "accuracy") && ses_finetune_stats(f).updates == 48);
    CHECK(ses_path_exists(path("memory/config.json")) && ses_path_exists(path("memory/README.md")));
    ses_predictions *p = ses_predictor_predict_examples(ses_finetune_predictor(f), eval, &e);
    CHECK(p && ses_predictions_count(p) == N);
    for (size_t i = 0; p && i < 3; i++) {
        ses_prediction x = ses_predictions_at(p, i);
        CHECK(!strcmp(x.label, ((const char *[]){ "pos", "neg", "city" })[i]) && x.score > 1.0 / 3 &&
              x.score <= 1);
    }
    ses_predictions_free(p);
    ses_finetune_free(f);
    ses_examples_free(eval);
    ses_examples_free(train);
}

static void saved_folder(ses_device *dev)
{
    ses_err e = { 0 };
    ses_predictor_options o = ses_predictor_defaults();
    o.data.task = "classify";
    ses_predictor *p = ses_predictor_open(path("memory"), &o, dev, &e);
    CHECK(p && ses_examples_label_count(ses_predictor_labels(p)) == 3);
    ses_example_input in = { .text = "anna in paris ." };
    ses_examples *one = ses_examples_new(SES_DATA_CLASSIFY, &in, 1, NULL, ses_predictor_labels(p), &e);
    ses_predictions *r = ses_predictor_predict_examples(p, one, &e);
    CHECK(r && !strcmp(ses_predictions_at(r, 0).label, "city"));
    ses_json_writer *w = ses_json_writer_new(0, NULL);
    ses_predictions_put(r, 0, w);
    const char *start = "{\"label\": \"city\", \"score\": 0.";
    CHECK(!strncmp(ses_json_writer_text(w, NULL, NULL), start, strlen(start)));
    ses_json_writer_free(w);
    ses_predictions_free(r);
    ses_examples_free(one);
    ses_examples *all = texts(NULL); /* its own label order: aligned with the model's */
    ses_eval_report report;
    CHECK(ses_predictor_evaluate_examples(p, all, &report, &e) && score(&report, "accuracy") > 0.99);
    CHECK(report.n == N && report.n_labels == 3 && report.confusion[0] == N / 3 && report.n_classes == 3);
    ses_eval_report_free(&report);
    ses_examples_free(all);
    write_file("rows.csv", "text,label\nit was bad .,neg\nthe film was good .,pos\n");
    CHECK(ses_predictor_evaluate(p, path("rows.csv"), &report, &e) && report.n == 2);
    ses_eval_report_free(&report);
    write_file("rows.csv", "text\nit was bad .\n");
    r = ses_predictor_predict(p, path("rows.csv"), &e);
    CHECK(r && ses_predictions_count(r) == 1 && !strcmp(ses_predictions_at(r, 0).label, "neg"));
    ses_predictions_free(r);
    CHECK(!ses_predictor_predict(p, path("nothing.csv"), &e) && e.code == SES_EIO);
    ses_predictor_free(p);
}

/* The names are the model's, whatever the labels of the first examples. */
static void predictor_labels(ses_device *dev)
{
    ses_err e = { 0 };
    ses_predictor_options o = ses_predictor_defaults();
    o.data.task = "classify";
    const char *dirs[] = { path("memory") };
    o.ensemble = o.adapters = dirs, o.n_ensemble = o.n_adapters = 1;
    e = (ses_err){ 0 };
    CHECK_MSG(!ses_predictor_open(path("memory"), &o, dev, &e) &&
                  strstr(e.msg, "name folders of adapters as models"),
              "%s", e.msg);
    o.n_adapters = 0, o.base = dirs[0];
    e = (ses_err){ 0 };
    CHECK(!ses_predictor_open(path("memory"), &o, dev, &e) && e.code == SES_EUSAGE);
    o.n_ensemble = 0, o.base = NULL;
    static const char *const sets[] = { "pos|neg|city", "neg|pos", "city|pos|dog" };
    ses_example_input in = { .text = "the film was good .", .label = "pos" };
    for (size_t i = 0; i < SES_LEN(sets); i++) {
        e = (ses_err){ 0 };
        ses_predictor *p = ses_predictor_open(path("memory"), &o, dev, &e);
        ses_examples *d = ses_examples_new(SES_DATA_CLASSIFY, &in, 1, sets[i], NULL, &e);
        ses_predictions *r = p && d ? ses_predictor_predict_examples(p, d, &e) : NULL;
        if (i < 2)
            CHECK_MSG(r && !strcmp(ses_predictions_at(r, 0).label, "pos"), "%s: %s", sets[i], e.msg);
        else
            CHECK(!r && strstr(e.msg, "the labels differ"));
        ses_predictions_free(r);
        ses_examples_free(d);
        ses_predictor_free(p);
    }
}

/* A report is zeroed even if the data cannot be read. */
static void unread_report(ses_device *dev)
{
    ses_err e = { 0 };
    ses_predictor_options o = ses_predictor_defaults();
    o.data.task = "classify";
    ses_predictor *p = ses_predictor_open(path("memory"), &o, dev, &e);
    ses_eval_report report;
    memset(&report, 0x5a, sizeof report);
    CHECK(p && !ses_predictor_evaluate(p, path("nothing.csv"), &report, &e) && !report.classes && !report.n);
    ses_eval_report_free(&report);
    ses_example_input in = { .text = "it", .label = "dog" };
    ses_examples *d = ses_examples_new(SES_DATA_CLASSIFY, &in, 1, NULL, NULL, &e);
    memset(&report, 0x5a, sizeof report);
    CHECK(!ses_predictor_evaluate_examples(p, d, &report, &e) && !report.classes && !report.n);
    ses_eval_report_free(&report);
    ses_examples_free(d);
    ses_predictor_free(p);
}

/* ---- cancellation ---- */

typedef struct counts {
    int steps, evaluations, notices, stop_after;
} counts;

static bool count_event(void *ctx, const ses_training_event *ev)
{
    counts *c = ctx;
    c->steps += ev->kind == SES_TRAINING_STEP;
    c->evaluations += ev->kind == SES_TRAINING_EVALUATED;
    c->notices += ev->kind == SES_TRAINING_NOTICE && *ev->text;
    return !c->stop_after || c->steps < c->stop_after;
}

static void run_once(ses_device *dev, ses_finetune_options *o, counts *c, ses_run_end want)
{
    ses_err e = { 0 };
    ses_examples *train = texts(NULL), *eval = texts(train);
    o->train_examples = train, o->eval_examples = eval;
    o->on_event = count_event, o->ctx = c;
    ses_finetune *f = ses_finetune_new(o, dev, &e);
    ses_run_end end = SES_RUN_COMPLETE;
    CHECK(f && ses_finetune_run(f, &end, &e) && end == want);
    CHECK(f && !ses_finetune_run(f, &end, &e) && e.code == SES_EARG && strstr(e.msg, "started before"));
    ses_finetune_free(f);
    ses_examples_free(eval);
    ses_examples_free(train);
}

static void cancelled_and_resumed(ses_device *dev)
{
    size_t n, k;
    counts c = { .stop_after = 7 };
    ses_finetune_options o = options("classify");
    o.run.output = path("stopped");
    run_once(dev, &o, &c, SES_RUN_STOPPED);
    CHECK(c.steps == 7 && c.evaluations == 1 && c.notices > 0 &&
          !ses_path_exists(path("stopped/config.json")));
    c = (counts){ 0 };
    o.run.resume = true;
    run_once(dev, &o, &c, SES_RUN_COMPLETE);
    CHECK(c.steps == 41 && c.evaluations == 7);
    char *a = ses_file_read(path("stopped/model.safetensors"), 1 << 24, &n, NULL),
         *b = ses_file_read(path("memory/model.safetensors"), 1 << 24, &k, NULL);
    CHECK(a && b && n == k && !memcmp(a, b, n)); /* the same bits as an uninterrupted run */
    ses_free(a);
    ses_free(b);
}

/* A run with no output folder writes the log and the event files that are set. */
static void logs_only(ses_device *dev)
{
    counts c = { 0 };
    ses_finetune_options o = options("classify");
    o.run.log = path("only.jsonl"), o.run.tensorboard = path("only");
    run_once(dev, &o, &c, SES_RUN_COMPLETE);
    CHECK(ses_path_exists(path("only.jsonl")) && ses_path_exists(path("only")));
    ses_examples *d = texts(NULL);
    ses_err e = { 0 };
    o.train_examples = d, o.eval_examples = NULL;
    CHECK(!ses_finetune_new(&o, dev, &e) && strstr(e.msg, "only.jsonl: exists already"));
    ses_examples_free(d);
}

/* A notice is answered with false: the run stops before its first batch. */
static bool stop_at_notice(void *ctx, const ses_training_event *ev)
{
    *(int *)ctx += ev->kind == SES_TRAINING_STEP;
    return ev->kind != SES_TRAINING_NOTICE;
}

static void stopped_by_notice(ses_device *dev)
{
    ses_err e = { 0 };
    int steps = 0;
    ses_run_end end = SES_RUN_COMPLETE;
    ses_examples *train = texts(NULL);
    ses_finetune_options o = options("classify");
    o.train_examples = train;
    o.on_event = stop_at_notice, o.ctx = &steps;
    ses_finetune *f = ses_finetune_new(&o, dev, &e);
    CHECK(f && ses_finetune_run(f, &end, &e) && end == SES_RUN_STOPPED && !steps);
    ses_finetune_free(f);
    ses_examples_free(train);
}

/* ---- a complete run ---- */

static char *saved_weights(const ses_finetune *f, const char *dir, size_t *n)
{
    char *file = ses_path_join(path(dir), "model.safetensors", NULL);
    CHECK(ses_model_save(ses_finetune_model(f), path(dir), &(ses_save_options){ .dtype = SES_F32 }, NULL));
    char *data = ses_file_read(file, 1 << 24, n, NULL);
    ses_free(file);
    return data;
}

/* Resumed on a full disk: the best weights, their scores and the figures of the run are there. */
static void was_complete(ses_device *dev)
{
    ses_err e = { 0 };
    size_t n = 0, k = 0;
    ses_run_end end = SES_RUN_COMPLETE;
    ses_examples *train = texts(NULL), *eval = texts(train);
    ses_finetune_options o = options("classify");
    o.train_examples = train, o.eval_examples = eval;
    o.run.output = path("again");
    ses_finetune *f = ses_finetune_new(&o, dev, &e);
    CHECK(f && ses_finetune_run(f, &end, &e) && end == SES_RUN_COMPLETE);
    const ses_train_state *at = ses_trainer_state(ses_finetune_trainer(f));
    CHECK(at->best_update < at->updates); /* the first of equal accuracies */
    double loss = ses_finetune_report(f)->loss, mean = ses_finetune_stats(f).train_loss;
    ses_finetune_free(f);
    o.run.resume = true;
    f = ses_finetune_new(&o, dev, &e);
    CHECK(f && !ses_finetune_stats(f).updates);
    disk_is_full = true;
    CHECK_MSG(ses_finetune_run(f, &end, &e) && end == SES_RUN_WAS_COMPLETE, "%s", e.msg);
    disk_is_full = false;
    CHECK(ses_finetune_report(f)->loss == loss && ses_finetune_report(f)->n == N);
    ses_training_stats s = ses_finetune_stats(f);
    CHECK(s.updates == 48 && s.seconds > 0 && fabs(s.train_loss - mean) < 1e-9);
    ses_json_writer *w = ses_json_writer_new(0, NULL);
    ses_json_begin_object(w);
    ses_finetune_put_results(f, w);
    ses_json_end_object(w);
    CHECK(strstr(ses_json_writer_text(w, NULL, NULL), "\"eval_accuracy\""));
    ses_json_writer_free(w);
    char *a = saved_weights(f, "weights", &n),
         *b = ses_file_read(path("again/model.safetensors"), 1 << 24, &k, NULL);
    CHECK(a && b && n == k && !memcmp(a, b, n));
    ses_free(a);
    ses_free(b);
    ses_finetune_free(f);
    ses_examples_free(eval);
    ses_examples_free(train);
}

/* ---- other tasks ---- */

/* Trains and predicts the examples themselves. */
static ses_predictions *train_on(ses_finetune **f, ses_device *dev, ses_examples *d, ses_finetune_options o)
{
    ses_err e = { 0 };
    o.train_examples = d;
    *f = ses_finetune_new(&o, dev, &e);
    CHECK(*f && ses_finetune_run(*f, NULL, &e));
    return *f ? ses_predictor_predict_examples(ses_finetune_predictor(*f), d, &e) : NULL;
}

static void tags(ses_device *dev)
{
    static const char *const words[] = { "anna", "in", "paris" }, *const labels[] = { "B-PER", "O", "B-LOC" };
    ses_example_input x[N];
    for (size_t i = 0; i < N; i++)
        x[i] = (ses_example_input){ .parts = words, .n_parts = 3, .labels = labels, .n_labels = 3 };
    ses_examples *d = ses_examples_new(SES_DATA_TAG, x, N, NULL, NULL, NULL);
    ses_finetune *f;
    ses_predictions *p = train_on(&f, dev, d, options(NULL));
    ses_prediction y = p ? ses_predictions_at(p, 1) : (ses_prediction){ 0 };
    CHECK(y.n_labels == 3);
    for (size_t i = 0; i < y.n_labels; i++) CHECK(!strcmp(y.labels[i], labels[i]));
    ses_predictions_free(p);
    ses_finetune_free(f);
    ses_examples_free(d);
}

static void numbers_and_sets(ses_device *dev)
{
    static const char *const text[] = { "good", "bad" }, *const set[] = { "x", "y" };
    ses_example_input x[N];
    ses_finetune *f;
    for (size_t i = 0; i < N; i++)
        x[i] = (ses_example_input){ .text = text[i % 2], .value = i % 2 ? 0.5 : 2.5 };
    ses_examples *d = ses_examples_new(SES_DATA_REGRESS, x, N, NULL, NULL, NULL);
    ses_finetune_options o = options(NULL);
    o.run.epochs = 20;
    ses_predictions *p = train_on(&f, dev, d, o);
    CHECK(p && ses_predictions_at(p, 0).value > ses_predictions_at(p, 1).value + 0.5);
    ses_predictions_free(p);
    ses_finetune_free(f);
    ses_examples_free(d);
    for (size_t i = 0; i < N; i++)
        x[i] = (ses_example_input){ .text = text[i % 2], .labels = set, .n_labels = i % 2 ? 1 : 2 };
    d = ses_examples_new(SES_DATA_MULTI, x, N, NULL, NULL, NULL);
    p = train_on(&f, dev, d, o);
    CHECK(p && ses_predictions_at(p, 0).n_labels == 2 && ses_predictions_at(p, 1).n_labels == 1);
    ses_predictions_free(p);
    ses_finetune_free(f);
    ses_examples_free(d);
}

static void choices_and_spans(ses_device *dev)
{
    static const char *const parts[] = { "good .", "bad ." }, *const swapped[] = { "bad .", "good ." };
    ses_example_input x[N];
    ses_finetune *f;
    for (size_t i = 0; i < N; i++)
        x[i] = (ses_example_input){
            .text = "it was", .parts = i % 2 ? swapped : parts, .n_parts = 2, .choice = (int64_t)(i % 2)
        };
    ses_examples *d = ses_examples_new(SES_DATA_CHOICE, x, N, NULL, NULL, NULL);
    ses_finetune_options o = options(NULL);
    o.run.epochs = 20;
    ses_predictions *p = train_on(&f, dev, d, o);
    CHECK(p && ses_predictions_at(p, 0).choice == 0 && ses_predictions_at(p, 1).choice == 1);
    CHECK(p && !strcmp(ses_predictions_at(p, 1).text, "good ."));
    ses_predictions_free(p);
    ses_finetune_free(f);
    ses_examples_free(d);
    for (size_t i = 0; i < N; i++)
        x[i] = (ses_example_input){
            .text = "it", .pair = "anna in paris .", .answer = "paris", .answer_start = 8
        };
    d = ses_examples_new(SES_DATA_SPAN, x, N, NULL, NULL, NULL);
    p = train_on(&f, dev, d, o);
    CHECK(p && !strcmp(ses_predictions_at(p, 0).text, "paris"));
    ses_predictions_free(p);
    ses_finetune_free(f);
    ses_examples_free(d);
}

/* ---- an open model ---- */

static void open_model(ses_device *dev)
{
    ses_err e = { 0 };
    ses_model *m = ses_model_open(path("memory"), dev, &(ses_model_options){ .train = true }, &e);
    ses_examples *d = texts(NULL);
    ses_finetune_options o = options("classify");
    o.config = NULL;
    o.open_model = m;
    ses_finetune *f;
    ses_predictions *p = train_on(&f, dev, d, o);
    CHECK(p && ses_finetune_model(f) == m && !strcmp(ses_predictions_at(p, 0).label, "pos"));
    ses_predictions_free(p);
    ses_finetune_free(f);
    ses_examples_free(d);
    d = ses_examples_new(
        SES_DATA_CLASSIFY,
        (ses_example_input[]){ { .text = "it", .label = "a" }, { .text = "it", .label = "b" } }, 2, NULL,
        NULL, &e);
    o.train_examples = d;
    CHECK(!ses_finetune_new(&o, dev, &e) && strstr(e.msg, "2 labels, the model 3"));
    ses_examples_free(d);
    ses_model_free(m);
    e = (ses_err){ 0 };
    const char *causal[] = { "is_decoder=true" };
    ses_json_doc *c = ses_model_config_open(path("memory"), NULL, &e);
    CHECK_MSG(c && ses_preset_set(&c, causal, 1, &e), "%s", e.msg);
    o.open_model = m = ses_model_new(ses_json_root(c), dev, &(ses_model_options){ .train = true }, &e);
    o.train_examples = d = texts(NULL);
    CHECK_MSG(m && !ses_finetune_new(&o, dev, &e) && strstr(e.msg, "reads from left to right"), "%s", e.msg);
    ses_examples_free(d);
    ses_model_free(m);
    ses_json_free(c);
}

/* ---- a teacher ---- */

/* A teacher by name is checked as one by its folder: its tokenizer must be the student's. */
static void teacher_by_name(ses_device *dev)
{
    ses_err e = { 0 };
    ses_examples *d = texts(NULL);
    ses_finetune_options o = options("classify");
    setenv("SESAME_MODELS", root, 1);
    o.train_examples = d, o.teacher.model = "memory";
    ses_finetune *f = ses_finetune_new(&o, dev, &e);
    CHECK_MSG(f, "%s", e.msg);
    ses_finetune_free(f);
    write_file(
        "other.txt",
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nbad\ngood\nfilm\nthe\nwas\nit\nanna\nbob\nin\nparis\n.\n");
    o.tokenizer = path("other.txt");
    CHECK(!ses_finetune_new(&o, dev, &e) && strstr(e.msg, "tokenizer differs"));
    unsetenv("SESAME_MODELS");
    ses_examples_free(d);
}

/* ---- errors and detection ---- */

static void rejected(ses_device *dev, ses_finetune_options o, const char *message)
{
    ses_err e = { 0 };
    CHECK(!ses_finetune_new(&o, dev, &e));
    if (!strstr(e.msg, message)) printf("%s\n", e.msg);
    CHECK(strstr(e.msg, message) != NULL);
}

static void errors(ses_device *dev)
{
    ses_err e = { 0 };
    ses_examples *d = texts(NULL);
    ses_finetune_options o = options("classify");
    rejected(dev, o, "a training file or training examples");
    o.train = path("rows.csv"), o.train_examples = d;
    rejected(dev, o, "either a training file or training examples");
    o.train = NULL, o.model = path("memory");
    rejected(dev, o, "one of model, config, open_model and embed");
    o = options("fly"), o.train_examples = d;
    rejected(dev, o, "unknown task \"fly\"");
    o = options("classify"), o.train_examples = d, o.run.output = path("memory");
    rejected(dev, o, "overwrite replaces it");
    ses_examples_free(d);
    ses_example_input x = { .text = "it", .label = "c" };
    CHECK(!ses_examples_new(SES_DATA_CLASSIFY, &x, 1, "a|b", NULL, &e) && strstr(e.msg, "example 0"));
    x = (ses_example_input){ .text = "it", .pair = "anna", .answer = "bob" };
    e = (ses_err){ 0 };
    CHECK(!ses_examples_new(SES_DATA_SPAN, &x, 1, NULL, NULL, &e) && strstr(e.msg, "not in the passage"));
    e = (ses_err){ 0 };
    CHECK(!ses_examples_new(SES_DATA_CLASSIFY, &x, 0, NULL, NULL, &e) && strstr(e.msg, "no examples"));
}

static void detection(void)
{
    static const struct {
        const char *name, *text, *task;
    } files[] = {
        { "a.csv", "text,label\nx,1\ny,2\n", "classify" },
        { "b.tsv", "text\tscore\nx\t1.5\ny\t2\n", "regress" },
        { "c.jsonl", "{\"anchor\": \"a\", \"positive\": \"b\"}\n", "embed" },
        { "d.tsv", "source\ttarget\na\tb\n", "rewrite" },
        { "e.csv", "text,labels\na,\"x,y\"\n", "multi_label" },
        { "f.txt", "a text\n", "continue" },
        { "g.json", "{}", "answer" },
        { "h.conll", "a O\n", "tag" },
    };
    ses_data_options o = { 0 };
    for (size_t i = 0; i < SES_LEN(files); i++) {
        write_file(files[i].name, files[i].text);
        const char *task = ses_finetune_detect_task(path(files[i].name), &o, NULL);
        CHECK(task && !strcmp(task, files[i].task));
    }
    CHECK(!ses_finetune_detect_task(path("nothing.csv"), &o, NULL));
    CHECK(!strcmp(ses_finetune_task_name(0, NULL), "classify") && !ses_finetune_task_name(9, NULL));
}

/* A folder without run.json has the task of the class in config.json. */
static void task_of_folders(ses_device *dev)
{
    static const struct {
        const char *folder, *task; /* NULL: none */
    } cases[] = {
        { "bert-classify", "classify" },
        { "bert-regress", "regress" },
        { "bert-multilabel", "multi_label" },
        { "bert-tag", "tag" },
        { "bert-qa", "answer" },
        { "bert-choice", "choose" },
        { "xlnet-answer-beam", "answer" },
        { "gpt2-lm", "continue" },
        { "gpt2-double-heads", "choose" },
        { "bart-lm", "rewrite" },
        { "bert2bert", "rewrite" },
        { "bart-classify", "classify" },
        { "rnn-seq2seq-general", "rewrite" },
        { "awd-lstm-classify", "classify" },
        { "bert-model", NULL },
        { "bert-masked-lm", NULL },
        { "bert-pretraining", NULL },
        { "electra-discriminator", NULL },
    };
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        char dir[80];
        ses_err e = { 0 };
        snprintf(dir, sizeof dir, "tests/golden/%s", cases[i].folder);
        const char *task = ses_finetune_task_of_folder(dir, NULL, &e);
        CHECK_MSG(cases[i].task ? task && !strcmp(task, cases[i].task)
                                : !task && strstr(e.msg, "has no head of"),
                  "%s: %s %s", dir, task ? task : "none", e.msg);
    }
    ses_err e = { 0 };
    ses_predictor_options o = ses_predictor_defaults();
    ses_predictor *p = ses_predictor_open("sesame-sentiment", &o, dev, &e);
    CHECK_MSG(p && !strcmp(ses_predictor_metric(p), "accuracy"), "%s", e.msg);
    ses_predictor_free(p);
    p = ses_predictor_open("sesame-embed", &o, dev, &e);
    CHECK_MSG(p && !strcmp(ses_predictor_metric(p), "spearmanr"), "%s", e.msg);
    ses_predictor_free(p);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e);
    CHECK(dev && mkdtemp(root));
    write_model_files();
    from_memory(dev);
    saved_folder(dev);
    predictor_labels(dev);
    unread_report(dev);
    cancelled_and_resumed(dev);
    logs_only(dev);
    stopped_by_notice(dev);
    was_complete(dev);
    tags(dev);
    numbers_and_sets(dev);
    choices_and_spans(dev);
    open_model(dev);
    teacher_by_name(dev);
    errors(dev);
    detection();
    task_of_folders(dev);
    ses_device_free(dev);
    ses_dir_remove(root, NULL);
    return check_report();
}
