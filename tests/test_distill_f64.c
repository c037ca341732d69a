/* Distillation: losses against their formulas, gradients against finite differences, initializing a
 * student. */
#include "base/rng.h"
#include "check.h"
#include "train/distill.h"
#include "train/distill/student_config.h"
#include "train/objective/objective_mix.h"

#include <math.h>

enum { TOKENS = 13, SEQS = 2, VOCAB = 40 };
static const int32_t cu[] = { 0, 7, TOKENS };
static const int32_t ids[] = { 2, 9, 4, 36, 3, 8, 2, 7, 7, 11, 30, 8, 3 };
static const int32_t token_labels[] = { -100, 9, -100, 3, -100, -100, 5, -100, 1, -100, -100, 38, -100 };
static const int32_t seq_labels[] = { 2, 0 };

typedef struct pair {
    ses_json_doc *config[2];
    ses_model *student, *teacher;
    ses_batch batch;
} pair;

static ses_json_doc *config(int layers, int width, int vocab, ses_err *e)
{
    char text[600];
    int n = snprintf(
        text, sizeof text,
        "{\"model_type\": \"bert\", \"vocab_size\": %d, \"hidden_size\": %d, \"num_hidden_layers\": %d, "
        "\"num_attention_heads\": 4, \"intermediate_size\": 24, \"max_position_embeddings\": 16, "
        "\"initializer_range\": 0.4, \"hidden_dropout_prob\": 0, \"attention_probs_dropout_prob\": 0, "
        "\"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}}",
        vocab, width, layers);
    return ses_json_parse(text, (size_t)n, e);
}

static bool open_pair(pair *p, const char *class_name, bool tokens, int width, int vocab, ses_device *dev,
                      ses_err *e)
{
    *p = (pair){ .config = { config(2, 16, VOCAB, e), config(4, width, vocab, e) } };
    p->batch = (ses_batch){ .seqs = SEQS,
                            .tokens = TOKENS,
                            .cu_seqlens = cu,
                            .ids = ids,
                            .labels = tokens ? token_labels : seq_labels };
    if (!p->config[0] || !p->config[1]) return false;
    ses_model_options o = { .class_name = class_name, .random_init = true, .seed = 3, .train = true };
    p->student = ses_model_new(ses_json_root(p->config[0]), dev, &o, e);
    o.seed = 8, o.train = false;
    p->teacher = ses_model_new(ses_json_root(p->config[1]), dev, &o, e);
    return p->student && p->teacher;
}

static void close_pair(pair *p)
{
    ses_model_free(p->student);
    ses_model_free(p->teacher);
    ses_json_free(p->config[0]);
    ses_json_free(p->config[1]);
}

static bool loss_of(ses_distill *d, ses_tape *t, const ses_batch *b, double *loss, ses_err *e)
{
    ses_real x = 0;
    ses_tape_reset(t, &(ses_tape_options){ .record = true });
    ses_tensor *l = ses_distill_loss(d, t, b, e);
    if (!l) return false;
    ses_backward(t, l);
    bool ok = ses_tape_ok(t, e) && ses_tape_read(t, l, &x);
    *loss = (double)x;
    return ok;
}

/* Every n-th parameter of a store, one number each. */
static void check_gradients(pair *p, ses_store *s, size_t n, ses_distill *d, ses_tape *t, const char *what)
{
    const double step = 1e-6;
    ses_err e = { 0 };
    for (size_t i = 0; i < ses_store_count(s); i += n) {
        const ses_param *q = ses_store_at(s, i);
        int64_t at = (int64_t)ses_rand32((ses_rng_key){ .seed = 4 }, i) % ses_count(q->tensor);
        double up = 0, down = 0, was = (double)q->tensor->f[at];
        if (!strcmp(q->name, "embed.token")) at = 9 * 16 + 3, was = (double)q->tensor->f[at];
        ses_store_zero_grad(s);
        bool ok = loss_of(d, t, &p->batch, &up, &e);
        double grad = (double)q->tensor->grad[at];
        q->tensor->f[at] = (ses_real)(was + step);
        ok = ok && loss_of(d, t, &p->batch, &up, &e);
        q->tensor->f[at] = (ses_real)(was - step);
        ok = ok && loss_of(d, t, &p->batch, &down, &e);
        q->tensor->f[at] = (ses_real)was;
        double slope = (up - down) / (2 * step);
        CHECK_MSG(ok && fabs(slope - grad) < 1e-6 * fmax(1, fabs(slope)),
                  "%s: %s[%lld]: %.9f, by differences %.9f %s", what, q->name, (long long)at, grad, slope,
                  e.msg);
    }
}

/* Numbers of an output of a model, on the host. */
static int64_t numbers(const ses_model *m, const ses_batch *b, const char *name, ses_device *dev, double *out)
{
    static ses_real x[8192];
    ses_err e = { 0 };
    ses_outputs o;
    int64_t n = 0;
    ses_tape *t = ses_tape_new(dev, NULL, &e);
    ses_output_request want = {
        .logits = true, .hidden_states = true, .attention_scores = true, .attentions = true
    };
    if (t && ses_model_forward(m, t, b, &want, &o, &e) && !strcmp(name, "loss")) {
        ses_tape_read(t, o.loss, x);
        n = 1;
    } else if (e.code == SES_OK) {
        const ses_output *y = ses_outputs_find(&o, name);
        if (y && ses_tape_read(t, y->tensor, x)) n = ses_count(y->tensor);
    }
    CHECK_MSG(n > 0, "%s: %s", name, e.msg);
    for (int64_t i = 0; i < n; i++) out[i] = (double)x[i];
    ses_tape_free(t);
    return n;
}

static void soften(double *x, int64_t n, double temperature)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] = exp(x[i] / temperature);
    for (int64_t i = 0; i < n; i++) x[i] /= sum;
}

static double by_formula(const pair *p, ses_device *dev, bool tokens, const ses_distill_options *o)
{
    static double a[8192], b[8192];
    int64_t cols = tokens ? VOCAB : 3, rows = 0;
    double kl = 0, cosine = 0, square = 0, loss;
    numbers(p->student, &p->batch, "logits", dev, a), numbers(p->teacher, &p->batch, "logits", dev, b);
    for (int64_t r = 0; r < (tokens ? TOKENS : SEQS); r++) {
        if (tokens && token_labels[r] < 0) continue;
        soften(a + r * cols, cols, o->temperature), soften(b + r * cols, cols, o->temperature);
        for (int64_t v = r * cols; v < (r + 1) * cols; v++) kl += b[v] * log(b[v] / a[v]);
        rows++;
    }
    numbers(p->student, &p->batch, "loss", dev, a), loss = o->hard * a[0];
    loss += o->soft * o->temperature * o->temperature * kl / (double)rows;
    numbers(p->student, &p->batch, "hidden_states.2", dev, a),
        numbers(p->teacher, &p->batch, "hidden_states.4", dev, b);
    for (int64_t r = 0; r < TOKENS; r++) {
        double ab = 0, aa = 0, bb = 0;
        for (int64_t j = r * 16; j < (r + 1) * 16; j++)
            ab += a[j] * b[j], aa += a[j] * a[j], bb += b[j] * b[j];
        cosine += (1 - ab / sqrt(aa * bb)) / TOKENS;
    }
    static const char *const ours[] = { "hidden_states.0", "hidden_states.1", "hidden_states.2" };
    static const char *const theirs[] = { "hidden_states.0", "hidden_states.2", "hidden_states.4" };
    for (int i = 0; i < 3; i++) {
        int64_t n = numbers(p->student, &p->batch, ours[i], dev, a);
        numbers(p->teacher, &p->batch, theirs[i], dev, b);
        for (int64_t j = 0; j < n; j++) square += o->hidden * (a[j] - b[j]) * (a[j] - b[j]) / (double)n;
    }
    for (int i = 0; i < 2; i++) {
        int64_t n = numbers(p->student, &p->batch, i ? "attention_scores.1" : "attention_scores.0", dev, a);
        numbers(p->teacher, &p->batch, i ? "attention_scores.3" : "attention_scores.1", dev, b);
        for (int64_t j = 0; j < n; j++) square += o->attention * (a[j] - b[j]) * (a[j] - b[j]) / (double)n;
    }
    return loss + o->cosine * cosine + square;
}

static void test_losses(ses_device *dev, bool tokens)
{
    pair p;
    ses_err e = { 0 };
    ses_distill_options o = {
        .temperature = 2, .soft = 5, .hard = 2, .cosine = 1, .hidden = 0.5, .attention = 0.25
    };
    const char *class_name = tokens ? "BertForMaskedLM" : "BertForSequenceClassification";
    double loss = 0;
    if (open_pair(&p, class_name, tokens, 16, VOCAB, dev, &e)) {
        ses_distill *d = ses_distill_new(&o, p.student, p.teacher, &e);
        ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
        CHECK_MSG(d && t && loss_of(d, t, &p.batch, &loss, &e), "%s", e.msg);
        double want = by_formula(&p, dev, tokens, &o);
        CHECK_MSG(fabs(loss - want) < 1e-9 * want, "%s: %.12f, by the formula %.12f", class_name, loss, want);
        if (d && t) check_gradients(&p, ses_model_store(p.student), 2, d, t, class_name);
        CHECK(d && !ses_distill_store(d));
        ses_tape_free(t);
        ses_distill_free(d);
    }
    CHECK_MSG(p.student && p.teacher, "%s", e.msg);
    close_pair(&p);
}

/* Several teachers: the student learns the mean of their probabilities at the temperature. */
static void test_teachers(ses_device *dev)
{
    enum { TEACHERS = 3, CLASSES = 3 };
    pair p;
    ses_err e = { 0 };
    ses_model *teacher[TEACHERS] = { 0 };
    ses_distill_options o = { .temperature = 3, .soft = 2, .hard = 0.5 };
    double loss = 0, mean[SEQS * CLASSES] = { 0 }, x[8192], kl = 0;
    bool ok = open_pair(&p, "BertForSequenceClassification", false, 16, VOCAB, dev, &e);
    ses_distill *d = ok ? ses_distill_new(&o, p.student, p.teacher, &e) : NULL;
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
    teacher[0] = p.teacher;
    for (int i = 1; d && i < TEACHERS; i++) {
        ses_model_options m = { .class_name = "BertForSequenceClassification", .seed = 20 + (uint64_t)i };
        teacher[i] = ses_model_new(ses_json_root(p.config[i % 2]), dev, &m, &e);
        CHECK_MSG(teacher[i] && ses_distill_add_teacher(d, teacher[i], &e), "%s", e.msg);
    }
    CHECK_MSG(d && t && loss_of(d, t, &p.batch, &loss, &e), "%s", e.msg);
    for (int i = 0; d && i < TEACHERS; i++) {
        numbers(teacher[i], &p.batch, "logits", dev, x);
        for (int s = 0; s < SEQS; s++) soften(x + s * CLASSES, CLASSES, o.temperature);
        for (int k = 0; k < SEQS * CLASSES; k++) mean[k] += x[k] / TEACHERS;
    }
    numbers(p.student, &p.batch, "logits", dev, x);
    for (int s = 0; s < SEQS; s++) soften(x + s * CLASSES, CLASSES, o.temperature);
    for (int k = 0; k < SEQS * CLASSES; k++) kl += mean[k] * log(mean[k] / x[k]) / SEQS;
    numbers(p.student, &p.batch, "loss", dev, x);
    double want = o.hard * x[0] + o.soft * o.temperature * o.temperature * kl;
    CHECK_MSG(fabs(loss - want) < 1e-9 * want, "teachers: %.12f, by the formula %.12f", loss, want);
    if (d && t) check_gradients(&p, ses_model_store(p.student), 2, d, t, "three teachers");
    ses_tape_free(t);
    ses_distill_free(d);
    for (int i = 1; i < TEACHERS; i++) ses_model_free(teacher[i]);
    close_pair(&p);
}

/* A wider teacher: projections are trained, too. */
static void test_widths(ses_device *dev)
{
    pair p;
    ses_err e = { 0 };
    ses_distill_options o = { .temperature = 2, .soft = 1, .cosine = 1, .hidden = 0.5 };
    if (open_pair(&p, "BertForMaskedLM", true, 24, VOCAB, dev, &e)) {
        ses_distill *d = ses_distill_new(&o, p.student, p.teacher, &e);
        ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
        ses_store *more = ses_distill_store(d);
        CHECK_MSG(more && ses_store_count(more) == 2, "%s", e.msg);
        if (more && t) {
            check_gradients(&p, ses_model_store(p.student), 3, d, t, "narrow student");
            check_gradients(&p, more, 1, d, t, "matrix");
        }
        ses_tape_free(t);
        ses_distill_free(d);
    }
    close_pair(&p);
}

static void freeze_queries(ses_store *s)
{
    for (size_t i = 0; i < ses_store_count(s); i++)
        if (strstr(ses_store_at(s, i)->name, "attn.query")) ses_store_at(s, i)->tensor->requires_grad = false;
}

/* Scores before softmax become the probabilities; they are the same where queries are not projected together
 * with keys and values. */
static void test_scores(ses_device *dev)
{
    static double scores[8192], probs[8192];
    pair p;
    ses_err e = { 0 };
    double most = 0;
    if (open_pair(&p, "BertForMaskedLM", true, 16, VOCAB, dev, &e)) {
        int64_t n = numbers(p.teacher, &p.batch, "attention_scores.2", dev, scores), at = 0;
        CHECK(n == 4 * (7 * 7 + 6 * 6) && numbers(p.teacher, &p.batch, "attentions.2", dev, probs) == n);
        for (int64_t s = 0; s < SEQS; s++)
            for (int64_t r = 0, len = cu[s + 1] - cu[s]; r < 4 * len; r++, at += len)
                soften(scores + at, len, 1);
        for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(scores[i] - probs[i]));
        CHECK_MSG(most < 1e-12, "%g", most);
        n = numbers(p.student, &p.batch, "attention_scores.1", dev, scores);
        freeze_queries(ses_model_store(p.student));
        CHECK(n > 0 && numbers(p.student, &p.batch, "attention_scores.1", dev, probs) == n);
        CHECK(!memcmp(scores, probs, (size_t)n * sizeof *scores));
    }
    close_pair(&p);
}

static void test_begin(ses_device *dev)
{
    pair p;
    ses_err e = { 0 };
    size_t copied = 0;
    if (open_pair(&p, "BertForMaskedLM", true, 16, VOCAB, dev, &e)) {
        CHECK_MSG(ses_student_init(p.student, p.teacher, NULL, &copied, &e), "%s", e.msg);
        CHECK(copied == ses_store_count(ses_model_store(p.student)));
        static const char *const same[][2] = { { "embed.token", "embed.token" },
                                               { "layer.0.ffn.up.weight", "layer.0.ffn.up.weight" },
                                               { "layer.1.attn.query.weight", "layer.2.attn.query.weight" },
                                               { "lm.dense.weight", "lm.dense.weight" } };
        for (size_t i = 0; i < SES_LEN(same); i++) {
            const ses_tensor *a = ses_store_find(ses_model_store(p.student), same[i][0])->tensor;
            const ses_tensor *b = ses_store_find(ses_model_store(p.teacher), same[i][1])->tensor;
            CHECK_MSG(!memcmp(a->f, b->f, (size_t)ses_count(a) * sizeof *a->f), "%s", same[i][0]);
        }
    }
    close_pair(&p);
}

static void fails(ses_device *dev, int width, int vocab, ses_distill_options o, const char *message)
{
    pair p;
    ses_err e = { 0 };
    double loss;
    bool ok = open_pair(&p, "BertForMaskedLM", true, width, vocab, dev, &e);
    ses_distill *d = ok ? ses_distill_new(&o, p.student, p.teacher, &e) : NULL;
    ses_tape *t = ses_tape_new(dev, &(ses_tape_options){ .record = true }, &e);
    CHECK(ok && (!d || !loss_of(d, t, &p.batch, &loss, &e)));
    CHECK_MSG(strstr(e.msg, message), "\"%s\"", e.msg);
    ses_tape_free(t);
    ses_distill_free(d);
    close_pair(&p);
}

int main(void)
{
    ses_err e = { 0 };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    CHECK_MSG(dev, "%s", e.msg);
    if (!dev) return check_report();
    test_losses(dev, true);
    test_losses(dev, false);
    test_teachers(dev);
    test_widths(dev);
    test_scores(dev);
    test_begin(dev);
    ses_distill_options usual = ses_distill_defaults, cold = usual, idle = { .temperature = 1, .hard = 1 };
    cold.temperature = 0;
    fails(dev, 16, 44, usual, "the student's vocabulary has 40 tokens, the teacher's 44");
    fails(dev, 16, VOCAB, cold, "distillation temperature 0");
    fails(dev, 16, VOCAB, idle, "all distillation weights are 0");
    ses_device_free(dev);
    return check_report();
}
