#include "sesame/optim.h"

#include "base/alloc.h"
#include "tensor/device.h"

#include <math.h>

struct ses_optim {
    ses_store *store;
    ses_device *dev;
    ses_optim_options opt;
    ses_real **moment; /* [2 * parameters]: first and second, NULL where frozen */
    int *group;
    int64_t steps;
};

int ses_group_by_decay(void *ctx, const ses_param *p)
{
    (void)ctx;
    return p->decay ? 0 : 1;
}

static bool prepare(ses_optim *o, size_t i, ses_err *e)
{
    const ses_param *p = ses_store_at(o->store, i);
    size_t bytes = (size_t)ses_count(p->tensor) * sizeof(ses_real);
    o->group[i] = p->role != SES_PARAM_TRAINED ? -1 : o->opt.group_of ? o->opt.group_of(o->opt.ctx, p) : 0;
    if (o->group[i] >= (int)SES_LEN(o->opt.group))
        return ses_fail(e, SES_EARG, "parameter \"%s\": group %d of %d", p->name, o->group[i],
                        (int)SES_LEN(o->opt.group));
    for (size_t j = 2 * i; o->group[i] >= 0 && j < 2 * i + 2; j++) {
        o->moment[j] = o->dev->mem->alloc(o->dev, bytes, e);
        if (!o->moment[j]) return false;
        o->dev->mem->zero(o->dev, o->moment[j], bytes);
    }
    return true;
}

ses_optim *ses_optim_new(ses_store *s, const ses_optim_options *options, ses_err *e)
{
    size_t n = ses_store_count(s);
    ses_optim *o = ses_alloc(sizeof *o, e);
    if (!o) return NULL;
    o->store = s;
    o->dev = ses_store_device(s);
    o->opt = *options;
    o->moment = ses_alloc_array(2 * n, sizeof *o->moment, e);
    o->group = o->moment ? ses_alloc_array(n, sizeof *o->group, e) : NULL;
    if (!o->group) goto fail;
    for (size_t i = 0; i < n; i++)
        if (!prepare(o, i, e)) goto fail;
    return o;
fail:
    ses_optim_free(o);
    return NULL;
}

void ses_optim_free(ses_optim *o)
{
    if (!o) return;
    for (size_t j = 0; o->moment && j < 2 * ses_store_count(o->store); j++)
        if (o->moment[j]) o->dev->mem->free(o->dev, o->moment[j]);
    ses_free(o->moment);
    ses_free(o->group);
    ses_free(o);
}

void ses_optim_step(ses_optim *o, double lr)
{
    const ses_optim_options *opt = &o->opt;
    double t = (double)++o->steps;
    ses_adamw a = { .beta1 = opt->beta1, .beta2 = opt->beta2, .eps = opt->eps };
    a.correction1 = opt->no_correction ? 1 : 1 / (1 - pow(opt->beta1, t));
    a.correction2 = opt->no_correction ? 1 : 1 / (1 - pow(opt->beta2, t));
    for (size_t i = 0; i < ses_store_count(o->store); i++) {
        ses_tensor *w = ses_store_at(o->store, i)->tensor;
        if (o->group[i] < 0) continue;
        a.lr = (lr < 0 ? opt->lr : lr) * opt->group[o->group[i]].lr_scale;
        a.decay = opt->group[o->group[i]].decay;
        o->dev->k.adamw(&o->dev->exec, w->f, w->grad, o->moment[2 * i], o->moment[2 * i + 1], ses_count(w),
                        &a);
    }
}

int64_t ses_optim_steps(const ses_optim *o) { return o->steps; }
