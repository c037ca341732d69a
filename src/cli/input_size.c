/* Size of the input files of a command. */
#define _POSIX_C_SOURCE 200809L
#include "input_size.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int64_t ses_input_size(const char *const *file, size_t n)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        struct stat st;
        int failed = strcmp(file[i], "-") ? stat(file[i], &st) : fstat(STDIN_FILENO, &st);
        if (failed || !S_ISREG(st.st_mode)) return 0;
        sum += (int64_t)st.st_size;
    }
    return sum;
}
