/* Tasks that generate text: makes prompts, generates texts for many prompts at a time, decodes them. */
#include "generation_task.h"

#include "base/alloc.h"
#include "text/language_token.h"

/* text-generation never truncates prompts and, as in transformers, always cleans up spaces. */
bool ses_generation_task_open(ses_pipeline *p, ses_err *e)
{
    const ses_generation_args *a = p->settings.args;
    p->settings.stream = a->stream;
    p->settings.never_truncates = !ses_generation_has_encoder(p);
    if (p->settings.never_truncates)
        p->tokenizer_config.clean_up_spaces = p->tokenizer_config.may_clean_up_spaces;
    return ses_generation_settings_read(p, e);
}

void ses_generation_task_close(ses_pipeline *p)
{
    ses_generation_task *task = p->state;
    ses_generation_config_free(task->config);
    ses_prompt_template_free(task->template);
}

/* ---- prompts ---- */

/* An empty prompt is the BOS token. */
static ses_seq *add_bos(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const ses_generation_task *task = p->state;
    int32_t bos = task->o.bos >= 0 ? task->o.bos : p->tokenizer_config.role[SES_ROLE_BOS], word_id = -1;
    int8_t sequence_id = -1;
    uint8_t one = 1, zero = 0;
    ses_offset offset = { 0, 0 };
    ses_encoding x = { 1, &bos, &offset, &offset, &word_id, &sequence_id, &zero, &one, &one };
    if (bos >= 0) return ses_request_add_sequence(r, &x, e);
    ses_fail(e, SES_EARG, "the prompt is empty, and the model has no BOS token to begin with");
    return NULL;
}

/* A decoder's prompt is never truncated: one that is too long is an error. */
static ses_seq *encode_whole(ses_pipeline *p, ses_request *r, const ses_input *in, ses_err *e)
{
    if (!ses_encode(p->tokens, in, NULL, e)) return NULL;
    const ses_encoding *x = ses_encode_ctx_result(p->tokens);
    int64_t max = ses_model_max_tokens(p->model);
    if ((int64_t)x->n <= max) return x->n ? ses_request_add_sequence(r, x, e) : add_bos(p, r, e);
    ses_fail(e, SES_EARG,
             "the prompt has %lld tokens: the model accepts %lld, prompt and generated text together",
             (long long)x->n, (long long)max);
    return NULL;
}

static bool encode_prompt(ses_pipeline *p, ses_request *r, ses_string text, ses_err *e)
{
    const ses_generation_task *task = p->state;
    const ses_generate_options *o = ((const ses_generation_request *)r->state)->o;
    bool encoder = ses_generation_has_encoder(p);
    ses_input in = { .text = text };
    ses_seq *q =
        encoder ? ses_request_encode(p, r, &in, SES_TRUNCATE_LONGEST_FIRST, e) : encode_whole(p, r, &in, e);
    if (!q) return false;
    if (!encoder && !o->max_new_tokens && (int64_t)q->n >= o->max_length)
        return ses_fail(
            e, SES_EARG,
            "the prompt has %lld tokens and max_length is %lld: there is nothing left to generate",
            (long long)q->n, (long long)o->max_length);
    return task->src_lang < 0 ||
           ses_language_token_replace(&p->tokenizer_config, task->src_lang, q->special_mask, q->id, q->n,
                                      e) ||
           ses_wrap(e, "--src-lang");
}

/* The pipeline's options, or a copy with the item's settings applied. */
static const ses_generate_options *item_options(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const ses_generation_task *task = p->state;
    if (r->args == p->settings.args) return &task->o;
    ses_generate_options *o = ses_arena_array(&r->mem, 1, sizeof *o, e);
    if (!o) return NULL;
    *o = task->o;
    ses_generation_settings_apply(r->args, o);
    return o;
}

bool ses_generation_task_encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const ses_generation_args *a = r->args;
    const ses_generation_task *task = p->state;
    ses_generation_request *s = r->state;
    ses_string text = r->item.text;
    if (!(s->o = item_options(p, r, e))) return false;
    if (task->template) {
        size_t n = 0;
        char *filled = ses_prompt_template_fill(task->template, text, r->item.pair, a->shots, &n, e);
        text = filled ? ses_request_copy_string(r, filled, n, e) : (ses_string){ 0 };
        ses_free(filled);
        if (!text.p) return ses_wrap(e, "%s", a->template);
    }
    s->prompt = text;
    if (task->prefix.n && !(text = ses_request_join_strings(r, task->prefix, text, e)).p) return false;
    return encode_prompt(p, r, text, e);
}

/* ---- decoding ---- */

/* Ids beyond the tokenizer's vocabulary have no text: embedding tables may have unused rows. */
static ses_string decode(ses_pipeline *p, ses_request *r, const int32_t *id, int64_t n, ses_err *e)
{
    int32_t *known = ses_arena_array(&r->mem, (size_t)n + 1, sizeof *known, e);
    size_t m = 0;
    for (int64_t i = 0; known && i < n; i++)
        if (id[i] < ses_tokenizer_vocab_size(p->tokenizer)) known[m++] = id[i];
    return known ? ses_request_decode(p, r, known, m, false, e) : (ses_string){ 0 };
}

/* First generated token to decode: an encoder-decoder's text begins with its decoder's first token. */
static int64_t first_token(const ses_pipeline *p, int64_t prompt_len)
{
    return ses_generation_has_encoder(p) ? 0 : prompt_len;
}

static bool copy_logprobs(ses_pipeline *p, ses_request *r, const ses_generated_sequence *from,
                          ses_result_row *row, ses_err *e)
{
    size_t n = (size_t)(from->ids.n - from->prompt_len);
    ses_token_logprob *x = ses_arena_array(&r->mem, n + 1, sizeof *x, e);
    for (size_t i = 0; x && i < n; i++) {
        size_t len = 0;
        x[i].id = from->ids.id[from->prompt_len + (int64_t)i], x[i].logprob = from->logprob[i];
        bool known = x[i].id < ses_tokenizer_vocab_size(p->tokenizer);
        const char *s = known ? ses_tokenizer_id_to_token(p->tokenizer, x[i].id, &len) : NULL;
        if (s) x[i].token = ses_request_copy_string(r, s, len, e);
        if (s && !x[i].token.p) return false;
    }
    row->logprobs = x, row->n_logprobs = x ? n : 0;
    return x != NULL;
}

static bool returns_full_text(const ses_pipeline *p, const ses_request *r)
{
    const ses_generation_args *a = r->args;
    return a->full_text != 0 && !ses_generation_has_encoder(p);
}

/* Keeps the sequences of one prompt as rows of its result. */
static bool keep_sequences(ses_pipeline *p, ses_request *r, const ses_generated_sequence *from, int64_t n,
                           ses_err *e)
{
    const ses_generation_args *a = r->args;
    ses_generation_request *s = r->state;
    s->text = ses_arena_array(&r->mem, (size_t)n, sizeof *s->text, e);
    s->n = (size_t)n;
    for (int64_t i = 0; s->text && i < n; i++) {
        int64_t first = first_token(p, from[i].prompt_len);
        ses_string text = decode(p, r, from[i].ids.id + first, from[i].ids.n - first, e);
        if (text.p && returns_full_text(p, r)) text = ses_request_join_strings(r, s->prompt, text, e);
        if (!text.p) return false;
        s->text[i] = (ses_result_row){ .text = text, .score = from[i].score };
        if (a->logprobs && !copy_logprobs(p, r, &from[i], &s->text[i], e)) return false;
        int64_t max = s->o->max_new_tokens ? from[i].prompt_len + s->o->max_new_tokens : s->o->max_length;
        p->stats.context_limited += from[i].finish == SES_FINISH_LENGTH && from[i].ids.n < max;
    }
    return s->text != NULL;
}

/* ---- streaming ---- */

/* Passes new text to the stream callback after each token. An incomplete character waits for its next
 * token; a space waits for the text after it, which clean-up may join to the word before. */
typedef struct text_stream {
    ses_pipeline *p;
    ses_request *r;
    size_t sent; /* bytes */
    ses_err *e;
} text_stream;

static bool send_bytes(const text_stream *s, const char *text, size_t n)
{
    const ses_pipeline_settings *set = &s->p->settings;
    return set->on_stream(set->on_stream_ctx, text, n);
}

/* Length of the text that clean-up cannot change any more: up to a space followed by at most " n'". */
static size_t final_length(const char *s, size_t n)
{
    for (size_t at = n < 3 ? 0 : n - 3; at < n; at++)
        if (s[at] == ' ') return at;
    return n;
}

static bool send_new_text(text_stream *s, const int32_t *id, int64_t n, bool last)
{
    ses_mark mark = ses_arena_mark(&s->r->mem);
    ses_string text = decode(s->p, s->r, id, n, s->e);
    size_t end = text.n;
    if (!text.p) return false;
    while (!last && end >= 3 && !memcmp(text.p + end - 3, "\xEF\xBF\xBD", 3)) end -= 3;
    if (!last && s->p->tokenizer_config.clean_up_spaces) end = final_length(text.p, end);
    bool ok = end <= s->sent || send_bytes(s, text.p + s->sent, end - s->sent);
    if (end > s->sent) s->sent = end;
    ses_arena_rewind(&s->r->mem, mark);
    return ok;
}

static bool on_token(void *ctx, const ses_token_event *t)
{
    text_stream *s = ctx;
    int64_t first = first_token(s->p, t->prompt_len);
    return send_new_text(s, t->id + first, t->n - first, false);
}

/* ---- generation ---- */

static bool may_stream(const ses_pipeline *p, const ses_request *r)
{
    const ses_generation_args *a = r->args;
    const ses_generate_options *o = ((const ses_generation_request *)r->state)->o;
    return p->settings.on_stream && !a->logprobs && o->num_beams == 1 && o->num_return_sequences == 1;
}

static bool run_streamed(ses_pipeline *p, ses_request *r, const ses_prompt *prompt, ses_generated **out,
                         ses_err *e)
{
    const ses_generation_request *state = r->state;
    ses_generate_options o = *state->o;
    ses_err stream_error = { 0 };
    text_stream s = { .p = p, .r = r, .e = &stream_error };
    o.on_token = on_token, o.ctx = &s;
    if (returns_full_text(p, r)) send_bytes(&s, state->prompt.p, state->prompt.n);
    *out = ses_generate(p->model, prompt, 1, &o, e);
    if (!*out) return false;
    if (stream_error.code != SES_OK) return ses_fail(e, stream_error.code, "%s", stream_error.msg);
    const ses_generated_sequence *text = (*out)->sequence;
    int64_t first = first_token(p, text->prompt_len);
    r->streamed = true;
    return send_new_text(&s, text->ids.id + first, text->ids.n - first, true) ||
           ses_fail(e, SES_EIO, "the stream callback has stopped the generation");
}

/* Requests with the same options. */
static bool run_group(ses_pipeline *p, ses_request *const *request, ses_seq *const *seq, size_t n,
                      bool stream, ses_err *e)
{
    const ses_generate_options *o = ((const ses_generation_request *)request[0]->state)->o;
    ses_generated *out = NULL;
    ses_prompt *prompt = ses_alloc_array(n, sizeof *prompt, e);
    if (!prompt) return false;
    for (size_t i = 0; i < n; i++) prompt[i].ids = (ses_ids){ seq[i]->id, (int64_t)seq[i]->n };
    bool ok = stream ? run_streamed(p, request[0], prompt, &out, e)
                     : (out = ses_generate(p->model, prompt, (int64_t)n, o, e)) != NULL;
    ses_free(prompt);
    int64_t each = o->num_return_sequences;
    for (size_t i = 0; ok && i < n; i++)
        ok = keep_sequences(p, request[i], out->sequence + (int64_t)i * each, each, e);
    if (out) p->stats.tokens_generated += out->tokens_generated;
    ses_generated_free(out);
    return ok;
}

/* Items with settings of their own run one by one, the others together. */
bool ses_generation_task_run(ses_pipeline *p, ses_request *const *request, ses_seq *const *seq, size_t n,
                             ses_err *e)
{
    bool stream = n == 1 && may_stream(p, request[0]);
    for (size_t i = 0, m; i < n; i += m) {
        m = 1;
        bool shared = request[i]->args == p->settings.args;
        while (shared && i + m < n && request[i + m]->args == p->settings.args) m++;
        if (!run_group(p, request + i, seq + i, m, stream, e)) return false;
    }
    return true;
}

bool ses_generation_task_finish(ses_request *r, ses_result *out, const ses_result_schema *schema, ses_err *e)
{
    const ses_generation_request *s = r->state;
    for (size_t i = 0; i < s->n; i++) {
        ses_result_row *row = ses_request_add_row(r, e);
        if (!row) return false;
        *row = s->text[i];
    }
    out->schema = schema;
    return true;
}
