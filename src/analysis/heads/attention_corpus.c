/* Attention weights of a corpus: see attention_corpus.h. */
#include "analysis/heads/attention_corpus.h"

#include "analysis/analysis.h"
#include "base/alloc.h"
#include "base/unicode/unicode.h"
#include "base/unicode/utf8.h"
#include "model/model_desc.h"
#include "run/pass.h"
#include "text/tokenizer_config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BATCH_TOKENS = 1024, BATCH_BYTES = 128 << 20, DEFAULT_MAX = 512 };

/* Tokens of all texts of the batch: of the encoder, or of the decoder. */
typedef struct side {
    int32_t *word;
    uint8_t *kind;
    size_t n, cap_word, cap_kind;
} side;

typedef struct pending {
    size_t index;
    size_t first[2], n[2]; /* tokens first .. first + n - 1 of each side */
    bool truncated;
} pending;

enum { SOURCE, TARGET };

typedef struct runner {
    const ses_model *m; /* the view that runs */
    const ses_tokenizer *t;
    const ses_attention_corpus_options *o;
    ses_attention_fn *fn;
    void *ctx;
    ses_tokenizer_config config;
    ses_encode_ctx *tokens;
    ses_pass pass;
    int64_t limit, maps; /* maps: heads of all layers */
    bool segments;
    int row_side, key_side; /* sides of the weights: SOURCE or TARGET */
    const char *output;     /* name of the weights, without the layer */
    /* the batch */
    side side[2];
    pending *text;
    size_t n_texts, cap_texts;
    double pairs;
    /* weights of all layers: [layers] of [sum of heads rows keys] */
    float **x;
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

static bool reserve(side *s, size_t n, ses_err *e)
{
    return ses_array_reserve(&s->word, &s->cap_word, n, sizeof *s->word, e) &&
           ses_array_reserve(&s->kind, &s->cap_kind, n, 1, e);
}

static const ses_encoding *encode(runner *r, const ses_input *in, bool *truncated, ses_err *e)
{
    if (!ses_encode(r->tokens, in, NULL, e)) return NULL;
    const ses_encoding *k = ses_encode_ctx_result(r->tokens);
    if ((int64_t)k->n <= r->limit) return k;
    ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST,
                             .max_length = r->limit,
                             .truncate_left = r->config.truncate_left };
    *truncated = true;
    return ses_encode(r->tokens, in, &o, e) ? ses_encode_ctx_result(r->tokens) : NULL;
}

/* Appends the first n tokens of an encoding. */
static void append(const runner *r, side *s, const ses_input *in, const ses_encoding *k, size_t n)
{
    for (size_t i = 0; i < n; i++, s->n++) {
        s->kind[s->n] = kind_of(r, in, k, i);
        s->word[s->n] = k->special_mask[i] ? -1 : k->word_id[i];
    }
}

/* The decoder reads its start token and the text without the end token that the tokenizer added. */
static bool add_target(runner *r, const ses_input *in, bool *truncated, ses_err *e)
{
    side *s = &r->side[TARGET];
    const ses_encoding *k = encode(r, in, truncated, e);
    if (!k || !reserve(s, s->n + k->n + 1, e)) return false;
    s->word[s->n] = -1, s->kind[s->n++] = SES_TOKEN_SPECIAL;
    bool shift = k->n && (k->special_mask[k->n - 1] || (int64_t)k->n >= r->limit);
    append(r, s, in, k, k->n - shift);
    return (shift ? ses_batch_builder_shift : ses_batch_builder_start)(&r->pass.in, r->m, k->id,
                                                                       (int64_t)k->n, e);
}

static bool add_text(runner *r, const ses_input *in, size_t index, ses_err *e)
{
    side *s = &r->side[SOURCE];
    pending p = { .index = index, .first = { s->n, r->side[TARGET].n } };
    const ses_encoding *k = encode(r, in, &p.truncated, e);
    if (!k || !reserve(s, s->n + k->n, e) ||
        !ses_array_reserve(&r->text, &r->cap_texts, r->n_texts + 1, sizeof *r->text, e))
        return false;
    if (!k->n) return true;
    append(r, s, in, k, k->n);
    if (!ses_batch_builder_add_encoding(&r->pass.in, k, r->segments, e)) return false;
    bool decodes = r->m->stack[1].layer != NULL, idle = r->o->part == SES_PART_MAIN;
    if (decodes && idle && !ses_batch_builder_idle(&r->pass.in, r->m, e)) return false;
    if (decodes && !idle && !add_target(r, r->o->target ? &r->o->target[index] : in, &p.truncated, e))
        return false;
    for (int i = 0; i < 2; i++) p.n[i] = r->side[i].n - p.first[i];
    r->text[r->n_texts++] = p;
    r->pairs += (double)p.n[r->row_side] * (double)p.n[r->key_side];
    return true;
}

/* ---- one batch ---- */

static bool read_layer(runner *r, int64_t i, ses_err *e)
{
    char name[48];
    snprintf(name, sizeof name, "%s.%" PRId64, r->output, i);
    const ses_output *o = ses_outputs_find(&r->pass.out, name);
    if (!o) snprintf(name, sizeof name, "encoder_%s.%" PRId64, r->output, i);
    if (!o && !(o = ses_outputs_find(&r->pass.out, name)))
        return ses_fail(e, SES_EUNSUPPORTED, "%s gives no attention weights", ses_model_class_name(r->m));
    size_t n = (size_t)ses_count(o->tensor), cap = r->cap[i];
    r->heads[i] = (int64_t)((double)n / r->pairs + 0.5);
    if ((double)r->heads[i] * r->pairs != (double)n)
        return ses_fail(e, SES_EUNSUPPORTED, "layer %" PRId64 ": the weights are not [heads, n, n]", i + 1);
    if (!ses_array_reserve(&r->x[i], &cap, n, sizeof **r->x, e)) return false;
    r->cap[i] = cap;
    const ses_real *host = ses_pass_read(&r->pass, name, e);
    for (size_t k = 0; host && k < n; k++)
        if (!isfinite(r->x[i][k] = (float)host[k]))
            return ses_fail(e, SES_EARG, "layer %" PRId64 ": an attention weight is not a number", i + 1);
    return host != NULL;
}

static bool deliver(runner *r, ses_err *e)
{
    const float **at = ses_alloc_array((size_t)r->layers, sizeof *at, e);
    bool ok = at != NULL;
    size_t before = 0;
    for (size_t s = 0; ok && s < r->n_texts; s++) {
        const pending *p = &r->text[s];
        const side *rows = &r->side[r->row_side], *keys = &r->side[r->key_side];
        const int32_t *ids = r->row_side == SOURCE ? r->pass.batch.ids : r->pass.batch.target_ids;
        size_t n = p->n[r->row_side], first = p->first[r->row_side];
        for (int64_t i = 0; i < r->layers; i++) at[i] = r->x[i] + (size_t)r->heads[i] * before;
        before += n * p->n[r->key_side];
        ses_attention_text t = { .index = p->index,
                                 .n = (int64_t)n,
                                 .id = ids + first,
                                 .kind = rows->kind + first,
                                 .word = rows->word + first,
                                 .keys = (int64_t)p->n[r->key_side],
                                 .key_kind = keys->kind + p->first[r->key_side],
                                 .square = rows == keys,
                                 .truncated = p->truncated,
                                 .causal = rows == keys && r->m->stack[r->row_side].causal,
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
    static const ses_output_request want = { .attentions = true };
    if (!r->n_texts) return true;
    if (!ses_pass_run(&r->pass, &want, e)) return false;
    for (int64_t i = 0; i < r->layers; i++)
        if (!read_layer(r, i, e)) return false;
    bool ok = deliver(r, e);
    r->n_texts = r->side[SOURCE].n = r->side[TARGET].n = 0;
    r->pairs = 0;
    return ok;
}

/* ---- the corpus ---- */

static bool run_all(runner *r, const ses_input *text, size_t n, ses_err *e)
{
    for (size_t i = 0; i < n; i++) {
        if (!add_text(r, &text[i], i, e)) return ses_wrap(e, "text %zu", i + 1);
        if (r->side[SOURCE].n + r->side[TARGET].n >= BATCH_TOKENS ||
            r->pairs * (double)r->maps * 4 >= BATCH_BYTES) {
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
    static const char *const names[] = { "attentions", "decoder_attentions", "cross_attentions" };
    r->output = names[r->o->part];
    r->row_side = r->o->part == SES_PART_MAIN ? SOURCE : TARGET;
    r->key_side = r->o->part == SES_PART_DECODER ? TARGET : SOURCE;
    const ses_stack *k = &r->m->stack[r->row_side];
    if (!ses_tokenizer_config_read(&r->config, r->o->model_dir, ses_model_type(r->m), ses_model_sets_segments,
                                   r->t, e))
        return false;
    int64_t limit = ses_model_max_tokens(r->m);
    if (r->config.model_max_length && r->config.model_max_length < limit) limit = r->config.model_max_length;
    if (!r->o->max_tokens && limit > DEFAULT_MAX) limit = DEFAULT_MAX;
    r->limit = r->o->max_tokens && r->o->max_tokens < limit ? r->o->max_tokens : limit;
    r->segments = ses_model_uses_segments(r->m) && r->config.sets_segments;
    r->layers = k->depth, r->maps = k->depth * k->heads;
    r->tokens = ses_encode_ctx_new(r->t, e);
    r->x = ses_alloc_array((size_t)k->depth + 1, sizeof *r->x, e);
    r->cap = ses_alloc_array((size_t)k->depth + 1, sizeof *r->cap, e);
    r->heads = ses_alloc_array((size_t)k->depth + 1, sizeof *r->heads, e);
    return r->tokens && r->x && r->cap && r->heads && ses_pass_open(&r->pass, r->m, e);
}

static void close_runner(runner *r)
{
    for (int64_t i = 0; r->x && i < r->layers; i++) ses_free(r->x[i]);
    for (int i = 0; i < 2; i++) {
        const side *s = &r->side[i];
        ses_free(s->word), ses_free(s->kind);
    }
    void *part[] = { r->x, r->cap, r->heads, r->text };
    for (size_t i = 0; i < SES_LEN(part); i++) ses_free(part[i]);
    ses_pass_close(&r->pass);
    ses_encode_ctx_free(r->tokens);
}

bool ses_attention_corpus_run(const ses_model *m, const ses_tokenizer *t, const ses_input *text, size_t n,
                              const ses_attention_corpus_options *o, ses_attention_fn *fn, void *ctx,
                              ses_err *e)
{
    ses_model *part = ses_analysis_part(m, o->part != SES_PART_MAIN, e);
    if (!part) return false;
    runner r = { .m = part, .t = t, .o = o, .fn = fn, .ctx = ctx };
    bool ok = open_runner(&r, e) && run_all(&r, text, n, e);
    close_runner(&r);
    ses_model_free(part);
    return ok;
}
