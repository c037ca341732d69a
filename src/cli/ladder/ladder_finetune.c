/* Fine-tuning runs of a ladder. */
#include "ladder.h"

#include "base/alloc.h"
#include "base/file.h"
#include "cli/train/train_monitor.h"
#include "train/checkpoint_dir.h"

#include <math.h>
#include <string.h>

/* An interrupted run has left a checkpoint. */
int64_t ses_least_updates(const ses_training_options *r, size_t examples, int64_t least)
{
    double batch = (double)(r->batch_size > 0 ? r->batch_size : 1),
           updates =
               r->epochs * ceil((double)examples / batch) / (double)(r->accumulate > 0 ? r->accumulate : 1);
    return r->steps || r->tokens_per_batch || updates >= (double)least ? r->steps : least;
}

bool ses_ladder_check_model(const ses_ladder_args *a, ses_err *e)
{
    char *dir = ses_model_resolve(a->model, NULL, e);
    ses_json_doc *config = dir ? ses_model_config_open(dir, NULL, e) : NULL;
    bool ok = config != NULL;
    ses_json_free(config);
    ses_free(dir);
    return ok || ses_wrap(e, "--model");
}

bool ses_ladder_check_type(const char *option, const char *dir, const char *type, ses_err *e)
{
    char *folder = dir ? ses_model_resolve(dir, NULL, e) : NULL;
    ses_json_doc *config = folder ? ses_model_config_open(folder, NULL, e) : NULL;
    const char *own =
        config ? ses_json_string(ses_json_get(ses_json_root(config), "model_type"), NULL) : NULL;
    bool ok = !dir || (config && ((own && !strcmp(own, type)) ||
                                  ses_fail(e, SES_EARG, "%s %s: a model of type \"%s\", expected \"%s\"",
                                           option, dir, own ? own : "unknown", type)));
    ses_json_free(config);
    ses_free(folder);
    return ok;
}

bool ses_ladder_finetune(ses_ladder *l, ses_finetune_options o, const char *dir, ses_err *e)
{
    ses_train_monitor monitor = { .term = &l->x.c->err, .quiet = l->x.c->quiet, .metric = l->metric };
    ses_run_end end = SES_RUN_COMPLETE;
    o.task.max_length = l->a->max_length;
    if (l->least_updates && o.train_examples)
        o.run.steps = ses_least_updates(&o.run, ses_examples_count(o.train_examples), l->least_updates);
    o.on_event = ses_train_monitor_on_event;
    o.ctx = &monitor;
    if (l->a->resume && ses_checkpoint_any(dir)) o.run.resume = true;
    o.run.overwrite = !o.run.resume;
    ses_finetune *f = ses_finetune_new(&o, l->dev, e);
    bool ok = f && ses_finetune_run(f, &end, e);
    if (ok && end == SES_RUN_STOPPED) ok = ses_fail(e, SES_EARG, "stopped");
    ses_finetune_free(f);
    return ok;
}
