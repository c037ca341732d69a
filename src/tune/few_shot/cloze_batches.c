/* Batches of cloze tasks with an auxiliary loss: see cloze_batches.h. */
#include "cloze_batches.h"

#include "base/alloc.h"
#include "data/rng_stream.h"
#include "data/special_tokens.h"

#include <inttypes.h>

enum { SITE = 0x70657401 };

typedef struct masking {
    double rate, mask, random; /* fractions: of tokens; of these, masked and replaced by a random token */
} masking;

static const masking bert_masking = { 0.15, 0.8, 0.1 }, adapet_masking = { 0.105, 1, 0 };

struct ses_cloze_batches {
    const ses_few_shot *how;
    ses_finetuner *tuner;
    ses_cloze_prompt *prompt;
    ses_batches *questions;
    ses_batch_source source; /* reads the questions */
    ses_special_tokens *special;
    uint64_t seed;
    /* Texts to mask, whose tags are 1 for tokens of the text. PET: the unlabeled ones; ADAPET: text i
     * answered by label l is sequence i * labels + l. */
    ses_dataset *texts;
    int32_t *label; /* [rows] ADAPET: the right labels */
    ses_ints ids, segments, cu, labels, kind;
};

/* ---- texts ---- */

static bool add_text(ses_cloze_batches *c, const ses_labeled_example *r, int32_t answer, ses_err *e)
{
    ses_cloze_prompt *p = c->prompt;
    ses_cloze_item item = { r->text_a, r->text_b, answer };
    if (!ses_cloze_prompt_encode(p, &item, 1, c->tuner->max_tokens, e)) return false;
    return ses_dataset_add(c->texts,
                           &(ses_sequence){ .n = (int64_t)p->ids.n,
                                            .ids = p->ids.p,
                                            .segments = p->segments.p,
                                            .tags = p->from_text.p,
                                            .origin = (int64_t)r->line },
                           e);
}

static bool add_texts(ses_cloze_batches *c, const ses_finetune_set *s, ses_err *e)
{
    bool answered = c->how->decoupled, ok = true;
    const ses_examples *rows = answered ? s->rows : c->how->unlabeled;
    size_t n = ses_examples_count(rows);
    c->texts = ses_dataset_new(SES_TARGET_TAGS, 0, 1, e);
    c->label = ses_alloc_array(n + 1, sizeof *c->label, e);
    if (!c->texts || !c->label) return false;
    for (size_t i = 0; ok && i < n; i++) {
        const ses_labeled_example *r = ses_examples_at(rows, i);
        c->label[i] = r->label;
        for (int32_t l = 0; ok && l < (answered ? (int32_t)c->prompt->o.n_labels : 1); l++)
            ok = add_text(c, r, answered ? l : -1, e) || ses_wrap(e, "line %" PRIu64, r->line);
    }
    return ok;
}

ses_cloze_batches *ses_cloze_batches_new(ses_finetuner *t, ses_cloze_prompt *prompt,
                                         const ses_finetune_set *s, ses_batches *questions, uint64_t seed,
                                         ses_err *e)
{
    ses_cloze_batches *c = ses_alloc(sizeof *c, e);
    if (!c) return NULL;
    *c = (ses_cloze_batches){ .how = t->settings.few_shot,
                              .tuner = t,
                              .prompt = prompt,
                              .questions = questions,
                              .source = ses_batches_source(questions),
                              .seed = seed };
    c->special = ses_special_tokens_new(t->tokenizer, ses_model_vocab_size(t->model), e);
    if (c->special && add_texts(c, s, e)) return c;
    ses_cloze_batches_free(c);
    return NULL;
}

void ses_cloze_batches_free(ses_cloze_batches *c)
{
    if (!c) return;
    ses_ints *all[] = { &c->ids, &c->segments, &c->cu, &c->labels, &c->kind };
    for (size_t i = 0; i < SES_LEN(all); i++) ses_ints_free(all[i]);
    ses_special_tokens_free(c->special);
    ses_dataset_free(c->texts);
    ses_free(c->label);
    ses_free(c);
}

/* ---- batches ---- */

static bool copy_questions(ses_cloze_batches *c, const ses_batch *b, ses_err *e)
{
    c->ids.n = c->segments.n = c->cu.n = c->labels.n = c->kind.n = 0;
    return ses_ints_append(&c->ids, b->ids, b->tokens, e) &&
           ses_ints_append(&c->segments, b->segments, b->tokens, e) &&
           ses_ints_append(&c->labels, b->labels, b->tokens, e) &&
           ses_ints_append(&c->cu, b->cu_seqlens, b->seqs + 1, e) &&
           ses_ints_resize(&c->kind, b->seqs, e); /* SES_CLOZE_QUESTION */
}

/* Adds a text with masked tokens. */
static bool add_masked(ses_cloze_batches *c, int64_t text, int32_t kind, const masking *m, ses_rng_stream *d,
                       ses_err *e)
{
    ses_sequence q = ses_dataset_at(c->texts, text);
    const ses_special_tokens *x = c->special;
    size_t at = c->ids.n;
    if (!ses_ints_append(&c->ids, q.ids, q.n, e) || !ses_ints_append(&c->segments, q.segments, q.n, e) ||
        !ses_ints_append(&c->labels, NULL, q.n, e) || !ses_ints_push(&c->kind, kind, e))
        return false;
    for (int64_t i = 0; i < q.n; i++, at++) {
        c->labels.p[at] = SES_IGNORE_INDEX;
        if (!q.tags[i] || ses_draw_unit(d) >= m->rate) continue;
        double u = ses_draw_unit(d);
        c->labels.p[at] = q.ids[i];
        if (u < m->mask)
            c->ids.p[at] = c->prompt->mask;
        else if (u < m->mask + m->random)
            c->ids.p[at] = x->ordinary[ses_draw_below(d, x->n_ordinary)];
    }
    return ses_ints_push(&c->cu, (int32_t)at, e);
}

/* PET: texts drawn at random. */
static bool add_unlabeled(ses_cloze_batches *c, int64_t n, uint64_t number, ses_err *e)
{
    int64_t size = ses_dataset_size(c->texts);
    bool ok = true;
    ses_rng_stream d = ses_rng_stream_of(c->seed, number, SITE);
    for (int64_t i = 0; ok && i < n; i++)
        ok = add_masked(c, ses_draw_below(&d, size), SES_CLOZE_PREDICT, &bert_masking, &d, e);
    return ok;
}

/* ADAPET: each text of the batch with a label drawn at random. */
static bool add_answered(ses_cloze_batches *c, int64_t epoch, int64_t index, uint64_t number, ses_err *e)
{
    int64_t n, labels = (int64_t)c->prompt->o.n_labels;
    const int64_t *row = ses_batches_examples(c->questions, epoch, index, &n, e);
    bool ok = row != NULL;
    ses_rng_stream d = ses_rng_stream_of(c->seed, number, SITE);
    for (int64_t i = 0; ok && i < n; i++) {
        int64_t label = ses_draw_below(&d, labels);
        bool right = label == c->label[row[i]];
        ok = add_masked(c, row[i] * labels + label, right ? SES_CLOZE_PREDICT : SES_CLOZE_REJECT,
                        &adapet_masking, &d, e);
    }
    return ok;
}

static int64_t count(void *ctx, int64_t epoch)
{
    const ses_cloze_batches *c = ctx;
    return c->source.count(c->source.ctx, epoch);
}

static bool batch(void *ctx, int64_t epoch, int64_t index, ses_batch *out, ses_err *e)
{
    ses_cloze_batches *c = ctx;
    uint64_t number = (uint64_t)(epoch * c->source.count(c->source.ctx, 0) + index);
    if (!c->source.batch(c->source.ctx, epoch, index, out, e) || !copy_questions(c, out, e)) return false;
    if (c->how->decoupled ? !add_answered(c, epoch, index, number, e)
                          : !add_unlabeled(c, out->seqs, number, e))
        return false;
    out->seqs = (int64_t)c->kind.n;
    out->tokens = (int64_t)c->ids.n;
    out->ids = c->ids.p;
    out->segments = c->segments.p;
    out->cu_seqlens = c->cu.p;
    out->labels = c->labels.p;
    out->pair_labels = c->kind.p;
    return true;
}

static void describe(void *ctx, int64_t epoch, int64_t index, char *buf, size_t n)
{
    const ses_cloze_batches *c = ctx;
    *buf = 0;
    if (c->source.describe) c->source.describe(c->source.ctx, epoch, index, buf, n);
}

static uint64_t hash(void *ctx)
{
    const ses_cloze_batches *c = ctx;
    return c->source.hash ? c->source.hash(c->source.ctx) : 0;
}

ses_batch_source ses_cloze_batches_source(ses_cloze_batches *c)
{
    return (ses_batch_source){ .ctx = c, .count = count, .batch = batch, .describe = describe, .hash = hash };
}
