/* A simulated NCCL on host memory: blocks travel as files in the folder FAKE_NCCL_DIR, named by exchange,
 * sender and receiver. Calls answer "in progress" first, as non-blocking communicators do. Variables:
 * FAKE_NCCL_VERSION (22809), FAKE_NCCL_HANG: ncclCommAbort does not return. */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, SYSTEM_ERROR = 2, IN_PROGRESS = 7, MAX_OPS = 64 };

typedef struct id {
    char byte[128];
} id;

typedef struct op {
    void *data;
    size_t n;
    int from, to;
    long sequence;
} op;

typedef struct comm {
    int rank, answers;
    long sent[16], received[16];
} comm;

static op pending[MAX_OPS];
static int n_pending;

int ncclGetVersion(int *version);
int ncclGetUniqueId(id *out);
int ncclCommInitRankConfig(void **out, int size, id unique, int rank, void *config);
int ncclCommGetAsyncError(void *c, int *result);
int ncclCommFinalize(void *c);
int ncclCommDestroy(void *c);
int ncclCommAbort(void *c);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclSend(const void *data, size_t n, int type, int rank, void *c, void *stream);
int ncclRecv(void *data, size_t n, int type, int rank, void *c, void *stream);
const char *ncclGetErrorString(int result);
int fake_nccl_busy(void);

static void name_of(const op *o, char path[512])
{
    snprintf(path, 512, "%s/%ld-%d-%d", getenv("FAKE_NCCL_DIR"), o->sequence, o->from, o->to);
}

int ncclGetVersion(int *version)
{
    const char *text = getenv("FAKE_NCCL_VERSION");
    *version = text ? (int)strtol(text, NULL, 10) : 22809;
    return SUCCESS;
}

int ncclGetUniqueId(id *out)
{
    memset(out, 42, sizeof *out);
    return SUCCESS;
}

int ncclCommInitRankConfig(void **out, int size, id unique, int rank, void *config)
{
    comm *c = calloc(1, sizeof *c);
    (void)size, (void)config;
    if (!c || unique.byte[127] != 42) return SYSTEM_ERROR;
    c->rank = rank;
    c->answers = 3;
    *out = c;
    return IN_PROGRESS;
}

int ncclCommGetAsyncError(void *c, int *result)
{
    comm *x = c;
    *result = x->answers > 0 ? IN_PROGRESS : SUCCESS;
    x->answers--;
    return SUCCESS;
}

int ncclCommFinalize(void *c)
{
    ((comm *)c)->answers = 1;
    return IN_PROGRESS;
}

int ncclCommDestroy(void *c)
{
    free(c);
    return SUCCESS;
}

int ncclCommAbort(void *c)
{
    if (getenv("FAKE_NCCL_HANG")) pause();
    n_pending = 0; /* transfers end */
    return ncclCommDestroy(c);
}

int ncclGroupStart(void) { return SUCCESS; }
int ncclGroupEnd(void) { return IN_PROGRESS; }

int ncclSend(const void *data, size_t n, int type, int rank, void *c, void *stream)
{
    comm *x = c;
    char path[512], part[600];
    (void)type, (void)stream;
    op o = { .from = x->rank, .to = rank, .sequence = x->sent[rank]++ };
    name_of(&o, path);
    snprintf(part, sizeof part, "%s.part", path);
    FILE *f = fopen(part, "wb");
    if (!f) return SYSTEM_ERROR;
    size_t written = fwrite(data, 1, n, f);
    x->answers = 2;
    return fclose(f) || written != n || rename(part, path) ? SYSTEM_ERROR : SUCCESS;
}

int ncclRecv(void *data, size_t n, int type, int rank, void *c, void *stream)
{
    comm *x = c;
    (void)type, (void)stream;
    if (n_pending == MAX_OPS) return SYSTEM_ERROR;
    pending[n_pending++] = (op){ data, n, rank, x->rank, x->received[rank]++ };
    return IN_PROGRESS;
}

const char *ncclGetErrorString(int result) { return result == SYSTEM_ERROR ? "system error" : "other"; }

/* Receives the blocks that have arrived; whether some are missing. */
int fake_nccl_busy(void)
{
    int kept = 0;
    for (int i = 0; i < n_pending; i++) {
        char path[512];
        name_of(&pending[i], path);
        FILE *f = fopen(path, "rb");
        if (!f) {
            pending[kept++] = pending[i];
            continue;
        }
        size_t n = fread(pending[i].data, 1, pending[i].n, f);
        if (n != pending[i].n || fgetc(f) != EOF) abort();
        fclose(f);
        remove(path);
    }
    n_pending = kept;
    return kept > 0;
}
