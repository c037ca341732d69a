/* Fine-tuning runs of a ladder. */
#include "ladder.h"

#include "base/alloc.h"
#include "base/file.h"
#include "cli/train/train_monitor.h"

/* An interrupted run has left a checkpoint. */
static bool note_checkpoint(void *ctx, const char *name)
{
    static const char prefix[] = "checkpoint-";
    for (size_t i = 0; i < sizeof prefix - 1; i++)
        if (name[i] != prefix[i]) return true;
    *(bool *)ctx = true;
    return false;
}

bool ses_ladder_finetune(ses_ladder *l, ses_finetune_options o, const char *dir, ses_err *e)
{
    ses_train_monitor monitor = { .term = &l->c->err, .quiet = l->c->quiet, .metric = l->metric };
    ses_run_end end = SES_RUN_COMPLETE;
    o.task.max_length = l->a->max_length;
    o.on_event = ses_train_monitor_on_event;
    o.ctx = &monitor;
    if (l->a->resume && ses_path_is_dir(dir)) ses_dir_each(dir, note_checkpoint, &o.run.resume, NULL);
    o.run.overwrite = !o.run.resume;
    ses_finetune *f = ses_finetune_new(&o, l->dev, e);
    bool ok = f && ses_finetune_run(f, &end, e);
    if (ok && end == SES_RUN_STOPPED) ok = ses_fail(e, SES_EARG, "stopped");
    ses_finetune_free(f);
    return ok;
}
