/* Output folder of convert and quantize: a new folder gets its name when it is complete. */
#define _POSIX_C_SOURCE 200809L
#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/str.h"
#include "convert_model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool ses_convert_output_open(ses_convert_output *o, const char *to, ses_err *e)
{
    size_t n = strlen(to);
    ses_buf name = { 0 };
    *o = (ses_convert_output){ .to = to, .dir = to };
    if (!n || ses_path_exists(to)) return true;
    while (n > 1 && to[n - 1] == '/') n--;
    o->name_len = n;
    ses_buf_appendf(&name, "%.*s.sesame-%ld.tmp", (int)n, to, (long)getpid());
    if (!ses_buf_ok(&name, e)) return false;
    o->dir = o->stage = name.data;
    return true;
}

static bool remove_module(void *dir, const char *name)
{
    char *path = ses_path_join(dir, name, NULL);
    if (path && ses_path_is_dir(path)) ses_dir_remove(path, NULL);
    ses_free(path);
    return true;
}

/* Messages give the name of the operand. */
static void rename_in_message(const ses_convert_output *o, ses_err *e)
{
    char *at = e ? strstr(e->msg, o->stage) : NULL;
    if (!at) return;
    const char *rest = at + strlen(o->stage);
    memmove(at + o->name_len, rest, strlen(rest) + 1);
}

bool ses_convert_output_close(ses_convert_output *o, bool ok, ses_err *e)
{
    if (o->stage && ok) ok = ses_dir_place(o->stage, o->to, false, e);
    if (o->stage && !ok && ses_path_is_dir(o->stage)) {
        ses_dir_each(o->stage, remove_module, o->stage, NULL);
        ses_dir_remove(o->stage, NULL);
    }
    if (o->stage && !ok) rename_in_message(o, e);
    ses_free(o->stage);
    o->stage = NULL;
    return ok;
}
