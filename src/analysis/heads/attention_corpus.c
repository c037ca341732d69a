/* Attention weights of a corpus: see attention_corpus.h. */
#include "analysis/heads/attention_corpus.h"

#include "base/alloc.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "model/model_desc.h"
#include "text/tokenizer_config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BATCH_TOKENS = 1024, BATCH_BYTES = 128 << 20, DEFAULT_MAX = 512 };

typedef struct pending {
    size_t index, first, n; /* tokens first .. first + n - 1 of the batch */
    bool truncated;
} pending;

typedef struct runner {
    const ses_model *m; /* the view that runs */
    const ses_tokenizer *t;
    const ses_attention_corpus_options *o;
    ses_attention_fn *fn;
    void *ctx;
    ses_tokenizer_config config;
    ses_encode_ctx *tokens;
    ses_tape *tape;
    int64_t limit, maps; /* maps: heads of all layers */
    bool segments;
    /* the batch */
    int32_t *id, *segment, *word;
    uint8_t *kind;
    size_t n_tokens, cap_id, cap_segment, cap_word, cap_kind;
    pending *text;
    size_t n_texts, cap_texts;
    double pairs;
    int32_t *cu, *target_cu, *target;
    size_t cap_cu, cap_target_cu, cap_target;
    /* weights of all layers: [layers] of [sum of heads n n] */
    float **x;
    ses_real *host; /* a layer as the device gives it */
    size_t cap_host;
    size_t *cap;
    int64_t layers, *heads;
} runner;

/* ---- encoding ---- */

static bool is_punctuation(const char *s, size_t n)
{
    uint32_t cp;
    if (!n) return false;
    for (size_t i = 0; i < n;) {
        i += ses_utf8_next(s + i, &cp);
        if (!ses_cp_is(cp, SES_CP_PUNCT8 | SES_CP_SPACE)) return false;
    }
    return true;
}

/* The part of the text that a token covers. */
static ses_string surface(const ses_input *in, const ses_encoding *k, size_t i)
{
    bool pair = k->sequence_id[i] == 1;
    const ses_string *words = pair ? in->pair_words : in->words;
    ses_string s = words ? words[k->word_id[i]] : pair ? in->pair : in->text;
    ses_offset at = k->byte_offset[i];
    return at.end <= s.n && at.begin < at.end ? (ses_string){ s.p + at.begin, at.end - at.begin }
                                              : (ses_string){ 0 };
}

static uint8_t kind_of(const runner *r, const ses_input *in, const ses_encoding *k, size_t i)
{
    int32_t id = k->id[i];
    if (k->special_mask[i] || k->word_id[i] < 0) {
        bool separates = id == r->config.role[SES_ROLE_SEP] || id == r->config.role[SES_ROLE_EOS];
        return (uint8_t)(SES_TOKEN_SPECIAL | (separates && i > 0 ? SES_TOKEN_SEPARATOR : 0));
    }
    ses_string s = surface(in, k, i);
    return is_punctuation(s.p, s.n) ? SES_TOKEN_PUNCTUATION : 0;
}

static bool add_text(runner *r, const ses_input *in, size_t index, ses_err *e)
{
    if (!ses_encode(r->tokens, in, NULL, e)) return false;
    const ses_encoding *k = ses_encode_ctx_result(r->tokens);
    bool truncated = (int64_t)k->n > r->limit;
    if (truncated) {
        ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST,
                                 .max_length = r->limit,
                                 .truncate_left = r->config.truncate_left };
        if (!ses_encode(r->tokens, in, &o, e)) return false;
        k = ses_encode_ctx_result(r->tokens);
    }
    size_t end = r->n_tokens + k->n;
    if (!ses_array_reserve(&r->id, &r->cap_id, end, sizeof *r->id, e) ||
        !ses_array_reserve(&r->segment, &r->cap_segment, end, sizeof *r->segment, e) ||
        !ses_array_reserve(&r->word, &r->cap_word, end, sizeof *r->word, e) ||
        !ses_array_reserve(&r->kind, &r->cap_kind, end, 1, e) ||
        !ses_array_reserve(&r->text, &r->cap_texts, r->n_texts + 1, sizeof *r->text, e))
        return false;
    if (!k->n) return true;
    for (size_t i = 0; i < k->n; i++) {
        size_t at = r->n_tokens + i;
        r->id[at] = k->id[i], r->segment[at] = k->type_id[i];
        r->kind[at] = kind_of(r, in, k, i);
        r->word[at] = k->special_mask[i] ? -1 : k->word_id[i];
    }
    r->text[r->n_texts++] = (pending){ index, r->n_tokens, k->n, truncated };
    r->n_tokens = end;
    r->pairs += (double)k->n * (double)k->n;
    return true;
}

/* ---- one batch ---- */

/* A decoder that runs although only the encoder's weights are read needs a token for each text. */
static bool fill_target(runner *r, ses_batch *b, ses_err *e)
{
    int32_t start = (int32_t)(r->m->c.decoder.start_id < 0 ? 0 : r->m->c.decoder.start_id);
    if (!ses_array_reserve(&r->target_cu, &r->cap_target_cu, r->n_texts + 1, sizeof *r->target_cu, e) ||
        !ses_array_reserve(&r->target, &r->cap_target, r->n_texts, sizeof *r->target, e))
        return false;
    for (size_t i = 0; i <= r->n_texts; i++) r->target_cu[i] = (int32_t)i;
    for (size_t i = 0; i < r->n_texts; i++) r->target[i] = start;
    b->target_cu_seqlens = r->target_cu, b->target_ids = r->target;
    return true;
}

static const ses_output *find_layer(const ses_outputs *out, int64_t i)
{
    char name[48];
    snprintf(name, sizeof name, "attentions.%" PRId64, i);
    const ses_output *o = ses_outputs_find(out, name);
    snprintf(name, sizeof name, "encoder_attentions.%" PRId64, i);
    return o ? o : ses_outputs_find(out, name);
}

static bool read_layer(runner *r, const ses_outputs *out, int64_t i, ses_err *e)
{
    const ses_output *o = find_layer(out, i);
    if (!o) return ses_fail(e, SES_EUNSUPPORTED, "%s gives no attention weights", ses_model_class_name(r->m));
    size_t n = (size_t)ses_count(o->tensor), cap = r->cap[i];
    r->heads[i] = (int64_t)((double)n / r->pairs + 0.5);
    if ((double)r->heads[i] * r->pairs != (double)n)
        return ses_fail(e, SES_EUNSUPPORTED, "layer %" PRId64 ": the weights are not [heads, n, n]", i + 1);
    if (!ses_array_reserve(&r->x[i], &cap, n, sizeof **r->x, e)) return false;
    r->cap[i] = cap;
    if (!ses_array_reserve(&r->host, &r->cap_host, n, sizeof *r->host, e)) return false;
    if (!ses_tape_read(r->tape, o->tensor, r->host)) return ses_tape_ok(r->tape, e);
    for (size_t k = 0; k < n; k++)
        if (!isfinite(r->x[i][k] = (float)r->host[k]))
            return ses_fail(e, SES_EARG, "layer %" PRId64 ": an attention weight is not a number", i + 1);
    return true;
}

static bool deliver(runner *r, ses_err *e)
{
    const float **at = ses_alloc_array((size_t)r->layers, sizeof *at, e);
    bool ok = at != NULL;
    size_t before = 0;
    for (size_t s = 0; ok && s < r->n_texts; s++) {
        const pending *p = &r->text[s];
        for (int64_t i = 0; i < r->layers; i++) at[i] = r->x[i] + (size_t)r->heads[i] * before;
        before += p->n * p->n;
        ses_attention_text t = { .index = p->index,
                                 .n = (int64_t)p->n,
                                 .id = r->id + p->first,
                                 .kind = r->kind + p->first,
                                 .word = r->word + p->first,
                                 .truncated = p->truncated,
                                 .causal = r->m->stack[0].causal,
                                 .layers = r->layers,
                                 .heads = r->heads,
                                 .weight = at };
        ok = r->fn(r->ctx, &t, e);
    }
    ses_free(at);
    return ok;
}

static bool run_batch(runner *r, ses_err *e)
{
    if (!r->n_texts) return true;
    if (!ses_array_reserve(&r->cu, &r->cap_cu, r->n_texts + 1, sizeof *r->cu, e)) return false;
    r->cu[0] = 0;
    for (size_t i = 0; i < r->n_texts; i++) r->cu[i + 1] = (int32_t)(r->text[i].first + r->text[i].n);
    ses_batch b = { .seqs = (int64_t)r->n_texts,
                    .tokens = (int64_t)r->n_tokens,
                    .cu_seqlens = r->cu,
                    .ids = r->id,
                    .segments = r->segments ? r->segment : NULL };
    ses_outputs out;
    ses_tape_reset(r->tape, NULL);
    if ((r->m->stack[1].layer && !fill_target(r, &b, e)) ||
        !ses_model_forward(r->m, r->tape, &b, &(ses_output_request){ .attentions = true }, &out, e))
        return false;
    for (int64_t i = 0; i < r->layers; i++)
        if (!read_layer(r, &out, i, e)) return false;
    bool ok = deliver(r, e);
    r->n_texts = r->n_tokens = 0;
    r->pairs = 0;
    return ok;
}

/* ---- the corpus ---- */

static bool run_all(runner *r, const ses_input *text, size_t n, ses_err *e)
{
    for (size_t i = 0; i < n; i++) {
        if (!add_text(r, &text[i], i, e)) return ses_wrap(e, "text %zu", i + 1);
        if (r->n_tokens >= BATCH_TOKENS || r->pairs * (double)r->maps * 4 >= BATCH_BYTES) {
            if (!run_batch(r, e)) return false;
            if (r->o->progress) r->o->progress(r->o->progress_ctx, (int64_t)i + 1, (int64_t)n);
        }
    }
    if (!run_batch(r, e)) return false;
    if (r->o->progress) r->o->progress(r->o->progress_ctx, (int64_t)n, (int64_t)n);
    return true;
}

static bool open_runner(runner *r, ses_err *e)
{
    const ses_stack *k = &r->m->stack[0];
    if (!ses_tokenizer_config_read(&r->config, r->o->model_dir, ses_model_type(r->m), ses_model_sets_segments,
                                   r->t, e))
        return false;
    int64_t limit = ses_model_max_tokens(r->m);
    if (r->config.model_max_length && r->config.model_max_length < limit) limit = r->config.model_max_length;
    if (!r->o->max_tokens && limit > DEFAULT_MAX) limit = DEFAULT_MAX;
    r->limit = r->o->max_tokens && r->o->max_tokens < limit ? r->o->max_tokens : limit;
    r->segments = (r->m->c.embed.segments > 1 || r->m->c.xl.relative_segments) && r->config.sets_segments;
    r->layers = k->depth, r->maps = k->depth * k->heads;
    r->tokens = ses_encode_ctx_new(r->t, e);
    r->tape = r->tokens ? ses_tape_new(r->m->dev, NULL, e) : NULL;
    r->x = ses_alloc_array((size_t)k->depth + 1, sizeof *r->x, e);
    r->cap = ses_alloc_array((size_t)k->depth + 1, sizeof *r->cap, e);
    r->heads = ses_alloc_array((size_t)k->depth + 1, sizeof *r->heads, e);
    return r->tape && r->x && r->cap && r->heads;
}

static void close_runner(runner *r)
{
    for (int64_t i = 0; r->x && i < r->layers; i++) ses_free(r->x[i]);
    void *part[] = { r->host, r->x,    r->cap,  r->heads, r->id,        r->segment,
                     r->word, r->kind, r->text, r->cu,    r->target_cu, r->target };
    for (size_t i = 0; i < SES_LEN(part); i++) ses_free(part[i]);
    ses_tape_free(r->tape);
    ses_encode_ctx_free(r->tokens);
}

bool ses_attention_corpus_run(const ses_model *m, const ses_tokenizer *t, const ses_input *text, size_t n,
                              const ses_attention_corpus_options *o, ses_attention_fn *fn, void *ctx,
                              ses_err *e)
{
    ses_model *part = ses_model_hidden_view(m, true, NULL);
    if (!part) part = ses_model_hidden_view(m, false, e);
    if (!part) return false;
    runner r = { .m = part, .t = t, .o = o, .fn = fn, .ctx = ctx };
    bool ok = open_runner(&r, e) && run_all(&r, text, n, e);
    close_runner(&r);
    ses_model_free(part);
    return ok;
}
