/* Opening the kernels and threads of the computations. */
#include "math_exec.h"

bool ses_math_open(ses_math *m, int threads, ses_err *e)
{
    *m = (ses_math){ .k = ses_kernels_cpu(SES_ISA_BEST) };
    m->exec.pool = ses_thread_pool_new(threads > 0 ? threads : ses_cpu_count(), e);
    return m->exec.pool != NULL;
}

void ses_math_close(ses_math *m)
{
    ses_thread_pool_free(m->exec.pool);
    *m = (ses_math){ 0 };
}

void ses_math_step(const ses_math *m, const char *label, int64_t done, int64_t total)
{
    if (m->progress) m->progress(m->progress_ctx, label, done, total);
}
