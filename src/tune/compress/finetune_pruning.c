/* The result of pruning during fine-tuning: the model without empty heads and rows, and its report. */
#include "tune/finetune_impl.h"

#include "train/prune/empty_parts.h"
#include "train/prune/prune_report.h"
#include "train/prune/pruner.h"
#include "train/trainer_impl.h"

bool ses_finetune_finish_pruning(ses_finetune *f, ses_err *e)
{
    ses_err why = { 0 };
    const ses_pruner *p = f->trainer->pruner;
    if (!p) return true;
    const ses_model *m = f->tuner->model;
    if (f->tuner->sentence)
        ses_fail(&why, SES_EUNSUPPORTED, "a sentence encoder is written at its full size");
    else
        f->without_empty = ses_model_without_empty_parts(m, &why);
    if (why.code == SES_ENOMEM) return ses_fail(e, why.code, "%s", why.msg);
    if (!f->without_empty)
        ses_training_notify(ses_finetune_on_event, f, "empty heads and rows stay in the model: %s", why.msg);
    return ses_pruning_report_make(&f->pruned, p, m, f->without_empty ? f->without_empty : m, e);
}

bool ses_finetune_save_model(const ses_finetune *f, const char *dir, ses_err *e)
{
    ses_finetuner t = *f->tuner;
    if (f->without_empty) t.model = f->without_empty;
    return ses_finetuner_save(&t, dir, &(ses_save_options){ .dtype = SES_F32 }, e);
}

const ses_pruning_report *ses_finetune_pruning(const ses_finetune *f)
{
    return f->pruned.parameters ? &f->pruned : NULL;
}
