/* Successive halving (Jamieson and Talwalkar 2016): all runs get a small part of their length, the best 1/eta
 * of them eta times as much, and so on; the last ones the whole. A run stops at an evaluation, as by a
 * signal, and continues from its checkpoint: a run of the whole length has the same bits as a run alone. */
#include "finetune_search.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "cli/train/command_text.h"
#include "cli/train/train_monitor.h"
#include "sesame/metric.h"
#include "train/train_folder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 1 << 28 };

static double power(const ses_search *s, size_t n) { return pow((double)s->a->eta, (double)n); }

/* ---- plan ---- */

bool ses_halving_plan(ses_search *s, ses_err *e)
{
    const ses_finetune_args *a = s->a;
    const ses_training_options *r = &a->s.train.run;
    if (s->seeds > 1)
        return ses_fail(e, SES_EUSAGE,
                        "--search halving compares single runs: --seeds 1; repeat the best with --seeds");
    if (a->s.method)
        return ses_fail(e, SES_EUSAGE, "--search halving continues runs from checkpoints: --method has none");
    if (a->s.o.last_weights || r->eval_every || a->s.o.eval_epochs > 0 || a->s.o.patience)
        return ses_fail(e, SES_EUSAGE,
                        "--search halving sets the evaluations: remove --eval-every, --eval-epochs, "
                        "--patience and --last-weights");
    for (size_t i = 0; i < s->space.n_axes; i++)
        if (ses_list_has("epochs|steps|eval-every|eval-epochs|patience|method|save-every",
                         s->space.axis[i].opt.name))
            return ses_fail(e, SES_EUSAGE, "--search halving: --%s is the same for all runs",
                            s->space.axis[i].opt.name);
    s->rounds = 1;
    while (power(s, s->rounds) <= (double)s->points && s->rounds < SES_SEARCH_ROUNDS &&
           (!r->steps || power(s, s->rounds) <= (double)r->steps))
        s->rounds++;
    return s->rounds > 1 ||
           ses_fail(
               e, SES_EUSAGE,
               "--search halving: %zu trials%s are too few to drop any; --eta %lld needs at least as many",
               s->points, r->steps ? " or steps" : "", (long long)a->eta);
}

void ses_halving_set_evaluations(const ses_search *s, ses_finetune_args *a)
{
    ses_training_options *r = &a->s.train.run;
    double first = power(s, s->rounds - 1);
    if (r->steps)
        r->eval_every = (int64_t)((double)r->steps / first);
    else
        a->s.o.eval_epochs = r->epochs / first;
}

double ses_halving_part(const ses_search *s, const ses_search_run *r)
{
    if (ses_search_is_done(r)) return 1;
    return r->n_rounds ? 1 / power(s, s->rounds - r->n_rounds) : NAN;
}

/* ---- resume ---- */

static ses_search_run *find(const ses_search *s, const char *name)
{
    for (size_t i = 0; name && i < s->points; i++)
        if (!strcmp(s->runs[i].base.name, name)) return &s->runs[i];
    return NULL;
}

static void read_rounds(const ses_search *s, const ses_json *run)
{
    ses_search_run *r = find(s, ses_json_string(ses_json_get(run, "name"), NULL));
    const ses_json *rounds = ses_json_get(run, "rounds");
    if (!r) return;
    for (r->n_rounds = 0; r->n_rounds < ses_json_len(rounds) && r->n_rounds < s->rounds; r->n_rounds++)
        if (!ses_json_real(ses_json_at(rounds, r->n_rounds), &r->round[r->n_rounds])) break;
}

/* Scores of finished rounds from grid.json, if it has the same settings. */
static bool restore(ses_search *s, ses_err *e)
{
    const char *out = s->a->s.train.run.output;
    char *path = ses_path_join(out, SES_GRID_FILE, e);
    ses_json_doc *d = path && ses_path_exists(path) ? ses_json_load_object(path, FILE_MAX, e) : NULL;
    const ses_json *root = d ? ses_json_root(d) : NULL, *points = ses_json_get(root, "points");
    ses_command_text text = { 0 };
    bool ok = path && (d || !ses_path_exists(path));
    if (ok && d)
        ok = ses_command_text_make(&ses_command_finetune, s->a, &text, e) &&
             ses_settings_check(ses_json_get(root, "settings"), text.options,
                                "output|resume|overwrite|threads|isa|device|json|core-watts|co2-per-kwh|"
                                "price-per-hour|price-per-kwh|keep",
                                out, "--overwrite repeats all runs", e);
    const char *metric = ses_json_string(ses_json_get(root, "metric"), NULL);
    if (metric) snprintf(s->metric, sizeof s->metric, "%s", metric);
    ses_json_bool(ses_json_get(root, "lower_is_better"), &s->lower);
    for (size_t i = 0; ok && i < ses_json_len(points); i++) {
        const ses_json *runs = ses_json_get(ses_json_at(points, i), "runs");
        if (ses_json_len(runs)) read_rounds(s, ses_json_at(runs, 0));
    }
    ses_command_text_free(&text);
    ses_json_free(d);
    ses_free(path);
    return ok;
}

/* ---- rounds ---- */

/* Runs one trial to the end of a round. */
static bool run_round(ses_search *s, size_t i, size_t round, bool *stopped, ses_err *e)
{
    ses_search_run *r = &s->runs[i];
    ses_finetune_args a;
    ses_err why = { 0 };
    bool last = round + 1 == s->rounds;
    double part = 1 / power(s, s->rounds - 1 - round);
    if (!ses_search_args(s, i, &a, e)) return false;
    ses_train_budget budget = { .epochs = a.s.train.run.steps ? 0 : a.s.train.run.epochs * part };
    if (a.s.train.run.steps) budget.updates = a.s.train.run.eval_every * (int64_t)(power(s, round) + 0.5);
    if (!last) a.budget = &budget;
    a.s.train.run.overwrite = !round && s->a->s.train.run.overwrite;
    a.s.train.run.resume = !a.s.train.run.overwrite; /* a new folder starts anew */
    if (!ses_finetune_one(s->x.c, &a, true, stopped, &why)) {
        r->n_rounds = 0;
        return ses_search_note_failure(r, &why, e);
    }
    *stopped &= !budget.reached;
    if (*stopped) return true;
    if (last)
        return ses_search_read(s, r, &a, e) &&
               (ses_search_is_done(r) || ses_fail(e, SES_EIO, "%s: results cannot be read", r->dir));
    if (!budget.reached) return ses_fail(e, SES_EIO, "%s: the run ended before its budget", r->dir);
    snprintf(s->metric, sizeof s->metric, "%s", budget.metric ? budget.metric : "loss");
    s->lower = ses_metric_lower_is_better(s->metric);
    r->round[round] = budget.score;
    r->n_rounds = round + 1;
    return true;
}

/* Whether trial a is before b at the end of a round: a better score, of equal ones the lower number. */
static bool is_before(const ses_search *s, size_t a, size_t b, size_t round)
{
    const ses_search_run *x = &s->runs[a], *y = &s->runs[b];
    bool has_x = x->n_rounds > round && !isnan(x->round[round]),
         has_y = y->n_rounds > round && !isnan(y->round[round]);
    if (!has_x || !has_y) return has_x && !has_y;
    return ses_search_is_better(s, x->round[round], y->round[round]) ||
           (x->round[round] == y->round[round] && a < b);
}

/* Writes the `keep` best of n trials with a score into out, in the order of their numbers; returns their
 * number. */
static size_t keep_best(const ses_search *s, const size_t *trial, size_t n, size_t round, size_t keep,
                        size_t *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        size_t before = 0;
        for (size_t k = 0; k < n; k++) before += k != i && is_before(s, trial[k], trial[i], round);
        if (before < keep && s->runs[trial[i]].n_rounds > round) out[kept++] = trial[i];
    }
    return kept;
}

/* trial, next: [points] */
static bool run_all(ses_search *s, size_t *trial, size_t *next, bool *stopped, ses_err *e)
{
    size_t n = s->points;
    for (size_t i = 0; i < n; i++) trial[i] = i;
    for (size_t round = 0; round < s->rounds && n; round++) {
        size_t keep = (size_t)fmax(1, floor((double)s->points / power(s, round + 1)));
        for (size_t i = 0; i < n && !*stopped; i++) {
            ses_search_run *r = &s->runs[trial[i]];
            char part[60];
            snprintf(part, sizeof part, "round %zu/%zu, ", round + 1, s->rounds);
            ses_search_show_start(s, r, part, r->n_rounds > round, i, n);
            if (r->n_rounds > round || ses_search_is_done(r)) continue;
            if (!run_round(s, trial[i], round, stopped, e) || !ses_search_save(s, 0, e)) return false;
            *stopped |= ses_train_monitor_should_stop();
        }
        if (*stopped) return true;
        if (round + 1 == s->rounds) break;
        n = keep_best(s, trial, n, round, keep, next);
        memcpy(trial, next, n * sizeof *trial);
    }
    return n || ses_fail(e, SES_EARG, "all runs failed; the first: %s", s->runs[0].base.reason);
}

bool ses_halving_run(ses_search *s, bool *stopped, ses_err *e)
{
    size_t *trial = ses_alloc_array(2 * s->points, sizeof *trial, e);
    bool ok = trial && (!s->a->s.train.run.resume || restore(s, e)) &&
              run_all(s, trial, trial + s->points, stopped, e);
    ses_free(trial);
    return ok;
}
