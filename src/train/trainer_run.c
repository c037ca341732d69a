/* Whole runs: batches, evaluations and checkpoints. Evaluations and checkpoints depend on the counters
 * alone, so a resumed run does the same as an uninterrupted one. */
#include "base/alloc.h"
#include "trainer_impl.h"

#include <math.h>

/* Between two updates: at the end of the run, every `every` updates or, if 0, at the end of an epoch. */
static bool is_due(const ses_trainer *t, int64_t every)
{
    if (t->at.accumulated || !t->at.updates) return false;
    if (ses_trainer_done(t)) return true;
    if (every > 0) return t->at.updates % every == 0;
    return every == 0 && t->at.index == t->epoch_batches;
}

/* The last update crossed a multiple of `epochs`. Its first batch is a multiple of the batches per update. */
static bool crossed_epochs(const ses_trainer *t, double epochs)
{
    int64_t each = ses_trainer_update_batches(t);
    double count = (double)t->epoch_batches, first = (double)((t->at.index - 1) / each * each),
           before = (double)t->at.epoch + first / count, now = ses_trainer_epoch(t);
    return floor(now / epochs + 1e-9) > floor(before / epochs + 1e-9);
}

static bool evaluation_due(const ses_trainer *t)
{
    if (t->o.eval_epochs <= 0) return is_due(t, t->o.eval_every);
    return is_due(t, -1) || (!t->at.accumulated && t->at.updates && crossed_epochs(t, t->o.eval_epochs));
}

static bool is_better(const ses_trainer *t, double metric)
{
    if (isnan(t->at.best)) return !isnan(metric);
    return t->o.lower_is_better ? metric < t->at.best - t->o.min_delta : metric > t->at.best + t->o.min_delta;
}

/* Schedule plateau: more than `patience` evaluations in a row without improvement lower the learning rate. */
static void count_for_plateau(ses_trainer *t, double metric)
{
    if (!ses_schedule_needs_evaluation(&t->o.schedule)) return;
    t->at.decay_evals = is_better(t, metric) ? 0 : t->at.decay_evals + 1;
    if (t->at.decay_evals <= t->o.schedule.patience) return;
    t->at.decays++;
    t->at.decay_evals = 0;
}

bool ses_trainer_keep_score(ses_trainer *t, double score, ses_err *e)
{
    if (!ses_array_reserve(&t->score, &t->cap_scores, t->n_scores + 1, sizeof *t->score, e)) return false;
    t->score[t->n_scores++] = score;
    return true;
}

/* asgd's trigger: starts the average when the score is worse than the best one before the last N. */
static bool trigger_average(ses_trainer *t, double score, ses_err *e)
{
    size_t last = (size_t)t->o.optim.average_trigger;
    if (!last || t->at.average_from > 0) return true;
    double sign = t->o.lower_is_better ? 1 : -1, best = INFINITY;
    for (size_t i = 0; i + last < t->n_scores; i++) best = fmin(best, sign * t->score[i]);
    if (sign * score > best) {
        t->at.average_from = t->at.updates;
        for (size_t i = 0; i < t->n_stores; i++) ses_optim_average_from(t->optim[i], t->at.updates);
    }
    return ses_trainer_keep_score(t, score, e);
}

static bool evaluate(ses_trainer *t, const ses_trainer_hooks *h, ses_err *e)
{
    double metric = NAN;
    int64_t before = t->at.evaluated;
    t->at.evaluated = t->at.updates;
    if (!h->evaluate(h->ctx, &metric, e)) {
        t->at.evaluated = before; /* a resumed run repeats it */
        return false;
    }
    count_for_plateau(t, metric);
    if (!trigger_average(t, metric, e)) return false;
    if (!ses_trainer_selects_best(t)) return true;
    if (is_better(t, metric)) {
        t->at.best = metric;
        t->at.bad_evals = 0;
        if (t->o.keep_last) return true;
        t->at.best_update = t->at.updates;
        if (t->at.saved == t->at.updates) t->at.saved = -1; /* save again, now as the best checkpoint */
    } else {
        t->at.bad_evals++;
    }
    return true;
}

static bool save(ses_trainer *t, const ses_trainer_hooks *h, ses_err *e)
{
    if (!t->dir) return true;
    if (!ses_trainer_save(t, e)) return false;
    if (h->on_saved) h->on_saved(h->ctx, t->dir);
    return true;
}

/* save_every is reached, or the evaluation was the best so far. save_every 0 follows eval_every if nothing is
 * evaluated. */
static bool save_due(const ses_trainer *t, const ses_trainer_hooks *h)
{
    if (t->at.saved == t->at.updates || t->at.accumulated) return false;
    if (!h->evaluate && t->o.save_every == 0) return evaluation_due(t);
    bool best = t->at.best_update == t->at.updates && t->at.evaluated == t->at.updates;
    return best || (t->o.save_every == 0 ? t->at.evaluated == t->at.updates : is_due(t, t->o.save_every));
}

/* This rank's answer. */
static bool wants_stop(const ses_trainer_hooks *h) { return h->should_stop && h->should_stop(h->ctx); }

/* Before a step. Several ranks stop after the update in which one of them wanted to: they learn of it from
 * the results of that update, without a message of its own. */
static bool should_stop(ses_trainer *t, const ses_trainer_hooks *h)
{
    if (t->ranks == 1) return wants_stop(h);
    t->wants_stop = wants_stop(h);
    return t->must_stop;
}

static bool stop_here(ses_trainer *t, const ses_trainer_hooks *h, ses_run_end *end, ses_err *e)
{
    *end = SES_RUN_STOPPED;
    return (t->at.saved == t->at.updates && !t->at.accumulated) || save(t, h, e);
}

static bool run(ses_trainer *t, const ses_trainer_hooks *h, ses_run_end *end, ses_err *e)
{
    *end = SES_RUN_COMPLETE;
    for (;;) {
        ses_step_result s;
        if (h->evaluate && evaluation_due(t) && t->at.evaluated != t->at.updates && !evaluate(t, h, e)) {
            /* The ranks cancel an evaluation together: then all of them want to stop. Another failure may be
             * that of one rank, while the others wait for its results: no exchange is possible here. */
            if (!wants_stop(h)) return false;
            if (e) *e = (ses_err){ 0 }; /* it failed because it was cancelled */
            return stop_here(t, h, end, e);
        }
        if (save_due(t, h) && !save(t, h, e)) return false;
        if (ses_trainer_done(t)) break;
        if (t->o.patience > 0 && t->at.bad_evals >= t->o.patience) {
            *end = SES_RUN_EARLY_STOPPED;
            break;
        }
        if (should_stop(t, h)) return stop_here(t, h, end, e);
        if (!ses_trainer_step(t, &s, e)) return false;
        if (h->on_step) h->on_step(h->ctx, &s);
    }
    if (h->evaluate && !ses_trainer_restore_best(t, &t->restore_error)) { /* keep the last weights */
        ses_free(t->best_dir);
        t->best_dir = NULL;
    }
    return true;
}

bool ses_trainer_run(ses_trainer *t, const ses_trainer_hooks *h, ses_run_end *end, ses_err *e)
{
    if (ses_schedule_needs_evaluation(&t->o.schedule) && !h->evaluate)
        return ses_fail(e, SES_EARG, "schedule %s needs evaluations: give evaluation data",
                        t->o.schedule.name);
    ses_err local = { 0 }, *why = e ? e : &local;
    t->hooks = h;
    t->wants_stop = t->must_stop = false;
    bool ok = run(t, h, end, why);
    t->hooks = NULL;
    if (!ok) ses_comm_abort(t->o.comm, why);
    return ok;
}
