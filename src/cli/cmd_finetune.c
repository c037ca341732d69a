/* finetune: from a labeled file to a model and a number. */
#define _POSIX_C_SOURCE 200809L
#include "finetune.h"

#include "base/alloc.h"
#include "base/file.h"
#include "show.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static volatile sig_atomic_t interrupted; /* the signal that asked to stop */

static void on_signal(int sig) { interrupted = sig; }

/* The second one of a kind ends the process as usual. */
static void watch_signals(void)
{
    struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND };
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

#define AT(field) offsetof(ses_finetune_args, field)

static const ses_opt opt[] = {
    SES_OPT_TASK(ses_finetune_args, tune),
    { .name = "train",
      .type = SES_OPT_TEXT,
      .offset = AT(train),
      .value = "FILE",
      .required = true,
      .help = "labeled data: TSV, CSV, JSON lines; of tag: CoNLL columns; of answer: SQuAD's JSON" },
    { .name = "eval",
      .type = SES_OPT_TEXT,
      .offset = AT(eval),
      .value = "FILE",
      .help = "labeled data to measure with; the best model by it is kept" },
    { .name = "output",
      .letter = 'o',
      .type = SES_OPT_TEXT,
      .offset = AT(output),
      .value = "OUT",
      .required = true,
      .help = "folder for the model, made if absent" },
    { .name = "model",
      .letter = 'm',
      .type = SES_OPT_TEXT,
      .offset = AT(model),
      .value = "DIR",
      .help = "folder of the model to begin with" },
    { .name = "config",
      .type = SES_OPT_TEXT,
      .offset = AT(config),
      .value = "FILE|SIZE",
      .help = "begin at random instead: a config.json, or bert-tiny, -mini, -small, -medium, -base" },
    { .name = "tokenizer",
      .type = SES_OPT_TEXT,
      .offset = AT(tokenizer),
      .value = "PATH",
      .help = "with --config: folder or file of the tokenizer; without it the model's" },
    SES_OPT_TUNE(ses_finetune_args, tune),
    { .name = "epochs",
      .letter = 'e',
      .type = SES_OPT_REAL,
      .offset = AT(epochs),
      .def = "3",
      .min = 0,
      .max = 1e6,
      .help = "how often all data are seen" },
    { .name = "steps",
      .type = SES_OPT_INT,
      .offset = AT(steps),
      .def = "0",
      .min = 0,
      .max = 1e12,
      .help = "so many updates in place of epochs" },
    { .name = "batch-size",
      .letter = 'b',
      .type = SES_OPT_INT,
      .offset = AT(batch),
      .def = "32",
      .min = 1,
      .max = 1 << 20,
      .help = "sequences a batch" },
    { .name = "tokens-per-batch",
      .type = SES_OPT_INT,
      .offset = AT(tokens),
      .def = "0",
      .min = 0,
      .max = 1 << 30,
      .help = "in place of it: as many sequences as fit into so many tokens" },
    { .name = "bucket",
      .type = SES_OPT_INT,
      .offset = AT(bucket),
      .def = "0",
      .min = 0,
      .max = 1 << 20,
      .help = "sort by length within so many batches" },
    { .name = "accumulate",
      .type = SES_OPT_INT,
      .offset = AT(accumulate),
      .def = "1",
      .min = 1,
      .max = 1 << 20,
      .help = "batches an update" },
    { .name = "lr",
      .letter = 'l',
      .type = SES_OPT_REAL,
      .offset = AT(lr),
      .def = "5e-5",
      .min = 0,
      .max = 100,
      .help = "learning rate" },
    { .name = "optimizer",
      .type = SES_OPT_CHOICE,
      .offset = AT(optimizer),
      .def = "adamw",
      .choices = "adamw|bert_adam|sgd|adafactor|lamb",
      .help = "how weights move" },
    { .name = "schedule",
      .type = SES_OPT_CHOICE,
      .offset = AT(schedule),
      .def = "linear",
      .choices = "constant|linear|cosine|inverse_sqrt|polynomial|slanted",
      .help = "how the rate goes" },
    { .name = "warmup",
      .letter = 'w',
      .type = SES_OPT_REAL,
      .offset = AT(warmup),
      .def = "0.1",
      .min = 0,
      .max = 1e9,
      .help = "updates until the full rate; below 1: share of the run" },
    { .name = "weight-decay",
      .type = SES_OPT_REAL,
      .offset = AT(decay),
      .def = "0.01",
      .min = 0,
      .max = 10,
      .help = "of matrices; biases and norms have none" },
    { .name = "clip",
      .type = SES_OPT_REAL,
      .offset = AT(clip),
      .def = "1",
      .min = 0,
      .max = 1e9,
      .help = "most gradient norm; 0: any" },
    { .name = "label-smoothing",
      .type = SES_OPT_REAL,
      .offset = AT(smoothing),
      .def = "0",
      .min = 0,
      .max = 0.99,
      .help = "share of a label's weight that goes to all labels" },
    { .name = "layer-decay",
      .type = SES_OPT_REAL,
      .offset = AT(fall),
      .def = "1",
      .min = 0.01,
      .max = 1,
      .help = "each layer's rate is so much of the one above" },
    { .name = "freeze",
      .type = SES_OPT_INT,
      .offset = AT(freeze),
      .def = "0",
      .min = 0,
      .max = 1000,
      .help = "keep the embeddings (1) and so many less one layers as they are; 1000: all but the head" },
    { .name = "metric",
      .type = SES_OPT_TEXT,
      .offset = AT(metric),
      .value = "NAME",
      .help = "the score that chooses the best; without it the task's usual one; or loss" },
    { .name = "eval-every",
      .type = SES_OPT_INT,
      .offset = AT(eval_every),
      .def = "0",
      .min = -1,
      .max = 1e12,
      .help = "updates between evaluations; 0: at each epoch's end" },
    { .name = "patience",
      .type = SES_OPT_INT,
      .offset = AT(patience),
      .def = "0",
      .min = 0,
      .max = 1e9,
      .help = "end after so many evaluations without a better one; 0: go on" },
    { .name = "save-every",
      .type = SES_OPT_INT,
      .offset = AT(save_every),
      .def = "0",
      .min = -1,
      .max = 1e12,
      .help = "updates between checkpoints; 0: at each evaluation" },
    { .name = "keep",
      .type = SES_OPT_INT,
      .offset = AT(keep),
      .def = "1",
      .min = 1,
      .max = 1000,
      .help = "checkpoints kept, the best one apart" },
    { .name = "seed",
      .letter = 's',
      .type = SES_OPT_INT,
      .offset = AT(seed),
      .def = "42",
      .min = 0,
      .max = 9e15,
      .help = "of everything random" },
    { .name = "log",
      .type = SES_OPT_TEXT,
      .offset = AT(log),
      .value = "FILE",
      .help = "JSON lines: loss, rate and gradient norm of every update, and the scores" },
    { .name = "resume",
      .type = SES_OPT_FLAG,
      .offset = AT(resume),
      .help = "go on from the newest checkpoint in OUT; from the start where OUT is empty" },
    { .name = "overwrite", .type = SES_OPT_FLAG, .offset = AT(overwrite), .help = "replace what is in OUT" },
    SES_OPT_SHARED(ses_finetune_args, tune.shared),
};

/* ---- hooks ---- */

/* A number of JSON, which has no NaN. */
static const char *number(char buf[32], double x)
{
    snprintf(buf, 32, isfinite(x) ? "%.9g" : "null", x);
    return buf;
}

static double elapsed(const ses_finetune *f) { return ses_seconds() - f->start; }

static void progress_line(ses_finetune *f, const ses_step *s)
{
    char left[SES_HUMAN], spark[SES_BAR_SIZE], rate[SES_HUMAN];
    const ses_train_state *at = ses_trainer_state(f->trainer);
    double now = ses_seconds(), done = (double)(at->updates - f->first_update);
    if (!f->talk->tty || f->quiet || now - f->drawn < 0.1) return;
    f->drawn = now;
    double rest = done > 0 ? elapsed(f) / done * (double)(ses_trainer_total(f->trainer) - at->updates) : 0;
    fprintf(
        stderr,
        "\r\033[K%" PRId64 "/%" PRId64
        "  epoch %.2f  loss %.4f  rate %.2e  norm %.2f  %s tokens/s  %s left  %s",
        at->updates, ses_trainer_total(f->trainer), s->epoch, s->loss, s->lr, s->grad_norm,
        ses_human_count(rate, (uint64_t)((double)(at->tokens - f->first_tokens) / fmax(elapsed(f), 1e-9))),
        ses_time_text(left, rest), ses_spark_text(&f->spark, f->talk, spark));
    fflush(stderr);
}

static void stepped(void *ctx, const ses_step *s)
{
    ses_finetune *f = ctx;
    if (!s->updated) return;
    int64_t at = ses_trainer_state(f->trainer)->updates;
    f->loss_sum += s->loss;
    f->loss_count++;
    ses_spark_add(&f->spark, s->loss);
    char loss[32], norm[32];
    if (f->log)
        fprintf(f->log,
                "{\"step\": %" PRId64
                ", \"epoch\": %.6g, \"loss\": %s, \"grad_norm\": %s, \"learning_rate\": %.9g}\n",
                at, s->epoch, number(loss, s->loss), number(norm, s->grad_norm), s->lr);
    f->window_sum += s->loss;
    if (++f->window == 50 ||
        ses_trainer_done(f->trainer)) { /* as often as the reference's default would, ten times over */
        char entry[240];
        snprintf(entry, sizeof entry,
                 "\"epoch\": %.6g, \"grad_norm\": %s, \"learning_rate\": %.9g, \"loss\": %s, \"step\": "
                 "%" PRId64,
                 s->epoch, number(norm, s->grad_norm), s->lr, number(loss, f->window_sum / (double)f->window),
                 at);
        ses_trainer_log(f->trainer, entry, NULL);
        f->window = 0, f->window_sum = 0;
    }
    progress_line(f, s);
}

static bool stop(void *ctx)
{
    (void)ctx;
    return interrupted != 0;
}

static void clear_line(const ses_finetune *f)
{
    if (f->talk->tty && !f->quiet) fputs("\r\033[K", stderr);
}

static bool go_on(void *ctx, int64_t done, int64_t of)
{
    (void)ctx, (void)done, (void)of;
    return interrupted == 0;
}

bool ses_finetune_measure(ses_finetune *f, ses_err *e)
{
    ses_predicted p;
    double begin = ses_seconds();
    ses_scores_free(&f->scores);
    bool ok = ses_tuner_predict(f->tuner, &f->eval, &p, go_on, NULL, e) &&
              ses_tuner_score(f->tuner, &f->eval, &p, &f->scores, e);
    f->eval_loss = p.loss;
    f->eval_seconds = ses_seconds() - begin;
    ses_predicted_free(&p);
    return ok;
}

static bool evaluate(void *ctx, double *metric, ses_err *e)
{
    ses_finetune *f = ctx;
    const char *name = f->a->metric ? f->a->metric : f->spec.best;
    const ses_train_state *at = ses_trainer_state(f->trainer);
    char entry[256];
    if (!ses_finetune_measure(f, e)) return false;
    *metric = f->eval_loss;
    if (strcmp(name, "loss") && !ses_scores_find(&f->scores, name, metric))
        return ses_fail(e, SES_EUSAGE, "--metric: no score is called \"%s\" here; the first is %s", name,
                        f->scores.n ? f->scores.item[0].name : "loss");
    double epoch = ses_finetune_epoch(f);
    char value[32], loss[32];
    snprintf(entry, sizeof entry, "\"epoch\": %.6g, \"eval_%s\": %s, \"eval_loss\": %s, \"step\": %" PRId64,
             epoch, strcmp(name, "loss") ? name : "metric", number(value, *metric),
             number(loss, f->eval_loss), at->updates);
    if (f->log) fprintf(f->log, "{%s}\n", entry), fflush(f->log);
    clear_line(f);
    if (!f->quiet) {
        char time[SES_HUMAN];
        char trained[48] = ""; /* nothing was, where a stopped evaluation is done again */
        if (f->loss_count)
            snprintf(trained, sizeof trained, "  train loss %.4f", f->loss_sum / (double)f->loss_count);
        fprintf(stderr, "update %" PRId64 "  epoch %.2f%s  eval loss %.4f  %s %.4f%s  (%s)\n", at->updates,
                epoch, trained, f->eval_loss, name, *metric,
                isnan(*metric)                                                            ? ""
                : isnan(at->best) || (f->lower ? *metric < at->best : *metric > at->best) ? " best"
                                                                                          : "",
                ses_time_text(time, elapsed(f)));
    }
    f->loss_all += f->loss_sum, f->loss_n += f->loss_count;
    f->loss_sum = 0, f->loss_count = 0;
    return ses_trainer_log(f->trainer, entry, e);
}

/* ---- the parts ---- */

static bool prepare_data(ses_finetune *f, ses_err *e)
{
    const ses_finetune_args *a = f->a;
    if (!a->model == !a->config) return ses_fail(e, SES_EUSAGE, "one of --model and --config is needed");
    if (!a->model && !a->tokenizer) return ses_fail(e, SES_EUSAGE, "--config needs --tokenizer");
    if (!ses_finetune_config(f, e)) return false;
    f->train_rows = ses_data_open(&f->spec, a->train, NULL, e);
    if (!f->train_rows) return false;
    if (!ses_examples_learnable(f->train_rows, e)) return ses_wrap(e, "%s", a->train);
    if (!ses_finetune_labels(f, e)) return false;
    if (a->eval && !(f->eval_rows = ses_data_open(&f->spec, a->eval, f->train_rows, e))) return false;
    f->n_eval = f->eval_rows ? ses_examples_count(f->eval_rows) : 0;
    return true;
}

static bool prepare_model(ses_finetune *f, ses_err *e)
{
    const ses_finetune_args *a = f->a;
    const char *tokenizer = a->tokenizer ? a->tokenizer : a->model;
    ses_tune_options o = ses_tune_options_of(&a->tune, f->kind, &f->spec);
    const char *type = ses_json_string(ses_json_get(ses_json_root(f->base), "model_type"), NULL);
    f->tuner = ses_tuner_new(&o, tokenizer, type ? type : "", f->dev, e);
    if (!f->tuner || !ses_tuner_labels(f->tuner, f->train_rows, e) || !ses_finetune_metric(f, e))
        return false;
    int64_t vocab = a->config ? ses_tokenizer_size(f->tuner->tokenizer) : 0;
    return ses_tuner_config(f->tuner, ses_json_root(f->base), vocab, e) &&
           ses_tuner_model(f->tuner, a->model, true, (uint64_t)a->seed, e) &&
           (ses_tuner_encode(f->tuner, f->train_rows, &f->train, e) || ses_wrap(e, "%s", a->train)) &&
           (!a->eval || ses_tuner_encode(f->tuner, f->eval_rows, &f->eval, e) || ses_wrap(e, "%s", a->eval));
}

static bool optimizer(ses_finetune *f, ses_optim_options *o, ses_err *e)
{
    const ses_finetune_args *a = f->a;
    if (!ses_optim_usual(ses_optim_name((size_t)a->optimizer, NULL), o, e)) return false;
    o->lr = a->lr;
    if (!strcmp(o->name, "adafactor")) o->relative_step = o->scale_parameter = false; /* the rate is ours */
    f->layers.layers =
        ses_json_int(ses_json_get(ses_json_root(f->tuner->config), "num_hidden_layers"), &f->layers.layers)
            ? f->layers.layers
            : 0;
    if (f->layers.layers > SES_MAX_GROUPS / 2 - 2) f->layers.layers = SES_MAX_GROUPS / 2 - 2;
    f->layers.frozen = a->freeze > f->layers.layers + 1 ? f->layers.layers + 1 : a->freeze;
    return ses_groups_of_layers(o, &f->layers, a->decay, a->fall, e);
}

/* What a resumed run must have in common with the one it goes on with. */
static char *settings(const ses_finetune *f, ses_err *e)
{
    const ses_finetune_args *a = f->a;
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return NULL;
    ses_json_begin_object(w);
    ses_json_pair(w, "task", f->kind->name);
    ses_json_count(w, "train_examples", ses_dataset_size(f->train.data));
    ses_json_count(w, "train_tokens", ses_dataset_tokens(f->train.data));
    ses_json_number(w, "epochs", a->epochs);
    ses_json_count(w, "steps", a->steps);
    ses_json_count(w, "batch_size", a->tokens ? 0 : a->batch);
    ses_json_count(w, "tokens_per_batch", a->tokens);
    ses_json_count(w, "bucket", a->bucket);
    ses_json_count(w, "accumulate", a->accumulate);
    ses_json_number(w, "lr", a->lr);
    ses_json_pair(w, "optimizer", ses_optim_name((size_t)a->optimizer, NULL));
    ses_json_pair(w, "schedule", ses_schedule_name((size_t)a->schedule, NULL));
    ses_json_number(w, "warmup", a->warmup);
    ses_json_number(w, "weight_decay", a->decay);
    ses_json_number(w, "clip", a->clip);
    ses_json_number(w, "layer_decay", a->fall);
    ses_json_count(w, "freeze", a->freeze);
    ses_json_number(w, "label_smoothing", a->smoothing);
    ses_json_end_object(w);
    const char *text = ses_json_writer_text(w, NULL, e);
    char *copy = text ? ses_strdup(text, e) : NULL;
    ses_json_writer_free(w);
    return copy;
}

static bool prepare_trainer(ses_finetune *f, ses_err *e)
{
    const ses_finetune_args *a = f->a;
    const char *metric = a->metric ? a->metric : f->spec.best;
    f->lower = !strcmp(metric, "loss") || !strcmp(metric, "mse") || !strcmp(metric, "perplexity");
    f->batches = ses_batches_new(
        f->train.data,
        &(ses_batching){
            .examples = a->batch, .tokens = a->tokens, .bucket = a->bucket, .seed = (uint64_t)a->seed },
        e);
    f->settings = f->batches ? settings(f, e) : NULL;
    if (!f->settings) return false;
    ses_trainer_options o = { .model = f->tuner->model,
                              .source = ses_batches_source(f->batches),
                              .clip = a->clip,
                              .accumulate = a->accumulate,
                              .epochs = a->epochs,
                              .updates = a->steps,
                              .seed = (uint64_t)a->seed,
                              .smoothing = a->smoothing,
                              .eval_every = a->eval_every,
                              .lower_is_better = f->lower,
                              .patience = a->patience,
                              .dir = a->output,
                              .save_every = a->save_every,
                              .keep = a->keep,
                              .settings = f->settings };
    if (!optimizer(f, &o.optim, e) ||
        !ses_schedule_usual(ses_schedule_name((size_t)a->schedule, NULL), &o.schedule, e))
        return false;
    if (a->warmup >= 1)
        o.schedule.warmup = (int64_t)a->warmup;
    else if (strcmp(o.schedule.name, "slanted"))
        o.warmup_ratio = a->warmup; /* which has its own rise */
    f->trainer = ses_trainer_new(&o, e);
    return f->trainer != NULL;
}

static bool resume(ses_finetune *f, ses_err *e)
{
    ses_resumed from;
    if (!f->a->resume) return ses_trainer_forget(f->trainer, e); /* what --overwrite replaces */
    if (!ses_trainer_resume(f->trainer, &from, e)) return false;
    if (*from.refused) fprintf(stderr, "sesame: passed over: %s\n", from.refused);
    if (!from.found && *from.refused)
        return ses_fail(e, SES_EFORMAT, "%s: no checkpoint is whole; --overwrite begins anew", f->a->output);
    const ses_train_state *at = ses_trainer_state(f->trainer);
    f->first_update = at->updates;
    f->first_tokens = at->tokens;
    if (from.found && !f->quiet)
        fprintf(stderr, "going on from %s: update %" PRId64 " of %" PRId64 "\n", from.dir, at->updates,
                ses_trainer_total(f->trainer));
    return true;
}

static void announce(const ses_finetune *f)
{
    char a[SES_HUMAN], b[SES_HUMAN], c[SES_HUMAN];
    const ses_term *t = f->talk;
    if (f->quiet) return;
    fprintf(stderr, "%s%s%s: %s parameters, %s examples of %.1f tokens", ses_style_on(t, SES_BOLD),
            ses_model_class(f->tuner->model), ses_style_on(t, SES_PLAIN),
            ses_grouped(a, ses_store_numbers(ses_model_store(f->tuner->model))),
            ses_grouped(b, ses_dataset_size(f->train.data)),
            (double)ses_dataset_tokens(f->train.data) / (double)ses_dataset_size(f->train.data));
    if (f->eval.data) fprintf(stderr, ", %s to measure with", ses_grouped(c, (int64_t)f->n_eval));
    fprintf(stderr, ", %" PRId64 " updates\n", ses_trainer_total(f->trainer));
    ses_tune_tell_cut(f->tuner, &f->train, f->a->train);
    if (f->eval.data) ses_tune_tell_cut(f->tuner, &f->eval, f->a->eval);
    ses_finetune_tell_head(f);
}

static bool train(ses_finetune *f, ses_run_end *end, ses_err *e)
{
    ses_hooks h = { .ctx = f, .stepped = stepped, .stop = stop, .evaluate = f->eval.data ? evaluate : NULL };
    if (f->a->log && !(f->log = fopen(f->a->log, f->a->resume ? "a" : "w")))
        return ses_fail(e, SES_EIO, "%s: cannot be written", f->a->log);
    watch_signals();
    announce(f);
    f->start = ses_seconds();
    bool ok = ses_trainer_run(f->trainer, &h, end, e);
    f->seconds = elapsed(f);
    clear_line(f);
    if (f->log) fclose(f->log);
    f->log = NULL;
    f->loss_all += f->loss_sum, f->loss_n += f->loss_count;
    return ok;
}

static bool run(ses_call *c, ses_err *e)
{
    ses_finetune f = { .a = c->args, .talk = &c->err, .quiet = c->quiet, .eval_loss = NAN };
    ses_run_end end = SES_RUN_COMPLETE;
    ses_device_options o = { .threads = (int)f.a->tune.shared.threads,
                             .isa = ses_shared_isa(&f.a->tune.shared) };
    if (!ses_tune_resolve(&f.a->tune, &f.kind, &f.spec, e) || !ses_finetune_room(f.a, e)) return false;
    f.dev = ses_device_open(f.a->tune.shared.device, &o, e);
    bool ok = f.dev && prepare_data(&f, e) && prepare_model(&f, e) && prepare_trainer(&f, e) &&
              resume(&f, e) && train(&f, &end, e);
    if (ok && end != SES_RUN_STOPPED && f.eval.data && !ses_finetune_measure(&f, e)) {
        ok = interrupted != 0;
        if (ok) *e = (ses_err){ 0 };
        end = SES_RUN_STOPPED;
    }
    if (ok && end == SES_RUN_STOPPED) {
        fprintf(stderr,
                "stopped after update %" PRId64 " of %" PRId64 "; the same command with --resume goes on\n",
                ses_trainer_state(f.trainer)->updates, ses_trainer_total(f.trainer));
        ok = false;
    } else if (ok) {
        ok = ses_finetune_write(&f, e);
        if (ok && !c->quiet) ses_finetune_summary(&f, c, end);
        if (ok && f.a->tune.shared.json) ok = ses_finetune_print(&f, e);
    }
    ses_finetune_free(&f);
    return ok;
}

static const ses_example examples[] = {
    { "sesame finetune --model bert-base-uncased --task classify --train SST-2/train.tsv --eval "
      "SST-2/dev.tsv --output sst2",
      "a sentiment classifier" },
    { "sesame finetune --config bert-tiny --tokenizer vocab.txt --task tag --train train.txt --eval "
      "valid.txt -o ner",
      "a tagger from nothing but its training data" },
    { "sesame finetune ... --output sst2 --resume", "go on after an interruption, bit for bit" },
    { 0 },
};

const ses_command ses_command_finetune = {
    .name = "finetune",
    .usage = "",
    .summary = "train a model on labeled data, and measure it",
    .description =
        "Trains a model for a task on a file of labeled examples, measures it on another, keeps "
        "the best weights and "
        "writes a folder that every command here, and the reference library, can load: "
        "config.json with the labels, "
        "model.safetensors, the tokenizer, README.md, trainer_state.json, and train, eval and "
        "all_results.json.\n\n"
        "A model without a head for the task gets a new one. Columns that are not named are looked "
        "for by their usual names. Batches have no padding.\n\n"
        "Ctrl-C or SIGTERM saves a checkpoint and stops within one batch; --resume goes on from "
        "it and comes to the "
        "same bits as a run that was never stopped. Checkpoints are whole or not there at all.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_finetune_args),
    .run = run,
};
