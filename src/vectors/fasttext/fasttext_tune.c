/* Autotune of supervised fastText models: fastText's search, with random numbers that depend on seed and
 * trial. */
#include "fasttext_tune.h"

#include "base/clock.h"
#include "base/number.h"
#include "base/rng.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

enum {
    SITE_TRIAL = 9,
    SETTLE = 64 /* trials after which steps are smallest, if only time is limited */,
    LEAST = 256
};

typedef struct tuner {
    const ses_fasttext_tuning *t;
    const ses_fasttext_texts *train, *valid;
    ses_fasttext_trial trial, best;
    int32_t nonzero_buckets;
    double start;
    bool out_of_time, stopped;
    ses_buf lines; /* the training texts with labels, for training again after pruning */
} tuner;

bool ses_fasttext_size_of(const char *text, int64_t *bytes, ses_err *e)
{
    size_t n = strlen(text);
    double x, unit = 1;
    if (n && strchr("kK", text[n - 1])) unit = 1e3;
    if (n && strchr("mM", text[n - 1])) unit = 1e6;
    if (n && strchr("gG", text[n - 1])) unit = 1e9;
    if (!n || !ses_parse_number(text, n - (unit > 1), &x) || !(x * unit >= 1) || x * unit > 1e15)
        return ses_fail(e, SES_EUSAGE, "size \"%s\": expected bytes, such as 2M", text);
    *bytes = (int64_t)(x * unit);
    return true;
}

/* ---- settings of a trial ---- */

/* A number near x: its deviation falls from `wide` to `narrow` while trials pass. */
static double near(const tuner *u, int which, double x, double low, double high, double wide, double narrow,
                   bool linear)
{
    double last = u->t->trials ? (double)u->t->trials : SETTLE, at = (double)(u->trial.number - 1) / last;
    double fall = at - 0.25 < 0 ? 0 : at - 0.25 > 0.5 ? 0.5 : at - 0.25;
    ses_rng_key key = { (uint64_t)u->t->start.seed, (uint32_t)u->trial.number, SITE_TRIAL };
    double step = ses_rand_normal(key, (uint64_t)which) * (wide - (wide - narrow) / 0.5 * fall);
    x = linear ? x + step : x * pow(2, step);
    return x < low ? low : x > high ? high : x;
}

static void choose(tuner *u)
{
    static const int32_t minn[] = { 0, 2, 3 };
    const ses_fasttext_tuning *t = u->t;
    ses_fasttext_settings *s = &u->trial.o.set;
    int32_t at = 0;
    int exponent = 0;
    while ((1 << (exponent + 1)) <= u->best.dsub) exponent++;
    for (int32_t i = 0; i < 3; i++)
        if (minn[i] == s->minn) at = i;
    if (!t->fixed.epoch) s->epoch = (int32_t)near(u, 0, s->epoch, 1, 100, 2.8, 2.5, false);
    if (!t->fixed.lr) u->trial.o.lr = near(u, 1, u->trial.o.lr, 0.01, 5, 1.9, 1.0, false);
    if (!t->fixed.dim) s->dim = (int32_t)near(u, 2, s->dim, 1, 1000, 1.4, 0.3, false);
    if (!t->fixed.word_ngrams) s->word_ngrams = (int32_t)near(u, 3, s->word_ngrams, 1, 5, 4.3, 2.4, true);
    if (!t->fixed.dsub) u->trial.dsub = 1 << (int)near(u, 4, exponent, 1, 4, 2.0, 1.0, true);
    if (!t->fixed.minn) s->minn = minn[(int)near(u, 5, at, 0, 2, 4.0, 1.4, true)];
    if (!t->fixed.maxn) s->maxn = s->minn ? s->minn + 3 : 0;
    s->bucket = t->fixed.bucket ? t->start.set.bucket
                                : (int32_t)near(u, 6, u->nonzero_buckets, 10000, 10000000, 2.0, 1.5, false);
    if (u->trial.dsub > s->dim) u->trial.dsub = s->dim;
}

/* ---- one trial ---- */

static bool watch(void *ctx, int64_t done, int64_t total)
{
    tuner *u = ctx;
    (void)done, (void)total;
    u->out_of_time |= u->t->seconds > 0 && ses_seconds() - u->start > u->t->seconds;
    u->stopped |=
        u->t->start.progress && !u->t->start.progress(u->t->start.ctx, u->trial.number, u->t->trials);
    return !u->out_of_time && !u->stopped;
}

/* Rows to keep for a file of the size; the sizes of the parts as in the file. */
static int64_t cutoff_of(const ses_fasttext_model *m, int64_t size, int32_t dsub, bool output)
{
    int64_t dim = m->set.dim, labels = m->out.rows;
    int64_t out = output ? 21 + labels * ((dim + 1) / 2) + 16 + 4 * dim * SES_CENTROIDS + labels
                         : 16 + 4 * labels * dim;
    int64_t cutoff = (size - 107 - 4 * SES_CENTROIDS * dim - out) / ((dim + dsub - 1) / dsub + 1 + 10);
    return cutoff > LEAST ? cutoff : LEAST;
}

static bool join_lines(tuner *u, ses_err *e)
{
    const ses_fasttext_texts *t = u->train;
    const char *prefix = u->t->start.label ? u->t->start.label : "__label__";
    for (size_t i = 0; i < t->n && !u->lines.wanted; i++) {
        if (t->label) {
            ses_buf_puts(&u->lines, prefix);
            ses_buf_append(&u->lines, t->label_name[t->label[i]].p, t->label_name[t->label[i]].n);
            ses_buf_put(&u->lines, ' ');
        }
        size_t from = u->lines.len;
        ses_buf_append(&u->lines, t->text[i].p, t->text[i].n);
        for (size_t k = from; k < u->lines.len; k++)
            if (u->lines.data[k] == '\n') u->lines.data[k] = ' ';
        ses_buf_put(&u->lines, '\n');
    }
    return ses_buf_ok(&u->lines, e);
}

/* Quantizes to the size; *fits false: it is impossible. */
static bool compress(tuner *u, ses_fasttext_model *m, bool *fits, ses_err *e)
{
    *fits = true;
    if (!u->t->model_size) return true;
    bool output = m->out.rows >= SES_CENTROIDS;
    u->trial.cutoff = cutoff_of(m, u->t->model_size, u->trial.dsub, output);
    *fits = u->trial.cutoff > LEAST && m->in.rows >= SES_CENTROIDS;
    if (!*fits) return true;
    ses_fasttext_quantizing q = { .cutoff = u->trial.cutoff,
                                  .norms = true,
                                  .output = output,
                                  .dsub = u->trial.dsub,
                                  .retrain = { u->lines.data, u->lines.len },
                                  .again = u->trial.o };
    return ses_fasttext_quantize(m, &q, u->t->pool, e);
}

static bool train_trial(tuner *u, ses_fasttext_model *m, bool limited, bool *fits, ses_err *e)
{
    ses_fasttext_run run = { .pool = u->t->pool };
    u->trial.o.progress = limited ? watch : u->t->start.progress;
    u->trial.o.ctx = limited ? (void *)u : u->t->start.ctx;
    return ses_fasttext_check(&u->trial.o, e) && ses_fasttext_train(&u->trial.o, u->train, &run, m, e) &&
           compress(u, m, fits, e);
}

/* Runs a trial. A model that diverges or does not fit into memory has failed, and the search continues. */
static bool run_trial(tuner *u, ses_err *e)
{
    ses_fasttext_model m = { 0 };
    ses_fasttext_meter meter = { 0 };
    ses_err trouble = { 0 };
    bool fits = true, ok = true;
    double start = ses_seconds();
    u->trial.score = (double)NAN;
    u->trial.reason = "";
    u->trial.cutoff = 0;
    if (!train_trial(u, &m, true, &fits, &trouble)) {
        u->trial.reason = trouble.code == SES_ENOMEM ? "not enough memory" : "diverged";
        ok = trouble.code == SES_ENOMEM || strstr(trouble.msg, "diverged") || u->out_of_time || u->stopped;
        if (!ok) *e = trouble;
    } else if (!fits) {
        u->trial.reason = "larger than the size limit";
    } else {
        ok = ses_fasttext_measure(&m, u->valid, u->t->predictions ? u->t->predictions : 1, 0, &meter, e) &&
             ses_fasttext_metric_score(&u->t->metric, &m, &meter, &u->trial.score, e);
        if (ok && !meter.examples)
            ok = ses_fail(e, SES_EARG, "no validation text has a label of the training texts");
    }
    u->trial.seconds = ses_seconds() - start;
    ses_fasttext_meter_free(&meter);
    ses_fasttext_clear(&m);
    return ok;
}

bool ses_fasttext_tune(const ses_fasttext_tuning *t, const ses_fasttext_texts *train,
                       const ses_fasttext_texts *valid, ses_fasttext_model *m, ses_fasttext_trial *best,
                       ses_err *e)
{
    tuner u = { .t = t, .train = train, .valid = valid, .start = ses_seconds() };
    bool found = false, fits, ok = !t->model_size || join_lines(&u, e);
    u.best = (ses_fasttext_trial){ .o = t->start, .dsub = t->dsub ? t->dsub : 2 };
    u.nonzero_buckets = t->start.set.bucket ? t->start.set.bucket : 2000000;
    for (int64_t i = 1; ok && (!t->trials || i <= t->trials) && !u.out_of_time && !u.stopped; i++) {
        u.trial = u.best;
        u.trial.number = i;
        if (i > 1) choose(&u);
        ok = run_trial(&u, e);
        if (!ok || u.out_of_time || u.stopped) break;
        u.trial.best = u.trial.score > (found ? u.best.score : -1);
        if (u.trial.best) {
            found = true;
            u.best = u.trial;
            if (u.trial.o.set.bucket) u.nonzero_buckets = u.trial.o.set.bucket;
        }
        if (t->on_trial) t->on_trial(t->ctx, &u.trial);
        u.out_of_time |= t->seconds > 0 && ses_seconds() - u.start > t->seconds;
    }
    if (ok && u.stopped) ok = ses_fail(e, SES_EIO, "interrupted; nothing was written");
    if (ok && !found)
        ok = ses_fail(e, SES_EARG, "no trial has succeeded: allow more time, more trials or a larger model");
    u.trial = u.best;
    ok = ok && train_trial(&u, m, false, &fits, e);
    *best = u.best;
    ses_buf_free(&u.lines);
    return ok;
}
