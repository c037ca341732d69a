/* Compares outputs of a command with its inputs. */
#include "output_check.h"

#include "base/file.h"

#include <string.h>

static bool is_output(const ses_opt *o)
{
    static const char *const names[] = { "output", "to", "svg", "html" };
    for (size_t i = 0; o->type == SES_OPT_IS_TEXT && i < SES_LEN(names); i++)
        if (!strcmp(o->name, names[i])) return true;
    return false;
}

/* The values of an option that can be the path of an input; *n is set. */
static const char *const *inputs_of(const ses_opt *o, const void *args, size_t *n)
{
    const void *at = (const char *)args + o->offset;
    const ses_opt_list *list = at;
    *n = 0;
    if (o->type == SES_OPT_IS_LIST) return *n = list->n, list->item;
    if (o->type != SES_OPT_IS_TEXT || is_output(o)) return NULL;
    return *n = 1, (const char *const *)at;
}

static bool differ(const ses_opt *o, const char *output, const char *input, ses_err *e)
{
    return !input || !ses_path_same(output, input) ||
           ses_fail(e, SES_EUSAGE, "--%s %s is also read by this command: name another file", o->name,
                    output);
}

static bool check(const ses_opt *o, const char *output, const ses_opt_group *group, size_t n_groups,
                  char *const *operands, ses_err *e)
{
    const ses_opt *x;
    size_t n;
    for (; *operands; operands++)
        if (!differ(o, output, *operands, e)) return false;
    for (size_t g = 0; g < n_groups; g++)
        for (ses_opt_iter it = ses_opt_begin(group[g].opt, group[g].n); (x = ses_opt_next(&it));) {
            const char *const *input = inputs_of(x, group[g].args, &n);
            for (size_t i = 0; i < n; i++)
                if (!differ(o, output, input[i], e)) return false;
        }
    return true;
}

bool ses_outputs_check(const ses_opt_group *group, size_t n_groups, char *const *operands, ses_err *e)
{
    const ses_opt *o;
    for (size_t g = 0; g < n_groups; g++)
        for (ses_opt_iter it = ses_opt_begin(group[g].opt, group[g].n); (o = ses_opt_next(&it));) {
            const char *output =
                is_output(o) ? *(const char *const *)((const char *)group[g].args + o->offset) : NULL;
            bool file = output && ses_path_exists(output) && !ses_path_is_dir(output);
            if (file && !check(o, output, group, n_groups, operands, e)) return false;
        }
    return true;
}
