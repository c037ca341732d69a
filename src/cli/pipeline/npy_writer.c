/* Writes rows of floats as a NumPy array. */
#define _POSIX_C_SOURCE 200809L
#include "npy_writer.h"

#include "cli/standard_output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER = 128 };

/* Format 1.0: magic, version, header length, a Python dictionary padded with spaces. */
static void put_header(const ses_npy *n)
{
    char h[HEADER + 1];
    memset(h, ' ', HEADER);
    memcpy(h, "\x93NUMPY\x01\x00", 8);
    h[8] = (char)(HEADER - 10);
    h[9] = 0;
    int len = snprintf(h + 10, HEADER - 10,
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64 "), }",
                       n->rows, n->cols);
    h[10 + len] = ' ';
    h[HEADER - 1] = '\n';
    fwrite(h, 1, HEADER, n->f);
}

static bool begin(ses_npy *n, ses_err *e)
{
    struct stat st;
    int fd = fileno(n->f);
    if (isatty(fd))
        return ses_fail(e, SES_EUSAGE, "npy is binary: write it to a file with --to FILE, or to a pipe");
    n->begun = true;
    n->start = ftell(n->f);
    n->patch =
        fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && n->start >= 0 && !(fcntl(fd, F_GETFL) & O_APPEND);
    if (n->patch) put_header(n);
    return true;
}

bool ses_npy_add(ses_npy *n, const float *x, int64_t cols, ses_err *e)
{
    n->cols = cols;
    if (!n->begun && !begin(n, e)) return false;
    n->rows++;
    if (n->patch)
        return fwrite(x, sizeof *x, (size_t)cols, n->f) == (size_t)cols || ses_stdout_fail(errno, e);
    ses_buf_append(&n->buf, x, (size_t)cols * sizeof *x);
    return ses_buf_ok(&n->buf, e);
}

bool ses_npy_end(ses_npy *n, ses_err *e)
{
    if (!n->begun && !begin(n, e)) return false;
    if (n->patch) {
        if (fseek(n->f, n->start, SEEK_SET)) return ses_stdout_fail(errno, e);
        put_header(n);
        return fseek(n->f, 0, SEEK_END) == 0 || ses_stdout_fail(errno, e);
    }
    put_header(n);
    return fwrite(n->buf.data ? n->buf.data : "", 1, n->buf.len, n->f) == n->buf.len ||
           ses_stdout_fail(errno, e);
}

void ses_npy_free(ses_npy *n) { ses_buf_free(&n->buf); }
