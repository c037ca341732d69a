/* Importance of heads (Michel et al. 2019), feed-forward rows (Molchanov et al. 2019) and layers: the
 * derivative of the loss by a factor of their output, its absolute value averaged over examples. */
#include "part_pruning_impl.h"

#include "base/alloc.h"
#include "model/model_desc.h"

#include <math.h>
#include <stdio.h>

enum { BATCH_TOKENS = 2048 };

typedef struct scorer {
    ses_part_scores *s;
    const ses_model *m;
    ses_tape *tape;
    const ses_batch *b;
    int64_t examples; /* in the batch */
    int64_t group;    /* sequences of an example */
    double *scale;    /* [examples]: from the gradient of the batch's loss to that of the example's */
    double *sum;      /* [2, examples]: gradient by the gate of each sublayer */
    double *unit;
    ses_real *x, *g;
    size_t x_cap, g_cap, scale_cap, sum_cap, unit_cap;
} scorer;

bool ses_part_scores_begin(ses_part_scores *s, const ses_model *m, ses_err *e)
{
    *s = (ses_part_scores){ 0 };
    s->layers = ses_model_part_layers(m, SES_PART_MAIN);
    s->rows = ses_model_part_neurons(m, SES_PART_MAIN);
    for (int64_t l = 0; l < s->layers; l++)
        if (ses_model_part_heads(m, SES_PART_MAIN, l) > s->heads)
            s->heads = ses_model_part_heads(m, SES_PART_MAIN, l);
    size_t heads = (size_t)(s->layers * s->heads), rows = (size_t)(s->layers * s->rows);
    s->raw_head = ses_alloc_array(2 * heads + 1, sizeof *s->head, e);
    s->raw_row = s->raw_head ? ses_alloc_array(2 * rows + 1, sizeof *s->row, e) : NULL;
    s->layer = s->raw_row ? ses_alloc_array((size_t)s->layers + 1, sizeof *s->layer, e) : NULL;
    if (!s->layer) return false;
    s->head = s->raw_head + heads, s->row = s->raw_row + rows;
    return true;
}

void ses_part_scores_free(ses_part_scores *s)
{
    ses_free(s->raw_head), ses_free(s->raw_row), ses_free(s->layer);
    *s = (ses_part_scores){ 0 };
}

/* The loss of a batch is the mean over its labels. */
static bool begin_batch(scorer *k, const ses_batch *b, ses_err *e)
{
    const ses_label_axis axis = k->m->class->head[0].head->axis;
    bool per_token = axis == SES_LABEL_PER_TOKEN && b->labels;
    int64_t all = 0;
    k->b = b;
    k->group = b->choices ? b->choices : 1;
    k->examples = b->seqs / k->group;
    size_t n = (size_t)k->examples;
    if (!ses_array_reserve(&k->scale, &k->scale_cap, n, sizeof *k->scale, e) ||
        !ses_array_reserve(&k->sum, &k->sum_cap, 2 * n, sizeof *k->sum, e))
        return false;
    for (int64_t i = 0; i < k->examples; i++) {
        int64_t own = !per_token;
        for (int32_t j = b->cu_seqlens[i * k->group]; per_token && j < b->cu_seqlens[(i + 1) * k->group]; j++)
            own += b->labels[j] != SES_IGNORE_INDEX;
        k->scale[i] = own ? 1 / (double)own : 0;
        all += own;
    }
    for (int64_t i = 0; i < k->examples; i++) {
        k->scale[i] *= (double)all;
        k->sum[i] = k->sum[k->examples + i] = 0;
    }
    return true;
}

/* Reads a captured output and its gradient. */
static bool read_capture(scorer *k, const ses_outputs *o, const char *what, int64_t layer, int64_t *cols,
                         ses_err *e)
{
    char name[48];
    snprintf(name, sizeof name, "%s.%d", what, (int)layer);
    const ses_output *y = ses_outputs_find(o, name);
    if (!y) return ses_fail(e, SES_EUNSUPPORTED, "the model has no output \"%s\"", name);
    size_t n = (size_t)ses_count(y->tensor);
    *cols = ses_cols(y->tensor);
    return ses_array_reserve(&k->x, &k->x_cap, n, sizeof *k->x, e) &&
           ses_array_reserve(&k->g, &k->g_cap, n, sizeof *k->g, e) &&
           ((ses_tape_read(k->tape, y->tensor, k->x) && ses_tape_read_grad(k->tape, y->tensor, k->g)) ||
            (ses_tape_ok(k->tape, e) && ses_fail(e, SES_EARG, "\"%s\" has no gradient", name)));
}

/* Adds |sum of x g| of each unit of `width` columns to score, and the sum of all units to `sum`. */
static bool add_units(scorer *k, int64_t cols, int64_t width, double *score, double *sum, ses_err *e)
{
    size_t units = (size_t)(cols / width);
    if (!ses_array_reserve(&k->unit, &k->unit_cap, units, sizeof *k->unit, e)) return false;
    for (int64_t i = 0; i < k->examples; i++) {
        for (size_t u = 0; u < units; u++) k->unit[u] = 0;
        for (int64_t t = k->b->cu_seqlens[i * k->group]; t < k->b->cu_seqlens[(i + 1) * k->group]; t++)
            for (int64_t j = 0; j < cols; j++)
                k->unit[j / width] += (double)k->x[t * cols + j] * (double)k->g[t * cols + j];
        for (size_t u = 0; u < units; u++) {
            score[u] += fabs(k->unit[u]) * k->scale[i];
            sum[i] += k->unit[u] * k->scale[i];
        }
    }
    return true;
}

static bool add_layer(scorer *k, const ses_outputs *o, int64_t l, ses_err *e)
{
    ses_part_scores *s = k->s;
    int64_t cols, heads = ses_model_part_heads(k->m, SES_PART_MAIN, l);
    for (int64_t i = 0; i < 2 * k->examples; i++) k->sum[i] = 0;
    if (!read_capture(k, o, "head_outputs", l, &cols, e) ||
        !add_units(k, cols, cols / heads, s->raw_head + l * s->heads, k->sum, e) ||
        !read_capture(k, o, "ffn_activations", l, &cols, e) ||
        !add_units(k, cols, 1, s->raw_row + l * s->rows, k->sum + k->examples, e))
        return false;
    for (int64_t i = 0; i < 2 * k->examples; i++) s->layer[l] += fabs(k->sum[i]);
    return true;
}

static bool run_batch(scorer *k, const ses_batch *b, ses_err *e)
{
    ses_tape *t = k->tape;
    ses_outputs o;
    ses_real loss = 0;
    ses_output_request r = { .head_outputs = true, .ffn_activations = true, .capture_gradients = true };
    ses_tape_reset(t, &(ses_tape_options){ .record = true });
    if (!begin_batch(k, b, e) || !ses_model_forward(k->m, t, b, &r, &o, e)) return false;
    if (!o.loss)
        return ses_fail(e, SES_EARG, "the data have no labels: importance is the gradient of a loss");
    ses_backward(t, o.loss);
    if (!ses_tape_read(t, o.loss, &loss)) return ses_tape_ok(t, e) && false;
    if (!isfinite((double)loss)) return ses_fail(e, SES_EARG, "the loss of the model is not a number");
    for (int64_t l = 0; l < k->s->layers; l++)
        if (!add_layer(k, &o, l, e)) return false;
    k->s->examples += k->examples;
    return true;
}

bool ses_part_scores_add(ses_part_scores *s, const ses_model *m, ses_tape *t, const ses_batch *b, ses_err *e)
{
    scorer k = { .s = s, .m = m, .tape = t };
    bool ok = run_batch(&k, b, e);
    ses_free(k.scale), ses_free(k.sum), ses_free(k.unit), ses_free(k.x), ses_free(k.g);
    return ok;
}

/* Divides by the number of examples, and by the length of each layer's vector. */
static void divide(double *raw, double *normed, int64_t layers, int64_t n, int64_t examples)
{
    for (int64_t l = 0; l < layers; l++) {
        double sum = 0;
        for (int64_t i = l * n; i < (l + 1) * n; i++) {
            raw[i] /= (double)examples;
            sum += raw[i] * raw[i];
        }
        for (int64_t i = l * n; i < (l + 1) * n; i++) normed[i] = sum > 0 ? raw[i] / sqrt(sum) : 0;
    }
}

void ses_part_scores_finish(ses_part_scores *s)
{
    divide(s->raw_head, s->head, s->layers, s->heads, s->examples);
    divide(s->raw_row, s->row, s->layers, s->rows, s->examples);
    for (int64_t l = 0; l < s->layers; l++) s->layer[l] /= (double)s->examples;
}

bool ses_part_scores_compute(ses_part_scores *s, ses_finetuner *t, const ses_finetune_set *set,
                             int64_t max_examples, uint64_t seed,
                             bool (*progress)(void *ctx, int64_t done, int64_t total), void *ctx, ses_err *e)
{
    int64_t wanted = max_examples && max_examples < (int64_t)set->n ? max_examples : (int64_t)set->n;
    ses_batching how = { .max_tokens = BATCH_TOKENS, .seed = seed };
    ses_batches *batches = ses_part_scores_begin(s, t->model, e) ? ses_batches_new(set->data, &how, e) : NULL;
    ses_batch_source from = batches ? ses_batches_source(batches) : (ses_batch_source){ 0 };
    int64_t n = batches ? from.count(from.ctx, 0) : 0, seen = 0;
    bool ok = batches != NULL;
    for (int64_t i = 0; ok && i < n && seen < wanted; i++) {
        ses_batch b;
        ok = from.batch(from.ctx, 0, i, &b, e) && ses_part_scores_add(s, t->model, t->tape, &b, e);
        seen += ok ? b.seqs : 0;
        if (ok && progress && !progress(ctx, seen < wanted ? seen : wanted, wanted))
            ok = ses_fail(e, SES_EARG, "stopped");
    }
    if (ok && !s->examples) ok = ses_fail(e, SES_EARG, "no examples");
    if (ok) ses_part_scores_finish(s);
    ses_batches_free(batches);
    return ok;
}
