#include "checker.h"

#include "base/file.h"

#include <stdio.h>

static void help(const checker *c)
{
    puts(c->usage);
    for (size_t i = 0; i < c->n_opt; i++)
        printf("  --%-10s %-20s %s\n", c->opt[i].name, ses_opt_value_name(&c->opt[i]), c->opt[i].help);
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
    ses_device_options o = ses_compute_device_options(&a.shared);
    ses_device *dev = ses_device_open(a.shared.device, &o, &e);
    if (!dev) return fprintf(stderr, "%s: %s\n", c->name, e.msg), 2;
    for (int i = 0; i < n; i++) {
        ses_path_trim(argv[1 + i]); /* as a shell completes it */
        int code = c->check(argv[1 + i], dev, a.verbose);
        if (code > worst) worst = code;
    }
    ses_device_free(dev);
    return worst;
}
