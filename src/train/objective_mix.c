/* Combinations of objectives: which there are, whose turn it is, whose losses are added. */
#include "objective.h"

#include "base/alloc.h"
#include "base/str.h"
#include "distill.h"
#include "model/model_desc.h"
#include "op/op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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
                                                       .sampling_temperature = 1 };

static const ses_objective *find(const char *name, size_t n, ses_err *e)
{
    ses_buf list = { 0 };
    for (size_t i = 0; all[i]; i++)
        if (strlen(all[i]->name) == n && !strncmp(all[i]->name, name, n)) return all[i];
    for (size_t i = 0; all[i]; i++) ses_buf_appendf(&list, "%s%s", i ? ", " : "", all[i]->name);
    ses_fail(e, SES_EARG, "no objective \"%s\"; there are %s", ses_quoted_of(name, n).s,
             list.data ? list.data : "");
    ses_buf_free(&list);
    return NULL;
}

/* Those that lay come first, in the order given. */
static bool add_item(ses_objective_mix *a, const ses_objective *o, double weight, ses_err *e)
{
    if (a->n == SES_MAX_OBJECTIVES)
        return ses_fail(e, SES_EARG, "more than %d objectives", SES_MAX_OBJECTIVES);
    for (size_t i = 0; i < a->n; i++)
        if (a->item[i].objective == o) return ses_fail(e, SES_EARG, "objective %s twice", o->name);
    size_t at = o->is_auxiliary ? a->n : a->n_primary;
    memmove(&a->item[at + 1], &a->item[at], (a->n - at) * sizeof a->item[0]);
    a->item[at].objective = o;
    a->item[at].weight = weight;
    a->n++;
    a->n_primary += !o->is_auxiliary;
    return true;
}

/* "mlm:1,nsp:0.5" */
static bool parse(ses_objective_mix *a, const char *text, ses_err *e)
{
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, ":,");
        double weight = 1;
        const ses_objective *o = find(p, n, e);
        if (!o) return false;
        p += n;
        if (*p == ':') {
            char *end;
            weight = strtod(p + 1, &end);
            if (end == p + 1 || !(weight > 0) || !isfinite(weight) || (*end && *end != ','))
                return ses_fail(e, SES_EARG,
                                "the weight of objective %s must be a number above 0, as in %s:1", o->name,
                                o->name);
            p = end;
        }
        if (!add_item(a, o, weight, e)) return false;
        if (!*p) return true;
    }
}

static bool check_share(double x, const char *what, ses_err *e)
{
    return x == -1 || (x >= 0 && x <= 1) ||
           ses_fail(e, SES_EARG, "a %s of %g; expected 0 to 1, or -1: the usual one", what, x);
}

/* The vocabulary and the model have what each objective needs. */
static bool check(const ses_objective_mix *a, ses_err *e)
{
    const ses_special_tokens *x = a->build.special_tokens;
    for (size_t i = 0; i < a->n; i++) {
        const ses_objective *o = a->item[i].objective;
        if ((o->needs & SES_NEEDS_MASK) && x->mask < 0)
            return ses_fail(
                e, SES_EARG,
                "objective %s needs a mask token, and the vocabulary has none: train the tokenizer "
                "with [MASK] or <mask> among its special tokens",
                o->name);
        if ((o->needs & SES_NEEDS_SENTINELS) && x->n_sentinels < 1)
            return ses_fail(e, SES_EARG,
                            "objective %s needs sentinels: tokens <extra_id_0>, <extra_id_1>, ... in the "
                            "vocabulary, or a model whose vocabulary is larger than the tokenizer's",
                            o->name);
        if ((o->needs & SES_NEEDS_DECODER) && !a->build.encoder_decoder)
            return ses_fail(e, SES_EARG, "objective %s needs a model with an encoder and a decoder", o->name);
        if (o->check && !o->check(&a->build, e)) return false;
    }
    const ses_objective_options *o = &a->build.o;
    if (!check_share(o->mask_rate, "mask rate", e) ||
        !check_share(o->mask_rate_end, "mask rate at the end", e) ||
        !check_share(o->keep_rate, "share of kept tokens", e) ||
        !check_share(o->random_rate, "share of random tokens", e))
        return false;
    for (size_t i = 0; i < a->n_primary; i++) {
        ses_masking m = ses_masking_settings(&a->build, a->item[i].objective);
        if (m.mask_rate < 0)
            return ses_fail(e, SES_EARG, "shares of kept and random tokens add up to %g; expected at most 1",
                            1 - m.mask_rate);
    }
    return ses_objective_mix_max_passage(a) > 0 ||
           ses_fail(e, SES_EARG, "sequences of %lld tokens leave no room for text",
                    (long long)a->build.length);
}

/* Does the model have an encoder and a decoder? */
static bool has_pair(const ses_json *config, bool *pair, ses_err *e)
{
    ses_err none = { 0 };
    *pair = ses_model_class_for_head(config, "conditional-generation", &none) != NULL;
    return none.code != SES_ENOMEM || ses_fail(e, none.code, "%s", none.msg);
}

ses_objective_mix *ses_objective_mix_new(const ses_objective_mix_options *o, const ses_json *config,
                                         ses_err *e)
{
    ses_objective_mix *a = ses_alloc(sizeof *a, e);
    if (!a) return NULL;
    a->build = (ses_build_ctx){ .o = o->o,
                                .special_tokens = o->lexicon,
                                .control_code = o->control_code,
                                .n_control_codes = o->n_control_codes,
                                .length = o->length,
                                .seed = o->seed };
    if (has_pair(config, &a->build.encoder_decoder, e) && parse(a, o->objectives, e) && check(a, e) &&
        ses_batch_builder_begin(&a->builder, e))
        return a;
    ses_objective_mix_free(a);
    return NULL;
}

void ses_objective_mix_free(ses_objective_mix *a)
{
    if (!a) return;
    ses_batch_builder_free(&a->builder);
    ses_word_spans_free(&a->build.words);
    ses_ints_free(&a->build.chosen);
    ses_ints_free(&a->build.text);
    ses_noised_text_free(&a->build.noised);
    ses_free(a);
}

unsigned ses_objective_mix_needs(const ses_objective_mix *a)
{
    unsigned needs = 0;
    for (size_t i = 0; i < a->n; i++) needs |= a->item[i].objective->needs;
    return needs;
}

ses_pairing ses_objective_mix_pairing(const ses_objective_mix *a)
{
    ses_pairing p = SES_PAIRS_POSITIVE;
    for (size_t i = 0; i < a->n; i++)
        if (a->item[i].objective->pairing != SES_PAIRS_POSITIVE) p = a->item[i].objective->pairing;
    return p;
}

int64_t ses_objective_mix_max_passage(const ses_objective_mix *a)
{
    int64_t framed = ses_framed_max_passage(&a->build), least = a->n_primary ? INT64_MAX : framed;
    for (size_t i = 0; i < a->n_primary; i++) {
        const ses_objective *o = a->item[i].objective;
        int64_t n = o->max_passage ? o->max_passage(&a->build, o) : framed;
        if (n < least) least = n;
    }
    return least;
}

static const char *head_of(const ses_objective_mix *a, const ses_objective *o)
{
    return a->build.encoder_decoder && o->seq2seq_head ? o->seq2seq_head : o->head;
}

const char *ses_objective_mix_class(const ses_objective_mix *a, const ses_json *config, ses_err *e)
{
    const char *head[SES_MAX_OBJECTIVES];
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        bool known = false;
        const char *h = head_of(a, a->item[i].objective);
        for (size_t j = 0; j < n; j++) known |= !strcmp(head[j], h);
        if (!known) head[n++] = h;
    }
    return ses_model_class_for_heads(config, head, n, e);
}

/* The model can do what its objectives ask. */
static bool can(const ses_objective_mix *a, const ses_model *m, ses_err *e)
{
    for (size_t i = 0; i < a->n; i++) {
        const ses_objective *o = a->item[i].objective;
        if ((o->needs & SES_NEEDS_PERMUTATION) && !m->c.xl.permutation_lm)
            return ses_fail(e, SES_EARG,
                            "objective %s needs a model that reads in any order, as xlnet; not %s", o->name,
                            m->desc->name);
        if ((o->needs & SES_NEEDS_RECURRENCE) && !m->c.xl.segment_recurrence)
            return ses_fail(e, SES_EARG, "objective %s needs a model that remembers, as transfo-xl; not %s",
                            o->name, m->desc->name);
    }
    return true;
}

bool ses_objective_mix_set_models(ses_objective_mix *a, ses_model *model, ses_model *partner, ses_err *e)
{
    if (!can(a, model, e)) return false;
    if ((ses_objective_mix_needs(a) & SES_NEEDS_GENERATOR) && !partner)
        return ses_fail(e, SES_EARG, "objective %s needs a generator beside the model",
                        a->item[0].objective->name);
    if (partner && ses_model_vocab_size(partner) != ses_model_vocab_size(model))
        return ses_fail(e, SES_EARG, "the generator's vocabulary has %lld tokens, the model's %lld",
                        (long long)ses_model_vocab_size(partner), (long long)ses_model_vocab_size(model));
    if (ses_model_vocab_size(model) < a->build.special_tokens->size)
        return ses_fail(e, SES_EARG, "the model's vocabulary has %lld tokens, the tokenizer's %lld",
                        (long long)ses_model_vocab_size(model), (long long)a->build.special_tokens->size);
    a->model = model;
    a->generator = partner;
    return !partner || ses_share_embeddings(model, partner, e);
}

bool ses_objective_mix_set_teacher(ses_objective_mix *a, ses_distill *d, ses_err *e)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->item[i].objective->loss)
            return ses_fail(e, SES_EARG, "objective %s cannot be learned from a teacher",
                            a->item[i].objective->name);
    a->distill = d;
    return true;
}

/* ---- batches ---- */

size_t ses_objective_mix_choose(const ses_objective_mix *a, uint64_t number)
{
    double sum = 0;
    ses_rng_stream d = ses_rng_stream_of(a->build.seed, number, SES_RNG_OBJECTIVE);
    for (size_t i = 0; i < a->n_primary; i++) sum += a->item[i].weight;
    double u = ses_draw_unit(&d) * sum;
    for (size_t i = 0; i + 1 < a->n_primary; i++)
        if ((u -= a->item[i].weight) < 0) return i;
    return a->n_primary ? a->n_primary - 1 : 0;
}

bool ses_objective_mix_begin_batch(ses_objective_mix *a, size_t way, double progress, ses_err *e)
{
    a->primary = way;
    a->build.progress = progress;
    return ses_batch_builder_begin(&a->builder, e);
}

bool ses_objective_mix_add_passage(ses_objective_mix *a, const ses_passage *p, ses_err *e)
{
    const ses_objective *lays = a->n_primary ? a->item[a->primary].objective : NULL;
    if (lays ? !lays->build(&a->build, lays, p, &a->builder, e)
             : !ses_build_framed(&a->build, p, p->id, NULL, &a->builder, e))
        return false;
    for (size_t i = a->n_primary; i < a->n; i++) {
        const ses_objective *rider = a->item[i].objective;
        if (!rider->build(&a->build, rider, p, &a->builder, e)) return false;
    }
    return true;
}

bool ses_objective_mix_end_batch(ses_objective_mix *a, ses_batch *out, ses_err *e)
{
    *out = ses_batch_builder_batch(&a->builder);
    if (out->seqs < 1) return ses_fail(e, SES_EARG, "a batch of no passages");
    if (!a->n_primary) out->labels = out->pair_labels; /* a class with that head alone reads them there */
    bool asked = !out->pair_labels;
    for (int64_t s = 0; !asked && s < out->seqs; s++) asked = out->pair_labels[s] != SES_IGNORE_INDEX;
    return asked || ses_fail(e, SES_EARG,
                             "objective %s needs two segments, and no passage of a batch has a second: texts "
                             "of at least two sentences, packed in pairs",
                             a->item[a->n - 1].objective->name);
}

/* ---- losses ---- */

/* The objective a head's loss belongs to: the batch's own, or one that rides. */
static double weight_of(const ses_objective_mix *a, const char *head, bool *ours)
{
    *ours = true;
    if (a->n_primary && !strcmp(head_of(a, a->item[a->primary].objective), head))
        return a->n_primary == 1 ? a->item[0].weight : 1;
    for (size_t i = a->n_primary; i < a->n; i++)
        if (!strcmp(head_of(a, a->item[i].objective), head)) return a->item[i].weight;
    *ours = false;
    return 0;
}

static ses_tensor *heads_loss(const ses_objective_mix *a, ses_tape *t, const ses_batch *b, ses_err *e)
{
    ses_outputs out;
    ses_tensor *sum = NULL;
    if (!ses_model_forward(a->model, t, b, &(ses_output_request){ 0 }, &out, e)) return NULL;
    for (size_t i = 0; i < out.heads; i++) {
        bool ours;
        double weight = out.head[i].loss ? weight_of(a, out.head[i].name, &ours) : 0;
        if (!weight) continue;
        ses_tensor *l = weight == 1 ? out.head[i].loss : ses_scale(t, out.head[i].loss, weight);
        sum = sum ? ses_add(t, sum, l) : l;
    }
    if (!sum)
        ses_fail(e, SES_EARG, "%s has no head for objective %s", ses_model_class_name(a->model),
                 a->item[0].objective->name);
    return sum;
}

ses_tensor *ses_objective_mix_loss(void *aim, ses_tape *t, const ses_batch *b, ses_err *e)
{
    ses_objective_mix *a = aim;
    const ses_objective *o = a->item[a->n_primary ? a->primary : 0].objective;
    if (a->distill) return ses_distill_loss(a->distill, t, b, e);
    ses_tensor *l = o->loss ? o->loss(a, o, t, b, e) : heads_loss(a, t, b, e);
    double weight = o->loss && a->n_primary == 1 ? a->item[0].weight : 1;
    return l && weight != 1 ? ses_scale(t, l, weight) : l;
}

/* ---- evaluation ---- */

void ses_metric_sums_add(ses_metric_sums *t, const char *objective, const char *what, double sum,
                         double count)
{
    char name[40];
    size_t i = 0;
    snprintf(name, sizeof name, "%s_%s", objective, what);
    while (i < t->n && strcmp(t->item[i].name, name)) i++;
    if (i == SES_MAX_METRIC_SUMS) return;
    if (i == t->n) {
        t->item[t->n] = (ses_metric_sum){ 0 };
        memcpy(t->item[t->n++].name, name, sizeof name);
    }
    t->item[i].sum += sum;
    t->item[i].count += count;
}

double ses_metric_sums_mean(const ses_metric_sums *t, const char *objective, const char *what)
{
    char name[sizeof t->item[0].name];
    snprintf(name, sizeof name, "%s_%s", objective, what);
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->item[i].name, name)) return t->item[i].sum / fmax(1, t->item[i].count);
    return 0;
}

double ses_objective_mix_total_loss(const ses_objective_mix *a, const ses_metric_sums *tally)
{
    double loss = 0, weights = 0;
    for (size_t i = 0; i < a->n_primary; i++) weights += a->item[i].weight;
    for (size_t i = 0; i < a->n; i++) {
        const ses_objective *o = a->item[i].objective;
        double weight = a->item[i].weight / (i < a->n_primary && a->n_primary > 1 ? weights : 1);
        loss += weight *
                (o->total_loss ? o->total_loss(a, o, tally) : ses_metric_sums_mean(tally, o->name, "loss"));
    }
    return loss;
}

bool ses_metric_sums_add_head(ses_metric_sums *tally, const char *objective, ses_tape *t,
                              const ses_outputs *out, size_t i, const int32_t *label, int64_t n, ses_err *e)
{
    ses_real loss = 0;
    if (!n) return true;
    if (!ses_tape_read(t, out->head[i].loss, &loss)) return ses_tape_ok(t, e);
    ses_metric_sums_add(tally, objective, "loss", (double)loss * (double)n, (double)n);
    const ses_output *x = ses_outputs_find(out, out->head[i].output);
    if (!x || ses_rows(x->tensor) != n) return true;
    int64_t right = ses_count_correct(t, x->tensor, label, n, e);
    if (right >= 0) ses_metric_sums_add(tally, objective, "accuracy", (double)right, (double)n);
    return right >= 0;
}

bool ses_objective_mix_measure(ses_objective_mix *a, ses_tape *t, const ses_batch *b, ses_metric_sums *tally,
                               ses_err *e)
{
    const ses_objective *o = a->item[a->n_primary ? a->primary : 0].objective;
    if (o->measure) return o->measure(a, o, t, b, tally, e);
    ses_outputs out;
    int32_t *rows, *label;
    int64_t n = ses_label_rows(t, b, head_of(a, o), &rows, &label);
    ses_output_request want = { .logits = true, .rows = rows, .n_rows = n };
    if (!ses_tape_ok(t, e) || !ses_model_forward(a->model, t, b, &want, &out, e)) return false;
    for (size_t i = 0; i < out.heads; i++)
        for (size_t j = 0; out.head[i].loss && j < a->n; j++) {
            const ses_objective *of = a->item[j].objective;
            if ((j < a->n_primary && j != a->primary) || strcmp(head_of(a, of), out.head[i].name)) continue;
            n = ses_label_rows(t, b, out.head[i].name, &rows, &label);
            if (!ses_tape_ok(t, e) || !ses_metric_sums_add_head(tally, of->name, t, &out, i, label, n, e))
                return false;
        }
    return true;
}
