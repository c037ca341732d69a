/* trainer_state.json: the position of a run, its history and its settings. Transformers' keys, the rest under
 * "sesame". */
#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "checkpoint_dir.h"
#include "settings_compare.h"
#include "trainer_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STATE_MAX = 1 << 28 };

/* Integer counters, by JSON key. */
static const struct {
    const char *key;
    size_t offset;
    bool optional; /* 0 if a checkpoint lacks it */
    bool if_used;  /* written if it is not 0 */
} counters[] = {
    { "epoch", offsetof(ses_train_state, epoch) },
    { "index", offsetof(ses_train_state, index) },
    { "waiting", offsetof(ses_train_state, accumulated) },
    { "updates", offsetof(ses_train_state, updates) },
    { "batches", offsetof(ses_train_state, batches) },
    { "sequences", offsetof(ses_train_state, sequences) },
    { "tokens", offsetof(ses_train_state, tokens) },
    { "evaluated", offsetof(ses_train_state, evaluated) },
    { "best_update", offsetof(ses_train_state, best_update) },
    { "worse", offsetof(ses_train_state, bad_evals) },
    { "waiting_predictions", offsetof(ses_train_state, accumulated_predictions), true, true },
    { "average_from", offsetof(ses_train_state, average_from), true },
    { "decays", offsetof(ses_train_state, decays), true },
    { "worse_since_decay", offsetof(ses_train_state, decay_evals), true },
};

static int64_t *counter(ses_train_state *s, size_t i)
{
    return (int64_t *)(void *)((char *)s + counters[i].offset);
}

/* Rejects counters that no run can reach: they are used as indices, divisors and loop bounds. */
static bool check_counts(const ses_trainer *t, const ses_train_state *s, ses_err *e)
{
    static const int64_t limit = INT64_MAX / 2;
    const struct {
        const char *key;
        int64_t value, min, max;
    } all[] = {
        { "updates", s->updates, 0, t->total_updates },
        { "epoch", s->epoch, 0, s->updates }, /* an epoch ends with an update */
        { "waiting", s->accumulated, 0, t->lanes ? 0 : t->o.accumulate - 1 },
        { "batches", s->batches, 0, limit },
        { "sequences", s->sequences, 0, limit },
        { "tokens", s->tokens, 0, limit },
        { "worse", s->bad_evals, 0, limit },
        { "waiting_predictions", s->accumulated_predictions, 0, limit },
        { "average_from", s->average_from, 0, s->updates },
        { "decays", s->decays, 0, limit },
        { "worse_since_decay", s->decay_evals, 0, limit },
        { "evaluated", s->evaluated, -1, s->updates },
        { "best_update", s->best_update, -1, s->updates },
    };
    for (size_t i = 0; i < SES_LEN(all); i++)
        if (all[i].value < all[i].min || all[i].value > all[i].max)
            return ses_fail(e, SES_EFORMAT, "\"%s\" is %" PRId64 "; expected %" PRId64 " to %" PRId64,
                            all[i].key, all[i].value, all[i].min, all[i].max);
    int64_t count = t->o.source.count(t->o.source.ctx, s->epoch);
    if (s->index < 0 || s->index > count)
        return ses_fail(e, SES_EFORMAT, "\"index\" is %" PRId64 "; expected 0 to %" PRId64, s->index, count);
    return isfinite(s->accumulated_loss) || ses_fail(e, SES_EFORMAT, "\"waiting_loss\" is not finite");
}

/* Puts a JSON text as a value; null if it does not parse. */
static bool put_json_text(ses_json_writer *w, const char *text, size_t n, ses_err *e)
{
    ses_err bad = { 0 };
    ses_json_doc *d = ses_json_parse(text, n, &bad);
    if (d)
        ses_json_put_value(w, ses_json_root(d));
    else
        ses_json_put_null(w);
    ses_json_free(d);
    return bad.code != SES_ENOMEM || ses_fail(e, SES_ENOMEM, "%s", bad.msg);
}

static bool put_log(const ses_trainer *t, ses_json_writer *w, ses_err *e)
{
    bool ok = true;
    ses_json_begin_array(w);
    for (const char *at = t->log.data; ok && at && *at;) {
        const char *end = strchr(at, '\n');
        ok = put_json_text(w, at, (size_t)(end - at), e);
        at = end + 1;
    }
    ses_json_end_array(w);
    return ok;
}

/* The "sesame" object. */
static bool put_own_state(ses_trainer *t, ses_json_writer *w, ses_err *e)
{
    ses_json_begin_object(w);
    for (size_t i = 0; i < SES_LEN(counters); i++)
        if (!counters[i].if_used || *counter(&t->at, i)) {
            ses_json_member_int(w, counters[i].key, *counter(&t->at, i));
        }
    ses_json_member_real(w, "waiting_loss", t->at.accumulated_loss);
    if (t->n_scores) {
        ses_json_member_array(w, "scores");
        for (size_t i = 0; i < t->n_scores; i++) ses_json_put_real(w, t->score[i]);
        ses_json_end_array(w);
    }
    ses_json_member_uint(w, "seed", t->o.seed);
    ses_json_member_string(w, "data", *t->data_hash ? t->data_hash : NULL);
    ses_json_put_key(w, "settings");
    bool ok = put_json_text(w, t->settings, strlen(t->settings), e);
    ses_json_end_object(w);
    return ok;
}

bool ses_trainer_write_state(ses_trainer *t, const char *path, bool overwrite, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    ses_json_begin_object(w);
    ses_json_put_key(w, "best_global_step");
    t->at.best_update < 0 ? ses_json_put_null(w) : ses_json_put_int(w, t->at.best_update);
    ses_json_member_real(w, "best_metric", t->at.best); /* NaN is written as null */
    ses_json_member_string(w, "best_model_checkpoint", t->best_dir);
    ses_json_member_real(w, "epoch", ses_trainer_epoch(t));
    ses_json_member_int(w, "global_step", t->at.updates);
    ses_json_put_key(w, "log_history");
    bool ok = put_log(t, w, e);
    ses_json_member_int(w, "max_steps", t->total_updates);
    ses_json_member_int(w, "num_input_tokens_seen", t->at.tokens);
    ses_json_member_int(w, "num_train_epochs", (int64_t)ceil(t->o.epochs));
    ses_json_member_real(w, "total_flos", t->at.flops);
    ses_json_put_key(w, "sesame");
    ok = put_own_state(t, w, e) && ok;
    ses_json_end_object(w);
    if (ok) return ses_json_writer_save(w, NULL, path, overwrite, e);
    ses_json_writer_free(w);
    return false;
}

/* The run has another length and cannot be extended, or another setting. */
static bool other_setting(const char *key, const char *was, const char *now, ses_err *e)
{
    bool length = !strcmp(key, "epochs") || !strcmp(key, "steps") || !strcmp(key, "updates");
    return ses_fail(
        e, SES_EARG, "the run was started with %s %s, not %s; %s", key, was, now,
        length ? "its learning rates depend on its length; a run can be extended only with the "
                 "schedule constant, inverse_sqrt or plateau and a warmup of 0 or a number of updates"
               : "resume it with the same settings");
}

/* Fails on the first setting that differs. */
static bool same_settings(const ses_trainer *t, const ses_json *was, ses_err *e)
{
    ses_setting_difference x;
    ses_json_doc *d = ses_json_parse(t->settings, strlen(t->settings), e);
    bool ok = d && ses_settings_compare(was, ses_json_root(d), &x, e) &&
              (!x.key || other_setting(x.key, x.a, x.b, e));
    ses_json_free(d);
    return ok;
}

static bool read_log(ses_trainer *t, const ses_json *log, ses_err *e)
{
    ses_buf_free(&t->log);
    for (size_t i = 0; i < ses_json_len(log); i++) {
        size_t n;
        ses_json_writer *w = ses_json_writer_new(0, e);
        if (!w) return false;
        ses_json_put_value(w, ses_json_at(log, i));
        const char *text = ses_json_writer_text(w, &n, e);
        if (text) ses_buf_append(&t->log, text, n), ses_buf_put(&t->log, '\n');
        ses_json_writer_free(w);
        if (!text) return false;
    }
    return ses_buf_ok(&t->log, e);
}

static bool read_counts(const ses_trainer *t, const ses_json *own, ses_train_state *at, ses_err *e)
{
    for (size_t i = 0; i < SES_LEN(counters); i++)
        if (!ses_json_int(ses_json_get(own, counters[i].key), counter(at, i)) &&
            !(counters[i].optional && !ses_json_get(own, counters[i].key)))
            return ses_fail(e, SES_EFORMAT, "\"sesame\" lacks the counter \"%s\"", counters[i].key);
    if (!ses_json_real(ses_json_get(own, "waiting_loss"), &at->accumulated_loss))
        return ses_fail(e, SES_EFORMAT, "\"sesame\" lacks \"waiting_loss\"");
    return check_counts(t, at, e);
}

static bool read_scores(ses_trainer *t, const ses_json *own, ses_err *e)
{
    const ses_json *list = ses_json_get(own, "scores");
    t->n_scores = 0;
    for (size_t i = 0; i < ses_json_len(list); i++) {
        double score = NAN; /* null */
        ses_json_real(ses_json_at(list, i), &score);
        if (!ses_trainer_keep_score(t, score, e)) return false;
    }
    return true;
}

/* Compares the folder's name only: dir may have been moved. */
static bool read_best(ses_trainer *t, const char *named, int64_t update, ses_err *e)
{
    ses_free(t->best_dir);
    t->best_dir = NULL;
    if (!named) return true;
    char *path = ses_checkpoint_dir_path(t->dir, (ses_checkpoint_dir){ update, 0 }, e);
    if (!path) return false;
    if (update < 0 || strcmp(ses_path_basename(named), ses_path_basename(path))) {
        ses_free(path);
        return ses_fail(e, SES_EFORMAT,
                        "\"best_model_checkpoint\" is \"%s\", but the best update is %" PRId64,
                        ses_quoted_of(named, strlen(named)).s, update);
    }
    t->best_dir = path;
    return true;
}

bool ses_trainer_read_state(ses_trainer *t, const char *path, ses_err *e)
{
    ses_json_doc *d = ses_json_load(path, STATE_MAX, e);
    if (!d) return false;
    const ses_json *root = ses_json_root(d), *own = ses_json_get(root, "sesame");
    ses_train_state at = { .saved = -1 };
    uint64_t seed = 0;
    bool ok = true;
    if (!ses_json_uint(ses_json_get(own, "seed"), &seed) || seed != t->o.seed)
        ok =
            ses_fail(e, SES_EARG, "the run was started with seed %" PRIu64 ", not %" PRIu64, seed, t->o.seed);
    ok = ok && same_settings(t, ses_json_get(own, "settings"), e);
    const char *data = ses_json_string(ses_json_get(own, "data"), NULL);
    if (ok && data && *t->data_hash && strcmp(data, t->data_hash))
        ok = ses_fail(e, SES_EARG,
                      "the run was started with other training data; resume it with the same data");
    int64_t done = 0, total = 0; /* a shorter run */
    if (ok && ses_json_int(ses_json_get(root, "global_step"), &done) &&
        ses_json_int(ses_json_get(root, "max_steps"), &total) && total > t->total_updates &&
        done > t->total_updates)
        ok = ses_fail(e, SES_EARG, "the run has %" PRId64 " updates already, more than %" PRId64, done,
                      t->total_updates);
    if (ok && !(read_counts(t, own, &at, e) && read_scores(t, own, e) &&
                read_log(t, ses_json_get(root, "log_history"), e) &&
                read_best(t, ses_json_string(ses_json_get(root, "best_model_checkpoint"), NULL),
                          at.best_update, e)))
        ok = ses_wrap(e, "%s", ses_path_basename(path));
    if (ok) {
        if (!ses_json_real(ses_json_get(root, "best_metric"), &at.best)) at.best = NAN;
        if (!ses_json_real(ses_json_get(root, "total_flos"), &at.flops) || !(at.flops >= 0) ||
            !isfinite(at.flops))
            at.flops = 0; /* an earlier version did not count */
        t->at = at;
        t->epoch_batches = t->o.source.count(t->o.source.ctx, at.epoch);
    }
    ses_json_free(d);
    return ok;
}
