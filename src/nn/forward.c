/* A batch on its way to the device, and what a pass gives. */
#include "cache_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Does this go on from a cache: what a lone decoder reads, or the decoder of a pair? */
static bool continues(const ses_pass *p, const ses_seqs *q)
{
    return p->batch->cache && (q == &p->target || !p->batch->target_cu);
}

/* Places counted in each sequence from the table's first usable row. Where pads are not counted, a token
 * with the pad's id stands at the pad's own row. */
static int32_t *count_up(ses_pass *p, const ses_seqs *q)
{
    const ses_config *c = p->c;
    bool goes_on = continues(p, q);
    int32_t *place = ses_tape_host(p->tape, (size_t)q->tokens, sizeof *place);
    for (int64_t s = 0; place && s < q->seqs; s++) {
        int32_t next =
            (int32_t)(c->pos_offset + (goes_on ? ses_cache_len(p->batch->cache, p->batch->slots[s]) : 0));
        for (int32_t t = q->host_cu[s]; t < q->host_cu[s + 1]; t++) {
            bool skip = c->pos_skips_pad && q->host_ids[t] == c->pad;
            place[t] = skip ? (int32_t)c->pad : next++;
        }
    }
    return place;
}

static ses_tensor *positions(ses_pass *p, const ses_seqs *q, const int32_t *given)
{
    int32_t *place = given ? ses_tape_host(p->tape, (size_t)q->tokens, sizeof *place) : count_up(p, q);
    for (int64_t t = 0; given && place && t < q->tokens; t++) place[t] = given[t] + (int32_t)p->c->pos_offset;
    return place ? ses_tape_ints(p->tape, place, q->tokens) : NULL;
}

static ses_tensor *zeros(ses_pass *p, int64_t n)
{
    const int32_t *z = ses_tape_host(p->tape, (size_t)n, sizeof *z);
    return z ? ses_tape_ints(p->tape, z, n) : NULL;
}

static void measure(ses_seqs *q)
{
    for (int64_t s = 0; s < q->seqs; s++) {
        int64_t len = q->host_cu[s + 1] - q->host_cu[s];
        if (len > q->longest) q->longest = len;
        q->pairs += len * len;
    }
}

static void upload(ses_pass *p, ses_seqs *q, const int32_t *segments, const int32_t *given)
{
    measure(q);
    q->cu = ses_tape_ints(p->tape, q->host_cu, q->seqs + 1);
    q->ids = ses_tape_ints(p->tape, q->host_ids, q->tokens);
    q->segments = segments ? ses_tape_ints(p->tape, segments, q->tokens) : zeros(p, q->tokens);
    q->positions = positions(p, q, given);
}

/* The decoder's input: given, or the labels shifted right behind the start token (or the row's own last
 * label). */
static const int32_t *shifted(ses_pass *p, const ses_batch *b, int64_t tokens)
{
    const ses_config *c = p->c;
    if (b->target_ids) return b->target_ids;
    int32_t *ids = ses_tape_host(p->tape, (size_t)tokens, sizeof *ids);
    for (int64_t s = 0; ids && s < b->seqs; s++)
        for (int32_t t = b->target_cu[s]; t < b->target_cu[s + 1]; t++) {
            bool first = t == b->target_cu[s];
            int32_t last = b->labels[b->target_cu[s + 1] - 1];
            int32_t id = !first ? b->labels[t - 1] : c->shift == SES_SHIFT_LAST ? last : (int32_t)c->start;
            ids[t] = id == SES_IGNORE ? (int32_t)c->pad : id;
        }
    return ids;
}

/* The encoder's input shifted right, for models that read it twice. */
static const int32_t *echoed(ses_pass *p, const ses_batch *b)
{
    int32_t *ids = ses_tape_host(p->tape, (size_t)b->tokens, sizeof *ids);
    for (int64_t s = 0; ids && s < b->seqs; s++)
        for (int32_t t = b->cu[s]; t < b->cu[s + 1]; t++)
            ids[t] = t > b->cu[s]                    ? b->ids[t - 1]
                     : p->c->shift == SES_SHIFT_LAST ? b->ids[b->cu[s + 1] - 1]
                                                     : (int32_t)p->c->start;
    return ids;
}

static ses_sight sight_of(const ses_batch *b)
{
    bool none = true, all = true;
    if (!b->seen) return SES_SIGHT_MODEL;
    for (int64_t s = 0; s < b->seqs; s++) {
        none &= b->seen[s] <= 1; /* a first token sees itself */
        all &= b->seen[s] >= b->cu[s + 1] - b->cu[s];
    }
    return none ? SES_SIGHT_CAUSAL : all ? SES_SIGHT_ALL : SES_SIGHT_MIXED;
}

void ses_pass_sight(ses_pass *p, int64_t heads)
{
    static const ses_real hidden = -1e30f;
    const ses_batch *b = p->batch;
    p->sight = sight_of(b);
    if (p->sight != SES_SIGHT_MIXED) return;
    ses_real *x = ses_tape_host(p->tape, (size_t)(heads * p->in.pairs), sizeof *x), *at = x;
    for (int64_t s = 0; x && s < b->seqs; s++) {
        int64_t len = b->cu[s + 1] - b->cu[s];
        for (int64_t i = 0; i < heads * len; i++, at += len)
            for (int64_t j = i % len + 1; j < len; j++)
                if (j >= b->seen[s]) at[j] = hidden;
    }
    p->hides = x ? ses_tape_input(p->tape, x, SES_DIM(heads * p->in.pairs)) : NULL;
}

void ses_pass_begin(ses_pass *p, size_t outputs)
{
    const ses_batch *b = p->batch;
    p->cap = outputs;
    p->item = ses_tape_host(p->tape, p->cap, sizeof *p->item);
    p->in = (ses_seqs){ .seqs = b->seqs, .tokens = b->tokens, .host_cu = b->cu, .host_ids = b->ids };
    if (b->ids) upload(p, &p->in, b->segments, b->positions);
    if (b->target_places) {
        p->target = (ses_seqs){ .seqs = b->seqs, .tokens = b->target_cu[b->seqs], .host_cu = b->target_cu };
        measure(&p->target);
        p->target.cu = ses_tape_ints(p->tape, b->target_cu, b->seqs + 1);
        return;
    }
    if (b->cache) ses_cache_begin(p);
    if (!b->target_cu && !p->c->echo) return;
    const int32_t *cu = b->target_cu ? b->target_cu : b->cu;
    const int32_t *ids = b->target_cu ? shifted(p, b, cu[b->seqs]) : echoed(p, b);
    p->target = (ses_seqs){ .seqs = b->seqs, .tokens = cu[b->seqs], .host_cu = cu, .host_ids = ids };
    if (ids) upload(p, &p->target, NULL, b->target_positions);
}

ses_tensor *ses_seqs_shift(ses_pass *p, const ses_seqs *q, ses_tensor *x, int64_t by)
{
    int32_t *row = ses_tape_host(p->tape, (size_t)q->tokens, sizeof *row);
    for (int64_t s = 0; row && s < q->seqs; s++)
        for (int64_t t = q->host_cu[s]; t < q->host_cu[s + 1]; t++) {
            bool inside = t + by >= q->host_cu[s] && t + by < q->host_cu[s + 1];
            row[t] = inside ? (int32_t)(t + by) : SES_IGNORE;
        }
    return row ? ses_take(p->tape, x, ses_tape_ints(p->tape, row, q->tokens)) : NULL;
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

const ses_head *ses_head_named(const char *name)
{
    static const ses_head *const heads[] = {
#define SES_HEAD(name) &ses_head_##name,
#include "heads.def"
#undef SES_HEAD
    };
    for (size_t i = 0; i < SES_LEN(heads); i++)
        if (!strcmp(heads[i]->name, name)) return heads[i];
    return NULL;
}

const int32_t *ses_head_labels(const ses_head_use *use, const ses_batch *b)
{
    return *(const int32_t *const *)(const void *)((const char *)b + use->labels);
}

double ses_head_drop(const ses_config *c) { return c->drop_head < 0 ? c->drop : c->drop_head; }
