#include "nn.h"

#include <stdarg.h>
#include <stdio.h>

static ses_tensor *count_up(ses_pass *p)
{
    const ses_batch *b = p->batch;
    int32_t *position = ses_tape_host(p->tape, (size_t)b->tokens, sizeof *position);
    for (int64_t s = 0; position && s < b->seqs; s++)
        for (int32_t t = b->cu[s]; t < b->cu[s + 1]; t++) position[t] = t - b->cu[s];
    return position ? ses_tape_ints(p->tape, position, b->tokens) : NULL;
}

static ses_tensor *zeros(ses_pass *p)
{
    const int32_t *z = ses_tape_host(p->tape, (size_t)p->batch->tokens, sizeof *z);
    return z ? ses_tape_ints(p->tape, z, p->batch->tokens) : NULL;
}

void ses_pass_begin(ses_pass *p)
{
    const ses_batch *b = p->batch;
    for (int64_t s = 0; s < b->seqs; s++) {
        int64_t len = b->cu[s + 1] - b->cu[s];
        if (len > p->longest) p->longest = len;
    }
    p->cap = 2 * (size_t)p->c->layers + 16;
    p->item = ses_tape_host(p->tape, p->cap, sizeof *p->item);
    p->cu = ses_tape_ints(p->tape, b->cu, b->seqs + 1);
    p->ids = ses_tape_ints(p->tape, b->ids, b->tokens);
    p->segments = b->segments ? ses_tape_ints(p->tape, b->segments, b->tokens) : zeros(p);
    p->positions = b->positions ? ses_tape_ints(p->tape, b->positions, b->tokens) : count_up(p);
}

static ses_output *next(ses_pass *p)
{
    if (!p->item || p->n == p->cap) return NULL;
    return &p->item[p->n++];
}

void ses_pass_output(ses_pass *p, ses_axis axis, ses_tensor *x, const char *fmt, ...)
{
    ses_output *o = next(p);
    if (!o) return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(o->name, sizeof o->name, fmt, ap);
    va_end(ap);
    o->tensor = x;
    o->axis = axis;
}

void ses_pass_column(ses_pass *p, ses_axis axis, ses_tensor *x, int64_t col, const char *name)
{
    ses_pass_output(p, axis, x, "%s", name);
    if (p->n) p->item[p->n - 1].col = col, p->item[p->n - 1].cols = 1;
}

void ses_pass_loss(ses_pass *p, ses_tensor *loss)
{
    p->loss = p->loss ? ses_add(p->tape, p->loss, loss) : loss;
}

const int32_t *ses_head_labels(const ses_head_use *use, const ses_batch *b)
{
    return *(const int32_t *const *)(const void *)((const char *)b + use->labels);
}

double ses_head_drop(const ses_config *c) { return c->drop_head < 0 ? c->drop : c->drop_head; }
