/* Filling and extending ses_err. */
#include "sesame/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool ses_fail(ses_err *e, ses_code code, const char *fmt, ...)
{
    if (!e || e->code != SES_OK) return false;
    va_list ap;
    va_start(ap, fmt);
    e->code = code;
    vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    return false;
}

bool ses_wrap(ses_err *e, const char *fmt, ...)
{
    if (!e || e->code == SES_OK) return false;
    char old[sizeof e->msg], where[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(where, sizeof where, fmt, ap);
    va_end(ap);
    memcpy(old, e->msg, sizeof old);
    int n = snprintf(e->msg, sizeof e->msg, "%s: ", where);
    if (n < 0 || (size_t)n >= sizeof e->msg) return false;
    size_t space = sizeof e->msg - (size_t)n - 1, len = strlen(old);
    if (len > space) len = space; /* truncate the message, not the location */
    memcpy(e->msg + n, old, len);
    e->msg[(size_t)n + len] = 0;
    return false;
}

void ses_err_clear(ses_err *e)
{
    if (!e) return;
    e->code = SES_OK;
    e->msg[0] = 0;
}
