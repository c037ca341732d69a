/* Validates a batch before any kernel reads it. */
#include "model_desc.h"

#include "base/elmo/word_chars.h"
#include "nn/cache_impl.h"
#include "nn/decoder_input.h"

/* Offsets must rise from 0 to the number of tokens, without empty or too long sequences (max_len 0: any
 * length). */
static bool check_offsets(const int32_t *cu, int64_t seqs, int64_t tokens, int64_t max_len, const char *what,
                          ses_err *e)
{
    if (cu[0] != 0 || cu[seqs] != tokens)
        return ses_fail(e, SES_EARG, "%scu_seqlens goes from %d to %d, expected 0 to %lld", what, (int)cu[0],
                        (int)cu[seqs], (long long)tokens);
    for (int64_t s = 0; s < seqs; s++) {
        int64_t len = (int64_t)cu[s + 1] - cu[s];
        if (len < 1) return ses_fail(e, SES_EARG, "%ssequence %lld is empty", what, (long long)s);
        if (max_len && len > max_len)
            return ses_fail(e, SES_EARG, "%ssequence %lld has %lld tokens, the model's maximum is %lld", what,
                            (long long)s, (long long)len, (long long)max_len);
    }
    return true;
}

/* All values must be in 0 .. limit - 1, or SES_IGNORE_INDEX if allowed. */
static bool check_range(const int32_t *x, int64_t n, int64_t limit, bool ignore, const char *what, ses_err *e)
{
    for (int64_t i = 0; x && i < n; i++)
        if ((x[i] < 0 || x[i] >= limit) && !(ignore && x[i] == SES_IGNORE_INDEX))
            return ses_fail(e, SES_EARG, "%s %d at index %lld, expected 0 to %lld", what, (int)x[i],
                            (long long)i, (long long)limit - 1);
    return true;
}

static bool check_labels(const ses_model *m, const ses_head_use *use, const ses_batch *b, ses_err *e)
{
    const int32_t *labels = ses_head_labels(use, b);
    int64_t classes = use->head->class_count(&m->c), choices = b->choices ? b->choices : 1;
    switch (use->head->axis) {
    case SES_LABEL_PER_TOKEN:
        return check_range(labels, b->predict_positions ? b->target_cu_seqlens[b->seqs] : b->tokens, classes,
                           true, "label", e);
    case SES_LABEL_PER_SEQUENCE: return check_range(labels, b->seqs, classes, true, "label", e);
    case SES_LABEL_PER_QUESTION: return check_range(labels, b->seqs / choices, choices, true, "label", e);
    case SES_LABEL_PER_TARGET:
        return check_range(labels, b->target_cu_seqlens ? b->target_cu_seqlens[b->seqs] : 0, classes, true,
                           "label", e);
    case SES_LABEL_SPAN: return true; /* positions outside the sequence are ignored */
    }
    return true;
}

/* A decoder needs input: target ids or labels. */
static bool check_target(const ses_model *m, const ses_batch *b, ses_err *e)
{
    bool reads = m->stack[1].layer && (b->target_cu_seqlens || !m->c.decoder.input_from_source);
    bool shifts = m->stack[1].layer && !b->target_ids && !ses_decoder_wraps(&m->c);
    int32_t first;
    if (shifts && (!reads || b->labels) && !ses_decoder_first(&m->c, NULL, 0, &first, e)) return false;
    if (!reads) return true;
    if (!b->target_cu_seqlens || (!b->target_ids && !b->labels))
        return ses_fail(e, SES_EARG,
                        "the decoder has no input: set target_cu_seqlens and target_ids or labels");
    int64_t tokens = b->target_cu_seqlens[b->seqs];
    return check_offsets(b->target_cu_seqlens, b->seqs, tokens, ses_model_max_target_tokens(m),
                         "target: ", e) &&
           check_range(b->target_ids, tokens, m->c.vocab, false, "target: token id", e) &&
           check_range(b->target_positions, tokens, ses_model_max_target_tokens(m), false, "target: position",
                       e);
}

static bool rises(const int32_t *cu, int64_t seqs)
{
    bool ok = cu[0] == 0;
    for (int64_t s = 0; s < seqs; s++) ok &= cu[s] <= cu[s + 1];
    return ok;
}

/* Vectors beside tokens. */
static bool check_modal(const ses_model *m, const ses_batch *b, ses_err *e)
{
    if (!b->modal_rows) return true;
    if (!m->stack[0].c->embed.modal_width)
        return ses_fail(e, SES_EARG, "%s does not read vectors (modal_rows): only tokens", m->desc->name);
    if (!b->modal_vectors || b->n_modal < 1 || b->n_modal > INT32_MAX - b->tokens)
        return ses_fail(e, SES_EARG, "modal_rows needs modal_vectors and their number, n_modal");
    for (int64_t t = 0; t < b->tokens; t++)
        if (b->modal_rows[t] < -1 || b->modal_rows[t] >= b->n_modal)
            return ses_fail(e, SES_EARG, "modal row %d at token %lld, expected -1 to %lld",
                            (int)b->modal_rows[t], (long long)t, (long long)b->n_modal - 1);
    return true;
}

/* Words outside the vocabulary. */
static bool check_words(const ses_model *m, const ses_batch *b, ses_err *e)
{
    int64_t per_word = m->stack[0].c->chars.per_word, n = b->n_extra_words;
    if (!n) return true;
    if (!per_word)
        return ses_fail(e, SES_EARG, "%s does not read characters (extra_word_chars)", m->desc->name);
    if (!b->extra_word_chars || n < 0 || n > INT32_MAX - m->stack[0].c->vocab)
        return ses_fail(e, SES_EARG, "n_extra_words is %lld, which needs extra_word_chars", (long long)n);
    for (int64_t i = 0; i < n * per_word; i++)
        if (b->extra_word_chars[i] < 0 || b->extra_word_chars[i] >= SES_CHARS)
            return ses_fail(e, SES_EARG, "extra word %lld: character %d, expected 0 to %d",
                            (long long)(i / per_word), b->extra_word_chars[i], (int)SES_CHARS - 1);
    return true;
}

/* Permutation masks, positions to predict and mems: XLNet only. */
static bool check_permutation(const ses_model *m, const ses_batch *b, ses_err *e)
{
    const ses_head *head = m->class->head[0].head;
    bool memory = b->mem_cu_seqlens || b->mems, permutation = b->perm_mask || b->predict_positions;
    if (!memory && !permutation) return true;
    if (!m->c.xl.permutation_lm && (permutation || !m->c.xl.segment_recurrence))
        return ses_fail(e, SES_EARG, "%s does not support perm_mask, predict_positions or mems",
                        m->desc->name);
    if (!b->mem_cu_seqlens != !b->mems)
        return ses_fail(e, SES_EARG, "mems and mem_cu_seqlens must be set together");
    if (b->mem_cu_seqlens && !rises(b->mem_cu_seqlens, b->seqs))
        return ses_fail(e, SES_EARG, "mem_cu_seqlens must rise from 0");
    if (!b->predict_positions) return true;
    if (head && head->axis != SES_LABEL_PER_TOKEN)
        return ses_fail(e, SES_EARG, "%s does not support predict_positions", m->class->name);
    if (!b->target_cu_seqlens || b->target_ids)
        return ses_fail(e, SES_EARG, "predict_positions needs target_cu_seqlens and no target_ids");
    if (!rises(b->target_cu_seqlens, b->seqs))
        return ses_fail(e, SES_EARG, "target_cu_seqlens must rise from 0");
    for (int64_t s = 0; s < b->seqs; s++)
        for (int32_t t = b->target_cu_seqlens[s]; t < b->target_cu_seqlens[s + 1]; t++)
            if (b->predict_positions[t] < 0 ||
                b->predict_positions[t] >= b->cu_seqlens[s + 1] - b->cu_seqlens[s])
                return ses_fail(e, SES_EARG, "predicted position %d in sequence %lld of %d tokens",
                                (int)b->predict_positions[t], (long long)s,
                                (int)(b->cu_seqlens[s + 1] - b->cu_seqlens[s]));
    return true;
}

/* Prefix lengths: for models that can switch their attention mask. Models with a vtable accept a prefix that
 * matches their own mask. */
static bool check_prefix(const ses_model *m, const ses_batch *b, ses_err *e)
{
    bool causal = true, right = false;
    for (int64_t s = 0; b->prefix_len && s < b->seqs; s++) {
        int64_t len = b->cu_seqlens[s + 1] - b->cu_seqlens[s];
        if (b->prefix_len[s] < SES_RIGHT_TO_LEFT || b->prefix_len[s] > len)
            return ses_fail(e, SES_EARG, "prefix_len %d in sequence %lld of %lld tokens",
                            (int)b->prefix_len[s], (long long)s, (long long)len);
        right |= b->prefix_len[s] == SES_RIGHT_TO_LEFT;
        causal &= b->prefix_len[s] == 0 || b->prefix_len[s] == 1;
    }
    if (!b->prefix_len || (m->c.attention.causal && causal)) return true;
    if (right && m->stack[0].virt.tokens)
        return ses_fail(e, SES_EUNSUPPORTED, "virtual tokens cannot be read from right to left");
    if (b->cache)
        return ses_fail(e, SES_EARG, "a batch with a KV cache is causal: prefix_len must not exceed 1");
    return !(m->stack[0].vtable && m->stack[0].vtable->run) ||
           ses_fail(e, SES_EARG, "%s does not support prefix_len", m->desc->name);
}

/* Cached sequences: valid slots with free capacity, and a source for cross attention. */
static bool check_cache(const ses_model *m, const ses_batch *b, ses_err *e)
{
    const ses_cache *k = b->cache;
    const int32_t *cu = b->target_cu_seqlens ? b->target_cu_seqlens : b->cu_seqlens;
    if (k->model != m) return ses_fail(e, SES_EARG, "the KV cache belongs to another model");
    if (!b->slots || b->labels || (b->target_cu_seqlens && !b->target_ids))
        return ses_fail(e, SES_EARG,
                        "a batch with a KV cache needs slots and token ids, and must not have labels");
    for (int64_t s = 0; s < b->seqs; s++) {
        int32_t slot = b->slots[s];
        if (slot < 0 || slot >= k->slots)
            return ses_fail(e, SES_EARG, "slot %d, but the cache has %lld", (int)slot, (long long)k->slots);
        for (int64_t i = 0; i < s; i++)
            if (b->slots[i] == slot)
                return ses_fail(e, SES_EARG, "slot %d occurs twice in the batch", (int)slot);
        int64_t len = ses_cache_len(k, slot) + cu[s + 1] - cu[s], max_len = ses_model_max_target_tokens(m);
        if (len > k->room[slot] - k->virtual_rows)
            return ses_fail(e, SES_EARG, "slot %d: %lld tokens, the cache has capacity for %lld", (int)slot,
                            (long long)len, (long long)(k->room[slot] - k->virtual_rows));
        if (len > max_len)
            return ses_fail(e, SES_EARG, "slot %d: %lld tokens, the model's maximum is %lld", (int)slot,
                            (long long)len, (long long)max_len);
        if (k->cross.layers && b->ids && k->len[slot])
            return ses_fail(e, SES_EARG, "slot %d is not empty: its source cannot change", (int)slot);
        if (k->cross.layers && !b->ids && k->source_of[slot] < 0)
            return ses_fail(e, SES_EARG, "slot %d has no source: set ids", (int)slot);
    }
    return true;
}

/* A batch that continues after the encoder. */
static bool check_encoded(const ses_model *m, const ses_batch *b, ses_err *e)
{
    if (b->ids || b->cache || !m->stack[1].layer)
        return ses_fail(
            e, SES_EARG,
            "encoder_states replace ids in an encoder-decoder, without a KV cache: set one of them");
    if (b->seqs < 1 || b->tokens < 1 || b->tokens > INT32_MAX || !b->cu_seqlens)
        return ses_fail(e, SES_EARG, "empty batch");
    return check_offsets(b->cu_seqlens, b->seqs, b->tokens, 0, "", e) && check_target(m, b, e);
}

bool ses_model_check_batch(const ses_model *m, const ses_batch *b, ses_err *e)
{
    const ses_config *c = m->stack[0].c;
    int64_t max_len = ses_model_max_tokens(m);
    bool goes_on = b->cache && b->cache->cross.layers && !b->ids;
    if (b->encoder_states) return check_encoded(m, b, e);
    if (b->seqs < 1 || (!goes_on && (b->tokens < 1 || !b->cu_seqlens || !b->ids)))
        return ses_fail(e, SES_EARG, "empty batch");
    if (goes_on) return check_target(m, b, e) && check_cache(m, b, e);
    if (b->tokens > INT32_MAX) return ses_fail(e, SES_EARG, "%lld tokens in one batch", (long long)b->tokens);
    if (!check_offsets(b->cu_seqlens, b->seqs, b->tokens, b->positions ? 0 : max_len, "", e) ||
        !check_target(m, b, e) || !check_permutation(m, b, e) || !check_modal(m, b, e) ||
        !check_prefix(m, b, e) || (b->cache && !check_cache(m, b, e)) || !check_words(m, b, e) ||
        !check_range(b->ids, b->tokens, c->vocab + b->n_extra_words, false, "token id", e) ||
        (c->embed.segments &&
         !check_range(b->segments, b->tokens, c->embed.segments, false, "segment id", e)) ||
        !check_range(b->positions, b->tokens, max_len, false, "position", e))
        return false;
    if (b->rnn_state && !ses_model_state_size(m))
        return ses_fail(e, SES_EARG, "%s carries no recurrent state (rnn_state)", m->desc->name);
    if (b->choices < 0 || (b->choices && b->seqs % b->choices))
        return ses_fail(e, SES_EARG, "%lld sequences are not a multiple of %lld choices", (long long)b->seqs,
                        (long long)b->choices);
    for (int64_t s = 0; b->choice_positions && s < b->seqs; s++)
        if (b->choice_positions[s] < 0 || b->choice_positions[s] >= b->cu_seqlens[s + 1] - b->cu_seqlens[s])
            return ses_fail(e, SES_EARG, "choice position %d in sequence %lld of %d tokens",
                            (int)b->choice_positions[s], (long long)s,
                            (int)(b->cu_seqlens[s + 1] - b->cu_seqlens[s]));
    for (size_t i = 0; i < SES_LEN(m->class->head) && m->class->head[i].head; i++)
        if (!check_labels(m, &m->class->head[i], b, e)) return false;
    return true;
}
