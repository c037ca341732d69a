/* Items stream in; their sequences run in batches of about so many tokens, laid end to end; answers come out
 * in the order of the items. A sequence's numbers do not depend on its batch, so neither do answers. */
#include "base/alloc.h"
#include "base/thread_pool.h"
#include "task.h"
#include "tensor/device_impl.h"

#include <assert.h>
#include <math.h>

enum { JOB_GRAIN = 4096 };

/* ---- jobs ---- */

static ses_request *job_new(ses_pipeline *p, ses_err *e)
{
    ses_request *j = p->spare;
    if (j)
        p->spare = j->next;
    else
        j = ses_alloc(sizeof *j, e);
    if (!j) return NULL;
    ses_arena mem = j->mem;
    *j = (ses_request){ .mem = mem };
    j->mem.min_block = JOB_GRAIN;
    ses_arena_reset(&j->mem);
    j->state = ses_arena_array(&j->mem, 1, p->task->job_size, e);
    if (j->state) return j;
    j->next = p->spare;
    p->spare = j;
    return NULL;
}

static void job_done(ses_pipeline *p, ses_request *j)
{
    if (!j) return;
    j->next = p->spare;
    p->spare = j;
}

static void free_jobs(ses_request *j)
{
    while (j) {
        ses_request *next = j->next;
        ses_arena_free(&j->mem);
        ses_free(j);
        j = next;
    }
}

void ses_runner_free(ses_pipeline *p)
{
    ses_async_free(p->aside);
    free_jobs(p->first);
    free_jobs(p->spare);
    free_jobs(p->kept);
    ses_arena_free(&p->batch_mem);
    ses_free(p->raw);
    ses_free(p->rows);
}

/* Everything that waits is dropped: after an error nothing half done stays. */
static bool drop_all(ses_pipeline *p)
{
    if (p->flies && p->dev->is_host) (void)ses_async_wait(p->aside, NULL);
    p->flies = false;
    if (p->last) {
        p->last->next = p->spare;
        p->spare = p->first;
    }
    p->first = p->last = p->next_job = NULL;
    p->next_seq = 0;
    p->waiting = 0;
    return false;
}

/* ---- one batch ---- */

/* Items may need no sequence at all. */
static ses_request *next_with_work(ses_request *j)
{
    while (j && !j->n_seqs) j = j->next;
    return j;
}

/* The next sequences, in order, as long as the budget lasts; at least one. */
static bool pick(ses_pipeline *p, ses_seq_group *b, ses_err *e)
{
    ses_arena_reset(&p->batch_mem);
    for (int pass = 0; pass < 2; pass++) { /* count, then list */
        ses_request *j = p->next_job;
        size_t i = p->next_seq, n = 0;
        int64_t tokens = 0;
        while (j && (!n || tokens + (int64_t)j->seq[i].n <= p->budget)) {
            if (pass) b->job[n] = j, b->seq[n] = &j->seq[i];
            tokens += (int64_t)j->seq[i].n;
            n++;
            if (++i == j->n_seqs) j = next_with_work(j->next), i = 0;
        }
        b->n = n, b->tokens = tokens;
        if (pass) {
            p->next_job = j, p->next_seq = i;
            break;
        }
        b->job = ses_arena_array(&p->batch_mem, n, sizeof(ses_request *), e);
        b->seq = ses_arena_array(&p->batch_mem, n, sizeof(ses_seq *), e);
        if (!b->job || !b->seq) return false;
    }
    p->waiting -= b->tokens;
    return true;
}

/* What a decoder reads where nothing else is said: the text, shifted right. */
static void shift_right(const ses_config *c, const int32_t *id, size_t n, int32_t *to)
{
    to[0] = c->decoder.label_shift == SES_SHIFT_START ? (int32_t)c->decoder.start_id : id[n - 1];
    memcpy(to + 1, id, (n - 1) * sizeof *id);
}

static bool fill(ses_pipeline *p, const ses_seq_group *b, ses_batch *out, ses_output_request *want,
                 ses_err *e)
{
    const ses_config *c = &p->model->c;
    bool types = (c->embed.segments > 1 || c->xl.relative_segments) && p->facts.sets_segments;
    bool target = p->model->stack[1].layer && !c->decoder.input_from_source;
    size_t rows = 0;
    for (size_t s = 0; s < b->n; s++) rows += b->seq[s]->n_rows;
    int32_t *cu = ses_arena_array(&p->batch_mem, b->n + 1, sizeof *cu, e);
    int32_t *ids = ses_arena_array(&p->batch_mem, (size_t)b->tokens, sizeof *ids, e);
    int32_t *type = ses_arena_array(&p->batch_mem, (size_t)b->tokens, sizeof *type, e);
    int32_t *to = ses_arena_array(&p->batch_mem, (size_t)b->tokens, sizeof *to, e);
    int32_t *ask = ses_arena_array(&p->batch_mem, rows, sizeof *ask, e);
    if (!cu || !ids || !type || !to || !ask) return false;
    for (size_t s = 0, at = 0, r = 0; s < b->n; s++) {
        const ses_seq *q = b->seq[s];
        memcpy(ids + at, q->id, q->n * sizeof *ids);
        memcpy(type + at, q->type, q->n * sizeof *type);
        if (target) shift_right(c, q->id, q->n, to + at);
        for (size_t i = 0; i < q->n_rows; i++) ask[r++] = (int32_t)at + q->rows[i];
        at += q->n;
        cu[s + 1] = (int32_t)at;
    }
    p->cu = cu;
    *out = (ses_batch){ .seqs = (int64_t)b->n, .tokens = b->tokens, .cu_seqlens = cu, .ids = ids };
    if (types) out->segments = type;
    if (target) out->target_cu_seqlens = cu, out->target_ids = to;
    *want = p->want;
    if (rows) want->rows = ask, want->n_rows = (int64_t)rows;
    return true;
}

/* Is this error the item's, so that others can go on? It is kept with the item. */
static bool blame(ses_pipeline *p, ses_request *j, ses_err *e)
{
    if (!p->refuse || e->code == SES_OK || e->code == SES_EIO) return false;
    if (!j->bad) j->bad = ses_arena_array(&j->mem, 1, sizeof *j->bad, e);
    if (!j->bad) return false;
    *j->bad = *e;
    *e = (ses_err){ 0 };
    return true;
}

/* A device of its own is told what to do; a host has done it. */
static bool launch(ses_pipeline *p, const ses_seq_group *b, ses_err *e)
{
    ses_batch batch;
    ses_output_request want;
    if (!fill(p, b, &batch, &want, e)) return false;
    ses_tape_reset(p->tape, NULL);
    p->raw_of = NULL;
    return p->task->pass ? p->task->pass(p, &batch, &want, &p->out, e)
                         : ses_model_forward(p->model, p->tape, &batch, &want, &p->out, e);
}

static bool take_all(ses_pipeline *p, const ses_seq_group *b, ses_err *e)
{
    p->at_row = 0;
    for (size_t s = 0; s < b->n; s++) {
        p->at_seq = (int64_t)s;
        if (!b->job[s]->bad && !p->task->take(p, b->job[s], b->seq[s], e) && !blame(p, b->job[s], e))
            return false;
        p->at_row += (int64_t)b->seq[s]->n_rows;
    }
    return true;
}

static ses_result begin_result(const ses_request *j)
{
    return (ses_result){ .item = &j->item, .groups = 1, .tokens = j->tokens, .truncated = j->cut };
}

static bool answer(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    *r = begin_result(j);
    if (!p->task->finish(p, j, r, e)) return false;
    r->row = j->row;
    r->n = j->n_rows;
    p->items++;
    return true;
}

/* Answers of the jobs whose sequences have all been taken. */
static bool answer_done(ses_pipeline *p, ses_err *e)
{
    while (p->first && p->first != p->next_job && p->first->taken == p->first->n_seqs) {
        ses_request *j = p->first;
        if (!j->bad && !answer(p, j, &p->result, e) && !blame(p, j, e)) return false;
        if (j->bad ? !p->refuse(p->fn_ctx, &j->item, j->bad, e) : p->fn && !p->fn(p->fn_ctx, &p->result, e))
            return false;
        p->first = j->next;
        if (!p->first) p->last = NULL;
        if (p->fn) {
            job_done(p, j);
            continue;
        }
        job_done(p, p->kept);
        p->kept = j;
    }
    return true;
}

static bool run_pack(ses_pipeline *p, const ses_seq_group *b, ses_err *e)
{
    if (p->task->run) return p->task->run(p, b->job, b->seq, b->n, e);
    return launch(p, b, e) && take_all(p, b, e);
}

/* A batch that failed as a whole runs again, item by item: those that can be answered are. */
static bool run_alone(ses_pipeline *p, const ses_seq_group *b, ses_err *e)
{
    if (!p->refuse || e->code == SES_OK || e->code == SES_EIO) return false;
    *e = (ses_err){ 0 };
    for (size_t s = 0, n; s < b->n; s += n) {
        ses_seq_group one = { .job = b->job + s, .seq = b->seq + s };
        for (n = 0; s + n < b->n && b->job[s + n] == b->job[s]; n++) one.tokens += (int64_t)b->seq[s + n]->n;
        one.n = n;
        if (!b->job[s]->bad && !run_pack(p, &one, e) && !blame(p, b->job[s], e)) return false;
    }
    return true;
}

static void batch_done(ses_pipeline *p)
{
    const ses_seq_group *b = &p->batch;
    for (size_t s = 0; s < b->n; s++) b->job[s]->taken++;
    p->sequences += (int64_t)b->n;
    p->read += b->tokens;
}

/* ran: the pass, of which no one item alone is to blame for what goes wrong from here on. */
static bool settle(ses_pipeline *p, bool ran, ses_err *e)
{
    bool ok = !ran ? run_alone(p, &p->batch, e) : p->task->run || take_all(p, &p->batch, e);
    if (ok) batch_done(p);
    return ok;
}

/* ---- a batch that flies: it is computed while the next items are read and cut into tokens ---- */

static bool fly(void *ctx, ses_err *e)
{
    ses_pipeline *p = ctx;
    return launch(p, &p->batch, e);
}

/* A host whose threads are several has one more for it, that begins the work they share. */
static bool can_fly(ses_pipeline *p)
{
    if (!p->dev->is_host || p->task->run) return false;
    if (!p->aside && ses_thread_pool_size(p->dev->exec.pool) > 1) p->aside = ses_async_new(NULL);
    return p->aside;
}

static bool land(ses_pipeline *p, ses_err *e)
{
    if (!p->flies) return true;
    p->flies = false;
    return settle(p, !p->dev->is_host || ses_async_wait(p->aside, e), e);
}

/* more: items may follow. While the batch flies, what has been answered before is told; its own answers are
 * taken when the next one is full or nothing more comes. */
static bool run_batch(ses_pipeline *p, bool more, ses_err *e)
{
    ses_seq_group *b = &p->batch;
    if (!land(p, e) || !pick(p, b, e)) return false;
    if (more && can_fly(p)) {
        ses_async_start(p->aside, fly, p);
        p->flies = true;
    } else {
        bool ran = p->task->run ? p->task->run(p, b->job, b->seq, b->n, e) : launch(p, b, e);
        p->flies = ran && !p->task->run && !p->dev->is_host;
        if (!p->flies && !settle(p, ran, e)) return false;
    }
    return answer_done(p, e);
}

/* ---- the stream ---- */

void ses_pipeline_set_callback(ses_pipeline *p, ses_result_fn *fn, void *ctx)
{
    p->fn = fn;
    p->fn_ctx = ctx;
}

void ses_pipeline_set_batch_tokens(ses_pipeline *p, int64_t tokens) { p->budget = tokens > 0 ? tokens : 1; }

bool ses_pipeline_feed(ses_pipeline *p, const ses_item *item, ses_err *e)
{
    ses_request *j = job_new(p, e);
    if (!j) return false;
    if (!ses_request_copy_item(j, item, e) || !p->task->encode(p, j, e)) {
        job_done(p, j);
        return false;
    }
    if (p->last)
        p->last->next = j;
    else
        p->first = j;
    p->last = j;
    if (!p->next_job && j->n_seqs) p->next_job = j, p->next_seq = 0;
    p->waiting += j->tokens;
    while (p->waiting >= p->budget && p->next_job)
        if (!run_batch(p, true, e)) return drop_all(p);
    return true;
}

bool ses_pipeline_flush(ses_pipeline *p, ses_err *e)
{
    while (p->next_job)
        if (!run_batch(p, false, e)) return drop_all(p);
    return (land(p, e) && answer_done(p, e)) || drop_all(p);
}

const ses_result *ses_pipeline_run(ses_pipeline *p, const ses_item *item, ses_err *e)
{
    ses_result_fn *fn = p->fn;
    if (!ses_pipeline_flush(p, e)) return NULL; /* what was fed before is not this one's answer */
    bool (*refuse)(void *, const ses_item *, ses_err *, ses_err *) = p->refuse;
    p->fn = NULL, p->refuse = NULL;
    bool ok = ses_pipeline_feed(p, item, e) && ses_pipeline_flush(p, e);
    p->fn = fn, p->refuse = refuse;
    return ok ? &p->result : NULL;
}

/* ---- outputs ---- */

/* The rows of an output that are the sequence's. */
static void place(const ses_pipeline *p, const ses_seq *q, ses_axis axis, int64_t *first, int64_t *n)
{
    switch (axis) {
    case SES_PER_ROW: *first = p->at_row, *n = (int64_t)q->n_rows; return;
    case SES_PER_SEQUENCE: *first = p->at_seq, *n = 1; return;
    default: *first = p->cu[p->at_seq], *n = (int64_t)q->n; return;
    }
}

/* Rows of an output, on the host. Of a batch's first output that is asked for all are read at once: to ask a
 * device for each sequence's would take longer than to compute them. Of further ones, layers of one text, a
 * sequence's alone, behind those: all of each would be read again for every sequence. */
static const ses_real *read_rows(ses_pipeline *p, const ses_tensor *x, int64_t first, int64_t n, ses_err *e)
{
    int64_t wide = ses_cols(x), want = first * wide, from = 0, count = ses_count(x), to = 0;
    if (p->dev->is_host) return x->f + want;
    if (p->raw_of == x) return p->raw + want;
    if (p->raw_of) from = want, count = n * wide, to = ses_count(p->raw_of);
    if (!ses_array_reserve(&p->raw, &p->raw_room, (size_t)(to + count), sizeof *p->raw, e) ||
        !ses_device_read(p->dev, x, from, count, p->raw + to, e))
        return NULL;
    if (!p->raw_of) p->raw_of = x;
    return p->raw + to + want - from;
}

ses_output_rows ses_request_output_rows(ses_pipeline *p, const ses_seq *q, const char *output, ses_err *e)
{
    const ses_output *o = ses_outputs_find(&p->out, output);
    assert(o);
    int64_t wide = ses_cols(o->tensor), first = 0;
    ses_output_rows r = { .cols = o->cols ? o->cols : wide };
    place(p, q, o->axis, &first, &r.n);
    const ses_real *x = read_rows(p, o->tensor, first, r.n, e);
    if (!x || !ses_array_reserve(&p->rows, &p->rows_room, (size_t)(r.n * r.cols), sizeof *p->rows, e))
        return r;
    for (int64_t i = 0; i < r.n; i++)
        for (int64_t k = 0; k < r.cols; k++) {
            ses_real v = x[i * wide + o->col + k];
            if (!isfinite(v)) { /* NaN comes out where NaN is in the weights: then the tensor's name helps */
                if (ses_model_check_finite(p->model, e))
                    ses_fail(e, SES_EARG, "the model's output \"%s\" is not a number", output);
                ses_wrap(e, "%s", p->dir);
                return r;
            }
            p->rows[i * r.cols + k] = (float)v;
        }
    r.x = p->rows;
    return r;
}
