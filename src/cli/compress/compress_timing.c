/* Time and energy of a model next to the original. */
#include "compress_timing.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "data/examples_impl.h"
#include "data/examples_sample.h"
#include "train/energy/energy_meter.h"
#include "tune/finetune_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_TEXTS = 8 };
static const double PASS_SECONDS = 0.5; /* one pass over the texts, one at a time */

bool ses_test_bench_open(ses_test_bench *b, const ses_compress *z, ses_err *e)
{
    ses_device_options d = ses_compute_device_options(&z->a->tune.compute);
    ses_data_spec spec = z->eval_spec;
    *b = (ses_test_bench){ .z = z };
    d.dtype = SES_F32; /* as stored in the folder */
    b->dev = ses_device_open("cpu", &d, e);
    if (!b->dev) return false;
    spec.no_labels = true;
    b->all = ses_data_open(&spec, z->eval, NULL, e);
    size_t n = b->all ? ses_examples_count(b->all) : 0;
    ses_sample s = { .size = n < (size_t)z->a->texts ? 0 : z->a->texts, .seed = (uint64_t)z->a->seed };
    b->texts = b->all ? ses_examples_sample(b->all, &s, e) : NULL;
    return b->texts != NULL;
}

void ses_test_bench_close(ses_test_bench *b)
{
    ses_examples_free(b->texts);
    ses_examples_free(b->all);
    ses_device_free(b->dev);
}

ses_predictor *ses_test_bench_predictor(const ses_test_bench *b, size_t candidate, ses_err *e)
{
    const ses_predictor_args *a = &b->z->a->tune;
    const ses_candidate *x = &b->z->candidate[candidate];
    char rule[80];
    ses_predictor_options o = { .data = a->data,
                                .task = a->task,
                                .bootstrap = a->bootstrap.resamples,
                                .confidence = a->bootstrap.confidence,
                                .seed = b->z->a->seed };
    o.exit = ses_compress_rule_of(x, rule, sizeof rule);
    return ses_predictor_open(x->dir, &o, b->dev, e);
}

ses_predictor *ses_test_bench_move(ses_test_bench *b, size_t candidate, ses_err *e)
{
    ses_device_options d = ses_compute_device_options(&b->z->a->tune.compute);
    d.dtype = SES_F32;
    ses_device_free(b->dev);
    b->dev = ses_device_open(b->z->a->tune.compute.device, &d, e);
    return b->dev ? ses_test_bench_predictor(b, candidate, e) : NULL;
}

/* ---- one call ---- */

static bool predict(ses_predictor *p, const ses_examples *x, double *seconds, ses_err *e)
{
    double begin = ses_seconds();
    ses_predictions *r = ses_predictor_predict_examples(p, x, e);
    *seconds = ses_seconds() - begin;
    ses_predictions_free(r);
    return r != NULL;
}

static bool predict_one(const ses_test_bench *b, ses_predictor *p, size_t i, double *seconds, ses_err *e)
{
    ses_examples one = *b->texts; /* a view */
    one.item += i;
    one.n = 1;
    return predict(p, &one, seconds, e);
}

bool ses_test_bench_visit(const ses_test_bench *b, ses_predictor *p, ses_err *e)
{
    double t;
    size_t n = ses_examples_count(b->texts);
    for (size_t i = 0; i < n && i < LEAST_TEXTS; i++)
        if (!predict_one(b, p, i, &t, e)) return false;
    return predict(p, b->texts, &t, e);
}

/* ---- rounds ---- */

typedef struct meter {
    double *time, *ratio; /* seconds of the candidate; original / candidate */
    size_t n;
} meter;

static void add(meter *m, const double seconds[2])
{
    m->time[m->n] = seconds[1];
    m->ratio[m->n++] = seconds[0] / seconds[1];
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *x, size_t n)
{
    if (!n) return NAN;
    qsort(x, n, sizeof *x, by_size);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

/* Number of texts of a pass, one at a time. Opens both models and packs their weights. */
static bool prepare(const ses_test_bench *b, ses_predictor *const model[2], size_t *texts, ses_err *e)
{
    double t, sum = 0;
    size_t n = ses_examples_count(b->texts), some = n < LEAST_TEXTS ? n : LEAST_TEXTS;
    for (int k = 0; k < 2; k++)
        if (!predict_one(b, model[k], 0, &t, e) || !predict_one(b, model[k], 0, &t, e) ||
            !predict(model[k], b->texts, &t, e))
            return false;
    for (size_t i = 0; i < some; i++) {
        if (!predict_one(b, model[0], i, &t, e)) return false;
        sum += t;
    }
    double fit = PASS_SECONDS / fmax(1e-6, sum / (double)some);
    *texts = fit < (double)some ? some : fit < (double)n ? (size_t)fit : n;
    return true;
}

/* All texts at once, with both models; joules: of each, added. */
static bool batch_round(const ses_test_bench *b, ses_predictor *const model[2], size_t round, meter *m,
                        double joules[2], ses_timing *out, ses_err *e)
{
    double t[2] = { 0 };
    for (size_t k = 0; k < 2; k++) {
        size_t which = (round + k) % 2; /* each is first in every other round */
        ses_energy_meter energy;
        ses_energy_meter_start(&energy, &(ses_energy_sources){ 0 });
        if (!predict(model[which], b->texts, &t[which], e)) return false;
        ses_energy used = ses_energy_meter_stop(&energy, 0);
        joules[which] += used.measured ? used.joules : NAN;
        if (!used.measured) snprintf(out->energy_note, sizeof out->energy_note, "%s", energy.unreadable);
    }
    add(m, t);
    return true;
}

static bool run_rounds(const ses_test_bench *b, ses_predictor *const model[2], size_t rounds, size_t texts,
                       meter *one, meter *all, double joules[2], ses_timing *out, ses_err *e)
{
    for (size_t r = 0; r < rounds; r++) {
        for (size_t i = 0; i < texts; i++) {
            double t[2] = { 0 };
            for (size_t k = 0; k < 2; k++) {
                size_t which = (r + i + k) % 2;
                if (!predict_one(b, model[which], i, &t[which], e)) return false;
            }
            add(one, t);
        }
        if (!batch_round(b, model, r, all, joules, out, e)) return false;
    }
    return true;
}

bool ses_test_bench_time(const ses_test_bench *b, ses_predictor *original, ses_predictor *p, size_t rounds,
                         ses_timing *out, ses_err *e)
{
    ses_predictor *model[2] = { original, p ? p : original };
    size_t texts = 0;
    double joules[2] = { 0 }, n = (double)ses_examples_count(b->texts);
    *out = (ses_timing){ 0 };
    if (!prepare(b, model, &texts, e)) return false;
    size_t calls = rounds * (texts + 1);
    double *buf = ses_alloc_array(2 * calls, sizeof *buf, e);
    meter one = { buf, buf ? buf + calls : NULL, 0 };
    meter all = { buf ? buf + rounds * texts : NULL, buf ? buf + calls + rounds * texts : NULL, 0 };
    bool ok = buf && run_rounds(b, model, rounds, texts, &one, &all, joules, out, e);
    if (ok) {
        out->latency = median(one.time, one.n);
        out->throughput = n / median(all.time, all.n);
        out->joules = joules[1] / ((double)rounds * n);
        out->speed = p ? median(one.ratio, one.n) : 1;
        out->rate = p ? median(all.ratio, all.n) : 1;
        out->energy_ratio = isnan(joules[0]) ? NAN : p ? joules[0] / joules[1] : 1;
    }
    ses_free(buf);
    return ok;
}
