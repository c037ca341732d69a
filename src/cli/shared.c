#include "shared.h"

#include "base/pool.h"
#include "kernel/kernel.h"

ses_isa ses_shared_isa(const ses_shared *s)
{
    ses_isa best = ses_isa_best();
    return s->isa < 0 || s->isa > (int)best ? best : (ses_isa)s->isa;
}

int ses_shared_threads(const ses_shared *s) { return s->threads > 0 ? (int)s->threads : ses_cpu_count(); }
