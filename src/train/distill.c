/* Knowledge distillation: the combined loss, and initializing a student from its teacher. */
#include "distill.h"

#include "base/alloc.h"
#include "model/model_desc.h"
#include "op/op.h"
#include "tensor/device_impl.h"
#include "train/objective/objective.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const ses_distill_options ses_distill_defaults = { .temperature = 2, .soft = 5, .hard = 2, .cosine = 1 };

struct ses_distill {
    ses_distill_options o;
    ses_model *student;
    const ses_model *teacher;
    const ses_model **more; /* [n_more] further teachers; borrowed */
    size_t n_more;
    ses_tape *tape;         /* teacher's tape: not recorded, no dropout */
    ses_store *store;       /* holds the projections; NULL: equal widths */
    ses_tensor *project[2]; /* [teacher width, student width]: embeddings, layers */
};

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
    if (!check_teacher(d, d->teacher, e)) return false;
    if (!(o->temperature > 0))
        return ses_fail(e, SES_EARG, "distillation temperature %g; expected above 0", o->temperature);
    if (!(o->soft > 0 || o->cosine > 0 || o->hidden > 0 || o->attention > 0))
        return ses_fail(e, SES_EARG, "all distillation weights are 0");
    return true;
}

static bool add_projections(ses_distill *d, ses_err *e)
{
    int64_t ours = d->student->c.hidden, theirs = d->teacher->c.hidden;
    if (ours == theirs || !(d->o.cosine > 0 || d->o.hidden > 0)) return true;
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
    if (d->o.cosine > 0 || d->o.hidden > 0 || d->o.attention > 0)
        return ses_fail(e, SES_EUSAGE,
                        "several teachers have a mean of probabilities only: leave out the weights of hidden "
                        "states, cosine and attention");
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

/* ---- loss ---- */

typedef struct loss_ctx {
    ses_distill *d;
    ses_tape *t;
    ses_outputs ours, theirs;
    ses_tensor *sum;
    ses_err *e;
} loss_ctx;

static bool add_loss(loss_ctx *l, ses_tensor *loss, double weight)
{
    loss = weight == 1 ? loss : ses_scale(l->t, loss, weight);
    l->sum = l->sum ? ses_add(l->t, l->sum, loss) : loss;
    return ses_tape_ok(l->t, l->e);
}

/* The teacher's tensor y, checked to have the shape of the student's x. */
static ses_tensor *teacher_tensor(loss_ctx *l, const ses_tensor *x, const ses_output *y, const char *what)
{
    if (!x && !ses_tape_ok(l->t, l->e)) return NULL;
    if (!x || !y) {
        ses_fail(l->e, SES_EUNSUPPORTED, "%s: not available from both %s and %s", what,
                 ses_model_class_name(l->d->student), ses_model_class_name(l->d->teacher));
        return NULL;
    }
    if (!ses_same_shape(x, y->tensor)) {
        ses_fail(l->e, SES_EARG,
                 "%s: the student's have %lld columns and %lld rows, the teacher's %lld and %lld", what,
                 (long long)ses_cols(x), (long long)ses_rows(x), (long long)ses_cols(y->tensor),
                 (long long)ses_rows(y->tensor));
        return NULL;
    }
    return y->tensor;
}

static const ses_output *numbered(const ses_outputs *o, const char *what, int64_t i)
{
    char name[40];
    snprintf(name, sizeof name, "%s.%d", what, (int)i);
    return ses_outputs_find(o, name);
}

static int64_t count_of(const ses_outputs *o, const char *what)
{
    int64_t n = 0;
    while (numbered(o, what, n)) n++;
    return n;
}

/* ---- several teachers ---- */

/* Adds the probabilities of a row at temperature T, or its only value, to mean. */
static void add_probabilities(const ses_real *x, int64_t cols, double T, double weight, double *mean)
{
    double max = (double)x[0], sum = 0;
    if (cols == 1) {
        mean[0] += weight * (double)x[0];
        return;
    }
    for (int64_t k = 1; k < cols; k++) max = fmax(max, (double)x[k]);
    for (int64_t k = 0; k < cols; k++) sum += exp(((double)x[k] - max) / T);
    for (int64_t k = 0; k < cols; k++) mean[k] += weight * exp(((double)x[k] - max) / T) / sum;
}

/* The scores whose probabilities at temperature T are the mean of all teachers' (one column: the mean).
 * first: the scores of the first teacher, on its tape. NULL: failed. */
static ses_tensor *mean_scores(loss_ctx *l, const ses_batch *b, const ses_output_request *want,
                               ses_tensor *first)
{
    ses_distill *d = l->d;
    int64_t rows = ses_rows(first), cols = ses_cols(first);
    size_t count = (size_t)(rows * cols);
    double T = d->o.temperature, weight = 1 / (double)(d->n_more + 1);
    ses_real *x = ses_tape_host_alloc(d->tape, count, sizeof *x);
    double *mean = ses_tape_host_alloc(d->tape, count, sizeof *mean);
    if (!x || !mean || !ses_tape_read(d->tape, first, x)) return ses_tape_ok(d->tape, l->e), NULL;
    memset(mean, 0, count * sizeof *mean);
    for (size_t i = 0;; i++) {
        for (int64_t r = 0; r < rows; r++) add_probabilities(x + r * cols, cols, T, weight, mean + r * cols);
        if (i == d->n_more) break;
        ses_outputs theirs;
        ses_batch copy = *b;
        if (!ses_model_forward(d->more[i], d->tape, &copy, want, &theirs, l->e)) return NULL;
        const ses_output *y = ses_outputs_find(&theirs, theirs.head[0].output);
        ses_tensor *same = teacher_tensor(l, first, y, "scores of the teachers");
        if (!same) return NULL;
        if (!ses_tape_read(d->tape, same, x)) return ses_tape_ok(d->tape, l->e), NULL;
    }
    for (size_t k = 0; k < count; k++)
        x[k] = (ses_real)(cols == 1 ? mean[k] : T * log(mean[k] > 1e-300 ? mean[k] : 1e-300));
    ses_tensor *out = ses_tape_input(d->tape, x, SES_DIM(rows, cols));
    return ses_tape_ok(d->tape, l->e) ? out : NULL;
}

static bool add_logits_loss(loss_ctx *l, const ses_batch *b, const ses_output_request *want)
{
    const ses_output *x = ses_outputs_find(&l->ours, l->ours.head[0].output);
    const ses_output *y = ses_outputs_find(&l->theirs, l->theirs.head[0].output);
    ses_tensor *target = teacher_tensor(l, x ? x->tensor : NULL, y, "scores");
    if (target && l->d->n_more) target = mean_scores(l, b, want, target);
    if (!target) return false;
    /* one column: regression */
    ses_teacher_loss_kind kind = ses_cols(target) > 1 ? SES_TEACHER_KL : SES_TEACHER_MSE;
    return add_loss(l, ses_teacher_loss(l->t, x->tensor, target, kind, l->d->o.temperature), l->d->o.soft);
}

/* Projects a hidden state of layer i to the teacher's width. */
static ses_tensor *projected(loss_ctx *l, ses_tensor *x, int64_t i)
{
    ses_tensor *w = l->d->project[i > 0];
    return w ? ses_linear(l->t, x, w, NULL, SES_ACT_NONE, SES_OUT_IN) : x;
}

static bool add_cosine_loss(loss_ctx *l)
{
    int64_t ours = count_of(&l->ours, "hidden_states"), theirs = count_of(&l->theirs, "hidden_states");
    const ses_output *last = numbered(&l->ours, "hidden_states", ours - 1);
    ses_tensor *x = last ? projected(l, last->tensor, ours - 1) : NULL;
    ses_tensor *target =
        teacher_tensor(l, x, numbered(&l->theirs, "hidden_states", theirs - 1), "hidden states");
    return target && add_loss(l, ses_teacher_loss(l->t, x, target, SES_TEACHER_COSINE, 1), l->d->o.cosine);
}

/* Squared error layer by layer. embeddings: 1 if the outputs include the embeddings as layer 0. */
static bool add_layer_losses(loss_ctx *l, const char *what, const char *label, int64_t embeddings,
                             double weight)
{
    int64_t ours = count_of(&l->ours, what), theirs = count_of(&l->theirs, what);
    int64_t s = ours - embeddings, t = theirs - embeddings;
    if (s < 1 || t < s)
        return ses_fail(l->e, SES_EARG, "%s: the student has %lld layers, the teacher %lld", label,
                        (long long)s, (long long)t);
    for (int64_t i = 0; i < ours; i++) {
        ses_tensor *x = numbered(&l->ours, what, i)->tensor;
        if (embeddings) x = projected(l, x, i);
        int64_t at = embeddings ? i * t / s : (i + 1) * t / s - 1;
        ses_tensor *target = teacher_tensor(l, x, numbered(&l->theirs, what, at), label);
        if (!target || !add_loss(l, ses_teacher_loss(l->t, x, target, SES_TEACHER_MSE, 1), weight))
            return false;
    }
    return true;
}

ses_tensor *ses_distill_loss(void *distill, ses_tape *t, const ses_batch *b, ses_err *e)
{
    ses_distill *d = distill;
    const ses_distill_options *o = &d->o;
    loss_ctx l = { .d = d, .t = t, .e = e };
    const ses_head *head = d->student->class->head[0].head;
    ses_output_request want = { .logits = o->soft > 0,
                                .hidden_states = o->cosine > 0 || o->hidden > 0,
                                .attention_scores = o->attention > 0 };
    int32_t *rows, *labels;
    ses_batch copy = *b;
    if (head && head->is_lm) {
        want.n_rows = ses_label_rows(t, b, head->name, &rows, &labels);
        want.rows = rows;
        want.logits &= want.n_rows > 0;
    }
    ses_tape_reset(d->tape, NULL);
    if (!ses_tape_ok(t, e) || !ses_model_forward(d->student, t, b, &want, &l.ours, e) ||
        !ses_model_forward(d->teacher, d->tape, &copy, &want, &l.theirs, e))
        return NULL;
    if ((o->hard > 0 && l.ours.loss && !add_loss(&l, l.ours.loss, o->hard)) ||
        (want.logits && !add_logits_loss(&l, b, &want)) || (o->cosine > 0 && !add_cosine_loss(&l)) ||
        (o->hidden > 0 && !add_layer_losses(&l, "hidden_states", "hidden states", 1, o->hidden)) ||
        (o->attention > 0 && !add_layer_losses(&l, "attention_scores", "attention scores", 0, o->attention)))
        return NULL;
    return l.sum;
}

/* ---- initializing a student ---- */

/* The teacher's name of the student's "layer.3.ffn.up.weight", for s and t layers; false: too long. */
static bool teacher_name(const char *ours, int64_t s, int64_t t, char *buf, size_t n)
{
    const char *at = strstr(ours, "layer.");
    if (!at || (at != ours && at[-1] != '.')) return snprintf(buf, n, "%s", ours) < (int)n;
    char *rest;
    long long i = strtoll(at + 6, &rest, 10);
    return snprintf(buf, n, "%.*s%lld%s", (int)(at + 6 - ours), ours, i * (long long)t / (long long)s, rest) <
           (int)n;
}

/* Number of layers whose parameters start with prefix. */
static int64_t count_layers(const ses_store *s, const char *prefix)
{
    int64_t max = 0;
    size_t n = strlen(prefix);
    for (size_t i = 0; i < ses_store_count(s); i++) {
        const char *name = ses_store_at(s, i)->name;
        if (strncmp(name, prefix, n)) continue;
        int64_t k = strtoll(name + n, NULL, 10) + 1;
        if (k > max) max = k;
    }
    return max;
}

bool ses_student_init(ses_model *student, const ses_model *teacher, size_t *copied, ses_err *e)
{
    ses_store *to = ses_model_store(student);
    const ses_store *from = ses_model_store(teacher);
    ses_device *dev = ses_store_device(to), *theirs = ses_store_device(from);
    *copied = 0;
    if (ses_model_vocab_size(student) != ses_model_vocab_size(teacher))
        return ses_fail(e, SES_EARG, "the student's vocabulary has %lld tokens, the teacher's %lld",
                        (long long)ses_model_vocab_size(student), (long long)ses_model_vocab_size(teacher));
    for (size_t i = 0; i < ses_store_count(to); i++) {
        const ses_param *p = ses_store_at(to, i);
        const char *prefix = strncmp(p->name, "decoder.", 8) ? "layer." : "decoder.layer.";
        char name[256];
        int64_t s = count_layers(to, prefix), t = count_layers(from, prefix);
        if (!teacher_name(p->name, s > 0 ? s : 1, t > 0 ? t : 1, name, sizeof name)) continue;
        const ses_param *q = ses_store_find(from, name);
        if (!q || !ses_same_shape(p->tensor, q->tensor)) continue;
        size_t bytes = (size_t)ses_count(p->tensor) * sizeof(ses_real);
        ses_real *host = ses_alloc_aligned(bytes, e);
        if (!host) return false;
        theirs->mem->download(theirs, host, ses_master_data(q->tensor), bytes);
        dev->mem->upload(dev, ses_master_data(p->tensor), host, bytes);
        ses_free(host);
        ++*copied;
    }
    ses_store_sync_bf16(to);
    return *copied > 0 || ses_fail(e, SES_EARG, "no tensor of the teacher fits the student");
}
