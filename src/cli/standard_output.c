/* Checked writes to standard output. */
#include "standard_output.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char name[] = "standard output";

bool ses_stdout_fail(int why, ses_err *e) { return ses_fail_write(name, why, e); }

bool ses_stdout_write(const void *p, size_t n, ses_err *e)
{
    errno = 0;
    return fwrite(p, 1, n, stdout) == n || ses_fail_write(name, errno, e);
}

bool ses_stdout_flush(ses_err *e)
{
    errno = 0;
    bool lost = ferror(stdout) != 0;
    return (fflush(stdout) == 0 && !lost) || ses_fail_write(name, errno, e);
}

bool ses_stdout_close(ses_err *e)
{
    bool ok = ses_stdout_flush(e);
    errno = 0;
    return (fclose(stdout) == 0 || ses_fail_write(name, errno, e)) && ok;
}

bool ses_stdout_is_cause(const ses_err *e)
{
    return e->code == SES_EIO && !strncmp(e->msg, name, sizeof name - 1);
}

void ses_stdout_rename(ses_err *e, const char *path)
{
    if (!ses_stdout_is_cause(e)) return;
    ses_err all = *e;
    ses_err_clear(e);
    ses_fail(e, all.code, "%s%s", path, all.msg + sizeof name - 1);
}
