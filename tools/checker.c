#include "checker.h"

#include "base/file.h"

#include <stdio.h>

static void help(const checker *c)
{
    puts(c->usage);
    const ses_opt *o;
    for (ses_opt_iter it = ses_opt_begin(c->opt, c->n_opt); (o = ses_opt_next(&it));)
        printf("  --%-10s %-20s %s\n", o->name, ses_opt_value_name(o), o->help);
}

int checker_main(const checker *c, char **argv)
{
    checker_args a = { 0 };
    ses_err e = { 0 };
    int n = 0, worst = 0;
    const ses_opt_group group = { c->opt, c->n_opt, &a };
    if (!ses_options_parse(&group, 1, argv + 1, false, &n, &e) ||
        (!a.help && !n && !ses_fail(&e, SES_EUSAGE, "%s", c->nothing))) {
        fprintf(stderr, "%s: %s\nTry '%s --help'.\n", c->name, e.msg, c->name);
        return 2;
    }
    if (a.help) return help(c), 0;
    ses_device_options o = ses_compute_device_options(&a.compute);
    ses_device *dev = ses_device_open(a.compute.device, &o, &e);
    if (!dev) return fprintf(stderr, "%s: %s\n", c->name, e.msg), 2;
    for (int i = 0; i < n; i++) {
        ses_path_trim(argv[1 + i]); /* as a shell completes it */
        int code = c->check(argv[1 + i], dev, a.verbose);
        if (code > worst) worst = code;
    }
    ses_device_free(dev);
    return worst;
}
