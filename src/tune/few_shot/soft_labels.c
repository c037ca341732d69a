/* Learning of soft labels: see soft_labels.h. */
#include "soft_labels.h"

#include "base/alloc.h"

typedef struct soft_batches {
    const ses_few_shot *how;
    ses_batches *batches;
    ses_batch_source source;
    int64_t labels;
    ses_real *target;
    size_t cap;
} soft_batches;

static int64_t count(void *ctx, int64_t epoch)
{
    const soft_batches *s = ctx;
    return s->source.count(s->source.ctx, epoch);
}

/* The batch with the scores of its texts as targets. */
static bool batch(void *ctx, int64_t epoch, int64_t index, ses_batch *out, ses_err *e)
{
    soft_batches *s = ctx;
    int64_t n;
    if (!s->source.batch(s->source.ctx, epoch, index, out, e)) return false;
    const int64_t *row = ses_batches_examples(s->batches, epoch, index, &n, e);
    if (!row || !ses_array_reserve(&s->target, &s->cap, (size_t)(n * s->labels), sizeof *s->target, e))
        return false;
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l < s->labels; l++)
            s->target[i * s->labels + l] = (ses_real)s->how->soft[row[i] * s->labels + l];
    out->targets = s->target;
    out->labels = NULL;
    return true;
}

static void describe(void *ctx, int64_t epoch, int64_t index, char *buf, size_t n)
{
    const soft_batches *s = ctx;
    *buf = 0;
    if (s->source.describe) s->source.describe(s->source.ctx, epoch, index, buf, n);
}

static uint64_t hash(void *ctx)
{
    const soft_batches *s = ctx;
    return s->source.hash ? s->source.hash(s->source.ctx) : 0;
}

static bool wrap_source(ses_finetuner *t, const ses_finetune_set *set, ses_batches *batches, uint64_t seed,
                        ses_batch_source *source, ses_err *e)
{
    (void)set, (void)seed;
    soft_batches *s = t->state = ses_alloc(sizeof *s, e);
    if (!s) return false;
    *s = (soft_batches){
        .how = t->settings.few_shot, .batches = batches, .source = *source, .labels = (int64_t)t->n_labels
    };
    *source =
        (ses_batch_source){ .ctx = s, .count = count, .batch = batch, .describe = describe, .hash = hash };
    return true;
}

static void close_task(ses_finetuner *t)
{
    soft_batches *s = t->state;
    if (s) ses_free(s->target);
    ses_free(s);
}

static ses_tensor *loss(void *ctx, ses_tape *tape, const ses_batch *b, ses_err *e)
{
    const ses_finetuner *t = ctx;
    ses_outputs out;
    ses_batch plain = *b;
    plain.targets = NULL;
    if (!ses_model_forward(t->model, tape, &plain, &(ses_output_request){ .logits = true }, &out, e))
        return NULL;
    const ses_output *x = ses_outputs_find(&out, out.head[0].output);
    ses_tensor *y = ses_tape_input(tape, b->targets, SES_DIM(b->seqs, (int64_t)t->n_labels));
    return ses_teacher_loss(tape, x->tensor, y, SES_TEACHER_KL, t->settings.few_shot->temperature);
}

bool ses_soft_labels_learn(ses_tune_run *r, const float *score, ses_err *e)
{
    size_t n = ses_examples_count(r->unlabeled);
    size_t *pick = ses_arena_array(&r->mem, n, sizeof *pick, e);
    int32_t *label = pick ? ses_arena_array(&r->mem, n, sizeof *label, e) : NULL;
    double p;
    if (!label) return false;
    for (size_t i = 0; i < n; i++) pick[i] = i, label[i] = ses_tune_best(r, score, i, &p);
    r->extra = ses_tune_examples(r, false, pick, label, n, e);
    r->task = ses_finetune_task_classify;
    r->task.has_exits = false; /* the loss is one of the last layer */
    r->task.loss = loss;
    r->task.wrap_source = wrap_source;
    r->task.close = close_task;
    r->how = (ses_few_shot){ .task = &r->task, .soft = score, .temperature = r->plan.settings.temperature };
    r->o.task.patterns = NULL;
    return r->extra && (ses_tune_final(r, e) || ses_wrap(e, "the final model learns %s", r->o.unlabeled));
}
