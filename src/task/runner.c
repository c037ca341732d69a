/* Runs items through a pipeline. Items are encoded and queued as they are fed; their sequences run in
 * batches of about batch_tokens tokens, without padding; results are reported in the order of the items.
 * On a CPU the outputs of a sequence do not depend on its batch, so neither do results.
 *
 * The life of a request: feed (copy, encode, queue) -> run_batch (forward pass) -> collect_batch (outputs
 * to the request) -> report_finished (result to the callback). */
#include "base/alloc.h"
#include "base/thread_pool.h"
#include "nn/chars/char_word_cache.h"
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
    ses_pass_close(&runner->pass);
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

/* ---- choosing a batch ---- */

/* An item may have no sequences at all. */
static ses_request *skip_without_sequences(ses_request *r)
{
    while (r && !r->n_seqs) r = r->next;
    return r;
}

/* Whether a batch of some sequences and tokens takes a further sequence. */
static bool has_room(const ses_pipeline *p, size_t count, int64_t tokens, size_t more)
{
    if (!count) return true;
    if (p->settings.batch_size && (int64_t)count >= p->settings.batch_size) return false;
    return tokens + (int64_t)more <= p->settings.batch_tokens;
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
        while (r && has_room(p, count, tokens, r->seq[i].n)) {
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

/* ---- running a batch ---- */

/* Vectors of words, kept between batches, for models that read characters. */
static bool open_words(ses_pipeline *p, ses_err *e)
{
    enum { CACHE_BYTES = 256 << 20 };
    ses_pipeline_runner *runner = &p->runner;
    bool needed = p->model->stack[0].c->chars.per_word > 0;
    if (needed && !runner->words) runner->words = ses_word_cache_new(CACHE_BYTES, e);
    return !needed || runner->words;
}

/* On a host the forward pass has been computed when this returns; a GPU may still be computing it. */
static bool forward(ses_pipeline *p, const ses_seq_group *b, ses_err *e)
{
    ses_pipeline_runner *runner = &p->runner;
    ses_pass *x = &runner->pass;
    bool segments =
        ses_model_uses_segments(p->model) && (p->tokenizer_config.sets_segments || b->seq[0]->modal_rows);
    ses_batch_builder_clear(&x->in);
    for (size_t s = 0; s < b->n; s++)
        if (!ses_batch_builder_add_seq(&x->in, p->model, b->seq[s], segments, e)) return false;
    if (!open_words(p, e)) return false;
    ses_pass_begin(x, &p->settings.outputs);
    x->batch.word_cache = runner->words;
    runner->host_copy_of = NULL;
    return p->task->forward ? p->task->forward(p, &x->batch, &x->request, &x->out, e)
                            : ses_model_forward(p->model, x->tape, &x->batch, &x->request, &x->out, e);
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
