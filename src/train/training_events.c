/* Notices of a training run, and resuming with notices. */
#include "training_events.h"

#include "train_folder.h"
#include "trainer_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static bool notify(ses_training_fn *on_event, void *ctx, bool is_warning, const char *fmt, va_list ap)
    SES_PRINTF(4, 0);

static bool notify(ses_training_fn *on_event, void *ctx, bool is_warning, const char *fmt, va_list ap)
{
    char text[1000];
    if (!on_event) return true;
    vsnprintf(text, sizeof text, fmt, ap);
    return on_event(ctx, &(ses_training_event){ .kind = SES_TRAINING_NOTICE,
                                                .text = text,
                                                .is_warning = is_warning,
                                                .loss = NAN,
                                                .metric = NAN });
}

bool ses_training_notify(ses_training_fn *on_event, void *ctx, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    bool proceed = notify(on_event, ctx, false, fmt, ap);
    va_end(ap);
    return proceed;
}

bool ses_training_warn(ses_training_fn *on_event, void *ctx, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    bool proceed = notify(on_event, ctx, true, fmt, ap);
    va_end(ap);
    return proceed;
}

bool ses_training_resume(ses_trainer *t, const char *dir, ses_training_fn *on_event, void *ctx,
                         ses_training_resumed *out, ses_err *e)
{
    ses_resume_result from;
    *out = (ses_training_resumed){ 0 };
    if (!ses_trainer_resume(t, &from, e)) return false;
    if (*from.skipped) ses_training_warn(on_event, ctx, "skipping damaged checkpoint: %s", from.skipped);
    if (!from.found && *from.skipped)
        return ses_fail(e, SES_EFORMAT, "%s: no intact checkpoint; overwrite starts anew", dir);
    if (!from.found) return true;
    int64_t total = ses_trainer_total_updates(t), updates = ses_trainer_state(t)->updates;
    /* rank 0 decides: others may see an older state of a shared folder */
    if (t->rank == 0) {
        out->is_complete = ses_train_folder_is_complete(dir, from.dir, total);
        out->before = ses_run_totals_read(dir, from.dir, ses_trainer_state(t));
    }
    if (!ses_comm_bcast(t->o.comm, out, sizeof *out, 0, e)) return false;
    if (out->is_complete)
        ses_training_notify(on_event, ctx,
                            "%s: the run is complete, with update %" PRId64 "; nothing to resume", dir,
                            updates);
    else
        ses_training_notify(on_event, ctx, "resuming from %s: update %" PRId64 " of %" PRId64, from.dir,
                            updates, total);
    return true;
}
