/* Texts to tokens with names and words; a window of a text that is longer than the model reads. */
#include "explain.h"

#include "analysis/token_text.h"
#include "base/suggest.h"
#include "nn/decoder_input.h"

#include <stdlib.h>
#include <string.h>

static bool side_alloc(ses_arena *mem, ses_explain_side *s, int64_t n, ses_err *e)
{
    size_t k = (size_t)n + 1;
    *s = (ses_explain_side){ .n = n };
    s->id = ses_arena_array(mem, k, sizeof *s->id, e);
    s->segment = ses_arena_array(mem, k, sizeof *s->segment, e);
    s->special = ses_arena_array(mem, k, 1, e);
    s->pair = ses_arena_array(mem, k, 1, e);
    s->word = ses_arena_array(mem, k, sizeof *s->word, e);
    s->bytes = ses_arena_array(mem, k, sizeof *s->bytes, e);
    s->name = ses_arena_array(mem, k, sizeof *s->name, e);
    return s->id && s->segment && s->special && s->pair && s->word && s->bytes && s->name;
}

const char *ses_explain_token_name(ses_explain *x, int32_t id, ses_err *e)
{
    return ses_token_name(x->call->tokenizer, x->tokens, id, &x->mem, e);
}

static bool name_tokens(ses_explain *x, ses_explain_side *s, ses_err *e)
{
    for (int64_t i = 0; i < s->n; i++)
        if (!(s->name[i] = ses_explain_token_name(x, s->id[i], e))) return false;
    return true;
}

/* ---- words ---- */

const char *ses_explain_text_of(ses_explain *x, const ses_explain_side *s, int64_t begin, int64_t end,
                                ses_err *e)
{
    ses_offset first = s->bytes[begin], last = s->bytes[end - 1];
    const char *text = s->text ? s->text : s->pair[begin] ? x->pair : x->text;
    if (!s->special[begin] && last.end > first.begin) {
        while (first.begin < last.end && ses_is_blank(text[first.begin])) first.begin++;
        return ses_arena_strndup(&x->mem, text + first.begin, last.end - first.begin, e);
    }
    ses_buf b = { 0 };
    for (int64_t i = begin; i < end; i++)
        ses_buf_puts(&b, s->name[i] + (i > begin && !strncmp(s->name[i], "##", 2) ? 2 : 0));
    const char *copy = ses_buf_ok(&b, e) ? ses_arena_strndup(&x->mem, b.data ? b.data : "", b.len, e) : NULL;
    ses_buf_free(&b);
    return copy;
}

int64_t ses_explain_word_begin(const ses_explain_side *s, int64_t word)
{
    for (int64_t i = 0; i < s->n; i++)
        if (s->word[i] == word) return i;
    return -1;
}

const char *ses_explain_word_text(ses_explain *x, const ses_explain_side *s, int64_t word, ses_err *e)
{
    int64_t begin = ses_explain_word_begin(s, word), end = begin;
    while (end < s->n && s->word[end] == word) end++;
    return begin < 0 ? "" : ses_explain_text_of(x, s, begin, end, e);
}

bool ses_explain_find_word(ses_explain *x, const ses_explain_side *s, int64_t *word, ses_err *e)
{
    const char *text = x->args->word;
    ses_suggestion near = { .word = text };
    char *end;
    for (int64_t i = 0, last = -1; i < s->n; i++) {
        if (s->word[i] < 0 || s->word[i] == last) continue;
        last = s->word[i];
        int64_t stop = i;
        while (stop < s->n && s->word[stop] == last) stop++;
        const char *name = ses_explain_text_of(x, s, i, stop, e);
        if (!name) return false;
        if (!strcmp(name, text)) return *word = last, true;
        ses_suggest_offer(&near, name, strlen(name));
    }
    long long number = strtoll(text, &end, 10);
    if (end != text && !*end && number >= 1 && number <= s->words) return *word = number - 1, true;
    ses_fail(e, SES_EUSAGE, "--word %s: the text has no such word; it has %lld words", text,
             (long long)s->words);
    return ses_suggest_add(&near, "", e);
}

bool ses_explain_side_of_target(ses_explain *x, const char *text, ses_explain_side *s, ses_err *e)
{
    const ses_config *c = &x->m->c;
    if (!ses_encode(x->tokens, &(ses_input){ .text = { text, strlen(text) } }, NULL, e)) return false;
    const ses_encoding *k = ses_encode_ctx_result(x->tokens);
    if (!side_alloc(&x->mem, s, (int64_t)k->n + 1, e)) return false;
    if (!ses_decoder_first(c, k->id, k->n, s->id, e)) return false;
    s->text = text;
    s->special[0] = 1, s->word[0] = -1;
    for (int64_t i = 1; i < s->n; i++) {
        size_t j = (size_t)i - 1;
        bool special = k->special_mask[j] || k->word_id[j] < 0;
        if (!special && (s->special[i - 1] || k->word_id[j] != k->word_id[j - 1])) s->words++;
        s->id[i] = k->id[j], s->bytes[i] = k->byte_offset[j];
        s->special[i] = special, s->word[i] = special ? -1 : (int32_t)s->words - 1;
    }
    return name_tokens(x, s, e);
}

bool ses_explain_side_of_ids(ses_explain *x, const int32_t *id, int64_t n, ses_explain_side *s, ses_err *e)
{
    if (!side_alloc(&x->mem, s, n, e)) return false;
    for (int64_t i = 0; i < n; i++) {
        s->id[i] = id[i];
        s->special[i] = i == 0 || ses_tokenizer_is_special(x->call->tokenizer, id[i]);
        bool first = !s->special[i] &&
                     (s->special[i - 1] || ses_token_begins_word(x->call->tokenizer, &x->config, id[i]));
        if (first) s->words++;
        s->word[i] = s->special[i] ? -1 : (int32_t)s->words - 1;
    }
    return name_tokens(x, s, e);
}

/* ---- windows ---- */

/* *begin to *end - 1: the tokens of the text that a window shortens, the passage of a question or the longer
 * text. */
static void cut_range(const ses_explain *x, int64_t *begin, int64_t *end)
{
    const ses_explain_side *s = &x->full;
    int64_t first[2] = { 0 }, last[2] = { -1, -1 }, tokens[2] = { 0 };
    for (int64_t i = 0; i < s->n; i++) {
        if (s->bytes[i].end <= s->bytes[i].begin) continue;
        if (!tokens[s->pair[i]]++) first[s->pair[i]] = i;
        last[s->pair[i]] = i;
    }
    bool second =
        x->pair && (x->m->class->head[0].head == &ses_head_question_answering || tokens[1] >= tokens[0]);
    *begin = first[second], *end = last[second] + 1;
}

int64_t ses_explain_excess(const ses_explain *x)
{
    int64_t most = ses_model_max_tokens(x->m);
    return x->full.n > most ? x->full.n - most : 0;
}

bool ses_explain_window(ses_explain *x, int64_t first, ses_err *e)
{
    ses_explain_side *s = &x->side[SES_EXPLAIN_SOURCE];
    const ses_explain_side *f = &x->full;
    int64_t begin = 0, end = 0, excess = ses_explain_excess(x), n = 0;
    if (excess) cut_range(x, &begin, &end);
    if (excess && end - begin <= excess)
        return ses_fail(e, SES_EARG, "the text has %lld tokens, the model reads at most %lld: shorten it",
                        (long long)f->n, (long long)ses_model_max_tokens(x->m));
    if (first > excess) first = excess;
    if (first < 0) first = 0;
    if (!side_alloc(&x->mem, s, f->n - excess, e)) return false;
    for (int64_t i = 0; i < f->n; i++) {
        bool left_out = i >= begin && i < end && (i < begin + first || i >= end - (excess - first));
        if (left_out) continue;
        s->id[n] = f->id[i], s->segment[n] = f->segment[i], s->special[n] = f->special[i];
        s->pair[n] = f->pair[i], s->bytes[n] = f->bytes[i];
        bool same = n && !f->special[i] && f->word[i] == f->word[i - 1] && s->word[n - 1] >= 0;
        if (!f->special[i] && !same) s->words++;
        s->word[n++] = f->special[i] ? -1 : (int32_t)s->words - 1;
    }
    return name_tokens(x, s, e);
}

bool ses_explain_window_around(ses_explain *x, int64_t t, ses_err *e)
{
    int64_t begin, end, excess = ses_explain_excess(x);
    cut_range(x, &begin, &end);
    return ses_explain_window(x, t - begin - (end - begin - excess) / 2, e);
}

void ses_explain_note_window(ses_explain *x, const char *which)
{
    const ses_explain_side *s = &x->side[SES_EXPLAIN_SOURCE];
    if (ses_explain_excess(x))
        ses_report_note(x->call->report,
                        "The text has %lld tokens, the model reads %lld: %s is explained, %lld tokens are "
                        "left out.",
                        (long long)x->full.n, (long long)s->n, which, (long long)ses_explain_excess(x));
}

/* ---- the input ---- */

static bool read_tokens(ses_explain *x, const ses_encoding *k, int64_t n, ses_err *e)
{
    ses_explain_side *s = &x->full;
    int64_t content = 0;
    if (!side_alloc(&x->mem, s, n, e)) return false;
    for (int64_t i = 0; i < n; i++) {
        bool special = k->special_mask[i] || k->word_id[i] < 0,
             same = !special && i && !s->special[i - 1] && k->word_id[i] == k->word_id[i - 1] &&
                    k->sequence_id[i] == k->sequence_id[i - 1];
        if (!special && !same) s->words++;
        s->id[i] = k->id[i], s->segment[i] = k->type_id[i], s->bytes[i] = k->byte_offset[i];
        s->special[i] = special, s->pair[i] = k->sequence_id[i] == 1;
        s->word[i] = special ? -1 : (int32_t)s->words - 1;
        content += !special;
    }
    return content || ses_fail(e, SES_EARG, "the text has no tokens to explain: write at least one word");
}

bool ses_explain_encode(ses_explain *x, ses_err *e)
{
    ses_input in = { .text = { x->text, strlen(x->text) } };
    if (x->pair && !*x->pair) return ses_fail(e, SES_EUSAGE, "--pair is empty: write the second text");
    if (x->pair) in.pair = (ses_string){ x->pair, strlen(x->pair) };
    if (!ses_encode(x->tokens, &in, NULL, e)) return false;
    const ses_encoding *k = ses_encode_ctx_result(x->tokens);
    int64_t n = (int64_t)k->n;
    /* a decoder continues the text: without the end token */
    bool continues = x->m->class->head[0].head == &ses_head_causal_lm;
    while (continues && n > 1 && k->special_mask[n - 1]) n--;
    return read_tokens(x, k, n, e) && ses_explain_window(x, continues ? INT64_MAX : 0, e);
}
