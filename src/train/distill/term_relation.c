/* Relations of tokens: KL divergence of softmax(a b' / sqrt(d)) in the student's last layer and a layer of
 * the teacher. MiniLM: attention and vv with the attention heads of both; MiniLMv2: qq, kk and vv with any
 * heads. */
#include "distill_impl.h"

#include <string.h>

static const struct kind {
    const char *name;
    const char *a, *b; /* captured outputs; b NULL: as a */
} kinds[] = {
    { "attention", "queries", "keys" },
    { "qq", "queries", NULL },
    { "kk", "keys", NULL },
    { "vv", "values", NULL },
};

static void request(ses_output_request *want) { want->qkv = true; }

/* Takes the next name of the list "qq,kk,vv". NULL: the end, or an unknown name if *len is not 0. */
static const struct kind *next_kind(const char **list, size_t *len)
{
    *len = strcspn(*list, ",");
    const char *name = *list;
    for (size_t i = 0; i < SES_LEN(kinds); i++)
        if (*len == strlen(kinds[i].name) && !memcmp(name, kinds[i].name, *len)) {
            *list += *len + (name[*len] == ',');
            return &kinds[i];
        }
    return NULL;
}

static const char *list_of(const ses_distill *d) { return d->o.relations ? d->o.relations : "qq,kk,vv"; }

static bool check_list(const ses_distill *d, ses_err *e)
{
    const char *at = list_of(d);
    size_t len, n = 0;
    while (next_kind(&at, &len)) n++;
    if (n && !*at && at[-1] != ',') return true;
    return ses_fail(e, SES_EUSAGE,
                    "relations \"%s\": expected a list of attention, qq, kk and vv, separated by commas",
                    list_of(d));
}

/* Encoders only: all tokens of a text are compared. */
static bool check_model(const ses_model *m, const char *who, ses_err *e)
{
    const char *why = !ses_model_part_neurons(m, SES_PART_MAIN)     ? "has no attention"
                      : ses_model_part_layers(m, SES_PART_DECODER)  ? "is an encoder-decoder"
                      : m->stack[0].causal || m->c.attention.causal ? "reads from left to right"
                                                                    : NULL;
    if (!why) return true;
    return ses_fail(e, SES_EUNSUPPORTED,
                    "relations compare all tokens of a text in an encoder's attention: the %s, %s (%s), %s",
                    who, ses_model_class_name(m), m->desc->name, why);
}

static int64_t width_of(const ses_model *m, int64_t layer)
{
    const ses_config *c = m->stack[0].c;
    int64_t size = c->attention.head_size ? c->attention.head_size : c->hidden / m->stack[0].heads;
    return size * ses_model_part_heads(m, SES_PART_MAIN, layer);
}

/* The layer of the teacher, counted from 0. */
static int64_t teacher_layer(const ses_distill *d)
{
    int64_t n = d->o.teacher_layer;
    return (n ? n : ses_model_part_layers(d->teacher, SES_PART_MAIN)) - 1;
}

static int64_t heads_of(const ses_distill *d)
{
    return d->o.relation_heads ? d->o.relation_heads
                               : ses_model_part_heads(d->teacher, SES_PART_MAIN, teacher_layer(d));
}

static bool check_heads(const ses_distill *d, const ses_model *m, int64_t layer, const char *who, ses_err *e)
{
    int64_t heads = heads_of(d), width = width_of(m, layer);
    if (heads > 0 && width % heads == 0) return true;
    return ses_fail(
        e, SES_EARG,
        "relation-heads %lld: does not divide the width of the %s's queries, keys and values, %lld (%s)",
        (long long)heads, who, (long long)width, ses_model_class_name(m));
}

static bool check(const ses_distill *d, ses_err *e)
{
    if (!check_list(d, e) || !check_model(d->student, "student", e) || !check_model(d->teacher, "teacher", e))
        return false;
    int64_t layers = ses_model_part_layers(d->teacher, SES_PART_MAIN);
    if (d->o.teacher_layer < 0 || d->o.teacher_layer > layers)
        return ses_fail(e, SES_EARG, "teacher-layer %lld: the teacher has layers 1 to %lld; 0: the last",
                        (long long)d->o.teacher_layer, (long long)layers);
    return check_heads(d, d->student, ses_model_part_layers(d->student, SES_PART_MAIN) - 1, "student", e) &&
           check_heads(d, d->teacher, teacher_layer(d), "teacher", e);
}

/* Output "NAME.layer" of a model; false: it has none. */
static bool take(ses_distill_step *s, const ses_outputs *from, const ses_model *m, const char *name,
                 int64_t layer, ses_tensor **out)
{
    const ses_output *x = name ? ses_distill_output(from, name, layer) : NULL;
    *out = x ? x->tensor : NULL;
    if (!name || *out) return true;
    return ses_tape_ok(s->t, s->e) &&
           ses_fail(s->e, SES_EUNSUPPORTED, "relations: %s (%s) does not give %s of layer %lld",
                    ses_model_class_name(m), m->desc->name, name, (long long)layer + 1);
}

static bool add(ses_distill_step *s)
{
    const ses_distill *d = s->d;
    const char *at = list_of(d);
    size_t len;
    int64_t last = ses_model_part_layers(d->student, SES_PART_MAIN) - 1, theirs = teacher_layer(d);
    for (const struct kind *k; (k = next_kind(&at, &len));) {
        ses_tensor *x[2], *y[2];
        if (!take(s, &s->ours, d->student, k->a, last, &x[0]) ||
            !take(s, &s->ours, d->student, k->b, last, &x[1]) ||
            !take(s, &s->theirs, d->teacher, k->a, theirs, &y[0]) ||
            !take(s, &s->theirs, d->teacher, k->b, theirs, &y[1]))
            return false;
        ses_tensor *loss = ses_relation_loss(s->t, x[0], x[1], y[0], y[1], s->batch->cu_seqlens,
                                             s->batch->seqs, heads_of(d));
        if (!ses_distill_add(s, loss, d->o.relation)) return false;
    }
    return true;
}

const ses_distill_term ses_distill_term_relation = {
    .weight = offsetof(ses_distill_options, relation), .check = check, .request = request, .add = add
};
