/* Runs prompts on a generator: texts of tokens as they are generated, texts of results. */
#include "base/alloc.h"
#include "generation_task.h"
#include "stop_text.h"

/* Text of a sequence that on_token has received: all tokens before `first`, and `sent` bytes of the text
 * after them. */
typedef struct stream_state {
    int64_t first;
    size_t sent;
} stream_state;

/* The run of one request, in its memory. */
struct ses_generation_run {
    ses_pipeline *p; /* decodes texts */
    ses_request *r;
    ses_generator *g;
    int64_t number;
    ses_generation_callbacks callbacks;
    bool decodes_parts;   /* texts of parts of a sequence add up */
    stream_state *stream; /* [num_return_sequences] */
    ses_err error;
};

/* ---- decoding ---- */

/* Ids beyond the tokenizer's vocabulary have no text: embedding tables may have unused rows. */
static ses_string decode(ses_pipeline *p, ses_request *r, const int32_t *id, int64_t n, ses_err *e)
{
    int32_t *known = ses_arena_array(&r->mem, (size_t)n + 1, sizeof *known, e);
    size_t m = 0;
    for (int64_t i = 0; known && i < n; i++)
        if (id[i] < ses_tokenizer_vocab_size(p->target_tokenizer)) known[m++] = id[i];
    return known ? ses_request_decode_target(p, r, known, m, e) : (ses_string){ 0 };
}

/* First generated token to decode: an encoder-decoder's text begins with its decoder's first token. */
static int64_t first_token(const ses_pipeline *p, int64_t prompt_len)
{
    return ses_generation_has_encoder(p) ? 0 : prompt_len;
}

/* The tokenizer's spelling, borrowed from it; n 0: the id is not in its vocabulary. */
static ses_string spelling(const ses_pipeline *p, int32_t id)
{
    size_t n = 0;
    bool known = id >= 0 && id < ses_tokenizer_vocab_size(p->target_tokenizer);
    const char *s = known ? ses_tokenizer_id_to_token(p->target_tokenizer, id, &n) : NULL;
    return (ses_string){ s, s ? n : 0 };
}

/* ---- results ---- */

static bool set_logprob(ses_pipeline *p, ses_request *r, ses_token_logprob *x, int32_t id, float logprob,
                        ses_err *e)
{
    ses_string token = spelling(p, id);
    *x = (ses_token_logprob){ .id = id, .logprob = logprob };
    if (token.p) x->token = ses_request_copy_string(r, token.p, token.n, e);
    return !token.p || x->token.p;
}

/* n tokens with their log-probabilities and, if requested, n_top alternatives each. */
static const ses_token_logprob *copy_logprobs(ses_pipeline *p, ses_request *r, const int32_t *id,
                                              const float *logprob, const ses_top_token *top, int64_t n,
                                              int64_t n_top, ses_err *e)
{
    if (!top) n_top = 0;
    ses_token_logprob *x = ses_arena_array(&r->mem, (size_t)(n * (n_top + 1)) + 1, sizeof *x, e);
    ses_token_logprob *alternative = x ? x + n : NULL;
    for (int64_t i = 0; x && i < n; i++) {
        if (!set_logprob(p, r, &x[i], id[i], logprob[i], e)) return NULL;
        if (n_top && top[i * n_top].id < 0) continue; /* the first token of a prompt */
        x[i].top = n_top ? alternative : NULL, x[i].n_top = (size_t)n_top;
        for (int64_t k = 0; k < n_top; k++, alternative++) {
            const ses_top_token *t = &top[i * n_top + k];
            if (!set_logprob(p, r, alternative, t->id, t->logprob, e)) return NULL;
        }
    }
    return x;
}

static bool keep_logprobs(ses_pipeline *p, ses_request *r, const ses_generated_sequence *from,
                          ses_result_row *row, ses_err *e)
{
    const ses_generation_args *a = r->args;
    int64_t n = from->ids.n - from->prompt_len, n_top = from->n_top;
    if (from->prompt_logprob) {
        row->prompt_logprobs = copy_logprobs(p, r, from->ids.id, from->prompt_logprob, from->prompt_top,
                                             from->prompt_len, n_top, e);
        row->n_prompt_logprobs = (size_t)from->prompt_len;
        if (!row->prompt_logprobs) return false;
    }
    if (!a->logprobs && !n_top) return true;
    row->logprobs =
        copy_logprobs(p, r, from->ids.id + from->prompt_len, from->logprob, from->top, n, n_top, e);
    row->n_logprobs = (size_t)n;
    return row->logprobs != NULL;
}

static bool returns_full_text(const ses_pipeline *p, const ses_request *r)
{
    const ses_generation_args *a = r->args;
    return a->full_text != 0 && !ses_generation_has_encoder(p);
}

/* Keeps the sequences of a prompt as rows of its result. */
static bool keep_sequences(ses_pipeline *p, ses_request *r, const ses_generated *from, ses_err *e)
{
    ses_generation_request *s = r->state;
    s->n = (size_t)from->n, s->cancelled = from->cancelled;
    s->text = ses_arena_array(&r->mem, s->n, sizeof *s->text, e);
    s->end = ses_arena_array(&r->mem, s->n, sizeof *s->end, e);
    if (!s->text || !s->end) return false;
    for (int64_t i = 0; i < from->n; i++) {
        const ses_generated_sequence *x = &from->sequence[i];
        int64_t first = x->ids.n ? first_token(p, x->prompt_len) : 0;
        ses_string text = decode(p, r, x->ids.id + first, x->ids.n - first, e);
        if (text.p && s->hides_stop && x->finish == SES_FINISH_STOP)
            text.n = ses_stop_text_find(s->o, text.p, text.n, 0), ((char *)(uintptr_t)text.p)[text.n] = 0;
        if (text.p && returns_full_text(p, r)) text = ses_request_join_strings(r, s->prompt, text, e);
        if (!text.p) return false;
        s->text[i] = (ses_result_row){ .text = text, .score = x->score };
        s->end[i] = (ses_generation_end){ x->finish, x->ids.n - x->prompt_len };
        if (x->ids.n && !keep_logprobs(p, r, x, &s->text[i], e)) return false;
        int64_t max = s->o->max_new_tokens ? x->prompt_len + s->o->max_new_tokens : s->o->max_length;
        p->stats.context_limited += x->finish == SES_FINISH_LENGTH && x->ids.n < max;
    }
    p->stats.tokens_generated += from->tokens_generated;
    return true;
}

/* ---- a token ---- */

/* Length of the text that clean-up cannot change any more: up to a space followed by at most " n'". */
static size_t final_length(const char *s, size_t n)
{
    for (size_t at = n < 3 ? 0 : n - 3; at < n; at++)
        if (s[at] == ' ') return at;
    return n;
}

/* The text of a sequence that has become final with its last token. An incomplete character waits for its
 * next token; a space waits for the text after it, which clean-up may join to the word before. */
static bool new_text(ses_generation_run *run, const ses_token_event *t, ses_string *piece)
{
    ses_pipeline *p = run->p;
    const ses_generation_request *s = run->r->state;
    stream_state *x = &run->stream[t->sequence];
    int64_t first = x->first ? x->first : first_token(p, t->prompt_len);
    ses_string text = decode(p, run->r, t->id + first, t->n - first, &run->error);
    size_t end = text.n, sent = x->sent;
    if (!text.p) return false;
    while (!t->last && end >= 3 && !memcmp(text.p + end - 3, "\xEF\xBF\xBD", 3)) end -= 3;
    if (!t->last && p->tokenizer_config.clean_up_spaces) end = final_length(text.p, end);
    if (s->hides_stop && !t->last) end = ses_stop_text_final(s->o, text.p, end, sent);
    if (s->hides_stop && t->last && t->finish == SES_FINISH_STOP)
        end = ses_stop_text_find(s->o, text.p, end, sent);
    *piece = (ses_string){ text.p + sent, end > sent ? end - sent : 0 };
    if (end > sent) x->sent = end;
    if (run->decodes_parts && end == text.n) x->first = t->n, x->sent = 0;
    return true;
}

static bool on_token(void *ctx, const ses_token_event *t)
{
    ses_generation_run *run = ctx;
    int32_t id = t->id[t->n - 1];
    ses_generation_token token = { .event = t,
                                   .id = id,
                                   .token = spelling(run->p, id),
                                   .special = ses_tokenizer_is_special(run->p->target_tokenizer, id) };
    ses_mark mark = ses_arena_mark(&run->r->mem);
    bool ok = new_text(run, t, &token.text) && run->callbacks.on_token(run->callbacks.ctx, run->r, &token);
    ses_arena_rewind(&run->r->mem, mark);
    return ok;
}

static void on_finish(void *ctx, int64_t prompt, ses_generated *out, const ses_err *why)
{
    ses_generation_run *run = ctx;
    ses_request *r = run->r;
    (void)prompt;
    if (why && run->error.code == SES_OK) run->error = *why;
    if (run->error.code == SES_OK) (void)keep_sequences(run->p, r, out, &run->error);
    ses_generated_free(out);
    if (run->error.code != SES_OK) r->error = &run->error;
    ((ses_generation_request *)r->state)->run = NULL;
    run->callbacks.on_finish(run->callbacks.ctx, r);
}

/* ---- one request ---- */

bool ses_generation_task_start(ses_pipeline *p, ses_request *r, ses_generator *g,
                               const ses_generation_callbacks *callbacks, ses_err *e)
{
    ses_generation_request *s = r->state;
    const ses_seq *q = r->seq;
    ses_generation_run *run = ses_arena_array(&r->mem, 1, sizeof *run, e);
    stream_state *stream = ses_arena_array(&r->mem, (size_t)s->o->num_return_sequences, sizeof *stream, e);
    if (!run || !stream) return false;
    *run = (ses_generation_run){ .p = p, .r = r, .g = g, .callbacks = *callbacks, .stream = stream };
    run->decodes_parts =
        ses_tokenizer_traits_of(p->target_tokenizer).decodes_bytes && !p->tokenizer_config.clean_up_spaces;
    ses_prompt prompt = { .ids = { q->id, (int64_t)q->n } };
    ses_generator_callbacks own = { callbacks->on_token ? on_token : NULL, on_finish, run };
    run->number = ses_generator_add(g, &prompt, s->o, &own, e);
    if (run->number >= 0) s->run = run;
    return run->number >= 0;
}

bool ses_generation_task_cancel(ses_request *r)
{
    const ses_generation_run *run = ((const ses_generation_request *)r->state)->run;
    return run && ses_generator_cancel(run->g, run->number);
}

/* ---- a batch of a pipeline ---- */

enum { MAX_SEQUENCES = 64 };

static int64_t count_sequences(const ses_request *r)
{
    const ses_generate_options *o = ((const ses_generation_request *)r->state)->o;
    return o->num_beams > 1 ? o->num_beams : o->num_return_sequences;
}

static ses_generator *new_generator(ses_pipeline *p, ses_request *const *request, size_t n, ses_err *e)
{
    int64_t all = 0, most = 1;
    for (size_t i = 0; i < n; i++) {
        int64_t one = count_sequences(request[i]);
        all += one, most = one > most ? one : most;
    }
    int64_t max = all < MAX_SEQUENCES ? all : MAX_SEQUENCES;
    ses_generator *g = ses_generator_new(p->model, 0, max > most ? max : most, e);
    if (!g) return NULL;
    ses_generator_allow_large_prompts(g);
    ses_generator_set_prefill_tokens(g, INT64_MAX);
    return g;
}

typedef struct batch {
    ses_pipeline *p;
    size_t streamed; /* bytes of generated text that the stream callback has received */
    bool stop;       /* a request failed, and no callback handles it */
} batch;

static bool stream_token(void *ctx, ses_request *r, const ses_generation_token *t)
{
    batch *b = ctx;
    const ses_pipeline_settings *set = &b->p->settings;
    (void)r;
    b->streamed += t->text.n;
    return !t->text.n || set->on_stream(set->on_stream_ctx, t->text.p, t->text.n);
}

static void request_finished(void *ctx, ses_request *r)
{
    batch *b = ctx;
    b->stop |= r->error && !b->p->settings.on_item_error;
}

static bool may_stream(const ses_pipeline *p, const ses_request *r)
{
    const ses_generation_args *a = r->args;
    const ses_generate_options *o = ((const ses_generation_request *)r->state)->o;
    return p->settings.on_stream && !a->logprobs && !o->top_logprobs && !o->prompt_logprobs &&
           o->num_beams == 1 && o->num_return_sequences == 1;
}

/* Streams the end of a text that the stream callback has stopped. */
static bool end_stream(const batch *b, ses_request *r, ses_err *e)
{
    const ses_generation_request *s = r->state;
    const ses_pipeline_settings *set = &b->p->settings;
    ses_string text = s->text->text;
    size_t at = b->streamed + (returns_full_text(b->p, r) ? s->prompt.n : 0);
    r->streamed = true;
    return at >= text.n || set->on_stream(set->on_stream_ctx, text.p + at, text.n - at) ||
           ses_fail(e, SES_EIO, "the stream callback has stopped the generation");
}

/* Starts all requests and steps until they have finished. */
static bool run_requests(batch *b, ses_generator *g, ses_request *const *request, size_t n, bool stream,
                         ses_err *e)
{
    ses_generation_callbacks callbacks = { stream ? stream_token : NULL, request_finished, b };
    for (size_t i = 0; i < n; i++)
        if (!ses_generation_task_start(b->p, request[i], g, &callbacks, e) &&
            !ses_request_fail(b->p, request[i], e))
            return false;
    while (!b->stop && ses_pipeline_check_stop(b->p, e) && ses_generator_step(g)) continue;
    return e->code == SES_OK;
}

bool ses_generation_task_run(ses_pipeline *p, ses_request *const *request, ses_seq *const *seq, size_t n,
                             ses_err *e)
{
    (void)seq; /* each request has one */
    batch b = { .p = p };
    ses_err local = { 0 };
    if (!e) e = &local;
    bool stream = n == 1 && may_stream(p, request[0]);
    const ses_generation_request *s = request[0]->state;
    ses_generator *g = new_generator(p, request, n, e);
    if (!g) return false;
    if (stream && returns_full_text(p, request[0]))
        (void)p->settings.on_stream(p->settings.on_stream_ctx, s->prompt.p, s->prompt.n);
    bool ok = run_requests(&b, g, request, n, stream, e);
    ses_generator_free(g);
    for (size_t i = 0; ok && i < n; i++) {
        ses_request *r = request[i];
        if (!r->error) continue;
        *e = *r->error, r->error = NULL;
        ok = ses_request_fail(p, r, e);
    }
    return ok && (!stream || request[0]->error || end_stream(&b, request[0], e));
}
