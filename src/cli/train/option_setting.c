/* See option_setting.h. */
#include "option_setting.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

bool ses_option_setting_apply(const ses_command *cmd, const char *text, const ses_setting_rule *r, void *args,
                              ses_err *e)
{
    char name[64], where[160];
    size_t n = strcspn(text, "=");
    ses_opt o;
    if (!text[n] || n >= sizeof name)
        return ses_fail(e, SES_EUSAGE, "--%s %.80s: expected NAME=VALUE", r->from, text);
    memcpy(name, text, n);
    name[n] = 0;
    if (!ses_opt_find(cmd->opt, cmd->n_opt, name, cmd->name, &o, e)) return ses_wrap(e, "--%s", r->from);
    if ((r->no_lists && o.type == SES_OPT_IS_LIST) || ses_list_has(r->refused, o.name))
        return ses_fail(e, SES_EUSAGE, "--%s: %s cannot be set", r->from, o.name);
    snprintf(where, sizeof where, "--%s %s", r->from, name);
    return ses_opt_set(&o, args, where, text + n + 1, e);
}

const char *ses_option_changed(const ses_opt *opt, size_t n, const char *names, const void *args)
{
    ses_buf line = { 0 };
    const ses_opt *o;
    const char *name = NULL;
    for (ses_opt_iter it = ses_opt_begin(opt, n); !name && (o = ses_opt_next(&it));) {
        if (names && !ses_list_has(names, o->name)) continue;
        ses_options_put_command_line(o, 1, args, &line);
        if (line.len) name = o->name;
    }
    ses_buf_free(&line);
    return name;
}
