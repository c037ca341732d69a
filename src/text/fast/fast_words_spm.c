/* Fast path for SentencePiece's own pipeline. Its text is one piece, but no normalization rule crosses a
 * space and no piece crosses the start of a word, so chunks are independent, with one exception. Unigram
 * scores are summed from the start of the text in single precision, so rounding may decide between nearly
 * equal paths. The first chunk is cached as it is. Other chunks are cached only if their best path leads
 * by more than any rounding error. That error grows with the sum, so they are cached twice: for sums near
 * 0 and for larger ones. For the rest, the sum is recomputed from the tokens before and the path is
 * searched with it. */
#include "fast_words.h"

#include "base/unicode/utf8.h"
#include "text/spm/spm_model.h"
#include "text/spm/spm_norm.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const char override[] = "\xe2\x96\x81";
/* chunks are SES_CHUNK_INNER up to this magnitude, then SES_CHUNK_LARGE_SUM */
static const double near_sum = 15e3;
/* longer texts go through the stages: at 1e5 the SentencePiece library restarts the sum */
static const double max_sum = 9e4;

/* U+2581 occurs only at the start of a piece, and is a piece itself. */
static bool fits_pieces(const ses_spm_model *m)
{
    int32_t id = ses_trie_find(&m->trie, override, 3);
    if (id < 0 || (m->type[id] != SES_SPM_NORMAL && m->type[id] != SES_SPM_USER_DEFINED)) return false;
    for (int32_t i = 0; i < m->n; i++) {
        const char *p = m->byte + m->start[i];
        size_t n = m->start[i + 1] - m->start[i], at = 0;
        while (at + 3 <= n && !memcmp(p + at, override, 3)) at += 3;
        for (; at + 3 <= n; at++)
            if (!memcmp(p + at, override, 3)) return false;
    }
    return true;
}

bool ses_words_spm_open(ses_words_fast *f, const ses_tokenizer *t)
{
    const ses_stage_list *norm = &t->steps[SES_NORMALIZER];
    if (norm->n != 1 || norm->step[0].stage != &ses_stage_norm_sentencepiece) return false;
    if (t->steps[SES_PRE_TOKENIZER].n || t->model.stage != &ses_stage_model_sentencepiece) return false;
    const ses_spm_norm *s = norm->step[0].self;
    const ses_spm_model *m = t->model.self;
    if (!s->escape_whitespaces || s->whitespace_as_suffix || !ses_spm_norm_is_word_local(s)) return false;
    /* consecutive unknown words would be one token, even across a space */
    if (m->kind == SES_SPM_WORD || m->renamed || m->unused || !fits_pieces(m)) return false;
    f->spm = m;
    f->spm_norm = s;
    f->scores_not_positive = m->unk_score <= 0;
    for (int32_t i = 0; m->weight && i < m->n; i++) {
        if (m->weight[i] > -INFINITY) f->max_abs_score = fmax(f->max_abs_score, fabs((double)m->weight[i]));
        f->scores_not_positive &= m->weight[i] <= 0;
    }
    f->max_abs_score = fmax(f->max_abs_score, fabs((double)m->unk_score));
    return f->max_abs_score < max_sum / 1000;
}

/* Recompute the sum of the best path up to the last token, with the same additions: an unknown token
 * counts once per character of its string. */
static void update_sum(const ses_words_fast *f, ses_words_work *w, const ses_encode_ctx *k, size_t at)
{
    const ses_spm_model *m = f->spm;
    ses_words_sum s = w->sum;
    for (; s.token < k->tokens.n; s.token++) {
        int32_t id = k->tokens.id[s.token];
        if (id != m->unk_id) {
            s.sum = m->weight[id] + s.sum;
            continue;
        }
        while (k->override[s.override].index < s.token) s.override++;
        const ses_token_override *name = &k->override[s.override];
        for (size_t i = ses_utf8_count(k->override_text.data + name->begin, name->n); i; i--)
            s.sum = m->unk_score + s.sum;
    }
    s.byte = at;
    w->sum = s;
}

/* Upper bound of the sum's magnitude at this byte after `more` further additions: one per token, or one
 * per byte of an unknown token. */
static double sum_bound(const ses_words_fast *f, const ses_words_work *w, const ses_encode_ctx *k, size_t at,
                        size_t more)
{
    size_t sums =
        k->tokens.n - w->sum.token + (k->n_overrides > w->sum.override ? at - w->sum.byte : 0) + more;
    return fabs((double)w->sum.sum) + (double)sums * f->max_abs_score;
}

/* Whether the magnitude of the sum at this byte is below the bound. */
static bool is_within(const ses_words_fast *f, ses_words_work *w, const ses_encode_ctx *k, size_t at,
                      double bound)
{
    if (sum_bound(f, w, k, at, 0) < bound) return true;
    update_sum(f, w, k, at);
    return sum_bound(f, w, k, at, 0) < bound;
}

/* Number of chunks from `from` on that may be looked up before the magnitude of the sum must be checked
 * again. */
static size_t batch_end(const ses_words_fast *f, const uint32_t *start, size_t from, size_t count)
{
    size_t to = from + 1;
    double max_additions = max_sum / 2 / (f->max_abs_score + 1);
    while (to < count && (double)(2 * (start[to + 1] - start[from]) +
                                  SES_WORDS_EXTRA_TOKENS * (to + 1 - from)) < max_additions)
        to++;
    return to;
}

void ses_words_spm_begin(const ses_words_fast *f, ses_words_work *w, const ses_encode_ctx *k, size_t begin)
{
    w->sum = (ses_words_sum){ 0, k->tokens.n, k->n_overrides, begin };
    w->inner = f->scores_not_positive ? SES_CHUNK_INNER : SES_CHUNK_LARGE_SUM;
}

bool ses_words_spm_put(const ses_words_fast *f, ses_words_work *w, ses_encode_ctx *k, const char *text,
                       const uint32_t ends[2], size_t from, size_t count, bool *dependent, ses_err *e)
{
    if (f->spm->kind != SES_SPM_UNIGRAM) return f->put(f, w, k, text, ends, from, count, dependent, e);
    for (size_t i = from, to; i < count && !*dependent; i = to) {
        if (!is_within(f, w, k, w->chunk_start[i], max_sum / 2)) return *dependent = true, true;
        to = batch_end(f, w->chunk_start, i, count);
        ses_words_sum sum = w->sum;
        ses_token_buf start = k->tokens;
        if (!f->put(f, w, k, text, ends, i, to, dependent, e)) return false;
        if (*dependent || w->inner == SES_CHUNK_LARGE_SUM || is_within(f, w, k, w->chunk_start[to], near_sum))
            continue;
        w->inner = SES_CHUNK_LARGE_SUM;
        if (w->chunk_start[i] == ends[0] && to == i + 1) continue;
        /* some were past the bound: repeat with the other entries */
        ses_encode_ctx_rewind(k, start.n, start.n_words);
        w->sum = sum;
        to = i;
    }
    return true;
}

/* The part of a normalized text that is tokenized at once. */
typedef struct part {
    const ses_text *t;
    size_t begin, end;
} part;

/* End of the next part of t: the start of a word, which no piece crosses. Long texts thus need memory for the
 * search of one part only. */
static size_t part_end(const ses_text *t, size_t begin)
{
    enum { PART = 1 << 16 };
    if (t->n - begin <= PART) return t->n;
    for (size_t at = begin + PART; at > begin + 3; at--)
        if (!memcmp(t->byte + at, override, 3) && memcmp(t->byte + at - 3, override, 3)) return at;
    for (size_t at = begin + PART; at + 3 <= t->n; at++)
        if (!memcmp(t->byte + at, override, 3) && memcmp(t->byte + at - 3, override, 3)) return at;
    return t->n;
}

/* Tokens of a part to k->piece_tokens. *gap: as of ses_spm_unigram_encode_part; NULL: not needed. *bytes is
 * set if there are tokens of bytes. */
static bool tokenize(const ses_words_fast *f, ses_words_work *w, ses_encode_ctx *k, part s, float *gap,
                     bool *bytes, ses_err *e)
{
    const ses_spm_model *m = f->spm;
    const char *p = s.t->byte + s.begin;
    size_t n = s.end - s.begin;
    k->piece_tokens.n = 0;
    if (m->kind != SES_SPM_UNIGRAM)
        return k->t->model.stage->tokenize(m, p, n, &k->piece_tokens, &k->scratch, e);
    w->raw.n = 0;
    if (!ses_spm_unigram_encode_part(m, p, n, &w->sum.sum, gap, &w->raw, &k->scratch, e)) return false;
    for (size_t i = 0; m->byte_fallback && i < w->raw.n; i++) *bytes |= w->raw.token[i].id == m->unk_id;
    return ses_spm_resolve_unknown(m, p, &w->raw, &k->piece_tokens, e);
}

static bool put_tokens(const ses_words_fast *f, ses_encode_ctx *k, part s, ses_err *e)
{
    ses_token_buf *r = &k->tokens;
    const char *p = s.t->byte + s.begin;
    const ses_offset *from = s.t->from + s.begin;
    size_t count = k->piece_tokens.n, parts = (s.t->n - s.begin) / (s.end - s.begin) + 1;
    if (parts > 2 && count < INT32_MAX / 2 / parts) count *= parts; /* the other parts are probably alike */
    if (!ses_token_buf_reserve(r, count > r->cap ? count : k->piece_tokens.n, e)) return false;
    for (size_t i = 0; i < k->piece_tokens.n; i++) {
        const ses_token *x = &k->piece_tokens.token[i];
        if (x->id == f->surface && !ses_token_override_put(k, p + x->begin, x->end - x->begin, false, e))
            return false;
        r->id[r->n] = x->id;
        r->byte_offset[r->n] = (ses_offset){ from[x->begin].begin, from[x->end - 1].end };
        r->word_id[r->n++] = (int32_t)r->n_words;
    }
    return true;
}

/* Append the tokens of normalized text. *certain: independent of the text before. */
static bool put_text(const ses_words_fast *f, ses_words_work *w, ses_encode_ctx *k, const ses_text *t,
                     bool first, bool *certain, ses_err *e)
{
    float least = INFINITY, gap = INFINITY;
    bool bytes = false;
    for (part s = { t, 0, 0 }; s.begin < t->n; s.begin = s.end) {
        s.end = part_end(t, s.begin);
        ses_mark mark = ses_arena_mark(&k->scratch);
        bool ok = tokenize(f, w, k, s, first ? NULL : &gap, &bytes, e) && put_tokens(f, k, s, e);
        ses_arena_rewind(&k->scratch, mark);
        if (!ok) return false;
        least = fminf(least, gap);
    }
    if (f->spm->kind != SES_SPM_UNIGRAM) return *certain = true;
    /* A path has at most one addition per character, each off by half of FLT_EPSILON; two paths are
     * compared, here and in the full text. The first chunk starts at sum 0 and needs no margin, but the
     * library must not have restarted the sum. */
    double bound = w->inner == SES_CHUNK_LARGE_SUM ? max_sum : near_sum;
    *certain = first ? (double)t->n * f->max_abs_score < max_sum
                     : (double)least > 2.0 * (double)ses_utf8_count(t->byte, t->n) * bound * FLT_EPSILON &&
                           fabs((double)w->sum.sum) < bound;
    *certain &= !bytes;
    return true;
}

static bool ends_in_mark(const ses_text *t) { return t->n >= 3 && !memcmp(t->byte + t->n - 3, override, 3); }

bool ses_words_spm_split_safe(const ses_words_fast *f, ses_words_work *w, ses_string c, bool *yes, ses_err *e)
{
    ses_text *in = &w->text[0], *out = &w->text[1];
    in->n = out->n = 0;
    if (!ses_text_put_self(in, c.p, c.n, 0, e)) return false;
    ses_err own = { 0 }; /* an error in the character map occurs again on the text and is reported there */
    *yes = ses_spm_norm_run_inner(f->spm_norm, in, 0, in->n, out, &own) && out->n && !ends_in_mark(out);
    return own.code != SES_ENOMEM || ses_fail(e, SES_ENOMEM, "%s", own.msg);
}

/* Normalize text[begin, end) into w->text[1]. *ends_in_space: the result ends in white space, which
 * would absorb a following space. */
static bool normalize(const ses_words_fast *f, ses_words_work *w, const char *text, size_t begin, size_t end,
                      const uint32_t ends[2], bool *ends_in_space, ses_err *e)
{
    ses_text *in = &w->text[0], *out = &w->text[1];
    bool inner = begin > ends[0];
    in->n = out->n = 0;
    in->base = (uint32_t)begin;
    *ends_in_space = false;
    if (!ses_text_put_self(in, text + begin, end - begin, begin, e)) return false;
    if (!(inner ? ses_spm_norm_run_inner(f->spm_norm, in, 0, in->n, out, e)
                : ses_spm_norm_run(f->spm_norm, in, 0, in->n, out, ends_in_space, e)))
        return false;
    *ends_in_space |= ends_in_mark(out);
    while (inner && end == ends[1] && f->spm_norm->remove_extra_whitespaces && ends_in_mark(out)) out->n -= 3;
    return true;
}

bool ses_words_spm_chunk(const ses_words_fast *f, ses_words_work *w, ses_encode_ctx *k, const char *text,
                         size_t begin, size_t end, const uint32_t ends[2], bool *certain, bool *dependent,
                         ses_err *e)
{
    ses_text *t = &w->text[1];
    bool ends_in_space, inner = begin > ends[0];
    if (!normalize(f, w, text, begin, end, ends, &ends_in_space, e)) return false;
    if (f->spm->kind == SES_SPM_UNIGRAM) update_sum(f, w, k, begin);
    *dependent =
        !t->n || (ends_in_space && end < ends[1]) || (inner && sum_bound(f, w, k, begin, t->n) > max_sum);
    if (*dependent) return true;
    bool ok = put_text(f, w, k, t, !inner, certain, e);
    *certain &= !ends_in_space;
    w->sum.token = k->tokens.n;
    w->sum.override = k->n_overrides;
    w->sum.byte = end;
    return ok;
}
