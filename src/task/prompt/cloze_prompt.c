/* Verbalizers as tokens, texts as cloze questions. */
#include "cloze_prompt.h"

#include "base/alloc.h"
#include "base/hash.h"
#include "base/str.h"
#include "data/rng_stream.h"

#include <string.h>

enum { SITE = 0x70657402 };

/* ---- verbalizers ---- */

static const ses_verbalizer *find_verbalizer(const ses_patterns *p, const char *label)
{
    for (size_t i = 0; i < p->n_verbalizers; i++)
        if (!strcmp(p->verbalizer[i].label, label)) return &p->verbalizer[i];
    return NULL;
}

static bool fail_label(const ses_cloze_prompt *c, const char *label, ses_err *e)
{
    ses_buf list = { 0 };
    const ses_patterns *p = c->o.patterns;
    for (size_t i = 0; i < p->n_verbalizers; i++)
        ses_buf_appendf(&list, "%s%s", i ? ", " : "", p->verbalizer[i].label);
    if (ses_buf_ok(&list, e))
        ses_fail(e, SES_EFORMAT,
                 "the label \"%s\" of the data has no verbalizer; the patterns have %s: add it, or name the "
                 "labels of the data with --labels VALUE=NAME,...",
                 ses_quoted_of(label, strlen(label)).s, ses_quoted_of(list.data, list.len).s);
    ses_buf_free(&list);
    return false;
}

bool ses_cloze_prompt_follows_blank(const ses_cloze_prompt *c)
{
    const ses_cloze_pattern *p = c->pattern;
    for (size_t i = 1; i < p->n; i++)
        if (p->piece[i].kind == SES_PIECE_MASK) {
            const ses_pattern_piece *before = &p->piece[i - 1];
            return before->kind == SES_PIECE_WORDS && before->words.n &&
                   before->words.p[before->words.n - 1] == ' ';
        }
    return false;
}

static bool fail_tokens(const ses_cloze_prompt *c, const char *label, const char *word, ses_err *e)
{
    const ses_encoding *k = ses_encode_ctx_result(c->o.tokens);
    ses_buf list = { 0 };
    for (size_t i = 0; i < k->n; i++) {
        size_t n;
        const char *s = ses_encode_ctx_string(c->o.tokens, k, i, &n);
        ses_buf_appendf(&list, "%s%.*s", i ? ", " : "", (int)n, s);
    }
    if (ses_buf_ok(&list, e))
        ses_fail(e, SES_EFORMAT,
                 "verbalizer of \"%s\": \"%s\" has %zu tokens (%s); expected a word that is one token of the "
                 "model's vocabulary",
                 label, word, k->n, list.len ? ses_quoted_of(list.data, list.len).s : "none");
    ses_buf_free(&list);
    return false;
}

/* The token of a word: as after a blank, if the pattern has one there, else without. */
static bool word_token(const ses_cloze_prompt *c, const char *label, const char *word, int32_t *out,
                       ses_err *e)
{
    ses_buf text = { 0 };
    bool blank = ses_cloze_prompt_follows_blank(c), ok = true, found = false;
    for (int i = blank ? 0 : 1; ok && !found && i < 2; i++) {
        text.len = 0;
        ses_buf_appendf(&text, "%s%s", i ? "" : " ", word);
        ok = ses_buf_ok(&text, e) && ses_encode(c->o.tokens, &(ses_input){ .text = { text.data, text.len } },
                                                &(ses_encode_options){ .no_special = true }, e);
        const ses_encoding *k = ses_encode_ctx_result(c->o.tokens);
        found = ok && k->n == 1;
        if (found) *out = k->id[0];
    }
    ses_buf_free(&text);
    if (ok && !found) ok = fail_tokens(c, label, word, e);
    if (ok && *out == c->o.config->role[SES_ROLE_UNK])
        ok = ses_fail(e, SES_EFORMAT, "verbalizer of \"%s\": \"%s\" is not in the model's vocabulary", label,
                      word);
    return ok;
}

static bool check_distinct(const ses_cloze_prompt *c, size_t label, size_t at, ses_err *e)
{
    for (size_t l = 0, i = 0; i < at; i++) {
        while (i >= c->cu[l + 1] && l < label) l++;
        if (c->token[i] != c->token[at]) continue;
        size_t n;
        const char *s = ses_tokenizer_id_to_token(c->o.tokenizer, c->token[at], &n);
        return ses_fail(e, SES_EFORMAT,
                        "the labels \"%s\" and \"%s\" have the same token \"%.*s\"; expected words of "
                        "different tokens",
                        c->verbalizer[l]->label, c->verbalizer[label]->label, (int)n, s ? s : "");
    }
    return true;
}

static bool resolve_labels(ses_cloze_prompt *c, ses_err *e)
{
    const ses_cloze_prompt_options *o = &c->o;
    size_t words = 0;
    c->item = ses_arena_array(&c->mem, o->n_labels + 1, sizeof *c->item, e);
    c->verbalizer = ses_arena_array(&c->mem, o->n_labels + 1, sizeof(void *), e);
    c->cu = ses_arena_array(&c->mem, o->n_labels + 1, sizeof *c->cu, e);
    if (!c->item || !c->verbalizer || !c->cu) return false;
    for (size_t i = 0; i < o->n_labels; i++) {
        c->verbalizer[i] = find_verbalizer(o->patterns, o->label[i]);
        if (!c->verbalizer[i]) return fail_label(c, o->label[i], e);
        words += c->verbalizer[i]->n;
    }
    c->token = ses_arena_array(&c->mem, words + 1, sizeof *c->token, e);
    if (!c->token) return false;
    for (size_t i = 0, at = 0; i < o->n_labels; i++) {
        for (size_t k = 0; k < c->verbalizer[i]->n; k++, at++) {
            c->cu[i + 1] = at + 1;
            if (!word_token(c, c->verbalizer[i]->label, c->verbalizer[i]->word[k], &c->token[at], e) ||
                !check_distinct(c, i, at, e))
                return false;
        }
    }
    return true;
}

ses_cloze_prompt *ses_cloze_prompt_new(const ses_cloze_prompt_options *o, ses_err *e)
{
    ses_cloze_prompt *c = ses_alloc(sizeof *c, e);
    if (!c) return NULL;
    c->o = *o;
    c->mask = o->config->role[SES_ROLE_MASK];
    if (o->pattern >= o->patterns->n_patterns)
        ses_fail(e, SES_EUSAGE, "pattern %zu; the file has %zu", o->pattern + 1, o->patterns->n_patterns);
    else if (c->mask < 0)
        ses_fail(e, SES_EUNSUPPORTED,
                 "the tokenizer has no mask token: patterns need a masked language model");
    else {
        c->pattern = &o->patterns->pattern[o->pattern];
        c->mask_text.p = ses_tokenizer_id_to_token(o->tokenizer, c->mask, &c->mask_text.n);
        if (resolve_labels(c, e)) return c;
    }
    ses_cloze_prompt_free(c);
    return NULL;
}

void ses_cloze_prompt_free(ses_cloze_prompt *c)
{
    if (!c) return;
    ses_ints_free(&c->ids);
    ses_ints_free(&c->segments);
    ses_ints_free(&c->from_text);
    ses_arena_free(&c->mem);
    ses_free(c);
}

/* ---- texts ---- */

static bool same_string(ses_string a, ses_string b) { return a.n == b.n && (!a.n || !memcmp(a.p, b.p, a.n)); }

/* The position of a text or of the mask in the question. */
typedef struct span {
    int side; /* 0: text, 1: pair of the model's input */
    size_t begin, end;
    bool is_mask;
    size_t tokens, kept;
} span;

typedef struct question {
    ses_buf side[2];
    span *span;
    size_t n;
} question;

/* Adds an item with its words. A demonstration is appended to the last side, behind a blank. */
static void add_item(const ses_cloze_prompt *c, question *q, const ses_cloze_item *x, bool first, int last)
{
    int side = first ? 0 : last;
    if (!first) ses_buf_put(&q->side[side], ' ');
    for (size_t i = 0; i < c->pattern->n; i++) {
        const ses_pattern_piece *p = &c->pattern->piece[i];
        if (p->kind == SES_PIECE_SEP && first) side = 1;
        if (p->kind == SES_PIECE_SEP) continue;
        const char *answer = x->answer >= 0 ? c->verbalizer[x->answer]->word[0] : NULL;
        ses_string s = p->kind == SES_PIECE_TEXT    ? x->text
                       : p->kind == SES_PIECE_PAIR  ? x->pair
                       : p->kind == SES_PIECE_WORDS ? p->words
                       : answer                     ? (ses_string){ answer, strlen(answer) }
                                                    : c->mask_text;
        bool is_text = p->kind == SES_PIECE_TEXT || p->kind == SES_PIECE_PAIR;
        bool is_mask = p->kind == SES_PIECE_MASK && !answer;
        size_t begin = q->side[side].len;
        if (s.n) ses_buf_append(&q->side[side], s.p, s.n);
        if (is_text || is_mask)
            q->span[q->n++] =
                (span){ .side = side, .begin = begin, .end = q->side[side].len, .is_mask = is_mask };
    }
}

/* The span of token i; q->n: none. */
static size_t span_of(const question *q, const ses_encoding *k, size_t i)
{
    const ses_offset *o = &k->byte_offset[i];
    size_t s = k->sequence_id[i] < 0 ? q->n : 0;
    for (; s < q->n; s++) {
        const span *x = &q->span[s];
        if (x->side == k->sequence_id[i] && o->begin < x->end && o->end > x->begin) break;
    }
    return s;
}

/* Shortens the longest texts until `excess` tokens are gone. */
static bool shorten(question *q, size_t excess)
{
    for (; excess; excess--) {
        span *longest = NULL;
        for (size_t s = 0; s < q->n; s++) {
            span *x = &q->span[s];
            if (!x->is_mask && x->kept && (!longest || x->kept > longest->kept)) longest = x;
        }
        if (!longest) return false;
        longest->kept--;
    }
    return true;
}

/* Copies the tokens that are kept. */
static bool take_tokens(ses_cloze_prompt *c, question *q, const ses_encoding *k, ses_err *e)
{
    bool segments = c->o.config->sets_segments && k->type_id;
    for (size_t s = 0; s < q->n; s++) q->span[s].tokens = 0;
    for (size_t i = 0; i < k->n; i++) {
        size_t s = span_of(q, k, i);
        bool is_text = s < q->n && !q->span[s].is_mask;
        if (is_text && q->span[s].tokens++ >= q->span[s].kept) continue;
        if (s < q->n && q->span[s].is_mask && k->id[i] == c->mask) c->mask_at = (int32_t)c->ids.n;
        if (!ses_ints_push(&c->ids, k->id[i], e) ||
            !ses_ints_push(&c->segments, segments ? k->type_id[i] : 0, e) ||
            !ses_ints_push(&c->from_text, is_text && !k->special_mask[i], e))
            return false;
    }
    return true;
}

static bool encode(ses_cloze_prompt *c, question *q, bool masked, int64_t max_tokens, ses_err *e)
{
    bool two = c->pattern->has_sep;
    ses_input in = { .text = { q->side[0].data ? q->side[0].data : "", q->side[0].len } };
    if (two) in.pair = (ses_string){ q->side[1].data ? q->side[1].data : "", q->side[1].len };
    if (!ses_encode(c->o.tokens, &in, &(ses_encode_options){ 0 }, e)) return false;
    const ses_encoding *k = ses_encode_ctx_result(c->o.tokens);
    for (size_t i = 0; i < k->n; i++) {
        size_t s = span_of(q, k, i);
        if (s < q->n) q->span[s].kept++;
    }
    size_t excess = (int64_t)k->n > max_tokens ? k->n - (size_t)max_tokens : 0, texts = 0;
    for (size_t s = 0; s < q->n; s++) texts += q->span[s].is_mask ? 0 : q->span[s].kept;
    c->n_removed = (int64_t)excess;
    if (!shorten(q, excess))
        return ses_fail(e, SES_EARG,
                        "the pattern has %zu tokens without the text, a sequence at most %lld; expected a "
                        "shorter pattern or a larger max-length",
                        k->n - texts, (long long)max_tokens);
    c->ids.n = c->segments.n = c->from_text.n = 0;
    c->mask_at = -1;
    if (!take_tokens(c, q, k, e)) return false;
    return !masked || c->mask_at >= 0 ||
           ses_fail(e, SES_EUNSUPPORTED, "the tokenizer does not keep its mask token %.*s whole",
                    (int)c->mask_text.n, c->mask_text.p);
}

bool ses_cloze_prompt_encode(ses_cloze_prompt *c, const ses_cloze_item *item, size_t n, int64_t max_tokens,
                             ses_err *e)
{
    question q = { .span = ses_alloc_array(3 * n, sizeof *q.span, e) };
    bool ok = q.span != NULL;
    for (size_t i = 0; ok && i < n; i++) add_item(c, &q, &item[i], !i, c->pattern->has_sep);
    ok = ok && ses_buf_ok(&q.side[0], e) && ses_buf_ok(&q.side[1], e) &&
         encode(c, &q, item[0].answer < 0, max_tokens, e);
    ses_buf_free(&q.side[0]);
    ses_buf_free(&q.side[1]);
    ses_free(q.span);
    return ok;
}

/* A demonstration of each label, drawn by the text and `set`, not the text itself. Returns their number. */
static size_t draw_demonstrations(const ses_cloze_prompt *c, ses_string text, ses_string pair, int64_t set,
                                  ses_cloze_item *out)
{
    const ses_patterns *from = c->o.patterns;
    ses_rng_stream d = ses_rng_stream_of(ses_hash((ses_hash_key){ 0 }, text.p, text.n), (uint64_t)set, SITE);
    size_t n = 0;
    for (size_t l = 0; l < c->o.n_labels; l++) {
        int64_t seen = 0;
        for (size_t i = 0; i < from->n_demonstrations; i++) { /* the k-th replaces with probability 1 / k */
            const ses_demonstration *x = &from->demonstration[i];
            bool same = same_string(x->text, text) && same_string(x->pair, pair);
            if (same || strcmp(x->label, c->o.label[l]) || ses_draw_below(&d, ++seen)) continue;
            out[n] = (ses_cloze_item){ x->text, x->pair, (int32_t)l };
        }
        n += seen > 0;
    }
    return n;
}

int64_t ses_cloze_prompt_sets(const ses_cloze_prompt *c)
{
    return c->o.patterns->n_demonstrations ? c->o.patterns->demonstration_sets : 1;
}

bool ses_cloze_prompt_ask(ses_cloze_prompt *c, ses_string text, ses_string pair, int64_t set,
                          int64_t max_tokens, ses_err *e)
{
    c->item[0] = (ses_cloze_item){ text, pair, -1 };
    size_t n = c->o.patterns->n_demonstrations ? draw_demonstrations(c, text, pair, set, c->item + 1) : 0;
    return ses_cloze_prompt_encode(c, c->item, n + 1, max_tokens, e);
}

/* ---- scores ---- */

void ses_cloze_prompt_scores(const ses_cloze_prompt *c, const float *logits, float *out)
{
    for (size_t l = 0; l < c->o.n_labels; l++) {
        double sum = 0;
        for (size_t i = c->cu[l]; i < c->cu[l + 1]; i++) sum += (double)logits[c->token[i]];
        out[l] = (float)(sum / (double)(c->cu[l + 1] - c->cu[l]));
    }
}

int32_t ses_cloze_prompt_label_of(const ses_cloze_prompt *c, int32_t token)
{
    for (size_t l = 0; l < c->o.n_labels; l++)
        if (c->token[c->cu[l]] == token) return (int32_t)l;
    return -1;
}

int32_t ses_cloze_prompt_token_of(const ses_cloze_prompt *c, int32_t label) { return c->token[c->cu[label]]; }
