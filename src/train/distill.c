/* Knowledge distillation: the combined loss; distill/ has its terms. */
#include "train/distill/distill_impl.h"

#include "base/alloc.h"
#include "op/op.h"
#include "tensor/device_impl.h"
#include "train/objective/objective.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const ses_distill_options ses_distill_defaults = { .temperature = 2, .soft = 5, .hard = 2, .cosine = 1 };

#define SES_DISTILL_TERM(name) &ses_distill_term_##name,
static const ses_distill_term *const terms[] = {
#include "train/distill/distill_terms.def"
};
#undef SES_DISTILL_TERM

static bool uses(const ses_distill *d, const ses_distill_term *t)
{
    double weight;
    memcpy(&weight, (const char *)&d->o + t->weight, sizeof weight);
    return weight > 0;
}

/* Do vocabulary, labels and device of a teacher fit? */
static bool check_teacher(const ses_distill *d, const ses_model *teacher, ses_err *e)
{
    int64_t ours = ses_model_vocab_size(d->student), theirs = ses_model_vocab_size(teacher);
    if (ours != theirs)
        return ses_fail(e, SES_EARG,
                        "the student's vocabulary has %lld tokens, the teacher's %lld: both need the same "
                        "tokens",
                        (long long)ours, (long long)theirs);
    if (ses_model_label_count(d->student) != ses_model_label_count(teacher))
        return ses_fail(e, SES_EARG, "the student has %lld labels, the teacher %lld",
                        (long long)ses_model_label_count(d->student),
                        (long long)ses_model_label_count(teacher));
    const ses_device *at = ses_store_device(ses_model_store(d->student));
    const ses_device *teacher_at = ses_store_device(ses_model_store(teacher));
    if (at != teacher_at && !(at->is_host && teacher_at->is_host))
        return ses_fail(e, SES_EARG, "the student and the teacher must be on one device");
    return true;
}

static bool check(const ses_distill *d, ses_err *e)
{
    const ses_distill_options *o = &d->o;
    bool any = false;
    if (!check_teacher(d, d->teacher, e)) return false;
    if (!(o->temperature > 0))
        return ses_fail(e, SES_EARG, "distillation temperature %g; expected above 0", o->temperature);
    for (size_t i = 0; i < SES_LEN(terms); i++) {
        if (!uses(d, terms[i])) continue;
        any = true;
        if (terms[i]->check && !terms[i]->check(d, e)) return false;
    }
    return any || ses_fail(e, SES_EARG, "all distillation weights are 0");
}

static bool add_projections(ses_distill *d, ses_err *e)
{
    int64_t ours = d->student->c.hidden, theirs = d->teacher->c.hidden;
    bool projects = false;
    for (size_t i = 0; i < SES_LEN(terms); i++) projects |= terms[i]->projects && uses(d, terms[i]);
    if (ours == theirs || !projects) return true;
    d->store = ses_store_new(ses_store_device(ses_model_store(d->student)), e);
    if (!d->store) return false;
    d->project[0] = ses_store_add(d->store, "distill.embed", SES_DIM(theirs, ours), SES_INIT_NORMAL);
    d->project[1] = ses_store_add(d->store, "distill.hidden", SES_DIM(theirs, ours), SES_INIT_NORMAL);
    if (!ses_store_ok(d->store, e) || !ses_store_alloc_trainable(d->store, e)) return false;
    ses_store_init(d->store, 1 / sqrt((double)ours), 0);
    return true;
}

ses_store *ses_distill_store(const ses_distill *d) { return d ? d->store : NULL; }

ses_distill *ses_distill_new(const ses_distill_options *o, ses_model *student, const ses_model *teacher,
                             ses_err *e)
{
    ses_distill *d = ses_alloc(sizeof *d, e);
    if (!d) return NULL;
    *d = (ses_distill){ .o = *o, .student = student, .teacher = teacher };
    if (check(d, e) && add_projections(d, e) &&
        (d->tape = ses_tape_new(ses_store_device(ses_model_store(teacher)), NULL, e)))
        return d;
    ses_distill_free(d);
    return NULL;
}

bool ses_distill_add_teacher(ses_distill *d, const ses_model *teacher, ses_err *e)
{
    size_t cap = d->n_more;
    for (size_t i = 0; i < SES_LEN(terms); i++)
        if (uses(d, terms[i]) && !terms[i]->mean_teachers)
            return ses_fail(
                e, SES_EUSAGE,
                "several teachers have a mean of probabilities only: leave out the weights of hidden "
                "states, cosine, attention and relations");
    if (!check_teacher(d, teacher, e) ||
        !ses_array_reserve(&d->more, &cap, d->n_more + 1, sizeof(const ses_model *), e))
        return false;
    d->more[d->n_more++] = teacher;
    return true;
}

void ses_distill_free(ses_distill *d)
{
    if (!d) return;
    ses_free(d->more);
    ses_tape_free(d->tape);
    ses_store_free(d->store);
    ses_free(d);
}

/* ---- what terms share ---- */

bool ses_distill_add(ses_distill_step *s, ses_tensor *loss, double weight)
{
    loss = weight == 1 ? loss : ses_scale(s->t, loss, weight);
    s->sum = s->sum ? ses_add(s->t, s->sum, loss) : loss;
    return ses_tape_ok(s->t, s->e);
}

ses_tensor *ses_distill_target(ses_distill_step *s, const ses_tensor *x, const ses_output *y,
                               const char *what)
{
    if (!x && !ses_tape_ok(s->t, s->e)) return NULL;
    if (!x || !y) {
        ses_fail(s->e, SES_EUNSUPPORTED, "%s: not available from both %s and %s", what,
                 ses_model_class_name(s->d->student), ses_model_class_name(s->d->teacher));
        return NULL;
    }
    if (!ses_same_shape(x, y->tensor)) {
        ses_fail(s->e, SES_EARG,
                 "%s: the student's have %lld columns and %lld rows, the teacher's %lld and %lld", what,
                 (long long)ses_cols(x), (long long)ses_rows(x), (long long)ses_cols(y->tensor),
                 (long long)ses_rows(y->tensor));
        return NULL;
    }
    return y->tensor;
}

const ses_output *ses_distill_output(const ses_outputs *o, const char *name, int64_t i)
{
    char text[40];
    snprintf(text, sizeof text, "%s.%d", name, (int)i);
    return ses_outputs_find(o, text);
}

int64_t ses_distill_count(const ses_outputs *o, const char *name)
{
    int64_t n = 0;
    while (ses_distill_output(o, name, n)) n++;
    return n;
}

ses_tensor *ses_distill_project(ses_distill_step *s, ses_tensor *x, int64_t i)
{
    ses_tensor *w = s->d->project[i > 0];
    return w ? ses_linear(s->t, x, w, NULL, SES_ACT_NONE, SES_OUT_IN) : x;
}

bool ses_distill_add_layers(ses_distill_step *s, const char *name, const char *label, int64_t embeddings,
                            double weight)
{
    int64_t ours = ses_distill_count(&s->ours, name), theirs = ses_distill_count(&s->theirs, name);
    int64_t n = ours - embeddings, t = theirs - embeddings;
    if (n < 1 || t < n)
        return ses_fail(s->e, SES_EARG, "%s: the student has %lld layers, the teacher %lld", label,
                        (long long)n, (long long)t);
    for (int64_t i = 0; i < ours; i++) {
        ses_tensor *x = ses_distill_output(&s->ours, name, i)->tensor;
        if (embeddings) x = ses_distill_project(s, x, i);
        int64_t at = embeddings ? i * t / n : (i + 1) * t / n - 1;
        ses_tensor *target = ses_distill_target(s, x, ses_distill_output(&s->theirs, name, at), label);
        if (!target || !ses_distill_add(s, ses_teacher_loss(s->t, x, target, SES_TEACHER_MSE, 1), weight))
            return false;
    }
    return true;
}

/* ---- loss ---- */

ses_tensor *ses_distill_loss(void *distill, ses_tape *t, const ses_batch *b, ses_err *e)
{
    ses_distill *d = distill;
    const ses_head *head = d->student->class->head[0].head;
    ses_output_request want = { 0 };
    ses_distill_step s = { .d = d, .t = t, .batch = b, .want = &want, .e = e };
    int32_t *rows, *labels;
    ses_batch copy = *b;
    for (size_t i = 0; i < SES_LEN(terms); i++)
        if (uses(d, terms[i])) terms[i]->request(&want);
    if (head && head->is_lm) {
        want.n_rows = ses_label_rows(t, b, head->name, &rows, &labels);
        want.rows = rows;
        want.logits &= want.n_rows > 0;
    }
    ses_tape_reset(d->tape, NULL);
    if (!ses_tape_ok(t, e) || !ses_model_forward(d->student, t, b, &want, &s.ours, e) ||
        !ses_model_forward(d->teacher, d->tape, &copy, &want, &s.theirs, e))
        return NULL;
    if (d->o.hard > 0 && s.ours.loss && !ses_distill_add(&s, s.ours.loss, d->o.hard)) return NULL;
    for (size_t i = 0; i < SES_LEN(terms); i++)
        if (uses(d, terms[i]) && !terms[i]->add(&s)) return NULL;
    ses_tape_add_flops(t, ses_tape_flops(d->tape)); /* the teachers' forward passes */
    return s.sum;
}
