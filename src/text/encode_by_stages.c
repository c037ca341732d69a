/* Encodes a text stage by stage: added tokens, normalizer, pre-tokenizer, model. This is the
 * specification; the fast paths in fast/ must produce the same tokens and are tested against it. */
#include "base/alloc.h"
#include "tokenizer_impl.h"

#include <string.h>

static void swap_texts(ses_text *a, ses_text *b)
{
    ses_text t = *a;
    *a = *b;
    *b = t;
}

/* Append in[begin, end) to out; if out is empty, it takes the buffers of `in` instead. */
static bool hand_over(ses_text *in, size_t begin, size_t end, ses_text *out, ses_err *e)
{
    if (out->n || begin || end != in->n) return ses_text_copy(out, in, begin, end, e);
    swap_texts(in, out);
    return true;
}

/* Run bytes [begin, end) of k->raw through all normalizers; append the result to out. A normalizer that
 * changes nothing is skipped: copying a long text takes longer than most of them. */
static bool normalize(ses_encode_ctx *k, size_t begin, size_t end, ses_text *out, ses_err *e)
{
    const ses_stage_list *steps = &k->t->steps[SES_NORMALIZER];
    ses_text *in = &k->raw, *spare = &k->normalized[0];
    uint32_t base = begin < end ? k->raw.from[begin].begin : 0;
    /* bounds the memory that a malicious tokenizer.json can request */
    size_t max_bytes = 64 * (end - begin) + (1 << 20);
    for (size_t i = 0; i < steps->n; i++) {
        const ses_stage_instance *step = &steps->step[i];
        if (step->stage->changes && !step->stage->changes(step->self, in->byte + begin, end - begin))
            continue;
        bool last = i + 1 == steps->n;
        ses_text *to = last ? out : spare;
        if (!last) to->n = 0;
        in->base = base;
        if (!step->stage->normalize(step->self, in, begin, end, to, e)) return false;
        if (last) return true;
        if (to->n > max_bytes)
            return ses_fail(e, SES_EARG, "normalizer output exceeds 64 times the input length");
        spare = &k->normalized[to == &k->normalized[0]];
        in = to;
        begin = 0;
        end = to->n;
    }
    return hand_over(in, begin, end, out, e);
}

/* Split the text at added tokens, normalize the parts between them, split these parts at normalized added
 * tokens. The result is in k->pieces[0]. */
static bool split_added_tokens(ses_encode_ctx *k, const char *text, size_t begin, size_t end, ses_err *e)
{
    const ses_added *a = &k->t->added;
    ses_pieces *p = &k->pieces[0];
    p->n = p->text.n = k->raw.n = 0;
    if (!ses_added_split(a, &a->raw, text + begin, end - begin, &k->raw_matches, e)) return false;
    if (!ses_text_put_self(&k->raw, text + begin, end - begin, begin, e)) return false;
    for (size_t i = 0; i < k->raw_matches.n; i++) {
        const ses_match *m = &k->raw_matches.match[i];
        size_t at = p->text.n;
        if (m->token >= 0) {
            if (!ses_text_copy(&p->text, &k->raw, m->begin, m->end, e) ||
                !ses_pieces_put(p, (uint32_t)at, (uint32_t)p->text.n, a->token[m->token].id, e))
                return false;
            continue;
        }
        if (!normalize(k, m->begin, m->end, &p->text, e)) return false;
        if (p->text.n == at) continue;
        if (!ses_added_split(a, &a->normal, p->text.byte + at, p->text.n - at, &k->normal_matches, e))
            return false;
        for (size_t j = 0; j < k->normal_matches.n; j++) {
            const ses_match *x = &k->normal_matches.match[j];
            if (!ses_pieces_put(p, (uint32_t)(at + x->begin), (uint32_t)(at + x->end),
                                x->token < 0 ? -1 : a->token[x->token].id, e))
                return false;
        }
    }
    return true;
}

/* Byte range of the input that a token came from. Offsets outside the piece stay as the model reported
 * them, as in Hugging Face Tokenizers. */
static ses_offset source_range(const ses_text *t, const ses_piece *p, const ses_token *token)
{
    uint32_t n = p->end - p->begin, base = t->from[p->begin].begin;
    if (token->begin == token->end) return (ses_offset){ base + token->begin, base + token->end };
    if (token->begin > token->end || token->end > n) return (ses_offset){ token->begin, token->end };
    return (ses_offset){ t->from[p->begin + token->begin].begin, t->from[p->begin + token->end - 1].end };
}

/* Append an added token. Its string is the matched text if that differs from its content. */
static bool put_added(ses_encode_ctx *k, const ses_text *t, const ses_piece *p, ses_err *e)
{
    const ses_added_token *a = ses_added_by_id(&k->t->added, p->id);
    size_t n = p->end - p->begin;
    bool same = a && a->content.n == n && !memcmp(a->content.p, t->byte + p->begin, n);
    if (!ses_token_override_put(k, same ? NULL : t->byte + p->begin, n, true, e) ||
        !ses_token_buf_reserve(&k->tokens, 1, e))
        return false;
    size_t at = k->tokens.n++;
    k->tokens.id[at] = p->id;
    k->tokens.byte_offset[at] = (ses_offset){ t->from[p->begin].begin, t->from[p->end - 1].end };
    k->tokens.word_id[at] = (int32_t)k->tokens.n_words;
    return true;
}

/* Run the model on a piece and append its tokens. */
static bool put_piece(ses_encode_ctx *k, const ses_text *t, const ses_piece *p, ses_err *e)
{
    const ses_stage_instance *model = &k->t->model;
    int32_t text_named = model->stage->text_named_id ? model->stage->text_named_id(model->self) : -1;
    k->piece_tokens.n = 0;
    ses_mark mark = ses_arena_mark(&k->scratch);
    bool ok = model->stage->tokenize(model->self, t->byte + p->begin, p->end - p->begin, &k->piece_tokens,
                                     &k->scratch, e);
    ses_arena_rewind(&k->scratch, mark);
    if (!ok || !ses_token_buf_reserve(&k->tokens, k->piece_tokens.n, e)) return false;
    for (size_t i = 0; i < k->piece_tokens.n; i++) {
        const ses_token *token = &k->piece_tokens.token[i];
        k->past_piece_end |= token->end > p->end - p->begin;
        if (token->id == text_named && text_named >= 0 && token->end <= p->end - p->begin &&
            token->begin <= token->end &&
            !ses_token_override_put(k, t->byte + p->begin + token->begin, token->end - token->begin, false,
                                    e))
            return false;
        size_t at = k->tokens.n++;
        k->tokens.id[at] = token->id;
        k->tokens.byte_offset[at] = source_range(t, p, token);
        k->tokens.word_id[at] = (int32_t)k->tokens.n_words;
    }
    return true;
}

static bool reserve_piece_start(ses_encode_ctx *k, size_t pieces, ses_err *e)
{
    if (pieces <= k->cap_piece_start) return true;
    size_t *first = ses_realloc_array(k->piece_start, pieces, sizeof *first, e);
    if (!first) return false;
    k->piece_start = first;
    k->cap_piece_start = pieces;
    return true;
}

/* Truncation from the left: HF Tokenizers encodes pieces from the last to the first. It stops after the
 * first piece that is not an added token and brings the count to max. Words are numbered from that piece
 * on. */
static void keep_last_tokens(ses_encode_ctx *k, const ses_pieces *p, size_t start, size_t max)
{
    size_t keep = p->n, total = 0, end = k->tokens.n;
    while (keep) {
        keep--;
        total += end - k->piece_start[keep];
        end = k->piece_start[keep];
        if (p->piece[keep].id < 0 && total >= max) break;
    }
    if (keep) ses_encode_ctx_remove(k, start, k->piece_start[keep] - start, (uint32_t)keep);
}

/* Run k->pieces[0] through all pre-tokenizers. Returns the final pieces, one of k->pieces; NULL on
 * failure. */
static const ses_pieces *pre_tokenize(ses_encode_ctx *k, ses_err *e)
{
    const ses_stage_list *steps = &k->t->steps[SES_PRE_TOKENIZER];
    ses_pieces *in = &k->pieces[0], *out = &k->pieces[1];
    for (size_t i = 0; i < steps->n; i++) {
        /* the buffers of the normalizers are free, and their memory is in use already */
        if (out->text.cap < k->normalized[0].cap) swap_texts(&out->text, &k->normalized[0]);
        out->n = out->text.n = 0;
        if (!steps->step[i].stage->split(steps->step[i].self, in, out, e)) return NULL;
        if (!out->text.n) swap_texts(&in->text, &out->text);
        ses_pieces *swap = in;
        in = out;
        out = swap;
    }
    return in;
}

/* Append the tokens of all pieces. Each piece is one word. */
static bool put_pieces(ses_encode_ctx *k, const ses_pieces *p, const ses_token_limit *limit, ses_err *e)
{
    size_t start = k->tokens.n;
    bool left = limit && limit->from_left;
    if (left && !reserve_piece_start(k, p->n, e)) return false;
    for (size_t i = 0; i < p->n; i++, k->tokens.n_words++) {
        const ses_piece *piece = &p->piece[i];
        if (left) k->piece_start[i] = k->tokens.n;
        if (piece->id >= 0) {
            if (!put_added(k, &p->text, piece, e)) return false;
            continue;
        }
        if (!put_piece(k, &p->text, piece, e)) return false;
        if (limit && !left && k->tokens.n - start >= limit->max_tokens) break;
    }
    if (left) keep_last_tokens(k, p, start, limit->max_tokens);
    return true;
}

bool ses_encode_by_stages(ses_encode_ctx *k, const char *text, size_t begin, size_t end,
                          const ses_token_limit *limit, ses_err *e)
{
    if (!split_added_tokens(k, text, begin, end, e)) return false;
    const ses_pieces *p = pre_tokenize(k, e);
    return p && put_pieces(k, p, limit, e);
}
