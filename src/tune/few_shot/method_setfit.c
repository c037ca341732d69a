/* SetFit (Tunstall et al. 2022): a sentence encoder learns that texts with the same label are similar; a
 * logistic regression on its vectors is the classifier. The folder is a sequence classifier whose head is the
 * regression (`sesame_head` of config.json), so that everything that reads classifiers reads it. */
#include "base/alloc.h"
#include "base/file.h"
#include "model/sentence/sentence_impl.h"
#include "pair_batches.h"
#include "sesame/unstable/logreg.h"
#include "tensor/device_impl.h"
#include "train/similarity_loss.h"
#include "tune_method.h"

#include <stdio.h>
#include <string.h>

/* ---- the encoder ---- */

static bool encode(ses_finetuner *t, const ses_labeled_example *r, int32_t row, ses_finetune_set *s,
                   ses_err *e)
{
    ses_real label = (ses_real)r->label;
    ses_encode_options o = { .truncation = SES_TRUNCATE_LONGEST_FIRST, .max_length = t->max_tokens };
    if (!ses_encode(t->tokens, &(ses_input){ .text = r->text_a }, &o, e)) return false;
    s->n_truncated += ses_encode_ctx_overflow_count(t->tokens) > 0;
    return ses_finetuner_add_sequence(t, s, row, ses_encode_ctx_result(t->tokens),
                                      &(ses_sequence){ .values = &label }, NULL, NULL, e);
}

typedef struct pair_state {
    ses_pair_batches *pairs;
    int32_t *label;
} pair_state;

static void close_task(ses_finetuner *t)
{
    pair_state *s = t->state;
    if (s) ses_pair_batches_free(s->pairs), ses_free(s->label);
    ses_free(s);
}

static bool wrap_source(ses_finetuner *t, const ses_finetune_set *set, ses_batches *batches, uint64_t seed,
                        ses_batch_source *source, ses_err *e)
{
    (void)batches;
    pair_state *s = t->state = ses_alloc(sizeof *s, e);
    s = s && (s->label = ses_alloc_array(set->n_rows, sizeof *s->label, e)) ? s : NULL;
    if (!s) return false;
    for (size_t i = 0; i < set->n_rows; i++) s->label[i] = ses_examples_at(set->rows, i)->label;
    s->pairs = ses_pair_batches_new(&(ses_pair_options){ .texts = set->data,
                                                         .label = s->label,
                                                         .labels = (int64_t)t->n_classes,
                                                         .pairs = t->settings.few_shot->pairs,
                                                         .batch_pairs = t->settings.few_shot->batch_pairs,
                                                         .seed = seed },
                                    e);
    if (s->pairs) *source = ses_pair_batches_source(s->pairs);
    return s->pairs != NULL;
}

static ses_tensor *loss(void *ctx, ses_tape *tape, const ses_batch *b, ses_err *e)
{
    const ses_finetuner *t = ctx;
    ses_tensor *x = ses_sentence_embed(t->sentence, tape, b, NULL, e);
    return x ? ses_loss_cosine(tape, x, b->targets, b->seqs / 2) : NULL;
}

static ses_finetune_options encoder_options(ses_tune_run *r, const char *dir)
{
    ses_finetune_options o = r->o;
    r->task = ses_finetune_task_embed;
    r->task.data = SES_DATA_CLASSIFY;
    r->task.loss_name = NULL;
    r->task.other_losses = NULL;
    r->task.group = NULL;
    r->task.encode = encode;
    r->task.wrap_source = wrap_source;
    r->task.close = close_task;
    r->task.loss = loss;
    r->how = (ses_few_shot){ .task = &r->task,
                             .pairs = r->plan.settings.pairs,
                             .batch_pairs = r->o.run.batch_size > 1 ? r->o.run.batch_size : 1 };
    o.task.few_shot = &r->how;
    o.task.metrics = NULL;
    o.train = o.eval = NULL;
    o.eval_examples = NULL;
    o.train_examples = r->train;
    o.transfer.adapter = SES_ADAPT_NONE;
    o.run.output = dir;
    o.run.log = o.run.tensorboard = NULL;
    o.run.resume = r->o.run.resume && ses_path_exists(dir);
    o.run.overwrite = !o.run.resume;
    o.run.eval_every = -1;
    o.metric = NULL;
    o.run.epochs = 1;
    return o;
}

/* The members of "sesame_head" that make a classifier read what the encoder pools. */
static bool describe_head(const ses_sentence *s, char *out, size_t n, ses_err *e)
{
    static const char *const pools[] = {
        [SES_SENTENCE_POOL_FIRST] = "cls", [SES_SENTENCE_POOL_MAX] = "max", [SES_SENTENCE_POOL_MEAN] = "mean"
    };
    const char *pooling = NULL, *other = NULL;
    bool normalize = false;
    for (size_t i = 0; i < s->modules.n; i++) {
        const ses_module *m = &s->modules.item[i];
        bool known = m->pools == 1 && (size_t)m->pool[0] < SES_LEN(pools);
        if (!strcmp(m->kind->name, "Pooling") && known)
            pooling = pools[m->pool[0]];
        else if (!strcmp(m->kind->name, "Normalize"))
            normalize = true;
        else if (strcmp(m->kind->name, "Transformer"))
            other = m->kind->name;
    }
    if (!pooling || other || s->needs_hidden_states || s->lower_case)
        return ses_fail(
            e, SES_EUNSUPPORTED,
            "method setfit needs a sentence encoder that pools the last layer by mean, cls or max; "
            "this one %s%s",
            other ? "has the module " : "pools or reads texts differently", other ? other : "");
    snprintf(out, n,
             "sesame_head={\"kind\": \"linear\", \"sizes\": [], \"pooling\": \"%s\", \"normalize\": %s}",
             pooling, normalize ? "true" : "false");
    return true;
}

/* Trains the encoder in folder dir. head: for the config of the classifier. */
static bool train_encoder(ses_tune_run *r, const char *dir, char *head, size_t n, ses_err *e)
{
    ses_finetune_options o = encoder_options(r, dir);
    ses_finetune *f = ses_tune_notify(r, "sentence encoder") ? ses_finetune_new(&o, r->dev, e) : NULL;
    bool ok = f && describe_head(f->tuner->sentence, head, n, e) && ses_finetune_run(f, &r->end, e) &&
              r->end != SES_RUN_STOPPED;
    if (ok) r->o.task.max_length = ses_sentence_max_tokens(f->tuner->sentence);
    ses_finetune_free(f);
    return ok;
}

/* ---- the head ---- */

/* Sentence vectors of the training texts: [rows, width]. */
static float *embed_rows(ses_finetune *f, int64_t width, ses_err *e)
{
    ses_finetuner *t = f->tuner;
    ses_batches *all =
        ses_batches_new(f->train.data, &(ses_batching){ .max_tokens = 4096, .in_order = true }, e);
    float *x = all ? ses_alloc_array(f->train.n * (size_t)width, sizeof *x, e) : NULL;
    ses_batch_source s = all ? ses_batches_source(all) : (ses_batch_source){ 0 };
    bool ok = x != NULL;
    size_t done = 0;
    for (int64_t i = 0; ok && i < s.count(s.ctx, 0); i++) {
        ses_batch b;
        ses_outputs out;
        ses_tape_reset(t->tape, &(ses_tape_options){ 0 });
        ok = s.batch(s.ctx, 0, i, &b, e) &&
             ses_model_forward(t->model, t->tape, &b,
                               &(ses_output_request){ .logits = true, .head_inputs = true }, &out, e);
        const ses_output *h = ok ? ses_outputs_find(&out, "head_inputs") : NULL;
        size_t n = ok ? (size_t)(b.seqs * width) : 0;
        ses_real *raw = h ? ses_alloc_array(n, sizeof *raw, e) : NULL;
        ok = raw && ses_tape_read(t->tape, h->tensor, raw);
        for (size_t k = 0; ok && k < n; k++) x[done++] = (float)raw[k];
        ses_free(raw);
    }
    ses_batches_free(all);
    if (ok) return x;
    ses_free(x);
    return NULL;
}

/* The regression as a linear layer of one row per label; with two labels, the first row is zero. */
static bool set_head(ses_finetune *f, const ses_logreg *m, ses_err *e)
{
    ses_store *s = ses_model_store(f->tuner->model);
    ses_device *dev = ses_store_device(s);
    const ses_param *w = ses_store_find(s, "own.out.weight"), *b = ses_store_find(s, "own.out.bias");
    size_t skip = m->classes - m->rows, n = m->classes * m->width;
    ses_real *weight = ses_alloc_array(n + m->classes, sizeof *weight, e), *bias = weight ? weight + n : NULL;
    if (!weight || !w || !b) {
        ses_free(weight);
        return e->code ? false : ses_fail(e, SES_EARG, "the classifier has no linear head");
    }
    for (size_t i = 0; i < m->rows * m->width; i++) weight[skip * m->width + i] = (ses_real)m->weight[i];
    for (size_t i = 0; i < m->rows; i++) bias[skip + i] = (ses_real)m->bias[i];
    dev->mem->upload(dev, ses_master_data(w->tensor), weight, n * sizeof *weight);
    dev->mem->upload(dev, ses_master_data(b->tensor), bias, m->classes * sizeof *bias);
    ses_store_sync_bf16(s);
    ses_free(weight);
    return true;
}

static bool fit_head(ses_tune_run *r, ses_finetune *f, ses_err *e)
{
    const ses_param *w = ses_store_find(ses_model_store(f->tuner->model), "own.out.weight");
    int64_t width = w ? ses_cols(w->tensor) : 0;
    size_t n = f->train.n;
    ses_logreg m = { 0 };
    float *x = width ? embed_rows(f, width, e) : NULL;
    int32_t *y = x ? ses_alloc_array(n, sizeof *y, e) : NULL;
    for (size_t i = 0; y && i < n; i++) y[i] = ses_examples_at(r->train, (size_t)f->train.row[i])->label;
    bool ok = y &&
              ses_logreg_fit(&m, x, y, NULL, n, (size_t)width, f->tuner->n_labels,
                             &(ses_logreg_options){ .c = r->plan.c }, e) &&
              set_head(f, &m, e);
    ses_logreg_free(&m);
    ses_free(x);
    ses_free(y);
    return ok;
}

static bool finish(ses_tune_run *r, const char *encoder, const char *head, ses_err *e)
{
    ses_finetune_options o = r->o;
    const char **set = ses_arena_array(&r->mem, o.n_set + 1, sizeof *set, e);
    if (!set) return false;
    if (o.n_set) memcpy(set, o.set, o.n_set * sizeof *set);
    set[o.n_set++] = head;
    o.set = set;
    o.model = encoder;
    o.transfer.adapter = SES_ADAPT_NONE;
    o.train = NULL;
    o.train_examples = r->train;
    o.run.resume = false;
    o.run.overwrite = true; /* checked before */
    ses_finetune *f = r->final = ses_finetune_new(&o, r->dev, e);
    if (!f) return false;
    f->was_started = true;
    return fit_head(r, f, e) && (!f->eval_rows || ses_finetune_evaluate(f, true, e)) &&
           ses_finetune_write(f, e);
}

static bool run(ses_tune_run *r, ses_err *e)
{
    char head[160];
    for (size_t i = 0; i < ses_examples_count(r->train); i++)
        if (ses_examples_at(r->train, i)->text_b.n)
            return ses_fail(e, SES_EUSAGE, "method setfit classifies single texts; %s has pairs", r->o.train);
    char *dir = ses_path_join(r->dir, "encoder", e);
    bool ok = dir && train_encoder(r, dir, head, sizeof head, e) && finish(r, dir, head, e);
    ses_free(dir);
    return ok;
}

const ses_tune_method ses_tune_method_setfit = {
    .name = "setfit",
    .summary = "a sentence encoder trained on pairs of texts, and logistic regression",
    .settings = "pair-draws|c",
    .length = "pair-draws",
    .run = run,
};
