/* Tokens of a text for its attention view: encoding, generation, names and words. */
#include "analysis/token_text.h"
#include "analysis/view/attention_view.h"
#include "base/alloc.h"
#include "base/unicode/unicode.h"
#include "model/model_desc.h"
#include "nn/decoder_input.h"
#include "sesame/generate.h"
#include "text/tokenizer_config.h"

#include <string.h>

typedef struct encoder {
    ses_attention_view *v;
    const ses_analysis_call *call;
    const ses_view_request *q;
    ses_encode_ctx *tokens;
    ses_tokenizer_config config;
    int64_t limit; /* tokens of a sequence */
} encoder;

static bool side_alloc(ses_arena *mem, ses_view_side *s, int64_t n, ses_err *e)
{
    size_t k = (size_t)n + 1;
    *s = (ses_view_side){ .tokens = n };
    s->id = ses_arena_array(mem, k, sizeof *s->id, e);
    s->segment = ses_arena_array(mem, k, sizeof *s->segment, e);
    s->token = ses_arena_array(mem, k, sizeof *s->token, e);
    s->bytes = ses_arena_array(mem, k, sizeof *s->bytes, e);
    s->word = ses_arena_array(mem, k, sizeof *s->word, e);
    s->special = ses_arena_array(mem, k, 1, e);
    s->pair = ses_arena_array(mem, k, 1, e);
    return s->id && s->segment && s->token && s->bytes && s->word && s->special && s->pair;
}

/* ---- names ---- */

/* For tokens without a text: as ses_token_begins_word, and without a prefix punctuation begins a word. */
static bool begins_word(const encoder *x, int32_t id)
{
    size_t n = 0;
    if (ses_token_begins_word(x->call->tokenizer, &x->config, id)) return true;
    const char *raw = ses_tokenizer_id_to_token(x->call->tokenizer, id, &n);
    return !x->config.has_subword_prefix && n == 1 && ses_cp_is((unsigned char)raw[0], SES_CP_PUNCT8);
}

static bool name_tokens(encoder *x, ses_view_side *s, ses_err *e)
{
    for (int64_t i = 0; i < s->tokens; i++)
        if (!(s->token[i] = ses_token_name(x->call->tokenizer, x->tokens, s->id[i], &x->v->mem, e)))
            return false;
    return true;
}

/* ---- units ---- */

/* Joins the tokens of the words in unit u to a name: without the prefix of subwords. */
static const char *unit_name(encoder *x, const ses_view_side *s, const int32_t *of, int32_t u, ses_err *e)
{
    ses_buf name = { 0 };
    for (int64_t i = 0; i < s->tokens; i++) {
        if (of[i] != u) continue;
        bool inside = name.len && !strncmp(s->token[i], "##", 2);
        ses_buf_puts(&name, s->token[i] + (inside ? 2 : 0));
    }
    const char *copy =
        ses_buf_ok(&name, e) ? ses_arena_strndup(&x->v->mem, name.data ? name.data : "", name.len, e) : NULL;
    ses_buf_free(&name);
    return copy;
}

static bool make_units(encoder *x, ses_view_side *s, ses_err *e)
{
    ses_arena *mem = &x->v->mem;
    size_t n = (size_t)s->tokens;
    int32_t *of = ses_arena_array(mem, n + 1, sizeof *of, e), u = -1;
    s->unit = ses_arena_array(mem, n + 1, sizeof *s->unit, e);
    s->unit_special = ses_arena_array(mem, n + 1, 1, e);
    s->unit_pair = ses_arena_array(mem, n + 1, 1, e);
    if (!of || !s->unit || !s->unit_special || !s->unit_pair) return false;
    for (size_t i = 0; i < n; i++) {
        bool same = i && x->q->words && !s->special[i] && !s->special[i - 1] && s->word[i] == s->word[i - 1];
        if (x->q->hide_special && s->special[i]) {
            of[i] = -1;
            continue;
        }
        if (!same) u++;
        of[i] = u;
        s->unit_special[u] = s->special[i], s->unit_pair[u] = s->pair[i];
    }
    s->units = (ses_attention_units){ s->tokens, u + 1, of };
    for (int32_t i = 0; i <= u; i++)
        if (!(s->unit[i] = unit_name(x, s, of, i, e))) return false;
    return u >= 0 || ses_fail(e, SES_EARG,
                              "the text has no tokens but special ones: write one, or leave out "
                              "--hide-special");
}

/* ---- encoding ---- */

static bool encode_text(encoder *x, const char *text, const char *pair, ses_view_side *s, ses_err *e)
{
    ses_input in = { .text = { text, strlen(text) } };
    if (pair) in.pair = (ses_string){ pair, strlen(pair) };
    if (!ses_encode(x->tokens, &in, NULL, e)) return false;
    const ses_encoding *k = ses_encode_ctx_result(x->tokens);
    int64_t all = (int64_t)k->n;
    if (all > x->limit) {
        ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST,
                                 .max_length = x->limit,
                                 .truncate_left = x->config.truncate_left };
        if (!ses_encode(x->tokens, &in, &o, e)) return false;
        k = ses_encode_ctx_result(x->tokens);
        x->v->truncated += all - (int64_t)k->n;
    }
    if (!side_alloc(&x->v->mem, s, (int64_t)k->n, e)) return false;
    int32_t word = -1;
    for (size_t i = 0; i < k->n; i++) {
        bool special = k->special_mask[i] || k->word_id[i] < 0,
             same = !special && i && k->word_id[i] == k->word_id[i - 1] &&
                    k->sequence_id[i] == k->sequence_id[i - 1];
        if (!special && !same) word++;
        s->id[i] = k->id[i], s->segment[i] = k->type_id[i], s->bytes[i] = k->byte_offset[i];
        s->special[i] = special, s->pair[i] = k->sequence_id[i] == 1, s->word[i] = special ? -1 : word;
    }
    return true;
}

/* ids as a side: the tokens of `from`, then generated tokens. from NULL: the decoder's input. */
static bool side_of_ids(encoder *x, const int32_t *id, int64_t n, const ses_view_side *from, ses_view_side *s,
                        ses_err *e)
{
    ses_view_side old = from ? *from : (ses_view_side){ 0 };
    if (!side_alloc(&x->v->mem, s, n, e)) return false;
    int32_t word = -1;
    for (int64_t i = 0; i < n; i++) {
        s->id[i] = id[i];
        if (i < old.tokens) {
            s->bytes[i] = old.bytes[i], s->special[i] = old.special[i], s->word[i] = old.word[i];
            if (s->word[i] > word) word = s->word[i];
            continue;
        }
        s->special[i] = ses_tokenizer_is_special(x->call->tokenizer, id[i]) || (!from && i == 0);
        s->pair[i] = from != NULL;
        if (!s->special[i] && (i == 0 || s->special[i - 1] || begins_word(x, id[i]))) word++;
        s->word[i] = s->special[i] ? -1 : word;
    }
    return true;
}

/* The decoder's input: the labels shifted right. ends: the last label is a special token. */
static bool shift_target(encoder *x, const ses_view_side *labels, bool ends, ses_err *e)
{
    ses_view_side *s = &x->v->target;
    const ses_config *c = &x->call->model->c;
    int64_t n = labels->tokens;
    if (!side_alloc(&x->v->mem, s, n, e)) return false;
    if (!ses_decoder_first(c, labels->id, (size_t)(ends ? n : n - 1), s->id, e)) return false;
    s->special[0] = 1, s->word[0] = -1;
    for (int64_t i = 1; i < n; i++) {
        s->id[i] = labels->id[i - 1], s->bytes[i] = labels->bytes[i - 1];
        s->word[i] = labels->word[i - 1], s->special[i] = labels->special[i - 1];
    }
    return true;
}

static bool encode_target(encoder *x, ses_err *e)
{
    ses_view_side labels;
    if (!*x->q->target) return ses_fail(e, SES_EUSAGE, "--target is empty: give the decoder's text");
    if (!encode_text(x, x->q->target, NULL, &labels, e)) return ses_wrap(e, "--target");
    bool ends = labels.tokens && labels.special[labels.tokens - 1];
    if (!ends) labels.tokens++; /* the tokenizer adds no end token: keep the last one */
    return shift_target(x, &labels, ends, e);
}

static bool is_eos(const ses_generate_options *o, int32_t id)
{
    for (int64_t i = 0; i < o->eos.n; i++)
        if (o->eos.id[i] == id) return true;
    return false;
}

/* The generated tokens without the end token, as the decoder's input or after the prompt. */
static bool use_generated(encoder *x, const ses_generate_options *o, const ses_ids *ids, bool encoder_decoder,
                          ses_err *e)
{
    ses_view_side prompt = x->v->source;
    int64_t n = ids->n;
    if (n > 1 && is_eos(o, ids->id[n - 1])) n--;
    x->v->generated = true;
    if (encoder_decoder) return side_of_ids(x, ids->id, n, NULL, &x->v->target, e);
    return side_of_ids(x, ids->id, n, &prompt, &x->v->source, e);
}

static bool generate(encoder *x, ses_err *e)
{
    const ses_model *m = x->call->model;
    const ses_view_side *s = &x->v->source;
    bool encoder_decoder = m->desc->encoder_decoder;
    ses_generation_config *config = ses_generation_config_open(m, e);
    if (!config) return false;
    ses_generate_options o = *ses_generation_config_options(config);
    o.seed = x->call->seed;
    o.num_return_sequences = 1;
    if (x->q->max_new_tokens) o.max_new_tokens = x->q->max_new_tokens;
    int64_t n = s->tokens; /* a prompt ends without the tokenizer's end token */
    while (!encoder_decoder && n > 1 && s->special[n - 1]) n--;
    x->v->source.tokens = n;
    ses_generated *g = ses_generate(m, &(ses_prompt){ .ids = { s->id, n } }, 1, &o, e);
    bool ok = g && g->n && use_generated(x, &o, &g->sequence[0].ids, encoder_decoder, e);
    ses_generated_free(g);
    ses_generation_config_free(config);
    return ok || ses_wrap(e, "--generate");
}

static bool encode_all(encoder *x, ses_err *e)
{
    const ses_view_request *q = x->q;
    ses_attention_view *v = x->v;
    if (!encode_text(x, q->text, q->pair, &v->source, e)) return false;
    if (!v->source.tokens) return ses_fail(e, SES_EARG, "the text has no tokens");
    if ((q->target && !encode_target(x, e)) || (q->generate && !generate(x, e))) return false;
    return name_tokens(x, &v->source, e) && make_units(x, &v->source, e) &&
           (!v->target.tokens || (name_tokens(x, &v->target, e) && make_units(x, &v->target, e)));
}

static bool check_texts(const ses_view_request *q, const ses_model *m, ses_err *e)
{
    const char *s = q->text;
    while (ses_is_blank(*s)) s++;
    if (!*s) return ses_fail(e, SES_EARG, "the text is empty: give one, or - to read standard input");
    if (q->target && q->generate)
        return ses_fail(e, SES_EUSAGE, "--target and --generate exclude each other: give one of them");
    if (q->target && (!m->desc->encoder_decoder || !m->stack[1].layer))
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "--target: %s has no decoder with an input of its own; write everything into the text",
            ses_model_class_name(m));
    return true;
}

/* The model's limit, or that of its tokenizer if the model has none. */
static int64_t limit_of(const encoder *x)
{
    int64_t model = ses_model_max_tokens(x->call->model), limit = model;
    if (x->config.model_max_length && x->config.model_max_length < limit) limit = x->config.model_max_length;
    return x->q->max_tokens && x->q->max_tokens < limit ? x->q->max_tokens : limit;
}

bool ses_view_encode(ses_attention_view *v, const ses_analysis_call *call, const ses_view_request *q,
                     ses_err *e)
{
    encoder x = { .v = v, .call = call, .q = q };
    if (!check_texts(q, call->model, e)) return false;
    const char *dir = call->model->dir ? call->model->dir : call->model_dir;
    if (!ses_tokenizer_config_read(&x.config, dir, ses_model_type(call->model), ses_model_sets_segments,
                                   call->tokenizer, e))
        return false;
    x.limit = limit_of(&x);
    x.tokens = ses_encode_ctx_new(call->tokenizer, e);
    bool ok = x.tokens && encode_all(&x, e);
    bool segments = ses_model_uses_segments(call->model) && x.config.sets_segments;
    if (!segments) v->source.segment = NULL;
    ses_encode_ctx_free(x.tokens);
    return ok;
}
