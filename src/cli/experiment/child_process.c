/* Child processes that run commands of this program. */
#define _POSIX_C_SOURCE 200809L
#include "child_process.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { LOG_MAX = 1 << 24 };

void ses_child_follow_parent(int parent, int signal)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, signal); /* stays after exec */
#endif
    if (getppid() != (pid_t)parent) raise(signal); /* it has ended already */
}

/* Replaces this process, a child of `parent`. */
static void execute(char *const *argv, const char *log, const char *out, pid_t parent)
{
    int none = open("/dev/null", O_RDWR), messages = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666),
        output = out ? open(out, O_WRONLY | O_CREAT | O_TRUNC, 0666) : none;
    ses_child_follow_parent((int)parent, SIGTERM);
    if (out && output < 0) _exit(126);
    dup2(none, STDIN_FILENO);
    dup2(messages < 0 ? none : messages, STDERR_FILENO);
    dup2(output, STDOUT_FILENO);
    if (none > STDERR_FILENO) close(none);
    if (messages > STDERR_FILENO) close(messages);
    if (output > STDERR_FILENO && output != none) close(output);
    execv("/proc/self/exe", argv);
    _exit(127);
}

int ses_child_start(char *const *argv, const char *log, const char *out, ses_err *e)
{
    pid_t own = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) execute(argv, log, out, own);
    if (pid < 0) ses_fail(e, SES_EIO, "a process cannot be started: %s", strerror(errno));
    return (int)pid;
}

/* The last line of a text that is not empty, without the name of the program and a final period. A line
 * that begins with the name comes before others: "sesame: MESSAGE", then "Try 'sesame prune --help'.". */
static ses_string last_message(const char *text, size_t n)
{
    static const char name[] = "sesame: ";
    const size_t len = sizeof name - 1;
    ses_string last = { "", 0 }, named = last;
    for (size_t begin = 0, end; begin < n; begin = end + 1) {
        for (end = begin; end < n && text[end] != '\n';) end++;
        if (end == begin) continue;
        last = (ses_string){ text + begin, end - begin };
        if (last.n > len && !strncmp(last.p, name, len)) named = (ses_string){ last.p + len, last.n - len };
    }
    if (named.n) last = named;
    if (last.n > 1 && last.p[last.n - 1] == '.' && last.p[last.n - 2] != '.') last.n--; /* not of "..." */
    return last;
}

void ses_child_reason(const char *log, char *reason, size_t size)
{
    size_t n = 0;
    char *text = ses_path_exists(log) ? ses_file_read(log, LOG_MAX, &n, NULL) : NULL;
    ses_string why = text ? last_message(text, n) : (ses_string){ "", 0 };
    if (why.n)
        ses_quote(reason, size, why.p, why.n);
    else
        snprintf(reason, size, "its command failed");
    ses_free(text);
}
