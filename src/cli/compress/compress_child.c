/* Child processes end with their parent. */
#define _POSIX_C_SOURCE 200809L
#include "compress.h"

#include <signal.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

void ses_compress_follow_parent(int parent, int signal)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, signal); /* stays after exec */
#endif
    if (getppid() != (pid_t)parent) raise(signal); /* it has ended already */
}
