/* Resolves the model arguments of a command. */
#include "model_args.h"

#include "analysis/analysis.h"
#include "model/bundled_models.h"

#include <assert.h>
#include <string.h>

/* The main name of a pipeline, for commands that are aliases. */
static const char *task_name(const ses_command *cmd)
{
    for (const ses_command *const *c = ses_commands(); *c; c++)
        if ((*c)->task == cmd->task && !(*c)->hidden) return (*c)->name;
    return cmd->name;
}

/* The pipeline whose bundled model is the command's default; NULL: none. */
static const char *default_model_of(const ses_command *cmd)
{
    return cmd->analysis ? cmd->analysis->default_model_of : cmd->default_model_of;
}

/* Sets *at to dir and appends it to owned; false: dir is NULL. */
static bool keep(const char **at, char *dir, char *owned[SES_MAX_MODEL_ARGS])
{
    size_t n = 0;
    while (n < SES_MAX_MODEL_ARGS && owned[n]) n++;
    assert(n < SES_MAX_MODEL_ARGS); /* no command has more model options */
    if (dir) *at = owned[n] = dir;
    return dir != NULL;
}

/* The default model of a command, even if a folder of that name exists in the current folder. */
static bool use_default(const ses_command *cmd, const char **at, char *owned[SES_MAX_MODEL_ARGS], ses_err *e)
{
    const char *name = ses_model_default(cmd->task ? task_name(cmd) : default_model_of(cmd));
    if (!name)
        return ses_fail(e, SES_EUSAGE, "--model DIR is required: Sesame has no bundled model for %s",
                        cmd->name);
    return keep(at, ses_bundled_find(name, NULL, e), owned);
}

bool ses_model_args_resolve(const ses_command *cmd, void *args, char **operands,
                            char *owned[SES_MAX_MODEL_ARGS], ses_err *e)
{
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(cmd->opt, cmd->n_opt); (o = ses_opt_next(&it));) {
        if (!o->is_model || o->type != SES_OPT_IS_TEXT)
            continue; /* names in lists are resolved by the command */
        const char **at = (const char **)(void *)((char *)args + o->offset);
        if (*at && !keep(at, ses_model_resolve(*at, NULL, e), owned)) return false;
        if (!*at && (cmd->task || default_model_of(cmd)) && !strcmp(o->name, "model") &&
            !use_default(cmd, at, owned, e))
            return false;
    }
    int n = 0;
    while (operands[n]) n++;
    const char *first = cmd->has_model_operand ? operands[0] : NULL;
    if (!first || (cmd->names_models && cmd->names_models(args, n))) return true;
    bool ok = keep(&first, ses_model_resolve(first, NULL, e), owned);
    operands[0] = (char *)(uintptr_t)first;
    return ok;
}
