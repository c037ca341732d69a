/* Texts to tokens with names and words. */
#include "explain.h"

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

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

const char *ses_explain_token_name(ses_explain *x, int32_t id, ses_err *e)
{
    const char *text = NULL, *raw;
    size_t n = 0, raw_n = 0;
    raw = ses_tokenizer_id_to_token(x->call->tokenizer, id, &raw_n);
    if (!ses_decode(x->tokens, &id, 1, true, &text, &n, e)) return NULL;
    while (n && is_blank(text[0])) text++, n--;
    while (n && is_blank(text[n - 1])) n--;
    bool broken = !n;
    for (size_t i = 0; i + 3 <= n; i++)
        broken |= !memcmp(text + i, "\xEF\xBF\xBD", 3); /* part of a character */
    bool prefixed = raw && raw_n > 2 && !memcmp(raw, "##", 2);
    if (raw && (broken || prefixed)) text = raw, n = raw_n;
    return ses_arena_strndup(&x->mem, text ? text : "", n, e);
}

static bool name_tokens(ses_explain *x, ses_explain_side *s, ses_err *e)
{
    for (int64_t i = 0; i < s->n; i++)
        if (!(s->name[i] = ses_explain_token_name(x, s->id[i], e))) return false;
    return true;
}

const char *ses_explain_text_of(ses_explain *x, int side, int64_t begin, int64_t end, ses_err *e)
{
    const ses_explain_side *s = &x->side[side];
    ses_offset first = s->bytes[begin], last = s->bytes[end - 1];
    const char *text = s->pair[begin] ? x->args->pair : x->call->operands[0];
    if (side == SES_EXPLAIN_SOURCE && !s->special[begin] && last.end > first.begin) {
        while (first.begin < last.end && is_blank(text[first.begin])) first.begin++;
        return ses_arena_strndup(&x->mem, text + first.begin, last.end - first.begin, e);
    }
    ses_buf b = { 0 };
    for (int64_t i = begin; i < end; i++)
        ses_buf_puts(&b, s->name[i] + (i > begin && !strncmp(s->name[i], "##", 2) ? 2 : 0));
    const char *copy = ses_buf_ok(&b, e) ? ses_arena_strndup(&x->mem, b.data ? b.data : "", b.len, e) : NULL;
    ses_buf_free(&b);
    return copy;
}

/* Does a token begin a word? By its string in the vocabulary. */
static bool begins_word(const ses_explain *x, int32_t id)
{
    size_t n = 0;
    const char *raw = ses_tokenizer_id_to_token(x->call->tokenizer, id, &n);
    if (!raw || !n) return true;
    if (x->config.has_subword_prefix) return n < 2 || memcmp(raw, "##", 2) != 0;
    static const char *const space[] = { "\xC4\xA0" /* byte-level BPE */, "\xE2\x96\x81" /* SentencePiece */,
                                         " " };
    for (size_t i = 0; i < SES_LEN(space); i++)
        if (n >= strlen(space[i]) && !memcmp(raw, space[i], strlen(space[i]))) return true;
    return false;
}

bool ses_explain_side_of_ids(ses_explain *x, const int32_t *id, int64_t n, ses_explain_side *s, ses_err *e)
{
    if (!side_alloc(&x->mem, s, n, e)) return false;
    for (int64_t i = 0; i < n; i++) {
        s->id[i] = id[i];
        s->special[i] = i == 0 || ses_tokenizer_is_special(x->call->tokenizer, id[i]);
        bool first = !s->special[i] && (s->special[i - 1] || begins_word(x, id[i]));
        if (first) s->words++;
        s->word[i] = s->special[i] ? -1 : (int32_t)s->words - 1;
    }
    return name_tokens(x, s, e);
}

bool ses_explain_encode(ses_explain *x, ses_err *e)
{
    const ses_analysis_call *c = x->call;
    const char *text = c->operands[0];
    ses_explain_side *s = &x->side[SES_EXPLAIN_SOURCE];
    ses_input in = { .text = { text, strlen(text) } };
    if (x->args->pair) in.pair = (ses_string){ x->args->pair, strlen(x->args->pair) };
    if (!ses_encode(x->tokens, &in, NULL, e)) return false;
    const ses_encoding *k = ses_encode_ctx_result(x->tokens);
    int64_t n = (int64_t)k->n, most = ses_model_max_tokens(x->m);
    /* a decoder continues the text: without the end token */
    bool continues = x->m->class->head[0].head == &ses_head_causal_lm;
    while (continues && n > 1 && k->special_mask[n - 1]) n--;
    if (n > most)
        return ses_fail(e, SES_EARG, "the text has %lld tokens, the model reads at most %lld: shorten it",
                        (long long)n, (long long)most);
    if (!side_alloc(&x->mem, s, n, e)) return false;
    int64_t content = 0;
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
    if (!content) return ses_fail(e, SES_EARG, "the text has no tokens to explain: write at least one word");
    return name_tokens(x, s, e);
}
