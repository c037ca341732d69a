/* A run of a method: data, members with their files, the final model. */
#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/sha.h"
#include "base/str.h"
#include "data/examples_sample.h"
#include "train/checkpoint_dir.h"
#include "train/settings_compare.h"
#include "train/train_folder.h"
#include "train/train_options.h"
#include "tune/data/held_out.h"
#include "tune/transfer.h"
#include "tune_method.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const PLAN = "plan.json", *const DONE = "method.json";

/* ---- events ---- */

static bool on_event(void *ctx, const ses_training_event *ev)
{
    ses_tune_run *r = ctx;
    if (r->o.on_event && !r->o.on_event(r->o.ctx, ev)) r->end = SES_RUN_STOPPED;
    return r->end != SES_RUN_STOPPED;
}

bool ses_tune_notify(ses_tune_run *r, const char *fmt, ...)
{
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return ses_training_notify(on_event, r, "%s", text);
}

/* ---- examples ---- */

static ses_example_input input_of(const ses_examples *d, size_t i, const char *label)
{
    const ses_labeled_example *x = ses_examples_at(d, i);
    return (
        ses_example_input){ .text = x->text_a.p, .pair = x->text_b.n ? x->text_b.p : NULL, .label = label };
}

ses_examples *ses_tune_examples(const ses_tune_run *r, bool with_train, const size_t *pick,
                                const int32_t *label, size_t n, ses_err *e)
{
    size_t old = with_train ? ses_examples_count(r->train) : 0;
    ses_example_input *x = ses_alloc_array(old + n + 1, sizeof *x, e);
    if (!x) return NULL;
    for (size_t i = 0; i < old; i++)
        x[i] = input_of(r->train, i,
                        ses_examples_label_value(r->train, (size_t)ses_examples_at(r->train, i)->label));
    for (size_t i = 0; i < n; i++)
        x[old + i] = input_of(r->unlabeled, pick[i], ses_examples_label_value(r->train, (size_t)label[i]));
    ses_examples *d = ses_examples_new(SES_DATA_CLASSIFY, x, old + n, NULL, r->train, e);
    ses_free(x);
    return d;
}

int32_t ses_tune_best(const ses_tune_run *r, const float *score, size_t i, double *probability)
{
    size_t n = ses_examples_label_count(r->train);
    return (int32_t)ses_finetuner_softmax(score + i * n, n, probability);
}

/* Texts as a table like the training data, or one text per line (.txt). */
static bool read_unlabeled(ses_tune_run *r, const char *path, ses_err *e)
{
    size_t n = strlen(path);
    ses_data_spec spec = r->spec;
    bool lines = n > 4 && !strcmp(path + n - 4, ".txt");
    spec.no_labels = true;
    spec.label = NULL;
    spec.label_values = spec.label_names = NULL;
    if (lines) {
        spec.no_header = true, spec.text_a = "1", spec.text_b = NULL;
        spec.table = SES_TABLE_TSV, spec.quotes = SES_QUOTES_OFF, spec.delimiter = '\1'; /* one field */
    }
    r->unlabeled = ses_data_open(&spec, path, r->train, e);
    return r->unlabeled != NULL;
}

/* Draws the training examples once: members and the final model then use all of theirs. */
static bool draw_train(ses_tune_run *r, ses_err *e)
{
    ses_sample s = { r->o.train_size, r->o.shots, (uint64_t)r->o.run.seed };
    if (!s.size && !s.shots) return true;
    r->whole_train = r->train;
    r->train = ses_examples_sample(r->whole_train, &s, e);
    r->o.train_size = r->o.shots = 0;
    return r->train || ses_wrap(e, "%s", r->o.train);
}

/* The evaluation data are read for the final model only: others are trained before it. */
static bool check_eval(const ses_tune_run *r, ses_err *e)
{
    if (r->o.eval_examples) return true;
    ses_examples *d = r->o.eval ? ses_data_open(&r->spec, r->o.eval, r->train, e) : NULL;
    bool ok = d || !r->o.eval;
    ses_examples_free(d);
    return ok;
}

/* eval 10%: the final model alone is evaluated on the part. */
static bool hold_out(ses_tune_run *r, ses_err *e)
{
    const char *eval = r->o.eval;
    if (!ses_held_out_is(eval)) return true;
    r->divided_train = r->train;
    r->o.eval = NULL;
    bool ok = ses_held_out_take(eval, (uint64_t)r->o.run.seed, r->divided_train, &r->train, &r->held, e);
    r->o.eval_examples = r->held;
    return ok || ses_wrap(e, "%s", r->o.train);
}

static bool read_data(ses_tune_run *r, ses_err *e)
{
    const ses_tune_method *m = r->plan.method;
    const char *path = r->o.unlabeled;
    r->train = ses_data_open(&r->spec, r->o.train, NULL, e);
    if (!r->train || !hold_out(r, e) || !draw_train(r, e)) return false;
    if (!ses_examples_check_learnable(r->train, e)) return ses_wrap(e, "%s", r->o.train);
    for (size_t i = 0; i < ses_examples_count(r->train); i++)
        if (ses_examples_at(r->train, i)->label < 0)
            return ses_fail(e, SES_EFORMAT, "%s: line %llu: no label", r->o.train,
                            (unsigned long long)ses_examples_at(r->train, i)->line);
    if (!check_eval(r, e) || (m->needs_unlabeled && !read_unlabeled(r, path, e))) return false;
    if (m->needs_patterns) r->patterns = ses_patterns_open(r->o.task.patterns, e);
    return !m->needs_patterns || r->patterns;
}

static bool check_options(const ses_tune_run *r, const ses_finetune_task *task, ses_err *e)
{
    const ses_tune_method *m = r->plan.method;
    const ses_finetune_options *o = &r->o;
    if (!task->ways[SES_WAY_PATTERNS] && task->way != SES_WAY_PATTERNS)
        return ses_fail(e, SES_EUSAGE, "method %s classifies texts: --task classify, not %s", m->name,
                        task->name);
    if (!o->model)
        return ses_fail(e, SES_EUSAGE, "method %s needs --model DIR; sesame-small is the bundled encoder",
                        m->name);
    if (!o->train) return ses_fail(e, SES_EUSAGE, "method %s needs --train FILE", m->name);
    if (m->needs_patterns && !o->task.patterns)
        return ses_fail(e, SES_EUSAGE,
                        "method %s needs --patterns FILE: cloze patterns and a word for each label", m->name);
    if (!m->needs_patterns && o->task.patterns)
        return ses_fail(e, SES_EUSAGE, "method %s reads no patterns: leave out --patterns", m->name);
    if (m->needs_unlabeled && !o->unlabeled)
        return ses_fail(e, SES_EUSAGE, "method %s needs --unlabeled FILE: texts without labels", m->name);
    if (!m->needs_unlabeled && o->unlabeled)
        return ses_fail(e, SES_EUSAGE, "method %s reads no unlabeled texts: leave out --unlabeled", m->name);
    if (m->length && o->run.epochs != ses_finetune_defaults().run.epochs)
        return ses_fail(e, SES_EUSAGE, "method %s has no epochs: --%s or --steps sets its length", m->name,
                        m->length);
    if (o->n_also) return ses_fail(e, SES_EUSAGE, "method %s has one data set", m->name);
    if (o->teacher.model) return ses_fail(e, SES_EUSAGE, "method %s: leave out the teacher", m->name);
    return o->run.output || ses_fail(e, SES_EUSAGE, "method %s needs --output OUT", m->name);
}

/* ---- the folder of members ---- */

/* The hash of the bytes of a file. */
static bool put_hash(const char *key, const char *path, ses_json_writer *w, ses_err *e)
{
    enum { HASHED_MAX = 1 << 28 };
    char hex[SES_SHA256_HEX + 1];
    size_t n;
    char *bytes = ses_file_read(path, HASHED_MAX, &n, e);
    if (!bytes) return false;
    ses_sha h = ses_sha256_start();
    ses_sha_add(&h, bytes, n);
    ses_sha_hex(&h, hex);
    ses_json_member_string(w, key, hex);
    ses_free(bytes);
    return true;
}

static void put_training(const ses_finetune_options *o, ses_json_writer *w)
{
    const ses_training_options *t = &o->run;
    ses_json_member_int(w, "seed", t->seed);
    ses_json_member_real(w, "lr", t->lr);
    ses_json_member_real(w, "epochs", t->epochs);
    ses_json_member_int(w, "steps", t->steps);
    ses_json_member_int(w, "batch-size", t->batch_size);
    ses_json_member_int(w, "tokens-per-batch", t->tokens_per_batch);
    ses_json_member_int(w, "accumulate", t->accumulate);
    ses_json_member_int(w, "max-length", o->task.max_length);
    ses_json_member_real(w, "weight-decay", t->weight_decay);
    ses_json_member_real(w, "clip", t->max_grad_norm);
    ses_json_member_real(w, "label-smoothing", o->label_smoothing);
    ses_training_put_optimizer(t, w);
    ses_transfer_put_settings(&o->transfer, w);
}

/* Settings that a resumed run must have in common. */
static bool put_plan(const ses_tune_run *r, ses_json_writer *w, ses_err *e)
{
    const ses_tune_settings *s = &r->plan.settings;
    ses_json_begin_object(w);
    ses_json_member_string(w, "method", r->plan.method->name);
    ses_json_member_string(w, "model", r->o.model);
    ses_json_member_int(w, "train_examples", (int64_t)ses_examples_count(r->train));
    ses_json_member_int(w, "unlabeled_texts", r->unlabeled ? (int64_t)ses_examples_count(r->unlabeled) : 0);
    ses_json_member_int(w, "patterns", r->patterns ? (int64_t)r->patterns->n_patterns : 0);
    ses_json_member_int(w, "pattern", r->o.task.pattern);
    if (r->patterns && !put_hash("patterns (SHA-256)", r->o.task.patterns, w, e)) return false;
    ses_json_member_real(w, "c", r->plan.c > 0 ? r->plan.c : 1);
    put_training(&r->o, w);
    ses_json_member_int(w, "repetitions", s->repetitions);
    ses_json_member_int(w, "member-steps", s->member_steps);
    ses_json_member_int(w, "member-weights", s->member_weight);
    ses_json_member_real(w, "mlm-weight", s->mlm_weight);
    ses_json_member_real(w, "soft-temperature", s->temperature);
    ses_json_member_int(w, "generations", s->generations);
    ses_json_member_real(w, "growth", s->growth);
    ses_json_member_real(w, "voters", s->voters);
    ses_json_member_int(w, "rounds", s->rounds);
    ses_json_member_real(w, "threshold", s->threshold);
    ses_json_member_int(w, "pair-draws", s->pairs);
    ses_json_member_int(w, "demonstration-sets", s->demonstration_sets);
    ses_json_member_int(w, "search-words", s->search_words);
    ses_json_end_object(w);
    return true;
}

/* Before the method changes the options. */
static bool describe(ses_tune_run *r, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (w && !put_plan(r, w, e)) {
        ses_json_writer_free(w);
        return false;
    }
    r->description = w ? ses_json_writer_parse(w, e) : NULL;
    return r->description != NULL;
}

static ses_json_doc *open_if_there(const char *dir, const char *name, ses_err *e)
{
    char *path = ses_path_join(dir, name, e);
    ses_json_doc *d = path && ses_path_exists(path) ? ses_json_load_object(path, 1 << 20, e) : NULL;
    ses_free(path);
    return d;
}

/* Fails if the run in the folder had other settings. *there: it has a plan. */
static bool compare_plan(const ses_tune_run *r, const char *dir, const char *name, bool *there, ses_err *e)
{
    ses_setting_difference x = { 0 };
    ses_json_doc *was = open_if_there(dir, name, e);
    *there = was != NULL;
    bool ok =
        !was ? !e->code : ses_settings_compare(ses_json_root(was), ses_json_root(r->description), &x, e);
    if (ok && x.key)
        ok = ses_fail(e, SES_EUSAGE,
                      "%s: the run to resume has %s %s, this one %s; use its settings, or --overwrite",
                      r->o.run.output, x.key, x.a, x.b);
    ses_json_free(was);
    return ok;
}

static bool save_plan(const ses_tune_run *r, const char *dir, const char *name, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    if (w) ses_json_put_value(w, ses_json_root(r->description));
    return w && ses_json_writer_save(w, dir, name, true, e);
}

/* run.json, so that --resume needs no other options. */
static bool save_run_info(const ses_tune_run *r, ses_err *e)
{
    char *path = ses_path_join(r->dir, SES_RUN_INFO, e);
    bool ok = path && ses_file_remove(path, e) &&
              ses_run_info_write(&(ses_run_info){ .command = r->o.command,
                                                  .options = r->o.command_options,
                                                  .method = r->plan.method->name },
                                 r->dir, e);
    ses_free(path);
    return ok;
}

static bool prepare_folder(ses_tune_run *r, ses_err *e)
{
    const ses_training_options *t = &r->o.run;
    bool there, done = false;
    r->dir = ses_path_join(t->output, SES_RUN_MEMBERS, e);
    if (!r->dir) return false;
    if (t->overwrite && t->resume)
        return ses_fail(e, SES_EUSAGE, "resume continues a run, overwrite replaces it: set one");
    if (t->overwrite && !ses_dir_remove_all(r->dir, e)) return false;
    if (!t->resume && ses_path_exists(r->dir))
        return ses_fail(e, SES_EIO,
                        "%s: not empty: an unfinished run; resume continues it, overwrite replaces it",
                        t->output);
    if (t->resume && !compare_plan(r, r->dir, PLAN, &there, e)) return false;
    if (t->resume && !there && !compare_plan(r, t->output, DONE, &done, e)) return false;
    if (done) r->end = SES_RUN_WAS_COMPLETE;
    if (done) return true;
    r->o.run.resume = t->resume && there;
    if (!t->resume && !ses_train_folder_check(t, e)) return false;
    return ses_dir_make(t->output, e) && ses_dir_make(r->dir, e) && save_plan(r, r->dir, PLAN, e) &&
           save_run_info(r, e);
}

/* ---- members ---- */

static bool save_vote(const ses_tune_run *r, const char *name, const ses_tune_vote *v, ses_err *e)
{
    size_t n = ses_examples_count(r->unlabeled) * ses_examples_label_count(r->train);
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_real(w, "accuracy", v->accuracy);
    ses_json_put_key(w, "scores");
    ses_json_put_floats(w, v->score, (int64_t)n);
    ses_json_end_object(w);
    return ses_json_record_save(w, 0, r->dir, name, true, e);
}

/* *there: the member was finished by the run that is resumed, and its record is intact. */
static bool read_vote(const ses_tune_run *r, const char *name, ses_tune_vote *v, bool *there, ses_err *e)
{
    enum { VOTE_MAX = 1 << 30 };
    size_t n = ses_examples_count(r->unlabeled) * ses_examples_label_count(r->train);
    char *path = ses_path_join(r->dir, name, e);
    *there = path && ses_path_exists(path);
    ses_err why = { 0 };
    ses_json_doc *d = *there ? ses_json_record_load(path, VOTE_MAX, false, &why) : NULL;
    const ses_json *list = d ? ses_json_get(ses_json_root(d), "scores") : NULL;
    *there = *there && why.code != SES_EFORMAT; /* damaged: the member is trained again */
    bool ok = path && (!*there || d || ses_fail(e, why.code, "%s", why.msg));
    if (d &&
        (ses_json_len(list) != n || !ses_json_real(ses_json_get(ses_json_root(d), "accuracy"), &v->accuracy)))
        ok = ses_fail(e, SES_EFORMAT, "%s: %zu scores, expected %zu; --overwrite starts anew", path,
                      ses_json_len(list), n);
    for (size_t i = 0; ok && d && i < n; i++) {
        double x = NAN;
        ses_json_real(ses_json_at(list, i), &x);
        v->score[i] = (float)x;
    }
    ses_json_free(d);
    ses_free(path);
    return ok;
}

static bool on_label_batch(void *ctx, int64_t done, int64_t total)
{
    return on_event(
        ctx, &(ses_training_event){
                 .kind = SES_TRAINING_EVALUATING, .done = done, .total = total, .loss = NAN, .metric = NAN });
}

/* Scores of examples by the model of a run. */
static bool score_examples(ses_tune_run *r, ses_finetune *f, const ses_examples *rows, float *out, ses_err *e)
{
    ses_finetune_set set = { 0 };
    ses_finetune_outputs o = { 0 };
    size_t n = ses_examples_count(rows) * ses_examples_label_count(r->train);
    f->tuner->unlabeled = true;
    bool ok = ses_finetuner_encode(f->tuner, rows, &set, e) &&
              ses_finetuner_predict(f->tuner, &set, &o, on_label_batch, r, e);
    if (ok) memcpy(out, o.score, n * sizeof *out);
    ses_finetune_outputs_free(&o);
    ses_finetune_set_free(&set);
    return ok;
}

static bool measure_accuracy(ses_tune_run *r, ses_finetune *f, double *out, ses_err *e)
{
    size_t n = ses_examples_count(r->train), right = 0;
    double p;
    float *score = ses_alloc_array(n * ses_examples_label_count(r->train), sizeof *score, e);
    bool ok = score && score_examples(r, f, r->train, score, e);
    for (size_t i = 0; ok && i < n; i++)
        right += ses_tune_best(r, score, i, &p) == ses_examples_at(r->train, i)->label;
    *out = ok ? (double)right / (double)n : 0;
    ses_free(score);
    return ok;
}

ses_finetune_options ses_tune_member_options(ses_tune_run *r, const ses_tune_member *m)
{
    ses_finetune_options o = r->o;
    o.train = o.eval = o.unlabeled = NULL;
    o.eval_examples = NULL;
    o.train_examples = m->train ? m->train : r->train;
    o.task.few_shot = m->how;
    o.task.pattern = m->pattern;
    if (!m->pattern) o.task.patterns = NULL;
    o.run.output = o.run.log = o.run.tensorboard = NULL;
    o.run.resume = o.run.overwrite = false;
    o.run.seed = m->seed;
    if (m->steps) o.run.steps = m->steps;
    o.run.eval_every = o.run.save_every = -1;
    o.eval_epochs = 0;
    o.metric = NULL;
    o.on_event = on_event;
    o.ctx = r;
    return o;
}

static bool train_member(ses_tune_run *r, const ses_tune_member *m, ses_tune_vote *v, ses_err *e)
{
    ses_finetune_options o = ses_tune_member_options(r, m);
    ses_finetune *f = ses_finetune_new(&o, r->dev, e);
    v->accuracy = 0;
    bool ok = f &&
              (!m->pattern ||
               (measure_accuracy(r, f, &v->accuracy, e) &&
                ses_tune_notify(r, "accuracy on the training data before training: %.4f", v->accuracy))) &&
              ses_finetune_run(f, &(ses_run_end){ 0 }, e) && r->end != SES_RUN_STOPPED &&
              score_examples(r, f, r->unlabeled, v->score, e);
    ses_finetune_free(f);
    return ok && r->end != SES_RUN_STOPPED;
}

bool ses_tune_member_run(ses_tune_run *r, const ses_tune_member *m, ses_tune_vote *v, ses_err *e)
{
    char name[80];
    bool there;
    size_t n = ses_examples_count(r->unlabeled) * ses_examples_label_count(r->train);
    snprintf(name, sizeof name, "%s.json", m->name);
    v->score = ses_arena_array(&r->mem, n, sizeof *v->score, e);
    if (!v->score || !read_vote(r, name, v, &there, e)) return false;
    if (there) return ses_tune_notify(r, "%s: finished before", m->name);
    return ses_tune_notify(r, "%s", m->name) &&
           (train_member(r, m, v, e) || (r->end != SES_RUN_STOPPED && ses_wrap(e, "%s", m->name))) &&
           save_vote(r, name, v, e);
}

/* A resumed run continues the final model if it had begun and saved a checkpoint; checkpoints in the folder
 * may also be of the run that this one has replaced. */
static bool final_resumes(const ses_tune_run *r, const char *mark, bool *yes, ses_err *e)
{
    ses_checkpoint_dirs l = { 0 };
    *yes = r->o.run.resume && ses_path_exists(mark);
    bool ok = !*yes || ses_checkpoint_dirs_find(r->o.run.output, &l, e);
    *yes = *yes && l.n > 0;
    ses_free(l.p);
    return ok;
}

static bool run_final(ses_tune_run *r, const ses_finetune_options *options, ses_err *e)
{
    ses_finetune_options o = *options;
    char *mark = ses_path_join(r->dir, "final", e);
    bool ok = mark && final_resumes(r, mark, &o.run.resume, e);
    o.run.overwrite = !o.run.resume; /* the folder was checked before */
    r->final = ok ? ses_finetune_new(&o, r->dev, e) : NULL;
    ok = r->final && ses_file_write(mark, "", 0, true, e) && ses_finetune_run(r->final, &r->end, e);
    ses_free(mark);
    return ok;
}

bool ses_tune_final(ses_tune_run *r, ses_err *e)
{
    ses_finetune_options o = r->o;
    o.train_examples = r->extra ? r->extra : r->train;
    o.train = o.unlabeled = NULL;
    o.task.few_shot = &r->how;
    o.on_event = on_event;
    o.ctx = r;
    return !ses_tune_notify(r, "final model") || run_final(r, &o, e);
}

/* ---- the run ---- */

static bool run(ses_tune_run *r, ses_err *e)
{
    const ses_finetune_task *task;
    if (!ses_finetune_resolve_task(&r->o.data, &r->o.task, &task, &r->spec, e) ||
        !check_options(r, task, e) || !read_data(r, e) || !describe(r, e) || !prepare_folder(r, e))
        return false;
    if (r->end == SES_RUN_WAS_COMPLETE) return true;
    bool ok = r->plan.method->run(r, e);
    if (!ok && r->end == SES_RUN_STOPPED) {
        if (e) *e = (ses_err){ 0 };
        return true;
    }
    return ok && (r->end == SES_RUN_STOPPED ||
                  (save_plan(r, r->o.run.output, DONE, e) && ses_dir_remove_all(r->dir, e)));
}

ses_tune_run *ses_tune_method_run(const ses_finetune_options *o, const ses_tune_plan *p, ses_device *d,
                                  ses_err *e)
{
    ses_tune_run *r = ses_alloc(sizeof *r, e);
    if (!r) return NULL;
    r->o = *o;
    r->plan = *p;
    r->dev = d;
    r->end = SES_RUN_COMPLETE;
    if (run(r, e)) return r;
    ses_tune_run_free(r);
    return NULL;
}

void ses_tune_run_free(ses_tune_run *r)
{
    if (!r) return;
    ses_finetune_free(r->final);
    ses_examples_free(r->extra);
    ses_examples_free(r->train);
    ses_examples_free(r->whole_train);
    ses_examples_free(r->held);
    ses_examples_free(r->divided_train);
    ses_examples_free(r->unlabeled);
    ses_patterns_free(r->patterns);
    ses_json_free(r->description);
    ses_arena_free(&r->mem);
    ses_free(r->dir);
    ses_free(r);
}
