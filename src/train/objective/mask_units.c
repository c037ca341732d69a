/* The unit of masking of each text. */
#include "mask_units.h"

#include "base/suggest.h"
#include "weighted_names.h"

#include <string.h>

static const char *const names[] = { "token", "word", "ngram", "span", NULL }; /* in the order of the enum */

static const char *name_at(const void *ctx, size_t i)
{
    (void)ctx;
    return names[i];
}

bool ses_mask_units_parse(ses_build_ctx *ctx, ses_err *e)
{
    const char *p = ctx->o.mask_units;
    int units = 0, last = -1;
    while (p) {
        ses_string name;
        double weight;
        if (!ses_weighted_name_next(&p, "mask unit", &name, &weight, e)) return false;
        int i = 0;
        while (names[i] && (strlen(names[i]) != name.n || strncmp(names[i], name.p, name.n) != 0)) i++;
        if (!names[i]) return ses_fail_unknown(e, SES_EUSAGE, "mask unit", name, name_at, NULL);
        if (ctx->unit_weight[i] > 0) return ses_fail(e, SES_EARG, "mask unit %s is given twice", names[i]);
        ctx->unit_weight[i] = weight;
        last = i;
        units++;
    }
    if (units == 1) {
        memset(ctx->unit_weight, 0, sizeof ctx->unit_weight);
        ctx->o.mask_unit = last;
        ctx->o.mask_units = NULL;
    }
    return true;
}

ses_mask_unit ses_mask_unit_of(const ses_build_ctx *ctx, const ses_objective *o, const ses_passage *p)
{
    enum { UNITS = SES_LEN(ctx->unit_weight) };
    double sum = 0;
    for (int i = 0; i < UNITS; i++) sum += ctx->unit_weight[i];
    if (!(sum > 0)) return ctx->o.mask_unit >= 0 ? (ses_mask_unit)ctx->o.mask_unit : o->mask_unit;
    uint64_t number = ctx->o.mask_copies > 0 ? p->number : ctx->batch_number;
    ses_rng_stream d = ses_rng_stream_of(ctx->seed, number, SES_RNG_UNIT);
    double u = ses_draw_unit(&d) * sum;
    int unit = UNITS - 1;
    while (unit > 0 && !(ctx->unit_weight[unit] > 0)) unit--;
    for (int i = 0; i < unit; i++)
        if ((u -= ctx->unit_weight[i]) < 0) return (ses_mask_unit)i;
    return (ses_mask_unit)unit;
}
