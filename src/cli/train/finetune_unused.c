/* Options of finetune that have no effect without others: refused before the run. */
#include "finetune_command.h"
#include "option_setting.h"
#include "train/distill/student_config.h"

#include <string.h>

static bool refuse(const ses_opt_table *t, const void *args, const char *names, const char *where, ses_err *e)
{
    const char *name = ses_option_changed(t->opt, t->n, names, args);
    return !name || ses_fail(e, SES_EUSAGE, "--%s has no effect %s", name, where);
}

static bool check_pruning(const ses_finetune_args *a, ses_err *e)
{
    static const char both[] = "prune-threshold|prune-penalty",
                      all[] = "score-lr|prune-threshold|prune-penalty";
    const ses_pruning_options *o = &a->s.o.pruning;
    const ses_opt_table *t = &ses_pruning_option_table;
    if (!o->criterion && o->keep >= 1) /* the older name of --keep-checkpoints */
        return refuse(t, o, "block|prune-warmup|prune-cooldown|score-lr|prune-threshold|prune-penalty",
                      "without --prune CRITERION", e);
    if (!o->criterion) return refuse(t, o, NULL, "without --prune CRITERION", e);
    bool magnitude = !strcmp(o->criterion, "magnitude"), movement = !strcmp(o->criterion, "movement");
    if ((magnitude || movement) && !(o->keep > 0))
        return ses_fail(
            e, SES_EUSAGE,
            "--keep X is required: the fraction of the blocks that --prune %s keeps, above 0 and at "
            "most 1",
            o->criterion);
    if (a->s.o.exits.train == SES_TRAIN_EXITS_FROZEN)
        return ses_fail(
            e, SES_EUSAGE,
            "--prune and --exits frozen exclude each other: frozen weights cannot be pruned; prune "
            "first, then train the exits in a second run");
    if (magnitude) return refuse(t, o, all, "with --prune magnitude", e);
    return !movement || refuse(t, o, both, "with --prune movement", e);
}

static bool check_teacher(const ses_finetune_args *a, ses_err *e)
{
    const ses_teacher_options *o = &a->s.o.teacher;
    const ses_opt_table *t = &ses_teacher_option_table;
    if (!a->s.teachers.n) return refuse(t, o, NULL, "without --teacher DIR", e);
    if (!(o->distill.relation > 0) &&
        !refuse(t, o, "relations|relation-heads|teacher-layer", "without --relation-weight X", e))
        return false;
    return o->init_student || ses_student_is_new(&o->student) ||
           refuse(t, o, "copy-layers", "without --from-teacher or --student-layers N", e);
}

bool ses_finetune_check_unused(const ses_finetune_args *a, ses_err *e)
{
    if (a->grid.n || a->s.method) return true; /* runs with other options; methods check theirs */
    return check_pruning(a, e) && check_teacher(a, e);
}
