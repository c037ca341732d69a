/* Finds the special tokens of a tokenizer and its template. */
#include "special_tokens.h"

#include "base/alloc.h"
#include "text/tokenizer_impl.h"

#include <stdio.h>
#include <string.h>

/* Id of the first of these names that exists; -1: none. */
static int32_t named(const ses_tokenizer *t, const char *const name[], size_t n)
{
    int32_t id = -1;
    for (size_t i = 0; i < n && id < 0; i++) id = ses_tokenizer_token_to_id(t, name[i], strlen(name[i]));
    return id;
}
#define NAMED(t, ...) \
    named(t, (const char *const[]){ __VA_ARGS__ }, SES_LEN(((const char *const[]){ __VA_ARGS__ })))

static bool find_sentinels(ses_special_tokens *x, const ses_tokenizer *t, int64_t vocab, ses_err *e)
{
    char name[32];
    int64_t n = 0, more = vocab > x->size ? vocab - x->size : 0;
    while (snprintf(name, sizeof name, "<extra_id_%d>", (int)n), NAMED(t, name) >= 0) n++;
    x->n_sentinels = n ? n : more;
    x->sentinel = ses_alloc_array((size_t)x->n_sentinels, sizeof *x->sentinel, e);
    if (!x->sentinel) return false;
    for (int64_t i = 0; i < x->n_sentinels; i++) {
        snprintf(name, sizeof name, "<extra_id_%d>", (int)i);
        x->sentinel[i] = n ? NAMED(t, name) : (int32_t)(vocab - 1 - i);
        if (n) x->special[x->sentinel[i]] = 1;
    }
    return true;
}

static void put(ses_template_part *p, int32_t id, int32_t segment)
{
    if (p->n < SES_MAX_TEMPLATE_PART) p->id[p->n] = id, p->segment[p->n++] = segment;
}

/* Finds the template by encoding a pair of texts. A tokenizer without a template that has [CLS] and [SEP]
 * gets BERT's. */
static bool find_template(ses_special_tokens *x, const ses_tokenizer *t, ses_err *e)
{
    ses_encode_ctx *k = ses_encode_ctx_new(t, e);
    ses_input in = { .text = { "a", 1 }, .pair = { "a", 1 } };
    bool ok = k && ses_encode(k, &in, NULL, e);
    const ses_encoding *r = ok ? ses_encode_ctx_result(k) : NULL;
    ses_template_part *part = &x->before;
    for (size_t i = 0; ok && i < r->n; i++) {
        if (r->sequence_id[i] >= 0) {
            part = r->sequence_id[i] ? &x->after : &x->between;
            if (r->sequence_id[i]) x->segment_b = r->type_id[i];
        } else {
            put(part, r->id[i], r->type_id[i]);
            x->special[r->id[i]] = 1;
        }
    }
    ses_encode_ctx_free(k);
    int32_t cls = ok ? NAMED(t, "[CLS]") : -1, sep = ok ? NAMED(t, "[SEP]") : -1;
    if (x->before.n + x->between.n + x->after.n || cls < 0 || sep < 0) return ok;
    put(&x->before, cls, 0), put(&x->between, sep, 0), put(&x->after, sep, 1);
    x->segment_b = 1;
    return true;
}

ses_special_tokens *ses_special_tokens_new(const ses_tokenizer *t, int64_t vocab, ses_err *e)
{
    ses_special_tokens *x = ses_alloc(sizeof *x, e);
    if (!x) return NULL;
    x->size = ses_tokenizer_vocab_size(t);
    x->special = ses_alloc_array((size_t)x->size, 1, e);
    x->ordinary = x->special ? ses_alloc_array((size_t)x->size, sizeof *x->ordinary, e) : NULL;
    if (!x->ordinary || !find_sentinels(x, t, vocab, e)) goto fail;
    for (size_t i = 0; i < t->added.n; i++)
        if (t->added.token[i].special) x->special[t->added.token[i].id] = 1;
    x->mask = NAMED(t, "[MASK]", "<mask>");
    x->cls = NAMED(t, "[CLS]", "<cls>", "<s>");
    x->sep = NAMED(t, "[SEP]", "<sep>", "</s>");
    x->bos = NAMED(t, "<s>", "<bos>", "<|endoftext|>", "[BOS]");
    x->eos = NAMED(t, "</s>", "<eos>", "<|endoftext|>", "<eod>", "[EOS]");
    x->pad = NAMED(t, "[PAD]", "<pad>");
    int32_t all[] = { x->mask, x->cls, x->sep, x->bos, x->eos, x->pad, NAMED(t, "[UNK]", "<unk>") };
    for (size_t i = 0; i < SES_LEN(all); i++)
        if (all[i] >= 0) x->special[all[i]] = 1;
    if (!find_template(x, t, e)) goto fail;
    for (int64_t i = 0; i < x->size; i++) {
        size_t n;
        if (!ses_tokenizer_id_to_token(t, (int32_t)i, &n)) x->special[i] = 1; /* an unused id */
        if (!x->special[i] && i < vocab) x->ordinary[x->n_ordinary++] = (int32_t)i;
    }
    if (x->n_ordinary) return x;
    ses_fail(e, SES_EARG, "the vocabulary has only special tokens");
fail:
    ses_special_tokens_free(x);
    return NULL;
}

void ses_special_tokens_free(ses_special_tokens *x)
{
    if (!x) return;
    ses_free(x->special);
    ses_free(x->ordinary);
    ses_free(x->sentinel);
    ses_free(x);
}
