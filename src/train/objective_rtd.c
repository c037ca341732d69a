/* Replaced token detection (ELECTRA, Clark et al. 2020): a small generator, trained along, fills masks; the
 * model tells which tokens are not the original ones. And the paper's ablations: asked about the masked
 * tokens alone (rtd15), or saying the original tokens, of those that were masked (replace) or of all (alltok,
 * without the paper's copy mechanism). As in the paper's program, though not in its words, 15 % of the chosen
 * tokens stand unmasked before the generator, which has to say them all the same.
 *   loss = loss of the generator + weight * loss of the model */
#include "objective.h"

#include "base/alloc.h"
#include "op/op.h"
#include "tensor/device_impl.h"

#include <math.h>
#include <string.h>

static bool lay(ses_build_ctx *w, const ses_objective *o, const ses_passage *p, ses_batch_builder *d,
                ses_err *e)
{
    return ses_build_masked(w, o, p, e) && ses_build_framed(w, p, w->text.p, w->chosen.p, d, e);
}

/* One token of each row x [n, V], drawn from softmax(x / heat); only these leave the device. */
static bool draw_tokens(ses_tape *t, const ses_tensor *x, double heat, int64_t n, int32_t *out, ses_err *e)
{
    ses_device *d = ses_tape_device(t);
    const ses_kernels *k = x->dtype == SES_REAL ? &d->k_f32 : &d->k;
    ses_rng_key key = ses_tape_rng_key(t);
    ses_tensor *pick = ses_tape_ints(t, out, n);
    if (!pick) return ses_tape_ok(t, e);
    k->sample(&d->exec, pick->i, x->f, n, ses_cols(x), heat, key);
    d->mem->download(d, out, pick->data, (size_t)n * sizeof *out);
    return ses_tape_ok(t, e);
}

/* A batch twice: for the generator as it was laid, and for the model, with what the generator said. */
typedef struct doubled {
    ses_outputs generator;
    int64_t n; /* masked tokens */
    int32_t *row, *original, *drawn;
    ses_batch batch;
} doubled;

static int32_t *copy(ses_tape *t, const int32_t *from, int64_t n)
{
    int32_t *x = ses_tape_host_alloc(t, (size_t)n, sizeof *x);
    if (x) memcpy(x, from, (size_t)n * sizeof *x);
    return x;
}

static bool generate(ses_objective_mix *a, const ses_objective *o, ses_tape *t, const ses_batch *b,
                     doubled *g, ses_err *e)
{
    g->n = ses_label_rows(t, b, "masked-lm", &g->row, &g->original);
    ses_output_request want = { .logits = g->n > 0, .rows = g->row, .n_rows = g->n };
    if (!ses_tape_ok(t, e) || !ses_model_forward(a->generator, t, b, &want, &g->generator, e)) return false;
    int32_t *ids = copy(t, b->ids, b->tokens), *labels = copy(t, b->ids, b->tokens);
    g->drawn = ses_tape_host_alloc(t, (size_t)g->n, sizeof *g->drawn);
    if (!ids || !labels || !g->drawn) return ses_tape_ok(t, e);
    const ses_output *x = g->n ? ses_outputs_find(&g->generator, g->generator.head[0].output) : NULL;
    if (x && !draw_tokens(t, x->tensor, a->build.o.sampling_temperature, g->n, g->drawn, e)) return false;
    bool every = !(o->rtd_targets & SES_RTD_MASKED_ONLY), tokens = o->rtd_targets & SES_RTD_PREDICT_TOKENS;
    for (int64_t i = 0; i < b->tokens; i++) {
        bool frame = tokens && a->build.special_tokens->special[b->ids[i]];
        labels[i] = !every || frame ? SES_IGNORE_INDEX : tokens ? b->ids[i] : 0;
    }
    for (int64_t i = 0; i < g->n; i++) {
        ids[g->row[i]] = g->drawn[i];
        labels[g->row[i]] = tokens ? g->original[i] : g->drawn[i] != g->original[i];
    }
    g->batch = *b;
    g->batch.ids = ids;
    g->batch.labels = labels;
    return true;
}

/* Of the model's loss beside the generator's. */
static double weight_of(const ses_objective_mix *a, const ses_objective *o)
{
    return o->rtd_targets & SES_RTD_PREDICT_TOKENS ? 1 : a->build.o.replaced_weight;
}

static double total(const ses_objective_mix *a, const ses_objective *o, const ses_metric_sums *tally)
{
    return ses_metric_sums_mean(tally, "generator", "loss") +
           weight_of(a, o) * ses_metric_sums_mean(tally, o->name, "loss");
}

static ses_tensor *loss(ses_objective_mix *a, const ses_objective *o, ses_tape *t, const ses_batch *b,
                        ses_err *e)
{
    doubled g = { 0 };
    ses_outputs out;
    if (!generate(a, o, t, b, &g, e) ||
        !ses_model_forward(a->model, t, &g.batch, &(ses_output_request){ 0 }, &out, e))
        return NULL;
    return ses_add(t, g.generator.loss, ses_scale(t, out.loss, weight_of(a, o)));
}

/* Of yes-or-no scores: how many are right, and of what was replaced. */
static bool count_found(ses_tape *t, const doubled *g, const ses_tensor *x, const char *name,
                        ses_metric_sums *tally, ses_err *e)
{
    int64_t n = ses_count(x), asked = 0, right = 0, replaced = 0, found = 0;
    ses_real *y = ses_alloc_array((size_t)n, sizeof *y, e);
    if (!y) return false;
    bool ok = ses_tape_read(t, x, y);
    for (int64_t i = 0; ok && i < n; i++) {
        int32_t label = g->batch.labels[i];
        if (label == SES_IGNORE_INDEX) continue;
        asked++;
        right += (y[i] > 0) == (label == 1);
        replaced += label == 1;
        found += label == 1 && y[i] > 0;
    }
    ses_free(y);
    ses_metric_sums_add(tally, name, "accuracy", (double)right, (double)asked);
    ses_metric_sums_add(tally, name, "found", (double)found, (double)replaced);
    ses_metric_sums_add(tally, name, "replaced", (double)replaced, (double)asked);
    return ok || (ses_tape_ok(t, e), false);
}

static bool measure(ses_objective_mix *a, const ses_objective *o, ses_tape *t, const ses_batch *b,
                    ses_metric_sums *tally, ses_err *e)
{
    doubled g = { 0 };
    ses_outputs out;
    ses_real of_generator = 0, of_model = 0;
    int32_t *row, *label;
    if (!generate(a, o, t, b, &g, e)) return false;
    bool tokens = o->rtd_targets & SES_RTD_PREDICT_TOKENS;
    int64_t n = ses_label_rows(t, &g.batch, "masked-lm", &row, &label);
    ses_output_request want = { .logits = true, .rows = tokens ? row : NULL, .n_rows = tokens ? n : 0 };
    if (!ses_tape_ok(t, e) || !ses_model_forward(a->model, t, &g.batch, &want, &out, e)) return false;
    if (!ses_tape_read(t, g.generator.loss, &of_generator) || !ses_tape_read(t, out.loss, &of_model))
        return ses_tape_ok(t, e);
    ses_metric_sums_add(tally, "generator", "loss", (double)of_generator * (double)g.n, (double)g.n);
    ses_metric_sums_add(tally, o->name, "loss", (double)of_model * (double)n, (double)n);
    const ses_output *x = ses_outputs_find(&out, out.head[0].output);
    if (!x) return true;
    if (!tokens) return count_found(t, &g, x->tensor, o->name, tally, e);
    int64_t right = ses_count_correct(t, x->tensor, label, n, e);
    if (right >= 0) ses_metric_sums_add(tally, o->name, "accuracy", (double)right, (double)n);
    return right >= 0;
}

bool ses_share_embeddings(ses_model *model, ses_model *partner, ses_err *e)
{
    ses_store *from = ses_model_store(model), *to = ses_model_store(partner);
    for (size_t i = 0; i < ses_store_count(to); i++) {
        const ses_param *p = ses_store_at(to, i), *q = ses_store_find(from, p->name);
        if (strncmp(p->name, "embed.", 6) || !strncmp(p->name, "embed.project", 13)) continue;
        if (!q || !ses_same_shape(p->tensor, q->tensor))
            return ses_fail(e, SES_EARG,
                            "the generator's \"%s\" has another shape than the model's: the two share their "
                            "embeddings, so both need the same embedding_size, vocab_size and "
                            "max_position_embeddings",
                            p->name);
        ses_store_share(to, i, q->tensor);
    }
    return true;
}

/* A number of the config times the share, at least 1 and a multiple of `of`. */
static int64_t part(const ses_json *v, double share, int64_t of)
{
    double x = 0;
    ses_json_real(v, &x);
    int64_t n = (int64_t)lround(x * share / (double)of);
    return (n < 1 ? 1 : n) * of;
}

ses_json_doc *ses_generator_config(const ses_json *config, double share, ses_err *e)
{
    static const char *const narrowed[] = { "hidden_size", "intermediate_size", "num_attention_heads" };
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return NULL;
    int64_t heads = part(ses_json_get(config, "num_attention_heads"), share, 1);
    ses_json_begin_object(w);
    for (size_t i = 0; i < ses_json_len(config); i++) {
        const char *key = ses_json_key(config, i, NULL);
        const ses_json *v = ses_json_at(config, i);
        bool narrow = false;
        for (size_t j = 0; j < SES_LEN(narrowed); j++) narrow |= !strcmp(key, narrowed[j]);
        if (!strcmp(key, "architectures")) continue;
        ses_json_put_key(w, key);
        if (narrow)
            ses_json_put_int(w, !strcmp(key, "num_attention_heads") ? heads : part(v, share, heads));
        else
            ses_json_put_value(w, v);
    }
    ses_json_end_object(w);
    size_t n;
    const char *text = ses_json_writer_text(w, &n, e);
    ses_json_doc *doc = text ? ses_json_parse(text, n, e) : NULL;
    ses_json_writer_free(w);
    return doc;
}

#define REPLACED(id, name_, does_, head_, asks_)                                              \
    const ses_objective ses_objective_##id = { .name = name_,                                 \
                                               .description = does_,                          \
                                               .needs = SES_NEEDS_MASK | SES_NEEDS_GENERATOR, \
                                               .head = head_,                                 \
                                               .rtd_targets = asks_,                          \
                                               .mask_rate = 0.15,                             \
                                               .keep_rate = 0.15,                             \
                                               .mask_unit = SES_MASK_TOKENS,                  \
                                               .span_length = 5,                              \
                                               .max_span = 10,                                \
                                               .build = lay,                                  \
                                               .loss = loss,                                  \
                                               .measure = measure,                            \
                                               .total_loss = total }

REPLACED(rtd, "rtd", "replaced token detection (ELECTRA)", "replaced-tokens", 0);
REPLACED(rtd15, "rtd15", "the same, asked about masked tokens alone", "replaced-tokens", SES_RTD_MASKED_ONLY);
REPLACED(replace, "replace", "masked tokens behind a generator's guesses", "masked-lm",
         SES_RTD_MASKED_ONLY | SES_RTD_PREDICT_TOKENS);
REPLACED(alltok, "alltok", "all tokens behind a generator's guesses", "masked-lm", SES_RTD_PREDICT_TOKENS);
