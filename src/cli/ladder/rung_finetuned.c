/* finetuned: the model with a classification head, all weights trained. */
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

static bool run(ses_ladder *l, const ses_rung *r, const char *dir, int64_t seed, ses_err *e)
{
    const ses_ladder_args *a = l->a;
    ses_train_monitor monitor = { .term = &l->c->err, .quiet = l->c->quiet, .metric = l->metric };
    ses_finetune_options o = ses_ladder_options(l, dir, seed);
    ses_run_end end = SES_RUN_COMPLETE;
    (void)r;
    o.model = a->model;
    o.run.epochs = a->epochs;
    o.run.lr = a->lr;
    o.task.max_length = a->max_length;
    o.on_event = ses_train_monitor_on_event;
    o.ctx = &monitor;
    if (a->resume && ses_path_is_dir(dir)) ses_dir_each(dir, note_checkpoint, &o.run.resume, NULL);
    o.run.overwrite = !o.run.resume;
    ses_finetune *f = ses_finetune_new(&o, l->dev, e);
    bool ok = f && ses_finetune_run(f, &end, e);
    if (ok && end == SES_RUN_STOPPED) ok = ses_fail(e, SES_EARG, "stopped");
    ses_finetune_free(f);
    return ok;
}

const ses_rung ses_rung_finetuned = {
    .name = "finetuned", .summary = "the model, fine-tuned", .seeded = true, .run = run
};
