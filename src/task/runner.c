/* Runs items through a pipeline. Items are encoded and queued as they are fed; their sequences run in
 * batches of about batch_tokens tokens, without padding; results are reported in the order of the items.
 * On a CPU the outputs of a sequence do not depend on its batch, so neither do results.
 *
 * The life of a request: feed (copy, encode, queue) -> run_batch (forward pass) -> collect_batch (outputs
 * to the request) -> report_finished (result to the callback). */
#include "base/alloc.h"
#include "base/thread_pool.h"
#include "nn/chars/char_word_cache.h"
#include "nn/decoder_input.h"
#include "pipeline_impl.h"
#include "prepared.h"
#include "tensor/device_impl.h"

enum { REQUEST_BLOCK = 4096 };

/* ---- requests ---- */

static void recycle(ses_pipeline_runner *runner, ses_request *r)
{
    if (!r) return;
    r->next = runner->free_list;
    runner->free_list = r;
}

static ses_request *new_request(ses_pipeline *p, ses_err *e)
{
    ses_pipeline_runner *runner = &p->runner;
    ses_request *r = runner->free_list;
    if (r)
        runner->free_list = r->next;
    else
        r = ses_alloc(sizeof *r, e);
    if (!r) return NULL;
    ses_arena mem = r->mem; /* its blocks are used again */
    *r = (ses_request){ .mem = mem };
    r->mem.min_block = REQUEST_BLOCK;
    ses_arena_reset(&r->mem);
    r->state = ses_arena_array(&r->mem, 1, p->task->request_size, e);
    if (r->state) return r;
    recycle(runner, r);
    return NULL;
}

static void free_requests(ses_request *r)
{
    while (r) {
        ses_request *next = r->next;
        ses_arena_free(&r->mem);
        ses_free(r);
        r = next;
    }
}

void ses_pipeline_runner_free(ses_pipeline *p)
{
    ses_pipeline_runner *runner = &p->runner;
    ses_async_free(runner->async);
    free_requests(runner->first);
    free_requests(runner->free_list);
    free_requests(runner->result_request);
    ses_tape_free(runner->tape);
    ses_word_cache_free(runner->words);
    ses_arena_free(&runner->mem);
    ses_free(runner->host_copy);
    ses_free(runner->rows);
}

/* After an error the queue is dropped, so that the pipeline can be used again. Returns false. */
static bool drop_queue(ses_pipeline *p)
{
    ses_pipeline_runner *runner = &p->runner;
    if (runner->in_flight && p->dev->is_host) (void)ses_async_wait(runner->async, NULL);
    runner->in_flight = false;
    if (runner->last) {
        runner->last->next = runner->free_list;
        runner->free_list = runner->first;
    }
    runner->first = runner->last = runner->next_request = NULL;
    runner->next_seq = 0;
    runner->waiting_tokens = 0;
    return false;
}

/* Records an error that concerns one item only, so that the others can continue. Returns false if the error
 * stops the work: nothing handles failed items, or the error is not the item's. */
bool ses_request_fail(ses_pipeline *p, ses_request *r, ses_err *e)
{
    if (!p->settings.on_item_error || !e || e->code == SES_OK || e->code == SES_EIO) return false;
    if (!r->error) r->error = ses_arena_array(&r->mem, 1, sizeof *r->error, e);
    if (!r->error) return false;
    *r->error = *e;
    *e = (ses_err){ 0 };
    return true;
}

/* ---- choosing and filling a batch ---- */

/* An item may have no sequences at all. */
static ses_request *skip_without_sequences(ses_request *r)
{
    while (r && !r->n_seqs) r = r->next;
    return r;
}

/* The next sequences of the queue up to batch_tokens, at least one. */
static bool choose_batch(ses_pipeline *p, ses_err *e)
{
    ses_pipeline_runner *runner = &p->runner;
    ses_seq_group *b = &runner->batch;
    ses_arena_reset(&runner->mem);
    for (int pass = 0; pass < 2; pass++) { /* count, then list */
        ses_request *r = runner->next_request;
        size_t i = runner->next_seq, count = 0;
        int64_t tokens = 0;
        while (r && (!count || tokens + (int64_t)r->seq[i].n <= p->settings.batch_tokens)) {
            if (pass) b->request[count] = r, b->seq[count] = &r->seq[i];
            tokens += (int64_t)r->seq[i].n;
            count++;
            if (++i == r->n_seqs) r = skip_without_sequences(r->next), i = 0;
        }
        b->n = count, b->tokens = tokens;
        if (pass) {
            runner->next_request = r, runner->next_seq = i;
            break;
        }
        b->request = ses_arena_array(&runner->mem, count, sizeof(ses_request *), e);
        b->seq = ses_arena_array(&runner->mem, count, sizeof(ses_seq *), e);
        if (!b->request || !b->seq) return false;
    }
    runner->waiting_tokens -= b->tokens;
    return true;
}

/* Masks of answers and CLS tokens, if the task has set them: in all sequences or in none. */
static bool fill_answers(ses_pipeline *p, const ses_seq_group *b, ses_batch *out, ses_err *e)
{
    if (!b->seq[0]->answer_mask) return true;
    int32_t *mask = ses_arena_array(&p->runner.mem, (size_t)b->tokens, sizeof *mask, e);
    int32_t *cls = ses_arena_array(&p->runner.mem, b->n, sizeof *cls, e);
    if (!mask || !cls) return false;
    for (size_t s = 0, at = 0; s < b->n; at += b->seq[s++]->n) {
        memcpy(mask + at, b->seq[s]->answer_mask, b->seq[s]->n * sizeof *mask);
        cls[s] = b->seq[s]->cls;
    }
    out->answer_mask = mask, out->choice_positions = cls;
    return true;
}

/* Vectors beside tokens, if the task has set them: in all sequences or in none. */
static bool fill_modal(ses_pipeline *p, const ses_seq_group *b, ses_batch *out, ses_err *e)
{
    int64_t width = p->model->stack[0].c->embed.modal_width, n = 0, at = 0;
    if (!b->seq[0]->modal_rows) return true;
    for (size_t s = 0; s < b->n; s++) n += b->seq[s]->n_modal;
    int32_t *row = ses_arena_array(&p->runner.mem, (size_t)b->tokens, sizeof *row, e);
    int32_t *position = ses_arena_array(&p->runner.mem, (size_t)b->tokens, sizeof *position, e);
    ses_real *x = ses_arena_array(&p->runner.mem, (size_t)(n * width), sizeof *x, e);
    if (!row || !position || !x) return false;
    out->modal_rows = row, out->positions = position, out->modal_vectors = x;
    for (size_t s = 0; s < b->n; s++) {
        const ses_seq *q = b->seq[s];
        for (size_t i = 0; i < q->n; i++, row++)
            *row = q->modal_rows[i] < 0 ? -1 : (int32_t)(at + q->modal_rows[i]);
        memcpy(position, q->positions, q->n * sizeof *position), position += q->n;
        for (int64_t i = 0; i < q->n_modal * width; i++) *x++ = (ses_real)q->modal_vectors[i];
        at += q->n_modal;
    }
    out->n_modal = n;
    return true;
}

/* Words outside the vocabulary; id [tokens] gets their ids. */
static bool fill_words(ses_pipeline *p, const ses_seq_group *b, int32_t *id, ses_batch *out, ses_err *e)
{
    enum { CACHE_BYTES = 256 << 20 };
    const ses_config *c = p->model->stack[0].c;
    int64_t n = 0, per_word = c->chars.per_word;
    if (!per_word) return true;
    if (!p->runner.words) p->runner.words = ses_word_cache_new(CACHE_BYTES, e);
    if (!p->runner.words) return false;
    out->word_cache = p->runner.words;
    for (size_t s = 0; s < b->n; s++) n += b->seq[s]->n_extra_words;
    int16_t *chars = ses_arena_array(&p->runner.mem, (size_t)(n * per_word), sizeof *chars, e);
    if (!chars) return false;
    out->extra_word_chars = chars;
    out->n_extra_words = n;
    int64_t first = c->vocab;
    for (size_t s = 0; s < b->n; id += b->seq[s++]->n) {
        const ses_seq *q = b->seq[s];
        for (size_t i = 0; q->extra_word && i < q->n; i++)
            if (q->extra_word[i] >= 0) id[i] = (int32_t)(first + q->extra_word[i]);
        size_t count = (size_t)(q->n_extra_words * per_word);
        if (count) memcpy(chars, q->extra_word_chars, count * sizeof *chars), chars += count;
        first += q->n_extra_words;
    }
    return true;
}

/* Bytes of words, if the task has set them: in all sequences or in none. */
static bool fill_chars(ses_pipeline *p, const ses_seq_group *b, ses_batch *out, ses_err *e)
{
    size_t n = 0;
    if (!b->seq[0]->char_cu) return true;
    for (size_t s = 0; s < b->n; s++) n += (size_t)b->seq[s]->char_cu[b->seq[s]->n];
    int32_t *chars = ses_arena_array(&p->runner.mem, n + 1, sizeof *chars, e);
    int32_t *cu = ses_arena_array(&p->runner.mem, (size_t)b->tokens + 1, sizeof *cu, e);
    if (!chars || !cu) return false;
    out->word_chars = chars, out->word_char_cu = cu;
    for (size_t s = 0; s < b->n; s++) {
        const ses_seq *q = b->seq[s];
        for (size_t i = 0; i < q->n; i++, cu++) cu[1] = cu[0] + q->char_cu[i + 1] - q->char_cu[i];
        memcpy(chars, q->chars, (size_t)q->char_cu[q->n] * sizeof *chars);
        chars += q->char_cu[q->n];
    }
    return true;
}

/* Concatenates the sequences; cu_seqlens[s] is where sequence s begins. */
static bool fill_batch(ses_pipeline *p, const ses_seq_group *b, ses_batch *out, ses_output_request *request,
                       ses_err *e)
{
    ses_pipeline_runner *runner = &p->runner;
    const ses_config *c = &p->model->c;
    bool segments =
        ses_model_uses_segments(p->model) && (p->tokenizer_config.sets_segments || b->seq[0]->modal_rows);
    bool decoder = p->model->stack[1].layer && !c->decoder.input_from_source;
    size_t n_rows = 0;
    for (size_t s = 0; s < b->n; s++) n_rows += b->seq[s]->n_rows;
    int32_t *cu_seqlens = ses_arena_array(&runner->mem, b->n + 1, sizeof *cu_seqlens, e);
    int32_t *id = ses_arena_array(&runner->mem, (size_t)b->tokens, sizeof *id, e);
    int32_t *type_id = ses_arena_array(&runner->mem, (size_t)b->tokens, sizeof *type_id, e);
    int32_t *decoder_id = ses_arena_array(&runner->mem, (size_t)b->tokens, sizeof *decoder_id, e);
    int32_t *row = ses_arena_array(&runner->mem, n_rows, sizeof *row, e);
    if (!cu_seqlens || !id || !type_id || !decoder_id || !row) return false;
    for (size_t s = 0, at = 0, k = 0; s < b->n; s++) {
        const ses_seq *q = b->seq[s];
        memcpy(id + at, q->id, q->n * sizeof *id);
        memcpy(type_id + at, q->type_id, q->n * sizeof *type_id);
        if (decoder && !ses_decoder_shift(c, q->id, q->n, decoder_id + at, e)) return false;
        for (size_t i = 0; i < q->n_rows; i++) row[k++] = (int32_t)at + q->rows[i];
        at += q->n;
        cu_seqlens[s + 1] = (int32_t)at;
    }
    runner->cu_seqlens = cu_seqlens;
    *out = (ses_batch){ .seqs = (int64_t)b->n, .tokens = b->tokens, .cu_seqlens = cu_seqlens, .ids = id };
    if (segments) out->segments = type_id;
    if (decoder) out->target_cu_seqlens = cu_seqlens, out->target_ids = decoder_id;
    *request = p->settings.outputs;
    if (n_rows) request->rows = row, request->n_rows = (int64_t)n_rows;
    return fill_answers(p, b, out, e) && fill_modal(p, b, out, e) && fill_words(p, b, id, out, e) &&
           fill_chars(p, b, out, e);
}

/* ---- running a batch ---- */

/* On a host the forward pass has been computed when this returns; a GPU may still be computing it. */
static bool forward(ses_pipeline *p, const ses_seq_group *b, ses_err *e)
{
    ses_pipeline_runner *runner = &p->runner;
    ses_batch batch;
    ses_output_request request;
    if (!fill_batch(p, b, &batch, &request, e)) return false;
    ses_tape_reset(runner->tape, NULL);
    runner->host_copy_of = NULL;
    return p->task->forward
               ? p->task->forward(p, &batch, &request, &runner->outputs, e)
               : ses_model_forward(p->model, runner->tape, &batch, &request, &runner->outputs, e);
}

/* Hands each sequence's outputs to its request. */
static bool collect_batch(ses_pipeline *p, const ses_seq_group *b, ses_err *e)
{
    ses_pipeline_runner *runner = &p->runner;
    runner->row_index = 0;
    for (size_t s = 0; s < b->n; s++) {
        ses_request *r = b->request[s];
        runner->seq_index = (int64_t)s;
        if (!r->error && !p->task->collect(p, r, b->seq[s], e) && !ses_request_fail(p, r, e)) return false;
        runner->row_index += (int64_t)b->seq[s]->n_rows;
    }
    return true;
}

/* The only item of a batch without outputs or an error; NULL: there are several. */
static ses_request *only_unfinished(const ses_seq_group *b)
{
    ses_request *only = NULL;
    for (size_t s = 0; s < b->n; s++) {
        ses_request *r = b->request[s];
        if (r->error || r->has_outputs || r == only) continue;
        if (only) return NULL;
        only = r;
    }
    return only;
}

/* A batch that failed as a whole runs again item by item, to find the item that fails. Items that run_batch
 * had finished do not run again. A single unfinished item is the one that fails. */
static bool run_one_by_one(ses_pipeline *p, const ses_seq_group *b, ses_err *e)
{
    if (!p->settings.on_item_error || !e || e->code == SES_OK || e->code == SES_EIO) return false;
    ses_request *only = only_unfinished(b);
    if (only) return ses_request_fail(p, only, e);
    *e = (ses_err){ 0 };
    for (size_t s = 0, n; s < b->n; s += n) {
        ses_request *r = b->request[s];
        ses_seq_group one = { .request = b->request + s, .seq = b->seq + s };
        for (n = 0; s + n < b->n && b->request[s + n] == r; n++) one.tokens += (int64_t)b->seq[s + n]->n;
        one.n = n;
        if (r->error || r->has_outputs) continue;
        bool ok = p->task->run_batch ? p->task->run_batch(p, one.request, one.seq, one.n, e)
                                     : forward(p, &one, e) && collect_batch(p, &one, e);
        if (!ok && !ses_request_fail(p, r, e)) return false;
    }
    return true;
}

/* forward_ok: the batch has been computed. */
static bool finish_batch(ses_pipeline *p, bool forward_ok, ses_err *e)
{
    const ses_seq_group *b = &p->runner.batch;
    if (!forward_ok ? !run_one_by_one(p, b, e) : !p->task->run_batch && !collect_batch(p, b, e)) return false;
    for (size_t s = 0; s < b->n; s++) b->request[s]->collected++;
    p->stats.batches++;
    p->stats.sequences += (int64_t)b->n;
    p->stats.tokens_read += b->tokens;
    return true;
}

/* ---- results ---- */

static bool finish_request(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    *out = (ses_result){
        .item = &r->item, .groups = 1, .tokens = r->tokens, .truncated = r->truncated, .streamed = r->streamed
    };
    if (!p->task->finish(p, r, out, e)) return false;
    out->row = r->row;
    out->n = r->n_rows;
    p->stats.items++;
    p->stats.truncated += r->truncated > 0;
    p->stats.shortened_words += r->shortened_words;
    return true;
}

/* Reports the result of a request, or its error. */
static bool report(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const ses_pipeline_settings *s = &p->settings;
    ses_result *result = &p->runner.result;
    if (!r->error && !finish_request(p, r, result, e) && !ses_request_fail(p, r, e)) return false;
    if (!r->error) return !s->on_result || s->on_result(s->on_result_ctx, result, e);
    p->stats.failed++;
    return s->on_item_error(s->on_item_error_ctx, &r->item, r->error, e);
}

/* Reports the requests at the front of the queue whose sequences have all been collected. */
static bool report_finished(ses_pipeline *p, ses_err *e)
{
    ses_pipeline_runner *runner = &p->runner;
    while (runner->first && runner->first != runner->next_request &&
           runner->first->collected == runner->first->n_seqs) {
        ses_request *r = runner->first;
        if (!report(p, r, e)) return false;
        runner->first = r->next;
        if (!runner->first) runner->last = NULL;
        if (p->settings.on_result) {
            recycle(runner, r);
        } else { /* ses_pipeline_run returns a result that borrows from the request */
            recycle(runner, runner->result_request);
            r->next = NULL;
            runner->result_request = r;
        }
    }
    return true;
}

/* ---- batches in flight: computed while the next items are fed and tokenized ---- */

static bool forward_async(void *ctx, ses_err *e)
{
    ses_pipeline *p = ctx;
    return forward(p, &p->runner.batch, e);
}

/* A host needs a thread for it, which pays off if the device has several. A GPU computes by itself. */
static bool can_run_async(ses_pipeline *p)
{
    ses_pipeline_runner *runner = &p->runner;
    if (!p->dev->is_host || p->task->run_batch) return false;
    if (!runner->async && ses_thread_pool_size(p->dev->exec.pool) > 1) runner->async = ses_async_new(NULL);
    return runner->async != NULL;
}

static bool wait_in_flight(ses_pipeline *p, ses_err *e)
{
    ses_pipeline_runner *runner = &p->runner;
    if (!runner->in_flight) return true;
    runner->in_flight = false;
    return finish_batch(p, !p->dev->is_host || ses_async_wait(runner->async, e), e);
}

/* more_items: others may follow, so the batch may stay in flight; its outputs are collected by the next
 * call. */
static bool run_batch(ses_pipeline *p, bool more_items, ses_err *e)
{
    ses_pipeline_runner *runner = &p->runner;
    ses_seq_group *b = &runner->batch;
    if (!ses_pipeline_check_stop(p, e) || !wait_in_flight(p, e) || !choose_batch(p, e)) return false;
    if (more_items && can_run_async(p)) {
        ses_async_start(runner->async, forward_async, p);
        runner->in_flight = true;
    } else if (p->task->run_batch) {
        if (!finish_batch(p, p->task->run_batch(p, b->request, b->seq, b->n, e), e)) return false;
    } else {
        bool ok = forward(p, b, e);
        runner->in_flight = ok && !p->dev->is_host;
        if (!runner->in_flight && !finish_batch(p, ok, e)) return false;
    }
    return report_finished(p, e);
}

/* ---- prepared requests ---- */

static ses_request *prepare(ses_pipeline *p, const ses_item *item, bool *ok, ses_err *e)
{
    ses_request *r = new_request(p, e);
    if (r)
        *ok = ses_request_copy_item(r, item, e) && ses_request_apply_settings(p, r, e) &&
              p->task->encode(p, r, e);
    return r;
}

ses_request *ses_request_prepare(ses_pipeline *p, const ses_item *item, ses_err *e)
{
    bool ok = false;
    ses_request *r = prepare(p, item, &ok, e);
    if (ok || !r) return r;
    ses_request_free(r);
    return NULL;
}

void ses_request_free(ses_request *r)
{
    if (r) r->next = NULL;
    free_requests(r);
}

bool ses_pipeline_run_sequences(ses_pipeline *p, ses_request **request, ses_seq **seq, size_t n, ses_err *e)
{
    ses_seq_group *b = &p->runner.batch;
    *b = (ses_seq_group){ .request = request, .seq = seq, .n = n };
    for (size_t i = 0; i < n; i++) b->tokens += (int64_t)seq[i]->n;
    ses_arena_reset(&p->runner.mem);
    bool ok = p->task->run_batch ? p->task->run_batch(p, request, seq, n, e) : forward(p, b, e);
    return finish_batch(p, ok, e);
}

bool ses_request_finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    return finish_request(p, r, out, e);
}

/* ---- feed, flush, run ---- */

static void enqueue(ses_pipeline_runner *runner, ses_request *r)
{
    if (runner->last)
        runner->last->next = r;
    else
        runner->first = r;
    runner->last = r;
    if (!runner->next_request && r->n_seqs) runner->next_request = r, runner->next_seq = 0;
    runner->waiting_tokens += r->tokens;
}

bool ses_pipeline_feed(ses_pipeline *p, const ses_item *item, ses_err *e)
{
    ses_err local = { 0 };
    if (!e) e = &local; /* the runner reads the code */
    bool ok = false;
    ses_request *r = prepare(p, item, &ok, e);
    if (!r) return false;
    if (!ok) {
        if (!ses_request_fail(p, r, e)) {
            recycle(&p->runner, r);
            return false;
        }
        r->n_seqs = 0, r->tokens = 0; /* nothing of it runs */
    }
    enqueue(&p->runner, r);
    if (r->error) return ses_pipeline_flush(p, e); /* reported now, after the items before it */
    if (!r->n_seqs && !report_finished(p, e)) return drop_queue(p);
    while (p->runner.waiting_tokens >= p->settings.batch_tokens && p->runner.next_request)
        if (!run_batch(p, true, e)) return drop_queue(p);
    return true;
}

bool ses_pipeline_flush(ses_pipeline *p, ses_err *e)
{
    ses_err local = { 0 };
    if (!e) e = &local;
    while (p->runner.next_request)
        if (!run_batch(p, false, e)) return drop_queue(p);
    return (wait_in_flight(p, e) && report_finished(p, e)) || drop_queue(p);
}

const ses_result *ses_pipeline_run(ses_pipeline *p, const ses_item *item, ses_err *e)
{
    if (!ses_pipeline_flush(p, e)) return NULL; /* earlier items are reported first */
    ses_result_fn *on_result = p->settings.on_result;
    ses_item_error_fn *on_item_error = p->settings.on_item_error;
    p->settings.on_result = NULL, p->settings.on_item_error = NULL;
    bool ok = ses_pipeline_feed(p, item, e) && ses_pipeline_flush(p, e);
    p->settings.on_result = on_result, p->settings.on_item_error = on_item_error;
    return ok ? &p->runner.result : NULL;
}
