/* Exchanges of device memory through host memory, where NCCL is missing. */
#include "comm_state.h"

#include "base/alloc.h"

#include <string.h>

struct ses_staging {
    ses_staging *next;
    ses_device *dev;
    char *host;            /* all blocks to send, then all to receive */
    ses_comm_block *block; /* [3 * size]: host blocks to send, to receive, device blocks to receive */
};

static void free_staging(ses_staging *s)
{
    if (!s) return;
    ses_free(s->host);
    ses_free(s->block);
    ses_free(s);
}

/* Host copies of the blocks of other ranks. */
static bool lay_out(const ses_comm *c, ses_staging *s, const ses_comm_block *send, const ses_comm_block *recv,
                    ses_err *e)
{
    size_t n = (size_t)c->launch.size, total = 0;
    s->block = ses_alloc_array(3 * n, sizeof *s->block, e);
    if (!s->block) return false;
    for (size_t r = 0; r < 2 * n; r++) {
        const ses_comm_block *b = r < n ? &send[r] : &recv[r - n];
        s->block[r].bytes = r % n == (size_t)c->launch.rank ? 0 : b->bytes;
        if (!ses_add_size(total, s->block[r].bytes, &total))
            return ses_fail(e, SES_ENOMEM, "an exchange is too large");
    }
    memcpy(s->block + 2 * n, recv, n * sizeof *recv);
    s->host = ses_alloc_aligned(total ? total : 1, e);
    if (!s->host) return false;
    total = 0;
    for (size_t r = 0; r < 2 * n; r++) {
        s->block[r].data = s->host + total;
        total += s->block[r].bytes;
    }
    return true;
}

static void upload(const ses_comm *c, const ses_staging *s)
{
    int n = c->launch.size;
    for (int r = 0; r < n; r++) {
        const ses_comm_block *from = &s->block[n + r], *to = &s->block[2 * n + r];
        if (from->bytes) s->dev->mem->upload(s->dev, to->data, from->data, from->bytes);
    }
}

bool ses_staging_exchange(ses_comm *c, ses_device *dev, const ses_comm_block *send,
                          const ses_comm_block *recv, bool queued, ses_err *e)
{
    int n = c->launch.size;
    ses_staging *s = ses_alloc(sizeof *s, e);
    if (!s) return false;
    s->dev = dev;
    bool ok = lay_out(c, s, send, recv, e);
    for (int r = 0; ok && r < n; r++)
        if (s->block[r].bytes) dev->mem->download(dev, s->block[r].data, send[r].data, s->block[r].bytes);
    ok = ok && (!dev->mem->ok || dev->mem->ok(dev, e));
    if (ok && queued) {
        s->next = c->staging; /* first, so that its memory lives as long as the queue uses it */
        c->staging = s;
        return ses_comm_enqueue(c, s->block, s->block + n, e);
    }
    ok = ok && ses_comm_transfer(c, s->block, s->block + n, e);
    if (ok) upload(c, s);
    free_staging(s);
    return ok;
}

void ses_staging_finish(ses_comm *c, bool ok)
{
    while (c->staging) {
        ses_staging *s = c->staging;
        c->staging = s->next;
        if (ok) upload(c, s);
        free_staging(s);
    }
}
