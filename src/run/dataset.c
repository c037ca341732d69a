/* Datasets of tokenized examples, and batches of them in an order that depends on seed and epoch only. */
#include "sesame/unstable/dataset.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/rng.h"
#include "batch_builder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ses_dataset {
    ses_target target;
    int64_t width, group, sequences;
    ses_ints ids, segments, tags, target_ids; /* all sequences end to end; target_ids: for SES_TARGET_TEXT */
    ses_ints cu_seqlens, target_cu_seqlens;   /* [sequences + 1] offsets of the sequences */
    ses_ints label, end;                      /* [sequences]; the start of a span is in label */
    ses_ints cls;                             /* [sequences], or empty: see ses_sequence */
    ses_ints chars, char_cu;                  /* bytes of words; cumulative numbers over all sequences */
    float *vectors;                           /* [tokens, vector_width] */
    size_t vectors_cap;
    int64_t vector_width;
    ses_real *values;
    size_t values_cap;
    int64_t *origin;
    size_t origin_cap;
};

ses_dataset *ses_dataset_new(ses_target target, int64_t width, int64_t group, ses_err *e)
{
    ses_dataset *d = ses_alloc(sizeof *d, e);
    if (!d) return NULL;
    d->target = target;
    d->width = width;
    d->group = group > 0 ? group : 1;
    if (ses_ints_push(&d->cu_seqlens, 0, e) && ses_ints_push(&d->target_cu_seqlens, 0, e)) return d;
    ses_dataset_free(d);
    return NULL;
}

void ses_dataset_free(ses_dataset *d)
{
    if (!d) return;
    ses_ints *all[] = { &d->ids,        &d->segments,   &d->tags,
                        &d->target_ids, &d->cu_seqlens, &d->target_cu_seqlens,
                        &d->label,      &d->end,        &d->cls,
                        &d->chars,      &d->char_cu };
    for (size_t i = 0; i < SES_LEN(all); i++) ses_free(all[i]->p);
    ses_free(d->values);
    ses_free(d->vectors);
    ses_free(d->origin);
    ses_free(d);
}

/* Reserves capacity for one more sequence in the arrays that are not ses_ints. */
static bool reserve(ses_dataset *d, ses_err *e)
{
    size_t n = (size_t)d->sequences + 1;
    if (!ses_array_reserve(&d->origin, &d->origin_cap, n, sizeof *d->origin, e)) return false;
    size_t values = d->target == SES_TARGET_VALUES ? n * (size_t)d->width : 0;
    if (!ses_array_reserve(&d->values, &d->values_cap, values, sizeof *d->values, e)) return false;
    return true;
}

/* The vectors and bytes of the words of a sequence; its ids are added already. */
static bool add_words(ses_dataset *d, const ses_sequence *s, ses_err *e)
{
    size_t width = (size_t)s->vector_width, from = d->ids.n - (size_t)s->n;
    if (s->vectors) {
        d->vector_width = s->vector_width;
        if (!ses_array_reserve(&d->vectors, &d->vectors_cap, d->ids.n * width, sizeof *d->vectors, e))
            return false;
        memcpy(d->vectors + from * width, s->vectors, (size_t)s->n * width * sizeof *s->vectors);
    }
    if (!s->char_cu) return true;
    int32_t before = (int32_t)d->chars.n;
    if (!d->char_cu.n && !ses_ints_push(&d->char_cu, 0, e)) return false;
    for (int64_t i = 1; i <= s->n; i++)
        if (!ses_ints_push(&d->char_cu, before + s->char_cu[i], e)) return false;
    return ses_ints_append(&d->chars, s->chars, s->char_cu[s->n], e);
}

bool ses_dataset_add(ses_dataset *d, const ses_sequence *s, ses_err *e)
{
    bool masked = d->target == SES_TARGET_SPAN && s->tags, tags = d->target == SES_TARGET_TAGS || masked,
         text = d->target == SES_TARGET_TEXT;
    if (s->n < 1)
        return ses_fail(e, SES_EARG,
                        "an example has no tokens: remove it, or use a tokenizer that adds a special token");
    if (!reserve(d, e) || !ses_ints_append(&d->ids, s->ids, s->n, e) ||
        !ses_ints_append(&d->segments, s->segments, s->n, e))
        return false;
    if (!add_words(d, s, e)) return false;
    if (tags && !ses_ints_append(&d->tags, s->tags, s->n, e)) return false;
    if (masked && !ses_ints_push(&d->cls, s->cls, e)) return false;
    if (text && !ses_ints_append(&d->target_ids, s->target_ids, s->n_target, e)) return false;
    if (!ses_ints_push(&d->cu_seqlens, (int32_t)d->ids.n, e) ||
        !ses_ints_push(&d->target_cu_seqlens, (int32_t)d->target_ids.n, e))
        return false;
    if (!ses_ints_push(&d->label, d->target == SES_TARGET_SPAN ? s->start : s->label, e) ||
        !ses_ints_push(&d->end, s->end, e))
        return false;
    for (int64_t i = 0; i < d->width && d->target == SES_TARGET_VALUES; i++)
        d->values[d->sequences * d->width + i] = s->values[i];
    d->origin[d->sequences++] = s->origin;
    return true;
}

int64_t ses_dataset_size(const ses_dataset *d) { return d->sequences / d->group; }
int64_t ses_dataset_tokens(const ses_dataset *d) { return (int64_t)d->ids.n; }

ses_sequence ses_dataset_at(const ses_dataset *d, int64_t s)
{
    int32_t at = d->cu_seqlens.p[s], target_at = d->target_cu_seqlens.p[s];
    return (ses_sequence){ .n = d->cu_seqlens.p[s + 1] - at,
                           .ids = d->ids.p + at,
                           .segments = d->segments.p + at,
                           .label = d->label.p[s],
                           .start = d->label.p[s],
                           .end = d->end.p[s],
                           .cls = d->cls.n ? d->cls.p[s] : 0,
                           .values = d->values ? d->values + s * d->width : NULL,
                           .vectors = d->vectors ? d->vectors + at * d->vector_width : NULL,
                           .vector_width = d->vector_width,
                           .chars = d->char_cu.n ? d->chars.p : NULL, /* char_cu counts from here */
                           .char_cu = d->char_cu.n ? d->char_cu.p + at : NULL,
                           .tags = d->tags.p ? d->tags.p + at : NULL,
                           .target_ids = d->target_ids.p ? d->target_ids.p + target_at : NULL,
                           .n_target = d->target_cu_seqlens.p[s + 1] - target_at,
                           .origin = d->origin[s] };
}

/* ---- batches ---- */

struct ses_batches {
    const ses_dataset *d;
    ses_batching how;
    int64_t n, epoch;     /* examples; epoch of the plan, -1: none */
    int64_t *order;       /* [n] examples in batch order */
    int64_t *batch_start; /* [count + 1] first index in `order` of each batch */
    int64_t *batch_order; /* [count] batches in the order of the epoch */
    int64_t count;
    ses_batch_builder builder;
};

enum { SITE_ORDER = 0x0BDE0001, SITE_BATCH_ORDER = 0x0BDE0002 };

ses_batches *ses_batches_new(const ses_dataset *d, const ses_batching *how, ses_err *e)
{
    ses_batches *b = ses_alloc(sizeof *b, e);
    if (!b) return NULL;
    b->d = d;
    b->how = *how;
    b->n = ses_dataset_size(d);
    b->epoch = -1;
    if (!b->n || (how->max_examples < 1 && how->max_tokens < 1)) {
        ses_fail(e, SES_EARG, b->n ? "a batch of 0 examples" : "no examples");
        goto fail;
    }
    b->order = ses_alloc_array((size_t)b->n, sizeof *b->order, e);
    b->batch_start = b->order ? ses_alloc_array((size_t)b->n + 1, sizeof *b->batch_start, e) : NULL;
    b->batch_order = b->batch_start ? ses_alloc_array((size_t)b->n, sizeof *b->batch_order, e) : NULL;
    if (b->batch_order) return b;
fail:
    ses_batches_free(b);
    return NULL;
}

void ses_batches_free(ses_batches *b)
{
    if (!b) return;
    ses_batch_builder_free(&b->builder);
    ses_free(b->order);
    ses_free(b->batch_start);
    ses_free(b->batch_order);
    ses_free(b);
}

static void shuffle(int64_t *a, int64_t n, ses_rng_key key)
{
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)((uint64_t)ses_rand32(key, (uint64_t)i) * (uint64_t)(i + 1) >> 32), x = a[i];
        a[i] = a[j];
        a[j] = x;
    }
}

static int64_t length(const ses_batches *b, int64_t example)
{
    int64_t c = b->d->group;
    return b->d->cu_seqlens.p[(example + 1) * c] - b->d->cu_seqlens.p[example * c];
}

/* An example to be sorted by length; `at` makes the sort stable. */
typedef struct keyed_example {
    int64_t length, at, example;
} keyed_example;

static int by_length(const void *x, const void *y)
{
    const keyed_example *a = x, *b = y;
    if (a->length != b->length) return a->length < b->length ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static bool sort_windows(ses_batches *b, int64_t window, ses_err *e)
{
    keyed_example *p = ses_alloc_array((size_t)window, sizeof *p, e);
    if (!p) return false;
    for (int64_t from = 0; from < b->n; from += window) {
        int64_t n = b->n - from < window ? b->n - from : window;
        for (int64_t i = 0; i < n; i++)
            p[i] = (keyed_example){ length(b, b->order[from + i]), i, b->order[from + i] };
        qsort(p, (size_t)n, sizeof *p, by_length);
        for (int64_t i = 0; i < n; i++) b->order[from + i] = p[i].example;
    }
    ses_free(p);
    return true;
}

/* Divides `order` into batches: by number of examples, or by number of tokens. */
static void divide_batches(ses_batches *b)
{
    int64_t tokens = 0, examples = 0;
    b->count = 0;
    b->batch_start[0] = 0;
    for (int64_t i = 0; i < b->n; i++) {
        int64_t len = length(b, b->order[i]);
        bool full =
            b->how.max_tokens > 0 ? tokens + len > b->how.max_tokens : examples == b->how.max_examples;
        if (i && full) b->batch_start[++b->count] = i, tokens = examples = 0;
        tokens += len;
        examples++;
    }
    b->batch_start[++b->count] = b->n;
}

/* Estimated examples per batch, for the size of a bucket. */
static int64_t typical_batch(const ses_batches *b)
{
    if (b->how.max_tokens < 1) return b->how.max_examples;
    int64_t mean = ses_dataset_tokens(b->d) / b->n;
    return b->how.max_tokens / (mean > 0 ? mean : 1) + 1;
}

static bool plan(ses_batches *b, int64_t epoch, ses_err *e)
{
    if (epoch < 0) return ses_fail(e, SES_EARG, "epoch %" PRId64 ", expected at least 0", epoch);
    if (b->epoch == epoch) return true;
    ses_rng_key key = { .seed = b->how.seed, .step = (uint32_t)epoch, .site = SITE_ORDER };
    for (int64_t i = 0; i < b->n; i++) b->order[i] = i;
    if (!b->how.in_order) shuffle(b->order, b->n, key);
    int64_t window = b->how.bucket_batches * typical_batch(b);
    if (b->how.bucket_batches > 0 && !sort_windows(b, window < b->n ? window : b->n, e)) return false;
    divide_batches(b);
    for (int64_t i = 0; i < b->count; i++) b->batch_order[i] = i;
    key.site = SITE_BATCH_ORDER;
    if (!b->how.in_order && b->how.bucket_batches > 0) shuffle(b->batch_order, b->count, key);
    b->epoch = epoch;
    return true;
}

static int64_t count(void *ctx, int64_t epoch)
{
    ses_batches *b = ctx;
    if (b->how.max_tokens < 1) return (b->n + b->how.max_examples - 1) / b->how.max_examples;
    return plan(b, epoch, NULL) ? b->count : 1;
}

const int64_t *ses_batches_examples(ses_batches *b, int64_t epoch, int64_t index, int64_t *n, ses_err *e)
{
    if (!plan(b, epoch, e)) return NULL;
    if (index < 0 || index >= b->count) {
        ses_fail(e, SES_EARG, "batch %" PRId64 ", but the epoch has %" PRId64, index, b->count);
        return NULL;
    }
    int64_t at = b->batch_order[index];
    *n = b->batch_start[at + 1] - b->batch_start[at];
    return b->order + b->batch_start[at];
}

/* A span; with a CLS token, also the tokens that may be answers. */
static bool add_span(ses_batch_builder *o, const ses_sequence *s, bool cls, ses_err *e)
{
    return ses_ints_push(&o->starts, s->start, e) && ses_ints_push(&o->ends, s->end, e) &&
           (!cls || (ses_ints_append(&o->answer_mask, s->tags, s->n, e) &&
                     ses_ints_push(&o->choice_positions, s->cls, e) &&
                     ses_ints_push(&o->pair_labels, s->start == s->cls, e)));
}

/* first: the sequence is the first one of its example. */
static bool add_sequence(ses_batches *b, int64_t sequence, bool first, ses_err *e)
{
    ses_batch_builder *o = &b->builder;
    const ses_dataset *d = b->d;
    ses_sequence s = ses_dataset_at(d, sequence);
    if (!ses_batch_builder_add(o, s.ids, s.segments, s.n, e) ||
        (s.vectors && !ses_batch_builder_add_vectors(o, NULL, s.n, s.vectors, s.n, s.vector_width, e)) ||
        (s.char_cu && !ses_batch_builder_add_chars(o, s.chars + s.char_cu[0], s.char_cu, s.n, e)))
        return false;
    switch (d->target) {
    case SES_TARGET_CLASS: return !first || ses_ints_push(&o->labels, s.label, e);
    case SES_TARGET_VALUES: return !first || ses_batch_builder_add_values(o, s.values, d->width, e);
    case SES_TARGET_TAGS: return ses_ints_append(&o->labels, s.tags, s.n, e);
    case SES_TARGET_SPAN: return add_span(o, &s, d->cls.n > 0, e);
    case SES_TARGET_TEXT:
        return ses_ints_append(&o->labels, s.target_ids, s.n_target, e) && ses_batch_builder_end_target(o, e);
    case SES_TARGET_NONE: break;
    }
    return true;
}

static bool batch(void *ctx, int64_t epoch, int64_t index, ses_batch *out, ses_err *e)
{
    ses_batches *b = ctx;
    int64_t n = 0, c = b->d->group;
    const int64_t *example = ses_batches_examples(b, epoch, index, &n, e);
    if (!example) return false;
    ses_batch_builder_clear(&b->builder);
    b->builder.choices = c > 1 ? c : 0;
    for (int64_t i = 0; i < n * c; i++)
        if (!add_sequence(b, example[i / c] * c + i % c, i % c == 0, e)) return false;
    *out = ses_batch_builder_batch(&b->builder);
    return true;
}

static void describe(void *ctx, int64_t epoch, int64_t index, char *buf, size_t size)
{
    ses_batches *b = ctx;
    int64_t n = 0;
    const int64_t *example = ses_batches_examples(b, epoch, index, &n, NULL);
    size_t used = 0;
    buf[0] = 0;
    for (int64_t i = 0; example && i < n && used + 24 < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%" PRId64,
                                 i       ? ", "
                                 : n > 1 ? "lines "
                                         : "line ",
                                 b->d->origin[example[i] * b->d->group]);
    if (used + 24 >= size) snprintf(buf + used, size - used, " ...");
}

/* Hash of the examples, without their origin. */
static uint64_t hash(void *ctx)
{
    static const ses_hash_key key = { 0x736573616d65, 2 }; /* fixed: the hash is stored in checkpoints */
    const ses_dataset *d = ((const ses_batches *)ctx)->d;
    const ses_ints *all[] = { &d->ids,        &d->segments,          &d->tags,  &d->target_ids,
                              &d->cu_seqlens, &d->target_cu_seqlens, &d->label, &d->end };
    uint64_t sum[SES_LEN(all) + 1] = { 0 };
    for (size_t i = 0; i < SES_LEN(all); i++)
        if (all[i]->n) sum[i] = ses_hash(key, all[i]->p, all[i]->n * sizeof *all[i]->p);
    if (d->values)
        sum[SES_LEN(all)] =
            ses_hash(key, d->values, (size_t)d->sequences * (size_t)d->width * sizeof *d->values);
    return ses_hash(key, sum, sizeof sum);
}

ses_batch_source ses_batches_source(ses_batches *b)
{
    return (ses_batch_source){ .ctx = b, .count = count, .batch = batch, .describe = describe, .hash = hash };
}
