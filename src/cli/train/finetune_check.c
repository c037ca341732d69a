/* What must hold before a fine-tuning run begins: labels, the score that chooses the best. */
#include "finetune_command.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/str.h"

#include <string.h>

/* ---- labels ---- */

bool ses_finetune_labels(ses_finetune *f, ses_err *e)
{
    ses_err none = { 0 }; /* labels that cannot be read, or are not these, are no reason not to train */
    (void)e;
    if (!f->a->model || !f->kind->has_label_names) return true;
    if (!ses_config_labels(ses_json_root(f->base), f->kind->data, &f->had, &f->told, &none)) return true;
    f->same = f->told && ses_examples_align_labels(f->train_rows, f->had, &none);
    return none.code != SES_ENOMEM || ses_fail(e, SES_ENOMEM, "out of memory");
}

static void put_labels(const ses_examples *d)
{
    size_t n = ses_examples_label_count(d);
    for (size_t i = 0; i < n && i < 20; i++)
        fprintf(stderr, "%s%s", i ? ", " : "", ses_examples_label_name(d, i));
    if (n > 20) fprintf(stderr, ", ... (%zu)", n);
}

void ses_finetune_tell_head(const ses_finetune *f)
{
    const char *fresh = ses_model_missing_keys(f->tuner->model);
    if (f->tuner->scale_targets)
        fprintf(stderr, "scores go up to %g, cosines to 1: they are divided by it\n",
                f->tuner->max_abs_target);
    if (!f->a->model) return;
    if (*fresh) fprintf(stderr, "begun at random: %s\n", fresh);
    if (!f->kind->has_label_names || f->same || (*fresh && !f->told)) return;
    fprintf(stderr, "%s labels were ", *fresh ? "the model's" : "the model's head is kept; its");
    if (f->told)
        put_labels(f->had);
    else
        fputs("without names", stderr);
    fputs("; now they are ", stderr);
    put_labels(f->train_rows);
    putc('\n', stderr);
}

/* ---- the score ---- */

/* Scores as the metrics name them, of a small evaluation in which every label is right once. */
static bool score_names(const ses_finetune *f, const char *metrics, ses_scores *out, ses_err *e)
{
    const ses_finetuner *t = f->tuner;
    size_t labels = t->n_labels ? t->n_labels : 2, n = labels > 2 ? labels : 2;
    ses_arena mem = { 0 };
    int32_t *gold = ses_arena_array(&mem, n, sizeof *gold, e);
    size_t *cu = ses_arena_array(&mem, n + 1, sizeof *cu, e);
    uint8_t *sets = ses_arena_array(&mem, n * (labels + 1), 1, e);
    double *reals = ses_arena_array(&mem, n, sizeof *reals, e);
    int64_t *ones = ses_arena_array(&mem, n, sizeof *ones, e);
    const char **texts = ses_arena_array(&mem, n, sizeof *texts, e);
    bool ok = gold && cu && sets && reals && ones && texts;
    for (size_t i = 0; ok && i < n; i++) {
        gold[i] = i < labels ? (int32_t)i : 0;
        cu[i + 1] = i + 1;
        reals[i] = (double)i;
        ones[i] = 1;
        texts[i] = "a";
    }
    ses_evaluation v = { .n = n,
                         .gold = gold,
                         .pred = gold,
                         .n_labels = labels,
                         .labels = t->n_labels ? t->label : NULL,
                         .cu = f->kind->target == SES_TARGET_TAGS ? cu : NULL,
                         .gold_sets = sets,
                         .pred_sets = sets,
                         .gold_reals = reals,
                         .pred_reals = reals,
                         .nll = reals,
                         .n_nll = ones,
                         .pred_texts = texts,
                         .gold_texts = texts,
                         .gold_cu = cu,
                         .no_answer = t->o.allow_no_answer ? reals : NULL };
    for (const char *at = metrics; ok && *at;) {
        char name[64];
        size_t len = strcspn(at, "|");
        snprintf(name, sizeof name, "%.*s", (int)len, at);
        ok = ses_metric_run(name, &v, NULL, out, e);
        at += len + (at[len] == '|');
    }
    ses_arena_free(&mem);
    return ok;
}

/* Is the metric of the kind of one of a list? */
static bool is_kin(ses_metric_kind kind, const char *list)
{
    const char *name;
    ses_metric_kind of;
    for (; *list; list += strcspn(list, "|"), list += *list == '|')
        for (size_t i = 0; (name = ses_metric_at(i, NULL, &of)); i++)
            if (of == kind && ses_equal(list, strcspn(list, "|"), name)) return true;
    return false;
}

/* Adds a metric the task does not usually have, but could, where it gives the score. */
static bool add_metric(ses_finetune *f, const char *usual, const char *score, bool *added, ses_err *e)
{
    const char *name = NULL;
    ses_metric_kind kind;
    double x;
    *added = false;
    for (size_t i = 0; !*added && (name = ses_metric_at(i, NULL, &kind)); i++) {
        ses_scores s = { 0 };
        ses_err none = { 0 };
        *added = is_kin(kind, usual) && score_names(f, name, &s, &none) && ses_scores_find(&s, score, &x);
        ses_scores_free(&s);
        if (none.code == SES_ENOMEM) return ses_fail(e, SES_ENOMEM, "out of memory");
    }
    if (!*added) return true;
    ses_buf all = { 0 };
    ses_buf_appendf(&all, "%s|%s", usual, name);
    if (!ses_buf_ok(&all, e)) return ses_buf_free(&all), false;
    f->metrics = all.data;
    f->tuner->o.metrics = f->metrics;
    return true;
}

bool ses_finetune_metric(ses_finetune *f, ses_err *e)
{
    const char *name = f->a->metric ? f->a->metric : f->spec.best_metric,
               *usual = f->tuner->o.metrics ? f->tuner->o.metrics : f->kind->metrics;
    ses_scores s = { 0 };
    double x;
    if ((!f->a->metric && !f->a->eval) || !strcmp(name, "loss")) return true;
    bool ok = score_names(f, usual, &s, e), known = ok && ses_scores_find(&s, name, &x);
    if (ok && !known) ok = add_metric(f, usual, name, &known, e);
    if (ok && !known) {
        char list[400] = "loss";
        for (size_t i = 0; i < s.n; i++) {
            size_t used = strlen(list);
            snprintf(list + used, sizeof list - used, ", %s", s.item[i].name);
        }
        ok = ses_fail(e, SES_EUSAGE, "--metric: no score is called \"%s\" here; there are %s", name, list);
    }
    ses_scores_free(&s);
    return ok;
}
