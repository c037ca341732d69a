/* Cross-View Training: see cross_view.h. */
#include "cross_view.h"

#include "base/alloc.h"
#include "model/model_desc.h"

#include <math.h>
#include <stdio.h>

enum { VIEWS = 4 };

static const struct {
    const char *name;
    bool backward; /* reads the second half of the columns */
    int shift;     /* reads the state of the word at this distance */
} views[VIEWS] = {
    { "forward", false, 0 }, { "backward", true, 0 }, { "future", false, -1 }, { "past", true, 1 }
};

struct ses_cross_view {
    ses_model *model;
    ses_tape *tape; /* the model predicts on it: not recorded, no dropout */
    ses_store *store;
    ses_dense hidden[VIEWS], out[VIEWS];
    ses_examples *rows;
    ses_finetune_set set;
    ses_batches *batches;
    ses_batch_source labeled, unlabeled;
};

bool ses_cross_view_check(const ses_finetune_options *o, const ses_finetune_task *task, ses_err *e)
{
    const char *why = task->target != SES_TARGET_TAGS ? "the task must be tag"
                      : o->task.crf                   ? "it compares single labels, so leave out crf"
                      : o->teacher.model              ? "leave out the teacher"
                      : o->label_smoothing > 0        ? "leave out label smoothing"
                                                      : NULL;
    return !o->unlabeled || !why ||
           ses_fail(e, SES_EUSAGE, "unlabeled data train a tagger by Cross-View Training: %s", why);
}

static bool check(const ses_model *m, ses_err *e)
{
    const ses_head *head = m->class->head[0].head;
    if (head != &ses_head_token_classification || !m->c.rnn.bidirectional)
        return ses_fail(e, SES_EUNSUPPORTED,
                        "training with unlabeled data needs a tagger with a bidirectional LSTM (--embed, or "
                        "--config bilstm): %s has none",
                        ses_model_class_name(m));
    if (m->c.crf.enabled)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "training with unlabeled data compares the probabilities of single labels: leave out crf");
    return true;
}

static bool add_views(ses_cross_view *v, uint64_t seed, ses_err *e)
{
    const ses_config *c = &v->model->c;
    v->store = ses_store_new(ses_store_device(v->model->store), e);
    if (!v->store) return false;
    for (int i = 0; i < VIEWS; i++) {
        v->hidden[i] =
            ses_dense_add(v->store, c->rnn.size, c->rnn.size, SES_BIAS, "view.%s.hidden", views[i].name);
        v->out[i] = ses_dense_add(v->store, c->labels, c->rnn.size, SES_BIAS, "view.%s.out", views[i].name);
    }
    if (!ses_store_ok(v->store, e) || !ses_store_alloc_trainable(v->store, e)) return false;
    ses_store_init(v->store, 1 / sqrt((double)c->rnn.size), seed);
    return true;
}

ses_cross_view *ses_cross_view_new(ses_model *m, uint64_t seed, ses_err *e)
{
    ses_cross_view *v = check(m, e) ? ses_alloc(sizeof *v, e) : NULL;
    if (!v) return NULL;
    v->model = m;
    if (add_views(v, seed, e) && (v->tape = ses_tape_new(ses_store_device(m->store), NULL, e))) return v;
    ses_cross_view_free(v);
    return NULL;
}

void ses_cross_view_free(ses_cross_view *v)
{
    if (!v) return;
    ses_batches_free(v->batches);
    ses_finetune_set_free(&v->set);
    ses_examples_free(v->rows);
    ses_tape_free(v->tape);
    ses_store_free(v->store);
    ses_free(v);
}

ses_store *ses_cross_view_store(const ses_cross_view *v) { return v->store; }

/* ---- batches ---- */

bool ses_cross_view_read(ses_cross_view *v, ses_finetuner *t, const ses_data_spec *spec, const char *file,
                         const ses_batching *how, ses_err *e)
{
    ses_data_spec plain = *spec;
    plain.no_labels = true;
    plain.tag_scheme = 0;
    v->rows = ses_examples_open(file, &plain, NULL, e);
    if (!v->rows) return false;
    if (!ses_finetuner_encode(t, v->rows, &v->set, e)) return ses_wrap(e, "%s", file);
    v->batches = ses_batches_new(v->set.data, how, e);
    if (v->batches) v->unlabeled = ses_batches_source(v->batches);
    return v->batches != NULL;
}

int64_t ses_cross_view_size(const ses_cross_view *v) { return ses_dataset_size(v->set.data); }

static int64_t count(void *ctx, int64_t epoch)
{
    const ses_cross_view *v = ctx;
    return 2 * v->labeled.count(v->labeled.ctx, epoch);
}

/* The epoch and index, among the batches without labels, of the batch at an odd position. */
static void unlabeled_at(const ses_cross_view *v, int64_t epoch, int64_t index, int64_t *e, int64_t *i)
{
    int64_t n = v->unlabeled.count(v->unlabeled.ctx, 0),
            at = epoch * v->labeled.count(v->labeled.ctx, 0) + index / 2;
    *e = at / n, *i = at % n;
}

static bool batch(void *ctx, int64_t epoch, int64_t index, ses_batch *out, ses_err *err)
{
    const ses_cross_view *v = ctx;
    int64_t e, i;
    if (index % 2 == 0) return v->labeled.batch(v->labeled.ctx, epoch, index / 2, out, err);
    unlabeled_at(v, epoch, index, &e, &i);
    if (!v->unlabeled.batch(v->unlabeled.ctx, e, i, out, err)) return false;
    out->labels = NULL;
    return true;
}

static void describe(void *ctx, int64_t epoch, int64_t index, char *buf, size_t n)
{
    const ses_cross_view *v = ctx;
    int64_t e, i;
    unlabeled_at(v, epoch, index, &e, &i);
    *buf = 0;
    if (index % 2 == 0 && v->labeled.describe)
        v->labeled.describe(v->labeled.ctx, epoch, index / 2, buf, n);
    else if (index % 2 && v->unlabeled.describe) {
        int used = snprintf(buf, n, "unlabeled ");
        if (used > 0 && (size_t)used < n)
            v->unlabeled.describe(v->unlabeled.ctx, e, i, buf + used, n - (size_t)used);
    }
}

static uint64_t hash(void *ctx)
{
    const ses_cross_view *v = ctx;
    uint64_t a = v->labeled.hash ? v->labeled.hash(v->labeled.ctx) : 0,
             b = v->unlabeled.hash ? v->unlabeled.hash(v->unlabeled.ctx) : 0;
    return a ^ (b << 1 | b >> 63);
}

ses_batch_source ses_cross_view_source(ses_cross_view *v, ses_batch_source labeled)
{
    v->labeled = labeled;
    return (ses_batch_source){ .ctx = v, .count = count, .batch = batch, .describe = describe, .hash = hash };
}

/* ---- loss ---- */

/* [T, labels]: scores of a view; x: the first layer. */
static ses_tensor *run_view(const ses_cross_view *v, ses_tape *t, const ses_batch *b, ses_tensor *x, int i)
{
    int64_t half = ses_cols(x) / 2;
    x = ses_columns(t, x, views[i].backward ? half : 0, half);
    if (views[i].shift) {
        int32_t *row = ses_tape_host_alloc(t, (size_t)b->tokens, sizeof *row);
        for (int64_t s = 0; row && s < b->seqs; s++)
            for (int32_t k = b->cu_seqlens[s]; k < b->cu_seqlens[s + 1]; k++) {
                int32_t at = k + views[i].shift;
                row[k] = at >= b->cu_seqlens[s] && at < b->cu_seqlens[s + 1] ? at : SES_IGNORE_INDEX;
            }
        x = row ? ses_gather(t, x, ses_tape_ints(t, row, b->tokens)) : NULL;
    }
    x = x ? ses_dense_run(t, v->hidden[i], x, SES_ACT_RELU) : NULL;
    return x ? ses_dense_run(t, v->out[i], x, SES_ACT_NONE) : NULL;
}

static ses_tensor *view_loss(ses_cross_view *v, ses_tape *t, const ses_batch *b, ses_err *e)
{
    ses_outputs whole, parts;
    ses_tensor *sum = NULL;
    ses_tape_reset(v->tape, NULL);
    if (!ses_model_forward(v->model, v->tape, b, &(ses_output_request){ .logits = true }, &whole, e) ||
        !ses_model_forward(v->model, t, b, &(ses_output_request){ .hidden_states = true }, &parts, e))
        return NULL;
    ses_tape_add_flops(t, ses_tape_flops(v->tape));
    const ses_output *target = ses_outputs_find(&whole, "logits"),
                     *first = ses_outputs_find(&parts, "hidden_states.1");
    if (!target || !first) {
        ses_fail(e, SES_EUNSUPPORTED, "%s does not output its first layer", ses_model_class_name(v->model));
        return NULL;
    }
    for (int i = 0; i < VIEWS; i++) {
        ses_tensor *x = run_view(v, t, b, first->tensor, i),
                   *loss = x ? ses_teacher_loss(t, x, target->tensor, SES_TEACHER_KL, 1) : NULL;
        if (!loss) return NULL;
        sum = sum ? ses_add(t, sum, loss) : loss;
    }
    return sum;
}

ses_tensor *ses_cross_view_loss(void *cross_view, ses_tape *t, const ses_batch *b, ses_err *e)
{
    ses_cross_view *v = cross_view;
    ses_outputs out;
    if (!b->labels) return view_loss(v, t, b, e);
    return ses_model_forward(v->model, t, b, &(ses_output_request){ 0 }, &out, e) ? out.loss : NULL;
}
