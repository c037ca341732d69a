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

const ses_objective_options ses_objective_usual = { .mask_rate = -1,
                                                    .mask_rate_end = -1,
                                                    .as_kept = -1,
                                                    .as_random = -1,
                                                    .mask_unit = -1,
                                                    .span_length = -1,
                                                    .span_longest = -1,
                                                    .pieces = 2,
                                                    .replaced_weight = 50,
                                                    .sampling_heat = 1 };

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
static bool add_item(ses_aim *a, const ses_objective *o, double weight, ses_err *e)
{
    if (a->n == SES_AIM_MOST) return ses_fail(e, SES_EARG, "more than %d objectives", SES_AIM_MOST);
    for (size_t i = 0; i < a->n; i++)
        if (a->item[i].objective == o) return ses_fail(e, SES_EARG, "objective %s twice", o->name);
    size_t at = o->rides ? a->n : a->ways;
    memmove(&a->item[at + 1], &a->item[at], (a->n - at) * sizeof a->item[0]);
    a->item[at].objective = o;
    a->item[at].weight = weight;
    a->n++;
    a->ways += !o->rides;
    return true;
}

/* "mlm:1,nsp:0.5" */
static bool parse(ses_aim *a, const char *text, ses_err *e)
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
static bool check(const ses_aim *a, ses_err *e)
{
    const ses_lexicon *x = a->w.x;
    for (size_t i = 0; i < a->n; i++) {
        const ses_objective *o = a->item[i].objective;
        if ((o->needs & SES_NEEDS_MASK) && x->mask < 0)
            return ses_fail(
                e, SES_EARG,
                "objective %s needs a mask token, and the vocabulary has none: train the tokenizer "
                "with [MASK] or <mask> among its special tokens",
                o->name);
        if ((o->needs & SES_NEEDS_SENTINELS) && x->sentinels < 1)
            return ses_fail(e, SES_EARG,
                            "objective %s needs sentinels: tokens <extra_id_0>, <extra_id_1>, ... in the "
                            "vocabulary, or a model whose vocabulary is larger than the tokenizer's",
                            o->name);
        if ((o->needs & SES_NEEDS_DECODER) && !a->w.pair)
            return ses_fail(e, SES_EARG, "objective %s needs a model with an encoder and a decoder", o->name);
        if (o->check && !o->check(&a->w, e)) return false;
    }
    const ses_objective_options *o = &a->w.o;
    if (!check_share(o->mask_rate, "mask rate", e) ||
        !check_share(o->mask_rate_end, "mask rate at the end", e) ||
        !check_share(o->as_kept, "share of kept tokens", e) ||
        !check_share(o->as_random, "share of random tokens", e))
        return false;
    for (size_t i = 0; i < a->ways; i++) {
        ses_masking m = ses_masking_of(&a->w, a->item[i].objective);
        if (m.as_mask < 0)
            return ses_fail(e, SES_EARG, "shares of kept and random tokens add up to %g; expected at most 1",
                            1 - m.as_mask);
    }
    return ses_aim_fits(a) > 0 ||
           ses_fail(e, SES_EARG, "sequences of %lld tokens leave no room for text", (long long)a->w.length);
}

/* Does the model have an encoder and a decoder? */
static bool has_pair(const ses_json *config, bool *pair, ses_err *e)
{
    ses_err none = { 0 };
    *pair = ses_model_class_with(config, "conditional-generation", &none) != NULL;
    return none.code != SES_ENOMEM || ses_fail(e, none.code, "%s", none.msg);
}

ses_aim *ses_aim_new(const ses_aim_options *o, const ses_json *config, ses_err *e)
{
    ses_aim *a = ses_alloc(sizeof *a, e);
    if (!a) return NULL;
    a->w = (ses_laying){
        .o = o->o, .x = o->lexicon, .code = o->code, .codes = o->codes, .length = o->length, .seed = o->seed
    };
    if (has_pair(config, &a->w.pair, e) && parse(a, o->objectives, e) && check(a, e) &&
        ses_draft_begin(&a->draft, e))
        return a;
    ses_aim_free(a);
    return NULL;
}

void ses_aim_free(ses_aim *a)
{
    if (!a) return;
    ses_draft_free(&a->draft);
    ses_bounds_free(&a->w.words);
    ses_ints_free(&a->w.chosen);
    ses_ints_free(&a->w.text);
    ses_noised_free(&a->w.noised);
    ses_free(a);
}

unsigned ses_aim_needs(const ses_aim *a)
{
    unsigned needs = 0;
    for (size_t i = 0; i < a->n; i++) needs |= a->item[i].objective->needs;
    return needs;
}

ses_pairing ses_aim_pairing(const ses_aim *a)
{
    ses_pairing p = SES_PAIRS_TRUE;
    for (size_t i = 0; i < a->n; i++)
        if (a->item[i].objective->pairing != SES_PAIRS_TRUE) p = a->item[i].objective->pairing;
    return p;
}

int64_t ses_aim_fits(const ses_aim *a)
{
    int64_t framed = ses_framed_room(&a->w), least = a->ways ? INT64_MAX : framed;
    for (size_t i = 0; i < a->ways; i++) {
        const ses_objective *o = a->item[i].objective;
        int64_t n = o->fits ? o->fits(&a->w, o) : framed;
        if (n < least) least = n;
    }
    return least;
}

static const char *head_of(const ses_aim *a, const ses_objective *o)
{
    return a->w.pair && o->pair_head ? o->pair_head : o->head;
}

const char *ses_aim_class(const ses_aim *a, const ses_json *config, ses_err *e)
{
    const char *head[SES_AIM_MOST];
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        bool known = false;
        const char *h = head_of(a, a->item[i].objective);
        for (size_t j = 0; j < n; j++) known |= !strcmp(head[j], h);
        if (!known) head[n++] = h;
    }
    return ses_model_class_with_all(config, head, n, e);
}

/* The model can do what its objectives ask. */
static bool can(const ses_aim *a, const ses_model *m, ses_err *e)
{
    for (size_t i = 0; i < a->n; i++) {
        const ses_objective *o = a->item[i].objective;
        if ((o->needs & SES_NEEDS_ORDER) && !m->c.any_order)
            return ses_fail(e, SES_EARG,
                            "objective %s needs a model that reads in any order, as xlnet; not %s", o->name,
                            m->desc->name);
        if ((o->needs & SES_NEEDS_MEMORY) && !m->c.remembers)
            return ses_fail(e, SES_EARG, "objective %s needs a model that remembers, as transfo-xl; not %s",
                            o->name, m->desc->name);
    }
    return true;
}

bool ses_aim_models(ses_aim *a, ses_model *model, ses_model *partner, ses_err *e)
{
    if (!can(a, model, e)) return false;
    if ((ses_aim_needs(a) & SES_NEEDS_PARTNER) && !partner)
        return ses_fail(e, SES_EARG, "objective %s needs a generator beside the model",
                        a->item[0].objective->name);
    if (partner && ses_model_vocab(partner) != ses_model_vocab(model))
        return ses_fail(e, SES_EARG, "the generator's vocabulary has %lld tokens, the model's %lld",
                        (long long)ses_model_vocab(partner), (long long)ses_model_vocab(model));
    if (ses_model_vocab(model) < a->w.x->size)
        return ses_fail(e, SES_EARG, "the model's vocabulary has %lld tokens, the tokenizer's %lld",
                        (long long)ses_model_vocab(model), (long long)a->w.x->size);
    a->model = model;
    a->partner = partner;
    return !partner || ses_share_embeddings(model, partner, e);
}

bool ses_aim_teacher(ses_aim *a, ses_distill *d, ses_err *e)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->item[i].objective->loss)
            return ses_fail(e, SES_EARG, "objective %s cannot be learned from a teacher",
                            a->item[i].objective->name);
    a->distill = d;
    return true;
}

/* ---- batches ---- */

size_t ses_aim_turn(const ses_aim *a, uint64_t number)
{
    double sum = 0;
    ses_draws d = ses_draws_of(a->w.seed, number, SES_DRAW_TURN);
    for (size_t i = 0; i < a->ways; i++) sum += a->item[i].weight;
    double u = ses_draw(&d) * sum;
    for (size_t i = 0; i + 1 < a->ways; i++)
        if ((u -= a->item[i].weight) < 0) return i;
    return a->ways ? a->ways - 1 : 0;
}

bool ses_aim_begin(ses_aim *a, size_t way, double progress, ses_err *e)
{
    a->way = way;
    a->w.progress = progress;
    return ses_draft_begin(&a->draft, e);
}

bool ses_aim_add(ses_aim *a, const ses_passage *p, ses_err *e)
{
    const ses_objective *lays = a->ways ? a->item[a->way].objective : NULL;
    if (lays ? !lays->lay(&a->w, lays, p, &a->draft, e)
             : !ses_lay_framed(&a->w, p, p->id, NULL, &a->draft, e))
        return false;
    for (size_t i = a->ways; i < a->n; i++) {
        const ses_objective *rider = a->item[i].objective;
        if (!rider->lay(&a->w, rider, p, &a->draft, e)) return false;
    }
    return true;
}

bool ses_aim_batch(ses_aim *a, ses_batch *out, ses_err *e)
{
    *out = ses_draft_batch(&a->draft);
    if (out->seqs < 1) return ses_fail(e, SES_EARG, "a batch of no passages");
    if (!a->ways) out->labels = out->pair_labels; /* a class with that head alone reads them there */
    bool asked = !out->pair_labels;
    for (int64_t s = 0; !asked && s < out->seqs; s++) asked = out->pair_labels[s] != SES_IGNORE;
    return asked || ses_fail(e, SES_EARG,
                             "objective %s needs two segments, and no passage of a batch has a second: texts "
                             "of at least two sentences, packed in pairs",
                             a->item[a->n - 1].objective->name);
}

/* ---- losses ---- */

/* The objective a head's loss belongs to: the batch's own, or one that rides. */
static double weight_of(const ses_aim *a, const char *head, bool *ours)
{
    *ours = true;
    if (a->ways && !strcmp(head_of(a, a->item[a->way].objective), head))
        return a->ways == 1 ? a->item[0].weight : 1;
    for (size_t i = a->ways; i < a->n; i++)
        if (!strcmp(head_of(a, a->item[i].objective), head)) return a->item[i].weight;
    *ours = false;
    return 0;
}

static ses_tensor *heads_loss(const ses_aim *a, ses_tape *t, const ses_batch *b, ses_err *e)
{
    ses_outputs out;
    ses_tensor *sum = NULL;
    if (!ses_model_forward(a->model, t, b, &(ses_want){ 0 }, &out, e)) return NULL;
    for (size_t i = 0; i < out.heads; i++) {
        bool ours;
        double weight = out.head[i].loss ? weight_of(a, out.head[i].name, &ours) : 0;
        if (!weight) continue;
        ses_tensor *l = weight == 1 ? out.head[i].loss : ses_scale(t, out.head[i].loss, weight);
        sum = sum ? ses_add(t, sum, l) : l;
    }
    if (!sum)
        ses_fail(e, SES_EARG, "%s has no head for objective %s", ses_model_class(a->model),
                 a->item[0].objective->name);
    return sum;
}

ses_tensor *ses_aim_loss(void *aim, ses_tape *t, const ses_batch *b, ses_err *e)
{
    ses_aim *a = aim;
    const ses_objective *o = a->item[a->ways ? a->way : 0].objective;
    if (a->distill) return ses_distill_loss(a->distill, t, b, e);
    ses_tensor *l = o->loss ? o->loss(a, o, t, b, e) : heads_loss(a, t, b, e);
    double weight = o->loss && a->ways == 1 ? a->item[0].weight : 1;
    return l && weight != 1 ? ses_scale(t, l, weight) : l;
}

/* ---- evaluation ---- */

void ses_tally_add(ses_tally *t, const char *objective, const char *what, double sum, double count)
{
    char name[40];
    size_t i = 0;
    snprintf(name, sizeof name, "%s_%s", objective, what);
    while (i < t->n && strcmp(t->item[i].name, name)) i++;
    if (i == SES_TALLY_MOST) return;
    if (i == t->n) {
        t->item[t->n] = (ses_tally_item){ 0 };
        memcpy(t->item[t->n++].name, name, sizeof name);
    }
    t->item[i].sum += sum;
    t->item[i].count += count;
}

double ses_tally_mean(const ses_tally *t, const char *objective, const char *what)
{
    char name[sizeof t->item[0].name];
    snprintf(name, sizeof name, "%s_%s", objective, what);
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->item[i].name, name)) return t->item[i].sum / fmax(1, t->item[i].count);
    return 0;
}

double ses_aim_total(const ses_aim *a, const ses_tally *tally)
{
    double loss = 0, weights = 0;
    for (size_t i = 0; i < a->ways; i++) weights += a->item[i].weight;
    for (size_t i = 0; i < a->n; i++) {
        const ses_objective *o = a->item[i].objective;
        double weight = a->item[i].weight / (i < a->ways && a->ways > 1 ? weights : 1);
        loss += weight * (o->total ? o->total(a, o, tally) : ses_tally_mean(tally, o->name, "loss"));
    }
    return loss;
}

bool ses_tally_head(ses_tally *tally, const char *objective, ses_tape *t, const ses_outputs *out, size_t i,
                    const int32_t *label, int64_t n, ses_err *e)
{
    ses_real loss = 0;
    if (!n) return true;
    if (!ses_tape_read(t, out->head[i].loss, &loss)) return ses_tape_ok(t, e);
    ses_tally_add(tally, objective, "loss", (double)loss * (double)n, (double)n);
    const ses_output *x = ses_output_named(out, out->head[i].output);
    if (!x || ses_rows(x->tensor) != n) return true;
    int64_t right = ses_count_right(t, x->tensor, label, n, e);
    if (right >= 0) ses_tally_add(tally, objective, "accuracy", (double)right, (double)n);
    return right >= 0;
}

bool ses_aim_measure(ses_aim *a, ses_tape *t, const ses_batch *b, ses_tally *tally, ses_err *e)
{
    const ses_objective *o = a->item[a->ways ? a->way : 0].objective;
    if (o->measure) return o->measure(a, o, t, b, tally, e);
    ses_outputs out;
    int32_t *rows, *label;
    int64_t n = ses_label_rows(t, b, head_of(a, o), &rows, &label);
    ses_want want = { .logits = true, .rows = rows, .n_rows = n };
    if (!ses_tape_ok(t, e) || !ses_model_forward(a->model, t, b, &want, &out, e)) return false;
    for (size_t i = 0; i < out.heads; i++)
        for (size_t j = 0; out.head[i].loss && j < a->n; j++) {
            const ses_objective *of = a->item[j].objective;
            if ((j < a->ways && j != a->way) || strcmp(head_of(a, of), out.head[i].name)) continue;
            n = ses_label_rows(t, b, out.head[i].name, &rows, &label);
            if (!ses_tape_ok(t, e) || !ses_tally_head(tally, of->name, t, &out, i, label, n, e)) return false;
        }
    return true;
}
