/* Precision, recall, F1 and the precision-recall curve of predicted labels. */
#include "fasttext_meter.h"

#include "base/alloc.h"
#include "base/number.h"
#include "base/sort.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

bool ses_fasttext_metric_parse(ses_fasttext_metric *m, const char *name, ses_err *e)
{
    static const char *const names[] = { [SES_FASTTEXT_F1] = "f1",
                                         [SES_FASTTEXT_PRECISION_AT_RECALL] = "precisionAtRecall",
                                         [SES_FASTTEXT_RECALL_AT_PRECISION] = "recallAtPrecision" };
    size_t len = strcspn(name, ":"), kind = 0;
    const char *rest = name[len] ? name + len + 1 : NULL;
    while (kind < SES_LEN(names) && !ses_equal(name, len, names[kind])) kind++;
    if (kind == SES_LEN(names))
        return ses_fail(e, SES_EUSAGE,
                        "metric \"%s\": expected f1, f1:LABEL, precisionAtRecall:PERCENT[:LABEL] or "
                        "recallAtPrecision:PERCENT[:LABEL]",
                        name);
    *m = (ses_fasttext_metric){ .kind = (ses_fasttext_metric_kind)kind };
    if (kind != SES_FASTTEXT_F1) {
        size_t digits = rest ? strcspn(rest, ":") : 0;
        if (!rest || !ses_parse_number(rest, digits, &m->at) || !(m->at >= 0 && m->at <= 100))
            return ses_fail(e, SES_EUSAGE, "metric \"%s\": expected a percentage after the colon", name);
        m->at /= 100;
        rest = rest[digits] ? rest + digits + 1 : NULL;
    }
    m->label = rest;
    return true;
}

static bool add_outcome(ses_fasttext_meter *m, float score, int32_t label, bool gold, ses_err *e)
{
    if (!ses_array_reserve(&m->outcome, &m->capacity, m->n + 1, sizeof *m->outcome, e)) return false;
    m->outcome[m->n++] = (ses_fasttext_outcome){ score, label, gold };
    return true;
}

static bool has(const ses_fasttext_rows *labels, int32_t label)
{
    for (size_t i = 0; i < labels->n; i++)
        if (labels->row[i] == label) return true;
    return false;
}

static bool add_example(ses_fasttext_meter *m, const ses_fasttext_rows *gold, const ses_fasttext_guess *guess,
                        size_t n, ses_err *e)
{
    m->examples++;
    m->all.gold += (int64_t)gold->n;
    m->all.predicted += (int64_t)n;
    for (size_t i = 0; i < n; i++) {
        bool hit = has(gold, guess[i].label);
        m->all.hit += hit;
        m->label[guess[i].label].predicted++;
        m->label[guess[i].label].hit += hit;
        float score = expf(guess[i].score);
        if (!add_outcome(m, score < 1 ? score : 1, guess[i].label, hit, e)) return false;
    }
    for (size_t k = 0; k < gold->n; k++) {
        bool found = false;
        m->label[gold->row[k]].gold++;
        for (size_t i = 0; i < n; i++) found |= guess[i].label == gold->row[k];
        if (!found && !add_outcome(m, -1, gold->row[k], true, e)) return false;
    }
    return true;
}

/* The number of a label name in the model; -1: none. */
static int32_t label_id(const ses_fasttext_model *m, ses_string name, ses_buf *scratch)
{
    int64_t id;
    scratch->len = 0;
    ses_buf_puts(scratch, m->d.label ? m->d.label : "__label__");
    ses_buf_append(scratch, name.p, name.n);
    if (!scratch->data || !ses_strmap_find(&m->d.id, scratch->data, scratch->len, &id)) return -1;
    return (size_t)id < m->d.n_words ? -1 : (int32_t)(id - (int64_t)m->d.n_words);
}

bool ses_fasttext_measure(const ses_fasttext_model *m, const ses_fasttext_texts *t, size_t k, float threshold,
                          ses_fasttext_meter *meter, ses_err *e)
{
    size_t labels = ses_fasttext_n_labels(m), n;
    ses_fasttext_line line = { 0 };
    ses_buf name = { 0 };
    ses_fasttext_guess *guess = ses_alloc_array(k < labels ? k : labels, sizeof *guess, e);
    meter->label = ses_alloc_array(labels, sizeof *meter->label, e);
    bool ok = guess && meter->label;
    for (size_t i = 0; ok && i < t->n; i++) {
        ok = ses_fasttext_line_of(m, t->text[i].p, t->text[i].n, &line, e);
        if (ok && t->label) {
            int32_t id = label_id(m, t->label_name[t->label[i]], &name);
            line.labels.n = 0;
            ok = id < 0 || ses_fasttext_rows_add(&line.labels, id, e);
        }
        if (!ok || !line.labels.n || !line.rows.n) continue;
        ok = ses_fasttext_predict(m, &line, k, threshold, guess, &n, e) &&
             add_example(meter, &line.labels, guess, n, e);
    }
    if (ok && name.wanted) ok = ses_buf_ok(&name, e);
    ses_fasttext_line_free(&line);
    ses_buf_free(&name);
    ses_free(guess);
    return ok;
}

void ses_fasttext_meter_free(ses_fasttext_meter *meter)
{
    ses_free(meter->label);
    ses_free(meter->outcome);
    *meter = (ses_fasttext_meter){ 0 };
}

static double ratio(double a, double b) { return b > 0 ? a / b : (double)NAN; }
double ses_fasttext_precision(const ses_fasttext_counts *c)
{
    return ratio((double)c->hit, (double)c->predicted);
}
double ses_fasttext_recall(const ses_fasttext_counts *c) { return ratio((double)c->hit, (double)c->gold); }

double ses_fasttext_f1(const ses_fasttext_counts *c)
{
    return ratio(2 * (double)c->hit, (double)(c->predicted + c->gold));
}

/* ---- points of the curve ---- */

static int by_falling_score(const void *a, const void *b)
{
    const ses_fasttext_outcome *x = a, *y = b;
    return (x->score < y->score) - (x->score > y->score);
}

/* The best precision among the thresholds with recall >= at, or the reverse. */
static double curve_point(const ses_fasttext_metric *metric, const ses_fasttext_outcome *x, size_t n,
                          int64_t gold)
{
    bool wants_precision = metric->kind == SES_FASTTEXT_PRECISION_AT_RECALL;
    double best = wants_precision && metric->at <= 0 ? 1 : 0; /* recall 0 has precision 1 */
    int64_t hit = 0;
    for (size_t i = 0; i < n && x[i].score >= 0; i++) {
        hit += x[i].gold;
        if (i + 1 < n && x[i + 1].score == x[i].score) continue;
        double precision = (double)hit / (double)(i + 1), recall = ratio((double)hit, (double)gold);
        double value = wants_precision ? precision : recall, limit = wants_precision ? recall : precision;
        if (limit >= metric->at && value > best) best = value;
    }
    return best;
}

bool ses_fasttext_metric_score(const ses_fasttext_metric *metric, const ses_fasttext_model *m,
                               const ses_fasttext_meter *meter, double *score, ses_err *e)
{
    int64_t id = -1;
    if (metric->label) {
        size_t len = strlen(metric->label);
        if (!ses_strmap_find(&m->d.id, metric->label, len, &id) || (size_t)id < m->d.n_words)
            return ses_fail(e, SES_EUSAGE, "metric: the model has no label \"%s\"", metric->label);
        id -= (int64_t)m->d.n_words;
    }
    const ses_fasttext_counts *counts = id < 0 ? &meter->all : &meter->label[id];
    if (metric->kind == SES_FASTTEXT_F1) {
        *score = ses_fasttext_f1(counts);
        return true;
    }
    size_t n = 0;
    ses_fasttext_outcome *x = ses_alloc_array(meter->n, sizeof *x, e);
    if (!x) return false;
    for (size_t i = 0; i < meter->n; i++)
        if (id < 0 || meter->outcome[i].label == id) x[n++] = meter->outcome[i];
    bool ok = ses_stable_sort(x, n, sizeof *x, by_falling_score, e);
    if (ok) *score = curve_point(metric, x, n, counts->gold);
    ses_free(x);
    return ok;
}
