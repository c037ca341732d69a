/* Texts to rows of hidden states. Texts are encoded one by one; when they have enough tokens, the model runs
 * on their sequences (windows), the tokens of each row are averaged, and the callback gets the rows. */
#include "word_states.h"

#include "analysis.h"
#include "base/alloc.h"
#include "model/model_desc.h"
#include "run/pass.h"
#include "tensor/device_impl.h"

#include <stdio.h>
#include <string.h>

enum { BATCH_TOKENS = 1024 };

/* Tokens of a row: begin .. end - 1 of the pending tokens. A text in several windows has one span each. */
typedef struct span {
    size_t row, begin, end;
} span;

typedef struct reader {
    const ses_model *m;
    const ses_word_states_options *o;
    const ses_stack *stack;
    ses_state_fn *fn;
    void *ctx;
    ses_encode_ctx *tokens, *source_tokens;
    ses_pass pass;
    bool segments;
    int64_t window, batch_tokens;
    size_t width;
    /* pending texts */
    int32_t *id, *segment; /* [n_tokens] */
    size_t n_tokens, cap_id, cap_segment;
    size_t *seq_end; /* [n_seqs]: end of each sequence among the tokens */
    size_t n_seqs, cap_seqs;
    int32_t *source_id; /* the encoder's tokens of all sequences, if they have a source of their own */
    size_t *source_end; /* [n_seqs] */
    size_t n_source, cap_source, cap_source_end;
    ses_state_row *row; /* [n_rows] */
    size_t n_rows, cap_rows;
    span *span; /* [n_spans], in the order of the tokens */
    size_t n_spans, cap_spans;
    size_t *cu_rows; /* [n_texts + 1] */
    size_t first_text, n_texts, cap_texts, windowed;
    /* one forward pass */
    const ses_real *states; /* [tokens, width] of a layer */
    float **x;              /* [n_layers] of [n_rows, width] */
    size_t cap_x;
} reader;

int64_t ses_word_states_depth(const ses_model *m, bool decoder)
{
    return !decoder ? m->stack[0].depth : m->stack[1].layer ? m->stack[1].depth : -1;
}

int64_t ses_word_states_width(const ses_model *m, bool decoder) { return m->stack[decoder].c->hidden; }

ses_model *ses_model_random_twin(const ses_model *m, uint64_t seed, ses_err *e)
{
    const ses_class *headless = ses_config_headless_class(m->desc, NULL);
    bool no_head = headless && !m->stack[1].layer; /* a decoder is kept */
    ses_model_options o = { .no_head = no_head,
                            .class_name = no_head ? NULL : ses_model_class_name(m),
                            .random_init = true,
                            .seed = seed };
    return ses_model_new(m->config, m->dev, &o, e);
}

/* ---- encoding ---- */

static bool add_row(reader *r, ses_state_row row, ses_err *e)
{
    if (!ses_array_reserve(&r->row, &r->cap_rows, r->n_rows + 1, sizeof *r->row, e)) return false;
    r->row[r->n_rows++] = row;
    return true;
}

/* Adds tokens [begin, end) to the last row. */
static bool add_span(reader *r, size_t begin, size_t end, ses_err *e)
{
    if (begin == end) return true;
    if (!ses_array_reserve(&r->span, &r->cap_spans, r->n_spans + 1, sizeof *r->span, e)) return false;
    r->span[r->n_spans++] = (span){ r->n_rows - 1, begin, end };
    r->row[r->n_rows - 1].pieces += (int32_t)(end - begin);
    return true;
}

/* Appends the source of the text to a new sequence. */
static bool add_source(reader *r, ses_err *e)
{
    const ses_encoding *k = ses_encode_ctx_result(r->source_tokens);
    if (!ses_array_reserve(&r->source_id, &r->cap_source, r->n_source + k->n, sizeof *r->source_id, e) ||
        !ses_array_reserve(&r->source_end, &r->cap_source_end, r->n_seqs + 1, sizeof *r->source_end, e))
        return false;
    if (k->n) memcpy(r->source_id + r->n_source, k->id, k->n * sizeof *k->id);
    r->source_end[r->n_seqs] = r->n_source += k->n;
    return true;
}

/* Appends the tokens of an encoding: special tokens [0, prefix), [from, to), and from `suffix` on. */
static bool add_sequence(reader *r, const ses_encoding *k, size_t prefix, size_t from, size_t to,
                         size_t suffix, ses_err *e)
{
    size_t end = r->n_tokens + prefix + (to - from) + (k->n - suffix);
    if (end == r->n_tokens) return true;
    if (!ses_array_reserve(&r->id, &r->cap_id, end, sizeof *r->id, e) ||
        !ses_array_reserve(&r->segment, &r->cap_segment, end, sizeof *r->segment, e) ||
        !ses_array_reserve(&r->seq_end, &r->cap_seqs, r->n_seqs + 1, sizeof *r->seq_end, e))
        return false;
    size_t part[3][2] = { { 0, prefix }, { from, to }, { suffix, k->n } }, at = r->n_tokens;
    for (size_t p = 0; p < SES_LEN(part); p++)
        for (size_t i = part[p][0]; i < part[p][1]; i++) {
            r->id[at] = k->id[i];
            r->segment[at++] = k->type_id[i];
        }
    if (r->o->source && !add_source(r, e)) return false;
    r->n_tokens = end;
    r->seq_end[r->n_seqs++] = end;
    return true;
}

/* A window of an encoding: content tokens from .. to - 1 run together, and first .. last - 1 of them take
 * their states from it. shift: position among the pending tokens minus index in the encoding. */
typedef struct window {
    size_t from, to, first, last;
    size_t shift_plus, shift_minus;
} window;

static size_t token_at(const window *w, size_t i) { return i + w->shift_plus - w->shift_minus; }

static bool is_content(const ses_encoding *k, size_t i) { return !k->special_mask[i] && k->word_id[i] >= 0; }

/* Rows of words that begin in first .. last - 1; given words without tokens get rows of zeros before. */
static bool add_words(reader *r, const ses_encoding *k, const window *w, size_t text, bool given,
                      int32_t *next, ses_err *e)
{
    for (size_t i = w->first, end; i < w->last; i = end) {
        end = i + 1;
        if (!is_content(k, i) || (i && is_content(k, i - 1) && k->word_id[i] == k->word_id[i - 1])) continue;
        while (end < k->n && is_content(k, end) && k->word_id[end] == k->word_id[i]) end++;
        for (; given && *next < k->word_id[i]; ++*next)
            if (!add_row(r, (ses_state_row){ .text = text, .index = *next }, e)) return false;
        size_t stop = r->o->first_piece ? i + 1 : end < w->to ? end : w->to;
        ses_state_row row = { .text = text,
                              .index = given ? k->word_id[i] : *next,
                              .token = k->id[i],
                              .bytes = { k->byte_offset[i].begin, k->byte_offset[end - 1].end } };
        if (!add_row(r, row, e) || !add_span(r, token_at(w, i), token_at(w, stop), e)) return false;
        *next = row.index + 1;
    }
    return true;
}

static bool add_tokens(reader *r, const ses_encoding *k, const window *w, size_t text, int32_t *next,
                       ses_err *e)
{
    for (size_t i = w->first; i < w->last; i++) {
        if (k->special_mask[i]) continue;
        ses_state_row row = {
            .text = text, .index = (*next)++, .token = k->id[i], .bytes = k->byte_offset[i]
        };
        if (!add_row(r, row, e) || !add_span(r, token_at(w, i), token_at(w, i + 1), e)) return false;
    }
    return true;
}

/* Tokens of the window that belong to the row of the text: first .. last - 1, and special tokens around. */
static bool add_mean(reader *r, const window *w, bool is_first, bool is_last, size_t begin, ses_err *e)
{
    size_t from = is_first ? begin : token_at(w, w->first), to = is_last ? r->n_tokens : token_at(w, w->last);
    return add_span(r, from, to, e);
}

/* The rows whose states come from window w; begin: its first pending token. */
static bool add_rows(reader *r, const ses_encoding *k, const window *w, size_t text, bool given,
                     bool is_first, bool is_last, size_t begin, int32_t *next, ses_err *e)
{
    switch (r->o->unit) {
    case SES_STATES_OF_WORDS: return add_words(r, k, w, text, given, next, e);
    case SES_STATES_OF_TOKENS: return add_tokens(r, k, w, text, next, e);
    case SES_STATES_TEXT_MEAN: return add_mean(r, w, is_first, is_last, begin, e);
    case SES_STATES_TEXT_FIRST: return !is_first || begin == r->n_tokens || add_span(r, begin, begin + 1, e);
    case SES_STATES_TEXT_LAST:
        return !is_last || begin == r->n_tokens || add_span(r, r->n_tokens - 1, r->n_tokens, e);
    }
    return true;
}

/* Splits the content [prefix, suffix) of an encoding into windows that overlap by half. A token takes its
 * state from the window that has it in the middle half. */
static bool add_windows(reader *r, const ses_encoding *k, size_t text, bool given, int32_t *next, ses_err *e)
{
    size_t prefix = 0, suffix = k->n, max = (size_t)r->window;
    while (prefix < k->n && k->special_mask[prefix]) prefix++;
    while (suffix > prefix && k->special_mask[suffix - 1]) suffix--;
    size_t content = suffix - prefix, special = k->n - content;
    if (max < special + 4 && k->n > max)
        return ses_fail(e, SES_EARG, "a window of %zu tokens: expected at least %zu, the text has %zu", max,
                        special + 4, k->n);
    size_t body = k->n <= max ? content : max - special, step = body / 2, taken = prefix;
    for (size_t from = prefix;; from += step) {
        bool last = from + body >= suffix;
        if (last) from = suffix - body;
        window w = { .from = from, .to = from + body, .first = taken };
        w.last = last ? suffix : from + body - body / 4;
        size_t begin = r->n_tokens;
        w.shift_plus = begin + prefix, w.shift_minus = from;
        if (!add_sequence(r, k, prefix, w.from, w.to, suffix, e) ||
            !add_rows(r, k, &w, text, given, from == prefix, last, begin, next, e))
            return false;
        taken = w.last;
        r->windowed += last && from > prefix;
        if (last) return true;
    }
}

static bool add_text(reader *r, const ses_input *in, size_t text, ses_err *e)
{
    bool per_text = r->o->unit >= SES_STATES_TEXT_MEAN, given = in->words != NULL;
    int32_t next = 0;
    ses_encode_options shorten = { .truncation = SES_TRUNCATE_LONGEST_FIRST,
                                   .max_length = ses_model_max_tokens(r->m) };
    if (r->o->source && !ses_encode(r->source_tokens, &r->o->source[text], &shorten, e))
        return ses_wrap(e, "source");
    if (r->o->source && !ses_encode_ctx_result(r->source_tokens)->n)
        return ses_fail(e, SES_EARG, "the source has no tokens: the encoder needs at least one");
    if (!ses_encode(r->tokens, in, NULL, e)) return false;
    const ses_encoding *k = ses_encode_ctx_result(r->tokens);
    ses_state_row row = { .text = text, .token = k->n ? k->id[0] : -1 };
    if (per_text && !add_row(r, row, e)) return false;
    if (!add_windows(r, k, text, given, &next, e)) return false;
    for (; given && r->o->unit == SES_STATES_OF_WORDS && next < (int32_t)in->n_words; next++)
        if (!add_row(r, (ses_state_row){ .text = text, .index = next }, e)) return false;
    if (!ses_array_reserve(&r->cu_rows, &r->cap_texts, r->n_texts + 2, sizeof *r->cu_rows, e)) return false;
    r->cu_rows[0] = 0;
    r->cu_rows[++r->n_texts] = r->n_rows;
    return true;
}

/* ---- running ---- */

/* Adds the tokens of the spans within this pass, begin .. end - 1, to their rows. */
static void pool_spans(const reader *r, float *x, size_t first_span, size_t begin, size_t end, size_t skip)
{
    for (size_t i = first_span; i < r->n_spans && r->span[i].begin < end; i++) {
        const span *s = &r->span[i];
        float *to = x + s->row * r->width;
        double n = (double)r->row[s->row].pieces;
        const ses_real *from = r->states + (s->begin - begin + skip) * r->width;
        for (size_t c = 0; c < r->width; c++) {
            double sum = 0;
            for (size_t t = 0; t < s->end - s->begin; t++) sum += (double)from[t * r->width + c];
            to[c] += (float)(sum / n);
        }
    }
}

static bool collect_layers(reader *r, size_t first_span, size_t seq, size_t begin, size_t end, ses_err *e)
{
    for (size_t k = 0; k < r->o->n_layers; k++) {
        char name[32];
        snprintf(name, sizeof name, "%shidden_states.%d", r->stack->outputs, (int)r->o->layers[k]);
        const ses_output *o = ses_pass_output(&r->pass, name, e);
        if (!o) return false;
        if ((size_t)ses_count(o->tensor) % r->width || o->tensor->dim[1] != (int64_t)r->width)
            return ses_fail(e, SES_EUNSUPPORTED, "layer %lld has %lld columns, expected %zu: leave it out",
                            (long long)r->o->layers[k], (long long)o->tensor->dim[1], r->width);
        if (!(r->states = ses_pass_read(&r->pass, name, e))) return false;
        if (!r->o->decoder) {
            pool_spans(r, r->x[k], first_span, begin, end, 0);
            continue;
        }
        /* the decoder reads a start token before each sequence */
        for (size_t s = seq, from = begin, at = first_span; from < end; from = r->seq_end[s++]) {
            while (at < r->n_spans && r->span[at].begin < from) at++;
            pool_spans(r, r->x[k], at, begin, r->seq_end[s], s - seq + 1);
        }
    }
    return true;
}

/* Runs sequences first .. end - 1, and adds their states to the rows. */
static bool run_pass(reader *r, size_t first, size_t end, size_t first_span, ses_err *e)
{
    static const ses_output_request want = { .hidden_states = true };
    bool own = r->o->source != NULL, decodes = r->m->stack[1].layer != NULL;
    ses_batch_builder *b = &r->pass.in;
    size_t begin = first ? r->seq_end[first - 1] : 0, at = begin;
    size_t source = own && first ? r->source_end[first - 1] : 0;
    for (size_t s = first; s < end; at = r->seq_end[s], source = own ? r->source_end[s] : 0, s++) {
        int64_t n = (int64_t)(r->seq_end[s] - at), n_source = own ? (int64_t)(r->source_end[s] - source) : 0;
        bool ok = own ? ses_batch_builder_add(b, r->source_id + source, NULL, n_source, e)
                      : ses_batch_builder_add(b, r->id + at, r->segments ? r->segment + at : NULL, n, e);
        if (ok && decodes)
            ok = r->o->decoder ? ses_batch_builder_start(b, r->m, r->id + at, n, e)
                               : ses_batch_builder_idle(b, r->m, e);
        if (!ok) return false;
    }
    return ses_pass_run(&r->pass, &want, e) && collect_layers(r, first_span, first, begin, at, e);
}

static bool reserve_layers(reader *r, ses_err *e)
{
    size_t need = r->n_rows * r->width;
    for (size_t k = 0; k < r->o->n_layers; k++) {
        if (need > r->cap_x) {
            ses_free(r->x[k]);
            if (!(r->x[k] = ses_alloc_array(need + need / 4, sizeof(float), e))) return false;
        } else
            memset(r->x[k], 0, need * sizeof(float));
    }
    if (need > r->cap_x) r->cap_x = need + need / 4;
    return true;
}

/* Runs the pending texts and passes their rows on. */
static bool flush(reader *r, ses_err *e)
{
    if (!r->n_texts) return true;
    if (!reserve_layers(r, e)) return false;
    for (size_t s = 0, end, at = 0; s < r->n_seqs; s = end) {
        size_t begin = s ? r->seq_end[s - 1] : 0;
        for (end = s + 1; end < r->n_seqs && r->seq_end[end] - begin <= (size_t)r->batch_tokens;) end++;
        while (at < r->n_spans && r->span[at].begin < begin) at++;
        if (!run_pass(r, s, end, at, e)) return false;
    }
    ses_state_batch b = { .first_text = r->first_text,
                          .texts = r->n_texts,
                          .cu_rows = r->cu_rows,
                          .windowed = r->windowed,
                          .rows = r->n_rows,
                          .width = r->width,
                          .row = r->row,
                          .x = (const float *const *)r->x };
    if (!r->fn(r->ctx, &b, e)) return false;
    r->first_text += r->n_texts;
    r->n_texts = r->n_rows = r->n_spans = r->n_seqs = r->n_tokens = r->n_source = r->windowed = 0;
    return true;
}

/* Layers above the last one that is wanted do not run, but for one: the output of the last layer may be
 * normalized. part: a view, whose stacks are its own. */
static void cut_layers(ses_model *part, const ses_word_states_options *o)
{
    ses_stack *k = &part->stack[o->decoder];
    int64_t last = 0;
    for (size_t i = 0; i < o->n_layers; i++)
        if (o->layers[i] > last) last = o->layers[i];
    if (!k->c->layer_groups && last + 1 < k->depth) k->depth = last + 1;
}

static bool open_reader(reader *r, const ses_tokenizer *t, ses_err *e)
{
    const ses_model *m = r->m;
    int64_t depth = ses_word_states_depth(m, r->o->decoder), max = ses_model_max_tokens(m) - r->o->decoder;
    for (size_t i = 0; i < r->o->n_layers; i++)
        if (r->o->layers[i] < 0 || r->o->layers[i] > depth)
            return ses_fail(e, SES_EARG, "layer %lld: the model has layers 0 to %lld",
                            (long long)r->o->layers[i], (long long)depth);
    r->stack = &m->stack[r->o->decoder];
    r->width = (size_t)r->stack->c->hidden;
    r->segments = ses_model_uses_segments(m) && ses_model_sets_segments(NULL, ses_model_type(m));
    r->window = r->o->window > 0 && r->o->window < max ? r->o->window : max;
    r->batch_tokens = r->o->batch_tokens > 0 ? r->o->batch_tokens : BATCH_TOKENS;
    if (r->o->source && !r->o->decoder)
        return ses_fail(e, SES_EARG, "only a decoder has sources that differ from its texts");
    r->tokens = ses_encode_ctx_new(t, e);
    r->source_tokens = r->o->source ? ses_encode_ctx_new(t, e) : NULL;
    if (r->o->source && !r->source_tokens) return false;
    r->x = ses_alloc_array(r->o->n_layers + 1, sizeof *r->x, e);
    return r->tokens && r->x && ses_pass_open(&r->pass, m, e);
}

static void close_reader(reader *r)
{
    for (size_t k = 0; r->x && k < r->o->n_layers; k++) ses_free(r->x[k]);
    ses_free(r->x);
    ses_free(r->id);
    ses_free(r->segment);
    ses_free(r->seq_end);
    ses_free(r->row);
    ses_free(r->span);
    ses_free(r->cu_rows);
    ses_free(r->source_id);
    ses_free(r->source_end);
    ses_pass_close(&r->pass);
    ses_encode_ctx_free(r->tokens);
    ses_encode_ctx_free(r->source_tokens);
}

bool ses_word_states_run(const ses_model *m, const ses_tokenizer *t, const ses_input *text, size_t n,
                         const ses_word_states_options *o, ses_state_fn *fn, void *ctx, ses_err *e)
{
    if (ses_word_states_depth(m, o->decoder) < 0)
        return ses_fail(e, SES_EARG, "%s has no decoder with hidden states of its own",
                        ses_model_class_name(m));
    ses_model *view = ses_analysis_part(m, o->decoder, e); /* heads do not run */
    if (!view) return false;
    reader r = { .m = view, .o = o, .fn = fn, .ctx = ctx };
    bool ok = open_reader(&r, t, e);
    if (ok) cut_layers(view, o);
    for (size_t i = 0; ok && i < n; i++) {
        ok = add_text(&r, &text[i], i, e) || ses_wrap(e, "text %zu", i + 1);
        if (ok && r.n_tokens >= (size_t)r.batch_tokens) ok = flush(&r, e);
    }
    ok = ok && flush(&r, e);
    close_reader(&r);
    ses_model_free(view);
    return ok;
}
