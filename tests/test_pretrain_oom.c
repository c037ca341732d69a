/* Every allocation of opening a pretraining run fails in turn. (A run itself tolerates a missing log
 * entry.) */
#define _POSIX_C_SOURCE 200809L
#include "oom.h"

#include "pretrain_fixture.h"

typedef struct run {
    ses_device *dev;
    ses_pretrain_options o;
} run;

static bool scenario(void *ctx, ses_err *e)
{
    const run *r = ctx;
    ses_pretrain *p = ses_pretrain_new(&r->o, r->dev, e);
    ses_pretrain_free(p);
    return p != NULL;
}

int main(void)
{
    ses_err e = { 0 };
    pretrain_fixture f;
    pretrain_begin(&f);
    run r = { .dev = ses_device_open("cpu", &(ses_device_options){ .threads = 1 }, &e),
              .o = pretrain_options(&f) };
    CHECK_MSG(r.dev, "%s", e.msg);
    oom_sweep("masked language modeling", scenario, &r);
    r.o.preset = "electra-small", r.o.objectives = "rtd";
    oom_sweep("replaced token detection", scenario, &r);
    ses_device_free(r.dev);
    pretrain_end(&f);
    return check_report();
}
