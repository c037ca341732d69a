/* Learning-rate schedules by the formulas of transformers. t is the update, from 0. */
#include "sesame/unstable/schedule.h"

#include "base/str.h"
#include "base/suggest.h"

#include <math.h>
#include <string.h>

typedef struct ses_schedule_kind {
    const char *name, *description;
    double (*at)(const ses_schedule *s, double t);
    double (*momentum)(const ses_schedule *s, double t); /* NULL: the optimizer's */
    bool uses_total;                                     /* see ses_schedule_uses_total */
    bool rises;                                          /* see ses_schedule_rises */
    bool needs_evaluation;
    bool decays_late; /* see ses_schedule_decays_late */
} ses_schedule_kind;

static const double pi = 3.141592653589793;

/* Fraction of the run after the warmup, 0 to 1. */
static double progress(const ses_schedule *s, double t)
{
    return (t - (double)s->warmup) / fmax(1, (double)(s->total - s->warmup));
}

static double constant(const ses_schedule *s, double t)
{
    (void)s, (void)t;
    return 1;
}

static double linear(const ses_schedule *s, double t) { return fmax(0, 1 - progress(s, t)); }

static double cosine(const ses_schedule *s, double t)
{
    return fmax(0, 0.5 * (1 + cos(pi * 2 * s->num_cycles * progress(s, t))));
}

static double inverse_sqrt(const ses_schedule *s, double t)
{
    double scale = s->timescale > 0 ? s->timescale : s->warmup > 0 ? (double)s->warmup : 10000;
    return 1 / sqrt((t + scale - (double)s->warmup) / scale);
}

/* Warmup, stable, decay (Hu et al. 2024) with the decay of Haegele et al. 2024: constant, then 1 minus the
 * root of the fraction of the last part of the run. */
static double wsd(const ses_schedule *s, double t)
{
    double decay = fmax(1, ceil((double)s->total * s->decay_part)), from = (double)s->total - decay;
    return t < from ? 1 : 1 - sqrt(fmin(1, (t - from) / decay));
}

static double polynomial(const ses_schedule *s, double t)
{
    if (t > (double)s->total) return s->end_factor;
    return (1 - s->end_factor) * pow(fmax(0, 1 - progress(s, t)), s->power) + s->end_factor;
}

/* Howard and Ruder 2018, equation 3: rises over the first cut_frac of the run, then falls, never below
 * 1 / ratio. */
static double slanted(const ses_schedule *s, double t)
{
    double peak = floor((double)s->total * s->cut_frac), p;
    if (t < peak)
        p = t / peak;
    else
        p = fmax(0, 1 - (t - peak) / fmax(1, peak * (1 / s->cut_frac - 1)));
    return (1 + p * (s->ratio - 1)) / s->ratio;
}

static double plateau(const ses_schedule *s, double t)
{
    (void)t;
    return pow(s->decay, (double)s->decays);
}

/* Half cosines: from `start` to `peak` over the first rise_frac of the run, then to `end`. */
static double one_cycle_between(const ses_schedule *s, double t, double start, double peak, double end)
{
    double p = fmin(1, t / fmax(1, (double)s->total));
    bool rising = p < s->rise_frac;
    double x = rising ? p / s->rise_frac : (p - s->rise_frac) / (1 - s->rise_frac);
    double from = rising ? start : peak, to = rising ? peak : end;
    return from + (1 + cos(pi * (1 - x))) * (to - from) / 2;
}

static double one_cycle(const ses_schedule *s, double t)
{
    return one_cycle_between(s, t, 1 / s->start_ratio, 1, 1 / s->end_ratio);
}

static double one_cycle_momentum(const ses_schedule *s, double t)
{
    return one_cycle_between(s, t, s->momentum_high, s->momentum_low, s->momentum_high);
}

static const ses_schedule_kind ses_schedule_constant = { .name = "constant",
                                                         .description = "constant after the warmup",
                                                         .at = constant };
static const ses_schedule_kind ses_schedule_linear = {
    .name = "linear", .description = "linear decay to 0", .at = linear, .uses_total = true
};
static const ses_schedule_kind ses_schedule_cosine = {
    .name = "cosine", .description = "cosine decay", .at = cosine, .uses_total = true
};
static const ses_schedule_kind ses_schedule_inverse_sqrt = { .name = "inverse_sqrt",
                                                             .description = "decay with 1 / sqrt(step)",
                                                             .at = inverse_sqrt };
static const ses_schedule_kind ses_schedule_polynomial = {
    .name = "polynomial", .description = "polynomial decay", .at = polynomial, .uses_total = true
};
static const ses_schedule_kind ses_schedule_slanted = { .name = "slanted",
                                                        .description = "slanted triangular (ULMFiT)",
                                                        .at = slanted,
                                                        .uses_total = true,
                                                        .rises = true };
static const ses_schedule_kind ses_schedule_plateau = {
    .name = "plateau",
    .description = "constant, lower after evaluations without improvement",
    .at = plateau,
    .needs_evaluation = true
};
static const ses_schedule_kind ses_schedule_one_cycle = {
    .name = "one_cycle",
    .description = "one cosine cycle of learning rate and momentum (fastai)",
    .at = one_cycle,
    .momentum = one_cycle_momentum,
    .uses_total = true,
    .rises = true
};

static const ses_schedule_kind ses_schedule_wsd = { .name = "wsd",
                                                    .description =
                                                        "warmup, constant, decay in the last part of the run",
                                                    .at = wsd,
                                                    .uses_total = true,
                                                    .decays_late = true };

static const ses_schedule_kind *const kinds[] = {
#define SES_SCHEDULE(name) &ses_schedule_##name,
#include "schedules.def"
#undef SES_SCHEDULE
};

static const ses_schedule_kind *find(const char *name)
{
    for (size_t i = 0; i < SES_LEN(kinds); i++)
        if (!strcmp(kinds[i]->name, name)) return kinds[i];
    return NULL;
}

const char *ses_schedule_name(size_t i, const char **description)
{
    if (i >= SES_LEN(kinds)) return NULL;
    if (description) *description = kinds[i]->description;
    return kinds[i]->name;
}

static const char *name_at(const void *ctx, size_t i)
{
    (void)ctx;
    return ses_schedule_name(i, NULL);
}

bool ses_schedule_defaults(const char *name, ses_schedule *out, ses_err *e)
{
    const ses_schedule_kind *k = find(name);
    if (!k)
        return ses_fail_unknown(e, SES_EARG, "schedule", (ses_string){ name, strlen(name) }, name_at, NULL);
    *out = (ses_schedule){ .name = k->name,
                           .power = 1,
                           .num_cycles = 0.5,
                           .cut_frac = 0.1,
                           .ratio = 32,
                           .decay = 0.5,
                           .patience = 3,
                           .rise_frac = 0.25,
                           .start_ratio = 25,
                           .end_ratio = 1e5,
                           .momentum_high = 0.8,
                           .momentum_low = 0.7,
                           .decay_part = 0.2 };
    return true;
}

double ses_schedule_at(const ses_schedule *s, int64_t step)
{
    double t = (double)step;
    if (step < s->warmup) return t / (double)s->warmup;
    return find(s->name)->at(s, t);
}

bool ses_schedule_uses_total(const ses_schedule *s)
{
    const ses_schedule_kind *k = s->name ? find(s->name) : NULL;
    return k && k->uses_total;
}

bool ses_schedule_decays_late(const ses_schedule *s)
{
    const ses_schedule_kind *k = s->name ? find(s->name) : NULL;
    return k && k->decays_late;
}

bool ses_schedule_rises(const ses_schedule *s)
{
    const ses_schedule_kind *k = s->name ? find(s->name) : NULL;
    return k && k->rises;
}

bool ses_schedule_needs_evaluation(const ses_schedule *s)
{
    const ses_schedule_kind *k = s->name ? find(s->name) : NULL;
    return k && k->needs_evaluation;
}

double ses_schedule_momentum_at(const ses_schedule *s, int64_t step)
{
    const ses_schedule_kind *k = find(s->name);
    return k->momentum && s->momentum_high > 0 ? k->momentum(s, (double)step) : -1;
}

int64_t ses_warmup_updates(double ratio, int64_t total) { return (int64_t)ceil((double)total * ratio); }
