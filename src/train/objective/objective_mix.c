/* Weighted combinations of objectives: parsing, checks, choosing an objective per batch, losses, scores. */
#include "objective_mix.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/suggest.h"
#include "mask_units.h"
#include "model/model_desc.h"
#include "op/op.h"
#include "train/distill.h"
#include "weighted_names.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const ses_objective *const all[] = {
#define SES_OBJECTIVE(id) &ses_objective_##id,
#include "objectives.def"
#undef SES_OBJECTIVE
    NULL
};

const ses_objective_options ses_objective_defaults = { .mask_rate = -1,
                                                       .mask_rate_end = -1,
                                                       .keep_rate = -1,
                                                       .random_rate = -1,
                                                       .mask_unit = -1,
                                                       .span_length = -1,
                                                       .max_span = -1,
                                                       .pieces = 2,
                                                       .replaced_weight = 50,
                                                       .sampling_temperature = 1,
                                                       .generator_tying = -1,
                                                       .generator_size = -1 };

const char *ses_objective_name(size_t i, const char **description, bool *is_auxiliary)
{
    if (i + 1 >= SES_LEN(all)) return NULL;
    if (description) *description = all[i]->description;
    if (is_auxiliary) *is_auxiliary = all[i]->is_auxiliary;
    return all[i]->name;
}

static const char *name_at(const void *ctx, size_t i)
{
    (void)ctx;
    return ses_objective_name(i, NULL, NULL);
}

static const ses_objective *find(const char *name, size_t n, ses_err *e)
{
    for (size_t i = 0; all[i]; i++)
        if (strlen(all[i]->name) == n && !strncmp(all[i]->name, name, n)) return all[i];
    ses_fail_unknown(e, SES_EARG, "objective", (ses_string){ name, n }, name_at, NULL);
    return NULL;
}

/* Primary objectives come first, in the order given. */
static bool add_item(ses_objective_mix *mix, const ses_objective *o, double weight, ses_err *e)
{
    if (mix->n == SES_MAX_OBJECTIVES)
        return ses_fail(e, SES_EARG, "more than %d objectives", SES_MAX_OBJECTIVES);
    for (size_t i = 0; i < mix->n; i++)
        if (mix->item[i].objective == o) return ses_fail(e, SES_EARG, "objective %s is given twice", o->name);
    size_t at = o->is_auxiliary ? mix->n : mix->n_primary;
    memmove(&mix->item[at + 1], &mix->item[at], (mix->n - at) * sizeof mix->item[0]);
    mix->item[at].objective = o;
    mix->item[at].weight = weight;
    mix->n++;
    mix->n_primary += !o->is_auxiliary;
    return true;
}

/* "mlm:1,nsp:0.5" */
static bool parse(ses_objective_mix *mix, const char *text, ses_err *e)
{
    for (const char *p = text; p;) {
        ses_string name;
        double weight;
        if (!ses_weighted_name_next(&p, "objective", &name, &weight, e)) return false;
        const ses_objective *o = find(name.p, name.n, e);
        if (!o || !add_item(mix, o, weight, e)) return false;
    }
    return true;
}

static bool check_rate(double x, const char *what, ses_err *e)
{
    return x == -1 || (x >= 0 && x <= 1) ||
           ses_fail(e, SES_EARG, "%s %g; expected 0 to 1, or -1 for the default", what, x);
}

/* A frozen generator keeps its own weights. */
static ses_generator_tying tying_of(const ses_objective_options *o)
{
    if (o->generator_tying < 0) return o->freeze_generator ? SES_TIE_NONE : SES_TIE_EMBEDDINGS;
    return (ses_generator_tying)o->generator_tying;
}

/* Checks the requirements of the objectives on vocabulary, model and options. */
static bool check(const ses_objective_mix *mix, ses_err *e)
{
    const ses_special_tokens *x = mix->build.special_tokens;
    for (size_t i = 0; i < mix->n; i++) {
        const ses_objective *o = mix->item[i].objective;
        if ((o->needs & SES_NEEDS_MASK) && x->mask < 0)
            return ses_fail(
                e, SES_EARG,
                "objective %s needs a mask token, but the vocabulary has none: train the tokenizer "
                "with [MASK] or <mask> among its special tokens",
                o->name);
        if ((o->needs & SES_NEEDS_SENTINELS) && x->n_sentinels < 1)
            return ses_fail(e, SES_EARG,
                            "objective %s needs sentinel tokens: <extra_id_0>, <extra_id_1>, ... in the "
                            "vocabulary, or a model whose vocabulary is larger than the tokenizer's",
                            o->name);
        if ((o->needs & SES_NEEDS_DECODER) && !mix->build.encoder_decoder)
            return ses_fail(e, SES_EARG, "objective %s needs a model with an encoder and a decoder", o->name);
        if (o->check && !o->check(&mix->build, e)) return false;
    }
    const ses_objective_options *o = &mix->build.o;
    if (o->freeze_generator && tying_of(o) != SES_TIE_NONE)
        return ses_fail(e, SES_EARG, "a frozen generator cannot share trained weights: generator-tying none");
    if (!check_rate(o->mask_rate, "mask rate", e) || !check_rate(o->mask_rate_end, "final mask rate", e) ||
        !check_rate(o->keep_rate, "keep rate", e) || !check_rate(o->random_rate, "random rate", e))
        return false;
    for (size_t i = 0; i < mix->n_primary; i++) {
        ses_masking m = ses_masking_settings(&mix->build, mix->item[i].objective, NULL);
        if (m.mask_rate < 0)
            return ses_fail(e, SES_EARG, "keep rate and random rate add up to %g; expected at most 1",
                            1 - m.mask_rate);
    }
    return ses_objective_mix_max_passage(mix) > 0 ||
           ses_fail(e, SES_EARG, "sequences of %lld tokens are too short for text and special tokens",
                    (long long)mix->build.length);
}

static bool is_encoder_decoder(const ses_json *config, bool *out, ses_err *e)
{
    ses_err none = { 0 };
    *out = ses_model_class_for_head(config, "conditional-generation", &none) != NULL;
    return none.code != SES_ENOMEM || ses_fail(e, none.code, "%s", none.msg);
}

ses_objective_mix *ses_objective_mix_new(const ses_objective_mix_options *o, const ses_json *config,
                                         ses_err *e)
{
    ses_objective_mix *mix = ses_alloc(sizeof *mix, e);
    if (!mix) return NULL;
    mix->build = (ses_build_ctx){ .o = o->o,
                                  .special_tokens = o->special_tokens,
                                  .control_code = o->control_code,
                                  .n_control_codes = o->n_control_codes,
                                  .length = o->length,
                                  .seed = o->seed };
    if (is_encoder_decoder(config, &mix->build.encoder_decoder, e) && parse(mix, o->objectives, e) &&
        ses_mask_units_parse(&mix->build, e) && check(mix, e))
        return mix;
    ses_objective_mix_free(mix);
    return NULL;
}

void ses_objective_mix_free(ses_objective_mix *mix)
{
    if (!mix) return;
    ses_batch_builder_free(&mix->builder);
    ses_word_spans_free(&mix->build.words);
    ses_ints_free(&mix->build.chosen);
    ses_ints_free(&mix->build.text);
    ses_noised_text_free(&mix->build.noised);
    ses_free(mix);
}

unsigned ses_objective_mix_needs(const ses_objective_mix *mix)
{
    unsigned needs = 0;
    for (size_t i = 0; i < mix->n; i++) needs |= mix->item[i].objective->needs;
    return needs;
}

ses_pairing ses_objective_mix_pairing(const ses_objective_mix *mix)
{
    ses_pairing p = SES_PAIRS_POSITIVE;
    for (size_t i = 0; i < mix->n; i++)
        if (mix->item[i].objective->pairing != SES_PAIRS_POSITIVE) p = mix->item[i].objective->pairing;
    return p;
}

int64_t ses_objective_mix_max_passage(const ses_objective_mix *mix)
{
    int64_t framed = ses_framed_max_passage(&mix->build), min = mix->n_primary ? INT64_MAX : framed;
    for (size_t i = 0; i < mix->n_primary; i++) {
        const ses_objective *o = mix->item[i].objective;
        int64_t n = o->max_passage ? o->max_passage(&mix->build, o) : framed;
        if (n < min) min = n;
    }
    return min;
}

int64_t ses_objective_mix_min_passage(const ses_objective_mix *mix)
{
    int64_t max = 1;
    for (size_t i = 0; i < mix->n_primary; i++) {
        const ses_objective *o = mix->item[i].objective;
        int64_t n = o->min_passage ? o->min_passage(&mix->build, o) : 1;
        if (n > max) max = n;
    }
    return max;
}

static const char *head_of(const ses_objective_mix *mix, const ses_objective *o)
{
    return mix->build.encoder_decoder && o->seq2seq_head ? o->seq2seq_head : o->head;
}

bool ses_objective_mix_is_causal(const ses_objective_mix *mix)
{
    bool causal = false, same_head = true;
    for (size_t i = 0; i < mix->n; i++) {
        causal |= mix->item[i].objective->is_causal;
        same_head &= !strcmp(mix->item[i].objective->head, mix->item[0].objective->head);
    }
    return causal && same_head;
}

const char *ses_objective_mix_class(const ses_objective_mix *mix, const ses_json *config, ses_err *e)
{
    const char *head[SES_MAX_OBJECTIVES];
    size_t n = 0;
    for (size_t i = 0; i < mix->n; i++) {
        bool known = false;
        const char *h = head_of(mix, mix->item[i].objective);
        for (size_t j = 0; j < n; j++) known |= !strcmp(head[j], h);
        if (!known) head[n++] = h;
    }
    return ses_model_class_for_heads(config, head, n, e);
}

/* Checks the requirements of the objectives on the model. */
static bool check_model(const ses_objective_mix *mix, const ses_model *m, ses_err *e)
{
    for (size_t i = 0; i < mix->n; i++) {
        const ses_objective *o = mix->item[i].objective;
        if ((o->needs & SES_NEEDS_PERMUTATION) && !m->c.xl.permutation_lm)
            return ses_fail(e, SES_EARG,
                            "objective %s needs a permutation language model such as xlnet, not %s", o->name,
                            m->desc->name);
        if ((o->needs & SES_NEEDS_RECURRENCE) && !m->c.xl.segment_recurrence)
            return ses_fail(e, SES_EARG,
                            "objective %s needs a model with segment recurrence such as transfo-xl, not %s",
                            o->name, m->desc->name);
        if ((o->needs & SES_NEEDS_STATE) && !m->c.rnn.state)
            return ses_fail(e, SES_EARG, "objective %s needs a recurrent model such as awd-lstm, not %s",
                            o->name, m->desc->name);
        if ((o->needs & SES_NEEDS_CONTEXT_MODEL) && !m->c.input.excludes_token)
            return ses_fail(e, SES_EARG,
                            "objective %s needs a model that does not read the token it predicts, such as "
                            "cloze or context2vec, not %s",
                            o->name, m->desc->name);
    }
    return true;
}

bool ses_objective_mix_set_models(ses_objective_mix *mix, ses_model *model, ses_model *generator, ses_err *e)
{
    if (!check_model(mix, model, e)) return false;
    if ((ses_objective_mix_needs(mix) & SES_NEEDS_GENERATOR) && !generator)
        return ses_fail(e, SES_EARG, "objective %s needs a generator", mix->item[0].objective->name);
    if (generator && ses_model_vocab_size(generator) != ses_model_vocab_size(model))
        return ses_fail(e, SES_EARG, "the generator's vocabulary has %lld tokens, the model's %lld",
                        (long long)ses_model_vocab_size(generator), (long long)ses_model_vocab_size(model));
    if (ses_model_vocab_size(model) < mix->build.special_tokens->size)
        return ses_fail(e, SES_EARG, "the model's vocabulary has %lld tokens, the tokenizer's %lld",
                        (long long)ses_model_vocab_size(model), (long long)mix->build.special_tokens->size);
    mix->model = model;
    mix->build.backward = model->c.rnn.backward;
    mix->generator = generator;
    return !generator || ses_generator_tie(model, generator, tying_of(&mix->build.o), e);
}

bool ses_objective_mix_set_teacher(ses_objective_mix *mix, ses_distill *d, ses_err *e)
{
    for (size_t i = 0; i < mix->n; i++)
        if (mix->item[i].objective->loss)
            return ses_fail(e, SES_EARG, "objective %s does not support a teacher",
                            mix->item[i].objective->name);
    mix->distill = d;
    return true;
}

/* ---- batches ---- */

size_t ses_objective_mix_choose(const ses_objective_mix *mix, uint64_t number)
{
    double sum = 0;
    ses_rng_stream d = ses_rng_stream_of(mix->build.seed, number, SES_RNG_OBJECTIVE);
    for (size_t i = 0; i < mix->n_primary; i++) sum += mix->item[i].weight;
    double u = ses_draw_unit(&d) * sum;
    for (size_t i = 0; i + 1 < mix->n_primary; i++)
        if ((u -= mix->item[i].weight) < 0) return i;
    return mix->n_primary ? mix->n_primary - 1 : 0;
}

void ses_objective_mix_begin_batch(ses_objective_mix *mix, size_t primary, double progress)
{
    mix->primary = primary;
    mix->build.progress = progress;
    ses_batch_builder_clear(&mix->builder);
}

bool ses_objective_mix_add_passage(ses_objective_mix *mix, const ses_passage *p, ses_err *e)
{
    const ses_objective *primary = mix->n_primary ? mix->item[mix->primary].objective : NULL;
    if (!mix->builder.ids.n) mix->build.batch_number = p->number;
    if (primary ? !primary->build(&mix->build, primary, p, &mix->builder, e)
                : !ses_build_framed(&mix->build, p, p->id, NULL, &mix->builder, e))
        return false;
    for (size_t i = mix->n_primary; i < mix->n; i++) {
        const ses_objective *auxiliary = mix->item[i].objective;
        if (!auxiliary->build(&mix->build, auxiliary, p, &mix->builder, e)) return false;
    }
    return true;
}

bool ses_objective_mix_end_batch(ses_objective_mix *mix, ses_batch *out, ses_err *e)
{
    *out = ses_batch_builder_batch(&mix->builder);
    if (out->seqs < 1) return ses_fail(e, SES_EARG, "a batch without passages");
    if (!mix->n_primary) out->labels = out->pair_labels; /* the only head reads `labels` */
    bool labeled = !out->pair_labels;
    for (int64_t s = 0; !labeled && s < out->seqs; s++) labeled = out->pair_labels[s] != SES_IGNORE_INDEX;
    return labeled ||
           ses_fail(e, SES_EARG,
                    "objective %s needs two segments, but no passage of a batch has a second one: use texts "
                    "of at least two sentences, packed in pairs",
                    mix->item[mix->n - 1].objective->name);
}

/* ---- losses ---- */

/* Weight of a head's loss: of the batch's primary objective, or of an auxiliary one; 0: not trained. */
static double weight_of(const ses_objective_mix *mix, const char *head)
{
    if (mix->n_primary && !strcmp(head_of(mix, mix->item[mix->primary].objective), head))
        return mix->n_primary == 1 ? mix->item[0].weight : 1;
    for (size_t i = mix->n_primary; i < mix->n; i++)
        if (!strcmp(head_of(mix, mix->item[i].objective), head)) return mix->item[i].weight;
    return 0;
}

static ses_tensor *heads_loss(const ses_objective_mix *mix, ses_tape *t, const ses_batch *b, ses_err *e)
{
    ses_outputs out;
    ses_tensor *sum = NULL;
    if (!ses_model_forward(mix->model, t, b, &(ses_output_request){ 0 }, &out, e)) return NULL;
    for (size_t i = 0; i < out.heads; i++) {
        double weight = out.head[i].loss ? weight_of(mix, out.head[i].name) : 0;
        if (!weight) continue;
        ses_tensor *l = weight == 1 ? out.head[i].loss : ses_scale(t, out.head[i].loss, weight);
        sum = sum ? ses_add(t, sum, l) : l;
    }
    if (!sum && ses_tape_ok(t, e))
        ses_fail(e, SES_EARG, "%s lacks the head of objective %s", ses_model_class_name(mix->model),
                 mix->item[0].objective->name);
    return sum;
}

ses_tensor *ses_objective_mix_loss(void *ctx, ses_tape *t, const ses_batch *b, ses_err *e)
{
    ses_objective_mix *mix = ctx;
    const ses_objective *o = mix->item[mix->n_primary ? mix->primary : 0].objective;
    if (mix->distill) return ses_distill_loss(mix->distill, t, b, e);
    ses_tensor *l = o->loss ? o->loss(mix, o, t, b, e) : heads_loss(mix, t, b, e);
    double weight = o->loss && mix->n_primary == 1 ? mix->item[0].weight : 1;
    return l && weight != 1 ? ses_scale(t, l, weight) : l;
}

int64_t ses_objective_mix_predictions(void *ctx, const ses_batch *b)
{
    const ses_objective_mix *mix = ctx;
    const ses_objective *o = mix->item[mix->n_primary ? mix->primary : 0].objective;
    const ses_class *class = mix->model->class;
    if (mix->distill || (o->loss && !o->mean_over_labels)) return -1;
    for (size_t i = 0; i < SES_LEN(class->head) && class->head[i].head; i++)
        if (!strcmp(class->head[i].head->name, head_of(mix, o)))
            return ses_head_predictions(&class->head[i], b);
    return -1;
}

/* ---- evaluation ---- */

static void add_named(ses_metric_sums *sums, const ses_metric_sum *x)
{
    size_t i = 0;
    while (i < sums->n && strcmp(sums->item[i].name, x->name)) i++;
    if (i == SES_MAX_METRIC_SUMS) return;
    if (i == sums->n) {
        sums->item[sums->n] = (ses_metric_sum){ 0 };
        memcpy(sums->item[sums->n++].name, x->name, sizeof x->name);
    }
    sums->item[i].sum += x->sum;
    sums->item[i].count += x->count;
}

void ses_metric_sums_add(ses_metric_sums *sums, const char *objective, const char *metric, double sum,
                         double count)
{
    ses_metric_sum x = { .sum = sum, .count = count };
    snprintf(x.name, sizeof x.name, "%s_%s", objective, metric);
    add_named(sums, &x);
}

void ses_metric_sums_merge(ses_metric_sums *to, const ses_metric_sums *from)
{
    for (size_t i = 0; i < from->n; i++) add_named(to, &from->item[i]);
}

double ses_metric_sums_mean(const ses_metric_sums *sums, const char *objective, const char *metric)
{
    char name[sizeof sums->item[0].name];
    snprintf(name, sizeof name, "%s_%s", objective, metric);
    for (size_t i = 0; i < sums->n; i++)
        if (!strcmp(sums->item[i].name, name)) return sums->item[i].sum / fmax(1, sums->item[i].count);
    return 0;
}

double ses_objective_mix_total_loss(const ses_objective_mix *mix, const ses_metric_sums *sums)
{
    double loss = 0, weights = 0;
    for (size_t i = 0; i < mix->n_primary; i++) weights += mix->item[i].weight;
    for (size_t i = 0; i < mix->n; i++) {
        const ses_objective *o = mix->item[i].objective;
        double weight = mix->item[i].weight / (i < mix->n_primary && mix->n_primary > 1 ? weights : 1);
        loss += weight *
                (o->total_loss ? o->total_loss(mix, o, sums) : ses_metric_sums_mean(sums, o->name, "loss"));
    }
    return loss;
}

bool ses_metric_sums_add_head(ses_metric_sums *sums, const char *objective, ses_tape *t,
                              const ses_outputs *out, size_t i, const int32_t *label, int64_t n, ses_err *e)
{
    ses_real loss = 0;
    if (!n) return true;
    if (!ses_tape_read(t, out->head[i].loss, &loss)) return ses_tape_ok(t, e);
    ses_metric_sums_add(sums, objective, "loss", (double)loss * (double)n, (double)n);
    const ses_output *x = ses_outputs_find(out, out->head[i].output);
    if (!x || ses_rows(x->tensor) != n) return true;
    int64_t correct = ses_count_correct(t, x->tensor, label, n, e);
    if (correct >= 0) ses_metric_sums_add(sums, objective, "accuracy", (double)correct, (double)n);
    return correct >= 0;
}

bool ses_objective_mix_measure(ses_objective_mix *mix, ses_tape *t, const ses_batch *b, ses_metric_sums *sums,
                               ses_err *e)
{
    const ses_objective *o = mix->item[mix->n_primary ? mix->primary : 0].objective;
    if (o->measure) return o->measure(mix, o, t, b, sums, e);
    ses_outputs out;
    int32_t *rows, *label;
    int64_t n = ses_label_rows(t, b, head_of(mix, o), &rows, &label);
    ses_output_request want = { .logits = true, .rows = rows, .n_rows = n };
    if (!ses_tape_ok(t, e) || !ses_model_forward(mix->model, t, b, &want, &out, e)) return false;
    for (size_t i = 0; i < out.heads; i++)
        for (size_t j = 0; out.head[i].loss && j < mix->n; j++) {
            const ses_objective *x = mix->item[j].objective;
            if ((j < mix->n_primary && j != mix->primary) || strcmp(head_of(mix, x), out.head[i].name))
                continue;
            n = ses_label_rows(t, b, out.head[i].name, &rows, &label);
            if (!ses_tape_ok(t, e) || !ses_metric_sums_add_head(sums, x->name, t, &out, i, label, n, e))
                return false;
        }
    return true;
}
