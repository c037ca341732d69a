/* fast_words for SentencePiece's own pipeline. Its text is one piece, but no rule of its normalizer goes
 * across a space and no piece across the begin of a word, so that chunks are for themselves, too, but for one
 * thing: unigram scores are summed from the text's begin in single precision, and rounding may decide between
 * paths that are nearly equal. Only chunks are kept whose best path lies ahead by more than any rounding; for
 * the others the sum is made up, from the tokens before, and the path found with it. */
#include "fast_words.h"

#include "base/utf8.h"
#include "spm_model.h"
#include "spm_norm.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const char mark[] = "\xe2\x96\x81";
static const double most_sum = 3e4; /* longer texts go the exact way: rounding is coarse there */
static const size_t most_kept = 62; /* bytes of a chunk: of longer ones hardly any best path is far ahead */

/* No piece has a mark behind something else, and the mark itself is one. */
static bool fits_pieces(const ses_spm_model *m)
{
    int32_t id = ses_trie_find(&m->trie, mark, 3);
    if (id < 0 || (m->type[id] != SES_SPM_NORMAL && m->type[id] != SES_SPM_USER_DEFINED)) return false;
    for (int32_t i = 0; i < m->n; i++) {
        const char *p = m->byte + m->start[i];
        size_t n = m->start[i + 1] - m->start[i], at = 0;
        while (at + 3 <= n && !memcmp(p + at, mark, 3)) at += 3;
        for (; at + 3 <= n; at++)
            if (!memcmp(p + at, mark, 3)) return false;
    }
    return true;
}

bool ses_words_spm_open(ses_words_fast *f, const ses_tokenizer *t)
{
    const ses_steps *norm = &t->steps[SES_NORMALIZER];
    if (norm->n != 1 || norm->step[0].stage != &ses_stage_norm_sentencepiece) return false;
    if (t->steps[SES_PRE_TOKENIZER].n || t->model.stage != &ses_stage_model_sentencepiece) return false;
    const ses_spm_norm *s = norm->step[0].self;
    const ses_spm_model *m = t->model.self;
    if (!s->escape_whitespaces || s->whitespace_as_suffix || !ses_spm_norm_spaceless(s)) return false;
    /* unknown words would be one token, even over a space */
    if (m->kind == SES_SPM_WORD || m->renamed || m->unused || !fits_pieces(m)) return false;
    f->spm = m;
    f->spm_norm = s;
    for (int32_t i = 0; m->weight && i < m->n; i++)
        if (m->weight[i] > -INFINITY) f->most_score = fmax(f->most_score, fabs((double)m->weight[i]));
    f->most_score = fmax(f->most_score, fabs((double)m->unk_score));
    return f->most_score < most_sum / 1000;
}

static bool put_raw(ses_text *t, const char *p, size_t begin, size_t end, ses_err *e)
{
    for (size_t i = begin; i < end;) {
        uint32_t cp;
        size_t len = ses_utf8_next(p + i, &cp);
        if (!ses_text_put(t, p + i, len, (ses_offset){ (uint32_t)i, (uint32_t)(i + len) }, e)) return false;
        i += len;
    }
    return true;
}

static size_t count_chars(const char *p, size_t n)
{
    size_t chars = 0;
    for (size_t i = 0; i < n; i++) chars += ((uint8_t)p[i] & 0xC0) != 0x80;
    return chars;
}

/* The sum of the best path to the end of the run, added up as it was: an unknown token, which was kept
 * because it is called as the text is there, is as many as its characters. */
static void make_up(const ses_words_fast *f, ses_words_work *w, const ses_run *r, const char *text,
                    size_t at_byte)
{
    const ses_spm_model *m = f->spm;
    for (; w->summed < r->n; w->summed++) {
        int32_t id = r->id[w->summed];
        ses_offset at = r->byte[w->summed];
        if (id != m->unk_id)
            w->sum = m->weight[id] + w->sum;
        else
            for (size_t i = count_chars(text + at.begin, at.end - at.begin); i; i--)
                w->sum = m->unk_score + w->sum;
    }
    w->summed_byte = at_byte;
}

/* At most so far from 0 is the sum at this byte, and `more` sums behind it: a token is one, or one for each
 * of its bytes. */
static double reach(const ses_words_fast *f, const ses_words_work *w, const ses_run *r, size_t at,
                    size_t more)
{
    size_t sums = r->n - w->summed + (at - w->summed_byte) + more;
    return fabs((double)w->sum) + (double)sums * f->most_score;
}

bool ses_words_spm_near(const ses_words_fast *f, ses_words_work *w, const ses_run *r, const char *text,
                        size_t at)
{
    if (f->spm->kind != SES_SPM_UNIGRAM || reach(f, w, r, at, 0) < most_sum / 2) return true;
    make_up(f, w, r, text, at);
    return reach(f, w, r, at, 0) < most_sum / 2;
}

size_t ses_words_spm_few(const ses_words_fast *f, const uint32_t *cut, size_t from, size_t count)
{
    size_t to = from + 1;
    double room = most_sum / 2 / (f->most_score + 1);
    while (to < count && (double)(2 * (cut[to + 1] - cut[from]) + SES_WORDS_MORE * (to + 1 - from)) < room)
        to++;
    return to;
}

/* Tokens of normalized text to k->list; *certain: whatever stands before it. */
static bool tokenize(const ses_words_fast *f, ses_words_work *w, ses_tokens *k, const ses_text *t, bool keep,
                     bool *certain, ses_err *e)
{
    const ses_spm_model *m = f->spm;
    k->list.n = 0;
    *certain = true;
    if (m->kind != SES_SPM_UNIGRAM)
        return k->t->model.stage->tokenize(m, t->byte, t->n, &k->list, &k->scratch, e);
    double gap = 0;
    w->raw.n = 0;
    if (!ses_spm_unigram_part(m, t->byte, t->n, &w->sum, keep ? &gap : NULL, &w->raw, &k->scratch, e))
        return false;
    /* a path has a sum for each character at most, off by half of FLT_EPSILON; there are two paths; and as
     * much again, to be sure */
    *certain = gap > 2.0 * (double)count_chars(t->byte, t->n) * most_sum * FLT_EPSILON;
    for (size_t i = 0; m->byte_fallback && i < w->raw.n; i++) *certain &= w->raw.token[i].id != m->unk_id;
    return ses_spm_settle(m, t->byte, &w->raw, &k->list, e);
}

static bool put_tokens(const ses_words_fast *f, ses_tokens *k, const ses_text *t, ses_err *e)
{
    ses_run *r = &k->run;
    if (!ses_run_reserve(r, k->list.n, e)) return false;
    for (size_t i = 0; i < k->list.n; i++) {
        const ses_token *x = &k->list.token[i];
        if (x->id == f->surface && !ses_mark_put(k, t->byte + x->begin, x->end - x->begin, false, e))
            return false;
        r->id[r->n] = x->id;
        r->byte[r->n] = (ses_offset){ t->from[x->begin].begin, t->from[x->end - 1].end };
        r->word[r->n++] = (int32_t)r->words;
    }
    return true;
}

bool ses_words_spm_chunk(const ses_words_fast *f, ses_words_work *w, ses_tokens *k, const char *text,
                         size_t begin, size_t end, bool inner, bool *certain, bool *odd, ses_err *e)
{
    ses_text *in = &w->text[0], *out = &w->text[1];
    in->n = out->n = 0;
    if (!put_raw(in, text, begin, end, e)) return false;
    in->base = (uint32_t)begin;
    if (!ses_spm_norm_middle(f->spm_norm, in, 0, in->n, out, e)) return false;
    /* white space at the end would swallow the space that follows */
    *odd = !out->n || (out->n >= 3 && !memcmp(out->byte + out->n - 3, mark, 3));
    if (!*odd && !inner) {
        out->n = 0;
        if (!ses_spm_norm_run(f->spm_norm, in, 0, in->n, out, e)) return false;
        *odd = !out->n;
    }
    if (f->spm->kind == SES_SPM_UNIGRAM) make_up(f, w, &k->run, text, begin);
    *odd |= reach(f, w, &k->run, begin, out->n) > most_sum;
    if (*odd) return true;
    ses_mark m = ses_arena_mark(&k->scratch);
    bool ok = tokenize(f, w, k, out, end - begin <= most_kept, certain, e) && put_tokens(f, k, out, e);
    ses_arena_rewind(&k->scratch, m);
    w->summed = k->run.n;
    w->summed_byte = end;
    return ok;
}
