/* The pass of a model over a set: batches, their outputs, the task's hooks.
 *
 * In distributed training the ranks compute the batches in turn and send each other the outputs; every rank
 * collects all of them in order, so all have the same predictions and scores. Tasks that run batches by
 * themselves (texts, vectors) compute all batches on every rank. */
#include "finetuner.h"

#include "base/alloc.h"
#include "comm/comm_impl.h"

#include <math.h>
#include <string.h>

enum { EVAL_TOKENS = 4096 };

/* Outputs of a batch on the host. */
typedef struct host {
    ses_real *raw;
    float *x;               /* [rows, cols] */
    size_t raw_cap, cap, n; /* n: numbers in x */
    int64_t cols;
    bool per_token;
    bool has_layers; /* the last column of x is the number of layers of a text that may leave early */
} host;

/* A beam of answers: its outputs side by side, a row per sequence. */
static bool read_beam(ses_finetuner *t, const ses_outputs *out, host *h, ses_err *e)
{
    static const char *const names[] = { "start_top_log_probs", "start_top_index", "end_top_log_probs",
                                         "end_top_index", "cls_logits" };
    int64_t rows = 0, at = 0;
    h->cols = 0, h->per_token = false;
    for (size_t i = 0; i < SES_LEN(names); i++) {
        const ses_output *o = ses_outputs_find(out, names[i]);
        if (!o) return ses_fail(e, SES_EARG, "%s has no %s", ses_model_class_name(t->model), names[i]);
        h->cols += ses_cols(o->tensor), rows = ses_rows(o->tensor);
    }
    size_t n = h->n = (size_t)(rows * h->cols);
    if (!ses_array_reserve(&h->raw, &h->raw_cap, n, sizeof *h->raw, e) ||
        !ses_array_reserve(&h->x, &h->cap, n, sizeof *h->x, e))
        return false;
    for (size_t i = 0; i < SES_LEN(names); i++) {
        const ses_tensor *x = ses_outputs_find(out, names[i])->tensor;
        int64_t cols = ses_cols(x);
        if (!ses_tape_read(t->tape, x, h->raw)) return false;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < cols; k++) h->x[r * h->cols + at + k] = (float)h->raw[r * cols + k];
        at += cols;
    }
    return true;
}

/* Reads the head's output. The start and end logits of an answer are columns of one tensor. */
static bool read_output(ses_finetuner *t, const ses_outputs *out, host *h, ses_err *e)
{
    const ses_output *o = ses_outputs_find(out, "logits");
    if (!o) o = ses_outputs_find(out, "start_logits");
    if (ses_outputs_find(out, "start_top_log_probs")) return read_beam(t, out, h, e);
    if (!o) return ses_fail(e, SES_EARG, "%s has no logits", ses_model_class_name(t->model));
    size_t n = h->n = (size_t)ses_count(o->tensor);
    h->cols = ses_cols(o->tensor);
    if (!ses_array_reserve(&h->raw, &h->raw_cap, n, sizeof *h->raw, e) ||
        !ses_array_reserve(&h->x, &h->cap, n, sizeof *h->x, e) || !ses_tape_read(t->tape, o->tensor, h->raw))
        return false;
    for (size_t i = 0; i < n; i++) h->x[i] = (float)h->raw[i];
    return true;
}

/* Puts the layers of texts that may leave early behind their scores, as a further column. */
static bool read_layers(ses_finetuner *t, const ses_outputs *out, host *h, ses_err *e)
{
    const ses_output *o = ses_outputs_find(out, "exit_layers");
    int64_t rows = o ? ses_rows(o->tensor) : 0, cols = h->cols + 1;
    h->has_layers = o != NULL;
    if (!o) return true;
    if (!ses_array_reserve(&h->raw, &h->raw_cap, (size_t)rows, sizeof *h->raw, e) ||
        !ses_array_reserve(&h->x, &h->cap, (size_t)(rows * cols), sizeof *h->x, e) ||
        !ses_tape_read(t->tape, o->tensor, h->raw))
        return false;
    for (int64_t r = rows; r-- > 0;) {
        memmove(h->x + r * cols, h->x + r * h->cols, (size_t)h->cols * sizeof *h->x);
        h->x[r * cols + h->cols] = (float)h->raw[r];
    }
    h->cols = cols;
    h->n = (size_t)(rows * cols);
    return true;
}

/* Forward pass of a batch: its outputs on the host and its loss, NaN: none. */
static bool run_batch(ses_finetuner *t, const ses_batch *b, host *h, double *loss, ses_err *e)
{
    const ses_finetune_task *k = t->task;
    ses_outputs out;
    ses_real value = 0;
    h->per_token = k->target == SES_TARGET_TAGS || k->target == SES_TARGET_SPAN;
    ses_tape_reset(t->tape, &(ses_tape_options){ 0 });
    ses_output_request request = { .logits = true, .exit = t->exit };
    if (!ses_model_forward(t->model, t->tape, b, &request, &out, e) || !read_output(t, &out, h, e) ||
        !read_layers(t, &out, h, e))
        return false;
    if (out.loss && !ses_tape_read(t->tape, out.loss, &value)) return false;
    *loss = out.loss ? (double)value * (double)b->seqs : NAN;
    return true;
}

/* The message of a rank about its batch of a round. */
typedef struct batch_outputs {
    double loss;
    int64_t cols, n; /* n: numbers in all; 0: the round has no batch for this rank */
    bool per_token, has_layers;
} batch_outputs;

/* A pass over a set. */
typedef struct pass {
    ses_finetuner *t;
    const ses_finetune_set *s;
    ses_finetune_outputs *o;
    ses_batch_source from;
    int64_t count, done; /* batches; sequences collected */
    host h;
    int rank, size;      /* batches are dealt to `size` ranks; 1: every rank computes all */
    batch_outputs *info; /* [size] of a round */
    size_t *offset;      /* [size + 1] bytes */
    float *x;            /* outputs of a round */
    size_t cap;
} pass;

/* Stores the outputs of a batch. */
static bool collect(pass *p, const ses_batch *b, const batch_outputs *k, const float *x, ses_err *e)
{
    int64_t group = b->choices ? b->choices : 1;
    p->o->loss += k->loss;
    for (int64_t i = 0; i < b->seqs; i += group) {
        int64_t at = k->per_token ? b->cu_seqlens[i] : i / group,
                n = k->per_token ? b->cu_seqlens[i + 1] - b->cu_seqlens[i] : 1;
        if (!p->t->task->collect(p->t, p->s, p->o, p->done + i, x + at * k->cols, n, k->cols - k->has_layers,
                                 e))
            return false;
        if (k->has_layers) p->o->layers[p->s->row[p->done + i]] = (int32_t)x[(at + 1) * k->cols - 1];
    }
    p->done += b->seqs;
    return true;
}

/* Sends the outputs of this rank's batch to all ranks: p->x has the outputs of the round, by rank. */
static bool share(pass *p, const batch_outputs *mine, ses_err *e)
{
    ses_comm *c = p->t->comm;
    if (!ses_comm_allgather_equal(c, mine, sizeof *mine, p->info, e)) return false;
    p->offset[0] = 0;
    for (int r = 0; r < p->size; r++) p->offset[r + 1] = p->offset[r] + (size_t)p->info[r].n * sizeof *p->x;
    if (!ses_array_reserve(&p->x, &p->cap, p->offset[p->size] / sizeof *p->x + 1, sizeof *p->x, e))
        return false;
    if (mine->n) memcpy((char *)p->x + p->offset[p->rank], p->h.x, (size_t)mine->n * sizeof *p->x);
    return ses_comm_allgather(c, NULL, p->x, p->offset, e);
}

/* Batches first .. first + size - 1: each rank computes one, all collect them. */
static bool run_round(pass *p, int64_t first, ses_err *e)
{
    ses_batch b;
    batch_outputs mine = { 0 };
    int64_t own = first + p->rank;
    if (own < p->count) {
        if (!p->from.batch(p->from.ctx, 0, own, &b, e) || !run_batch(p->t, &b, &p->h, &mine.loss, e))
            return false;
        mine.per_token = p->h.per_token;
        mine.has_layers = p->h.has_layers;
        mine.cols = p->h.cols;
        mine.n = (int64_t)p->h.n;
    }
    if (p->size == 1) return collect(p, &b, &mine, p->h.x, e);
    if (!share(p, &mine, e)) return false;
    for (int r = 0; r < p->size && first + r < p->count; r++) {
        const float *x = (const float *)(const void *)((const char *)p->x + p->offset[r]);
        if (!p->from.batch(p->from.ctx, 0, first + r, &b, e) || !collect(p, &b, &p->info[r], x, e))
            return false;
    }
    return true;
}

/* A batch that the task computes by itself. */
static bool run_own(pass *p, int64_t i, ses_err *e)
{
    ses_batch b;
    if (!p->from.batch(p->from.ctx, 0, i, &b, e) ||
        !p->t->task->predict_batch(p->t, p->s, p->o, &b, p->done, e))
        return false;
    p->done += b.seqs;
    return true;
}

/* All ranks stop if the callback of one of them asks for it. */
static bool proceed(ses_finetuner *t, bool wanted, ses_err *e)
{
    int n = ses_comm_size(t->comm);
    bool stop = !wanted;
    if (n > 1) {
        bool *all = ses_alloc_array((size_t)n, sizeof *all, e);
        bool ok = all && ses_comm_allgather_equal(t->comm, &stop, sizeof stop, all, e);
        for (int r = 0; ok && r < n; r++) stop |= all[r];
        ses_free(all);
        if (!ok) return false;
    }
    t->is_stopped = stop;
    return !stop || ses_fail(e, SES_EARG, "stopped");
}

static bool run_batches(pass *p, bool (*progress)(void *ctx, int64_t done, int64_t total), void *ctx,
                        ses_err *e)
{
    bool ok = true;
    for (int64_t i = 0; ok && i < p->count; i += p->size) {
        ok = p->t->task->predict_batch ? run_own(p, i, e) : run_round(p, i, e);
        ok = ok && (!progress || proceed(p->t, progress(ctx, p->done, (int64_t)p->s->n), e));
    }
    return ok;
}

bool ses_finetuner_predict(ses_finetuner *t, const ses_finetune_set *s, ses_finetune_outputs *o,
                           bool (*progress)(void *ctx, int64_t done, int64_t total), void *ctx, ses_err *e)
{
    const ses_finetune_task *k = t->task;
    *o = (ses_finetune_outputs){ 0 };
    if (k->predict_rows)
        return k->predict_rows(t, s, o, e) &&
               (!progress || proceed(t, progress(ctx, (int64_t)s->n_rows, (int64_t)s->n_rows), e));
    bool dealt = ses_comm_size(t->comm) > 1 && !k->predict_batch;
    pass p = { .t = t, .s = s, .o = o, .size = dealt ? ses_comm_size(t->comm) : 1 };
    if (dealt) p.rank = ses_comm_rank(t->comm);
    ses_batches *batches =
        ses_batches_new(s->data, &(ses_batching){ .max_tokens = EVAL_TOKENS, .in_order = true }, e);
    if (batches) p.from = ses_batches_source(batches), p.count = p.from.count(p.from.ctx, 0);
    p.info = batches ? ses_alloc_array((size_t)p.size, sizeof *p.info, e) : NULL;
    p.offset = p.info ? ses_alloc_array((size_t)p.size + 1, sizeof *p.offset, e) : NULL;
    if (t->exit) o->layers = ses_arena_array(&o->mem, s->n_rows, sizeof *o->layers, e);
    bool ok =
        p.offset && (!t->exit || o->layers) && k->begin(t, s, o, e) && run_batches(&p, progress, ctx, e);
    if (ok) o->loss /= (double)s->n;
    ok = ok && (!k->finish || k->finish(t, s, o, e));
    ses_free(p.h.raw);
    ses_free(p.h.x);
    ses_free(p.info);
    ses_free(p.offset);
    ses_free(p.x);
    ses_batches_free(batches);
    return ok;
}
