/* Further data sets of a run, from option names and values. */
#include "further_sets.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

static const ses_opt opt[] = {
    SES_OPT_TEXT(ses_finetune_data_set, train, "train", "FILE", "training data"),
    SES_OPT_TEXT(ses_finetune_data_set, eval, "eval", "FILE", "evaluation data"),
    SES_OPT_TASK(ses_finetune_data_set, data, false),
    SES_OPT_INCLUDE(ses_finetune_data_set, data, ses_data_option_table),
    SES_OPT_INCLUDE(ses_finetune_data_set, task, ses_task_option_table),
};
const ses_opt_table ses_further_set_table = { opt, SES_LEN(opt) };

static bool begin_set(ses_further_sets *s, size_t *cap, ses_err *e)
{
    if (!ses_array_reserve(&s->item, cap, s->n + 1, sizeof *s->item, e)) return false;
    ses_finetune_data_set *d = &s->item[s->n++];
    *d = (ses_finetune_data_set){ 0 };
    return ses_opt_defaults(opt, SES_LEN(opt), d, e);
}

bool ses_further_sets_read(ses_further_sets *out, const ses_opt_list *list, ses_err *e)
{
    size_t cap = 0;
    *out = (ses_further_sets){ 0 };
    if (list->n % 2)
        return ses_fail(e, SES_EUSAGE, "also: %zu words; expected names and values of options in turn",
                        list->n);
    for (size_t i = 0; i < list->n; i += 2) {
        const char *name = list->item[i];
        char from[64];
        ses_opt o;
        if (!strcmp(name, "train") && !begin_set(out, &cap, e)) return false;
        if (!out->n) return ses_fail(e, SES_EUSAGE, "also: \"%.40s\"; expected train first", name);
        if (!ses_opt_find(opt, SES_LEN(opt), name, "a data set", &o, e)) return false;
        snprintf(from, sizeof from, "--%s of data set %zu", o.name, out->n + 1);
        if (!ses_opt_set(&o, &out->item[out->n - 1], from, list->item[i + 1], e)) return false;
    }
    for (size_t i = 0; i < out->n; i++)
        if (!out->item[i].data.task)
            return ses_fail(e, SES_EUSAGE,
                            "data set %zu (%s) has no task: set the option task after its train", i + 2,
                            out->item[i].train);
    return true;
}

bool ses_further_sets_check_alpha(const ses_further_sets *s, double alpha, ses_err *e)
{
    return s->n || alpha == 1 ||
           ses_fail(e, SES_EUSAGE, "mix-alpha mixes several data sets: repeat train, or leave it out");
}

void ses_further_sets_free(ses_further_sets *s)
{
    ses_free(s->item);
    *s = (ses_further_sets){ 0 };
}
