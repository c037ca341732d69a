/* Checks of a fine-tuning run before other work: options and files. */
#include "finetune_inputs.h"

#include "base/file.h"
#include "finetune_sets.h"
#include "tune/few_shot/tune_method.h"

bool ses_finetune_check_files(const ses_finetune_args *a, ses_err *e)
{
    const ses_finetune_options *o = &a->s.o;
    const struct {
        const char *option, *path;
    } file[] = { { "patterns", o->task.patterns }, { "unlabeled", o->unlabeled }, { "vectors", o->vectors } };
    for (size_t i = 0; i < SES_LEN(file); i++)
        if (file[i].path && !ses_path_exists(file[i].path))
            return ses_fail(e, SES_EIO, "--%s %s: No such file or directory", file[i].option, file[i].path);
    return true;
}

bool ses_finetune_check_options(const ses_finetune_args *a, ses_err *e)
{
    bool classifier = a->s.method && !ses_tune_method_find(a->s.method);
    return ses_finetune_check_method(a, e) && ses_finetune_check_unused(a, e) &&
           (!classifier || ses_finetune_check_classifier(a, e));
}

bool ses_finetune_check_inputs(const ses_finetune_args *a, ses_row_overlap *overlap, ses_err *e)
{
    ses_finetune_options o = ses_finetune_settings_options(&a->s);
    ses_finetune_sets sets = { 0 };
    if (a->s.method) o.task.loss = NULL; /* a setting of the method */
    bool ok = ses_finetune_check_files(a, e) && ses_finetune_sets_open(&sets, a, &o, e) &&
              ses_finetune_check_data(&o, overlap, e);
    ses_finetune_sets_free(&sets);
    return ok;
}
