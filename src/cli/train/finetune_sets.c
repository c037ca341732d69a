/* The data sets of a fine-tuning command after the first. */
#include "finetune_sets.h"

#include "base/alloc.h"

/* The options of a run on data set d alone: `eval` and `predict` find its task and columns there. */
static bool make_text(const ses_finetune_args *a, const ses_finetune_data_set *d, ses_command_text *out,
                      ses_err *e)
{
    ses_finetune_args args = *a;
    args.s.o.train = d->train;
    args.s.o.eval = d->eval;
    args.s.o.data = d->data;
    args.s.o.task = d->task;
    args.s.also = (ses_opt_list){ 0 };
    return ses_command_text_make(&ses_command_finetune, &args, out, e);
}

bool ses_finetune_sets_open(ses_finetune_sets *s, const ses_finetune_args *a, ses_finetune_options *o,
                            ses_err *e)
{
    *s = (ses_finetune_sets){ 0 };
    if (!ses_further_sets_read(&s->sets, &a->s.also, e) ||
        !ses_further_sets_check_alpha(&s->sets, a->s.o.mix_alpha, e))
        return false;
    s->text = ses_alloc_array(s->sets.n + 1, sizeof *s->text, e);
    if (!s->text) return false;
    for (size_t i = 0; i < s->sets.n; i++) {
        if (!make_text(a, &s->sets.item[i], &s->text[i], e)) return false;
        s->sets.item[i].command_options = s->text[i].options;
    }
    o->also = s->sets.item;
    o->n_also = s->sets.n;
    return true;
}

void ses_finetune_sets_free(ses_finetune_sets *s)
{
    for (size_t i = 0; s->text && i < s->sets.n; i++) ses_command_text_free(&s->text[i]);
    ses_free(s->text);
    ses_further_sets_free(&s->sets);
    *s = (ses_finetune_sets){ 0 };
}
