/* Multi-task training: the tasks, their shared parameters, their batches and the loss. */
#include "mixture_impl.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "tensor/device_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what can be mixed ---- */

static bool check_run(const ses_finetune_options *o, ses_err *e)
{
    const char *why = o->teacher.model                        ? "a teacher"
                      : o->unlabeled                          ? "unlabeled data"
                      : o->embed                              ? "embed"
                      : o->label_smoothing > 0                ? "label smoothing"
                      : o->open_model                         ? "an open model"
                      : o->transfer.adapter == SES_ADAPT_LORA ? "an adapter"
                                                              : NULL;
    if (why)
        return ses_fail(e, SES_EUSAGE,
                        "several data sets train all tasks with the losses of their heads: "
                        "leave out %s",
                        why);
    if (!(o->mix_alpha >= 0 && o->mix_alpha <= 1))
        return ses_fail(e, SES_EUSAGE,
                        "mix-alpha is %g; expected 0 (all data sets equally often) to 1 (in "
                        "proportion to their sizes)",
                        o->mix_alpha);
    if (o->metric && strcmp(o->metric, "loss"))
        return ses_fail(e, SES_EUSAGE,
                        "metric: several tasks are compared by the mean of their main scores; "
                        "set loss, for the mean of their losses, or leave it out");
    return true;
}

static bool check_part(const ses_mixture *m, const ses_finetune *f, ses_err *e)
{
    if (!f->task->head || f->task->loss || ses_metric_lower_is_better(f->spec.best_metric))
        return ses_fail(e, SES_EUNSUPPORTED,
                        "the task %s cannot be trained together with others: expected "
                        "classify, multi_label, regress, tag, answer, choose or rewrite",
                        f->task->name);
    if (!f->eval_rows != !m->part[0]->eval_rows)
        return ses_fail(e, SES_EUSAGE, "%s: set an evaluation file for each data set, or for none",
                        f->train_name);
    return true;
}

/* ---- names ---- */

static bool is_taken(const ses_mixture *m, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(m->name[i], name)) return true;
    return false;
}

/* The name of the task, which is a folder: "rte"; equal ones are numbered, "classify-2". */
static bool name_part(ses_mixture *m, size_t i, ses_err *e)
{
    char name[80];
    const char *task = m->part[i]->o.data.task;
    snprintf(name, sizeof name, "%.60s", task);
    for (int k = 2; is_taken(m, i, name); k++) snprintf(name, sizeof name, "%.60s-%d", task, k);
    m->name[i] = ses_strdup(name, e);
    return m->name[i] != NULL;
}

/* ---- shared parameters ---- */

/* Whether tasks may share parameter i of a model: everything below the heads, and the pooler. */
static bool is_common(const ses_model *m, size_t i)
{
    const ses_tensor *t = ses_store_at(m->store, i)->tensor;
    return i < m->first_head_param || t == m->pooler.w || t == m->pooler.b;
}

/* The parameter of an earlier task that is the same as parameter i of task k; NULL: none. */
static ses_tensor *find_common(const ses_mixture *m, size_t k, size_t i)
{
    const ses_model *own = m->part[k]->tuner->model;
    const ses_param *p = ses_store_at(own->store, i);
    for (size_t j = 0; is_common(own, i) && j < k; j++) {
        const ses_model *other = m->part[j]->tuner->model;
        for (size_t n = 0; n < ses_store_count(other->store); n++) {
            const ses_param *q = ses_store_at(other->store, n);
            if (is_common(other, n) && !strcmp(q->name, p->name) && ses_same_shape(q->tensor, p->tensor))
                return q->tensor;
        }
    }
    return NULL;
}

/* Finds the parameters of task k among the parameters of earlier tasks; declares the others in the common
 * store. */
static bool declare(ses_mixture *m, size_t k, ses_err *e)
{
    const ses_store *own = m->part[k]->tuner->model->store;
    m->shared[k] = ses_alloc_array(ses_store_count(own), sizeof(ses_tensor *), e);
    if (!m->shared[k]) return false;
    for (size_t i = 0; i < ses_store_count(own); i++) {
        const ses_param *p = ses_store_at(own, i);
        char name[256];
        if ((m->shared[k][i] = find_common(m, k, i))) continue;
        snprintf(name, sizeof name, "task.%s.%.150s", m->name[k], p->name);
        m->shared[k][i] = ses_store_add(m->store, name, p->tensor->dim, p->init);
        ses_store_set_role(m->store, m->shared[k][i], p->role);
    }
    return ses_store_ok(m->store, e);
}

static bool copy_values(const ses_tensor *from, ses_tensor *to, ses_device *dev, ses_err *e)
{
    size_t bytes = (size_t)ses_count(from) * sizeof(ses_real);
    ses_real *host = ses_alloc_aligned(bytes, e);
    if (!host) return false;
    dev->mem->download(dev, host, ses_master_data(from), bytes);
    dev->mem->upload(dev, ses_master_data(to), host, bytes);
    ses_free(host);
    return true;
}

/* Lets the model of task k use the common parameters; its own new ones are copied first. */
static bool share(ses_mixture *m, size_t k, ses_err *e)
{
    ses_store *own = m->part[k]->tuner->model->store;
    for (size_t i = 0; i < ses_store_count(own); i++) {
        const ses_param *p = ses_store_at(own, i);
        ses_param_role role = p->role;
        bool is_new = !find_common(m, k, i);
        if (is_new && !copy_values(p->tensor, m->shared[k][i], ses_store_device(own), e)) return false;
        ses_store_share(own, i, m->shared[k][i]);
        if (role != SES_PARAM_TRAINED) ses_store_set_role(own, p->tensor, role);
    }
    ses_store_free_shared(own);
    return true;
}

static bool share_all(ses_mixture *m, ses_err *e)
{
    m->store = ses_store_new(m->part[0]->dev, e);
    if (!m->store) return false;
    for (size_t k = 1; k < m->n; k++)
        if (!declare(m, k, e)) return false;
    if (!ses_store_alloc_trainable(m->store, e)) return false;
    for (size_t k = 1; k < m->n; k++)
        if (!share(m, k, e)) return false;
    ses_store_sync_bf16(m->store);
    return true;
}

/* ---- new and free ---- */

/* The options of data set k: the run's, with its own files and columns, and nothing to write. */
static ses_finetune_options part_options(const ses_finetune_options *o, size_t k)
{
    const ses_finetune_data_set *d = &o->also[k - 1];
    ses_finetune_options p = *o;
    p.also = NULL;
    p.n_also = 0;
    p.train = d->train;
    p.eval = d->eval;
    p.train_examples = d->train_examples;
    p.eval_examples = d->eval_examples;
    p.data = d->data;
    p.task = d->task;
    p.command_options = d->command_options;
    p.run.output = p.run.log = p.run.tensorboard = NULL;
    return p;
}

static bool open_parts(ses_mixture *m, ses_err *e)
{
    ses_finetune *first = m->part[0];
    for (size_t k = 0; k < m->n; k++) {
        ses_finetune_options o = k ? part_options(&first->o, k) : first->o;
        if (k && !(m->part[k] = ses_finetune_new_part(&o, first->dev, e)))
            return ses_wrap(e, "data set %zu", k + 1);
        if (!name_part(m, k, e) || !check_part(m, m->part[k], e)) return false;
        m->part[k]->tuner->comm = first->o.run.comm;
        m->weight[k] = pow((double)m->part[k]->train.n_rows, first->o.mix_alpha);
        m->total_weight += m->weight[k];
    }
    return true;
}

ses_mixture *ses_mixture_new(ses_finetune *first, ses_err *e)
{
    ses_mixture *m = ses_alloc(sizeof *m, e);
    if (!m) return NULL;
    m->n = first->o.n_also + 1;
    m->seed = (uint64_t)first->o.run.seed;
    m->part = ses_alloc_array(m->n, sizeof(ses_finetune *), e);
    m->name = ses_alloc_array(m->n, sizeof(char *), e);
    m->weight = ses_alloc_array(m->n, sizeof *m->weight, e);
    m->shared = ses_alloc_array(m->n, sizeof(ses_tensor **), e);
    m->at = ses_alloc_array(m->n, sizeof *m->at, e);
    if (m->part) m->part[0] = first;
    if (m->part && m->name && m->weight && m->shared && m->at && check_run(&first->o, e) &&
        open_parts(m, e) && share_all(m, e))
        return m;
    ses_mixture_free(m);
    return NULL;
}

void ses_mixture_free(ses_mixture *m)
{
    if (!m) return;
    for (size_t k = 0; k < m->n; k++) {
        if (k && m->part) ses_finetune_free(m->part[k]);
        if (m->name) ses_free(m->name[k]);
        if (m->shared) ses_free(m->shared[k]);
    }
    ses_store_free(m->store);
    ses_eval_report_free(&m->report);
    ses_free(m->part);
    ses_free(m->name);
    ses_free(m->weight);
    ses_free(m->shared);
    ses_free(m->at);
    ses_free(m);
}

ses_store *ses_mixture_store(const ses_mixture *m) { return m->store; }
const char *ses_mixture_name(const ses_mixture *m, size_t i) { return i < m->n ? m->name[i] : NULL; }

/* ---- batches ---- */

/* Draws the task of a step. */
static size_t draw(const ses_mixture *m, int64_t step)
{
    ses_rng_key key = { .seed = m->seed, .site = 0x6d697874 }; /* "mixt" */
    double at = (double)ses_rand32(key, (uint64_t)step) * 0x1p-32 * m->total_weight;
    for (size_t k = 0; k + 1 < m->n; k++)
        if ((at -= m->weight[k]) < 0) return k;
    return m->n - 1;
}

static ses_batch_source source_of(const ses_mixture *m, size_t k) { return m->part[k]->source; }

/* Moves the positions of the tasks to a step, and returns the task of this step. */
static size_t seek(ses_mixture *m, int64_t step)
{
    if (step < m->step) {
        m->step = 0;
        memset(m->at, 0, m->n * sizeof *m->at);
    }
    for (; m->step < step; m->step++) {
        size_t k = draw(m, m->step);
        ses_batch_source s = source_of(m, k);
        if (++m->at[k].index < s.count(s.ctx, m->at[k].epoch)) continue;
        m->at[k].epoch++;
        m->at[k].index = 0;
    }
    return draw(m, step);
}

static int64_t count(void *ctx, int64_t epoch)
{
    const ses_mixture *m = ctx;
    int64_t n = 0;
    (void)epoch; /* all epochs have as many batches, so that a step is a function of epoch and index */
    for (size_t k = 0; k < m->n; k++) {
        ses_batch_source s = source_of(m, k);
        n += s.count(s.ctx, 0);
    }
    return n;
}

static bool batch(void *ctx, int64_t epoch, int64_t index, ses_batch *out, ses_err *e)
{
    ses_mixture *m = ctx;
    m->current = seek(m, epoch * count(m, 0) + index);
    ses_batch_source s = source_of(m, m->current);
    return s.batch(s.ctx, m->at[m->current].epoch, m->at[m->current].index, out, e);
}

static void describe(void *ctx, int64_t epoch, int64_t index, char *buf, size_t n)
{
    ses_mixture *m = ctx;
    size_t k = seek(m, epoch * count(m, 0) + index);
    ses_batch_source s = source_of(m, k);
    int used = snprintf(buf, n, "%s: ", m->name[k]);
    if (s.describe && used > 0 && (size_t)used < n)
        s.describe(s.ctx, m->at[k].epoch, m->at[k].index, buf + used, n - (size_t)used);
}

static uint64_t hash(void *ctx)
{
    const ses_mixture *m = ctx;
    uint64_t sum = 0;
    for (size_t k = 0; k < m->n; k++) {
        ses_batch_source s = source_of(m, k);
        sum = (sum << 1 | sum >> 63) ^ (s.hash ? s.hash(s.ctx) : 0);
    }
    return sum;
}

ses_batch_source ses_mixture_source(ses_mixture *m)
{
    return (ses_batch_source){ .ctx = m, .count = count, .batch = batch, .describe = describe, .hash = hash };
}

/* ---- loss ---- */

ses_tensor *ses_mixture_loss(void *mixture, ses_tape *t, const ses_batch *b, ses_err *e)
{
    ses_mixture *m = mixture;
    size_t k = m->current;
    ses_model *model = m->part[k]->tuner->model;
    ses_outputs out;
    for (size_t i = 0; k && i < ses_store_count(model->store); i++) /* frozen parameters stay frozen */
        ses_store_at(model->store, i)->tensor->requires_grad = m->shared[k][i]->requires_grad;
    if (!ses_model_forward(model, t, b, &(ses_output_request){ 0 }, &out, e)) return NULL;
    return out.loss;
}
